"""No term of Z3 is made where a spent budget may be raised: between its making and the increase of its reference count
the exception would leave a term that is freed too early, and with it broken memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Budget, Observation
from memmodel.limits import Limits
from memmodel.limits.current import CURRENT
from memmodel.solve.cheapest import Cheapest

COUNTED = ("inc_ref", "solver_inc_ref", "optimize_inc_ref", "model_inc_ref", "params_inc_ref", "ast_vector_inc_ref")


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of Z3 that increase a reference count where an exception may come; the first one is `called`."""
    seen: list[str] = []

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            limits = None if CURRENT.limits is None else CURRENT.limits()
            if limits is None or limits._interrupt is None:
                seen.append(name)
            elif "called" not in seen:
                seen.insert(0, "called")
            return function(*arguments)

        return called

    for name in COUNTED:
        monkeypatch.setattr(z3.z3, f"Z3_{name}", noting(name, getattr(z3.z3, f"Z3_{name}")))
    return seen


def test_the_cheapest_choice(unguarded: list[str]) -> None:
    with Limits(Budget()):
        cheapest = Cheapest([1.0, 2.5, 0.0, 3.0])
        cheapest.forbid_pairs([0, 2])
        cheapest.require([0, 1], [2])
        cheapest.require([2])
        assert cheapest.choice(60.0) == frozenset({1, 2})
        cheapest.require([])
        assert cheapest.choice(60.0) is None
    assert unguarded == ["called"]


def test_a_question(unguarded: list[str]) -> None:
    with Limits(Budget()):
        report = api.check((ROOT / "litmus/shapes/MP+rel.cta+acq.cta@two-ctas.litmus").read_text(), engine="z3")
    assert report.answer.observation is Observation.SOMETIMES and unguarded == ["called"]
