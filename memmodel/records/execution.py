"""Records of executions: events, edges, final states, findings.

In: nothing. Out: the models that docs/json.md describes. `report.record` fills them.
"""

from __future__ import annotations

from memmodel.records.base import JsonRecord
from memmodel.records.reasons import ObstacleRecord, WaitingRecord

LabelPair = tuple[str, str]


class PlaceRecord(JsonRecord):
    """Where a thread runs; `cluster` null: a cluster of its own, `warp` null: a warp of its own."""

    gpu: int
    grid: int
    cluster: int | None
    cta: int
    warp: int | None


class EventRecord(JsonRecord):
    """One event of an execution. `thread` and `place` are null for an initial write."""

    label: str
    thread: str | None
    place: PlaceRecord | None
    text: str
    tags: tuple[str, ...]
    location: str | None
    value: int | None
    line: int | None


class ExecutionRecord(JsonRecord):
    """One consistent execution. `edges`: relation to pairs of labels. `memory`: an instance has its CTA in its name."""

    events: tuple[EventRecord, ...]
    edges: dict[str, tuple[LabelPair, ...]]
    registers: dict[str, int]
    memory: dict[str, str]
    waits: tuple[str, ...]


class FindingRecord(JsonRecord):
    """What a flag of the model relates, in the execution in which it was found. `because`: what is missing."""

    flag: str
    first: EventRecord | None
    second: EventRecord | None
    rule: str
    why: str
    witness: ExecutionRecord
    because: tuple[ObstacleRecord, ...] = ()


class HangRecord(JsonRecord):
    """An execution in which some thread waits for ever, and for each such thread a sentence, and why it does."""

    waits: tuple[str, ...]
    witness: ExecutionRecord
    because: tuple[WaitingRecord, ...] = ()
