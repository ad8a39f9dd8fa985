"""The condition of a test as a formula over final registers and final memory.

In: Condition, EventGraph, Choices. Out: a formula.
"""

from __future__ import annotations

from memmodel.encode.choices import Choices
from memmodel.errors import InputError, InternalError
from memmodel.events import bits
from memmodel.events.bits import Bits
from memmodel.events.graph import EventGraph
from memmodel.events.values import ZERO, Value, constant, select
from memmodel.isa.memory import Location, MemoryMap
from memmodel.litmus.syntax import Always, And, Compare, Condition, LocValue, Not, Number, Or, RegValue, Term
from memmodel.logic import TRUE


class Final:
    """Final values of one event graph."""

    def __init__(self, graph: EventGraph, choices: Choices) -> None:
        self.graph = graph
        self.choices = choices
        self.logic = graph.logic
        self.memory = MemoryMap(graph.test)
        self._threads = {thread.name: index for index, thread in enumerate(graph.test.threads)}

    def location(self, term: LocValue) -> Location:
        where = self.memory.find(term.name, term.index, term.cta)
        if where is None:
            raise InputError(
                f"{term.name} does not name one location",
                term.span,
                hint="an element beyond the array, or a shared variable with several instances: write x@cta0",
            )
        return where

    def term(self, term: Term) -> Value:
        """The possible values of a term."""
        if isinstance(term, Number):
            return constant(term.value)
        if isinstance(term, RegValue):
            return self.graph.registers[self._threads[term.thread]].get(term.register, ZERO)
        options = []
        for uid, chosen in self.choices.final_writes(self.location(term)).items():
            value = self.graph.events[uid].value
            if value is None:
                raise InternalError("a write without a value")
            options.append((chosen, value))
        return select(self.logic, options)

    def formula(self, condition: Condition) -> int:
        """The formula of a condition."""
        logic = self.logic
        if isinstance(condition, Always):
            return TRUE
        if isinstance(condition, Not):
            return -self.formula(condition.item)
        if isinstance(condition, And):
            return logic.conj(self.formula(item) for item in condition.items)
        if isinstance(condition, Or):
            return logic.disj(self.formula(item) for item in condition.items)
        return self._compare(condition)

    def _compare(self, compare: Compare) -> int:
        logic = self.logic
        left, right = self.term(compare.left), self.term(compare.right)
        if left.bits is not None or right.bits is not None:
            return self._compare_wide(compare.op, left.as_bits(logic), right.as_bits(logic))
        cells = []
        for a, first in left.cases.items():
            for b, second in right.cases.items():
                if _COMPARE[compare.op](a, b):
                    cells.append(logic.both(first, second))
        return logic.disj(cells)

    def _compare_wide(self, op: str, left: Bits, right: Bits) -> int:
        logic = self.logic
        if op in ("==", "!="):
            same = bits.equal(logic, left, right)
            return same if op == "==" else -same
        below = bits.less(logic, left, right) if op in ("<", ">=") else bits.less(logic, right, left)
        return below if op in ("<", ">") else -below


_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
