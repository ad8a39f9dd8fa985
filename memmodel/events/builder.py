"""The events of one pass as they are made, and what every kind of step needs to make them.

In: LoweredTest, Knowledge. Out: `Builder`: events, visits, values of expressions, the places an address may mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memmodel.base.labels import Access, Fault, InitialWrite, Label, Undefined
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.base.points import Point, Range
from memmodel.errors import TooLarge
from memmodel.events.graph import (
    Beyond,
    CommitMark,
    Copied,
    CutAt,
    Event,
    MemoryEvent,
    PlainEvent,
    Reduction,
    StuckAt,
    Visit,
)
from memmodel.events.knowledge import Domain, Knowledge
from memmodel.events.loops import Loop
from memmodel.events.values import ZERO, Cases, Deps, Value, evaluate, merge_deps, select
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
    """A thread between two steps: the formula under which it is here, its registers, the branches that led here.

    `rounds`: rounds of each loop so far. `wrote`: per spin loop, the formula under which this round has written.
    `guard`: of the instruction being executed, its number in the thread, whether its guard lets it run, and what that
    depends on. `instruction`: a number for this execution of it. `operations`: the last read's operations by footprint.
    """

    path: int
    registers: dict[str, Value]
    control: Deps
    rounds: dict[Loop, int] = field(default_factory=dict)
    wrote: dict[Loop, int] = field(default_factory=dict)
    guard: tuple[int, int, Deps] | None = None
    instruction: int = 0
    operations: dict[Footprint, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Here:
    """One step of a thread as it is executed. It runs under `runs`; `control`: what that depends on."""

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
        self.logic = Logic()
        self.events: list[Event] = []
        self.visits: list[Visit] = []
        self.cut: list[CutAt] = []
        self.stuck: list[StuckAt] = []
        self.beyond: list[Beyond] = []
        self.commits: list[CommitMark] = []
        self.reductions: list[Reduction] = []
        self.requests: dict[int, tuple[int, int]] = {}
        self.footprints: dict[Edges, int] = {}
        self.copies: list[Copied] = []
        self.written: dict[tuple[int, int], int] = {}
        self.faulted = [FALSE] * len(lowered.programs)
        self.at_faults: list[list[tuple[int, dict[str, Value]]]] = [[] for _ in lowered.programs]
        self._operations = 0
        self._used: list[tuple[Extent, tuple[Cell, ...]]] = []
        self._seen: list[tuple[Cell, Domain]] = []
        self._writes: dict[Cell, list[MemoryEvent]] = {}
        self._settled: set[Cell] | None = None
        self._depth = 0

    # ---- events ------------------------------------------------------------------------------------------------

    def visit(self, thread: int, pc: int, runs: int, step: Step) -> int:
        """A step is executed."""
        if len(self.visits) >= MAX_VISITS:
            raise TooLarge(f"more than {MAX_VISITS:,} steps: some loop may not end", hint="lower the loop bound")
        self.visits.append(Visit(thread, pc, runs, step.instruction))
        return len(self.visits) - 1

    def _busiest(self) -> str:
        """The last branch of the loop that goes round most often, where there is one."""
        jumps = [one for one in self.visits if isinstance(self.lowered.programs[one.thread].steps[one.step].op, Jump)]
        often = Counter((one.thread, one.step) for one in jumps).most_common(1)
        if not often or often[0][1] < OFTEN:
            return ""
        (thread, pc), count = often[0]
        where = self.lowered.programs[thread].steps[pc].instruction.span
        return f": the loop that ends at {where} went round {count} times and does not end"

    def point(self, here: Here, label: Label, **more: object) -> Point:
        """Where the next event is, as far as its thread says."""
        if len(self.events) >= MAX_EVENTS:
            hint = "shorten the test, or lower the loop bound"
            raise TooLarge(f"more than {MAX_EVENTS} events{self._busiest()}", hint=hint)
        given: dict[str, object] = {
            "thread": here.number,
            "place": here.thread.place,
            "order": here.visit,
            "instruction": here.state.instruction,
        }
        return Point(len(self.events), label, **{**given, **more})  # type: ignore[arg-type]

    def add(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, MemoryEvent) and isinstance(event.label, Access) and event.label.side.value == "W":
            self._writes.setdefault(event.cell, []).append(event)

    def plain(self, here: Here, label: Label, runs: int, addr: Deps, range: Range | None = None) -> PlainEvent:
        """An event that is all in its label."""
        event = PlainEvent(
            point=self.point(here, label, range=range), runs=runs, addr=addr, ctrl=here.control, visit=here.visit
        )
        self.add(event)
        return event

    def operation(self) -> int:
        """A number for a scalar operation."""
        self._operations += 1
        return self._operations

    def fault(self, here: Here, why: str, when: int, deps: Deps) -> None:
        """The thread stops here at a bad address, if `when`."""
        if when == FALSE:
            return
        self.plain(here, Fault(why), when, deps)
        self.at_faults[here.number].append((when, dict(here.state.registers)))
        self.faulted[here.number] = self.logic.either(self.faulted[here.number], when)
        here.state.path = self.logic.both(here.state.path, -when)
        here.runs = self.logic.both(here.runs, -when)

    def undefined(self, here: Here, rule: str, when: int) -> None:
        """What the thread does here is undefined, if `when`."""
        if when != FALSE:
            self.plain(here, Undefined(rule), when, {})

    def not_modelled(self, here: Here, reason: str, when: int) -> None:
        """What happens here is not known, if `when`: such executions are not followed."""
        if when != FALSE:
            self.beyond.append(Beyond(when, reason, here.step.instruction))
            here.state.path = self.logic.both(here.state.path, -when)
            here.runs = self.logic.both(here.runs, -when)

    # ---- expressions -------------------------------------------------------------------------------------------

    def value(self, here: Here, expr: Expr, registers: dict[str, Value] | None = None) -> Value:
        """The value of an expression in this thread."""
        known = here.state.registers if registers is None else registers
        return evaluate(self.logic, expr, known, lambda name: self._address(name, here.thread))

    def _address(self, name: AddressOf, thread: Thread) -> int:
        address = self.space.address(name.name, name.offset, thread.place, name.cta)
        assert address is not None, "lowering refuses names without an instance"
        return address

    def choices(
        self, here: Here, exprs: Sequence[Expr], when: int, registers: dict[str, Value] | None = None
    ) -> tuple[list[Choice], Deps]:
        """The numbers that some expressions may have, each with its formula; and the reads that they depend on."""
        logic = self.logic
        found: list[Choice] = [((), when)]
        deps: list[Deps] = []
        for expr in exprs:
            value = self.value(here, expr, registers)
            if value.deps:
                deps.append(value.deps)
            cases = value.cases().narrow()
            if cases is None:
                raise TooLarge("an address or a count is computed from a value that may be very many numbers")
            found = [
                ((*numbers, number), both)
                for numbers, first in found
                for number, second in cases.numbers.items()
                if (both := logic.both(first, second)) != FALSE
            ]
            if len(found) > MAX_PLACES:
                raise TooLarge(f"an address or a count may be any of more than {MAX_PLACES} numbers")
        return found, merge_deps(logic, *deps)

    def assign(self, here: Here, register: str, value: Value) -> None:
        """register := value, if the instruction's guard lets it."""
        registers = here.state.registers
        if here.holds != TRUE:
            value = select(self.logic, [(here.holds, value), (-here.holds, registers.get(register, ZERO))])
        if here.guard:
            value = value.with_deps(merge_deps(self.logic, value.deps, here.guard))
        registers[register] = value

    def nonzero(self, here: Here, expr: Expr | None, registers: dict[str, Value] | None = None) -> tuple[int, Deps]:
        """The formula that says an expression is not 0 (None: TRUE), and the reads that it depends on."""
        if expr is None:
            return TRUE, {}
        value = self.value(here, expr, registers)
        return value.cases().is_nonzero(self.logic), value.deps

    # ---- memory ------------------------------------------------------------------------------------------------

    def touch(self, footprint: Footprint, when: int, *, strong: bool) -> None:
        """An access touches these bytes, if `when`."""
        for edges in Edges.of(footprint):
            self.knowledge.touch(edges, strong=strong)
            self.footprints[edges] = self.logic.either(self.footprints.get(edges, FALSE), when)

    def cells(self, extent: Extent) -> tuple[Cell, ...]:
        """The cells of an extent as this pass has them."""
        cells = self.knowledge.cells.of(extent)
        self._used.append((extent, cells))
        return cells

    def read_value(self, uid: int, cell: Cell, runs: int) -> Value:
        """What an event reads: found when somebody asks for it."""

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
        """Find the values of all writes to a cell whose value somebody asks for."""
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
        """All threads have been walked: from now on a value that is asked for has all writes to its cell before it."""
        self.knowledge.most_writes = sum(self.written.values())
        self._settled = set()

    def settle(self) -> None:
        """Find the values of all writes to cells whose values somebody asks for."""
        assert self._settled is not None
        while True:
            waiting = [cell for cell in self.knowledge.exact_cells if cell not in self._settled]
            if not waiting:
                return
            for cell in waiting:
                self._settle(cell, self._settled)

    def outdated_cells(self) -> bool:
        """Did the pass use cells that are divided now?"""
        self.knowledge.settle_cells()
        return any(self.knowledge.cells.of(extent) != cells for extent, cells in self._used)

    def outdated_values(self) -> bool:
        """Did a read of the pass know fewer values than its cell may hold?"""
        return any(self.knowledge.domain(cell) != domain for cell, domain in self._seen)

    def initial_writes(self) -> None:
        """An initial write for every cell that an event accesses."""
        order: dict[Instance, int] = {instance: k for k, instance in enumerate(self.space.instances)}
        cells = {event.cell for event in self.events if isinstance(event, MemoryEvent)}
        for cell in sorted(cells, key=lambda one: (order[one.instance], one.first)):
            number = self.space.initial(cell.instance, cell.first, cell.size)
            point = Point(len(self.events), InitialWrite(), cell=cell, name=cell.instance.name)
            self.add(MemoryEvent(point=point, value=Value(Cases({number: TRUE}))))
