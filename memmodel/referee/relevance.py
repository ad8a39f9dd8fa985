"""The accesses that the values of a condition come from.

In: an execution, a condition. Out: a mask of its events, or whether one event is asked about. Settled here: what only
decides whether an instruction is executed does not count.
"""

from __future__ import annotations

from memmodel.base.graphs import reached
from memmodel.base.labels import is_read, is_write
from memmodel.base.rows import Rows, bits, inverse
from memmodel.concrete.execution import Execution
from memmodel.litmus.syntax import Condition, LocValue, RegValue, terms_of
from memmodel.memory.bytes import Extent
from memmodel.program.expressions import registers_of
from memmodel.program.lowered import Program
from memmodel.program.uses import assigned, expressions


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
