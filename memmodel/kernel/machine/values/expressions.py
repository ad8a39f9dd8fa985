"""Expressions as functions of the values in the lanes of a warp.

In: an `Expr`, and what its leaves yield. Out: `lane_values`, its values in all lanes; `assigning`, a step that puts
them into a register. An expression is compiled once to a function of its leaves; values that are the same in all lanes
are computed once. `program.unknowns` says what is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.rows import UNKNOWN, Row, Uniform, uniform
from memmodel.kernel.machine.values.lanes import Get, Step, binary, choice, copied, forgetting, lenient, many, unary
from memmodel.program.arith import operation, result_type, unknown
from memmodel.program.expressions import Apply, Const, Expr, stripped
from memmodel.program.unknowns import Function, Leaf, choosing, compiled, fitted

LeafValues = Callable[[Leaf], Get]
"""What a register or an address yields."""

ADDRESS_BITS = (1 << 64) - 1


def assigning(expr: Expr, slot: int, width: int, leaf: LeafValues) -> Step:
    """The step that puts the values of an expression into a register of `width` bits."""
    expr = stripped(expr)
    function = compiled(expr)
    if function.fn is unknown:
        return forgetting([slot])
    if not isinstance(expr, Apply):
        if isinstance(expr, Const):
            return copied(slot, lane_values(Const(expr.value & (1 << width) - 1), leaf))
        mask = (1 << width) - 1
        return unary(lambda value: value & mask, slot, leaf(expr))
    sources = [leaf(name) for name in function.leaves]
    fn = fitted(function.fn, result_type(expr.op, expr.type), width)
    if not sources:
        constant = uniform(fn())
        return copied(slot, lambda warp: constant)
    if not function.strict:
        args = [compiled(arg) for arg in expr.args]
        if expr.op == "selp" and args[2].plain and all(arg.plain or not arg.leaves for arg in args[:2]):
            chosen = fitted(choosing(operation(expr.op, expr.type)), expr.type, width)
            return choice(chosen, slot, *(lane_values(arg, leaf) for arg in expr.args))
        return lenient(fn, slot, sources)
    return binary(fn, slot, *sources) if len(sources) == 2 else many(fn, slot, sources)


def lane_values(expr: Expr, leaf: LeafValues) -> Get:
    """The values of an expression in all lanes; numbers are unsigned."""
    expr = stripped(expr)
    if isinstance(expr, Const):
        constant = uniform(expr.value & ADDRESS_BITS)
        return lambda warp: constant
    if not isinstance(expr, Apply):
        return leaf(expr)
    function = compiled(expr)
    if not function.leaves:
        constant = uniform(function.fn())
        return lambda warp: constant
    return rowwise(function.fn, [leaf(name) for name in function.leaves], strict=function.strict)


def remembering(expr: Expr, leaf: LeafValues) -> Get:
    """The values of an expression that most often has the operands that it had the last time: a rule about a mask and
    the numbers of lanes, which all warps check.
    """
    expr = stripped(expr)
    function = compiled(expr)
    if not isinstance(expr, Apply) or not function.leaves:
        return lane_values(expr, leaf)
    last: list[tuple[list[Row], Row]] = []
    sources = [leaf(name) for name in function.leaves]

    def get(warp: Warp) -> Row:
        rows = [source(warp) for source in sources]
        if last and last[0][0] == rows:
            return last[0][1]
        values = rowwise(function.fn, [partial(_given, row) for row in rows], strict=function.strict)(warp)
        last[:] = [([row if type(row) is Uniform else list(row) for row in rows], values)]
        return values

    return get


def _given(row: Row, warp: Warp) -> Row:
    return row


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
