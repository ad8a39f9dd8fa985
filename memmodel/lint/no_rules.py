"""What a model says nothing about, though the test is about it.

In: LoweredTest, Model. Out: warnings. Settled here: a model that refers neither to issued events nor to observed phases
has no rules for asynchronous operations and mbarriers, and whatever it allows about them means little.
"""

from __future__ import annotations

from memmodel.cat.analysis import names_in
from memmodel.cat.syntax import Model
from memmodel.errors import render
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import IssueAsync, OnObject

ASYNCHRONOUS = frozenset({"iss", "mbarobs"})
"""Base relations without which no rule reaches an asynchronous event or an mbarrier."""


def without_rules(lowered: LoweredTest, model: Model) -> list[str]:
    """A warning if the test has asynchronous operations and the model no rules for them."""
    bodies = (*(definition.body for definition in model.definitions), *(check.body for check in model.checks))
    if any(name.ref is None and name.name in ASYNCHRONOUS for body in bodies for name in names_in(body)):
        return []
    for program in lowered.programs:
        for step in program.steps:
            if isinstance(step.op, IssueAsync | OnObject):
                message = f"{model.name} has no rules for asynchronous operations: whatever they do, it allows"
                span = step.instruction.mnemonic_span or step.instruction.span
                return [render("warning", message, span, "ask ptx-9.3")]
    return []
