"""Legal but doubtful: what a test's author should hear about before any solving.

In: LitmusTest. Out: rendered warnings. Settled here: semantics that PTX does not have but published files use, and
atomics whose scope cannot reach the threads that share their location; `hazards` adds those of the asynchronous half,
`reach` scopes that reach nobody.
"""

from __future__ import annotations

from memmodel.errors import render
from memmodel.isa.hazards import hazards
from memmodel.isa.lower import programs, target
from memmodel.isa.memory import MemoryMap
from memmodel.isa.ops import AddressOf, Read, Write
from memmodel.isa.program import Program, Step
from memmodel.isa.reach import pointless_scopes
from memmodel.litmus.syntax import LitmusTest, Thread
from memmodel.ptx import Scope, Space


def legality_warnings(test: LitmusTest) -> list[str]:
    """Every warning about the test. Raises InputError as `programs` does."""
    found = []
    memory = MemoryMap(test)
    lowered = programs(test)
    sharers = _sharers(test, lowered, memory)
    for thread, program in zip(test.threads, lowered, strict=True):
        told: set[int] = set()
        for step in program.steps:
            if step.index not in told and (warning := _about(step, thread, memory, sharers)):
                told.add(step.index)
                instruction = step.instruction
                found.append(render("warning", warning[0], instruction.mnemonic_span or instruction.span, warning[1]))
    for step, message, hint in (*hazards(test, lowered), *pointless_scopes(test, lowered)):
        instruction = step.instruction
        found.append(render("warning", message, instruction.mnemonic_span or instruction.span, hint))
    if target(test) is None:
        where = test.threads[0].span
        found.append(render("warning", "no target architecture has every instruction of the test", where, None))
    return found


def _sharers(test: LitmusTest, lowered: tuple[Program, ...], memory: MemoryMap) -> dict[str, set[tuple[object, ...]]]:
    """For every variable, the CTAs whose threads access it by name."""
    ctas: dict[str, set[tuple[object, ...]]] = {}
    for thread, program in zip(test.threads, lowered, strict=True):
        for step in program.steps:
            if (name := _location(step, memory)) is not None:
                ctas.setdefault(name, set()).add(thread.place.cta_id)
    return ctas


def _location(step: Step, memory: MemoryMap) -> str | None:
    if isinstance(step.op, Read | Write) and isinstance(step.op.address, AddressOf):
        return memory.root(step.op.address.name).name
    return None


def _about(
    step: Step, thread: Thread, memory: MemoryMap, sharers: dict[str, set[tuple[object, ...]]]
) -> tuple[str, str] | None:
    op = step.op
    if not isinstance(op, Read | Write):
        return None
    tags, parts = op.event.tags, step.instruction.parts
    if "RED" in tags:
        for word in ("acq_rel", "acquire"):
            if word in parts:
                return (
                    f"PTX has no red.{word}: a red heads no acquire pattern",
                    "write red.release or red.relaxed, or atom",
                )
    name = _location(step, memory)
    if name is not None and "RMW" in tags and op.event.scope is Scope.CTA:
        shared = memory.root(name).space is Space.SHARED
        if not shared and len(sharers[name]) > 1:
            message = f"an atomic of .cta scope on '{name}', which threads of {len(sharers[name])} CTAs access"
            return message, "it is atomic within the CTA only; write .gpu"
    return None
