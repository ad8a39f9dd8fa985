"""The hand-overs of a run: which role gives what to which, on which mbarrier object or barrier, phase by phase.

In: the order of a run, its findings. Out: `Pipeline`. Settled here: threads are drawn as the warps of equal roles in
the first CTA of each class; what equal instructions of a lane do for one phase is one mark; columns are a logical time,
in which a mark stands to the right of those of its lane and of what it waits for. Of a thread that arrives at a barrier
and waits there, only the wait is a mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.base.labels import Access, Action, Barrier, Domain, Half, action_of
from memmodel.base.points import BarrierId
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.order.fences import begun
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.output.groups import groups
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction

MOST = 64
"""Hand-overs that are drawn, the first in time."""

MISSING = 6
"""Findings that are drawn."""

DOES = 2
"""Kinds of accesses that are named of a lane."""


@dataclass(frozen=True, slots=True)
class PipelineMark:
    """Something that a lane does. `time`: of the run. `issuer`: the lane that issued it, if it is asynchronous."""

    lane: int
    instruction: PtxInstruction
    time: float
    column: int = 0
    issuer: int | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """One phase of an object, or one generation of a barrier. `ring`: equal for the stages of one ring.

    `gives`: who arrives, in the order of time; `takes`: who waits for it. `missing`: it should be there, and is not.
    """

    row: str
    ring: int
    phase: int
    gives: tuple[PipelineMark, ...]
    takes: tuple[PipelineMark, ...]
    missing: str = ""

    @property
    def instructions(self) -> frozenset[int]:
        return frozenset(mark.instruction.number for mark in (*self.gives, *self.takes))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`lanes`: names of roles. `left_out`: hand-overs that are later than those here. `does`: the accesses that each
    lane makes most, by the first words of their opcodes.
    """

    lanes: tuple[str, ...]
    hand_overs: tuple[HandOver, ...]
    left_out: int = 0
    does: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        marks = (mark for over in self.hand_overs for mark in (*over.gives, *over.takes))
        return max((mark.column for mark in marks), default=-1) + 1

    def about(self, number: int, most: int = 3) -> Pipeline | None:
        """The first hand-overs in which an instruction takes part, with the lanes of these; None if there is none."""
        chosen = [over for over in self.hand_overs if number in over.instructions][:most]
        if not chosen:
            return None
        kept, lanes = _with_lanes(chosen, range(len(self.lanes)))
        return Pipeline(
            tuple(self.lanes[lane] for lane in lanes), _placed(kept), does=tuple(self.does[lane] for lane in lanes)
        )


def pipeline(order: LaunchOrder, findings: Iterable[KernelFinding] = ()) -> Pipeline:
    """The hand-overs of a run. `findings`: in it, which show what is missing."""
    lanes = _Lanes(order)
    run = order.graph.run
    hand_overs = [*_phases(run, lanes, order.body), *_generations(run, lanes, order.body)]
    hand_overs.sort(key=lambda over: min(mark.time for mark in (*over.gives, *over.takes)))
    missing = [*_races(order, lanes, findings), *_hangs(run, lanes, order.body)][:MISSING]
    drawn, shown = _with_lanes([*hand_overs[:MOST], *missing], lanes.order())
    does = lanes.does(order)
    return Pipeline(
        tuple(lanes.names[lane] for lane in shown),
        _placed(drawn),
        max(0, len(hand_overs) - MOST),
        tuple(does[lane] for lane in shown),
    )


class _Lanes:
    """The lanes of a picture: the warps of one class in the first CTA of its class, and their asynchronous copies."""

    def __init__(self, order: LaunchOrder) -> None:
        self._who = order.run.roles.who
        self._threads = order.graph.run.threads
        self._first: dict[int, int] = {}
        warps: dict[tuple[int, int], set[int]] = {}
        for thread in self._threads:
            kind = self._who[thread.number][0]
            if self._first.setdefault(kind, thread.cta) == thread.cta:
                warps.setdefault(self._who[thread.number][:2], set()).add(thread.warp)
        self._warps = warps
        self._numbers: dict[tuple[int, int, bool], int] = {}
        self.names: list[str] = []

    def order(self) -> list[int]:
        """The lanes by CTA and warp, each asynchronous lane after its warp."""
        places = {at: (self._first[kind], min(self._warps[kind, warp]), aside)
                  for (kind, warp, aside), at in self._numbers.items()}  # fmt: skip
        return sorted(places, key=places.__getitem__)

    def of(self, event: TraceEvent) -> int | None:
        """The lane of an event; None if it is of another CTA than the first of its class."""
        return self.number(event.thread, aside=event.issue is not None)

    def number(self, thread: int, *, aside: bool = False) -> int | None:
        kind, warp, _ = self._who[thread]
        cta = self._threads[thread].cta
        if self._first[kind] != cta:
            return None
        key = kind, warp, aside
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            several = f"CTA {cta} " if len(self._first) > 1 else ""
            self.names.append(f"{several}{_ranges(self._warps[kind, warp])}" + (", async" if aside else ""))
        return self._numbers[key]

    def does(self, order: LaunchOrder) -> list[str]:
        """What each lane does: the accesses that it makes most, those first that it only issues."""
        counts: list[Counter[tuple[bool, str]]] = [Counter() for _ in self.names]
        for point, origin in zip(order.graph.points, order.graph.origins, strict=True):
            if not isinstance(point.label, Access) or point.thread is None:
                continue
            kind, warp, _ = self._who[origin.thread]
            words = ".".join(order.body[origin.at].opcode.split(".")[:2])
            for aside in (False, True) if point.label.asynchronous else (False,):
                if (lane := self._numbers.get((kind, warp, aside))) is not None:
                    counts[lane][not point.label.asynchronous, words] += 1
        ranked = (sorted(count, key=lambda act: (act[0], -count[act])) for count in counts)
        return [", ".join(list(dict.fromkeys(words for _, words in acts))[:DOES]) for acts in ranked]


def _ranges(numbers: Iterable[int]) -> str:
    """`warp 0`, `warps 0–3, 6`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    shown = ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)
    return f"warp{'s' if len(parts) > 1 or len(parts[0]) > 1 else ''} {shown}"


def _phases(run: LaunchTrace, lanes: _Lanes, body: Sequence[PtxInstruction]) -> Iterator[HandOver]:
    """The phases of mbarrier objects that were completed and awaited. Objects for which the same instructions wait are
    the stages of a ring.
    """
    rings: dict[object, int] = {}
    for (block, first), log in sorted(run.objects.items(), key=lambda item: (item[0][0].instance.name, item[0][1])):
        acts = [step for step in log if action_of(step.event.label) not in (Action.INIT, Action.INVAL)]
        waits_at = frozenset(step.event.at for step in acts if not step.update)
        ring = rings.setdefault((block.instance.owner, waits_at), len(rings))
        for life in sorted({step.life for step in acts}):
            mine = [step for step in acts if step.life == life]
            for phase in sorted({step.before for step in mine if step.update and step.after > step.before}):
                gives = _marks(
                    (step.event for step in mine if step.update and step.before == phase), lanes, body, last=True
                )
                waits = (step.event for step in mine if not step.update and step.seen_by_tests == phase + 1)
                takes = _marks(waits, lanes, body, last=False)
                if gives and takes:
                    where = f"{block.instance.name.removesuffix(' *')}, byte {first}"
                    yield HandOver(f"mbarrier in {where}", ring, phase, gives, takes)


def _generations(run: LaunchTrace, lanes: _Lanes, body: Sequence[PtxInstruction]) -> Iterator[HandOver]:
    """The generations of execution barriers."""
    members: dict[tuple[BarrierId, int], list[TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.events:
            if event.barrier is not None and isinstance(event.label, Barrier):
                members.setdefault((event.barrier, event.generation), []).append(event)
    for (barrier, generation), events in members.items():
        halves = {half: [event for event in events if _half(event) is half] for half in Half}
        takes = _marks(halves[Half.WAIT], lanes, body, last=False)
        both = {mark.lane for mark in takes}
        gives = tuple(mark for mark in _marks(halves[Half.ARRIVE], lanes, body, last=True) if mark.lane not in both)
        if takes and len({mark.lane for mark in (*gives, *takes)}) > 1:
            domain = "" if barrier.domain is Domain.CTA else f"{barrier.domain.name.lower()} "
            name = f"{domain}barrier {barrier.key[0] if barrier.key else ''}".rstrip()
            yield HandOver(name, -1, generation, gives, takes)


def _half(event: TraceEvent) -> Half | None:
    return event.label.half if isinstance(event.label, Barrier) else None


def _marks(
    events: Iterable[TraceEvent], lanes: _Lanes, body: Sequence[PtxInstruction], *, last: bool
) -> tuple[PipelineMark, ...]:
    """A mark for each lane and instruction: the last of its threads, or the first."""
    marks: dict[tuple[int, int], PipelineMark] = {}
    for event in events:
        lane = lanes.of(event)
        if lane is None:
            continue
        time = event.time if event.issue is None else event.issue.time + 0.5  # it is over when something waits for it
        mark = PipelineMark(
            lane, body[event.at], time, issuer=None if event.issue is None else lanes.number(event.thread)
        )
        known = marks.get((lane, event.at))
        if known is None or (mark.time > known.time) is last:
            marks[lane, event.at] = mark
    return tuple(sorted(marks.values(), key=lambda mark: mark.time))


def _races(order: LaunchOrder, lanes: _Lanes, findings: Iterable[KernelFinding]) -> Iterator[HandOver]:
    """What would order two accesses that race."""
    for finding in (group.first for group in groups(findings)):
        if len(finding.sides) != 2 or len(finding.events) != 2 or finding.harmless:
            continue
        marks = []
        for side, event in zip(finding.sides, finding.events, strict=True):
            label = order.graph.points[event].label
            aside = isinstance(label, Access) and label.asynchronous
            lane = lanes.number(side.thread, aside=aside) if side.thread >= 0 else None
            if lane is not None:
                issuer = lanes.number(side.thread) if aside else None
                marks.append(PipelineMark(lane, side.instruction, begun(order.graph, event) + 0.5, issuer=issuer))
        if len(marks) == 2:
            why = f"{finding.rule}: {finding.reason or 'nothing orders them'}"
            yield HandOver("missing", -1, 0, (marks[0],), (marks[1],), why)


def _hangs(run: LaunchTrace, lanes: _Lanes, body: Sequence[PtxInstruction]) -> Iterator[HandOver]:
    """What threads wait for in vain."""
    for stuck in run.stuck:
        lane = lanes.number(stuck.threads[0])
        if lane is not None:
            mark = PipelineMark(lane, body[stuck.at], float("inf"))
            yield HandOver("missing", -1, 0, (), (mark,), "hang: what this waits for never comes")


def _with_lanes(hand_overs: Sequence[HandOver], order: Sequence[int]) -> tuple[list[HandOver], list[int]]:
    """With those lanes alone that have marks, in this order, and these lanes."""
    used = {mark.lane for over in hand_overs for mark in (*over.gives, *over.takes)}
    lanes = [lane for lane in order if lane in used]
    place = {lane: at for at, lane in enumerate(lanes)}

    def moved(marks: tuple[PipelineMark, ...]) -> tuple[PipelineMark, ...]:
        return tuple(
            replace(mark, lane=place[mark.lane], issuer=place.get(-1 if mark.issuer is None else mark.issuer))
            for mark in marks
        )

    kept = [replace(over, gives=moved(over.gives), takes=moved(over.takes)) for over in hand_overs]
    return kept, lanes


def _placed(hand_overs: Sequence[HandOver]) -> tuple[HandOver, ...]:
    """With the columns of the marks."""
    marks = [
        (mark.time, taking, number, at)
        for number, over in enumerate(hand_overs)
        for taking, half in enumerate((over.gives, over.takes))
        for at, mark in enumerate(half)
    ]
    columns: dict[tuple[int, int, int], int] = {}
    free: dict[int | None, int] = {}
    given: dict[int, int] = {}
    for _, taking, number, at in sorted(marks):
        over = hand_overs[number]
        if (number, taking, at) in columns:
            continue
        half = over.takes if taking else over.gives
        meet = taking and over.ring < 0 and not over.missing  # those who wait at a barrier leave it together
        members = range(len(half)) if meet else (at,)
        behind = [free.get(lane, 0) for member in members for lane in (half[member].lane, half[member].issuer)]
        column = max(*behind, given.get(number, 0) if taking else 0)
        for member in members:
            columns[number, taking, member] = column
            free[half[member].lane] = column + 1
        if not taking:
            given[number] = max(given.get(number, 0), column + 1)

    def with_columns(number: int, taking: int, half: tuple[PipelineMark, ...]) -> tuple[PipelineMark, ...]:
        return tuple(replace(mark, column=columns[number, taking, at]) for at, mark in enumerate(half))

    return tuple(
        replace(over, gives=with_columns(number, 0, over.gives), takes=with_columns(number, 1, over.takes))
        for number, over in enumerate(hand_overs)
    )
