"""What is asked about an execution, and a change of it.

In: an execution, its flow, the two events in question, if there are two. Out: `Situation`, with what all kinds of
changes ask of it; `Change`, the two forms of which are `Situation.field` and `insertion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from memmodel.base.labels import Access, Label, Mark, Marker, Signal
from memmodel.base.rows import Rows, bits
from memmodel.concrete.execution import ConcreteEvent, Execution
from memmodel.isa.lower import read_instruction
from memmodel.ptx.vocabulary import Scope, Space
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.flow import Between, Flow
from memmodel.why.records import Reason


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `at`: the event that is changed or beside which something is added; `other`: what it has to reach.

    `words`: what is there now, or what is added. `tier`: 1 to 4, those of a lower one are tried first; `cost`: the same
    within a tier.
    """

    reason: Reason
    alteration: Alteration
    at: int
    other: int | None = None
    words: str = ""
    tier: int = 1
    cost: float = 1.0


@dataclass(frozen=True)
class Situation:
    """What is asked: why two events are not ordered (`pair`), or why an execution is as it is.

    `data`: the two are data, and not a flag by which one thread tells the other. `sources`: the accesses that the
    outcome is about, where it is asked about.
    """

    execution: Execution
    flow: Flow
    pair: tuple[int, int] | None
    data: bool = False
    sources: int = 0

    @property
    def events(self) -> list[ConcreteEvent]:
        return self.execution.events

    @property
    def count(self) -> int:
        return len(self.events)

    @cached_property
    def po(self) -> Rows:
        return self.execution.relation("po")

    @cached_property
    def links(self) -> list[Between]:
        """The links by which one thread may tell another something: between the two accesses, or anywhere."""
        if self.pair is None:
            return self.flow.links
        return list(dict.fromkeys(link for a, b in (self.pair, self.pair[::-1]) for link in self.flow.between(a, b)))

    def common_scope(self, link: Between, first: int | None = None) -> Scope:
        """The least scope that takes in both ends, or another event in place of the first."""
        seat, other = (self.events[n].point.seat for n in (link.first if first is None else first, link.second))
        assert seat is not None and other is not None
        return seat.common_scope(other)

    def widest(self) -> Scope:
        """The least scope that takes in all threads."""
        places = {event.point.place for event in self.events if event.point.place is not None}
        return next(s for s in Scope if all(place.shares(s, other) for place in places for other in places))

    def are_halves(self, event: int, other: int) -> bool:
        """True of the read and the write of one operation."""
        point, other_point = self.events[event].point, self.events[other].point
        return point.operation == other_point.operation and point.operation is not None

    def may_be_strong(self, event: int) -> bool:
        """True if the instruction of an event has a word for its semantics; ldmatrix and tcgen05.alloc have none."""
        frame = self.execution.frame
        instruction = frame.instruction_of(self.events[event])
        if instruction is None:
            return False
        return any(slot.name == "sem" for slot in read_instruction(instruction, frame.lowered.test).row.slots)

    def field(
        self, reason: Reason, event: int, other: int | None, words: str, tier: int = 1, **fields: object
    ) -> Change:
        """The change of fields of a label: of both halves of a read-modify-write, if it is the scope alone."""
        label = self.events[event].label
        halves = [event]
        if isinstance(label, Access) and label.rmw and "scope" in fields and "sem" not in fields:
            halves = [n for n in range(self.count) if self.are_halves(event, n)] or [event]
        change = Alteration(tuple((half, name, value) for half in halves for name, value in fields.items()))
        return Change(reason, change, event, other, words, tier)

    def is_before_link(self, event: int) -> bool:
        """True of an event by which another thread is told something."""
        return any(self.flow.in_po(link.first) == event for link in self.links)

    def in_one_cta(self, a: int, b: int) -> bool:
        """True if the threads of two events are of one CTA."""
        first, second = (self.events[self.flow.in_po(event)].point.place for event in (a, b))
        return first is not None and second is not None and first.cta_id == second.cta_id

    def in_dependent_grid(self, a: int, b: int) -> bool:
        """True if the second event is in a grid that depends on that of the first one: its end orders all proxies."""
        first, second = self.events[a].point.place, self.events[b].point.place
        return first is not None and second is not None and first.gpu == second.gpu and first.grid < second.grid

    def in_tensor_memory(self, event: int) -> bool:
        """True of an access to tensor memory."""
        cell = self.events[event].point.cell
        return cell is not None and cell.instance.space is Space.TENSOR

    def last_of(self, kinds: tuple[type[Label], ...], event: int, *, back: bool = False) -> int:
        """The event, or the last of these kinds of events that follow it at once, or (`back`) stand in front of it, but
        for those that submit operations."""
        others = [n for n, row in enumerate(self.po) if row >> event & 1] if back else bits(self.po[event])
        for number in sorted(others, key=lambda n: self.events[n].point.order or 0, reverse=back):
            label = self.events[number].label
            if not isinstance(label, kinds) or is_submit(label):
                break
            event = number
        return event


def insertion(
    reason: Reason, beside: int, label: Label, words: str, *, after: bool, tier: int = 1, cost: float = 2.0
) -> Change:
    """The change by which an event with this label is added before or after another one."""
    return Change(reason, Alteration((), (Inserted(beside, label, after),)), beside, None, words, tier, cost)


def is_submit(label: Label) -> bool:
    """True of fabric.submit. A wait before it does not cover what it submits."""
    return isinstance(label, Mark) and label.what in (Marker.SUBMIT, Marker.SUBMIT_FETCHING)


def is_told_elsewhere(execution: Execution, event: int, waiter: int) -> bool:
    """True if the end of an access is told on objects of other CTAs alone than that of a thread which may not wait for
    those. `waiter`: an event of that thread."""
    seat = execution.events[waiter].point.place
    ends = [execution.events[end] for end in bits(execution.relation("compl")[event])]
    cells = [end.point.cell for end in ends if isinstance(end.label, Signal)]
    owners = [None if cell is None else cell.instance.owner for cell in cells]
    return seat is not None and bool(owners) and all(owner is not None and owner != seat.cta_id for owner in owners)
