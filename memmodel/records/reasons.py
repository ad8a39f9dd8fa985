"""Records of reasons and paths: parts of what `check --json` and `explain --json` write.

In: the closed list of reasons. Out: the models that docs/json.md describes. Records of `why` fill them.
"""

from __future__ import annotations

from memmodel.records.base import JsonRecord
from memmodel.why.records import Reason


class AtRecord(JsonRecord):
    """A place on a path: an event of the execution that is shown, or, with `missing`, what would have to be there.

    `file`, `line` and `column` are null for an initial write and for what is missing.
    """

    label: str
    text: str
    thread: str | None
    file: str | None
    line: int | None
    column: int | None
    missing: bool


class StepRecord(JsonRecord):
    """From one place to another by a relation. `parts`: what it is derived from. `clause`: the section that gives it.

    `holds` false: it is not so in the execution that is shown, and would be if nothing were missing.
    """

    first: AtRecord
    second: AtRecord
    relation: str
    clause: str
    parts: tuple[StepRecord, ...]
    holds: bool


class ObstacleRecord(JsonRecord):
    """What stops the order: a reason of the closed list, the same in a sentence, what would let it go on, and where."""

    reason: Reason
    text: str
    repair: str
    events: tuple[AtRecord, ...]


class WaitingRecord(JsonRecord):
    """A thread that waits for ever, and where. `goes_on`: what would let it go on."""

    thread: str
    text: str
    reason: Reason
    goes_on: str
    file: str | None
    line: int | None
    column: int | None
