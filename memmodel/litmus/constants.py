"""Registers of a thread that keep one known value, and those that are predicates.

In: LitmusTest, Thread. Out: register -> value. What an operand says only at run time (a CTA mask, an instruction
descriptor) can be looked at before the test runs if it is such a register.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memmodel.litmus.syntax import Instruction, Label, LitmusTest, Thread
from memmodel.ptx.operands import Imm, Mem, Negated, Operand, Pair, Reg, Sym, TensorOperand, Vector


def instructions(thread: Thread) -> Iterator[Instruction]:
    """The instructions of a thread, labels left out."""
    return (item for item in thread.body if isinstance(item, Instruction))


def constants(test: LitmusTest, thread: Thread) -> dict[str, int]:
    """Registers that keep one known value: initialised or set by one unguarded mov of a number, and nothing else.

    A mov that a branch can skip is none, nor one that comes after the register is read.
    """
    found = {
        item.register: item.value
        for item in test.registers
        if item.thread == thread.name and isinstance(item.value, int)
    }
    written: dict[str, int] = {item.register: 1 for item in test.registers if item.thread == thread.name}
    read: set[str] = set()
    skipped = _skipped(thread)
    for at, item in enumerate(thread.body):
        if isinstance(item, Label):
            continue
        for name in targets(item):
            written[name] = written.get(name, 0) + 1
        if item.parts[0] == "mov" and item.guard is None and len(item.operands) == 2:
            target, value = item.operands
            if isinstance(target, Reg) and isinstance(value, Imm) and at not in skipped and target.name not in read:
                found[target.name] = value.value
        read.update(_registers(item.operands))
    return {name: value for name, value in found.items() if written[name] == 1}


def _branches(thread: Thread) -> Iterator[tuple[int, int]]:
    """The branches of a body, and any instruction that ends with a label: its place, and the label's."""
    labels = {item.name: at for at, item in enumerate(thread.body) if isinstance(item, Label)}
    for at, item in enumerate(thread.body):
        if isinstance(item, Instruction) and item.operands:
            last = item.operands[-1]
            if isinstance(last, Sym | Reg) and last.name in labels:
                yield at, labels[last.name]


def _skipped(thread: Thread) -> set[int]:
    """The places in a body that a branch forward can pass over."""
    return {place for at, goal in _branches(thread) for place in range(at + 1, goal)}


def repeated(thread: Thread) -> set[int]:
    """The places in a body that lie in a loop: between a label and a branch back to it."""
    return {place for at, goal in _branches(thread) for place in range(goal, at + 1)}


def targets(item: Instruction) -> Iterator[str]:
    """Every register that the instruction might assign: its operands up to the first one in brackets."""
    for operand in item.operands[:2]:
        if isinstance(operand, Mem):
            return
        items: tuple[Operand, ...] = (operand,)
        if isinstance(operand, Vector):
            items = operand.items
        elif isinstance(operand, Pair):
            items = (operand.first, operand.second)
        yield from (register.name for register in items if isinstance(register, Reg))
        if item.parts[0] != "mbarrier" and item.parts[:3] != ("tcgen05", "ld", "red"):
            return


def cache_policies(thread: Thread) -> frozenset[str]:
    """Registers that hold a cache policy, whose value is opaque."""
    made = (item.operands[0] for item in instructions(thread) if item.parts[0] == "createpolicy" and item.operands)
    return frozenset(target.name for target in made if isinstance(target, Reg))


@dataclass(frozen=True, slots=True)
class Fragments:
    """Registers in which the lanes of a warp have different numbers.

    `loaded`: nothing but ldmatrix assigns them. `computed`: something else does too, or computes them from such ones.
    `stored`: those of `loaded` that an stmatrix stores.
    """

    loaded: frozenset[str]
    computed: frozenset[str]
    stored: frozenset[str]


def fragments(test: LitmusTest, thread: Thread) -> Fragments:
    """What a thread's ldmatrix instructions leave in registers."""
    items = list(instructions(thread))
    loads = {name for item in items if item.parts[0] == "ldmatrix" for name in targets(item)}
    if not loads:
        return Fragments(*[frozenset[str]()] * 3)
    initial = {item.register for item in test.registers if item.thread == thread.name}
    others = [item for item in items if item.parts[0] != "ldmatrix"]
    mixed = loads & (initial | {name for item in others for name in targets(item)})
    varied = set(loads)
    while (
        more := {name for item in others if varied & set(_registers(item.operands)) for name in targets(item)} - varied
    ):
        varied |= more
    computed = frozenset(mixed | varied - loads)
    stores = {name for item in items if item.parts[0] == "stmatrix" for name in _registers(item.operands)}
    return Fragments(frozenset(loads) - computed, computed, frozenset(loads & stores) - computed)


def _registers(operands: Iterable[Operand]) -> Iterator[str]:
    """The registers in operands, those of addresses included."""
    for operand in operands:
        if isinstance(operand, Reg):
            yield operand.name
        elif isinstance(operand, Mem):
            yield from _registers((operand.base,))
        elif isinstance(operand, TensorOperand | Vector):
            yield from _registers(operand.items)
        elif isinstance(operand, Pair):
            yield from _registers((operand.first, operand.second))
        elif isinstance(operand, Negated):
            yield operand.operand.name


def predicates(thread: Thread) -> frozenset[str]:
    """Registers that the thread uses as predicates: what it compares into, moves as .pred, or guards with."""
    found: set[str] = set(thread.predicates)
    for item in instructions(thread):
        if item.guard is not None:
            found.add(item.guard.register)
        if item.parts[0] == "setp" or "pred" in item.parts:
            found.update(targets(item))
        if item.mnemonic.startswith(("mbarrier.test_wait", "mbarrier.try_wait", "elect")):
            found.update(targets(item))
        found.update(operand.operand.name for operand in item.operands if isinstance(operand, Negated))
    return frozenset(found)
