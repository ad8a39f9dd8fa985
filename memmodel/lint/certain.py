"""What is undefined whenever it is executed, as far as constants tell: bad addresses, wgmma registers.

In: LoweredTest. Out: Advice. Registers that hold the same number on every path to a step are known there (constant
propagation); what is undefined with these numbers is what `exists undefined` finds too, where the step is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memmodel.lint.advice import Advice, first_of_each, regions_of
from memmodel.memory.bytes import BadFootprint
from memmodel.memory.cells import Starts
from memmodel.program.arith import apply
from memmodel.program.expressions import AddressOf, Const, Expr, Get
from memmodel.program.lowered import LoweredTest, Program, Step
from memmodel.program.ops import Assign, Jump, UndefinedIf
from memmodel.program.regions import Region, region_exprs
from memmodel.program.resolve import resolve
from memmodel.program.uses import assigned
from memmodel.ptx.vocabulary import Place

Known = Mapping[str, int | None]
"""Registers with one value on every path; None: it varies. Registers that are missing were never assigned."""


def certainly_undefined(lowered: LoweredTest) -> Iterator[Advice]:
    """The first such thing of each instruction."""
    return first_of_each(_all_undefined(lowered))


def _all_undefined(lowered: LoweredTest) -> Iterator[Advice]:
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        for number, known in sorted(_states(lowered, program, thread.place).items()):
            if number < len(program.steps):
                advice = _undefined(lowered, program.steps[number], thread.place, known)
                if advice is not None:
                    yield advice


def _undefined(lowered: LoweredTest, step: Step, place: Place, known: Known) -> Advice | None:
    op = step.op
    if isinstance(op, UndefinedIf):
        return Advice(step, f"undefined: {op.rule}") if _value(lowered, op.when, place, known) else None
    for region in regions_of(op):
        bad = _bad(lowered, region, place, known)
        if bad is not None:
            return Advice(step, f"{bad.text}: the thread stops here")
    return None


def _bad(lowered: LoweredTest, region: Region, place: Place, known: Known) -> BadFootprint | None:
    numbers = [_value(lowered, expr, place, known) for expr in region_exprs(region)]
    if None in numbers:
        return None
    footprint = resolve(region, [n for n in numbers if n is not None], lowered.space, place, Starts())
    return footprint if isinstance(footprint, BadFootprint) else None


def _value(lowered: LoweredTest, expr: Expr, place: Place, known: Known) -> int | None:
    """The value of an expression, if it is known."""
    match expr:
        case Const(value):
            return value
        case Get(register):
            return known.get(register, None if register.startswith("$") else 0)
        case AddressOf(name, offset, cta):
            return lowered.space.address(name, offset, place, cta)
        case _:
            args = [_value(lowered, arg, place, known) for arg in expr.args]
            return None if None in args else apply(expr.op, tuple(a for a in args if a is not None), expr.type)


def _states(lowered: LoweredTest, program: Program, place: Place) -> dict[int, Known]:
    """For each step that may be reached, what is known before it."""
    before: dict[int, Known] = {0: dict(program.initial)}
    pending = [0]
    while pending:
        number = pending.pop()
        if number >= len(program.steps):
            continue
        step, known = program.steps[number], before[number]
        after = _after(lowered, step, place, known)
        for target in _following(lowered, program, number, place, known):
            joined = _join(before.get(target), after)
            if joined != before.get(target):
                before[target] = joined
                pending.append(target)
    return before


def _guarded(step: Step, known: Known) -> bool | None:
    """True if the guard of a step lets it run; None if that is not known."""
    if step.guard is None:
        return True
    value = known.get(step.guard.register, 0)
    return None if value is None else bool(value) is not step.guard.negated


def _after(lowered: LoweredTest, step: Step, place: Place, known: Known) -> Known:
    runs = _guarded(step, known)
    names = assigned(step.op)
    if runs is False or not names:
        return known
    new = dict(known)
    for name in names:
        value = _value(lowered, step.op.value, place, known) if isinstance(step.op, Assign) else None
        new[name] = value if runs or value == known.get(name, 0) else None
    return new


def _following(lowered: LoweredTest, program: Program, number: int, place: Place, known: Known) -> list[int]:
    """The steps that may be next."""
    step = program.steps[number]
    if not isinstance(step.op, Jump):
        return [number + 1]
    runs = _guarded(step, known)
    when = 1 if step.op.when is None else _value(lowered, step.op.when, place, known)
    successors = []
    if runs is not False and when != 0:
        successors.append(program.target(step.op.label))
    if runs is not True or not when:
        successors.append(number + 1)
    return successors


def _join(known: Known | None, other: Known) -> Known:
    """What is known where two paths meet: registers with one value on both."""
    if known is None:
        return dict(other)
    names = {**known, **other}
    return {name: known.get(name, 0) if known.get(name, 0) == other.get(name, 0) else None for name in names}
