"""Relations that threads decide by what they run: dependencies, completions, exits.

In: EventGraph. Out: addr, data, ctrl, compl, complwg, exits, ctaends (events × events).
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Access, Family, GroupWait, Issue, Mark, Marker, Mbarrier, Signal
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.encode.counting import count
from memmodel.encode.relations import Rel, no_pairs
from memmodel.events.graph import Event, EventGraph, GroupWaitEvent, MemoryEvent, ObjectEvent
from memmodel.events.values import Deps


def dependencies(graph: EventGraph, part: Callable[[Event], Deps]) -> Rel:
    """From each read to the events that depend on it."""
    both = graph.logic.both
    rows = no_pairs(len(graph.events))
    for event in graph.events:
        for uid, formula in part(event).items():
            cell = both(formula, both(event.runs, graph.events[uid].runs))
            if cell != FALSE:
                rows[uid][event.uid] = cell
    return rows


def completion(graph: EventGraph) -> Rel:
    """compl: an asynchronous event -> the signal or wait that tells of its end."""
    rel = no_pairs(len(graph.events))
    for part in _parts(graph):
        for event in graph.events:
            told = _tells(graph, event, part)
            cell = graph.logic.conj((told, part.runs, event.runs)) if told != FALSE else FALSE
            if cell != FALSE:
                rel[part.uid][event.uid] = cell
    return rel


def _parts(graph: EventGraph) -> list[MemoryEvent]:
    return [event for event in graph.of_kind(MemoryEvent) if event.point.issue is not None]


def _tells(graph: EventGraph, event: Event, part: MemoryEvent) -> int:
    """The formula under which an event tells of the end of a part."""
    if event.thread != part.thread:
        return FALSE
    if isinstance(event, ObjectEvent) and isinstance(event.label, Signal):
        tracked = event.tracks is not None and event.tracks in part.tracks and _visit(part) < _visit(event)
        return TRUE if part.uid in event.of or tracked else FALSE
    if isinstance(event, GroupWaitEvent) and event.track in part.tracks and _visit(part) < _visit(event):
        return _waited_for(graph, part, event)
    return FALSE


def _visit(event: Event) -> int:
    assert event.visit is not None
    return event.visit


def _waited_for(graph: EventGraph, part: MemoryEvent, wait: GroupWaitEvent) -> int:
    """Is a part among those that a wait waits for? With `pending` groups left open, enough commits lie in between."""
    assert isinstance(part.label, Access)
    if wait.sources_only and part.label.role is None:
        return FALSE
    if wait.pending is None:
        return TRUE
    between = [
        mark.runs
        for mark in graph.commits
        if mark.thread == part.thread and mark.track is wait.track and _visit(part) < mark.order < _visit(wait)
    ]
    return graph.logic.disj(count(graph.logic, between)[wait.pending + 1 :])


def warpgroup_completion(graph: EventGraph, compl: Rel) -> Rel:
    """complwg: reads of wgmma by other warps of a warpgroup -> a wait that covers the same instruction of its warp.

    The k-th wgmma.mma_async of each warp is the same instruction of the warpgroup.
    """
    rel = no_pairs(len(graph.events))
    logic = graph.logic
    issues = [e for e in graph.events if isinstance(e.label, Issue) and e.label.family is Family.WGMMA]
    numbers = {e.uid: _number(logic, e, issues) for e in issues}
    parts: dict[int, list[int]] = {}
    for part in _parts(graph):
        if part.point.issue in numbers:
            parts.setdefault(part.point.issue, []).append(part.uid)
    for mine in issues:
        for other in issues:
            if mine.thread == other.thread or _warpgroup(mine) is None or _warpgroup(mine) != _warpgroup(other):
                continue
            same = logic.disj(
                logic.both(here, there) for here, there in zip(numbers[mine.uid], numbers[other.uid], strict=False)
            )
            for uid in parts.get(mine.uid, ()):
                for wait, told in compl[uid].items():
                    if isinstance(graph.events[wait].label, GroupWait):
                        for theirs in parts.get(other.uid, ()):
                            cell = logic.conj((same, told, graph.events[theirs].runs))
                            if cell != FALSE:
                                rel[theirs][wait] = logic.either(rel[theirs].get(wait, FALSE), cell)
    return rel


def _number(logic: Logic, issue: Event, issues: list[Event]) -> list[int]:
    """numbers[k]: exactly k instructions of the same thread come before this one, which runs."""
    before = [e.runs for e in issues if e.thread == issue.thread and _visit(e) < _visit(issue)]
    return [logic.both(issue.runs, formula) for formula in count(logic, before)]


def _warpgroup(event: Event) -> object:
    place = event.point.place
    return None if place is None or place.warp is None else (place.cta_id, place.warp // 4)


def exits(graph: EventGraph) -> Rel:
    """What is done in the shared memory of another CTA, all of whose threads exit -> these exits."""
    rel = no_pairs(len(graph.events))
    logic = graph.logic
    marks = [e for e in graph.events if isinstance(e.label, Mark) and e.label.what is Marker.EXIT]
    for event in graph.events:
        if not marks or event.point.place is None or not isinstance(event.label, Access | Mbarrier | Signal):
            continue
        owner = None if event.point.cell is None else event.point.cell.instance.owner
        if owner is None or owner == event.point.place.cta_id:
            continue
        gone = logic.conj(graph.exited[number] for number in _threads(graph, owner))
        for mark in marks:
            if mark.point.place is not None and mark.point.place.cta_id == owner:
                cell = logic.conj((gone, event.runs, mark.runs))
                if cell != FALSE:
                    rel[event.uid][mark.uid] = cell
    return rel


def cta_ends(graph: EventGraph) -> Rel:
    """ctaends: events -> the ends of all threads of their CTA, where all of them end."""
    rel = no_pairs(len(graph.events))
    logic = graph.logic
    for mark in graph.events:
        if not isinstance(mark.label, Mark) or mark.label.what is not Marker.END or mark.point.place is None:
            continue
        cta = mark.point.place.cta_id
        over = logic.conj(graph.ended[number] for number in _threads(graph, cta))
        for event in graph.events:
            if event.point.place is not None and event.point.place.cta_id == cta:
                cell = logic.conj((over, event.runs, mark.runs))
                if cell != FALSE:
                    rel[event.uid][mark.uid] = cell
    return rel


def _threads(graph: EventGraph, cta: object) -> list[int]:
    return [k for k, thread in enumerate(graph.lowered.test.threads) if thread.place.cta_id == cta]
