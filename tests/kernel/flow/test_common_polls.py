"""Loops in which a CTA polls in common: decided where one thread may poll alone, and left as they are elsewhere."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.kernel.flow.common_polls import polled_alone
from memmodel.kernel.machine.run import run_launch

TAKE = """L:
bar.sync 0;
mov.u32 %r22, 0;
@%p0 atom.acquire.gpu.global.cas.b32 %r22, [%d0], 0, 1;
@%p0 st.shared.u32 [%r2], %r22;
bar.sync 0;
ld.shared.u32 %r23, [s];
setp.ne.u32 %p2, %r23, 0;
@%p2 bra L;
"""
GUARDED = """@%p0 ld.global.u32 %r21, [%d0+64];
add.u32 %r21, %r21, 1;
@%p0 st.global.u32 [%d0+64], %r21;
bar.sync 0;
"""
FREE = "@%p0 st.release.gpu.global.u32 [%d0], 0;\n"
LOCK = TAKE + GUARDED + FREE

POLL = TAKE.replace("0, 1;", "1, 1;").replace("setp.ne.u32 %p2, %r23, 0", "setp.ne.u32 %p2, %r23, 1")
HANDED_OVER = f"""mov.u32 %r10, %ctaid.x;
setp.eq.u32 %p3, %r10, 0;
@%p3 bra FIRST;
@%p0 st.global.u32 [%d0+64], %r10;
bar.sync 0;
@%p0 atom.release.gpu.global.exch.b32 %r24, [%d0], 1;
bra OVER;
FIRST:
{POLL}
ld.global.u32 %r21, [%d0+64];
OVER:
"""
"""What a CTA has written another one reads, which polls with an operation that changes nothing."""


@pytest.mark.parametrize(
    ("body", "ctas", "executions"), [(LOCK, 2, 2), (LOCK, 3, 6), (HANDED_OVER, 2, 1)], ids=["lock", "three", "flag"]
)
def test_what_polls_in_common_is_decided(body: str, ctas: int, executions: int) -> None:
    verdict = judged(body, ctas=ctas, init="zero")
    assert (verdict.word, verdict.explored, verdict.exhaustive) == ("clean", executions, True), verdict.open
    assert any("that find nothing are left out" in note for note in verdict.notes)


@pytest.mark.parametrize(
    "broken",
    [
        LOCK.replace("st.release", "st.relaxed"),
        LOCK.replace("atom.acquire", "atom.relaxed"),
        LOCK.replace("st.release.gpu", "st.release.cta"),
        TAKE
        + GUARDED.replace("bar.sync 0;\n", "")
        + FREE.replace("@%p0", "@%p4").replace("@%p4", "setp.eq.u32 %p4, %r0, 63;\n@%p4"),
    ],
    ids=["relaxed free", "relaxed take", "narrow", "freed by a thread that has not met the other"],
)
def test_what_is_wrong_is_found(broken: str) -> None:
    assert judged(broken, ctas=2, init="zero").word == "findings"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("L:\nbar.sync 0;\n", "L:\n"),
        ("%r22;\nbar.sync 0;\n", "%r22;\n"),
        ("%r22;\nbar.sync 0;\n", "%r22;\nbar.sync 0, 64;\n"),
        ("%r22;\nbar.sync 0;\n", "%r22;\nbar.arrive 0, 128;\n"),
        ("@%p0 st.shared.u32 [%r2], %r22;", "@%p1 st.shared.u32 [%r2], %r22;"),
        ("@%p0 st.shared.u32 [%r2], %r22;", "@!%p0 st.shared.u32 [%r2], %r22;"),
        ("@%p0 st.shared.u32 [%r2], %r22;", "@%p0 st.shared.u32 [%r2+4], %r22;"),
        ("@%p0 st.shared.u32 [%r2], %r22;", "@%p0 st.shared.u32 [%r2], %r1;"),
        ("@%p0 st.shared.u32 [%r2], %r22;", "@%p0 st.shared.u32 [%r2], %r22;\n@%p0 st.global.u32 [%d0+128], %r22;"),
        ("bar.sync 0;\nld", "bar.sync 0;\nfence.sc.gpu;\nld"),
        ("setp.ne", "add.u32 %r25, %r25, 1;\nsetp.ne"),
        ("setp.ne.u32 %p2, %r23, 0;", "setp.ne.u32 %p2, %r25, 0;"),
        ("setp.ne.u32 %p2, %r23, 0;", "setp.ne.u32 %p0, %r23, 0;\nsetp.ne.u32 %p2, %r23, 0;"),
        ("ld.shared.u32 %r23, [s];", "ld.shared.u32 %r23, [s];\nld.shared.u32 %r26, [s+4];"),
    ],
)
def test_a_loop_that_differs_stays_as_it_is(old: str, new: str) -> None:
    assert polled_alone(entry(module(LOCK))) is not None
    changed = LOCK.replace(old, new, 1)
    assert changed != LOCK
    used = changed + "st.global.u32 [%d0+256], %r25;\n"
    assert polled_alone(entry(module(used))) is None


THREE = "bar.sync 0;\n" * 3
ASIDE = f"setp.ge.u32 %p5, %r0, 32;\n@%p5 bra ASIDE;\n{LOCK}bra OVER;\nASIDE:\n{THREE}OVER:\n"


@pytest.mark.parametrize(
    ("body", "holds"),
    [(LOCK, True), ("setp.lt.u32 %p0, %r0, 2;\n" + LOCK.replace("0, 1;", "0, 0;"), False), (ASIDE, False)],
    ids=["one thread", "two threads ask", "a warp is elsewhere"],
)
def test_a_run_shows_whether_a_cta_polls_in_common(body: str, holds: bool) -> None:
    """Where two threads ask, only one may get what it wants; where a warp meets the others at barriers of its own, it
    matters how many rounds there are. The text does not say so."""
    read = module(body)
    alone = polled_alone(entry(read))
    assert alone is not None
    assert alone.holds(run_launch(read, alone.entry, launch(64, 2, "zero"))) is holds


def test_what_does_not_hold_is_left_to_the_search_for_schedules() -> None:
    assert judged(ASIDE, ctas=2, init="zero").word == "explored"
