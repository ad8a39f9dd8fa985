"""Loops that poll a counter: do they end in every execution, and which arrivals have they seen then?

In: LaunchTrace, the loads that poll. Out: `CounterLoop`s, and of each the arrivals that it has observed whenever it
ends. Settled here: a word that threads change by atomic operations of one kind that commute holds, after any of them,
its first value joined with those of the operations so far; which ones these may be, causality says.
docs/kernels-theorem.md, "Counters", has the argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from memmodel.base.labels import Access
from memmodel.kernel.arithmetic.alu import function
from memmodel.kernel.flow.known_values import Known
from memmodel.kernel.flow.registers import written
from memmodel.kernel.order.polled_words import COMMUTING, CausalOrder, PolledWrite, Polls
from memmodel.kernel.order.uses import aliased
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy, Scope

MOST_SUMS, MOST_LAYERS = 4_096, 16
"""Values of a counter that are looked at, and steps in which arrivals that may come before a loop ends follow."""

WIDE = (Scope.GPU, Scope.SYS)
Joined = Callable[[int, int], int]


class CounterPlace(NamedTuple):
    """A word that atomic operations change, all in one way: the writes of these in the order of the run, other writes,
    what two values are joined by, the value before the launch. `slots`: by the instruction of an arrival the register
    of its result, if nothing else is ever there.
    """

    arrivals: tuple[TraceEvent, ...]
    stores: tuple[PolledWrite, ...]
    joined: Joined
    initial: int | None
    slots: Mapping[int, int]


class CounterLoop(NamedTuple):
    """The reads of a loop, of which the last one ended it."""

    load: int
    reads: tuple[TraceEvent, ...]
    place: CounterPlace

    @property
    def read(self) -> tuple[TraceEvent, ...]:
        """The arrivals that the last read has observed in the run."""
        arrivals, source = self.place.arrivals, self.reads[-1].source
        return next((arrivals[: n + 1] for n, one in enumerate(arrivals) if one is source), ())

    def sure(self, order: CausalOrder, polls: Polls, run: LaunchTrace) -> tuple[TraceEvent, ...] | None:
        """The arrivals that the loop has observed whenever it ends; None if it may end otherwise, or not at all.

        Of the arrivals that may come before its end or after it, some are needed (`needed`), and the others come after
        all of these: with a part of the needed ones the loop goes on, and with all of them it ends, however many of the
        others have come.
        """
        start = self._start(order)
        if start is None:
            return None
        base, arrivals = start
        first, last = self.reads[0], self.reads[-1]
        before = [one for one in arrivals if order.ahead(one, first)]
        known = {id(one) for one in before}
        free = [one for one in arrivals if id(one) not in known and not order.before(last, one)]
        if not _strong([*before, *free], last, run):
            return None
        for one in before:
            base = self.place.joined(base, one.given or 0)
        layers, answers = _layers(free, order), self.answers(order)
        for count in range(len(layers) + 1 if layers is not None else 0):
            needed = [one for layer in (layers or ())[:count] for one in layer]
            others = [one for layer in (layers or ())[count:] for one in layer]
            later = all(order.before(one, other) for one in needed for other in others)
            if later and answers is not None and self._ends(base, needed, others, polls, answers):
                return (*before, *needed)
        return None

    def answers(self, order: CausalOrder) -> list[Known] | None:
        """What may be known of registers around the loop, where results of arrivals of its thread are among them."""
        last = self.reads[-1]
        mine = {self.place.slots[one.at]: one for one in self.place.arrivals if one.thread == last.thread
                and one.at in self.place.slots and (one.order or 0) < (self.reads[0].order or 0)}  # fmt: skip
        found = [dict(last.known)]
        for slot in sorted(mine.keys() & found[0].keys()):
            results = self._results(mine[slot], order)
            if results is None or len(results) * len(found) > MOST_SUMS:
                return None
            found = [{**one, slot: value} for one in found for value in sorted(results)]
        return [tuple(sorted(one.items())) for one in found]

    def _results(self, one: TraceEvent, order: CausalOrder) -> set[int] | None:
        """What an arrival may find: the arrivals before it in causality, and any part of those that do not follow."""
        if one.partner is None or (start := self._start(order, (one.partner, one))) is None:
            return None
        base, arrivals = start
        before = [each for each in arrivals if order.ahead(each, one.partner)]
        known = {id(one), *map(id, before)}
        free = [each for each in arrivals if id(each) not in known and not order.before(one, each)]
        for each in before:
            base = self.place.joined(base, each.given or 0)
        return _sums(base, Counter(each.given or 0 for each in free), self.place.joined)

    def _start(
        self, order: CausalOrder, ends: tuple[TraceEvent, TraceEvent] | None = None
    ) -> tuple[int, list[TraceEvent]] | None:
        """The value of the last store before the loop (or before the first of two events), and the arrivals after it;
        None if stores are not ordered.
        """
        first, last = (self.reads[0], self.reads[-1]) if ends is None else ends
        past = []
        for one in self.place.stores:
            event = one.event
            if event is None:
                return None
            if order.ahead(event, first):
                past.append((event, one.value))
            elif not order.before(last, event):
                return None
            for other in self.place.arrivals:
                if not order.before(event, other) and not order.before(other, event):
                    return None
        if not past:
            return None if self.place.initial is None else (self.place.initial, list(self.place.arrivals))
        tops = [(one, value) for one, value in past if all(one is x or order.before(x, one) for x, _ in past)]
        if len(tops) != 1 or tops[0][1] is None:
            return None
        return tops[0][1], [one for one in self.place.arrivals if order.before(tops[0][0], one)]

    def _ends(
        self, base: int, needed: Sequence[TraceEvent], others: Sequence[TraceEvent], polls: Polls, answers: list[Known]
    ) -> bool:
        """Does the loop go on with each part of the needed arrivals, and end in one way with all of them?"""
        joined, event = self.place.joined, self.reads[-1]
        counts = Counter(one.given or 0 for one in needed)
        on: set[int] = set()
        for missing in counts:
            left = counts.copy()
            left[missing] -= 1
            sums = _sums(base, left, joined)
            if sums is None:
                return False
            on |= sums
        for number, many in counts.items():
            for _ in range(many):
                base = joined(base, number)
        ends = _sums(base, Counter(one.given or 0 for one in others), joined)
        if ends is None or len(on) * len(answers) > MOST_SUMS:
            return False
        for known in answers:
            if not all(polls.again(event, one, known) for one in on) or any(
                polls.again(event, one, known) for one in ends
            ):
                return False
            if (len(ends) > 1 or len(answers) > 1) and not polls.ends_alike(event, on, ends, known):
                return False
        return True


def loops(run: LaunchTrace, polls: Polls, body: Sequence[PtxInstruction]) -> dict[int, list[CounterLoop]]:
    """The loops of each load that polls counters alone."""
    found: dict[int, list[CounterLoop]] = {}
    places: dict[object, CounterPlace | None] = {}
    for number, waits in polls.polled(run).items():
        mine: list[CounterLoop] = []
        polled: dict[object, list[TraceEvent]] = {}
        for event, writes in waits:
            key = event.block, event.first, event.size
            if key not in places:
                places[key] = _place(event, writes, run, polls, body)
            place = places[key]
            if place is None:
                break
            reads = polled.setdefault((event.thread, *key), [])
            reads.append(event)
            if not polls.again(event, None if event.bits is None else event.bits.whole(8 * event.size)):
                mine.append(CounterLoop(number, tuple(reads), place))
                reads.clear()
        else:
            if mine and not any(polled.values()):
                found[number] = mine
    return found


def _place(
    event: TraceEvent, writes: Sequence[PolledWrite], run: LaunchTrace, polls: Polls, body: Sequence[PtxInstruction]
) -> CounterPlace | None:
    """The counter that a load polls; None if it is none."""
    if event.block is None:
        return None
    made = run.atomics.get((event.block, event.first), [])
    arrivals = tuple(one.partner for one in made if one.partner is not None)
    stores = tuple(one for one in writes if not (isinstance(one.event, TraceEvent) and _atomic(one.event)))
    kinds = {_kind(body[one.at]) for one in made}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    joined = None if kind is None else function(kind)
    told = len(arrivals) == len(made) == len(writes) - len(stores) and all(one.given is not None for one in arrivals)
    whole = all((one.first, one.size) == (event.first, event.size) for one in writes)
    if not arrivals or joined is None or not told or not whole:
        return None
    initial = polls.initial(event.block, event.first, event.size)
    writers = Counter(slot for one in body for slot in written(one))
    several = {one.at for place, events in run.atomics.items() if place != (event.block, event.first) for one in events}
    slots = {
        one.at: result[0]
        for one in made
        if len(result := written(body[one.at])) == 1 and writers[result[0]] == 1 and one.at not in several
    }
    return CounterPlace(arrivals, stores, lambda one, other: joined(one, other) or 0, initial, slots)


def _atomic(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and event.label.rmw


def _kind(one: PtxInstruction) -> tuple[str, str] | None:
    """How an operation changes integers, if such operations commute."""
    name = next((word for word in one.words[1:] if word in COMMUTING), None)
    kind = one.words[-1]
    return (name, kind) if name is not None and kind in ("u32", "s32", "b32", "u64", "s64", "b64") else None


def remembered(order: CausalOrder) -> CausalOrder:
    """The same order; what it says of two accesses is asked once."""
    known: dict[tuple[int, int], bool] = {}

    def before(one: TraceEvent | WeakAccess, other: TraceEvent | WeakAccess) -> bool:
        key = id(one), id(other)
        found = known.get(key)
        if found is None:
            found = known[key] = order.before(one, other)
        return found

    return order._replace(before=before)


def _layers(free: Sequence[TraceEvent], order: CausalOrder) -> list[list[TraceEvent]] | None:
    """Arrivals in steps, each after some of the step before; None if there are too many."""
    left, found, before = list(free), list[list[TraceEvent]](), order.before
    while left and len(found) < MOST_LAYERS:
        layer = [one for one in left if not any(before(other, one) for other in left if other is not one)]
        if not layer:
            return None
        found.append(layer)
        taken = {id(one) for one in layer}
        left = [one for one in left if id(one) not in taken]
    return None if left else found


def _sums(base: int, counts: Counter[int], joined: Joined) -> set[int] | None:
    """The first value joined with any part of some others; None if these are too many."""
    found = {base}
    for number, many in counts.items():
        for _ in range(many):
            more = {joined(one, number) for one in found}
            if more <= found:
                break
            found |= more
            if len(found) > MOST_SUMS:
                return None
    return found


def _strong(arrivals: Sequence[TraceEvent], read: TraceEvent, run: LaunchTrace) -> bool:
    """Is each arrival morally strong with each other one and with the read, whatever their order is?"""
    events = [*arrivals, read]
    labels = [one.label for one in events if isinstance(one.label, Access)]
    if len(labels) < len(events) or any(one.issue is not None for one in events):
        return False
    if any(one.proxy is not Proxy.GENERIC or aliased(one) for one in labels):
        return False
    places = [run.threads[one.thread].place for one in events]
    if len({place.cta_id for place in places}) == 1:
        return True
    if all(label.scope in WIDE for label in labels):
        return True
    same = len({place.cluster for place in places}) == 1 and places[0].cluster is not None
    return same and all(label.scope in (*WIDE, Scope.CLUSTER) for label in labels)


def observe(loops_: Iterable[CounterLoop], seen: Callable[[CounterLoop], Sequence[TraceEvent]]) -> None:
    """Make the last reads of loops read from these arrivals, and the others from nowhere."""
    for one in loops_:
        arrivals = seen(one)
        for read in one.reads[:-1]:
            read.source = None
        last = one.reads[-1]
        last.source = arrivals[-1] if arrivals else None
        last.observed = tuple(arrivals[:-1])


def reads_nothing(arrivals: Iterable[TraceEvent], chosen: frozenset[int]) -> None:
    """What an arrival finds is not the same in every execution, and nothing depends on it but where it is `chosen`."""
    for one in arrivals:
        if one.partner is not None and one.at not in chosen:
            one.partner.source = None
