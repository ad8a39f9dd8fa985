"""Words that are polled in shared memory, and in several rounds: which loops are waits in every execution?"""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.rounds import _loads_like

SHARED = """
setp.eq.s32 %p1, %r0, 32;
{init}
{barrier}
@!%p0 bra OTHER;
st.shared.u32 [s+64], 5;
{first}
st.{store}.cta.shared.u32 [s], 1;
bra L;
OTHER:
@!%p1 bra L;
W: {number}
ld.{load}.cta.shared.u32 %r5, [s];
setp.{again}.u32 %p2, %r5, 1;
@%p2 bra W;
ld.shared.u32 %r6, [s+64];
{last}
L:
"""
USED = "st.shared.u32 [s+128], %r9;"
USUAL = {
    "number": "", "last": "",
    "init": "@%p0 st.shared.u32 [s], 0;", "barrier": "bar.sync 0;", "first": "", "store": "release", "load": "acquire",
    "again": "ne",
}  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "clean"),
        ({"init": "@%p1 st.shared.u32 [s], 0;"}, "clean"),
        ({"init": "@%p0 st.relaxed.cta.shared.u32 [s], 0;"}, "clean"),
        ({"init": "@%p0 st.volatile.shared.u32 [s], 0;"}, "clean"),
        ({"again": "lt"}, "clean"),
        ({"first": "st.relaxed.cta.shared.u32 [s], 0;"}, "clean"),
        ({"number": "mov.u32 %r9, 1;", "last": USED}, "clean"),  # the same number in each round
        ({"number": "add.u32 %r9, %r9, 1;", "first": "mov.u32 %r9, 1;", "last": USED}, "explored"),
        ({"load": "relaxed"}, "findings"),
        ({"store": "relaxed"}, "findings"),
        ({"init": "@%p0 st.shared.u32 [s], 1;"}, "findings"),  # the loop may end at once
        ({"again": "eq"}, "findings"),  # it goes on while the word is 1
        ({"first": "st.relaxed.cta.shared.u32 [s], 1;"}, "findings"),  # which comes before the data
        ({"first": "st.relaxed.cta.shared.u32 [s], 2;", "again": "lt"}, "findings"),
        # What is there before the launch is not known: the loop may end with it.
        ({"init": ""}, "undecided"),
        ({"barrier": ""}, "undecided"),
        ({"barrier": "bar.warp.sync -1;"}, "undecided"),
        ({"init": "@%p0 st.relaxed.cta.shared.u32 [s], 0;", "barrier": ""}, "undecided"),
        ({"init": "@%p0 st.shared.u16 [s], 0;"}, "undecided"),
        ({"init": "@%p0 st.shared.v2.u32 [s], {%r0, %r0};"}, "explored"),
        ({"init": "@%p0 st.shared.u32 [s], 0;\n@%p1 st.shared.u32 [s], 0;"}, "clean"),  # an equal-store-race
        ({"init": "@%p0 st.shared.u32 [s], 0;\n@%p1 st.shared.u32 [s], 2;", "again": "lt"}, "findings"),
    ],
)
def test_a_word_in_shared_memory(change: dict[str, str], word: str) -> None:
    verdict = judged(SHARED.format(**{**USUAL, **change}), 64, first=True)
    found = "findings" if verdict.serious else verdict.word
    assert found == word, (verdict.findings, verdict.choices, verdict.open)


ROUNDS = """
mov.u32 %r20, %ctaid.x;
@!%p0 bra DONE;
mov.u32 %r21, 0;
setp.eq.u32 %p1, %r20, 1;
setp.eq.u32 %p6, %r20, 2;
@%p1 bra CONSUMER;
@%p6 bra THIRD;
PRODUCER:
{wait}
st.global.u32 [%d0+64], %r21;
st.{store}.gpu.global.u32 [%d0], 1;
add.u32 %r21, %r21, 1;
setp.lt.u32 %p2, %r21, 3;
@%p2 bra PRODUCER;
bra DONE;
CONSUMER:
W: ld.{load}.gpu.global.u32 %r6, [%d0];
setp.ne.u32 %p4, %r6, 1;
@%p4 bra W;
ld.global.u32 %r7, [%d0+64];
{back}
add.u32 %r21, %r21, 1;
setp.lt.u32 %p2, %r21, 3;
@%p2 bra CONSUMER;
bra DONE;
THIRD:
{third}
DONE:
"""
"""A slot that is filled and emptied three times: the flag goes 1, 0, 1, 0, 1, 0."""
FULL = {
    "wait": "V: ld.acquire.gpu.global.u32 %r5, [%d0];\nsetp.ne.u32 %p3, %r5, 0;\n@%p3 bra V;",
    "store": "release", "load": "acquire", "back": "st.release.gpu.global.u32 [%d0], 0;", "third": "",
}  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("change", "ctas", "word"),
    [
        ({}, 2, "clean"),
        ({"third": "ld.relaxed.gpu.global.u32 %r9, [%d0];"}, 3, "clean"),
        ({"load": "relaxed"}, 2, "findings"),
        ({"store": "relaxed"}, 2, "findings"),
        ({"back": "st.relaxed.gpu.global.u32 [%d0], 0;"}, 2, "findings"),
        ({"wait": FULL["wait"].replace("acquire", "relaxed")}, 2, "findings"),
        ({"wait": ""}, 2, "findings"),
        ({"back": ""}, 2, "findings"),
        # Someone else says that the slot is full, or empty.
        ({"third": "st.relaxed.gpu.global.u32 [%d0], 1;"}, 3, "findings"),
        ({"third": "st.release.gpu.global.u32 [%d0], 0;"}, 3, "findings"),
        ({"back": "red.release.gpu.global.add.u32 [%d0], -1;"}, 2, "clean"),
        ({"back": "red.release.gpu.global.and.b32 [%d0], 0;"}, 2, "clean"),
        ({"back": "red.relaxed.gpu.global.add.u32 [%d0], -1;"}, 2, "findings"),
    ],
)
def test_a_flag_of_several_rounds(change: dict[str, str], ctas: int, word: str) -> None:
    verdict = judged(ROUNDS.format(**{**FULL, **change}), 1, ctas, "zero", first=True)
    assert verdict.word == word, (verdict.findings, verdict.choices, verdict.open)


RESET = """
mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 1;
setp.eq.u32 %p6, %r20, 2;
@%p1 bra CONSUMER;
@%p6 bra THIRD;
st.release.gpu.global.u32 [%d0], 1;
A: ld.acquire.gpu.global.u32 %r5, [%d0+8];
setp.ne.u32 %p3, %r5, 1;
@%p3 bra A;
st.global.u32 [%d0+64], 1;
st.release.gpu.global.u32 [%d0], 1;
bra DONE;
CONSUMER:
B: ld.acquire.gpu.global.u32 %r6, [%d0];
setp.ne.u32 %p4, %r6, 1;
@%p4 bra B;
st.release.gpu.global.u32 [%d0+4], 1;
{after_reset}
C: ld.acquire.gpu.global.u32 %r6, [%d0];
setp.ne.u32 %p4, %r6, 1;
@%p4 bra C;
ld.global.u32 %r7, [%d0+64];
bra DONE;
THIRD:
D: ld.acquire.gpu.global.u32 %r5, [%d0+4];
setp.ne.u32 %p3, %r5, 1;
@%p3 bra D;
st.relaxed.gpu.global.u32 [%d0], 0;
st.release.gpu.global.u32 [%d0+8], 1;
DONE:"""
"""A third thread puts the flag back between two rounds."""


@pytest.mark.parametrize(("sem", "word"), [("", "findings"), ("relaxed", "findings"), ("acquire", "clean")])
def test_who_puts_the_flag_back_comes_before_the_next_poll(sem: str, word: str) -> None:
    wait = f"E: ld.{sem}.gpu.global.u32 %r8, [%d0+8];\nsetp.ne.u32 %p5, %r8, 1;\n@%p5 bra E;" if sem else ""
    verdict = judged(RESET.format(after_reset=wait), 1, 3, "zero", first=True)
    assert verdict.word == word, (verdict.findings, verdict.choices, verdict.open)


COUNTED = """
mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 1;
@%p1 bra READER;
{writer}
bra DONE;
READER:
{reader}
DONE:"""


def data(at: int) -> str:
    return f"st.global.u32 [%d0+{at}], 7;\n"


def tell(value: int, sem: str = "release", at: int = 0) -> str:
    return f"st.{sem}.gpu.global.u32 [%d0+{at}], {value};\n"


def until(name: str, back: str, at: int = 0) -> str:
    poll = f"{name}: ld.acquire.gpu.global.u32 %r5, [%d0+{at}];\n"
    return f"{poll}setp.{back[:2]}.u32 %p3, %r5, {back[2:]};\n@%p3 bra {name};\n"


def use(at: int) -> str:
    return f"ld.global.u32 %r7, [%d0+{at}];\n"


TWICE = data(64) + tell(1) + data(68) + tell(2)


@pytest.mark.parametrize(
    ("writer", "reader", "word"),
    [
        (TWICE, until("A", "lt1") + use(64) + until("B", "lt2") + use(68), "clean"),
        (TWICE, until("A", "eq0") + use(64), "clean"),
        (TWICE, until("A", "lt1") + use(68), "findings"),
        (data(64) + tell(1, "relaxed") + tell(2), until("A", "lt1") + use(64), "findings"),
        (data(64) + tell(1) + tell(2), until("A", "ne1") + use(64), "findings"),
        (tell(1) + tell(2), until("A", "eq0") + tell(0) + until("B", "eq0"), "findings"),
        (data(64) + tell(1) + until("C", "lt1", 4) + data(64) + tell(2),
         until("A", "lt1") + use(64) + tell(1, at=4) + until("B", "lt2") + use(64), "clean"),
        (data(64) + tell(1) + data(64) + tell(2),
         until("A", "lt1") + use(64) + tell(1, at=4) + until("B", "lt2") + use(64), "findings"),
    ],
)  # fmt: skip
def test_a_flag_that_counts_up(writer: str, reader: str, word: str) -> None:
    """A loop may read any of the values that end it: each later one of the same thread publishes at least as much."""
    verdict = judged(COUNTED.format(writer=writer, reader=reader), 1, 2, "zero", first=True)
    assert verdict.word == word, (verdict.findings, verdict.choices, verdict.open)
    assert word != "clean" or not verdict.choices


def test_a_flag_that_counts_up_is_a_choice_where_its_value_is_used() -> None:
    reader = until("A", "lt1") + f"setp.ne.u32 %p4, %r5, 2;\n@%p4 bra DONE;\n{use(68)}"
    verdict = judged(COUNTED.format(writer=TWICE, reader=reader), 1, 2, "zero")
    assert verdict.choices and not verdict.findings


TURNS = """
mov.u32 %r20, %ctaid.x;
shl.b32 %r21, %r20, 3;
@!%p0 bra END;
setp.eq.u32 %p1, %r20, {alone};
@%p1 bra MINE;
W: ld.acquire.gpu.global.u32 %r5, [%d0];
setp.{again}.u32 %p2, %r5, {wanted};
@%p2 bra W;
MINE:
{data}
{fence}
{add}
END:
"""
"""CTAs take turns: each waits for a sum, reads and writes, and adds its part."""
SUM = {
    "alone": "0", "again": "ne", "wanted": "%r21", "fence": "fence.acq_rel.gpu;",
    "data": "ld.global.u32 %r6, [%d0+64];\nst.global.u32 [%d0+64], %r6;",
    "add": "red.relaxed.gpu.global.add.u32 [%d0], 8;",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "clean"),
        ({"again": "lt"}, "clean"),
        ({"add": "red.relaxed.gpu.global.or.b32 [%d0], 8;", "wanted": "%r21", "again": "lt"}, "findings"),  # a hang
        ({"add": "atom.relaxed.gpu.global.exch.b32 _, [%d0], %r22;"}, "clean"),
        ({"add": "mov.u32 %r8, %r21;\nred.relaxed.gpu.global.max.u32 [%d0], %r22;"}, "clean"),
        ({"add": "@%p1 st.relaxed.gpu.global.u32 [%d0], 8;\n@!%p1 red.relaxed.gpu.global.add.u32 [%d0], 8;"}, "clean"),
        ({"fence": ""}, "findings"),
        ({"add": "red.relaxed.cta.global.add.u32 [%d0], 8;"}, "findings"),
    ],
)
def test_ctas_that_take_turns_by_a_sum(change: dict[str, str], word: str) -> None:
    text = TURNS.format(**{**SUM, **change}).replace("@!%p0", "add.u32 %r22, %r21, 8;\n@!%p0")
    verdict = judged(text, 1, 3, "zero", first=True)
    assert verdict.word == word, (verdict.findings, verdict.choices, verdict.open)


UNORDERED = """
mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 1;
@%p1 bra WAITS;
{adds}
bra END;
WAITS:
W: ld.acquire.gpu.global.u32 %r5, [%d0];
setp.ne.u32 %p2, %r5, {wanted};
@%p2 bra W;
END:
"""


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        (3, "clean"),  # whoever comes first, both have to have come
        (1, "findings"),  # the other one may come first, and the loop never ends
    ],
)
def test_what_a_sum_is_between_two_adds_depends_on_the_schedule(wanted: int, word: str) -> None:
    adds = "setp.eq.u32 %p3, %r20, 0;\nselp.u32 %r21, 1, 2, %p3;\nred.release.gpu.global.add.u32 [%d0], %r21;"
    assert judged(UNORDERED.format(adds=adds, wanted=wanted), 1, 3, "zero").word == word


def test_which_loads_are_of_one_word() -> None:
    """A number in a register is a place in shared memory and another one in constant memory."""
    first, *others = (
        "ld.relaxed.cta.shared.u32 %r5, [%r2];", "ld.relaxed.cta.shared.u32 %r6, [%r2];", "ld.shared.u32 %r5, [%r2];",
        "ld.relaxed.cta.shared.u32 %r5, [%r2+4];", "ld.relaxed.cta.shared.u64 %d5, [%r2];", "ld.const.u32 %r5, [%r2];",
        "@%p0 ld.relaxed.cta.shared.u32 %r5, [%r2];", "st.relaxed.cta.shared.u32 [%r2], %r5;",
    )  # fmt: skip
    body = body_of(entry(module("\n".join((first, *others)))))
    begin = next(at for at, does in enumerate(body) if does.instruction.opcode.startswith("ld.relaxed"))
    alike = [_loads_like(body[begin + 1 + number], body[begin]) for number in range(len(others))]
    assert alike == [True, True, False, False, False, False, False]
    constant = others.index("ld.const.u32 %r5, [%r2];") + 1
    weak = others.index("ld.shared.u32 %r5, [%r2];") + 1
    assert not _loads_like(body[begin + constant], body[begin + weak])
