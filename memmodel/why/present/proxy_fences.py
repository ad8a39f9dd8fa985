"""Where the proxy fences of an execution stand, seen from two accesses that lack one.

In: an execution, its flow, the two accesses, where they are known. Out: fences between the two, and beside the way.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.base.labels import Access, ProxyFence
from memmodel.base.rows import bits
from memmodel.concrete.execution import Execution
from memmodel.why.flow import Flow


class ProxyFences:
    """The proxy fences of an execution."""

    def __init__(self, execution: Execution, flow: Flow, ends: tuple[int, int] | None) -> None:
        self.execution = execution
        self.flow = flow
        self.ends = ends

    def beside_the_way(self, fences: Iterable[int]) -> int | None:
        """The first proxy fence that one of the two threads has elsewhere, and that serves nothing there."""
        return next(
            (n for n in fences if not self.on_the_way(n) and self._wrong_side(n) and not self._serves_others(n)), None
        )

    def all(self) -> list[int]:
        """Every one of them."""
        return [n for n, event in enumerate(self.execution.events) if isinstance(event.label, ProxyFence)]

    def on_the_way(self, event: int) -> bool:
        """True if an event is ordered between the two accesses."""
        if self.ends is None:
            return False
        return any(self._after(a, event) and self.flow.leads(event, b) for a, b in (self.ends, self.ends[::-1]))

    def _after(self, access: int, event: int) -> bool:
        """True if an event is ordered after an access; for an asynchronous access, after its completion."""
        if not self.flow.is_async(access):
            return self.flow.leads(access, event)
        ends = bits(self.execution.relation("compl")[access])
        return any(self.flow.leads(end, event) for end in ends)

    def _serves_others(self, event: int) -> bool:
        """True if a proxy fence lies between two other accesses of one place, through different proxies or names."""
        events, ends = self.execution.events, set(self.ends or ())
        labels = ((n, concrete.label) for n, concrete in enumerate(events) if concrete.point.cell is not None)
        accesses = [(n, (label.proxy, events[n].point.name)) for n, label in labels if isinstance(label, Access)]
        before = [access for access in accesses if self._after(access[0], event)]
        return any(
            events[a].point.cell == events[b].point.cell and way != other and {a, b} != ends
            for a, way in before
            for b, other in accesses
            if b not in ends and self.flow.leads(event, b)
        )

    def _wrong_side(self, event: int) -> bool:
        """True if the event is in the thread of one of the two accesses."""
        threads = {self.execution.events[end].point.thread for end in self.ends or ()}
        return self.execution.events[event].point.thread in threads
