"""Which pairs of accesses are judged: those of two lanes stand for those of a warp."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

from memmodel.kernel.conflicts.conflicts import Conflicts

STORES = {
    "the same value": "st.shared.u32 [s], 7;",
    "another value in one lane": "selp.u32 %r10, 1, 7, %p;\nst.shared.u32 [s], %r10;",
    "another value in one lane of another warp": "selp.u32 %r10, 1, 7, %q;\nst.shared.u32 [s], %r10;",
    "a value and a reader": "st.shared.u32 [s], 7;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [s];",
    "one store and many readers": "@%p st.shared.u32 [s], 7;\nld.shared.u32 %r10, [s];",
    "a store behind a barrier": "st.shared.u32 [s], 7;\nbar.sync 0;\n@%p st.shared.u32 [s], 8;",
    "a value of each lane, twice": "st.shared.u32 [s], %r0;\n@%q st.shared.u32 [s], %r1;",
    "bytes that overlap in part": "st.shared.u32 [s], 0;\n@%p st.shared.u8 [s+1], 0;\n@%q st.shared.u16 [s+2], 1;",
    "a flag and who looks at it": "@%p st.relaxed.cta.shared.u32 [s], 1;\n@!%p st.shared.u32 [s], 1;",
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_two_lanes_stand_for_those_that_do_the_same(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = ".reg .pred %p, %q;\nsetp.eq.u32 %p, %r0, 17;\nsetp.eq.u32 %q, %r0, 49;\n" + store

    def findings() -> set[tuple[object, ...]]:
        verdict = judged(named)
        return {(finding.key, finding.count, finding.message, finding.reason) for finding in verdict.findings} | {
            (verdict.word,)
        }

    few = findings()
    monkeypatch.setattr(Conflicts, "_enough_of_warps", lambda self, members, stored: members)
    assert findings() == few
