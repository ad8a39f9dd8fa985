"""mbarrier objects, tensor maps and tensor memory in declarations, pairs of registers: read, printed, refused."""

from __future__ import annotations

import pytest

from memmodel.errors import InputError
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import Instruction, LitmusTest, TensorView
from memmodel.ptx.operands import Pair, Reg
from memmodel.source import Source

TEXT = """PTX objects
.global .b32 x[64];
.shared .align 8 .b64 bar = mbarrier(2);
.shared .align 8 .b64 ring[3] = mbarrier(1);
.const .align 64 .b8 whole = tensormap(x);
.const .align 64 .b8 row[128] = tensormap(x, 8);
.global .align 128 .b8 map[128] = tensormap(x, {8, 2}, {16, 4});
.tensor .b32 acc[4];
thread P0 @ cta 0, gpu 0 {
    elect.sync _|%p, 0xffffffff;
}
exists (acc[2] == 0)
"""


def read(text: str) -> LitmusTest:
    return parse_litmus(Source("t.litmus", text))


def test_objects_are_read_and_printed() -> None:
    test = read(TEXT)
    found = {v.name: v for v in test.variables}
    assert (found["bar"].mbarrier, found["bar"].length) == (2, 1)
    assert (found["ring"].mbarrier, found["ring"].length) == (1, 3)
    assert found["whole"].maps == (TensorView("x"),)
    assert (found["row"].maps, found["row"].length) == ((TensorView("x", (8,)),), 1)
    assert (found["map"].maps, found["map"].array) == ((TensorView("x", (8, 2), (16, 4)),), True)
    assert read(print_litmus(test)) == test


def test_a_pair_of_registers_is_one_operand() -> None:
    (item,) = read(TEXT).threads[0].body
    assert isinstance(item, Instruction)
    pair = item.operands[0]
    assert isinstance(pair, Pair) and pair.second == Reg("p")


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".global .b64 b = mbarrier(1);", "an mbarrier object is 8 bytes of shared memory"),
        (".shared .b32 b = mbarrier(1);", "an mbarrier object is 8 bytes of shared memory"),
        (".shared .b64 b = mbarrier(0);", "an mbarrier object expects at least one arrival"),
        (".shared .b64 b = mbarrier(1048576);", "the number of arrivals must be from 0 to 1048575, not 1048576"),
        (".shared .b64 b = mbarier(1);", "`mbarier` is not a kind of object"),
        (".const .b8 m[64] = tensormap(x);", "a tensor map is 128 bytes"),
        (".const .b8 m = tensormap(nothing);", "variable `nothing` is not declared"),
        (".const .b8 m = tensormap(s);", "`s` is not a .global variable"),
        (".const .b8 m = tensormap(x, {8, 2});", "a box of several dimensions needs a tensor of as many"),
        (".const .b8 m = tensormap(x, {8, 2}, {16});", "a box of 2 dimensions in a tensor of 1"),
        (".const .b8 m = tensormap(x, {8}, {4});", "the box is larger than the tensor"),
        (".const .b8 m = tensormap(x, {8}, {64});", "`x` has 16 elements"),
        (".const .b8 m = tensormap(x, 0);", "a size of the box is at least 1"),
        (".const .b8 m = tensormap(x, {1, 1, 1, 1, 1, 1});", "a tensor has at most 5 dimensions"),
        (".tensor .b32 m = tensormap(x);", "a tensor map is in .global, .const, .param or .shared memory"),
        (".const .b8 m = tensormap(x;", "expected `)`, found `;`"),
    ],
)
def test_refusals(declaration: str, message: str) -> None:
    text = f"PTX t\n.global .b32 x[16];\n.shared .b32 s;\n{declaration}\nthread P0 {{ ret; }}\nexists (true)\n"
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.message == message and caught.value.span is not None and caught.value.span.line == 4


def test_tensor_memory_of_two_ctas_is_named_apart() -> None:
    two = TEXT.replace("exists", "thread P1 @ cta 1, gpu 0 { ret; }\nexists")
    with pytest.raises(InputError, match="`acc` has 2 instances"):
        read(two)
    assert read(two.replace("acc[2] ==", "acc@cta1[2] ==")).condition is not None
