"""The checks of the default model and of its readings, in one graph: what they have in common is evaluated once.

In: nothing. Out: `ReadingsGraph`. A reading differs from the default model in a few definitions, so that all of them
together have four times the nodes of one. The graph is kept on disk, where models are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.evaluate.graph import ExpressionGraph, StoredGraph, StoredNodes, parts_of
from memmodel.cat.kept import kept_text
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model


@dataclass(frozen=True, slots=True)
class ReadingCheck:
    """A check of a model. `node`: its body. The rest is as in `Check`."""

    name: str
    test: str
    negated: bool
    flag: bool
    node: int


@dataclass(frozen=True, slots=True)
class ReadingsGraph:
    """`checks`: of the default model, and of each reading by a name such as `D2 accessor`."""

    graph: StoredGraph
    checks: dict[str, tuple[ReadingCheck, ...]]

    @property
    def readings(self) -> list[str]:
        """All but the default model, in the order of the decisions."""
        return [name for name in self.checks if name != DEFAULT_MODEL]


@cache
def readings_graph() -> ReadingsGraph:
    """The graph of the shipped models. Raises InputError where one of their files cannot be read."""
    try:
        return _restored(kept_text("readings", _written))
    except (ValueError, TypeError, AttributeError):  # what is on disk is not what was written
        return _restored(_written())


def _restored(text: str) -> ReadingsGraph:
    parts, checks = json.loads(text)
    return ReadingsGraph(
        StoredGraph(StoredNodes(parts)),
        {name: tuple(ReadingCheck(*check) for check in of) for name, of in checks.items()},
    )


def _written() -> str:
    """The graph as JSON, from the models."""
    from memmodel.cat.decisions import decisions

    models = {DEFAULT_MODEL: DEFAULT_MODEL}
    for decision in decisions():
        models |= {f"{decision.number} {side.name}": side.model for side in decision.readings if side.model is not None}
    graph = ExpressionGraph()
    checks = {name: list(map(astuple, _checks(load_model(model), graph))) for name, model in models.items()}
    return json.dumps((parts_of(graph), checks))


def _checks(model: Model, graph: ExpressionGraph) -> Iterator[ReadingCheck]:
    defined = graph.define(model.definitions)
    for check in model.checks:
        yield ReadingCheck(check.name, check.test, check.negated, check.flag, graph.node(check.body, defined))
