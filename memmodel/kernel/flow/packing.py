"""Registers whose bits are looked at one by one: those of words that threads share and that pack a state with data.

In: the instructions of a function. Out: registers. Such a word is written by a strong store or an atomic operation,
read by a strong load or an atomic operation, and only a part of it decides where a thread goes (a look-back whose
status and value are one word). Everywhere else a register is known as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.kernel.flow.registers import registers, written
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, TensorOperand

STRONG = ("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
PACKING = ("mov", "cvt", "and", "or", "xor", "not", "shl", "shr", "selp", "prmt", "bfe", "add", "setp")
NARROW = ("b8", "u8", "s8", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "noftz")
HIGHEST = 512
"""Registers that are followed; with more of them none is."""


def packed_registers(body: Iterable[PtxInstruction]) -> frozenset[int]:
    """The registers through which such words come and go."""
    code = list(body)
    words = [one for one in code if _shares(one)]
    read = {slot for one in words if one.words[0] in ("ld", "atom") for slot in written(one)}
    stored = {slot for one in words if one.words[0] != "ld" for slot in _values(one)}
    if not read or not stored or not any(one.words[0] in ("st", "atom") for one in words):
        return frozenset()
    steps = [(set(written(one)), _inputs(one)) for one in code if one.words[0] in PACKING]
    found = _closed(read, [(given, made) for made, given in steps]) | _closed(stored, steps)
    return frozenset(found) if len(found) <= HIGHEST else frozenset()


def _shares(one: PtxInstruction) -> bool:
    """Does it read or write a word that other threads look at?"""
    head, words = one.words[0], one.words
    strong = head == "atom" or (head in ("ld", "st") and any(word in STRONG for word in words))
    return strong and words[-1] not in NARROW


def _values(one: PtxInstruction) -> list[int]:
    """The registers that a store or an atomic operation writes to memory."""
    operands = one.operands[1:] if one.words[0] == "st" else one.operands[2:]
    return [slot for operand in operands for slot in registers(operand)]


def _inputs(one: PtxInstruction) -> set[int]:
    given = [operand for operand in one.operands[1:] if not isinstance(operand, Mem | TensorOperand)]
    return {slot for operand in given for slot in registers(operand)}


def _closed(begin: set[int], steps: list[tuple[set[int], set[int]]]) -> set[int]:
    """What can be reached by steps: if something of the first part is there, all of the second one is."""
    found, grown = set(begin), True
    while grown:
        grown = False
        for have, get in steps:
            if have & found and not get <= found:
                found |= get
                grown = True
    return found
