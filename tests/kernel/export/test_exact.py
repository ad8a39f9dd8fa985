"""Small tests as kernels and under the exact engines: a sample of what the night judges by the thousand."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.examples import SEED, seeds, share
from helpers.kernel import exact, one_text
from helpers.kernel.random_mutants import unwritten

from memmodel.kernel.conflicts.roles import Roles

pytestmark = pytest.mark.turns(2)

FIRST = 700_000
CHOSEN = {
    "mutant": (1, 3, 17, 32, 76, 90, 91, 137, 138, 166, 225, 348, 392, 407, 423, 437, 466, 468, 481, 587),
    "mixed": (4, 424, 604),
    "counter": (96, 366, 471),
    "seldom": (85, 235, 310, 400),
    "handed": (119,),
    "wide": (627,),
    "more": (553,),
    "lock": (368,),
}
"""Seeds by kind, from FIRST on: of 650 kernels those that make the most conditions matter (`benchmarks.chosen`)."""

SAMPLE = {"loop": 2, "more": 1, "cluster": 2, "one-text": 24, "later": 6, "odd": 4, "fences": 3}
"""So many more of a kind."""

SHARES = {"mutant": 2, "one-text": 3}
"""One in so many of a kind, others each day: these take the longest."""


@pytest.mark.share(2)
@pytest.mark.generated
@pytest.mark.parametrize("kind", sorted({*CHOSEN, *SAMPLE}))
def test_a_kernel_is_clean_where_the_exact_engines_find_nothing(kind: str, tmp_path: Path) -> None:
    chosen = [FIRST + number for number in CHOSEN.get(kind, ())]
    more = seeds(SAMPLE.get(kind, 0 if SEED == 0 else 4))
    for seed in (*share(chosen, SHARES.get(kind, 1)), *share(more, SHARES.get(kind, 1))):
        text = exact.KINDS[kind](seed)
        found = exact.judged(text, tmp_path)
        assert found.answer not in exact.WRONG, f"{found}\n{text}"


WITH_A_RACE = """PTX t
.global .u32 x = 0;
.global .u32 y = 0;
thread P0 @ cta 0, gpu 0 {
    mov.u32 %r0, 1;
    st.weak.global.u32 [x], 1;
    fence.sc.gpu;
    st.weak.global.u32 [y], %r0;
}
thread P1 @ cta 1, gpu 0 {
    ld.weak.global.u32 %r1, [y];
    ld.acquire.gpu.global.u32 %r2, [x];
}
thread P2 @ cta 1, gpu 0 {
    fence.sc.gpu;
}
exists true
"""


def test_the_smallest_test_is_printed() -> None:
    least = exact.smaller(WITH_A_RACE, lambda text: "[y], %r0" in text and "[y];" in text and not unwritten(text))
    assert least.splitlines() == [
        "PTX t",
        "thread P0 @ cta 0, gpu 0 {", "    mov.u32 %r0, 1;", "    st.weak.global.u32 [y], %r0;", "}",
        "thread P1 @ cta 1, gpu 0 {", "    ld.weak.global.u32 %r1, [y];", "}",
        "exists true",
    ]  # fmt: skip
    assert unwritten(WITH_A_RACE.replace("    mov.u32 %r0, 1;\n", "")) == {("P0", "%r0")}


def test_what_the_kernel_misses_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver sees a judge that finds nothing, and one that finds too much."""
    real = exact.roundtrip.found
    monkeypatch.setattr(exact.roundtrip, "found", lambda path: (real(path)[0], set()))
    assert exact.judged(WITH_A_RACE, tmp_path).answer == "wrong clean"
    monkeypatch.setattr(exact.roundtrip, "found", lambda path: (real(path)[0], {"race"}))
    apart = WITH_A_RACE.replace("[y];", "[x];").replace("ld.weak.global.u32 %r1, [x];", "")
    alone = apart.replace("ld.acquire", "// ld.acquire")
    assert exact.judged(alone, tmp_path).answer == "false alarm"


ONE_TEXT = """PTX t
.shared .align 16 .u32 s[4];
thread T @ ctas 2, cluster 1, warps {warps}, lanes {lanes} {{
    mul.wide.u32 %d1, %t, 4;
    mov.u64 %d2, s;
    add.u64 %d1, %d1, %d2;
    st.shared.u32 [{own}], %t;
    bar.sync 0;
    ld.shared.u32 %r1, [%d1];
}}
exists true
"""


@pytest.mark.parametrize(("warps", "lanes"), [(2, 1), (1, 2)])
@pytest.mark.parametrize(("own", "said"), [("%d1", "clean"), ("s", "race")])
def test_threads_of_one_text_have_equal_roles(
    own: str, said: str, warps: int, lanes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that stands for all of its role meets another one of its role, and is not taken for it."""
    text = ONE_TEXT.format(own=own, warps=warps, lanes=lanes)
    assert exact.judged(text, tmp_path) == exact.Compared("same", said)
    monkeypatch.setattr(Roles, "related", lambda self, first, second: "thread")
    assert exact.judged(text, tmp_path).answer == ("same" if said == "clean" else "wrong clean")


LOCK = """PTX t
.global .u32 x = 0;
.global .u32 l = 0;
thread T @ ctas 1, cluster 1, warps 1, lanes 2 {{
    L: atom.acquire.gpu.global.cas.b32 %r1, [l], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra L;
    ld.global.u32 %r2, [x];
    add.u32 %r2, %r2, 1;
    st.global.u32 [x], %r2;
    {unlock}
}}
exists true
"""


@pytest.mark.parametrize(("unlock", "kinds"), [("st.release.gpu.global.u32 [l], 0;", set()), ("exit;", {"hang"})])
def test_a_lane_that_holds_a_lock_goes_on_beside_lanes_that_want_it(unlock: str, kinds: set[str]) -> None:
    """It is held back for a while, and not for ever: the scheduler is fair, also to lanes of one warp."""
    assert one_text.found(one_text.OneText.of(LOCK.format(unlock=unlock)))[1] == kinds


BY_COPY = """PTX copied
.global .u32 d = 0;
.shared .align 16 .b128 flag = 0;
.global .align 16 .u64 out[2];
thread P0 @ cta 0, gpu 0 {
    st.global.u32 [d], 1;
    mov.b128 %q, {1, 0};
    bar.sync 0;
    st.release.sys.shared.b128 [flag], %q;
}
thread P1 @ cta 0, gpu 0 {
    cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.b128 [out], [flag], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ld.global.u64 %f, [out];
    setp.eq.u64 %p, %f, 1;
    @%p ld.global.u32 %r0, [d];
}
exists true
"""


def test_a_kernel_whose_set_up_alone_has_a_finding_is_not_clean(tmp_path: Path) -> None:
    """The search for other executions ends there, so the two are not compared."""
    assert exact.judged(BY_COPY, tmp_path).answer == "not run"
