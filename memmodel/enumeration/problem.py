"""A test made ready for enumeration: its threads with all their traces, its memory, the values that reads may return.

In: LitmusTest, bound, Meter. Out: Problem. Settled here: the least set of values that contains every value any read can
return (docs/executions.md, "Choices"); too many values cost time but never change an answer, since every read of a
candidate has to find a write that really wrote its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.enumeration.barriers import Company
from memmodel.enumeration.loops import expressions
from memmodel.enumeration.meter import Meter
from memmodel.enumeration.threads import Runner
from memmodel.enumeration.traces import Asked, Operation, Resource, Runs, Trace
from memmodel.errors import InputError
from memmodel.isa import programs
from memmodel.isa.memory import Location, MemoryMap
from memmodel.isa.ops import (
    AddressOf,
    Apply,
    Const,
    Expr,
    Issue,
    Mbarrier,
    Op,
    Part,
    Read,
    Reduce,
    Write,
)
from memmodel.litmus.syntax import LitmusTest, Number, terms_of

Domain = dict[Location, tuple[int, ...]]
"""The values that reads of each location may return."""

Limits = dict[Location, tuple[int, int]]
"""For each mbarrier object, the most phases that can be over and the most arrivals that can be pending."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A test with the traces of each thread. `cut`: some trace was stopped by the loop bound.

    `standing`: the traces of each thread that end where it waits, if they were asked for.
    """

    test: LitmusTest
    memory: MemoryMap
    runners: tuple[Runner, ...]
    locations: tuple[Location, ...]
    traces: tuple[tuple[Trace, ...], ...]
    cut: bool
    standing: tuple[tuple[Trace, ...], ...]

    def company(self, resource: Resource, exited: Sequence[int] = ()) -> Company:
        """The threads of the test that share a barrier's domain instance, and those of them that have exited."""
        domain, instance = resource[0], resource[1]
        members = []
        for number, thread in enumerate(self.test.threads):
            place = thread.place
            if domain == "cta":
                inside = place.cta_id == instance
            elif domain == "cluster":
                inside = place.cluster_id == instance
            else:
                inside = (place.cta_id, thread.name if place.warp is None else place.warp) == instance
            if inside:
                members.append(number)
        return Company(len(members), frozenset(exited).intersection(members))


def make_runners(test: LitmusTest, memory: MemoryMap, bound: int | None) -> tuple[Runner, ...]:
    """One runner for each thread."""
    lowered = zip(test.threads, programs(test), strict=True)
    return tuple(Runner(test, thread, program, memory, bound) for thread, program in lowered)


def prepare(test: LitmusTest, bound: int, meter: Meter, *, waits: bool = False) -> Problem:
    """Run every thread with every value that its reads may return, and every answer of mbarrier objects.

    `waits`: also to where it may wait for ever.
    """
    memory = MemoryMap(test)
    runners = make_runners(test, memory, bound)
    domain, open_values = _first_domain(test, memory, runners)
    limits: Limits = {}

    def run(runner: Runner) -> Runs:
        return _run(runner, domain, limits, len(runners), meter, waits)

    runs = [run(runner) for runner in runners]
    rounds = sum(_most_writes(one) for one in runs) if open_values else 0
    while True:
        produced = _produced(memory, runs) if rounds > 0 else domain
        reached = limits_of(memory, runs)
        changed = {where for where in produced if produced[where] != domain[where]}
        asked = {where for one in runs for where in one.asked if reached.get(where) != limits.get(where)}
        if not changed and not asked:
            break
        domain, limits, rounds = produced, reached, rounds - 1
        for number, runner in enumerate(runners):
            if runs[number].read & changed or runs[number].asked & asked:
                runs[number] = run(runner)
    _check_inits(memory, runners, runs)
    traces = tuple(tuple(one.traces) for one in runs)
    standing = tuple(tuple(one.standing) for one in runs)
    return Problem(test, memory, runners, tuple(memory.initial), traces, any(one.cut for one in runs), standing)


def _check_inits(memory: MemoryMap, runners: Sequence[Runner], runs: Sequence[Runs]) -> None:
    """Raises InputError if an mbarrier object is initialised twice."""
    known: dict[Location, tuple[int, int]] = {}
    for thread, (runner, one) in enumerate(zip(runners, runs, strict=True)):
        for trace in (*one.traces, *one.standing):
            here: set[Location] = set()
            for event in trace.events:
                if event.operation is None or event.operation.action != "init":
                    continue
                where = event.operation.object
                declared = memory.mbarrier_count(where) is not None
                if declared or where in here or known.setdefault(where, (thread, event.step)) != (thread, event.step):
                    span = runner.program.steps[event.step].instruction.span
                    hint = "initialise it once: by `= mbarrier(n)` or by one mbarrier.init"
                    raise InputError(f"the mbarrier object {where} is initialised twice", span, hint)
                here.add(where)


def _run(runner: Runner, domain: Domain, limits: Limits, threads: int, meter: Meter, waits: bool) -> Runs:
    def values(where: Location | Reduce | Asked, taken: int) -> Sequence[int]:
        if isinstance(where, Location):
            return domain[where]
        if isinstance(where, Reduce):
            return range(threads + 1) if where.op == "popc" else (0, 1)
        if where.what == "test":
            return (0, 1)
        phases, arrivals = limits.get(where.object, (0, 0))
        return range((phases if where.what == "state" else arrivals) + 1)

    return runner.run(values, meter, waits=waits)


def _first_domain(test: LitmusTest, memory: MemoryMap, runners: Sequence[Runner]) -> tuple[Domain, bool]:
    """What the text alone says each location may hold; and whether some write's value or place is not plain to see.

    A write of a constant contributes that constant. Any other contributes every constant of the test, to the location
    that it names or, through a register, to all of them; running the threads then sifts and completes these.
    """
    found: dict[Location, dict[int, None]] = {where: {value: None} for where, value in memory.initial.items()}
    constants = _constants(test, memory, runners)
    open_values = False
    for runner in runners:
        for value, address in (one for step in runner.program.steps for one in _writes(step.op)):
            plain = isinstance(value, Const | AddressOf)
            open_values = open_values or not plain or not isinstance(address, AddressOf)
            values = (runner.constant(value),) if isinstance(value, Const | AddressOf) else constants
            where = None
            if isinstance(address, AddressOf):
                where = memory.cell(runner.constant(address))
            for location in found if where is None else (where.location,):
                found[location].update(dict.fromkeys(values))
    return {where: tuple(values) for where, values in found.items()}, open_values


def _writes(op: Op) -> Iterable[tuple[Expr, Expr]]:
    """The values and addresses of what a step writes."""
    if isinstance(op, Write):
        yield op.value, op.address
    elif isinstance(op, Issue):
        for part in op.parts:
            if isinstance(part, Part) and part.value is not None:
                yield part.value, part.address


def _most_writes(runs: Runs) -> int:
    both = (*runs.traces, *runs.standing)
    return max((sum("W" in event.made.tags for event in trace.events) for trace in both), default=0)


def _produced(memory: MemoryMap, runs: Sequence[Runs]) -> Domain:
    """Initial values and what the traces write."""
    found: dict[Location, dict[int, None]] = {where: {value: None} for where, value in memory.initial.items()}
    for one in runs:
        for trace in (*one.traces, *one.standing):
            for event, value in zip(trace.events, trace.values, strict=True):
                if event.cell is not None and value is not None and "W" in event.made.tags:
                    found[event.cell.location][value] = None
    return {where: tuple(values) for where, values in found.items()}


def limits_of(memory: MemoryMap, runs: Sequence[Runs]) -> Limits:
    """How many phases of each mbarrier object can be over, and how many arrivals pending, at most."""
    found: dict[Location, _Limit] = {}
    for one in runs:
        most: dict[Location, _Limit] = {}
        for trace in (*one.traces, *one.standing):
            here: dict[Location, _Limit] = {}
            for event in trace.events:
                if event.operation is not None and event.operation.updates:
                    here.setdefault(event.operation.object, _Limit()).add(event.operation)
            for where, limit in here.items():
                most.setdefault(where, _Limit()).raise_to(limit)
        for where, limit in most.items():
            found.setdefault(where, _Limit()).join(limit)
    return {where: limit.reached(memory.mbarrier_count(where)) for where, limit in found.items()}


@dataclass(slots=True)
class _Limit:
    """What some updates of an object can do together at most. `least`: the smallest count of an init."""

    updates: int = 0
    arrivals: int = 0
    drops: bool = False
    least: int | None = None
    most: int = 0

    def add(self, update: Operation) -> None:
        """One more update of the same trace."""
        if update.action == "init":
            self.least, self.most = update.count, self.most + update.count
            return
        self.updates += 1
        self.drops = self.drops or update.drop
        if update.action == "arrive":
            self.arrivals += update.count
        elif update.action == "pending":
            self.most += update.count

    def raise_to(self, other: _Limit) -> None:
        """Either of two traces of one thread."""
        self.updates = max(self.updates, other.updates)
        self.arrivals = max(self.arrivals, other.arrivals)
        self._merge(other)
        self.most = max(self.most, other.most)

    def join(self, other: _Limit) -> None:
        """Traces of two threads."""
        self.updates += other.updates
        self.arrivals += other.arrivals
        self._merge(other)
        self.most += other.most

    def _merge(self, other: _Limit) -> None:
        self.drops = self.drops or other.drops
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)

    def reached(self, declared: int | None) -> tuple[int, int]:
        """Phases over and arrivals pending, at most."""
        count = self.least if declared is None else declared
        if count is None:
            return 0, 0
        phases = self.updates if self.drops or count < 1 else min(self.updates, self.arrivals // count)
        return phases, self.most + (declared or 0)


def _constants(test: LitmusTest, memory: MemoryMap, runners: Sequence[Runner]) -> tuple[int, ...]:
    """Initial values, and what the program and the condition use as values (so not the addresses of accesses)."""
    found: dict[int, None] = dict.fromkeys(memory.initial.values())
    for runner in runners:
        found.update(dict.fromkeys(runner.initial.values()))
        for expr in (one for step in runner.program.steps for one in _used_as_values(step.op)):
            for leaf in _leaves(expr):
                found[runner.constant(leaf)] = None
    found.update(dict.fromkeys(term.value for term in terms_of(test.condition) if isinstance(term, Number)))
    return tuple(found)


def _used_as_values(op: Op) -> Iterable[Expr]:
    """What a step evaluates, apart from the addresses of accesses and the numbers that mbarrier objects count."""
    if isinstance(op, Mbarrier):
        return ()
    if isinstance(op, Issue):
        return (value for value, _ in _writes(op))
    address = op.address if isinstance(op, Read | Write) else None
    return (one for one in expressions(op) if one is not address)


def _leaves(expr: Expr) -> Iterable[Const | AddressOf]:
    if isinstance(expr, Const | AddressOf):
        yield expr
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from _leaves(arg)
