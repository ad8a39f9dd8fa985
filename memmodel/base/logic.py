"""Propositional formulas, shared and kept small: the alphabet in which events and relations are written for Z3.

A formula is an integer: TRUE, FALSE, or a signed node number; `-f` is the negation of f. Nodes are hash-consed, so
equal formulas are equal integers, and constants disappear as formulas are built. Out: clauses, for the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

TRUE = 1
FALSE = -1

MAX_NODES = 3_000_000
"""A formula larger than this is reported as too large rather than built."""

SHORT = 3
"""A conjunction of at most this many formulas is negated without a variable of its own."""


class Logic:
    """A store of formulas. Variables carry the names that reports and dumps use."""

    def __init__(self) -> None:
        # _children[n] is None for a variable, else the sorted conjuncts of node n. Nodes 0 and 1 are unused and TRUE.
        self._children: list[tuple[int, ...] | None] = [None, None]
        self._names: dict[int, str] = {}
        self._known: dict[tuple[int, ...], int] = {}
        self._group: dict[int, int] = {}
        self._inside: dict[int, set[int]] = {}
        self.constraints: list[tuple[int, ...]] = []

    # ---- building ------------------------------------------------------------------------------------------------

    def var(self, name: str) -> int:
        """A fresh variable."""
        self._children.append(None)
        node = len(self._children) - 1
        self._names[node] = name
        return node

    def name(self, variable: int) -> str:
        return self._names[variable]

    def is_variable(self, formula: int) -> bool:
        return formula in self._names

    def conj(self, formulas: Iterable[int]) -> int:
        """Conjunction; drops constants, repetitions and contradictions."""
        kept: set[int] = set()
        for formula in formulas:
            if formula == FALSE or -formula in kept:
                return FALSE
            if formula != TRUE:
                kept.add(formula)
        if not kept:
            return TRUE
        if len(kept) == 1:
            return kept.pop()
        if self._group and self._exclusive(kept):
            return FALSE
        key = tuple(sorted(kept))
        return self._known.get(key) or self._node(key)

    def _node(self, key: tuple[int, ...]) -> int:
        """A new node for sorted conjuncts. Raises TooLarge."""
        self._children.append(key)
        node = self._known[key] = len(self._children) - 1
        if node > MAX_NODES:
            from memmodel.errors import TooLarge

            raise TooLarge("the formula grows too large", hint="shorten the test, or lower the loop bound")
        return node

    def both(self, left: int, right: int) -> int:
        """Conjunction of two: the common case, kept short."""
        if left == TRUE:
            return right
        if right == TRUE or left == right:
            return left
        if left == FALSE or right == FALSE or left == -right:
            return FALSE
        group = self._group.get(left)
        if group is not None and group == self._group.get(right):
            return FALSE
        key = (left, right) if left < right else (right, left)
        return self._known.get(key) or self._node(key)

    def disj(self, formulas: Iterable[int]) -> int:
        """Disjunction."""
        return -self.conj([-formula for formula in formulas])

    def either(self, left: int, right: int) -> int:
        """Disjunction of two."""
        if left in (FALSE, right):
            return right
        if right == FALSE:
            return left
        if left == TRUE or right == TRUE or left == -right:
            return TRUE
        return -self.conj((-left, -right))

    def choose(self, condition: int, then: int, other: int) -> int:
        """If condition then `then` else `other`."""
        if then == other:
            return then
        return self.either(self.both(condition, then), self.both(-condition, other))

    def implies(self, formula: int, other: int) -> bool:
        """True if one formula implies another at a glance: it contains all its conjuncts."""
        if other == TRUE or formula in (FALSE, other):
            return True
        inside = self._conjuncts(formula)
        stack = [other]
        while stack:
            conjunct = stack.pop()
            if conjunct in inside:
                continue
            below = self._children[conjunct] if conjunct > 0 else None
            if below is None:
                return False
            stack += below
        return True

    def _conjuncts(self, formula: int) -> set[int]:
        """The conjuncts of a formula, and the conjuncts of these, however deep."""
        conjuncts = self._inside.get(formula)
        if conjuncts is None:
            conjuncts = self._inside[formula] = {formula, TRUE}
            stack = [formula]
            while stack:
                conjunct = stack.pop()
                for below in (self._children[conjunct] or ()) if conjunct > 0 else ():
                    if below not in conjuncts:
                        conjuncts.add(below)
                        stack.append(below)
        return conjuncts

    def refuted(self, formula: int) -> bool:
        """True if a formula is false at a glance: the conjuncts it is made of, however deep, contradict one another."""
        kept: set[int] = set()
        stack = [formula]
        while stack:
            conjunct = stack.pop()
            if conjunct == FALSE or -conjunct in kept:
                return True
            if conjunct not in kept:
                kept.add(conjunct)
                stack += (self._children[conjunct] or ()) if conjunct > 0 else ()
        return self._exclusive(kept)

    def _exclusive(self, conjuncts: set[int]) -> bool:
        """True if two of these are variables of which exactly one holds."""
        seen = set()
        for conjunct in conjuncts:
            group = self._group.get(conjunct)
            if group is not None:
                if group in seen:
                    return True
                seen.add(group)
        return False

    # ---- asserting -----------------------------------------------------------------------------------------------

    def require(self, *clause: int) -> None:
        """Assert the disjunction of these formulas."""
        if TRUE not in clause:
            self.constraints.append(tuple(formula for formula in clause if formula != FALSE))

    def exactly_one(self, variables: Sequence[int], when: int = TRUE) -> None:
        """Exactly one of fresh variables holds if `when`, none otherwise; two of them conjoined simplify to FALSE."""
        number = len(self._group)
        for variable in variables:
            self._group[variable] = number
            self.require(-variable, when)
        self.require(-when, *variables)
        self.at_most_one(variables)

    def at_most_one(self, variables: Sequence[int]) -> None:
        """No two hold: pairwise for a few, a ladder of helper variables for many."""
        if len(variables) <= 6:
            for i, first in enumerate(variables):
                for second in variables[i + 1 :]:
                    self.require(-first, -second)
            return
        before = FALSE
        for variable in variables:
            so_far = self.var("ladder")
            self.require(-variable, so_far)
            if before != FALSE:
                self.require(-before, so_far)
                self.require(-before, -variable)
            before = so_far

    def replaced(self, formula: int, values: dict[int, int]) -> int:
        """A formula with formulas in place of variables. `values`: of variables; what is worked out is added to it."""
        children = self._children
        values[TRUE] = TRUE
        stack = [abs(formula)]
        while stack:
            node = stack[-1]
            below = children[node]
            if node in values or below is None:
                values.setdefault(node, node)
                stack.pop()
                continue
            missing = [abs(child) for child in below if abs(child) not in values]
            if missing:
                stack += missing
                continue
            values[node] = self.conj(values[child] if child > 0 else -values[-child] for child in below)
            stack.pop()
        return values[formula] if formula > 0 else -values[-formula]

    def conjuncts(self, formula: int) -> tuple[int, ...]:
        """The conjuncts of a formula; a formula that is no conjunction is its own."""
        below = self._children[formula] if formula > 0 else None
        return (formula,) if below is None else below

    def variables(self) -> list[tuple[int, str]]:
        """Every variable with its name."""
        return list(self._names.items())

    # ---- reading a valuation -------------------------------------------------------------------------------------

    def value(self, formula: int, known: dict[int, bool], variable: Callable[[int], bool]) -> bool:
        """The truth of a formula under a valuation of the variables; `known` keeps the nodes already evaluated."""
        children = self._children
        stack = [abs(formula)]
        while stack:
            node = stack[-1]
            below = children[node]
            if node in known:
                stack.pop()
                continue
            if below is None:
                known[node] = node == TRUE or variable(node)
                stack.pop()
                continue
            missing = 0
            for child in below:
                true = known.get(child if child > 0 else -child)
                if true is None:
                    missing = child
                elif true != (child > 0):
                    known[node] = False
                    stack.pop()
                    break
            else:
                if missing:
                    stack.append(abs(missing))
                else:
                    known[node] = True
                    stack.pop()
        return known[abs(formula)] == (formula > 0)

    def show(self, formula: int, depth: int = 6) -> str:
        """A formula for people, by the names of its variables; what lies deeper than `depth` shows as `…`."""
        below = self._children[abs(formula)]
        if abs(formula) == TRUE:
            return "true" if formula == TRUE else "false"
        if below is None:
            text = self._names[abs(formula)]
        elif depth == 0:
            text = "…"
        else:
            text = "(" + " & ".join(self.show(child, depth - 1) for child in below) + ")"
        return text if formula > 0 else "~" + text

    # ---- clauses -------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self._children)

    def clauses(self, roots: Iterable[int], done: set[int]) -> list[tuple[int, ...]]:
        """Clauses that make the literals `roots` mean their formulas, less those of literals in `done` (which grows).

        Only implications (Plaisted and Greenbaum, "A Structure-preserving Clause Form Translation"): if the literal of
        a node is true, so is its formula; the reverse is not asserted. A short conjunction that is negated gets no
        variable.
        """
        out: list[tuple[int, ...]] = []
        stack = list(roots)
        children = self._children
        while stack:
            literal = stack.pop()
            if literal in done:
                continue
            done.add(literal)
            node = abs(literal)
            below = children[node]
            if below is None:
                if node == TRUE:
                    out.append((TRUE,))
                continue
            if literal < 0:
                denied = [-child for child in below]
                out.append((node, *denied))
                stack += denied
                continue
            for child in below:
                inner = children[-child] if child < 0 else None
                if inner is not None and len(inner) <= SHORT:
                    denied = [-conjunct for conjunct in inner]
                    out.append((-node, *denied))
                    stack += denied
                else:
                    out.append((-node, child))
                    stack.append(child)
        return out
