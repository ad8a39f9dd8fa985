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
        readings=tuple(_reading(one) for one in report.readings),
        depends=tuple(_dependence(report, one) for one in report.depends),
        undecided=report.undecided,
        question=report.question,
        reason=report.answer.reason,
        warnings=report.warnings,
    ).json_values()


def _reading(one: ReadingAnswer) -> ReadingRecord:
    return ReadingRecord(
        decision=one.decision.number,
        reading=one.side.name,
        model=one.side.model,
        verdict=one.verdict.value,
        observation=one.answer.observation.value,
        reason=one.answer.reason,
    )


def _dependence(report: ReadingsReport, one: ReadingAnswer) -> DependenceRecord:
    return DependenceRecord(
        decision=one.decision.number,
        question=one.decision.question,
        default=_side(one.decision.default, report.default),
        other=_side(one.side, one.verdict),
        source=one.decision.source,
    )


def _side(side: DecisionSide, verdict: Verdict) -> SideRecord:
    return SideRecord(name=side.name, answer=side.answer, verdict=verdict.value)
