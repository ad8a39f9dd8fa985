"""The mbarrier objects of a superposed program: few operations, and as many arrivals as the program makes.

In: the events of a superposed program. Out: the same events, in which one operation stands for all alternatives of a
slot that do the same to their objects: what an object goes through depends on what is done to it, and not on which
instruction did it. An object has few operations then, and its formulas, which are cubic in their number, are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.base.labels import Action
from memmodel.base.logic import FALSE, Logic
from memmodel.encode.counting import ByNumber, count
from memmodel.encode.object_order import must_precede
from memmodel.events.graph import Event, EventGraph, ObjectEvent, PlainEvent
from memmodel.memory.bytes import Cell

Owner = tuple[int, int]
"""A slot and the number of an option of it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """All of an operation that its object looks at."""

    object: Cell
    action: Action
    count: int
    bytes: int
    drop: bool
    no_complete: bool
    thread: int | None
    in_order: bool


def with_joint_operations(graph: EventGraph, owners: Sequence[Owner | None]) -> EventGraph:
    """The events, of which the operations on objects are joined: the first of each class runs if one of them does, and
    the others are operations no more. Numbers of events stay. `owners`: of each event; None: an initial write. An
    object takes as many arrivals as there are, so that a program sees its first phase."""
    operations: dict[Owner, list[ObjectEvent]] = {}
    for event, owner in zip(graph.events, owners, strict=True):
        if isinstance(event, ObjectEvent) and owner is not None:
            operations.setdefault(owner, []).append(event)
    paired = _always_paired(operations)
    classes: dict[int, dict[tuple[Operation, ...], list[list[ObjectEvent]]]] = {}
    for (slot, _), events in operations.items():
        if all(_says_it_all(event) for event in events) and len({event.runs for event in events}) == 1:
            key = tuple(_operation(event, paired) for event in events)
            classes.setdefault(slot, {}).setdefault(key, []).append(events)
    joint: list[Event] = list(graph.events)
    for slot, of_slot in classes.items():
        runs = _runs(graph.logic, slot, [[member[0].runs for member in members] for members in of_slot.values()])
        for (key, members), formula in zip(of_slot.items(), runs, strict=True):
            for first, operation in zip(members[0], key, strict=True):
                joint[first.uid] = replace(first, runs=formula, bytes=operation.bytes)
            for event in (event for member in members[1:] for event in member):
                joint[event.uid] = PlainEvent(point=event.point, runs=event.runs, visit=event.visit, part=event.part)
    return replace(graph, events=joint, sizes=dict(_sizes(graph.logic, operations)))


def _sizes(logic: Logic, operations: dict[Owner, list[ObjectEvent]]) -> Iterator[tuple[Cell, ByNumber]]:
    """For each declared object, the numbers of arrivals that it may get; one, if it gets none."""
    arrivals: dict[Cell, dict[int, list[int]]] = {}
    for (slot, _), events in operations.items():
        for event in events:
            of = arrivals.setdefault(event.object, {})
            if event.action is Action.ARRIVE:
                of.setdefault(slot, []).append(event.runs)
    for cell, by_slot in arrivals.items():
        if cell.instance.arrivals is not None:
            none, *some = count(logic, [logic.disj(runs) for runs in by_slot.values()])
            sizes = dict(enumerate(some, 1))
            sizes[1] = logic.either(none, sizes.get(1, FALSE))
            yield cell, sizes


def _says_it_all(event: ObjectEvent) -> bool:
    """The object gives no answer, and nothing of the operation depends on the execution."""
    answers = event.result, event.pending, event.report, event.parity, event.state
    return all(answer is None for answer in answers) and event.failed == FALSE and event.action is not Action.TEST


def _operation(event: ObjectEvent, paired: set[Cell]) -> Operation:
    amount = min(event.bytes, 1) if event.object in paired else event.bytes
    in_order = event.point.order is not None
    return Operation(
        event.object, event.action, event.count, amount, event.drop, event.no_complete, event.thread, in_order
    )


def _always_paired(operations: dict[Owner, list[ObjectEvent]]) -> set[Cell]:
    """The objects, valid throughout, whose bytes each instruction expects before it signals as many of them.

    Their tx-count is zero just where no such pair is open, so that it may count pairs instead of bytes.
    """
    every = {event.object for events in operations.values() for event in events}
    return {
        cell
        for cell in every
        if cell.instance.arrivals is not None
        and all(_is_paired([event for event in events if event.object == cell]) for events in operations.values())
    }


def _is_paired(events: list[ObjectEvent]) -> bool:
    """No bytes, or as many first expected and then signalled; and the object is neither begun nor ended."""
    moved = [event for event in events if event.bytes]
    if any(event.action in (Action.INIT, Action.INVAL) for event in events):
        return False
    if not moved:
        return True
    if len(moved) != 2 or moved[0].bytes != moved[1].bytes:
        return False
    first, last = moved
    return (
        first.action in (Action.ARRIVE, Action.EXPECT_TX)
        and last.action is Action.COMPLETE_TX
        and must_precede(first, last)
        and first.runs == last.runs
    )


def _runs(logic: Logic, slot: int, members: list[list[int]]) -> Iterator[int]:
    """For each class of alternatives, the variable that says that one of them runs; they exclude one another."""
    variables = [logic.var(f"joint({slot},{number})") for number in range(len(members))]
    logic.exactly_one(variables, logic.disj(runs for of in members for runs in of))
    for variable, of in zip(variables, members, strict=True):
        logic.require(-variable, *of)
        for runs in of:
            logic.require(-runs, variable)
        yield variable
