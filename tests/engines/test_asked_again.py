"""What was asked before in the same process changes no answer, nor the execution that shows it."""

from __future__ import annotations

from helpers.places import ROOT

from memmodel import api


def test_a_question_that_is_asked_again_has_the_same_execution_and_reason():
    """Its lock is polled in loops, and more than one execution shows the outcome."""
    path = ROOT / "litmus" / "control" / "lock+cta-scope.litmus"
    first = api.explain(path).stories
    assert first and all(api.explain(path).stories == first for _ in range(2))
