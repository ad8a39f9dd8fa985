"""Symbolic values: which integers a register may hold, and when.

A `Value` maps each possible integer to the formula under which the register holds it. Under the path condition of the
place where it is read, exactly one of the formulas is true. Litmus values are few, so this is smaller and faster than
bit-vectors, and arithmetic is exact because it is done on the integers themselves. A value that may be too many
integers (the accumulator of a matrix product) is *wide*: formulas for its bits instead (`events.bits`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from math import prod

from memmodel.errors import TooLarge
from memmodel.events import bits
from memmodel.events.bits import Bits
from memmodel.isa import arith
from memmodel.isa.ops import AddressOf, Apply, Const, Expr, Get
from memmodel.logic import FALSE, TRUE, Logic

FEW = 24
"""A value with more cases than this becomes wide."""

TRIED = 4096
"""More combinations of operand cases than this are not tried one by one."""

Deps = dict[int, int]
"""Uid of a read -> formula under which a value depends on it."""


@dataclass(frozen=True, slots=True)
class Value:
    """`cases`: integer -> formula; a wide value has `bits` instead. `deps`: the reads that it was computed from."""

    cases: dict[int, int]
    deps: Deps = field(default_factory=dict)
    bits: Bits | None = None

    @property
    def constant(self) -> int | None:
        """The only possible integer, or None."""
        if len(self.cases) == 1:
            return next(iter(self.cases))
        return None

    def is_nonzero(self, logic: Logic) -> int:
        """The formula that says the value is not 0: a literal if there is one, which contradicts another unsolved."""
        if self.bits is not None:
            return logic.disj(self.bits)
        if 0 not in self.cases:
            return TRUE
        others = [formula for number, formula in self.cases.items() if number != 0]
        return others[0] if len(others) == 1 and logic.is_variable(others[0]) else -self.cases[0]

    def as_bits(self, logic: Logic) -> Bits:
        """The bits of the value, wide or not."""
        return self.bits if self.bits is not None else bits.of_cases(logic, self.cases)

    def number(self, holds: Callable[[int], bool]) -> int:
        """The integer under a valuation."""
        if self.bits is not None:
            return bits.number(self.bits, holds)
        return next(number for number, formula in self.cases.items() if holds(formula))

    def is_number(self, logic: Logic, number: int) -> int:
        """The formula that says the value is this integer."""
        if self.bits is not None:
            return bits.equal(logic, self.bits, bits.of_number(number))
        return self.cases.get(number, FALSE)

    def with_deps(self, deps: Deps) -> Value:
        """The same value with other dependencies."""
        return Value(self.cases, deps, self.bits)


def constant(number: int) -> Value:
    return Value({number: TRUE})


ZERO = constant(0)


def merge_deps(logic: Logic, *parts: Deps) -> Deps:
    """Union of dependencies."""
    merged: Deps = {}
    for part in parts:
        for uid, formula in part.items():
            merged[uid] = logic.either(merged.get(uid, FALSE), formula)
    return merged


def guard_deps(logic: Logic, when: int, deps: Deps) -> Deps:
    """Dependencies that count only when a formula holds."""
    if when == TRUE:
        return deps
    return {uid: both for uid, formula in deps.items() if (both := logic.both(when, formula)) != FALSE}


def select(logic: Logic, options: list[tuple[int, Value]]) -> Value:
    """One value out of several, each under its own (mutually exclusive) condition; some condition is taken to hold."""
    first = options[0][1]
    if all(value is first or value == first for _, value in options):
        return first
    deps = merge_deps(logic, *(guard_deps(logic, when, value.deps) for when, value in options))
    if any(value.bits is not None for _, value in options):
        return Value({}, deps, bits.choose(logic, [(when, value.as_bits(logic)) for when, value in options]))
    cases: dict[int, int] = {}
    for when, value in options:
        for number, formula in value.cases.items():
            cases[number] = logic.either(cases.get(number, FALSE), logic.both(when, formula))
    if len(cases) == 1:
        cases = {number: TRUE for number in cases}
    return Value({number: formula for number, formula in cases.items() if formula != FALSE}, deps)


def evaluate(logic: Logic, expr: Expr, registers: dict[str, Value], address_of: Callable[[AddressOf], int]) -> Value:
    """The value of an expression. Raises TooLarge for an operation on a wide value that has no circuit."""
    if isinstance(expr, Const):
        return constant(expr.value)
    if isinstance(expr, Get):
        return registers.get(expr.register, ZERO)
    if isinstance(expr, AddressOf):
        return constant(address_of(expr))
    assert isinstance(expr, Apply)
    args = [evaluate(logic, arg, registers, address_of) for arg in expr.args]
    deps = merge_deps(logic, *(arg.deps for arg in args))
    if any(arg.bits is not None for arg in args) or prod(len(arg.cases) for arg in args) > TRIED:
        return _on_bits(logic, expr, args, deps)
    cases: dict[int, list[int]] = {}
    for combination in product(*(arg.cases.items() for arg in args)):
        formula = logic.conj(formula for _, formula in combination)
        if formula != FALSE:
            number = arith.apply(expr.op, tuple(number for number, _ in combination), expr.type)
            cases.setdefault(number, []).append(formula)
    if len(cases) == 1:
        return Value(dict.fromkeys(cases, TRUE), deps)
    value = {number: logic.disj(formulas) for number, formulas in cases.items()}
    return Value(value, deps) if len(value) <= FEW else Value({}, deps, bits.of_cases(logic, value))


def _on_bits(logic: Logic, expr: Apply, args: list[Value], deps: Deps) -> Value:
    if expr.op in ("shl", "shr") and args[1].constant is not None:
        return Value({}, deps, _shift(expr, args[0].as_bits(logic), args[1].cases))
    found = bits.apply(logic, expr.op, [arg.as_bits(logic) for arg in args], expr.type)
    if found is None:
        raise TooLarge(f"'{expr.op}' on a register that may hold very many values")
    return Value({}, deps, found)


def _shift(expr: Apply, value: Bits, amounts: dict[int, int]) -> Bits:
    """A shift by a constant."""
    (amount,) = amounts
    width = expr.type.width
    amount = min(amount & 0xFFFFFFFF, width)
    kept = list(value[:width])
    if expr.op == "shl":
        return bits.wrap(([FALSE] * amount + kept)[:width], expr.type)
    fill = kept[-1] if expr.type.kind == "s" else FALSE
    return bits.wrap((kept[amount:] + [fill] * amount)[:width], expr.type)
