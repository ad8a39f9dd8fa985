"""The accesses that the values of a condition come from.

In: an execution, a condition. Out: a mask of its events, or whether one event is asked about. Settled here: what only
decides whether an instruction is executed does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memmodel.base.graphs import reached
from memmodel.base.labels import Access, Side, is_read, is_write
from memmodel.base.rows import Rows, bits, inverse
from memmodel.concrete.execution import Execution
from memmodel.litmus.syntax import And, Condition, LocValue, Not, Or, RegValue, terms_of
from memmodel.memory.bytes import Extent
from memmodel.program.expressions import registers_of
from memmodel.program.lowered import Program
from memmodel.program.uses import assigned, expressions
from memmodel.ptx.vocabulary import Sem


def condition_sources(execution: Execution, condition: Condition) -> int:
    """The last writes of the locations and the reads into the registers of a condition; what they were computed from,
    and so on."""
    lowered = execution.frame.lowered
    last = [execution.relation("co")[number] == 0 for number in range(len(execution.events))]
    pending: list[int] = []
    for term in terms_of(condition):
        if isinstance(term, LocValue):
            extent, _ = lowered.space.term(term)
            pending += [number for number in _writes(execution, extent) if last[number]]
        elif isinstance(term, RegValue):
            names = [thread.name for thread in lowered.test.threads]
            if term.thread in names:
                pending += _reads_into(execution, names.index(term.thread), term.register)
    sources = _sources(execution)
    return sum(1 << number for number in reached(pending, lambda number: bits(sources[number])))


def with_open_reads(execution: Execution, condition: Condition, *, of_equal_values: bool) -> Execution:
    """The execution without the writes that a load returns whose registers neither a condition nor an instruction
    uses. `of_equal_values`: and without those that a weak read returns where another write has left the same value."""
    lowered = execution.frame.lowered
    used = [_used(program) for program in lowered.programs]
    names = [thread.name for thread in lowered.test.threads]
    for term in terms_of(condition):
        if isinstance(term, RegValue) and term.thread in names:
            used[names.index(term.thread)].add(term.register)
    open_reads = 0
    for number, event in enumerate(execution.events):
        label, record = event.label, execution.frame.record_of(event)
        if isinstance(label, Access) and label.side is Side.READ and not (label.rmw or label.asynchronous) and record:
            thread, step = record.name.thread, record.name.step
            registers = assigned(lowered.programs[thread].steps[step].op)
            open_reads |= (used[thread].isdisjoint(registers)) << number
        weak = isinstance(label, Access) and label.side is Side.READ and label.sem is Sem.WEAK and not label.rmw
        if of_equal_values and weak:
            open_reads |= _is_left_twice(execution, number) << number
    rf = [row & ~open_reads for row in execution.relation("rf")]
    return replace(execution, chosen_relations={**execution.chosen_relations, "rf": rf})


def _is_left_twice(execution: Execution, read: int) -> bool:
    """True if more than one write leaves the value that a read returns."""
    values, cell = execution.values, execution.events[read].point.cell
    writes = [n for n in bits(execution.set("W")) if execution.events[n].point.cell == cell]
    return values[read] is not None and [values[n] for n in writes].count(values[read]) > 1


def _used(program: Program) -> set[str]:
    """The registers that instructions of a thread read, guards among them."""
    guards = {step.guard.register for step in program.steps if step.guard is not None}
    return guards | {name for step in program.steps for expr in expressions(step.op) for name in registers_of(expr)}


def first_that_holds(condition: Condition, holds: Callable[[Condition], bool]) -> Condition:
    """A part of a condition that holds by which the whole condition does: of alternatives the first that holds."""
    match condition:
        case Or(parts):
            part = next(filter(holds, parts), None)
            return condition if part is None else first_that_holds(part, holds)
        case And(parts):
            return And(tuple(first_that_holds(part, holds) for part in parts))
        case Not(Or(parts)):
            return And(tuple(first_that_holds(Not(part), holds) for part in parts))
        case Not(And(parts)):
            return first_that_holds(Or(tuple(Not(part) for part in parts)), holds)
        case Not(Not(part)):
            return first_that_holds(part, holds)
        case _:
            return condition


def is_asked(execution: Execution, condition: Condition, event: int) -> bool:
    """True if a register of the condition may hold what an event returned to its thread, such as the predicate of a
    test of an mbarrier object."""
    own = execution.events[event]
    thread, record = own.point.thread, execution.frame.record_of(own)
    if thread is None or record is None:
        return False
    lowered = execution.frame.lowered
    name, program = lowered.test.threads[thread].name, lowered.programs[thread]
    asked = (term for term in terms_of(condition) if isinstance(term, RegValue) and term.thread == name)
    return any(record.name.step in _steps_computing(program, term.register) for term in asked)


def _sources(execution: Execution) -> Rows:
    """For each event, the write that it reads, and the reads that its value was computed from."""
    rows = [rf | data for rf, data in zip(execution.relation("rf"), execution.relation("data"), strict=True)]
    return inverse(rows)


def _writes(execution: Execution, extent: Extent) -> list[int]:
    """The writes of some bytes of an extent, the initial ones among them."""
    return [
        number
        for number, event in enumerate(execution.events)
        if (cell := event.point.cell) is not None and cell.instance == extent.instance
        if cell.first < extent.end and extent.first < cell.end
        if is_write(event.label)
    ]


def _reads_into(execution: Execution, thread: int, register: str) -> list[int]:
    """The reads of a thread whose values may be in a register at the end, by the text of the thread."""
    steps = _steps_computing(execution.frame.lowered.programs[thread], register)
    return [
        number
        for number, event in enumerate(execution.events)
        if event.point.thread == thread and is_read(event.label)
        if (record := execution.frame.record_of(event)) is not None and record.name.step in steps
    ]


def _steps_computing(program: Program, register: str) -> set[int]:
    """The steps that assign a register, or one that it may be computed from."""
    wanted, steps = {register}, set[int]()
    while True:
        more = {number for number, step in enumerate(program.steps) if wanted & set(assigned(step.op))} - steps
        if not more:
            return steps
        steps |= more
        for number in more:
            wanted |= {name for expr in expressions(program.steps[number].op) for name in registers_of(expr)}
