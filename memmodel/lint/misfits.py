"""Comparisons that no value can satisfy: with a number that the type of the other side does not have.

In: LoweredTest. Out: each misfit with its place. Settled here: which numbers a register may have, as far as the types
of what assigns it say. `-1` in a .u32 is 4294967295, and a condition that asks for -1 there is never true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.litmus.syntax import LocValue, Number, RegValue, Term, comparisons_of
from memmodel.program.arith import COMPARISONS
from memmodel.program.expressions import Apply, Const
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Assign, Read
from memmodel.program.uses import assigned
from memmodel.ptx.vocabulary import DataType
from memmodel.source import Span


@dataclass(frozen=True, slots=True)
class Misfit:
    """`number` is not among the values that `what` may have; in their type it is `right_count`."""

    what: str
    number: int
    type: DataType
    right_count: int
    span: Span


def misfits(lowered: LoweredTest) -> Iterator[Misfit]:
    """The comparisons for equality that are never true."""
    for question in lowered.test.questions():
        for comparison in comparisons_of(question.condition):
            for term, number in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
                if isinstance(number, Number) and comparison.op in ("==", "!="):
                    yield from _misfit(lowered, term, number)


def _misfit(lowered: LoweredTest, term: Term, number: Number) -> Iterator[Misfit]:
    types: tuple[DataType, ...] | None = None
    if isinstance(term, LocValue):
        types = (lowered.space.term(term)[1],)
    elif isinstance(term, RegValue):
        types = _types(lowered, term, number.value)
    if types and all(type.wrap(number.value) != number.value for type in types):
        yield Misfit(term.span.text, number.value, types[0], types[0].wrap(number.value), term.span)


def _types(lowered: LoweredTest, term: RegValue, number: int) -> tuple[DataType, ...] | None:
    """The types of the values that a register may have at the end; None if one of them may be any, or is the number."""
    thread = next(k for k, candidate in enumerate(lowered.test.threads) if candidate.name == term.thread)
    program, data_types = lowered.programs[thread], []
    if program.initial.get(term.register, 0) == number:
        return None
    for op in (step.op for step in program.steps):
        if term.register not in assigned(op):
            continue
        type: DataType | None = None
        if isinstance(op, Read):
            type = op.type
        elif isinstance(op, Assign) and isinstance(op.value, Apply) and op.value.op not in COMPARISONS:
            type = op.value.type
        elif isinstance(op, Assign) and isinstance(op.value, Const) and op.value.value != number:
            continue
        if type is None:
            return None
        data_types.append(type)
    return tuple(data_types)
