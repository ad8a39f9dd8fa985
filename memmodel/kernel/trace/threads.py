"""A thread of a run, with its events in their order.

In: nothing. Out: `TraceThread`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memmodel.base.labels import Access, Mark, Marker
from memmodel.kernel.trace.events import TraceEvent
from memmodel.ptx.vocabulary import Place


@dataclass(slots=True)
class TraceThread:
    """One thread of the launch. `epoch`: its last event that may order its accesses."""

    number: int
    cta: int
    warp: int
    lane: int
    place: Place
    events: list[TraceEvent] = field(default_factory=list)
    epoch: int = 0
    accessing: list[TraceEvent] | None = None
    """Once the run has ended: those of its events that have memory or signals. All others are passed over quickly."""

    @property
    def ended(self) -> bool:
        """True if it has left the kernel."""
        label = self.events[-1].label if self.events else None
        return isinstance(label, Mark) and label.what is Marker.EXIT

    def strong(self) -> Iterator[TraceEvent]:
        """Its strong accesses: those that it makes itself, and those of its asynchronous instructions."""
        for event in self._accessing() if self.accessing is None else self.accessing:
            if isinstance(event.label, Access) and event.block is not None:
                yield event
            for signal in event.signals:
                if isinstance(signal.label, Access):
                    yield signal

    def settle(self) -> None:
        """Note which events have memory or signals: from now on no event gets any."""
        self.accessing = self._accessing()

    def _accessing(self) -> list[TraceEvent]:
        return [event for event in self.events if event.block is not None or event.signals]
