"""The polling loops of a launch that are waits in every execution.

In: the loads that poll, runs. Out: `SettledWaits`. Settled here: every loop that may be a wait is assumed to be one. A
loop of which the resulting order does not show it is dropped, until the order shows it of all loops that are left. The
arrivals that the loop of a counter observes are found in the same way: first all that it read in the run, then those
that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memmodel.base.labels import Side, side_of
from memmodel.cat.syntax import Model
from memmodel.kernel.executions.counters import CounterLoop, Rivals, loops, observe, reads_nothing, remembered
from memmodel.kernel.executions.polls import Polls, Turn, sure
from memmodel.kernel.flow.rounds import read_inside
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.last_writes import CausalOrder
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction

ROUNDS = 8
"""Attempts to find what loops need, beyond one for each loop, before they are given up."""

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
        waits, needed, order = set(self.counters), Needed(), remembered(order)
        rivals: dict[int, Rivals] = {}
        for load, counter_loops in self.counters.items():
            for key, loop in _keys(counter_loops):
                place = loop.place
                if id(place) not in rivals:
                    rivals[id(place)] = Rivals(place.arrivals, order)
                observed = loop.sure(order, rivals[id(place)], polls, run)
                if observed is None:
                    waits.discard(load)
                    break
                keys = _arrival_keys(loop.place.arrivals)
                needed[key] = frozenset(keys[id(arrival)] for arrival in observed)
        return frozenset(waits), {key: arrivals for key, arrivals in needed.items() if key[0] in waits}


@dataclass(frozen=True, slots=True)
class SettledWaits:
    """The waits of a launch: loads that poll for the only write (`single`), for one of several, for a counter.

    `counted`: atomic operations at these counters, and nowhere else. `unseen`: those of them whose results only these
    loops look at, which end alike whatever the results are. `needed`: the arrivals that each loop of a counter needs.
    """

    entry: PtxFunction = field(compare=False)
    model: Model = field(compare=False)
    polls: Polls = field(compare=False)
    single: frozenset[int] = frozenset()
    turning: frozenset[int] = frozenset()
    counting: frozenset[int] = frozenset()
    counted: frozenset[int] = frozenset()
    unseen: frozenset[int] = frozenset()
    needed: Needed | None = None

    @property
    def loads(self) -> frozenset[int]:
        return self.single | self.turning | self.counting

    def prepare(self, run: LaunchTrace, chosen: frozenset[int] = frozenset()) -> Polled:
        """Let the reads of a run observe what they do in every execution. `chosen`: the run depends on these."""
        turns = self.polls.turns(run, self.turning) if self.turning else {}
        counters: dict[int, list[CounterLoop]] = {}
        if self.counting:
            by_load = loops(run, self.polls, self.entry.body or ())
            counters = {load: counter_loops for load, counter_loops in by_load.items() if load in self.counting}
        observed = {
            id(loop): self._observed(key, loop)
            for counter_loops in counters.values()
            for key, loop in _keys(counter_loops)
        }
        read_elsewhere = _read_by(run, (chosen | self.loads) - self.counting) if counters else frozenset()
        for counter_loops in counters.values():
            observe(counter_loops, lambda loop: observed[id(loop)])
            for loop in counter_loops:
                last = loop.reads[-1]
                if (last.block, last.first) not in read_elsewhere:
                    reads_nothing(loop.place.arrivals, chosen)
        return Polled(turns, counters)

    def hold(self, run: LaunchTrace, polled: Polled, judge: RunJudge) -> bool:
        """True if all these loops are waits in another run. `polled`: what `prepare` made of the run."""
        polling = {number for kind, number in run.choices if kind is ChoiceKind.LOAD}
        open_ = (self.turning | self.counting) & polling
        if not open_:
            return True
        order = judge.order(self.model)
        counting, needed = polled.waits(order, self.polls, run)
        same = all((self.needed or {}).get(key) == arrivals for key, arrivals in needed.items())
        return same and open_ <= self.polls.single(run) | sure(polled.turns, order) | counting

    def _observed(self, key: LoopKey, loop: CounterLoop) -> Sequence[TraceEvent]:
        if self.needed is None:
            return loop.read
        wanted, keys = self.needed.get(key, frozenset()), _arrival_keys(loop.place.arrivals)
        return [arrival for arrival in loop.place.arrivals if keys[id(arrival)] in wanted]


def settled_waits(
    entry: PtxFunction, model: Model, polls: Polls, run: LaunchTrace, rerun: Callable[[], LaunchTrace]
) -> SettledWaits:
    """The waits of a launch. `rerun`: runs the launch once more under the same schedule."""
    waits = SettledWaits(entry, model, polls, polls.single(run))
    counters = frozenset(loops(run, polls, entry.body or ()))
    candidates = (frozenset(polls.turns(run)) | counters) - waits.single
    waits = _settled(replace(waits, turning=candidates), rerun)
    if counters - waits.loads:
        counting = counters - waits.loads
        waits = _settled(replace(waits, counting=counting, turning=candidates - counting), rerun)
    return _with_arrivals(waits, rerun()) if waits.counting else waits


def _settled(waits: SettledWaits, rerun: Callable[[], LaunchTrace]) -> SettledWaits:
    """The assumed waits without those that the causality order does not show to be waits."""
    for _ in range(ROUNDS + len(waits.turning | waits.counting)):
        if not waits.turning | waits.counting:
            return waits
        run = rerun()
        polled = waits.prepare(run)
        order = RunJudge(waits.entry, demote_unobserved(run, waits.loads), waits.loads).order(waits.model)
        turning = sure(polled.turns, order)
        counting, needed = polled.waits(order, waits.polls, run)
        shown = replace(waits, turning=turning, counting=counting, needed=needed if waits.counting else None)
        if shown == waits:
            return waits
        waits = shown
    return replace(waits, turning=frozenset(), counting=frozenset())


def _with_arrivals(waits: SettledWaits, run: LaunchTrace) -> SettledWaits:
    """With the atomic operations whose places are all polled by loops of counters that are waits."""
    by_load = loops(run, waits.polls, waits.entry.body or ())
    counter_loops = [loop for load in sorted(waits.counting) for loop in by_load.get(load, ())]
    polled = {id(arrival) for loop in counter_loops for arrival in loop.place.arrivals}
    operations = [operation for events in run.atomics.values() for operation in events]
    writes = ((operation.at, operation.partner) for operation in operations)
    elsewhere = {at for at, write in writes if write is None or id(write) not in polled}
    counted = frozenset(operation.at for operation in operations) - elsewhere
    slots = {at: slot for loop in counter_loops for at, slot in loop.place.slots.items() if at in counted}
    unseen = frozenset(
        at for at, slot in slots.items() if any(_read_inside(waits, slot, loop) for loop in counter_loops)
    )
    return replace(waits, counted=counted, unseen=unseen)


def _read_inside(waits: SettledWaits, slot: int, loop: CounterLoop) -> bool:
    """True if a register is read in a loop alone."""
    read = loop.reads[-1]
    left = (arrival.bits.number(8 * arrival.size) for arrival in loop.place.arrivals if arrival.bits is not None)
    values = [
        value for value in (loop.place.initial, *left) if value is not None and waits.polls.leads_back(read, value)
    ]
    return bool(values) and read_inside(waits.entry, slot, loop.load, values[0], read.known)


def _read_by(run: LaunchTrace, loads: frozenset[int]) -> frozenset[tuple[object, int]]:
    """The places that some loads read."""
    events = (event for thread in run.threads for event in thread.strong() if event.at in loads)
    return frozenset((event.block, event.first) for event in events if side_of(event.label) is Side.READ)


def _keys(counter_loops: Iterable[CounterLoop]) -> list[tuple[LoopKey, CounterLoop]]:
    left: Counter[tuple[int, int]] = Counter()
    keyed = []
    for loop in counter_loops:
        thread = loop.reads[-1].thread
        keyed.append(((loop.load, thread, left[loop.load, thread]), loop))
        left[loop.load, thread] += 1
    return keyed


def _arrival_keys(arrivals: Iterable[TraceEvent]) -> dict[int, ArrivalKey]:
    counts: Counter[tuple[int, int]] = Counter()
    keys = {}
    for arrival in arrivals:
        keys[id(arrival)] = (arrival.thread, arrival.at, counts[arrival.thread, arrival.at])
        counts[arrival.thread, arrival.at] += 1
    return keys
