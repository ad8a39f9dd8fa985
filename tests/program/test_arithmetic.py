"""Arithmetic against an oracle that works on bit patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmodel.errors import InternalError
from memmodel.program import arith
from memmodel.ptx.vocabulary import DataType

TYPES = [DataType(kind, width) for kind in "us" for width in (8, 16, 32, 64)]
types = st.sampled_from(TYPES)
values = st.integers(-(2**66), 2**66) | st.integers(-3, 3)


def bits(value: int, type: DataType) -> list[int]:
    return [(value >> i) & 1 for i in range(type.width)]


def number(pattern: list[int], type: DataType) -> int:
    value = sum(bit << i for i, bit in enumerate(pattern))
    return value - (1 << type.width) if type.kind == "s" and pattern[-1] else value


OPERANDS = {
    **dict.fromkeys(("not", "neg", "abs", "cvt", "cnot", "popc", "clz", "brev", "bfind", "bfind.shiftamt"), 1),
    **dict.fromkeys(("sad", "prmt", "bfe", *(op for op in arith.OPERATIONS if op.startswith("shf"))), 3),
    **dict.fromkeys(("lop3", "bfi"), 4),
}
"""How many operands an operation has that does not have two."""


@given(types, values, values)
def test_results_are_values_of_the_type(type: DataType, a: int, b: int) -> None:
    for op in [*arith.OPERATIONS, *arith.SHIFTS, *arith.FIELDS, "mul.hi"]:
        args = (a, b, a ^ b, a & b)[: OPERANDS.get(op, 2)]
        result = arith.apply(op, args, type)
        assert number(bits(result, type), type) == result, op


@given(types, values, values)
def test_logic_is_bitwise(type: DataType, a: int, b: int) -> None:
    pairs = list(zip(bits(a, type), bits(b, type), strict=True))
    assert bits(arith.apply("and", (a, b), type), type) == [x & y for x, y in pairs]
    assert bits(arith.apply("or", (a, b), type), type) == [x | y for x, y in pairs]
    assert bits(arith.apply("xor", (a, b), type), type) == [x ^ y for x, y in pairs]
    assert bits(arith.apply("not", (a,), type), type) == [1 - x for x, _ in pairs]


@given(types, values, st.integers(0, 200))
def test_shifts_move_bits(type: DataType, a: int, n: int) -> None:
    pattern, steps = bits(a, type), min(n, type.width)
    fill = pattern[-1] if type.kind == "s" else 0
    assert bits(arith.apply("shl", (a, n), type), type) == ([0] * steps + pattern)[: type.width]
    assert bits(arith.apply("shr", (a, n), type), type) == pattern[steps:] + [fill] * steps


@given(types, values, values)
def test_products_have_two_halves(type: DataType, a: int, b: int) -> None:
    low = bits(arith.apply("mul", (a, b), type), type)
    high = bits(arith.apply("mul.hi", (a, b), type), type)
    assert number(low + high, arith.double(type)) == arith.apply("mul.wide", (a, b), type)


@given(types, values, values)
def test_quotient_and_remainder_belong_together(type: DataType, a: int, b: int) -> None:
    a, b = number(bits(a, type), type), number(bits(b, type), type)
    quotient, remainder = arith.apply("div", (a, b), type), arith.apply("rem", (a, b), type)
    if b == 0:
        assert bits(quotient, type) == bits(remainder, type) == [1] * type.width
    else:
        assert type.wrap(quotient * b + remainder) == a
        assert abs(remainder) < abs(b) and remainder * a >= 0


@given(types, values, values)
def test_comparisons_order_the_values_of_the_type(type: DataType, a: int, b: int) -> None:
    x, y = number(bits(a, type), type), number(bits(b, type), type)
    got = {op: arith.apply(op, (a, b), type) for op in arith.COMPARISONS}
    assert got == {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    assert arith.apply("min", (a, b), type) == min(x, y)
    assert arith.apply("max", (a, b), type) == max(x, y)
    assert arith.apply("selp", (a, b, 1), type) == x
    assert arith.apply("selp", (a, b, 0), type) == y


def test_inc_and_dec_count_in_a_circle() -> None:
    u32 = DataType("u", 32)
    value, up, down = 0, [], []
    for _ in range(4):
        up.append(value := arith.apply("inc", (value, 2), u32))
    for _ in range(4):
        down.append(value := arith.apply("dec", (value, 2), u32))
    assert (up, down) == ([1, 2, 0, 1], [0, 2, 1, 0])


@pytest.mark.parametrize(
    ("op", "args", "type", "result"),
    [
        ("popc", (0xF0F0,), "b64", 8),
        ("clz", (1,), "b32", 31),
        ("clz", (0,), "b64", 64),
        ("brev", (1,), "b32", 0x80000000),
        ("bfind", (0x10,), "u32", 4),
        ("bfind", (-1,), "s32", -1),
        ("bfind", (-2,), "s32", 0),
        ("bfind", (0,), "u32", 0xFFFFFFFF),
        ("bfind.shiftamt", (0x10,), "u32", 27),
        ("bfind.shiftamt", (0,), "s64", -1),
        ("bfe", (0xABCD, 4, 8), "u32", 0xBC),
        ("bfe", (0xABCD, 4, 8), "s32", -68),
        ("bfe", (0x80000000, 28, 8), "s32", -8),
        ("bfe", (0x80000000, 28, 8), "u32", 8),
        ("bfe", (-1, 40, 8), "s32", -1),
        ("bfe", (-1, 0, 0), "s32", 0),
        ("bfi", (0xF, 0, 4, 4), "b32", 0xF0),
        ("bfi", (0, 0xFFFF, 4, 8), "b32", 0xF00F),
        ("bfi", (-1, 0, 28, 8), "b32", 0xF0000000),
        ("lop3", (0xF0, 0xCC, 0xAA, 0x96), "b32", 0xF0 ^ 0xCC ^ 0xAA),
        ("lop3", (0xF0, 0xCC, 0xAA, 0x80), "b32", 0xF0 & 0xCC & 0xAA),
        ("prmt", (0x03020100, 0x07060504, 0x7531), "b32", 0x07050301),
        ("prmt", (0x80, 0, 0x0008), "b32", 0x808080FF),
        ("shf.l.wrap", (0x80000001, 0x1, 33), "b32", 0x3),
        ("shf.l.clamp", (0x80000001, 0x1, 33), "b32", 0x80000001),
        ("shf.r.wrap", (0x80000001, 0x1, 1), "b32", 0xC0000000),
        ("shf.r.clamp", (0x80000001, 0x5, 40), "b32", 0x5),
        ("cnot", (0,), "b32", 1),
        ("cnot", (7,), "b32", 0),
        ("sad", (3, 10, 1), "u32", 8),
        ("sad", (-3, 10, 1), "s32", 14),
    ],
)
def test_bits_and_fields_by_hand(op: str, args: tuple[int, ...], type: str, result: int) -> None:
    """Worked out from the pseudocode of the pages."""
    assert arith.apply(op, args, DataType(type[0], int(type[1:]))) == result


def test_corner_cases() -> None:
    s32 = DataType("s", 32)
    assert arith.apply("div", (-(2**31), -1), s32) == -(2**31)
    assert arith.apply("abs", (-(2**31),), s32) == -(2**31)
    assert arith.apply("not", (1,), DataType("pred", 1)) == 0
    assert arith.apply("shl", (1, 65536), DataType("b", 16)) == 0
    with pytest.raises(InternalError):
        arith.apply("sqrt", (4,), s32)
