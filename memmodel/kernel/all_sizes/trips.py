"""Whether the verdict of a launch holds for any trip count, or which loop stops that, and what decides its trip count.

In: entry, run, how to run the launch again. Out: a sentence. The answer is yes where the text shows that the trip count
of no loop that touches memory or orders something can change, and where the rounds of the loops that a parameter
decides repeat, so that another period adds nothing new (docs/kernels-theorem.md, "Any trip count").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import lcm

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.all_sizes.following import FollowedRounds, RoundEnd, Stretch
from memmodel.kernel.all_sizes.larger_numbers import in_every_schedule, reaching
from memmodel.kernel.all_sizes.loops import LoopText, depending, leaving, loops_of
from memmodel.kernel.all_sizes.parameters import ParamPart, origin, parameters
from memmodel.kernel.all_sizes.period_insertion import (
    Meetings,
    ObservedBytes,
    PeriodInsertion,
    meetings_of,
    observed_bytes,
)
from memmodel.kernel.all_sizes.periods import (
    LoopRun,
    Site,
    in_own_bytes,
    repeated,
    turns,
    writes_by_thread,
    writes_in,
    written_blocks,
)
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Sym
from memmodel.ptx.vocabulary import Space

RunLaunch = Callable[[FollowedRounds], LaunchTrace]
"""Runs the launch under one schedule, with a follower."""

MOST_PARAMETERS, MOST_PERIODS, MOST_CUTS, MOST_TRIALS = 8, 3, 4, 4
"""The most parameters, lengths of a period, places of it and runs of it that are tried."""

SHOWN = 5
"""Lines that are named."""

NO_STATE = "no state comes back twice"
TOO_SHORT = "in more of them one may"
"""Said where loops run too few rounds for a proof."""

WRAPS = "a number wraps in the next rounds"
MOST_LENGTH = 64
"""Rounds of a period."""


def any_trips(
    entry: PtxFunction,
    runs: Sequence[RunLaunch],
    equal: frozenset[int] = frozenset(),
    pointers: Collection[ParamPart] = (),
    deciding: Container[int] = frozenset(),
) -> tuple[str, Sequence[LongerLoops]]:
    """`yes: …` or `not shown: …`, and the parameters with which loops may run longer.

    `runs`: functions that run the launch, one for each schedule that is judged; none where the run depends on it.
    `equal`: stores that are no finding because others store the same. `pointers`: the parameters that are addresses.
    `deciding`: the strong loads and atomic operations on whose results the run depends, as the loads of a wait.
    """
    body = body_of(entry)
    for does in body:
        if (does.jumps_by_table and not does.targets) or (does.calls and _back(entry, does.instruction)):
            return f"not shown: where {does.instruction.at_line} goes was not followed", ()
    for name, called in entry.callees.items():  # they would come from an earlier call
        if liveness(entry)[called.start]:
            return f"not shown: {name} reads registers that it has not written", ()
    loops = loops_of(entry)
    if loops is None:
        return "not shown: there is a loop with several heads", ()
    if not loops:
        return _any_numbers(entry, loops, pointers, runs, equal, "there is no loop"), ()
    open_ = depending(entry, loops)
    if not open_:
        return _any_numbers(entry, loops, pointers, runs, equal, "no trip count depends on a parameter"), ()
    why = "" if runs else "what it does depends on the schedule"
    shown: list[LongerLoops] = []
    for param in parameters(entry, open_.values())[:MOST_PARAMETERS] if runs else ():
        longer = [LongerLoops(entry, loops, param, run, equal, deciding) for run in runs]
        if longer[0].heads & open_.keys() - {head for growth in shown for head in growth.heads}:
            reasons = [reason for growth in longer if (reason := growth.why_not()) is not None]
            if not reasons and not _joined(longer).most:
                reasons = [WRAPS]
            why = reasons[0] if reasons else why
            shown += [] if reasons else longer[:1]
    still = depending(entry, loops, [growth.param for growth in shown])
    left = [head for head in open_ if head in still and not any(head in growth.heads for growth in shown)]
    sentences = ["yes, " + str(growth) for growth in shown[:1]] + list(map(str, shown[1:]))
    if left:
        reason = f"; {why}" if why else ""
        more = f", and {len(left) - 1} more like it" if len(left) > 1 else ""
        term = origin(body, open_[left[0]])
        sentences.append(f"not shown: how often {_name(body, loops[left[0]])} runs depends on {term}{reason}{more}")
    return "; ".join(sentences), shown


def deciding(entry: PtxFunction) -> list[int]:
    """The registers that decide how often loops run, which come from parameters or memory."""
    loops = loops_of(entry)
    return [] if not loops else list(depending(entry, loops).values())


def _any_numbers(
    entry: PtxFunction, loops: Mapping[int, LoopText], pointers: Collection[ParamPart], runs: Sequence[RunLaunch],
    equal: frozenset[int], what: str,
) -> str:  # fmt: skip
    """The answer where no trip count depends on a parameter: whether larger numbers change anything else."""
    params, shown = reaching(entry, loops, pointers), list[str]()
    for param in params[:MOST_PARAMETERS]:
        answer = in_every_schedule(entry, loops, param, runs, equal)
        if isinstance(answer, str):
            return f"not shown: {what}, but {param} may decide something else: {answer}"
        shown.append(str(answer))
    if len(params) > MOST_PARAMETERS:
        return f"not shown: {what}, but more than {MOST_PARAMETERS} parameters may decide something else"
    return f"yes: {what}" + (f", and the launch does the same for {' and for '.join(shown)}" if shown else "")


def _joined(longer: Sequence[LongerLoops]) -> LongerLoops:
    """The first of several schedules, with what holds in each of them."""
    first, step = longer[0], lcm(*(each.step for each in longer))
    first.most = min(each.most * each.step // step for each in longer)
    first.step = step
    return first


def _name(body: Sequence[LoweredInstruction], loop: LoopText) -> str:
    begin, end = (body[at].instruction.line for at in (loop.head, loop.end))
    return f"the loop from line {begin} to line {end}"


@dataclass
class LongerLoops:
    """Larger values of one parameter, in one schedule: the loops that run longer then, and what their rounds do."""

    entry: PtxFunction
    loops: Mapping[int, LoopText]
    param: ParamPart
    run: RunLaunch
    equal: frozenset[int] = frozenset()
    deciding: Container[int] = frozenset()
    heads: frozenset[int] = frozenset()
    length: int = 0
    step: int = 1
    most: int = 0
    value: int | None = None
    _trace: LaunchTrace = field(init=False)
    _visits: Mapping[int, Sequence[RoundEnd]] = field(init=False)

    def __post_init__(self) -> None:
        """Find the loops that the parameter decides, in the run as it is."""
        followed = FollowedRounds(self.loops, self.entry, self.param)
        self._trace = self.run(followed)
        self._visits, self.value, body = followed.visits, followed.value, body_of(self.entry)
        self.heads = frozenset(
            head
            for head, loop in self.loops.items()
            if any(does.instruction.number in followed.leaves for does in leaving(body, loop))
        )

    def why_not(self) -> str | None:
        """Why nothing is shown for larger values; None if it is."""
        if self._trace.problems:
            return "the run itself goes wrong"
        if any(head in self.loops[other].around for head in self.heads for other in self.heads):
            return "so does how often a loop in it runs"
        written = written_blocks(self._trace)
        why = self._shown(written)
        if why is None or not any(_global(block) for block in written):
            return why
        other = self._shown(frozenset())  # accesses that move from round to round
        return None if other is None else other if why.startswith(NO_STATE) else why

    def _shown(self, fixed: frozenset[Block]) -> str | None:
        """Why nothing is shown, where accesses to some blocks are at the same places in each period."""
        ran, meetings = turns(self._trace, self._visits, self.heads, fixed), meetings_of(self._trace)
        observed = observed_bytes(self._trace, self.deciding)
        lengths = [rounds for rounds in range(1, MOST_LENGTH) if ran and all(turn.repeats(rounds) for turn in ran)]
        why = ""
        for length in lengths[:MOST_PERIODS]:
            cuts = [self._cut(turn, length, meetings, observed) for turn in ran]
            reasons = [cut for cut in cuts if isinstance(cut, str)]
            sites = [cut for cut in cuts if not isinstance(cut, str)]
            reason = reasons[0] if reasons else self._repeats(sites, fixed)
            if reason is None:
                self.length = length
                return None
            why = why or reason
        rounds = min((turn.least for turn in ran), default=0) + 1
        return why or f"{NO_STATE} in {rounds} rounds, and {TOO_SHORT}"

    def _cut(self, turn: LoopRun, length: int, meetings: Meetings, observed: ObservedBytes) -> Site | str:
        """The site where two periods begin and end, or why there is none. Threads that others wait for are cut some
        rounds later.
        """
        why = ""
        for third in islice(turn.thirds(length), MOST_CUTS):
            shifts: Counter[int] = Counter()
            while (site := turn.cut(length, third, shifts)) is not None:
                body = self.entry.body or ()
                insertion = PeriodInsertion(self._trace, meetings, body, self._visits, site, observed)
                late, text = insertion.late()
                reason = text if late else insertion.why_not()
                if reason is None:
                    return site
                why = why or reason
                if not late & site.keys():
                    break
                shifts.update(late & site.keys())
        return why or NO_STATE

    def _repeats(self, sites: Sequence[Site], fixed: frozenset[Block]) -> str | None:
        """Why a period does not lead back to the same state, whatever the parameter, each time that the loops are run;
        None if it does.
        """
        stretches = {
            thread: [Stretch(site[thread].second, site[thread].third) for site in sites] for thread in sites[0]
        }
        uneven: set[int] = set()
        for _ in range(MOST_TRIALS):
            followed = FollowedRounds(self.loops, self.entry, self.param, self._visits, stretches, uneven)
            try:
                run = self.run(followed)
            except Refused as error:
                place = f" at line {error.span.line}" if error.span is not None else ""
                return f"{error.message}{place} is not the same in longer loops"
            if followed.uneven == uneven:
                break
            uneven = followed.uneven
        else:
            return "registers do not go on evenly"
        body = self.entry.body or ()
        for at in sorted(followed.varying & self.equal):
            return f"{body[at].at_line} may no longer store what others store there"
        step, rate, written = followed.drifts.step(), followed.drifts.rate, written_blocks(run)
        if step is None or rate is None:
            return "the end of its rounds does not go with the parameter"
        for block, instruction in followed.wandering.items():
            if block in written:
                return f"{instruction.at_line} reads elsewhere in longer loops, where something is written"
        moved = {block: accesses for block, accesses in followed.placed.items() if block in written}
        for block, accesses in moved.items():
            if not in_own_bytes(run, block, accesses, rate):
                return f"the bytes of {block.instance.name} that longer loops touch may not lie apart"
        if not fixed and not repeated(run, followed.visits, sites, written - moved.keys()):
            return NO_STATE
        for site in sites:
            inside = writes_in(run, followed.visits, site)
            for (block, first, size), instruction in followed.cells.loaded.items():
                parts = inside.get(block, ([], []))
                if writes_by_thread(parts[0], first, size) != writes_by_thread(parts[1], first, size):
                    return f"what {instruction.at_line} loads is another number in each round"
        self.step, self.most = step, int(followed.drifts.periods() * rate / step)
        return None if self.most else WRAPS

    def __str__(self) -> str:
        body = body_of(self.entry)
        touching = sorted(self.heads)
        named = " and ".join(_name(body, self.loops[head]) for head in touching)
        repeats = "repeat" if len(touching) > 1 else "repeats"
        reach = f"up to {self.most} times, where numbers wrap; as long as buffers reach"
        return (
            f"for {self.param} = {self.value} and any multiple of {self.step} more ({reach}): "
            f"{named} {repeats} what they do after {self.length} rounds"
        )


def _global(block: Block) -> bool:
    return block.instance.space is Space.GLOBAL


def _back(entry: PtxFunction, call: PtxInstruction) -> bool:
    """True if a call leads back, or to a function that is not known from the text."""
    named = [operand.name for operand in call.operands if isinstance(operand, Sym) and operand.name in entry.callees]
    return not named or any(entry.callees[name].start <= call.number for name in named)
