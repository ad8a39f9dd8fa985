"""The loops of a thread: which they are, how they nest, which are spin loops.

In: isa Program. Out: `Loops`. A loop is the steps from the target of a backward jump to that jump.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    Write,
    registers_of,
)


@dataclass(frozen=True, slots=True)
class Loop:
    """A jump back from step `end` to step `start`; `first`: where the steps that it may repeat begin.

    `first` is `start`, unless another loop reaches into this one from before: then both are taken to begin there, so
    that loops always nest. `spin`: a round that writes nothing leaves nothing behind (docs/executions.md).
    """

    first: int
    start: int
    end: int
    spin: bool


class Loops:
    """The loops of one program, outermost first at every step."""

    def __init__(self, program: Program) -> None:
        steps = program.steps
        found: list[Loop] = []
        for index, step in enumerate(steps):
            op = step.op
            if isinstance(op, Jump) and op.label is not None and program.labels[op.label] <= index:
                start = program.labels[op.label]
                first = min([loop.first for loop in found if loop.first < start <= loop.end] + [start])
                spin = first == start and _is_spin(steps[start : index + 1], start, program)
                found.append(Loop(first, start, index, spin))
        self.by_end = {loop.end: loop for loop in found}
        found.sort(key=lambda loop: (loop.first, -loop.end))
        self._around = [tuple(loop for loop in found if loop.first <= pc <= loop.end) for pc in range(len(steps) + 1)]

    def around(self, pc: int) -> tuple[Loop, ...]:
        """The loops that contain a step, outermost first."""
        return self._around[pc]


def _is_spin(body: tuple[Step, ...], start: int, program: Program) -> bool:
    """No round leaves anything behind: neither in memory nor in a register that a later round or step could tell."""
    registers = [step.op.register for step in body if isinstance(step.op, Assign | Read | Mbarrier)]
    written = {register for register in registers if register}
    assigned: set[str] = set()
    left = False
    for position, step in enumerate(body):
        op = step.op
        if _lasting(op) or (_reads(op, step) & written) - assigned:
            return False
        if isinstance(op, Jump) and position + 1 < len(body):
            target = None if op.label is None else program.labels[op.label]
            if target is not None and start <= target < start + len(body):
                return False  # a jump inside the loop may skip an assignment, or is a loop of its own
            left = True
        elif isinstance(op, Assign | Read | Mbarrier) and op.register:
            if left or step.guard is not None:
                return False  # the last round may not make this assignment
            assigned.add(op.register)
    return True


def _lasting(op: object) -> bool:
    """Does a step leave something behind whatever the values are?"""
    if isinstance(op, Write):
        return op.when is None
    if isinstance(op, Mbarrier):
        return op.action != "test"
    return isinstance(op, Barrier | Reduce | Issue | Commit)


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
