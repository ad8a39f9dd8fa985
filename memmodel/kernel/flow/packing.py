"""Registers whose bits are known one by one: registers for words that threads share and that pack a state with data.

In: the instructions of a function. Out: registers. Such a word is written by a strong store or an atomic operation,
read by a strong load or an atomic operation, and only a part of it decides where a thread goes (a look-back whose
status and value are one word). Everywhere else a register is known as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.isa.lowered import Body, LoweredInstruction
from memmodel.program.expressions import registers_of
from memmodel.program.fields import follows_bits
from memmodel.program.ops import Assign, Write
from memmodel.ptx.vocabulary import Sem

HIGHEST = 512
"""Registers that are followed; with more of them none is."""


def packed_registers(body: Body) -> frozenset[int]:
    """The registers through which such words are loaded and stored."""
    words = [does for does in body if _shares(does)]
    read = {slot for does in words if does.loads or does.atomic for slot in does.writes}
    stored = {slot for does in words for slot in _values(does)}
    if not read or not stored or not any(does.stores or (does.atomic and does.writes) for does in words):
        return frozenset()
    steps = [(set(does.writes), set(does.sources)) for does in body if _packs(does)]
    slots = _closed(read, [(operands, results) for results, operands in steps]) | _closed(stored, steps)
    return frozenset(slots) if len(slots) <= HIGHEST else frozenset()


def _shares(does: LoweredInstruction) -> bool:
    """True if it reads or writes a word that other threads look at."""
    if does.access is None or does.access.sem is Sem.WEAK or (does.atomic and not does.writes):
        return False
    return does.type is not None and not does.type.floating and does.type.width > 8


def _values(does: LoweredInstruction) -> Iterator[int]:
    """The registers that a store or an atomic operation writes to memory, or compares with it."""
    for op in does.ops:
        if isinstance(op, Write):
            values = op.values if op.when is None else (*op.values, op.when)
            yield from (int(name) for value in values for name in registers_of(value) if name.isdigit())


def _packs(does: LoweredInstruction) -> bool:
    """True if single bits of its operands tell single bits of its results."""
    return does.computes and all(isinstance(op, Assign) and follows_bits(op.value) for op in does.ops)


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
