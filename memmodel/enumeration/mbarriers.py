"""Counting on mbarrier objects, exactly.

In: the operations on one object that run, by event number. Out: every order of its updates, walked update by update;
what each test may see; the relations mbar, mbarobs and mbarfr and the set MBBAD that follow. docs/executions.md,
"mbarrier objects", defines all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memmodel.enumeration.meter import STEP, Meter
from memmodel.enumeration.traces import Operation
from memmodel.errors import InternalError
from memmodel.isa.memory import Location

Pairs = list[tuple[int, int]]
Seen = dict[int, int]
"""For each test, by event number, how many phases it sees as over."""


@dataclass(frozen=True, slots=True)
class Use:
    """One operation of an execution on an object. `source`: the place of its issue in the thread, for a signal."""

    event: int
    thread: int
    order: int
    source: int | None
    operation: Operation

    def precedes(self, other: Use) -> bool:
        """Does the thread put this one first: in program order, or before the issue of a signal?"""
        if self.thread != other.thread or self.source is not None:
            return False
        return self.order < (other.order if other.source is None else other.source)


@dataclass(frozen=True, slots=True)
class Counts:
    """An object between two updates. `over`: phases over. `pending`: arrivals that the phase still needs.

    `expected`: those that the next phase needs. `tx`: bytes still to come. `live`: initialised and not invalidated.
    """

    over: int = 0
    pending: int = 0
    expected: int = 0
    tx: int = 0
    live: bool = False

    def after(self, update: Operation) -> tuple[Counts, bool]:
        """The object after an update, and whether the update broke its rules."""
        if update.action == "init":
            return Counts(0, update.count, update.count, 0, True), False
        if not self.live:
            return self, True
        if update.action == "inval":
            return replace(self, live=False), False
        pending, expected, tx = self.pending, self.expected, self.tx
        if update.action == "arrive":
            tx += update.bytes
            pending -= update.count
            if update.drop:
                expected = max(0, expected - update.count)
        elif update.action == "pending":
            pending += update.count
        else:
            tx += update.bytes if update.action == "expect_tx" else -update.bytes
        bad, pending = pending < 0, max(0, pending)
        if pending == 0 and tx == 0:
            return Counts(self.over + 1, expected, expected, 0, True), bad or update.no_complete
        return Counts(self.over, pending, expected, tx, True), bad


@dataclass(frozen=True, slots=True)
class Walk:
    """One order of the updates of an object, with the counts before each and after all."""

    order: tuple[Use, ...] = ()
    counts: tuple[Counts, ...] = (Counts(),)
    bad: frozenset[int] = frozenset()

    @property
    def reloaded(self) -> int:
        """The arrivals that the last phase began with."""
        last = self.counts[-1].over
        begun = next(number for number, one in enumerate(self.counts) if one.over == last and one.live)
        return self.counts[begun].pending

    def extended(self, use: Use) -> Walk | None:
        """One more update; None if it would not answer its thread as the thread was told. No object answers 0."""
        now, wanted = self.counts[-1], use.operation
        over, pending = (now.over, now.pending) if now.live else (0, 0)
        if wanted.result not in (None, over) or wanted.pending not in (None, pending):
            return None
        after, bad = now.after(wanted)
        return Walk((*self.order, use), (*self.counts, after), self.bad | {use.event} if bad else self.bad)


class Object:
    """One mbarrier object in one execution. `declared`: the arrivals a phase that its declaration states, or None.

    `standing`: tests by which a thread waits for ever: they see the last state.
    """

    def __init__(
        self, location: Location, declared: int | None, uses: Sequence[Use], standing: frozenset[int] = frozenset()
    ) -> None:
        self.location = location
        self._standing = standing
        self.updates = [one for one in uses if one.operation.updates]
        self.tests = [one for one in uses if not one.operation.updates]
        self.inits = [one for one in self.updates if one.operation.action == "init"]
        self._start = Walk() if declared is None else Walk(counts=(Counts(0, declared, declared, 0, True),))
        self._never = declared is None and not self.inits
        self._before = {
            one.event: frozenset(other.event for other in self.updates if self.precedes(other, one))
            for one in self.updates
        }

    def precedes(self, first: Use, second: Use) -> bool:
        """Does one update come before the other in every order? Only its own thread's may come before the init."""
        if first.operation.action == "init" and first is not second:
            return not second.precedes(first)
        return first.precedes(second)

    # ---- orders --------------------------------------------------------------------------------------------

    def walk(self, order: Sequence[int]) -> Walk | None:
        """The updates in a given order of event numbers; None if that is no order they can have."""
        uses = {one.event: one for one in self.updates}
        if sorted(order) != sorted(uses):
            return None
        walk: Walk | None = self._start
        done: set[int] = set()
        for event in order:
            if walk is None or not self._before[event] <= done:
                return None
            walk = walk.extended(uses[event])
            done.add(event)
        return walk

    def chosen(self, mbar: Sequence[int]) -> Walk:
        """The order of the updates that `mbar`, as rows, describes."""
        walk = self.walk(sorted((one.event for one in self.updates), key=lambda event: -mbar[event].bit_count()))
        if walk is None:
            raise InternalError(f"mbar gives no order of the operations on {self.location}")
        return walk

    def walks(self, meter: Meter) -> Iterator[Walk]:
        """Every order of the updates, in which each answers as its thread was told."""
        return self._continue(self._start, frozenset(), meter)

    def possible(self, meter: Meter) -> bool:
        """Is there an order, and something to see in it, that answers everything as the threads were told?"""
        return any(True for walk in self.walks(meter) for _ in self.sightings(walk))

    def _continue(self, walk: Walk, done: frozenset[int], meter: Meter) -> Iterator[Walk]:
        meter.spend(STEP)
        if len(done) == len(self.updates):
            yield walk
            return
        for use in self.updates:
            if use.event not in done and self._before[use.event] <= done:
                longer = walk.extended(use)
                if longer is not None:
                    yield from self._continue(longer, done | {use.event}, meter)

    # ---- tests ---------------------------------------------------------------------------------------------

    def fits(self, walk: Walk, seen: Mapping[int, int]) -> bool:
        """Can the tests have seen these numbers of phases, and do they yield what their threads were told?"""
        last: dict[int, int] = {}
        for test in self.tests:
            least, most = self._range(walk, test)
            over = seen.get(test.event, -1)
            if not max(least, last.get(test.thread, 0)) <= over <= most:
                return False
            if test.operation.answer(over) != test.operation.result:
                return False
            last[test.thread] = over
        return True

    def sightings(self, walk: Walk) -> Iterator[Seen]:
        """Everything that the tests may see in this order, and still yield what their threads were told."""
        ranges = [self._range(walk, test) for test in self.tests]

        def extend(number: int, seen: Seen, last: Mapping[int, int]) -> Iterator[Seen]:
            if number == len(self.tests):
                yield seen
                return
            test = self.tests[number]
            least, most = ranges[number]
            for over in range(max(least, last.get(test.thread, 0)), most + 1):
                if test.operation.answer(over) == test.operation.result:
                    yield from extend(number + 1, {**seen, test.event: over}, {**last, test.thread: over})

        return extend(0, {}, {})

    def _range(self, walk: Walk, test: Use) -> tuple[int, int]:
        """The least and the greatest number of phases that a test can see, for what its own thread updates.

        After an inval there is no object whose state it could keep up with.
        """
        least, most = 0, walk.counts[-1].over
        for number, update in enumerate(walk.order):
            if update.operation.action == "inval":
                continue
            if update.precedes(test):
                least = max(least, walk.counts[number + 1].over)
            elif test.precedes(update):
                most = min(most, walk.counts[number].over)
        return (walk.counts[-1].over, most) if test.event in self._standing else (least, most)

    def missing(self, walk: Walk) -> str:
        """What the phase that the object ends in still needs."""
        last = walk.counts[-1]
        if self._never:
            return f"{self.location} is never initialised"
        if not last.live:
            return f"{self.location} phase {last.over}: the object is no longer valid"
        raised = came = needed = 0
        for number, use in enumerate(walk.order):
            if walk.counts[number].over == last.over and walk.counts[number].live:
                raised += use.operation.count if use.operation.action == "pending" else 0
                came += use.operation.bytes if use.operation.action == "complete_tx" else 0
                needed += use.operation.bytes if use.operation.action in ("arrive", "expect_tx") else 0
        total = walk.reloaded + raised
        text = f"{self.location} phase {last.over}: {total - last.pending} of {total} arrivals"
        return f"{text}, {came} of {needed} bytes" if came or needed else text

    # ---- what follows --------------------------------------------------------------------------------------

    def bad(self, walk: Walk) -> Iterator[int]:
        """Events that break the object's rules, or use it before it is initialised or when it is no more."""
        yield from walk.bad
        for test in self.tests:
            if self._never or any(
                test.precedes(one) if one.operation.action == "init" else one.precedes(test)
                for one in self.updates
                if one.operation.action in ("init", "inval")
            ):
                yield test.event


@dataclass(slots=True)
class Told:
    """What the orders chosen for all objects say: pairs of event numbers, and the events in MBBAD."""

    mbar: Pairs
    mbarobs: Pairs
    mbarfr: Pairs
    bad: int


def tell(chosen: Iterable[tuple[Object, Walk, Mapping[int, int]]]) -> Told:
    """The relations of the orders and sightings chosen."""
    told = Told([], [], [], 0)
    for one, walk, seen in chosen:
        order = [use.event for use in walk.order]
        told.mbar += [(first, second) for number, first in enumerate(order) for second in order[number + 1 :]]
        for event in one.bad(walk):
            told.bad |= 1 << event
        for test in one.tests:
            over = seen[test.event]
            for number, update in enumerate(order):
                made = walk.order[number].operation.action == "init" or walk.counts[number].live
                if test.operation.result and made and walk.counts[number].over < over:
                    told.mbarobs.append((update, test.event))
                if walk.counts[number + 1].over > over:
                    told.mbarfr.append((test.event, update))
    return told


def tellings(objects: Sequence[Object], meter: Meter) -> Iterator[Told]:
    """Every choice of orders and sightings for all objects."""

    def extend(number: int, chosen: tuple[tuple[Object, Walk, Seen], ...]) -> Iterator[Told]:
        if number == len(objects):
            yield tell(chosen)
            return
        one = objects[number]
        for walk in one.walks(meter):
            for seen in one.sightings(walk):
                yield from extend(number + 1, (*chosen, (one, walk, seen)))

    if all(one.possible(meter) for one in objects):
        yield from extend(0, ())
