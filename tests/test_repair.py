"""fix and weaken: what they return is right when judged again, and what they must not touch stays."""

from __future__ import annotations

import pytest

from memmodel import api
from memmodel.answer import Observation
from memmodel.engine import Options
from memmodel.repair.fix import fix
from memmodel.repair.weaken import weaken
from memmodel.source import Source

HAND_OVER = """PTX hand-over
.global .u32 x = 0;
.global .u32 f = 0;
thread P0 @ cta 0, cluster 0, gpu 0 {{
    st.weak.global.u32 [x], 1;
    {fence}
    st.{store}.global.u32 [f], 1;
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
WAIT:
    ld.acquire.sys.global.u32 %r0, [f];
    setp.ne.u32 %p, %r0, 1;
    @%p bra WAIT;
    ld.weak.global.u32 %r1, [x];
}}
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
BROKEN = HAND_OVER.format(fence="mov.u32 %n, 0;", store="relaxed.sys")
GENEROUS = HAND_OVER.format(fence="fence.sc.sys;", store="release.sys")
MODELS = (api.load("ptx-9.3"),)


def test_a_repair_is_right_and_keeps_every_access() -> None:
    found = fix("t", BROKEN, MODELS, Options())
    assert found.wrong == ("its outcome is allowed", "data-race") and found.repairs
    for repair in found.repairs:
        report = api.check(Source("t", repair.new))
        assert report.answer.observation is Observation.NEVER and not report.answer.findings
        assert all(line in repair.new for line in ("[x], 1;", "[f], 1;", "%r0, [f];", "%r1, [x];"))
    assert [one.cost for one in found.repairs] == sorted(one.cost for one in found.repairs)


def test_nothing_is_repaired_where_nothing_is_wrong() -> None:
    found = fix("t", GENEROUS, MODELS, Options())
    assert not found.wrong and not found.repairs


def test_weaken_drops_the_fence_and_narrows_the_scopes() -> None:
    found = weaken("t", GENEROUS, MODELS, Options())
    assert "fence" not in found.new and ".sys" not in found.new and found.best
    report = api.check(Source("t", found.new))
    assert report.answer.observation is Observation.NEVER and not report.answer.findings


@pytest.mark.parametrize("text", [BROKEN])
def test_weaken_adds_no_outcome(text: str) -> None:
    found = weaken("t", text, MODELS, Options())
    before, after = (
        {state.values for state in api.outcomes(Source("t", one)).states} for one in (found.old, found.new)
    )
    assert after <= before
