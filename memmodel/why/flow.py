"""The paths on which the events of one thread may reach another thread, whatever their semantics.

In: an execution. Out: `Flow`: the links between threads, and which of them lead from one event to another. Links are
reads from other threads, observed mbarrier phases and barriers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memmodel.base.labels import Access, Signal
from memmodel.base.rows import Rows, bits, closure, pairs_of
from memmodel.concrete.execution import Execution

LINKS = ("rf", "mbarobs", "syncbar")


@dataclass(frozen=True, slots=True)
class Between:
    """`first` is seen by `second`, of another thread, through the base relation `name`."""

    first: int
    second: int
    name: str


def is_cyclic(execution: Execution) -> bool:
    """True if something would have to come before itself, by program order, completion and links without values."""
    rows = list(execution.relation("po"))
    for name in ("iss", "compl", "complwg", *LINKS[1:]):
        rows = [a | b for a, b in zip(rows, execution.relation(name), strict=True)]
    return any(row >> number & 1 for number, row in enumerate(closure(rows)))


class Flow:
    """The links of an execution, and what they reach."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.events = execution.events
        self.count = len(self.events)
        self.issue_of = {n: e.point.issue for n, e in enumerate(self.events) if e.point.issue is not None}
        self.links = [
            Between(a, b, name) for name in LINKS for a, b in pairs_of(execution.relation(name)) if self._across(a, b)
        ]
        self.reach = closure(self._edges(LINKS))
        self._sure: Rows | None = None

    def _across(self, a: int, b: int) -> bool:
        """True if the link leaves a thread. A signal is outside its thread, also for the thread that issued it."""
        point, other = self.events[a].point, self.events[b].point
        if point.thread is None or other.thread is None:
            return False
        return point.thread != other.thread or isinstance(point.label, Signal)

    def _edges(self, links: tuple[str, ...]) -> Rows:
        rows = list(self.execution.relation("po"))
        for name in ("iss", "compl", "complwg", *links):
            rows = [a | b for a, b in zip(rows, self.execution.relation(name), strict=True)]
        for part, issue in self.issue_of.items():
            rows[part] |= 1 << issue
        return rows

    def in_po(self, event: int) -> int:
        """An event in program order: itself, or the issue of the asynchronous instruction that it is a part of."""
        return self.issue_of.get(event, event)

    def leads(self, a: int, b: int) -> bool:
        """True if there is a path from a to b."""
        return bool(self.reach[a] >> b & 1)

    def surely_leads(self, a: int, b: int) -> bool:
        """True if there is a path from a to b without a link through a read."""
        if self._sure is None:
            self._sure = closure(self._edges(LINKS[1:]))
        return bool(self._sure[a] >> b & 1)

    def with_links(self, links: Iterable[tuple[int, int]]) -> Rows:
        """Which events reach which, if these links were added."""
        rows = self._edges(LINKS)
        for first, second in links:
            rows[first] |= 1 << second
        return closure(rows)

    def reach_by(self, links: Iterable[Between]) -> Rows:
        """Which events reach which in their threads and by these links alone."""
        rows = self._edges(())
        for link in links:
            rows[link.first] |= 1 << link.second
        return closure(rows)

    def completion_waits(self, event: int) -> list[int]:
        """The waits that see the end of an asynchronous access."""
        ends, seen = bits(self.execution.relation("compl")[event]), self.execution.relation("mbarobs")
        waits = [n for end in ends for n in (bits(seen[end]) if isinstance(self.events[end].label, Signal) else [end])]
        return list(dict.fromkeys(waits))

    def between(self, a: int, b: int) -> list[Between]:
        """The links on ways from a to b."""
        return [
            link
            for link in self.links
            if (link.first == a or self.leads(a, link.first)) and (link.second == b or self.leads(link.second, b))
        ]

    def is_async(self, event: int) -> bool:
        """True if the event is outside program order."""
        return event in self.issue_of

    def thread(self, event: int) -> int | None:
        return self.events[event].point.thread

    def is_memory(self, event: int) -> bool:
        return isinstance(self.events[event].label, Access)
