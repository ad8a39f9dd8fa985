"""What the names and expressions of a model are on one execution, worked out as they are asked for.

In: a model, an execution. Out: `Values`. Settled here: what a `let rec` is on the way to its fixpoint, so that one pair
of events in it can be traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memmodel.base.identity import by_identity
from memmodel.base.rows import Rows, inverse, total_order
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node, graph_of
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set, reported
from memmodel.cat.syntax import Check, Expr, Model
from memmodel.concrete.execution import Execution
from memmodel.referee.evaluate import Ranks


class RankedRows(RowAlgebra):
    """The base sets and relations of an execution, and the total orders that the model chooses in it."""

    def __init__(self, execution: Execution, ranks: Ranks) -> None:
        super().__init__(len(execution.events))
        self._execution, self._ranks = execution, ranks

    def base(self, node: Node) -> Value:
        return self._execution.set(node.name) if node.is_set else self._execution.relation(node.name)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        ranks = self._ranks.get(node.place, [0] * self.count)
        return total_order(as_set(over), inverse(as_relation(extends)), ranks)


class ModelNodes:
    """The expressions of a model as nodes of one graph. `last`: the number of the last definition of each name."""

    def __init__(self, model: Model) -> None:
        self.definitions = graph_of(model.definitions)
        self.last = {definition.name: number for number, definition in enumerate(model.definitions)}
        self._known: dict[int, tuple[Expr, int]] = {}  # the expression stays, so that no other one gets its identity

    def node(self, expr: Expr) -> int:
        """The node of an expression of the model."""
        if id(expr) not in self._known:
            self._known[id(expr)] = expr, self.definitions.node(expr)
        return self._known[id(expr)][1]


_nodes_of = by_identity(16)(ModelNodes)


class Values:
    """Definitions and expressions on demand. `stage`: values of some nodes, in place of what they are."""

    def __init__(
        self, model: Model, execution: Execution, ranks: Ranks, stage: Mapping[int, Value] | None = None
    ) -> None:
        self.model = model
        self.definitions = model.definitions
        self.execution = execution
        self.ranks = ranks
        self.count = len(execution.events)
        self._nodes = _nodes_of(model)
        self._rows = RankedRows(execution, ranks)
        self._evaluator = Evaluator(self._nodes.definitions.graph, self._rows, (stage or {}).get)

    def value(self, expr: Expr) -> Value:
        """The set or relation that an expression denotes."""
        return self._evaluator.value(self._nodes.node(expr))

    def rows(self, expr: Expr) -> Rows:
        """A relation."""
        return as_relation(self.value(expr))

    def defined(self, number: int) -> Value:
        """The value of a definition."""
        return self._evaluator.value(self._nodes.definitions.defined[number])

    def relation(self, name: str) -> Rows | None:
        """The model's last definition of a name, else a base relation; None if there is no such relation."""
        number = self.index(name)
        try:
            value = self.execution.relation(name) if number is None else self.defined(number)
        except KeyError:
            return None
        return None if isinstance(value, int) else value

    def index(self, name: str) -> int | None:
        """The number of the model's last definition of a name."""
        return self._nodes.last.get(name)

    def holds(self, check: Check) -> bool:
        """True if what the check says is true of this execution."""
        return self._rows.fails(check.kind, self.value(check.body)) is check.negated

    def reported(self, check: Check) -> list[tuple[int, int]]:
        """The pairs that a flag speaks of if it is raised."""
        return reported(check, self.value(check.body))

    def violated(self) -> Check | None:
        """The first axiom that the execution breaks."""
        return next((check for check in self.model.axioms if not self.holds(check)), None)

    def stages(self, number: int) -> Iterator[Values]:
        """The values of the execution at each stage of a `let rec`, from empty definitions to the fixpoint."""
        nodes, defined = self._evaluator.nodes, self._nodes.definitions.defined
        recursion = nodes[defined[number]].operands[0]
        members = [node for node in dict.fromkeys(defined) if nodes[node].operands == (recursion,)]
        final = self._evaluator.members(recursion)
        stage = tuple(self._rows.empty(isinstance(value, int)) for value in final)
        while True:
            values = {node: stage[nodes[node].place] for node in members if nodes[node].op == "member"}
            yield Values(self.model, self.execution, self.ranks, values)
            if stage == final:
                return
            stage = self._evaluator.bodies(recursion, stage)
