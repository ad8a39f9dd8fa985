"""Which loops a thread has, and which of them spin: their last iteration stands for all of them.

In: Program. Out: its loops by the step of their backward jump. docs/executions.md says what a spin loop is; "leaves
nothing behind" is decided by liveness: no register that the loop assigns is read, in the loop or later, before it is
assigned again, so going round once more changes nothing that anyone sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.isa.ops import (
    Assign,
    Barrier,
    Expr,
    Fence,
    Issue,
    Jump,
    Mbarrier,
    Op,
    Part,
    Read,
    Reduce,
    Wait,
    Write,
    registers_of,
)
from memmodel.isa.program import Program, Step


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps first..last, of which `last` jumps back to `first`."""

    first: int
    last: int
    spin: bool


def expressions(op: Op) -> tuple[Expr, ...]:
    """The expressions that a step evaluates."""
    found: tuple[Expr | None, ...] = ()
    if isinstance(op, Assign | Reduce):
        found = (op.value,)
    elif isinstance(op, Jump):
        found = (op.when,)
    elif isinstance(op, Read):
        found = (op.address,)
    elif isinstance(op, Write):
        found = (op.value, op.address, op.when)
    elif isinstance(op, Barrier):
        found = (*op.key, op.count)
    elif isinstance(op, Mbarrier):
        found = (op.address, op.count, op.bytes, op.parity, op.state)
    elif isinstance(op, Wait):
        found = (op.pending,)
    elif isinstance(op, Issue):
        found = tuple(
            one for part in op.parts for one in (part.address, part.value if isinstance(part, Part) else part.bytes)
        )
    return tuple(one for one in found if one is not None)


def assigned(op: Op) -> tuple[str, ...]:
    """The registers that a step assigns."""
    found: tuple[str | None, ...] = ()
    if isinstance(op, Assign | Read | Reduce):
        found = (op.register,)
    elif isinstance(op, Mbarrier):
        found = (op.register, op.pending)
    elif isinstance(op, Issue):
        found = tuple(part.register for part in op.parts if isinstance(part, Part))
    return tuple(one for one in found if one is not None)


def is_hidden(register: str) -> bool:
    """Is it no register of the program, but a temporary of one instruction or a note beside an mbarrier state?"""
    return register.startswith("$") or "#" in register


def used(step: Step) -> frozenset[str]:
    """The registers that a step reads, its guard included."""
    names = frozenset[str]().union(*(registers_of(expr) for expr in expressions(step.op)))
    return names if step.guard is None else names | {step.guard.register}


def find_loops(program: Program) -> dict[int, Loop]:
    """Every backward jump of a program with the loop that it closes."""
    steps = program.steps
    back = {
        number: program.labels[step.op.label]
        for number, step in enumerate(steps)
        if isinstance(step.op, Jump) and step.op.label is not None and program.labels[step.op.label] <= number
    }
    if not back:
        return {}
    live = _live_before(program)
    return {last: Loop(first, last, _spins(program, first, last, back, live[first])) for last, first in back.items()}


def _spins(program: Program, first: int, last: int, back: dict[int, int], live: frozenset[str]) -> bool:
    inside = range(first, last + 1)
    if any(number in back for number in inside if number != last):
        return False
    for number, step in enumerate(program.steps):
        if number in inside:
            if _leaves_something(step.op) or not live.isdisjoint(assigned(step.op)):
                return False
        elif any(target in inside and target != first for target in _targets(program, number)):
            return False
    return True


def _leaves_something(op: Op) -> bool:
    """Does a round with such a step differ for others from no round at all?"""
    if isinstance(op, Write):
        return op.when is None
    if isinstance(op, Mbarrier):
        return op.action != "test"
    return not isinstance(op, Assign | Jump | Read | Fence | Wait)


def _targets(program: Program, number: int) -> Sequence[int]:
    """Where a step may jump to."""
    op = program.steps[number].op
    if not isinstance(op, Jump):
        return ()
    return (len(program.steps) if op.label is None else program.labels[op.label],)


def _live_before(program: Program) -> list[frozenset[str]]:
    """For each step, the registers whose value before it may be read later or seen at the end of the thread.

    Temporaries of an instruction (`$…`) never outlive it.
    """
    steps = program.steps
    seen_at_end = frozenset(name for step in steps for name in assigned(step.op) if not is_hidden(name))
    live: list[frozenset[str]] = [frozenset()] * len(steps) + [seen_at_end]
    reads = [frozenset(name for name in used(step) if not name.startswith("$")) for step in steps]
    changed = True
    while changed:
        changed = False
        for number in range(len(steps) - 1, -1, -1):
            step = steps[number]
            after: frozenset[str] = frozenset()
            if not (isinstance(step.op, Jump) and step.op.when is None and step.guard is None):
                after = live[number + 1]
            for target in _targets(program, number):
                after |= live[target]
            if step.guard is None:
                after -= frozenset(assigned(step.op))
            before = after | reads[number]
            if before != live[number]:
                live[number] = before
                changed = True
    return live
