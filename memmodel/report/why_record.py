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


def explained(explanation: Explanation) -> dict[str, object]:
    """An explanation as one JSON object."""
    return ExplanationRecord(
        test=explanation.test,
        path=explanation.path,
        model=explanation.model,
        question=explanation.question,
        observation=Observation(explanation.observation).value,
        stories=tuple(map(_story, explanation.stories)),
        contradictions=tuple(map(_contradiction, explanation.contradictions)),
        stuck=None if explanation.stuck is None else _stuck(explanation.stuck),
        depends=tuple(map(_decision, explanation.depends)),
        note=explanation.note,
    ).json_values()


def _story(story: Story) -> StoryRecord:
    return StoryRecord(
        about=story.about,
        first=None if story.first is None else place(story.first),
        second=None if story.second is None else place(story.second),
        obstacles=tuple(map(obstacle, story.obstacles)),
        steps=tuple(map(step, story.steps)),
        axiom=story.axiom,
        rule=story.rule,
        witness=execution(story.witness),
    )


def _contradiction(contradiction: Contradiction) -> ContradictionRecord:
    return ContradictionRecord(
        axiom=contradiction.axiom,
        rule=contradiction.rule,
        steps=tuple(map(step, contradiction.steps)),
        rests_on=tuple(map(place, contradiction.rests_on)),
        witness=execution(contradiction.witness),
    )


def _stuck(hang: HangTold) -> StuckRecord:
    return StuckRecord(waiting=tuple(map(waiting, hang.waiting)), witness=execution(hang.witness))


def _decision(dependence: Dependence) -> DecisionRecord:
    return DecisionRecord(
        decision=dependence.decision,
        question=dependence.question,
        default=dependence.default,
        other=dependence.other,
        allowed_by=dependence.allowed_by,
        obstacles=tuple(map(obstacle, dependence.obstacles)),
        source=dependence.source,
    )
