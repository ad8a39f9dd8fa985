"""Barriers of a grid that are made of a count and a generation: decided with fences, found or open with one less."""

from __future__ import annotations

import pytest
from helpers.examples import SEED, seeds
from helpers.kernel.random_decisions import races
from helpers.kernel.random_generations import generations
from helpers.kernel.samples import judged

pytestmark = pytest.mark.turns(2)

FENCE = "fence.acq_rel.gpu;"


def grid_barrier(
    ctas: int, rounds: int, *, first: str = FENCE, reset: str = FENCE, last: str = FENCE, bump: str = "st.volatile",
    asks: str = "volatile", count: str = "relaxed.gpu", sets_back: str = "st.volatile.global.u32 [%d0], 0;",
) -> str:  # fmt: skip
    """Each CTA writes a word, meets the others, and reads the word of the next one, in each round elsewhere. One round
    is no loop.
    """
    bumped = {
        "red": "red.release.gpu.global.add.u32 [%d0+4], 1;",
        "add": "atom.acq_rel.gpu.global.add.u32 %r25, [%d0+4], 1;",
    }.get(bump, f"add.u32 %r23, %r20, 1;\n{bump}.global.u32 [%d0+4], %r23;")
    polls = "volatile" if asks == "volatile" else "acquire.gpu"
    again = f"add.u32 %r60, %r60, 1;\nsetp.lt.u32 %p7, %r60, {rounds};\n@%p7 bra ROUND;"
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
ld.{asks}.global.u32 %r20, [%d0+4];
{first}
atom.{count}.global.add.u32 %r21, [%d0], 1;
setp.eq.u32 %p3, %r21, {ctas - 1};
@%p3 bra LAST;
WAIT: ld.{polls}.global.u32 %r22, [%d0+4];
setp.eq.u32 %p4, %r22, %r20;
@%p4 bra WAIT;
bra LEFT;
LAST: {sets_back}
{reset}
{bumped}
LEFT: mov.u32 %r24, 0;
{last}
MET: bar.sync 0;
ld.global.u32 %r30, [%d7+64];
add.s64 %d6, %d6, 64;
add.s64 %d7, %d7, 64;
{again if rounds > 1 else ""}
"""


@pytest.mark.parametrize(("ctas", "rounds", "executions"), [(2, 1, 2), (2, 3, 8), (3, 1, 6)])
def test_a_barrier_with_a_generation_is_clean(ctas: int, rounds: int, executions: int) -> None:
    """In each round another CTA may be the last one. Who waits sees no older generation than before."""
    verdict = judged(grid_barrier(ctas, rounds), 64, ctas, "zero")
    assert (verdict.word, verdict.explored, verdict.exhaustive) == ("clean", executions, True)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("without", "word", "rules"),
    [
        pytest.param("last", "findings", {"data-race"}, id="behind the barrier"),
        pytest.param("first", "findings", {"data-race"}, id="before the count"),
        pytest.param("reset", "explored", set(), id="before the generation"),
    ],
)
def test_a_barrier_with_a_generation_without_one_of_its_fences(without: str, word: str, rules: set[str]) -> None:
    verdict = judged(grid_barrier(2, 2, **{without: ""}), 1, 2, "zero")
    assert (verdict.word, {finding.rule for finding in verdict.findings}) == (word, rules)


@pytest.mark.parametrize(("rounds", "word"), [(1, "clean"), (2, "explored")])
def test_a_red_of_the_generation_is_no_part_of_an_acquire_pattern(rounds: int, word: str) -> None:
    """Where nothing follows it, nothing can come before it; else a circle may lead over it and the count."""
    verdict = judged(grid_barrier(2, rounds, bump="red"), 1, 2, "zero")
    assert (verdict.word, verdict.findings) == (word, [])


NO_FENCE = {
    "first": "",
    "reset": "",
    "last": "",
    "asks": "relaxed.gpu",
    "count": "acq_rel.gpu",
    "bump": "st.release.gpu",
}


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("changed", "word", "rules"),
    [
        ({}, "clean", set()),
        ({"bump": "red"}, "clean", set()),
        ({"bump": "add"}, "clean", set()),
        ({"count": "release.gpu"}, "findings", {"data-race"}),
        ({"count": "acquire.gpu"}, "findings", {"data-race"}),
        ({"bump": "st.relaxed.gpu"}, "findings", {"data-race"}),
        ({"sets_back": "atom.relaxed.gpu.global.exch.b32 %r24, [%d0], 0;"}, "explored", set()),
        ({"sets_back": "mov.u64 %d8, %d0;\nst.relaxed.gpu.global.u32 [%d8], 0;"}, "explored", set()),
        ({"sets_back": "add.s64 %d0, %d0, 0;\nst.relaxed.gpu.global.u32 [%d0], 0;"}, "explored", set()),
    ],
)
def test_a_barrier_with_a_generation_and_no_fence(changed: dict[str, str], word: str, rules: set[str]) -> None:
    """The count acquires and releases, and with it, by release pattern 2, what sets it back: one word by the text."""
    verdict = judged(grid_barrier(2, 2, **(NO_FENCE | changed)), 1, 2, "zero")
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
