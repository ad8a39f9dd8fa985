"""Read an execution out of a solver's valuation, in the terms that plain evaluation replays.

In: EventGraph, Choices, Door (after SAT). Out: Choice, with the number of every event that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.encode.choices import Choices
from memmodel.encode.relations import Rel
from memmodel.enumeration import Choice
from memmodel.enumeration.choice import EventId, ThreadEventId
from memmodel.errors import InternalError
from memmodel.events.graph import EventGraph
from memmodel.isa.memory import Location
from memmodel.solve.door import Door


@dataclass(frozen=True, slots=True)
class Reading:
    """`choice`: the execution. `names`: uid of an event that runs -> how the choice names it."""

    choice: Choice
    names: dict[int, EventId]


def read_execution(graph: EventGraph, choices: Choices, door: Door) -> Reading:
    """The execution that the solver found."""
    names: dict[int, EventId] = {}
    counts = [0] * len(graph.test.threads)
    values: list[list[tuple[int, int, int]]] = [[] for _ in graph.test.threads]
    for event in graph.events:
        if event.thread is None:
            names[event.uid] = ("init", next(iter(event.at(graph.logic))))
        elif door.holds(event.runs):
            names[event.uid] = (event.thread, counts[event.thread])
            counts[event.thread] += 1
            if event.is_read and event.value is not None:
                values[event.thread].append((event.uid, 0, event.value.number(door.holds)))
    for reduction in graph.reductions:
        if door.holds(reduction.runs):
            thread = graph.events[reduction.wait].thread
            if thread is None:
                raise InternalError("a reduction outside every thread")
            values[thread].append((reduction.wait, 1, _pick(reduction.result, door)))
    rf = tuple((a, _in_thread(b)) for a, b in _edges(choices.rf, names, door))
    co = tuple(pair for pair in _edges(choices.co, names, door) if pair[0][0] != "init")
    fences = tuple((_in_thread(a), _in_thread(b)) for a, b in _edges(choices.sync_fence, names, door))
    groups = tuple(
        frozenset(_in_thread(names[uid]) for uid, formula in group.items() if uid in names and door.holds(formula))
        for more, group in choices.groups
        if door.holds(more)
    )
    results: list[list[int]] = [[] for _ in graph.test.threads]
    seen: list[tuple[ThreadEventId, int]] = []
    for event in graph.events:
        if event.mbarrier is not None and event.thread is not None and event.uid in names:
            told = (event.mbarrier.result, event.mbarrier.pending)
            results[event.thread] += [_pick(cases, door) for cases in told if cases is not None]
            if event.uid in choices.mbarriers.tests:
                seen.append((_in_thread(names[event.uid]), _pick(choices.mbarriers.tests[event.uid], door)))
    mbar = tuple(
        (location, tuple(_in_thread(names[uid]) for uid in uids))
        for location, uids in choices.mbarriers.order(door.holds).items()
    )
    finals: list[tuple[Location, EventId]] = []
    for location, writes in choices.chosen_finals():
        finals.append((location, names[_pick(writes, door)]))
    reads = tuple(tuple(value for _, _, value in sorted(found)) for found in values)
    choice = Choice(
        reads, rf, co, fences, groups, tuple(finals), tuple(tuple(found) for found in results), mbar, tuple(seen)
    )
    return Reading(choice, names)


def _pick(cases: dict[int, int], door: Door) -> int:
    for key, formula in cases.items():
        if door.holds(formula):
            return key
    raise InternalError("a value without a case")


def _edges(rel: Rel, names: dict[int, EventId], door: Door) -> list[tuple[EventId, EventId]]:
    return [
        (names[a], names[b])
        for a, row in enumerate(rel)
        if a in names
        for b, formula in row.items()
        if b in names and door.holds(formula)
    ]


def _in_thread(name: EventId) -> ThreadEventId:
    thread, number = name
    if isinstance(thread, int) and isinstance(number, int):
        return (thread, number)
    raise InternalError("an initial write stands where a thread's event is needed")
