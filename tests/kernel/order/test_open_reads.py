"""Strong loads whose values the schedule decides: no race, and said where nothing else would show it."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

HALVES = """
setp.ge.u32 %p1, %r0, 16;
st.volatile.shared.u32 [%r3], %r0;
{sync}
@%p1 bra DONE;
ld.volatile.shared.u32 %r10, [%r3+64];
add.u32 %r10, %r10, %r0;
st.shared.u32 [%r3+256], %r10;
DONE:
"""
"""Each lane of the first half adds what one of the second half has."""


def open_loads(body: str) -> list[str]:
    verdict = judged(body, 32, init="zero")
    assert verdict.word == "clean"
    return [note for note in verdict.notes if "as the schedule has it" in note]


@pytest.mark.parametrize(
    ("sync", "notes"),
    [("", 1), ("bar.warp.sync 0x0000ffff;", None), ("bar.warp.sync 0xffffffff;", 0), ("bar.sync 0;", 0),
     ("fence.sc.cta;", 1)],
)  # fmt: skip
def test_a_sum_without_a_barrier(sync: str, notes: int | None) -> None:
    if notes is None:  # lanes outside the mask execute it: undefined
        assert judged(HALVES.format(sync=sync), 32).word == "findings"
    else:
        assert len(open_loads(HALVES.format(sync=sync))) == notes


def test_a_store_that_comes_too_early() -> None:
    """The other direction: a load that a later store of another thread may overtake."""
    body = "ld.relaxed.cta.shared.u32 %r10, [%r2];\n{sync}\n@%p0 st.relaxed.cta.shared.u32 [%r2], %r0;\n"
    assert len(open_loads(body.format(sync=""))) == 1
    assert not open_loads(body.format(sync="bar.sync 0;"))


def test_loads_that_wait_or_decide_are_no_chance() -> None:
    """A loop that polls ends in one way only; of a load behind which the kernel branches all values are looked at."""
    poll = (
        "@%p0 st.relaxed.gpu.global.u32 [%d0], 1;\n"
        "P: ld.relaxed.gpu.global.u32 %r10, [%d0];\nsetp.ne.u32 %p1, %r10, 1;\n@%p1 bra P;\n"
    )
    assert not open_loads(poll)
    decides = "@%p0 st.relaxed.cta.shared.u32 [%r2], 1;\nld.relaxed.cta.shared.u32 %r10, [%r2];\n"
    branch = "setp.ne.u32 %p1, %r10, 1;\n@%p1 bra N;\nst.shared.u32 [%r3+64], %r0;\nN:\n"
    notes = judged(decides + branch).notes
    assert not any("as the schedule has it" in note for note in notes)
