"""The algebra of formulas: every cell of a set or a relation is the formula that says when it is there.

In: Logic, when each event runs, the meaning of base names. Out: `FormulaAlgebra`, over which the evaluator works. A set
is a row, event -> formula, a relation a list of rows; a missing cell is FALSE. The search for programs asks it where a
whole model has to be a formula; for one test, `refine` asks only for what a candidate needs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.evaluate.graph import Node
from memmodel.encode.relations import Rel, Row, closure, cyclic, no_pairs
from memmodel.errors import InternalError

FormulaValue = Row | Rel


class FormulaAlgebra(Algebra[FormulaValue]):
    """Operations on rows and relations. `runs`: when each event is there; `read`: what a base name means.

    `deepest`: a `let rec` is unfolded at most this many times; `unsettled` is then the formula that says that one is
    deeper.
    """

    def __init__(
        self, logic: Logic, runs: list[int], read: Callable[[Node], FormulaValue], deepest: int | None = None
    ) -> None:
        self.logic = logic
        self.count = len(runs)
        self.everybody = {event: formula for event, formula in enumerate(runs) if formula != FALSE}
        self.deepest = deepest
        self.unsettled = FALSE
        self._read = read

    def base(self, node: Node) -> FormulaValue:
        return self._read(node)

    def order(self, node: Node, over: FormulaValue, extends: FormulaValue) -> Rel:
        """Some strict total order on a set: a variable for each two of its events, and no three in a circle."""
        members = _row(over)
        both, require, rows = self.logic.both, self.logic.require, no_pairs(self.count)
        events = sorted(members)
        for at, a in enumerate(events):
            for b in events[at + 1 :]:
                first = self.logic.var(f"order{node.place}(e{a},e{b})")
                rows[a][b] = both(both(members[a], members[b]), first)
                rows[b][a] = both(both(members[a], members[b]), -first)
        for a, b, c in combinations(events, 3):
            require(-rows[a][b], -rows[b][c], -rows[c][a])
            require(-rows[a][c], -rows[c][b], -rows[b][a])
        return [kept(row) for row in rows]

    def empty(self, is_set: bool) -> FormulaValue:
        return {} if is_set else no_pairs(self.count)

    def is_empty(self, value: FormulaValue) -> bool:
        return not value if isinstance(value, dict) else not any(value)

    def _pointwise(self, operation: Callable[[Row, Row], Row], left: FormulaValue, right: FormulaValue) -> FormulaValue:
        if isinstance(left, dict):
            return operation(left, _row(right))
        return [operation(a, b) for a, b in zip(left, _rel(right), strict=True)]

    def union(self, left: FormulaValue, right: FormulaValue) -> FormulaValue:
        either = self.logic.either
        return self._pointwise(
            lambda a, b: {key: either(a.get(key, FALSE), b.get(key, FALSE)) for key in {**a, **b}}, left, right
        )

    def intersection(self, left: FormulaValue, right: FormulaValue) -> FormulaValue:
        both = self.logic.both
        return self._pointwise(lambda a, b: kept({key: both(a[key], b[key]) for key in a if key in b}), left, right)

    def difference(self, left: FormulaValue, right: FormulaValue) -> FormulaValue:
        both = self.logic.both
        return self._pointwise(lambda a, b: kept({key: both(a[key], -b.get(key, FALSE)) for key in a}), left, right)

    def complement(self, value: FormulaValue, is_set: bool) -> FormulaValue:
        every = self.everybody
        return self.difference(every if is_set else self.product(every, every), value)

    def compose(self, left: FormulaValue, right: FormulaValue) -> Rel:
        chained, composed = self.chained, no_pairs(self.count)
        for a, row in enumerate(_rel(left)):
            parts: dict[int, list[int]] = {}
            for middle, first in row.items():
                for b, second in _rel(right)[middle].items():
                    parts.setdefault(b, []).append(chained(first, middle, second))
            composed[a] = kept({b: self._any(cells) for b, cells in parts.items()})
        return composed

    def chained(self, first: int, middle: int, second: int) -> int:
        """The formula that two pairs hold, (a, middle) and (middle, b)."""
        return self.logic.both(first, second)

    def from_sources(self, sources: FormulaValue, relation: FormulaValue) -> Rel:
        return self.compose(self.identity(sources), relation)

    def to_targets(self, relation: FormulaValue, targets: FormulaValue) -> Rel:
        return self.compose(relation, self.identity(targets))

    def _any(self, cells: list[int]) -> int:
        return TRUE if TRUE in cells else self.logic.disj(cells)

    def inverse(self, relation: FormulaValue) -> Rel:
        turned = no_pairs(self.count)
        for a, row in enumerate(_rel(relation)):
            for b, formula in row.items():
                turned[b][a] = formula
        return turned

    def product(self, left: FormulaValue, right: FormulaValue) -> Rel:
        both, rows, targets = self.logic.both, no_pairs(self.count), _row(right)
        for a, first in _row(left).items():
            rows[a] = kept({b: both(first, second) for b, second in targets.items()})
        return rows

    def identity(self, events: FormulaValue) -> Rel:
        return [{a: _row(events)[a]} if a in events else {} for a in range(self.count)]

    def optional(self, relation: FormulaValue) -> FormulaValue:
        return self.union(relation, self.identity(self.everybody))

    def closure(self, relation: FormulaValue) -> Rel:
        return closure(self.logic, _rel(relation))

    def domain(self, relation: FormulaValue) -> Row:
        return {a: self._any(list(row.values())) for a, row in enumerate(_rel(relation)) if row}

    def range(self, relation: FormulaValue) -> Row:
        return self.domain(self.inverse(relation))

    def least(
        self, start: tuple[FormulaValue, ...], step: Callable[[tuple[FormulaValue, ...]], tuple[FormulaValue, ...]]
    ) -> tuple[FormulaValue, ...]:
        values = start
        while (after := step(values)) != values:
            known = [_cells(value) for value in after] == [_cells(value) for value in values]
            values = after
            if known:  # which cells may hold; their formulas have still to be unfolded
                break
        most = sum(len(_cells(value)) for value in values)
        for _ in range(most if self.deepest is None else min(most, self.deepest)):
            values, before = step(values), values
            if values == before:
                return values
        if self.deepest is not None and self.deepest < most:
            for value, after_it in zip(values, step(values), strict=True):
                more = self.difference(after_it, value)
                cells = more.values() if isinstance(more, dict) else [f for row in more for f in row.values()]
                self.unsettled = self.logic.disj((self.unsettled, *cells))
        return values

    def fails(self, test: str, value: FormulaValue) -> int:
        """The formula that says that a value is not empty, not irreflexive, or not acyclic, as the test asks."""
        return self.logic.disj(self.failing(test, value).values())

    def failing(self, test: str, value: FormulaValue) -> dict[tuple[int, ...], int]:
        """The same in parts: for each event or pair that should not be there, the formula that says that it is. A cycle
        has no such place, and is one part."""
        if test == "acyclic":
            return {(): cyclic(self.logic, _rel(value))}
        if isinstance(value, dict):
            return {(a,): formula for a, formula in value.items()}
        if test == "irreflexive":
            return {(a,): row[a] for a, row in enumerate(value) if a in row}
        return {(a, b): formula for a, row in enumerate(value) for b, formula in row.items()}


def kept(row: Row) -> Row:
    return {key: formula for key, formula in row.items() if formula != FALSE}


def _cells(value: FormulaValue) -> set[tuple[int, int]]:
    if isinstance(value, dict):
        return {(a, a) for a in value}
    return {(a, b) for a, row in enumerate(value) for b in row}


def _rel(value: FormulaValue) -> Rel:
    if isinstance(value, dict):
        raise InternalError("a set stands where a relation is needed")
    return value


def _row(value: FormulaValue) -> Row:
    if isinstance(value, dict):
        return value
    raise InternalError("a relation stands where a set is needed")
