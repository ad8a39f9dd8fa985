"""Updates that are lost: a thread reads and writes one place, and another thread writes it between.

In: an execution. Out: `LostUpdate`. Settled here: nothing is lost if the write is that of an atomic operation,
which reads the same value again. A lock is a place that a thread writes before and after an access.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access
from memmodel.base.rows import bits, pairs_of
from memmodel.concrete.execution import Execution
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Sem
from memmodel.why.flow import Flow


@dataclass(frozen=True, slots=True)
class LostUpdate:
    """`write`: of the other thread, which comes between `read` and `lost`, the later write of the thread that reads."""

    write: int
    read: int
    lost: int


def lost_update(execution: Execution, flow: Flow, cell: Cell | None) -> LostUpdate | None:
    """The update of a place that is lost there, as of a lock that is tested and taken in two steps."""
    po, co, rf, rmw = (execution.relation(name) for name in ("po", "co", "rf", "rmw"))
    strong, writes = _strong(execution, cell), execution.set("W")
    reads = ((write, read) for write, read in pairs_of(rf) if read in strong and not rmw[read])
    for source, read in reads:
        later = [n for n in strong if writes >> n & 1 and po[read] >> n & 1]
        lost = next((n for n in later if not any(po[other] >> n & 1 for other in later)), None)
        if lost is None:
            continue
        write = next((n for n in bits(co[source]) if co[n] >> lost & 1 and flow.thread(n) != flow.thread(read)), None)
        again = next((a for a, b in pairs_of(rmw) if b == lost), None)
        unchanged = again is not None and execution.values[again] == execution.values[read]
        if write is not None and not unchanged:
            return LostUpdate(write, read, lost)
    return None


def lost_lock(execution: Execution, flow: Flow, inside: int) -> LostUpdate | None:
    """The lost update of a lock, where both threads take it before an access and let go of it behind it."""
    po, writes = execution.relation("po"), execution.set("W")
    before = {execution.events[n].point.cell for n in bits(writes) if po[n] >> inside & 1}
    for cell in dict.fromkeys(execution.events[n].point.cell for n in bits(writes & po[inside])):
        update = lost_update(execution, flow, cell) if cell in before else None
        if update is not None and any(po[taken] >> inside & 1 for taken in (update.write, update.lost)):
            return update
    return None


def lost_claim(execution: Execution, flow: Flow, first: int, second: int) -> LostUpdate | None:
    """The lost update of a place from which two threads have read where, or whether, they make their accesses: a slot
    that both have claimed."""
    ways = [execution.relation(name) for name in ("addr", "ctrl")]
    read = [
        {execution.events[n].point.cell for n in bits(execution.set("R")) if any(rows[n] >> end & 1 for rows in ways)}
        for end in (flow.in_po(first), flow.in_po(second))
    ]
    own = {execution.events[end].point.cell for end in (first, second)}
    claimed = sorted((read[0] & read[1]) - own - {None}, key=str)
    updates = (lost_update(execution, flow, cell) for cell in claimed)
    return next((update for update in updates if update is not None), None)


def same_value_read(execution: Execution, write: int, read: int) -> int | None:
    """The write that a load reads in place of `write`, which stores the same value: of the same thread before it, of
    another one, or the one that is there at the start."""
    values, po, co = execution.values, execution.relation("po"), execution.relation("co")
    source = next((n for n, row in enumerate(execution.relation("rf")) if row >> read & 1), None)
    if source is None or values[source] is None or values[source] != values[write] or source == write:
        return None
    first, second = (execution.events[n].point.thread for n in (source, write))
    earlier = po[source] >> write | execution.set("IW") >> source
    return source if earlier & 1 or (first != second and not co[write] >> source & 1) else None


def _strong(execution: Execution, cell: Cell | None) -> list[int]:
    """The strong accesses to a place."""
    labels = ((n, event.label) for n, event in enumerate(execution.events) if event.point.cell == cell)
    return [n for n, label in labels if isinstance(label, Access) and label.sem is not Sem.WEAK]
