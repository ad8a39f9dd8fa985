"""Walk through every thread once for all executions: forks become formulas, joins merge what the branches left.

In: LoweredTest, Knowledge, loop bound. Out: EventGraph. Settled here: the order of events, loops, and which events can
run and when. `accesses`, `asynchronous` and `objects` say what each step does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from memmodel.base.labels import Mark, Marker
from memmodel.base.logic import FALSE, TRUE
from memmodel.events import accesses, asynchronous, objects
from memmodel.events.builder import Builder, CurrentStep, State
from memmodel.events.graph import CommitMark, EventGraph, NotFollowed, StuckAt
from memmodel.events.knowledge import Knowledge
from memmodel.events.loops import Loop, Loops
from memmodel.events.values import ZERO, Cases, Deps, Value, constant, guard_deps, merge_deps, select
from memmodel.litmus.syntax import Thread
from memmodel.program.lowered import LoweredTest, Program, Step
from memmodel.program.ops import (
    Assign,
    AtBarrier,
    Combine,
    CommitGroup,
    Decide,
    Emit,
    IssueAsync,
    Jump,
    OnObject,
    Read,
    UndefinedIf,
    Unmodelled,
    WaitForGroups,
    Write,
)
from memmodel.program.uses import assigned, marks_ends

Arrive = Callable[[int, State], None]


class Walk:
    """One pass over all threads; `loops` are those of each."""

    def __init__(self, lowered: LoweredTest, knowledge: Knowledge, bound: int, loops: Sequence[Loops]) -> None:
        self.build = Builder(lowered, knowledge)
        self._lowered = lowered
        self._bound = bound
        self._logic = self.build.logic
        self._loops = loops
        self._graph = self.build.graph
        self._marks_ends = marks_ends(lowered)
        self._instructions = 0
        self.rounds: list[tuple[int, Loop, tuple[int, int]]] = []
        self.rounds_left_out = False

    def graph(self) -> EventGraph:
        """All events of the test."""
        lowered = self._lowered
        pairs = zip(lowered.test.threads, lowered.programs, strict=True)
        ends = [self._thread(number, thread, program) for number, (thread, program) in enumerate(pairs)]
        self._graph.registers = [self._final(number, at_end) for number, at_end in enumerate(ends)]
        self.build.initial_writes()
        return self._graph

    # ---- one thread ----------------------------------------------------------------------------------------------

    def _thread(self, number: int, thread: Thread, program: Program) -> dict[str, Value]:
        loops = self._loops[number]
        self._heads: dict[Loop, int] = {}
        registers = {name: constant(value) for name, value in program.initial.items()} | self._chosen(number, program)
        start = State(TRUE, registers, {})
        waiting: dict[tuple[int, ...], list[tuple[int, State]]] = {}
        order: list[tuple[int, ...]] = []

        def arrive(pc: int, state: State) -> None:
            """Queue a state; keys sort in order of execution, rounds of a loop one after the other."""
            if state.path == FALSE:
                return
            key: list[int] = []
            for loop in loops.around(pc):
                key += (loop.first, state.rounds.get(loop, 0))
            key.append(pc)
            if tuple(key) not in waiting:
                heapq.heappush(order, tuple(key))
            waiting.setdefault(tuple(key), []).append((pc, state))

        arrive(0, start)
        while order:
            arrived = waiting.pop(heapq.heappop(order))
            pc = arrived[0][0]
            state = self._join([state for _, state in arrived])
            if pc == len(program.steps):
                self._end(number, thread, state)
                return state.registers
            for loop in loops.around(pc):
                if loop.start == pc:
                    self._heads[loop] = len(self.build.events)
            step = program.steps[pc]
            current = self._step_at(number, thread, pc, step, state, loops)
            if isinstance(step.op, Jump):
                self._jump(program, loops, pc, current, step.op, arrive)
            else:
                self._step(current)
                self._leave(loops, state, pc + 1)
                arrive(pc + 1, state)
        return {}

    def _chosen(self, number: int, program: Program) -> dict[str, Value]:
        """The registers of which one of each group is 1."""
        registers: dict[str, Value] = {}
        for group in program.choices:
            variables = [self._logic.var(name) for name in group]
            self._logic.exactly_one(variables)
            for name, variable in zip(group, variables, strict=True):
                self._graph.chosen[number, name] = variable
                registers[name] = Value(Cases({1: variable, 0: -variable}))
        return registers

    def _final(self, number: int, at_end: dict[str, Value]) -> dict[str, Value]:
        """The registers of a thread at its end, or at the bad address where it stops."""
        if self._graph.faulted[number] == FALSE:
            return at_end
        options = [(self._graph.ended[number], at_end), *self.build.at_faults[number]]
        options = [(when, registers) for when, registers in options if when != FALSE]
        names = {name: None for _, registers in options for name in registers}
        return {
            name: select(self._logic, [(when, registers.get(name, ZERO)) for when, registers in options])
            for name in names
        }

    def _end(self, number: int, thread: Thread, state: State) -> None:
        """The thread is at its end; where something has to be done before it, an event marks it."""
        self._graph.ended[number] = state.path
        if not self._marks_ends or not self._lowered.programs[number].steps:
            return
        last = self._lowered.programs[number].steps[-1]
        visit = self.build.visit(number, len(self._lowered.programs[number].steps), state.path, last)
        current = CurrentStep(number, thread, last, state, state.path, TRUE, {}, state.control, visit, ())
        self.build.plain(current, Mark(Marker.END), state.path, {})

    def _step_at(self, number: int, thread: Thread, pc: int, step: Step, state: State, loops: Loops) -> CurrentStep:
        """The step that is executed now. A guard is evaluated once, when its instruction begins."""
        if state.guard is None or state.guard[0] != step.index:
            self._instructions += 1
            state.instruction = self._instructions
            state.guard = (step.index, *self._guard(step, state))
        _, holds, deps = state.guard
        runs = self._logic.both(state.path, holds)
        control = merge_deps(self._logic, state.control, deps) if deps else state.control
        spins = [loop for loop in loops.around(pc) if loop.is_spin]
        visit = self.build.visit(number, pc, runs, step)
        return CurrentStep(number, thread, step, state, runs, holds, deps, control, visit, spins)

    def _guard(self, step: Step, state: State) -> tuple[int, Deps]:
        if step.guard is None:
            return TRUE, {}
        value = state.registers.get(step.guard.register, ZERO)
        holds = value.cases().is_nonzero(self._logic)
        return (-holds if step.guard.negated else holds), value.deps

    def _step(self, current: CurrentStep) -> None:
        """One step that does not jump."""
        build, op = self.build, current.step.op
        if current.runs == FALSE:
            for register in assigned(op) if current.guard else ():
                old = current.state.registers.get(register, ZERO)
                current.state.registers[register] = old.with_deps(merge_deps(self._logic, old.deps, current.guard))
            return
        match op:
            case Assign(register, value):
                build.assign(current, register, build.value(current, value))
            case UndefinedIf(rule, when):
                build.undefined(current, rule, self._logic.both(current.runs, build.nonzero(current, when)[0]))
            case Unmodelled(reason, when):
                build.not_modelled(current, reason, self._logic.both(current.runs, build.nonzero(current, when)[0]))
            case Read():
                accesses.read(build, current, op)
            case Write():
                accesses.write(build, current, op)
            case Emit():
                accesses.emit(build, current, op)
                if isinstance(op.label, Mark) and op.label.what is Marker.EXIT:
                    exited = self._graph.exited
                    exited[current.number] = self._logic.either(exited[current.number], current.runs)
            case AtBarrier():
                objects.at_barrier(build, current, op)
            case Combine():
                objects.combine(build, current, op)
            case Decide():
                objects.decide(build, current, op)
            case CommitGroup(track):
                self._graph.commits.append(CommitMark(current.number, current.visit, track, current.runs))
            case WaitForGroups():
                objects.wait_for_groups(build, current, op)
            case OnObject():
                objects.on_object(build, current, op)
            case IssueAsync():
                asynchronous.issue(build, current, op)
            case Jump():
                raise AssertionError("jumps move between steps")

    def _join(self, states: list[State]) -> State:
        if len(states) == 1:
            return states[0]
        logic = self._logic
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
        return State(path, registers, control, dict(states[0].rounds), wrote)

    def _leave(self, loops: Loops, state: State, pc: int) -> None:
        """Forget the rounds of loops that do not contain the next step."""
        if state.rounds or state.wrote:
            around = loops.around(pc)
            state.rounds = {loop: count for loop, count in state.rounds.items() if loop in around}
            state.wrote = {loop: formula for loop, formula in state.wrote.items() if loop in around}

    # ---- jumps -----------------------------------------------------------------------------------------------------

    def _jump(self, program: Program, loops: Loops, pc: int, current: CurrentStep, op: Jump, arrive: Arrive) -> None:
        logic, state = self._logic, current.state
        condition, deps = self.build.nonzero(current, op.when)
        taken = logic.both(current.holds, condition)
        deps = merge_deps(logic, current.guard, deps)
        control = merge_deps(logic, state.control, deps) if deps else state.control
        go, stay = logic.both(state.path, taken), logic.both(state.path, -taken)
        target = program.target(op.label)
        loop = loops.by_end.get(pc) if op.label is not None and target <= pc else None
        if loop is not None and go != FALSE:
            go = self._round(loop, current, go, deps, stay == FALSE)
        if go != FALSE:
            after = State(go, dict(state.registers), control, dict(state.rounds), dict(state.wrote))
            if loop is not None:
                after.rounds[loop] = after.rounds.get(loop, 0) + 1
                after.wrote[loop] = FALSE
                after.rounds = {k: v for k, v in after.rounds.items() if k == loop or k in loops.around(target)}
            else:
                self._leave(loops, after, target)
            arrive(target, after)
        if stay != FALSE:
            after = State(stay, state.registers, control, state.rounds, state.wrote)
            self._leave(loops, after, pc + 1)
            arrive(pc + 1, after)

    def _round(self, loop: Loop, current: CurrentStep, go: int, deps: Deps, always: bool) -> int:
        """The formula under which a loop goes round once more and the walk follows.

        A round of a spin loop that has written nothing has no effect: it is followed once where a failed read
        may race, and never twice; or the thread waits there for ever. Other loops are followed up to the bound, or
        as far as every execution goes round (docs/executions.md, "Loops"). Where that depends on values that were read
        (`deps`), it is known only once these have settled: such rounds are added a few at a time (`Knowledge.rounds`).
        """
        logic, state = self._logic, current.state
        count = state.rounds.get(loop, 0)
        if loop.is_spin:
            wrote = state.wrote.get(loop, FALSE)
            silent = logic.both(go, -wrote)
            if silent != FALSE:
                inside = (self._heads[loop], len(self.build.events))
                self.rounds.append((current.number, loop, inside))
                stays = silent
                if count == 0 and (current.number, loop) in self.build.knowledge.racing_loops:
                    stays = logic.both(silent, logic.var(f"stuck(v{current.visit})"))
                self._graph.stuck.append(StuckAt(current.number, stays, current.visit, tuple(range(*inside))))
                go = logic.both(go, -stays)
                if logic.refuted(go):
                    return FALSE
                always = False
        if always and deps and count >= max(self._bound, self.build.knowledge.rounds):
            self.rounds_left_out = True
            always = False
        if count >= self._bound and not always:
            self._graph.cut.append(NotFollowed(go, current.step.instruction))
            return FALSE
        return go
