"""Words that pack a state with data: what is known of single bits, and which states those see that poll them."""

from __future__ import annotations

import pytest
from helpers.computed import computed, expressions
from helpers.examples import TIMES, generator
from helpers.kernel.samples import entry, judged, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.packing import packed_registers
from memmodel.program.expressions import Apply, Const, Get
from memmodel.program.fields import NOTHING, Bits, known_bits
from memmodel.ptx.vocabulary import DataType

OPCODES = [
    "and.b32", "or.b64", "xor.b32", "not.b32", "and.pred", "or.pred", "shl.b32", "shr.u32", "shr.s32", "add.u32",
    "add.s64", "cvt.u64.u32", "cvt.s64.s32", "cvt.u32.u64", "cvt.u16.u32", "prmt.b32", "bfe.u32",
    "setp.eq.s32", "setp.ne.s64", "setp.lt.s32", "setp.ge.u32", "setp.hi.u32", "setp.le.s32", "setp.gt.u64",
]  # fmt: skip
SMALL = {"shl": 1, "shr": 1, "prmt": 2, "bfe": 1}
"""From which operand on the operands are known: amounts, controls."""


@pytest.mark.share(3)
@pytest.mark.generated
@pytest.mark.parametrize("opcode", OPCODES)
def test_what_is_said_of_single_bits_holds_for_every_number(opcode: str) -> None:
    words = tuple(opcode.split("."))
    width, chance = 1 if words[-1] == "pred" else int(words[-1][1:]), generator(opcode)
    count = {"not": 1, "cvt": 1, "prmt": 3, "bfe": 3}.get(words[0], 2)
    values, size = expressions(opcode, [0] * count)
    told = known_bits(values["0"], size)
    said = 0
    for _ in range(300 * TIMES):
        masks = [chance.choice((0, 0xFF, ~0xFF, chance.getrandbits(64), ~0)) & (1 << width) - 1 for _ in range(count)]
        known = [chance.choice((0, chance.getrandbits(64), chance.getrandbits(4))) & (1 << width) - 1 for _ in masks]
        if words[0] in SMALL:
            first = SMALL[words[0]]
            masks[first:] = [(1 << width) - 1] * (count - first)
            known[first:] = [chance.randrange(0x10000 if words[0] == "prmt" else 40) for _ in known[first:]]
        bits = [Bits(mask, value & mask) for mask, value in zip(masks, known, strict=True)]
        result = told({Get(str(n)): one for n, one in enumerate(bits, 1)})
        said += result.known != 0
        for _ in range(8):
            data = [chance.choice((0, ~0, chance.getrandbits(64))) & (1 << width) - 1 for _ in masks]
            whole = [a & mask | b & ~mask for a, b, mask in zip(known, data, masks, strict=True)]
            exact = computed(opcode, *whole)
            assert exact is not None
            assert exact & result.known == result.value & result.known, (masks, known, whole)
    assert said > 20


def test_what_is_packed_comes_apart_again() -> None:
    state, data, width = Bits.of(2, 32), NOTHING, DataType("b", 64)
    low, high = (Apply("cvt", (Get(name),), DataType("b", 32)) for name in "01")
    whole = Apply("or", (low, Apply("shl", (high, Const(32)), width)), width)
    word = known_bits(whole, 64)({Get("0"): data, Get("1"): state})
    assert word == Bits(0xFFFFFFFF << 32, 2 << 32) and word.part(32, 32) == state and word.part(0, 32) == data
    assert word.part(32, 32).number(32) == 2 and word.number(64) is None
    floating = Apply("add", (Get("0"), Get("1")), DataType("f", 32))
    assert known_bits(floating, 32)({Get("0"): data, Get("1"): state}) == NOTHING


SCAN = """
mov.u32 %r5, %ctaid.x;
mul.wide.u32 %d1, %r5, 8;
add.s64 %d2, %d0, %d1;
mov.u32 %r6, %smid;
setp.eq.u32 %p1, %r5, 0;
selp.b64 %d3, 8589934592, 4294967296, %p1;
cvt.u64.u32 %d4, %r6;
or.b64 %d5, %d3, %d4;
{before}
{store} [%d2], %d5;
mov.u32 %r7, 0;
mov.b64 %d6, %d2;
@%p1 bra DONE;
BACK: add.s64 %d6, %d6, -8;
POLL: {load} %d7, [%d6];
{test}
@%p2 bra POLL;
{seen}
cvt.u32.u64 %r8, %d7;
add.s32 %r7, %r7, %r8;
and.b64 %d8, %d7, -4294967296;
setp.ne.s64 %p3, %d8, 8589934592;
@%p3 bra BACK;
DONE: add.s32 %r9, %r6, %r7;
cvt.u64.u32 %d9, %r9;
or.b64 %d10, %d9, 8589934592;
@!%p1 {store} [%d2], %d10;
st.global.u32 [%d2+2048], %r9;
"""
"""A scan with look-back: status 1 is the sum of a CTA, 2 that of all up to it; the sum is in the low word."""

PLAIN = {
    "before": "", "store": "st.relaxed.gpu.global.b64", "load": "ld.relaxed.gpu.global.b64", "seen": "",
    "test": "and.b64 %d8, %d7, -4294967296;\nsetp.eq.s64 %p2, %d8, 0;",
}  # fmt: skip
DATA = "st.global.u32 [%d2+4096], %r6;"
FENCE = "fence.acq_rel.gpu;"
PARTIAL = "and.b64 %d8, %d7, 4294967296;\nsetp.eq.s64 %p4, %d8, 0;\n@!%p4 ld.global.u32 %r10, [%d6+4096];"
WHOLE = PARTIAL.replace("@!%p4", "@%p4")


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, set()),
        ({"test": "shr.u64 %d8, %d7, 32;\ncvt.u32.u64 %r11, %d8;\nsetp.eq.s32 %p2, %r11, 0;"}, set()),
        ({"test": "mov.b64 {%r11, %r12}, %d7;\nsetp.eq.s32 %p2, %r12, 0;"}, set()),
        ({"test": "setp.lt.u64 %p2, %d7, 4294967296;"}, set()),
        ({"load": "atom.relaxed.gpu.global.add.u64", "poll": ", 0"}, set()),
        ({"before": DATA + FENCE, "seen": FENCE + PARTIAL}, set()),
        ({"before": DATA, "seen": PARTIAL}, {"data-race"}),  # in schedules in which a sum of one CTA is seen
        ({"before": DATA, "seen": WHOLE}, {"data-race"}),  # in those in which a sum of all is
    ],
)
def test_look_back_with_a_word_of_status_and_value(change: dict[str, str], found: set[str]) -> None:
    """What a thread does depends on the state that it sees: all states are looked at in some schedule."""
    body = SCAN.format(**{**PLAIN, **change})
    body = body.replace("[%d6];", f"[%d6]{change.get('poll', '')};")
    verdict = judged(body, 1, 4, init="zero")
    assert {one.rule for one in verdict.findings} == found
    assert verdict.word == ("findings" if found else "explored") and not verdict.open


SPILLED = "st.shared.u32 [%r2], %r6;\nld.shared.{kind} %d4, [%r2];\n"


@pytest.mark.parametrize(
    ("kind", "load", "word"),
    [
        ("u32", "ld.shared", "explored"), ("b32", "ld.shared", "explored"),
        ("u32", "ld.volatile.shared", "explored"), ("s32", "ld.shared", "undecided"),
    ],
)  # fmt: skip
def test_what_is_loaded_into_a_wider_register_has_zeros_above(kind: str, load: str, word: str) -> None:
    spilled = SPILLED.format(kind=kind).replace("ld.shared", load)
    body = SCAN.format(**PLAIN).replace("cvt.u64.u32 %d4, %r6;\n", spilled, 1)
    verdict = judged(body, 1, 4, init="zero")
    assert verdict.word == word and not verdict.findings


def test_a_bit_of_data_is_not_known() -> None:
    """The branch looks at the value, not at the status."""
    low = PLAIN | {"test": "and.b64 %d8, %d7, 1;\nsetp.eq.s64 %p2, %d8, 0;"}
    verdict = judged(SCAN.format(**low), 1, 3, init="zero")
    assert verdict.word == "undecided" and "depends on a value that this run does not know" in verdict.open[0]


def test_a_word_is_seen_as_it_is_after_a_barrier() -> None:
    body = """
mov.u32 %r5, %smid;
cvt.u64.u32 %d1, %r5;
or.b64 %d2, %d1, 4294967296;
@%p0 st.relaxed.cta.shared.b64 [%r2], %d2;
bar.sync 0;
ld.relaxed.cta.shared.b64 %d3, [%r2];
shr.u64 %d4, %d3, 32;
setp.eq.s64 %p2, %d4, {state};
@%p2 bra X;
st.shared.u32 [%r2+64], %r0;
X:
"""
    assert "data-race" not in {one.rule for one in judged(body.format(state=1), 64).findings}
    assert "data-race" in {one.rule for one in judged(body.format(state=2), 64).findings}


TWICE = """
setp.eq.s32 %p1, %r0, 32;
@%p0 st.shared.u32 [%r2+64], %r0;
@%p0 st.relaxed.cta.shared.u32 [%r2], 1;
@%p0 st.relaxed.cta.shared.u32 [%r2], 2;
@!%p1 bra L;
W: ld.relaxed.cta.shared.u32 %r5, [%r2];
setp.ne.s32 %p2, %r5, {wanted};
setp.ne.s32 %p3, %r5, 2;
and.pred %p2, %p2, %p3;
@%p2 bra W;
setp.eq.s32 %p4, %r5, {state};
@%p4 ld.shared.u32 %r6, [%r2+64];
L:
"""


@pytest.mark.parametrize(("wanted", "state", "rule"), [(1, 1, {"data-race"}), (1, 2, {"data-race"}), (1, 3, set())])
def test_each_state_of_a_word_is_seen_in_some_schedule(wanted: int, state: int, rule: set[str]) -> None:
    """A thread writes two states, and nothing makes it wait between them."""
    body = "@%p0 st.relaxed.cta.shared.u32 [%r2], 0;\nbar.sync 0;" + TWICE.format(wanted=wanted, state=state)
    verdict = judged(body)
    assert {one.rule for one in verdict.findings} == rule and verdict.word == ("findings" if rule else "clean")


@pytest.mark.parametrize(("atom", "left"), [("cas.b32 %r10, [%r2], %r20, %r21;", 5), ("add.u32 %r10, [%r2], %r21;", 8)])
def test_what_an_atomic_operation_leaves_is_known_beside_words_that_pack(atom: str, left: int) -> None:
    body = f"""mov.u32 %r20, 3;
mov.u32 %r21, 5;
st.relaxed.cta.shared.u32 [%r2], %r20;
atom.relaxed.cta.shared.{atom}
ld.relaxed.cta.shared.u32 %r11, [%r2];
setp.eq.u32 %p5, %r11, {left};
L: @!%p5 bra L;
"""
    assert packed_registers(body_of(entry(module(body))))
    assert judged(body, 1).word == "clean"
    assert judged(body.replace(f"{left};\nL", "7;\nL"), 1).findings
