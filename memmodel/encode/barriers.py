"""Named barriers: which arrive halves release which wait halves (docs/executions.md, "Barriers").

In: EventGraph. Out: the relation syncbar (events × events), and constraints: every wait that runs is released, without
a cycle of waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memmodel.encode.relations import Algebra, Rel
from memmodel.events.graph import Event, EventGraph
from memmodel.logic import FALSE, TRUE, Logic

Resource = tuple[str, tuple[object, ...], tuple[int, ...]]
Halves = dict[tuple[Resource, int], list[tuple[Event, int]]]


Groups = list[tuple[int, dict[int, int]]]
"""Over-subscribed generations: when one is (a formula), and which arrive halves (uid -> formula) meet in it."""


def barriers(graph: EventGraph, algebra: Algebra, groups: Groups) -> Rel:
    """syncbar of a test; empty when it has no barrier. Fills `groups`."""
    rel = algebra.empty()
    halves = [e for e in graph.events if e.barrier is not None]
    if not halves:
        return rel
    logic = graph.logic
    arrives = _generations(logic, [e for e in halves if e.barrier and e.barrier.half == "arrive"])
    waits = _generations(logic, [e for e in halves if e.barrier and e.barrier.half == "wait"])
    for generation in {**arrives, **waits}:
        waiting = waits.get(generation, [])
        inside = _members(logic, graph, generation[0], arrives.get(generation, []), waiting, groups)
        for wait, formula in waiting:
            for arrive, present in arrives.get(generation, []):
                cell = logic.conj((present, inside(arrive), formula, inside(wait)))
                if cell != FALSE:
                    rel[arrive.uid][wait.uid] = logic.either(rel[arrive.uid].get(wait.uid, FALSE), cell)
    _no_cycle_of_waiting(graph, algebra, rel, halves, _exits(graph, arrives, waits))
    _reductions(graph, arrives, waits)
    return rel


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A thread that stands at a barrier for good: `when`, and how many arrivals there are; arrivals[k]: exactly k."""

    uid: int
    when: int
    resource: Resource
    arrivals: list[int]
    needed: int


def incomplete_barriers(graph: EventGraph) -> list[Incomplete]:
    """Require of every thread stuck at a barrier that its generation stays incomplete; say how incomplete it is."""
    logic = graph.logic
    halves = [e for e in graph.events if e.barrier is not None]
    at = {stuck.barrier: stuck.when for stuck in graph.stuck if stuck.barrier is not None}
    if not at:
        return []
    arrives = _generations(logic, [e for e in halves if e.barrier and e.barrier.half == "arrive"])
    waiting = [e for e in halves if e.barrier and e.barrier.half == "wait"]
    found = []
    for generation, members in _generations(logic, waiting, at).items():
        arriving = arrives.get(generation, [])
        by_thread = _by_thread(logic, arriving)
        needed = _needed(graph, generation[0], arriving + members)
        counts = count(logic, list(by_thread.values()))
        complete = _complete(graph, generation[0], by_thread, needed)
        for event, formula in members:
            stuck = logic.both(formula, at.get(event.uid, FALSE))
            if stuck != FALSE:
                logic.require(-stuck, -complete)
                found.append(Incomplete(event.uid, stuck, generation[0], counts, needed))
    return found


def _resource(event: Event, key: tuple[int, ...]) -> Resource:
    assert event.barrier is not None and event.place is not None
    domain = event.barrier.domain
    if domain == "cluster":
        return (domain, event.place.cluster_id, key)
    if domain == "warp":
        warp = ("thread", event.thread) if event.place.warp is None else ("warp", event.place.warp)
        return (domain, (event.place.cta_id, warp), key)
    return (domain, event.place.cta_id, key)


def _generations(logic: Logic, halves: list[Event], stuck: dict[int, int] | None = None) -> Halves:
    """(resource, k) -> the halves that are the k-th use of the resource by their thread, each with its formula.

    `stuck`: wait halves at which a thread may stand for good count as used there.
    """
    uses: dict[tuple[int | None, Resource], list[tuple[Event, int]]] = {}
    for event in halves:
        for key, formula in event.key.items():
            runs = logic.either(event.runs, stuck.get(event.uid, FALSE)) if stuck else event.runs
            runs = logic.both(runs, formula)
            if runs != FALSE:
                uses.setdefault((event.thread, _resource(event, key)), []).append((event, runs))
    found: Halves = {}
    for (_, resource), events in uses.items():
        earlier = [TRUE]  # earlier[k]: exactly k of the halves before this one ran
        for event, runs in events:
            for k, formula in enumerate(earlier):
                if (cell := logic.both(runs, formula)) != FALSE:
                    found.setdefault((resource, k), []).append((event, cell))
            earlier = [
                logic.either(
                    logic.both(-runs, earlier[k]) if k < len(earlier) else FALSE,
                    logic.both(runs, earlier[k - 1]) if k else FALSE,
                )
                for k in range(len(earlier) + 1)
            ]
    return found


def _members(
    logic: Logic,
    graph: EventGraph,
    resource: Resource,
    arriving: list[tuple[Event, int]],
    waiting: list[tuple[Event, int]],
    groups: Groups,
) -> Callable[[Event], int]:
    """Require that a wait of this generation is released; say under which formula a half belongs to those that meet."""
    by_thread = _by_thread(logic, arriving)
    needed = _needed(graph, resource, arriving + waiting)
    if needed < 0:  # however many arrive, they meet
        for _, formula in waiting:
            logic.require(-formula, *by_thread.values())
        return lambda event: TRUE
    threads = sorted(by_thread)
    counts = count(logic, [by_thread[t] for t in threads])
    enough = _complete(graph, resource, by_thread, needed)
    for _, formula in waiting:
        logic.require(-formula, enough)
    if len(threads) <= needed:
        return lambda event: TRUE
    # Over-subscribed in some executions: choose who meets when more than `needed` arrive.
    more = logic.disj(counts[needed + 1 :])
    chosen = {t: logic.var(f"meets(t{t})") for t in threads}
    for t in threads:
        logic.require(-chosen[t], by_thread[t])
        logic.require(more, -by_thread[t], chosen[t])
    logic.require(-more, count(logic, [chosen[t] for t in threads])[needed])
    groups.append((more, {e.uid: logic.both(f, chosen[e.thread]) for e, f in arriving if e.thread is not None}))
    return lambda event: chosen.get(event.thread if event.thread is not None else -1, FALSE)


def _by_thread(logic: Logic, arriving: list[tuple[Event, int]]) -> dict[int, int]:
    """Thread -> formula: it arrives."""
    found: dict[int, int] = {}
    for event, formula in arriving:
        assert event.thread is not None
        found[event.thread] = logic.either(found.get(event.thread, FALSE), formula)
    return found


def _complete(graph: EventGraph, resource: Resource, by_thread: dict[int, int], needed: int) -> int:
    """A generation is complete: enough threads arrive, or all others have exited ("exit": nobody waits for those)."""
    logic = graph.logic
    arrived = logic.disj(count(logic, list(by_thread.values()))[needed:])
    threads = [i for i in range(len(graph.test.threads)) if i in by_thread or _takes_part(graph, i, resource)]
    if len(threads) < needed:
        return arrived
    return logic.either(arrived, logic.conj(logic.either(by_thread.get(i, FALSE), graph.exited[i]) for i in threads))


def _needed(graph: EventGraph, resource: Resource, halves: list[tuple[Event, int]]) -> int:
    """Arrivals that make a generation; negative: however many arrive."""
    given = [event.count for event, _ in halves if event.count >= 0]
    if not given:
        return -1
    everyone = sum(_takes_part(graph, i, resource) for i in range(len(graph.test.threads)))
    return max(number or everyone for number in given)


def _takes_part(graph: EventGraph, index: int, resource: Resource) -> bool:
    """Is a thread of the test in the domain instance of a resource?"""
    place = graph.test.threads[index].place
    domain, instance, _ = resource
    if domain == "cluster":
        return place.cluster_id == instance
    if domain == "warp":
        warp = ("thread", index) if place.warp is None else ("warp", place.warp)
        return (place.cta_id, warp) == instance
    return place.cta_id == instance


def count(logic: Logic, items: list[int]) -> list[int]:
    """counts[k]: exactly k of the items hold (k = 0 … len(items))."""
    counts = [TRUE]
    for item in items:
        counts = [
            logic.either(
                logic.both(-item, counts[k]) if k < len(counts) else FALSE,
                logic.both(item, counts[k - 1]) if k else FALSE,
            )
            for k in range(len(counts) + 1)
        ]
    return counts


def _exits(graph: EventGraph, arrives: Halves, waits: Halves) -> list[tuple[int, int, int]]:
    """(thread, wait half, formula): the wait is released by the exit of that thread, which does not arrive."""
    logic = graph.logic
    found = []
    for (resource, number), waiting in waits.items():
        halves = arrives.get((resource, number), [])
        arriving = _by_thread(logic, halves)
        needed = _needed(graph, resource, halves + waiting)
        if needed < 0 or all(exited == FALSE for exited in graph.exited):
            continue
        few = -logic.disj(count(logic, list(arriving.values()))[needed:])
        for thread, exited in enumerate(graph.exited):
            gone = logic.conj((exited, -arriving.get(thread, FALSE), few))
            if gone != FALSE and _takes_part(graph, thread, resource):
                found += [(thread, wait.uid, logic.both(gone, formula)) for wait, formula in waiting]
    return found


def _no_cycle_of_waiting(
    graph: EventGraph, algebra: Algebra, rel: Rel, halves: list[Event], exits: list[tuple[int, int, int]]
) -> None:
    """A wait cannot end before the arrivals that release it, nor before the exit of a thread that does not arrive."""
    logic = graph.logic
    step = algebra.empty()
    for event in halves:
        for other in halves:
            if event.thread == other.thread and event.uid < other.uid:
                step[event.uid][other.uid] = logic.both(event.runs, other.runs)
        for uid, formula in rel[event.uid].items():
            if graph.events[uid].thread != event.thread:
                step[event.uid][uid] = formula
        for thread, uid, formula in exits:
            if event.thread == thread and graph.events[uid].thread != thread:
                cell = logic.both(event.runs, formula)
                step[event.uid][uid] = logic.either(step[event.uid].get(uid, FALSE), cell)
    logic.require(-algebra.cyclic(step))


def _reductions(graph: EventGraph, arrives: Halves, waits: Halves) -> None:
    """barrier.cta.red: tie each result to the values of the threads that arrived in its generation."""
    logic = graph.logic
    contributes = {reduction.wait: reduction.nonzero for reduction in graph.reductions}
    for reduction in graph.reductions:
        for generation, waiting in waits.items():
            formula = next((f for e, f in waiting if e.uid == reduction.wait), FALSE)
            if formula == FALSE:
                continue
            inputs = []
            for arrive, present in arrives.get(generation, []):
                value = contributes.get(arrive.uid + 1, FALSE)  # the wait half follows its arrive half
                inputs.append((present, value))
            if reduction.op == "popc":
                results = count(logic, [logic.both(present, value) for present, value in inputs])
            elif reduction.op == "and":
                every = logic.conj(logic.either(-present, value) for present, value in inputs)
                results = [-every, every]
            else:
                some = logic.disj(logic.both(present, value) for present, value in inputs)
                results = [-some, some]
            for number, held in reduction.result.items():
                wanted = results[number] if number < len(results) else FALSE
                logic.require(-reduction.runs, -formula, -held, wanted)
