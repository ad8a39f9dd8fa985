"""Why a pair is in a relation of a candidate, or is not: formulas that hold there, and that suffice wherever they hold.

In: Formulas, View of a candidate. Out: sets of formulas. A pair that is in every execution in which its events run
needs no other reason, and what has a short formula is its own reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.base.logic import FALSE, TRUE
from memmodel.base.rows import Rows, bits
from memmodel.cat.evaluate.rows import Value, rows_of
from memmodel.errors import InternalError
from memmodel.refine.cells import Formulas
from memmodel.refine.views import View

Reason = frozenset[int]
NONE: Reason = frozenset()


class Explainer:
    """Reasons in one candidate. `outer`: where this one explains the bodies of a `let rec`, `recursion`, in one round.

    `waiting`: pairs of members of that `let rec`, by place, whose absence is still to be explained.
    """

    def __init__(
        self,
        cells: Formulas,
        view: View,
        outer: Explainer | None = None,
        recursion: int = -1,
        waiting: list[tuple[int, int, int]] | None = None,
    ) -> None:
        self.cells = cells
        self.nodes = cells.nodes
        self.view = view
        self._recursion = recursion
        self._known: dict[tuple[int, int, int, bool], Reason] = {}
        self._surely: dict[int, Rows] = {}
        self._reached: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._stages: dict[tuple[int, int], Explainer] = {}
        self._outer = self if outer is None else outer
        self._waiting = waiting
        self._seen = set(waiting or ())

    def why(self, number: int, a: int, b: int, there: bool = True) -> Reason:
        """Why is the pair there, or not there?"""
        key = (number, a, b, there)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._why(number, a, b, there)
        return found

    def _why(self, number: int, a: int, b: int, there: bool) -> Reason:
        cells, node = self.cells, self.nodes[number]
        if not node.open:
            formula = cells.formula(number, a, b)
            if formula is not None:
                formula = formula if there else -formula
                if formula == FALSE:
                    raise InternalError(f"a reason for what is not so: {node.op} {a} {b} {there}")
                return NONE if formula == TRUE else frozenset((formula,))
        return self._present(number, a, b) if there else self._absent(number, a, b)

    def _runs(self, *events: int) -> Reason:
        runs = self.cells.base.runs
        return frozenset(runs[one] for one in events if runs[one] != TRUE)

    # ---- there -------------------------------------------------------------------------------------------------------

    def _present(self, number: int, a: int, b: int) -> Reason:
        node, view = self.nodes[number], self.view
        op, args = node.op, node.operands
        match op:
            case "|":
                return min(
                    (self.why(arg, a, b) for arg in args if view.has(arg, a, b)),
                    key=len,
                )
            case "&":
                return self.why(args[0], a, b) | self.why(args[1], a, b)
            case "\\":
                return self.why(args[0], a, b) | self.why(args[1], a, b, False)
            case ";":
                middle = self._middle(args[0], args[1], a, b)
                return self.why(args[0], a, middle) | self.why(args[1], middle, b)
            case "^-1":
                return self.why(args[0], b, a)
            case "[]":
                return self.why(args[0], a, a)
            case "product":
                return self.why(args[0], a, a) | self.why(args[1], b, b)
            case "~":
                return self._runs(a, b) | self.why(args[0], a, b, False)
            case "domain":
                return self.why(args[0], a, self._pick(args[0], a))
            case "range":
                return self.why(args[0], self._pick_back(args[0], a), a)
            case "?" | "*" if a == b:
                return self._runs(a)
            case "?":
                return self.why(args[0], a, b)
            case "+" | "*":
                return self._path(args[0], a, b)
            case "order":
                cell = self.cells.order(node)[a][b]
                return frozenset((cell,)) | self.why(args[0], a, a) | self.why(args[0], b, b)
            case "self":
                return self._derived(self._recursion, node.place, a, b)
            case "member":
                return self._derived(args[0], node.place, a, b)
        raise InternalError(f"no reason for {op}")

    def _middle(self, left: int, right: int, a: int, b: int) -> int:
        """An event by way of which two relations are composed: one that needs few reasons."""
        between = self.view.rows(left)[a] & self.view.inverse(right)[b]
        first = between & self.cells.sure.rows(left)[a] if self._is_open(left) else 0
        second = between & self.cells.sure.inverse(right)[b] if self._is_open(right) else 0
        best = first & second or first or second or between
        return (best & -best).bit_length() - 1

    def _is_open(self, number: int) -> bool:
        """True if the node can be looked up in the bounds."""
        return not self.nodes[number].open

    def _pick(self, number: int, a: int) -> int:
        row = self.view.rows(number)[a]
        best = (row & self.cells.sure.rows(number)[a] if self._is_open(number) else 0) or row
        return (best & -best).bit_length() - 1

    def _pick_back(self, number: int, b: int) -> int:
        row = self.view.inverse(number)[b]
        best = (row & self.cells.sure.inverse(number)[b] if self._is_open(number) else 0) or row
        return (best & -best).bit_length() - 1

    def _path(self, number: int, a: int, b: int) -> Reason:
        """A path with few steps that are not in every execution."""
        layers = self._layers(number, a)
        at = b
        back, sure = self.view.inverse(number), self._sure_paths(number)
        last = next((n for n, (_, here) in enumerate(layers) if here >> b & 1), None)
        if last is None:
            raise InternalError("no path where a closure has one")
        reason = self._runs(a, b)
        for layer in range(last, 0, -1):
            entered = layers[layer][0]
            if not entered >> at & 1:
                at = next(one for one in bits(entered) if sure[one] >> at & 1)
            before = layers[layer - 1][1] | (1 << a if layer == 1 else 0)
            came = back[at] & before
            previous = (came & -came).bit_length() - 1
            reason |= self.why(number, previous, at) | self._runs(previous, at)
            at = previous
        return reason

    def _layers(self, number: int, a: int) -> list[tuple[int, int]]:
        """What is reached from an event by 0, 1, 2, … steps that are not in every execution: (by the step, all)."""
        found = self._reached.get((number, a))
        if found is None:
            steps, running = self.view.rows(number), self.view.algebra.running
            sure = [row & running for row in self._sure_paths(number)]
            reached = sure[a]
            found = [(0, reached)]
            here = reached | 1 << a
            while here:
                entered = 0
                for one in bits(here):
                    entered |= steps[one]
                here = entered = entered & ~reached
                for one in bits(entered):
                    here |= sure[one]
                here &= ~reached
                found.append((entered, here))
                reached |= here
            self._reached[number, a] = found
        return found

    def cycle(self, number: int, a: int) -> Reason:
        """A cycle through an event, with few steps that are not in every execution."""
        return self._path(number, a, a)

    def _sure_paths(self, number: int) -> Rows:
        if number not in self._surely:
            open_ = self._is_open(number)
            sure = self.cells.sure
            self._surely[number] = rows_of(sure.algebra.closure(sure.rows(number))) if open_ else [0] * self.cells.count
        return self._surely[number]

    def _derived(self, recursion: int, place: int, a: int, b: int) -> Reason:
        """A member of a `let rec`: by the round of its fixpoint that added the pair."""
        outer = self._outer
        at = next(n for n, stage in enumerate(outer.view.rounds(recursion)) if _has(stage[place], a, b))
        return outer.within(recursion, at - 1).why(self.nodes[recursion].operands[place], a, b)

    def within(self, recursion: int, stage: int) -> Explainer:
        """Reasons of the bodies of a `let rec`, where its members are as one round found them."""
        key = (recursion, stage)
        if key not in self._stages:
            view = self.view.within(self.view.rounds(recursion)[stage])
            self._stages[key] = Explainer(self.cells, view, self, recursion)
        return self._stages[key]

    # ---- not there ---------------------------------------------------------------------------------------------------

    def _absent(self, number: int, a: int, b: int) -> Reason:
        node, view = self.nodes[number], self.view
        op, args = node.op, node.operands
        if self._is_open(number) and not self.cells.high.has(number, a, b):
            return NONE
        match op:
            case "|":
                return self.why(args[0], a, b, False) | self.why(args[1], a, b, False)
            case "&":
                missing = [arg for arg in args if not view.has(arg, a, b)]
                return min((self.why(arg, a, b, False) for arg in missing), key=len)
            case "\\":
                if not view.has(args[0], a, b):
                    return self.why(args[0], a, b, False)
                return self.why(args[1], a, b)
            case ";":
                between = self._may(args[0])[a] & self._may_back(args[1])[b]
                return self._none_of(
                    self.why(args[0], a, m, False) if not view.has(args[0], a, m) else self.why(args[1], m, b, False)
                    for m in bits(between)
                )
            case "^-1":
                return self.why(args[0], b, a, False)
            case "[]":
                return self.why(args[0], a, a, False) if a == b else NONE
            case "product":
                return self.why(args[0], a, a, False) if not view.has(args[0], a, a) else self.why(args[1], b, b, False)
            case "~":
                return self.why(args[0], a, b) if view.has(args[0], a, b) else self._stands(a, b)
            case "domain":
                return self._none_of(self.why(args[0], a, m, False) for m in bits(self._may(args[0])[a]))
            case "range":
                return self._none_of(self.why(args[0], m, a, False) for m in bits(self._may_back(args[0])[a]))
            case "?":
                return self.why(args[0], a, b, False) | (self._stands(a, b) if a == b else NONE)
            case "+" | "*":
                return self._cut(args[0], a, b) | (self._stands(a, b) if op == "*" and a == b else NONE)
            case "order":
                for one in (a, b):
                    if not view.has(args[0], one, one):
                        return self.why(args[0], one, one, False)
                return frozenset((-self.cells.order(node)[a][b],))
            case "self":
                return self._later(node.place, a, b)
            case "member":
                return self._never_derived(args[0], node.place, a, b)
        raise InternalError(f"no reason for the absence of {op}")

    @staticmethod
    def _none_of(reasons: Iterable[Reason]) -> Reason:
        return NONE.union(*reasons)

    def _stands(self, a: int, b: int) -> Reason:
        """One of two events does not run."""
        idle = a if not self.view.algebra.running >> a & 1 else b
        return frozenset((-self.cells.base.runs[idle],))

    def _may(self, number: int) -> Rows:
        if self._is_open(number):
            return self.cells.high.rows(number)
        return [(1 << self.cells.count) - 1] * self.cells.count

    def _may_back(self, number: int) -> Rows:
        if self._is_open(number):
            return self.cells.high.inverse(number)
        return [(1 << self.cells.count) - 1] * self.cells.count

    def _cut(self, number: int, a: int, b: int) -> Reason:
        """No step leads out of what is reached from `a`, as far as it could go on to `b`."""
        steps, may = self.view.rows(number), self._may(number)
        reached, new = 1 << a, 1 << a
        while new:
            after = 0
            for one in bits(new):
                after |= steps[one]
            new = after & ~reached
            reached |= after
        sources = reached
        back = self._may_back(number)
        useful, new = 1 << b, 1 << b
        while new:
            before = 0
            for one in bits(new):
                before |= back[one]
            new = before & ~useful
            useful |= before
        targets = useful & ~sources | 1 << b
        return self._none_of(
            self.why(number, one, other, False) for one in bits(sources & useful) for other in bits(may[one] & targets)
        )

    def _later(self, place: int, a: int, b: int) -> Reason:
        """A member of the `let rec` that is being looked at: its own turn comes."""
        if self._waiting is None:
            raise InternalError("a fixpoint is looked into from outside")
        if (place, a, b) not in self._seen:
            self._seen.add((place, a, b))
            self._waiting.append((place, a, b))
        return NONE

    def _never_derived(self, recursion: int, place: int, a: int, b: int) -> Reason:
        """No rule of the group derives the pair from the pairs that are there, nor what it would be derived from."""
        outer, waiting = self._outer, [(place, a, b)]
        last = outer.view.within(outer.view.rounds(recursion)[-1])
        inside = Explainer(self.cells, last, outer, recursion, waiting)
        bodies = self.nodes[recursion].operands
        found: set[int] = set()
        while waiting:
            member, first, second = waiting.pop()
            found |= inside.why(bodies[member], first, second, False)
        return frozenset(found)


def _has(value: Value, a: int, b: int) -> bool:
    return bool(value >> a & 1 if isinstance(value, int) else value[a] >> b & 1)
