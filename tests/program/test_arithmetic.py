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
    **dict.fromkeys(("sad", "bfe", "selp", "fns"), 3),
    **dict.fromkeys((op for op in arith.NAMED if op.startswith(("shf", "prmt", "dp", "add.c", "sub.c"))), 3),
    **dict.fromkeys(("lop3", "bfi"), 4),
}
"""How many operands an operation has that does not have two."""


@given(types, values, values)
def test_results_are_values_of_the_type(type: DataType, a: int, b: int) -> None:
    for op in arith.NAMED:
        args = (a, b, a ^ b, a & b)[: OPERANDS.get(op, 2)]
        result, kind = arith.apply(op, args, type), arith.result_type(op, type)
        assert number(bits(result, kind), kind) == result, op
        unsigned = arith.operation(op, type)(*args)
        assert unsigned is None or 0 <= unsigned == result & kind.mask, op


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
        ("add.sat", (2**31 - 1, 1), "s32", 2**31 - 1),
        ("sub.sat", (1, 2), "u8", 0),
        ("add.carry", (2**32 - 1, 0, 1), "u32", 1),
        ("add.carry", (2**32 - 1, 0, 0), "u32", 0),
        ("sub.carry", (0, 0, 1), "u32", 1),
        ("sub.carry", (5, 5, 0), "u64", 0),
        ("szext.wrap", (0xFFFFFFFF, 32), "u32", 0),
        ("szext.clamp", (0xF0, 8), "s32", -16),
        ("bmsk.wrap", (1, 2), "b32", 6),
        ("bmsk.clamp", (32, 1), "b32", 0),
        ("fns", (0xAAAAAAAA, 2, -1), "b32", 1),
        ("clmul.hi", (2**63, 2), "u64", 1),
        ("prmt.f4e", (0x03020100, 0x07060504, 1), "b32", 0x04030201),
        ("dp4a.u32.s32", (0xFF, 0xFF, 0), "s32", -255),
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


@pytest.mark.parametrize(
    ("op", "args", "type"),
    [
        ("div", (1, 0), DataType("u", 32)),
        ("rem", (1, 0), DataType("s", 64)),
        ("fns", (1, 32, 0), DataType("b", 32)),
        ("ex2.approx", (0,), DataType("f", 32)),
        ("add.rn", (0x7F800000, 0xFF800000), DataType("f", 32)),
        ("add.rn", (0x3C007C00, 0x3C00FC00), DataType("f", 32, 2)),
    ],
)
def test_what_ptx_leaves_open_is_none(op: str, args: tuple[int, ...], type: DataType) -> None:
    """Division by zero, a base beyond the word, an approximation, a NaN (infinity - infinity, in one of two halves)."""
    assert arith.operation(op, type)(*args) is None


@pytest.mark.parametrize(
    ("op", "args", "type", "result"),
    [
        ("add.rn", (0x3F800000, 0x33800000), DataType("f", 32), 0x3F800000),  # a tie goes to the even number
        ("add.rp", (0x3F800000, 0x33800000), DataType("f", 32), 0x3F800001),
        ("add.rm", (0x3F800000, 0xBF800000), DataType("f", 32), 0x80000000),  # opposites, rounded down
        ("mul.rn.ftz", (1, 0x3F800000), DataType("f", 32), 0),
        ("mul.rn.ftz", (1, 0x3C00), DataType("f", 16), 0),
        ("fma.rn.sat", (0xC0000000, 0x40000000, 0), DataType("f", 32), 0),
        ("fma.rn.relu", (0xC000, 0x4000, 0), DataType("f", 16), 0),
        ("max", (0x80000000, 0), DataType("f", 32), 0),
        ("max", (0x7FC00000, 0x3F800000), DataType("f", 32), 0x3F800000),
        ("min.xorsign.abs", (0xBF800000, 0x40000000), DataType("f", 32), 0xBF800000),
        ("max.abs", (0xC0000000, 0x3F800000, 0x40400000), DataType("f", 32), 0x40400000),
        ("neg", (0x80000000,), DataType("f", 32), 0),
        ("abs", (0xBC00C000,), DataType("f", 32, 2), 0x3C004000),
        ("copysign", (0x80000000, 0x3F800000), DataType("f", 32), 0xBF800000),
        ("lt.ftz", (1, 2), DataType("f", 32), 0),
        ("leu", (0x7E00, 0), DataType("f", 16), 1),
        ("testp.subnormal", (1,), DataType("f", 64), 1),
        ("cvt.f32.rni", (0x40200000,), DataType("s", 32), 2),
        ("cvt.f32.rzi", (0x4F800000,), DataType("u", 8), 255),
        ("cvt.f64.rzi", (0x7FF8000000000000,), DataType("s", 32), 0x80000000),
        ("cvt.f32.rzi", (0x7FC00000,), DataType("s", 32), 0),
        ("cvt.s32.rn", (-1,), DataType("f", 32), 0xBF800000),
        ("cvt.f32.rn", (0x3F808000,), DataType("bf", 16), 0x3F80),
        ("cvt.f16", (0x3C00,), DataType("f", 32), 0x3F800000),
        ("cvt.f32.rn.satfinite", (0x7F7FFFFF,), DataType("f", 16), 0x7BFF),
    ],
)
def test_floating_point_by_hand(op: str, args: tuple[int, ...], type: DataType, result: int) -> None:
    """Worked out from the pages and the format."""
    assert arith.operation(op, type)(*args) == result
