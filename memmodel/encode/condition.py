"""The condition of a test as a formula over final registers and final memory.

In: Condition, EventGraph, Communication. Out: a formula.
"""

from __future__ import annotations

from memmodel.base.logic import TRUE
from memmodel.encode.communication import Communication
from memmodel.errors import InternalError
from memmodel.events import bits
from memmodel.events.graph import EventGraph
from memmodel.events.values import ZERO, Cases, Value, constant, joined, select, typed
from memmodel.litmus.syntax import Always, And, Compare, Condition, LocValue, Not, Number, Or, RegValue, Term
from memmodel.memory.bytes import Cell


class FinalState:
    """Final values of one event graph."""

    def __init__(self, graph: EventGraph, communication: Communication) -> None:
        self.graph = graph
        self.communication = communication
        self.logic = graph.logic
        self._threads = {thread.name: index for index, thread in enumerate(graph.lowered.test.threads)}
        self._events = {event.uid: event for writes in communication.writes.values() for event in writes}

    def term(self, term: Term) -> Cases:
        """The possible values of a term."""
        if isinstance(term, Number):
            return constant(term.value).cases()
        if isinstance(term, RegValue):
            return self.graph.registers[self._threads[term.thread]].get(term.register, ZERO).cases()
        return self._memory(term).cases()

    def _memory(self, term: LocValue) -> Value:
        """An element of memory, put together from its cells."""
        extent, kind = self.graph.lowered.space.term(term)
        parts = [(self._cell(cell), cell.size) for cell in self.graph.cells.of(extent)]
        return typed(self.logic, joined(self.logic, parts), kind)

    def _cell(self, cell: Cell) -> Value:
        if cell not in self.communication.writes:
            return constant(self.graph.lowered.space.initial(cell.instance, cell.first, cell.size))
        chosen = self.communication.final_writes(cell)
        return select(self.logic, [(formula, self._events[uid].value) for uid, formula in chosen.items()])

    def formula(self, condition: Condition) -> int:
        """The formula of a condition."""
        logic = self.logic
        match condition:
            case Always():
                return TRUE
            case Not(operand):
                return -self.formula(operand)
            case And(operands):
                return logic.conj(map(self.formula, operands))
            case Or(operands):
                return logic.disj(map(self.formula, operands))
            case Compare():
                return self._compare(condition)
        raise InternalError(f"no formula for {condition}")

    def _compare(self, compare: Compare) -> int:
        logic = self.logic
        left, right = self.term(compare.left), self.term(compare.right)
        if left.bits is None and right.bits is None:
            return logic.disj(
                logic.both(first, second)
                for a, first in left.numbers.items()
                for b, second in right.numbers.items()
                if compare.true_of(a, b)
            )
        a, b = left.as_bits(logic), right.as_bits(logic)
        if compare.op in ("==", "!="):
            same = bits.equal(logic, a, b)
            return same if compare.op == "==" else -same
        below = bits.less(logic, a, b) if compare.op in ("<", ">=") else bits.less(logic, b, a)
        return below if compare.op in ("<", ">") else -below
