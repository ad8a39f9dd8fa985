"""Records of explanations: what `explain` writes.

In: nothing. Out: the models that docs/json.md describes. An `Explanation` fills them.
"""

from __future__ import annotations

from memmodel.records.answers import ObservationWord
from memmodel.records.base import JsonRecord
from memmodel.records.execution import ExecutionRecord
from memmodel.records.reasons import AtRecord, ObstacleRecord, StepRecord, WaitingRecord


class StoryRecord(JsonRecord):
    """Why an outcome can be seen or a finding is made. `about`: "outcome", or the name of the flag."""

    about: str
    first: AtRecord | None
    second: AtRecord | None
    obstacles: tuple[ObstacleRecord, ...]
    steps: tuple[StepRecord, ...]
    axiom: str
    rule: str
    witness: ExecutionRecord


class ContradictionRecord(JsonRecord):
    """One axiom that a never needs: its cycle, in an execution that every other axiom allows."""

    axiom: str
    rule: str
    steps: tuple[StepRecord, ...]
    rests_on: tuple[AtRecord, ...]
    witness: ExecutionRecord


class StuckRecord(JsonRecord):
    """A hang: who waits for what, and the execution so far."""

    waiting: tuple[WaitingRecord, ...]
    witness: ExecutionRecord


class DecisionRecord(JsonRecord):
    """A decision that makes the difference. `obstacles`: what a program has to add so that it does not."""

    decision: str
    question: str
    default: str
    other: str
    allowed_by: str
    obstacles: tuple[ObstacleRecord, ...]
    source: str


class ExplanationRecord(JsonRecord):
    """Why one question is answered as it is. `note`: what is left where there is neither story nor contradiction."""

    test: str
    path: str
    model: str
    question: str
    observation: ObservationWord
    stories: tuple[StoryRecord, ...]
    contradictions: tuple[ContradictionRecord, ...]
    stuck: StuckRecord | None
    depends: tuple[DecisionRecord, ...]
    note: str
