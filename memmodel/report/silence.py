"""What a model says nothing about, though the test is about it.

In: LitmusTest, Model. Out: warnings. Settled here: a model that refers neither to issued events nor to observed phases
has no rules for asynchronous operations and mbarriers, and whatever it allows about them means little.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.cat.syntax import Binary, Expr, Model, Name, Unary
from memmodel.errors import render
from memmodel.isa.lower import programs
from memmodel.isa.ops import Issue, Mbarrier
from memmodel.litmus.syntax import LitmusTest

ASYNCHRONOUS = frozenset({"iss", "mbarobs"})
"""Base relations without which no rule reaches an asynchronous event or an mbarrier."""


def silence(test: LitmusTest, model: Model) -> list[str]:
    """A warning if the test has asynchronous operations and the model no rules for them."""
    bodies = (*(definition.body for definition in model.definitions), *(check.body for check in model.checks))
    if any(name in ASYNCHRONOUS for body in bodies for name in _base_names(body)):
        return []
    for program in programs(test):
        for step in program.steps:
            if isinstance(step.op, Issue | Mbarrier):
                message = f"{model.name} has no rules for asynchronous operations: whatever they do, it allows"
                span = step.instruction.mnemonic_span or step.instruction.span
                return [render("warning", message, span, "ask ptx-9.3")]
    return []


def _base_names(expr: Expr) -> Iterator[str]:
    todo = [expr]
    while todo:
        match todo.pop():
            case Name(name, ref=None):
                yield name
            case Unary(operand=operand):
                todo.append(operand)
            case Binary(left=left, right=right):
                todo += [left, right]
