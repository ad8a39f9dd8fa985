"""Barriers of a grid that are made of a count and a generation: decided with fences, found or open with one less."""

from __future__ import annotations

import pytest
from helpers.examples import SEED, seeds
from helpers.kernel.random_decisions import races
from helpers.kernel.random_generations import generations
from helpers.kernel.samples import judged

FENCE = "fence.acq_rel.gpu;"


def grid_barrier(
    ctas: int, rounds: int, *, first: str = FENCE, reset: str = FENCE, last: str = FENCE, bump: str = "st.volatile"
) -> str:
    """Each CTA writes a word, meets the others, and reads the word of the next one, in each round elsewhere."""
    bumped = {
        "st.volatile": "add.u32 %r23, %r20, 1;\nst.volatile.global.u32 [%d0+4], %r23;",
        "red": "red.release.gpu.global.add.u32 [%d0+4], 1;",
    }[bump]
    return f"""
mov.u32 %r50, %ctaid.x;
mul.wide.u32 %d5, %r50, 4;
add.s64 %d6, %d0, %d5;
add.u32 %r51, %r50, 1;
rem.u32 %r51, %r51, {ctas};
mul.wide.u32 %d7, %r51, 4;
add.s64 %d7, %d0, %d7;
mov.u32 %r60, 0;
ROUND:
@%p0 st.global.u32 [%d6+64], %r50;
bar.sync 0;
@!%p0 bra MET;
ld.volatile.global.u32 %r20, [%d0+4];
{first}
atom.global.add.u32 %r21, [%d0], 1;
setp.eq.u32 %p3, %r21, {ctas - 1};
@%p3 bra LAST;
WAIT: ld.volatile.global.u32 %r22, [%d0+4];
setp.eq.u32 %p4, %r22, %r20;
@%p4 bra WAIT;
bra LEFT;
LAST: st.volatile.global.u32 [%d0], 0;
{reset}
{bumped}
LEFT: mov.u32 %r24, 0;
{last}
MET: bar.sync 0;
ld.global.u32 %r30, [%d7+64];
add.s64 %d6, %d6, 64;
add.s64 %d7, %d7, 64;
add.u32 %r60, %r60, 1;
setp.lt.u32 %p7, %r60, {rounds};
@%p7 bra ROUND;
"""


@pytest.mark.parametrize(("ctas", "rounds", "executions"), [(2, 1, 2), (2, 3, 8), (3, 1, 6)])
def test_a_barrier_with_a_generation_is_clean(ctas: int, rounds: int, executions: int) -> None:
    """In each round another CTA may be the last one. Who waits sees no older generation than before."""
    verdict = judged(grid_barrier(ctas, rounds), 64, ctas, "zero")
    assert (verdict.word, verdict.explored, verdict.exhaustive) == ("clean", executions, True)


@pytest.mark.parametrize(
    ("without", "word", "rules"),
    [
        pytest.param("last", "findings", {"data-race"}, id="behind the barrier"),
        pytest.param("first", "findings", {"data-race"}, id="before the count"),
        pytest.param("reset", "explored", set(), id="before the generation"),
        pytest.param("bump", "explored", set(), id="a red of the generation is no part of an acquire pattern"),
    ],
)
def test_a_barrier_with_a_generation_without_one_of_its_fences(without: str, word: str, rules: set[str]) -> None:
    changed = {"bump": "red"} if without == "bump" else {without: ""}
    verdict = judged(grid_barrier(2, 1, **changed), 1, 2, "zero")
    assert (verdict.word, {finding.rule for finding in verdict.findings}) == (word, rules)


CLEAN = (205, 207)
"""Seeds of kernels that are clean only because fences keep writes behind reads of other words."""


@pytest.mark.generated
@pytest.mark.parametrize("seed", [*CLEAN, *(seeds(12) if SEED else ())])
def test_barriers_of_two_words_are_judged_as_the_exact_engines_judge_them(seed: int) -> None:
    litmus, kernel, threads = generations(seed)
    verdict = judged(kernel, 1, threads, "zero", first=True)
    if verdict.word == "clean":
        assert not races(litmus), kernel
    elif "data-race" in {finding.rule for finding in verdict.findings}:
        assert races(litmus), kernel
    assert verdict.word == "clean" or seed not in CLEAN
