"""Accesses to memory in another place of their thread: after a wait, before a release.

In: a lowered test. Out: edits. Settled here: what may be moved, and over what. A plain load, store or atomic without
semantics, of one variable; over at least one instruction that synchronizes, and over nothing that uses its registers
or may access its variable. Neither a branch nor a label lies in between, but those of loops that only wait, and no jump
leads into or out of what lies in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Label, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.operands import Mem, Sym, TensorOperand, registers_in
from memmodel.repair.costs import MOVED_ACCESS
from memmodel.repair.edits import Edit
from memmodel.repair.insertion.gaps import gaps, moved, waiting

ACCESSES = ("ld", "st", "atom", "red")
ORDERED = ("release", "acquire", "acq_rel", "sc", "async", "bulk")
SYNCHRONIZES = re.compile(r"fence|membar|\bbar|barrier|wait|commit|\.(acquire|release|acq_rel)")
BRANCHES = ("bra", "brx", "exit", "ret", "trap")
BY_DESCRIPTOR = ("wgmma", "tcgen05", "clusterlaunchcontrol")
"""Instructions that access memory by descriptors and not by names, unless they only synchronize."""

NEAR = 6
"""An access is moved over at most this number of instructions."""


def moved_accesses(lowered: LoweredTest) -> list[Edit]:
    """The changes that move an access within its thread, the nearest first; none for a test in which a variable has two
    names."""
    test = lowered.test
    if any(variable.alias_of is not None for variable in test.variables):
        return []
    edits: list[tuple[int, Edit]] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            if _movable(item) and index not in {*waiting(lowered, number), *labels_of(thread).values()}:
                edits += _moves(lowered, number, thread, index)
    return [edit for _, edit in sorted(edits, key=lambda far: far[0])]


def _moves(lowered: LoweredTest, number: int, thread: Thread, index: int) -> Iterator[tuple[int, Edit]]:
    """Moves of one access, each with the number of instructions that it moves over."""
    items = list(instructions(thread))
    labels, spins = labels_of(thread), waiting(lowered, number)
    for gap in gaps(lowered, number, behind_loops=True):
        low, high = (gap.index, index) if gap.index < index else (index + 1, gap.index)
        if gap.index in (index, index + 1) or high - low > NEAR:
            continue
        over = range(low, high)
        passed = range(low, high if gap.label and gap.index == high else high + 1)
        if not _closed(items, over, {name for name, at in labels.items() if at in passed}):
            continue
        if any(at in labels.values() and at not in spins for at in passed):
            continue
        if not all(_passes(items[index], items[at], spins=at in spins) for at in over):
            continue
        if any(SYNCHRONIZES.search(items[at].mnemonic) for at in over):
            yield high - low, moved(thread, (items[index],), index, gap, MOVED_ACCESS)


def _closed(items: list[Instruction], over: range, labels: set[str]) -> bool:
    """True if no jump enters or leaves these instructions. `labels`: the labels among them."""
    for at, item in enumerate(items):
        if item.parts[0] in BRANCHES:
            targets = {operand.name for operand in item.operands if isinstance(operand, Sym)}
            if targets & labels if at not in over else not targets or targets - labels:
                return False
    return True


def labels_of(thread: Thread) -> dict[str, int]:
    """The labels, each with the instruction that it stands before."""
    numbers: dict[str, int] = {}
    index = 0
    for item in thread.body:
        if isinstance(item, Label):
            numbers[item.name] = index
        else:
            index += 1
    return numbers


def _movable(item: Instruction) -> bool:
    places = [operand for operand in item.operands if isinstance(operand, Mem)]
    plain = item.parts[0] in ACCESSES and not set(item.parts) & set(ORDERED) and item.guard is None
    return plain and len(places) == 1 and isinstance(places[0].base, Sym)


def _passes(moved: Instruction, other: Instruction, *, spins: bool) -> bool:
    """True if an access may be exchanged with another instruction without a change for its own thread."""
    if other.parts[0] in (*BRANCHES, *BY_DESCRIPTOR) and not (spins or SYNCHRONIZES.search(other.mnemonic)):
        return False
    if _registers(moved) & _registers(other):
        return False
    place = next(operand for operand in moved.operands if isinstance(operand, Mem))
    assert isinstance(place.base, Sym)
    if re.search(rf"(?<![\w%]){re.escape(place.base.name)}\b", other.span.text):
        return False
    brackets = [operand for operand in other.operands if isinstance(operand, Mem | TensorOperand)]
    return not any(registers_in(brackets))


def _registers(item: Instruction) -> set[str]:
    """The registers that an instruction names; a register need not have a percent sign."""
    guard = set() if item.guard is None else {item.guard.register}
    return guard.union(register.name for register in registers_in(item.operands))
