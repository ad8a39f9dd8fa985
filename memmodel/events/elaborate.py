"""Run every thread symbolically, for all executions at once (`walk`); repeat until a pass learns nothing new.

In: LoweredTest, loop bound, the terms whose values are asked for. Out: EventGraph. Settled here: which events can run
and when, their cells, values, dependencies and order. Left to `encode`: which writes the reads read from, coherence,
and everything else that an execution decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.graphs import reached
from memmodel.base.labels import Access, Action, Half, Side
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.relations import include
from memmodel.errors import TooLarge
from memmodel.events.graph import BarrierEvent, EventGraph, MemoryEvent, ObjectEvent
from memmodel.events.knowledge import Knowledge
from memmodel.events.loops import Loops
from memmodel.events.values import ZERO
from memmodel.events.walk import Walk
from memmodel.litmus.syntax import LocValue, RegValue, Term
from memmodel.memory.bytes import Cell, Footprint
from memmodel.program.automata import changes
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier, Jump, OnObject
from memmodel.program.uses import asked_constants, constants
from memmodel.ptx.vocabulary import Proxy, Sem

MAX_PASSES = 64
"""Passes after which addresses that still change are given up."""

MAX_PENDING = 256
"""If an mbarrier object may have more pending counts than this, mbarrier.pending_count is too much to ask."""


def elaborate(lowered: LoweredTest, bound: int, terms: Sequence[Term], *, grounded: bool = False) -> EventGraph:
    """Events of a test; `grounded`: no value supports itself. Raises TooLarge."""
    knowledge = Knowledge(lowered.space, _most_phases(lowered), may_wait=_may_wait(lowered), grounded=grounded)
    seeds = asked_constants(lowered) if grounded else asked_constants(lowered) | constants(lowered)
    loops = [Loops(program) for program in lowered.programs]
    for number in range(MAX_PASSES):
        walk = Walk(lowered, knowledge, bound, loops)
        graph = walk.graph()
        _ask_for_values(walk, graph, terms)
        walk.build.settle()
        missed = _learn(walk, graph, knowledge, seeds)
        # A value that needs more passes than there are writes supports itself: no execution has it.
        if missed and not (missed == "values" and number > 2 + len(graph.events)):
            continue
        if not walk.rounds_left_out:
            return graph
        knowledge.rounds = 2 * max(bound, knowledge.rounds)
    raise TooLarge("the addresses that the test computes do not settle")


def _most_phases(lowered: LoweredTest) -> int:
    """How many phases are told apart in the first pass."""
    return 2 + sum(isinstance(step.op, OnObject) for program in lowered.programs for step in program.steps)


def _may_wait(lowered: LoweredTest) -> bool:
    """True if a thread may wait for ever at a barrier, as far as the text shows; `_uneven` looks at the events.

    No thread does if none has a jump or a guard.
    """
    steps = [step for program in lowered.programs for step in program.steps]
    barriers = any(isinstance(step.op, AtBarrier) for step in steps)
    return barriers and any(isinstance(step.op, Jump) or step.guard is not None for step in steps)


# ---- values that are asked for ---------------------------------------------------------------------------------------


def _ask_for_values(walk: Walk, graph: EventGraph, terms: Sequence[Term]) -> None:
    """Ask for the values of the terms: registers at the ends of threads, and memory."""
    build = walk.build
    build.finish()
    for term in terms:
        if isinstance(term, RegValue):
            number = next(k for k, thread in enumerate(graph.lowered.test.threads) if thread.name == term.thread)
            graph.registers[number].get(term.register, ZERO).cases()
        elif isinstance(term, LocValue):
            extent, _ = graph.lowered.space.term(term)
            build.touch(Footprint((extent,)), TRUE, strong=False)
            for cell in build.cells(extent):
                build.knowledge.exact(cell)


# ---- what a pass has learnt ------------------------------------------------------------------------------------------


def _learn(walk: Walk, graph: EventGraph, knowledge: Knowledge, seeds: frozenset[int]) -> str:
    """Note what a pass shows. Out: what it missed, so that another pass is needed: "events", "values", or ""."""
    racing_before, states_before = len(knowledge.racing_loops), len(knowledge.states())
    for number, loop, (first, end) in walk.rounds:
        if loop.reads and any(_may_race(event, graph) for event in graph.events[first:end]):
            knowledge.racing_loops.add((number, loop))
    knowledge.most_phases = max(knowledge.most_phases, 2 + len(graph.of_kind(ObjectEvent)))
    knowledge.most_lives = max(knowledge.most_lives, _most_lives(graph))
    pending_before = len(knowledge.pending)
    knowledge.pending |= _pending_counts(graph)
    may_wait = knowledge.may_wait
    knowledge.may_wait = may_wait or _uneven(graph)
    _thin_air(graph, knowledge, seeds)
    if walk.build.outdated_cells() or len(knowledge.racing_loops) > racing_before or knowledge.may_wait is not may_wait:
        return "events"
    if len(knowledge.states()) > states_before and any(event.result for event in graph.of_kind(ObjectEvent)):
        return "events"
    if len(knowledge.pending) > pending_before:
        return "events"
    return "values" if walk.build.outdated_values() else ""


def _most_lives(graph: EventGraph) -> int:
    """How many lives an mbarrier object may have."""
    lives: dict[Cell, int] = {}
    for event in graph.of_kind(ObjectEvent):
        begun = int(event.object.instance.arrivals is not None)
        lives[event.object] = lives.get(event.object, begun) + (event.action is Action.INIT)
    return max(lives.values(), default=0)


def _pending_counts(graph: EventGraph) -> set[int]:
    """The pending counts that the objects which are asked for them may have: any of their arrivals may have come in
    this phase, or dropped out before. Raises TooLarge."""
    counts: set[int] = set()
    updates = graph.of_kind(ObjectEvent)
    for cell in {event.object for event in updates if event.pending is not None}:
        of_object = [event for event in updates if event.object == cell]
        totals = {0, cell.instance.arrivals or 0, *(one.count for one in of_object if one.action is Action.INIT)}
        for event in of_object:
            change, _ = changes(event.action, event.count, event.bytes)
            totals |= {total + change for total in totals}
            if len(totals) > MAX_PENDING:
                raise TooLarge(f"mbarrier.pending_count may return more than {MAX_PENDING} numbers")
        counts |= totals
    return {count for count in counts if count >= 0}


def _may_race(read: object, graph: EventGraph) -> bool:
    """True if a read may race: with a write of another thread or an asynchronous one, if they are not surely morally
    strong.
    """
    if not isinstance(read, MemoryEvent) or not isinstance(read.label, Access) or read.label.side is not Side.READ:
        return False
    return any(
        write.cell == read.cell
        and isinstance(write.label, Access)
        and write.label.side is Side.WRITE
        and (write.thread != read.thread or write.label.asynchronous)
        and not _surely_strong(read, write)
        for write in graph.of_kind(MemoryEvent)
    )


def _surely_strong(read: MemoryEvent, write: MemoryEvent) -> bool:
    """True if two accesses of one cell are morally strong in every execution."""
    first, second = read.label, write.label
    assert isinstance(first, Access) and isinstance(second, Access)
    if Sem.WEAK in (first.sem, second.sem) or first.scope is None or second.scope is None:
        return False
    if first.proxy is not Proxy.GENERIC or second.proxy is not Proxy.GENERIC or read.point.name != write.point.name:
        return False
    assert read.point.place is not None and write.point.place is not None
    same_size = read.point.scalar == write.point.scalar
    return same_size and include(first.scope, read.point.place, second.scope, write.point.place)


def _uneven(graph: EventGraph) -> bool:
    """True if some barrier may stay incomplete. A thread that waits for something else may end there: what it does
    behind does not always run.
    """
    halves = graph.of_kind(BarrierEvent)
    if any(event.runs != TRUE for event in halves) or any(fault != FALSE for fault in graph.faulted):
        return bool(halves)
    orders: dict[int, list[tuple[object, Half]]] = {}
    users: dict[object, set[int]] = {}
    for event in halves:
        assert event.thread is not None
        orders.setdefault(event.thread, []).append((event.barrier, event.half))
        users.setdefault(event.barrier, set()).add(event.thread)
    for event in halves:
        needed = _threads_of(graph, event) if event.count is None else event.count
        if (event.count is None or event.count >= 0) and needed != len(users[event.barrier]):
            return True
    for threads in users.values():
        # If all its threads execute the same syncs in the same order, none of them is left waiting.
        first = orders[min(threads)]
        if any(orders[thread] != first for thread in threads):
            return True
        pairs = list(zip(first[::2], first[1::2], strict=False))
        if len(first) % 2 or any(a[0] != b[0] or (a[1], b[1]) != (Half.ARRIVE, Half.WAIT) for a, b in pairs):
            return True
    return False


def _threads_of(graph: EventGraph, event: BarrierEvent) -> int:
    """How many threads of the test are in the domain of a barrier."""
    return sum(event.barrier.of_thread(thread.place, k) for k, thread in enumerate(graph.lowered.test.threads))


# ---- values out of thin air ------------------------------------------------------------------------------------------


def _thin_air(graph: EventGraph, knowledge: Knowledge, seeds: frozenset[int]) -> None:
    """Let a cell whose value may depend on itself have any constant of the test.

    Where the model forbids values out of thin air, only the constants of the condition are tried, so that its axiom is
    what refuses them, and nothing is computed from them.
    """
    depth = knowledge.most_writes if knowledge.grounded else 0
    after: dict[Cell, set[Cell]] = {}
    exact = set(knowledge.exact_cells)
    for event in graph.of_kind(MemoryEvent):
        if isinstance(event.label, Access) and event.label.side is Side.WRITE and event.cell in exact:
            for uid in event.data:
                source = graph.events[uid]
                if isinstance(source, MemoryEvent):
                    after.setdefault(source.cell, set()).add(event.cell)
    for cell in after:
        if cell in reached(after[cell], lambda other: after.get(other, ())):
            knowledge.add(cell, dict.fromkeys((seed & (1 << cell.size * 8) - 1 for seed in seeds), depth))
