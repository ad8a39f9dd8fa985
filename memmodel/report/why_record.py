"""Explanations as JSON values: the stable records of docs/json.md.

In: the records of `why`. Out: the values of `records.explain`. pydantic is loaded with this file, so only where JSON is
wanted.
"""

from __future__ import annotations

from memmodel.answer import Observation
from memmodel.records.explain import (
    ContradictionRecord,
    DecisionRecord,
    ExplanationRecord,
    StoryRecord,
    StuckRecord,
)
from memmodel.report.reason_record import obstacle, place, step, waiting
from memmodel.report.record import execution
from memmodel.why.records import Contradiction, Dependence, Explanation, HangTold, Story


def explained(told: Explanation) -> dict[str, object]:
    """An explanation as one JSON object."""
    return ExplanationRecord(
        test=told.test,
        path=told.path,
        model=told.model,
        question=told.question,
        observation=Observation(told.observation).value,
        stories=tuple(map(_story, told.stories)),
        contradictions=tuple(map(_contradiction, told.contradictions)),
        stuck=None if told.stuck is None else _stuck(told.stuck),
        depends=tuple(map(_decision, told.depends)),
        note=told.note,
    ).json_values()


def _story(one: Story) -> StoryRecord:
    return StoryRecord(
        about=one.about,
        first=None if one.first is None else place(one.first),
        second=None if one.second is None else place(one.second),
        obstacles=tuple(map(obstacle, one.obstacles)),
        steps=tuple(map(step, one.steps)),
        axiom=one.axiom,
        rule=one.rule,
        witness=execution(one.witness),
    )


def _contradiction(one: Contradiction) -> ContradictionRecord:
    return ContradictionRecord(
        axiom=one.axiom,
        rule=one.rule,
        steps=tuple(map(step, one.steps)),
        rests_on=tuple(map(place, one.rests_on)),
        witness=execution(one.witness),
    )


def _stuck(one: HangTold) -> StuckRecord:
    return StuckRecord(waiting=tuple(map(waiting, one.waiting)), witness=execution(one.witness))


def _decision(one: Dependence) -> DecisionRecord:
    return DecisionRecord(
        decision=one.decision,
        question=one.question,
        default=one.default,
        other=one.other,
        allowed_by=one.allowed_by,
        obstacles=tuple(map(obstacle, one.obstacles)),
        source=one.source,
    )
