"""fix and weaken: what they return is right when judged again, and what they must not touch stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from memmodel import api
from memmodel.answer import Observation
from memmodel.engine import Options
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import apply
from memmodel.repair.fix import fix
from memmodel.repair.judge import judging, parse
from memmodel.repair.vocabulary import strengthenings
from memmodel.repair.weaken import weaken
from memmodel.source import Source
from memmodel.why.story import execution_of

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


SHIPPED = Path(__file__).parent.parent / "litmus"


@pytest.mark.parametrize(
    "name", ["async/proxy/A4", "async/mbarrier/G4-fence-after-arrive", "async/tcgen05/T5-no-fence"]
)
def test_what_an_execution_survives_is_no_repair(name: str) -> None:
    """Carrying an execution into a changed text says the same as judging that text."""
    path = SHIPPED / f"{name}.litmus"
    text, judge = path.read_text(), judging(str(path), MODELS, Options())
    asked, before = parse(str(path), text), judge(text)
    assert asked is not None and before is not None and before.against
    carry = Carry(text, lambda one: (parse(str(path), one) or (None,))[0])
    survived = ended = 0
    for edit in strengthenings(asked[0])[::5]:
        if not carry.legal(edit):
            continue
        for against in before.against:
            execution = execution_of(against.witness)
            assert execution is not None
            carried = carry.carried(execution, (), (edit,))
            if carried is None:
                continue
            if not survives(against, carried):
                ended += 1
                continue
            survived += 1
            now = judge(apply(text, (edit,)))
            assert now is not None
            bad = any(one[2] in (Observation.SOMETIMES, Observation.ALWAYS) for one in now.observations)
            assert bad if against.flag is None else against.flag in now.findings, edit.what
    assert survived


def test_a_hang_is_repaired_by_the_number_that_is_wrong() -> None:
    path = SHIPPED / "async/proxy/A17.litmus"
    found = fix(str(path), path.read_text(), MODELS, Options())
    assert found.wrong == ("hang",)
    assert [edit.what for edit in found.repairs[0].changes] == [
        "P1, line 14: 32 -> 16 in mbarrier.arrive.expect_tx.shared::cta.b64"
    ]


@pytest.mark.parametrize("name", ["async/proxy/A1", "async/mbarrier/G4", "async/tcgen05/T4"])
def test_what_weaken_returns_is_forbidden_by_both_engines(name: str) -> None:
    path = SHIPPED / f"{name}.litmus"
    found = weaken(str(path), path.read_text(), MODELS, Options())
    for engine in ("z3", "enumerate"):
        report = api.check(Source("t", found.new), engine=engine)
        assert report.answer.observation is Observation.NEVER and not report.answer.findings
