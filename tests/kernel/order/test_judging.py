"""Who takes part in a finding."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.judging import RunJudge

TILES = """
mov.u32 %r6, 0;
TILE:
st.shared.u32 [%r3], %r6;
bar.sync 0;
ld.shared.u32 %r10, [%r2];
ld.shared.u32 %r11, [%r2+128];
add.u32 %r6, %r6, 1;
setp.lt.u32 %p1, %r6, 2;
@%p1 bra TILE;
"""


def test_a_race_names_two_threads() -> None:
    """One event stands for what equal threads do to many bytes; a race is between threads that met at one of them."""
    races = [finding for finding in judged(TILES).findings if finding.rule == "data-race"]
    assert races
    for race in races:
        first, second = race.sides
        assert (first.warp, first.lane) != (second.warp, second.lane)


@pytest.mark.parametrize(
    ("fences", "certain"),
    [("fence.sc.cta;", False), ("@%p0 fence.sc.cta;", True), ("fence.acq_rel.cta;", True), ("", True)],
)
def test_the_order_of_fences_is_a_matter_of_chance_if_there_are_two(fences: str, *, certain: bool) -> None:
    read = module(f"st.shared.u32 [%r3], 1;\n{fences}")
    made = RunJudge(entry(read), run_launch(read, entry(read), launch(threads=2)))
    assert made.is_certain(frozenset()) is certain


STORED = """
add.s64 %d10, %d0, 4096;
mov.u32 %r6, 0;
TILE:
st.shared.u32 [%r3], %r6;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d10], [%r2], 128;
@%p0 cp.async.bulk.commit_group;
add.s64 %d10, %d10, 512;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p1, %r6, 3;
@%p1 bra TILE;
"""


def test_one_tile_that_is_copied_to_many_places_is_no_ring() -> None:
    """A stage is one of several places in the memory of the race, not in another one that the copy touches as well."""
    races = [finding for finding in judged(STORED).findings if finding.rule == "data-race"]
    assert races
    assert [side.stage for race in races for side in race.sides] == [-1] * 2 * len(races)


EARLY = """
setp.lt.u32 %p1, %r0, 32;
bar.sync 0;
@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
@!%p1 ld.shared.u32 %r10, [%r2];
@!%p1 bra DONE;
bar.warp.sync 0xffffffff;
ld.shared.u32 %r10, [%r2];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;
DONE:
"""


def test_an_instruction_that_is_executed_once_is_in_no_round() -> None:
    """Where lanes meet at an instruction, it has more than one event; rounds are those of the instruction."""
    found = judged(EARLY).findings
    races = [finding for finding in found if finding.rule == "data-race"]
    assert races
    assert {side.turn for race in races for side in race.sides} == {0}
