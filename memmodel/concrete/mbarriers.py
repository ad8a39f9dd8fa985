"""Counting on mbarrier objects, exactly.

In: the operations on one object that run, by event number. Out: every order of its updates, walked update by update;
what each test may see; the relations and sets that follow. docs/executions.md, "mbarrier objects", defines all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memmodel.base.labels import Action, layout_of
from memmodel.base.lives import in_life
from memmodel.concrete.meter import STEP, Meter
from memmodel.concrete.records import ObjectRecord
from memmodel.errors import InternalError
from memmodel.memory.bytes import Cell
from memmodel.program.automata import MbarrierCounts

START = -1
"""The life of an object that no init has begun."""

View = tuple[int, int]
"""What a test sees: the life that the object is in (the event of its init, or START), and how many phases are over."""

Views = dict[int, View]


@dataclass(frozen=True, slots=True)
class ObjectUse:
    """One operation of an execution on an object.

    `order`: its place in program order; for a signal, the place of its issue.
    """

    event: int
    thread: int
    order: int
    signal: bool
    record: ObjectRecord

    def precedes(self, other: ObjectUse) -> bool:
        """True if the thread puts this operation before the other one: in program order, or before a signal's issue."""
        return self.thread == other.thread and not self.signal and self.order < other.order


@dataclass(frozen=True, slots=True)
class ObjectWalk:
    """One order of the updates of an object, with the counts before each and after all."""

    order: tuple[ObjectUse, ...]
    counts: tuple[MbarrierCounts, ...]
    bad_events: frozenset[int] = frozenset()

    def extended(self, use: ObjectUse) -> ObjectWalk | None:
        """One more update. None if the object would answer otherwise than this run assumed; invalid, it answers 0."""
        now, wanted = self.counts[-1], use.record
        over, pending = (in_life(now.number, now.over), now.pending) if now.live else (0, 0)
        if wanted.result not in (None, over) or wanted.pending not in (None, pending):
            return None
        after, bad = now.after(
            wanted.action,
            wanted.count,
            wanted.bytes,
            drop=wanted.drop,
            no_complete=wanted.no_complete,
            life=use.event,
            layout=layout_of(wanted.label),
        )
        bad_events = self.bad_events | {use.event} if bad else self.bad_events
        return ObjectWalk((*self.order, use), (*self.counts, after), bad_events)

    def has_effect(self, number: int) -> bool:
        """True if update `number` of the order changed anything."""
        return self.order[number].record.action is Action.INIT or self.counts[number].live

    def failures(self, view: View) -> int:
        """The number of phases, of those that a test sees over, in which an operation failed."""
        life, over = view
        before = zip(self.order, self.counts, strict=False)
        return len({now.over for use, now in before if use.record.failed and now.life == life and now.over < over})

    def state_number(self, view: View) -> int:
        """The state that an arrive returns in the phase that a test sees (`base.lives`)."""
        life, over = view
        return in_life(next(max(0, counts.number) for counts in self.counts if counts.life == life), over)


class MbarrierUses:
    """One mbarrier object in one execution.

    `waiting`: the tests with which a thread waits for ever. They see the last state of the object.
    """

    def __init__(self, cell: Cell, uses: Sequence[ObjectUse], waiting: frozenset[int] = frozenset()) -> None:
        self.cell = cell
        self._waiting = waiting
        self.updates = [use for use in uses if use.record.updates]
        self.tests = [use for use in uses if not use.record.updates]
        declared = cell.instance.arrivals
        start = MbarrierCounts()
        if declared is not None:
            start, _ = start.after(Action.INIT, declared, life=START)
        self._start = ObjectWalk((), (start,))
        inits = [use for use in self.updates if use.record.action is Action.INIT]
        self._single_init = inits[0] if len(inits) == 1 and declared is None else None
        self._never_initialised = declared is None and not inits
        self._before = {
            use.event: frozenset(other.event for other in self.updates if self.precedes(other, use))
            for use in self.updates
        }

    def precedes(self, first: ObjectUse, second: ObjectUse) -> bool:
        """True if the first update comes before the second in every order. A single init comes before all updates that
        its own thread does not put before it."""
        if self._single_init is not None and first is self._single_init and first is not second:
            return not second.precedes(first)
        return first.precedes(second)

    # ---- orders --------------------------------------------------------------------------------------------

    def walk(self, order: Sequence[int]) -> ObjectWalk | None:
        """The updates in a given order of event numbers; None if that is no order they can have."""
        uses = {use.event: use for use in self.updates}
        if sorted(order) != sorted(uses):
            return None
        walk: ObjectWalk | None = self._start
        done: set[int] = set()
        for event in order:
            if walk is None or not self._before[event] <= done:
                return None
            walk = walk.extended(uses[event])
            done.add(event)
        return walk

    def walks(self, meter: Meter) -> Iterator[ObjectWalk]:
        """Every order of the updates, in which each answers as this run assumed."""
        return self._continue(self._start, frozenset(), meter)

    def possible(self, meter: Meter) -> bool:
        """True if in some order the tests can see states in which every answer is as this run assumed."""
        return any(True for walk in self.walks(meter) for _ in self.possible_views(walk))

    def _continue(self, walk: ObjectWalk, done: frozenset[int], meter: Meter) -> Iterator[ObjectWalk]:
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

    def can_have_seen(self, walk: ObjectWalk, seen: Mapping[int, View]) -> bool:
        """True if the tests can have seen this, and yield what this run assumed."""
        return any(
            all(views[test.event] == seen.get(test.event) for test in self.tests) for views in self.possible_views(walk)
        )

    def possible_views(self, walk: ObjectWalk) -> Iterator[Views]:
        """Everything that the tests may see, along the order in which their threads make them."""
        lives = [START, *(use.event for use in walk.order if use.record.action is Action.INIT)]
        options = [[view for view in self._views(walk, test) if self._answers(walk, test, view)] for test in self.tests]

        def extend(number: int, seen: Views) -> Iterator[Views]:
            if number == len(self.tests):
                yield dict(seen)
                return
            test = self.tests[number]
            for view in options[number]:
                place = (lives.index(view[0]), view[1])
                earlier = [seen[other.event] for other in self.tests[:number] if other.precedes(test)]
                if all((lives.index(life), over) <= place for life, over in earlier):
                    seen[test.event] = view
                    yield from extend(number + 1, seen)
                    del seen[test.event]

        return extend(0, {})

    def _answers(self, walk: ObjectWalk, test: ObjectUse, view: View) -> bool:
        over = view[1] if test.record.state is None else walk.state_number(view)
        over -= walk.failures(view) if test.record.conditional else 0
        return test.record.answer(over) == test.record.result

    def _views(self, walk: ObjectWalk, test: ObjectUse) -> list[View]:
        """The states that a test can see: those that respect program order between the test and its thread's updates.

        If the thread waits for ever at the test, the test sees the last state.
        """
        low, high = 0, len(walk.order)
        for number, update in enumerate(walk.order):
            if not walk.has_effect(number) or update.record.action is Action.INVAL:
                continue
            first = self._single_init is not None and update is self._single_init and not test.precedes(update)
            if update.precedes(test) or first:
                low = max(low, number + 1)
            elif test.precedes(update):
                high = min(high, number)
        if test.event in self._waiting:
            low = max(low, len(walk.order))
        return list(dict.fromkeys((counts.life, counts.over) for counts in walk.counts[low : high + 1]))

    def missing(self, walk: ObjectWalk, test: ObjectRecord | None = None) -> str:
        """What the phase that the object ends in still needs, for a test that never succeeds."""
        last = walk.counts[-1]
        failures = walk.failures((last.life, last.over)) if test is not None and test.conditional else 0
        if failures:
            return f"conditional phase {last.over - failures}: an operation failed, so that it does not end"
        if self._never_initialised:
            return "is never initialised"
        if not last.live:
            return f"phase {last.over}: the object is no longer valid"
        in_last_phase = [(counts.life, counts.over) == (last.life, last.over) for counts in walk.counts]
        begun = next(
            counts for counts, in_phase in zip(walk.counts, in_last_phase, strict=True) if in_phase and counts.live
        )
        updates = [
            use.record for number, use in enumerate(walk.order) if walk.has_effect(number) and in_last_phase[number]
        ]
        raised = sum(record.count for record in updates if record.action is Action.PENDING)
        came = sum(record.bytes for record in updates if record.action is Action.COMPLETE_TX)
        needed = sum(record.bytes for record in updates if record.action in (Action.ARRIVE, Action.EXPECT_TX))
        total = begun.pending + raised
        text = f"phase {last.over}: {total - last.pending} of {total} arrivals"
        return f"{text}, {came} of {needed} bytes" if came or needed else text

    def walk_of(self, mbar: Sequence[int]) -> ObjectWalk:
        """The order of the updates that `mbar`, as rows, describes."""
        walk = self.walk(sorted((use.event for use in self.updates), key=lambda event: -mbar[event].bit_count()))
        if walk is None:
            raise InternalError(f"mbar gives no order of the operations on {self.cell}")
        return walk

    # ---- what follows --------------------------------------------------------------------------------------

    def bad_events(self, walk: ObjectWalk, seen: Views) -> Iterator[int]:
        """Events that break the object's rules, or use it before it is initialised or when it is no more."""
        yield from walk.bad_events
        for test in self.tests:
            life, _ = seen[test.event]
            ended = [
                use
                for number, use in enumerate(walk.order)
                if use.record.action is Action.INVAL and walk.counts[number].life == life and use.precedes(test)
            ]
            if ended or (life == START and self.cell.instance.arrivals is None):
                yield test.event


@dataclass(slots=True)
class Observed:
    """The base relations and base sets of cat that the orders chosen for all objects give: pairs of event numbers, and
    masks of events.
    """

    mbar: list[tuple[int, int]]
    mbarobs: list[tuple[int, int]]
    mbarseen: list[tuple[int, int]]
    mbarfr: list[tuple[int, int]]
    mbarnext: list[tuple[int, int]]
    mbarended: list[tuple[int, int]]
    mbbad: int = 0
    mbstale: int = 0
    mblater: int = 0


def observe(chosen: Iterable[tuple[MbarrierUses, ObjectWalk, Views]]) -> Observed:
    """The relations and sets of the orders and sightings chosen."""
    observed = Observed([], [], [], [], [], [])
    for uses, walk, seen in chosen:
        order = [use.event for use in walk.order]
        observed.mbar += [(first, second) for number, first in enumerate(order) for second in order[number + 1 :]]
        for event in uses.bad_events(walk, seen):
            observed.mbbad |= 1 << event
        for number, use in enumerate(walk.order):
            before = walk.counts[number]
            counts = use.record.action not in (Action.INIT, Action.INVAL) and before.live
            observed.mblater |= (counts and before.over > 0) << use.event
        for test in uses.tests:
            _relate(observed, walk, test, seen[test.event])
    return observed


def _relate(observed: Observed, walk: ObjectWalk, test: ObjectUse, view: View) -> None:
    """What one test observes, and what comes after it."""
    life, over = view
    lives = [START, *(use.event for use in walk.order if use.record.action is Action.INIT)]
    if test.record.state is not None and walk.state_number(view) - test.record.state > 1:
        observed.mbstale |= 1 << test.event
    # The conditional phase lags behind once an operation has failed: such a test does not say which phases are over.
    sees = test.record.result and not (test.record.conditional and walk.failures(view))
    for number, use in enumerate(walk.order):
        if not walk.has_effect(number) or use.record.action is Action.INVAL:
            continue
        before, after = walk.counts[number], walk.counts[number + 1]
        init = use.record.action is Action.INIT
        mine = after.life == life
        if mine and (over > 0 if init else before.over < over):
            observed.mbarseen.append((use.event, test.event))
            if sees:
                observed.mbarobs.append((use.event, test.event))
        if sees and mine and not init and before.over == over - 1:
            observed.mbarended.append((use.event, test.event))
        if sees and mine and not init and before.over == over:
            observed.mbarnext.append((test.event, use.event))
        if (mine and not init and after.over > over) or lives.index(after.life) > lives.index(life):
            observed.mbarfr.append((test.event, use.event))


def observations(objects: Sequence[MbarrierUses], meter: Meter) -> Iterator[Observed]:
    """Every choice of orders and sightings for all objects."""

    def extend(number: int, chosen: tuple[tuple[MbarrierUses, ObjectWalk, Views], ...]) -> Iterator[Observed]:
        if number == len(objects):
            yield observe(chosen)
            return
        uses = objects[number]
        for walk in uses.walks(meter):
            for seen in uses.possible_views(walk):
                yield from extend(number + 1, (*chosen, (uses, walk, seen)))

    if all(uses.possible(meter) for uses in objects):
        yield from extend(0, ())
