"""What instructions lower to that compute with carries, bit fields, several numbers in a word, and floating point.

The steps are worked out by hand from the pages of the ISA; `isa_samples.brief` says how they are written. In a compiled
module %r0 is register 0.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown
from helpers.modules import steps_of

from memmodel.errors import InputError

SUM = "add.u32(add.u32(%r1, %r2), {})"
OUT = "add.carry.u32(%r1, %r2, {})"


def chained(carry: str) -> list[str]:
    """A sum that sets the carry flag."""
    return [f"Assign($total {SUM.format(carry)})", f"Assign(#carry {OUT.format(carry)})", "Assign(r0 %$total)"]


def narrowed(register: str) -> str:
    return f"and.b32(cvt.s8(min.s32(max.s32(cvt.s32({register}), -128), 127)), 255)"


WORKED_OUT: dict[str, list[str]] = {
    "lop3.and.b32 %r0|%p, %r1, %r2, %r3, 0x80, %q;": [
        "Assign($found and.s64(ne.b32(lop3.b32(%r1, %r2, %r3, 128), 0), %q))",
        "Assign(r0 lop3.b32(%r1, %r2, %r3, 128))",
        "Assign(p %$found)",
    ],
    "prmt.b32.f4e %r0, %r1, %r2, %r3;": ["Assign(r0 prmt.f4e.b32(%r1, %r2, %r3))"],
    "mul24.lo.s32 %r0, %r1, %r2;": ["Assign(r0 cvt.s32(mul.wide.s24(%r1, %r2)))"],
    "mad24.hi.u32 %r0, %r1, %r2, 3;": ["Assign(r0 add.u32(cvt.u32(shr.u48(mul.wide.u24(%r1, %r2), 16)), 3))"],
    "mad.hi.sat.s32 %r0, %r1, %r2, %r3;": [
        "Assign(r0 cvt.s32(min.s64(max.s64(add.s64(mul.hi.s32(%r1, %r2), cvt.s32(%r3)), -2147483648), 2147483647)))",
    ],
    "clmad.hi.u64 %rd0, %rd1, %rd2, 1;": ["Assign(rd0 xor.u64(clmul.hi.u64(%rd1, %rd2), 1))"],
    "dp4a.u32.s32 %r0, %r1, %r2, 3;": ["Assign(r0 dp4a.u32.s32.u32(%r1, %r2, 3))"],
    "dp2a.lo.s32.u32 %r0, %r1, %r2, 3;": ["Assign(r0 dp2a.lo.s32.u32.u32(%r1, %r2, 3))"],
    "fns.b32 %r0, %r1, 3, -1;": [
        "UndefinedIf(the base of fns is from 0 to 31 gt.u32(3, 31))",
        "Assign(r0 fns.b32(%r1, 3, 4294967295))",
    ],
    "szext.clamp.s32 %r0, %r1, 8;": ["Assign(r0 szext.clamp.s32(%r1, 8))"],
    "bmsk.wrap.b32 %r0, %r1, 8;": ["Assign(r0 bmsk.wrap.b32(%r1, 8))"],
    "add.cc.u32 %r0, %r1, %r2;": chained("0"),
    "addc.cc.u32 %r0, %r1, %r2;": chained("%#carry"),
    "addc.u32 %r0, %r1, %r2;": [f"Assign(r0 {SUM.format('%#carry')})"],
    "sub.cc.u64 %rd0, %rd1, 1;": [
        "Assign($total sub.u64(sub.u64(%rd1, 1), 0))",
        "Assign(#carry sub.carry.u64(%rd1, 1, 0))",
        "Assign(rd0 %$total)",
    ],
    "subc.s32 %r0, %r1, %r2;": ["Assign(r0 sub.s32(sub.s32(%r1, %r2), %#carry))"],
    "subc.cc.s32 %r0, %r1, %r2;": [
        "Assign($total sub.s32(sub.s32(%r1, %r2), %#carry))",
        "Assign(#carry sub.carry.s32(%r1, %r2, %#carry))",
        "Assign(r0 %$total)",
    ],
    "mad.lo.cc.u32 %r0, %r1, %r2, 3;": [
        "Assign($total add.u32(add.u32(mul.u32(%r1, %r2), 3), 0))",
        "Assign(#carry add.carry.u32(mul.u32(%r1, %r2), 3, 0))",
        "Assign(r0 %$total)",
    ],
    "mad.hi.cc.s32 %r0, %r1, %r2, 3;": [
        "Assign($total add.s32(add.s32(mul.hi.s32(%r1, %r2), 3), 0))",
        "Assign(#carry add.carry.s32(mul.hi.s32(%r1, %r2), 3, 0))",
        "Assign(r0 %$total)",
    ],
    "madc.hi.u32 %r0, %r1, %r2, 3;": ["Assign(r0 add.u32(add.u32(mul.hi.u32(%r1, %r2), 3), %#carry))"],
    "cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, 3;": [
        f"Assign(r0 or.b32(shl.b32(3, 16), or.b32(shl.b32({narrowed('%r1')}, 8), {narrowed('%r2')})))"
    ],
    # A shift amount is a .u32, whatever the type: "clamped to N".
    "shl.b16 %h0, %h1, 65536;": ["Assign(h0 shl.b16(%h1, 65536))"],
    "shr.s16 %h0, %h1, 65536;": ["Assign(h0 shr.s16(%h1, 65536))"],
}

LOW, HIGH = "cvt.f32.rn.f16(%1)", "cvt.f32.rn.f16(%0)"

WORKED_OUT_IN_MODULES: dict[str, list[str]] = {
    "add.rz.ftz.f32 %r0, %r1, %r2;": ["Assign(0 add.rz.ftz.f32(%1, %2))"],
    "add.f16x2 %r0, %r1, 7;": ["Assign(0 add.f16x2(%1, 7))"],
    "add.sat.u16x2 %r0, %r1, %r2;": ["Assign(0 add.sat.u16x2(%1, %2))"],
    "add.rn.f32.bf16 %r0, %h0, %r1;": ["Assign(0 add.rn.f32(cvt.bf16.f32(%12), %1))"],
    "add.rn.satfinite.e5m2x4.e2m1x4 %r0, %h1, %r2;": ["Assign(0 opaque.add.rn.satfinite.e5m2x4.e2m1x4.b32(%13, %2))"],
    "mul.e4m3x4.ue8m0x4.e3m2x4 %r0, %r1, %r2;": ["Assign(0 opaque.mul.e4m3x4.ue8m0x4.e3m2x4.b32(%1, %2))"],
    "mul.rz.ftz.f16x2.f32x2.f32x2 %r0, %d1, %d2;": ["Assign(0 opaque.mul.rz.ftz.f16x2.f32x2.f32x2.f16x2(%9, %10))"],
    "cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32 %h0, %r1, %r2, %h1;": [
        "Assign(12 opaque.cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32.b16(%1, %2, %13))"
    ],
    "cvt.rn.pzo.f16.f32 %h0, %r1;": ["Assign(12 opaque.cvt.rn.pzo.f16.f32.f16(%1))"],
    "add.rn.f32x2.f16x2.f32x2 %d0, %r0, %d1;": ["Assign(8 opaque.add.rn.f32x2.f16x2.f32x2.f32x2(%0, %9))"],
    "mad.rn.f64 %d0, %d1, %d2, %d3;": ["Assign(8 fma.rn.f64(%9, %10, %11))"],
    "max.NaN.abs.f32 %r0, %r1, %r2, %r3;": ["Assign(0 max.NaN.abs.f32(%1, %2, %3))"],
    "max.relu.s16x2 %r0, %r1, %r2;": ["Assign(0 max.relu.s16x2(%1, %2))"],
    "div.s32 %r0, %r1, %r2;": ["Assign(0 div.s32(%1, %2))"],  # by zero: a value that is not known
    "mov.f32 %r0, 0.5;": ["Assign(0 1056964608)"],  # a .f32, though 0.5 is written as a .f64
    "selp.f32 %r0, %r1, %r2, %p0;": ["Assign(0 selp.b32(%1, %2, %14))"],
    "mov.b32 {%h0, _}, %r0;": ["Assign($whole %0)", "Assign(12 cvt.b16(shr.b32(%$whole, 0)))"],
    "setp.geu.ftz.or.f32 %p0|%p1, %r0, %r1, !%p2;": [
        "Assign($second or.pred(eq.pred(geu.ftz.f32(%0, %1), 0), not.pred(%16)))",
        "Assign(14 or.pred(geu.ftz.f32(%0, %1), not.pred(%16)))",
        "Assign(15 %$second)",
    ],
    "setp.lt.f16x2 %p0|%p1, %r0, %r1;": [
        "Assign($second lt.f16(shr.b32(%0, 16), shr.b32(%1, 16)))",
        "Assign(14 lt.f16(%0, %1))",
        "Assign(15 %$second)",
    ],
    "set.gt.f32.s32 %r0, %r1, %r2;": ["Assign(0 selp.b32(1065353216, 0, gt.s32(%1, %2)))"],
    "set.eq.u32.f16x2 %r0, %r1, %r2;": [
        "Assign(0 or.u32(shl.u32(selp.u32(65535, 0, eq.f16(shr.b32(%1, 16), shr.b32(%2, 16))), 16), "
        "selp.u32(65535, 0, eq.f16(%1, %2))))"
    ],
    "slct.ftz.u32.f32 %r0, %r1, %r2, %r3;": ["Assign(0 selp.u32(%1, %2, ge.ftz.f32(%3, 0)))"],
    "cvt.rni.ftz.s32.f32 %r0, %r1;": ["Assign(0 cvt.f32.rni.ftz.s32(%1))"],
    "cvt.rn.f16x2.f32 %r0, %r0, %r1;": [f"Assign(0 or.b32(shl.b32({HIGH}, 16), {LOW}))"],
    "cvt.rn.satfinite.e4m3x2.f32 %h0, %r0, %r1;": ["Assign(12 opaque.cvt.rn.satfinite.e4m3x2.f32.b16(%0, %1))"],
    "cvt.rs.satfinite.e4m3x4.f32 %r0, {%r0, %r1, %r2, %r3}, %r4;": [
        "Assign(0 opaque.cvt.rs.satfinite.e4m3x4.f32.b32(%0, %1, %2, %3, %4))"
    ],
    "fma.rn.oob.relu.bf16x2 %r0, %r1, %r2, %r3;": ["Assign(0 fma.rn.relu.oob.bf16x2(%1, %2, %3))"],
    "rcp.approx.ftz.f32 %r0, %r1;": ["Assign(0 rcp.ftz.approx.f32(%1))"],
    "sqrt.rn.f64 %d0, %d1;": ["Assign(8 sqrt.rn.f64(%9))"],
    "rsqrt.approx.f32 %r0, %r1;": ["Assign(0 rsqrt.approx.f32(%1))"],
    "sin.approx.f32 %r0, %r1;": ["Assign(0 sin.approx.f32(%1))"],
    "cos.approx.f32 %r0, %r1;": ["Assign(0 cos.approx.f32(%1))"],
    "lg2.approx.f32 %r0, %r1;": ["Assign(0 lg2.approx.f32(%1))"],
    "ex2.approx.ftz.bf16x2 %r0, %r1;": ["Assign(0 ex2.ftz.approx.bf16x2(%1))"],
    "tanh.approx.f32 %r0, %r1;": ["Assign(0 tanh.approx.f32(%1))"],
    "testp.finite.f64 %p0, %d0;": ["Assign(14 testp.finite.f64(%8))"],
    "copysign.f32 %r0, %r1, %r2;": ["Assign(0 copysign.f32(%1, %2))"],
    "vadd.s32.u32.s32.sat %r0, %r1.b2, %r2.h1;": [
        "Assign(0 vadd.s32.u32.s32.sat.u32(cvt.u32(cvt.u8(shr.u32(%1, 16))), cvt.s32(cvt.s16(shr.u32(%2, 16)))))"
    ],
    "vabsdiff.s32.s32.s32.sat %r0.h0, %r1, %r2, %r3;": ["Assign(0 vabsdiff.s32.s32.s32.sat.into.h0.u32(%1, %2, %3))"],
    "vshl.u32.u32.u32.clamp %r0, %r1, 40;": ["Assign(0 vshl.u32.u32.u32.clamp.u32(%1, 40))"],
    "vmad.s32.s32.u32.shr7 %r0, %r1, %r2, %r3;": ["Assign(0 vmad.s32.s32.u32.shr7.u32(%1, %2, %3))"],
    "vset.u32.u32.lt.max %r0, %r1, %r2, %r3;": ["Assign(0 vset.u32.u32.lt.max.u32(%1, %2, %3))"],
    "vavrg4.u32.u32.u32 %r0, %r1, %r2, %r3;": ["Assign(0 vavrg4.u32.u32.u32.u32(%1, %2, %3))"],
    "vset2.s32.u32.ne.add %r0, %r1, %r2, %r3;": ["Assign(0 vset2.s32.u32.ne.add.u32(%1, %2, %3))"],
}


@pytest.mark.parametrize("line", WORKED_OUT)
def test_the_steps_are_those_worked_out(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]


@pytest.mark.parametrize("line", WORKED_OUT_IN_MODULES)
def test_the_steps_in_modules_are_those_worked_out(line: str) -> None:
    assert shown(list(steps_of(line))) == WORKED_OUT_IN_MODULES[line]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add.sat.f64 %d0, %d1, %d2;", "PTX has no add.sat.f64"),
        ("add.sat.u64 %d0, %d1, %d2;", "add.sat is for .s32"),
        ("mul.f32x2.sat %d0, %d1, %d2;", "PTX has no mul.f32x2.sat"),
        ("fma.f32 %r0, %r1, %r2, %r3;", "PTX has no fma.f32"),
        ("ex2.approx.bf16 %h0, %h1;", "PTX has no ex2.approx.bf16"),
        ("setp.lo.f32 %p0, %r0, %r1;", "PTX has no setp.lo.f32"),
        ("setp.eq.f16 %p0|%p1, %h0, %h1;", "setp.eq.f16 writes one predicate"),
        ("cvt.f32.f64 %r0, %d0;", "PTX has no cvt.f32.f64"),
        ("cvt.rn.s32.f32 %r0, %r1;", "PTX has no cvt.rn.s32.f32"),
        ("cvt.sat.u32.u16 %r0, %h0;", "a .u32 has every .u16: there is nothing to saturate"),
        ("mov.f16 %h0, %h1;", "unknown qualifier '.f16' of mov"),
        ("mov.b32 %r0, 1.0;", "the floating-point number 1.0 is not a .b32"),
        ("add.u32 %r0, %d0, 1;", "%d0 has 64 bits, and add.u32 takes 32 there"),
        ("shl.b64 %d0, %d1, %d2;", "%d2 has 64 bits, and shl.b64 takes 32 there"),
        ("mov.u32 %h0, %r0;", "%h0 has 16 bits, and mov.u32 takes 32 there"),
        ("cvt.u64.u32 %r0, %r1;", "%r0 has 32 bits, and cvt.u64.u32 takes 64 there"),
        ("vadd2.u32.u32.u32 %r0.h0, %r1, %r2, %r3;", "vadd2.u32.u32.u32 does not write to a part of a register"),
        ("lop3.b32 %r0, %r1, %r2, %r3, 256;", "the table of lop3 is a number from 0 to 255"),
        ("max.f64 %d0, %d1, %d2, %d3;", "max takes d, a, b; 4 are given"),
    ],
)
def test_what_ptx_does_not_have_is_refused(line: str, message: str) -> None:
    """Sentences of the pages, and "Type Information for Instructions and Operands"."""
    with pytest.raises(InputError) as error:
        steps_of(line)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add.f32 %r0, %r1, %r2;", "floating-point arithmetic is not modelled"),
        ("setp.ltu.s32 %p, %r1, %r2;", "unknown qualifier '.ltu' of setp"),
        ("fma.rn.f32 %r0, %r1, %r2, %r3;", "fma is for compiled modules; litmus tests do not have it"),
        ("cvt.sat.u32.u16 %r0, %r1;", "a .u32 has every .u16: there is nothing to saturate"),
    ],
)
def test_what_litmus_tests_do_not_have(line: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        ops(blocks(line))
    assert error.value.message == message
