"""Which programs two models cannot tell apart, by the labels of their events alone.

In: ModelSlices of two models, the labels that events of a program may have. Out: do all checks agree in every execution
of every program with such labels? `upper`: the labels that a definition may relate, whatever the execution; `differs`:
those on which two definitions may disagree. A label stands for any number of events, so that a base relation may relate
any two; sets that a label decides are exact. Both bounds follow the expressions: where two of them are built alike,
they disagree only by what their parts disagree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memmodel.base.labels import Label
from memmodel.base.rows import closure, compose, inverse, range_of
from memmodel.base.sets import SET_ROWS
from memmodel.cat.syntax import Model
from memmodel.search.judging.frames import Readied, ways
from memmodel.search.judging.slices import ModelSlices, WorldGrid
from memmodel.search.text import Draft, Seats
from memmodel.search.vocabulary import Vocabulary

Rows = tuple[int, ...]
"""A relation of labels by number; a set is one mask."""

_SETS = ("~set", "|set", "&set", "\\set", "domain", "range")


def alike(formulas: ModelSlices, models: Sequence[Model], flags: Iterable[str], labels: Sequence[Label]) -> bool:
    """Do two models agree on every execution with such events: on each axiom, and on each of these flags?"""
    bounds = _Bounds(formulas, labels)
    matter = [{one.name: one for one in (*it.axioms, *(f for f in it.flags if f.name in flags))} for it in models]
    for name in {*matter[0], *matter[1]}:
        mine, other = matter[0].get(name), matter[1].get(name)
        if mine is None or other is None or (mine.test, mine.negated) != (other.test, other.negated):
            return False
        if bounds.differs(formulas.body(0, name), formulas.body(1, name)) != bounds.nothing(formulas.body(0, name)):
            return False
    return True


def labels_of(it: Draft, vocabulary: Vocabulary, grid: WorldGrid, seatings: Sequence[Seats]) -> tuple[Label, ...]:
    """Every label that an event of a draft has, however it is spelt and runs."""
    frames = Readied(it, vocabulary, grid, seatings).frames()
    return tuple(dict.fromkeys(label for one in frames for variants in one.labels for _, label in variants))


class LabelFilter:
    """Two models, and the flags of theirs that matter. Asked once for all drafts of the same instructions."""

    def __init__(self, formulas: ModelSlices, models: Sequence[Model], flags: Sequence[str]) -> None:
        self._formulas, self._models, self._flags = formulas, models, flags
        self._known: dict[object, bool] = {}

    def excludes(self, it: Draft, vocabulary: Vocabulary, grid: WorldGrid, seatings: Sequence[Seats]) -> bool:
        """Do the models agree on every program of a draft?"""
        key = (vocabulary, frozenset(ways(it, spot, vocabulary) for body in it.threads for spot in body))
        if key not in self._known:
            labels = labels_of(it, vocabulary, grid, seatings)
            self._known[key] = alike(self._formulas, self._models, self._flags, labels)
        return self._known[key]


class _Bounds:
    def __init__(self, formulas: ModelSlices, labels: Sequence[Label]) -> None:
        self.formulas, self.labels = formulas, labels
        self.every = (1 << len(labels)) - 1
        self.same = tuple(1 << at for at in range(len(labels)))
        self._ends: dict[int, tuple[Any, Any]] = {}
        self._apart: dict[tuple[int, int], Any] = {}

    def nothing(self, node: int) -> Any:
        return 0 if self._is_set(node) else (0,) * len(self.labels)

    def _is_set(self, node: int) -> bool:
        key = self.formulas.nodes[node]
        return key[0] in _SETS or (key[0] == "base" and key[1] in SET_ROWS) or (key[0] == "0" and key[1])

    # ---- what a definition may be ----------------------------------------------------------------------------------

    def upper(self, node: int) -> Any:
        return self._bound(node)[0]

    def _bound(self, node: int) -> tuple[Any, Any]:
        """What a definition has at most, and at least."""
        if node not in self._ends:
            key = self.formulas.nodes[node]
            if key[0] == "fix":
                self._recursion(key[1])
            else:
                self._ends[node] = self._compute(node, key)
        return self._ends[node]

    def _recursion(self, group: int) -> None:
        """The least rows that contain the bodies of a `let rec`."""
        names, bodies = self.formulas.groups[group]
        found = [self.nothing(name) for name in names]
        kept = dict(self._ends)
        while True:
            self._ends = {**kept, **{name: (one, self.nothing(name)) for name, one in zip(names, found, strict=True)}}
            more = [self.upper(body) for body in bodies]
            if more == found:
                return
            found = [_or(one, other) for one, other in zip(found, more, strict=True)]

    def _compute(self, node: int, key: tuple[Any, ...]) -> tuple[Any, Any]:
        op, none = key[0], self.nothing(node)
        if op == "base":
            return self._base(key[1])
        if op in ("0", "rec"):
            return none, none
        if len(key) == 2:
            most, least = self._bound(key[1])
            if op == "~set":
                return self.every & ~least, self.every & ~most
            return self._unary(op, most), none
        (most, least), (top, low) = self._bound(key[1]), self._bound(key[2])
        if op == "|set":
            return most | top, least | low
        if op == "&set":
            return most & top, least & low
        if op == "\\set":
            return most & ~low, least & ~top
        return (most if op == "\\" else self._binary(op, most, top)), none

    def _base(self, name: str) -> tuple[Any, Any]:
        row = SET_ROWS.get(name)
        if row is None:
            every = self.same if name == "id" else (self.every,) * len(self.labels)
            return every, (0,) * len(self.labels)
        if row.holds is None:
            return self.every, 0
        mask = sum(1 << at for at, label in enumerate(self.labels) if row.holds(label))
        return mask, 0 if row.placed else mask

    def _unary(self, op: str, most: Any) -> Any:
        if op == "^-1":
            return tuple(inverse(most))
        if op == "[]":
            return tuple(one & most for one in self.same)
        if op == "domain":
            return sum(1 << at for at, row in enumerate(most) if row)
        if op == "range":
            return range_of(most)
        if op == "~":
            return (self.every,) * len(self.labels)
        found = most if op == "?" else tuple(closure(most))
        return found if op == "+" else _or(found, self.same)

    def _binary(self, op: str, one: Any, other: Any) -> Any:
        """Union, intersection, product of sets, or composition of relations."""
        if op[0] == "|":
            return _or(one, other)
        if op[0] == "&":
            return _and(one, other)
        if op == "*":
            return tuple(other if one >> at & 1 else 0 for at in range(len(self.labels)))
        return tuple(compose(one, other))

    # ---- where two definitions may disagree ------------------------------------------------------------------------

    def differs(self, one: int, other: int) -> Any:
        """What one of two definitions may have and the other not."""
        if one == other:
            return self.nothing(one)
        pair = (one, other)
        if pair not in self._apart:
            either = _or(self.upper(one), self.upper(other))
            self._apart[pair] = _and(either, self._parts(one, other)) if either != self.nothing(one) else either
        return self._apart[pair]

    def _parts(self, one: int, other: int) -> Any:
        mine, its = self.formulas.nodes[one], self.formulas.nodes[other]
        either = _or(self.upper(one), self.upper(other))
        either = self._absorbed(mine, other, either)
        either = self._absorbed(its, one, either)
        if mine[0] != its[0] or len(mine) != len(its) or mine[0] in ("base", "0", "rec"):
            return either
        if mine[0] == "fix":
            return self._recursions(mine, its, either)
        if len(mine) == 2:
            apart = self.differs(mine[1], its[1])
            if mine[0] in ("~", "~set", "?"):
                return apart
            if mine[0] in ("+", "*"):
                around = _or(tuple(closure(_or(self.upper(mine[1]), self.upper(its[1])))), self.same)
                return tuple(compose(compose(around, apart), around))
            return self._unary(mine[0], apart)
        found = self._both(mine[0], mine[1:], its[1:])
        if mine[0][0] in "|&":
            found = _and(found, self._both(mine[0], mine[1:], its[:0:-1]))
        return found

    def _absorbed(self, key: tuple[Any, ...], other: int, either: Any) -> Any:
        """An expression and one of its own operands."""
        if len(key) == 3 and key[0] != "fix" and other in key[1:]:
            rest = key[2] if key[1] == other else key[1]
            if key[0][0] == "|":
                return self.upper(rest)
            if key[0][0] == "\\" and key[1] == other:
                return _and(self.upper(other), self.upper(rest))
        return either

    def _both(self, op: str, mine: Sequence[int], its: Sequence[int]) -> Any:
        first, second = self.differs(mine[0], its[0]), self.differs(mine[1], its[1])
        if op[0] == "|":
            return _or(first, second)
        left = _or(self.upper(mine[0]), self.upper(its[0]))
        right = _or(self.upper(mine[1]), self.upper(its[1]))
        if op[0] == "\\":
            return _or(first, _and(left, second))
        return _or(self._binary(op, first, right), self._binary(op, left, second))

    def _recursions(self, mine: tuple[Any, ...], its: tuple[Any, ...], either: Any) -> Any:
        """Two `let rec` agree if their bodies agree wherever the names do: so do all steps to their fixpoints."""
        (names, bodies), (others, theirs) = self.formulas.groups[mine[1]], self.formulas.groups[its[1]]
        if len(names) != len(others) or mine[2] != its[2]:
            return either
        kept = dict(self._apart)
        for one, other in zip(names, others, strict=True):
            self._apart[one, other] = self.nothing(one)
        if all(self.differs(a, b) == self.nothing(a) for a, b in zip(bodies, theirs, strict=True)):
            return self.nothing(names[0])
        self._apart = kept
        for one, other in zip(names, others, strict=True):
            self._apart[one, other] = _or(self.upper(one), self.upper(other))
        return either


def _or(one: Any, other: Any) -> Any:
    return one | other if isinstance(one, int) else tuple(a | b for a, b in zip(one, other, strict=True))


def _and(one: Any, other: Any) -> Any:
    return one & other if isinstance(one, int) else tuple(a & b for a, b in zip(one, other, strict=True))
