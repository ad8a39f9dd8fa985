"""Legal but doubtful: what a test's author should hear about before any solving.

In: LoweredTest. Out: warnings. Settled here: semantics that PTX does not have but published files use, and atomics
whose scope cannot reach the threads that share their location. `certain` adds what is undefined for sure, `hazards`
what is doubtful about asynchronous instructions, `reach` scopes that reach no other thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.base.labels import Family
from memmodel.errors import render
from memmodel.isa.lower import target
from memmodel.lint.advice import Advice, first_of_each, named, users_of
from memmodel.lint.certain import certainly_undefined
from memmodel.lint.hazards import hazards
from memmodel.lint.misfits import misfits
from memmodel.lint.reach import pointless_scopes
from memmodel.program.lowered import LoweredTest, Step
from memmodel.program.ops import Read, Write
from memmodel.ptx.vocabulary import Scope, Space
from memmodel.source import Span


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning at its place."""

    message: str
    span: Span
    hint: str | None


def legality_warnings(lowered: LoweredTest) -> list[str]:
    """Every warning about the test, rendered."""
    return [render("warning", warning.message, warning.span, warning.hint) for warning in doubts(lowered)]


def doubts(lowered: LoweredTest) -> list[Warned]:
    """Every warning about the test."""
    advice = (
        *first_of_each(_accesses(lowered)),
        *certainly_undefined(lowered),
        *hazards(lowered),
        *pointless_scopes(lowered),
    )
    warned = [
        Warned(remark.message, remark.step.instruction.mnemonic_span or remark.step.instruction.span, remark.hint)
        for remark in advice
    ]
    for misfit in misfits(lowered):
        message = f"`{misfit.what}` is never {misfit.number}: it is a .{misfit.type}"
        warned.append(Warned(message, misfit.span, f"in a .{misfit.type} these bits are {misfit.right_count}"))
    if target(lowered.test) is None:
        where = lowered.test.threads[0].span
        warned.append(Warned("no target architecture has every instruction of the test", where, None))
    return warned


def _accesses(lowered: LoweredTest) -> Iterator[Advice]:
    """The first doubt about each access."""
    return first_of_each(_doubtful_accesses(lowered))


def _doubtful_accesses(lowered: LoweredTest) -> Iterator[Advice]:
    sharers = {name: {thread.place.cta_id for thread in threads} for name, threads in users_of(lowered).items()}
    for program in lowered.programs:
        for step in program.steps:
            message_and_hint = _about(step, lowered, sharers)
            if message_and_hint is not None:
                yield Advice(step, *message_and_hint)


def _about(step: Step, lowered: LoweredTest, sharers: dict[str, set[tuple[object, ...]]]) -> tuple[str, str] | None:
    """What is doubtful about an access, and how to repair it. `sharers`: the CTAs that access each variable by name."""
    op = step.op
    if not isinstance(op, Read | Write):
        return None
    if op.label.family is Family.RED:
        for word in ("acq_rel", "acquire"):
            if word in step.instruction.parts:
                message = f"PTX has no red.{word}: a red heads no acquire pattern"
                return message, "write red.release or red.relaxed, or atom"
    variable = named(op.region, lowered.space)
    if variable is None or variable.space is Space.SHARED:
        return None
    count = len(sharers[variable.name])
    if op.label.rmw and op.label.scope is Scope.CTA and count > 1:
        message = f"an atomic of .cta scope on '{variable.name}', which threads of {count} CTAs access"
        return message, "it is atomic within the CTA only; write .gpu"
    return None
