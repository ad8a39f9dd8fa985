"""What instructions that only compute leave in a register, against a table of cases."""

from __future__ import annotations

import pytest
from helpers.computed import computed, results

from memmodel.errors import InputError

M32, M64 = 0xFFFFFFFF, (1 << 64) - 1

CASES = [
    ("add.s32", (M32, 2), 1),
    ("sub.u16", (0, 1), 0xFFFF),
    ("mul.lo.s32", (M32, 3), M32 - 2),
    ("mul.hi.u32", (M32, M32), M32 - 1),
    ("mul.hi.s32", (M32, M32), 0),
    ("mul.wide.s32", (M32, 4), M64 - 3),
    ("mul.wide.u16", (0xFFFF, 16), 0xFFFF0),
    ("mad.lo.s32", (3, 5, M32), 14),
    ("mad.wide.u32", (M32, 2, 5), 2 * M32 + 5),
    ("div.s32", (M32 - 6, 2), M32 - 2),
    ("rem.s32", (M32 - 6, 4), M32 - 2),
    ("shl.b32", (1, 32), 0),
    ("shr.u32", (0x80000000, 31), 1),
    ("shr.s32", (0x80000000, 40), M32),
    ("bfe.u32", (0xABCD, 4, 8), 0xBC),
    ("bfe.s32", (0xF0, 4, 4), M32),
    ("bfe.s32", (0x70, 4, 4), 7),
    ("bfe.u32", (0xF0, 4, 0), 0),
    ("bfi.b32", (0xF, 0, 8, 4), 0xF00),
    ("bfind.u32", (0x10,), 4),
    ("bfind.shiftamt.u32", (0x10,), 27),
    ("bfind.u32", (0,), M32),
    ("bfind.s32", (M32,), M32),
    ("popc.b32", (0xF0F0,), 8),
    ("clz.b32", (1,), 31),
    ("brev.b32", (1,), 0x80000000),
    ("neg.s32", (1,), M32),
    ("abs.s32", (M32,), 1),
    ("min.s32", (M32, 1), M32),
    ("min.u32", (M32, 1), 1),
    ("max.s32", (M32, 1), 1),
    ("prmt.b32", (0x33221100, 0x77665544, 0x7410), 0x77441100),
    ("prmt.b32", (0x80, 0, 0x8888), M32),
    ("lop3.b32", (0xF0, 0xCC, 0xAA, 0x96), 0xF0 ^ 0xCC ^ 0xAA),
    ("shf.l.wrap.b32", (0x80000000, 1, 1), 3),
    ("shf.r.clamp.b32", (5, 7, 40), 7),
    ("not.b32", (0,), M32),
    ("cnot.b32", (0,), 1),
    ("mad.hi.sat.s32", (0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), 0x7FFFFFFF),
    ("mad.hi.sat.s32", (M32, 1, 5), 4),
    ("mad24.hi.sat.s32", (0x7FFFFF, 0x7FFFFF, 0x7FFFFFFF), 0x7FFFFFFF),
    ("mad24.hi.sat.s32", (0x800000, 0x7FFFFF, 0x80000000), 0x80000000),
    ("add.sat.s32", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("set.ge.s16x2", (0xFFFF0002, 0x00010002), 0x0000FFFF),
    ("set.lo.u8x4", (0x01FF8002, 0x01018003), 0x000000FF),
    ("set.lt.s8x4", (0x01FF8002, 0x01018003), 0x00FF00FF),
    ("set.ne.u16x2", (0x00010002, 0x00010003), 0x0000FFFF),
    ("add.u8x4", (0x01FF8002, 0x01018003), 0x02000005),
    ("min.s8x4", (0x7F80FF01, 0x01010101), 0x0180FF01),
    ("vadd.s32.u32.s32", (M32, M32), M32 - 1),
    ("vadd.u32.u32.u32.sat", (M32, 5), M32),
    ("vsub.s32.s32.s32.sat.add", (0x80000000, 5, 7), 0x80000007),
    ("vabsdiff.u32.u32.u32.add", (3, 5, 10), 12),
    ("vmax.u32.u32.u32.min", (3, 5, 4), 4),
    ("vshl.u32.u32.u32.clamp", (1, 40), 0),
    ("vshl.u32.u32.u32.wrap", (1, 33), 2),
    ("vshr.s32.s32.u32.clamp", (0x80000000, 40), M32),
    ("vmad.s32.s32.u32.shr7", (M32, 128, 0), M32),
    ("vset.u32.u32.lt", (1, 2), 1),
    ("vset.s32.s32.gt.add", (1, M32, 6), 7),
    ("vadd4.u32.u32.u32.sat", (0xFF01FF02, 0x01010103, 0), 0xFF02FF05),
    ("vsub4.s32.s32.s32", (0x00000001, 0x01000002, 0), 0xFF0000FF),
    ("vabsdiff4.u32.u32.u32", (0x01050A00, 0x05010A01, 0), 0x04040001),
    ("vabsdiff4.u32.u32.u32.add", (0x01050A00, 0x05010A01, 100), 109),
    ("vabsdiff2.s32.s32.s32", (0xFFFF0001, 0x00010003, 0), 0x00020002),
    ("vavrg2.s32.s32.s32", (0xFFFF0001, 0xFFFE0002, 0), 0xFFFE0002),
    ("vset4.u32.u32.eq.add", (0x01020304, 0x01990399, 0), 2),
    ("slct.u32.s32", (7, 9, 0), 7),
    ("slct.u64.s32", (7, 9, M32), 9),
    ("slct.b32.f32", (7, 9, 0x80000000), 7),
    ("slct.b32.f32", (7, 9, 0xBF800000), 9),
    ("slct.b32.f32", (7, 9, 0x7FC00000), 9),
    ("prmt.b32.f4e", (0x33221100, 0x77665544, 1), 0x44332211),
    ("prmt.b32.rc16", (0x33221100, 0, 1), 0x33223322),
    ("testp.finite.f32", (0x7F800000,), 0),
    ("testp.infinite.f64", (0x7FF << 52,), 1),
    ("testp.notanumber.f32", (0x7FC00000,), 1),
    ("testp.number.f32", (0x7F800000,), 1),
    ("testp.subnormal.f32", (1,), 1),
    ("testp.normal.f32", (0x3F800000,), 1),
    ("testp.normal.f32", (0x80000000,), 1),
    ("slct.ftz.u32.f32", (7, 9, 0x80000001), 7),
    ("cvt.pack.sat.u8.s32.b32", (300, M32, 0x1234), 0x1234FF00),
    ("cvt.pack.sat.s4.s32.b32", (100, M32 - 99, 0xA), 0xA78),
    ("cvt.pack.sat.s16.s32", (0x12345, M32), 0x7FFFFFFF),
]


@pytest.mark.parametrize(("opcode", "given", "wanted"), CASES)
def test_results(opcode: str, given: tuple[int, ...], wanted: int) -> None:
    assert computed(opcode, *given) == wanted


@pytest.mark.parametrize(
    ("opcode", "given", "wanted"),
    [
        ("setp.lt.s32", (M32, 0), 1),
        ("setp.lt.u32", (M32, 0), 0),
        ("setp.hi.u32", (M32, 0), 1),
        ("setp.eq.f32", (0x80000000, 0), 1),
        ("setp.lt.f32", (0x7FC00000, 0), 0),
        ("setp.ltu.f32", (0x7FC00000, 0), 1),
        ("setp.ne.f32", (0x7FC00000, 0), 0),
        ("setp.neu.f32", (0x7FC00000, 0), 1),
        ("setp.num.f32", (0x7FC00000, 0), 0),
        ("setp.nan.f64", (0, 0x7FF8000000000000), 1),
        ("setp.eq.ftz.f32", (1, 0x80000000), 1),
        ("setp.eq.f32", (1, 0x80000000), 0),
        ("setp.lt.bf16", (0xBF80, 0x3F80), 1),
    ],
)
def test_comparisons(opcode: str, given: tuple[int, int], wanted: int) -> None:
    assert computed(opcode, *given) == wanted


@pytest.mark.parametrize(
    ("opcode", "given", "wanted"),
    [
        ("cvt.s64.s32", M32, M64),
        ("cvt.u64.u32", M32, M32),
        ("cvt.u32.u16", 0xFFFF, 0xFFFF),
        ("cvt.sat.u8.s32", M32, 0),
        ("cvt.sat.s8.s32", 300, 127),
        ("cvt.u32.u64", 1 << 40 | 5, 5),
        ("cvt.rn.f32.s32", 0xFFFFFFFF, 0xBF800000),
        ("cvt.rzi.s32.f32", 0xBFC00000, 0xFFFFFFFF),
        ("cvt.rzi.u32.f32", 0xBFC00000, 0),
        ("cvt.f64.f32", 0x3F800000, 0x3FF0000000000000),
        ("cvt.rn.f16.f32", 0x3F800000, 0x3C00),
        ("cvt.rni.f32.f32", 0x40200000, 0x40000000),
        ("cvt.rzi.f32.f32", 0xBF000000, 0x80000000),
        ("cvt.rz.f16.f32", 0x477FFFFF, 0x7BFF),
        ("cvt.rn.f16.f32", 0x477FFFFF, 0x7C00),
        ("cvt.rn.satfinite.f16.f32", 0x7F800000, 0x7BFF),
        ("cvt.rn.bf16.f32", 0x3E99999A, 0x3E9A),
        ("cvt.f32.bf16", 0x3E9A, 0x3E9A0000),
        ("cvt.rn.relu.bf16.f32", 0xBF800000, 0),
        ("cvt.sat.f32.f32", 0x40000000, 0x3F800000),
        ("cvt.ftz.f64.f32", 0x007FFFFF, 0),
        ("cvt.rzi.sat.u16.f32", 0x4F9502F9, 0xFFFF),
        ("cvt.rzi.s32.f32", 0x7FC00000, 0),
        ("cvt.rzi.s64.f32", 0x7FC00000, 1 << 63),
        ("cvt.rzi.s32.f64", 0x7FF8000000000000, 1 << 31),
        ("cvt.rm.f32.s32", 0x7FFFFFFF, 0x4EFFFFFF),
    ],
)
def test_conversions(opcode: str, given: int, wanted: int) -> None:
    assert computed(opcode, given) == wanted


@pytest.mark.parametrize(
    ("opcode", "given", "wanted"),
    [
        ("add.rn.f32", (0x3F800000, 0x3F800000), 0x40000000),
        ("mul.f32", (0x40400000, 0xBF000000), 0xBFC00000),
        ("div.rn.f32", (0x3F800000, 0x40400000), 0x3EAAAAAB),
        ("neg.f32", (0x3F800000,), 0xBF800000),
        ("min.f32", (0x3F800000, 0xBF800000), 0xBF800000),
        ("sqrt.rn.f32", (0x40800000,), 0x40000000),
        ("min.f32", (0, 0x80000000), 0x80000000),
        ("fma.rn.f32", (0x3F800003, 0x3F800003, 0xBF800000), 0x35400002),
        ("add.rz.f32", (0x3F800000, 0xB3000000), 0x3F7FFFFF),
        ("add.rm.f32", (0x3F800000, 0xBF800000), 0x80000000),
        ("mul.rp.f64", (0x3FF0000000000001, 0x3FF0000000000001), 0x3FF0000000000003),
        ("add.f16", (0x3C00, 0x3C00), 0x4000),
        ("fma.rn.bf16x2", (0x3F803F80, 0x40004000, 0x00003F80), 0x40004040),
        ("add.sat.f32", (0x3F800000, 0x3F800000), 0x3F800000),
        ("abs.ftz.f32", (0x80000001,), 0),
        ("neg.f16x2", (0x3C00BC00,), 0xBC003C00),
        ("fma.rn.f64", (0x3FF0000000000000, 0x4000000000000000, 0x3FF0000000000000), 0x4008000000000000),
    ],
)
def test_floating_point_of_known_numbers(opcode: str, given: tuple[int, ...], wanted: int) -> None:
    assert computed(opcode, *given) == wanted


@pytest.mark.parametrize(
    ("opcode", "given"),
    [
        ("fma.rn.oob.f16", (0x3C00, 0x3C00, 0x3C00)),
        ("ex2.approx.f32", (0x3F800000,)),
        ("div.approx.f32", (0x3F800000, 0x3F800000)),
        ("div.full.f32", (0x3F800000, 0x3F800000)),
        ("add.f32", (0x7FC00000, 0x3F800000)),  # NaN, whose bits are open
        ("div.u32", (1, 0)),
        ("rem.s32", (1, 0)),
    ],
)
def test_what_is_not_known(opcode: str, given: tuple[int, ...]) -> None:
    assert computed(opcode, *given) is None


def test_a_type_that_an_instruction_does_not_have() -> None:
    with pytest.raises(InputError):
        computed("add.rn.e4m3", 1, 1)


def test_a_carry_is_no_result() -> None:
    assert results("add.cc.u32", (M32, 1)) == {"0": 0, "#carry": 1}
    assert results("addc.u32", (M32, 1), carry=1) == {"0": 1}
