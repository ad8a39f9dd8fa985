"""All runs of each thread, with every answer that some other thread could give it.

In: LoweredTest, loop bound. Out: `Problem`. The threads are run repeatedly, each time with the values that the previous
runs wrote, until no new value appears. Where the model may let a value support itself, constants of the test are values
too; then the threads are run once more with only the values that some run writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.labels import Side
from memmodel.base.relations import include
from memmodel.concrete.cutting import Cutting
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import AccessRecord, End, Trace
from memmodel.concrete.runner import Runner
from memmodel.enumeration.domains import Domains, RememberingOracle
from memmodel.enumeration.supports import dependent
from memmodel.memory.bytes import Extent, Footprint
from memmodel.memory.cells import Starts
from memmodel.program.lowered import LoweredTest
from memmodel.program.uses import asked_constants, constants
from memmodel.ptx.vocabulary import Proxy, Sem


@dataclass(frozen=True, slots=True)
class Problem:
    """A test and the runs of its threads. `complete`: those that end; `waiting`: those that wait for ever; `stopped`:
    those that go beyond the bound, or beyond what is modelled. `cutting`: memory, cut wherever any of them cuts it."""

    lowered: LoweredTest
    complete: tuple[tuple[Trace, ...], ...]
    waiting: tuple[tuple[Trace, ...], ...]
    stopped: tuple[tuple[Trace, ...], ...]
    cutting: Cutting


def prepare(
    lowered: LoweredTest,
    bound: int,
    meter: Meter,
    *,
    waits: bool,
    asked: Sequence[Extent] = (),
    grounded: bool = False,
) -> Problem:
    """The runs of a test's threads; those that wait for ever only if `waits`. `asked`: elements that a question reads.

    `grounded`: no value supports itself. Raises BudgetSpent, TooLarge.
    """
    starts = Starts()
    runners = tuple(Runner(lowered, number, starts, bound) for number in range(len(lowered.programs)))
    threads = [_Thread(runner, meter) for runner in runners]
    domains = Domains(lowered.space, len(runners), asked, grounded=grounded)
    for thread in threads:  # first round: each thread reads what the threads before it write
        thread.run(domains)
        domains.learn([thread.traces])
    seeds = frozenset() if grounded else constants(lowered) | asked_constants(lowered)
    seeded, rounds, fresh = grounded, 0, True
    while True:
        known, noise = starts.count, sum(len(runner.racing_loops) for runner in runners)
        changed = [thread for thread in threads if thread.differs(domains)]
        for thread in changed:
            thread.run(domains)
        runs = [thread.traces for thread in threads]
        learnt = domains
        if changed or fresh:
            learnt = domains.emptied()
            learnt.learn(runs)
            if not seeded:
                _seed(learnt, runs, seeds)
            _note_noise(runners, runs)
        settled = starts.count == known and sum(len(runner.racing_loops) for runner in runners) == noise
        rounds += 1
        fresh = learnt is not domains and learnt != domains
        # Each round follows one more dependence from a read to a write or update. A value that is still new after as
        # many rounds as an execution has such writes and updates supports itself.
        if settled and (not fresh or rounds > 1 + sum(map(dependent, runs))):
            if seeded:
                possible = [[trace for trace in traces if learnt.possible(trace)] for traces in runs]
                return _problem(lowered, possible, learnt.cutting, waits)
            seeded, rounds, fresh = True, 0, True  # from here on, only values that some run writes
        domains = learnt


class _Thread:
    """The runs of one thread. They are made again only if an answer that the thread got has changed."""

    def __init__(self, runner: Runner, meter: Meter) -> None:
        self._runner = runner
        self._meter = meter
        self._oracle = RememberingOracle(None)
        self._state: tuple[int, int] | None = None
        self.traces: list[Trace] = []

    @property
    def _current_state(self) -> tuple[int, int]:
        """What decides, besides the domains, how the thread runs: two numbers that only grow."""
        return self._runner.starts.count, len(self._runner.racing_loops)

    def differs(self, domains: Domains) -> bool:
        """True if the thread may run otherwise with these domains."""
        return self._state != self._current_state or self._oracle.differs(domains)

    def run(self, domains: Domains) -> None:
        """Make all runs, also those that wait for ever: another thread may need what they write before they wait."""
        self._oracle, self._state = RememberingOracle(domains), self._current_state
        self.traces = self._runner.run(self._oracle, self._meter, waits=True)


def _problem(
    lowered: LoweredTest,
    runs: Sequence[Sequence[Trace]],
    cutting: Cutting,
    waits: bool,
) -> Problem:
    def those(*ends: End) -> tuple[tuple[Trace, ...], ...]:
        return tuple(tuple(trace for trace in traces if trace.ending.end in ends) for traces in runs)

    return Problem(
        lowered,
        those(End.REACHED, End.EXIT, End.FAULT),
        those(End.WAITS) if waits else tuple(() for _ in runs),
        those(End.CUT, End.BEYOND),
        cutting,
    )


# ---- values out of thin air ------------------------------------------------------------------------------------------


def _seed(domains: Domains, runs: Sequence[Sequence[Trace]], seeds: frozenset[int]) -> None:
    """Let each write of a value that was read, or computed from one, have any constant of the test as its value."""
    places: dict[Footprint, None] = {}
    for traces in runs:
        for trace in traces:
            for record in trace.records:
                if not isinstance(record, AccessRecord) or record.access.side is not Side.WRITE:
                    continue
                if any(record.data) or record.copies is not None:
                    places[record.footprint] = None
    for footprint in places:
        size = footprint.scalar or footprint.size
        for seed in seeds if size <= 16 else ():
            mask = (1 << size * 8) - 1
            domains.write(footprint, sum((seed & mask) << at * 8 for at in range(0, footprint.size, size)))


# ---- spin loops whose failed rounds may race -------------------------------------------------------------------------


def _note_noise(runners: Sequence[Runner], runs: Sequence[Sequence[Trace]]) -> None:
    """Find the spin loops whose reads may race with a write of another thread, or of an asynchronous operation of their
    own thread: the two overlap, and are not morally strong in every execution.
    """
    for number, runner in enumerate(runners):
        for loop in runner.loops.values():
            if not (loop.spins and loop.reads) or loop.last in runner.racing_loops:
                continue
            reads = _accesses(runs[number], Side.READ, range(loop.first, loop.last + 1))
            for other, traces in enumerate(runs):
                writes = _accesses(traces, Side.WRITE)
                if other == number:
                    writes = [write for write in writes if write.access.asynchronous]
                for write in writes:
                    if any(_may_race(runner, runners[other], read, write) for read in reads):
                        runner.racing_loops.add(loop.last)


def _accesses(traces: Sequence[Trace], side: Side, steps: range | None = None) -> list[AccessRecord]:
    accesses: dict[tuple[int, int, Footprint], AccessRecord] = {}
    for trace in traces:
        for record in trace.records:
            if not isinstance(record, AccessRecord) or record.access.side is not side:
                continue
            if steps is None or record.name.step in steps:
                accesses[record.name.step, record.name.part, record.footprint] = record
    return list(accesses.values())


def _may_race(mine: Runner, other: Runner, read: AccessRecord, write: AccessRecord) -> bool:
    """True if two accesses overlap, and are not morally strong in every execution."""
    shared = [(a, b) for a in read.footprint.extents for b in write.footprint.extents if _overlap(a, b)]
    if not shared:
        return False
    first, second = read.access, write.access
    if Sem.WEAK in (first.sem, second.sem) or first.scope is None or second.scope is None:
        return True
    strong = (
        first.proxy is Proxy.GENERIC
        and second.proxy is Proxy.GENERIC
        and read.footprint.scalar == write.footprint.scalar
        and all(a.name == b.name for a, b in shared)
    )
    return not (strong and include(first.scope, mine.place, second.scope, other.place))


def _overlap(a: Extent, b: Extent) -> bool:
    return a.instance == b.instance and a.first < b.end and b.first < a.end
