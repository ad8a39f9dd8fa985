"""Findings about one event, or about one instruction that a thread could not carry out, as a story of a few lines.

In: RunJudge, KernelFinding. Out: `CutStory`, or raises `NotCut`. Source: PTX ISA "mbarrier", "tcgen05.alloc,
tcgen05.dealloc", "barrier.cluster".
"""

from __future__ import annotations

import re
from itertools import takewhile

from memmodel.base.labels import Action, Allocates, Allocation, Family, Issue, Label, Mark, Marker
from memmodel.kernel.export.story import ALIGN, CutStory, Deed, Lack, NotCut, action_of, add_deed, tell_phase, width
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.memory.bytes import Instance
from memmodel.ptx.vocabulary import Space

FAMILIES = {"ld": Family.TCGEN_LD, "st": Family.TCGEN_ST, "mma": Family.MMA, "cp": Family.TCGEN_CP}
WHY = {
    "barrier-divergence": "a thread of a test is a whole warp, whose lanes do not part",
    "undefined-instruction": "the operands with which the instruction is undefined are no part of a test",
    "undefined-address": "the address with which the access is bad is no part of a test",
    "undefined-register": "a register of a test is 0 at the start",
    "undefined-tensor-map": "a test has no copies through tensor maps",
    "undefined-mbarrier-state": "waits of a test name a parity",
    "trap": "it is about what the kernel found wrong itself",
    "assertion": "it is about what the kernel found wrong itself",
    "barrier-count": "a barrier of a test takes as many as it asks for",
}
"""Why a finding is about the run alone."""


def alone(made: RunJudge, finding: KernelFinding) -> CutStory:
    """The story of a finding about one event, or about none."""
    found = CutStory(made, finding)
    event = made.graph.events.get(finding.events[0]) if finding.events else None
    if event is not None and finding.rule == "undefined-mbarrier":
        _counts(found, event)
    elif event is not None and isinstance(event.label, Allocates):
        _allocation(found, event)
    elif finding.sides and finding.rule == "undefined-cluster-barrier":
        _twice(found, finding)
    elif finding.sides and finding.rule == "undefined-tensor-memory-freed":
        at = finding.sides[0].instruction.number
        every = (one for thread in made.run.threads for one in thread.events if one.at == at)
        _allocation(found, next(one for one in every if isinstance(one.label, Allocates) and not one.owners))
    elif finding.sides and finding.rule == "undefined-address":
        _bad_address(found, finding)
    elif finding.sides and finding.rule == "undefined-tensor-memory":
        _not_allocated(found, finding)
    else:
        raise NotCut(WHY.get(finding.rule, "it is about the run, not about what threads do to one another"))
    for deeds in found.threads.values():
        deeds.sort(key=lambda one: one.order)
    return found


def _counts(found: CutStory, event: TraceEvent) -> None:
    """An update that an object does not allow: it is not initialised, it is already, or it has no more arrivals."""
    assert event.block is not None
    place = event.block, event.first
    log = found.made.run.objects[place]
    number = next(n for n, step in enumerate(log) if step.event is event)
    at = log[number]
    if action_of(event) is Action.INIT:
        found.one_object = True
        before = [step.event for step in log[:number] if action_of(step.event) is Action.INIT]
        for one in (*before[-1:], event):
            add_deed(found, one.thread, _deed(found, one))
        return
    whole = event if event.issue is None else event.issue
    add_deed(found, whole.thread, _deed(found, whole))
    found.signals.append(event)
    if not _live([action_of(step.event) for step in log[:number]]):
        found.lacks[(*place, at.before)] = Lack(0, 0, live=False)
        return
    tell_phase(found, [step for step in log[: number + 1] if step.life == at.life], at.before)
    found.lacks[(*place, at.before)] = Lack(-1, 1)


def _live(actions: list[Action | None]) -> bool:
    """Is an object initialised after these?"""
    last = next((one for one in reversed(actions) if one in (Action.INIT, Action.INVAL)), None)
    return last is Action.INIT


def _deed(found: CutStory, event: TraceEvent) -> Deed:
    return Deed(found.made.body[event.at], float(event.order or 0), event)


def _allocation(found: CutStory, event: TraceEvent) -> None:
    """Tensor memory that is never freed, or is freed and not allocated."""
    label, thread = event.label, found.of(event.thread)
    assert isinstance(label, Allocates)
    add_deed(found, thread.number, _deed(found, event))
    if label.what is Allocation.ALLOC:
        exits = (one for one in thread.events if isinstance(one.label, Mark) and one.label.what is Marker.EXIT)
        for one in exits:
            add_deed(found, thread.number, _deed(found, one))
        return
    earlier = takewhile(lambda one: one is not event, thread.events)
    for one in earlier:
        if isinstance(one.label, Allocates) and one.label.what is not Allocation.RELINQUISH:
            add_deed(found, thread.number, _deed(found, one))


def _not_allocated(found: CutStory, finding: KernelFinding) -> None:
    """Tensor memory that is used and was not allocated. Where a test allocates nothing, it has its tensor memory from
    the start, so that a piece of its own is allocated.
    """
    instruction = finding.sides[0].instruction
    family = FAMILIES.get(instruction.words[1])
    if "not all allocated" not in finding.message:
        raise NotCut("a test does not say which lanes of tensor memory a warp uses, nor how many columns there are")
    if family is None or not found.made.run.threads:
        raise NotCut(f"{instruction.opcode} is not put into a test")
    group = 2 if "cta_group::2" in instruction.words else 1
    thread = found.made.run.threads[0].number
    labels: tuple[Label, ...] = (Allocates(Allocation.ALLOC, group), Issue(family, group=group))
    for order, label in enumerate(labels):
        add_deed(found, thread, Deed(instruction, float(order), TraceEvent(thread, order, instruction.number, label)))


def _bad_address(found: CutStory, finding: KernelFinding) -> None:
    """An access that is misaligned, or outside of all memory: to a variable, and so many bytes beside it."""
    instruction, message = finding.sides[0].instruction, finding.message
    words = instruction.words
    size = width(instruction) if words[0] in ("ld", "st") else _atomic(words)
    misaligned = re.search(r"(0x[0-9a-f]+) is misaligned for (\d+) bytes", message)
    if size is None or not (misaligned or "outside every object" in message or "reach beyond" in message):
        raise NotCut(WHY[finding.rule])
    space = Space.SHARED if any(word.startswith("shared") for word in words) or "shared" in message else Space.GLOBAL
    thread = found.made.run.threads[0]
    owner = thread.place.cta_id if space is Space.SHARED else None
    whole = max(ALIGN, size)
    block = Block(Instance("x", owner, space, whole), 0, whole)
    off = int(misaligned[1], 16) % int(misaligned[2]) if misaligned else whole
    deed = Deed(instruction, 0.0, None, (block, 0, size), words[0] != "ld", off)
    add_deed(found, thread.number, deed)


def _atomic(words: tuple[str, ...]) -> int | None:
    """Bytes of an atomic operation; None for other instructions, and for vectors."""
    kind = words[-1][1:]
    return int(kind) // 8 if words[0] in ("atom", "red") and "async" not in words and kind.isdigit() else None


def _twice(found: CutStory, finding: KernelFinding) -> None:
    """A thread arrives at a barrier of its cluster, and arrives again."""
    if "twice" not in finding.message:
        raise NotCut("a wait without an arrive does not end in a test, and is no undefined behaviour there")
    at = finding.sides[0].instruction.number
    for thread in found.made.run.threads:
        second = next((one for one in thread.events if one.at == at and _again(thread.events, one)), None)
        if second is not None:
            for one in thread.events:
                if one.barrier == second.barrier and one.generation == second.generation:
                    add_deed(found, thread.number, _deed(found, one))
            return


def _again(events: list[TraceEvent], one: TraceEvent) -> bool:
    """Has the thread arrived in this generation before?"""
    before = takewhile(lambda other: other is not one, events)
    return any((other.barrier, other.generation) == (one.barrier, one.generation) for other in before)


__all__ = ["alone"]
