"""Registers that a wgmma.mma_async still has: who touches them before a wgmma.wait_group that covers it.

In: Program. Out: (step, message, hint) for the first such register of each instruction. Settled here: which groups
may still be pending at an instruction, along any path. ("wgmma.mma_async": touching its accumulator, or a fragment of
matrix A in registers, before a wait that covers it is undefined, except for accumulating on in the same registers.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.isa.ops import Commit, Const, Issue, Jump, Wait
from memmodel.isa.program import Program, Step
from memmodel.litmus.syntax import Group, Instruction, Mem, Negated, Operand, Pair, Reg

HEAD = "wgmma.mma_async"
ACCUMULATOR = "accumulator"
FRAGMENT = "fragment of A"
OPEN = -1
"""Age of a group that is not committed; the last committed one is 0 groups old."""


@dataclass(frozen=True, slots=True)
class Held:
    """A register of an unfinished wgmma.mma_async: as what, since when, and the accumulator of that instruction."""

    role: str
    age: int
    accumulator: tuple[str, ...]
    by: Instruction


State = dict[str, Held]


def unfinished_registers(program: Program) -> Iterator[tuple[Step, str, str]]:
    """The first register of each instruction that an unfinished wgmma.mma_async may still read or write."""
    before = _states(program)
    told: set[int] = set()
    for number, step in enumerate(program.steps):
        if step.index in told:
            continue
        told.add(step.index)
        held = before.get(number, {})
        for name in _touched(step.instruction, held):
            one = held[name]
            line = one.by.span.line
            message = f"%{name} is undefined until wgmma.wait_group: {one.role} of the {HEAD} in line {line}"
            wait = "commit its group and " if one.age == OPEN else ""
            yield step, message, f'{wait}write wgmma.wait_group.sync.aligned 0 in front of this ("{HEAD}")'
            break


def _touched(item: Instruction, held: State) -> Iterator[str]:
    """The held registers that an instruction reads or writes although it must not."""
    if not item.mnemonic.startswith(HEAD):
        guard = (item.guard.register,) if item.guard else ()
        yield from (name for name in (*guard, *_names(item.operands)) if name in held)
        return
    accumulator = _names(item.operands[:1])
    for name in accumulator:
        if name in held and (held[name].role != ACCUMULATOR or held[name].accumulator != accumulator):
            yield name
    # Several instructions may read one fragment of A.
    yield from (name for name in _fragment(item) if name in held and held[name].role == ACCUMULATOR)


def _states(program: Program) -> dict[int, State]:
    """For each step that can be reached, the registers that may be held before it."""
    waits = [step.op.pending for step in program.steps if isinstance(step.op, Wait)]
    oldest = max((one.value for one in waits if isinstance(one, Const)), default=0)
    before: dict[int, State] = {0: {}}
    pending = [0]
    while pending:
        number = pending.pop()
        if number >= len(program.steps):
            continue
        step = program.steps[number]
        after = _after(step, before[number], oldest)
        following = [number + 1]
        if isinstance(step.op, Jump):
            target = len(program.steps) if step.op.label is None else program.labels[step.op.label]
            following = [target, *(following if step.op.when is not None or step.guard is not None else ())]
        for one in following:
            joined = _join(before.get(one), after)
            if joined != before.get(one):
                before[one] = joined
                pending.append(one)
    return before


def _after(step: Step, state: State, oldest: int) -> State:
    """What is held behind a step. Ages beyond `oldest` make no difference to any wait."""
    op, item = step.op, step.instruction
    if isinstance(op, Issue) and item.mnemonic.startswith(HEAD):
        accumulator = _names(item.operands[:1])
        fragment = {name: Held(FRAGMENT, OPEN, accumulator, item) for name in _fragment(item)}
        return {**state, **fragment, **{name: Held(ACCUMULATOR, OPEN, accumulator, item) for name in accumulator}}
    if isinstance(op, Commit) and op.track == "wgmma":
        return {name: replace(held, age=min(held.age + 1, oldest)) for name, held in state.items()}
    if isinstance(op, Wait) and op.track == "wgmma" and isinstance(op.pending, Const):
        return {name: held for name, held in state.items() if held.age < op.pending.value}
    return state


def _join(one: State | None, other: State) -> State:
    """What may be held if either may: of each register the youngest use."""
    if one is None:
        return other
    joined = dict(one)
    for name, held in other.items():
        if name not in joined or held.age < joined[name].age:
            joined[name] = held
    return joined


def _fragment(item: Instruction) -> tuple[str, ...]:
    """The registers of matrix A; none if it is in shared memory."""
    return _names(item.operands[1:2]) if isinstance(item.operands[1], Group) else ()


def _names(operands: tuple[Operand, ...]) -> tuple[str, ...]:
    """The registers in operands, addresses included, in order."""
    found: list[str] = []
    for operand in operands:
        match operand:
            case Reg(name):
                found.append(name)
            case Negated(Reg(name)) | Mem(Reg(name)):
                found.append(name)
            case Group(items):
                found += _names(items)
            case Pair(first, second):
                found += _names((first, second))
            case _:
                pass
    return tuple(found)
