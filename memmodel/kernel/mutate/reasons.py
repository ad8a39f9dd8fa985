"""Why a change is not noticed: nothing lies on both sides of the instruction that has to be ordered, or what is left
orders it.

In: the judged run of a kernel, that of the mutant, the change. Out: a sentence. It is computed from the orders of both:
two accesses that conflict lie on both sides of an instruction if something leads from the one over it to the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from memmodel.base.labels import Access, Action, Mbarrier
from memmodel.concrete.execution import Rows
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.order.judging import Judgement, RunJudge
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy
from memmodel.referee.flags import Flags, bits

DEFINED, STEPS = ("synchronizes",), ("iss", "compl", "complwg")
"""What base causality is made of, with program order: by the model, and by the run."""

SHOWN, TRIED = 3, 8
"""Steps of a way that are named; pairs of the same two instructions of which the shortest way is looked for."""

Pair = tuple[int, int]


class LaunchOrder:
    """Which accesses of a judged run come before which, in base causality."""

    def __init__(self, made: RunJudge, flags: Flags, causes: Rows) -> None:
        self.graph, self.body, self.after = made.graph, made.body, causes
        self.before: Rows = flags.inverse(causes)
        self.program = flags.execution.relation("po")
        defined = [flags.relation(name) for name in DEFINED]
        rows = [row for row in defined if row is not None] + [flags.execution.relation(name) for name in STEPS]
        self.steps = [sum_of(cells) for cells in zip(*rows, strict=True)]

    @classmethod
    def of(cls, first: tuple[RunJudge, Judgement] | None) -> LaunchOrder | None:
        """None if the run was not judged, or by a model without this order."""
        if first is None or first[1].flags is None:
            return None
        causes = first[1].flags.relation("base-causality")
        return None if causes is None else cls(first[0], first[1].flags, causes)

    def pairs(self, *, proxies: bool) -> Iterator[Pair]:
        """What has to be ordered, as events in their order: accesses that conflict, of different threads or
        asynchronous, and the init of an object with its uses.

        `proxies`: those of which one is not made through the generic proxy.
        """
        points = self.graph.points
        for ends in (*self.graph.pair_of, *(() if proxies else self._uses())):
            labels = [points[event].label for event in ends]
            accesses = [label for label in labels if isinstance(label, Access)]
            alone = len({points[event].thread for event in ends}) == 1
            if len(set(ends)) != 2 or (alone and not any(label.asynchronous for label in accesses)):
                continue
            if proxies and all(label.proxy is Proxy.GENERIC for label in accesses):
                continue
            one, other = ends
            if self.after[one] >> other & 1:
                yield one, other
            elif self.after[other] >> one & 1:
                yield other, one

    def _uses(self) -> Iterator[frozenset[int]]:
        """The init of each mbarrier object with what is done with it."""
        for log in self.graph.run.objects.values():
            numbers = [self.graph.number[id(step.event)] for step in log if id(step.event) in self.graph.number]
            labels = [(number, self.graph.points[number].label) for number in numbers]
            inits = [number for number, one in labels if isinstance(one, Mbarrier) and one.action is Action.INIT]
            yield from (frozenset((one, other)) for one in inits for other in numbers)

    def idle(self, number: int) -> bool:
        """Is an instruction about mbarrier objects of which nobody waits for a phase?"""
        logs = [log for log in self.graph.run.objects.values() if any(step.event.at == number for step in log)]
        return bool(logs) and all(step.update for log in logs for step in log)

    def across(self, instruction: PtxInstruction) -> list[Pair]:
        """The pairs on both sides of an instruction; of a proxy fence, those that it may serve."""
        behind = enumerate(self.graph.behind)
        mine = sum(1 << event for event, one in behind if one.at == instruction.number)
        pairs = self.pairs(proxies="proxy" in instruction.words)
        return [(one, other) for one, other in pairs if self.after[one] & self.before[other] & mine]

    def places(self, pair: Pair) -> Pair:
        """The instructions of a pair."""
        one, other = (self.graph.behind[event].at for event in pair)
        return one, other

    def alone(self, pair: Pair) -> bool:
        """Is one thread behind both?"""
        one, other = (self.graph.points[event].thread for event in pair)
        return one == other

    def way(self, places: Pair, *, alone: bool) -> list[int] | None:
        """The instructions that lead from one access to another one; None if there is no such pair."""
        pairs = [
            pair for pair in self.pairs(proxies=False) if self.places(pair) == places and self.alone(pair) is alone
        ]
        ways = [self._way(*pair) for pair in pairs[:TRIED]]
        return min(ways, key=len, default=None)

    def _way(self, first: int, second: int) -> list[int]:
        """The instructions at which a shortest way in causality leaves or enters a thread."""
        between = self.after[first] & self.before[second] | 1 << second
        came, queue = {first: first}, deque([first])
        while queue and second not in came:
            at = queue.popleft()
            for after in bits((self.steps[at] | self.program[at]) & between):
                if after not in came:
                    came[after] = at
                    queue.append(after)
        found, at = [], came.get(second, first)
        while at != first:
            found.append(self.graph.behind[at].at)
            at = came[at]
        ends = self.places((first, second))
        return list(dict.fromkeys(one for one in found[::-1] if one not in ends))


def sum_of(cells: Iterable[int]) -> int:
    """The union of masks."""
    found = 0
    for cell in cells:
        found |= cell
    return found


def redundant(base: LaunchOrder, mutant: LaunchOrder, change: Mutation) -> str:
    """Why the change is not noticed."""
    words = change.instruction.words
    if words[:2] == ("mbarrier", "inval"):
        return "the memory of its object has no other use afterwards"
    if "commit_group" in words:
        return "its group is empty, or over with the next one"
    if base.idle(change.instruction.number):
        return "nothing waits for a phase of its mbarrier object"
    across = base.across(change.instruction)
    if not across:
        which = "accesses through different proxies" if "proxy" in words else "accesses"
        return f"no {which} that conflict lie on both sides of it"
    between = {pair: (base.after[pair[0]] & base.before[pair[1]]).bit_count() for pair in across}
    chosen = min(across, key=lambda pair: (base.alone(pair), between[pair], pair))
    one, other = base.places(chosen)
    lines = f"lines {base.body[one].line} and {base.body[other].line}"
    more = f" and {len(across) - 1} more pairs" if len(across) > 1 else ""
    steps = mutant.way((one, other), alone=base.alone(chosen))
    if steps is None:
        return f"{lines}{more}, on both sides of it, do not meet then"
    if change.instruction.number in steps:
        return f"what is left of it orders {lines}{more}"
    named = ", ".join(f"{base.body[at].opcode} at line {base.body[at].line}" for at in steps[:SHOWN])
    named += ", …" if len(steps) > SHOWN else ""
    return f"redundant: {lines}{more} are also ordered by {named or 'program order'}"
