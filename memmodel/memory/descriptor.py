"""Instruction descriptors of tcgen05.mma: 32 bits that say the shape, the types and other details of an operation.

In: the value of one, and whether its kind has scale factors. Out: the shape. Source: PTX ISA "Instruction descriptor".
Settled here: which bits two operations of one shape have in common. These are sparsity, the types, M, N and, of kinds
with scale factors, the choice of K; not the selectors of sparse elements and scale factors, negation, transposition,
saturation, the format of scale factors and shifts, which do not change what an accumulator is.
"""

from __future__ import annotations

SCALED = ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
"""Kinds with scale factors."""

_TYPES = 0x3F << 7
COLUMNS_AT, COLUMNS_FIELD, COLUMNS_UNIT = 17, 63, 8
"""Where N stands: the first bit, a mask, and what 1 stands for (three bits of N are left out)."""
_ROWS_AT, _ROWS = 24, 31
_BOTH = 1 << 2 | _TYPES | COLUMNS_FIELD << COLUMNS_AT | _ROWS << _ROWS_AT
_RESULT = 3 << 4
_DEPTH = 1 << 31


def shape_mask(*, scaled: bool) -> int:
    """The bits of a descriptor that operations of one shape have in common."""
    return _BOTH | (_DEPTH if scaled else _RESULT)


def matrix_columns(value: int) -> int:
    """N: the columns of the second matrix and of the result."""
    return (value >> COLUMNS_AT & COLUMNS_FIELD) * COLUMNS_UNIT


def matrix_rows(value: int, *, scaled: bool) -> int:
    """M: the rows of the first matrix and of the result."""
    at, field, unit = rows_place(scaled=scaled)
    return (value >> at & field) * unit


def rows_place(*, scaled: bool) -> tuple[int, int, int]:
    """Where M stands: the first bit, a mask, and what 1 stands for (four bits of M are left out, of scaled kinds 7)."""
    return (27, 3, 128) if scaled else (_ROWS_AT, _ROWS, 16)
