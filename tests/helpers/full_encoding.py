"""Every cell of every relation of a model as a formula: what `memmodel.refine` is compared with.

In: Model, BaseFormulas. Out: `ModelFormulas`. Definitions are evaluated when a check first needs them. The formulas of
a `let rec` group are exactly its least fixpoint. Cells that the program settles are found by iteration on constants.
The others are unfolded within each cyclic group of cells as often as the group has cells, because no shortest
derivation is deeper.
"""

from __future__ import annotations

from itertools import combinations

from memmodel.base.kinds import Kind
from memmodel.base.logic import FALSE
from memmodel.cat.syntax import Binary, Check, Definition, Empty, Expr, Model, Name, Unary
from memmodel.encode.base import BaseFormulas
from memmodel.encode.relations import Rel, Row
from memmodel.errors import InternalError

Value = Row | Rel


class ModelFormulas:
    """A model over one event graph."""

    def __init__(self, model: Model, base: BaseFormulas) -> None:
        self.model = model
        self.base = base
        self.algebra = base.algebra
        self.logic = base.graph.logic
        self._known: dict[int, Value] = {}
        self._shared: dict[Expr, Value] = {}

    # ---- checks --------------------------------------------------------------------------------------------------

    def holds(self, check: Check) -> int:
        """The formula that says a check is satisfied."""
        broken = self.violated(check)
        return broken if check.negated else -broken

    def violated(self, check: Check) -> int:
        """The formula that says the body is not acyclic, not irreflexive, or not empty."""
        if check.test == "irreflexive":
            return self.logic.disj(self._diagonal(check.body))
        body = self.evaluate(check.body)
        if check.test == "acyclic":
            return self.algebra.cyclic(_rel(body))
        return self.logic.disj(self.cells(check.body).values())

    def cells(self, expr: Expr) -> dict[tuple[int, int], int]:
        """(a, b) -> formula for a relation; (a, a) -> formula for a set."""
        value = self.evaluate(expr)
        if isinstance(value, dict):
            return {(a, a): formula for a, formula in value.items()}
        return {(a, b): formula for a, row in enumerate(value) for b, formula in row.items()}

    def _diagonal(self, expr: Expr) -> list[int]:
        """Formulas of the pairs (a, a): a composition needs no more than these, a union is taken apart."""
        if isinstance(expr, Binary) and expr.op == "|":
            return self._diagonal(expr.left) + self._diagonal(expr.right)
        if isinstance(expr, Binary) and expr.op == ";":
            left, right = _rel(self.evaluate(expr.left)), _rel(self.evaluate(expr.right))
            both = self.logic.both
            return [
                both(formula, right[b][a]) for a, row in enumerate(left) for b, formula in row.items() if a in right[b]
            ]
        return [row[a] for a, row in enumerate(_rel(self.evaluate(expr))) if a in row]

    # ---- expressions ---------------------------------------------------------------------------------------------

    def named(self, name: str) -> Rel | None:
        """The last definition of a relation of that name, or None."""
        for index in range(len(self.model.definitions) - 1, -1, -1):
            definition = self.model.definitions[index]
            if definition.name == name and definition.kind is Kind.RELATION:
                return _rel(self._definition(index))
        return None

    def evaluate(self, expr: Expr) -> Value:
        """The matrix (or row, for a set) of an expression."""
        if isinstance(expr, Name):
            if expr.ref is not None:
                return self._definition(expr.ref)
            if expr.kind is Kind.SET:
                return self.base.set(expr.name)
            return self.base.relation(expr.name)
        if isinstance(expr, Empty):
            return {} if expr.kind is Kind.SET else self.algebra.empty()
        if expr not in self._shared:
            self._shared[expr] = self._compound(expr)
        return self._shared[expr]

    def _compound(self, expr: Binary | Unary) -> Value:
        algebra = self.algebra
        if isinstance(expr, Binary):
            left, right = self.evaluate(expr.left), self.evaluate(expr.right)
            if expr.op == "*":
                return algebra.product(_row(left), _row(right))
            if expr.op == ";":
                return algebra.sequence(_rel(left), _rel(right))
            if expr.kind is Kind.SET:
                pick = {"|": algebra.row_or, "&": algebra.row_and, "\\": algebra.row_minus}[expr.op]
                return pick(_row(left), _row(right))
            join = {"|": algebra.union, "&": algebra.intersection, "\\": algebra.difference}[expr.op]
            return join(_rel(left), _rel(right))
        operand = self.evaluate(expr.operand)
        if expr.op == "~":
            every = self.base.set("_")
            if expr.kind is Kind.SET:
                return algebra.row_minus(every, _row(operand))
            return algebra.difference(algebra.product(every, every), _rel(operand))
        if expr.op == "[]":
            return algebra.identity(_row(operand))
        if expr.op == "domain":
            return algebra.domain(_rel(operand))
        if expr.op == "range":
            return algebra.range(_rel(operand))
        rel = _rel(operand)
        if expr.op == "^-1":
            return algebra.inverse(rel)
        if expr.op == "+":
            return algebra.closure(rel)
        whole = algebra.identity(self.base.set("_"))
        if expr.op == "?":
            return algebra.union(rel, whole)
        if expr.op == "*":
            return algebra.union(algebra.closure(rel), whole)
        raise InternalError(f"operator {expr.op!r} has no formula")

    # ---- definitions ---------------------------------------------------------------------------------------------

    def _definition(self, index: int) -> Value:
        if index not in self._known:
            definition = self.model.definitions[index]
            if definition.order is not None:
                self._known[index] = self._order(definition)
            elif definition.group is None:
                self._known[index] = self.evaluate(definition.body)
            else:
                self._fixpoint([i for i, d in enumerate(self.model.definitions) if d.group == definition.group])
        return self._known[index]

    def orders(self) -> dict[int, Rel]:
        """The total orders that the checks speak of, by the index of their definition."""
        chosen = (n for n, one in enumerate(self.model.definitions) if one.order is not None)
        return {n: _rel(self._known[n]) for n in chosen if n in self._known}

    def _order(self, definition: Definition) -> Rel:
        """Some strict total order on a set: a variable for each two of its events, and no three in a circle."""
        members = _row(self.evaluate(definition.body))
        both, require, rows = self.logic.both, self.logic.require, self.algebra.empty()
        events = sorted(members)
        for at, a in enumerate(events):
            for b in events[at + 1 :]:
                first = self.logic.var(f"{definition.name}(e{a},e{b})")
                rows[a][b] = both(both(members[a], members[b]), first)
                rows[b][a] = both(both(members[a], members[b]), -first)
        for a, b, c in combinations(events, 3):
            require(-rows[a][b], -rows[b][c], -rows[c][a])
            require(-rows[a][c], -rows[c][b], -rows[b][a])
        return [{b: cell for b, cell in row.items() if cell != FALSE} for row in rows]

    def _fixpoint(self, group: list[int]) -> None:
        """Least fixpoint of mutually recursive definitions."""
        definitions = [self.model.definitions[i] for i in group]
        self._must_not_be_shared(definitions)
        for index, definition in zip(group, definitions, strict=True):
            self._known[index] = {} if definition.kind is Kind.SET else self.algebra.empty()
        # The number of cells that may hold bounds the depth of a shortest derivation, so this many rounds suffice.
        while True:
            before = [self._known[i] for i in group]
            after = self._round(group, definitions)
            if after == before:
                return
            self._set(group, after)
            if [_support(value) for value in after] == [_support(value) for value in before]:
                break
        self._unfold(group, definitions)

    def _unfold(self, group: list[int], definitions: list[Definition]) -> None:
        """The cells are known; go on until no formula changes, or as often as there are undetermined cells."""
        cells = sum(len(_support(self._known[i])) for i in group)
        for _ in range(cells):
            before = [self._known[i] for i in group]
            after = self._round(group, definitions)
            if after == before:
                return
            self._set(group, after)

    def _round(self, group: list[int], definitions: list[Definition]) -> list[Value]:
        saved = dict(self._shared)
        values = [self.evaluate(definition.body) for definition in definitions]
        self._shared = saved  # bodies mention names whose value changes, so nothing of this round is kept
        return values

    def _set(self, group: list[int], values: list[Value]) -> None:
        for index, value in zip(group, values, strict=True):
            self._known[index] = value

    def _must_not_be_shared(self, definitions: list[Definition]) -> None:
        for definition in definitions:
            self._shared.pop(definition.body, None)


def _support(value: Value) -> set[tuple[int, int]]:
    if isinstance(value, dict):
        return {(a, a) for a, formula in value.items() if formula != FALSE}
    return {(a, b) for a, row in enumerate(value) for b, formula in row.items() if formula != FALSE}


def _rel(value: Value) -> Rel:
    if isinstance(value, dict):
        raise InternalError("a set stands where a relation is needed")
    return value


def _row(value: Value) -> Row:
    if isinstance(value, dict):
        return value
    raise InternalError("a relation stands where a set is needed")
