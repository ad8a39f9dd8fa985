"""A family of launches, judged, the smallest first.

In: `SweepRequest`. Out: `Sweep`. The module is read and lowered once, and equal launches are judged once. A parameter
on which nothing in a launch depends is left unknown: where nothing is found then, the verdict is that of all its
values. No other verdict is taken from a launch with an unknown parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from memmodel.errors import BudgetSpent, InputError
from memmodel.isa.lowered import body_of
from memmodel.kernel.all_sizes.parameters import feeding_loads, parameters
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import ignored
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.launch import KINDS, Launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.output.groups import FindingGroup, groups
from memmodel.kernel.output.text import finding_name
from memmodel.kernel.sweep.family import (
    BAD_INPUT,
    FOUND,
    NO_LAUNCH,
    LaunchGroup,
    Sizes,
    Sweep,
    SweepAnswer,
    SweepRequest,
    grouped,
)
from memmodel.kernel.trace.problems import Refused
from memmodel.limits import shared, within_budget
from memmodel.program.ops import UndefinedIf, Write
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.workers import KILLED, forked


@dataclass(frozen=True, slots=True)
class GroupAnswers:
    """Answers of a group of launches, with their assumptions. `verdicts`: how many were made; `late`: why not all."""

    answers: dict[Sizes, SweepAnswer]
    assumptions: dict[str, str]
    verdicts: int
    late: str


@dataclass(frozen=True, slots=True)
class SweepWork:
    """What all processes share. `unknown`: parameters that are left unknown where nothing depends on them."""

    request: SweepRequest
    entry: PtxFunction
    groups: Sequence[LaunchGroup]
    unknown: tuple[str, ...]


PATIENCE = 2.0
"""Seconds for which processes may go on when the time is over, to say what they have."""


def sweep(request: SweepRequest, *, jobs: int = 1, progress: Callable[[str, int], None] | None = None) -> Sweep:
    """Judge every launch, as far as the time goes. `progress`: is given sizes, and of how many launches the answer is
    known now. Raises InputError for names that the launch does not have.
    """
    entry, launches = request.launches()
    outcome = Sweep(request.axes, len(launches), entry.name, request.model.name)
    place = {sizes: number for number, sizes in reversed(list(enumerate(launches.values())))}
    try:
        unknown = _not_read(request, entry, list(place))
        work = SweepWork(
            replace(request, budget=shared(request.budget, jobs)), entry, grouped(launches, unknown), unknown
        )
        with work.request.sharing():
            for group, result in _results(work, jobs):
                outcome.judged += result.verdicts
                outcome.assumptions |= result.assumptions
                outcome.stopped = outcome.stopped or result.late
                for sizes, answer in result.answers.items():
                    outcome.answers |= dict.fromkeys(group[sizes], answer)
                found = [sizes for sizes, answer in result.answers.items() if answer.word in FOUND]
                smallest = min(found, key=place.__getitem__, default=None)
                known = outcome.counterexample
                if smallest is not None and (not known or place[smallest] < place[known]):
                    outcome.counterexample, outcome.verdict = smallest, None
                    outcome.verdict = _verdict(request, entry, smallest)
                if progress is not None and result.answers:
                    last = next(reversed(result.answers))
                    progress(" ".join(f"{name}={size}" for name, size in last), len(outcome.answers))
    except BudgetSpent as spent:
        outcome.stopped = str(spent)
    except KeyboardInterrupt as signal:
        outcome.stopped, outcome.signal = "interrupted", signal
    return outcome


def _results(work: SweepWork, jobs: int) -> Iterator[tuple[LaunchGroup, GroupAnswers]]:
    """Answers as they come. Raises BudgetSpent."""
    try:
        yield from forked(work.groups, jobs, partial(_answers, work), _killed, work.request.until, PATIENCE)
    except TimeoutError:
        raise BudgetSpent(work.request.budget.out_of_seconds) from None


def _killed(group: LaunchGroup) -> GroupAnswers:
    """The answers of a group whose process was killed."""
    return GroupAnswers(dict.fromkeys(group, SweepAnswer("undecided", (f"not judged: {KILLED}",))), {}, 0, "")


def _answers(work: SweepWork, group: LaunchGroup) -> GroupAnswers:
    """The answers of one group: of the launch with unknown parameters, if it is clean, or of each launch."""
    request, entry = work.request, work.entry
    answers: dict[Sizes, SweepAnswer] = {}
    assumptions: dict[str, str] = {}
    verdicts, late = 0, ""
    try:
        if len(group) > 1 and _empty(next(iter(group))) is None:
            verdict = _verdict(request, entry, next(iter(group)), work.unknown)
            verdicts += 1
            if verdict.clean:
                return GroupAnswers(
                    dict.fromkeys(group, SweepAnswer(verdict.word, _about(verdict))), verdict.assumptions, verdicts, ""
                )
    except (InputError, BudgetSpent):  # each launch says what is wrong with it
        pass
    for sizes in group:
        answer = _empty(sizes)
        if answer is None:
            try:
                verdict = _verdict(request, entry, sizes)
                verdicts += 1
                answer = SweepAnswer(verdict.word, _about(verdict))
                assumptions |= verdict.assumptions if verdict.clean else {}
            except InputError as error:
                answer = SweepAnswer(BAD_INPUT, (error.message,))
            except BudgetSpent as spent:
                if monotonic() >= request.until:
                    late = str(spent)
                    break
                answer = SweepAnswer("undecided", (str(spent),))
        answers[sizes] = answer
    return GroupAnswers(answers, assumptions, verdicts, late)


def _empty(sizes: Sizes) -> SweepAnswer | None:
    """The answer about a grid without a CTA."""
    if any(size == 0 and name.startswith("grid.") for name, size in sizes):
        return SweepAnswer(NO_LAUNCH, ("the grid has no CTA",))
    return None


def _verdict(request: SweepRequest, entry: PtxFunction, sizes: Sizes, unknown: Sequence[str] = ()) -> KernelVerdict:
    """The verdict on a launch. Raises InputError; BudgetSpent where the time of all is over and nothing was found."""
    known = ignored(entry, request.baseline)
    with within_budget(request.left()):
        launch = without(request.question(sizes).launch, unknown)
        options = replace(request.options, ctas=chosen_ctas(launch, ()), widens=True, by_instruction=known.anything)
        case = KernelCase(request.text.module, entry, launch, request.model, options)
        verdict = judge_case(case, request.budget).verdict
    known.apply(verdict)
    if verdict.spent and not verdict.serious and monotonic() >= request.until:
        raise BudgetSpent(request.budget.out_of_seconds)
    return verdict


def _about(verdict: KernelVerdict) -> tuple[str, ...]:
    """What tells verdicts of one word apart: the findings, or the first thing that is open."""
    if verdict.serious:
        return tuple(sorted({finding_name(FindingGroup(group.first)) for group in groups(verdict.serious)}))
    return tuple((verdict.unsettled or verdict.choices)[:1])


# ---- parameters on which nothing depends -----------------------------------------------------------------------------


def _not_read(request: SweepRequest, entry: PtxFunction, launches: Sequence[Sizes]) -> tuple[str, ...]:
    """Parameters that may take any value in two launches, the smallest and one in the middle: whether that is so in
    the others, their verdicts say. Raises BudgetSpent.
    """
    taken = {name for name, _ in launches[0]}
    names = [axis.name for axis in request.axes.free if len(axis.values) > 1 and axis.name in taken]
    names = [name for name in names if not request.axes.feeds(name)]
    for sizes in dict.fromkeys((launches[0], launches[len(launches) // 2])):
        if not names or _empty(sizes) is not None:
            continue
        try:
            with within_budget(request.left()):
                launch = request.question(sizes).launch
                names = [name for name in names if _is_number(launch, entry, name)]
                names = [name for name in names if _runs(request, entry, without(launch, (name,)))]
                names = names if not names or _runs(request, entry, without(launch, names)) else []
        except InputError:
            return ()
    return tuple(names)


def _is_number(launch: Launch, entry: PtxFunction, name: str) -> bool:
    """True for a parameter that is a number, and reaches no instruction that is taken to do one thing where it is not
    known: a conversion of addresses is taken to be defined, an atomic operation that compares to write.
    """
    at = _number(launch, name)
    if at is None or launch.params[at].type not in KINDS:
        return False
    for does in body_of(entry):
        compares = any(isinstance(op, Write) and op.when is not None for op in does.ops)
        if compares or (does.without_effect and any(isinstance(op, UndefinedIf) for op in does.ops)):
            parts = parameters(entry, does.sources)
            if feeding_loads(entry, does.sources) or any(part.name == entry.params[at].name for part in parts):
                return False
    return True


def _number(launch: Launch, name: str) -> int | None:
    """The number of the parameter that a launch gives a name."""
    return next((at for at, param in enumerate(launch.params) if name in (param.name, str(at))), None)


def without(launch: Launch, names: Sequence[str]) -> Launch:
    """The launch in which some parameters may be anything."""
    numbers = {_number(launch, name) for name in names}
    params = (
        param.model_copy(update={"value": None}) if at in numbers else param for at, param in enumerate(launch.params)
    )
    return launch.model_copy(update={"params": tuple(params)})


def _runs(request: SweepRequest, entry: PtxFunction, launch: Launch) -> bool:
    """True if a launch can be run."""
    schedule = Schedule(ctas=chosen_ctas(launch, ()), assumed=request.options.assumed)
    try:
        run_launch(request.text.module, entry, launch, schedule)
    except Refused:
        return False
    return True
