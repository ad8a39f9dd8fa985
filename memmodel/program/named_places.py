"""What a plain access names.

In: an instruction whose memory operand names a variable. Out: `NamedPlace`.
"""

from __future__ import annotations

from typing import NamedTuple

from memmodel.litmus.syntax import Instruction
from memmodel.ptx.operands import Mem, Sym


class NamedPlace(NamedTuple):
    """`variable`, the instance of CTA `cta` (None: that of the executing CTA, or the only one), `offset` bytes on."""

    variable: str
    cta: int | None
    offset: int

    @property
    def instance(self) -> tuple[str, int | None]:
        return self.variable, self.cta


def named_place(item: Instruction) -> NamedPlace:
    """The place that an access names."""
    memory = next(operand for operand in item.operands if isinstance(operand, Mem))
    assert isinstance(memory.base, Sym)
    return NamedPlace(memory.base.name, memory.base.cta, memory.base.offset + memory.offset)
