"""Run one thread by itself, with every value that its reads may return.

In: a program, the memory map, values for reads. Out: its traces: the events it can produce, with their dependencies,
and its registers at the end. Settled here: control flow, addresses, which rounds of a loop are run.
Left open: where the values that it read came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memmodel.enumeration.loops import Loop, assigned, find_loops
from memmodel.enumeration.meter import CANDIDATE, STEP, Meter
from memmodel.errors import InputError, InternalError
from memmodel.isa.arith import apply
from memmodel.isa.memory import Cell, Location, MemoryMap
from memmodel.isa.ops import (
    AddressOf,
    Assign,
    Barrier,
    Const,
    Expr,
    Fence,
    Get,
    Jump,
    Read,
    Reduce,
    Write,
    registers_of,
)
from memmodel.isa.program import Program, Step
from memmodel.litmus.syntax import LitmusTest, Thread

Resource = tuple[object, ...]
"""A barrier: the domain, which CTA, cluster or warp, and the values of its key."""


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a barrier as executed: which resource, and how many arrivals it asks for.

    `count` 0: all threads of the domain that the test has; negative: those that arrive.
    """

    half: str
    resource: Resource
    count: int


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """One event of a trace. `addr`, `data`, `ctrl`: masks over the trace's events. `rmw`: the atom's read, or None.

    `range_at`: where the range of a fence with a range begins.
    """

    step: int
    cell: Cell | None = None
    addr: int = 0
    data: int = 0
    ctrl: int = 0
    rmw: int | None = None
    half: Half | None = None
    range_at: int | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a thread put into a barrier reduction of one generation and what it took the result to be."""

    resource: Resource
    generation: int
    op: str
    value: int
    result: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One complete run of a thread: events (apart from values, which make `values`), registers at the end."""

    events: tuple[ThreadEvent, ...]
    values: tuple[int | None, ...]
    registers: dict[str, int]
    reductions: tuple[Reduction, ...]


@dataclass(slots=True)
class Runs:
    """The traces of one thread. `cut`: a loop was stopped at the bound. `read`: the locations that any trace reads."""

    traces: list[Trace] = field(default_factory=list)
    cut: bool = False
    read: set[Location] = field(default_factory=set)


Oracle = Callable[[Location | Reduce, int], Sequence[int]]
"""The values that a read of a location, or a barrier reduction, may return; with the number of values taken before."""


class Runner:
    """One thread, ready to be run. `bound` None: loops are followed wherever the values lead (a given witness)."""

    def __init__(
        self, test: LitmusTest, thread: Thread, program: Program, memory: MemoryMap, bound: int | None
    ) -> None:
        self.program = program
        self.thread = thread
        self._memory = memory
        self._bound = bound
        self._loops = find_loops(program)
        self._heads = {loop.first for loop in self._loops.values()}
        self._cells: dict[int, Cell | None] = {}
        self.initial: dict[str, int] = {}
        for one in test.registers:
            if one.thread == thread.name:
                value = self._address(one.value) if isinstance(one.value, str) else one.value
                self.initial[one.register] = value

    def run(self, oracle: Oracle, meter: Meter) -> Runs:
        """All complete runs, depth first over the values that `oracle` offers."""
        runs = Runs()
        pending = [_State(dict(self.initial))]
        while pending:
            state = pending.pop()
            self._advance(state, oracle, runs, pending, meter)
        return runs

    # ---- one run -------------------------------------------------------------------------------------------

    def _advance(self, state: _State, oracle: Oracle, runs: Runs, pending: list[_State], meter: Meter) -> None:
        """Run until the thread ends, is abandoned, or needs a value; then a state for each value is pending."""
        steps = self.program.steps
        while state.at < len(steps):
            meter.spend(STEP)
            step = steps[state.at]
            if state.at in self._heads:
                state.heads[state.at] = len(state.events)
            if not self._enabled(state, step):
                self._skip(state, step)
                continue
            op = step.op
            if isinstance(op, Assign):
                state.set(op.register, self.value(op.value, state), state.depends(op.value) | state.guard_depends)
            elif isinstance(op, Jump):
                if not self._jump(state, op, runs):
                    return
                continue
            elif isinstance(op, Read | Reduce):
                self._branch(state, op, oracle, runs, pending, meter)
                return
            elif isinstance(op, Write):
                if not self._write(state, op):
                    return
            elif isinstance(op, Barrier):
                state.add(ThreadEvent(state.at, ctrl=state.control(), half=self._half(state, op)), None)
            elif isinstance(op, Fence):
                state.add(self._fence(state, op), None)
            else:
                raise InternalError(f"a step that threads do not run: {type(op).__name__}")
            state.at += 1
        meter.spend(CANDIDATE)
        registers = {name: value for name, value in state.registers.items() if not name.startswith("$")}
        runs.traces.append(Trace(tuple(state.events), tuple(state.values), registers, tuple(state.reductions)))

    def _enabled(self, state: _State, step: Step) -> bool:
        """Does the step's guard let it run? A guard is looked at once, when its instruction starts."""
        if step.index != state.instruction:
            state.instruction = step.index
            state.guard_depends = 0
            state.enabled = True
            if step.guard is not None:
                name = step.guard.register
                state.guard_depends = state.dependencies.get(name, 0)
                state.enabled = bool(state.registers.get(name, 0)) is not step.guard.negated
        return state.enabled

    def _skip(self, state: _State, step: Step) -> None:
        name = assigned(step.op)
        if name is not None:
            state.dependencies[name] = state.dependencies.get(name, 0) | state.guard_depends
        if isinstance(step.op, Jump):
            state.ctrl |= state.guard_depends
        state.at += 1

    def _jump(self, state: _State, op: Jump, runs: Runs) -> bool:
        """Take or pass a jump; False if this run is abandoned (a spin loop goes round, or a loop exceeds the bound)."""
        state.ctrl |= state.guard_depends
        if op.when is not None:
            state.ctrl |= state.depends(op.when)
            if not self.value(op.when, state):
                state.at += 1
                return True
        loop = self._loops.get(state.at)
        if loop is not None and self._bound is not None:
            if loop.spin and not self._wrote(state, loop):
                return False
            rounds = state.rounds.get(state.at, 0) + 1
            if rounds > self._bound:
                runs.cut = True
                return False
            state.rounds[state.at] = rounds
        state.at = len(self.program.steps) if op.label is None else self.program.labels[op.label]
        state.instruction = None
        return True

    def _wrote(self, state: _State, loop: Loop) -> bool:
        """Has this round of the loop written? Then it is kept: only rounds that leave nothing behind are dropped."""
        steps = self.program.steps
        return any(isinstance(steps[event.step].op, Write) for event in state.events[state.heads[loop.first] :])

    def _branch(
        self, state: _State, op: Read | Reduce, oracle: Oracle, runs: Runs, pending: list[_State], meter: Meter
    ) -> None:
        """One successor for each value that a read or a reduction may return."""
        if isinstance(op, Read):
            cell = self._cell(self.value(op.address, state))
            if cell is None:
                return
            runs.read.add(cell.location)
            where: Location | Reduce = cell.location
            event = ThreadEvent(state.at, cell, addr=state.depends(op.address), ctrl=state.control())
            depends = 1 << len(state.events)
        else:
            where = op
            depends = state.depends(op.value)
        for value in reversed(oracle(where, state.taken)):
            meter.spend(STEP)
            next_state = state.copy()
            next_state.taken += 1
            if isinstance(op, Read):
                next_state.add(event, value)
            else:
                next_state.reductions.append(self._reduction(state, op, value))
            if op.register is not None:
                next_state.set(op.register, value, depends | state.guard_depends)
            next_state.at += 1
            pending.append(next_state)

    def _write(self, state: _State, op: Write) -> bool:
        """Add a write, unless its `when` is zero; False if nothing lies at its address."""
        data = state.depends(op.value)
        if op.when is not None:
            data |= state.depends(op.when)
            if not self.value(op.when, state):
                return True
        cell = self._cell(self.value(op.address, state))
        if cell is None:
            return False
        rmw = len(state.events) - 1 if op.rmw else None
        event = ThreadEvent(state.at, cell, state.depends(op.address), data, state.control(), rmw)
        state.add(event, self.value(op.value, state))
        return True

    def _fence(self, state: _State, op: Fence) -> ThreadEvent:
        covers = op.event.covers
        if covers is None or covers.address is None:
            return ThreadEvent(state.at, ctrl=state.control())
        depends, begin = state.depends(covers.address), self.value(covers.address, state)
        return ThreadEvent(state.at, addr=depends, ctrl=state.control(), range_at=begin)

    def _half(self, state: _State, op: Barrier) -> Half:
        place = self.thread.place
        domain: object = place.cta_id if op.domain == "cta" else place.cluster_id
        if op.domain == "warp":
            domain = (place.cta_id, self.thread.name if place.warp is None else place.warp)
        key = tuple(self.value(one, state) for one in op.key)
        count = 0 if op.count is None else self.value(op.count, state)
        return Half(op.half, (op.domain, domain, key), count)

    def _reduction(self, state: _State, op: Reduce, result: int) -> Reduction:
        """The reduction over the generation that the thread's last wait belonged to."""
        waits = [event.half for event in state.events if event.half is not None and event.half.half == "wait"]
        resource = waits[-1].resource
        generation = sum(half.resource == resource for half in waits) - 1
        return Reduction(resource, generation, op.op, self.value(op.value, state), result)

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, expr: Expr, state: _State) -> int:
        """The value of an expression in a state."""
        if isinstance(expr, Get):
            return state.registers.get(expr.register, 0)
        if isinstance(expr, Const | AddressOf):
            return self.constant(expr)
        return apply(expr.op, tuple(self.value(arg, state) for arg in expr.args), expr.type)

    def constant(self, expr: Const | AddressOf) -> int:
        """The value of an expression without registers."""
        return expr.value if isinstance(expr, Const) else self._address(expr.name, expr.offset, expr.cta)

    def _address(self, name: str, offset: int = 0, cta: int | None = None) -> int:
        address = self._memory.address(name, offset, self.thread.place, cta)
        if address is None:
            raise InputError(f"'{name}' has no instance that thread {self.thread.name} can name", self.thread.span)
        return address

    def _cell(self, address: int) -> Cell | None:
        if address not in self._cells:
            self._cells[address] = self._memory.cell(address)
        return self._cells[address]


@dataclass(slots=True)
class _State:
    """A thread in the middle of a run. `heads`: where the events of the current round of a loop start."""

    registers: dict[str, int]
    dependencies: dict[str, int] = field(default_factory=dict)
    events: list[ThreadEvent] = field(default_factory=list)
    values: list[int | None] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    rounds: dict[int, int] = field(default_factory=dict)
    heads: dict[int, int] = field(default_factory=dict)
    at: int = 0
    taken: int = 0
    ctrl: int = 0
    instruction: int | None = None
    enabled: bool = True
    guard_depends: int = 0

    def copy(self) -> _State:
        return _State(
            self.registers.copy(),
            self.dependencies.copy(),
            self.events.copy(),
            self.values.copy(),
            self.reductions.copy(),
            self.rounds.copy(),
            self.heads.copy(),
            self.at,
            self.taken,
            self.ctrl,
            self.instruction,
            self.enabled,
            self.guard_depends,
        )

    def add(self, event: ThreadEvent, value: int | None) -> None:
        self.events.append(event)
        self.values.append(value)

    def set(self, register: str, value: int, depends: int) -> None:
        self.registers[register] = value
        self.dependencies[register] = depends

    def depends(self, expr: Expr) -> int:
        """The reads whose values an expression depends on."""
        if isinstance(expr, Const | AddressOf):
            return 0
        mask = 0
        for name in registers_of(expr):
            mask |= self.dependencies.get(name, 0)
        return mask

    def control(self) -> int:
        """The reads that the execution of the current step depends on."""
        return self.ctrl | self.guard_depends
