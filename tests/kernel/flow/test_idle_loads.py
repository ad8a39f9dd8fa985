"""Polls within a poll, unrolled or peeled off: which loads of a word only delay the next one, and which decide."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.idle_loads import without_idle_loads
from memmodel.ptx.vocabulary import Sem

LOADS = "ld.{sem}.{scope}.global.u32 {register}, [%d0];"
LOAD = LOADS.format(sem="acquire", scope="gpu", register="%r20")
INNER = LOADS.format(sem="relaxed", scope="gpu", register="%r21")

NESTED = f"""{LOAD}
setp.eq.u32 %p2, %r20, 0;
@%p2 bra X;
mov.u32 %r30, 0;
B: {INNER}
add.u32 %r30, %r30, 1;
setp.lt.u32 %p4, %r30, 4;
@%p4 bra C;
nanosleep.u32 20;
C: setp.eq.u32 %p3, %r21, %r20;
@%p3 bra B;
A: {LOAD}
setp.ne.u32 %p2, %r20, 0;
@%p2 bra B;
X: ld.global.u32 %r24, [%d0+64];"""
"""A thread polls until the word is 0: first by itself, then behind a loop in which it waits for any change."""

PEELED = f"""{LOAD}
xor.b32 %r22, %r20, %r0;
setp.lt.s32 %p2, %r22, 0;
@%p2 bra X;
mov.u32 %r30, 0;
A: {LOAD}
xor.b32 %r23, %r20, %r0;
setp.gt.s32 %p2, %r23, -1;
add.u32 %r30, %r30, 1;
@%p2 bra A;
X: ld.global.u32 %r24, [%d0+64];"""

UNROLLED = f"""A: {LOAD}
setp.eq.u32 %p2, %r20, 0;
@%p2 bra X;
{LOAD}
setp.eq.u32 %p2, %r20, 0;
@%p2 bra X;
{LOAD}
setp.ne.u32 %p2, %r20, 0;
@%p2 bra A;
X: ld.global.u32 %r24, [%d0+64];"""

CONSTANT = NESTED.replace("A: ", "mov.u32 %r9, 0;\nA: ").replace("ne.u32 %p2, %r20, 0", "ne.u32 %p2, %r20, %r9")


def idle(body: str) -> int:
    """How many loads of a kernel are left out."""
    before = entry(module(body))
    after = without_idle_loads(before)
    return sum(mine is not its for mine, its in zip(before.body or (), after.body or (), strict=True))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param(NESTED, 2, id="nested, and peeled off"),
        pytest.param(PEELED, 1, id="peeled off: x < 0, and not x > -1"),
        pytest.param(UNROLLED, 2, id="unrolled"),
        pytest.param(NESTED.replace(INNER, INNER.replace("relaxed", "acquire")), 2, id="the loads within acquire, too"),
        pytest.param(PEELED.replace("-1;", "0;"), 0, id="left for other values"),
        pytest.param(PEELED.replace("setp.gt.s32", "setp.gt.u32"), 0, id="unsigned"),
        pytest.param(PEELED.replace("A: ld.acquire", "A: ld.relaxed"), 0, id="the last one is weaker"),
        pytest.param(PEELED.replace("xor.b32 %r23, %r20, %r0", "xor.b32 %r23, %r20, %r30"), 0, id="with a counter"),
        pytest.param(PEELED.replace("%r20, %r0", "%r20, %r30"), 0, id="all with a counter"),
        pytest.param(PEELED + "\nst.global.u32 [%d0+68], %r30;", 0, id="the rounds are counted"),
        pytest.param(PEELED + "\nst.global.u32 [%d0+68], %r22;", 0, id="what is computed is used"),
        pytest.param(PEELED + "\nst.global.u32 [%d0+68], %r20;", 1, id="what is loaded is used"),
        pytest.param(NESTED.replace(INNER, INNER.replace(".gpu", ".cta")), 0, id="another scope within"),
        pytest.param(NESTED.replace(INNER, INNER.replace(".relaxed.gpu", "")), 0, id="a weak load within"),
        pytest.param(NESTED.replace(INNER, INNER.replace("%d0", "%d0+4")), 0, id="another word within"),
        pytest.param(NESTED.replace(LOAD, LOAD.replace("acquire", "relaxed")).replace(
            INNER, INNER.replace("relaxed", "acquire")), 0, id="the loads within are stronger"),
        pytest.param(NESTED.replace("%r21, %r20", "%r21, 1"), 0, id="within, it waits for another value than 1"),
        pytest.param(NESTED.replace("setp.eq.u32 %p3, %r21, %r20", "setp.le.u32 %p3, %r21, %r20"), 0,
                     id="within, it waits for a larger one"),
        pytest.param(NESTED + "\nst.global.u32 [%d0+68], %r21;", 0, id="what is loaded within is used"),
        pytest.param(NESTED.replace("nanosleep.u32 20;", "st.global.u32 [%d0+68], 1;"), 0, id="a store on the way"),
        pytest.param(NESTED.replace("nanosleep.u32 20;", "fence.acq_rel.gpu;"), 0, id="a fence on the way"),
        pytest.param("@%p0 bra B;\n" + NESTED, 0, id="a way into the middle"),
        pytest.param(CONSTANT, 0, id="a constant is loaded on the way"),
    ],
)  # fmt: skip
def test_which_loads_are_idle(body: str, count: int) -> None:
    assert idle(body) == count


LATCH = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
setp.eq.u32 %p1, %r10, 0;
@%p1 st.global.u32 [%d0+64], 7;
atom.release.gpu.global.add.u32 %r10, [%d0], 1;
{poll}
OUT:"""
"""A thread of each CTA counts, and waits until both have; that of CTA 0 has written what they read then."""


@pytest.mark.parametrize("poll", [NESTED, UNROLLED])
def test_a_latch_of_such_polls_is_decided_in_one_run(poll: str) -> None:
    text = LATCH.replace("{poll}", poll).replace("%r20, 0;", "%r20, 2;")
    verdict = judged(text, 32, 2, "zero")
    assert verdict.word == "clean" and verdict.explored == 1, verdict.notes
    loads = {
        at for at, does in enumerate(body_of(entry(module(text)))) if does.access and does.access.sem is Sem.ACQUIRE
    }
    assert loads <= verdict.reached  # a mutant of a load that is left out is judged
    for weaker in (text.replace("atom.release", "atom.relaxed"), text.replace("ld.acquire", "ld.relaxed")):
        assert "data-race" in {finding.rule for finding in judged(weaker, 32, 2, "zero").findings}


def test_a_thread_that_waits_for_ever_is_shown_at_a_load() -> None:
    """The word stays 1, and the thread waits for 2."""
    text = LATCH.replace("{poll}", NESTED).replace("%r20, 0;", "%r20, 2;")
    (hang,) = (finding for finding in judged(text, 32, 1, "zero").findings if finding.rule == "hang")
    assert hang.message == "threads wait for ever at ld.acquire.gpu.global.u32"
