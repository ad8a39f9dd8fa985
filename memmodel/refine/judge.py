"""What a model's checks say of a candidate, and the clauses that exclude similar candidates.

In: Model, BaseFormulas. Out: `Judge`. Each check has a formula that says its body is bad: not empty, not irreflexive,
not acyclic. Where the pairs that would make it so are few and have short formulas, that is all. Otherwise it is a
variable, and `refute` says what it means as candidates show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memmodel.base import rows
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.rows import Rows, bits
from memmodel.cat.evaluate.graph import graph_of
from memmodel.cat.evaluate.rows import Value, as_relation
from memmodel.cat.syntax import Check, Model
from memmodel.encode.base import BaseFormulas
from memmodel.refine.cells import Formulas
from memmodel.refine.explain import Explainer, Reason
from memmodel.refine.views import View

PAIRS = 200
"""A check that more pairs than this could make bad is judged candidate by candidate."""

Pair = tuple[int, int]


@dataclass(slots=True)
class Statement:
    """A check of one test. `failing`: the formula. `is_open`: its variable means what has been learnt so far.

    `pairs`: for `empty`, each pair (event, twice) of the body with its formula, which may be a variable too.
    """

    check: Check
    root: int
    failing: int
    is_open: bool
    pairs: dict[Pair, int]

    @property
    def holds(self) -> int:
        """The formula that says that the check holds."""
        return self.failing if self.check.negated else -self.failing


class Judge:
    """The checks of a model over one event graph."""

    def __init__(self, model: Model, base: BaseFormulas) -> None:
        graph = graph_of(model.definitions)
        self._roots = {check.name: graph.node(check.body) for check in model.checks}
        self.cells = Formulas(graph, base)
        self.logic = base.graph.logic
        self._learnt: set[tuple[tuple[int, int, int], ...]] = set()

    def view(self, holds: Callable[[int], bool]) -> View:
        """The candidate of a valuation."""
        return self.cells.view(holds)

    def total_orders(self, holds: Callable[[int], bool]) -> dict[int, Rows]:
        """The total orders that a valuation chooses, of those that a check speaks of, by definition."""
        nodes, asked = self.cells.nodes, self.cells.orders
        numbers = {nodes[number].place: number for number in self.cells.named if nodes[number].op == "order"}
        view = self.view(holds) if asked else None
        return {place: view.rows(numbers[place]) for place in sorted(asked)} if view is not None else {}

    # ---- statements --------------------------------------------------------------------------------------------------

    def statement(self, check: Check, *, with_pairs: bool) -> Statement:
        """The statement of a check; `with_pairs`: with a formula for each of its pairs."""
        root = self._roots[check.name]
        if check.kind == "empty" and with_pairs:
            pairs = {pair: self._pair(check, root, *pair) for pair in _pairs(self.cells.high, root)}
            pairs = {pair: formula for pair, formula in pairs.items() if formula != FALSE}
            known = all(self.cells.formula(root, *pair) is not None for pair in pairs)
            return Statement(check, root, self.logic.disj(pairs.values()), not known, pairs)
        if not _is_bad(self.cells.high, check, root):
            return Statement(check, root, FALSE, False, {})
        formula = self._short(check, root)
        if formula is not None:
            return Statement(check, root, formula, False, {})
        return Statement(check, root, self.logic.var(f"bad({check.name})"), True, {})

    def _pair(self, check: Check, root: int, a: int, b: int) -> int:
        """A formula that is short, or a variable: negated, because the solver tries `false` first, and an execution
        that shows many pairs saves looking for others."""
        formula = self.cells.formula(root, a, b)
        return -self.logic.var(f"not {check.name}(e{a},e{b})") if formula is None else formula

    def _short(self, check: Check, root: int) -> int | None:
        """The formula of a check whose pairs are few and have formulas."""
        if check.kind == "acyclic":
            return None
        pairs = _pairs(self.cells.high, root)
        if check.kind == "irreflexive":
            pairs = [(a, b) for a, b in pairs if a == b]
        if len(pairs) > PAIRS:
            return None
        formulas = []
        for a, b in pairs:
            formula = self.cells.formula(root, a, b)
            if formula is None:
                return None
            formulas.append(formula)
        return self.logic.disj(formulas)

    # ---- candidates --------------------------------------------------------------------------------------------------

    def accepts(self, view: View, statement: Statement, *, bad: bool) -> bool:
        """True if the body of the check is bad in a candidate exactly if `bad`. If False, the solver has learnt why."""
        if not statement.is_open or _is_bad(view, statement.check, statement.root) is bad:
            return True
        explainer = Explainer(self.cells, view)
        if statement.check.kind == "empty" and statement.pairs:
            self._pairs_are(explainer, statement, statement.pairs, bad=bad)
        elif bad:
            self.logic.require(-statement.failing, *(-formula for formula in self._why_good(explainer, statement)))
        else:
            for reason in dict.fromkeys(self._why_bad(explainer, statement)):
                self.logic.require(statement.failing, *(-formula for formula in reason))
        return False

    def shows(self, view: View, statement: Statement, wanted: dict[Pair, int]) -> bool:
        """True if one of these pairs is in the body. If not, the solver has learnt why."""
        if any(view.has(statement.root, *pair) for pair in wanted):
            return True
        self._pairs_are(Explainer(self.cells, view), statement, wanted, bad=True)
        return False

    def _pairs_are(self, explainer: Explainer, statement: Statement, pairs: dict[Pair, int], *, bad: bool) -> None:
        for pair, formula in pairs.items():
            if explainer.view.has(statement.root, *pair) is bad:
                continue
            reason = explainer.why(statement.root, *pair, not bad)
            self.logic.require(-formula if bad else formula, *(-part for part in reason))

    # ---- reasons -----------------------------------------------------------------------------------------------------

    def _why_good(self, explainer: Explainer, statement: Statement) -> Reason:
        """Why no pair, no event with itself, no cycle: what else may be there is not."""
        high, root = self.cells.high, statement.root
        reasons: set[int] = set()
        pairs = _pairs(high, root)
        if statement.check.kind == "irreflexive":
            pairs = [(a, b) for a, b in pairs if a == b]
        elif statement.check.kind == "acyclic":
            reach = rows.closure(high.rows(root))
            pairs = [(a, b) for a, b in pairs if reach[b] >> a & 1 and not explainer.view.has(root, a, b)]
        for a, b in pairs:
            reasons |= explainer.why(root, a, b, False)
        return frozenset(reasons)

    def _why_bad(self, explainer: Explainer, statement: Statement) -> Iterator[Reason]:
        """Reasons for which the body is bad: one for each thing that is wrong, each cycle that is short."""
        root, view = statement.root, explainer.view
        if statement.check.kind == "acyclic":
            yield from self._cycles(explainer, root)
        elif statement.check.kind == "irreflexive":
            yield from self._loops(explainer, root)
        else:
            for pair in _pairs(view, root):
                yield explainer.why(root, *pair)
            bound = self._upper_bound(explainer, root)
            for a, row in enumerate([bound] if isinstance(bound, int) else bound):
                for b in bits(row):
                    yield from self._unless_learnt(explainer, (root, b, b) if isinstance(bound, int) else (root, a, b))

    def _unless_learnt(self, explainer: Explainer, *parts: tuple[int, int, int]) -> Iterator[Reason]:
        """The reason for one or two pairs of `_upper_bound` that are wrong, unless the solver has learnt it."""
        if parts in self._learnt:
            return
        self._learnt.add(parts)
        reasons = [self._why_in_bound(explainer, *part) for part in parts]
        if None not in reasons:
            yield frozenset().union(*(reason for reason in reasons if reason is not None))

    def _why_in_bound(self, explainer: Explainer, root: int, a: int, b: int) -> Reason | None:
        """The reason for a pair of `_upper_bound`."""
        node, view = self.cells.nodes[root], explainer.view
        formula = self.cells.formula(root, a, b)
        if formula is not None:
            return None if formula == FALSE else frozenset((formula,)) if formula != TRUE else frozenset()
        if node.op == "|" and root not in self.cells.named:
            for arg in node.operands:
                reason = self._why_in_bound(explainer, arg, a, b)
                if reason is not None:
                    return reason
            return None
        if node.op in ("&", "\\") and root not in self.cells.named:
            first = self._why_in_bound(explainer, node.operands[0], a, b)
            if node.op == "&" or first is None:
                second = None if first is None else self._why_in_bound(explainer, node.operands[1], a, b)
            else:
                taken = self.cells.formula(node.operands[1], a, b)
                if taken is None:
                    gone = not view.has(node.operands[1], a, b)
                    second = explainer.why(node.operands[1], a, b, False) if gone else None
                else:
                    second = None if taken == TRUE else frozenset((-taken,)) if taken != FALSE else frozenset()
            return None if first is None or second is None else first | second
        return explainer.why(root, a, b) if view.has(root, a, b) else None

    def _upper_bound(self, explainer: Explainer, root: int) -> Value:
        """The pairs that a check would find if all that is flat and may hold did; the rest is as in the candidate."""
        node, view = self.cells.nodes[root], explainer.view
        if node.flat:
            return self.cells.high.value(root)
        if root in self.cells.named or node.op not in ("|", "&", "\\"):
            return view.value(root)
        first, algebra = self._upper_bound(explainer, node.operands[0]), view.algebra
        if node.op == "\\":
            below = self.cells.nodes[node.operands[1]]
            return algebra.difference(first, (self.cells.sure if below.flat else view).value(node.operands[1]))
        second = self._upper_bound(explainer, node.operands[1])
        return algebra.union(first, second) if node.op == "|" else algebra.intersection(first, second)

    def _loops(self, explainer: Explainer, root: int) -> Iterator[Reason]:
        """Events that are related to themselves; of a composition every event in between counts."""
        node, view = self.cells.nodes[root], explainer.view
        if node.op == "|":
            for arg in node.operands:
                yield from self._loops(explainer, arg)
        elif node.op == ";":
            first, second = node.operands
            left, right = view.rows(first), view.inverse(second)
            for a in range(self.cells.count):
                for middle in bits(left[a] & right[a]):
                    yield explainer.why(first, a, middle) | explainer.why(second, middle, a)
            forth = as_relation(self._upper_bound(explainer, first))
            back = rows.inverse(as_relation(self._upper_bound(explainer, second)))
            for a, row in enumerate(forth):
                for middle in bits(row & back[a]):
                    yield from self._unless_learnt(explainer, (first, a, middle), (second, middle, a))
        else:
            for a, row in enumerate(view.rows(root)):
                if row >> a & 1:
                    yield explainer.why(root, a, a)

    def _cycles(self, explainer: Explainer, root: int) -> Iterator[Reason]:
        """For each event on a cycle, a short one through it."""
        relation = explainer.view.rows(root)
        seen: set[Reason] = set()
        for part in rows.components(relation):
            if len(part) > 1 or relation[part[0]] >> part[0] & 1:
                for event in part:
                    reason = explainer.cycle(root, event)
                    if reason not in seen:
                        seen.add(reason)
                        yield reason


def _pairs(view: View, root: int) -> list[Pair]:
    """The pairs of a relation, or the events of a set, twice."""
    value = view.value(root)
    if isinstance(value, int):
        return [(a, a) for a in bits(value)]
    return [(a, b) for a, row in enumerate(value) for b in bits(row)]


def _is_bad(view: View, check: Check, root: int) -> bool:
    """True if the body is not empty, not irreflexive, or not acyclic."""
    return view.algebra.fails(check.kind, view.value(root))
