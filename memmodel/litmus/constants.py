"""Registers of a thread that keep one known value, and those that are predicates.

In: LitmusTest, Thread. Out: register -> value. What an operand says only at run time (a CTA mask, an instruction
descriptor) can be looked at before the test runs if it is such a register.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.litmus.syntax import Instruction, Label, LitmusTest, Thread
from memmodel.ptx.operands import Imm, Mem, Negated, Reg, Sym, elements, registers_in


def instructions(thread: Thread) -> Iterator[Instruction]:
    """The instructions of a thread, labels left out."""
    return (statement for statement in thread.body if isinstance(statement, Instruction))


def all_instructions(test: LitmusTest) -> Iterator[Instruction]:
    """The instructions of all threads, in the order of the file."""
    return (instruction for thread in test.threads for instruction in instructions(thread))


def constants(test: LitmusTest, thread: Thread) -> dict[str, int]:
    """Registers that keep one known value: initialised or set by one unguarded mov of a number, and nothing else.

    A mov that a branch can skip does not count, nor does one that comes after the register is read.
    """
    initial = {start.register: start.value for start in test.registers if start.thread == thread.name}
    values = {register: value for register, value in initial.items() if isinstance(value, int)}
    written = Counter(initial.keys())
    read: set[str] = set()
    skipped = _skipped(thread)
    for at, instruction in enumerate(thread.body):
        if isinstance(instruction, Label):
            continue
        written.update(targets(instruction))
        if instruction.parts[0] == "mov" and instruction.guard is None and len(instruction.operands) == 2:
            target, value = instruction.operands
            if isinstance(target, Reg) and isinstance(value, Imm) and at not in skipped and target.name not in read:
                values[target.name] = value.value
        read.update(_names(instruction))
    return {name: value for name, value in values.items() if written[name] == 1}


def _branches(thread: Thread) -> Iterator[tuple[int, int]]:
    """The branches of a body, and any instruction that ends with a label: its place, and the label's."""
    labels = {label.name: at for at, label in enumerate(thread.body) if isinstance(label, Label)}
    for at, branch in enumerate(thread.body):
        if isinstance(branch, Instruction) and branch.operands:
            last = branch.operands[-1]
            if isinstance(last, Sym | Reg) and last.name in labels:
                yield at, labels[last.name]


def _skipped(thread: Thread) -> set[int]:
    """The places in a body that a branch forward can pass over."""
    return {place for at, goal in _branches(thread) for place in range(at + 1, goal)}


def repeated(thread: Thread) -> set[int]:
    """The places in a body that lie in a loop: between a label and a branch back to it."""
    return {place for at, goal in _branches(thread) for place in range(goal, at + 1)}


def targets(instruction: Instruction) -> Iterator[str]:
    """Every register that the instruction might assign: its operands up to the first one in brackets."""
    for operand in instruction.operands[:2]:
        if isinstance(operand, Mem):
            return
        yield from (register.name for register in elements(operand) if isinstance(register, Reg))
        if instruction.parts[0] != "mbarrier" and instruction.parts[:3] != ("tcgen05", "ld", "red"):
            return


def cache_policies(thread: Thread) -> frozenset[str]:
    """Registers that hold a cache policy, whose value is opaque."""
    creations = (creation for creation in instructions(thread) if creation.parts[0] == "createpolicy")
    policies = (policy for creation in creations for policy in creation.operands[:1])
    return frozenset(policy.name for policy in policies if isinstance(policy, Reg))


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
    body = list(instructions(thread))
    loads = {name for load in body if load.parts[0] == "ldmatrix" for name in targets(load)}
    if not loads:
        return Fragments(*[frozenset[str]()] * 3)
    initial = {start.register for start in test.registers if start.thread == thread.name}
    others = [instruction for instruction in body if instruction.parts[0] != "ldmatrix"]
    mixed = loads & (initial | {name for other in others for name in targets(other)})
    varied = set(loads)
    while more := {name for other in others if varied & _names(other) for name in targets(other)} - varied:
        varied |= more
    computed = frozenset(mixed | varied - loads)
    stores = {name for store in body if store.parts[0] == "stmatrix" for name in _names(store)}
    return Fragments(frozenset(loads) - computed, computed, frozenset(loads & stores) - computed)


def _names(instruction: Instruction) -> set[str]:
    """The registers in the operands of an instruction, those of addresses included."""
    return {register.name for register in registers_in(instruction.operands)}


def predicates(thread: Thread) -> frozenset[str]:
    """Registers that the thread uses as predicates: what it compares into, moves as .pred, or guards with."""
    names: set[str] = set(thread.predicates)
    for instruction in instructions(thread):
        if instruction.guard is not None:
            names.add(instruction.guard.register)
        if instruction.parts[0] == "setp" or "pred" in instruction.parts:
            names.update(targets(instruction))
        if instruction.mnemonic.startswith(("mbarrier.test_wait", "mbarrier.try_wait", "elect")):
            names.update(targets(instruction))
        names.update(operand.operand.name for operand in instruction.operands if isinstance(operand, Negated))
    return frozenset(names)
