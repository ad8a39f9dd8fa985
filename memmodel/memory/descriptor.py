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
_COLUMNS_AT, _COLUMNS = 17, 63
_ROWS_AT, _ROWS = 24, 31
_BOTH = 1 << 2 | _TYPES | _COLUMNS << _COLUMNS_AT | _ROWS << _ROWS_AT
_RESULT = 3 << 4
_DEPTH = 1 << 31


def shape_mask(*, scaled: bool) -> int:
    """The bits of a descriptor that operations of one shape have in common."""
    return _BOTH | (_DEPTH if scaled else _RESULT)


def columns_of(value: int) -> int:
    """N: three bits of it are left out."""
    return (value >> _COLUMNS_AT & _COLUMNS) << 3


def rows_of(value: int, *, scaled: bool) -> int:
    """M: four bits of it are left out, seven of the kinds with scale factors."""
    return (value >> 27 & 3) << 7 if scaled else (value >> _ROWS_AT & _ROWS) << 4


def rows_field(rows: int) -> int:
    """The bits that say so many rows, of the kinds without scale factors; all of the field if there are very many."""
    return (rows >> 4 & _ROWS) << _ROWS_AT
