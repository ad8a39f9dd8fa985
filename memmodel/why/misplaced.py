"""Synchronization that is there and stands in the wrong place: beside an access, or beside other synchronization.

In: an execution, its flow, two accesses that are not ordered. Out: `Misplaced`. Settled here: what orders other
accesses to the same place, or would wait for itself elsewhere, stands where it has to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.base.labels import Barrier
from memmodel.concrete.execution import Execution
from memmodel.why.apart import synchronizes
from memmodel.why.flow import Flow


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An event that stands before (`early`) or after `beside`, and should stand on the other side of it.

    `passes_on`: it tells a third thread's news before that thread has them.
    """

    event: int
    beside: int
    early: bool
    passes_on: bool = False


def misplaced(execution: Execution, flow: Flow, first: int, second: int) -> Misplaced | None:
    """The one event that stands in the wrong place between two accesses, given by events in program order."""
    search = _Search(execution, flow, first, second)
    if search.places is None:
        return None
    passed_on = list(search.passed_on_early())
    if len(passed_on) == 1:
        return passed_on[0]
    beside = list(search.beside_the_accesses())
    return beside[0] if len(beside) == 1 else None


class _Search:
    """`places`: the cells of the two accesses."""

    def __init__(self, execution: Execution, flow: Flow, first: int, second: int) -> None:
        self.execution, self.flow, self.po = execution, flow, execution.relation("po")
        self.first, self.second = first, second
        self.links = [link for link in flow.links if synchronizes(execution, link)]
        self.ends = flow.thread(first), flow.thread(second)
        self.places = {e.point.cell for n, e in enumerate(execution.events) if flow.in_po(n) in (first, second)} - {
            None
        }

    def _precedes(self, a: int, b: int) -> bool:
        return bool(self.po[a] >> b & 1)

    def passed_on_early(self) -> Iterator[Misplaced]:
        """What a third thread tells the second one with before it has seen the first one."""
        for sees in self.links:
            if self.flow.thread(sees.first) != self.ends[0] or not self._precedes(self.first, sees.first):
                continue
            for tells in self.links:
                if self.flow.thread(tells.second) != self.ends[1] or not self._precedes(tells.second, self.second):
                    continue
                third = self.flow.thread(tells.first) not in self.ends and self._precedes(tells.first, sees.second)
                if third and not self._orders_others(tells.first):
                    yield Misplaced(tells.first, sees.second, early=True, passes_on=True)

    def beside_the_accesses(self) -> Iterator[Misplaced]:
        """One side of a link between the two threads that stands on the wrong side of its access."""
        for link in self.links:
            if self.ends != (self.flow.thread(link.first), self.flow.thread(link.second)):
                continue
            released, acquired = self._precedes(self.first, link.first), self._precedes(link.second, self.second)
            if not released and acquired and self._movable(link.first, self.first):
                yield Misplaced(link.first, self.first, early=True)
            if released and not acquired and self._movable(link.second, self.second):
                yield Misplaced(link.second, self.second, early=False)

    def _movable(self, event: int, access: int) -> bool:
        """True if an event may stand on the other side of an access: it is no part of it, the other half of its barrier
        is not between the two, and it orders no others where it stands."""
        if self._instruction(event) == self._instruction(access):
            return False
        label = self.execution.events[event].label
        domain = label.domain if isinstance(label, Barrier) else None
        between = [
            number
            for number, other in enumerate(self.execution.events)
            if isinstance(other.label, Barrier)
            and other.label.domain is domain
            and self._instruction(number) != self._instruction(event)
            and (
                (self._precedes(event, number) and self._precedes(number, access))
                or (self._precedes(access, number) and self._precedes(number, event))
            )
        ]
        return not between and not self._orders_others(event)

    def _orders_others(self, event: int) -> bool:
        """True if what stands at an event orders other accesses: of a barrier that the thread arrives at and waits for
        at once, to any place, otherwise to the place of the two."""
        instruction = self._instruction(event)
        halves = [n for n in range(self.flow.count) if self._instruction(n) == instruction]
        accesses = {
            number: other.point.cell
            for number, other in enumerate(self.execution.events)
            if self.flow.thread(number) is not None and self.flow.is_memory(number)
            if len(halves) > 1 or other.point.cell in self.places
        }
        before = [access for access in accesses if any(self.flow.leads(access, half) for half in halves)]
        later = [access for access in accesses if any(self.flow.leads(half, access) for half in halves)]
        written = self.execution.set("W")
        return any(
            (written >> a | written >> b) & 1 and self.flow.thread(a) != self.flow.thread(b)
            for a in before
            for b in later
            if accesses[a] == accesses[b]
        )

    def _instruction(self, event: int) -> tuple[int | None, int] | None:
        """The thread of an event, and the number of its instruction among those that the thread executes."""
        record = self.execution.frame.record_of(self.execution.events[event])
        return None if record is None else (self.flow.thread(event), record.instruction)
