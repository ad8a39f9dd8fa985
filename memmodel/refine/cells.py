"""The relations of a model as formulas, one pair of events at a time.

In: DefinitionGraph, BaseFormulas. Out: `Formulas`: for each node the pairs that are in every execution and those that
are in some; for a pair between these its formula, if that is short. Formulas are built when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from memmodel.base.logic import FALSE, TRUE
from memmodel.base.relations import DECIDED, RELATION_ROWS
from memmodel.base.rows import Rows, bits
from memmodel.base.sets import DECIDED as DECIDED_SETS
from memmodel.base.sets import SET_ROWS
from memmodel.cat.analysis import CHOICE
from memmodel.cat.evaluate.graph import DefinitionGraph, Node
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_set
from memmodel.encode.base import BaseFormulas
from memmodel.encode.relations import Rel, Row
from memmodel.refine.views import SureRows, View

CHOSEN = frozenset((*DECIDED, *DECIDED_SETS, CHOICE))
"""A node that depends on none of these base names follows from which events run."""

MIDDLES = 64
"""A composition that may go by way of more events than this has no formula: it would be long."""


class Formulas:
    """One model over one event graph. `sure`: the pairs that are in every execution in which their events run; `high`:
    those that are in some execution. `named`: the nodes of definitions.

    `definitions` has all expressions that will be asked for.
    """

    def __init__(self, definitions: DefinitionGraph, base: BaseFormulas) -> None:
        self.nodes = definitions.graph.nodes
        self.named = frozenset(definitions.defined)
        self.base = base
        self.logic = base.graph.logic
        self.count = len(base.graph.events)
        self.orders: dict[int, Rel] = {}
        self._graph = definitions.graph
        self._static = [node.bases.isdisjoint(CHOSEN) for node in self.nodes]
        self._tables: dict[str, Value] = {}
        self._known: dict[int, int | None] = {}
        everybody = (1 << self.count) - 1
        self.sure = View(self._graph, SurelyRead(self))
        self.high = View(self._graph, ReadRows(self, everybody, lambda formula: formula != FALSE))
        self.sure.opposite, self.high.opposite = self.high, self.sure
        self._split: dict[str, tuple[list[int], list[tuple[int, int, int]]]] = {}
        self._frames: dict[int, View] = {}
        self._fixed: dict[int, Value | None] = {}
        self._base_rows: dict[tuple[int, int], dict[int, int]] = {}

    # ---- candidates --------------------------------------------------------------------------------------------------

    def view(self, holds: Callable[[int], bool]) -> View:
        """The candidate of a valuation."""
        running = sum(1 << uid for uid, runs in enumerate(self.base.runs) if holds(runs))
        if running not in self._frames:
            self._frames[running] = self._candidate(running, lambda formula: False, None)
        return self._candidate(running, holds, self._frames[running])

    def _candidate(self, running: int, holds: Callable[[int], bool], frame: View | None) -> View:
        nodes = self.nodes

        def known(number: int) -> Value | None:
            node = nodes[number]
            if node.open or node.op == "recursion":
                return None
            if frame is not None and self._static[number]:
                return frame.value(number)
            if number not in self._fixed:
                most = self.high.value(number)
                self._fixed[number] = most if most == self.sure.value(number) else None
            return _among(self._fixed[number], running)

        return View(self._graph, ReadRows(self, running, holds), known)

    # ---- base names --------------------------------------------------------------------------------------------------

    def surely(self, node: Node) -> Value:
        """The events or pairs of a base name that are in it in every execution in which they run."""
        if node.is_set and SET_ROWS[node.name].holds is None:
            return sum(
                1 << uid for uid, formula in self.base.set(node.name).items() if self._follows(uid, uid, formula)
            )
        if not node.is_set and node.name in DECIDED:
            cells = self.base.relation(node.name)
            return [sum(1 << b for b, f in row.items() if self._follows(a, b, f)) for a, row in enumerate(cells)]
        return self._table(node.name, node.is_set)

    def _follows(self, a: int, b: int, formula: int) -> bool:
        """True if a formula holds wherever two events run."""
        logic, runs = self.logic, self.base.runs
        if formula == FALSE:
            return False
        return logic.implies(runs[a], formula) or logic.implies(runs[b], formula) or formula == self.runs(a, b)

    def follow(self) -> Rows:
        """For each event the events that run in every execution in which it runs."""
        alike: dict[int, int] = {}
        for uid, runs in enumerate(self.base.runs):
            alike[runs] = alike.get(runs, 0) | 1 << uid
        follows = {
            runs: sum(mask for other, mask in alike.items() if self.logic.implies(runs, other)) for runs in alike
        }
        return [follows[runs] for runs in self.base.runs]

    def read(self, node: Node, running: int, holds: Callable[[int], bool]) -> Value:
        """The value of a base name in the candidate in which these events run and these formulas hold."""
        if node.is_set:
            if SET_ROWS[node.name].holds is None:
                return sum(1 << uid for uid, formula in self._row(node.name).items() if holds(formula))
            return as_set(self._table(node.name, True)) & running
        if node.name in DECIDED:
            return self.holding(node.name, self.base.relation(node.name), holds)
        table = self._table(node.name, False)
        assert not isinstance(table, int)
        return [row & running if running >> a & 1 else 0 for a, row in enumerate(table)]

    def holding(self, name: str, cells: Rel, holds: Callable[[int], bool]) -> Rows:
        """The pairs of a relation whose formulas hold."""
        if name not in self._split:
            sure = [sum(1 << b for b, formula in row.items() if formula == TRUE) for row in cells]
            open_ = [(a, 1 << b, formula) for a, row in enumerate(cells) for b, formula in row.items()]
            self._split[name] = sure, [cell for cell in open_ if cell[2] not in (TRUE, FALSE)]
        sure, open_ = self._split[name]
        rows = list(sure)
        for a, bit, formula in open_:
            if holds(formula):
                rows[a] |= bit
        return rows

    def _row(self, name: str) -> Row:
        return self.base.set(name)

    def _table(self, name: str, is_set: bool) -> Value:
        """A base name that does not differ between executions, over all events that may run."""
        if name not in self._tables:
            events = self.base.graph.events
            if is_set:
                row = SET_ROWS[name]
                assert row.holds is not None
                members = sum(1 << e.uid for e in events if row.holds(e.label) and row.has(e.point.cell))
                self._tables[name] = members
            else:
                self._tables[name] = RELATION_ROWS[name].rows([event.point for event in events])
        return self._tables[name]

    def order(self, node: Node) -> Rel:
        """The variables of a total order that an execution chooses: one for each two events, and no three in a circle.

        `orders` keeps them by the place of their definition.
        """
        if node.place not in self.orders:
            events = bits(self.high.mask(node.operands[0]))
            rows: Rel = [{} for _ in range(self.count)]
            for at, a in enumerate(events):
                for b in events[at + 1 :]:
                    first = self.logic.var(f"order{node.place}(e{a},e{b})")
                    rows[a][b], rows[b][a] = first, -first
            for a, b, c in combinations(events, 3):
                self.logic.require(-rows[a][b], -rows[b][c], -rows[c][a])
                self.logic.require(-rows[a][c], -rows[c][b], -rows[b][a])
            self.orders[node.place] = rows
        return self.orders[node.place]

    # ---- formulas ----------------------------------------------------------------------------------------------------

    def formula(self, number: int, a: int, b: int) -> int | None:
        """The formula of a pair; None if it would be long. For a set, `a` and `b` are the same event."""
        key = (number * self.count + a) * self.count + b
        if key in self._known:
            return self._known[key]
        if not self.high.has(number, a, b):
            formula: int | None = FALSE
        elif self.sure.has(number, a, b):
            formula = self.runs(a, b)
        else:
            formula = self._built(number, a, b) if self.nodes[number].flat else None
        self._known[key] = formula
        return formula

    def runs(self, a: int, b: int) -> int:
        """Both events run."""
        return self.logic.both(self.base.runs[a], self.base.runs[b])

    def _built(self, number: int, a: int, b: int) -> int | None:
        node = self.nodes[number]
        op, operands = node.op, node.operands
        if op == "base":
            return self._cell(node.name, node.is_set, a, b)
        if op == "^-1":
            return self.formula(operands[0], b, a)
        if op in ("[]", "?") and a == b:
            below = self.formula(operands[0], a, b)
            if op == "[]" or below is None:
                return below
            return self.logic.either(self.base.runs[a], below)
        if op == "?":
            return self.formula(operands[0], a, b)
        if op == "~":
            below = self.formula(operands[0], a, b)
            return None if below is None else self.logic.both(self.runs(a, b), -below)
        if op == ";":
            between = self.high.rows(operands[0])[a] & self.high.inverse(operands[1])[b]
            if between.bit_count() <= MIDDLES and self._is_base(operands[0]) and self._is_base(operands[1]):
                first, both = self._row_of(operands[0], a), self.logic.both
                return self.logic.disj([both(first[m], self._row_of(operands[1], m)[b]) for m in bits(between)])
            return self._some(between, lambda m: self._both(operands[0], a, m, operands[1], m, b))
        if op == "domain":
            return self._some(self.high.rows(operands[0])[a], lambda m: self.formula(operands[0], a, m))
        if op == "range":
            return self._some(self.high.inverse(operands[0])[a], lambda m: self.formula(operands[0], m, a))
        if op == "product":
            return self._both(operands[0], a, a, operands[1], b, b)
        if op == "&":
            return self._both(operands[0], a, b, operands[1], a, b)
        left, right = self.formula(operands[0], a, b), self.formula(operands[1], a, b)
        if left is None or right is None:
            return None
        return self.logic.either(left, right) if op == "|" else self.logic.both(left, -right)

    def _is_base(self, number: int) -> bool:
        """True for a base relation and its inverse. `fr` is composed of two, and has most of a test's formulas."""
        node = self.nodes[number]
        return node.op == "base" or (node.op == "^-1" and self.nodes[node.operands[0]].op == "base")

    def _row_of(self, number: int, a: int) -> dict[int, int]:
        """The formulas of a base relation from one event on."""
        row = self._base_rows.get((number, a))
        if row is None:
            cells = {b: self.formula(number, a, b) for b in bits(self.high.rows(number)[a])}
            row = self._base_rows[number, a] = {b: formula for b, formula in cells.items() if formula is not None}
        return row

    def _cell(self, name: str, is_set: bool, a: int, b: int) -> int:
        if is_set:
            return self.base.set(name).get(a, FALSE) if SET_ROWS[name].holds is None else self.base.runs[a]
        if name in DECIDED:
            return self.base.relation(name)[a].get(b, FALSE)
        return self.runs(a, b)

    def _both(self, left: int, a: int, b: int, right: int, c: int, d: int) -> int | None:
        first = self.formula(left, a, b)
        if first is None or first == FALSE:
            return first
        second = self.formula(right, c, d)
        return None if second is None else self.logic.both(first, second)

    def _some(self, between: int, cell: Callable[[int], int | None]) -> int | None:
        if between.bit_count() > MIDDLES:
            return None
        formulas = []
        for middle in bits(between):
            formula = cell(middle)
            if formula is None:
                return None
            formulas.append(formula)
        return self.logic.disj(formulas)


def _among(value: Value | None, running: int) -> Value | None:
    """The part of a set, or of a relation, that is among the events that run."""
    if value is None or isinstance(value, int):
        return None if value is None else value & running
    return [row & running if running >> a & 1 else 0 for a, row in enumerate(value)]


class ReadRows(RowAlgebra):
    """The rows of one candidate: these events run, these formulas hold."""

    def __init__(self, formulas: Formulas, running: int, holds: Callable[[int], bool]) -> None:
        super().__init__(formulas.count, running)
        self._formulas, self._holds = formulas, holds

    def base(self, node: Node) -> Value:
        return self._formulas.read(node, self.running, self._holds)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        cells = self._formulas.order(node)
        kept = as_set(over)
        chosen = self._formulas.holding(f"order {node.place}", cells, self._holds)
        return [row & kept if kept >> a & 1 else 0 for a, row in enumerate(chosen)]


class SurelyRead(SureRows):
    """The rows of what is in every execution."""

    def __init__(self, formulas: Formulas) -> None:
        super().__init__(formulas.follow())
        self._formulas = formulas

    def base(self, node: Node) -> Value:
        return self._formulas.surely(node)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        return [0] * self.count
