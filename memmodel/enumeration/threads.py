"""Run one thread by itself, with every value that its reads may return.

In: a program, the memory map, values for reads. Out: its traces: the events it can produce, with their dependencies,
and its registers at the end. Settled here: control flow, addresses, which rounds of a loop are run.
Left open: where the values that it read came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from memmodel.enumeration.loops import Loop, assigned, find_loops, is_hidden
from memmodel.enumeration.meter import CANDIDATE, STEP, Meter
from memmodel.enumeration.traces import (
    Asked,
    Half,
    Operation,
    Oracle,
    Reduction,
    Runs,
    Stand,
    State,
    ThreadEvent,
    Trace,
    Walk,
    issue_depends,
)
from memmodel.errors import InputError
from memmodel.isa.arith import apply
from memmodel.isa.memory import Cell, MemoryMap
from memmodel.isa.ops import (
    AddressOf,
    Assign,
    Barrier,
    Commit,
    Const,
    Event,
    Expr,
    Fence,
    Get,
    Issue,
    Jump,
    Mbarrier,
    Op,
    Part,
    Read,
    Reduce,
    Signal,
    Wait,
    Write,
)
from memmodel.isa.program import Program, Step
from memmodel.litmus.syntax import LitmusTest, Thread


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

    def run(self, oracle: Oracle, meter: Meter, *, waits: bool = False) -> Runs:
        """All complete runs, depth first over the values that `oracle` offers; with `waits` those too that stand."""
        walk = Walk(oracle, meter, Runs(), [State(dict(self.initial))], waits)
        while walk.pending:
            self._advance(walk.pending.pop(), walk)
        return walk.runs

    # ---- one run -------------------------------------------------------------------------------------------

    def _advance(self, state: State, walk: Walk) -> None:
        """Run until the thread ends, is abandoned, or needs a value; then a state for each value is pending."""
        steps = self.program.steps
        while state.at < len(steps):
            walk.meter.spend(STEP)
            step = steps[state.at]
            if state.at in self._heads:
                state.heads[state.at] = len(state.events)
            if not self._enabled(state, step):
                self._skip(state, step)
            elif isinstance(step.op, Jump):
                if not self._jump(state, step.op, walk):
                    return
            elif self._step(state, step.op, walk):
                state.at += 1
            else:
                return
        walk.runs.traces.append(self._trace(state, walk))

    def _trace(self, state: State, walk: Walk, stand: Stand | None = None) -> Trace:
        walk.meter.spend(CANDIDATE)
        registers = {name: value for name, value in state.registers.items() if not is_hidden(name)}
        return Trace(tuple(state.events), tuple(state.values), registers, tuple(state.reductions), stand, state.exited)

    def _step(self, state: State, op: Op, walk: Walk) -> bool:
        """Run one step that does not jump; False if the run ends here: abandoned, or continued by states pending."""
        if isinstance(op, Assign):
            state.set(op.register, self.value(op.value, state), state.depends(op.value) | state.guard_depends)
        elif isinstance(op, Read):
            return self._read(state, op, walk)
        elif isinstance(op, Reduce):
            return self._reduce(state, op, walk)
        elif isinstance(op, Write):
            return self._write(state, op)
        elif isinstance(op, Barrier):
            half = self._half(state, op)
            if walk.waits and half.half == "wait":
                walk.runs.standing.append(self._trace(state, walk, Stand(state.at, half=half)))
            state.add(self._event(state, op.event, half=half))
        elif isinstance(op, Fence):
            state.add(self._event(state, op.event))
        elif isinstance(op, Issue):
            return self._issue(state, op, walk)
        elif isinstance(op, Commit):
            state.commits.append((op.track, len(state.events)))
        elif isinstance(op, Wait):
            state.add(self._event(state, op.event, completes=self._waited(state, op)))
        elif isinstance(op, Mbarrier):
            return self._mbarrier(state, op, walk)
        return True

    def _enabled(self, state: State, step: Step) -> bool:
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

    def _skip(self, state: State, step: Step) -> None:
        for name in assigned(step.op):
            state.dependencies[name] = state.dependencies.get(name, 0) | state.guard_depends
        if isinstance(step.op, Jump):
            state.ctrl |= state.guard_depends
        state.at += 1

    def _jump(self, state: State, op: Jump, walk: Walk) -> bool:
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
                if walk.waits:
                    stand = Stand(state.at, first=state.heads[loop.first])
                    walk.runs.standing.append(self._trace(state, walk, stand))
                return False
            rounds = state.rounds.get(state.at, 0) + 1
            if rounds > self._bound:
                walk.runs.cut = True
                return False
            state.rounds[state.at] = rounds
        state.exited = op.label is None
        state.at = len(self.program.steps) if op.label is None else self.program.labels[op.label]
        state.instruction = None
        return True

    def _wrote(self, state: State, loop: Loop) -> bool:
        """Has this round of the loop written? Then it is kept: only rounds that leave nothing behind are dropped."""
        return any("W" in event.made.tags for event in state.events[state.heads[loop.first] :])

    def _event(
        self,
        state: State,
        made: Event,
        *,
        addr: int = 0,
        data: int = 0,
        cell: Cell | None = None,
        rmw: int | None = None,
        half: Half | None = None,
        part: int | None = None,
        completes: int = 0,
        operation: Operation | None = None,
    ) -> ThreadEvent:
        """An event of the current step; what it covers is looked up here."""
        begin = None
        if made.covers is not None and made.covers.address is not None:
            begin = self.value(made.covers.address, state)
            addr |= state.depends(made.covers.address)
        source = None if part is None else state.source
        return ThreadEvent(
            *(state.at, made, cell, addr, data, state.control(), rmw),
            *(half, begin, part, source, completes, operation),
        )

    def _read(self, state: State, op: Read | Part, walk: Walk, part: int | None = None) -> bool:
        """One successor for each value that a read may return. A part leaves the thread at its instruction."""
        cell = self._cell(self.value(op.address, state))
        if cell is None:
            return False
        walk.runs.read.add(cell.location)
        event = self._event(state, op.event, addr=state.depends(op.address), cell=cell, part=part)
        for value in reversed(walk.oracle(cell.location, state.taken)):
            walk.meter.spend(STEP)
            after = state.copy()
            after.taken += 1
            if op.register is not None:
                after.set(op.register, value, 1 << len(state.events) | state.guard_depends)
            after.add(event, value)
            after.at += part is None
            walk.pending.append(after)
        return False

    def _reduce(self, state: State, op: Reduce, walk: Walk) -> bool:
        """One successor for each value that a barrier reduction may return."""
        for value in reversed(walk.oracle(op, state.taken)):
            walk.meter.spend(STEP)
            after = state.copy()
            after.taken += 1
            after.reductions.append(self._reduction(state, op, value))
            after.set(op.register, value, state.depends(op.value) | state.guard_depends)
            after.at += 1
            walk.pending.append(after)
        return False

    def _write(self, state: State, op: Write) -> bool:
        """Add a write, unless its `when` is zero; False if nothing lies at its address."""
        if op.when is not None and not self.value(op.when, state):
            return True
        cell = self._cell(self.value(op.address, state))
        if cell is None:
            return False
        data, rmw = state.depends(op.value, op.when), len(state.events) - 1 if op.rmw else None
        event = self._event(state, op.event, addr=state.depends(op.address), data=data, cell=cell, rmw=rmw)
        state.add(event, self.value(op.value, state))
        return True

    # ---- asynchronous steps --------------------------------------------------------------------------------

    def _issue(self, state: State, op: Issue, walk: Walk) -> bool:
        """The issue, then its parts and signals in order; a read part is left as `_read` leaves a read."""
        if state.source is None:
            addr, data = issue_depends(state, op)
            state.add(self._event(state, op.event, addr=addr, data=data))
            state.source = len(state.events) - 1
        while (number := len(state.events) - state.source - 1) < len(op.parts):
            part = op.parts[number]
            if isinstance(part, Part) and part.half == "read":
                return self._read(state, part, walk, number)
            if not (self._signal(state, part, number) if isinstance(part, Signal) else self._put(state, part, number)):
                return False
        state.source = None
        return True

    def _put(self, state: State, part: Part, number: int) -> bool:
        cell = self._cell(self.value(part.address, state))
        if cell is None or part.value is None:
            return False
        rmw = len(state.events) - 1 if part.rmw else None
        addr, data = state.depends(part.address), state.depends(part.value)
        event = self._event(state, part.event, addr=addr, data=data, cell=cell, rmw=rmw, part=number)
        state.add(event, self.value(part.value, state))
        return True

    def _signal(self, state: State, signal: Signal, number: int) -> bool:
        cell = self._cell(self.value(signal.address, state))
        if cell is None:
            return False
        assert state.source is not None
        completes = sum(1 << state.source + 1 + one for one in signal.of)
        if signal.tracks is not None:
            completes |= self._tracked(state, signal.tracks, None)
        if signal.bytes is None:
            operation = Operation(cell.location, "arrive", count=1)
        else:
            operation = Operation(cell.location, "complete_tx", bytes=self.value(signal.bytes, state))
        addr, data = state.depends(signal.address), state.depends(signal.bytes)
        state.add(
            self._event(
                state, signal.event, addr=addr, data=data, part=number, completes=completes, operation=operation
            )
        )
        return True

    def _waited(self, state: State, op: Wait) -> int:
        """The parts that a wait waits for."""
        if op.pending is None:
            return self._tracked(state, op.track, op.only)
        ends = [end for track, end in state.commits if track == op.track]
        groups = len(ends) - self.value(op.pending, state)
        return self._tracked(state, op.track, op.only, ends[groups - 1]) if groups > 0 else 0

    def _tracked(self, state: State, track: str, only: str | None, end: int | None = None) -> int:
        """The parts of that name among the first `end` events, those in the cat set `only` if it is given."""
        found = 0
        for number, event in enumerate(state.events[:end]):
            if event.part is not None and (only is None or only in event.made.tags):
                op = self.program.steps[event.step].op
                part = op.parts[event.part] if isinstance(op, Issue) else None
                if isinstance(part, Part) and track in part.track:
                    found |= 1 << number
        return found

    def _mbarrier(self, state: State, op: Mbarrier, walk: Walk) -> bool:
        """An operation on an mbarrier object; one successor for each answer that it may give, if it gives any."""
        cell = self._cell(self.value(op.address, state))
        if cell is None:
            return False
        addr = state.depends(op.address)
        data = state.depends(op.count, op.bytes, op.parity, op.state)
        count, size, parity, token = (
            None if one is None else self.value(one, state) for one in (op.count, op.bytes, op.parity, op.state)
        )
        what = "test" if op.action == "test" else "state"
        asked = [(op.register, what), (op.pending, "pending")]
        offers: list[Sequence[int | None]] = [[None], [None]]
        told = 0
        for number, (register, which) in enumerate(asked):
            if register is not None:
                if which != "test":
                    walk.runs.asked.add(cell.location)
                offers[number] = walk.oracle(Asked(cell.location, which), state.told + told)
                told += 1
        for result, before in reversed(list(product(*offers))):
            walk.meter.spend(STEP)
            after = state if not told else state.copy()
            operation = Operation(
                cell.location, op.action, count or 0, size or 0, op.drop, parity, token, result, before, op.no_complete
            )
            depends = 1 << len(state.events) | state.guard_depends
            after.add(self._event(state, op.event, addr=addr, data=data, operation=operation))
            if not told:
                return True
            for (register, _), value in zip(asked, (result, before), strict=True):
                if register is not None and value is not None:
                    after.set(register, value, depends)
            after.told += told
            after.at += 1
            walk.pending.append(after)
        return False

    def _half(self, state: State, op: Barrier) -> Half:
        place = self.thread.place
        domain: object = place.cta_id if op.domain == "cta" else place.cluster_id
        if op.domain == "warp":
            domain = (place.cta_id, self.thread.name if place.warp is None else place.warp)
        key = tuple(self.value(one, state) for one in op.key)
        count = 0 if op.count is None else self.value(op.count, state)
        return Half(op.half, (op.domain, domain, key), count)

    def _reduction(self, state: State, op: Reduce, result: int) -> Reduction:
        """The reduction over the generation that the thread's last wait belonged to."""
        waits = [event.half for event in state.events if event.half is not None and event.half.half == "wait"]
        resource = waits[-1].resource
        generation = sum(half.resource == resource for half in waits) - 1
        return Reduction(resource, generation, op.op, self.value(op.value, state), result)

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, expr: Expr, state: State) -> int:
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
