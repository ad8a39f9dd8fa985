"""Numbers as they lie in memory and stand in registers.

In: nothing. Out: what a load leaves in a wider register, what a vector stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.kernel.machine.rows import Value
from memmodel.program.fields import Bits
from memmodel.ptx.vocabulary import DataType


def together(values: list[Value], unit: int) -> Value:
    """The elements of a vector as one number."""
    total = 0
    for number, value in enumerate(values):
        if value is None:
            return None
        total |= (value & (1 << 8 * unit) - 1) << 8 * unit * number
    return total


def extended(value: Value, unit: int, extend: int) -> Value:
    """A number as it stands in the register."""
    return value | extend if extend and value is not None and value >> unit * 8 - 1 else value


def loaded(bits: Bits, unit: int, width: int) -> Bits:
    """What is known of a register that takes a number: the bits above are 0, if it has no sign."""
    return Bits(bits.known | (1 << width) - (1 << 8 * unit), bits.value)


def sign_bits(type: DataType, unit: int, widths: Sequence[int]) -> int:
    """The bits above a signed value in a wider register, which its sign fills; 0 if there are none."""
    return (1 << widths[0]) - (1 << unit * 8) if type.signed and widths and widths[0] > unit * 8 else 0
