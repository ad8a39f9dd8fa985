"""Expressions as functions of the values in the lanes of a warp.

In: an `Expr`, and what its leaves yield. Out: `rows_of`, its values in all lanes; `assigning`, a step that puts them
into a register. An expression is compiled once to a function of its leaves; values that are the same in all lanes are
computed once. What depends on an unknown value is unknown, but for what a known operand decides alone: a predicate in
`and` and `or`, and the predicate of a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.rows import UNKNOWN, Row, Uniform, Value, uniform
from memmodel.kernel.machine.values.lanes import Get, Step, binary, choice, copied, forgetting, lenient, many, unary
from memmodel.program.arith import PREDICATE, operation, result_type, unknown
from memmodel.program.expressions import AddressOf, Apply, Const, Expr
from memmodel.program.expressions import Get as RegisterValue
from memmodel.ptx.vocabulary import DataType

Function = Callable[..., Value]
Leaf = RegisterValue | AddressOf
LeafValues = Callable[[Leaf], Get]
"""What a register or an address yields."""

ADDRESS_BITS = (1 << 64) - 1
WITHIN = "in "
"""How an address expression begins that is relative to the window of a state space (`ModuleCall.in_space`)."""

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


def stripped(expr: Expr) -> Expr:
    """An expression without the name of the state space that it is relative to."""
    while isinstance(expr, Apply) and expr.op.startswith(WITHIN):
        expr = expr.args[0]
    return expr


def assigning(expr: Expr, slot: int, width: int, leaf: LeafValues) -> Step:
    """The step that puts the values of an expression into a register of so many bits."""
    expr = stripped(expr)
    found = compiled(expr)
    if found.fn is unknown:
        return forgetting([slot])
    if not isinstance(expr, Apply):
        if isinstance(expr, Const):
            return copied(slot, rows_of(Const(expr.value & (1 << width) - 1), leaf))
        mask = (1 << width) - 1
        return unary(lambda value: value & mask, slot, leaf(expr))
    sources = [leaf(one) for one in found.leaves]
    fn = fitted(found.fn, result_type(expr.op, expr.type), width)
    if not sources:
        constant = uniform(fn())
        return copied(slot, lambda warp: constant)
    if not found.strict:
        args = [compiled(arg) for arg in expr.args]
        if expr.op == "selp" and args[2].plain and all(arg.plain or not arg.leaves for arg in args[:2]):
            chosen = fitted(_choosing(operation(expr.op, expr.type)), expr.type, width)
            return choice(chosen, slot, *(rows_of(arg, leaf) for arg in expr.args))
        return lenient(fn, slot, sources)
    return binary(fn, slot, *sources) if len(sources) == 2 else many(fn, slot, sources)


def rows_of(expr: Expr, leaf: LeafValues) -> Get:
    """The values of an expression in all lanes; numbers are unsigned."""
    expr = stripped(expr)
    if isinstance(expr, Const):
        constant = uniform(expr.value & ADDRESS_BITS)
        return lambda warp: constant
    if not isinstance(expr, Apply):
        return leaf(expr)
    found = compiled(expr)
    if not found.leaves:
        constant = uniform(found.fn())
        return lambda warp: constant
    return rowwise(found.fn, [leaf(one) for one in found.leaves], strict=found.strict)


def rowwise(fn: Function, sources: Sequence[Get], *, strict: bool = True) -> Get:
    """A function of values, in all lanes; unknown where an operand is, if the function is strict."""

    def get(warp: Warp) -> Row:
        rows = [source(warp) for source in sources]
        if strict and any(row is UNKNOWN for row in rows):
            return UNKNOWN
        if all(type(row) is Uniform for row in rows):
            return uniform(fn(*(row[0] for row in rows)))
        if not strict:
            return [fn(*values) for values in zip(*rows, strict=True)]
        return [None if None in values else fn(*values) for values in zip(*rows, strict=True)]

    return get


def fitted(fn: Function, type: DataType, width: int, *, cuts: bool = True) -> Function:
    """Results of a type as they stand in a register of so many bits: a signed one is extended. `cuts`: others are cut
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


# ---- functions -------------------------------------------------------------------------------------------------------


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
        return Compiled(_composed(_choosing(fn), args, strict=False), leaves, strict=False)
    if expr.op in DECIDES and expr.type == PREDICATE:
        return Compiled(_composed(_joining(expr.op, fn), args, strict=False), leaves, strict=False)
    strict = all(arg.strict for arg in args)
    return Compiled(_composed(fn if strict else _known(fn), args, strict=strict), leaves, strict)


def _argument(expr: Expr, type: DataType) -> Compiled:
    """The function of an operand of an operation in `type`: its sign counts where that is wider."""
    expr = stripped(expr)
    found = compiled(expr)
    if not isinstance(expr, Apply):
        return found
    return found._replace(fn=fitted(found.fn, result_type(expr.op, expr.type), type.width, cuts=False))


def _choosing(fn: Function) -> Function:
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
