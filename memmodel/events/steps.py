"""What one step of a thread does, as events and symbolic values.

In: a step, the State of its thread. Out: events, and the state after it. Settled here: locations, values, dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.errors import InputError, TooLarge
from memmodel.events.bits import WIDTH
from memmodel.events.control import Loop
from memmodel.events.domains import Domains
from memmodel.events.graph import CommitMark, Event, MbarrierStep, Reduction, Stuck
from memmodel.events.values import ZERO, Deps, Value, evaluate, merge_deps, select
from memmodel.isa import Program, Step, ops
from memmodel.isa.memory import MemoryMap
from memmodel.litmus.syntax import LitmusTest, Thread
from memmodel.logic import FALSE, TRUE, Logic

MAX_EVENTS = 600
"""More events than this and the test is reported as too large."""


@dataclass(slots=True)
class State:
    """A thread between two steps: the formula under which it is here, its registers, the branches that led here.

    `wrote`: per spin loop being run, the formula under which the present round has written.
    """

    path: int
    registers: dict[str, Value]
    control: Deps
    counts: dict[Loop, int] = field(default_factory=dict)
    wrote: dict[Loop, int] = field(default_factory=dict)


class Steps:
    """Executes steps; `walk.Walk` says in which order. `domains`: what reads may return in this pass."""

    def __init__(
        self,
        test: LitmusTest,
        code: tuple[Program, ...],
        memory: MemoryMap,
        domains: Domains,
        bound: int,
        *,
        hang: bool,
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
        self.hang = hang
        self._owner = test.threads[0]  # the thread being run, and its number
        self._number = 0
        self.stuck: list[Stuck] = []
        self.exited = [FALSE] * len(test.threads)
        self.most_phases = 2 + sum(
            isinstance(step.op, ops.Mbarrier) and step.op.action == "arrive"
            for program in code
            for step in program.steps
        ) * (bound + 1)

    def _event(self, thread: int | None, owner: Thread | None, tags: frozenset[str]) -> Event:
        if len(self.events) >= MAX_EVENTS:
            raise TooLarge(f"more than {MAX_EVENTS} events", hint="shorten the test, or lower the loop bound")
        event = Event(len(self.events), thread, owner.place if owner else None, tags)
        self.events.append(event)
        return event

    def _guard(self, step: Step, state: State) -> tuple[int, Deps]:
        if step.guard is None:
            return TRUE, {}
        value = state.registers.get(step.guard.register, ZERO)
        holds = value.is_nonzero(self.logic)
        return (-holds if step.guard.negated else holds), value.deps

    def _value(self, expr: ops.Expr, state: State, step: Step) -> Value:
        return evaluate(self.logic, expr, state.registers, lambda name: self._address(name, self._owner, step))

    def _address(self, name: ops.AddressOf, thread: Thread, step: Step | None) -> int:
        address = self.memory.address(name.name, name.offset, thread.place, name.cta)
        if address is None:
            raise InputError(
                f"{name.name} has no instance there: no thread of that CTA is in this cluster",
                step.instruction.span if step else None,
            )
        return address

    def _step(self, index: int, thread: Thread, step: Step, state: State, spins: list[Loop]) -> None:
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

    def _event_of(self, spec: ops.Event, index: int, thread: Thread, step: Step, state: State) -> Event:
        event = self._event(index, thread, spec.tags)
        event.scope = spec.scope
        event.instruction = step.instruction
        event.covers, event.unit, event.form = spec.covers, spec.unit, spec.form
        if spec.covers is not None and spec.covers.address is not None:
            event.covers_from = self._value(spec.covers.address, state, step)
        return event

    def _known(self, expr: ops.Expr, state: State, step: Step) -> int:
        """The value of an operand that may not depend on a loaded value."""
        number = self._value(expr, state, step).constant
        if number is None:
            raise InputError("this operand must not depend on a loaded value", step.instruction.span)
        return number

    # ---- asynchronous steps --------------------------------------------------------------------------------------

    def _issue(self, issue: Event, op: ops.Issue, index: int, thread: Thread, state: State, step: Step) -> None:
        logic = self.logic
        uids: list[int] = []
        inner: set[int] = set()
        temporaries = dict(state.registers)
        for part in op.parts:
            event = self._event_of(part.event, index, thread, step, state)
            event.issue, event.runs, event.control_deps = issue.uid, issue.runs, issue.control_deps
            uids.append(event.uid)
            scratch = State(state.path, temporaries, state.control)
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

    def _mbarrier(self, event: Event, op: ops.Mbarrier, state: State, step: Step, holds: int, deps: Deps) -> None:
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
            op.no_complete,
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

    def _assign_nothing(self, step: Step, state: State, deps: Deps) -> None:
        register = getattr(step.op, "register", None)
        if register is not None and deps:
            old = state.registers.get(register, ZERO)
            state.registers = {**state.registers, register: old.with_deps(merge_deps(self.logic, old.deps, deps))}

    def _assign(self, register: str, value: Value, state: State, holds: int, deps: Deps) -> None:
        if holds != TRUE:
            old = state.registers.get(register, ZERO)
            value = select(self.logic, [(holds, value), (-holds, old)])
        if deps:
            value = value.with_deps(merge_deps(self.logic, value.deps, deps))
        state.registers = {**state.registers, register: value}

    def _locate(self, event: Event, address: ops.Expr, state: State, step: Step) -> None:
        value = self._value(address, state, step)
        if value.bits is not None:
            raise TooLarge("an address is computed from a register that may hold very many values")
        event.address_deps = value.deps
        for number, formula in value.cases.items():
            cell = self.memory.cell(number)
            if cell is None:
                if len(value.cases) == 1 and not value.deps:
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

    def _reduce(self, index: int, op: ops.Reduce, step: Step, state: State, holds: int, deps: Deps) -> None:
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

    def _barrier(self, event: Event, op: ops.Barrier, state: State, step: Step) -> None:
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
