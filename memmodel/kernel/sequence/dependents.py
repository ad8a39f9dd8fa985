"""A launch that may begin before the one before it has ended (programmatic dependent launch).

In: two launches that were judged. Out: races between them, and what is not decided. Settled here: which accesses of the
second may come before the end of the first. Whether such an access, or one after a wait for the first launch, races
with an access of the first is asked of the model, by a litmus test of the two. After a wait is what base causality puts
there, from the wait of another thread, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from memmodel import api
from memmodel.answer import Observation
from memmodel.base.labels import Access, Fence, Label, Side, side_of
from memmodel.cat.flags import kind_of
from memmodel.errors import InputError
from memmodel.isa.synchronization.grids import lets_next_begin, waits_for_grid
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.first_run import first_schedule
from memmodel.kernel.export.grids import NO_WAIT, NOT_BY_WAIT, pair_test
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace, RunMoment
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.names import without_parameters
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Sem, Space
from memmodel.source import Source

RACE = "data-race"


class Waited(Enum):
    """Whether an access comes after a wait for the launch before, of its own thread or of another one."""

    YES = "yes"
    NO = "no"
    PERHAPS = "perhaps"


class LaunchAccess(NamedTuple):
    """An access of a launch to bytes of a block. `at`: the number of its instruction. `thread`: of its thread."""

    at: int
    label: Label
    waited: Waited
    block: Block
    first: int
    size: int
    thread: int


@dataclass(slots=True)
class TouchedBytes:
    """What one instruction does to global memory with one label. `spans`: first address, end, thread."""

    at: int
    label: Label
    waited: Waited
    spans: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OverlappingLaunch:
    """A launch that was judged. `number`: its place in the list, from 1. `trace` None: it could not be run. `sure`:
    every execution of it makes the accesses of the trace.
    """

    number: int
    case: KernelCase
    verdict: KernelVerdict
    trace: LaunchTrace | None
    sure: bool

    @property
    def name(self) -> str:
        return f"launch {self.number} ({without_parameters(self.case.entry.name)})"

    def moments(self) -> dict[int, RunMoment]:
        """By thread, when it first waited for the launch before."""
        moments: dict[int, RunMoment] = {}
        for number, threads in self.trace.first_reached.items() if self.trace is not None else ():
            if waits_for_grid(self.case.body[number]):
                for thread, moment in threads.items():
                    if thread not in moments or moment.time < moments[thread].time:
                        moments[thread] = moment
        return moments

    def names(self, side: Side) -> set[str]:
        """The names of the global memory that it reads, or writes."""
        return {access.block.instance.name for access in self._accesses() if side_of(access.label) is side}

    def touched(self) -> list[TouchedBytes]:
        """What it does to global memory."""
        groups: dict[tuple[int, Label, Waited], TouchedBytes] = {}
        for access in self._accesses():
            if access.block.instance.space is Space.GLOBAL:
                key, address = (access.at, access.label, access.waited), access.block.address + access.first
                group = groups.setdefault(key, TouchedBytes(*key))
                group.spans.append((address, address + access.size, access.thread))
        for group in groups.values():
            group.spans.sort()
        return list(groups.values())

    def _accesses(self) -> Iterator[LaunchAccess]:
        trace, moments = self.trace, self.moments()
        if trace is None:
            return
        never = RunMoment(1 << 62, 1 << 62, 1 << 62, 1 << 62)
        earliest = self._earliest(moments, never)
        behind = AfterWaits(self.case, trace, moments)
        for number, access in enumerate(trace.single):
            own, others = moments.get(access.thread, never), earliest[access.thread]
            if access.issue is None:
                before_all = access.epoch == 0 or number < others.single
                waited = behind.waited(number >= own.single, before_all, access.thread, access.epoch)
            else:
                order = access.issue.order or 0
                before_all = order == 0 or access.issue.time < others.time
                waited = behind.waited(order >= own.events, before_all, access.thread, order)
            yield LaunchAccess(
                access.at, access.label, waited, access.block, access.first, access.size, access.thread
            )  # fmt: skip
        for number, row in enumerate(trace.lanes):
            for first, thread, epoch in zip(row.firsts, row.threads, row.epochs, strict=True):
                own, others = moments.get(thread, never), earliest[thread]
                before_all = epoch == 0 or number < others.lanes
                waited = behind.waited(number >= own.lanes, before_all, thread, epoch)
                yield LaunchAccess(row.at, row.label, waited, row.block, first, row.size, thread)
        for thread_run in trace.threads:
            own, others = moments.get(thread_run.number, never), earliest[thread_run.number]
            for event in thread_run.strong():
                whole = event.issue or event
                order = whole.order or 0
                before_all = order == 0 or whole.time < others.time
                waited = behind.waited(order >= own.events, before_all, thread_run.number, order)
                assert event.block is not None
                yield LaunchAccess(
                    event.at, event.label, waited, event.block, event.first, event.size, thread_run.number
                )  # fmt: skip

    def _earliest(self, moments: Mapping[int, RunMoment], never: RunMoment) -> dict[int, RunMoment]:
        """By thread, the first wait of a thread whose wait may order what this one does: that of its CTA, and of others
        if CTAs meet. `never`: none.
        """
        trace = self.trace
        assert trace is not None
        meet = self.case.launch.cluster != (1, 1, 1) or any(
            event.block is not None and event.block.instance.space is Space.GLOBAL
            for thread in trace.threads
            for event in thread.strong()
        )
        first: dict[int, RunMoment] = {}
        for number, moment in moments.items():
            cta = 0 if meet else trace.threads[number].cta
            first[cta] = min(first.get(cta, never), moment, key=lambda moment: moment.time)
        return {thread.number: first.get(0 if meet else thread.cta, never) for thread in trace.threads}


def overlapping(number: int, case: KernelCase, verdict: KernelVerdict) -> OverlappingLaunch:
    """A launch that was judged, run once more for its accesses: those of all its CTAs, or of the ones that were run."""
    outcome = case.attempt(replace(first_schedule(case), ctas=verdict.ctas))
    trace = None if isinstance(outcome, Refused) else outcome
    sure = trace is not None and verdict.word == "clean" and not verdict.choices and not verdict.ctas
    return OverlappingLaunch(number, case, verdict, trace, sure)


class AfterWaits:
    """What comes after waits of other threads in a run. `moments`: by thread, when it first waited."""

    def __init__(self, case: KernelCase, trace: LaunchTrace, moments: Mapping[int, RunMoment]) -> None:
        self._case, self._trace, self._moments = case, trace, moments
        self._known: dict[tuple[int, int], bool] = {}

    def waited(self, own: bool, before_all: bool, thread: int, events: int) -> Waited:
        """Whether an access comes after a wait. `own`: after one of its thread; `before_all`: before each wait that may
        order it. `events`: how many its thread had before it.
        """
        if own or before_all:
            return Waited.YES if own else Waited.NO
        judge = self._judge
        if judge is None:
            return Waited.PERHAPS
        if (thread, events) not in self._known:
            self._known[thread, events] = any(
                judge.leads(self._case.model, other, moment.events, thread, events)
                for other, moment in self._moments.items()
            )
        if self._known[thread, events]:
            return Waited.YES
        return Waited.NO if self._certain else Waited.PERHAPS

    @cached_property
    def _certain(self) -> bool:
        """True if the order of this run is that of all executions."""
        return self._judge is not None and self._judge.is_certain(frozenset())

    @cached_property
    def _judge(self) -> RunJudge | None:
        """The run with its order; None if it is too large."""
        try:
            return RunJudge(self._case.entry, self._trace)
        except Refused:
            return None


@dataclass(frozen=True, slots=True)
class LaunchMeeting:
    """Instructions of two launches that touch the same bytes. `met`: the address of one, and a thread of each."""

    first: OverlappingLaunch
    left: TouchedBytes
    second: OverlappingLaunch
    right: TouchedBytes
    met: tuple[int, int, int]

    @property
    def strong(self) -> bool:
        """True if both accesses are strong, and so may order what precedes the first and follows the second."""
        labels = self.left.label, self.right.label
        return all(isinstance(label, Access) and label.sem is not Sem.WEAK for label in labels)


class DependentLaunches:
    """Asks about pairs of launches under one model."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._races: dict[tuple[Label, Label, bool, bool], bool | None] = {}

    def judge(self, before: list[OverlappingLaunch], second: OverlappingLaunch) -> None:
        """Add to the verdict on a launch what it has with the launches that may not have ended when it begins: the one
        before it, and those before that one as far as each may overlap with its predecessor.
        """
        chain = True
        for first in reversed(before):
            next_to_it = first is before[-1]
            for launch in (first, second):
                if not launch.sure:
                    self._open(second, f"what {launch.name} touches was not followed in all executions and CTAs")
            if first.trace is not None and second.trace is not None:
                self._pair(first, second, next_to_it=next_to_it, chain=chain)
            chain &= bool(first.moments())

    @staticmethod
    def _open(second: OverlappingLaunch, reason: str) -> None:
        reason = f"it may begin before the launch before it has ended: {reason}"
        if reason not in second.verdict.open:
            second.verdict.open.append(reason)

    def _pair(self, first: OverlappingLaunch, second: OverlappingLaunch, *, next_to_it: bool, chain: bool) -> None:
        meetings = [
            LaunchMeeting(first, left, second, right, met)
            for left in first.touched()
            for right in second.touched()
            if Side.WRITE in (side_of(left.label), side_of(right.label))
            and (met := _met(left.spans, right.spans)) is not None
        ]
        # Another order than by a wait: by a fence before the first lets the second begin, or through words of memory.
        ordered = _fenced(first) or any(meeting.strong for meeting in meetings)
        for meeting in meetings:
            self._meet(meeting, chain=chain, certain=next_to_it and not ordered)

    def _meet(self, meeting: LaunchMeeting, *, chain: bool, certain: bool) -> None:
        """Two instructions touch the same bytes."""
        left, right, second = meeting.left, meeting.right, meeting.second
        waited = right.waited is Waited.YES and chain
        races = self._race(left.label, right.label, waited=waited)
        if waited and races is False:
            return
        before, after = meeting.first.case.body[left.at], second.case.body[right.at]
        place = f"at line {before.line}" if after.span.source is before.span.source else f"at {_placed(before)}"
        where = f"{after.at_line} and {before.opcode} {place} of {meeting.first.name}"
        if waited:
            certain &= bool(self._race(left.label, right.label, waited=True, fenced=True))
        else:
            certain &= right.waited is Waited.NO
        if races and certain:
            second.verdict.findings.append(_finding(meeting, NOT_BY_WAIT if waited else NO_WAIT))
        elif races:
            self._open(second, f"whether anything else orders {where}")
        elif races is None:
            self._open(second, f"whether {where} race")
        else:
            self._open(second, f"what they read of each other at {where}")

    def _race(self, first: Label, second: Label, *, waited: bool, fenced: bool = False) -> bool | None:
        """True if the model finds a race of two such accesses; None if it was not asked or does not know."""
        key = first, second, waited, fenced
        if key not in self._races:
            text = pair_test(first, second, waited=waited, fenced=fenced)
            try:
                report = None if text is None else api.check(Source("<pair>", text), self._model)
            except InputError:
                report = None
            observation = Observation.UNDECIDED if report is None else report.answer.observation
            known = observation is not Observation.UNDECIDED
            self._races[key] = observation is not Observation.NEVER if known else None
        return self._races[key]


def _fenced(first: OverlappingLaunch) -> bool:
    """True if a fence before the instruction that lets the next launch begin may order what is before it."""
    trace = first.trace
    if trace is None or not any(lets_next_begin(first.case.body[at]) for at in trace.executed):
        return False
    labels = (event.label for thread in trace.threads for event in thread.events)
    return any(isinstance(label, Fence) or _releases(label) for label in labels)


def _releases(label: Label) -> bool:
    return isinstance(label, Access) and label.sem is not Sem.WEAK and label.sem is not Sem.RELAXED


def _met(left: list[tuple[int, int, int]], right: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """A byte that both touch, and a thread of each; None if there is none. Both are sorted."""
    starts = [first for first, *_ in left]
    ends: list[int] = []
    for _, end, _ in left:
        ends.append(max(end, ends[-1] if ends else 0))
    for first, end, thread in right:
        at = bisect_right(starts, end - 1)
        if at and ends[at - 1] > first:
            touching = next(span for span in left[:at] if span[1] > first)
            return max(first, touching[0]), touching[2], thread
    return None


def _finding(meeting: LaunchMeeting, missing: str) -> KernelFinding:
    address, *threads = meeting.met
    trace = meeting.second.trace
    blocks = () if trace is None else trace.memory
    block = next((block for block in blocks if block.address <= address < block.address + block.size), None)
    where = hex(address) if block is None else f"byte {address - block.address} of {block.instance.name}"
    sides = _place(meeting.first, meeting.left, threads[0]), _place(meeting.second, meeting.right, threads[1])
    return KernelFinding(RACE, kind_of(RACE).value, "", sides, where, reason=missing)


def _placed(instruction: PtxInstruction) -> str:
    """Where an instruction of another module stands: in its file, or in the source where the PTX lies in none."""
    location, span = instruction.location, instruction.span
    return str(span) if location is None or span.source.in_file else str(location)


def _place(launch: OverlappingLaunch, touched: TouchedBytes, number: int) -> FindingPlace:
    assert launch.trace is not None
    thread = launch.trace.threads[number]
    does = "reads" if side_of(touched.label) is Side.READ else "writes"
    instruction = launch.case.body[touched.at]
    return FindingPlace(instruction, f"{does} in {launch.name}", thread.cta, thread.warp, thread.lane, number)
