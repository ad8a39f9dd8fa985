"""Which values are equal whatever the data is: terms, and the stores of lanes and warps that leave them."""

from __future__ import annotations

import random

import pytest
from helpers.examples import each_seed
from helpers.kernel.samples import entry, judged, launch, module
from helpers.kernel.terms import disagreements

from memmodel.cat.load import load_model
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.machine.rows import LANES, UNKNOWN, uniform
from memmodel.kernel.machine.values.expressions import remembering, rowwise
from memmodel.kernel.machine.values.slices import Slices
from memmodel.kernel.machine.values.terms import Terms
from memmodel.program.arith import is_comparison, operation
from memmodel.program.expressions import Apply, Get
from memmodel.ptx.vocabulary import DataType

OWN = "mul.wide.u32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.b32 %r9, [%d2];\n"
"""A word of its own for each thread."""

STEP = """
shfl.sync.bfly.b32 %r20, %r10, {lane}, 31, -1;
shfl.sync.bfly.b32 %r21, %r11, {lane}, 31, -1;
{take}
"""
TAKE = """setp.eq.b32 %p1, %r10, %r20;
setp.lt.s32 %p2, %r11, %r21;
and.pred %p1, %p1, %p2;
setp.gt.{kind} %p3, %r10, %r20;
or.pred %p3, %p3, %p1;
selp.b32 %r10, %r10, %r20, %p3;
selp.b32 %r11, %r11, %r21, %p3;"""
"""The larger of two numbers, of equal ones the one with the smaller index."""


def rules(body: str, threads: int = 64) -> dict[str, str]:
    return {one.rule: one.message for one in judged(body, threads=threads).findings}


def argmax(take: str, **parts: str) -> str:
    """Every lane stores what it holds after a butterfly over its warp, to a place of the warp."""
    steps = "".join(STEP.format(lane=lane, take=take.format(**parts)) for lane in (16, 8, 4, 2, 1))
    begin = OWN + "mov.b32 %r10, %r9;\nmov.b32 %r11, %r0;\n"
    return (
        begin
        + steps
        + "shr.u32 %r22, %r0, 5;\nshl.b32 %r22, %r22, 3;\nadd.s32 %r23, %r2, %r22;\n"
        + ("st.shared.v2.b32 [%r23], {%r10, %r11};")
    )


def test_the_index_of_the_largest_integer() -> None:
    assert rules(argmax(TAKE, kind="s32")) == {"equal-store-race": ""}
    unsigned = TAKE.replace("setp.gt.{kind}", "setp.hi.u32")
    assert rules(argmax(unsigned, kind="u32")) == {"equal-store-race": ""}


def test_the_index_of_the_largest_float() -> None:
    floats = argmax(TAKE.replace("eq.b32", "eq.f32"), kind="f32")
    assert rules(floats) == {"same-store-race": "the values are equal unless a number is NaN"}
    read = module(floats)
    without = judge(read, entry(read), launch().model_copy(update={"nan": False}), load_model("ptx-9.4"))
    assert without.word == "clean" and "no floating-point number is NaN" in without.assumptions


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("or.pred %p3, %p3, %p1;", ""),  # of equal numbers each lane keeps the other one's index
        ("setp.eq.b32 %p1, %r10, %r20", "setp.eq.b32 %p1, %r11, %r20"),
        ("selp.b32 %r11, %r11, %r21, %p3", "selp.b32 %r11, %r11, %r21, %p1"),
        ("setp.gt.{kind} %p3, %r10", "setp.ge.{kind} %p3, %r10"),
    ],
)
def test_a_choice_that_depends_on_the_lane(old: str, new: str) -> None:
    assert old in TAKE
    assert rules(argmax(TAKE.replace(old, new), kind="s32")) == {"same-store-race": ""}


S32, U32, B32, F32 = (DataType(kind, 32) for kind in "subf")
B64, U64, U16 = DataType("b", 64), DataType("u", 64), DataType("u", 16)
OPERATIONS = (
    ("add", S32), ("and", B32), ("or", B32), ("xor", B32), ("min", S32), ("max", U32), ("sub", S32), ("mul", S32),
    ("lt", S32), ("eq", B32), ("ge", U32), ("ne", S32), ("gt", F32), ("neu", F32), ("nan", F32),
)  # fmt: skip
NUMBERS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7FC00000)


def computed(op: str, type: DataType, *numbers: int) -> int:
    result = operation(op, type)(*numbers)
    assert result is not None
    return result


@each_seed(1)
def test_equal_terms_are_equal_numbers(seed: int) -> None:
    """Random expressions, as terms and with numbers for what is not known."""
    shuffle, terms = random.Random(seed + 1), Terms()
    cases = [[shuffle.choice(NUMBERS) for _ in range(4)] for _ in range(60)]
    values = {terms.fresh(): [case[n] for case in cases] for n in range(4)}
    values |= {terms.number(n): [n] * len(cases) for n in NUMBERS}
    bits = {terms.false: [0] * len(cases), terms.true: [1] * len(cases)}
    met = 0

    def note(held: dict[int, list[int]], term: int, numbers: list[int]) -> int:
        assert held.setdefault(term, numbers) == numbers
        return int(held[term] is not numbers)

    for _ in range(2500):
        known = list(values)
        one, other = shuffle.choices(known[:12] if shuffle.random() < 0.7 else known, k=2)
        op, type = shuffle.choice(OPERATIONS)
        results = [computed(op, type, a, b) for a, b in zip(values[one], values[other], strict=True)]
        if is_comparison(op):
            met += note(bits, terms.compared(op, type, one, other), results)
            p, q = shuffle.choices(list(bits), k=2)
            met += note(bits, terms.logic("and", p, q), [a & b for a, b in zip(bits[p], bits[q], strict=True)])
            met += note(bits, terms.logic("not", p), [1 - a for a in bits[p]])
            chosen = [a if p else b for p, a, b in zip(bits[p], values[one], values[other], strict=True)]
            met += note(values, terms.selected(p, one, other), chosen)
            continue
        met += note(values, terms.computed(op, type, [one, other]), results)
    assert met > 400


@each_seed(1)
def test_equal_pieces_are_equal_bits(seed: int) -> None:
    """The same of shifts, masks, vectors and bytes, of words of 64 bits."""
    shuffle, terms = random.Random(seed + 2), Terms()
    slices, cases = Slices(terms), range(20)
    values = {slices.has(terms.fresh(), 64): [shuffle.getrandbits(64) for _ in cases] for _ in range(3)}
    masks, met = (0xFF, 0xFFFF0000, 0xFF00FF00FF00FF00, 0xFFFFFFFF), 0
    for _ in range(4000):
        one, other = shuffle.choices(list(values), k=2)
        shift, mask = 8 * shuffle.randrange(9), shuffle.choice(masks)
        operand, op, type = shuffle.choice(
            [(other, "or", B64), (other, "xor", B64), (terms.number(mask), "and", B64),
             (terms.number(shift), "shl", B64), (terms.number(shift), "shr", U64), (None, "cvt", U32),
             (None, "cvt", U16), (None, "pack", B64)]
        )  # fmt: skip
        if op == "pack":
            term = slices.packed([slices.part(one, 32, 32), slices.part(other, 0, 32)], 32)
            numbers = [a >> 32 | (b & 0xFFFFFFFF) << 32 for a, b in zip(values[one], values[other], strict=True)]
        else:
            given = [one] if operand is None else [one, operand]
            made = slices.computed(op, type, given)
            if made is None:
                continue
            term = made
            known = {terms.number(n): [n] * len(cases) for n in (mask, shift)} | values
            numbers = [computed(op, type, *row) for row in zip(*(known[x] for x in given), strict=True)]
        assert values.setdefault(term, numbers) == numbers, op
        met += values[term] is not numbers
    assert met > 500


@pytest.mark.parametrize("by_rows", [False, True])
@each_seed(4)
def test_what_random_programs_store(seed: int, by_rows: bool) -> None:
    """Where two lanes store one term, they store one number, whatever is loaded."""
    shared, wrong = disagreements(seed, 4, by_rows=by_rows)
    assert shared > 20 and not wrong, wrong


def test_a_sum_over_a_warp_is_compared_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two warps sum up the same numbers; with so few terms, only rows can be followed."""
    steps = "".join(f"shfl.sync.bfly.b32 %f1, %f0, {n}, 31, -1;\nadd.f32 %f0, %f0, %f1;\n" for n in (16, 8, 4, 2, 1))
    body = (
        f"and.b32 %r5, %r0, 31;\nmul.wide.u32 %d1, %r5, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.f32 %f0, [%d2];\n{steps}"
    )
    body += "st.shared.f32 [%r2], %f0;"
    monkeypatch.setattr("memmodel.kernel.machine.values.terms.MOST_TERMS", 10)
    assert rules(body) == {"equal-store-race": ""}
    monkeypatch.setattr("memmodel.kernel.machine.values.terms.MOST_ROW_TERMS", 10)
    assert rules(body) == {}


def test_a_product_that_is_fused_into_the_first_step() -> None:
    """a * b + shfl(a * b), rounded once: the lanes round different products."""
    body = OWN + "mov.b32 %f0, %r9;\nmul.f32 %f1, %f0, %f0;\nshfl.sync.bfly.b32 %f2, %f1, 1, 31, -1;\n{}\n"
    body += "shr.u32 %r22, %r0, 1;\nshl.b32 %r22, %r22, 2;\nadd.s32 %r23, %r2, %r22;\nst.shared.f32 [%r23], %f3;"
    assert rules(body.format("add.f32 %f3, %f1, %f2;")) == {"equal-store-race": ""}
    assert rules(body.format("fma.rn.f32 %f3, %f0, %f0, %f2;")) == {"same-store-race": ""}


THROUGH = (
    OWN
    + """
mov.u32 %r10, 0;
mov.u32 %r12, 0;
LOOP: bar.sync 0;
shl.b32 %r13, %r0, 2;
add.s32 %r14, %r2, %r13;
st.shared.b32 [%r14+64], %r9;
bar.sync 0;
ld.shared.b32 %r15, [%r2+64];
{between}add.s32 %r10, %r10, %r15;
add.s32 %r12, %r12, 1;
setp.lt.u32 %p1, %r12, 3;
@%p1 bra LOOP;
st.shared.b32 [%r2], %r10;
"""
)


def test_values_that_come_through_memory_and_a_loop() -> None:
    assert rules(THROUGH.format(between="")) == {"equal-store-race": ""}
    assert "same-store-race" in rules(THROUGH.format(between="add.s32 %r10, %r10, %r9;\n"))
    other = THROUGH.replace("ld.shared.b32 %r15, [%r2+64]", "ld.shared.b32 %r15, [%r14+64]")
    assert "same-store-race" in rules(other.format(between=""))


SPLIT = (
    OWN
    + """
mov.b32 %r10, %r9;
cvt.u64.u32 %d5, %r10;
shl.b64 %d6, %d5, 32;
xor.b32 %r11, %r10, 7;
cvt.u64.u32 %d7, %r11;
or.b64 %d6, %d6, %d7;
mov.b64 {{_, %r12}}, %d6;
cvt.u32.u64 %r13, %d6;
shfl.sync.bfly.b32 %r14, %r12, 1, 31, -1;
shfl.sync.bfly.b32 %r15, %r13, 1, 31, -1;
{together}
add.s64 %d9, %d8, %d6;
shr.u32 %r22, %r0, 1;
shl.b32 %r22, %r22, 3;
add.s32 %r23, %r2, %r22;
st.shared.b64 [%r23], %d9;
"""
)


@pytest.mark.parametrize(
    ("together", "rule"),
    [
        ("mov.b64 %d8, {%r15, %r14};", "equal-store-race"),
        ("cvt.u64.u32 %d8, %r14;\nshl.b64 %d8, %d8, 32;\ncvt.u64.u32 %d7, %r15;\nor.b64 %d8, %d8, %d7;",
         "equal-store-race"),
        ("mov.b64 %d8, {%r14, %r15};", "same-store-race"),
        ("cvt.u64.u32 %d8, %r15;", "same-store-race"),
        ("cvt.u64.u32 %d8, %r14;\nshl.b64 %d8, %d8, 31;\ncvt.u64.u32 %d7, %r15;\nor.b64 %d8, %d8, %d7;",
         "same-store-race"),
        ("prmt.b32 %r14, %r14, %r14, 0x0123;\nmov.b64 %d8, {%r15, %r14};", "same-store-race"),
        ("prmt.b32 %r14, %r14, %r15, 0x3210;\nmov.b64 %d8, {%r15, %r14};", "equal-store-race"),
    ],
)  # fmt: skip
def test_a_value_that_is_taken_apart(together: str, rule: str) -> None:
    assert rules(SPLIT.format(together=together)) == {rule: ""}


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("mad.lo.s32 %r11, %r10, 3, 7;", "mul.lo.s32 %r12, %r10, 3;\nadd.s32 %r12, %r12, 7;", "equal-store-race"),
        ("mad.lo.s32 %r11, %r10, 3, 7;", "mul.lo.s32 %r12, %r10, 3;\nadd.s32 %r12, %r12, 8;", "same-store-race"),
        (
            "set.lt.u32.s32 %r11, %r10, 5;",
            "setp.lt.s32 %p2, %r10, 5;\nselp.b32 %r12, 0xffffffff, 0, %p2;",
            "equal-store-race",
        ),
        (
            "setp.lt.s32 %p4, %r10, 0;\nlop3.or.b32 %r11|%p2, %r10, 255, 0, 0xc0, %p4;\nselp.b32 %r11, 1, 0, %p2;",
            "lop3.b32 %r12, %r10, 255, 0, 0xc0;\nsetp.ne.s32 %p3, %r12, 0;\nor.pred %p3, %p3, %p4;\n"
            "selp.b32 %r12, 1, 0, %p3;",
            "equal-store-race",
        ),
        ("cvt.s32.s16 %r11, %h1;", "cvt.s32.s8 %r12, %h1;", "same-store-race"),
    ],
)
def test_one_value_that_is_computed_in_two_ways(one: str, other: str, rule: str) -> None:
    """Each lane stores what the first or what the second way gives."""
    body = f"ld.global.b32 %r10, [%d0];\ncvt.u16.u32 %h1, %r10;\n{one}\n{other}\nsetp.lt.u32 %p1, %r0, 16;\n"
    assert rules(body + "selp.b32 %r13, %r11, %r12, %p1;\nst.shared.b32 [%r2], %r13;", 32) == {rule: ""}


MATRIX = (
    OWN
    + """
setp.ge.u32 %p1, %r0, 32;
@%p1 bra B;
st.shared.b32 [%r3], %r9;
B: bar.sync 0;
and.b32 %r10, %r0, 31;
and.b32 %r11, %r0, 7;
shl.b32 %r11, %r11, 4;
add.s32 %r12, %r2, %r11;
ldmatrix.sync.aligned.m8n8.x1{way}.shared.b16 {{%r13}}, [%r12];
shl.b32 %r14, %r10, 2;
add.s32 %r15, %r2, %r14;
{store}
"""
)


@pytest.mark.parametrize("store", ["st.shared.b32 [%r15+512], %r13;", "add.s32 %r12, %r12, 512;\n"
                                   "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r12], {%r13};"])  # fmt: skip
def test_matrices_that_two_warps_load(store: str) -> None:
    """Each lane has 4 bytes of a row, the same in both warps."""
    assert rules(MATRIX.format(way="", store=store)) == {"equal-store-race": ""}
    assert rules(MATRIX.format(way=".trans", store=store)) == {"equal-store-race": ""}
    other = store.replace("m8n8.x1", "m8n8.x1.trans").replace("st.shared", "selp.b32 %r13, %r13, %r9, %p1;\nst.shared")
    assert rules(MATRIX.format(way=".trans", store=other)) == {
        "equal-store-race" if "matrix" in store else "data-race": ""
    }
    own = store.replace("st", "add.s32 %r13, %r13, %r0;\nst", 1)
    assert rules(MATRIX.format(way="", store=own)) == {"data-race": ""}


def test_each_store_of_an_epoch_counts() -> None:
    one = "ld.global.b32 %r10, [%d0];\nst.shared.b32 [%r2], %r10;\n"
    assert rules(OWN + one) == {"equal-store-race": ""}
    assert "same-store-race" in rules(OWN + one + "st.shared.b32 [%r2+8], %r9;")


DETOUR = (
    OWN
    + """
mov.b32 %r10, %r9;
shfl.sync.idx.b32 %r11, %r10, 0, 31, -1;
mul.lo.s32 %r12, %r11, 3;
setp.lt.s32 %p1, %r12, 7;
@%p1 bra SLOW;
{way}
SLOW: st.shared.b32 [%r2], %r12;
"""
)


@pytest.mark.parametrize(
    ("way", "rule"),
    [
        ("add.s32 %r12, %r12, %r11;", "equal-store-race"),
        ("add.s32 %r12, %r12, %r9;", "same-store-race"),
        ("setp.lt.s32 %p2, %r9, 7;\n@%p2 add.s32 %r12, %r12, %r11;", "same-store-race"),
        ("setp.lt.s32 %p2, %r9, 7;\n@%p2 bra SLOW;\nadd.s32 %r12, %r12, %r11;", "same-store-race"),
        ("mov.u32 %r13, %laneid;\nadd.s32 %r12, %r12, %r13;", "same-store-race"),
        ("mov.u32 %r13, %clock;\nadd.s32 %r12, %r12, %r13;", "same-store-race"),
    ],
)
def test_a_branch_on_data_whose_sides_only_compute(way: str, rule: str) -> None:
    """What is left where they meet is a function of what was there before."""
    assert rules(DETOUR.format(way=way), threads=32) == {rule: ""}


BETWEEN = """
ld.shared.b32 %r10, [%r2];
bar.warp.sync -1;
@%p0 {write}
bar.warp.sync -1;
ld.shared.b32 %r11, [%r2];
setp.lt.u32 %p1, %r0, 16;
selp.b32 %r12, %r10, %r11, %p1;
st.shared.b32 [%r2+64], %r12;
"""


BULK = """mbarrier.init.shared.b64 [%r4], 1;
bar.warp.sync -1;
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], 32, [%r4];
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 32;
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
@!%p5 bra W;"""


@pytest.mark.parametrize(
    ("write", "rule"),
    [
        (BULK, "same-store-race"),
        ("st.shared.b32 [%r2+4], 7;", "equal-store-race"),
        ("st.shared.b32 [%r2], %r10;", "equal-store-race"),
        ("st.shared.b32 [%r2], %r9;", "same-store-race"),
        ("st.shared.b8 [%r2+1], %r9;", "same-store-race"),
        ("st.relaxed.cta.shared.b32 [%r2], %r9;", "same-store-race"),
        ("red.shared.add.u32 [%r2], %r9;", "same-store-race"),
        ("cp.async.ca.shared.global [%r2], [%d0], 4;\ncp.async.wait_all;", "same-store-race"),
        ("st.bulk.weak.shared::cta [%r2], 32, 0;", "same-store-race"),
    ],
)
def test_what_is_written_between_two_loads(write: str, rule: str) -> None:
    """The first 16 lanes store what was there before it, the others what was there after it."""
    assert rule in rules(OWN + BETWEEN.format(write=write), threads=32)


def test_too_many_terms_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    body = argmax(TAKE, kind="s32")
    monkeypatch.setattr("memmodel.kernel.machine.values.terms.MOST_TERMS", 100)
    monkeypatch.setattr("memmodel.kernel.machine.values.terms.MOST_ROW_TERMS", 100)
    assert rules(body) == {} and judged(body).word == "undecided"


PRODUCT = (
    "and.b32 %r5, %r0, 31;\nmul.wide.u32 %d1, %r5, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.b32 %r9, [%d2];\nBEFORE"
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r9, %r9, %r9, %r9}, {%r9, %r9}, "
    "{%f4, %f4, %f4, %f4};\nshl.b32 %r22, %r5, 2;\nadd.s32 %r23, %r2, %r22;\n"
)


@pytest.mark.parametrize(
    ("before", "stored", "rule"),
    [
        ("", "st.shared.f32 [%r23], %f0;", "equal-store-race"),
        ("", "st.shared.f32 [%r2], %f0;", "data-race"),  # lanes have different elements
        ("add.s32 %r9, %r9, %r0;\n", "st.shared.f32 [%r23], %f0;", "data-race"),
        ("setp.eq.u32 %p1, %r0, 40;\n@%p1 mov.b32 %r9, 7;\n", "st.shared.f32 [%r23], %f0;", "data-race"),
    ],
)
def test_two_warps_multiply_the_same_matrices(before: str, stored: str, rule: str) -> None:
    """Each element is a function of what all lanes of the warp give, so that one lane changes those of the others."""
    assert rule in rules("mov.b32 %f4, 0f00000000;\n" + PRODUCT.replace("BEFORE", before) + stored)


def test_ctas_that_store_one_value() -> None:
    body = "ld.global.b32 %r10, [%d0];\nst.global.b32 [%d0+64], {};"
    assert {one.rule for one in judged(body.format("%r10"), threads=1, ctas=2).findings} == {"equal-store-race"}
    other = "mov.u32 %r11, %ctaid.x;\nadd.s32 %r10, %r10, %r11;\nst.global"
    assert {
        one.rule for one in judged(body.format("%r10").replace("st.global", other), threads=1, ctas=2).findings
    } == {"data-race"}


ROUNDS = "mov.u32 %r30, 0;\nLOOP:\n{value}\nst.shared.b32 [%r2], %r12;\n{sync}\nadd.u32 %r30, %r30, 1;\n{end}"
TWICE = "setp.lt.u32 %p2, %r30, 2;\n@%p2 bra LOOP;"
BY_TURNS = "and.b32 %r31, %r0, 1;\nxor.b32 %r31, %r31, %r30;\nsetp.eq.u32 %p1, %r31, 0;\nselp.b32 %r12, {}, 7, %p1;"


@pytest.mark.parametrize(
    ("value", "sync", "rule"),
    [
        ("mov.u32 %r12, 7;", "", "equal-store-race"),
        ("mov.u32 %r12, %r30;", "", "same-store-race"),
        ("mov.u32 %r12, %r30;", "bar.warp.sync -1;", "equal-store-race"),
        (BY_TURNS.format(9), "", "same-store-race"),
        (BY_TURNS.format("%r9"), "", "same-store-race"),
        ("add.u32 %r12, %r9, %r30;", "bar.warp.sync -1;", "equal-store-race"),
        ("add.u32 %r12, %r9, %r30;", "", "same-store-race"),
    ],
)
def test_several_rounds_of_one_store(value: str, sync: str, rule: str) -> None:
    """What a lane stores in one round races with what another lane stores in the next one, if nothing is between."""
    load = "ld.global.b32 %r9, [%d0];\n"
    assert rules(load + ROUNDS.format(value=value, sync=sync, end=TWICE), 32) == {rule: ""}


OTHER_ROUNDS = """ld.global.v2.b32 {{%r9, %r10}}, [%d0];
setp.lt.u32 %p1, %r0, {first};
mov.u32 %r30, 0;
LOOP:
setp.eq.u32 %p2, %r30, 0;
not.pred %p5, %p2;
or.pred %p3, %p1, %p5;
selp.b32 %r12, %r10, %r9, %p1;
@%p2 mov.b32 %r12, %r9;
@%p3 st.shared.b32 [%r2], %r12;
{sync}
add.u32 %r30, %r30, 1;
setp.lt.u32 %p4, %r30, 2;
@%p4 bra LOOP;
"""


@pytest.mark.parametrize(
    ("first", "threads", "sync"),
    [(16, 32, "bar.warp.sync -1;"), (31, 32, "bar.warp.sync -1;"), (33, 64, "bar.sync 0;")],
)
def test_lanes_that_leave_out_a_round(first: int, threads: int, sync: str) -> None:
    """In the second round the lanes store two values; for some it is the first store."""
    body = OTHER_ROUNDS.format(first=first, sync=sync)
    assert "same-store-race" in rules(body, threads)
    assert set(rules(body.replace("%r10, %r9, %p1", "%r9, %r9, %p1"), threads)) == {"equal-store-race"}


SUM = OWN + "mov.u32 %r10, 0;\n" + "".join(
    f"add.u32 %r13, %r0, {lane};\nshfl.sync.idx.b32 %r12|%p5, %r9, %r13, 31, -1;\nadd.u32 %r10, %r10, %r12;\n"
    for lane in range(32)
)  # fmt: skip
"""Each lane adds what all lanes have, and begins with its own."""


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [
        ("MOST_OPERANDS", 4, "5 operands of add, more than 4"),
        ("MOST_TERMS", 100, "more than 1,500,000 terms of values"),
    ],
)
def test_a_limit_of_the_comparison_is_undecided(
    limit: str, most: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal, other = (SUM + f"st.shared.b32 [%r2], {register};" for register in ("%r10", "%r9"))
    assert rules(equal, 32) == {"equal-store-race": ""}
    assert rules(other, 32) == {"same-store-race": ""}
    monkeypatch.setattr(f"memmodel.kernel.machine.values.terms.{limit}", most)
    verdict = judged(equal, 32)
    assert verdict.word == "undecided" and not verdict.findings
    assert len(verdict.open) == 1 and verdict.open[0].endswith(f"not compared: {reason}")
    if limit != "MOST_TERMS":
        assert rules(other, 32) == {"same-store-race": ""}


def test_a_function_of_rows_that_are_alike_in_some_operands() -> None:
    rows = {"five": uniform(5), "lane": list(range(LANES)), "some": [None, *range(1, LANES)], "unknown": UNKNOWN}

    def result(*names: str) -> list[int | None]:
        get = rowwise(lambda *values: sum(values), [lambda warp, name=name: rows[name] for name in names])
        return list(get(None))

    assert result("five", "five") == [10] * LANES
    assert result("five", "lane") == result("lane", "five") == [5 + lane for lane in range(LANES)]
    assert result("some", "five") == [None, *(5 + lane for lane in range(1, LANES))]
    assert result("unknown", "five") == [None] * LANES


def test_values_are_remembered_while_their_operands_are_the_same() -> None:
    rows = {"a": list(range(LANES)), "b": uniform(1)}
    total = Apply("add", (Get("a"), Get("b")), U32)
    get = remembering(total, lambda leaf: lambda warp: rows[leaf.register])
    first = get(None)
    assert first == [lane + 1 for lane in range(LANES)] and get(None) is first
    rows["a"][3] = 7  # registers are changed in place
    assert get(None)[3] == 8
    rows["b"] = uniform(2)
    assert get(None)[3] == 9
