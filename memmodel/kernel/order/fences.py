"""The same run with its fence.sc operations in another order: executions that no schedule of the machine gives.

In: Model, the flags of the run, its graph, pairs that only this order keeps apart. Out: flags of other executions.
Settled here: which other order gives an execution. Reads-from stays as in the run, and the axioms about causality must
hold. Causality must not contradict the order of the fences, the order of the run between conflicting accesses, and the
order of operations on mbarrier objects and barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from memmodel.base.labels import Access
from memmodel.base.rows import Rows, bits, ordered
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.events import TraceEvent

FORCED, CAUSALITY, BASE, CONFLICT = "fence-forced", "causality", "base-causality", "conflict"
"""Definitions of a model: the order that fence.sc must have, causality, base causality, and conflicts."""
SETTLED = ("mbar", "mbarseen", "mbarfr", "genbefore", "syncbar")
"""The orders of operations on mbarrier objects and barriers."""
MOST = 6
"""Other orders that are looked at."""


def with_fences(execution: Execution, rows: Rows) -> Execution:
    """The same execution with `rows` as the order of fence.sc operations."""
    return replace(execution, chosen_relations={**execution.chosen_relations, "sync_fence": rows})


def forced(model: Model, execution: Execution, like: Flags | None = None) -> Flags:
    """An execution in which fence.sc operations have only the order that they have in every execution."""
    if not any(execution.relation("sync_fence")):
        return Flags(model, execution, like)
    execution = with_fences(execution, [0] * len(execution.events))
    flags = Flags(model, execution, like)
    while True:
        demanded = flags.relation(FORCED)
        rows = execution.relation("sync_fence")
        if demanded is None or not any(new & ~old for new, old in zip(demanded, rows, strict=True)):
            return flags
        execution = with_fences(execution, [new | old for new, old in zip(demanded, rows, strict=True)])
        flags = Flags(model, execution, flags)


def reordered(model: Model, run: Flags, graph: Graph, pairs: list[tuple[int, int]]) -> Iterator[Flags]:
    """Executions in which the fences after one access of a pair come as late as they can, so that only the order of
    every execution leads from it to the other access.

    `run`: the flags of the run itself.
    """
    fences, execution = graph.fences(), run.execution
    after = forced(model, execution).relation(BASE) if len(fences) > 1 else None
    related = execution.relation("sr")
    tried = {tuple(fences)}
    for end in (event for pair in pairs for event in pair):
        if after is None or len(tried) > MOST:
            return
        last = [fence for fence in fences if after[end] >> fence & 1]
        order = [*(fence for fence in fences if fence not in last), *last]
        if tuple(order) in tried:
            continue
        tried.add(tuple(order))
        flags = Flags(model, with_fences(execution, ordered(order, related)), run)
        if _holds(flags, run, graph):
            yield flags


def _holds(flags: Flags, run: Flags, graph: Graph) -> bool:
    """True if another order of the fences is consistent with everything else that happened in the run."""
    demanded, mine, old = flags.relation(FORCED), flags.relation(CAUSALITY), run.relation(CAUSALITY)
    conflict = flags.relation(CONFLICT)
    if demanded is None or mine is None or old is None or conflict is None:
        return False
    chosen = flags.execution.relation("sync_fence")
    if any(row & ~kept for row, kept in zip(demanded, chosen, strict=True)):
        return False
    for event, row in enumerate(conflict):
        if any(ended(graph, event) > begun(graph, other) for other in bits(row & mine[event] & ~old[event])):
            return False
    for name in SETTLED:
        for event, row in enumerate(flags.execution.relation(name)):
            if any(mine[other] >> event & 1 for other in bits(row)):
                return False
    return True


def begun(graph: Graph, number: int) -> float:
    """The time in the run after which an event happened."""
    use = graph.origins[number].use
    if use is None:
        return graph.events[number].time
    before = _thread(graph, number)[: use.epoch + (use.event is not None or use.issue is not None)]
    return before[-1].time if before else 0


def ended(graph: Graph, number: int) -> float:
    """The time in the run before which an event happened; of an asynchronous access none is known."""
    label, use = graph.points[number].label, graph.origins[number].use
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
