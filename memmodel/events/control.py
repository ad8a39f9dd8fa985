"""The loops of a thread: which they are, how they nest, which are spin loops.

In: isa Program. Out: `Loops`. A loop is the steps from the target of a backward jump to that jump.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.errors import InputError
from memmodel.isa import Program, Step
from memmodel.isa.ops import (
    Assign,
    Barrier,
    Commit,
    Expr,
    Issue,
    Jump,
    Mbarrier,
    Read,
    Reduce,
    Wait,
    Write,
    registers_of,
)


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps start..end (inclusive); `spin`: a round that writes nothing leaves nothing behind (docs/executions.md)."""

    start: int
    end: int
    spin: bool


class Loops:
    """The loops of one program, outermost first at every step."""

    def __init__(self, program: Program) -> None:
        steps = program.steps
        found = []
        for index, step in enumerate(steps):
            op = step.op
            if isinstance(op, Jump) and op.label is not None and program.labels[op.label] <= index:
                start = program.labels[op.label]
                found.append(Loop(start, index, _is_spin(steps[start : index + 1], program)))
        self.by_end = {loop.end: loop for loop in found}
        found.sort(key=lambda loop: (loop.start, -loop.end))
        for outer in found:
            for inner in found:
                if outer.start < inner.start <= outer.end < inner.end:
                    span = steps[inner.end].instruction.span
                    raise InputError(
                        "this backward jump makes two loops that overlap without nesting",
                        span,
                        hint="write the loops so that one lies inside the other",
                    )
        self._around = [tuple(loop for loop in found if loop.start <= pc <= loop.end) for pc in range(len(steps) + 1)]

    def around(self, pc: int) -> tuple[Loop, ...]:
        """The loops that contain a step, outermost first."""
        return self._around[pc]


def _is_spin(body: tuple[Step, ...], program: Program) -> bool:
    assigned: set[str] = set()
    written = {op.register for step in body if isinstance(op := step.op, Assign | Read | Mbarrier) and op.register}
    for position, step in enumerate(body):
        op = step.op
        if _lasting(op):
            return False
        if isinstance(op, Jump) and position + 1 < len(body) and op.label is not None:
            target = program.labels[op.label]
            first = program.steps.index(body[0])
            if target <= first + position:
                return False
        if (_reads(op, step) & written) - assigned:
            return False
        # An assignment under a guard may keep the old value, so it does not count as made in this round.
        if isinstance(op, Assign | Read | Mbarrier) and op.register and step.guard is None:
            assigned.add(op.register)
    return not any(isinstance(step.op, Jump) and _skips(step.op, body, program) for step in body[:-1])


def _skips(jump: Jump, body: tuple[Step, ...], program: Program) -> bool:
    """A forward jump that stays inside the loop may skip an assignment; leaving the loop is harmless."""
    if jump.label is None:
        return False
    first = program.steps.index(body[0])
    return first <= program.labels[jump.label] < first + len(body)


def _lasting(op: object) -> bool:
    """Does a step leave something behind whatever the values are?"""
    if isinstance(op, Write):
        return op.when is None
    if isinstance(op, Mbarrier):
        return op.action != "test"
    return isinstance(op, Barrier | Reduce | Issue | Commit | Wait)


def _reads(op: object, step: Step) -> frozenset[str]:
    """The registers that a step of a spin loop uses."""
    used: list[Expr | None] = []
    if isinstance(op, Assign):
        used = [op.value]
    elif isinstance(op, Jump):
        used = [op.when]
    elif isinstance(op, Read):
        used = [op.address]
    elif isinstance(op, Write):
        used = [op.when, op.address, op.value]
    elif isinstance(op, Mbarrier):
        used = [op.address, op.parity, op.state]
    guard = frozenset((step.guard.register,)) if step.guard else frozenset()
    return guard.union(*(registers_of(expr) for expr in used if expr is not None))
