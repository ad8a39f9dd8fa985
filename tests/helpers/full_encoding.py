"""Every cell of every relation of a model as a formula: what `memmodel.refine` is compared with.

In: Model, BaseFormulas. Out: `ModelFormulas`: the shared evaluator over formulas (`memmodel.encode.algebra`). The
formulas of a `let rec` are exactly its least fixpoint: cells are unfolded as often as the group has cells that may
hold, because no shortest derivation is deeper.
"""

from __future__ import annotations

from memmodel.base.relations import DECIDED, RELATION_ROWS
from memmodel.base.rows import bits
from memmodel.base.sets import SET_ROWS
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node, graph_of
from memmodel.cat.syntax import Check, Model
from memmodel.encode.algebra import FormulaAlgebra, FormulaValue, kept
from memmodel.encode.base import BaseFormulas


class ModelFormulas:
    """A model over one event graph."""

    def __init__(self, model: Model, base: BaseFormulas) -> None:
        events, runs, both = base.graph.events, base.runs, base.graph.logic.both

        def read(node: Node) -> FormulaValue:
            if node.is_set:
                row = SET_ROWS[node.name]
                if row.holds is None:
                    return base.set(node.name)
                return {e.uid: runs[e.uid] for e in events if row.holds(e.label) and row.has(e.point.cell)}
            if node.name in DECIDED:
                return base.relation(node.name)
            rows = RELATION_ROWS[node.name].rows([event.point for event in events])
            return [kept({b: both(runs[a], runs[b]) for b in bits(row)}) for a, row in enumerate(rows)]

        self.algebra = FormulaAlgebra(base.graph.logic, base.runs, read)
        self._graph = graph_of(model.definitions)
        self._evaluator = Evaluator(self._graph.graph, self.algebra)

    def holds(self, check: Check) -> int:
        """The formula that says a check is satisfied."""
        broken = self.algebra.fails(check.kind, self._evaluator.value(self._graph.node(check.body)))
        return broken if check.negated else -broken
