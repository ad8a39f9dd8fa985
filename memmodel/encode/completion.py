"""Relations that threads decide by what they run: dependencies, completions, exits.

In: EventGraph. Out: addr, data, ctrl, compl, complwg, exits, ctaends (events × events).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

from memmodel.base.labels import Access, Family, GroupWait, Issue, Mark, Marker, Mbarrier, Signal
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.encode.counting import count
from memmodel.encode.relations import Rel, no_pairs, put
from memmodel.events.graph import Event, EventGraph, GroupWaitEvent, MemoryEvent, ObjectEvent
from memmodel.events.values import Deps


def dependencies(graph: EventGraph, kind: Callable[[Event], Deps]) -> Rel:
    """From each read to the events that depend on it."""
    both = graph.logic.both
    rel = no_pairs(len(graph.events))
    for event in graph.events:
        for uid, formula in kind(event).items():
            put(graph.logic, rel[uid], event.uid, both(formula, both(event.runs, graph.events[uid].runs)))
    return rel


def completion(graph: EventGraph) -> Rel:
    """compl: an asynchronous event -> the signal or wait that signals its completion."""
    rel = no_pairs(len(graph.events))
    for part in _parts(graph):
        for event in graph.events:
            covered = _covers(graph, event, part)
            if covered != FALSE:
                put(graph.logic, rel[part.uid], event.uid, graph.logic.conj((covered, part.runs, event.runs)))
    return rel


def _parts(graph: EventGraph) -> list[MemoryEvent]:
    return [event for event in graph.of_kind(MemoryEvent) if event.point.issue is not None]


def _covers(graph: EventGraph, event: Event, part: MemoryEvent) -> int:
    """The formula under which an event signals the completion of a part."""
    if event.thread != part.thread:
        return FALSE
    if isinstance(event, ObjectEvent) and isinstance(event.label, Signal):
        tracked = event.tracks is not None and event.tracks in part.tracks and part.moment < event.moment
        return TRUE if part.uid in event.of or tracked else FALSE
    if isinstance(event, GroupWaitEvent) and event.track in part.tracks and part.moment < event.moment:
        return _waited_for(graph, part, event)
    return FALSE


def _waited_for(graph: EventGraph, part: MemoryEvent, wait: GroupWaitEvent) -> int:
    """A part is among those that a wait waits for. With `pending` groups left open, enough commits lie in between."""
    assert isinstance(part.label, Access)
    if wait.sources_only and part.label.role is None:
        return FALSE
    if wait.pending is None:
        return TRUE
    between = [
        mark.runs
        for mark in graph.commits
        if mark.thread == part.thread and mark.track is wait.track and part.moment < mark.order < wait.moment
    ]
    return graph.logic.disj(count(graph.logic, between)[wait.pending + 1 :])


def warpgroup_completion(graph: EventGraph, compl: Rel) -> Rel:
    """complwg: reads of wgmma by other warps of a warpgroup -> a wait that covers the same instruction of its warp.

    The k-th wgmma.mma_async of each warp is the same instruction of the warpgroup.
    """
    rel = no_pairs(len(graph.events))
    logic = graph.logic
    issues = [event for event in graph.events if isinstance(event.label, Issue) and event.label.family is Family.WGMMA]
    numbers = {issue.uid: _number(logic, issue, issues) for issue in issues}
    parts: dict[int, list[int]] = {issue.uid: [] for issue in issues}
    for event in _parts(graph):
        if event.point.issue in parts:
            parts[event.point.issue].append(event.uid)
    for issue, other in permutations(issues, 2):
        if issue.thread == other.thread or _warpgroup(issue) is None or _warpgroup(issue) != _warpgroup(other):
            continue
        same = logic.disj(map(logic.both, numbers[issue.uid], numbers[other.uid]))
        waits = [
            (wait, covered)
            for part in parts[issue.uid]
            for wait, covered in compl[part].items()
            if isinstance(graph.events[wait].label, GroupWait)
        ]
        for (wait, covered), peer in product(waits, parts[other.uid]):
            put(logic, rel[peer], wait, logic.conj((same, covered, graph.events[peer].runs)))
    return rel


def _number(logic: Logic, issue: Event, issues: list[Event]) -> list[int]:
    """numbers[k]: exactly k instructions of the same thread come before this one, which runs."""
    before = [e.runs for e in issues if e.thread == issue.thread and e.moment < issue.moment]
    return [logic.both(issue.runs, formula) for formula in count(logic, before)]


def _warpgroup(event: Event) -> object:
    place = event.point.place
    return None if place is None or place.warp is None else (place.cta_id, place.warp // 4)


def exits(graph: EventGraph) -> Rel:
    """exits: what is done in the shared memory of another CTA, all of whose threads exit -> these exits."""

    def other_cta(event: Event) -> object:
        if event.point.cell is None or not isinstance(event.label, Access | Mbarrier | Signal):
            return None
        owner = event.point.cell.instance.owner
        return None if owner == _cta(event) else owner

    return _to_marks(graph, Marker.EXIT, graph.exited, other_cta)


def cta_ends(graph: EventGraph) -> Rel:
    """ctaends: events -> the ends of all threads of their CTA, where all of them end."""
    return _to_marks(graph, Marker.END, graph.ended, _cta)


def _to_marks(graph: EventGraph, marker: Marker, over: list[int], cta_of: Callable[[Event], object]) -> Rel:
    """From events to the marks of all threads of a CTA, where all of these have come to an end: `over`, by thread."""
    logic = graph.logic
    rel = no_pairs(len(graph.events))
    marks = [event for event in graph.events if isinstance(event.label, Mark) and event.label.what is marker]
    for event in graph.events if marks else ():
        cta = cta_of(event)
        if event.point.place is None or cta is None:
            continue
        threads = [k for k, thread in enumerate(graph.lowered.test.threads) if thread.place.cta_id == cta]
        all_over = logic.conj(over[thread] for thread in threads)
        for mark in marks:
            if _cta(mark) == cta:
                put(logic, rel[event.uid], mark.uid, logic.conj((all_over, event.runs, mark.runs)))
    return rel


def _cta(event: Event) -> object:
    return None if event.point.place is None else event.point.place.cta_id
