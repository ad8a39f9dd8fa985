"""Expressions as functions of numbers, of which some may be unknown.

In: an `Expr`. Out: `compiled`, a function of the values of its leaves; `evaluated`, its value where registers are
known. What depends on an unknown value is unknown, but for what a known operand decides alone: a predicate in `and` and
`or`, and the predicate of a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from memmodel.program.arith import operation, result_type
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get, stripped
from memmodel.ptx.vocabulary import PREDICATE, DataType

Value = int | None
Function = Callable[..., Value]
Leaf = Get | AddressOf

DECIDES = {"and": 0, "or": 1}
"""The predicate that decides the result of an operation alone."""


class Compiled(NamedTuple):
    """A function of the values of `leaves`, in this order. `strict`: it takes known values only. `plain`: of one leaf
    it is the value.
    """

    fn: Function
    leaves: tuple[Leaf, ...]
    strict: bool = True
    plain: bool = False


def fitted(fn: Function, type: DataType, width: int, *, cuts: bool = True) -> Function:
    """Results of a type as they stand in a register of `width` bits: a signed one is extended. `cuts`: others are cut
    off, if they are wider.
    """
    mask = (1 << width) - 1
    if type.signed and type.width < width:
        sign = 1 << type.width - 1

        def extend(*values: Value) -> Value:
            value = fn(*values)
            return None if value is None else (value ^ sign) - sign & mask

        return extend
    if type.width <= width or not cuts:
        return fn

    def cut(*values: Value) -> Value:
        value = fn(*values)
        return None if value is None else value & mask

    return cut


def in_register(expr: Expr, width: int) -> Compiled:
    """The function of what a register of `width` bits holds after an expression was put there."""
    expr = stripped(expr)
    function = compiled(expr)
    if isinstance(expr, Apply):
        return function._replace(fn=fitted(function.fn, result_type(expr.op, expr.type), width))
    return function._replace(fn=_composed(operation("cvt", DataType("b", width)), [function], strict=True), plain=False)


def evaluated(function: Compiled, values: Mapping[str, int]) -> Value:
    """The value of a function where the values of some registers are known."""
    known = [values.get(leaf.register) if isinstance(leaf, Get) else None for leaf in function.leaves]
    return None if function.strict and None in known else function.fn(*known)


def compiled(expr: Expr) -> Compiled:
    """The function of an expression."""
    expr = stripped(expr)
    if isinstance(expr, Const):
        number = expr.value
        return Compiled(lambda: number, ())
    if not isinstance(expr, Apply):
        return Compiled(lambda value: value, (expr,), plain=True)
    inner = expr.args[0] if expr.args else None
    if expr.op == "cvt" and isinstance(inner, Apply) and inner.op == "cvt" and expr.type.width <= inner.type.width:
        return compiled(Apply("cvt", inner.args, expr.type))  # the inner one changes no bit that is kept
    args = [_argument(arg, expr.type) for arg in expr.args]
    leaves = tuple(leaf for arg in args for leaf in arg.leaves)
    fn = operation(expr.op, expr.type)
    if expr.op == "selp":
        return Compiled(_composed(choosing(fn), args, strict=False), leaves, strict=False)
    if expr.op in DECIDES and expr.type == PREDICATE:
        return Compiled(_composed(_joining(expr.op, fn), args, strict=False), leaves, strict=False)
    strict = all(arg.strict for arg in args)
    return Compiled(_composed(fn if strict else _known(fn), args, strict=strict), leaves, strict)


def _argument(expr: Expr, type: DataType) -> Compiled:
    """The function of an operand of an operation in `type`: its sign counts where that is wider."""
    expr = stripped(expr)
    function = compiled(expr)
    if not isinstance(expr, Apply):
        return function
    return function._replace(fn=fitted(function.fn, result_type(expr.op, expr.type), type.width, cuts=False))


def choosing(fn: Function) -> Function:
    """A choice; it does not depend on its predicate if both values are equal."""

    def choose(first: Value, second: Value, holds: Value) -> Value:
        if holds is None and first != second:
            return None
        chosen = first if holds else second
        return None if chosen is None else fn(chosen, chosen, 1)

    return choose


def _joining(op: str, fn: Function) -> Function:
    decides = DECIDES[op]

    def join(first: Value, second: Value) -> Value:
        if decides in (first, second):
            return decides
        return None if first is None or second is None else fn(first, second)

    return join


def _known(fn: Function) -> Function:
    return lambda *values: None if None in values else fn(*values)


def _composed(fn: Function, args: Sequence[Compiled], *, strict: bool) -> Function:
    """An operation on functions of values, each of its own leaves. Leaves and numbers take no further call."""
    if all(arg.plain for arg in args):
        return fn
    if strict and len(args) == 2:
        first, second = args
        if first.plain and not second.leaves:
            number = second.fn()
            return lambda value: fn(value, number)
        if second.plain and not first.leaves:
            number = first.fn()
            return lambda value: fn(number, value)
    if strict and len(args) == 1:
        inner = args[0].fn

        def after(*values: Value) -> Value:
            value = inner(*values)
            return None if value is None else fn(value)

        return after
    parts, end = [], 0
    for arg in args:
        begin, end = end, end + len(arg.leaves)
        parts.append((_known(arg.fn) if arg.leaves and arg.strict and not strict else arg.fn, begin, end))

    def run(*values: Value) -> Value:
        results = [inner(*values[begin:end]) for inner, begin, end in parts]
        return None if strict and None in results else fn(*results)

    return run
