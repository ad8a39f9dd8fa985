"""Symbolic values: which integers a register may hold, and when.

A `Value` maps each possible integer to the formula under which the register holds it. Under the path condition of the
place where it is read, exactly one of the formulas is true. Litmus values are few, so this is smaller and faster than
bit-vectors, and arithmetic is exact because it is done on the integers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from memmodel.errors import TooLarge
from memmodel.isa import arith
from memmodel.isa.ops import AddressOf, Apply, Const, Expr, Get
from memmodel.logic import FALSE, TRUE, Logic

MAX_VALUES = 4096
"""More possible values than this in one register, and the test is reported as too large."""

Deps = dict[int, int]
"""Uid of a read -> formula under which a value depends on it."""


@dataclass(frozen=True, slots=True)
class Value:
    """`cases`: integer -> formula; `deps`: the reads that it was computed from."""

    cases: dict[int, int]
    deps: Deps = field(default_factory=dict)

    @property
    def constant(self) -> int | None:
        """The only possible integer, or None."""
        if len(self.cases) == 1:
            return next(iter(self.cases))
        return None

    def is_nonzero(self) -> int:
        """The formula that says the value is not 0: one literal, so that it contradicts "is 0" without any solving."""
        if 0 not in self.cases:
            return TRUE
        return -self.cases[0]


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
    cases: dict[int, int] = {}
    for when, value in options:
        for number, formula in value.cases.items():
            cases[number] = logic.either(cases.get(number, FALSE), logic.both(when, formula))
    if len(cases) == 1:
        cases = {number: TRUE for number in cases}
    deps = merge_deps(logic, *(guard_deps(logic, when, value.deps) for when, value in options))
    return Value({number: formula for number, formula in cases.items() if formula != FALSE}, deps)


def evaluate(logic: Logic, expr: Expr, registers: dict[str, Value], address_of: Callable[[AddressOf], int]) -> Value:
    """The value of an expression. Raises TooLarge when it may take more than MAX_VALUES integers."""
    if isinstance(expr, Const):
        return constant(expr.value)
    if isinstance(expr, Get):
        return registers.get(expr.register, ZERO)
    if isinstance(expr, AddressOf):
        return constant(address_of(expr))
    assert isinstance(expr, Apply)
    args = [evaluate(logic, arg, registers, address_of) for arg in expr.args]
    size = 1
    for arg in args:
        size *= len(arg.cases)
    if size > 4 * MAX_VALUES:
        raise TooLarge(f"a register may take more than {MAX_VALUES} values")
    cases: dict[int, list[int]] = {}
    for combination in product(*(arg.cases.items() for arg in args)):
        formula = logic.conj(formula for _, formula in combination)
        if formula != FALSE:
            number = arith.apply(expr.op, tuple(number for number, _ in combination), expr.type)
            cases.setdefault(number, []).append(formula)
    deps = merge_deps(logic, *(arg.deps for arg in args))
    if len(cases) == 1:
        return Value(dict.fromkeys(cases, TRUE), deps)
    if len(cases) > MAX_VALUES:
        raise TooLarge(f"a register may take more than {MAX_VALUES} values")
    return Value({number: logic.disj(formulas) for number, formulas in cases.items()}, deps)
