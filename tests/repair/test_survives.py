"""What is said of an execution that was carried into a changed text is what the referee says of it."""

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import HANG
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.referee.evaluate import Evaluation, evaluate
from memmodel.repair import carry
from memmodel.repair.fix import fix
from memmodel.repair.judge import TextCounterexample
from memmodel.repair.searching import trials

LITMUS = ROOT / "litmus"


def still_bad(judged: Evaluation, flag: str | None) -> bool:
    if not judged.consistent:
        return False
    if flag == HANG:  # where something is undefined, it is no hang
        return not any(raised.startswith("undefined") for raised in judged.flags)
    return flag is None or flag in judged.flags


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "name", ["shapes/SB+acq_rel.gpu@two-ctas", "async/mbarrier/G15-no-acquire", "async/pipelines/scheduler-relaxed"]
)
def test_both_say_the_same_of_every_execution_that_is_asked_about(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: set[bool] = set()

    def both(counterexample: TextCounterexample, execution: Execution) -> bool:
        soon, evaluated = carry.survives(counterexample, execution), counterexample.witness.evaluated
        assert evaluated is not None
        judged = (evaluate(counterexample.model, one, evaluated.ranks) for one in carry._ordered(execution))
        assert soon is any(still_bad(one, counterexample.flag) for one in judged)
        told.add(soon)
        return soon

    monkeypatch.setattr(trials, "survives", both)
    fix(name, (LITMUS / f"{name}.litmus").read_text(), (api.load(api.DEFAULT_MODEL),), Options())
    assert told == {True, False}
