"""Loops that poll a word: which of them are waits, so that no schedule is explored, and which only look so."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, kernel_text

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.polling import _succeeding, complaints
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

pytestmark = pytest.mark.turns(2)

KERNEL = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, 0;
mov.u32 %r24, 1000;
setp.eq.s32 %p1, %r20, 1;
setp.eq.s32 %p3, %r20, 2;
@%p1 bra B;
@%p3 bra C;
{first}
st.global.u32 [%d0+64], 5;
{last}
bra L;
B:
{other}
bra L;
C:
W: ld.{load} [%d0];
{loop}
@%p5 bra W;
ld.global.u32 %r9, [%d0+64];
L:
"""
"""CTA 0 writes data and then the word, CTA 1 does something else, CTA 2 polls the word and reads the data."""
PARTS = {
    "first": "", "last": "st.release.gpu.global.u32 [%d0], 1;", "other": "", "load": "acquire.gpu.global.u32 %r7,",
    "loop": "setp.ne.u32 %p5, %r7, 1;",
}  # fmt: skip
SELECTED = (
    "setp.ne.u32 %p7, %r7, 1;\nselp.u32 %r22, 1, 0, %p6;\nselp.u32 %r23, %r22, 0, %p7;\nsetp.ne.u32 %p5, %r23, 0;"
)
NEITHER = """
setp.eq.s32 %p6, %r7, {};
setp.eq.s32 %p7, %r7, 0;
selp.u32 %r8, 1, 0, %p6;
selp.u32 %r9, 1, %r8, %p7;
setp.ne.u32 %p5, %r9, 0;
"""
"""Again, while the word is 0 or this number."""
PASSED = "V: ld.{}.gpu.global.u32 %r12, [%d0];\nsetp.ne.u32 %p8, %r12, 1;\n@%p8 bra V;\n"
CAS = "atom.relaxed.gpu.global.cas.b32 {}, [%d0], 0, 7;"
NOT_ZERO = "setp.eq.u32 %p5, %r7, 0;"

LOOPS = [
    ("one write", {}, "clean"),
    ("bits of the word", {"loop": "xor.b32 %r10, %r7, 3;\nand.b32 %r10, %r10, 1;\nsetp.ne.u32 %p5, %r10, 0;"}, "clean"),
    ("a time-out that counts up", {"loop": "add.u32 %r21, %r21, 1;\nsetp.lt.u32 %p6, %r21, %r24;\n" + SELECTED},
     "findings"),
    ("a time-out that counts down",
     {"loop": "sub.u32 %r24, %r24, 1;\nsetp.ne.u32 %p7, %r7, 1;\nselp.u32 %r23, %r24, 0, %p7;\n"
      "setp.ne.u32 %p5, %r23, 0;"}, "findings"),
    ("a time-out in the test", {"loop": "add.u32 %r21, %r21, 1;\nsetp.lt.u32 %p6, %r21, 1000;\n"
                                "setp.ne.and.u32 %p5, %r7, 1, %p6;"}, "findings"),
    ("joined with what holds", {"loop": "setp.eq.u32 %p6, %r20, 2;\nsetp.ne.and.u32 %p5, %r7, 1, %p6;"}, "clean"),
    ("joined with what does not hold", {"loop": "setp.eq.u32 %p6, %r20, 1;\nsetp.ne.and.u32 %p5, %r7, 1, %p6;"},
     "findings"),
    ("joined with the opposite", {"loop": "setp.eq.u32 %p6, %r20, 1;\nsetp.ne.and.u32 %p5, %r7, 1, !%p6;"}, "clean"),
    ("one of two numbers", {"first": "st.relaxed.gpu.global.u32 [%d0], 2;",
                            "loop": "setp.eq.u32 %p6, %r7, 0;\nsetp.eq.or.u32 %p5, %r7, 2, %p6;"}, "clean"),
    ("one number, and the other one ends it", {"first": "st.relaxed.gpu.global.u32 [%d0], 2;",
                                               "loop": "setp.eq.u32 %p6, %r7, 0;\nsetp.eq.or.u32 %p5, %r7, 3, %p6;"},
     "findings"),
    ("operations on predicates",
     {"loop": "setp.eq.u32 %p6, %r7, 1;\nsetp.eq.u32 %p7, %r20, 1;\nor.pred %p8, %p6, %p7;\nnot.pred %p5, %p8;"},
     "clean"),
    ("operations on predicates, with one too many",
     {"loop": "setp.eq.u32 %p6, %r7, 1;\nsetp.eq.u32 %p7, %r20, 2;\nor.pred %p8, %p6, %p7;\nnot.pred %p5, %p8;"},
     "findings"),
    ("either of them differs", {"loop": "setp.ne.u32 %p6, %r20, 2;\nsetp.ne.xor.u32 %p5, %r7, 1, %p6;"}, "clean"),
    ("a signed byte, which is -1 and not 255",
     {"first": "st.relaxed.gpu.global.u8 [%d0], 255;", "last": "st.release.gpu.global.u8 [%d0], 1;",
      "load": "acquire.gpu.global.s8 %r7,", "loop": NEITHER.format(255)}, "findings"),
    ("a signed byte, which is -1",
     {"first": "st.relaxed.gpu.global.u8 [%d0], 255;", "last": "st.release.gpu.global.u8 [%d0], 1;",
      "load": "acquire.gpu.global.s8 %r7,", "loop": NEITHER.format(-1)}, "clean"),
    ("a byte of a number that is larger",
     {"first": "mov.u32 %r30, 257;\nst.relaxed.gpu.global.u8 [%d0], %r30;",
      "last": "mov.u32 %r31, 259;\nst.release.gpu.global.u8 [%d0], %r31;",
      "load": "acquire.gpu.global.u8 %r7,", "loop": NEITHER.format(257)}, "findings"),
    ("the upper half of a word",
     {"first": "mov.u64 %d5, 4294967296;\nst.relaxed.gpu.global.u64 [%d0], %d5;",
      "last": "mov.u64 %d6, 4294967297;\nst.release.gpu.global.u64 [%d0], %d6;",
      "load": "acquire.gpu.global.u64 %d7,", "loop": "mov.b64 {%r10, %r11}, %d7;\nsetp.eq.u32 %p5, %r11, 0;"},
     "findings"),
    ("a cas that succeeds if it is early", {"other": CAS.format("%r10"), "loop": NOT_ZERO}, "findings"),
    ("and returns nothing", {"other": "nanosleep.u32 9;\n" + CAS.format("_"), "loop": NOT_ZERO}, "findings"),
    ("and the number that is waited for is overwritten", {"other": CAS.format("_")}, "explored"),
    ("a poll that fails orders nothing", {"other": PASSED.format("relaxed") + "st.release.gpu.global.u32 [%d0], 2;",
                                          "loop": "setp.ne.u32 %p5, %r7, 2;"}, "findings"),
    ("the poll of the other one orders", {"other": PASSED.format("acquire") + "st.release.gpu.global.u32 [%d0], 2;",
                                          "loop": "setp.ne.u32 %p5, %r7, 2;"}, "clean"),
    ("an atomic operation in its turn", {"other": PASSED.format("acquire") + "red.release.gpu.global.add.u32 [%d0], 1;",
                                         "loop": "setp.lt.u32 %p5, %r7, 2;"}, "clean"),
    ("the scope of the poll is too narrow", {"load": "acquire.cta.global.u32 %r7,"}, "findings"),
]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(("parts", "word"), [one[1:] for one in LOOPS], ids=[one[0] for one in LOOPS])
def test_what_ends_a_loop(parts: dict[str, str], word: str) -> None:
    assert judged(KERNEL.format(**{**PARTS, **parts}), 1, 3, "zero").word == word


READ_FIRST = """
mov.u32 %r20, %ctaid.x;
setp.eq.s32 %p1, %r20, 1;
@%p1 bra B;
ld.{load}.gpu.global.u32 %r5, [%d0];
st.{store}.gpu.global.u32 [%d0+4], 1;
setp.eq.s32 %p2, %r5, 0;
@%p2 bra L;
st.global.u32 [%d0+64], 1;
bra L;
B:
st.global.u32 [%d0+64], 2;
W: ld.{poll}.gpu.global.u32 %r6, [%d0+4];
setp.ne.s32 %p3, %r6, 1;
@%p3 bra W;
st.relaxed.gpu.global.u32 [%d0], 1;
L:
"""


@pytest.mark.parametrize(
    ("load", "store", "poll", "word"),
    [("relaxed", "relaxed", "relaxed", "findings"), ("relaxed", "release", "acquire", "clean")],
)
def test_a_write_comes_after_a_read_by_causality_only(load: str, store: str, poll: str, word: str) -> None:
    """A relaxed flag does not keep a load from reading what is written after it was seen (load buffering)."""
    assert judged(READ_FIRST.format(load=load, store=store, poll=poll), 1, 2, "zero").word == word


def test_a_value_that_another_schedule_leaves() -> None:
    """CTA 0 stores its ticket, which is 1 if it comes second: then it ends the loop before the data is written."""
    body = """
mov.u32 %r20, %ctaid.x;
setp.eq.s32 %p1, %r20, 1;
setp.eq.s32 %p3, %r20, 2;
@%p3 bra W;
atom.relaxed.gpu.global.add.u32 %r8, [%d0+4], 1;
@%p1 bra L;
st.relaxed.gpu.global.u32 [%d0], {stored};
st.global.u32 [%d0+64], 5;
st.release.gpu.global.u32 [%d0], 1;
bra L;
W: ld.acquire.gpu.global.u32 %r7, [%d0];
setp.ne.s32 %p5, %r7, 1;
@%p5 bra W;
ld.global.u32 %r9, [%d0+64];
L:
"""
    assert judged(body.format(stored="%r8"), 1, 3, "zero").word == "undecided"
    assert judged(body.format(stored=0), 1, 3, "zero").word == "clean"


TWO_WAIT = """
mov.u32 %r20, %ctaid.x;
setp.eq.s32 %p1, %r20, 0;
@%p1 bra C;
@!%p0 bra L;
st.release.gpu.global.u32 [%d0], 1;
X: ld.acquire.gpu.global.u32 %r6, [%d0+4];
setp.ne.u32 %p6, %r6, 1;
@%p6 bra X;
st.global.u32 [%d0+64], 5;
{store}
st.release.gpu.global.u32 [%d0], 2;
bra L;
C:
and.b32 %r11, %r0, {mask};
setp.ne.u32 %p7, %r11, 0;
@%p7 bra L;
shr.u32 %r12, %r0, {shift};
mov.u32 %r10, 2;
sub.u32 %r10, %r10, %r12;
cvt.u64.u32 %d4, %r1;
add.s64 %d3, %d0, %d4;
V: ld.acquire.gpu.global.u32 %r7, [%d0];
setp.ne.u32 %p5, %r7, %r10;
@%p5 bra V;
st.release.gpu.global.u32 [%d0+4], 1;
ld.global.u32 %r9, [%d3+64];
L:
"""


@pytest.mark.parametrize(("threads", "mask", "shift", "at"), [(2, 0, 0, 68), (64, 31, 5, 192)])
def test_threads_that_wait_for_different_writes_are_not_the_same(threads: int, mask: int, shift: int, at: int) -> None:
    """The second one waits for the first write of the word only, and its data is written between the two."""
    for store, word in (("", "clean"), (f"st.global.u32 [%d0+{at}], 5;", "findings")):
        assert judged(TWO_WAIT.format(mask=mask, shift=shift, store=store), threads, 2, "zero").word == word


TWO_GROUPS = """
@%p0 st.relaxed.cta.shared.u32 [s+1000], 0;
setp.lt.u32 %p1, %r0, 64;
setp.eq.u32 %p7, %r0, 32;
setp.eq.u32 %p8, %r0, 64;
xor.b32 %r10, %r1, 128;
add.s32 %r11, %r2, %r10;
st.shared.u32 [%r3], %r0;
@!%p1 bra OTHERS;
bar.sync 1, 64;
@%p7 {};
ld.shared.u32 %r12, [%r11];
bra DONE;
OTHERS:
{}
bar.sync 2, 64;
bar.sync 1, 64;
ld.shared.u32 %r12, [%r11];
DONE:
"""
RED = "red.relaxed.cta.shared.add.u32 [s+1000], 1"
FLAG = "st.relaxed.cta.shared.u32 [s+1000], 1"
SEEN = "ld.relaxed.cta.shared.u32 %r9, [s+1000]"


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        (RED, f"@%p8 {RED};", "undecided"),
        (FLAG, f"@%p8 {RED};", "undecided"),
        (FLAG, f"@%p8 {SEEN};", "undecided"),
        (
            "st.relaxed.gpu.global.u32 [%d0], 1",
            "@!%p8 bra NEXT;\nW: ld.relaxed.gpu.global.u32 %r9, [%d0];\nsetp.ne.u32 %p9, %r9, 1;\n@%p9 bra W;\nNEXT:",
            "clean",
        ),
    ],
)
def test_a_reduction_waits_for_nothing(one: str, other: str, word: str) -> None:
    """Two groups of warps meet at one barrier. That the reduction of the one came first in the run orders nothing."""
    assert judged(TWO_GROUPS.format(one, other), 128, init="zero").word == word


def test_a_loop_that_polls_with_operands_that_no_assembler_takes() -> None:
    """A number of operands that is wrong is refused where it is reached, and not before."""
    body = "L: ld.acquire.gpu.global.u32 %r9, [%d0];\nadd.s32 %r10, 1;\nsetp.eq.u32 %p3, %r9, 1;\n@%p3 bra L;"
    assert judged(body).word == "undecided"


def test_a_test_at_the_end_of_a_kernel_that_has_no_ret() -> None:
    text = kernel_text("mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;\nmov.u32 %r5, 1;")
    function = entry(parse_module(Source("k.ptx", text.replace("\nret;\n", "\n"))))
    body = body_of(function)
    test = next(number for number, does in enumerate(body) if does.instruction.opcode.startswith("mbarrier"))
    assert _succeeding(body, test, body[test].writes[0]) == set()


SPIN = """setp.eq.u32 %p3, %r0, 32;
or.pred %p3, %p3, %p0;
@!%p3 bra X;
W: atom.acquire.gpu.{} %r5, [%d0], {};
setp.ne.u32 %p1, %r5, {};
@%p1 bra W;
{}
X:"""
"""Threads of two warps repeat an atomic operation until it returns a certain value."""
RELEASE = "st.release.gpu.u32 [%d0], 0;"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("operation", "operands", "until", "after", "word"),
    [
        ("exch.b32", "1", 0, "", "findings"),
        ("exch.b32", "1", 0, RELEASE, "clean"),
        ("exch.b32", "1", 0, f"@%p0 {RELEASE}", "findings"),
        ("cas.b32", "0, 1", 0, "", "findings"),
        ("cas.b32", "0, 1", 0, RELEASE, "clean"),
        ("or.b32", "1", 0, "", "findings"),
        ("add.u32", "0", 7, "", "findings"),
    ],
)
def test_operations_that_leave_what_was_there_may_wait_for_ever(
    operation: str, operands: str, until: int, after: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.kernel.machine.run.MAX_STEPS", 20_000)
    verdict = judged(SPIN.format(operation, operands, until, after), 64, init="zero")
    rules = {"findings": {"hang"}, "clean": set[str]()}[word]
    assert (verdict.word, {finding.rule for finding in verdict.findings}) == (word, rules)


def test_operations_that_leave_what_was_there_may_be_answered_from_outside() -> None:
    alone = "@!%p0 bra X;\nW: atom.acquire.{}.exch.b32 %r5, [%d0], 1;\nsetp.ne.u32 %p1, %r5, 7;\n@%p1 bra W;\nX:"
    assert judged(alone.format("gpu"), 32, init="zero").word == "findings"
    outside = judged(alone.format("sys"), 32, init="zero")
    assert outside.word == "undecided" and "the host or another device may" in outside.open[0]


def test_a_loop_that_gives_up_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.kernel.machine.run.IDLE_ROUNDS", 5)
    count = "add.u32 %r20, %r20, 1;\nsetp.gt.u32 %p4, %r20, 70;\n@%p4 bra X;\n"
    body = "@!%p0 bra X;\nmov.u32 %r20, 0;\nW: {}atom.acquire.gpu.exch.b32 %r5, [%d0], 1;\n{}X:"
    again = "setp.ne.u32 %p1, %r5, 7;\n@%p1 bra W;\n"
    verdict = judged(body.format(count, again), 32, init="zero")
    assert not verdict.findings and not verdict.open


OTHER_WORD = """
setp.eq.u32 %p1, %r0, 32;
setp.eq.u32 %p2, %r0, 64;
@%p1 bra READER;
@%p0 st.global.u32 [%d0+128], 7;
@%p0 st.release.gpu.global.u32 [%d0], 1;
@%p2 st.relaxed.gpu.global.u32 [%d0+8], 1;
bra DONE;
READER: mov.u64 %d3, %d0;
L: ld.acquire.gpu.global.u32 %r5, [%d3];
{step}
setp.eq.u32 %p3, %r5, 0;
@%p3 bra L;
ld.global.u32 %r6, [%d0+128];
DONE:
"""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("step", "word"), [("", "clean"), ("xor.b64 %d3, %d3, 8;", "findings"), ("add.s64 %d3, %d3, 8;", "findings")]
)
def test_a_loop_that_looks_at_another_word_in_each_round_is_no_wait_for_one(step: str, word: str) -> None:
    """The second word orders nothing."""
    assert judged(OTHER_WORD.format(step=step), 96, init="zero").word == word


OTHER_PARITY = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
setp.eq.u32 %p1, %r0, 32;
@%p1 bra READER;
@!%p0 bra DONE;
st.shared.u32 [%r2], 7;
mbarrier.arrive.shared.b64 _, [%r4];
bra DONE;
READER: setp.eq.u32 %p2, %r0, 32;
L: {parity}
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r7;
@!%p2 bra L;
ld.shared.u32 %r6, [%r2];
DONE:
"""


@pytest.mark.parametrize(
    ("parity", "word"),
    [
        ("mov.u32 %r7, 0;", "clean"),
        ("selp.u32 %r7, 0, 1, %p2;", "findings"),
        ("selp.u32 %r8, 0, 1, %p2;\nadd.u32 %r7, %r8, 0;", "findings"),
    ],
)
def test_a_parity_that_the_answer_changes(parity: str, word: str) -> None:
    """After a failure the loop tests the other parity, which succeeds at once."""
    assert judged(OTHER_PARITY.format(parity=parity)).word == word


def test_a_parity_that_each_round_computes_anew_in_two_steps() -> None:
    parity = "and.b32 %r8, %r0, 64;\nshr.u32 %r7, %r8, 6;"
    function = entry(parse_module(Source("k.ptx", kernel_text(OTHER_PARITY.format(parity=parity)))))
    opcodes = [does.instruction.opcode for does in body_of(function)]
    test = next(number for number, opcode in enumerate(opcodes) if opcode.startswith("mbarrier.try_wait"))
    assert complaints(function, [test]) == []
