"""The events of one pass as they are made, and what every kind of step needs to make them.

In: LoweredTest, Knowledge. Out: `Builder`: events, visits, values of expressions, the places an address may mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memmodel.base.labels import Access, Fault, InitialWrite, Label, Undefined
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.points import Point, Range
from memmodel.errors import TooLarge
from memmodel.events.graph import Event, EventGraph, MemoryEvent, NotFollowed, PlainEvent, Visit
from memmodel.events.knowledge import Domain, Knowledge
from memmodel.events.loops import Loop
from memmodel.events.values import NO_DEPS, ZERO, Cases, Deps, Value, evaluate, merge_deps, select
from memmodel.litmus.syntax import Thread
from memmodel.memory.bytes import Cell, Extent, Footprint, Instance
from memmodel.memory.cells import Edges
from memmodel.program.expressions import AddressOf, Expr
from memmodel.program.lowered import LoweredTest, Step
from memmodel.program.ops import Jump

MAX_EVENTS = 2000
"""More events than this and the test is reported as too large."""

OFTEN = 20
"""Rounds after which a loop is named as the one that may not end."""

MAX_VISITS = 20_000
"""More steps than this in all threads, and the test is reported as too large."""

MAX_PLACES = 64
"""An address that may be any of more places is reported as too large."""

_DEEP = 40
"""Values that depend on one another in a longer chain are settled in a further pass."""


@dataclass(slots=True)
class State:
    """A thread between two steps: the formula under which it comes there, its registers, the branches that led here.

    `rounds`: rounds of each loop so far. `wrote`: per spin loop, the formula under which this round has written.
    `guard`: of the instruction being executed, its number in the thread, whether its guard lets it run, and what that
    depends on. `instruction`: a number for this execution of it. `operations`: the last read's operations by footprint.
    `order`: the place in program order of its last operation on an mbarrier object.
    """

    path: int
    registers: dict[str, Value]
    control: Deps
    rounds: dict[Loop, int] = field(default_factory=dict)
    wrote: dict[Loop, int] = field(default_factory=dict)
    guard: tuple[int, int, Deps] | None = None
    instruction: int = 0
    operations: dict[Footprint, tuple[int, ...]] = field(default_factory=dict)
    order: int = 0


@dataclass(slots=True)
class CurrentStep:
    """The step that a thread executes now. It runs under `runs`; `control`: what that depends on."""

    number: int
    thread: Thread
    step: Step
    state: State
    runs: int
    holds: int
    guard: Deps
    control: Deps
    visit: int
    spins: Sequence[Loop]


Choice = tuple[tuple[int, ...], int]
"""Numbers that some expressions have under a formula."""


class Builder:
    """Events of one pass."""

    def __init__(self, lowered: LoweredTest, knowledge: Knowledge) -> None:
        self.lowered = lowered
        self.knowledge = knowledge
        self.space = lowered.space
        self.graph = EventGraph(lowered, knowledge.cells, knowledge.starts)
        self.logic = self.graph.logic
        self.events = self.graph.events
        self.written: dict[tuple[int, int], int] = {}
        self.at_faults: list[list[tuple[int, dict[str, Value]]]] = [[] for _ in lowered.programs]
        self._operations = 0
        self._used: list[tuple[Extent, tuple[Cell, ...]]] = []
        self._seen: list[tuple[Cell, Domain]] = []
        self._writes: dict[Cell, list[MemoryEvent]] = {}
        self._settled: set[Cell] | None = None
        self._depth = 0

    # ---- events ------------------------------------------------------------------------------------------------

    def visit(self, thread: int, pc: int, runs: int, step: Step) -> int:
        """The number of a step that is executed now."""
        visits = self.graph.visits
        if len(visits) >= MAX_VISITS:
            raise TooLarge(f"more than {MAX_VISITS:,} steps: some loop may not end", hint="lower the loop bound")
        visits.append(Visit(thread, pc, runs))
        return len(visits) - 1

    def _busiest(self) -> str:
        """The last branch of the loop that goes round most often, where there is one."""
        steps = Counter((visit.thread, visit.step) for visit in self.graph.visits)
        jumps = {
            (thread, step): count
            for (thread, step), count in steps.items()
            if isinstance(self.lowered.programs[thread].steps[step].op, Jump)
        }
        thread, step = max(jumps, key=jumps.__getitem__, default=(0, 0))
        count = jumps.get((thread, step), 0)
        if count < OFTEN:
            return ""
        span = self.lowered.programs[thread].steps[step].instruction.span
        return f": the loop that ends at {span} went round {count} times and does not end"

    def point(self, current: CurrentStep, label: Label, **more: object) -> Point:
        """Where the next event is, as far as its thread says."""
        if len(self.events) >= MAX_EVENTS:
            hint = "shorten the test, or lower the loop bound"
            raise TooLarge(f"more than {MAX_EVENTS} events{self._busiest()}", hint=hint)
        fields: dict[str, object] = {
            "thread": current.number,
            "place": current.thread.place,
            "order": current.visit,
            "instruction": current.state.instruction,
            **more,
        }
        return Point(len(self.events), label, **fields)  # type: ignore[arg-type]

    def add(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, MemoryEvent) and isinstance(event.label, Access) and event.label.side.value == "W":
            self._writes.setdefault(event.cell, []).append(event)

    def plain(
        self,
        current: CurrentStep,
        label: Label,
        runs: int,
        addr: Deps,
        data: Deps | None = None,
        range: Range | None = None,
    ) -> PlainEvent:
        """An event that is all in its label."""
        event = PlainEvent(
            point=self.point(current, label, range=range),
            runs=runs,
            addr=addr,
            data=data or NO_DEPS,
            ctrl=current.control,
            visit=current.visit,
        )
        self.add(event)
        return event

    def operation(self) -> int:
        """A number for a scalar operation."""
        self._operations += 1
        return self._operations

    def fault(self, current: CurrentStep, why: str, when: int, deps: Deps) -> None:
        """The thread ends at a bad address, if `when`."""
        if when == FALSE:
            return
        self.plain(current, Fault(why), when, deps)
        self.at_faults[current.number].append((when, dict(current.state.registers)))
        self.graph.faulted[current.number] = self.logic.either(self.graph.faulted[current.number], when)
        self._leave(current, when)

    def undefined(self, current: CurrentStep, rule: str, when: int) -> None:
        """The instruction is undefined, if `when`."""
        if when != FALSE:
            self.plain(current, Undefined(rule), when, {})

    def not_modelled(self, current: CurrentStep, reason: str, when: int) -> None:
        """What the instruction does is not modelled, if `when`: such executions are not followed."""
        if when != FALSE:
            self.graph.unmodelled.append(NotFollowed(when, current.step.instruction, reason))
            self._leave(current, when)

    def _leave(self, current: CurrentStep, when: int) -> None:
        """The thread does not go on from this step, if `when`."""
        current.state.path = self.logic.both(current.state.path, -when)
        current.runs = self.logic.both(current.runs, -when)

    # ---- expressions -------------------------------------------------------------------------------------------

    def value(self, current: CurrentStep, expr: Expr, registers: dict[str, Value] | None = None) -> Value:
        """The value of an expression in this thread."""
        known = current.state.registers if registers is None else registers
        return evaluate(self.logic, expr, known, lambda name: self._address(name, current.thread))

    def _address(self, name: AddressOf, thread: Thread) -> int:
        address = self.space.address(name.name, name.offset, thread.place, name.cta)
        assert address is not None, "lowering refuses names without an instance"
        return address

    def choices(
        self, current: CurrentStep, exprs: Sequence[Expr], when: int, registers: dict[str, Value] | None = None
    ) -> tuple[list[Choice], Deps]:
        """The numbers that some expressions may have, each with its formula; and the reads that they depend on."""
        logic = self.logic
        choices: list[Choice] = [((), when)]
        deps: list[Deps] = []
        for expr in exprs:
            value = self.value(current, expr, registers)
            if value.deps:
                deps.append(value.deps)
            cases = value.cases().narrow()
            if cases is None:
                raise TooLarge("an address or a count is computed from a value that may be very many numbers")
            choices = [
                ((*numbers, number), both)
                for numbers, first in choices
                for number, second in cases.numbers.items()
                if (both := logic.both(first, second)) != FALSE
            ]
            if len(choices) > MAX_PLACES:
                raise TooLarge(f"an address or a count may be any of more than {MAX_PLACES} numbers")
        return choices, merge_deps(logic, *deps)

    def assign(self, current: CurrentStep, register: str, value: Value) -> None:
        """register := value, if the instruction's guard lets it."""
        registers = current.state.registers
        if current.holds != TRUE:
            value = select(self.logic, [(current.holds, value), (-current.holds, registers.get(register, ZERO))])
        if current.guard:
            value = value.with_deps(merge_deps(self.logic, value.deps, current.guard))
        registers[register] = value

    def nonzero(self, current: CurrentStep, expr: Expr | None) -> tuple[int, Deps]:
        """The formula that says an expression is not 0 (None: TRUE), and the reads that it depends on."""
        if expr is None:
            return TRUE, {}
        value = self.value(current, expr)
        return value.cases().is_nonzero(self.logic), value.deps

    # ---- memory ------------------------------------------------------------------------------------------------

    def touch(self, footprint: Footprint, when: int, *, strong: bool) -> None:
        """An access touches these bytes, if `when`."""
        for edges in Edges.of(footprint):
            self.knowledge.touch(edges, strong=strong)
            self.graph.footprints[edges] = self.logic.either(self.graph.footprints.get(edges, FALSE), when)

    def cells(self, extent: Extent) -> tuple[Cell, ...]:
        """The cells of an extent as this pass has them."""
        cells = self.knowledge.cells.of(extent)
        self._used.append((extent, cells))
        return cells

    def read_value(self, uid: int, cell: Cell, runs: int) -> Value:
        """The value that an event reads, worked out when it is asked for."""

        def find(_: object) -> Cases:
            self.knowledge.exact(cell)
            if self._settled is not None and self._depth < _DEEP:
                self._settle(cell, self._settled)
            # A write to the cell may depend on this very read, which is then known by now.
            return value.known or self._cases(uid, cell, runs)

        value = Value(None, {uid: TRUE}, (), find)
        return value

    def _cases(self, uid: int, cell: Cell, runs: int) -> Cases:
        domain = self.knowledge.domain(cell)
        self._seen.append((cell, domain))
        if domain is None:
            wide = tuple(self.logic.var(f"value(e{uid},bit{i})") for i in range(cell.size * 8))
            return Cases({}, (*wide, FALSE))
        if len(domain) == 1:
            return Cases(dict.fromkeys(domain, TRUE), None, domain)
        variables = {number: self.logic.var(f"value(e{uid},{number})") for number in sorted(domain)}
        self.logic.exactly_one(list(variables.values()), runs)
        return Cases(variables, None, domain)

    def _settle(self, cell: Cell, settled: set[Cell]) -> None:
        """Work out the values of all writes to a cell whose value is asked for."""
        if cell in settled:
            return
        settled.add(cell)
        self._depth += 1
        for write in self._writes.get(cell, ()):
            cases = write.value.cases().narrow()
            depths = None if cases is None else {number: 1 + cases.depths.get(number, 0) for number in cases.numbers}
            self.knowledge.add(cell, depths)
        self._depth -= 1

    # ---- the end of a pass -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """All threads have been walked: from now on all writes to the cell of a value that is asked for are known."""
        self.knowledge.most_writes = sum(self.written.values())
        self._settled = set()

    def settle(self) -> None:
        """Work out the values of all writes to cells whose values are asked for."""
        assert self._settled is not None
        while True:
            waiting = [cell for cell in self.knowledge.exact_cells if cell not in self._settled]
            if not waiting:
                return
            for cell in waiting:
                self._settle(cell, self._settled)

    def outdated_cells(self) -> bool:
        """True if the pass used cells that are divided now."""
        self.knowledge.settle_cells()
        return any(self.knowledge.cells.of(extent) != cells for extent, cells in self._used)

    def outdated_values(self) -> bool:
        """True if a read of the pass knew fewer values than its cell may hold."""
        return any(self.knowledge.domain(cell) != domain for cell, domain in self._seen)

    def initial_writes(self) -> None:
        """An initial write for every cell that an event accesses."""
        order: dict[Instance, int] = {instance: k for k, instance in enumerate(self.space.instances)}
        cells = {event.cell for event in self.events if isinstance(event, MemoryEvent)}
        for cell in sorted(cells, key=lambda cell: (order[cell.instance], cell.first)):
            number = self.space.initial(cell.instance, cell.first, cell.size)
            point = Point(len(self.events), InitialWrite(), cell=cell, name=cell.instance.name)
            self.add(MemoryEvent(point=point, value=Value(Cases({number: TRUE}))))
