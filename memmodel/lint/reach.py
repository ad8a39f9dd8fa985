"""Scopes that placement makes pointless: they reach no other thread, or no farther than a smaller one.

In: LoweredTest. Out: Advice. Settled here: who communicates with whom follows from the variables that instructions
name; what an address in a register points to is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import is_restricted, scope_of
from memmodel.lint.advice import Advice, first_of_each, named, users_of
from memmodel.litmus.syntax import LitmusTest, Thread
from memmodel.program.expressions import AddressOf
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Emit, OnObject, Op, Read, Write
from memmodel.ptx.vocabulary import Scope


def pointless_scopes(lowered: LoweredTest) -> Iterator[Advice]:
    """Accesses and fences whose scope reaches no thread to synchronize with; the first scope that is too wide."""
    if len(lowered.test.threads) > 1:
        yield from first_of_each(_reaching_nobody(lowered))
        yield from _too_wide(lowered)


def _reaching_nobody(lowered: LoweredTest) -> Iterator[Advice]:
    users = users_of(lowered)
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        for step in program.steps:
            message_and_hint = _reaches_nobody(step.op, thread, lowered, users)
            if message_and_hint is not None:
                yield Advice(step, *message_and_hint)


def _scope(op: Op) -> Scope | None:
    return scope_of(op.label) if isinstance(op, Read | Write | Emit | OnObject) else None


def _reaches_nobody(
    op: Op, thread: Thread, lowered: LoweredTest, users: dict[str, list[Thread]]
) -> tuple[str, str] | None:
    scope = _scope(op)
    if scope is None:
        return None
    if isinstance(op, OnObject):
        address = op.region.address
        away = isinstance(address, AddressOf) and address.cta not in (None, thread.place.cta)
        if away and scope is Scope.CTA:
            message = "an operation of .cta scope on another CTA's mbarrier counts but synchronizes nothing"
            return message, "write .cluster"
        return None
    if isinstance(op, Emit):
        others = [other.place for other in lowered.test.threads if other is not thread]
        whom = "no other thread of the test"
    else:
        assert isinstance(op, Read | Write)
        variable = named(op.region, lowered.space)
        if op.label.rmw or variable is None:
            return None
        others = [other.place for other in users[variable.name] if other is not thread]
        whom = f"no other thread that accesses '{variable.name}'"
    if not others or any(thread.place.shares(scope, place) for place in others):
        return None
    least = min(wider for wider in Scope if any(thread.place.shares(wider, place) for place in others))
    return f"{whom} is in reach of .{scope.name.lower()}", f"write .{least.name.lower()}"


def _too_wide(lowered: LoweredTest) -> Iterator[Advice]:
    """One warning for the test: the first scope that is wider than the place where all its threads are."""
    least = _common(lowered.test)
    for program in lowered.programs:
        for step in program.steps:
            scope = _scope(step.op)
            if scope is None or scope <= least:
                continue
            wide = scope.name.lower()
            # Fences that are restricted to some memory have one scope, whatever the placement.
            if wide in step.instruction.parts and not (isinstance(step.op, Emit) and is_restricted(step.op.label)):
                within = {Scope.CTA: "CTA", Scope.CLUSTER: "cluster", Scope.GPU: "GPU"}[least]
                narrow = least.name.lower()
                message = f"all threads of the test are in one {within}: .{wide} reaches no farther than .{narrow}"
                yield Advice(step, message, "place the threads as in the kernel, or take the smaller scope")
                return


def _common(test: LitmusTest) -> Scope:
    """The smallest scope that includes all threads."""
    places = [thread.place for thread in test.threads]
    return next(scope for scope in Scope if all(places[0].shares(scope, place) for place in places))
