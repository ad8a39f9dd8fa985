"""The evaluator of an execution that differs little from one that was evaluated.

In: the values of nodes in the other execution, the base names that differ, the events that are left out. Out:
`ChangedEvaluator`. Of a node only those rows are evaluated that may differ: of a composition the rows that lead through
a changed row or through an event that is left out, of a closure those that reach one. Where no row differs, nothing
that is made of the node is evaluated; nor is what meets nothing, and of what meets few rows only these.

A value is that of the other execution without the events that are left out, but for its `Difference`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from heapq import heappop, heappush
from operator import and_, or_

from memmodel.base.rows import Rows, bits, inverse, mask_of, union
from memmodel.cat.evaluate.evaluator import Evaluator, Known
from memmodel.cat.evaluate.every_value import EveryValue
from memmodel.cat.evaluate.graph import ExpressionGraph, Node
from memmodel.cat.evaluate.large import LargeEvaluator
from memmodel.cat.evaluate.reaching import lost_of, reached_from
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set, without

Difference = int | dict[int, int] | None
"""What a node has that differs: the whole set, or some rows of a relation. None: nothing differs."""

DifferingRows = tuple[Mapping[int, int], Rows]
"""The rows of a relation that differ, and those of the other execution."""

POINTWISE: dict[str, Callable[[int, int], int]] = {"|": or_, "&": and_, "\\": without}

WHOLE = ("recursion", "member", "order", "self")
"""Operators that are evaluated as a whole."""

MEETING = ("&", ";", "product")
"""Operators that give nothing where one operand is nothing."""

BY_ROWS = ("|", "&", "\\", ";", "^-1")
"""Operators of which some rows are evaluated where no more are needed."""

FEW_ROWS = 4
"""So many times fewer rows than events are few."""


class ChangedEvaluator(LargeEvaluator):
    """Values in an execution of the same events as `other`. `changed`: the base names that differ by more than that the
    events of `gone` are left out."""

    def __init__(
        self, graph: ExpressionGraph, algebra: RowAlgebra, other: EveryValue, changed: Container[str], gone: int
    ) -> None:
        super().__init__(graph, algebra)
        self._model_graph, self._base, self._changed, self._gone = graph, other, changed, gone
        self._here = (1 << algebra.count) - 1 & ~gone
        self._differences: dict[int, Difference] = {}
        self._some: dict[tuple[int, int], Difference] = {}
        """What differs of some rows of a node."""
        self._same_rounds: dict[int, bool] = {}

    def of(self, algebra: RowAlgebra) -> ChangedEvaluator:
        """An evaluator of the same execution for another model, which has what is known so far."""
        other = ChangedEvaluator(self._model_graph, algebra, self._base, self._changed, self._gone)
        other._values, other._differences = dict(self._values), dict(self._differences)
        return other

    def inner(self, known: Known[Value]) -> Evaluator[Value]:
        return LargeEvaluator(self._model_graph, self.rows, known)

    def value(self, number: int) -> Value:
        if self.nodes[number].op in WHOLE:
            return super().value(number)
        value: Value | None = self._values.get(number)
        if value is None:
            value = self._values[number] = self._whole(number, self.difference(number))
        return value

    def same(self, number: int) -> bool:
        """True if a node has the value of the other execution, but for the events that are left out."""
        return self.difference(number) is None

    def equal(self, first: int, second: int) -> bool:
        if self._base.equal(first, second):
            return self.difference(first) == self.difference(second)
        return super().equal(first, second)

    def known(self, number: int) -> Value | None:
        return self.value(number) if number in self._differences else super().known(number)

    def _whole(self, number: int, difference: Difference) -> Value:
        if isinstance(difference, int):
            return difference
        other = self._base.value(number)
        if isinstance(other, int):
            return other & self._here
        if self._base.is_empty(number):
            rows = [0] * len(other)
        elif self._gone:
            here = self._here
            rows = [row & here for row in other]
            for event in bits(self._gone):
                rows[event] = 0
        else:
            rows = list(other) if difference else other
        for event, row in (difference or {}).items():
            rows[event] = row
        return rows

    def difference(self, number: int) -> Difference:
        """How the value of a node differs from that in the base execution."""
        if number in self._differences:
            return self._differences[number]
        node = self.nodes[number]
        op, operands = node.op, node.operands
        made: Difference
        if op == "empty" or (op == "base" and node.name not in self._changed):
            made = None
        elif op == "base":
            made = self._compared(number, self.rows.base(node))
        elif op in WHOLE:
            made = self._as_a_whole(number)
        elif self._is_nothing(node):
            made = None
        elif op in POINTWISE and node.is_set:
            made = self._set_of(number, POINTWISE[op], *operands)
        elif op in BY_ROWS:
            made = self._by_rows(number, None)
        elif op in ("+", "*"):
            made = self._closed(number, operands[0], reflexive=op == "*")
        elif op == "range":
            made = self._targets(number, operands[0])
        elif op == "domain":
            made = self._sources(number, operands[0])
        elif all(self.difference(operand) is None for operand in operands):
            made = None  # of sets, and what is made of each event or row by itself
        elif op == "~" or op == "?":
            made = self._row_by_row(number, op, operands[0])
        else:
            made = self._compared(number, self.rows.apply(op, *map(self.value, operands)))
        self._differences[number] = made
        return made

    def is_quick(self, number: int) -> bool:
        """True if no closure has to be evaluated to know what differs of a node."""
        node = self.nodes[number]
        if node.flat or number in self._differences or self._meets_nothing(number):
            return True
        return node.op not in (*WHOLE, "+", "*") and all(map(self.is_quick, node.operands))

    def _meets_nothing(self, number: int) -> bool:
        """True if a node is nothing here and in the other execution, as an expression without a closure shows."""
        node = self.nodes[number]
        if node.op == "\\":
            return self._meets_nothing(node.operands[0])
        if node.op in MEETING:
            return any(map(self._meets_nothing, node.operands))
        return node.flat and self.difference(number) is None and self._base.is_empty(number)

    def _is_nothing(self, node: Node) -> bool:
        """True if there is nothing here and in the other execution, as the smaller operand shows, or that from which
        the other is taken away."""
        if node.op == "\\":
            operand = node.operands[0]
        elif node.op in MEETING:
            operand = min(node.operands, key=lambda operand: self.nodes[operand].size)
        else:
            return False
        return self.difference(operand) is None and self._base.is_empty(operand)

    def _by_rows(self, number: int, within: int | None) -> Difference:
        """What differs of a relation, or of its rows `within` some events."""
        op, operands = self.nodes[number].op, self.nodes[number].operands
        if op == "^-1":
            return self._turned(number, operands[0], within)
        left, right = operands
        if op == ";":
            return self._composed(number, left, right, within)
        return self._pointwise_of(number, op, left, right, within)

    def _as_a_whole(self, number: int) -> Difference:
        """A member of a recursion, evaluated as a whole if it is not the same in each round."""
        node = self.nodes[number]
        if node.op == "member" and self._has_same_rounds(node.operands[0]):
            return None
        return self._compared(number, super().value(number))

    def _has_same_rounds(self, number: int) -> bool:
        """True if the members of a recursion are found in the same rounds as in the other execution."""
        if number not in self._same_rounds:
            rounds = (_ChangedRound(self, each) for each in self._base.rounds(number))
            bodies = self.nodes[number].operands
            self._same_rounds[number] = all(each.same(body) for each in rounds for body in bodies)
        return self._same_rounds[number]

    def _compared(self, number: int, value: Value) -> Difference:
        """What differs of a node that has this value."""
        other, here, gone = self._base.value(number), self._here, self._gone
        if isinstance(value, int):
            return None if value == as_set(other) & here else value
        rows = as_relation(other)
        differing = {
            event: row
            for event, (row, old) in enumerate(zip(value, rows, strict=True))
            if row != old and row != old & here and not gone >> event & 1
        }
        return differing or None

    def _rows(self, number: int, within: int | None = None) -> DifferingRows:
        """The rows of a relation that differ, those `within` some events at least, and those of the other execution."""
        return self._differing(number, within), as_relation(self._base.value(number))

    def _differing(self, number: int, within: int | None) -> Mapping[int, int]:
        difference = self.difference(number) if within is None else self._difference_within(number, within)
        return difference if isinstance(difference, dict) else {}

    def _difference_within(self, number: int, within: int) -> Difference:
        """What differs of some rows of a relation. Where they are many, all are evaluated: more may be asked for."""
        if number in self._differences or self.nodes[number].op not in BY_ROWS or not self._are_few(within):
            return self.difference(number)
        key = number, within
        if key not in self._some:
            self._some[key] = None if self._is_nothing(self.nodes[number]) else self._by_rows(number, within)
        return self._some[key]

    def _are_few(self, events: int) -> bool:
        return events.bit_count() * FEW_ROWS <= self.rows.count

    def _kept(self, number: int, rows: Iterable[tuple[int, int]]) -> Difference:
        """Of some rows those that differ."""
        old, here = as_relation(self._base.value(number)), self._here
        return {event: row for event, row in rows if row != old[event] & here} or None

    def _set_of(self, number: int, operation: Callable[[int, int], int], left: int, right: int) -> Difference:
        if self.difference(left) is None and self.difference(right) is None:
            return None
        return self._compared(number, operation(as_set(self.value(left)), as_set(self.value(right))))

    def _pointwise_of(self, number: int, op: str, left: int, right: int, within: int | None) -> Difference:
        """Of an intersection and a difference, the rows of the first operand that are not empty."""
        operation, here = POINTWISE[op], self._here
        if op == "&" and self.nodes[right].size < self.nodes[left].size:
            left, right = right, left
        first, needed = self._differing(left, within), within
        if op != "|" and not self._are_known(right):
            domain = self._base.domain(left) | mask_of(first)
            needed = domain if within is None else domain & within
        second = self._differing(right, needed)
        if not first and not second:
            return None
        before, other, old = (as_relation(self._base.value(it)) for it in (left, right, number))
        asked = first.keys() | (second.keys() if op == "|" else {event for event in second if before[event]})
        made: dict[int, int] = {}
        for event in asked:
            if within is not None and not within >> event & 1:
                continue
            row, more = first.get(event), second.get(event)
            row = operation(before[event] & here if row is None else row, other[event] & here if more is None else more)
            if row != old[event] & here:
                made[event] = row
        return made or None

    def _are_known(self, number: int) -> bool:
        """True if nothing is saved where only some rows of a node are needed."""
        return number in self._differences or self.nodes[number].op not in BY_ROWS

    def _row_by_row(self, number: int, op: str, operand: int) -> Difference:
        if self.nodes[number].is_set:
            return self._compared(number, self.rows.complement(self.value(operand), is_set=True))
        rows, _ = self._rows(operand)
        if op == "~":
            return self._kept(number, ((event, self._here & ~row) for event, row in rows.items()))
        return self._kept(number, ((event, row | 1 << event) for event, row in rows.items()))

    def _composed(self, number: int, left: int, right: int, within: int | None) -> Difference:
        nodes, here = self.nodes, self._here
        asked = here if within is None else here & within
        if nodes[left].op == "[]":
            source = nodes[left].operands[0]
            sources = as_set(self.value(source))
            differing = self._rows(right, sources & asked)
            events = sources & mask_of(differing[0])
            if self.difference(source) is not None:
                events |= sources ^ as_set(self._base.value(source))
            events &= asked
            return self._kept(
                number,
                ((event, _row(differing, event, here) if sources >> event & 1 else 0) for event in bits(events)),
            )
        mine = self._rows(left, within)
        if nodes[right].op == "[]":
            target = nodes[right].operands[0]
            targets = as_set(self.value(target))
            events = mask_of(mine[0])
            if self.difference(target) is not None:
                events |= self._leading(left, (targets ^ as_set(self._base.value(target))) & here)
            events &= asked
            return self._kept(number, ((event, _row(mine, event, here) & targets) for event in bits(events)))
        others = self._rows(right)
        through = mask_of(others[0])
        events = (mask_of(mine[0]) | self._leading(left, through | self._gone & self._base.domain(right))) & asked
        if not events:
            return None
        old, before, rows = as_relation(self._base.value(number)), mine[1], others[1]
        steps = self._base.domain(right) | through
        gone, back = self._gone | through, self._base.inverse(right)
        known: dict[tuple[int, int], int] = {}
        """What events with these steps before and now are related to."""
        made: dict[int, int] = {}
        for event in bits(events):
            was, now = before[event] & steps, _row(mine, event, here) & steps
            row = known.get((was, now))
            if row is None:
                row = lost = 0
                for step in bits(now & (through | ~was)):
                    row |= _row(others, step, here)
                for step in bits(was & (gone | ~now)):
                    lost |= rows[step]
                row |= old[event] & here & ~lost_of(lost & here & ~row, now & ~through, rows, back)
                known[was, now] = row
            if row != old[event] & here:
                made[event] = row
        return made or None

    def _leading(self, relation: int, targets: int) -> int:
        """The events that the relation of the other execution relates to one of these."""
        if not targets:
            return 0
        back, events = self._base.inverse(relation), 0
        for target in bits(targets):
            events |= back[target]
        return events

    def _closed(self, number: int, operand: int, *, reflexive: bool) -> Difference:
        """A closure: where the relation has nothing new, the rows that change, and then those that lead to them. Those
        that reach least come first, and of these the ones that lie on a cycle: no row is needed before it is made.
        """
        (differing, rows), here, other = self._rows(operand), self._here, self._base
        known = mask_of(differing)
        changed = known | self._losing(rows, self._leading(operand, self._gone) & here & ~known)
        if not changed:
            return None
        closed, leading = as_relation(other.value(number)), other.inverse(operand)
        if any(row & ~rows[event] for event, row in differing.items()):
            return self._compared(number, self.rows.apply(self.nodes[number].op, self.value(operand)))
        made: dict[int, int] = {}
        waiting, met, done = list[tuple[int, int, int]](), 0, 0

        def add(events: int) -> None:
            for event in bits(events):
                heappush(waiting, (closed[event].bit_count(), not closed[event] >> event & 1, event))

        while changed or waiting:
            add(changed)
            met, changed = met | changed, 0
            _, is_alone, event = heappop(waiting)
            if done >> event & 1:
                continue
            together = 1 << event
            if not is_alone:  # what lies on a cycle with it
                together |= closed[event] & other.inverse(number)[event] & here
            done |= together
            members = [event] if together == 1 << event else bits(together)
            row = 0
            for member in members:
                row |= differing.get(member, rows[member] & here)
            if len(members) > 1:
                if not self._connected(operand, members, together):
                    return self._compared(number, self.rows.apply(self.nodes[number].op, self.value(operand)))
                row |= together
            left = row & ~together
            while left:
                low = left & -left
                step = low.bit_length() - 1
                behind = made.get(step)
                if behind is None:
                    behind = closed[step] & here
                row |= behind
                left &= ~(behind | low)
            for member in members:
                whole = row | 1 << member if reflexive else row
                if whole != closed[member] & here:
                    made[member] = whole
                    changed |= leading[member]
            changed &= here & ~(met | done)
        return made or None

    def _losing(self, rows: Rows, events: int) -> int:
        """Of some events those that may reach less, because not all that is behind an event that is left out is behind
        them directly."""
        gone, losing = self._gone, 0
        behind: dict[int, int] = {}
        """What is behind the events that are left out of a row."""
        for event in bits(events):
            row = rows[event]
            left_out = row & gone
            reached = behind.get(left_out)
            if reached is None:
                reached = behind[left_out] = union(rows[step] for step in bits(left_out))
            if reached & ~row:
                losing |= 1 << event
        return losing

    def _connected(self, operand: int, members: list[int], together: int) -> bool:
        """True if each of these events still leads to each other one."""
        relation, here = self._rows(operand), self._here
        inside = {member: _row(relation, member, here) & together for member in members}
        ahead = reached_from(members[0], inside)
        back: dict[int, int] = dict.fromkeys(members, 0)
        for member, row in inside.items():
            for target in bits(row):
                back[target] |= 1 << member
        return ahead == together == reached_from(members[0], back)

    def _turned(self, number: int, operand: int, within: int | None) -> Difference:
        (differing, rows), here = self._rows(operand), self._here
        if not differing:
            return None
        old, turned = as_relation(self._base.value(number)), [0] * len(rows)
        asked = here if within is None else here & within
        for event, row in differing.items():
            turned[event] = (row ^ rows[event]) & asked
        return {target: old[target] & here ^ row for target, row in enumerate(inverse(turned)) if row} or None

    def _sources(self, number: int, operand: int) -> Difference:
        differing, rows = self._rows(operand)
        mask, here = as_set(self._base.value(number)) & self._here, self._here
        for event in bits((mask_of(differing) | self._leading(operand, self._gone)) & here):
            row = differing.get(event, rows[event] & here)
            mask = mask | 1 << event if row else mask & ~(1 << event)
        return self._compared(number, mask)

    def _targets(self, number: int, operand: int) -> Difference:
        if self.difference(operand) is not None:
            return self._compared(number, self.rows.range(self.value(operand)))
        mask, rows = as_set(self._base.value(number)) & self._here, as_relation(self._base.value(operand))
        for event in bits(self._gone):
            for target in bits(rows[event] & mask):
                if not self._base.inverse(operand)[target] & self._here:
                    mask &= ~(1 << target)
        return self._compared(number, mask)


class _ChangedRound(ChangedEvaluator):
    """What differs of the bodies of a recursion whose members are those of one round. `outside`: all that is closed."""

    def __init__(self, outside: ChangedEvaluator, members: EveryValue) -> None:
        super().__init__(outside._model_graph, outside.rows, members, outside._changed, outside._gone)
        self._outside = outside

    def value(self, number: int) -> Value:
        node = self.nodes[number]
        if node.op == "self":
            return self._whole(number, None)
        return super().value(number) if node.open else self._outside.value(number)

    def difference(self, number: int) -> Difference:
        node = self.nodes[number]
        if node.op == "self":
            return None
        return super().difference(number) if node.open else self._outside.difference(number)

    def _difference_within(self, number: int, within: int) -> Difference:
        if self.nodes[number].open:
            return super()._difference_within(number, within)
        return self._outside._difference_within(number, within)


def _row(rows: DifferingRows, event: int, here: int) -> int:
    differing, old = rows
    row = differing.get(event)
    return old[event] & here if row is None else row
