"""What a finding needs of a run: its two accesses, the way between them, the fences on that way.

In: RunJudge, KernelFinding. Out: `FindingStory`, threads with `StoryInstruction`s in their order. Raises `NotExported`
for findings that do not become litmus tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from memmodel.base import labels
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
    ProxyFence,
    Side,
    Signal,
)
from memmodel.base.points import BarrierId
from memmodel.kernel.conflicts.uses import Use
from memmodel.kernel.order.graph import ends_of
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelFinding, rule_in_lines
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


class NotExported(Exception):
    """Why a finding does not become a litmus test."""


@dataclass(slots=True)
class StoryInstruction:
    """One instruction of a thread of the story, at its place in program order.

    `event`: its event in the trace; None for a weak access of the finding. `touched`: of the bytes that the finding is
    about, block, offset, size; `writes`: it writes them. `off`: the distance of a bad address from them.
    """

    instruction: PtxInstruction
    order: float
    event: TraceEvent | None = None
    touched: tuple[Block, int, int] | None = None
    writes: bool = False
    off: int = 0


class Lack(NamedTuple):
    """What a phase of an mbarrier object lacks for ever: arrivals, and bytes (-1: they came without an expect-tx).

    `live`: the object is initialised.
    """

    arrivals: int
    tx: int
    live: bool = True


class FindingStory:
    """`threads`: the threads that take part, by number, with what they do.

    The graph has representatives; the story has the two threads that touch one byte, and the others beside them.
    `one_object`: the story is about the whole life of an mbarrier object; `late`: its last arrival is for the phase
    after. `signals`: the signals that it is about, of instructions with several. `asked`: the finding of the test, if
    the rule does not name it; `flag`: the flag that a model has to raise.

    Of a hang, `phases`: the phases of events that did not happen in the run; `joined`: objects that are one object from
    this phase on; `lacks`: what a phase lacks; `absent`: how many more arrivals a generation of a barrier waits for;
    `polls`: the reads that are repeated.
    """

    def __init__(self, judge: RunJudge, finding: KernelFinding) -> None:
        self.judge, self.finding = judge, finding
        self.threads: dict[int, list[StoryInstruction]] = {}
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
        self._pair = judge.graph.pair_of.get(ends_of(*finding.events)) if len(finding.events) == 2 else None
        if self._pair is not None:
            pair = judge.graph.pairs[self._pair]
            uses = [pair.left, pair.right]
            for number in finding.events:
                use = next((use for use in uses if _fits(judge, number, use)), uses[0])
                uses.remove(use)
                self.uses[number] = use
        for number in finding.events if self._pair is None else ():
            alone = judge.graph.origins[number].use
            if alone is not None and alone.parts:
                self.uses[number] = alone
        self._actual = {_owner(judge, number): use.thread for number, use in self.uses.items()}

    def instructions(self) -> Iterator[StoryInstruction]:
        """All instructions, thread by thread."""
        for items in self.threads.values():
            yield from items

    def sort(self) -> None:
        """Put the instructions of each thread into program order."""
        for items in self.threads.values():
            items.sort(key=lambda item: item.order)

    def of(self, number: int) -> TraceThread:
        return self.judge.run.threads[number]

    def actual(self, number: int) -> int:
        """The thread of the story for a thread of the graph."""
        if number in self._actual:
            return self._actual[number]
        thread = self.of(number)
        for owner, target in self._actual.items():
            if self.of(owner).cta == thread.cta != self.of(target).cta:
                wanted = self.of(target).cta, thread.warp, thread.lane
                same = (
                    other.number for other in self.judge.run.threads if (other.cta, other.warp, other.lane) == wanted
                )
                return next(same, number)
        return number

    def event(self, event: TraceEvent) -> TraceEvent:
        """The event of the story for an event of the graph, at the same place in its thread."""
        events = self.of(self.actual(event.thread)).events
        assert event.order is not None
        if event.order >= len(events) or events[event.order].at != event.at:
            raise NotExported("the threads that stand for others do not do the same")
        return events[event.order]

    def touched(self, number: int) -> tuple[Block, int, int]:
        """The bytes of a weak access of the finding: one execution of its instruction, around the common byte."""
        use = self.uses[number]
        if self._pair is None:
            block, first = use.parts[0].block, use.first
        else:
            pair = self.judge.graph.pairs[self._pair]
            block, first = pair.block, pair.first
        if use.issue is not None:
            if block.instance.space is Space.TENSOR:
                return block, first, 4
            if isinstance(use.label, Access) and use.label.family is Family.ST_ASYNC:
                return block, first // 4 * 4, 4
            return block, first // COPIED * COPIED, COPIED
        return _element(self.judge.body[use.at], use.first, use.size, first, block)


def _fits(judge: RunJudge, number: int, use: Use) -> bool:
    origin = judge.graph.origins[number]
    if use.event is not None:
        return origin.use is None and use.at == origin.at
    other = origin.use
    return other is not None and (use.label, use.epoch, use.at, use.scalar) == (
        other.label, other.epoch, other.at, other.scalar,
    )  # fmt: skip


def about_lines(finding: KernelFinding) -> str:
    """The rule of a finding, and its lines."""
    return rule_in_lines(finding.rule, dict.fromkeys(side.instruction.line for side in finding.sides))


def story_of(judge: RunJudge, finding: KernelFinding, *, bare: bool = False) -> FindingStory:
    """The story of a finding. `bare`: the accesses alone."""
    if finding.rule == "undefined-unobserved-phase":
        return _phases(judge, finding)
    story = FindingStory(judge, finding)
    first, second = finding.events
    chain = [first, *(() if bare else finding.steps), second]
    for number in chain:
        _add_number(story, number)
    if not bare:
        for earlier, later in pairwise(chain):
            _fences(story, earlier, later)
    _ends_of_phases(story)
    meet_in_clusters(story)
    _allocations(story)
    for thread, items in story.threads.items():
        _completions(story, thread, items)
    story.sort()
    if finding.rule == "undefined-before-start":
        raise NotExported("in a test all CTAs run from the start")
    ends = {story.of(thread).cta for thread in story.threads}
    if finding.rule == "undefined-after-exit" and len(ends) == 1:
        raise NotExported("in a test what a CTA reads and writes itself may go on when it ends")
    return story


def _phases(judge: RunJudge, finding: KernelFinding) -> FindingStory:
    """The story of an arrive in a phase, with what completed the phase before."""
    late = judge.graph.events[finding.events[0]]
    log = judge.run.objects[late.block, late.first] if late.block is not None else []
    at = next(step for step in log if step.event is late)
    story = FindingStory(judge, finding)
    story.one_object = story.late = True
    add_event(story, late)
    add_phase(story, [step for step in log if step.life == at.life], at.before - 1)
    story.sort()
    return story


def action_of(event: TraceEvent) -> Action | None:
    """The action of an event on an mbarrier object; None for other events."""
    return labels.action_of(event.label)


def _owner(judge: RunJudge, number: int) -> int:
    """The thread that the graph has for an event: a representative."""
    thread = judge.graph.points[number].thread
    assert thread is not None
    return thread


def _add_number(story: FindingStory, number: int) -> None:
    """Add the instruction of an event of the graph."""
    judge = story.judge
    instruction = judge.body[judge.graph.origins[number].at]
    use = story.uses.get(number)
    if use is not None and use.event is None:
        if use.issue is not None:
            order, touched = float(use.issue.order or 0), story.touched(number)
            add_instruction(story, use.thread, StoryInstruction(instruction, order, use.issue, touched, use.writes))
        else:
            add_instruction(
                story,
                use.thread,
                StoryInstruction(instruction, use.epoch - 0.5, None, story.touched(number), use.writes),
            )
        return
    event = judge.graph.events.get(number)
    if event is None:
        raise NotExported(f"{instruction.opcode} is not put into a test")
    whole = first_half(event.issue if event.order is None and event.issue is not None else event)
    actual = story.event(whole)
    item = StoryInstruction(instruction, float(actual.order or 0), actual)
    if event.issue is whole and isinstance(event.label, Access):  # a strong access of an asynchronous instruction
        part = actual.signals[whole.signals.index(event)]
        assert part.block is not None
        item.touched, item.writes = (part.block, part.first, part.size), event.label.side is Side.WRITE
    elif event.issue is whole and isinstance(event.label, Signal) and event in whole.signals:
        story.signals.append(actual.signals[whole.signals.index(event)])
    elif isinstance(actual.label, Issue) and actual.label.family is Family.ST_ASYNC:
        item.touched, item.writes = _sent(judge.run, actual), True
    add_instruction(story, actual.thread, item)


def _sent(run: LaunchTrace, issue: TraceEvent) -> tuple[Block, int, int] | None:
    """The bytes that st.async or red.async writes."""
    parts = [(access.block, access.first, access.size) for access in issue.signals if isinstance(access.label, Access)]
    weak = ((access.block, access.first, access.size) for access in run.single if access.issue is issue)
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


def add_instruction(story: FindingStory, thread: int, item: StoryInstruction) -> None:
    """Something that a thread does, once."""
    items = story.threads.setdefault(thread, [])
    for known in items:
        if known.event is item.event and (item.event is not None or known.order == item.order):
            if item.touched is not None:  # on the way, and an end of it
                known.touched, known.writes = item.touched, item.writes
            return
        if _same_barrier(known.event, item.event):
            return
    items.append(item)


def add_event(story: FindingStory, event: TraceEvent) -> None:
    """The instruction by which a thread of the run made an event, or issued it, at its place in program order."""
    whole = event if event.issue is None else event.issue
    add_instruction(story, whole.thread, StoryInstruction(story.judge.body[whole.at], float(whole.order or 0), whole))


def first_half(event: TraceEvent) -> TraceEvent:
    """The read of an atomic operation; any other event itself."""
    return event if event.partner is None else min(event, event.partner, key=lambda half: half.order or 0)


def _same_barrier(first: TraceEvent | None, second: TraceEvent | None) -> bool:
    """True if these are the two halves of one barrier instruction."""
    if first is None or second is None or not isinstance(first.label, Barrier) or not isinstance(second.label, Barrier):
        return False
    return (first.at, first.barrier, first.generation) == (second.at, second.barrier, second.generation)


def add_phase(story: FindingStory, steps: Iterable[ObjectStep], phase: int) -> None:
    """Add what came to a phase of an object, one event of each instruction, if possible by a thread of the story."""
    came: dict[int, list[TraceEvent]] = {}
    for step in steps:
        if step.update and step.before == phase and action_of(step.event) in COUNTED:
            came.setdefault(step.event.at, []).append(step.event)
    for events in came.values():
        event = next((event for event in events if event.thread in story.threads), events[0])
        add_event(story, event)
        if event.issue is not None:
            story.signals.append(event)


def _allocations(story: FindingStory) -> None:
    """Add the allocation of what is freed in a story, before its use, by the thread that uses it."""
    known = {id(item.event) for item in story.instructions()}
    for item in list(story.instructions()):
        event = item.event
        if event is None or not isinstance(event.label, Allocates) or event.label.what is not Allocation.DEALLOC:
            continue
        uses = [(number, use.touched) for number, items in story.threads.items() for use in items]
        users = [number for number, touched in uses if touched and touched[0].instance.space is Space.TENSOR]
        for owner in event.owners if users else ():
            if id(owner) not in known:
                add_instruction(story, users[0], StoryInstruction(story.judge.body[owner.at], -1.0, owner))


def _ends_of_phases(story: FindingStory) -> None:
    """Add what completes the phases for which threads of the story wait, if nothing in the story does."""
    if story.one_object:
        return
    events = [item.event for item in story.instructions() if item.event is not None]
    updates = {id(part) for event in events for part in (event, *event.signals) if action_of(part) in COMPLETING}
    for test in [event for event in events if action_of(event) is Action.TEST and event.block is not None]:
        log = story.judge.run.objects.get((test.block, test.first), []) if test.block is not None else []
        seen = next((step for step in log if step.event is test), None)
        steps = [step for step in log if seen is not None and step.life == seen.life]
        if seen is not None and not any(
            step.before == seen.seen_by_tests - 1 and id(step.event) in updates for step in steps
        ):
            add_phase(story, steps, seen.seen_by_tests - 1)


def meet_in_clusters(story: FindingStory, *, exits: bool = False) -> None:
    """Add what threads of the story did at cluster barriers, which need every thread that has not exited: the arrivals,
    and the waits between two of them. `exits`: their exits, too.
    """
    events = (item.event for item in story.instructions() if item.event is not None)
    clusters = [event for event in events if isinstance(event.label, Barrier) and event.label.domain is Domain.CLUSTER]
    meetings = {(event.barrier, event.generation) for event in clusters}
    last = {barrier: max(turn for other, turn in meetings if other == barrier) for barrier, _ in meetings}
    for number in list(story.threads) if meetings else ():
        for event in story.of(number).events:
            label = event.label
            if isinstance(label, Barrier) and (event.barrier, event.generation) in meetings:
                needed = label.half is Half.ARRIVE or event.generation < last[event.barrier]
            else:
                needed = exits and isinstance(label, Mark) and label.what is Marker.EXIT
            if needed:
                add_event(story, event)


def _fences(story: FindingStory, earlier: int, later: int) -> None:
    """Add the fences of a thread between two of its events."""
    points = story.judge.graph.points
    if points[earlier].thread != points[later].thread:
        return
    owner = _owner(story.judge, earlier)
    low, high = points[earlier].order or 0, points[later].order
    for event in story.of(owner).events:
        number = story.judge.graph.number.get(id(event))
        if number is None or not _fence(event):
            continue
        order = points[number].order or 0
        if order > low and (high is None or order < high):
            add_event(story, story.event(event))


def _fence(event: TraceEvent) -> bool:
    label = event.label
    if isinstance(label, Mark):
        return label.what in (Marker.BEFORE, Marker.AFTER)
    if isinstance(label, ProxyFence):
        return label.proxy is not Proxy.TENSORMAP  # it orders uses of tensor maps, which no test has
    return isinstance(label, Fence)


def touched_by(item: StoryInstruction) -> list[tuple[Block, int, int]]:
    """The bytes of an instruction that the test has variables for."""
    if item.touched is not None:
        return [item.touched]
    event = item.event
    if event is not None and isinstance(event.label, Access) and event.block is not None:
        return [(event.block, event.first, event.size)]
    return []


def _completions(story: FindingStory, thread: int, items: list[StoryInstruction]) -> None:
    """Add the waits of a thread for its groups of copies."""
    issues = [item for item in items if item.event is not None and isinstance(item.event.label, Issue)]
    if not issues:
        return
    last = max(item.order for item in items)
    for event in story.of(thread).events:
        if isinstance(event.label, GroupWait) and issues[0].order < (event.order or 0) < last:
            add_event(story, event)
