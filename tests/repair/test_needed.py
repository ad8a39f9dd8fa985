"""What `weaken` drops by the model as decided, and another reading of the documents needs."""

from __future__ import annotations

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.engine import Options
from memmodel.repair.edits import apply
from memmodel.repair.fix import fix
from memmodel.repair.weaken import weaken

READINGS = ROOT / "litmus" / "async" / "readings"
PIPELINES = ROOT / "litmus" / "async" / "pipelines"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        (
            READINGS / "D15-fenced.litmus",
            "P0, line 11: drop fence.proxy.async.shared::cta",
            "needless under the model as decided, needed under D15 fence",
        ),
        (
            READINGS / "R6-both-fences.litmus",
            "P0, line 10: drop fence.proxy.async",
            "needless under the model as decided, needed under D2 accessor",
        ),
        (
            READINGS / "R4-cluster.litmus",
            "P1, line 20: mbarrier.try_wait.parity.acquire.cluster",
            "enough under the model as decided, not under D6 issuer",
        ),
    ],
)
def test_a_change_that_a_reading_wants_undone_says_so(path, line, said):
    text = path.read_text()
    weaker = weaken(str(path), text, (api.load(DEFAULT_MODEL),), Options())
    worded = [edit for edit in weaker.changes if "as decided" in edit.what]
    assert len(worded) == 1
    assert worded[0].what.startswith(line) and worded[0].what.endswith(f"; {said}")
    reading = f"readings/{said.split(' under ')[-1].replace(' ', '-')}"
    before, without = (api.check(changed, reading) for changed in (text, apply(text, worded)))
    assert before.holds and not without.holds, "the reading itself says the same"


@pytest.mark.parametrize(
    ("name", "line", "reading"),
    [
        ("R6", "P0, line 11: drop fence.proxy.async", "D2 anywhere"),
        ("D12", "P0, line 13: drop fence.proxy.async.shared::cta", "D12 issue"),
    ],
)
def test_a_test_that_is_wrong_as_decided_keeps_what_makes_it_right_under_a_reading(name, line, reading):
    path = READINGS / f"{name}.litmus"
    text = path.read_text()
    weaker = weaken(str(path), text, (api.load(DEFAULT_MODEL),), Options())
    (edit,) = [edit for edit in weaker.changes if reading in edit.what]
    assert edit.what.startswith(line) and "needless under the model as decided, needed under " in edit.what
    words = [
        api.check(changed, f"readings/{reading.replace(' ', '-')}").answer.observation.value
        for changed in (text, apply(text, (edit,)))
    ]
    assert words == ["never", "sometimes"]


def test_what_no_reading_needs_is_dropped_without_a_word():
    path = READINGS / "R4-cluster.litmus"
    weaker = weaken(str(path), path.read_text(), (api.load(DEFAULT_MODEL),), Options())
    assert [("as decided" in edit.what) for edit in weaker.changes].count(False) == 3


def test_a_repair_says_under_which_readings_it_is_none():
    """A fence in front of the copy is not next to the write; one behind the write is."""
    path = READINGS / "R1-no-fence.litmus"
    fixed = fix(str(path), path.read_text(), (api.load(DEFAULT_MODEL),), Options())
    assert [repair.depends for repair in fixed.repairs] == [(), ("D2 accessor",)]
    for repair in fixed.repairs:
        assert api.check(repair.new, "readings/D2-accessor").answer.observation.value == (
            "sometimes" if repair.depends else "never"
        )
    both = (api.load(DEFAULT_MODEL), api.load("readings/D2-accessor"))
    assert not any(repair.depends for repair in fix(str(path), path.read_text(), both, Options()).repairs)


def test_with_another_model_no_reading_is_named():
    path = READINGS / "D15-fenced.litmus"
    weaker = weaken(str(path), path.read_text(), (api.load("readings/D2-accessor"),), Options())
    assert weaker.changes and not any("as decided" in edit.what for edit in weaker.changes)
