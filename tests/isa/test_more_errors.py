"""What is refused of hints, st.bulk, matrices of a warp, grids, multimem and floating-point constants, word for word."""

# ruff: noqa: E501 (a golden text is as long as it is)

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, read

from memmodel.errors import InputError
from memmodel.isa.lower import lower_test

GOLDEN = {
    "setmaxnreg.inc.sync.aligned.u32 100;": """
a register count is a multiple of 8 from 24 to 256, and this is the number 100
    |                                   ^^^""",
    "setmaxnreg.inc.sync.aligned.u32 %r0;": """
a register count is a multiple of 8 from 24 to 256, and this is the register 'r0'
    |                                   ^^^""",
    "setmaxnreg.inc.u32 64;": """
setmaxnreg is .sync.aligned
    |   ^^^^^^^^^^^^^^^^^^
  hint: write setmaxnreg.inc.sync.aligned.u32""",
    "prefetch.shared.L1 [tile];": """
a prefetch of shared memory does nothing, and PTX has no prefetch.shared
    |            ^^^^^^
  hint: drop it""",
    "prefetch.const.L2 [k];": """
prefetch.const is for tensor maps
    |            ^^^^^
  hint: write prefetch.const.tensormap""",
    "prefetch.global.tensormap [gmap];": """
prefetch.tensormap is for .const and .param memory, or names no state space
    |            ^^^^^^
  hint: drop .global""",
    "prefetch.local.L2::evict_last [%rd0];": """
.L2::evict_last is for .global memory
    |                  ^^^^^^^^^^^^^^
  hint: write .L2""",
    "prefetch.global.L2 [tile];": """
'tile' is a .shared variable, not .global
    |                      ^^^^^^""",
    "atom.global.add.u32 %r0, [x], 1, %rd9;": """
a cache policy needs the qualifier .L2::cache_hint
    |                                    ^^^^""",
    "prefetchu.L2 [x];": """
unknown qualifier '.L2' of prefetchu
    |             ^^
  hint: it takes .L1""",
    "applypriority.global.L2::evict_normal [x], 64;": """
applypriority is for 128 bytes, and this is the number 64
    |                                              ^^
  hint: write 128""",
    "applypriority.global.L2::evict_normal [tile], 128;": """
'tile' is a .shared variable, not .global
    |                                         ^^^^^^""",
    "createpolicy.fractional.L2::evict_first.b64 %rd9, 1;": """
a fraction is a floating-point number above 0.0 and at most 1.0, and this is the number 1
    |                                                     ^
  hint: write 1.0, or leave it out""",
    "createpolicy.fractional.L2::evict_first.b64 %rd9, 1.5;": """
a fraction is a floating-point number above 0.0 and at most 1.0, and this is the floating-point number 1.5
    |                                                     ^^^
  hint: write 1.0, or leave it out""",
    "createpolicy.range.L2::evict_first.b64 %rd9, [tile], 16, 32;": """
'tile' is a .shared variable, not .global
    |                                                ^^^^^^""",
    "createpolicy.range.L2::evict_first.b64 %rd9, [x], 64, 32;": """
primary-size is at most total-size, which is at most 4 GB
    |                                                     ^^""",
    "createpolicy.cvt.L2.b64 %rd9, %rd0; add.u64 %rd1, %rd9, 1;": """
'%rd9' holds a cache policy, whose value PTX leaves open
    |                                                     ^^^^
  hint: use the register as a cache_policy operand, and another one for numbers""",
    "createpolicy.cvt.L2.b64 %rd9, %rd0; ld.global.u32 %r0, [%rd9];": """
'%rd9' holds a cache policy, whose value PTX leaves open
    |                                                           ^^^^
  hint: use the register as a cache_policy operand, and another one for numbers""",
    "atom.and.b128 %q0, [src], %q1;": """
atom.and has no type .b128
    |            ^^^^
  hint: it has .b32 .b64""",
    "st.bulk.shared [tile], 8, 0;": """
st.bulk writes to shared memory of the own CTA
    |           ^^^^^^
  hint: write .shared::cta""",
    "st.bulk.shared::cta [tile], 12, 0;": """
st.bulk writes a multiple of 8 bytes, 16 MB at most, not 12
    |                               ^^""",
    "st.bulk.shared::cta [tile], 8, 1;": """
st.bulk writes zeros, and this is the number 1
    |                                  ^
  hint: write 0""",
    "st.bulk.shared::cta [x], 8, 0;": """
'x' is a .global variable, not .shared
    |                       ^^^""",
    "red.async.relaxed.cluster.shared::cluster.add.u32 [tile], 1, [bar];": """
red.async goes to the shared memory of another CTA
    |                                                     ^^^^^^
  hint: name the instance of another CTA, as in [x@cta1]""",
    "tcgen05.ld.red.sync.aligned.32x32b.x1.min.u32 {%r0}, %r2, [acc];": """
tcgen05.ld.red reads two registers at least
    |                                      ^^
  hint: write .x2""",
    "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r0, %r1}, %r2, [acc];": """
floating-point reductions are not modelled
    |                                             ^^^
  hint: write .u32 or .s32""",
    "tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.u32 {%r0, %r1}, %r2, [acc];": """
tcgen05.ld.red.16x32bx2 takes r, redval, [taddr], immHalfSplitoff; 3 operands are given
    |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [tile];": """
ldmatrix is modelled for 8x8 matrices of 16-bit elements
    |                         ^^^^^^
  hint: write .m8n8 and .b16""",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [tile];": """
.x2 has 2 register(s), and 1 are given
    |                                            ^^^^^""",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [tile];": """
ldmatrix has its registers in braces, even one, and this is the register 'r0'
    |                                            ^^^""",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [x];": """
'x' is a .global variable, not .shared
    |                                                   ^^^""",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [tile], {%r0};": """
stmatrix is modelled for 8x8 matrices of 16-bit elements
    |                         ^^^^^
  hint: write .m8n8 and .b16""",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd0]; add.u32 %r1, %r0, 1; stmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r1};": """
the lanes have different numbers in '%r1', which comes from an ldmatrix
    |                                                                                                                    ^^^
  hint: store what ldmatrix loaded as it is, in registers of its own, or use ld and st""",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd0]; mov.b32 %r0, 1; stmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r0};": """
the lanes have different numbers in '%r0', which comes from an ldmatrix
    |                                                                                                               ^^^
  hint: store what ldmatrix loaded as it is, in registers of its own, or use ld and st""",
    "multimem.ld_reduce.relaxed.add.u32 %r0, [both];": """
multimem.ld_reduce.relaxed needs a scope
    |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write multimem.ld_reduce.relaxed.sys, or another scope""",
    "multimem.st.gpu.u32 [both], 1;": """
multimem.st without semantics is weak, and takes no scope
    |               ^^^
  hint: write multimem.st.relaxed.gpu, or drop .gpu""",
    "multimem.ld_reduce.weak.sys.add.u32 %r0, [both];": """
multimem.ld_reduce.weak takes no scope
    |                           ^^^
  hint: drop .sys""",
    "multimem.ld_reduce.add.s64 %rd0, [both];": """
multimem.ld_reduce.add has no type .s64
    |                          ^^^
  hint: it has .u32 .u64 .s32""",
    "multimem.red.add.f32 [both], 1;": """
floating-point atomics are not modelled
    |                    ^^^
  hint: use an integer type: the order of accesses is the same""",
    "multimem.st.b32 [x], 1;": """
'x' is not a multimem address
    |                   ^^^
  hint: declare one: `.global .u32 m = multimem(x, y);` points to x and y""",
    "ld.global.u32 %r0, [both];": """
ld cannot access 'both', a multimem address
    |                      ^^^^^^
  hint: name one of x, twin""",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [both], 16, [bar];": """
cp.async.bulk cannot access 'both', a multimem address
    |                                                                         ^^^^^^
  hint: name one of x, twin""",
    "mov.b32 %r0, 1.0;": """
the floating-point number 1.0 is not a .b32
    |                ^^^
  hint: PTX takes it as a .f32, a .f64 or a .b64""",
    "add.u32 %r0, %r1, 0f3F800000;": """
the floating-point number 0f3F800000 is not a .u32
    |                     ^^^^^^^^^^
  hint: PTX takes it as a .f32, a .f64 or a .b32""",
    "mov.b32 %r0, 0f3F8;": """
`0f3F8` is not a floating-point number
    |                ^^^^^
  hint: 0f has 8 hexadecimal digits after it""",
}


@pytest.mark.parametrize("line", GOLDEN)
def test_refusal(line: str) -> None:
    with pytest.raises(InputError) as caught:
        ops(blocks(line))
    message, _, *rest = caught.value.render().splitlines()
    assert message.partition("error: ")[2] == GOLDEN[line].splitlines()[1]
    assert [text.replace("     |", "    |", 1) for text in rest] == GOLDEN[line].splitlines()[2:]


def test_a_question_cannot_ask_for_a_cache_policy() -> None:
    text = """PTX policy
thread P0 { createpolicy.fractional.L2::evict_first.b64 %p, 1.0; }
exists (true)
exists (P0:%p == 0)
"""
    with pytest.raises(InputError, match="'p' holds a cache policy") as caught:
        lower_test(read(text))
    assert caught.value.span is not None and caught.value.span.line == 4


def test_a_matrix_is_for_a_whole_warp() -> None:
    text = """PTX lanes
.shared .align 16 .b32 tile[32];
thread P0 @ cta 0, warp 0 { ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile]; }
thread P1 @ cta 0, warp 0 { ret; }
exists (true)
"""
    with pytest.raises(InputError, match="ldmatrix is executed by a warp, and P0 is a lane of one"):
        lower_test(read(text))


def test_a_reduction_through_a_map_in_a_register_wants_one_type() -> None:
    text = """PTX types
.global .align 16 .u64 a[2];
.global .align 16 .u32 b[4];
.const .b8 maps[256] = {tensormap(a), tensormap(b)};
.shared .align 128 .u32 tile[4];
thread P0 { cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd0, {0}], [tile]; }
exists (true)
"""
    with pytest.raises(InputError, match="have elements of different types"):
        lower_test(read(text))
    lower_test(read(text.replace("u64 a[2]", "u32 a[4]")))
    named = "one[128] = tensormap(a);\n.const .b8 two[128] = tensormap(b);"
    text = text.replace("maps[256] = {tensormap(a), tensormap(b)};", named)
    lower_test(read(text.replace("[%rd0, {0}]", "[two, {0}]")))


def test_without_a_multimem_address_there_is_nothing_to_access() -> None:
    text = "PTX none\n.global .u32 x;\nthread P0 { multimem.st.b32 [%rd0], 1; }\nexists (true)\n"
    with pytest.raises(InputError, match="no multimem address is declared"):
        lower_test(read(text))
