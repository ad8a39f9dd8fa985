"""Symbolic values: which integers a register may hold, and when; worked out only for values that are asked for.

A `Cases` maps each possible integer to the formula under which it is the value. Under the path condition of the place
where it is read, exactly one of the formulas is true. Litmus values are few, so this is smaller and faster than
bit-vectors, and arithmetic is exact because it is done on the integers themselves. A value that may be too many
integers (the accumulator of a matrix product) is *wide*: formulas for its bits instead (`events.bits`).

A `Value` knows what it depends on, and how to find its cases. Most values of a program are only moved: nothing asks for
them, and they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.errors import TooLarge
from memmodel.events import bits
from memmodel.events.bits import Bits
from memmodel.program import arith
from memmodel.program.expressions import AddressOf, Const, Expr, Get
from memmodel.ptx.vocabulary import DataType

FEW = 24
"""A value with more cases than this becomes wide."""

LISTED = 256
"""The integers of a wide value are listed if there are at most this many."""

TRIED = 4096
"""More combinations of operand cases than this are not tried one by one."""

MANY = 1 << 30
"""More writes than there ever are."""

Deps = dict[int, int]
"""Uid of a read -> formula under which a value depends on it."""

NO_DEPS: Deps = {}


Depths = Mapping[int, int]
"""Integer -> the least length of a chain of writes that leads to it; 0 if it is not a possible value."""


@dataclass(frozen=True, slots=True)
class Cases:
    """`numbers`: integer -> formula; a wide value has `bits` instead. `depths`: of the integers.

    `listed`: the integers of a wide value all the same, if that are not very many: for what has no circuit.
    """

    numbers: Mapping[int, int]
    bits: Bits | None = None
    depths: Depths = field(default_factory=dict)
    listed: Mapping[int, int] = field(default_factory=dict)

    @property
    def constant(self) -> int | None:
        """The only possible integer, or None."""
        return next(iter(self.numbers)) if len(self.numbers) == 1 else None

    def is_nonzero(self, logic: Logic) -> int:
        """The formula that says the value is not 0: a literal if there is one, which contradicts another unsolved."""
        if self.bits is not None:
            return logic.disj(self.bits)
        if 0 not in self.numbers:
            return TRUE
        others = [formula for number, formula in self.numbers.items() if number != 0]
        return others[0] if len(others) == 1 and logic.is_variable(others[0]) else -self.numbers[0]

    def narrow(self) -> Cases | None:
        """The value as integers; None if it may have too many."""
        if self.bits is None:
            return self
        return Cases(self.listed, None, self.depths) if self.listed else None

    def as_bits(self, logic: Logic) -> Bits:
        """The bits of the value, wide or not."""
        return self.bits if self.bits is not None else bits.of_cases(logic, self.numbers)

    def number(self, holds: Callable[[int], bool]) -> int:
        """The integer under a valuation; 0 if no case holds (the value is not used in that execution)."""
        if self.bits is not None:
            return bits.number(self.bits, holds)
        return next((number for number, formula in self.numbers.items() if holds(formula)), 0)

    def is_number(self, logic: Logic, number: int) -> int:
        """The formula that says the value is that integer."""
        if self.bits is not None:
            return bits.equal(logic, self.bits, bits.of_number(number))
        return self.numbers.get(number, FALSE)

    def is_less(self, logic: Logic, number: int) -> int:
        """The formula that says the value is less than that integer."""
        if self.bits is not None:
            return bits.less(logic, self.bits, bits.of_number(number))
        return logic.disj(formula for case, formula in self.numbers.items() if case < number)

    def is_odd(self, logic: Logic) -> int:
        """The formula that says the value is odd."""
        if self.bits is not None:
            return self.bits[0]
        return logic.disj(formula for case, formula in self.numbers.items() if case % 2)


class Value:
    """A value whose cases are found when first asked for. `deps`: the reads that it was computed from."""

    __slots__ = ("_args", "_cases", "_find", "deps")

    def __init__(
        self,
        cases: Cases | None,
        deps: Deps = NO_DEPS,
        args: Sequence[Value] = (),
        find: Callable[[list[Cases]], Cases] | None = None,
    ) -> None:
        self.deps = deps
        self._cases = cases
        self._args = args
        self._find = find

    @property
    def constant(self) -> int | None:
        """The only possible integer as far as that is known already, or None."""
        return None if self._cases is None else self._cases.constant

    @property
    def known(self) -> Cases | None:
        """The cases, if they were asked for."""
        return self._cases

    def cases(self) -> Cases:
        """The cases. Those of arguments are found first, without recursion."""
        stack = [self]
        while stack:
            value = stack[-1]
            if value._cases is not None:
                stack.pop()
                continue
            missing = [arg for arg in value._args if arg._cases is None]
            if missing:
                stack += missing
                continue
            assert value._find is not None
            value._cases = value._find([arg.cases() for arg in value._args])
            value._args, value._find = (), None
            stack.pop()
        assert self._cases is not None
        return self._cases

    def with_deps(self, deps: Deps) -> Value:
        """The same value with other dependencies."""
        if self._cases is not None:
            return Value(self._cases, deps)
        return Value(None, deps, (self,), lambda cases: cases[0])


def constant(number: int) -> Value:
    return Value(Cases({number: TRUE}))


ZERO = constant(0)


def merge_deps(logic: Logic, *parts: Deps) -> Deps:
    """Union of dependencies."""
    merged: Deps = {}
    for part in parts:
        if not merged:
            merged = dict(part)
            continue
        for uid, formula in part.items():
            merged[uid] = logic.either(merged.get(uid, FALSE), formula)
    return merged


def guard_deps(logic: Logic, when: int, deps: Deps) -> Deps:
    """Dependencies that count only when a formula holds."""
    if when == TRUE:
        return deps
    return {uid: both for uid, formula in deps.items() if (both := logic.both(when, formula)) != FALSE}


def select(logic: Logic, options: Sequence[tuple[int, Value]]) -> Value:
    """One value out of several, each under its own (mutually exclusive) condition; some condition is taken to hold."""
    first = options[0][1]
    if all(value is first for _, value in options):
        return first
    deps = merge_deps(logic, *(guard_deps(logic, when, value.deps) for when, value in options))
    number = first.constant
    if number is not None and all(value.constant == number for _, value in options):
        return Value(Cases({number: TRUE}), deps)
    conditions = [when for when, _ in options]
    return Value(None, deps, [value for _, value in options], lambda cases: _selected(logic, conditions, cases))


def _selected(logic: Logic, conditions: Sequence[int], values: Sequence[Cases]) -> Cases:
    if any(cases.bits is not None for cases in values):
        wide = [(when, cases.as_bits(logic)) for when, cases in zip(conditions, values, strict=True)]
        return Cases({}, bits.choose(logic, wide))
    numbers: dict[int, int] = {}
    depths: dict[int, int] = {}
    for when, cases in zip(conditions, values, strict=True):
        for number, formula in cases.numbers.items():
            numbers[number] = logic.either(numbers.get(number, FALSE), logic.both(when, formula))
            depths[number] = min(cases.depths.get(number, 0), depths.get(number, MANY))
    return few(logic, {number: formula for number, formula in numbers.items() if formula != FALSE}, depths)


def few(logic: Logic, numbers: dict[int, int], depths: Depths) -> Cases:
    """Cases as they are if they are few, else wide."""
    if len(numbers) == 1:
        return Cases(dict.fromkeys(numbers, TRUE), None, depths)
    if len(numbers) <= FEW:
        return Cases(numbers, None, depths)
    return Cases({}, bits.of_cases(logic, numbers), depths, numbers if len(numbers) <= LISTED else {})


def evaluate(logic: Logic, expr: Expr, registers: Mapping[str, Value], address_of: Callable[[AddressOf], int]) -> Value:
    """The value of an expression. Asking for its cases raises TooLarge if it is wide and has no circuit."""
    if isinstance(expr, Const):
        return constant(expr.value)
    if isinstance(expr, Get):
        return registers.get(expr.register, ZERO)
    if isinstance(expr, AddressOf):
        return constant(address_of(expr))
    args = [evaluate(logic, arg, registers, address_of) for arg in expr.args]
    return apply(logic, expr.op, args, expr.type)


def apply(logic: Logic, op: str, args: Sequence[Value], type: DataType) -> Value:
    """The value of an operation of `program.arith`."""
    deps = merge_deps(logic, *(arg.deps for arg in args))
    numbers = [arg.constant for arg in args]
    if None not in numbers:
        return Value(Cases({arith.apply(op, tuple(n for n in numbers if n is not None), type): TRUE}), deps)
    return Value(None, deps, args, lambda cases: _applied(logic, op, cases, type))


def _applied(logic: Logic, op: str, args: list[Cases], type: DataType) -> Cases:
    narrow = _few_enough(args)
    if narrow is None:
        wide = _on_bits(logic, op, args, type)
        if wide is not None:
            return wide
        narrow = _few_enough(args, TRIED)
    if narrow is None:
        raise TooLarge(f"'{op}' on a register that may hold very many values")
    return combined(logic, narrow, lambda numbers: arith.apply(op, numbers, type))


def _few_enough(args: Sequence[Cases], most: int = LISTED) -> list[Cases] | None:
    """The values as integers, if few combinations are to be tried: at most `most` if one of them is wide."""
    narrow = [cases for arg in args if (cases := arg.narrow()) is not None]
    if len(narrow) < len(args):
        return None
    if all(arg.bits is None for arg in args):
        most = TRIED
    return narrow if prod(len(arg.numbers) for arg in narrow) <= most else None


def combined(logic: Logic, args: Sequence[Cases], result: Callable[[tuple[int, ...]], int]) -> Cases:
    """The cases of a function of several values that are not wide."""
    results: dict[int, list[int]] = {}
    depths: dict[int, int] = {}
    for combination in product(*(arg.numbers.items() for arg in args)):
        formula = logic.conj(formula for _, formula in combination)
        if formula != FALSE:
            number = result(tuple(number for number, _ in combination))
            results.setdefault(number, []).append(formula)
            depth = max((arg.depths.get(n, 0) for arg, (n, _) in zip(args, combination, strict=True)), default=0)
            depths[number] = min(depth, depths.get(number, MANY))
    return few(logic, {number: logic.disj(formulas) for number, formulas in results.items()}, depths)


def _on_bits(logic: Logic, op: str, args: list[Cases], type: DataType) -> Cases | None:
    """By a circuit; None if there is none."""
    if op in ("shl", "shr") and args[1].constant is not None:
        return _narrow(logic, bits.shift(op, args[0].as_bits(logic), args[1].constant, type))
    wide = bits.apply(logic, op, [arg.as_bits(logic) for arg in args], type)
    return None if wide is None else _narrow(logic, wide)


def _narrow(logic: Logic, wide: Bits) -> Cases:
    """The integers again, if only a few bits of a wide value are open, as after a mask."""
    opened = tuple(dict.fromkeys(abs(bit) for bit in wide if bit not in (TRUE, FALSE)))
    if 1 << len(opened) > FEW:
        return Cases({}, wide)
    numbers = {}
    for choice in product((1, -1), repeat=len(opened)):
        true = {TRUE, *(bit * sign for bit, sign in zip(opened, choice, strict=True))}
        formula = logic.conj(true)
        if formula != FALSE:
            numbers[bits.number(wide, true.__contains__)] = formula
    return few(logic, numbers, {})


# ---- bytes ---------------------------------------------------------------------------------------------------------


def piece(logic: Logic, value: Value, first: int, size: int, whole: int) -> Value:
    """Bytes first … first+size of a value that is written as `whole` bytes, as an unsigned number."""
    mask = (1 << size * 8) - 1

    def cases(args: list[Cases]) -> Cases:
        narrow = _few_enough(args)
        if narrow is None:
            return Cases({}, bits.part(args[0].as_bits(logic), first * 8, size * 8))
        return combined(logic, narrow, lambda numbers: numbers[0] >> first * 8 & mask)

    number = value.constant
    if number is not None:
        return Value(Cases({number >> first * 8 & mask: TRUE}), value.deps)
    return Value(None, value.deps, (value,), cases)


def joined(logic: Logic, parts: Sequence[tuple[Value, int]]) -> Value:
    """Unsigned numbers, each with its size in bytes, one after the other, as one unsigned number."""
    if len(parts) == 1:
        return parts[0][0]
    deps = merge_deps(logic, *(value.deps for value, _ in parts))
    sizes = [size for _, size in parts]

    def cases(args: list[Cases]) -> Cases:
        narrow = _few_enough(args)
        if narrow is None:
            wide = [(arg.as_bits(logic), size * 8) for arg, size in zip(args, sizes, strict=True)]
            return Cases({}, bits.joined(wide))
        return combined(logic, narrow, lambda numbers: _concatenated(numbers, sizes))

    return Value(None, deps, [value for value, _ in parts], cases)


def _concatenated(numbers: Sequence[int], sizes: Sequence[int]) -> int:
    total = at = 0
    for number, size in zip(numbers, sizes, strict=True):
        total |= number << at * 8
        at += size
    return total


def typed(logic: Logic, value: Value, type: DataType) -> Value:
    """An unsigned number from memory as a register of that type holds it."""
    return apply(logic, "cvt", (value,), type)
