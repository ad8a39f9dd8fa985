"""What a model says nothing about, though the test is about it.

In: LoweredTest, Model. Out: warnings. Settled here: a model that refers neither to issued events nor to observed phases
has no rules for asynchronous operations and mbarriers, and whatever it allows about them means little; one that does
not refer to the ends of grids has none for griddepcontrol.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import BETWEEN_GRIDS
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.analysis import base_names
from memmodel.cat.syntax import Model
from memmodel.errors import render
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier, IssueAsync, OnObject, Op

ASYNCHRONOUS = frozenset({"iss", "mbarobs"})
"""Base relations without which no rule reaches an asynchronous event or an mbarrier."""

BETWEEN = frozenset({"ENDS", "GRIDEND"})
"""Base sets without which no rule reaches what lies between grids."""


def without_rules(lowered: LoweredTest, model: Model) -> list[str]:
    """Warnings if the test has operations of a kind that the model has no rules for, one for each kind."""
    named = base_names(model)
    warnings = []
    if not named & ASYNCHRONOUS:
        what = "asynchronous operations: whatever they do, it allows"
        warnings.append(_first(lowered, _is_asynchronous, f"{model.name} has no rules for {what}"))
    if not named & BETWEEN:
        what = "grids that depend on one another"
        warnings.append(_first(lowered, _is_between_grids, f"{model.name} has no rules for {what}"))
    return [warning for warning in warnings if warning is not None]


def _first(lowered: LoweredTest, concerned: Callable[[Op], bool], message: str) -> str | None:
    """The warning at the first step that it is about, if there is one."""
    steps = (step for program in lowered.programs for step in program.steps)
    step = next((step for step in steps if concerned(step.op)), None)
    if step is None:
        return None
    span = step.instruction.mnemonic_span or step.instruction.span
    return render("warning", message, span, f"ask {DEFAULT_MODEL}")


def _is_asynchronous(op: Op) -> bool:
    return isinstance(op, IssueAsync | OnObject)


def _is_between_grids(op: Op) -> bool:
    return isinstance(op, AtBarrier) and op.label.domain in BETWEEN_GRIDS
