"""The values that a sweep goes through: `K=0..1024:64,M=1..256,grid.x=(M+63)/64`.

In: text. Out: `Axes`. An axis has a name that `--set` takes, and numbers, ranges `FIRST..LAST` or `FIRST..LAST:STEP`
with both ends, or one expression over the names of axes before it. Division rounds down. Raises InputError.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from memmodel.errors import InputError

MOST_LAUNCHES = 100_000
"""Launches of one sweep."""

LARGEST = 1 << 64
"""Numbers in a sweep are smaller."""

EXAMPLE = "such as --sweep 'K=0..1024:64,M=1..256,grid.x=(M+63)/64'"

_NAME = re.compile(r"[\w$.+ ]*[\w$]")
_RANGE = re.compile(r"(?P<first>\d{1,20})(\.\.(?P<last>\d{1,20})(:(?P<step>\d{1,20}))?)?")
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}

Values = tuple[int, ...]
"""The values of the free axes of a launch, in their order."""


@dataclass(frozen=True, slots=True)
class FreeAxis:
    """A size that takes some values, whatever the others are. `text`: as it was written."""

    name: str
    text: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundAxis:
    """A size that follows from others."""

    name: str
    text: str
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Axes:
    """What a sweep goes through."""

    free: tuple[FreeAxis, ...]
    bound: tuple[BoundAxis, ...]

    def __str__(self) -> str:
        return ",".join(f"{name}={text}" for name, text in self.texts.items())

    @property
    def texts(self) -> dict[str, str]:
        """What was written for each name."""
        return {axis.name: axis.text for axis in self.free} | {axis.name: axis.text for axis in self.bound}

    @property
    def count(self) -> int:
        """How many launches there are."""
        return prod(len(axis.values) for axis in self.free)

    def launches(self) -> Iterator[Values]:
        """Every combination of the values of the free axes."""
        return product(*(axis.values for axis in self.free))

    def sizes(self, values: Values) -> dict[str, int]:
        """What each axis is in a launch. Raises InputError where an expression has no value."""
        known = {axis.name: value for axis, value in zip(self.free, values, strict=True)}
        for axis in self.bound:
            known[axis.name] = _value(axis.value, known, f"--sweep {axis.name}={axis.text}")
        return known

    def feeds(self, name: str) -> bool:
        """True if the value of another axis follows from the axis of that name."""
        return any(
            isinstance(node, ast.Name) and node.id == name for axis in self.bound for node in ast.walk(axis.value)
        )


def axes(text: str) -> Axes:
    """The axes of a sweep. Raises InputError."""
    free: dict[str, FreeAxis] = {}
    bound: dict[str, BoundAxis] = {}
    for name, parts in _axes_of(text):
        written, where = ",".join(parts), f"--sweep {name}={','.join(parts)}"
        if name in free or name in bound:
            raise InputError(f"{where}: {name} is given twice")
        ranges = [_RANGE.fullmatch(part) for part in parts]
        if all(ranges):
            numbers = dict.fromkeys(number for part in ranges if part for number in _numbers(part, where))
            free[name] = FreeAxis(name, written, tuple(sorted(numbers)))
        else:
            bound[name] = BoundAxis(name, written, _expression(written, {*free, *bound}, where))
    if not free:
        raise InputError("--sweep: no size goes through a range", hint=EXAMPLE)
    sweep = Axes(tuple(free.values()), tuple(bound.values()))
    if sweep.count > MOST_LAUNCHES:
        raise InputError(
            f"--sweep: {sweep.count:,} launches, and {MOST_LAUNCHES:,} is the most", hint="take larger steps"
        )
    return sweep


def _axes_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """The names, each with what follows its equals sign: the parts between commas outside of parentheses."""
    name, parts = "", [""]
    for part in _between_commas(text):
        before, equals, rest = part.partition("=")
        if equals:
            if name:
                yield name, parts
            name, parts = before.strip(), [rest.strip()]
            if _NAME.fullmatch(name) is None:
                raise InputError(f"--sweep {part.strip()[:40]}: no name before the equals sign", hint=EXAMPLE)
        elif name:
            parts.append(part.strip())
        else:
            raise InputError(f"--sweep {part.strip()[:40]}: not a name and its values", hint=EXAMPLE)
    yield name, parts


def _between_commas(text: str) -> Iterator[str]:
    """The parts of a text between its commas, but for commas in parentheses."""
    depth, part = 0, ""
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            yield part
            part = ""
        else:
            part += character
    yield part


def _numbers(part: re.Match[str], where: str) -> range:
    first = int(part["first"])
    last, step = int(part["last"] or first), int(part["step"] or 1)
    if step == 0 or last < first or last >= LARGEST:
        raise InputError(
            f"{where}: {part[0]} is not a range", hint="such as 0..1024:64, from the smaller to the larger"
        )
    if (last - first) // step >= MOST_LAUNCHES:
        raise InputError(f"{where}: {part[0]} has more than {MOST_LAUNCHES:,} values", hint="take larger steps")
    return range(first, last + 1, step)


def _expression(text: str, known: set[str], where: str) -> ast.expr:
    """An expression over names of axes. Raises InputError."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{where}: neither numbers, nor ranges, nor an expression", hint=EXAMPLE) from error
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in functions and node.id not in known:
            raise InputError(f"{where}: {node.id} is not an axis before this one", hint=EXAMPLE)
        allowed = (
            isinstance(node, ast.Name | ast.Load | ast.operator)
            or (isinstance(node, ast.Constant) and type(node.value) is int and node.value < LARGEST)
            or (isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC)
            or (isinstance(node, ast.Call) and _is_function(node))
        )
        if not allowed:
            raise InputError(f"{where}: an expression has numbers, names, + - * / % ( ), min and max")
    return tree


def _is_function(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords and len(node.args) > 1


def _value(node: ast.expr, known: Mapping[str, int], where: str) -> int:
    """What an expression comes to. Raises InputError."""
    try:
        value = _computed(node, known)
    except (ZeroDivisionError, RecursionError) as error:
        raise InputError(f"{where}: no value with {_shown(known)}: {error}") from error
    if not -LARGEST < value < LARGEST:
        raise InputError(f"{where}: beyond 64 bits with {_shown(known)}")
    return value


def _computed(node: ast.expr, known: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_computed(left, known), _computed(right, known))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_computed(arg, known) for arg in args))
    raise AssertionError(ast.dump(node))


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())
