"""Registers whose bits are known one by one: registers for words that threads share and that pack a state with data.

In: the instructions of a function. Out: registers. Such a word is written by a strong store or an atomic operation,
read by a strong load or an atomic operation, and only a part of it decides where a thread goes (a look-back whose
status and value are one word). Everywhere else a register is known as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.isa.lowered import registers
from memmodel.kernel.flow.registers import written
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, TensorOperand

STRONG = ("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
PACKING = ("mov", "cvt", "and", "or", "xor", "not", "shl", "shr", "selp", "prmt", "bfe", "add", "setp")
NARROW = ("b8", "u8", "s8", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "noftz")
HIGHEST = 512
"""Registers that are followed; with more of them none is."""


def packed_registers(body: Iterable[PtxInstruction]) -> frozenset[int]:
    """The registers through which such words are loaded and stored."""
    code = list(body)
    words = [instruction for instruction in code if _shares(instruction)]
    read = {slot for instruction in words if instruction.words[0] in ("ld", "atom") for slot in written(instruction)}
    stored = {slot for instruction in words if instruction.words[0] != "ld" for slot in _values(instruction)}
    if not read or not stored or not any(instruction.words[0] in ("st", "atom") for instruction in words):
        return frozenset()
    steps = [
        (set(written(instruction)), _inputs(instruction)) for instruction in code if instruction.words[0] in PACKING
    ]
    slots = _closed(read, [(operands, results) for results, operands in steps]) | _closed(stored, steps)
    return frozenset(slots) if len(slots) <= HIGHEST else frozenset()


def _shares(instruction: PtxInstruction) -> bool:
    """True if it reads or writes a word that other threads look at."""
    head, words = instruction.words[0], instruction.words
    strong = head == "atom" or (head in ("ld", "st") and any(word in STRONG for word in words))
    return strong and words[-1] not in NARROW


def _values(instruction: PtxInstruction) -> list[int]:
    """The registers that a store or an atomic operation writes to memory."""
    operands = instruction.operands[1:] if instruction.words[0] == "st" else instruction.operands[2:]
    return [slot for operand in operands for slot in registers(operand)]


def _inputs(instruction: PtxInstruction) -> set[int]:
    operands = [operand for operand in instruction.operands[1:] if not isinstance(operand, Mem | TensorOperand)]
    return {slot for operand in operands for slot in registers(operand)}


def _closed(begin: set[int], steps: list[tuple[set[int], set[int]]]) -> set[int]:
    """The registers that are reached by steps: a step with a reached source reaches all its targets."""
    reached, grown = set(begin), True
    while grown:
        grown = False
        for sources, targets in steps:
            if sources & reached and not targets <= reached:
                reached |= targets
                grown = True
    return reached
