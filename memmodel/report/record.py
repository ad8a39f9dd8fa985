"""A report as JSON values: the stable records of docs/json.md.

In: Report, or an error. Out: the values of a record. pydantic is loaded with this file, so only where JSON is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.answer import HANG, Finding, Outcomes, Witness
from memmodel.cat.flags import FindingKind
from memmodel.records.answers import (
    DefaultAnswer,
    DependenceRecord,
    ErrorCause,
    ErrorKind,
    ErrorRecord,
    OutcomesRecord,
    ReadingRecord,
    ReadingsRecord,
    ReportRecord,
    SideRecord,
    StateRecord,
    TimesRecord,
)
from memmodel.records.execution import EventRecord, ExecutionRecord, FindingRecord, HangRecord
from memmodel.records.reasons import ObstacleRecord, StepRecord, WaitingRecord
from memmodel.report.because import first_contradiction, says, stories_of_findings, story_of_outcome
from memmodel.report.findings import why_unordered
from memmodel.report.open_decisions import NONE, open_decisions
from memmodel.source import Span
from memmodel.why.records import Story
from memmodel.why.stuck import stuck

if TYPE_CHECKING:
    from memmodel.cat.decisions import DecisionSide
    from memmodel.report.readings import ReadingAnswer, ReadingsReport, Verdict
    from memmodel.report.report import Report

Values = dict[str, object]


def record(report: Report, known_difference: str = "", *, explained: bool = False) -> Values:
    """One object for one question of a test under one model; `explained`: with the reasons, which take some time."""
    answer = report.answer
    hangs = [hang.witness for hang in answer.findings if hang.flag == HANG]
    stories = stories_of_findings(report) if explained else {}
    outcome = story_of_outcome(report) if explained else None
    cycle = first_contradiction(report) if explained else None
    decided = open_decisions(report) if explained else NONE
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
        witness=_execution(answer.witness),
        counter=_execution(answer.counter),
        axioms=answer.axioms,
        flags=answer.flags,
        question=report.question,
        reason=answer.reason,
        warnings=report.warnings,
        hang=hangs[0].waits if hangs else (),
        hazards=_findings(report, stories, FindingKind.HAZARD),
        undefined=_findings(report, stories, FindingKind.UNDEFINED),
        flags_with_condition=answer.with_condition,
        hanging=_execution(hangs[0] if hangs else None),
        unsearched=answer.unsearched,
        status=report.status.value,
        hangs=tuple(_hang(witness, explained=explained and report.subject is not None) for witness in hangs),
        notices=report.notices,
        known_difference=known_difference,
        because=_because(outcome),
        cycle=tuple(map(StepRecord.of, cycle.steps)) if cycle is not None else (),
        depends_on=decided.other,
        may_depend_on=decided.possible,
        confirmed=None if report.confirmation is None else report.confirmation.agrees,
        confirmation="" if report.confirmation is None else report.confirmation.text,
    ).json_values()


def _findings(report: Report, stories: dict[int, Story], *kinds: FindingKind) -> tuple[FindingRecord, ...]:
    return tuple(finding(report, reported, stories.get(id(reported))) for reported in report.found(*kinds))


def _because(story: Story | None) -> tuple[ObstacleRecord, ...]:
    return tuple(map(ObstacleRecord.of, story.obstacles)) if story is not None and says(story) else ()


def _hang(witness: Witness, *, explained: bool) -> HangRecord:
    stopped = stuck(witness).waiting if explained else ()
    because = tuple(map(WaitingRecord.of, stopped))
    return HangRecord(waits=witness.waits, witness=ExecutionRecord.of(witness), because=because)


def finding(report: Report, reported: Finding, story: Story | None = None) -> FindingRecord:
    """Two events that a flag relates; `second` is `first` again where the flag is about one event.

    The labels are those of `witness`, the execution in which it was found.
    """
    return FindingRecord(
        flag=reported.flag,
        first=None if reported.first is None else EventRecord.of(reported.first),
        second=None if reported.second is None else EventRecord.of(reported.second),
        rule=reported.rule or report.rule(reported.flag),
        why=why_unordered(reported),
        witness=ExecutionRecord.of(reported.witness),
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


def _execution(witness: Witness | None) -> ExecutionRecord | None:
    return None if witness is None else ExecutionRecord.of(witness)


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


# ---- readings --------------------------------------------------------------------------------------------------------


def readings(report: ReadingsReport) -> Values:
    """One object for one question of a test under the default model and every reading of it."""
    return ReadingsRecord(
        test=report.test,
        path=report.path,
        model=report.model,
        verdict=report.verdict.value,
        default=DefaultAnswer(verdict=report.default.value, observation=report.answer.observation.value),
        readings=tuple(map(_reading, report.readings)),
        depends=tuple(_dependence(report, reading) for reading in report.depends),
        undecided=report.undecided,
        question=report.question,
        reason=report.answer.reason,
        warnings=report.warnings,
    ).json_values()


def _reading(reading: ReadingAnswer) -> ReadingRecord:
    return ReadingRecord(
        decision=reading.decision.number,
        reading=reading.side.name,
        model=reading.side.model,
        verdict=reading.verdict.value,
        observation=reading.answer.observation.value,
        reason=reading.answer.reason,
    )


def _dependence(report: ReadingsReport, reading: ReadingAnswer) -> DependenceRecord:
    return DependenceRecord(
        decision=reading.decision.number,
        question=reading.decision.question,
        default=_side(reading.decision.default, report.default),
        other=_side(reading.side, reading.verdict),
        source=reading.decision.source,
    )


def _side(side: DecisionSide, verdict: Verdict) -> SideRecord:
    return SideRecord(name=side.name, answer=side.answer, verdict=verdict.value)
