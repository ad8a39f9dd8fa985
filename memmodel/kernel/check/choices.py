"""The choices that differ between schedules, and those of them that matter.

In: the first run, its waits. Out: `OpenChoices`. Settled here: a result that may differ between schedules is taken as
unknown first; if the launch can be run so, nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.first_run import FirstRun
from memmodel.kernel.executions.settled_waits import SettledWaits
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.last_writes import contested, order_free_atomics
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKey, ChoiceKind, LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction


@dataclass(frozen=True, slots=True)
class OpenChoices:
    """What a run leaves open. All sets hold numbers of instructions.

    `schedule`, `trace`: of the run. `reasons`: what depends on a choice, as sentences. `chosen`: the instructions on
    whose results the run depends; `settled`: those whose results differ, and do not matter; `known`: all that were met.
    `judged`: the run in which the results of the settled ones are unknown, so that no two are equal by chance.
    `contested`: order decides which of several strong writes to a place is the last one.
    """

    schedule: Schedule
    trace: LaunchTrace
    reasons: tuple[str, ...]
    chosen: frozenset[int]
    settled: frozenset[int]
    known: frozenset[int]
    judged: LaunchTrace
    contested: bool = False

    @property
    def base(self) -> Schedule:
        """The schedule that others start from: what does not matter is unknown."""
        return replace(self.schedule, opaque=self.settled)


def open_choices(case: KernelCase, first: FirstRun, waits: SettledWaits) -> OpenChoices:
    """The choices of the first run, and what depends on them. Raises Refused."""
    whole = not case.options.ctas
    schedule = replace(first.schedule, counted=waits.counted | order_free_atomics(first.trace, case.entry, whole=whole))
    places = contested(first.trace, case.body)
    choices = {**first.trace.choices, **_last_writes(case, schedule, places, waits)}
    trace = replace(first.trace, choices=choices)
    dependence = _dependence(case, schedule, choices, waits)
    chosen = frozenset(instruction.number for instruction, _ in dependence.reasons)
    orders = frozenset(number for kind, number in choices if kind is ChoiceKind.LAST_WRITE)
    if orders & chosen:  # what one of them leaves depends on all of them
        chosen |= orders
    # What an atomic operation reads depends on all others at its word.
    words = (operations for operations in first.trace.atomics.values() if any(each.at in chosen for each in operations))
    chosen |= {operation.at for operations in words for operation in operations}
    chosen |= waits.loads
    settled = frozenset(number for _, number in choices) - chosen - waits.unseen
    return OpenChoices(
        schedule,
        trace,
        tuple(sentence for _, sentence in dependence.reasons),
        chosen,
        settled,
        settled | chosen | waits.unseen,
        _with_unknown_results(case, replace(schedule, opaque=settled), trace, dependence),
        bool(places),
    )


def with_more_choices(case: KernelCase, choices: OpenChoices, schedule: Schedule, trace: LaunchTrace) -> OpenChoices:
    """The choices with those that only this schedule meets: a lock is taken, so that a loop polls again. Those of them
    that matter are `chosen` from now on.
    """
    new = frozenset(number for _, number in trace.choices) - choices.known
    choices = replace(choices, known=choices.known | new)
    if not new or case.refusal(replace(schedule, opaque=schedule.opaque | new)) is None:
        return choices
    each = (at for at in sorted(new) if case.refusal(replace(schedule, opaque=schedule.opaque | {at})) is not None)
    return replace(choices, chosen=choices.chosen | (frozenset(each) or new))


@dataclass(frozen=True, slots=True)
class _Dependence:
    """The choices that matter, with sentences; the last run that was carried out with results unknown."""

    reasons: tuple[tuple[PtxInstruction, str], ...] = ()
    unknown: FirstRun | None = None


def _dependence(
    case: KernelCase, schedule: Schedule, choices: dict[ChoiceKey, PtxInstruction], waits: SettledWaits
) -> _Dependence:
    """The choices on which the run depends, and what does."""
    if not choices:
        return _Dependence()
    open_ = {key: choice for key, choice in choices.items() if key[1] not in waits.loads | waits.unseen}
    all_unknown = replace(schedule, opaque=frozenset(number for _, number in open_))
    outcome = case.attempt(all_unknown)
    if not isinstance(outcome, Refused):
        return _Dependence(unknown=FirstRun(all_unknown, outcome))
    reasons, unknown = [], None
    for (kind, number), choice in open_.items():
        one_unknown = replace(schedule, opaque=frozenset([number]))
        outcome = case.attempt(one_unknown)
        if isinstance(outcome, Refused):
            reasons.append((choice, _sentence(kind, choice, outcome)))
        else:
            unknown = FirstRun(one_unknown, outcome)
    if not reasons:
        reasons = [(choice, _sentence(kind, choice, None)) for (kind, _), choice in open_.items()]
    return _Dependence(tuple(reasons), unknown)


def _last_writes(
    case: KernelCase, schedule: Schedule, places: list[dict[Hashable, list[TraceEvent]]], waits: SettledWaits
) -> dict[ChoiceKey, PtxInstruction]:
    """The strong writes of which it is open which one is the last at its place. `places`: those of several writes."""
    if not places:
        return {}
    writes = frozenset(write.at for by_kind in places for events in by_kind.values() for write in events)
    trace = case.run(schedule)
    waits.prepare(trace)
    return RunJudge(case.entry, demote_unobserved(trace, writes | waits.loads), waits.loads).last_writes(case.model)


def _with_unknown_results(
    case: KernelCase, schedule: Schedule, trace: LaunchTrace, dependence: _Dependence
) -> LaunchTrace:
    """The run under a schedule in which results are unknown; `trace` if it cannot be carried out so."""
    if not schedule.opaque:
        return trace
    if dependence.unknown is not None and dependence.unknown.schedule == schedule:
        return dependence.unknown.trace
    outcome = case.attempt(schedule)
    return trace if isinstance(outcome, Refused) else outcome


def _sentence(kind: ChoiceKind, choice: PtxInstruction, error: Refused | None) -> str:
    source = kind.value.format(opcode=choice.opcode, line=choice.line)
    if error is None or error.span is None:
        return f"the run depends on {source}, which depends on the schedule"
    text = error.message.split(" depends on ")[0]
    return f"line {error.span.line}: {text} depends on {source}, which depends on the schedule"
