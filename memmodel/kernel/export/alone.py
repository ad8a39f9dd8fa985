"""Findings about one event, or about one instruction that a thread could not execute, as a story of a few lines.

In: RunJudge, KernelFinding. Out: `FindingStory`, or raises `NotExported`. Source: PTX ISA "mbarrier", "tcgen05.alloc,
tcgen05.dealloc", "barrier.cluster".
"""

from __future__ import annotations

import re
from itertools import takewhile

from memmodel.base.labels import Action, Allocates, Allocation, Family, Issue, Label, Mark, Marker
from memmodel.kernel.export.story import (
    ALIGN,
    FindingStory,
    Lack,
    NotExported,
    StoryInstruction,
    action_of,
    add_event,
    add_instruction,
    add_phase,
    width,
)
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


def alone(judge: RunJudge, finding: KernelFinding) -> FindingStory:
    """The story of a finding about one event, or about none."""
    story = FindingStory(judge, finding)
    event = judge.graph.events.get(finding.events[0]) if finding.events else None
    if event is not None and finding.rule == "undefined-mbarrier":
        _counts(story, event)
    elif event is not None and isinstance(event.label, Allocates):
        _allocation(story, event)
    elif finding.sides and finding.rule == "undefined-cluster-barrier":
        _twice(story, finding)
    elif finding.sides and finding.rule == "undefined-tensor-memory-freed":
        at = finding.sides[0].instruction.number
        every = (event for thread in judge.run.threads for event in thread.events if event.at == at)
        _allocation(story, next(event for event in every if isinstance(event.label, Allocates) and not event.owners))
    elif finding.sides and finding.rule == "undefined-address":
        _bad_address(story, finding)
    elif finding.sides and finding.rule == "undefined-tensor-memory":
        _not_allocated(story, finding)
    else:
        raise NotExported(WHY.get(finding.rule, "it is about the run, not about what threads do to one another"))
    story.sort()
    return story


def _counts(story: FindingStory, event: TraceEvent) -> None:
    """An update that an object does not allow: it is not initialised, is initialised twice, or has no arrivals left."""
    assert event.block is not None
    place = event.block, event.first
    log = story.judge.run.objects[place]
    number = next(n for n, step in enumerate(log) if step.event is event)
    at = log[number]
    if action_of(event) is Action.INIT:
        story.one_object = True
        before = [step.event for step in log[:number] if action_of(step.event) is Action.INIT]
        for init in (*before[-1:], event):
            add_event(story, init)
        return
    add_event(story, event)
    story.signals.append(event)
    if not _live([action_of(step.event) for step in log[:number]]):
        story.lacks[(*place, at.before)] = Lack(0, 0, live=False)
        return
    add_phase(story, [step for step in log[: number + 1] if step.life == at.life], at.before)
    story.lacks[(*place, at.before)] = Lack(-1, 1)


def _live(actions: list[Action | None]) -> bool:
    """True if an object is initialised after these actions."""
    last = next((action for action in reversed(actions) if action in (Action.INIT, Action.INVAL)), None)
    return last is Action.INIT


def _allocation(story: FindingStory, event: TraceEvent) -> None:
    """Tensor memory that is never freed, or is freed and not allocated."""
    label, thread = event.label, story.of(event.thread)
    assert isinstance(label, Allocates)
    add_event(story, event)
    if label.what is Allocation.ALLOC:
        exits = (other for other in thread.events if isinstance(other.label, Mark) and other.label.what is Marker.EXIT)
        for other in exits:
            add_event(story, other)
        return
    earlier = takewhile(lambda other: other is not event, thread.events)
    for other in earlier:
        if isinstance(other.label, Allocates) and other.label.what is not Allocation.RELINQUISH:
            add_event(story, other)


def _not_allocated(story: FindingStory, finding: KernelFinding) -> None:
    """Tensor memory that is used and was not allocated. A test that allocates nothing has its tensor memory from the
    start, so another piece is allocated.
    """
    instruction = finding.sides[0].instruction
    family = FAMILIES.get(instruction.words[1])
    if "not all allocated" not in finding.message:
        raise NotExported(
            "a test does not say which lanes of tensor memory a warp uses, nor how many columns there are"
        )
    if family is None or not story.judge.run.threads:
        raise NotExported(f"{instruction.opcode} is not put into a test")
    group = 2 if "cta_group::2" in instruction.words else 1
    thread = story.judge.run.threads[0].number
    labels: tuple[Label, ...] = (Allocates(Allocation.ALLOC, group), Issue(family, group=group))
    for order, label in enumerate(labels):
        add_instruction(
            story,
            thread,
            StoryInstruction(instruction, float(order), TraceEvent(thread, order, instruction.number, label)),
        )


def _bad_address(story: FindingStory, finding: KernelFinding) -> None:
    """An access that is misaligned, or outside of all memory: at a distance from a variable."""
    instruction, message = finding.sides[0].instruction, finding.message
    words = instruction.words
    size = width(instruction) if words[0] in ("ld", "st") else _atomic(words)
    misaligned = re.search(r"(0x[0-9a-f]+) is misaligned for (\d+) bytes", message)
    if size is None or not (misaligned or "outside every object" in message or "reach beyond" in message):
        raise NotExported(WHY[finding.rule])
    space = Space.SHARED if any(word.startswith("shared") for word in words) or "shared" in message else Space.GLOBAL
    thread = story.judge.run.threads[0]
    owner = thread.place.cta_id if space is Space.SHARED else None
    whole = max(ALIGN, size)
    block = Block(Instance("x", owner, space, whole), 0, whole)
    off = int(misaligned[1], 16) % int(misaligned[2]) if misaligned else whole
    item = StoryInstruction(instruction, 0.0, None, (block, 0, size), words[0] != "ld", off)
    add_instruction(story, thread.number, item)


def _atomic(words: tuple[str, ...]) -> int | None:
    """Bytes of an atomic operation; None for other instructions, and for vectors."""
    kind = words[-1][1:]
    return int(kind) // 8 if words[0] in ("atom", "red") and "async" not in words and kind.isdigit() else None


def _twice(story: FindingStory, finding: KernelFinding) -> None:
    """A thread arrives at a barrier of its cluster, and arrives again."""
    at = finding.sides[0].instruction.number
    for thread in story.judge.run.threads:
        second = next((other for other in thread.events if other.at == at and _again(thread.events, other)), None)
        if second is not None:
            for other in thread.events:
                if other.barrier == second.barrier and other.generation == second.generation:
                    add_event(story, other)
            return


def _again(events: list[TraceEvent], event: TraceEvent) -> bool:
    """True if the thread has arrived in this generation before."""
    before = takewhile(lambda other: other is not event, events)
    return any((other.barrier, other.generation) == (event.barrier, event.generation) for other in before)
