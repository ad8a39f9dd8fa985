"""A test made ready for enumeration: its threads with all their traces, its memory, the values that reads may return.

In: LitmusTest, bound, Meter. Out: Problem. Settled here: the least set of values that contains every value any read can
return (docs/executions.md, "Choices"); too many values cost time but never change an answer, since every read of a
candidate has to find a write that really wrote its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.enumeration.loops import expressions
from memmodel.enumeration.meter import Meter
from memmodel.enumeration.threads import Asked, Runner
from memmodel.enumeration.traces import Resource, Runs, Trace
from memmodel.errors import TooLarge
from memmodel.isa import programs
from memmodel.isa.memory import Location, MemoryMap
from memmodel.isa.ops import (
    AddressOf,
    Apply,
    Commit,
    Const,
    Expr,
    Issue,
    Mbarrier,
    Read,
    Reduce,
    Wait,
    Write,
)
from memmodel.litmus.syntax import And, Compare, Condition, LitmusTest, Not, Number, Or

Domain = dict[Location, tuple[int, ...]]
"""The values that reads of each location may return."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A test with the traces of each thread. `cut`: some trace was stopped by the loop bound."""

    test: LitmusTest
    memory: MemoryMap
    runners: tuple[Runner, ...]
    locations: tuple[Location, ...]
    traces: tuple[tuple[Trace, ...], ...]
    cut: bool

    def size_of(self, resource: Resource) -> int:
        """How many threads of the test share a barrier's domain instance."""
        domain, instance = resource[0], resource[1]
        if domain == "cta":
            return sum(thread.place.cta_id == instance for thread in self.test.threads)
        if domain == "cluster":
            return sum(thread.place.cluster_id == instance for thread in self.test.threads)
        return sum(
            (thread.place.cta_id, thread.name if thread.place.warp is None else thread.place.warp) == instance
            for thread in self.test.threads
        )


def make_runners(test: LitmusTest, memory: MemoryMap, bound: int | None) -> tuple[Runner, ...]:
    """One runner for each thread."""
    lowered = zip(test.threads, programs(test), strict=True)
    return tuple(Runner(test, thread, program, memory, bound) for thread, program in lowered)


def prepare(test: LitmusTest, bound: int, meter: Meter) -> Problem:
    """Run every thread with every value that its reads may return."""
    memory = MemoryMap(test)
    runners = make_runners(test, memory, bound)
    refuse_asynchronous(runners)
    domain, open_values = _first_domain(test, memory, runners)
    runs = [_run(runner, domain, len(runners), meter) for runner in runners]
    rounds = sum(_most_writes(runner, one) for runner, one in zip(runners, runs, strict=True)) if open_values else 0
    for _ in range(rounds):
        produced = _produced(memory, runners, runs)
        changed = {where for where in produced if produced[where] != domain[where]}
        if not changed:
            break
        domain = produced
        for number, runner in enumerate(runners):
            if runs[number].read & changed:
                runs[number] = _run(runner, domain, len(runners), meter)
    traces = tuple(tuple(one.traces) for one in runs)
    return Problem(test, memory, runners, tuple(memory.initial), traces, any(one.cut for one in runs))


def refuse_asynchronous(runners: Sequence[Runner]) -> None:
    """Raises TooLarge if a thread has an asynchronous operation, which this engine does not run."""
    for runner in runners:
        for step in runner.program.steps:
            if isinstance(step.op, Issue | Commit | Wait | Mbarrier):
                message = "asynchronous operations are beyond the enumeration engine"
                raise TooLarge(message, step.instruction.span, "the other engine has them: --engine z3")


def _run(runner: Runner, domain: Domain, threads: int, meter: Meter) -> Runs:
    def values(where: Location | Reduce | Asked, taken: int) -> Sequence[int]:
        if isinstance(where, Location):
            return domain[where]
        if isinstance(where, Asked):
            return (0, 1)
        return range(threads + 1) if where.op == "popc" else (0, 1)

    return runner.run(values, meter)


def _first_domain(test: LitmusTest, memory: MemoryMap, runners: Sequence[Runner]) -> tuple[Domain, bool]:
    """What the text alone says each location may hold; and whether some write's value or place is not plain to see.

    A write of a constant contributes that constant. Any other contributes every constant of the test, to the location
    that it names or, through a register, to all of them; running the threads then sifts and completes these.
    """
    found: dict[Location, dict[int, None]] = {where: {value: None} for where, value in memory.initial.items()}
    constants = _constants(test, memory, runners)
    open_values = False
    for runner in runners:
        for step in runner.program.steps:
            op = step.op
            if not isinstance(op, Write):
                continue
            plain = isinstance(op.value, Const | AddressOf)
            open_values = open_values or not plain or not isinstance(op.address, AddressOf)
            values = (runner.constant(op.value),) if isinstance(op.value, Const | AddressOf) else constants
            where = None
            if isinstance(op.address, AddressOf):
                where = memory.cell(runner.constant(op.address))
            for location in found if where is None else (where.location,):
                found[location].update(dict.fromkeys(values))
    return {where: tuple(values) for where, values in found.items()}, open_values


def _most_writes(runner: Runner, runs: Runs) -> int:
    steps = runner.program.steps
    return max((sum(isinstance(steps[e.step].op, Write) for e in trace.events) for trace in runs.traces), default=0)


def _produced(memory: MemoryMap, runners: Sequence[Runner], runs: Sequence[Runs]) -> Domain:
    """Initial values and what the traces write."""
    found: dict[Location, dict[int, None]] = {where: {value: None} for where, value in memory.initial.items()}
    for runner, one in zip(runners, runs, strict=True):
        steps = runner.program.steps
        for trace in one.traces:
            for event, value in zip(trace.events, trace.values, strict=True):
                if event.cell is not None and value is not None and not isinstance(steps[event.step].op, Read):
                    found[event.cell.location][value] = None
    return {where: tuple(values) for where, values in found.items()}


def _constants(test: LitmusTest, memory: MemoryMap, runners: Sequence[Runner]) -> tuple[int, ...]:
    """Initial values, and what the program and the condition use as values (so not the addresses of accesses)."""
    found: dict[int, None] = dict.fromkeys(memory.initial.values())
    for runner in runners:
        found.update(dict.fromkeys(runner.initial.values()))
        for step in runner.program.steps:
            address = step.op.address if isinstance(step.op, Read | Write) else None
            for expr in (one for one in expressions(step.op) if one is not address):
                for leaf in _leaves(expr):
                    found[runner.constant(leaf)] = None
    found.update(dict.fromkeys(_numbers(test.condition)))
    return tuple(found)


def _leaves(expr: Expr) -> Iterable[Const | AddressOf]:
    if isinstance(expr, Const | AddressOf):
        yield expr
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from _leaves(arg)


def _numbers(condition: Condition) -> Iterable[int]:
    if isinstance(condition, Compare):
        yield from (term.value for term in (condition.left, condition.right) if isinstance(term, Number))
    elif isinstance(condition, And | Or):
        for item in condition.items:
            yield from _numbers(item)
    elif isinstance(condition, Not):
        yield from _numbers(condition.item)
