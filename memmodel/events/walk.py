"""Walk through every thread once for all executions: forks become formulas, joins merge what the branches left.

In: LitmusTest, Domains. Out: EventGraph. Settled here: the order of events, loops, and which events can run and when.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from memmodel.events.control import Loop, Loops
from memmodel.events.graph import EventGraph, Stuck
from memmodel.events.steps import State, Steps
from memmodel.events.values import ZERO, Value, constant, guard_deps, merge_deps, select
from memmodel.isa import Program, Step, ops
from memmodel.litmus.syntax import Thread
from memmodel.logic import FALSE, TRUE

Arrive = Callable[[int, State], None]


class Walk(Steps):
    """One pass over all threads."""

    def all_threads(self) -> EventGraph:
        for where, number in self.memory.initial.items():
            event = self._event(None, None, frozenset(("IW", "W", "M", "GEN", "WEAK")))
            event.where = {(where, (where.name, where.index)): TRUE}
            event.value = constant(number)
        finals = [self._thread(index, thread, self.code[index]) for index, thread in enumerate(self.test.threads)]
        return EventGraph(
            self.test,
            self.logic,
            self.events,
            finals,
            self.cut,
            self.reductions,
            self.commits,
            self.memory,
            self.stuck,
            self.exited,
        )

    # ---- one thread ----------------------------------------------------------------------------------------------

    def _thread(self, index: int, thread: Thread, program: Program) -> dict[str, Value]:
        loops = Loops(program)
        logic = self.logic
        self._owner, self._number = thread, index
        self._round_starts: dict[Loop, int] = {}
        start = State(TRUE, self._initial_registers(thread), {})
        waiting: dict[tuple[int, ...], list[tuple[int, State]]] = {}
        order: list[tuple[int, ...]] = []

        def arrive(pc: int, state: State) -> None:
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
                self._jump(program, loops, pc, step, state, arrive)
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

    def _join(self, states: list[State]) -> State:
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
        return State(path, registers, control, dict(states[0].counts), wrote)

    def _leave(self, loops: Loops, state: State, pc: int) -> None:
        """Forget the rounds of loops that do not contain the next step."""
        if state.counts or state.wrote:
            around = loops.around(pc)
            state.counts = {loop: count for loop, count in state.counts.items() if loop in around}
            state.wrote = {loop: formula for loop, formula in state.wrote.items() if loop in around}

    def _jump(self, program: Program, loops: Loops, pc: int, step: Step, state: State, arrive: Arrive) -> None:
        op = step.op
        assert isinstance(op, ops.Jump)
        logic = self.logic
        taken, deps = self._guard(step, state)
        if op.when is not None:
            value = self._value(op.when, state, step)
            taken = logic.both(taken, value.is_nonzero(logic))
            deps = merge_deps(logic, deps, value.deps)
        control = merge_deps(logic, state.control, deps) if deps else state.control
        go, stay = logic.both(state.path, taken), logic.both(state.path, -taken)
        target = len(program.steps) if op.label is None else program.labels[op.label]
        if op.label is None:
            self.exited[self._number] = logic.either(self.exited[self._number], go)
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
                around = State(go, dict(state.registers), control, {**state.counts, loop: count + 1}, dict(state.wrote))
                around.wrote[loop] = FALSE
                around.counts = {k: v for k, v in around.counts.items() if k == loop or k in loops.around(target)}
                arrive(target, around)
        elif go != FALSE:
            after = State(go, dict(state.registers), control, dict(state.counts), dict(state.wrote))
            self._leave(loops, after, target)
            arrive(target, after)
        if stay != FALSE:
            after = State(stay, state.registers, control, state.counts, state.wrote)
            self._leave(loops, after, pc + 1)
            arrive(pc + 1, after)
