"""The same run with its fence.sc operations in another order: executions that no schedule of the machine gives.

In: Model, the flags of the run, its graph, pairs that only this order keeps apart. Out: flags of other executions.
Settled here: which other order gives an execution. Who reads from whom stays as in the run; the axioms that speak of
causality have to hold. It must not contradict the order of the fences, the order of the run between conflicting
accesses, and that of operations on mbarrier objects and barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from memmodel.base.labels import Access
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution, Rows
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.events import TraceEvent
from memmodel.referee.flags import Flags, bits

FORCED, CAUSALITY, BASE, CONFLICT = "fence-forced", "causality", "base-causality", "conflict"
"""The definitions of a model that say which order fence.sc must have, which write is the later one, by what, and which
accesses conflict."""
SETTLED = ("mbar", "mbarobs", "mbarfr", "genbefore", "syncbar")
"""The orders of operations on mbarrier objects and barriers."""
MOST = 6
"""Other orders that are looked at."""


def with_fences(execution: Execution, rows: Rows) -> Execution:
    """The same execution with that order of fence.sc operations."""
    return replace(execution, chosen_relations={**execution.chosen_relations, "sync_fence": rows})


def forced(model: Model, execution: Execution, like: Flags | None = None) -> Flags:
    """An execution with that order of fence.sc operations alone that every one has."""
    if not any(execution.relation("sync_fence")):
        return Flags(model, execution, like)
    execution = with_fences(execution, [0] * len(execution.events))
    flags = Flags(model, execution, like)
    while True:
        found = flags.relation(FORCED)
        rows = execution.relation("sync_fence")
        if found is None or not any(new & ~old for new, old in zip(found, rows, strict=True)):
            return flags
        execution = with_fences(execution, [new | old for new, old in zip(found, rows, strict=True)])
        flags = Flags(model, execution, flags)


def reordered(model: Model, run: Flags, graph: Graph, pairs: list[tuple[int, int]]) -> Iterator[Flags]:
    """Executions in which the fences after one access of a pair come after all others that can: so nothing leads from
    it to the other access but what every order has.

    `run`: the flags of the run itself.
    """
    fences, execution = graph.fences(), run.execution
    after = forced(model, execution).relation(BASE) if len(fences) > 1 else None
    related = execution.relation("sr")
    tried = {tuple(fences)}
    for one in (end for pair in pairs for end in pair):
        if after is None or len(tried) > MOST:
            return
        last = [fence for fence in fences if after[one] >> fence & 1]
        order = [*(fence for fence in fences if fence not in last), *last]
        if tuple(order) in tried:
            continue
        tried.add(tuple(order))
        rows, later = [0] * len(execution.events), 0
        for fence in reversed(order):
            rows[fence] = later & related[fence]
            later |= 1 << fence
        flags = Flags(model, with_fences(execution, rows), run)
        if _holds(flags, run, graph):
            yield flags


def _holds(flags: Flags, run: Flags, graph: Graph) -> bool:
    """Is another order of the fences consistent with everything else that happened in the run?"""
    demanded, mine, old = flags.relation(FORCED), flags.relation(CAUSALITY), run.relation(CAUSALITY)
    conflict = flags.relation(CONFLICT)
    if demanded is None or mine is None or old is None or conflict is None:
        return False
    chosen = flags.execution.relation("sync_fence")
    if any(row & ~kept for row, kept in zip(demanded, chosen, strict=True)):
        return False
    for one, row in enumerate(conflict):
        if any(ended(graph, one) > begun(graph, other) for other in bits(row & mine[one] & ~old[one])):
            return False
    for name in SETTLED:
        for one, row in enumerate(flags.execution.relation(name)):
            if any(mine[other] >> one & 1 for other in bits(row)):
                return False
    return True


def begun(graph: Graph, number: int) -> float:
    """The time in the run after which an event happened."""
    use = graph.behind[number].use
    if use is None:
        return graph.events[number].time
    before = _thread(graph, number)[: use.epoch + (use.event is not None or use.issue is not None)]
    return before[-1].time if before else 0


def ended(graph: Graph, number: int) -> float:
    """The time in the run before which an event happened; of what is asynchronous, none is known."""
    label, use = graph.points[number].label, graph.behind[number].use
    if isinstance(label, Access) and label.asynchronous:
        return inf
    if use is None:
        return graph.events[number].time
    after = _thread(graph, number)[use.epoch : use.epoch + 1]
    return after[0].time if after else inf


def _thread(graph: Graph, number: int) -> list[TraceEvent]:
    """The events of the thread of an event."""
    thread = graph.points[number].thread
    return [] if thread is None else graph.run.threads[thread].events
