"""What tells of the end of an asynchronous event, and what a fence with a state space or range covers.

In: EventGraph. Out: the relation compl (events × events), and `covers` for one fence and one access.
"""

from __future__ import annotations

from memmodel.encode.barriers import count
from memmodel.encode.relations import Algebra, Rel
from memmodel.events.graph import Event, EventGraph
from memmodel.isa.memory import Location
from memmodel.logic import FALSE, TRUE
from memmodel.ptx import Space


def completion(graph: EventGraph, algebra: Algebra) -> Rel:
    """compl: an asynchronous event -> the signal or wait that tells of its end."""
    logic = graph.logic
    rel = algebra.empty()
    parts = [e for e in graph.events if e.issue is not None and "SIGNAL" not in e.tags]
    for event in graph.events:
        for part in parts:
            if part.thread != event.thread or part.uid >= event.uid:
                continue
            if "SIGNAL" in event.tags:
                told = TRUE if part.uid in event.of or event.tracks in part.track else FALSE
            elif event.wait is not None and event.wait.track in part.track:
                told = _waited_for(graph, part, event)
            else:
                continue
            cell = logic.both(told, logic.both(part.runs, event.runs))
            if cell != FALSE:
                rel[part.uid][event.uid] = cell
    return rel


def _waited_for(graph: EventGraph, part: Event, wait: Event) -> int:
    """Is a part among those that a Wait waits for? With `pending` groups left open, enough commits lie in between."""
    assert wait.wait is not None
    if wait.wait.only is not None and wait.wait.only not in part.tags:
        return FALSE
    if wait.pending is None:
        return TRUE
    between = [
        mark.runs
        for mark in graph.commits
        if mark.thread == part.thread and mark.track == wait.wait.track and part.uid < mark.position <= wait.uid
    ]
    return graph.logic.disj(count(graph.logic, between)[wait.pending + 1 :])


def covers(graph: EventGraph, fence: Event, access: Event) -> int:
    """The formula under which an access lies in what a fence is about."""
    cover = fence.covers
    if cover is None:
        return TRUE if "M" in access.tags else FALSE
    if cover.what == "init":
        earlier = access.thread == fence.thread and access.uid < fence.uid and "MBINIT" in access.tags
        return TRUE if earlier else FALSE
    if "M" not in access.tags:
        return FALSE
    logic = graph.logic
    return logic.disj(
        logic.both(formula, _inside(graph, fence, cover.what, where)) for where, formula in access.at(logic).items()
    )


def _inside(graph: EventGraph, fence: Event, what: str, where: Location) -> int:
    """The formula under which a location lies in what a fence is about."""
    if what == "own-shared":
        inside = where.space is Space.SHARED and fence.place is not None and where.owner == fence.place.cta_id
        return TRUE if inside else FALSE
    if what == "shared":
        return TRUE if where.space is Space.SHARED else FALSE
    if what == "global":
        return TRUE if where.space not in (Space.SHARED, Space.TENSOR) else FALSE
    cover, starts = fence.covers, fence.covers_from
    address = graph.memory.address_of(where)
    if cover is None or starts is None:
        return FALSE
    return graph.logic.disj(formula for start, formula in starts.cases.items() if start <= address < start + cover.size)
