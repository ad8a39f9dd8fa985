"""Loops that poll a counter: which of them end in every execution, and the arrivals that they observe then.

In: LaunchTrace, the loads that poll. Out: `CounterLoop`s, and of each the arrivals that it has observed whenever it
ends. Settled here: a word that threads change by atomic operations of one kind that commute holds, after each of them,
its first value joined with the operands so far. Causality decides which operations these may be.
docs/kernels-theorem.md, "Counters", has the argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from memmodel.base.labels import is_atomic
from memmodel.isa.lowered import lowered
from memmodel.kernel.executions.decisions import strong_together
from memmodel.kernel.executions.polls import PolledWrite, Polls
from memmodel.kernel.flow.known_values import Known
from memmodel.kernel.order.last_writes import CausalOrder, commuting, is_integer
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.arith import operation
from memmodel.ptx.module.syntax import PtxInstruction

MOST_SUMS, MOST_LAYERS = 4_096, 16
"""Values of a counter that are looked at, and layers of arrivals that may come before a loop ends."""

Joined = Callable[[int, int], int]


class CounterPlace(NamedTuple):
    """A word that atomic operations of one kind change. `arrivals`: their writes, in the order of the run. `stores`:
    other writes. `joined`: what the operations compute. `initial`: the value before the launch. `slots`: by the
    instruction of an arrival the register of its result, if nothing else writes that.
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
        return next((arrivals[: n + 1] for n, arrival in enumerate(arrivals) if arrival is source), ())

    def sure(self, order: CausalOrder, rivals: Rivals, polls: Polls, run: LaunchTrace) -> tuple[TraceEvent, ...] | None:
        """The arrivals that the loop has observed whenever it ends; None if it may end otherwise, or not at all.
        `rivals`: of the arrivals at its counter.

        Of the arrivals that may come before its end or after it, some are `needed`, and the others come after all of
        these: with some of the needed ones missing the loop continues, and with all of them it ends, however many of
        the others have come.
        """
        start = self._start(order)
        if start is None:
            return None
        base, arrivals = start
        first, last = self.reads[0], self.reads[-1]
        before = [arrival for arrival in arrivals if order.ahead(arrival, first)]
        known = {id(arrival) for arrival in before}
        free = [arrival for arrival in arrivals if id(arrival) not in known and not order.before(last, arrival)]
        if not strong_together([*before, *free, last], run):
            return None
        for arrival in before:
            base = self.place.joined(base, arrival.given or 0)
        layers, answers = _layers(free, rivals), self.answers(order)
        for count in range(len(layers) + 1 if layers is not None else 0):
            needed = [arrival for layer in (layers or ())[:count] for arrival in layer]
            others = [arrival for layer in (layers or ())[count:] for arrival in layer]
            later = all(order.before(arrival, other) for arrival in needed for other in others)
            if later and answers is not None and self._ends(base, needed, others, polls, answers):
                return (*before, *needed)
        return None

    def answers(self, order: CausalOrder) -> list[Known] | None:
        """The values that registers around the loop may have, where they hold results of arrivals of its thread."""
        last = self.reads[-1]
        mine = {
            self.place.slots[arrival.at]: arrival
            for arrival in self.place.arrivals
            if arrival.thread == last.thread
            and arrival.at in self.place.slots
            and (arrival.order or 0) < (self.reads[0].order or 0)
        }
        answers = [dict(last.known)]
        for slot in sorted(mine.keys() & answers[0].keys()):
            results = self._results(mine[slot], order)
            if results is None or len(results) * len(answers) > MOST_SUMS:
                return None
            answers = [{**known, slot: value} for known in answers for value in sorted(results)]
        return [tuple(sorted(known.items())) for known in answers]

    def _results(self, arrival: TraceEvent, order: CausalOrder) -> set[int] | None:
        """The old values that an arrival may read: after the arrivals that precede it in causality, and any of those
        that do not follow it.
        """
        if arrival.partner is None or (start := self._start(order, (arrival.partner, arrival))) is None:
            return None
        base, arrivals = start
        before = [each for each in arrivals if order.ahead(each, arrival.partner)]
        known = {id(arrival), *map(id, before)}
        free = [each for each in arrivals if id(each) not in known and not order.before(arrival, each)]
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
        for store in self.place.stores:
            event = store.event
            if event is None:
                return None
            if order.ahead(event, first):
                past.append((event, store.value))
            elif not order.before(last, event):
                return None
            for arrival in self.place.arrivals:
                if not order.before(event, arrival) and not order.before(arrival, event):
                    return None
        if not past:
            return None if self.place.initial is None else (self.place.initial, list(self.place.arrivals))
        latest = [
            (store, value)
            for store, value in past
            if all(store is other or order.before(other, store) for other, _ in past)
        ]
        if len(latest) != 1 or latest[0][1] is None:
            return None
        return latest[0][1], [arrival for arrival in self.place.arrivals if order.before(latest[0][0], arrival)]

    def _ends(
        self, base: int, needed: Sequence[TraceEvent], others: Sequence[TraceEvent], polls: Polls, answers: list[Known]
    ) -> bool:
        """True if the loop continues while some of the needed arrivals are missing, and ends in one way with all."""
        joined, event = self.place.joined, self.reads[-1]
        counts = Counter(arrival.given or 0 for arrival in needed)
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
        ends = _sums(base, Counter(arrival.given or 0 for arrival in others), joined)
        if ends is None or len(on) * len(answers) > MOST_SUMS:
            return False
        for known in answers:
            if not all(polls.leads_back(event, arrival, known) for arrival in on) or any(
                polls.leads_back(event, arrival, known) for arrival in ends
            ):
                return False
            if (len(ends) > 1 or len(answers) > 1) and not polls.ends_alike(event, on, ends, known):
                return False
        return True


def loops(run: LaunchTrace, polls: Polls, body: Sequence[PtxInstruction]) -> dict[int, list[CounterLoop]]:
    """The loops of each load that polls counters alone."""
    by_load: dict[int, list[CounterLoop]] = {}
    places: dict[object, CounterPlace | None] = {}
    for number, waits in polls.polled(run).items():
        ended: list[CounterLoop] = []
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
            if not polls.leads_back(event, event.number):
                ended.append(CounterLoop(number, tuple(reads), place))
                reads.clear()
        else:
            if ended and not any(polled.values()):
                by_load[number] = ended
    return by_load


def _place(
    event: TraceEvent, writes: Sequence[PolledWrite], run: LaunchTrace, polls: Polls, body: Sequence[PtxInstruction]
) -> CounterPlace | None:
    """The counter that a load polls; None if the word is no counter."""
    if event.block is None:
        return None
    operations = run.atomics.get((event.block, event.first), [])
    arrivals = tuple(operation.partner for operation in operations if operation.partner is not None)
    stores = tuple(
        write
        for write in writes
        if write.event is None or isinstance(write.event, WeakAccess) or not is_atomic(write.event.label)
    )
    kinds = {commuting(body[atomic.at]) for atomic in operations}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    joined = operation(*kind) if kind is not None and is_integer(kind) else None
    counted = len(arrivals) == len(operations) == len(writes) - len(stores)
    known = all(arrival.given is not None for arrival in arrivals)
    whole = all((write.first, write.size) == (event.first, event.size) for write in writes)
    if not arrivals or joined is None or not counted or not known or not whole:
        return None
    initial = polls.initial(event.block, event.first, event.size)
    writers = Counter(slot for instruction in body for slot in lowered(instruction).writes)
    elsewhere = {
        operation.at
        for place, operations_there in run.atomics.items()
        if place != (event.block, event.first)
        for operation in operations_there
    }
    results = {atomic.at: lowered(body[atomic.at]).writes for atomic in operations}
    slots = {
        at: result[0]
        for at, result in results.items()
        if len(result) == 1 and writers[result[0]] == 1 and at not in elsewhere
    }
    return CounterPlace(arrivals, stores, lambda value, operand: joined(value, operand) or 0, initial, slots)


def remembered(order: CausalOrder) -> CausalOrder:
    """The same order, which remembers its answers."""
    known: dict[tuple[int, int], bool] = {}

    def before(first: TraceEvent | WeakAccess, second: TraceEvent | WeakAccess) -> bool:
        key = id(first), id(second)
        answer = known.get(key)
        if answer is None:
            answer = known[key] = order.before(first, second)
        return answer

    return order._replace(before=before)


class Rivals:
    """Which of some arrivals precede one of them. Asked once for all loops at a counter: no two arrivals are compared
    more than once.
    """

    def __init__(self, arrivals: Sequence[TraceEvent], order: CausalOrder) -> None:
        self._arrivals, self._order = arrivals, order
        self._known: dict[int, tuple[set[int], Iterator[int]]] = {}

    def precede(self, arrival: TraceEvent, among: AbstractSet[int]) -> bool:
        """True if one of these does, by their ids."""
        if id(arrival) not in self._known:
            self._known[id(arrival)] = set(), self._before(arrival)
        found, more = self._known[id(arrival)]
        if not found.isdisjoint(among):
            return True
        for rival in more:
            found.add(rival)
            if rival in among:
                return True
        return False

    def _before(self, arrival: TraceEvent) -> Iterator[int]:
        before = self._order.before
        return (id(rival) for rival in self._arrivals if rival is not arrival and before(rival, arrival))


def _layers(free: Sequence[TraceEvent], rivals: Rivals) -> list[list[TraceEvent]] | None:
    """Arrivals in layers, each after some of the layer before; None if there are too many."""
    left, layers = list(free), list[list[TraceEvent]]()
    while left and len(layers) < MOST_LAYERS:
        among = set(map(id, left))
        layer = [arrival for arrival in left if not rivals.precede(arrival, among)]
        if not layer:
            return None
        layers.append(layer)
        taken = set(map(id, layer))
        left = [arrival for arrival in left if id(arrival) not in taken]
    return None if left else layers


def _sums(base: int, counts: Counter[int], joined: Joined) -> set[int] | None:
    """The values of `base` joined with any of some numbers; None if these are too many."""
    sums = {base}
    for number, many in counts.items():
        new = sums
        for _ in range(many):  # of the values before, those joined with it are known
            new = {joined(value, number) for value in new} - sums
            if not new:
                break
            sums |= new
            if len(sums) > MOST_SUMS:
                return None
    return sums


def observe(loops_: Iterable[CounterLoop], seen: Callable[[CounterLoop], Sequence[TraceEvent]]) -> None:
    """Make the last read of each loop observe these arrivals, and remove the sources of the others."""
    for loop in loops_:
        arrivals = seen(loop)
        for read in loop.reads[:-1]:
            read.source = None
        last = loop.reads[-1]
        last.source = arrivals[-1] if arrivals else None
        last.observed = tuple(arrivals[:-1])


def reads_nothing(arrivals: Iterable[TraceEvent], chosen: frozenset[int]) -> None:
    """Remove the sources of arrivals: they differ between executions, and nothing depends on them unless `chosen`."""
    for arrival in arrivals:
        if arrival.partner is not None and arrival.at not in chosen:
            arrival.partner.source = None
