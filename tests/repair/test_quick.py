"""What is soon said of a carried execution is what plain evaluation says of it (`repair.searching.quick`)."""

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.repair import carry
from memmodel.repair.fix import fix
from memmodel.repair.judge import Against
from memmodel.repair.searching import trials
from memmodel.why.values import Values

LITMUS = ROOT / "litmus"


@pytest.mark.parametrize(
    "name", ["shapes/SB+acq_rel.gpu@two-ctas", "async/mbarrier/G15-no-acquire", "async/pipelines/scheduler-relaxed"]
)
def test_both_say_the_same_of_every_execution_that_is_asked_about(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: set[bool] = set()

    def both(against: Against, execution: Execution) -> bool:
        soon, ground = carry.survives(against, execution), against.witness.ground
        assert ground is not None
        values = (Values(against.model, one, ground.ranks) for one in carry._ordered(execution))
        assert soon is any(carry._still_bad(against, one) for one in values)
        told.add(soon)
        return soon

    monkeypatch.setattr(trials, "survives", both)
    fix(name, (LITMUS / f"{name}.litmus").read_text(), (api.load(api.DEFAULT_MODEL),), Options())
    assert told == {True, False}
