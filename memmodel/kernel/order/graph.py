"""The execution that a model judges: events of representatives, and a location for every pair that may conflict.

In: LaunchTrace, Roles, Conflicts. Out: `Graph`. Its base sets and relations are those of `memmodel.base`; the model
says what they mean for races.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Barrier,
    Family,
    Fence,
    GroupWait,
    Half,
    InitialWrite,
    Issue,
    Label,
    Side,
    action_of,
    is_atomic,
    is_replicated,
)
from memmodel.base.points import BarrierId, Point, Range
from memmodel.base.relations import DECIDED as DECIDED_RELATIONS
from memmodel.base.rows import Rows, ordered, rows_of
from memmodel.base.sets import DECIDED as DECIDED_SETS
from memmodel.concrete.execution import ConcreteEvent, Execution
from memmodel.kernel.conflicts.conflicts import OBJECT_BYTES, Conflicts
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.conflicts.uses import ConflictPair, SharedPlace, Use, given_maps
from memmodel.kernel.order.frame import KernelFrame, RelabelledFrame, covered, ends
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.memory.bytes import Cell, CtaId, Instance
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Space

STEP = 1 << 20
OPERANDS = Access(Side.READ, proxy=Proxy.ASYNC, family=Family.WGMMA, asynchronous=True)
"""The read of a wgmma."""
WIDE = (Scope.GPU, Scope.SYS)
"""The scopes that include the whole launch."""


@dataclass(slots=True)
class PointOrigin:
    """Where an event of the graph comes from: the instruction, the thread, the pair and the access."""

    at: int
    thread: int
    pair: int | None = None
    use: Use | None = None


class Graph:
    """The events of representatives."""

    def __init__(self, run: LaunchTrace, roles: Roles, conflicts: Conflicts) -> None:
        self.run, self.roles, self._by_instruction = run, roles, conflicts.by_instruction
        self.pairs: list[ConflictPair] = list(conflicts.pairs.values())
        self.points: list[Point] = []
        self.origins: list[PointOrigin] = []
        self.number: dict[int, int] = {}
        self.events: dict[int, TraceEvent] = {}
        self._parts: dict[int, list[tuple[int, int]]] = {}
        self.shared: dict[tuple[object, ...], int] = {}
        self._weak: dict[tuple[object, ...], int] = {}
        self._operations: dict[object, int] = {}
        self._initial: set[tuple[object, ...]] = set()
        self.initial_reads: list[tuple[int, int]] = []
        self.pair_of: dict[tuple[int, int], int] = {}
        self._same_location: list[tuple[int, int]] = []
        labels = {id(event.label): event.label for thread in run.threads for event in thread.events}
        self._restricted = any(isinstance(label, Fence) and label.covers is not None for label in labels.values())
        placed = [(place, [stands for _, stands in place.members]) for place in conflicts.places.values()]
        threads = run.threads
        representatives = [roles.pair(threads[pair.left.thread], threads[pair.right.thread]) for pair in self.pairs]
        kept = {thread for pair in representatives for thread in pair}
        kept |= {thread for _, members in placed for thread in members}
        kept |= {event.thread for events in run.atomics.values() if len(events) <= 64 for event in events}
        kept |= {stands for _, stands in conflicts.touching.values()}
        maps = [(use, roles.representatives([use.thread])[0]) for use in given_maps(run)]
        kept |= {stands for _, stands in maps}
        kept |= roles.kept({threads[thread].cta for thread in kept})
        for number in sorted(kept):
            self._thread(number)
        for index, pair in enumerate(representatives):
            self._pair(index, self.pairs[index], pair)
        for number, (place, _) in enumerate(placed):
            self._place(number, place)
        for (_, at), (use, stands) in conflicts.touching.items():
            self._touch(use, stands, at)
        for use, stands in maps:
            self._given_map(use, stands)
        for number in sorted(kept):
            self._waited(number)

    # ---- events ----------------------------------------------------------------------------------------------

    def _thread(self, number: int) -> None:
        thread = self.run.threads[number]
        for event in thread.events:
            assert event.order is not None
            whole = event.beside or event
            if isinstance(event.label, Access) and event.partner is not None and event.partner.order is not None:
                whole = min(event, event.partner, key=lambda access: access.order or 0)
            order = ((whole.order or 0) + 1) * STEP
            self._add(event, order, None, whole)
            for signal in event.signals:
                self._add(signal, None, self.number[id(event)], event)
                if isinstance(signal.label, Access):
                    part = min(signal.parts or (0,))
                    self._parts.setdefault(id(event), []).append((self.number[id(signal)], part))

    def _add(self, event: TraceEvent, order: int | None, issue: int | None, whole: TraceEvent) -> None:
        new = len(self.points)
        self.number[id(event)] = new
        self.events[new] = event
        thread = self.run.threads[event.thread]
        block = event.block
        cell = None if block is None else Cell(block.instance, event.first, event.size)
        access = isinstance(event.label, Access)
        first = self.number[id(whole)] if issue is None else self.number.get(id(event.partner), new)
        self.points.append(
            Point(
                new,
                event.label,
                event.thread,
                thread.place,
                order,
                self.number[id(whole)],
                first if access else None,
                issue,
                cell,
                None if cell is None else _named(cell, event.label),
                event.size if access else None,
                self._range(event),
            )
        )
        self.origins.append(PointOrigin(event.at, event.thread))

    def _range(self, event: TraceEvent) -> Range | None:
        """The bytes that an event names; of tensor memory, its allocation."""
        if isinstance(event.label, Allocates):
            owner = event.owners[0] if event.owners else event
            place = self.run.threads[owner.thread].place
            name = f"allocation {owner.thread}.{owner.order}"
            return Range(Instance(name, place.cta_id, Space.TENSOR, 1), 0, 1)
        if event.range is None or isinstance(event.label, Issue):
            return None
        block, first, end = event.range
        return Range(block.instance, first, end)

    def _pair(self, index: int, pair: ConflictPair, threads: tuple[int, int]) -> None:
        if pair.left.event is not None or pair.right.event is not None:
            self._strong_pair(index, pair, threads)
            return
        whole = pair.block.instance
        shared = not self._restricted and pair.left.plain and pair.right.plain
        name = f"{whole.name} *" if shared else f"{whole.name} {index}"
        cell = Cell(Instance(name, self._owner(pair, threads), whole.space, 1), 0, 1)
        ends = []
        for use, thread in zip((pair.left, pair.right), threads, strict=True):
            key = (thread, use.epoch, use.label, use.scalar, use.at * self._by_instruction, name)
            if not shared or key not in self.shared:
                self.shared[key] = self._use(index, use, thread, cell)
            ends.append(self.shared[key])
        self.pair_of[ends_of(*ends)] = index

    def _owner(self, pair: ConflictPair, threads: tuple[int, int]) -> CtaId | None:
        """The CTA that owns the memory, as seen by these threads, which stand for those of the pair."""
        owner = pair.block.instance.owner
        if owner is None:
            return None
        for use, thread in zip((pair.left, pair.right), threads, strict=True):
            if self.run.threads[use.thread].place.cta_id == owner:
                return self.run.threads[thread].place.cta_id
        rank = next(thread.place.rank for thread in self.run.threads if thread.place.cta_id == owner)
        cluster = self.run.threads[threads[0]].place.cluster
        near = (
            thread.place for thread in self.run.threads if thread.place.cluster == cluster and thread.place.rank == rank
        )
        return next((place.cta_id for place in near), owner)

    def _strong_pair(self, index: int, pair: ConflictPair, threads: tuple[int, int]) -> None:
        """A strong access keeps its event, so that what observed it counts; the other access lies at its place."""
        uses = list(zip((pair.left, pair.right), threads, strict=True))
        uses.sort(key=lambda member: member[0].event is None)
        (strong, thread), (weak, other) = uses
        event = self._strong(strong, thread)
        assert event.block is not None
        cell = Cell(event.block.instance, event.first, event.size)
        key = (other, weak.epoch, weak.label, weak.scalar, weak.at * self._by_instruction, cell)
        if key not in self.shared:
            self.shared[key] = self._use(index, weak, other, cell)
        self.pair_of[ends_of(self.number[id(event)], self.shared[key])] = index

    def _strong(self, use: Use, number: int) -> TraceEvent:
        """The strong access of a thread that corresponds to `use`."""
        event = self.run.threads[number].events[use.epoch]
        return event if use.event is None or use.event.issue is None else event.signals[use.part]

    def _place(self, number: int, place: SharedPlace) -> None:
        """All accesses of a place, at a location of its own. Strong ones keep the bytes that they have, so that what
        observed them counts, and meet the others of the place there as well.
        """
        whole = place.block.instance
        cell = Cell(Instance(f"{whole.name} #{number}", place.owner, whole.space, 1), 0, 1)
        base = len(self.pairs)
        points = [
            self._use(base, use, stands, cell) if use.event is None else self.number[id(self._strong(use, stands))]
            for use, stands in place.members
        ]
        self._meet(place, points)
        for (first, second), pair in place.pairs.items():
            self.pair_of[ends_of(points[first], points[second])] = len(self.pairs)
            self.pairs.append(pair)

    def _meet(self, place: SharedPlace, points: list[int]) -> None:
        """The strong accesses of a place and the others there."""
        members = [(*member, point) for member, point in zip(place.members, points, strict=True)]
        weak = [member for member in members if member[0].event is None]
        for strong, _, event in members:
            where = self.points[event].cell
            for use, stands, point in weak if strong.event is not None else ():
                self._same_location.append((event, point))
                at = use.at * self._by_instruction
                self.shared.setdefault((stands, use.epoch, use.label, use.scalar, at, where), point)

    def _touch(self, use: Use, number: int, at: int) -> None:
        """An access to the memory of an mbarrier object."""
        owner = self.run.threads[number].place.cta_id
        for block, first in self.run.objects:
            if first == at and block.instance.owner == owner:
                self._use(len(self.pairs), use, number, Cell(block.instance, at, OBJECT_BYTES))

    def _given_map(self, use: Use, number: int) -> None:
        """A read of a tensor map, and the initial write that it reads from."""
        block = use.parts[0].block
        key = number, use.epoch, use.part, block, use.first
        if key in self._initial:
            return
        cell = Cell(Instance(f"{block.instance.name} {use.first}", None, block.instance.space, 1), 0, 1)
        self._initial.add(key)
        new = len(self.points)
        self.points.append(Point(new, InitialWrite(), cell=cell, name=cell.instance.name))
        self.origins.append(PointOrigin(use.at, use.thread))
        self.initial_reads.append((new, self._use(-1, use, number, cell)))

    def _waited(self, number: int) -> None:
        """The wgmma operations that a thread waits for and whose reads are not judged: each gets a read of its own. The
        warpgroup executes them together, so other threads that wait come after what precedes them.
        """
        thread = self.run.threads[number]
        waits = [
            event
            for event in thread.events
            if isinstance(event.label, GroupWait) and event.label.family is Family.WGMMA
        ]
        for issue in {id(event.completes[-1]): event.completes[-1] for event in waits if event.completes}.values():
            if id(issue) not in self._parts:
                whole = Instance(f"operands {number}.{issue.order}", thread.place.cta_id, Space.SHARED, 1)
                use = Use(number, issue.order or 0, OPERANDS, None, issue.at, 0, 1, issue)
                self._use(-1, use, number, Cell(whole, 0, 1))

    def _use(self, index: int, use: Use, number: int, cell: Cell) -> int:
        new = len(self.points)
        thread = self.run.threads[number]
        order: int | None = (use.epoch + 1) * STEP if use.event is not None else use.epoch * STEP + 1 + new
        issue = None
        if use.issue is not None or (use.event is not None and use.event.issue is not None):
            issue, order = self.number[id(thread.events[use.epoch])], None
            self._parts.setdefault(id(thread.events[use.epoch]), []).append((new, use.part))
        instruction = new if issue is None else issue
        operation = new
        if is_atomic(use.label):
            operation = self._operations.setdefault((number, use.epoch, cell), new)
        name, scalar = _named(cell, use.label), use.scalar
        self.points.append(
            Point(new, use.label, number, thread.place, order, instruction, operation, issue, cell, name, scalar)
        )
        self.origins.append(PointOrigin(use.at, use.thread, index, use))
        return new

    def of(self, access: TraceEvent | WeakAccess) -> int | None:
        """The number of a strong access, or of a weak one at a place of strong ones."""
        if isinstance(access, TraceEvent):
            return self.number.get(id(access))
        self._weak = self._weak or {(*key[:3], key[-1]): n for key, n in reversed(self.shared.items())}
        cell = Cell(access.block.instance, access.first, access.size)
        return self._weak.get((access.thread, access.epoch, access.label, cell))

    # ---- base names ------------------------------------------------------------------------------------------

    def execution(self) -> Execution:
        """The graph as models judge it, with the order of fence.sc that the run had, and without co."""
        frame = self._frame(self.points)
        count, sets = len(self.points), dict.fromkeys(DECIDED_SETS, 0)
        relations: dict[str, Rows] = {name: [0] * count for name in DECIDED_RELATIONS}
        self._barriers(relations)
        self._objects(sets, relations)
        pairs: dict[str, list[tuple[int, int]]] = {"rf": [*self.initial_reads], "compl": []}
        for event in self._of_threads():
            self._communication(event, pairs)
        for name, related in pairs.items():
            relations[name] = rows_of(related, count)
        relations.update(ends(self.points, self.run.threads))
        relations["complwg"] = self._warpgroups(relations["compl"])
        relations["sync_fence"] = ordered(self.fences(), frame.relation("sr"))
        return Execution(frame, (), sets, relations)

    def _frame(self, points: list[Point]) -> KernelFrame:
        events = [ConcreteEvent(point) for point in points]
        return KernelFrame(events, covered(points, self.events), self._same_location)

    def with_labels(self, execution: Execution, labels: Mapping[int, Label]) -> Execution:
        """The execution of this graph, with other semantics, scopes or memory in the labels of some events."""
        points = [
            replace(point, label=labels[point.event]) if point.event in labels else point for point in self.points
        ]
        fences = (point for point in points if isinstance(point.label, Fence) and point.label.sem is Sem.SC)
        left = sum(1 << point.event for point in fences)
        rows = enumerate(execution.relation("sync_fence"))
        sync_fence = [row & left if left >> number & 1 else 0 for number, row in rows]
        assert isinstance(execution.frame, KernelFrame)
        frame = RelabelledFrame(execution.frame, labels, covered(points, self.events))
        sync_fence = [row & related for row, related in zip(sync_fence, frame.relation("sr"), strict=True)]
        return replace(
            execution, frame=frame, chosen_relations={**execution.chosen_relations, "sync_fence": sync_fence}
        )

    def completing_less(self, execution: Execution, kept: Mapping[int, int]) -> Rows:
        """What asynchronous events are completed by, where some waits are for the first few instructions only.
        `kept`: how many, by the number of the wait."""
        rows = list(execution.relation("compl"))
        for number, count in kept.items():
            for issue in self.events[number].completes[count:]:
                for point, _ in self._parts.get(id(issue), ()):
                    rows[point] &= ~(1 << number)
        return rows

    def _of_threads(self) -> Iterator[TraceEvent]:
        """The events of the threads in the graph."""
        for thread in {point.thread for point in self.points if point.thread is not None}:
            yield from self.run.threads[thread].events

    def fences(self) -> list[int]:
        """The fence.sc events, in the order of the run."""
        timed = [
            (event.time, number)
            for number, event in self.events.items()
            if isinstance(event.label, Fence) and event.label.sem is Sem.SC
        ]
        return [number for _, number in sorted(timed)]

    def _communication(self, event: TraceEvent, pairs: dict[str, list[tuple[int, int]]]) -> None:
        for access in (event, *event.signals):
            target = self.number[id(access)]
            source = self._source(access)
            if source is not None:
                pairs["rf"].append((self.number[id(source)], target))
            pairs["rf"] += [(self.number[id(other)], target) for other in access.observed if id(other) in self.number]
            for issue in access.completes:
                for point, part in self._parts.get(id(issue), ()):
                    label = self.points[point].label
                    if access.parts is not None and part not in access.parts:
                        continue
                    if isinstance(label, Access) and (not access.reads_only or label.role is not None):
                        pairs["compl"].append((point, target))

    def _source(self, event: TraceEvent) -> TraceEvent | None:
        """The write that an access reads from. An atomic operation of a thread that is left out passes it on, if each
        step of observation order is morally strong whenever the whole is: all operations are in the CTA of the access
        and have its scope, or the scopes of all include the launch.
        """
        source, mine, near, wide = event.source, event.label, True, True
        while source is not None and isinstance(mine, Access) and isinstance(source.label, Access):
            wide &= source.label.scope in WIDE and mine.scope in WIDE
            if id(source) in self.number:
                break
            near &= source.label.scope is mine.scope
            near &= self.run.threads[source.thread].cta == self.run.threads[event.thread].cta
            alike = source.label.proxy is mine.proxy and is_replicated(source.label) == is_replicated(mine)
            source = source.partner.source if source.partner is not None and alike else None
        return source if near or wide else None

    def _warpgroups(self, complete: Rows) -> Rows:
        """From reads of wgmma by other lanes of a warpgroup to the waits that cover the same instruction of their own
        lane.
        """
        rows = [0] * len(self.points)
        lanes: dict[tuple[int, int], list[list[list[int]]]] = {}
        for number in {point.thread for point in self.points if point.thread is not None}:
            thread = self.run.threads[number]
            issues = [e for e in thread.events if isinstance(e.label, Issue) and e.label.family is Family.WGMMA]
            parts = [[point for point, _ in self._parts.get(id(issue), ())] for issue in issues]
            lanes.setdefault((thread.cta, thread.warp // 4), []).append(parts)
        waits = sum(1 << point.event for point in self.points if isinstance(point.label, GroupWait))
        for members in lanes.values():
            for turn in zip(*members, strict=False):
                points = [point for part in turn for point in part]
                done = 0
                for point in points:
                    done |= complete[point] & waits
                for point in points:
                    rows[point] = done & ~complete[point]
        return rows

    def _barriers(self, relations: dict[str, Rows]) -> None:
        halves: dict[BarrierId, list[tuple[int, TraceEvent]]] = {}
        for event in self._of_threads():
            if event.barrier is not None:
                halves.setdefault(event.barrier, []).append((self.number[id(event)], event))
        for members in halves.values():
            arrivals: dict[int, int] = {}
            waits: dict[int, int] = {}
            counts: dict[tuple[int | None, bool], int] = {}
            arrives: list[tuple[int, TraceEvent, tuple[int | None, bool]]] = []
            for number, event in members:
                assert isinstance(event.label, Barrier)
                into = arrivals if event.label.half is Half.ARRIVE else waits
                into[event.generation] = into.get(event.generation, 0) | 1 << number
                if event.label.half is Half.ARRIVE:
                    kind = (event.count, event.label.reduces)
                    counts[kind] = counts.get(kind, 0) | 1 << number
                    arrives.append((number, event, kind))
            later, after = 0, {}
            for generation in sorted(arrivals, reverse=True):
                after[generation] = later
                later |= arrivals[generation]
            for number, event, kind in arrives:
                relations["syncbar"][number] = waits.get(event.generation, 0)
                relations["samegen"][number] = arrivals[event.generation] & ~(1 << number)
                relations["genbefore"][number] = after[event.generation]
                relations["barmix"][number] = later & ~counts[kind]

    def _objects(self, sets: dict[str, int], relations: dict[str, Rows]) -> None:
        for log in self.run.objects.values():
            steps = [(self.number[id(step.event)], step) for step in log if id(step.event) in self.number]
            updates = [(number, step) for number, step in steps if step.update]
            later = 0
            for number, step in reversed(updates):
                relations["mbar"][number] = later
                later |= 1 << number
                inside = action_of(step.event.label) not in (Action.INIT, Action.INVAL)
                sets["MBLATER"] |= (inside and step.before > 0) << number
            for number, test in steps:
                if not test.update:
                    sets["MBDONE"] |= 1 << number
                    self._test(relations, number, test, updates)
        for name, events in (("MBBAD", self.run.miscounted), ("MBSTALE", self.run.stale_tests)):
            for event in events:
                if id(event) in self.number:
                    sets[name] |= 1 << self.number[id(event)]

    def _test(
        self, relations: dict[str, Rows], number: int, test: ObjectStep, updates: list[tuple[int, ObjectStep]]
    ) -> None:
        for update, step in updates:
            action = action_of(step.event.label)
            if action is Action.INVAL:
                continue
            init, mine = action is Action.INIT, step.life == test.life
            if mine and (test.seen_by_tests > 0 if init else step.before < test.seen_by_tests):
                relations["mbarobs"][update] |= 1 << number
                relations["mbarseen"][update] |= 1 << number
            if mine and not init and step.before == test.seen_by_tests:
                relations["mbarnext"][number] |= 1 << update
            if (mine and not init and step.after > test.seen_by_tests) or step.life > test.life:
                relations["mbarfr"][number] |= 1 << update


def ends_of(first: int, second: int) -> tuple[int, int]:
    """Two events as `pair_of` has them."""
    return (first, second) if first < second else (second, first)


def _named(cell: Cell, label: Label) -> str:
    """The virtual address that an event goes through."""
    return f"multimem address of {cell.instance.name}" if is_replicated(label) else cell.instance.name
