"""Run one thread by itself, with every answer that its reads, tests and requests may get.

In: a lowered thread, an oracle. Out: its traces: records with dependencies, and its registers at the end. Settled here:
control flow, addresses, which rounds of a loop are run, where a bad address stops the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from memmodel.base.labels import Fault, Label, Mark, Marker, Side, Undefined
from memmodel.base.points import Range
from memmodel.concrete import accessing, issuing, waiting
from memmodel.concrete.loops import BackwardJump, find_loops
from memmodel.concrete.meter import CANDIDATE, MOVE, STEP, Meter
from memmodel.concrete.records import AccessRecord, End, Ending, PlainRecord, Record, RecordName, Trace
from memmodel.concrete.state import Oracle, Run, RunState
from memmodel.memory.cells import Starts
from memmodel.program.arith import apply
from memmodel.program.expressions import AddressOf, Const, Expr, Get
from memmodel.program.lowered import LoweredTest, Step
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
from memmodel.program.uses import assigned, is_hidden, marks_ends

R = TypeVar("R", bound=Record)

MAX_STEPS = 100_000
"""A run with more steps than this is taken to go on for ever."""


class Runner:
    """One thread, ready to be run.

    `bound` None: loops are followed wherever the values lead (a given execution). `racing_loops`: the spin loops, by
    their backward jump, of which a failed round is kept once. `starts`: where matrix operands begin.
    """

    def __init__(self, lowered: LoweredTest, number: int, starts: Starts, bound: int | None) -> None:
        self.number = number
        self.thread = lowered.test.threads[number]
        self.place = self.thread.place
        self.space = lowered.space
        self.program = lowered.programs[number]
        self.starts = starts
        self.racing_loops: set[int] = set()
        self.loops = find_loops(self.program)
        self.marks_end = marks_ends(lowered)
        self._bound = bound
        self._heads = {loop.first for loop in self.loops.values()}
        self._beside = {
            number for number, step in enumerate(self.program.steps) if isinstance(step.op, OnObject) and step.op.beside
        }

    def run(self, oracle: Oracle, meter: Meter, *, waits: bool) -> list[Trace]:
        """The traces of all runs, depth first over the answers that `oracle` offers."""
        run = Run(oracle, meter, [], [RunState(dict(self.program.initial))], waits)
        while run.pending:
            self._advance(run.pending.pop(), run)
        return run.traces

    # ---- one run -------------------------------------------------------------------------------------------

    def _advance(self, state: RunState, run: Run) -> None:
        """Run until the thread ends, or needs an answer; then a state for each answer is pending."""
        steps = self.program.steps
        while state.ended is None and not state.dropped and state.at < len(steps):
            run.meter.spend(STEP)
            if state.visits > MAX_STEPS:
                state.ended = Ending(End.BEYOND, state.at, reason="a loop that never ends")
                break
            step = steps[state.at]
            if state.at in self._heads:
                state.heads[state.at] = len(state.records)
            if not self._enabled(state, step):
                self._skip(state, step)
            elif isinstance(step.op, Jump):
                self._jump(state, step.op, run)
            elif self._step(state, step, run):
                self.leave_step(state)
            else:
                return
        if not state.dropped:
            self.keep(state, run, state.ended or Ending())

    def keep(self, state: RunState, run: Run, ending: Ending) -> None:
        """A trace that ends here."""
        run.meter.spend(CANDIDATE)
        if self.marks_end and ending.end in (End.REACHED, End.EXIT) and self.program.steps:
            state.add(self.plain(state, Mark(Marker.END), step=len(self.program.steps)))
        registers = {name: value for name, value in state.registers.items() if not is_hidden(name)}
        run.traces.append(
            Trace(
                tuple(state.records),
                tuple(state.values),
                tuple(state.tokens),
                registers,
                tuple(state.contributions),
                ending,
            )
        )

    def leave_step(self, state: RunState) -> None:
        """The current step is done."""
        state.times[state.at] = state.times.get(state.at, 0) + 1
        state.at += 1
        state.visits += state.at not in self._beside

    def _step(self, state: RunState, step: Step, run: Run) -> bool:
        """Run one step that does not jump; False if states that go on are pending."""
        op = step.op
        match op:
            case Assign(register, value):
                state.set(register, self.value(value, state), state.depend(value))
            case UndefinedIf(rule, when):
                if self.value(when, state):
                    state.add(self.plain(state, Undefined(rule)))
            case Unmodelled(reason, when):
                if self.value(when, state):
                    state.ended = Ending(End.BEYOND, state.at, reason=reason)
            case Read():
                return accessing.read(self, state, op, run)
            case Write():
                run.meter.spend(MOVE * len(op.values))
                accessing.write(self, state, op)
            case Emit():
                state.add(accessing.emitted(self, state, op))
            case AtBarrier():
                return waiting.at_barrier(self, state, op, run)
            case Combine():
                return waiting.combine(self, state, op, run)
            case Decide():
                return waiting.decide(self, state, op, run)
            case CommitGroup(track):
                state.groups.append((track, len(state.records)))
            case WaitForGroups():
                waiting.wait_for_groups(self, state, op)
            case OnObject():
                return waiting.on_object(self, state, op, run)
            case IssueAsync():
                return issuing.issue(self, state, op, run)
            case Jump():
                raise AssertionError("jumps move between steps")
        return True

    def fault(self, state: RunState, why: str, addr: int) -> None:
        """The thread stops here at a bad address."""
        state.add(self.plain(state, Fault(why), addr=addr))
        state.ended = Ending(End.FAULT, state.at)

    # ---- control flow ----------------------------------------------------------------------------------------

    def _enabled(self, state: RunState, step: Step) -> bool:
        """True if the guard of the step is true. A guard is evaluated once, when its instruction starts."""
        if step.index != state.instruction:
            state.instruction = step.index
            state.instructions += 1
            state.guard = 0
            state.enabled = True
            if step.guard is not None:
                name = step.guard.register
                state.guard = state.depends.get(name, 0)
                state.enabled = bool(state.registers.get(name, 0)) is not step.guard.negated
        return state.enabled

    def _skip(self, state: RunState, step: Step) -> None:
        for name in assigned(step.op):
            state.depends[name] = state.depends.get(name, 0) | state.guard
        if isinstance(step.op, Jump):
            state.ctrl |= state.guard
        state.at += 1

    def _jump(self, state: RunState, op: Jump, run: Run) -> None:
        """Take or pass a jump; the run ends here if a loop exceeds the bound, or the thread waits for ever."""
        decides = state.guard | state.depend(op.when)
        state.ctrl |= decides
        if op.when is not None and not self.value(op.when, state):
            self.leave_step(state)
            return
        loop = self.loops.get(state.at)
        if loop is not None and not self._round(state, loop, decides, run):
            return
        state.times[state.at] = state.times.get(state.at, 0) + 1
        state.visits += 1
        if op.label is None:
            state.ended = Ending(End.EXIT)
        self._leave_loops(state, self.program.target(op.label))
        state.at = self.program.target(op.label)
        state.instruction = None

    def _leave_loops(self, state: RunState, target: int) -> None:
        """Forget the rounds of loops that do not contain the next step."""
        for last, loop in self.loops.items():
            if not loop.first <= target <= last:
                state.rounds.pop(last, None)
                state.failed -= {last}

    def _round(self, state: RunState, loop: BackwardJump, decides: int, run: Run) -> bool:
        """True if the loop goes round once more. A silent round of a spin loop is kept once, if its reads may race."""
        silent = loop.spins and not self._wrote(state, loop)
        if silent and run.waits:
            self.keep(state.copy(), run, _waits_in(state, loop))
        if self._bound is None:
            return True
        if silent:
            if loop.last in self.racing_loops and loop.last not in state.failed:
                state.failed |= {loop.last}
                return True
            state.dropped = True
            return False
        rounds = state.rounds.get(state.at, 0) + 1
        if rounds > self._bound and decides:
            state.ended = Ending(End.CUT, state.at, state.times.get(state.at, 0))
            return False
        state.rounds[state.at] = rounds
        return True

    def _wrote(self, state: RunState, loop: BackwardJump) -> bool:
        """True if this round of the loop has written. Such a round is kept: only silent ones are dropped."""
        return any(
            isinstance(record, AccessRecord) and record.access.side is Side.WRITE
            for record in state.records[state.heads[loop.first] :]
        )

    # ---- records and values --------------------------------------------------------------------------------------

    def name(self, state: RunState, part: int = 0) -> RecordName:
        """The name of the record of the current step."""
        return RecordName(self.number, state.at, state.times.get(state.at, 0), part)

    def plain(
        self,
        state: RunState,
        label: Label,
        *,
        addr: int = 0,
        data: int = 0,
        step: int | None = None,
        range: Range | None = None,
    ) -> PlainRecord:
        """A record that is all in its label."""
        record = self.record(PlainRecord, state, label, addr=addr, data=data, range=range)
        return record if step is None else replace(record, name=RecordName(self.number, step, 0))

    def record(self, kind: Callable[..., R], state: RunState, label: Label, /, **more: Any) -> R:
        """A record of the current step. `more`: the fields that only this kind of record has."""
        return kind(
            name=self.name(state),
            label=label,
            order=state.visits,
            instruction=state.instructions,
            ctrl=state.control(),
            **more,
        )

    def value(self, expr: Expr, state: RunState) -> int:
        """The value of an expression."""
        if isinstance(expr, Const):
            return expr.value
        if isinstance(expr, Get):
            return state.registers.get(expr.register, 0)
        if isinstance(expr, AddressOf):
            address = self.space.address(expr.name, expr.offset, self.place, expr.cta)
            assert address is not None, "lowering refuses names without an instance"
            return address
        return apply(expr.op, tuple(self.value(arg, state) for arg in expr.args), expr.type)


def _waits_in(state: RunState, loop: BackwardJump) -> Ending:
    """The thread waits for ever in the present round of a spin loop."""
    return Ending(End.WAITS, state.at, state.times.get(state.at, 0), first=state.heads[loop.first])
