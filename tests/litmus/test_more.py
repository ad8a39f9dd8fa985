"""Floating-point constants, grids, arrays of tensor maps and multimem addresses: read, checked, printed."""

from __future__ import annotations

import struct

import pytest
from helpers.isa_samples import read
from hypothesis import given
from hypothesis import strategies as st

from memmodel.errors import InputError
from memmodel.litmus.printer import print_litmus, print_real
from memmodel.litmus.syntax import Instruction, LitmusTest, TensorView
from memmodel.ptx.operands import Imm, Real
from memmodel.ptx.vocabulary import DataType, Scope

F32, F64 = DataType("f", 32), DataType("f", 64)

TEXT = """PTX more
"what this file is about"
.global .f32 x[2] = {{1.5, 0fBF800000}};
.global .f64 y = -2.5e-1;
.global .b32 z = 0f3F800000;
.const .align 64 .b8 maps[256] = {{tensormap(x, 2), tensormap(z)}};
.const twice[] = {{tensormap(x), tensormap(x, 1, 2)}};
.global .u32 left = 1;
.global .u32 right = 2;
.global .u32 both = multimem(left, right);
.tensor .b32 acc[2] = {{1}};
.shared .align 4 .b32 slot = alloc(acc);
thread P0 @ cta 0, gpu 0 {{ {0} }}
thread P1 @ cta 1, cluster 2, grid 3, gpu 1 {{ ret; }}
exists (true)
"""


def sample(line: str = "ret;") -> LitmusTest:
    return read(TEXT.format(line))


def operand(text: str) -> object:
    (item,) = sample(f"mov.f32 %f0, {text};").threads[0].body
    assert isinstance(item, Instruction)
    return item.operands[1]


# ---- floating-point constants ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bits", "width"),
    [
        ("1.0", 0x3FF0000000000000, 64),
        ("5.", 0x4014000000000000, 64),
        (".5", 0x3FE0000000000000, 64),
        ("-1.5E+5", 0xC1024F8000000000, 64),
        ("1e5", 0x40F86A0000000000, 64),
        ("1e-3", 0x3F50624DD2F1A9FC, 64),
        ("0f3F800000", 0x3F800000, 32),
        ("0FBF800000", 0xBF800000, 32),
        ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("0D7ff0000000000000", 0x7FF0000000000000, 64),
    ],
)
def test_constants(text: str, bits: int, width: int) -> None:
    assert operand(text) == Real(bits, width)


@pytest.mark.parametrize("text", ["1", "0x1e4", "-7", "0"])
def test_integers_stay_integers(text: str) -> None:
    assert operand(text) == Imm(int(text, 0))


@pytest.mark.parametrize("text", ["0f3F80000", "0d3FF00000000000000", "0f"])
def test_digits_are_counted(text: str) -> None:
    with pytest.raises(InputError, match="is not a floating-point number") as caught:
        operand(text)
    assert "hexadecimal digits after it" in str(caught.value.hint)


@given(st.floats(width=32, allow_nan=False))
def test_a_number_has_the_bits_of_its_type(value: float) -> None:
    wide = Real(struct.unpack("<Q", struct.pack("<d", value))[0], 64)
    narrow = Real(struct.unpack("<I", struct.pack("<f", value))[0], 32)
    assert wide.encoded(F32) == narrow.encoded(F32) == narrow.encoded(DataType("b", 32)) == narrow.bits
    assert wide.encoded(F64) == narrow.encoded(F64) == wide.encoded(DataType("b", 64)) == wide.bits
    assert (
        wide.encoded(DataType("b", 32)) is narrow.encoded(DataType("b", 64)) is wide.encoded(DataType("u", 64)) is None
    )


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1))
def test_what_is_printed_reads_back_as_the_same_bits(wide: int, narrow: int) -> None:
    for number in (Real(wide, 64), Real(narrow, 32)):
        assert operand(print_real(number)) == number


def test_initial_values_are_bits() -> None:
    found = {v.name: v.init for v in sample().variables}
    assert found["x"] == (0x3FC00000, 0xBF800000)
    assert found["y"] == (0xBFD0000000000000,)
    assert found["z"] == (0x3F800000,)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".global .u32 w = 1.0;", "`1.0` is not a value of type .u32"),
        (".global .b32 w = 1.0;", "`1.0` is not a value of type .b32"),
        ("w = 1.0;", "this needs a type"),
    ],
)
def test_initial_values_that_are_none(declaration: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"PTX t\n{declaration}\nthread P0 {{ ret; }}\nexists (true)\n")
    assert caught.value.message == message


# ---- places ----------------------------------------------------------------------------------------------------------


def test_a_place_may_name_a_grid() -> None:
    first, second = (thread.place for thread in sample().threads)
    assert (first.grid, second.grid) == (0, 3)
    assert second.cta_id != first.cta_id and second.cluster_id == (1, "grid", 3, 2)


def test_scopes_reach_across_grids_of_a_gpu() -> None:
    text = "PTX t\nthread P0 @ cta 0 { ret; }\nthread P1 @ cta 0, grid 1 { ret; }\nexists (true)\n"
    first, second = (thread.place for thread in read(text).threads)
    assert [scope for scope in Scope if first.shares(scope, second)] == [Scope.GPU, Scope.SYS]


# ---- objects ---------------------------------------------------------------------------------------------------------


def test_arrays_of_tensor_maps_are_declared_with_their_bytes_or_their_number() -> None:
    found = {v.name: v for v in sample().variables}
    assert found["maps"].maps == (TensorView("x", (2,)), TensorView("z"))
    assert found["twice"].maps == (TensorView("x"), TensorView("x", (1,), (2,)))
    assert (found["maps"].length, found["twice"].length) == (2, 2)
    assert found["both"].multimem == ("left", "right")
    assert found["slot"].allocates == "acc" and found["acc"].allocates is None


def test_what_is_printed_reads_back() -> None:
    test = sample("mov.f32 %f0, -0.0;")
    assert read(print_litmus(test)) == test


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".const .b8 m[128] = {tensormap(x), tensormap(x)};", "2 tensor maps are 256 bytes"),
        (".const m[3] = {tensormap(x), tensormap(x)};", "2 tensor maps are 256 bytes"),
        (".const m = {tensormap(x), tensormap(x)};", "2 tensor maps are 256 bytes"),
        (".const m[2] = tensormap(x);", "a tensor map is 128 bytes"),
        (".const m[2] = {tensormap(x), x};", "`x` is not a tensor map"),
        (".global .u32 m[2] = multimem(x, y);", "a multimem address is one name in global memory"),
        (".shared .u32 m = multimem(x, y);", "a multimem address is one name in global memory"),
        (".global .u32 m = multimem(x, nothing);", "variable `nothing` is not declared"),
        (".global .u32 m = multimem(x, s);", "`m` points to different variables in .global memory"),
        (".global .u32 m = multimem(x, x);", "`m` points to different variables in .global memory"),
        (".global .u32 m = multimem(x, w);", "`m` points to different variables in .global memory"),
        (".global .u32 m = multimem(x, y); .global .u32 n = multimem(x);", "`n` points to 1 variables"),
        (".global .u32 m = multimem(x, y); n aliases m;", "`m` is a multimem address and has no alias"),
        (".global .u32 m = alloc(x);", "an alloc leaves an address in 4 bytes of shared memory"),
        (".shared .u32 m[2] = alloc(x);", "an alloc leaves an address in 4 bytes of shared memory"),
        (".shared .u64 m = alloc(x);", "an alloc leaves an address in 4 bytes of shared memory"),
        (".shared .u32 m = alloc(nothing);", "variable `nothing` is not declared"),
        (".shared .u32 m = alloc(x);", "`x` is not a .tensor variable"),
    ],
)
def test_objects_that_are_none(declaration: str, message: str) -> None:
    text = f"PTX t\n.global .u32 x;\n.global .u32 y;\n.global .u64 w;\n.shared .u32 s;\n{declaration}\n"
    with pytest.raises(InputError) as caught:
        read(text + "thread P0 { ret; }\nexists (true)\n")
    assert caught.value.message == message and caught.value.span is not None and caught.value.span.line == 6


def test_a_question_names_what_a_multimem_address_points_to() -> None:
    with pytest.raises(InputError, match="`both` is a multimem address") as caught:
        read(TEXT.format("ret;").replace("exists (true)", "exists (both == 1)"))
    assert caught.value.hint == "name what it points to: left or right"
