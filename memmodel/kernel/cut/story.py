"""What of a run a finding needs: its two accesses, the way between them, the fences that stand on it.

In: RunJudge, KernelFinding. Out: `CutStory`, threads with `Deed`s in their order. Raises `NotCut` for what no litmus
test is made of here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from memmodel.base.labels import Access, Barrier, Fence, GroupWait, Issue, ProxyFence
from memmodel.kernel.judge.events import TraceEvent, TraceThread
from memmodel.kernel.judge.judging import RunJudge
from memmodel.kernel.judge.uses import Use
from memmodel.kernel.judge.verdict import KernelFinding
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.syntax import PtxInstruction


class NotCut(Exception):
    """Why no litmus test is made of a finding."""


@dataclass(slots=True)
class Deed:
    """One instruction of a thread of the story, at its place in program order.

    `event`: what it left in the trace; None for a weak access of the finding. `touched`: block, offset, bytes.
    """

    instruction: PtxInstruction
    order: float
    event: TraceEvent | None = None
    touched: tuple[Block, int, int] | None = None


class CutStory:
    """`threads`: those that take part, by number, with what they do.

    The graph has representatives; the story has the two threads that touch one byte, and the others beside them.
    """

    def __init__(self, made: RunJudge, finding: KernelFinding) -> None:
        self.made, self.finding = made, finding
        self.threads: dict[int, list[Deed]] = {}
        self.uses: dict[int, Use] = {}
        self._pair = made.graph.pair_of.get(frozenset(finding.events))
        if self._pair is not None:
            pair = made.graph.pairs[self._pair]
            left = [pair.one, pair.other]
            for number in finding.events:
                use = next((one for one in left if _fits(made, number, one)), left[0])
                left.remove(use)
                self.uses[number] = use
        self._actual = {_owner(made, number): use.thread for number, use in self.uses.items()}

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
        assert self._pair is not None
        pair, use = self.made.graph.pairs[self._pair], self.uses[number]
        return _element(self.made.body[use.at], use.first, use.size, pair.first, pair.block)


def _fits(made: RunJudge, number: int, use: Use) -> bool:
    behind = made.graph.behind[number]
    if use.event is not None:
        return behind.use is None and use.at == behind.at
    other = behind.use
    return other is not None and (use.label, use.epoch, use.at, use.scalar) == (
        other.label, other.epoch, other.at, other.scalar,
    )  # fmt: skip


def story(made: RunJudge, finding: KernelFinding, *, bare: bool = False) -> CutStory:
    """The story of a finding. `bare`: the accesses alone."""
    if len(finding.events) != 2:
        raise NotCut("it is about one event")
    found = CutStory(made, finding)
    first, second = finding.events
    chain = [first, *(() if bare else finding.steps), second]
    for number in chain:
        _tell(found, number)
    if not bare:
        for one, other in pairwise(chain):
            _fences(found, one, other)
    for thread, deeds in found.threads.items():
        _completions(found, thread, deeds)
        deeds.sort(key=lambda one: one.order)
    return found


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
            _add(found, use.thread, Deed(instruction, float(use.issue.order or 0), use.issue))
        else:
            _add(found, use.thread, Deed(instruction, use.epoch - 0.5, None, found.touched(number)))
        return
    event = made.graph.events.get(number)
    if event is None:
        raise NotCut(f"{instruction.opcode} is not put into a test")
    whole = event.issue if event.order is None and event.issue is not None else event
    if isinstance(whole.label, Access) and whole.partner is not None:
        whole = min(whole, whole.partner, key=lambda one: one.order or 0)
    actual = found.event(whole)
    _add(found, actual.thread, Deed(instruction, float(actual.order or 0), actual))


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


def _add(found: CutStory, thread: int, deed: Deed) -> None:
    deeds = found.threads.setdefault(thread, [])
    for known in deeds:
        if known.event is deed.event and (deed.event is not None or known.order == deed.order):
            return
        if _same_barrier(known.event, deed.event):
            return
    deeds.append(deed)


def _same_barrier(one: TraceEvent | None, other: TraceEvent | None) -> bool:
    """Are these the two halves of one barrier instruction?"""
    if one is None or other is None or not isinstance(one.label, Barrier) or not isinstance(other.label, Barrier):
        return False
    return (one.at, one.barrier, one.generation) == (other.at, other.barrier, other.generation)


def _fences(found: CutStory, one: int, other: int) -> None:
    """Fences of a thread between two events of it."""
    points = found.made.graph.points
    if points[one].thread != points[other].thread:
        return
    owner = _owner(found.made, one)
    low, high = points[one].order or 0, points[other].order
    for event in found.of(owner).events:
        number = found.made.graph.number.get(id(event))
        if number is None or not isinstance(event.label, Fence | ProxyFence):
            continue
        order = points[number].order or 0
        if order > low and (high is None or order < high):
            actual = found.event(event)
            _add(found, actual.thread, Deed(found.made.body[event.at], float(actual.order or 0), actual))


def _completions(found: CutStory, thread: int, deeds: list[Deed]) -> None:
    """For copies in groups: the commit and the waits of the thread after them."""
    issues = [one for one in deeds if one.event is not None and isinstance(one.event.label, Issue)]
    if not issues:
        return
    last = max(one.order for one in deeds)
    for event in found.of(thread).events:
        if isinstance(event.label, GroupWait) and issues[0].order < (event.order or 0) < last:
            _add(found, thread, Deed(found.made.body[event.at], float(event.order or 0), event))


__all__ = ["CutStory", "Deed", "NotCut", "story", "width"]
