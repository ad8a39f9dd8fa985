"""Run every thread once for all executions: forks become formulas, and joins merge what the branches left.

In: LitmusTest. Out: EventGraph. Settled here: which events can run and when, their locations, values, dependencies and
order. Left to `encode`: where reads read from, coherence, and everything else that an execution decides.

What a read may return depends on what writes may write, so the threads are run again until the sets of possible
values no longer grow (docs/executions.md, "Choices").
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from memmodel.errors import InputError, TooLarge
from memmodel.events.bits import WIDTH
from memmodel.events.control import Loop, Loops
from memmodel.events.graph import CommitMark, Event, EventGraph, MbarrierStep, Reduction, Stuck
from memmodel.events.values import (
    FEW,
    ZERO,
    Deps,
    Value,
    constant,
    evaluate,
    guard_deps,
    merge_deps,
    select,
)
from memmodel.isa import Program, Step, ops, programs
from memmodel.isa.memory import Location, MemoryMap
from memmodel.litmus.syntax import And, Compare, Condition, LitmusTest, Not, Number, Or, Thread
from memmodel.logic import FALSE, TRUE, Logic

MAX_EVENTS = 600
"""More events than this and the test is reported as too large."""

Domains = dict[Location, set[int] | None]
"""Integers that reads of a location may return; None: too many to list, reads are wide."""


def elaborate(test: LitmusTest, bound: int, *, hang: bool = False) -> EventGraph:
    """Events of a test with every loop unrolled `bound` times. Raises InputError or TooLarge.

    With `hang`, a thread may also end at a wait for good (EventGraph.stuck); without, every thread reaches its end.
    """
    memory = MemoryMap(test)
    code = programs(test)
    domains: Domains = {where: {value} for where, value in memory.initial.items()}
    _add_constants(test, code, memory, domains)
    seeds = _constants(test, code)
    rounds = 2 + sum(_writes(step.op) for program in code for step in program.steps) * (bound + 1)
    for _ in range(rounds):
        run = _Run(test, code, memory, domains, bound)
        run.hang = hang
        graph = run.all_threads()
        grown = _grow(graph, domains, seeds)
        if not grown:
            break
    return graph


def _grow(graph: EventGraph, domains: Domains, seeds: set[int]) -> bool:
    """Add the values that writes may write to the domains of their locations; did any domain change?"""
    grown = False
    for event in graph.events:
        if event.thread is None or not event.is_write or event.value is None:
            continue
        values = None if event.value.bits is not None else set(event.value.cases)
        if values is not None and event.value.deps:
            values |= seeds
        for location in event.at(graph.logic):
            known = domains[location]
            if known is None or (values is not None and values <= known):
                continue
            merged = None if values is None or len(values | known) > FEW else values | known
            domains[location] = merged
            grown = True
    return grown


def _add_constants(test: LitmusTest, code: tuple[Program, ...], memory: MemoryMap, domains: Domains) -> None:
    """Constants stored to a named location belong to its domain, even where only that value lets the store run."""
    for thread, program in zip(test.threads, code, strict=True):
        for step in program.steps:
            op = step.op
            if isinstance(op, ops.Write) and isinstance(op.value, ops.Const) and isinstance(op.address, ops.AddressOf):
                address = memory.address(op.address.name, op.address.offset, thread.place, op.address.cta)
                cell = memory.cell(address) if address is not None else None
                known = domains[cell.location] if cell is not None else None
                if known is not None:
                    known.add(op.value.value)


def _writes(op: ops.Op) -> int:
    """How many writes a step makes."""
    if isinstance(op, ops.Issue):
        return sum(isinstance(part, ops.Part) and part.half == "write" for part in op.parts)
    return int(isinstance(op, ops.Write))


def _constants(test: LitmusTest, code: tuple[Program, ...]) -> set[int]:
    """Constants of the condition and of the stores: what a cycle of copies may produce out of thin air."""
    found = {step.op.value.value for program in code for step in program.steps
             if isinstance(step.op, ops.Write) and isinstance(step.op.value, ops.Const)}  # fmt: skip

    def visit(condition: Condition) -> None:
        if isinstance(condition, And | Or):
            for item in condition.items:
                visit(item)
        elif isinstance(condition, Not):
            visit(condition.item)
        elif isinstance(condition, Compare):
            found.update(term.value for term in (condition.left, condition.right) if isinstance(term, Number))

    visit(test.condition)
    return found


@dataclass(slots=True)
class _State:
    """A thread between two steps: the formula under which it is here, its registers, the branches that led here.

    `wrote`: per spin loop being run, the formula under which the present round has written.
    """

    path: int
    registers: dict[str, Value]
    control: Deps
    counts: dict[Loop, int] = field(default_factory=dict)
    wrote: dict[Loop, int] = field(default_factory=dict)


class _Run:
    """One pass over all threads with given domains of read values."""

    def __init__(
        self, test: LitmusTest, code: tuple[Program, ...], memory: MemoryMap, domains: Domains, bound: int
    ) -> None:
        self.test = test
        self.code = code
        self.memory = memory
        self.domains = domains
        self.bound = bound
        self.logic = Logic()
        self.events: list[Event] = []
        self.cut: list[int] = []
        self.reductions: list[Reduction] = []
        self.commits: list[CommitMark] = []
        self.hang = False
        self.stuck: list[Stuck] = []
        self.most_phases = 2 + sum(
            isinstance(step.op, ops.Mbarrier) and step.op.action == "arrive"
            for program in code
            for step in program.steps
        ) * (bound + 1)

    def all_threads(self) -> EventGraph:
        for where, number in self.memory.initial.items():
            event = self._event(None, None, frozenset(("IW", "W", "M", "GEN", "WEAK")))
            event.where = {(where, (where.name, where.index)): TRUE}
            event.value = constant(number)
        finals = [self._thread(index, thread, self.code[index]) for index, thread in enumerate(self.test.threads)]
        return EventGraph(
            self.test, self.logic, self.events, finals, self.cut, self.reductions, self.commits, self.memory, self.stuck
        )

    def _event(self, thread: int | None, owner: Thread | None, tags: frozenset[str]) -> Event:
        if len(self.events) >= MAX_EVENTS:
            raise TooLarge(f"more than {MAX_EVENTS} events", hint="shorten the test, or lower the loop bound")
        event = Event(len(self.events), thread, owner.place if owner else None, tags)
        self.events.append(event)
        return event

    # ---- one thread ----------------------------------------------------------------------------------------------

    def _thread(self, index: int, thread: Thread, program: Program) -> dict[str, Value]:
        loops = Loops(program)
        logic = self.logic
        self._owner, self._number = thread, index
        self._round_starts: dict[Loop, int] = {}
        start = _State(TRUE, self._initial_registers(thread), {})
        waiting: dict[tuple[int, ...], list[tuple[int, _State]]] = {}
        order: list[tuple[int, ...]] = []

        def arrive(pc: int, state: _State) -> None:
            """Queue a state; keys sort in order of execution, rounds of a loop one after the other."""
            key: list[int] = []
            for loop in loops.around(pc):
                key += (loop.first, state.counts.get(loop, 0))
            key.append(pc)
            if tuple(key) not in waiting:
                heapq.heappush(order, tuple(key))
            waiting.setdefault(tuple(key), []).append((pc, state))

        arrive(0, start)
        while True:
            arrived = waiting.pop(heapq.heappop(order))
            pc = arrived[0][0]
            state = self._join([state for _, state in arrived])
            if pc == len(program.steps):
                logic.require(state.path, *(stuck.when for stuck in self.stuck if stuck.thread == index))
                return state.registers
            for loop in loops.around(pc):
                if loop.start == pc:
                    self._round_starts[loop] = len(self.events)
            step = program.steps[pc]
            if isinstance(step.op, ops.Jump):
                self._jump(program, loops, pc, step, step.op, state, arrive)
            else:
                spins = [loop for loop in loops.around(pc) if loop.spin]
                self._step(index, thread, step, state, spins)
                self._leave(loops, state, pc + 1)
                arrive(pc + 1, state)
            if not order:
                logic.require(*(stuck.when for stuck in self.stuck if stuck.thread == index))  # no path reaches the end
                return {}

    def _initial_registers(self, thread: Thread) -> dict[str, Value]:
        registers = {}
        for init in self.test.registers:
            if init.thread == thread.name:
                number = init.value
                if isinstance(number, str):
                    number = self._address(ops.AddressOf(number), thread, None)
                registers[init.register] = constant(number)
        return registers

    def _join(self, states: list[_State]) -> _State:
        if len(states) == 1:
            return states[0]
        logic = self.logic
        path = FALSE
        for state in states:
            path = logic.either(path, state.path)
        names = {name: None for state in states for name in state.registers}
        registers = {
            name: select(logic, [(state.path, state.registers.get(name, ZERO)) for state in states]) for name in names
        }
        control = merge_deps(logic, *(guard_deps(logic, state.path, state.control) for state in states))
        wrote: dict[Loop, int] = {}
        for state in states:
            for loop, formula in state.wrote.items():
                wrote[loop] = logic.either(wrote.get(loop, FALSE), logic.both(state.path, formula))
        return _State(path, registers, control, dict(states[0].counts), wrote)

    def _leave(self, loops: Loops, state: _State, pc: int) -> None:
        """Forget the rounds of loops that do not contain the next step."""
        if state.counts or state.wrote:
            around = loops.around(pc)
            state.counts = {loop: count for loop, count in state.counts.items() if loop in around}
            state.wrote = {loop: formula for loop, formula in state.wrote.items() if loop in around}

    def _jump(self, program, loops, pc, step, op, state, arrive) -> None:  # type: ignore[no-untyped-def]
        logic = self.logic
        taken, deps = self._guard(step, state)
        if op.when is not None:
            value = self._value(op.when, state, step)
            taken = logic.both(taken, value.is_nonzero(logic))
            deps = merge_deps(logic, deps, value.deps)
        control = merge_deps(logic, state.control, deps) if deps else state.control
        go, stay = logic.both(state.path, taken), logic.both(state.path, -taken)
        target = len(program.steps) if op.label is None else program.labels[op.label]
        loop = loops.by_end.get(pc) if op.label is not None and target <= pc else None
        if loop is not None and go != FALSE:
            count = state.counts.get(loop, 0)
            if loop.spin:
                wrote = state.wrote.get(loop, FALSE)
                silent = logic.both(go, -wrote)  # a round that leaves nothing behind is not run at all
                if self.hang and silent != FALSE:
                    here = tuple(range(self._round_starts[loop], len(self.events)))
                    self.stuck.append(Stuck(self._number, silent, step.instruction, here))
                else:
                    logic.require(-silent)
                go = logic.both(go, wrote)
                if logic.refuted(go):
                    go = FALSE
            if count >= self.bound and go != FALSE:
                self.cut.append(go)
                logic.require(-go)
                go = FALSE
            if go != FALSE:
                around = _State(
                    go, dict(state.registers), control, {**state.counts, loop: count + 1}, dict(state.wrote)
                )
                around.wrote[loop] = FALSE
                around.counts = {k: v for k, v in around.counts.items() if k == loop or k in loops.around(target)}
                arrive(target, around)
        elif go != FALSE:
            after = _State(go, dict(state.registers), control, dict(state.counts), dict(state.wrote))
            self._leave(loops, after, target)
            arrive(target, after)
        if stay != FALSE:
            after = _State(stay, state.registers, control, state.counts, state.wrote)
            self._leave(loops, after, pc + 1)
            arrive(pc + 1, after)

    # ---- one step ------------------------------------------------------------------------------------------------

    def _guard(self, step: Step, state: _State) -> tuple[int, Deps]:
        if step.guard is None:
            return TRUE, {}
        value = state.registers.get(step.guard.register, ZERO)
        holds = value.is_nonzero(self.logic)
        return (-holds if step.guard.negated else holds), value.deps

    def _value(self, expr: ops.Expr, state: _State, step: Step) -> Value:
        return evaluate(self.logic, expr, state.registers, lambda name: self._address(name, self._owner, step))

    def _address(self, name: ops.AddressOf, thread: Thread, step: Step | None) -> int:
        address = self.memory.address(name.name, name.offset, thread.place, name.cta)
        if address is None:
            raise InputError(
                f"{name.name} has no instance there: no thread of that CTA is in this cluster",
                step.instruction.span if step else None,
            )
        return address

    def _step(self, index: int, thread: Thread, step: Step, state: _State, spins: list[Loop]) -> None:
        logic = self.logic
        holds, guard_dependencies = self._guard(step, state)
        runs = logic.both(state.path, holds)
        if runs == FALSE:
            self._assign_nothing(step, state, guard_dependencies)
            return
        op = step.op
        if isinstance(op, ops.Assign):
            self._assign(op.register, self._value(op.value, state, step), state, holds, guard_dependencies)
            return
        if isinstance(op, ops.Reduce):
            self._reduce(index, op, step, state, holds, guard_dependencies)
            return
        if isinstance(op, ops.Commit):
            self.commits.append(CommitMark(index, len(self.events), op.track, runs))
            return
        assert not isinstance(op, ops.Jump), "jumps move between steps"
        event = self._event_of(op.event, index, thread, step, state)
        event.control_deps = merge_deps(logic, state.control, guard_dependencies)
        event.runs = runs
        if isinstance(op, ops.Read):
            self._locate(event, op.address, state, step)
            event.value = self._read_value(event)
            if op.register is not None:
                self._assign(op.register, event.value, state, holds, guard_dependencies)
        elif isinstance(op, ops.Write):
            self._locate(event, op.address, state, step)
            event.value = self._value(op.value, state, step)
            event.data_deps = event.value.deps
            if op.when is not None:
                condition = self._value(op.when, state, step)
                event.runs = logic.both(runs, condition.is_nonzero(logic))
                event.data_deps = merge_deps(logic, event.data_deps, condition.deps)
            if op.rmw:
                event.partner = event.uid - 1
            for loop in spins:
                state.wrote = {**state.wrote, loop: logic.either(state.wrote.get(loop, FALSE), event.runs)}
            if event.runs == FALSE:
                self.events.pop()
        elif isinstance(op, ops.Barrier):
            self._barrier(event, op, state, step)
            if self.hang and op.half == "wait":
                stays = logic.both(runs, logic.var(f"stuck(e{event.uid})"))
                event.runs = logic.both(runs, -stays)
                self.stuck.append(Stuck(index, stays, step.instruction, (), event.uid))
                state.path = logic.both(state.path, -stays)
        elif isinstance(op, ops.Wait):
            event.wait = op
            event.pending = self._known(op.pending, state, step) if op.pending is not None else None
        elif isinstance(op, ops.Mbarrier):
            self._mbarrier(event, op, state, step, holds, guard_dependencies)
        elif isinstance(op, ops.Issue):
            self._issue(event, op, index, thread, state, step)

    def _event_of(self, spec: ops.Event, index: int, thread: Thread, step: Step, state: _State) -> Event:
        event = self._event(index, thread, spec.tags)
        event.scope = spec.scope
        event.instruction = step.instruction
        event.covers, event.unit, event.form = spec.covers, spec.unit, spec.form
        if spec.covers is not None and spec.covers.address is not None:
            event.covers_from = self._known(spec.covers.address, state, step)
        return event

    def _known(self, expr: ops.Expr, state: _State, step: Step) -> int:
        """The value of an operand that may not depend on a loaded value."""
        number = self._value(expr, state, step).constant
        if number is None:
            raise InputError("this operand must not depend on a loaded value", step.instruction.span)
        return number

    # ---- asynchronous steps --------------------------------------------------------------------------------------

    def _issue(self, issue: Event, op: ops.Issue, index: int, thread: Thread, state: _State, step: Step) -> None:
        logic = self.logic
        uids: list[int] = []
        inner: set[int] = set()
        temporaries = dict(state.registers)
        for part in op.parts:
            event = self._event_of(part.event, index, thread, step, state)
            event.issue, event.runs, event.control_deps = issue.uid, issue.runs, issue.control_deps
            uids.append(event.uid)
            scratch = _State(state.path, temporaries, state.control)
            self._locate(event, part.address, scratch, step)
            issue.data_deps = merge_deps(logic, issue.data_deps, _outside(event.address_deps, inner))
            if isinstance(part, ops.Signal):
                number = None if part.bytes is None else self._known(part.bytes, scratch, step)
                action = "arrive" if number is None else "complete_tx"
                event.mbarrier = MbarrierStep(action, 1 if number is None else 0, number)
                event.of = tuple(uids[position] for position in part.of)
                event.tracks = part.tracks
                continue
            event.track = part.track
            if part.half == "read":
                event.value = self._read_value(event)
                inner.add(event.uid)
                if part.register is not None:
                    temporaries[part.register] = event.value
            elif part.value is not None:
                event.value = self._value(part.value, scratch, step)
                event.data_deps = event.value.deps
                event.partner = event.uid - 1 if part.rmw else None
                issue.data_deps = merge_deps(logic, issue.data_deps, _outside(event.data_deps, inner))
        state.registers = temporaries

    def _mbarrier(self, event: Event, op: ops.Mbarrier, state: _State, step: Step, holds: int, deps: Deps) -> None:
        logic = self.logic
        self._locate(event, op.address, state, step)
        result = pending = None
        if op.register is not None:
            numbers = range(2) if op.action == "test" else range(self.most_phases)
            result = self._fresh(event, op.action, numbers)
        if op.pending is not None:
            pending = self._fresh(event, "pending", range(self._most_pending() + 1))
        parity = self._value(op.parity, state, step) if op.parity is not None else None
        token = self._value(op.state, state, step) if op.state is not None else None
        event.data_deps = merge_deps(logic, *(value.deps for value in (parity, token) if value is not None))
        event.mbarrier = MbarrierStep(
            op.action,
            self._known(op.count, state, step) if op.count is not None else 0,
            self._known(op.bytes, state, step) if op.bytes is not None else None,
            op.drop,
            parity,
            token,
            result,
            pending,
        )
        for register, cases in ((op.register, result), (op.pending, pending)):
            if register is not None and cases is not None:
                self._assign(register, Value(cases, {event.uid: TRUE}), state, holds, deps)

    def _fresh(self, event: Event, what: str, numbers: range) -> dict[int, int]:
        """A value that the object decides: one of these numbers."""
        cases = {number: self.logic.var(f"{what}(e{event.uid},{number})") for number in numbers}
        self.logic.exactly_one(list(cases.values()), event.runs)
        return cases

    def _most_pending(self) -> int:
        """No object of the test ever waits for more arrivals than this."""
        counts = [variable.mbarrier or 0 for variable in self.test.variables]
        for program in self.code:
            for step in program.steps:
                if isinstance(step.op, ops.Mbarrier) and isinstance(step.op.count, ops.Const):
                    counts.append(step.op.count.value)
        return min(sum(counts), 256)

    def _assign_nothing(self, step: Step, state: _State, deps: Deps) -> None:
        register = getattr(step.op, "register", None)
        if register is not None and deps:
            old = state.registers.get(register, ZERO)
            state.registers = {**state.registers, register: old.with_deps(merge_deps(self.logic, old.deps, deps))}

    def _assign(self, register: str, value: Value, state: _State, holds: int, deps: Deps) -> None:
        if holds != TRUE:
            old = state.registers.get(register, ZERO)
            value = select(self.logic, [(holds, value), (-holds, old)])
        if deps:
            value = value.with_deps(merge_deps(self.logic, value.deps, deps))
        state.registers = {**state.registers, register: value}

    def _locate(self, event: Event, address: ops.Expr, state: _State, step: Step) -> None:
        value = self._value(address, state, step)
        if value.bits is not None:
            raise TooLarge("an address is computed from a register that may hold very many values")
        event.address_deps = value.deps
        for number, formula in value.cases.items():
            cell = self.memory.cell(number)
            if cell is None:
                if len(value.cases) == 1:
                    raise InputError(
                        "this address is not the start of any declared element",
                        step.instruction.span,
                        hint="an access covers exactly one element of a declared variable",
                    )
                self.logic.require(-event.runs, -formula)  # only a value that no real execution produces leads there
            else:
                event.where[cell.location, cell.vaddr] = formula

    def _read_value(self, event: Event) -> Value:
        domains = [self.domains[location] for location in event.at(self.logic)]
        if any(domain is None for domain in domains):
            wide = tuple(self.logic.var(f"value(e{event.uid},bit{i})") for i in range(WIDTH))
            return Value({}, {event.uid: TRUE}, wide)
        numbers = sorted({number for domain in domains if domain is not None for number in domain})
        deps = {event.uid: TRUE}
        if len(numbers) == 1:
            return Value({numbers[0]: TRUE}, deps)
        variables = {number: self.logic.var(f"value(e{event.uid},{number})") for number in numbers}
        self.logic.exactly_one(list(variables.values()), event.runs)
        return Value(variables, deps)

    def _reduce(self, index: int, op: ops.Reduce, step: Step, state: _State, holds: int, deps: Deps) -> None:
        """The result depends on the other threads: a fresh value, which `encode.barriers` ties to theirs."""
        logic = self.logic
        runs = logic.both(state.path, holds)
        own = self._value(op.value, state, step)
        numbers = range(len(self.test.threads) + 1) if op.op == "popc" else range(2)
        variables = {number: logic.var(f"reduce(t{index},{number})") for number in numbers}
        logic.exactly_one(list(variables.values()), runs)
        wait = next(event for event in reversed(self.events) if event.thread == index and event.barrier)
        self.reductions.append(Reduction(wait.uid, op.op, own.is_nonzero(logic), variables, runs))
        self._assign(op.register, Value(variables, own.deps), state, holds, deps)

    def _barrier(self, event: Event, op: ops.Barrier, state: _State, step: Step) -> None:
        event.barrier = op
        keys: dict[tuple[int, ...], int] = {(): TRUE}
        for part in op.key:
            value = self._value(part, state, step)
            keys = {
                (*key, number): both
                for key, first in keys.items()
                for number, second in value.cases.items()
                if (both := self.logic.both(first, second)) != FALSE
            }
        event.key = keys
        if op.count is not None:
            count = self._value(op.count, state, step).constant
            if count is None:
                raise InputError("a barrier's thread count must not depend on a loaded value", step.instruction.span)
            event.count = count


def _outside(deps: Deps, inner: set[int]) -> Deps:
    """Dependencies on reads of other instructions."""
    return {uid: formula for uid, formula in deps.items() if uid not in inner}
