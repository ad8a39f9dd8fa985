"""Places that several threads write, and the writes of which the schedule decides which is the last.

In: LaunchTrace, instructions, the graph with the causality of a model. Out: the writes whose order is open. Left out
are those that leave the same value in every order: atomic operations of one kind that commute, stores of one number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from memmodel.base.labels import Side, is_atomic, side_of
from memmodel.base.rows import Rows
from memmodel.isa.lowered import lowered
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKey, ChoiceKind, LaunchTrace
from memmodel.program.expressions import Const
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.vocabulary import DataType, Space

COMMUTING = ("add", "min", "max", "and", "or", "xor")
"""Operations that leave the same value in every order, if all are of one kind."""

STORED = "stored"
"""The kind of writes that do not depend on what memory held before."""

Combination = tuple[str, DataType]
"""An operation, and its type."""

Body = tuple[PtxInstruction, ...]
Place = tuple[Block, int]
Before = Callable[[TraceEvent | WeakAccess, TraceEvent | WeakAccess], bool]


class CausalOrder(NamedTuple):
    """`before`: the first access precedes the second in causality. `ahead`: it precedes an earlier event of the
    second's thread, and so it precedes the second, whatever the second reads.
    """

    before: Before
    ahead: Before


def contested(run: LaunchTrace, body: Body) -> list[dict[Hashable, list[TraceEvent]]]:
    """Places whose last value depends on the order of writes by several threads, or by asynchronous instructions: the
    writes of each place by their kind.
    """
    places = []
    for events in strong_writes(run).values():
        by_kind: dict[Hashable, list[TraceEvent]] = {}
        for event in events:
            by_kind.setdefault(write_kind(event, body[event.at]), []).append(event)
        several = len({event.thread for event in events}) > 1 or (
            len(events) > 1 and any(event.issue for event in events)
        )
        if several and (len(by_kind) > 1 or None in by_kind):
            places.append(by_kind)
    return places


def last_writes(graph: Graph, run: LaunchTrace, body: Body, causality: Rows | None) -> dict[ChoiceKey, PtxInstruction]:
    """The writes whose order matters and is open."""
    writes: dict[ChoiceKey, PtxInstruction] = {}
    for by_kind in contested(run, body):
        for number in _open(graph, by_kind, causality):
            if (ChoiceKind.ATOMIC, number) not in run.choices:
                writes[ChoiceKind.LAST_WRITE, number] = body[number]
    return writes


def order_free_atomics(run: LaunchTrace, entry: PtxFunction, *, whole: bool) -> frozenset[int]:
    """The atomic operations that leave the same value together, in whatever order they are performed.

    They are of one kind that commutes, on integers, and no other strong access touches their bytes. `whole`: all CTAs
    were run; else others may operate on global memory.
    """
    kinds: dict[tuple[Block, int, int], set[Hashable]] = {}
    numbers: dict[int, set[tuple[Block, int, int]]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        assert event.block is not None
        place = event.block, event.first, event.size
        kinds.setdefault(place, set()).add(_commuting_kind(event, (entry.body or ())[event.at]))
        numbers.setdefault(event.at, set()).add(place)
    by_block: dict[Block, list[tuple[int, int]]] = {}
    for block, first, size in kinds:
        by_block.setdefault(block, []).append((first, size))
    for block, places in by_block.items():
        reaching: list[tuple[int, int]] = []
        for other, length in sorted(places):
            reaching = [(first, size) for first, size in reaching if other < first + size]
            for first, size in reaching:
                kinds[block, first, size].add(None)
                kinds[block, other, length].add(None)
            reaching.append((other, length))
    good = {
        place
        for place, of_place in kinds.items()
        if len(of_place) == 1 and None not in of_place and (whole or place[0].instance.space is Space.SHARED)
    }
    return frozenset(number for number, places in numbers.items() if places <= good)


def _commuting_kind(event: TraceEvent, instruction: PtxInstruction) -> Hashable:
    """The kind of an atomic operation on integers that commutes with those of its kind; None for all else."""
    kind = commuting(instruction) if event.issue is None and lowered(instruction).atomic else None
    return kind if kind is not None and is_integer(kind) else None


def commuting(instruction: PtxInstruction) -> Combination | None:
    """How an instruction combines what memory holds with an operand, if operations of the kind commute."""
    kind = lowered(instruction).combination
    return kind if kind is not None and kind[0] in COMMUTING else None


def is_integer(kind: Combination) -> bool:
    """True if an operation is one on single integers."""
    type = kind[1]
    return type.lanes == 1 and not type.floating


def strong_writes(run: LaunchTrace) -> dict[Place, list[TraceEvent]]:
    """The strong writes of the run by their first byte, and failed cas, which may write in other executions."""
    writes: dict[Place, list[TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.strong():
            assert event.block is not None
            fails = is_atomic(event.label) and event.issue is None and event.partner is None
            if fails or side_of(event.label) is Side.WRITE:
                writes.setdefault((event.block, event.first), []).append(event)
    return writes


def stores_matter(run: LaunchTrace, numbers: set[int]) -> bool:
    """True if one of these instructions is a store, or a strong store goes to a place of their atomic operations."""
    places = {place for place, events in run.atomics.items() if any(event.at in numbers for event in events)}
    for place, events in strong_writes(run).items():
        if any(not is_atomic(event.label) and (event.at in numbers or place in places) for event in events):
            return True
    return False


def write_kind(event: TraceEvent, instruction: PtxInstruction) -> Hashable:
    """The kind of a write: writes of one kind leave the same value in every order. None: not known."""
    if is_atomic(event.label):
        return commuting(instruction)
    values = lowered(instruction).stored
    return (STORED, values[0].value, event.size) if len(values) == 1 and isinstance(values[0], Const) else None


def _open(graph: Graph, by_kind: dict[Hashable, list[TraceEvent]], before: Rows | None) -> set[int]:
    """The instructions of two writes of different kinds and threads that nothing orders."""
    open_: set[int] = set()
    kinds = list(by_kind.items())
    for place, (kind, mine) in enumerate(kinds):
        others = [event for _, events in kinds[place + 1 :] for event in events]
        for event in mine:
            for rival in [*others, *(mine if kind is None else ())]:
                alone = event.thread == rival.thread and event.issue is rival.issue is None
                if event is rival or alone or {event.at, rival.at} <= open_:
                    continue
                first, second = graph.number.get(id(event)), graph.number.get(id(rival))
                if first is None or second is None:  # other threads stand for these
                    continue
                if before is None or not (before[first] >> second & 1 or before[second] >> first & 1):
                    open_ |= {event.at, rival.at}
    return open_
