"""Which loops a thread has, and which of them spin: their last round stands for all of them.

In: Program. Out: its loops by the step of their backward jump. docs/executions.md says what a spin loop is; "leaves
nothing behind" is decided by liveness: no register that the loop assigns is read, in the loop or later, before it is
assigned again, so going round once more changes nothing that anyone sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.identity import by_identity
from memmodel.base.labels import Action, Allocates
from memmodel.program.lowered import Program
from memmodel.program.ops import AtBarrier, Combine, CommitGroup, Emit, IssueAsync, Jump, OnObject, Op, Read, Write
from memmodel.program.uses import assigned, is_hidden, used


@dataclass(frozen=True, slots=True)
class BackwardJump:
    """Steps first..last, of which `last` jumps back to `first`. `spins`: a round has no effect that is seen later.

    `reads`: a round reads memory.
    """

    first: int
    last: int
    spins: bool
    reads: bool


@by_identity(64)
def find_loops(program: Program) -> dict[int, BackwardJump]:
    """Every backward jump of a program."""
    steps = program.steps
    back = {
        number: program.target(step.op.label)
        for number, step in enumerate(steps)
        if isinstance(step.op, Jump) and program.target(step.op.label) <= number
    }
    if not back:
        return {}
    live = _live_before(program)
    return {
        last: BackwardJump(
            first,
            last,
            _spins(program, first, last, back, live[first]),
            any(isinstance(steps[number].op, Read) for number in range(first, last)),
        )
        for last, first in back.items()
    }


def _spins(program: Program, first: int, last: int, back: dict[int, int], live: frozenset[str]) -> bool:
    inside = range(first, last + 1)
    if any(number in inside and number != last for number in back):
        return False
    for number, step in enumerate(program.steps):
        if number in inside:
            if _leaves_something(step.op) or not live.isdisjoint(assigned(step.op)):
                return False
        elif isinstance(step.op, Jump) and first < program.target(step.op.label) <= last:
            return False
    return True


def _leaves_something(op: Op) -> bool:
    """True if other threads can tell a round with this step from no round."""
    if isinstance(op, Write):
        return op.when is None
    if isinstance(op, OnObject):
        return op.label.action is not Action.TEST
    if isinstance(op, Emit):
        return isinstance(op.label, Allocates)
    return isinstance(op, AtBarrier | Combine | CommitGroup | IssueAsync)


def _live_before(program: Program) -> list[frozenset[str]]:
    """For each step, the registers whose value before it may be read later or seen at the end of the thread."""
    steps = program.steps
    at_end = frozenset(name for step in steps for name in assigned(step.op) if not is_hidden(name))
    live: list[frozenset[str]] = [frozenset()] * len(steps) + [at_end]
    reads = [frozenset(name for name in used(step) if not name.startswith("$")) for step in steps]
    changed = True
    while changed:
        changed = False
        for number in range(len(steps) - 1, -1, -1):
            op, guard = steps[number].op, steps[number].guard
            falls_through = not (isinstance(op, Jump) and op.when is None and guard is None)
            after = live[number + 1] if falls_through else frozenset()
            if isinstance(op, Jump):
                after |= live[program.target(op.label)]
            if guard is None:
                after -= frozenset(assigned(op))
            if after | reads[number] != live[number]:
                live[number] = after | reads[number]
                changed = True
    return live
