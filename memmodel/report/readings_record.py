"""A report on readings as JSON values. In: ReadingsReport. Out: the values of a ReadingsRecord (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.records.answers import DefaultAnswer, DependenceRecord, ReadingRecord, ReadingsRecord, SideRecord

if TYPE_CHECKING:
    from memmodel.cat.decisions import DecisionSide
    from memmodel.report.readings import ReadingAnswer, ReadingsReport, Verdict


def record(report: ReadingsReport) -> dict[str, object]:
    """One object for one question of a test."""
    return ReadingsRecord(
        test=report.test,
        path=report.path,
        model=report.model,
        verdict=report.verdict.value,
        default=DefaultAnswer(verdict=report.default.value, observation=report.answer.observation.value),
        readings=tuple(_reading(reading) for reading in report.readings),
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
