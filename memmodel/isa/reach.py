"""Scopes that placement makes pointless: they reach nobody, or no farther than a smaller one.

In: LitmusTest and its programs. Out: (step, message, hint) for each. Settled here: who communicates with whom is told
by the variables that instructions name; what an address in a register points to is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.isa.memory import MemoryMap
from memmodel.isa.ops import AddressOf, Fence, Mbarrier, Op, Read, Write
from memmodel.isa.program import Program, Step
from memmodel.litmus.syntax import LitmusTest, Thread
from memmodel.ptx import Scope

Warned = tuple[Step, str, str]


def pointless_scopes(test: LitmusTest, programs: tuple[Program, ...]) -> Iterator[Warned]:
    """Accesses and fences whose scope includes nobody they could synchronize with; the first scope that is too wide."""
    if len(test.threads) < 2:
        return
    memory = MemoryMap(test)
    users = _users(test, programs, memory)
    for thread, program in zip(test.threads, programs, strict=True):
        told: set[int] = set()
        for step in program.steps:
            if step.index not in told and (found := _reaches_nobody(step.op, thread, test, memory, users)):
                told.add(step.index)
                yield step, *found
    yield from _too_wide(test, programs)


def _users(test: LitmusTest, programs: tuple[Program, ...], memory: MemoryMap) -> dict[str, list[Thread]]:
    """For every variable, the threads that access it by name."""
    users: dict[str, list[Thread]] = {}
    for thread, program in zip(test.threads, programs, strict=True):
        for step in program.steps:
            if isinstance(step.op, Read | Write) and isinstance(step.op.address, AddressOf):
                users.setdefault(memory.root(step.op.address.name).name, []).append(thread)
    return users


def _reaches_nobody(
    op: Op, thread: Thread, test: LitmusTest, memory: MemoryMap, users: dict[str, list[Thread]]
) -> tuple[str, str] | None:
    if not isinstance(op, Read | Write | Fence | Mbarrier) or op.event.scope is None:
        return None
    event, scope = op.event, op.event.scope
    if isinstance(op, Mbarrier):
        away = isinstance(op.address, AddressOf) and op.address.cta not in (None, thread.place.cta)
        if away and scope is Scope.CTA:
            return (
                "an operation of .cta scope on another CTA's mbarrier counts but synchronizes nothing",
                "write .cluster",
            )
        return None
    if isinstance(op, Fence):
        others = [other.place for other in test.threads if other is not thread]
        whom = "no other thread of the test"
    else:
        if "RMW" in event.tags or not isinstance(op.address, AddressOf):
            return None
        name = memory.root(op.address.name).name
        others = [other.place for other in users[name] if other is not thread]
        whom = f"no other thread that accesses '{name}'"
    if not others or any(thread.place.shares(scope, place) for place in others):
        return None
    least = min(wider for wider in Scope if any(thread.place.shares(wider, place) for place in others))
    return f"{whom} is in reach of .{scope.name.lower()}", f"write .{least.name.lower()}"


def _too_wide(test: LitmusTest, programs: tuple[Program, ...]) -> Iterator[Warned]:
    """One warning for the test: the first scope that is wider than the place where all its threads are."""
    places = [thread.place for thread in test.threads]
    least = next(scope for scope in Scope if all(places[0].shares(scope, place) for place in places))
    for program in programs:
        for step in program.steps:
            scope = step.op.event.scope if isinstance(step.op, Read | Write | Fence | Mbarrier) else None
            if scope is None or scope <= least:
                continue
            wide = scope.name.lower()
            one_scope_only = isinstance(step.op, Fence) and "RESTRICTED" in step.op.event.tags
            if wide in step.instruction.parts and not one_scope_only:
                within = {Scope.CTA: "CTA", Scope.CLUSTER: "cluster", Scope.GPU: "GPU"}[least]
                near = least.name.lower()
                message = f"all threads of the test are in one {within}: .{wide} reaches no farther than .{near}"
                yield step, message, "place the threads as in the kernel, or take the smaller scope"
                return
