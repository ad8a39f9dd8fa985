"""Two threads that pass each other: each writes its own flag and reads that of the other one, which it has not seen.

In: an execution, two accesses of two threads. Out: `Passed`. Settled here: both threads find the flag of the other one
as it was before; only a fence.sc in each, between the write and the read, keeps one of them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from memmodel.base.labels import Access, Fence
from memmodel.base.rows import bits
from memmodel.concrete.execution import Execution
from memmodel.ptx.vocabulary import Sem
from memmodel.why.flow import Flow


@dataclass(frozen=True, slots=True)
class Passed:
    """The write and the later read of each thread. `open`: those reads that no fence.sc separates from the write."""

    writes: tuple[int, int]
    reads: tuple[int, int]
    open: tuple[int, ...]


def passed_each_other(execution: Execution, flow: Flow, first: int, second: int) -> Passed | None:
    """The flags that two threads have not seen of each other before two accesses that depend on that."""
    first, second = flow.in_po(first), flow.in_po(second)
    if flow.thread(first) == flow.thread(second) or None in (flow.thread(first), flow.thread(second)):
        return None
    for (write, read), (other_write, other_read) in product(_flags(execution, first), _flags(execution, second)):
        if _overtaken(execution, read, other_write) and _overtaken(execution, other_read, write):
            pairs = (write, read), (other_write, other_read)
            left = tuple(after for before, after in pairs if not _fenced(execution, before, after))
            return Passed((write, other_write), (read, other_read), left) if left else None
    return None


def _overtaken(execution: Execution, read: int, write: int) -> bool:
    """True if a read returns what a write replaces."""
    co = execution.relation("co")
    return any(row >> read & 1 and co[n] >> write & 1 for n, row in enumerate(execution.relation("rf")))


def _flags(execution: Execution, access: int) -> list[tuple[int, int]]:
    """The strong writes of a thread, each with the strong reads behind it of another place on which an access
    depends."""
    po, control = execution.relation("po"), execution.relation("ctrl")
    strong = [
        n
        for n, event in enumerate(execution.events)
        if isinstance(event.label, Access) and event.label.sem is not Sem.WEAK and po[n] >> access & 1
    ]
    reads = [n for n in strong if execution.set("R") >> n & 1 and control[n] >> access & 1]
    writes = [n for n in strong if execution.set("W") >> n & 1]
    cells = [event.point.cell for event in execution.events]
    return [(w, r) for w in writes for r in reads if po[w] >> r & 1 and cells[w] != cells[r]]


def _fenced(execution: Execution, first: int, second: int) -> bool:
    """True if a fence.sc stands between two events of a thread."""
    between = (n for n in bits(execution.relation("po")[first]) if execution.relation("po")[n] >> second & 1)
    labels = (execution.events[n].label for n in between)
    return any(isinstance(label, Fence) and label.sem is Sem.SC for label in labels)
