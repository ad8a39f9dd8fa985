"""Circuits over bits compute what `program.arith` computes on integers."""

from __future__ import annotations

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.events import bits, values
from memmodel.program import arith
from memmodel.ptx.vocabulary import DataType

TYPES = st.sampled_from([DataType("u", 8), DataType("s", 8), DataType("u", 32), DataType("s", 32), DataType("u", 64)])
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.integers(-5, 5)


def is_true(formula: int) -> bool:
    assert formula in (TRUE, FALSE)
    return formula == TRUE


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "op",
    [
        "add",
        "sub",
        "mul",
        "mul.wide",
        "mul.hi",
        "inc",
        "dec",
        "and",
        "or",
        "xor",
        "min",
        "max",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ],
)
@examples(60)
@given(left=NUMBERS, right=NUMBERS, type=TYPES)
def test_two_operands(op: str, left: int, right: int, type: DataType) -> None:
    found = bits.apply(Logic(), op, [bits.of_number(left), bits.of_number(right)], type)
    assert found is not None
    assert bits.number(found, is_true) == arith.apply(op, (left, right), type)


@pytest.mark.parametrize("op", ["not", "neg", "abs", "cvt", "cnot"])
@examples(60)
@given(operand=NUMBERS, type=TYPES)
def test_one_operand(op: str, operand: int, type: DataType) -> None:
    found = bits.apply(Logic(), op, [bits.of_number(operand)], type)
    assert found is not None
    assert bits.number(found, is_true) == arith.apply(op, (operand,), type)


@pytest.mark.parametrize("op", ["shl", "shr"])
@examples(60)
@given(operand=NUMBERS, amount=st.integers(0, 70) | st.integers(0, 2**32 - 1), type=TYPES)
def test_shifts_by_a_number(op: str, operand: int, amount: int, type: DataType) -> None:
    found = bits.shift(op, bits.of_number(operand), amount, type)
    assert bits.number(found, is_true) == arith.apply(op, (operand, amount), type)


@examples(60)
@given(left=NUMBERS, right=NUMBERS, when=st.integers(0, 2), type=TYPES)
def test_selp(left: int, right: int, when: int, type: DataType) -> None:
    found = bits.apply(Logic(), "selp", [bits.of_number(n) for n in (left, right, when)], type)
    assert found is not None
    assert bits.number(found, is_true) == arith.apply("selp", (left, right, when), type)


@given(left=NUMBERS, right=NUMBERS)
def test_comparisons_of_whole_values(left: int, right: int) -> None:
    logic = Logic()
    a, b = bits.of_number(left), bits.of_number(right)
    assert is_true(bits.equal(logic, a, b)) == (left == right)
    assert is_true(bits.less(logic, a, b)) == (left < right)


def test_a_value_given_by_cases_has_their_bits() -> None:
    logic = Logic()
    one, other = logic.var("one"), logic.var("other")
    found = bits.of_cases(logic, {5: one, -3: other})
    assert bits.number(found, lambda formula: formula in (one, TRUE) or formula == logic.either(one, other)) == 5
    assert bits.number(found, lambda formula: formula in (other, TRUE) or formula == logic.either(one, other)) == -3


def test_an_operation_without_a_circuit_is_refused() -> None:
    assert bits.apply(Logic(), "div", [bits.of_number(6), bits.of_number(2)], DataType("u", 32)) is None


def test_what_has_no_circuit_is_tried_where_the_numbers_are_not_very_many() -> None:
    """30 numbers are a wide value; the remainders of a division by 4 are four, and fit together with it."""
    logic = Logic()
    found = {number: logic.var(str(number)) for number in range(30)}
    wide = values.few(logic, found, {})
    assert wide.bits is not None
    four = values.apply(logic, "rem", [values.Value(wide), values.constant(4)], DataType("u", 32)).cases()
    assert set(four.numbers) == {0, 1, 2, 3}
    for number, formula in found.items():
        true = {formula}
        assert four.number(lambda one, true=true: logic.value(one, {}, lambda node: node in true)) == number % 4
