"""The loops of a thread: which they are, how they nest, which are spin loops.

In: Program. Out: `Loops`. A loop is the steps from the target of a backward jump to that jump. A spin loop waits: a
round that goes round again leaves nothing behind (docs/executions.md, "Loops").
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Action, Allocates
from memmodel.program.lowered import Program
from memmodel.program.ops import (
    Assign,
    Decide,
    Emit,
    Jump,
    OnObject,
    Op,
    Read,
    UndefinedIf,
    Unmodelled,
    WaitForGroups,
    Write,
)
from memmodel.program.uses import assigned, is_hidden, used


@dataclass(frozen=True, slots=True)
class Loop:
    """A jump back from step `end` to step `start`; `first`: where the steps that it may repeat begin.

    `first` is `start`, unless another loop reaches into this one from before: then both are taken to begin there, so
    that loops always nest. `reads`: a spin loop that reads memory.
    """

    first: int
    start: int
    end: int
    is_spin: bool
    reads: bool


class Loops:
    """The loops of one program, outermost first at every step."""

    def __init__(self, program: Program) -> None:
        steps = program.steps
        loops: list[Loop] = []
        back = [
            (index, program.labels[step.op.label])
            for index, step in enumerate(steps)
            if isinstance(step.op, Jump) and step.op.label is not None and program.labels[step.op.label] <= index
        ]
        live = _live_at(program) if back else []
        for index, start in back:
            first = min([loop.first for loop in loops if loop.first < start <= loop.end] + [start])
            spin = first == start and _is_spin(program, start, index, live[start])
            reads = any(isinstance(step.op, Read) for step in steps[start:index])
            loops.append(Loop(first, start, index, spin, spin and reads))
        self.by_end = {loop.end: loop for loop in loops}
        loops.sort(key=lambda loop: (loop.first, -loop.end))
        self._around = [tuple(loop for loop in loops if loop.first <= pc <= loop.end) for pc in range(len(steps) + 1)]

    def around(self, pc: int) -> tuple[Loop, ...]:
        """The loops that contain a step, outermost first."""
        return self._around[pc]


def _is_spin(program: Program, start: int, end: int, live: frozenset[str]) -> bool:
    """No round changes memory, or a register that is live at the head of the loop."""
    inside = range(start, end + 1)
    for number, step in enumerate(program.steps):
        op = step.op
        target = program.target(op.label) if isinstance(op, Jump) else None
        if number not in inside:
            if target is not None and target in inside and target != start:
                return False
            continue
        if _has_lasting_effect(op) or not live.isdisjoint(assigned(op)):
            return False
        if target is not None and target <= number != end:
            return False
    return True


def _has_lasting_effect(op: Op) -> bool:
    """True if a step changes memory or a live register, whatever the values are."""
    match op:
        case Assign() | UndefinedIf() | Unmodelled() | Decide() | Jump() | Read() | WaitForGroups():
            return False
        case Emit(label):
            return isinstance(label, Allocates)
        case Write(when=when):
            return when is None
        case OnObject(label):
            return label.action is not Action.TEST
        case _:
            return True


def _live_at(program: Program) -> list[frozenset[str]]:
    """For each step the registers whose values before it may still be used. At the end all are seen."""
    steps = program.steps
    visible = frozenset(name for step in steps for name in assigned(step.op) if not is_hidden(name))
    live: list[frozenset[str]] = [frozenset() for _ in steps] + [visible]
    reads = [frozenset(name for name in used(step) if not name.startswith("$")) for step in steps]
    sets = [frozenset(assigned(step.op)) if step.guard is None else frozenset() for step in steps]
    stable = False
    while not stable:
        stable = True
        for number in reversed(range(len(steps))):
            op = steps[number].op
            after = frozenset[str]()
            if isinstance(op, Jump):
                after = live[program.target(op.label)]
            if not isinstance(op, Jump) or op.when is not None or steps[number].guard is not None:
                after |= live[number + 1]
            now = (after - sets[number]) | reads[number]
            if now != live[number]:
                live[number], stable = now, False
    return live
