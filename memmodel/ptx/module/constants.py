"""Integer constant expressions: `4*8+1`, `(1<<4)-1`, `~0`, `0xF0|3`.

In: a Cursor before one. Out: `constant`, its value; `product`, that of a term of a sum. Comparisons, remainders,
quotients, casts and `?:` are not read. Source: PTX ISA "Integer Constant Expression Evaluation".
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from memmodel.ptx.module.lexer import ModuleCursor, integer_of

_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"<<": lambda a, b: a << min(b, 64) & (1 << 64) - 1, ">>": lambda a, b: a >> min(b, 64)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul},
)
"""Operators from the loosest to the tightest; each level goes from left to right."""

_SIGNS: dict[str, Callable[[int], int]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_PRODUCT = len(_LEVELS) - 1
_ENDS = (",", ";", "]", "}", ")")
_DEPTH = 64
_WIDEST = 1 << 128


def constant(cursor: ModuleCursor) -> int:
    """The value of an expression."""
    return _level(cursor, 0, 0) if cursor.ahead().kind not in _ENDS else _unary(cursor, 0)


def product(cursor: ModuleCursor) -> int:
    """The value of a product, or of what is tighter."""
    return _level(cursor, _PRODUCT, 0) if cursor.ahead().kind not in _ENDS else _unary(cursor, 0)


def _level(cursor: ModuleCursor, level: int, depth: int) -> int:
    if level == len(_LEVELS):
        return _unary(cursor, depth)
    start = cursor.token
    value = _level(cursor, level + 1, depth)
    while (symbol := _operator(cursor)) in _LEVELS[level]:
        for _ in symbol:
            cursor.next()
        right = _level(cursor, level + 1, depth)
        if right < 0 and symbol in ("<<", ">>"):
            cursor.fail("a shift is not negative", start)
        value = _LEVELS[level][symbol](value, right)
        if not -_WIDEST < value < _WIDEST:
            cursor.fail("the number has more than 128 bits", start)
    return value


def _operator(cursor: ModuleCursor) -> str:
    """The operator that is next; two marks of a shift stand together."""
    first, second = cursor.token, cursor.ahead()
    if first.kind in ("<", ">"):
        return first.kind * 2 if second.kind == first.kind and second.start == first.end else ""
    return first.kind


def _unary(cursor: ModuleCursor, depth: int) -> int:
    if depth > _DEPTH:
        cursor.fail("the expression is nested too deeply")
    if cursor.token.kind in _SIGNS:
        return _SIGNS[cursor.next().kind](_unary(cursor, depth + 1))
    if cursor.accept("("):
        value = _level(cursor, 0, depth + 1)
        cursor.expect(")")
        return value
    token = cursor.expect("number", "a number")
    number = integer_of(token.text)
    if number is None:
        cursor.fail("a whole number is expected here", token)
    if number >= _WIDEST:
        cursor.fail("the number has more than 128 bits", token)
    return number
