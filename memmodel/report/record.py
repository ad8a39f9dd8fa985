"""A report as JSON values: the stable records of docs/json.md.

In: Report, or an error. Out: the values of a record. pydantic is loaded with this file, so only where JSON is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.answer import HANG, Finding, Outcomes, ShownEvent, Witness
from memmodel.cat.flags import FindingKind
from memmodel.ptx.vocabulary import Place
from memmodel.records.answers import (
    ErrorCause,
    ErrorKind,
    ErrorRecord,
    OutcomesRecord,
    ReportRecord,
    StateRecord,
    TimesRecord,
)
from memmodel.records.execution import EventRecord, ExecutionRecord, FindingRecord, HangRecord, PlaceRecord
from memmodel.records.reasons import ObstacleRecord
from memmodel.report.because import first_contradiction, says, stories_of_findings, story_of_outcome
from memmodel.report.findings import why_unordered
from memmodel.report.reason_record import obstacle, step, waiting
from memmodel.source import Span
from memmodel.why.records import Story
from memmodel.why.stuck import stuck

if TYPE_CHECKING:
    from memmodel.report.report import Report

Values = dict[str, object]


def record(report: Report, known_difference: str = "", *, explained: bool = False) -> Values:
    """One object for one question of a test under one model; `explained`: with the reasons, which take some time."""
    answer = report.answer
    hangs = [hang.witness for hang in answer.findings if hang.flag == HANG]
    stories = stories_of_findings(report) if explained else {}
    outcome = story_of_outcome(report) if explained else None
    cycle = first_contradiction(report) if explained else None
    times = answer.times
    return ReportRecord(
        test=report.test,
        path=report.path,
        model=report.model,
        observation=answer.observation.value,
        holds=report.holds,
        expected=report.expected,
        ok=report.ok,
        races=_findings(report, stories, FindingKind.RACE, FindingKind.MIXED, FindingKind.OTHER),
        engine=answer.engine,
        time_ms=TimesRecord(parse=round(times.parse, 3), encode=round(times.encode, 3), solve=round(times.solve, 3)),
        witness=execution(answer.witness) if answer.witness else None,
        counter=execution(answer.counter) if answer.counter else None,
        axioms=answer.axioms,
        flags=answer.flags,
        question=report.question,
        reason=answer.reason,
        warnings=report.warnings,
        hang=hangs[0].waits if hangs else (),
        hazards=_findings(report, stories, FindingKind.HAZARD),
        undefined=_findings(report, stories, FindingKind.UNDEFINED),
        flags_with_condition=answer.with_condition,
        hanging=execution(hangs[0]) if hangs else None,
        unsearched=answer.unsearched,
        status=report.status.value,
        hangs=tuple(_hang(witness, explained=explained and report.subject is not None) for witness in hangs),
        notices=report.notices,
        known_difference=known_difference,
        because=_because(outcome),
        cycle=tuple(map(step, cycle.steps)) if cycle is not None else (),
    ).json_values()


def _findings(report: Report, stories: dict[int, Story], *kinds: FindingKind) -> tuple[FindingRecord, ...]:
    return tuple(finding(report, reported, stories.get(id(reported))) for reported in report.found(*kinds))


def _because(story: Story | None) -> tuple[ObstacleRecord, ...]:
    return tuple(map(obstacle, story.obstacles)) if story is not None and says(story) else ()


def _hang(witness: Witness, *, explained: bool) -> HangRecord:
    stopped = stuck(witness).waiting if explained else ()
    return HangRecord(waits=witness.waits, witness=execution(witness), because=tuple(map(waiting, stopped)))


def finding(report: Report, reported: Finding, story: Story | None = None) -> FindingRecord:
    """Two events that a flag relates; `second` is `first` again where the flag is about one event.

    The labels are those of `witness`, the execution in which it was found.
    """
    return FindingRecord(
        flag=reported.flag,
        first=event(reported.first) if reported.first else None,
        second=event(reported.second) if reported.second else None,
        rule=reported.rule or report.rule(reported.flag),
        why=why_unordered(reported),
        witness=execution(reported.witness),
        because=_because(story),
    )


def failure(
    path: str,
    model: str | None,
    kind: ErrorKind,
    message: str,
    span: Span | None = None,
) -> Values:
    """The entry of a test that has no report. `kind`: the file's fault, too large to decide, or ours."""
    line, column = (span.line, span.column) if span else (None, None)
    cause = ErrorCause(kind=kind, message=message, line=line, column=column)
    return ErrorRecord(path=path, model=model, error=cause).json_values()


def execution(witness: Witness) -> ExecutionRecord:
    """Events, edges by their labels, and the final state."""
    label = {shown.uid: shown.label for shown in witness.events}
    return ExecutionRecord(
        events=tuple(event(shown) for shown in witness.events),
        edges={
            name: tuple(sorted((label[a], label[b]) for a, b in pairs if a in label and b in label))
            for name, pairs in sorted(witness.edges.items())
        },
        registers={f"{thread}:{name}": value for (thread, name), value in witness.registers.items()},
        memory=dict(witness.memory),
        waits=witness.waits,
    )


def event(shown: ShownEvent) -> EventRecord:
    """One event; `thread` and `place` are null for an initial write."""
    return EventRecord(
        label=shown.label,
        thread=shown.thread,
        place=_place(shown.place) if shown.place else None,
        text=shown.text,
        tags=tuple(sorted(shown.tags)),
        location=shown.location,
        value=shown.value,
        line=shown.span.line if shown.span else None,
    )


def _place(place: Place) -> PlaceRecord:
    return PlaceRecord(gpu=place.gpu, grid=place.grid, cluster=place.cluster, cta=place.cta, warp=place.warp)


def states(outcomes: Outcomes, path: str = "", model: str = "") -> Values:
    """All final states of a test."""
    shown = tuple(StateRecord(values=dict(state.values), satisfies=state.satisfies) for state in outcomes.states)
    return OutcomesRecord(
        states=shown,
        complete=outcomes.complete,
        engine=outcomes.engine,
        reason=outcomes.reason,
        path=path,
        model=model,
        left_out=outcomes.left_out,
    ).json_values()
