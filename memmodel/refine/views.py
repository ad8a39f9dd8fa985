"""The value of every node of a plan under some reading of the base names: of one candidate, or of all at once.

In: Operations, rows of the base names. Out: `View`, and `Sure`. Two views that are each other's `opposite` give
the pairs that are in every execution and those that may be in one: where a pair is taken away, what the other view has
is what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memmodel.base import rows
from memmodel.base.rows import Rows
from memmodel.errors import InternalError
from memmodel.refine.plan import Operations

Value = int | Rows
"""A set as a mask, or a relation as rows."""


class View:
    """Values of nodes, found when asked for. `given`: what a node of another view is known to be here, or None."""

    def __init__(
        self,
        plan: Operations,
        count: int,
        running: int,
        base: Callable[[int], Value],
        given: Callable[[int], Value | None] = lambda number: None,
    ) -> None:
        self.plan = plan
        self.count = count
        self.running = running
        self.opposite: View = self
        self._rounds: dict[int, list[dict[int, Value]]] = {}
        self._base = base
        self._given = given
        self._values: dict[int, Value] = {}
        self._inverses: dict[int, Rows] = {}

    def value(self, root: int) -> Value:
        """The value of a node."""
        found = self._values.get(root)
        if found is not None:
            return found
        todo = {root}
        stack = [root]
        while stack:
            number = stack.pop()
            known = self._given(number)
            if known is not None:
                self._values[number] = known
                todo.discard(number)
                continue
            for arg in self.plan.nodes[number].args:
                if arg not in self._values and arg not in todo:
                    todo.add(arg)
                    stack.append(arg)
        for number in sorted(todo):
            self._values[number] = self._compute(number)
        return self._values[root]

    def rows(self, number: int) -> Rows:
        value = self.value(number)
        if isinstance(value, int):
            raise InternalError("a set where a relation is needed")
        return value

    def mask(self, number: int) -> int:
        value = self.value(number)
        if isinstance(value, int):
            return value
        raise InternalError("a relation where a set is needed")

    def inverse(self, number: int) -> Rows:
        """The relation of a node, turned."""
        if number not in self._inverses:
            self._inverses[number] = rows.inverse(self.rows(number))
        return self._inverses[number]

    def has(self, number: int, a: int, b: int) -> bool:
        """Is the pair in the relation, or (a twice) the event in the set?"""
        value = self.value(number)
        return bool(value >> a & 1 if isinstance(value, int) else value[a] >> b & 1)

    # ---- operations ------------------------------------------------------------------------------------------------

    def _compute(self, number: int) -> Value:
        node = self.plan.nodes[number]
        op = node.op
        if op in ("base", "leaf"):
            return self._base(number)
        if op == "empty":
            return 0 if node.is_set else [0] * self.count
        if op == "fix":
            return self._fixpoint(number)
        if op == "order":
            return self._ordered(number)
        if len(node.args) == 1:
            return self._unary(op, node.args[0])
        if op == "product":
            left, right = self.mask(node.args[0]), self.mask(node.args[1])
            return [right if left >> a & 1 else 0 for a in range(self.count)]
        if op == ";":
            return self._composed(*node.args)
        return self._pointwise(op, node.args)

    def _composed(self, left: int, right: int) -> Rows:
        """left ; right. With [S] on one side only rows or columns are left out."""
        nodes = self.plan.nodes
        if nodes[left].op == "[]":
            mask = self._kept(left)
            return [row if mask >> a & 1 else 0 for a, row in enumerate(self.rows(right))]
        if nodes[right].op == "[]":
            mask = self._kept(right)
            return [row & mask for row in self.rows(left)]
        return self.compose(self.rows(left), self.rows(right))

    def _kept(self, number: int) -> int:
        """The set S of a node [S]."""
        return rows.range_of(self.rows(number))

    def _pointwise(self, op: str, args: Sequence[int]) -> Value:
        first = self.value(args[0])
        second = (self.opposite if op == "\\" else self).value(args[1])
        return joined(op, first, second)

    def _unary(self, op: str, arg: int) -> Value:
        if op == "~":
            value = self.opposite.value(arg)
            if isinstance(value, int):
                return self.running & ~value
            return [self.running & ~row if self.running >> a & 1 else 0 for a, row in enumerate(value)]
        if op == "[]":
            mask = self.mask(arg)
            return [mask & 1 << a for a in range(self.count)]
        if op == "^-1":
            return self.inverse(arg)
        if op == "range":
            return self.domain(self.inverse(arg))
        found = self.rows(arg)
        if op == "domain":
            return self.domain(found)
        if op in ("+", "*"):
            found = self.closure(found)
        if op in ("?", "*"):
            found = [row | self.running & 1 << a for a, row in enumerate(found)]
        return found

    def _ordered(self, number: int) -> Value:
        mask = self.mask(self.plan.nodes[number].args[0])
        chosen = self._base(number)
        assert not isinstance(chosen, int)
        return [row & mask if mask >> a & 1 else 0 for a, row in enumerate(chosen)]

    def _fixpoint(self, number: int) -> Value:
        node = self.plan.nodes[number]
        assert node.group is not None
        return self.rounds(node.group)[-1][int(node.name)]

    def rounds(self, number: int) -> list[dict[int, Value]]:
        """The members of a group of `let rec`, from nothing to its least fixpoint."""
        if number not in self._rounds:
            group = self.plan.groups[number]
            current: dict[int, Value] = {
                leaf: 0 if self.plan.nodes[leaf].is_set else [0] * self.count for leaf, _ in group
            }
            rounds = [current]
            while True:
                inside = self.within(number, current)
                after = {leaf: inside.value(body) for leaf, body in group}
                if after == current:
                    break
                rounds.append(current := after)
            self._rounds[number] = rounds
        return self._rounds[number]

    def within(self, group: int, leaves: dict[int, Value]) -> View:
        """This view, where the members of a group have these values."""
        nodes = self.plan.nodes

        def given(number: int) -> Value | None:
            node = nodes[number]
            if node.op == "leaf" and number in leaves:
                return leaves[number]
            return self.value(number) if node.group != group or node.op == "fix" else None

        inside = self._like(given)
        inside.opposite = inside if self.opposite is self else self.opposite
        return inside

    def _like(self, given: Callable[[int], Value | None]) -> View:
        return View(self.plan, self.count, self.running, self._base, given)

    # ---- what depends on which events run ----------------------------------------------------------------------------

    def compose(self, left: Rows, right: Rows) -> Rows:
        return rows.compose(left, right)

    def closure(self, found: Rows) -> Rows:
        return rows.closure(found)

    def domain(self, found: Rows) -> int:
        return rows.domain(found)


class Sure(View):
    """What holds in every execution in which the events that are related run.

    `follow[a]`: the events that run wherever a does. What is in between has to run too: by either end.
    """

    follow: Rows
    lead: Rows

    def implied(self, follow: Rows) -> Sure:
        self.follow, self.lead = follow, rows.inverse(follow)
        return self

    def _like(self, given: Callable[[int], Value | None]) -> View:
        return Sure(self.plan, self.count, self.running, self._base, given).implied(self.follow)

    def compose(self, left: Rows, right: Rows) -> Rows:
        first = rows.compose([row & also for row, also in zip(left, self.follow, strict=True)], right)
        second = rows.compose(left, [row & also for row, also in zip(right, self.lead, strict=True)])
        return [a | b for a, b in zip(first, second, strict=True)]

    def closure(self, found: Rows) -> Rows:
        while True:
            longer = [a | b for a, b in zip(found, self.compose(found, found), strict=True)]
            if longer == found:
                return found
            found = longer

    def domain(self, found: Rows) -> int:
        return rows.domain([row & also for row, also in zip(found, self.follow, strict=True)])


def joined(op: str, first: Value, second: Value) -> Value:
    """Union, intersection or difference of two sets, or of two relations."""
    if isinstance(first, int) or isinstance(second, int):
        if not isinstance(first, int) or not isinstance(second, int):
            raise InternalError("a set and a relation")
        return first | second if op == "|" else first & second if op == "&" else first & ~second
    pairs = zip(first, second, strict=True)
    if op == "|":
        return [a | b for a, b in pairs]
    if op == "&":
        return [a & b for a, b in pairs]
    return [a & ~b for a, b in pairs]
