"""Whether two models agree on all programs with given labels of events.

In: ModelSlices of two models, the labels that events of a program may have. Out: whether all checks agree in every
execution of every program with such labels. `upper`: the labels that a definition may relate, whatever the execution;
`differs`: those on which two definitions may disagree. A label stands for any number of events, so that a base relation
may relate any two; sets that a label decides are exact. Both bounds follow the expressions: where two of them are built
alike, they disagree only by what their parts disagree on, and not at all where the laws of the operators show it
(`inclusion`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memmodel.base.label_bounds import may_relate
from memmodel.base.labels import Label
from memmodel.base.rows import Rows
from memmodel.base.sets import SET_ROWS
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import COMMUTING, ExpressionGraph, Node
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation
from memmodel.cat.syntax import Model
from memmodel.errors import InternalError
from memmodel.search.judging.frames import Readied, ways
from memmodel.search.judging.implied import Implied
from memmodel.search.judging.inclusion import Inclusions
from memmodel.search.judging.slices import ModelSlices
from memmodel.search.programs import Ready

ALIASES = "loc \\ vloc"
"""A name for what two accesses through different virtual addresses of one location are in."""

_ONE_ADDRESS = frozenset({"loc", "vloc"})
"""Relations that are equal where no location has two virtual addresses."""


def alike(
    formulas: ModelSlices,
    models: Sequence[Model],
    flags: Iterable[str],
    labels: Sequence[Label],
    absent: Collection[str] = (),
) -> bool:
    """True if two models agree on each axiom and on each of these flags, in every execution with such events in which
    the relations `absent` are empty. ALIASES: no location has two virtual addresses."""
    most = upper_bounds(formulas.graph, labels, absent)
    equal = _ONE_ADDRESS if ALIASES in absent else frozenset()
    bounds = Differences(most, most, equal, formulas.inclusions)
    matter = [{check.name: check for check in (*it.axioms, *(f for f in it.flags if f.name in flags))} for it in models]
    for name in {*matter[0], *matter[1]}:
        mine, other = matter[0].get(name), matter[1].get(name)
        if mine is None or other is None or (mine.kind, mine.negated) != (other.kind, other.negated):
            return False
        bodies = formulas.body(0, name), formulas.body(1, name)
        if mine.body.kind is not other.body.kind or not bounds.agree(*bodies):
            return False
    return True


def labels_of(ready: Ready) -> tuple[Label, ...]:
    """Every label that an event of a sketch has, however it is spelt and runs."""
    frames = Readied(ready).frames()
    return tuple(dict.fromkeys(label for frame in frames for variants in frame.labels for _, label in variants))


class LabelFilter:
    """Two models, and the flags of theirs that matter. Asked once for all drafts of the same instructions."""

    def __init__(self, formulas: ModelSlices, models: Sequence[Model], flags: Sequence[str]) -> None:
        self._formulas, self._models, self._flags = formulas, models, flags
        self._known: dict[object, bool] = {}

    def excludes(self, ready: Ready) -> bool:
        """True if the models agree on every program of a sketch."""
        key = (ready.vocabulary, frozenset(ways(ready.draft, spot, ready.vocabulary) for spot in ready.spots))
        if key not in self._known:
            self._known[key] = alike(self._formulas, self._models, self._flags, labels_of(ready))
        return self._known[key]


class MostLabels(RowAlgebra):
    """The labels that a set may have or a relation relate, in some execution; a relation may relate all or none."""

    def __init__(self, labels: Sequence[Label], absent: Collection[str] = ()) -> None:
        super().__init__(len(labels))
        self._labels, self._absent = labels, absent

    def base(self, node: Node) -> Value:
        if not node.is_set:
            return self._relation(node.name)
        holds = SET_ROWS[node.name].holds
        return self.running if holds is None else sum(1 << at for at, label in enumerate(self._labels) if holds(label))

    def _relation(self, name: str) -> Rows:
        if name in self._absent:
            return [0] * self.count
        if name == "id":
            return [1 << at for at in range(self.count)]
        return may_relate(name, self._labels)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        raise InternalError("the search follows no choice of an order")


class LeastLabels(MostLabels):
    """The labels that a set has, and the labels of which a relation relates any two events, in every execution. A label
    may have no event, so that nothing is certain of what needs an event in between."""

    def base(self, node: Node) -> Value:
        row = SET_ROWS.get(node.name)
        return self.empty(node.is_set) if row is None or row.holds is None or row.placed else super().base(node)

    def compose(self, left: Value, right: Value) -> Rows:
        return [0] * self.count

    def closure(self, relation: Value) -> Rows:
        return as_relation(relation)

    def domain(self, relation: Value) -> int:
        return 0

    def range(self, relation: Value) -> int:
        return 0

    def identity(self, events: Value) -> Rows:
        return [0] * self.count

    def optional(self, relation: Value) -> Rows:
        return as_relation(relation)


def upper_bounds(graph: ExpressionGraph, labels: Sequence[Label], absent: Collection[str] = ()) -> Evaluator[Value]:
    """What each node may have, whatever the execution."""
    most, least = Evaluator(graph, MostLabels(labels, absent)), Evaluator(graph, LeastLabels(labels, absent))
    most.opposite, least.opposite = least, most
    return most


class Differences:
    """What one of two nodes may have and the other not. `mine`, `theirs`: bounds for the first and for the second one,
    where open nodes, of the bodies of two groups of `let rec`, are compared. `equal`: base relations that are equal."""

    def __init__(
        self,
        mine: Evaluator[Value],
        theirs: Evaluator[Value],
        equal: Collection[str] = (),
        inclusions: Inclusions | None = None,
    ) -> None:
        self.nodes, self.algebra, self._equal = mine.nodes, mine.algebra, equal
        self.mine, self.theirs = mine, theirs
        self._inclusions = Inclusions(mine.nodes) if inclusions is None else inclusions
        self._contained = Implied(mine), Implied(theirs)
        self._apart: dict[tuple[int, int], Value] = {}

    def agree(self, node: int, other: int) -> bool:
        """True if two nodes are equal in every execution."""
        return self.algebra.is_empty(self.differs(node, other))

    def differs(self, node: int, other: int) -> Value:
        if node == other:  # in the bodies of two groups: as long as their members agree
            return self.algebra.empty(self.nodes[node].is_set)
        if {self.nodes[node].name, self.nodes[other].name} <= {*self._equal}:
            return self.algebra.empty(is_set=False)
        pair = (node, other)
        if pair not in self._apart:
            if self._inclusions.equal(node, other):
                either = self.algebra.empty(self.nodes[node].is_set)
            else:
                either = self._apart_at_most(node, other)
            if not self.algebra.is_empty(either):
                either = self.algebra.intersection(either, self._parts(node, other, either))
            whole = self._whole(self.mine, node), self._whole(self.theirs, other)
            if whole != pair and not self.algebra.is_empty(either):
                either = self.algebra.intersection(either, self.differs(*whole))
            self._apart[pair] = either
        return self._apart[pair]

    def _whole(self, bounds: Evaluator[Value], number: int) -> int:
        """The operand that a node equals where another one is empty in every execution."""
        node = self.nodes[number]
        if node.open or len(node.operands) != 2:
            return number
        first, second = node.operands
        if node.op in ("|", "\\") and self._is_never(bounds, second):
            return self._whole(bounds, first)
        if node.op == "|" and self._is_never(bounds, first):
            return self._whole(bounds, second)
        if node.op == ";":
            for inner, steps in ((first, second), (second, first)):
                if self.nodes[steps].op in ("*", "?") and self._is_never(bounds, self.nodes[steps].operands[0]):
                    return self._whole(bounds, inner)
        return number

    def _is_never(self, bounds: Evaluator[Value], node: int) -> bool:
        """True if a set or relation is empty in every execution."""
        return self.algebra.is_empty(bounds.value(node))

    def _apart_at_most(self, node: int, other: int) -> Value:
        """An upper bound of the difference of two nodes: what one may have and the other need not have; for open nodes,
        all that either may have.
        """
        if self.nodes[node].open or self.nodes[other].open:
            return self._either(node, other)
        mine, theirs, algebra = self.mine, self.theirs, self.algebra
        only_mine = algebra.difference(mine.value(node), theirs.opposite.value(other))
        return algebra.union(only_mine, algebra.difference(theirs.value(other), mine.opposite.value(node)))

    def _either(self, node: int, other: int) -> Value:
        return self.algebra.union(self.mine.value(node), self.theirs.value(other))

    def _parts(self, node: int, other: int, either: Value) -> Value:
        """An upper bound of the difference of two nodes, narrowed by what differs in their operands. `either`: the
        bound so far.
        """
        mine, theirs, algebra = self.nodes[node], self.nodes[other], self.algebra
        either = self._absorbed(self.mine, mine, other, either)
        either = self._absorbed(self.theirs, theirs, node, either)
        if (inner := self._filtered(self.mine, mine)) is not None:
            at, dropped = inner
            either = algebra.intersection(either, algebra.union(self.differs(at, other), dropped))
        if (inner := self._filtered(self.theirs, theirs)) is not None:
            at, dropped = inner
            either = algebra.intersection(either, algebra.union(self.differs(node, at), dropped))
        op, first, second = mine.op, mine.operands, theirs.operands
        if op != theirs.op or not first or len(first) != len(second):
            return either
        return algebra.intersection(either, self._operands(op, mine, theirs, either))

    def _filtered(self, bounds: Evaluator[Value], node: Node) -> tuple[int, Value] | None:
        """The relation of which an expression keeps what begins, or ends, in a set, and what it may drop of it."""
        if node.op != ";" or node.open:
            return None
        for inner, kept in (node.operands, node.operands[::-1]):
            if self.nodes[kept].op == "[]":
                # An event that need not be in the set.
                surely = bounds.opposite.value(self.nodes[kept].operands[0])
                others = self.algebra.complement(surely, is_set=True)
                if kept == node.operands[0]:
                    return inner, self.algebra.from_sources(others, bounds.value(inner))
                return inner, self.algebra.to_targets(bounds.value(inner), others)
        return None

    def _operands(self, op: str, mine: Node, theirs: Node, either: Value) -> Value:
        """An upper bound of the difference of two nodes with one operator, from what differs in their operands."""
        first, second, algebra = mine.operands, theirs.operands, self.algebra
        if op == "member":
            agree = mine.place == theirs.place and self._recursions_agree(first[0], second[0])
            return algebra.empty(mine.is_set) if agree else either
        if len(first) == 2:
            apart = self._both(mine, first, second)
            if op not in COMMUTING or algebra.is_empty(apart):
                return apart
            return algebra.intersection(apart, self._both(mine, first, second[::-1]))
        apart = self.differs(first[0], second[0])
        if op in ("~", "?") or (op in ("+", "*") and algebra.is_empty(apart)):
            return apart
        if op in ("+", "*"):
            around = algebra.reflexive_closure(self._either(first[0], second[0]))
            return algebra.compose(algebra.compose(around, apart), around)
        return algebra.apply(op, apart)

    def _absorbed(self, bounds: Evaluator[Value], node: Node, other: int, either: Value) -> Value:
        """An expression and one of its own operands, or two closures of one relation."""
        if len(node.operands) == 1 and node.op in ("?", "+", "*") and not self.nodes[node.operands[0]].open:
            return self._closures(bounds, node, other, either)
        if len(node.operands) == 2 and other in node.operands:
            rest = node.operands[1] if node.operands[0] == other else node.operands[0]
            if node.op in COMMUTING and rest == other:
                return self.algebra.empty(node.is_set)
            if node.op == "|":
                return bounds.value(rest)
            if node.op == "&" and not self.nodes[rest].open:
                apart = self.algebra.difference(bounds.value(other), bounds.opposite.value(rest))
                if node.is_set or self.algebra.is_empty(self.algebra.intersection(apart, either)):
                    return apart
                return self.algebra.difference(apart, self._implied(bounds).where(other, rest))
            if node.op == "\\" and node.operands[0] == other:
                return self.algebra.intersection(bounds.value(other), bounds.value(rest))
            if node.op == ";" and self.nodes[rest].op in ("*", "?") and not self.nodes[rest].open:
                # What `*` or `?` adds is a step at least.
                step = bounds.value(self.nodes[rest].operands[0])
                steps = self.algebra.closure(step) if self.nodes[rest].op == "*" else step
                if node.operands[0] == other:
                    return self.algebra.compose(bounds.value(other), steps)
                return self.algebra.compose(steps, bounds.value(other))
        return either

    def _implied(self, bounds: Evaluator[Value]) -> Implied:
        """Where one relation is contained in another one."""
        return self._contained[0 if bounds is self.mine else 1]

    def _closures(self, bounds: Evaluator[Value], node: Node, other: int, either: Value) -> Value:
        """A relation with `?`, `+` or `*`, and the same with another of these, or without."""
        closed, relation, algebra = self.nodes[other], node.operands[0], self.algebra
        if other == relation:
            op = ""
        elif closed.op in ("?", "+", "*") and closed.operands == node.operands:
            op = closed.op
        else:
            return either
        reflexive, transitive = ([word in words for word in (node.op, op)] for words in (("?", "*"), ("+", "*")))
        value, apart = bounds.value(relation), algebra.empty(is_set=False)
        if reflexive[0] != reflexive[1]:
            apart = algebra.identity(algebra.domain(either))
        if transitive[0] != transitive[1]:  # chains of two or more
            apart = algebra.union(apart, algebra.compose(value, algebra.closure(value)))
        return algebra.intersection(either, apart)

    def _both(self, node: Node, mine: Sequence[int], theirs: Sequence[int]) -> Value:
        """An upper bound of the difference of two expressions with one binary operator, that of `node`."""
        op, algebra = node.op, self.algebra
        first, second = self.differs(mine[0], theirs[0]), self.differs(mine[1], theirs[1])
        if algebra.is_empty(first) and algebra.is_empty(second):
            return algebra.empty(node.is_set)
        if op == "|":
            return algebra.union(first, second)
        left, right = self._either(mine[0], theirs[0]), self._either(mine[1], theirs[1])
        if op == "\\":
            return algebra.union(first, algebra.intersection(left, second))
        return algebra.union(algebra.apply(op, first, right), algebra.apply(op, left, second))

    def _recursions_agree(self, node: int, other: int) -> bool:
        """Two `let rec` agree if their bodies agree wherever the names do: so do all steps to their fixpoints."""
        mine, theirs = self.nodes[node].operands, self.nodes[other].operands
        kinds = [[self.nodes[body].is_set for body in bodies] for bodies in (mine, theirs)]
        if kinds[0] != kinds[1]:
            return False
        inside = Differences(_within(self.mine, node), _within(self.theirs, other), self._equal, self._inclusions)
        return all(inside.agree(body, its) for body, its in zip(mine, theirs, strict=True))


def _within(bounds: Evaluator[Value], recursion: int) -> Evaluator[Value]:
    """Bounds for the bodies of a `let rec`."""
    return bounds.within(bounds.members(recursion))
