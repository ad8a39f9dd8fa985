"""Records of comparisons: what `diff --format json` writes.

In: nothing. Out: the models that docs/regression.md describes. `compare.text` fills them.
"""

from __future__ import annotations

from memmodel.records.base import JsonRecord
from memmodel.records.execution import FindingRecord


class ContrastRecord(JsonRecord):
    """One question that two models answer differently. `direction`: what the second model does."""

    path: str
    test: str
    question: str
    number: int
    direction: str
    observations: tuple[str, str]
    states_only_first: tuple[dict[str, int], ...]
    states_only_second: tuple[dict[str, int], ...]
    findings_only_first: tuple[FindingRecord, ...]
    findings_only_second: tuple[FindingRecord, ...]
    explanations: dict[str, str]
    undecided: str


class UncomparedRecord(JsonRecord):
    """A question that was not compared to the end."""

    path: str
    test: str
    question: int
    reason: str


class FaultRecord(JsonRecord):
    """A test that could not be compared at all."""

    path: str
    kind: str
    message: str


class DiffRecord(JsonRecord):
    """Two models on the same tests."""

    first: str
    second: str
    tests: int
    questions: int
    differ: tuple[ContrastRecord, ...]
    undecided: tuple[UncomparedRecord, ...]
    errors: tuple[FaultRecord, ...]
