"""The flags of a model on one large execution: what the referee computes, with regard to speed.

In: Model, Execution. Out: the flags that are raised, with their pairs, and relations by name. Only definitions that a
flag or a named relation needs are evaluated. The meaning of the operators is the referee's; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from memmodel.base.kinds import Kind
from memmodel.base.rows import range_of, transposed
from memmodel.cat.analysis import bases_of, names_in
from memmodel.cat.syntax import Binary, Empty, Expr, Model, Name, Unary
from memmodel.concrete.execution import Execution, Rows
from memmodel.referee.evaluate import PlainEvaluator, Value


def bits(mask: int) -> list[int]:
    """The members of a mask, smallest first."""
    found = []
    if mask.bit_count() < 8:
        while mask:
            low = mask & -mask
            found.append(low.bit_length() - 1)
            mask ^= low
        return found
    text = bin(mask)[:1:-1]
    at = text.find("1")
    while at >= 0:
        found.append(at)
        at = text.find("1", at + 1)
    return found


def mask_of(members: Sequence[bool]) -> int:
    """The set of the numbers at which there is a True."""
    return int("".join(["1" if one else "0" for one in reversed(members)]), 2) if members else 0


def _marked(numbers: Iterable[int], count: int) -> int:
    """The set of these numbers, below `count`."""
    found = bytearray(count // 8 + 1)
    for one in numbers:
        found[one >> 3] |= 1 << (one & 7)
    return int.from_bytes(found, "little")


def _rows_of(mask: int, rows: Rows) -> Rows:
    """The rows of the members of a set; of others none."""
    found = [0] * len(rows)
    for one in bits(mask):
        found[one] = rows[one]
    return found


LARGE = 6_000
"""Events of an execution of which not all values are kept: each may take as many bits as there are pairs."""
ASKED = ("synchronizes", "base-causality", "causality", "happens", "conflict", "fence-forced")
"""The definitions that are asked for when the flags have been evaluated."""


class Flags(PlainEvaluator):
    """A model's flags on one execution. Definitions are evaluated when something asks for them."""

    def __init__(self, model: Model, execution: Execution, like: Flags | None = None) -> None:
        """`like`: the flags of a model on the same events; what is the same there is taken over."""
        super().__init__(model, execution, {})
        self.model = model
        self._done: dict[int, Value] = {}
        self._left = [check.body for check in model.flags]
        """The flags that are still to be evaluated."""
        self._doing: list[int] = []
        """The definitions that are being evaluated."""
        if like is not None and like.execution.frame is execution.frame:
            bases, changed = bases_of(model.definitions), _changed(execution, like.execution)
            same = {number: old for number, old in _alike(model, like.model).items() if not bases[number] & changed}
            self._done = {number: like._done[old] for number, old in same.items() if old in like._done}
        self._names = {one.name: number for number, one in enumerate(model.definitions)}

    def raised(self, names: Iterable[str] | None = None) -> dict[str, list[tuple[int, int]]]:
        """Each flag that is raised, with the pairs that it reports."""
        wanted = None if names is None else set(names)
        self._left = [check.body for check in self.model.flags if wanted is None or check.name in wanted]
        found = {}
        for check in self.model.flags:
            if wanted is None or check.name in wanted:
                value = self.value(check.body)
                if self._true(check, value):
                    found[check.name] = self._told(check, value)
                del value, self._left[0]
                self._forget()
        return found

    def _forget(self) -> None:
        """Of a large execution, give up the values for which nothing asks that is being worked out, or will be: those
        of all definitions together may not fit into memory. Who asks for one all the same has it worked out again.
        """
        if self.count <= LARGE:
            return
        needed: set[int | None] = {None, *self._doing}
        bodies = [*self._left, *(self.model.definitions[number].body for number in self._doing)]
        waiting = [name.ref for body in bodies for name in names_in(body)]
        waiting += [number for name, number in self._names.items() if name in ASKED]
        while waiting:
            number = waiting.pop()
            if number is None or number in needed:
                continue
            needed.add(number)
            if number not in self._done:
                waiting += [name.ref for name in names_in(self.model.definitions[number].body)]
        self._done = {number: value for number, value in self._done.items() if number in needed}

    def relation(self, name: str) -> Rows | None:
        """A relation that the model defines under that name."""
        number = self._names.get(name)
        return None if number is None else self._rows(self._definition(number))

    def inverse(self, rows: Rows) -> Rows:
        """A relation turned over."""
        return self._inverse(rows)

    def _name(self, name: Name) -> Value:
        return super()._name(name) if name.ref is None else self._definition(name.ref)

    def _definition(self, number: int) -> Value:
        if number not in self._done:
            definition = self.model.definitions[number]
            if definition.group is not None:
                self._recursive(definition.group)
                return self._done[number]
            self._doing.append(number)
            value = self._done[number] = self.value(definition.body)
            self._doing.pop()
            self._forget()
            return value
        return self._done[number]

    def _recursive(self, group: int) -> None:
        """`let rec … and …`: Kleene iteration from empty values."""
        members = [n for n, one in enumerate(self.model.definitions) if one.group == group]
        for n in members:
            self._done[n] = 0 if self.model.definitions[n].kind is Kind.SET else [0] * self.count
        self._doing += members
        while True:
            new = {n: self.value(self.model.definitions[n].body) for n in members}
            if all(new[n] == self._done[n] for n in members):
                del self._doing[-len(members) :]
                return
            self._done.update(new)

    def value(self, expr: Expr) -> Value:
        if isinstance(expr, Binary) and expr.op == ";":
            left = _filter(expr.left)
            right = _filter(expr.right)
            if left is not None:
                return self._from(self._mask(self.value(left)), expr.right)
            if right is not None:
                return self._into(expr.left, self._mask(self.value(right)))
            if isinstance(expr.left, Unary) and expr.left.op == "^-1":
                rows = self._rows(self.value(expr.right))
                return self._compose(self._into(expr.left, mask_of([row != 0 for row in rows])), rows)
        if isinstance(expr, Binary) and expr.op == "&":
            return self._both(expr)
        if isinstance(expr, Binary) and expr.op == "\\":
            return self._without(self.value(expr.left), expr.right)
        return super().value(expr)

    def _from(self, mask: int, expr: Expr) -> Rows:
        """A relation whose left ends are members of a set: of a chain or a union, the first steps are cut first."""
        if isinstance(expr, Binary) and expr.op == ";" and _filter(expr.left) is None:
            kept = _filter(expr.right)
            first = self._from(mask, expr.left)
            if kept is not None:
                mine = self._mask(self.value(kept))
                return [row & mine for row in first]
            return self._compose(first, self._rows(self.value(expr.right)))
        if isinstance(expr, Binary) and expr.op == "|":
            return [a | b for a, b in zip(self._from(mask, expr.left), self._from(mask, expr.right), strict=True)]
        if isinstance(expr, Unary) and expr.op == "^-1":
            return self._inverse([row & mask for row in self._rows(self.value(expr.operand))])
        return _rows_of(mask, self._rows(self.value(expr)))

    def _into(self, expr: Expr, mask: int) -> Rows:
        """A relation whose right ends are members of a set: of a chain, the last step is cut first."""
        if _is_chain(expr):
            assert isinstance(expr, Binary)
            return self._chain(expr.left, self._into(expr.right, mask))
        if isinstance(expr, Unary) and expr.op == "^-1":
            return self._inverse(_rows_of(mask, self._rows(self.value(expr.operand))))
        return [row & mask for row in self._rows(self.value(expr))]

    def _chain(self, expr: Expr, rows: Rows) -> Rows:
        """A relation followed by these rows, which are few: from the end."""
        if _is_chain(expr):
            assert isinstance(expr, Binary)
            return self._chain(expr.left, self._chain(expr.right, rows))
        return self._compose(self._rows(self.value(expr)), rows)

    def _unary(self, op: str, value: Value) -> Value:
        if op == "domain":
            return mask_of([row != 0 for row in self._rows(value)])
        if op == "[]":
            found = [0] * self.count
            for one in bits(self._mask(value)):
                found[one] = 1 << one
            return found
        return super()._unary(op, value)

    def _without(self, left: Value, expr: Expr) -> Value:
        """A difference, part by part of what is taken away; an inverse is not worked out for a few pairs."""
        if not (left if isinstance(left, int) else any(left)):
            return left
        if isinstance(left, int):
            return self._pointwise(left, self.value(expr))
        if isinstance(expr, Name) and expr.ref is not None and expr.ref not in self._done:
            definition = self.model.definitions[expr.ref]
            if definition.group is None and _is_union(definition.body):
                return self._without(left, definition.body)
        if isinstance(expr, Binary) and expr.op == "|":
            return self._without(self._without(left, expr.left), expr.right)
        if isinstance(expr, Unary) and expr.op == "^-1":
            back = self._rows(self.value(expr.operand))
            if sum(map(int.bit_count, left)) < self.count:
                return [
                    row & ~sum([1 << other for other in bits(row) if back[other] >> one & 1])
                    for one, row in enumerate(left)
                ]
            return self._pointwise(left, self._meeting(left, back))
        return self._pointwise(left, self.value(expr))

    def _meeting(self, left: Rows, back: Rows) -> Rows:
        """A relation turned over, as far as another one may meet it."""
        domain, targets = mask_of([row != 0 for row in left]), range_of(left)
        return self._inverse([row & domain for row in _rows_of(targets, back)])

    def _pointwise(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) or isinstance(right, int):
            return self._mask(left) & ~self._mask(right)
        return [one & ~other for one, other in zip(left, right, strict=True)]

    def _both(self, expr: Binary) -> Value:
        """An intersection whose one side is empty is empty."""
        left = self.value(expr.left)
        if not (left if isinstance(left, int) else any(left)):
            return left
        right = expr.right
        if isinstance(right, Unary) and right.op == "^-1" and not isinstance(left, int):
            return self._binary(expr, left, self._meeting(left, self._rows(self.value(right.operand))))
        return self._binary(expr, left, self.value(right))

    def _compose(self, left: Rows, right: Rows) -> Rows:
        """left ; right. Of many events in the middle that lead to the same ones, all are looked at together."""
        domain = mask_of([row != 0 for row in right])
        different = dict.fromkeys([row & domain for row in left])
        alike: dict[int, list[int]] = {}
        if len(set(right)) < FEW_ROWS < domain.bit_count():
            for one, row in enumerate(right):
                if row:
                    alike.setdefault(row, []).append(one)
        together = [(_marked(sources, self.count), targets) for targets, sources in alike.items()]
        known: dict[int, int] = {}
        for row in different:
            reached = 0
            if together and row.bit_count() > len(together):
                for sources, targets in together:
                    if row & sources:
                        reached |= targets
            else:
                for middle in bits(row):
                    reached |= right[middle]
            known[row] = reached
        return [known[row & domain] for row in left]

    def _inverse(self, rows: Rows) -> Rows:
        known = set(rows)
        if len(known) > FEW_ROWS and sum(map(int.bit_count, known)) > FEW_PAIRS * self.count:
            return transposed(rows)
        sources: dict[int, int] = {}
        for one, row in enumerate(rows):
            if row:
                sources[row] = sources.get(row, 0) | 1 << one
        inverse = [0] * self.count
        for row, mask in sources.items():
            for target in bits(row):
                inverse[target] |= mask
        return inverse

    def _closure(self, rows: Rows) -> Rows:
        """The transitive closure: depth first; components of a cycle are closed together at the end."""
        order = _topological(rows)
        if order is None:
            return super()._closure(rows)
        reach = list(rows)
        for one in order:
            left, found = rows[one], rows[one]
            while left:
                low = left & -left
                behind = reach[low.bit_length() - 1]
                found |= behind
                left &= ~(behind | low)
            reach[one] = found
        return reach


def _changed(execution: Execution, other: Execution) -> set[str]:
    """The base names that two executions of the same events decide in different ways."""
    mine, others = execution.chosen_relations, other.chosen_relations
    found = {name for name in mine.keys() | others.keys() if mine.get(name) is not others.get(name)}
    sets, there = execution.chosen_sets, other.chosen_sets
    return found | {name for name in sets.keys() | there.keys() if sets.get(name) != there.get(name)}


def _alike(model: Model, other: Model) -> dict[int, int]:
    """The definitions of a model that mean the same in the other one, each with its number there."""
    if model is other:
        return {number: number for number, one in enumerate(model.definitions) if one.group is None}
    numbers = {one.name: number for number, one in enumerate(other.definitions)}
    same: dict[int, int] = {}

    def equal(one: Expr, two: Expr) -> bool:
        if isinstance(one, Name) and isinstance(two, Name):
            return (
                one.name == two.name
                and (one.ref is None) == (two.ref is None)
                and (one.ref is None or same.get(one.ref) == two.ref)
            )
        if isinstance(one, Binary) and isinstance(two, Binary):
            return one.op == two.op and equal(one.left, two.left) and equal(one.right, two.right)
        if isinstance(one, Unary) and isinstance(two, Unary):
            return one.op == two.op and equal(one.operand, two.operand)
        return isinstance(one, Empty) and isinstance(two, Empty) and one.kind is two.kind

    for number, one in enumerate(model.definitions):
        old = numbers.get(one.name)
        two = None if old is None else other.definitions[old]
        if old is not None and two is not None and one.group is two.group is None and equal(one.body, two.body):
            same[number] = old
    return same


def _topological(rows: Rows) -> list[int] | None:
    """The events, successors first; None if there is a cycle. Depth first."""
    order: list[int] = []
    waiting, open_ = (1 << len(rows)) - 1, 0
    while waiting:
        low = waiting & -waiting
        waiting, open_ = waiting ^ low, open_ | low
        stack = [low.bit_length() - 1]
        while stack:
            row = rows[stack[-1]]
            if row & open_:
                return None
            low = row & waiting
            if low:
                low &= -low
                waiting, open_ = waiting ^ low, open_ | low
                stack.append(low.bit_length() - 1)
            else:
                one = stack.pop()
                open_ ^= 1 << one
                order.append(one)
    return order


FEW_ROWS, FEW_PAIRS = 200, 16
"""With fewer different rows, or fewer pairs in them for each event, a relation is turned over bit by bit."""


@cache
def _is_chain(expr: Expr) -> bool:
    """Is it a composition of two relations, neither of which is a set?"""
    return isinstance(expr, Binary) and expr.op == ";" and _filter(expr.right) is None and _filter(expr.left) is None


@cache
def _is_union(expr: Expr) -> bool:
    """Is it a union of names, and of names turned over? Then it costs nothing to take its parts one by one."""
    if isinstance(expr, Binary):
        return expr.op == "|" and _is_union(expr.left) and _is_union(expr.right)
    return isinstance(expr.operand if isinstance(expr, Unary) and expr.op == "^-1" else expr, Name)


@cache
def _filter(expr: Expr) -> Expr | None:
    """The set S of an expression [S]."""
    return expr.operand if isinstance(expr, Unary) and expr.op == "[]" and not isinstance(expr, Empty) else None
