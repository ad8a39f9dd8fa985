"""Which polling loops of a launch are waits in every execution.

In: the loads that poll, runs. Out: `SettledWaits`. Settled here: all that may be waits are taken for such first, and
those of which the order that they give does not show it are taken out, until the rest shows itself. The arrivals that
the loop of a counter observes are found in the same way: first all that it read in the run, then those that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from memmodel.base.labels import Access, Side
from memmodel.cat.syntax import Model
from memmodel.kernel.executions.counters import CounterLoop, loops, observe, reads_nothing, remembered
from memmodel.kernel.flow.rounds import read_inside
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.polled_words import CausalOrder, Polls, Turn, sure
from memmodel.kernel.order.unobserved_atomics import hushed
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction

ROUNDS = 8
"""So often what loops need is looked for again, before it is given up."""

LoopKey = tuple[int, int, int]
"""A loop in runs that do the same up to it: its load, the thread, how many loops of that load it had left before."""

ArrivalKey = tuple[int, int, int]
"""An atomic operation: the thread, the instruction, how many it had made with it at this place."""

Needed = dict[LoopKey, frozenset[ArrivalKey]]


class Polled(NamedTuple):
    """The loops of one run that may be waits: those for one write of several, those for a counter."""

    turns: dict[int, list[Turn]]
    counters: dict[int, list[CounterLoop]]

    def waits(self, order: CausalOrder, polls: Polls, run: LaunchTrace) -> tuple[frozenset[int], Needed]:
        """The loads of counters of which every loop is a wait, and what each loop needs."""
        found, needed, order = set(self.counters), Needed(), remembered(order)
        for load, many in self.counters.items():
            for key, one in _keys(many):
                seen = one.sure(order, polls, run)
                if seen is None:
                    found.discard(load)
                    break
                keys = _arrivals(one.place.arrivals)
                needed[key] = frozenset(keys[id(arrival)] for arrival in seen)
        return frozenset(found), {key: one for key, one in needed.items() if key[0] in found}


class SettledWaits:
    """The waits of a launch: loads that poll for the only write (`single`), for one of several, for a counter."""

    def __init__(self, entry: PtxFunction, model: Model, polls: Polls) -> None:
        self._entry, self._model, self.polls = entry, model, polls
        self.single: frozenset[int] = frozenset()
        self.turning: frozenset[int] = frozenset()
        self.counting: frozenset[int] = frozenset()
        self.counted: frozenset[int] = frozenset()
        """Atomic operations at these counters, and nowhere else."""
        self.told: frozenset[int] = frozenset()
        """Those of them whose results are looked at in these loops alone, which end the same whatever these are."""
        self._needed: Needed | None = None

    @property
    def loads(self) -> frozenset[int]:
        return self.single | self.turning | self.counting

    def look(self, run: LaunchTrace, again: Callable[[], LaunchTrace]) -> None:
        """Find them. `again`: the run once more."""
        self.single = self.polls.single(run)
        counters = frozenset(loops(run, self.polls, self._entry.body or ()))
        all_ = (frozenset(self.polls.turns(run)) | counters) - self.single
        self.turning = all_
        self._settle(again)
        if counters - self.loads:
            self.counting = counters - self.loads
            self.turning = all_ - self.counting
            self._settle(again)
        if self.counting:
            self._arrivals(again())

    def _settle(self, again: Callable[[], LaunchTrace]) -> None:
        for _ in range(ROUNDS + len(self.turning | self.counting)):
            if not self.turning | self.counting:
                return
            fresh = again()
            polled = self.prepare(fresh)
            made = RunJudge(self._entry, hushed(fresh, self.loads), self.loads)
            order = made.order(self._model)
            turning = sure(polled.turns, order)
            counting, needed = polled.waits(order, self.polls, fresh)
            found = turning, counting, needed if self.counting else None
            if found == (self.turning, self.counting, self._needed):
                return
            self.turning, self.counting, self._needed = found
        self.turning = self.counting = frozenset()

    def _arrivals(self, run: LaunchTrace) -> None:
        """The atomic operations whose places are all polled by loops of counters that are waits."""
        found = loops(run, self.polls, self._entry.body or ())
        waits = [loop for load in sorted(self.counting) for loop in found.get(load, ())]
        mine = {id(one) for loop in waits for one in loop.place.arrivals}
        made = [one for events in run.atomics.values() for one in events]
        others = {one.at for one in made if one.partner is None or id(one.partner) not in mine}
        self.counted = frozenset(one.at for one in made) - others
        slots = {at: slot for loop in waits for at, slot in loop.place.slots.items() if at in self.counted}
        self.told = frozenset(at for at, slot in slots.items() if any(self._inside(slot, loop) for loop in waits))

    def _inside(self, slot: int, loop: CounterLoop) -> bool:
        """Is a register looked at in a loop alone?"""
        event = loop.reads[-1]
        left = (one.bits.whole(8 * one.size) for one in loop.place.arrivals if one.bits is not None)
        values = [
            value for value in (loop.place.initial, *left) if value is not None and self.polls.again(event, value)
        ]
        return bool(values) and read_inside(self._entry, slot, loop.load, values[0], event.known)

    def prepare(self, run: LaunchTrace, chosen: frozenset[int] = frozenset()) -> Polled:
        """Let the reads of a run observe what they do in every execution. `chosen`: the run depends on these."""
        turns = self.polls.turns(run, self.turning) if self.turning else {}
        counters: dict[int, list[CounterLoop]] = {}
        if self.counting:
            found = loops(run, self.polls, self._entry.body or ())
            counters = {load: many for load, many in found.items() if load in self.counting}
        seen = {id(loop): self._seen(key, loop) for many in counters.values() for key, loop in _keys(many)}
        others = _read_by(run, (chosen | self.loads) - self.counting) if counters else frozenset()
        for many in counters.values():
            observe(many, lambda one: seen[id(one)])
            for loop in many:
                last = loop.reads[-1]
                if (last.block, last.first) not in others:
                    reads_nothing(loop.place.arrivals, chosen)
        return Polled(turns, counters)

    def _seen(self, key: LoopKey, loop: CounterLoop) -> Sequence[TraceEvent]:
        if self._needed is None:
            return loop.read
        wanted, keys = self._needed.get(key, frozenset()), _arrivals(loop.place.arrivals)
        return [one for one in loop.place.arrivals if keys[id(one)] in wanted]

    def hold(self, run: LaunchTrace, polled: Polled, made: RunJudge) -> bool:
        """Are all of them waits in this run too, which was prepared and made ready?"""
        met = {number for what, number in run.choices if what == "load"}
        later = (self.turning | self.counting) & met
        if not later:
            return True
        order = made.order(self._model)
        counting, needed = polled.waits(order, self.polls, run)
        same = all((self._needed or {}).get(key) == one for key, one in needed.items())
        return same and later <= self.polls.single(run) | sure(polled.turns, order) | counting


def _read_by(run: LaunchTrace, loads: frozenset[int]) -> frozenset[tuple[object, int]]:
    """The places that some loads read."""
    events = (event for thread in run.threads for event in thread.strong() if event.at in loads)
    return frozenset((event.block, event.first) for event in events if _reads(event))


def _reads(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and event.label.side is Side.READ


def _keys(many: Iterable[CounterLoop]) -> list[tuple[LoopKey, CounterLoop]]:
    left: Counter[tuple[int, int]] = Counter()
    found = []
    for one in many:
        thread = one.reads[-1].thread
        found.append(((one.load, thread, left[one.load, thread]), one))
        left[one.load, thread] += 1
    return found


def _arrivals(arrivals: Iterable[TraceEvent]) -> dict[int, ArrivalKey]:
    made: Counter[tuple[int, int]] = Counter()
    found = {}
    for one in arrivals:
        found[id(one)] = (one.thread, one.at, made[one.thread, one.at])
        made[one.thread, one.at] += 1
    return found
