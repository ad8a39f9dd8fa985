"""The conditions under which one run represents every schedule: counts, waits, polling, objects.

In: Graph, LaunchTrace, the order of a model. Out: the conditions that do not hold, as sentences.
docs/kernels-theorem.md has the theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from memmodel.base.labels import Action, Allocates, Allocation, Barrier, Half, Mbarrier, Signal, action_of, layout_of
from memmodel.base.rows import Rows, bits
from memmodel.isa.lowered import body_of, lowered, registers
from memmodel.isa.matrix.tensor_columns import COLUMNS
from memmodel.kernel.flow.origin import from_memory
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace, RegisterChange
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Mem
from memmodel.ptx.vocabulary import MAX_TX, MbarrierLayout

RESIDENT = "a cooperative launch, or a grid that the device holds at once"
"""What it takes to drop the assumption that all CTAs are resident."""
FIRST_COLUMNS = "tcgen05.alloc gives out columns from 0 on, since this address does not come from it"


def sentence(instruction: PtxInstruction, why: str) -> str:
    """A sentence about an instruction."""
    return f"line {instruction.line}: {instruction.opcode}: {why}"


class Counts:
    """The arrivals, phases, waits, allocations and registers of a run, made ready to be looked at under many orders."""

    def __init__(self, graph: Graph, run: LaunchTrace, body: tuple[PtxInstruction, ...]) -> None:
        self._graph, self._body = graph, body
        self._arrivals: dict[object, list[tuple[int, int, int]]] = {}
        """By barrier the arrivals: how many came before, the generation, and the event."""
        count = 0
        for thread in {origin.thread for origin in graph.origins}:
            for event in run.threads[thread].events:
                number, label = graph.number.get(id(event)), event.label
                if number is not None and isinstance(label, Barrier) and label.half is Half.ARRIVE:
                    self._arrivals.setdefault(event.barrier, []).append((count, event.generation, number))
                    count += 1
        self._columns, self._registers = ColumnOrder(graph, run), RegisterPools(graph, run)
        self._peeks = [
            ((event.block, event.first, event.note[2]), phase, graph.number[id(event)])
            for event, phase in run.peeks
            if id(event) in graph.number
        ]
        self._past: dict[int, int] = {}
        self._lives: list[tuple[object, list[ObjectStep], _Life]] = []
        for (block, first), log in run.objects.items():
            lives: dict[int, list[ObjectStep]] = {}
            for step in log:
                lives.setdefault(step.life, []).append(step)
            for life, steps in lives.items():
                self._lives.append(((block, first, life), steps, _Life(steps, graph, body, self._past)))

    def complaints(self, before: Rows, base: Rows, gone: int = 0) -> list[str]:
        """Arrivals of one generation or phase come before those of the next, a wait passes on its own phase only, and
        no alloc and no setmaxnreg depends on the schedule.

        `before`: the order of execution. `base`: base causality. `gone`: events that are not there; of an object or
        barrier that lacks some of its updates, nothing is said.
        """
        complaints: list[str] = []
        for levels in self._generations(gone):
            complaints += _ordered(
                levels, before, lambda n: self._body[self._graph.origins[n].at], "arrivals of two generations"
            )
        peeked: dict[object, list[tuple[int, int]]] = {}
        for place, phase, test in self._peeks:
            if not gone >> test & 1:
                peeked.setdefault(place, []).append((phase, test))
        order = _Order(before, base, gone)
        for which, life in self._lives_without(gone):
            complaints += life.complaints(order, peeked.get(which, []))
        waits = (*self._columns.complaints(before, gone), *self._registers.complaints(before))
        complaints += [sentence(self._body[at], why) for at, why in waits]
        return list(dict.fromkeys(complaints))

    def late_tests(self, before: Rows, base: Rows) -> list[tuple[int, int]]:
        """Tests of mbarrier objects that other threads do not wait for: when a thread comes to one of them, the phase
        after its own may have ended. Of each thread and instruction the number, those of early phases first.
        """
        order = _Order(before, base, 0)
        tests = [test for _, life in self._lives_without(0) for test in life.late_tests(order)]
        places = (self._graph.origins[test] for _, test in sorted(tests))
        return list(dict.fromkeys((place.thread, place.at) for place in places))

    def _generations(self, gone: int) -> Iterator[dict[int, list[int]]]:
        """The arrivals that are there, of each barrier by generation."""
        left = [[arrival for arrival in arrivals if not gone >> arrival[2] & 1] for arrivals in self._arrivals.values()]
        for arrivals in sorted(filter(None, left)):
            levels: dict[int, list[int]] = {}
            for _, generation, number in arrivals:
                levels.setdefault(generation, []).append(number)
            yield dict(enumerate(levels[each] for each in sorted(levels))) if gone else levels

    def _lives_without(self, gone: int) -> Iterator[tuple[object, _Life]]:
        """The mbarrier objects, each from an init to the next, with their places."""
        for which, steps, life in self._lives:
            if gone & life.updates:
                continue
            if not gone & life.events:
                yield which, life
            elif left := [step for step in steps if not gone >> _number(step, self._graph) & 1]:
                yield which, _Life(left, self._graph, self._body, self._past)


class _Order(NamedTuple):
    """`before`: the order of execution; `base`: base causality; `gone`: events that are not there."""

    before: Rows
    base: Rows
    gone: int


def _number(step: ObjectStep, graph: Graph) -> int:
    """The event of a step; behind all others if its thread is left out."""
    return graph.number.get(id(step.event), len(graph.points))


def _counts(step: ObjectStep) -> bool:
    """True of an update that begins or changes the counts of a life."""
    return step.update and action_of(step.event.label) is not Action.INVAL


class _Life:
    """An mbarrier object from an init to the next: its updates and tests by their phases, as events of the graph.
    `events`: all that work on it; `updates`: those that count. `past`: by test, what its thread did before.
    """

    def __init__(
        self, log: list[ObjectStep], graph: Graph, body: tuple[PtxInstruction, ...], past: dict[int, int]
    ) -> None:
        self.graph, self.body, self._past = graph, body, past
        self.over = max(step.after for step in log)
        self.phases: dict[int, list[int]] = {}
        self.tests: dict[int, list[int]] = {}
        self.arrivals: dict[int, list[int]] = {}
        self.steps: list[tuple[int, ObjectStep]] = []
        self.layout = MbarrierLayout.V0
        self.events = self.updates = 0
        for step in log:
            number, label = graph.number.get(id(step.event)), step.event.label
            if number is None:
                continue
            self.events |= 1 << number
            self.updates |= _counts(step) << number
            if not isinstance(label, Mbarrier | Signal):
                continue
            if not step.update:
                self.tests.setdefault(step.seen_by_tests - 1, []).append(number)
            elif label.action is Action.INIT:
                self.layout = layout_of(label)
            elif label.action is not Action.INVAL:
                self.phases.setdefault(step.before, []).append(number)
                self.steps.append((number, step))
                if label.action is Action.ARRIVE and not self._completes_no_phase(number):
                    self.arrivals.setdefault(step.before, []).append(number)

    def instruction(self, number: int) -> PtxInstruction:
        return self.body[self.graph.origins[number].at]

    def _completes_no_phase(self, number: int) -> bool:
        return lowered(self.instruction(number)).completes_no_phase

    def complaints(self, order: _Order, peeks: list[tuple[int, int]]) -> list[str]:
        """`peeks`: the tests that look ahead, with the phases that they ask for."""
        complaints = _ordered(self.phases, order.before, self.instruction, "arrivals of two phases")
        for number, step in self.steps:
            why = self._needs_arrival(number, step)
            if why and not any(order.before[number] >> other & 1 for other in self._others(step)):
                complaints.append(sentence(self.instruction(number), why))
        complaints += self._beyond_range()
        for phase, members in self.tests.items():
            complaints += [
                sentence(self.instruction(test), f"it may pass on another phase than {phase}")
                for test in members
                if not (self._after_last(order, test, phase) and self._before_next(order, test, phase))
            ]
        for phase, test in peeks:
            late = not lowered(self.instruction(test)).tests_parity and not self._before_next(order, test, phase)
            if late or not self._after_last(order, test, phase):
                complaints.append(
                    sentence(self.instruction(test), f"it looks ahead, and may pass on another phase than {phase}")
                )
        return complaints

    def _beyond_range(self) -> list[str]:
        """The updates with which a count gets out of its range if all that raise it, or all that lower it, come first:
        other schedules may order the updates of a phase otherwise."""
        complaints = []
        totals: dict[int, tuple[int, int, int]] = {}
        for number, step in self.steps:
            pending, expected, completed = totals.get(step.before, (step.pending, 0, 0))
            pending += max(0, step.arrivals)
            expected, completed = expected + max(0, step.bytes), completed + max(0, -step.bytes)
            totals[step.before] = pending, expected, completed
            if pending > self.layout.max_arrivals and step.arrivals > 0:
                why = f"the pending count may get above {self.layout.max_arrivals} in another schedule"
                complaints.append(sentence(self.instruction(number), why))
            if max(expected, completed) > MAX_TX and step.bytes:
                why = f"the tx-count may get out of its range, up to {MAX_TX}, in another schedule"
                complaints.append(sentence(self.instruction(number), why))
        return complaints

    def late_tests(self, order: _Order) -> list[tuple[int, int]]:
        """The tests that may come after the phase behind their own, each with its phase."""
        tests = ((phase, test) for phase, members in self.tests.items() for test in members)
        return [(phase, test) for phase, test in tests if not self._before_next(order, test, phase)]

    def _needs_arrival(self, number: int, step: ObjectStep) -> str:
        """What is wrong with an update that is not ordered before an arrival of its phase."""
        label = step.event.label
        assert isinstance(label, Mbarrier | Signal)
        if label.action is Action.EXPECT_TX and step.event.count == 0:
            return ""  # it changes nothing
        if label.action in (Action.EXPECT_TX, Action.PENDING):
            return "it is not ordered before an arrival of its phase"
        if label.action is Action.ARRIVE and self._completes_no_phase(number):
            return "it may be the one that completes the phase, which is undefined"
        return ""

    def _others(self, step: ObjectStep) -> list[int]:
        """The arrivals of its phase; for an increment of the pending count, without the arrival that it is made for."""
        mine = step.event
        arrivals = []
        for other in self.arrivals.get(step.before, ()):
            event = self.graph.events[other]
            own = event.issue is not None and (event.thread, event.at) == (mine.thread, mine.at)
            if not own or event.issue is None or event.issue.order != (mine.order or 0) + 1:
                arrivals.append(other)
        return arrivals

    def _after_last(self, order: _Order, test: int, phase: int) -> bool:
        """True if the end of the phase before its own precedes something that the thread of a test did before it.

        What the test itself observes comes too late, and behind a relaxed flag it may find an older state.
        """
        if phase <= 0:
            return True
        earlier, past = [*self.tests.get(phase - 1, ()), *self.phases.get(phase, ())], self._before_test(test)
        if any(past >> event & 1 for event in earlier):
            return True
        past &= ~order.gone
        return any(order.base[event] & past for event in earlier)

    def _before_test(self, test: int) -> int:
        """The events of a test's thread before the test."""
        if test not in self._past:
            events = self.graph.run.threads[self.graph.origins[test].thread].events[: self.graph.events[test].order]
            self._past[test] = sum(1 << self.graph.number[id(event)] for event in events)
        return self._past[test]

    def _before_next(self, order: _Order, test: int, phase: int) -> bool:
        """True if a test comes before the end of the phase after its own, or that phase does not end."""
        ends = self.phases.get(phase + 1, ()) if self.over > phase + 1 else ()
        return not ends or any(order.before[test] >> event & 1 for event in ends)


@dataclass(slots=True)
class TensorAllocation:
    """An alloc of a run. `event`: its number in the graph; `taken`: the columns that others cannot have meanwhile;
    `freed`: the deallocs of it.
    """

    event: int
    at: int
    columns: int
    taken: int
    freed: int = 0


class ColumnOrder:
    """The allocations of tensor memory of a run by CTA, made ready to be looked at under many orders.

    A tcgen05.alloc waits until its columns are free, which orders nothing, and the number of columns "should not
    increase between any two allocations in the execution order within the CTA".
    """

    def __init__(self, graph: Graph, run: LaunchTrace) -> None:
        self._by_cta: dict[object, list[TensorAllocation]] = {}
        known: dict[int, TensorAllocation] = {}
        events = [
            (event, event.label, graph.number[id(event)])
            for thread in run.threads
            for event in thread.events
            if isinstance(event.label, Allocates) and id(event) in graph.number
        ]
        for event, label, number in events:
            columns = event.note[0] if label.what is Allocation.ALLOC else None
            if isinstance(columns, int):
                taken = COLUMNS if label.exclusive else columns
                known[id(event)] = TensorAllocation(number, event.at, columns, taken)
                cta = run.threads[event.thread].place.cta_id
                self._by_cta.setdefault(cta, []).append(known[id(event)])
        for event, label, number in events:
            for owner in event.owners if label.what is Allocation.DEALLOC else ():
                if id(owner) in known:
                    known[id(owner)].freed |= 1 << number

    def complaints(self, before: Rows, gone: int) -> Iterator[tuple[int, str]]:
        """The number of the instruction, and what is wrong. `before`: the order of execution; `gone`: events that are
        not there."""
        for of_cta in self._by_cta.values():
            allocations = [one for one in of_cta if not gone >> one.event & 1]
            for one in allocations:
                others = [it for it in allocations if it is not one and not before[one.event] >> it.event & 1]
                smaller = [it.columns for it in others if not before[it.event] >> one.event & 1]
                if min(smaller, default=one.columns) < one.columns:
                    yield one.at, f"in another schedule it may come after an alloc of {min(smaller)} columns"
                held = sum(it.taken for it in others if not self._is_freed(it, one, before, gone))
                if held + one.taken > COLUMNS:
                    yield one.at, "in another schedule it may have to wait for columns that others hold"

    @staticmethod
    def _is_freed(allocation: TensorAllocation, later: TensorAllocation, before: Rows, gone: int) -> bool:
        """True if the columns of an allocation are free before a later one, whatever the schedule."""
        return any(before[freed] >> later.event & 1 for freed in bits(allocation.freed & ~gone))


class RegisterPools:
    """What the warps of a run did to the registers of their CTAs, made ready to be looked at under many orders.

    A setmaxnreg.inc waits until the pool of its CTA has enough. It gets them in every schedule if there are enough
    wherever the other warps may stand meanwhile: at an inc of which this is not known, or behind one.
    """

    def __init__(self, graph: Graph, run: LaunchTrace) -> None:
        self._graph, self._run = graph, run
        by_class: dict[object, dict[int, list[RegisterChange]]] = {}
        for change in run.register_changes:
            by_class.setdefault(graph.roles.cta_class[change.cta], {}).setdefault(change.cta, []).append(change)
        self._pools = [next(iter(ctas.values())) for ctas in by_class.values()]
        """The changes of a CTA of each class, in the order of the run."""
        self._between = [
            [[self._ends(changes, first, second) for second in range(len(changes))] for first in range(len(changes))]
            for changes in self._pools
        ]
        """Of two changes of a CTA the events that order them; None if one warp makes the first and then the other."""

    def _ends(self, changes: list[RegisterChange], one: int, other: int) -> list[tuple[int, int]] | None:
        """The events of threads that stand for those of two warps: the first ones behind one change, each with the last
        ones before the other."""
        threads, roles, first, second = self._run.threads, self._graph.roles, changes[one], changes[other]
        if threads[first.places[0][0]].warp == threads[second.places[0][0]].warp:
            return None if one < other else []
        lanes = [{roles.who[thread]: (thread, place) for thread, place in it.places} for it in (first, second)]
        ends = []
        for (left, behind), (right, ahead) in product(*(it.values() for it in lanes)):
            stand, other_stands = roles.pair(threads[left], threads[right])
            if ahead and behind < len(threads[stand].events):
                first_event, last_event = threads[stand].events[behind], threads[other_stands].events[ahead - 1]
                ends.append((self._graph.number[id(first_event)], self._graph.number[id(last_event)]))
        return ends

    def complaints(self, before: Rows) -> Iterator[tuple[int, str]]:
        """The number of the instruction, and what is wrong. `before`: the order of execution."""

        def is_ordered(ends: list[tuple[int, int]] | None) -> bool:
            return ends is None or any(first == last or before[first] >> last & 1 for first, last in ends)

        for changes, between in zip(self._pools, self._between, strict=True):
            warps: dict[int, list[int]] = {}
            for number, change in enumerate(changes):
                warps.setdefault(self._run.threads[change.places[0][0]].warp, []).append(number)
            after = [sum(is_ordered(ends) << later for later, ends in enumerate(row)) for row in between]
            pool = _Pool(changes, list(warps.values()), after)
            waiting = sum((change.taken > 0) << number for number, change in enumerate(changes))
            while served := sum(1 << it for it in bits(waiting) if pool.is_enough(it, waiting)):
                waiting &= ~served
            for number in bits(waiting):
                yield changes[number].at, "in another schedule it may have to wait for registers that others hold"


class _Pool(NamedTuple):
    """The registers of a CTA: its `changes` by number, those of each of its `warps` in program order, and which come
    `after` each in every schedule."""

    changes: list[RegisterChange]
    warps: list[list[int]]
    after: list[int]

    def is_enough(self, number: int, waiting: int) -> bool:
        """True if an inc finds enough in every schedule. `waiting`: the incs of which this is not known."""
        first, own = self.changes[0], self.changes[number]
        others = [it for it in bits(waiting & ~self.after[number]) if it != number and not self.after[it] >> number & 1]
        pool = first.left + first.taken
        for warp in self.warps:
            if number in warp:
                pool -= sum(self.changes[it].taken for it in warp[: warp.index(number)])
            else:
                pool -= self._most_taken(warp, number, others)
        return pool >= own.taken

    def _most_taken(self, warp: list[int], number: int, others: list[int]) -> int:
        """What a warp holds more than at first, at most, while an inc of another one waits. `others`: incs that may
        wait at that time."""
        stops = sum(1 << it for it in others)
        for other in others:
            stops |= 0 if other in warp else self.after[other]
        taken, most = 0, None
        for it in warp:
            if self.after[number] >> it & 1:
                break
            if stops >> it & 1 and not self.after[it] >> number & 1:
                most = taken if most is None else max(most, taken)
            taken += self.changes[it].taken
        return taken if most is None else max(most, taken)


def _ordered(
    levels: dict[int, list[int]], before: Rows, instruction: Callable[[int], PtxInstruction], what: str
) -> list[str]:
    complaints = []
    for level, members in levels.items():
        for arrival in members:
            for later in levels.get(level + 1, ()):
                if not before[arrival] >> later & 1:
                    lines = f"lines {instruction(arrival).line} and {instruction(later).line}"
                    complaints.append(f"{lines}: {what} that follow one another are not ordered")
    return complaints


def residents(run: LaunchTrace, entry: PtxFunction, chosen: frozenset[int]) -> dict[str, str]:
    """The loops in which a CTA waits for a write of another CTA, which must be resident at that time, as assumptions.

    `chosen`: the instructions on whose results the run depends.
    """
    waits: dict[int, None] = {}
    for thread in run.threads:
        for event in thread.events:
            source = event.source
            if source is None or event.at not in chosen or not _in_loop(entry, event.at):
                continue
            other = run.threads[source.thread]
            if other.cta != thread.cta and (other.place.cluster is None or other.place.cluster != thread.place.cluster):
                waits[event.at] = None
    lines = [instruction.line for instruction in entry.body or ()]
    return {f"line {lines[at]}: all CTAs are resident where one waits for another": RESIDENT for at in waits}


def given_columns(run: LaunchTrace, entry: PtxFunction) -> dict[str, str]:
    """The first address of tensor memory that comes from no value in memory, as an assumption: PTX does not say which
    columns an allocation gets. Where it gets all of them, it does.
    """
    users = {
        event.at: event
        for thread in run.threads
        for event in thread.events
        if event.owners and any(owner is not event and owner.note != (COLUMNS,) for owner in event.owners)
    }
    if not users:
        return {}
    loaded = from_memory(entry)
    for at, event in sorted(users.items(), key=lambda item: item[0]):
        instruction = body_of(entry)[at].instruction
        freed = instruction.operands[:1] if isinstance(event.label, Allocates) else ()
        for operand in (*freed, *(one for one in instruction.operands if isinstance(one, Mem))):
            if loaded.isdisjoint(registers(operand)):
                return {f"line {instruction.line}: {FIRST_COLUMNS}": "the address that tcgen05.alloc writes"}
    return {}


def _in_loop(entry: PtxFunction, at: int) -> bool:
    """True if a later branch leads back to the instruction or before it."""
    return any(target <= at for does in body_of(entry)[at:] for target in does.targets)


def strong_sizes(run: LaunchTrace, body: tuple[PtxInstruction, ...]) -> list[str]:
    """Strong accesses that overlap in part: their races are not judged."""
    extents: dict[Block, dict[tuple[int, int], TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.strong():
            assert event.block is not None
            extents.setdefault(event.block, {}).setdefault((event.first, event.size), event)
    complaints = []
    for places in extents.values():
        end, last = -1, None
        for (first, size), event in sorted(places.items(), key=lambda item: item[0]):
            if last is not None and first < end:
                lines = sorted({body[last.at].line, body[event.at].line})
                complaints.append(f"lines {' and '.join(map(str, lines))}: strong accesses of different sizes overlap")
            if first + size > end:
                end, last = first + size, event
    return list(dict.fromkeys(complaints))
