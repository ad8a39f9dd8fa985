"""Records of executions: events, edges, final states, findings.

In: nothing. Out: the models that docs/json.md describes. Settled here: in JSON, events are known by their labels.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, model_validator

from memmodel.answer import Witness
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


LARGEST_BITS = 14_000
"""A number of more bits has about as many digits (4,300) as readers of JSON take: it is written in hexadecimal."""


def _readable(value: object) -> object:
    """A value as readers take it; that of a tile may have any number of bits."""
    return hex(value) if isinstance(value, int) and value.bit_length() > LARGEST_BITS else value


class EventRecord(JsonRecord):
    """One event of an execution. `thread` and `place` are null for an initial write. `value`: a string, `0x…`, if it
    has more than 14,000 bits."""

    label: str
    thread: str | None
    place: PlaceRecord | None
    text: str
    tags: Annotated[tuple[str, ...], BeforeValidator(sorted)]
    location: str | None
    value: Annotated[int | str | None, BeforeValidator(_readable)]
    line: int | None


class ExecutionRecord(JsonRecord):
    """One consistent execution. `edges`: relation to pairs of labels. `memory`: an instance has its CTA in its name."""

    events: tuple[EventRecord, ...]
    edges: dict[str, tuple[LabelPair, ...]]
    registers: dict[str, int]
    memory: dict[str, str]
    waits: tuple[str, ...]

    @model_validator(mode="before")
    @classmethod
    def _labelled(cls, source: object) -> object:
        """A witness with its edges between labels, and its registers by their names."""
        if not isinstance(source, Witness):
            return source
        label = {event.uid: event.label for event in source.events}
        edges = {
            name: sorted((label[a], label[b]) for a, b in pairs if a in label and b in label)
            for name, pairs in sorted(source.edges.items())
        }
        registers = {f"{thread}:{name}": value for (thread, name), value in source.registers.items()}
        return {
            "events": source.events,
            "edges": edges,
            "registers": registers,
            "memory": source.memory,
            "waits": source.waits,
        }


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
