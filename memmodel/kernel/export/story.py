"""What of a run a finding needs: its two accesses, the way between them, the fences that stand on it.

In: RunJudge, KernelFinding. Out: `CutStory`, threads with `Deed`s in their order. Raises `NotCut` for what no litmus
test is made of here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Barrier,
    Domain,
    Family,
    Fence,
    GroupWait,
    Half,
    Issue,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Side,
    Signal,
)
from memmodel.base.points import BarrierId
from memmodel.kernel.order.graph import ends_of
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.uses import Use
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy, Space

ALIGN = COPIED = 16
"""Bytes that a variable is aligned to, and that an asynchronous instruction of a test touches."""
OF_LIVES = ("undefined-mbarrier-inval", "undefined-before-init")
COMPLETING = (Action.ARRIVE, Action.COMPLETE_TX)
COUNTED = (*COMPLETING, Action.EXPECT_TX)


class NotCut(Exception):
    """Why no litmus test is made of a finding."""


@dataclass(slots=True)
class Deed:
    """One instruction of a thread of the story, at its place in program order.

    `event`: what it left in the trace; None for a weak access of the finding. `touched`: of what the finding is about,
    block, offset, bytes; `writes`: does it write them? `off`: so many bytes beside them, where an address is bad.
    """

    instruction: PtxInstruction
    order: float
    event: TraceEvent | None = None
    touched: tuple[Block, int, int] | None = None
    writes: bool = False
    off: int = 0


class Lack(NamedTuple):
    """What a phase of an mbarrier object lacks for ever: arrivals, and bytes (-1: they came and nobody announced them).

    `live`: the object is initialised.
    """

    arrivals: int
    tx: int
    live: bool = True


class CutStory:
    """`threads`: those that take part, by number, with what they do.

    The graph has representatives; the story has the two threads that touch one byte, and the others beside them.
    `one_object`: it is about the whole life of an mbarrier object; `late`: its last arrival is for the phase after.
    `signals`: those of instructions with several that it is about. `asked`: the finding of the test, if its rule does
    not say so; `flag`: the one that a model has to raise. Of a hang, `phases`: of events that the run did not come to
    make; `joined`: objects that are one object from this phase on; `lacks`: what a phase lacks; `absent`: how many more
    a generation of a barrier waits for; `polls`: the reads that are made again and again.
    """

    def __init__(self, made: RunJudge, finding: KernelFinding) -> None:
        self.made, self.finding = made, finding
        self.threads: dict[int, list[Deed]] = {}
        self.uses: dict[int, Use] = {}
        self.one_object = finding.rule in OF_LIVES
        self.late = False
        self.signals: list[TraceEvent] = []
        self.polls: set[int] = set()
        self.asked = ""
        self.flag = finding.rule if finding.rule.startswith("undefined") else ""
        self.phases: dict[int, int] = {}
        self.joined: dict[tuple[Block, int], int] = {}
        self.lacks: dict[tuple[Block, int, int], Lack] = {}
        self.absent: dict[tuple[BarrierId, int], int] = {}
        self._pair = made.graph.pair_of.get(ends_of(*finding.events)) if len(finding.events) == 2 else None
        if self._pair is not None:
            pair = made.graph.pairs[self._pair]
            left = [pair.one, pair.other]
            for number in finding.events:
                use = next((one for one in left if _fits(made, number, one)), left[0])
                left.remove(use)
                self.uses[number] = use
        for number in finding.events if self._pair is None else ():
            alone = made.graph.behind[number].use
            if alone is not None and alone.parts:
                self.uses[number] = alone
        self._actual = {_owner(made, number): use.thread for number, use in self.uses.items()}

    def deeds(self) -> Iterator[Deed]:
        """All that is done, thread by thread."""
        for deeds in self.threads.values():
            yield from deeds

    def of(self, number: int) -> TraceThread:
        return self.made.run.threads[number]

    def actual(self, number: int) -> int:
        """The thread of the story for a thread of the graph."""
        if number in self._actual:
            return self._actual[number]
        thread = self.of(number)
        for owner, target in self._actual.items():
            if self.of(owner).cta == thread.cta != self.of(target).cta:
                wanted = self.of(target).cta, thread.warp, thread.lane
                same = (one.number for one in self.made.run.threads if (one.cta, one.warp, one.lane) == wanted)
                return next(same, number)
        return number

    def event(self, event: TraceEvent) -> TraceEvent:
        """The event of the story for an event of the graph: it has the same place in its thread."""
        events = self.of(self.actual(event.thread)).events
        assert event.order is not None
        if event.order >= len(events) or events[event.order].at != event.at:
            raise NotCut("the threads that stand for others do not do the same")
        return events[event.order]

    def touched(self, number: int) -> tuple[Block, int, int]:
        """The bytes of a weak access of the finding: one execution of its instruction, around the common byte."""
        use = self.uses[number]
        if self._pair is None:
            block, first = use.parts[0].block, use.first
        else:
            pair = self.made.graph.pairs[self._pair]
            block, first = pair.block, pair.first
        if use.issue is not None:
            if block.instance.space is Space.TENSOR:
                return block, first, 4
            if isinstance(use.label, Access) and use.label.family is Family.ST_ASYNC:
                return block, first // 4 * 4, 4
            return block, first // COPIED * COPIED, COPIED
        return _element(self.made.body[use.at], use.first, use.size, first, block)


def _fits(made: RunJudge, number: int, use: Use) -> bool:
    behind = made.graph.behind[number]
    if use.event is not None:
        return behind.use is None and use.at == behind.at
    other = behind.use
    return other is not None and (use.label, use.epoch, use.at, use.scalar) == (
        other.label, other.epoch, other.at, other.scalar,
    )  # fmt: skip


def about_lines(finding: KernelFinding) -> str:
    """The rule of a finding, and its lines."""
    lines = list(dict.fromkeys(str(side.instruction.line) for side in finding.sides))
    return f"{finding.rule} of line{'s' if len(lines) > 1 else ''} {' and '.join(lines)}"


def story(made: RunJudge, finding: KernelFinding, *, bare: bool = False) -> CutStory:
    """The story of a finding. `bare`: the accesses alone."""
    if finding.rule == "undefined-unobserved-phase":
        return _phases(made, finding)
    found = CutStory(made, finding)
    first, second = finding.events
    chain = [first, *(() if bare else finding.steps), second]
    for number in chain:
        _tell(found, number)
    if not bare:
        for one, other in pairwise(chain):
            _fences(found, one, other)
    _ends_of_phases(found)
    meet_in_clusters(found)
    _allocations(found)
    for thread, deeds in found.threads.items():
        _completions(found, thread, deeds)
        deeds.sort(key=lambda one: one.order)
    ends = {found.of(thread).cta for thread in found.threads}
    if finding.rule == "undefined-after-exit" and len(ends) == 1:
        raise NotCut("in a test what a CTA reads and writes itself may go on when it ends")
    return found


def _phases(made: RunJudge, finding: KernelFinding) -> CutStory:
    """An arrive in a phase, and what completed the phase before."""
    late = made.graph.events[finding.events[0]]
    log = made.run.objects[late.block, late.first] if late.block is not None else []
    at = next(step for step in log if step.event is late)
    found = CutStory(made, finding)
    found.one_object = found.late = True
    whole = late if late.issue is None else late.issue
    add_deed(found, whole.thread, Deed(made.body[whole.at], float(whole.order or 0), whole))
    tell_phase(found, [step for step in log if step.life == at.life], at.before - 1)
    for deeds in found.threads.values():
        deeds.sort(key=lambda one: one.order)
    return found


def action_of(event: TraceEvent) -> Action | None:
    """What an event does to an mbarrier object."""
    label = event.label
    return label.action if isinstance(label, Mbarrier | Signal) else None


def _owner(made: RunJudge, number: int) -> int:
    """The thread that the graph has for an event: a representative."""
    thread = made.graph.points[number].thread
    assert thread is not None
    return thread


def _tell(found: CutStory, number: int) -> None:
    made = found.made
    instruction = made.body[made.graph.behind[number].at]
    use = found.uses.get(number)
    if use is not None and use.event is None:
        if use.issue is not None:
            order, touched = float(use.issue.order or 0), found.touched(number)
            add_deed(found, use.thread, Deed(instruction, order, use.issue, touched, use.writes))
        else:
            add_deed(found, use.thread, Deed(instruction, use.epoch - 0.5, None, found.touched(number), use.writes))
        return
    event = made.graph.events.get(number)
    if event is None:
        raise NotCut(f"{instruction.opcode} is not put into a test")
    whole = event.issue if event.order is None and event.issue is not None else event
    if isinstance(whole.label, Access) and whole.partner is not None:
        whole = min(whole, whole.partner, key=lambda one: one.order or 0)
    actual = found.event(whole)
    deed = Deed(instruction, float(actual.order or 0), actual)
    if event.issue is whole and isinstance(event.label, Access):  # a strong access of an asynchronous instruction
        part = actual.signals[whole.signals.index(event)]
        assert part.block is not None
        deed.touched, deed.writes = (part.block, part.first, part.size), event.label.side is Side.WRITE
    elif event.issue is whole and isinstance(event.label, Signal) and event in whole.signals:
        found.signals.append(actual.signals[whole.signals.index(event)])
    elif isinstance(actual.label, Issue) and actual.label.family is Family.ST_ASYNC:
        deed.touched, deed.writes = _sent(made.run, actual), True
    add_deed(found, actual.thread, deed)


def _sent(run: LaunchTrace, issue: TraceEvent) -> tuple[Block, int, int] | None:
    """The bytes that st.async or red.async writes."""
    parts = [(one.block, one.first, one.size) for one in issue.signals if isinstance(one.label, Access)]
    weak = ((one.block, one.first, one.size) for one in run.single if one.issue is issue)
    return next(((block, first, size) for block, first, size in (*parts, *weak) if block is not None), None)


def _element(instruction: PtxInstruction, first: int, size: int, at: int, block: Block) -> tuple[Block, int, int]:
    """The bytes that one execution of the instruction touches, around a byte."""
    unit = width(instruction)
    if unit is None or unit > size:
        unit = min(size, 16)
    return block, first + (at - first) // unit * unit, unit


def width(instruction: PtxInstruction) -> int | None:
    """Bytes of a load or store."""
    kind = instruction.words[-1]
    if instruction.words[0] not in ("ld", "st", "ldu") or not kind[1:].isdigit():
        return None
    many = next((int(word[1:]) for word in instruction.words if word in ("v2", "v4", "v8")), 1)
    return int(kind[1:]) // 8 * many


def add_deed(found: CutStory, thread: int, deed: Deed) -> None:
    """Something that a thread does, once."""
    deeds = found.threads.setdefault(thread, [])
    for known in deeds:
        if known.event is deed.event and (deed.event is not None or known.order == deed.order):
            if deed.touched is not None:  # on the way, and an end of it
                known.touched, known.writes = deed.touched, deed.writes
            return
        if _same_barrier(known.event, deed.event):
            return
    deeds.append(deed)


def _same_barrier(one: TraceEvent | None, other: TraceEvent | None) -> bool:
    """Are these the two halves of one barrier instruction?"""
    if one is None or other is None or not isinstance(one.label, Barrier) or not isinstance(other.label, Barrier):
        return False
    return (one.at, one.barrier, one.generation) == (other.at, other.barrier, other.generation)


def tell_phase(found: CutStory, steps: Iterable[ObjectStep], phase: int) -> None:
    """What came to a phase of an object, from each instruction once: from a thread that is told of, if any is."""
    came: dict[int, list[TraceEvent]] = {}
    for step in steps:
        if step.update and step.before == phase and action_of(step.event) in COUNTED:
            came.setdefault(step.event.at, []).append(step.event)
    for events in came.values():
        event = next((one for one in events if one.thread in found.threads), events[0])
        whole = event if event.issue is None else event.issue
        add_deed(found, whole.thread, Deed(found.made.body[whole.at], float(whole.order or 0), whole))
        if whole is not event:
            found.signals.append(event)


def _allocations(found: CutStory) -> None:
    """What is freed in a story is allocated in it, by the thread that uses it: before its use."""
    told = {id(one.event) for one in found.deeds()}
    for one in list(found.deeds()):
        event = one.event
        if event is None or not isinstance(event.label, Allocates) or event.label.what is not Allocation.DEALLOC:
            continue
        uses = [(number, deed) for number, deeds in found.threads.items() for deed in deeds if deed.touched is not None]
        users = [number for number, deed in uses if deed.touched and deed.touched[0].instance.space is Space.TENSOR]
        for owner in event.owners if users else ():
            if id(owner) not in told:
                add_deed(found, users[0], Deed(found.made.body[owner.at], -1.0, owner))


def _ends_of_phases(found: CutStory) -> None:
    """What completes the phases for which threads of the story wait, where nothing of that is told."""
    if found.one_object:
        return
    told = [one.event for one in found.deeds() if one.event is not None]
    updates = {id(part) for one in told for part in (one, *one.signals) if action_of(part) in COMPLETING}
    for test in [one for one in told if action_of(one) is Action.TEST and one.block is not None]:
        log = found.made.run.objects.get((test.block, test.first), []) if test.block is not None else []
        seen = next((step for step in log if step.event is test), None)
        steps = [step for step in log if seen is not None and step.life == seen.life]
        if seen is not None and not any(step.before == seen.seen - 1 and id(step.event) in updates for step in steps):
            tell_phase(found, steps, seen.seen - 1)


def meet_in_clusters(found: CutStory, *, exits: bool = False) -> None:
    """A barrier of a cluster asks for every thread that has not exited: what those of the story did there, and between
    two arrivals the wait. `exits`: their exits, too.
    """
    barriers = (one.event for one in found.deeds() if one.event is not None and isinstance(one.event.label, Barrier))
    clusters = [one for one in barriers if isinstance(one.label, Barrier) and one.label.domain is Domain.CLUSTER]
    meetings = {(one.barrier, one.generation) for one in clusters}
    last = {barrier: max(turn for other, turn in meetings if other == barrier) for barrier, _ in meetings}
    for number in list(found.threads) if meetings else ():
        for event in found.of(number).events:
            label = event.label
            if isinstance(label, Barrier) and (event.barrier, event.generation) in meetings:
                needed = label.half is Half.ARRIVE or event.generation < last[event.barrier]
            else:
                needed = exits and isinstance(label, Mark) and label.what is Marker.EXIT
            if needed:
                add_deed(found, number, Deed(found.made.body[event.at], float(event.order or 0), event))


def _fences(found: CutStory, one: int, other: int) -> None:
    """Fences of a thread between two events of it."""
    points = found.made.graph.points
    if points[one].thread != points[other].thread:
        return
    owner = _owner(found.made, one)
    low, high = points[one].order or 0, points[other].order
    for event in found.of(owner).events:
        number = found.made.graph.number.get(id(event))
        if number is None or not _fence(event):
            continue
        order = points[number].order or 0
        if order > low and (high is None or order < high):
            actual = found.event(event)
            add_deed(found, actual.thread, Deed(found.made.body[event.at], float(actual.order or 0), actual))


def _fence(event: TraceEvent) -> bool:
    label = event.label
    if isinstance(label, Mark):
        return label.what in (Marker.BEFORE, Marker.AFTER)
    if isinstance(label, ProxyFence):
        return label.proxy is not Proxy.TENSORMAP  # it orders uses of tensor maps, which no test has
    return isinstance(label, Fence)


def touched_by(one: Deed) -> list[tuple[Block, int, int]]:
    """The bytes of a deed that the test has variables for."""
    if one.touched is not None:
        return [one.touched]
    event = one.event
    if event is not None and isinstance(event.label, Access) and event.block is not None:
        return [(event.block, event.first, event.size)]
    return []


def _completions(found: CutStory, thread: int, deeds: list[Deed]) -> None:
    """For copies in groups: the commit and the waits of the thread after them."""
    issues = [one for one in deeds if one.event is not None and isinstance(one.event.label, Issue)]
    if not issues:
        return
    last = max(one.order for one in deeds)
    for event in found.of(thread).events:
        if isinstance(event.label, GroupWait) and issues[0].order < (event.order or 0) < last:
            add_deed(found, thread, Deed(found.made.body[event.at], float(event.order or 0), event))


__all__ = ["ALIGN", "COPIED", "CutStory", "Deed", "Lack", "NotCut", "story", "touched_by", "width"]
