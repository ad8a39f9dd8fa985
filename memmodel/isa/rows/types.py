"""Types of operands: words that name one, and rules about the types of an operation.

In: words. Out: `DataType`, `Rule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memmodel.isa.rows.cases import Rule, either
from memmodel.ptx.vocabulary import PREDICATE, DataType

BITS = ("b8", "b16", "b32", "b64", "b128")
UNSIGNED = ("u8", "u16", "u32", "u64")
SIGNED = ("s8", "s16", "s32", "s64")
FLOATS = ("f32", "f64")
INTEGERS = (*UNSIGNED[1:], *SIGNED[1:])
LOGICAL = ("b16", "b32", "b64", "pred")

_NUMERIC = {
    str(type): type
    for type in (
        *(DataType(kind, width) for kind in "bus" for width in (8, 16, 32, 64)),
        *(DataType("f", width) for width in (16, 32, 64)),
        DataType("b", 128),
        PREDICATE,
        DataType("bf", 16),
        *(DataType(kind, 32, lanes) for kind in "us" for lanes in (2, 4)),
        DataType("f", 32, 2),
        DataType("bf", 32, 2),
        DataType("f", 64, 2),
    )
}

FOUR_NUMBERS = ("e5m2x4", "e4m3x4", "e3m2x4", "e2m3x4", "e2m1p4x4", "ue8m0x4", "e2m1x4")
"""Formats of four floating-point numbers in 32 bits, or in 16, which instructions compute in: bits, as far as
memmodel knows.
"""
_NUMERIC |= dict.fromkeys(FOUR_NUMBERS, DataType("b", 32)) | {"e2m1x4": DataType("b", 16)}


def data_type(word: str) -> DataType | None:
    """`u32` as a type, `pred` too; None if the word names no type."""
    if word == "pred":
        return PREDICATE
    return DataType(word[0], int(word[1:])) if word in BITS + UNSIGNED + SIGNED + FLOATS else None


def numeric_type(word: str) -> DataType | None:
    """A type that instructions compute in as `DataType`: of integers, floating point, or several of them."""
    return _NUMERIC.get(word)


def types_by_operation(
    types: Mapping[str, str],
    among: Iterable[str],
    case: str = "",
    message: str = "{head}.{op} has no type .{type}",
    modules: Mapping[str, str] | None = None,
) -> tuple[Rule, ...]:
    """For operations (`min|max`) the types that they have: of `among`, in a case, they have no others.

    `modules`: further types, which compiled modules have.
    """
    rules = []
    for operations, has in types.items():
        known = {*has.split("|"), *(modules or {}).get(operations, "").split("|")}
        hint = "it has " + " ".join(f".{word}" for word in has.split("|"))
        refused = either(word for word in among if word not in known)
        rules.append(Rule(message, hint, f"{case} op={operations} type={refused}"))
    return tuple(rules)
