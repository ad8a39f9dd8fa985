"""Expressions as terms of the values in one lane.

In: an expression, and the terms of its leaves. Out: `ExpressionTerms`: the term of what a register holds after the
expression was put there. Each operation is one of `Terms` or `Slices`; operations on known numbers are carried out.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.values.slices import MOVES, Slices
from memmodel.kernel.machine.values.terms import Terms
from memmodel.program.arith import is_comparison, operation, result_type, unknown
from memmodel.program.expressions import Apply, Const, Expr, stripped
from memmodel.program.unknowns import Leaf
from memmodel.ptx.vocabulary import PREDICATE, DataType

Term = Callable[[Warp, int], int]
"""The term of a value in a lane."""

LOGIC = ("and", "or", "xor", "not")
"""Operations on predicates."""


class ExpressionTerms:
    """Names the expressions of one instruction. `leaf`: the term of a register or an address."""

    def __init__(self, terms: Terms, slices: Slices, leaf: Callable[[Leaf], Term]) -> None:
        self._terms, self._slices, self._leaf = terms, slices, leaf

    def register(self, expr: Expr, width: int) -> Term:
        """The term of a register of `width` bits after an expression was put there."""
        expr, slices = stripped(expr), self._slices
        if isinstance(expr, Const):
            return self._number(expr.value & (1 << width) - 1)
        value = self._value(expr)
        if not isinstance(expr, Apply):
            return lambda warp, lane: slices.part(value(warp, lane), 0, width)
        type = result_type(expr.op, expr.type)
        if type.signed and type.width < width:
            return lambda warp, lane: slices.extended(value(warp, lane), type.width, width)
        if type.width > width:
            return lambda warp, lane: slices.part(value(warp, lane), 0, width)
        return value

    def _number(self, number: int) -> Term:
        term = self._terms.number(number)
        return lambda warp, lane: term

    def _value(self, expr: Expr) -> Term:
        if isinstance(expr, Const):
            return self._number(expr.value)
        if not isinstance(expr, Apply):
            return self._leaf(expr)
        if not expr.args:  # a value that is not followed
            return lambda warp, lane: self._terms.fresh()
        operands, combine = [self._operand(arg, expr.type) for arg in expr.args], self._operation(expr.op, expr.type)
        if len(operands) == 1:
            only = operands[0]
            return lambda warp, lane: combine(only(warp, lane))
        return lambda warp, lane: combine(*[operand(warp, lane) for operand in operands])

    def _operand(self, expr: Expr, type: DataType) -> Term:
        """An operand of an operation in `type`: its sign counts where that is wider."""
        expr, slices = stripped(expr), self._slices
        if isinstance(expr, Const):
            return self._number(expr.value if expr.value >= 0 else expr.value & type.mask)
        value = self._value(expr)
        source = result_type(expr.op, expr.type) if isinstance(expr, Apply) else type
        if source.signed and source.width < type.width:
            return lambda warp, lane: slices.extended(value(warp, lane), source.width, type.width)
        return value

    def _operation(self, op: str, type: DataType) -> Callable[..., int]:
        """The term of a result, from the terms of operands."""
        terms, slices, exact, width = self._terms, self._slices, operation(op, type), result_type(op, type).width
        if type == PREDICATE and op in LOGIC:
            return lambda *inputs: terms.logic(op, *inputs)
        if op == "selp":
            return lambda first, second, which: slices.has(terms.selected(which, first, second), width)
        if is_comparison(op):
            return lambda first, second: self._compared(op, type, first, second)

        if op == "cvt":
            return lambda term: slices.part(term, 0, width)
        moves, followed = op in MOVES, exact is not unknown

        def computed(*inputs: int) -> int:
            numbers = [terms.known(term) for term in inputs] if followed else [None]
            number = None if None in numbers else exact(*numbers)
            if number is not None:
                return terms.number(number)
            moved = slices.computed(op, type, inputs) if moves else None
            return slices.has(terms.computed(op, type, inputs) if moved is None else moved, width)

        return computed

    def _compared(self, op: str, type: DataType, first: int, second: int) -> int:
        """A comparison of the low bits of two values."""
        terms = self._terms
        if type == PREDICATE and op == "eq" and second == terms.false:
            return terms.logic("not", first)
        first, second = (self._slices.part(term, 0, type.width) for term in (first, second))
        holds = terms.tested(operation(op, type), first, second)
        return terms.compared(op, type, first, second) if holds is None else holds
