"""Records of one-rule edits: what `mutate-model --json` writes.

In: nothing. Out: the models that docs/strength.md describes. `mutate.text` fills them.
"""

from __future__ import annotations

from memmodel.records.base import JsonRecord


class EditRecord(JsonRecord):
    """One edit. `fate`: what became of it. `test`, `before`, `after`: the smallest test that tells it apart, and the
    verdicts under the model and under the edited one; empty if none does. `how`: a proof, or a reason. `program`: what
    a search found, as a litmus test."""

    file: str
    line: int
    column: int
    rule: str
    change: str
    what: str
    fate: str
    test: str
    before: str
    after: str
    how: str
    program: str


class StrengthRecord(JsonRecord):
    """All edits of a model. `share`: of those that are neither equivalent nor undecided, the part that tests tell
    apart. `unjudged`: tests that were not judged. `reason`: why the run ended early, or nothing."""

    model: str
    tests: int
    share: float
    counts: dict[str, int]
    unjudged: tuple[str, ...]
    reason: str
    edits: tuple[EditRecord, ...]
