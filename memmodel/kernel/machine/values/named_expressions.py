"""Expressions as terms of the values in the lanes of a warp.

In: an expression, and the terms of its leaves. Out: `ExpressionTerms`: the terms of what a register holds after the
expression was put there. Each operation is one of `Terms` or `Slices`; operations on known numbers are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.values.slices import MOVES, Slices
from memmodel.kernel.machine.values.terms import Terms
from memmodel.program.arith import is_comparison, operation, result_type, unknown
from memmodel.program.expressions import Apply, Const, Expr, stripped
from memmodel.program.unknowns import Leaf
from memmodel.ptx.vocabulary import PREDICATE, DataType

TermRow = Callable[[Warp, Lanes], list[int]]
"""The terms of a value, one for each of some lanes."""

OperandRows = Sequence[list[int]]
"""The terms of several values, a row for each."""

LOGIC = ("and", "or", "xor", "not")
"""Operations on predicates."""


class ExpressionTerms:
    """Names the expressions of one instruction. `leaf`: the terms of a register or an address."""

    def __init__(self, terms: Terms, slices: Slices, leaf: Callable[[Leaf], TermRow]) -> None:
        self._terms, self._slices, self._leaf = terms, slices, leaf

    def register(self, expr: Expr, width: int) -> TermRow:
        """The terms of a register of `width` bits after an expression was put there."""
        expr, slices = stripped(expr), self._slices
        if isinstance(expr, Const):
            return self._number(expr.value & (1 << width) - 1)
        value = self._value(expr)
        if isinstance(expr, Apply):
            type = result_type(expr.op, expr.type)
            if type.signed and type.width < width:
                return lambda warp, lanes: [slices.extended(x, type.width, width) for x in value(warp, lanes)]
            if type.width <= width:
                return value
        return lambda warp, lanes: slices.low(value(warp, lanes), width)

    def _number(self, number: int) -> TermRow:
        term = self._terms.number(number)
        return lambda warp, lanes: [term] * len(lanes)

    def _value(self, expr: Expr) -> TermRow:
        if isinstance(expr, Const):
            return self._number(expr.value)
        if not isinstance(expr, Apply):
            return self._leaf(expr)
        if not expr.args:  # a value that is not followed
            return lambda warp, lanes: [self._terms.fresh() for _ in lanes]
        operands, combine = [self._operand(arg, expr.type) for arg in expr.args], self._operation(expr.op, expr.type)
        return lambda warp, lanes: combine(*[operand(warp, lanes) for operand in operands])

    def _operand(self, expr: Expr, type: DataType) -> TermRow:
        """An operand of an operation in `type`: its sign counts where that is wider."""
        expr, slices = stripped(expr), self._slices
        if isinstance(expr, Const):
            return self._number(expr.value if expr.value >= 0 else expr.value & type.mask)
        value = self._value(expr)
        source = result_type(expr.op, expr.type) if isinstance(expr, Apply) else type
        if source.signed and source.width < type.width:
            return lambda warp, lanes: [slices.extended(x, source.width, type.width) for x in value(warp, lanes)]
        return value

    def _operation(self, op: str, type: DataType) -> Callable[..., list[int]]:
        """The terms of results, from a row of terms for each operand."""
        terms, slices, width = self._terms, self._slices, result_type(op, type).width

        def all_known(rows: OperandRows) -> bool:
            return all(map(terms.knows, rows))

        def any_known(rows: OperandRows) -> bool:
            return any(map(terms.knows, rows))

        if type == PREDICATE and op in LOGIC:
            return self._rows(op, type, lambda *inputs: terms.logic(op, *inputs), any_known)
        if op == "selp":

            def selected(first: int, second: int, which: int) -> int:
                return slices.has(terms.selected(which, first, second), width)

            return self._rows(op, type, selected, lambda rows: terms.knows(rows[2]))
        if is_comparison(op):
            return self._rows(op, type, lambda first, second: self._compared(op, type, first, second), all_known)
        if op == "cvt":
            return self._rows(op, type, lambda term: slices.part(term, 0, width), all_known)
        exact, moves, computed = operation(op, type), op in MOVES, terms.operation(op, type)
        if exact is unknown and not moves:
            return lambda *rows: slices.have(computed(*rows), width)

        def one(*inputs: int) -> int:
            numbers = [None] if exact is unknown else [terms.known(term) for term in inputs]
            number = None if None in numbers else exact(*numbers)
            if number is not None:
                return terms.number(number)
            moved = slices.computed(op, type, inputs) if moves else None
            return slices.has(computed(*([term] for term in inputs))[0] if moved is None else moved, width)

        return self._rows(op, type, one, all_known)

    def _rows(
        self, op: str, type: DataType, one: Callable[..., int], apart: Callable[[OperandRows], bool]
    ) -> Callable[..., list[int]]:
        """An operation that is carried out in each lane, or once for a whole row. `apart`: of such rows, so much is
        known that single lanes are.
        """
        terms, computed, width = self._terms, self._terms.operation(op, type), result_type(op, type).width

        def results(*rows: list[int]) -> list[int]:
            if terms.whole(rows[0]) and not apart(rows):
                return self._slices.have(computed(*rows), width)
            return [one(*inputs) for inputs in zip(*rows, strict=True)]

        return results

    def _compared(self, op: str, type: DataType, first: int, second: int) -> int:
        """A comparison of the low bits of two values."""
        terms = self._terms
        if type == PREDICATE and op == "eq" and second == terms.false:
            return terms.logic("not", first)
        first, second = (self._slices.part(term, 0, type.width) for term in (first, second))
        holds = terms.tested(operation(op, type), first, second)
        return terms.compared(op, type, first, second) if holds is None else holds
