"""Why a pair is in a relation of a candidate, or is not: formulas that hold there, and that suffice wherever they hold.

In: Formulas, View of a candidate. Out: sets of formulas. A pair that is in every execution in which its events run
needs no other reason, and what has a short formula is its own reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memmodel.base.logic import FALSE, TRUE
from memmodel.base.rows import Rows, bits
from memmodel.cat.evaluate.rows import Value, as_relation
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

    def why(self, number: int, a: int, b: int, present: bool = True) -> Reason:
        """The reason why the pair is in the relation; if it is not `present`, why it is not."""
        key = (number, a, b, present)
        reason = self._known.get(key)
        if reason is None:
            reason = self._known[key] = self._why(number, a, b, present)
        return reason

    def _why(self, number: int, a: int, b: int, present: bool) -> Reason:
        cells, node = self.cells, self.nodes[number]
        if not node.open:
            formula = cells.formula(number, a, b)
            if formula is not None:
                formula = formula if present else -formula
                if formula == FALSE:
                    raise InternalError(f"a reason for what is not so: {node.op} {a} {b} {present}")
                return NONE if formula == TRUE else frozenset((formula,))
        return self._present(number, a, b) if present else self._absent(number, a, b)

    def _runs(self, *events: int) -> Reason:
        runs = self.cells.base.runs
        return frozenset(runs[event] for event in events if runs[event] != TRUE)

    # ---- present -----------------------------------------------------------------------------------------------------

    def _present(self, number: int, a: int, b: int) -> Reason:
        node, view = self.nodes[number], self.view
        op, args = node.op, node.operands
        match op:
            case "|":
                return min((self.why(arg, a, b) for arg in args if view.has(arg, a, b)), key=len)
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
                return self.why(args[0], a, self._pick(args[0], a, View.rows))
            case "range":
                return self.why(args[0], self._pick(args[0], a, View.inverse), a)
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

    def _pick(self, number: int, event: int, rows: Callable[[View, int], Rows]) -> int:
        """An event that another event is related to, in a relation or its inverse: one that needs few reasons."""
        row = rows(self.view, number)[event]
        best = (row & rows(self.cells.sure, number)[event] if self._is_open(number) else 0) or row
        return (best & -best).bit_length() - 1

    def _path(self, number: int, a: int, b: int) -> Reason:
        """A path with few steps that are not in every execution."""
        layers = self._layers(number, a)
        at = b
        back, sure = self.view.inverse(number), self._sure_paths(number)
        last = next((n for n, (_, arrived) in enumerate(layers) if arrived >> b & 1), None)
        if last is None:
            raise InternalError("no path where a closure has one")
        reason = self._runs(a, b)
        for layer in range(last, 0, -1):
            entered = layers[layer][0]
            if not entered >> at & 1:
                at = next(event for event in bits(entered) if sure[event] >> at & 1)
            before = layers[layer - 1][1] | (1 << a if layer == 1 else 0)
            came = back[at] & before
            previous = (came & -came).bit_length() - 1
            reason |= self.why(number, previous, at) | self._runs(previous, at)
            at = previous
        return reason

    def _layers(self, number: int, a: int) -> list[tuple[int, int]]:
        """What is reached from an event by 0, 1, 2, … steps that are not in every execution: (by the step, all)."""
        layers = self._reached.get((number, a))
        if layers is None:
            steps, running = self.view.rows(number), self.view.algebra.running
            sure = [row & running for row in self._sure_paths(number)]
            reached = sure[a]
            layers = [(0, reached)]
            arrived = reached | 1 << a
            while arrived:
                entered = 0
                for event in bits(arrived):
                    entered |= steps[event]
                arrived = entered = entered & ~reached
                for event in bits(entered):
                    arrived |= sure[event]
                arrived &= ~reached
                layers.append((entered, arrived))
                reached |= arrived
            self._reached[number, a] = layers
        return layers

    def cycle(self, number: int, a: int) -> Reason:
        """A cycle through an event, with few steps that are not in every execution."""
        return self._path(number, a, a)

    def _sure_paths(self, number: int) -> Rows:
        if number not in self._surely:
            open_ = self._is_open(number)
            sure = self.cells.sure
            self._surely[number] = (
                as_relation(sure.algebra.closure(sure.rows(number))) if open_ else [0] * self.cells.count
            )
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

    # ---- absent ------------------------------------------------------------------------------------------------------

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
                for event in (a, b):
                    if not view.has(args[0], event, event):
                        return self.why(args[0], event, event, False)
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
        """The reason that one of two events does not run."""
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
        may = self._may(number)
        sources = _reached(self.view.rows(number), a)
        useful = _reached(self._may_back(number), b)
        targets = useful & ~sources | 1 << b
        return self._none_of(
            self.why(number, event, other, False)
            for event in bits(sources & useful)
            for other in bits(may[event] & targets)
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
        reasons: set[int] = set()
        while waiting:
            member, first, second = waiting.pop()
            reasons |= inside.why(bodies[member], first, second, False)
        return frozenset(reasons)


def _reached(rows: Rows, event: int) -> int:
    """The event, and all that is reached from it."""
    reached = new = 1 << event
    while new:
        after = 0
        for source in bits(new):
            after |= rows[source]
        new = after & ~reached
        reached |= after
    return reached


def _has(value: Value, a: int, b: int) -> bool:
    return bool(value >> a & 1 if isinstance(value, int) else value[a] >> b & 1)
