"""How numbers change in longer loops: what is computed in later rounds is what the drift says, until a number wraps."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import pytest
from helpers.examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel.kernel.all_sizes.drift import STILL, Drift, DriftingNumber, Drifts
from memmodel.program.arith.integers import COMPARISONS
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.unknowns import Leaf, evaluated, in_register
from memmodel.ptx.vocabulary import PREDICATE, DataType

TYPES = tuple(DataType(kind, width) for width in (32, 64) for kind in "usb")
OPERATIONS = (
    *("add", "sub", "mul", "mul.hi", "shl", "shr", "div", "rem", "and", "or", "xor", "min", "max"),
    *("neg", "not", "cvt", "mul.wide", "bfe", "selp", "abs", "popc", "lt", "eq", "prmt", "min.relu", "add.sat"),
)
COUNTS = {**dict.fromkeys(("neg", "not", "cvt", "abs", "popc"), 1), **dict.fromkeys(("bfe", "selp", "prmt"), 3)}
SMALL = st.integers(-40, 400) | st.sampled_from([2**31 - 40, 2**32 - 5, 3, 64, 7])
FACTOR = st.integers(0, 40) | st.sampled_from([0xAAAAAAAB, 0xAAAAAAAAAAAAAAAB, 0xFFFFFFF8, 63, 31, 2**20])
ROUND, PARAMETER, FIXED = (Get(str(slot)) for slot in range(3))


def computations(leaves: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """An operation on some expressions."""

    def of(op: str, type: DataType) -> st.SearchStrategy[Expr]:
        return st.tuples(*[leaves] * COUNTS.get(op, 2)).map(lambda args: Apply(op, args, type))

    types = st.sampled_from((*TYPES, *TYPES, DataType("u", 16), DataType("s", 8)))
    return st.tuples(st.sampled_from(OPERATIONS), types).flatmap(lambda pair: of(*pair))


LEAVES = st.sampled_from([ROUND, ROUND, PARAMETER, FIXED]) | FACTOR.map(Const)
EXPRESSIONS = st.recursive(LEAVES, computations, max_leaves=6)


class Numbers:
    """Registers of 32 bits: one that moves from round to round, a parameter that grows, one that stays."""

    def __init__(self, start: int, by: int, parameter: int, fixed: int) -> None:
        self.start, self.by, self.parameter, self.fixed = start, by, parameter, fixed

    def values(self, periods: int, grown: int) -> dict[str, int]:
        """What they hold after so many more periods, where the parameter is so much larger."""
        numbers = (self.start + self.by * periods, self.parameter + grown, self.fixed)
        return {str(slot): number & 0xFFFFFFFF for slot, number in enumerate(numbers)}

    def __call__(self, leaf: Leaf) -> DriftingNumber:
        assert isinstance(leaf, Get)
        drift = (Drift(Fraction(0), self.by), Drift(Fraction(1), 0), STILL)[int(leaf.register)]
        return DriftingNumber(self.values(0, 0)[leaf.register], DataType("b", 32), drift)


@given(EXPRESSIONS, SMALL, st.sampled_from([-30, -8, -4, -1, 1, 2, 3, 4, 8, 16, 64]), SMALL, FACTOR,
       st.sampled_from([32, 64, 16]))  # fmt: skip
@examples(100)
def test_numbers_change_evenly(expr: Expr, start: int, by: int, parameter: int, fixed: int, width: int) -> None:
    """The value of an expression in later rounds, for larger parameters, is what its drift says."""
    drifts, numbers, function = Drifts(), Numbers(start, by, parameter, fixed), in_register(expr, width)
    drift = drifts.assigned(expr, width, numbers)
    first = evaluated(function, numbers.values(0, 0))
    assume(drift is not None and first is not None)
    assert drift is not None and first is not None
    rate = drifts.rate or Fraction(1)
    step = lcm(drifts.divisor, rate.numerator)
    assume(not drifts.rates_differ)
    for more in range(0, min(1000, drifts.periods()) + 1, int(step / rate)):
        grown = int(more * rate)
        growth = drift.by_parameter * grown
        assert growth.denominator == 1
        for made in {0, 1, more // 2, more - 1, more} & set(range(more + 1)):
            value = evaluated(function, numbers.values(made, grown))
            assert value == (first + int(growth) + drift.by_period * made) & (1 << width) - 1


@pytest.mark.parametrize(
    ("expr", "moves"),
    [
        (Apply("add", (Apply("mul", (ROUND, Const(12)), TYPES[0]), FIXED), TYPES[0]), 24),
        (Apply("mul.wide", (ROUND, Const(-4)), TYPES[1]), -8),
        (Apply("shl", (ROUND, Const(3)), TYPES[2]), 16),
        (Apply("div", (Apply("sub", (ROUND, Const(1)), TYPES[1]), Const(2)), TYPES[1]), 1),
        (Apply("cvt", (Apply("cvt", (ROUND,), TYPES[1]),), TYPES[4]), 2),
        (Apply("selp", (ROUND, FIXED, Apply("lt", (ROUND, Const(110)), TYPES[0])), TYPES[2]), None),
        (Apply("selp", (ROUND, FIXED, Apply("gt", (ROUND, FIXED), TYPES[0])), TYPES[2]), 2),
        (Apply("mul", (ROUND, ROUND), TYPES[0]), None),
        (Apply("popc", (ROUND,), TYPES[0]), None),
        (Apply("shr", (ROUND, ROUND), TYPES[0]), None),
        (Apply("lop3", (ROUND, FIXED, FIXED, Const(0xF0)), TYPES[2]), None),
        (Apply("cvt.f32", (ROUND,), DataType("f", 32)), None),
    ],
)
def test_the_drift_of_a_number(expr: Expr, moves: int | None) -> None:
    """A counter that goes up by two in each period, from 101 on, and another number, 100."""
    drift = Drifts().assigned(expr, 64, Numbers(101, 2, 14, 100))
    assert drift == (None if moves is None else Drift(Fraction(0), moves))


@given(st.sampled_from(COMPARISONS), st.sampled_from(TYPES[1:3]), SMALL, SMALL, st.integers(-9, 9), st.integers(-9, 9))
@examples(250)
def test_comparisons_that_say_the_same(
    how: str, type: DataType, start: int, bound: int, by: int, growth: int
) -> None:  # fmt: skip
    """A number of a loop against a multiple of the parameter: in all rounds, for all larger values."""
    other = Apply("mul", (PARAMETER, Const(growth)), TYPES[0])
    drifts, numbers, expr = Drifts(), Numbers(start, by, bound, 0), Apply(how, (ROUND, other), type)
    drift, function = drifts.assigned(expr, 1, numbers), in_register(expr, 1)
    first = evaluated(function, numbers.values(0, 0))
    assume(drift is not None)
    assert drift == STILL
    rate = drifts.rate or Fraction(1)
    for more in range(min(6, drifts.periods()) + 1):
        for made in range(more + 1 if (rate * more).denominator == 1 else 0):
            assert evaluated(function, numbers.values(made, int(rate * more))) == first


COMPARED = st.builds(
    lambda how, number, bound: Apply(how, (number, Const(bound)), TYPES[0]),
    st.sampled_from(COMPARISONS),
    st.sampled_from([ROUND, FIXED]),
    st.integers(0, 20),
)
JOINED = st.recursive(
    COMPARED,
    lambda parts: st.builds(
        lambda op, first, second: Apply(op, (first, second), PREDICATE),
        st.sampled_from(["and", "or", "xor"]),
        parts,
        parts,
    ),
    max_leaves=4,
)


@given(JOINED, st.integers(0, 20), st.sampled_from([-1, 1, 4]), st.integers(0, 20))
@examples(200)
def test_conditions_that_are_joined_say_the_same(expr: Expr, start: int, by: int, fixed: int) -> None:
    """A condition that decides alone, and one that needs the others."""
    drifts, numbers, function = Drifts(), Numbers(start, by, 0, fixed), in_register(expr, 1)
    number = drifts.number(expr, numbers)
    first = evaluated(function, numbers.values(0, 0))
    assert number.value in (None, first)
    if number.drift == STILL:
        for made in range(min(6, drifts.periods()) + 1):
            assert evaluated(function, numbers.values(made, 0)) == first
