"""Strong accesses whose results differ between schedules, or do not.

In: LaunchTrace, instructions, a graph with the causality of a model. Out: writes of which the run leaves open which one
is the last (not those that leave the same value in every order: atomic operations of one kind that commute, stores of
one number); loads in polling loops that can end in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memmodel.base.labels import Access, Side
from memmodel.concrete.execution import Rows
from memmodel.kernel.judge.events import LaunchTrace, TraceEvent
from memmodel.kernel.judge.graph import Graph
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.syntax import IntegerLiteral, PtxInstruction

COMMUTING = ("add", "min", "max", "and", "or", "xor")
"""Operations that leave the same value in any order, if all are of one kind."""

Body = tuple[PtxInstruction, ...]
Place = tuple[Block, int]
Known = tuple[tuple[int, int], ...]
Initial = Callable[[Block, int, int], int | None]


def contested(run: LaunchTrace, body: Body) -> list[dict[Hashable, list[TraceEvent]]]:
    """Places to which several threads, or asynchronous instructions of one, write what is not the same in every order:
    the writes of each by their kind.
    """
    found = []
    for events in strong_writes(run).values():
        by_kind: dict[Hashable, list[TraceEvent]] = {}
        for one in events:
            by_kind.setdefault(_kind(one, body[one.at]), []).append(one)
        several = len({one.thread for one in events}) > 1 or (len(events) > 1 and any(one.issue for one in events))
        if several and (len(by_kind) > 1 or None in by_kind):
            found.append(by_kind)
    return found


def last_writes(
    graph: Graph, run: LaunchTrace, body: Body, causality: Rows | None
) -> dict[tuple[str, int], PtxInstruction]:
    """The writes whose order matters and is open."""
    found: dict[tuple[str, int], PtxInstruction] = {}
    for by_kind in contested(run, body):
        for number in _open(graph, by_kind, causality):
            if ("atomic", number) not in run.choices:
                found["order", number] = body[number]
    return found


def settled_loads(run: LaunchTrace, initial: Initial, again: Callable[[int, int, Known], bool]) -> frozenset[int]:
    """Strong loads that poll for the only write there is: what ends the loop is the same in every execution.

    `initial`: the value of some bytes before the launch. `again`: does a load that returned a value lead back to
    itself, if this is known of other registers? Then each execution of the load that leads on reads from that write.
    """
    numbers = {number for what, number in run.choices if what == "load"}
    places: dict[int, set[tuple[tuple[Block, int, int], Known]]] = {}
    for event in (event for thread in run.threads for event in thread.events if event.at in numbers):
        if event.block is not None:
            places.setdefault(event.at, set()).add(((event.block, event.first, event.size), event.known))
    blocks = {place[0] for found in places.values() for place, _ in found}
    writes = [
        (event.block, event.first, event.size) for events in strong_writes(run).values() for event in events
    ] + [
        (one.block, one.first, one.size)
        for one in run.weak(blocks)
        if isinstance(one.label, Access) and one.label.side is Side.WRITE
    ]  # fmt: skip
    found = set()
    for number, mine in places.items():
        for place, known in mine:
            block, first, size = place
            there = [one for one in writes if one[0] is block and one[1] < first + size and first < one[1] + one[2]]
            value = initial(block, first, size) if there == [place] else None
            if value is None or not again(number, value, known):
                break
        else:
            found.add(number)
    return frozenset(found)


def strong_writes(run: LaunchTrace) -> dict[Place, list[TraceEvent]]:
    """The strong writes of the run by their first byte."""
    found: dict[Place, list[TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.strong():
            assert event.block is not None
            if isinstance(event.label, Access) and event.label.side is Side.WRITE:
                found.setdefault((event.block, event.first), []).append(event)
    return found


def stores_matter(run: LaunchTrace, numbers: set[int]) -> bool:
    """Is one of these instructions a store, or does a strong store go to a place where one of them works?"""
    places = {place for place, events in run.atomics.items() if any(one.at in numbers for one in events)}
    for place, events in strong_writes(run).items():
        if any(_stores(one) and (one.at in numbers or place in places) for one in events):
            return True
    return False


def _stores(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and not event.label.rmw


def _kind(event: TraceEvent, one: PtxInstruction) -> Hashable:
    """Writes of one kind leave the same value in any order; None: nothing is known of it."""
    if not _stores(event):
        name = next((word for word in one.words[1:] if word in COMMUTING), None)
        return None if name is None else (name, one.words[-1])
    what = one.operands[1] if len(one.operands) > 1 else None
    return ("store", what.value, event.size) if isinstance(what, IntegerLiteral) else None


def _open(graph: Graph, by_kind: dict[Hashable, list[TraceEvent]], before: Rows | None) -> set[int]:
    """The instructions of two writes that differ, of two threads, that nothing orders."""
    found: set[int] = set()
    kinds = list(by_kind.items())
    for place, (kind, mine) in enumerate(kinds):
        others = [one for _, events in kinds[place + 1 :] for one in events]
        for one in mine:
            for other in [*others, *(mine if kind is None else ())]:
                alone = one.thread == other.thread and one.issue is other.issue is None
                if one is other or alone or {one.at, other.at} <= found:
                    continue
                first, second = graph.number.get(id(one)), graph.number.get(id(other))
                if first is None or second is None:  # other threads stand for these
                    continue
                if before is None or not (before[first] >> second & 1 or before[second] >> first & 1):
                    found |= {one.at, other.at}
    return found
