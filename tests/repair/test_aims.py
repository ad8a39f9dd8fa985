"""What a repair has to reach, the better first; and what the records of a search say."""

from __future__ import annotations

from memmodel.answer import Observation
from memmodel.litmus.syntax import Quantifier
from memmodel.repair.fix import _aims, wrong_words
from memmodel.repair.judge import AnswersOfTest, QuestionAnswer
from memmodel.repair.record import sync_record
from memmodel.repair.synchronizing.synchronize import Synchronized


def answered(observation: Observation, *findings: str, quantifier: Quantifier = Quantifier.EXISTS) -> AnswersOfTest:
    return AnswersOfTest((QuestionAnswer(quantifier, None, observation),), frozenset(findings), True)


BOTH = answered(Observation.SOMETIMES, "data-race")


def test_the_outcome_may_go_alone_and_so_may_the_findings() -> None:
    """Where nothing ends both, what is found without the outcome may stay, and nothing new may come; or the outcome may
    stay as it is.
    """
    whole, outcome, findings = _aims(BOTH)
    ended = {
        "both": answered(Observation.NEVER),
        "outcome": answered(Observation.NEVER, "data-race"),
        "outcome, with another finding": answered(Observation.NEVER, "hang"),
        "findings": answered(Observation.SOMETIMES),
    }
    reached = [{name for name, now in ended.items() if aim.reached(now)} for aim in (whole, outcome, findings)]
    assert reached == [{"both"}, {"both", "outcome"}, {"findings"}]


def test_an_outcome_that_always_comes_is_left() -> None:
    """Then only the findings are to end; an outcome that a test wants in each execution is another matter."""
    assert [aim.outcomes for aim in _aims(answered(Observation.ALWAYS, "data-race"))] == [False]
    every = answered(Observation.SOMETIMES, "data-race", quantifier=Quantifier.FORALL)
    assert [aim.outcomes for aim in _aims(every)] == [True, True, False]


def test_what_is_wrong_in_words() -> None:
    assert wrong_words(BOTH) == ("its outcome is allowed", "data-race")
    assert wrong_words(answered(Observation.NEVER, "hang")) == ("hang",)


def test_a_bound_that_says_nothing_is_no_number() -> None:
    for bound, written in ((2.5, 2.5), (float("inf"), None)):
        found = Synchronized("t", "old", "bare", None, (), (), 0.0, 4.0, bound, 3, 1)
        assert sync_record(found)["bound"] == written
