"""What a model's checks say of a candidate, and the clauses that keep the solver from the like of it.

In: Model, BaseFormulas. Out: `Judge`. Each check has a formula that says its body is bad: not empty, not irreflexive,
not acyclic. Where the pairs that would make it so are few and have short formulas, that is all. Otherwise it is a
variable, and `refute` says what it means as candidates show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.base import rows
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.rows import members
from memmodel.cat.syntax import Check, Model
from memmodel.encode.base import BaseFormulas
from memmodel.refine.cells import Cells
from memmodel.refine.explain import Explainer, Reason
from memmodel.refine.plan import plan_of
from memmodel.refine.views import View

PAIRS = 200
"""A check that more pairs than this could make bad is judged candidate by candidate."""

AT_ONCE = 2000
"""Clauses that one check learns from one candidate."""

Pair = tuple[int, int]


@dataclass(slots=True)
class Statement:
    """A check of one test. `bad`: the formula. `open`: its variable means what has been learnt so far.

    `pairs`: for `empty`, each pair (event, twice) of the body with its formula, which may be a variable too.
    """

    check: Check
    root: int
    bad: int
    open: bool
    pairs: dict[Pair, int]

    @property
    def holds(self) -> int:
        """The formula that says that the check holds."""
        return self.bad if self.check.negated else -self.bad


class Judge:
    """The checks of a model over one event graph."""

    def __init__(self, model: Model, base: BaseFormulas) -> None:
        self.plan = plan_of(model)
        self.cells = Cells(self.plan, base)
        self.logic = base.graph.logic
        self._learnt: set[tuple[int, int, int]] = set()

    def view(self, holds: object) -> View:
        return self.cells.view(holds)  # type: ignore[arg-type]

    # ---- statements --------------------------------------------------------------------------------------------------

    def statement(self, check: Check, *, apart: bool) -> Statement:
        """The statement of a check; `apart`: with a formula for each of its pairs."""
        root = self.plan.checks[check.name]
        if check.test == "empty" and apart:
            pairs = {pair: self._pair(check, root, *pair) for pair in _pairs(self.cells.high, root)}
            pairs = {pair: formula for pair, formula in pairs.items() if formula != FALSE}
            known = all(self.cells.formula(root, *pair) is not None for pair in pairs)
            return Statement(check, root, self.logic.disj(pairs.values()), not known, pairs)
        if not _is_bad(self.cells.high, check, root):
            return Statement(check, root, FALSE, False, {})
        if _is_bad(self.cells.low, check, root):
            return Statement(check, root, TRUE, False, {})
        formula = self._short(check, root)
        if formula is not None:
            return Statement(check, root, formula, False, {})
        return Statement(check, root, self.logic.var(f"bad({check.name})"), True, {})

    def _pair(self, check: Check, root: int, a: int, b: int) -> int:
        formula = self.cells.formula(root, a, b)
        return self.logic.var(f"{check.name}(e{a},e{b})") if formula is None else formula

    def _short(self, check: Check, root: int) -> int | None:
        """The formula of a check whose pairs are few and have formulas."""
        if check.test == "acyclic":
            return None
        pairs = _pairs(self.cells.high, root)
        if check.test == "irreflexive":
            pairs = [(a, b) for a, b in pairs if a == b]
        if len(pairs) > PAIRS:
            return None
        found = []
        for a, b in pairs:
            formula = self.cells.formula(root, a, b)
            if formula is None:
                return None
            found.append(formula)
        return self.logic.disj(found)

    # ---- candidates --------------------------------------------------------------------------------------------------

    def accepts(self, view: View, statement: Statement, *, bad: bool) -> bool:
        """Is the body of the check (not) bad in a candidate, as is asked? If not, the solver has learnt why."""
        if not statement.open or _is_bad(view, statement.check, statement.root) is bad:
            return True
        explainer = Explainer(self.cells, view)
        if statement.check.test == "empty" and statement.pairs:
            self._pairs_are(explainer, statement, statement.pairs, bad=bad)
        elif bad:
            self.logic.require(-statement.bad, *(-one for one in self._why_good(explainer, statement)))
        else:
            for reason in self._why_bad(explainer, statement):
                self.logic.require(statement.bad, *(-one for one in reason))
        return False

    def shows(self, view: View, statement: Statement, wanted: dict[Pair, int]) -> bool:
        """Is one of these pairs in the body? If not, the solver has learnt why."""
        if any(view.has(statement.root, *pair) for pair in wanted):
            return True
        self._pairs_are(Explainer(self.cells, view), statement, wanted, bad=True)
        return False

    def _pairs_are(self, explainer: Explainer, statement: Statement, pairs: dict[Pair, int], *, bad: bool) -> None:
        for pair, formula in pairs.items():
            if explainer.view.has(statement.root, *pair) is bad:
                continue
            reason = explainer.why(statement.root, *pair, not bad)
            self.logic.require(-formula if bad else formula, *(-one for one in reason))

    # ---- reasons -----------------------------------------------------------------------------------------------------

    def _why_good(self, explainer: Explainer, statement: Statement) -> Reason:
        """Why no pair, no event with itself, no cycle: what else may be there is not."""
        high, root = self.cells.high, statement.root
        found: set[int] = set()
        pairs = _pairs(high, root)
        if statement.check.test == "irreflexive":
            pairs = [(a, b) for a, b in pairs if a == b]
        elif statement.check.test == "acyclic":
            reach = rows.closure(high.rows(root))
            pairs = [(a, b) for a, b in pairs if reach[b] >> a & 1 and not explainer.view.has(root, a, b)]
        for a, b in pairs:
            found |= explainer.why(root, a, b, False)
        return frozenset(found)

    def _why_bad(self, explainer: Explainer, statement: Statement) -> Iterator[Reason]:
        """Reasons for which the body is bad: one for each thing that is wrong, each cycle that is short."""
        root, view = statement.root, explainer.view
        if statement.check.test == "acyclic":
            yield from self._cycles(explainer, root)
        elif statement.check.test == "irreflexive":
            yield from self._loops(explainer, root)
        else:
            for number, pair in enumerate(_pairs(view, root)):
                if number == AT_ONCE:
                    return
                yield explainer.why(root, *pair)

    def _loops(self, explainer: Explainer, root: int) -> Iterator[Reason]:
        """Events that are related to themselves; of a composition every event in between counts."""
        node, view = self.plan.nodes[root], explainer.view
        if node.op == "|":
            for arg in node.args:
                yield from self._loops(explainer, arg)
        elif node.op == ";":
            left, right = view.rows(node.args[0]), view.inverse(node.args[1])
            for a in range(view.count):
                for middle in members(left[a] & right[a]):
                    yield explainer.why(node.args[0], a, middle) | explainer.why(node.args[1], middle, a)
        else:
            for a, row in enumerate(view.rows(root)):
                if row >> a & 1:
                    yield explainer.why(root, a, a)

    def _cycles(self, explainer: Explainer, root: int) -> Iterator[Reason]:
        """For each event on a cycle, a short one through it."""
        found = explainer.view.rows(root)
        seen: set[Reason] = set()
        for part in rows.components(found):
            if len(part) > 1 or found[part[0]] >> part[0] & 1:
                for one in part:
                    reason = explainer.cycle(root, one)
                    if reason not in seen:
                        seen.add(reason)
                        yield reason


def _pairs(view: View, root: int) -> list[Pair]:
    """The pairs of a relation, or the events of a set, twice."""
    value = view.value(root)
    if isinstance(value, int):
        return [(a, a) for a in members(value)]
    return [(a, b) for a, row in enumerate(value) for b in members(row)]


def _is_bad(view: View, check: Check, root: int) -> bool:
    """Is the body not empty, not irreflexive, not acyclic?"""
    value = view.value(root)
    if isinstance(value, int):
        return bool(value)
    if check.test == "empty":
        return any(value)
    if any(row >> a & 1 for a, row in enumerate(value)):
        return True
    return check.test == "acyclic" and any(len(part) > 1 for part in rows.components(value))
