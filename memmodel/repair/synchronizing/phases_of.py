"""Waits for phases that one execution of a test without waits allows, all at once.

In: an execution in which every thread ends, as the test wants it; the waits that are offered. Out: for each two
accesses that conflict, waits in front of the later one, for the phases that the thread of the earlier one arrives in
after it; and the accesses of two threads between which no phase tells. Settled here: a wait that would come before an
arrival of its own phase is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memmodel.base.rows import Rows, bits, inverse, pairs_of
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.execution import Execution
from memmodel.repair.edits import Edit
from memmodel.repair.guided import instruction_of
from memmodel.repair.insertion.gaps import waiting
from memmodel.why.flow import Flow

Phase = tuple[str, object, int, frozenset[int]]
"""The operand that names an object in its own CTA, that CTA, the number of a phase, the events that complete it."""


@dataclass(frozen=True, slots=True)
class HandOvers:
    """`waits`: one at a place. `untold`: pairs of instructions of two threads, by thread and number; nothing that the
    first thread signals tells the second one of the access."""

    waits: list[Edit]
    untold: list[tuple[tuple[int, int], tuple[int, int]]]


def phase_waits(execution: Execution, waits: dict[tuple[Any, ...], Edit]) -> HandOvers:
    """The waits to make. `waits`: those offered, by thread, instruction, operand and parity."""
    flow = Flow(execution)
    happens, ordered = _Reach(execution, ()), _Reach(execution, _conflicts(execution))
    phases, flags = list(_phases(execution)), list(_polled(execution, flow))
    for write, read in flags:
        happens.add((write,), read)
        ordered.add((write,), read)
    chosen: dict[tuple[int, int], Edit] = {}

    def turn(pair: tuple[int, int]) -> tuple[bool, int]:
        """Other threads first: what a thread waits for in one of its own accesses may be known then."""
        return flow.thread(pair[0]) == flow.thread(pair[1]), ordered.depth(pair[1])

    conflicts = sorted(_conflicts(execution), key=turn)
    for first, second in conflicts:
        issue = _begins(execution, flow, second, phases)
        if flow.thread(issue) is None or (flow.thread(first) == flow.thread(issue) and not flow.is_async(first)):
            continue
        point = execution.events[issue].point
        own = None if point.place is None else point.place.cta_id
        for operand, cta, number, updates in _told(execution, flow, first, phases):
            if cta not in (None, own):
                continue
            known = all(happens.leads(update, issue) for update in updates)
            if known or any(ordered.leads(issue, update) for update in updates):
                continue
            mine = [
                instruction_of(execution, flow.in_po(it)) for it in updates if flow.thread(it) == flow.thread(issue)
            ]
            behind = max((at[1] for at in mine if at is not None), default=-1)
            place = _nearest(waits, chosen, instruction_of(execution, issue), operand, str(number % 2), behind)
            if place is not None:
                chosen[place] = waits[*place, operand, str(number % 2)]
                happens.add(updates, issue)
                ordered.add(updates, issue)
    return HandOvers(list(chosen.values()), list(_untold(execution, flow, happens, conflicts, flags)))


def _begins(execution: Execution, flow: Flow, access: int, phases: list[Phase]) -> int:
    """The event with which a thread begins an access: its issue, or an arrival before it that counts in the same phase
    as the end of the access.
    """
    issue = flow.in_po(access)
    ends = _union(execution.relation("compl"), execution.relation("iss")[issue])
    before = (
        update
        for _, _, _, updates in phases
        if any(ends >> update & 1 for update in updates)
        for update in updates
        if execution.relation("po")[update] >> issue & 1
    )
    return min(before, key=lambda event: execution.events[event].point.order or 0, default=issue)


def _polled(execution: Execution, flow: Flow) -> Iterator[tuple[int, int]]:
    """Writes of other threads with the reads that end loops which wait for them."""
    lowered = execution.frame.lowered
    spins = [waiting(lowered, number) for number in range(len(lowered.test.threads))]
    for write, read in pairs_of(execution.relation("rf")):
        place = instruction_of(execution, read)
        if place is not None and place[1] in spins[place[0]] and flow.thread(write) not in (None, place[0]):
            yield write, read


def _untold(
    execution: Execution,
    flow: Flow,
    happens: _Reach,
    conflicts: Iterable[tuple[int, int]],
    flags: Sequence[tuple[int, int]],
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The places of accesses of two threads that neither waits nor those places before them order. Where the threads
    are in two CTAs, what is missing may be on both sides of a flag."""
    for first, second in conflicts:
        start, end = flow.in_po(first), flow.in_po(second)
        if None in (flow.thread(start), flow.thread(end)) or happens.leads(first, end):
            continue
        ctas = [_cta(execution, event) for event in (start, end)]
        ways = [(write, read) for write, read in flags if [_cta(execution, it) for it in (write, read)] == ctas]
        ends = (start, end) if ctas[0] == ctas[1] or not ways else (start, *ways[0], end)
        for one, other in zip(ends[::2], ends[1::2], strict=True):
            places = instruction_of(execution, one), instruction_of(execution, other)
            if places[0] is not None and places[1] is not None and places[0][0] != places[1][0]:
                happens.add((first, one), other)
                yield places[0], places[1]


def _cta(execution: Execution, event: int) -> object:
    place = execution.events[event].point.place
    return None if place is None else place.cta_id


class _Reach:
    """What comes before what in an execution: in program order, by completion, by what waits there are, by other pairs
    and edges added."""

    def __init__(self, execution: Execution, pairs: Iterable[tuple[int, int]]) -> None:
        rows = list(execution.relation("po"))
        for name in ("iss", "compl", "complwg", "syncbar", "mbarobs"):
            rows = [a | b for a, b in zip(rows, execution.relation(name), strict=True)]
        self.rows: Rows = rows
        for first, second in pairs:
            self.rows[first] |= 1 << second

    def leads(self, first: int, second: int) -> bool:
        """True if one event is the other one, or comes before it."""
        return bool(self._from(first) >> second & 1)

    def depth(self, event: int) -> int:
        """How many events come before one."""
        return sum(self.leads(number, event) for number in range(len(self.rows)))

    def _from(self, first: int) -> int:
        seen, todo = 0, 1 << first
        while todo:
            seen |= todo
            todo = _union(self.rows, todo) & ~seen
        return seen

    def add(self, firsts: Iterable[int], second: int) -> None:
        for first in firsts:
            self.rows[first] |= 1 << second


def _union(rows: Sequence[int], events: int) -> int:
    union = 0
    for event in bits(events):
        union |= rows[event]
    return union


def _conflicts(execution: Execution) -> Iterator[tuple[int, int]]:
    """Accesses to one place of which one writes, in the order that the execution has them in."""
    reads_from, order = execution.relation("rf"), execution.relation("co")
    yield from pairs_of(reads_from)
    yield from pairs_of(order)
    source = inverse(reads_from)
    for read, writes in enumerate(source):
        for write in bits(writes):
            yield from ((read, later) for later in bits(order[write]) if later != read)


def _phases(execution: Execution) -> Iterator[Phase]:
    """The phases that are over at the end."""
    for uses in Assembly(execution.frame).objects:
        walk = uses.walk_of(execution.relation("mbar"))
        updates: dict[int, set[int]] = {}
        for use, state in zip(walk.order, walk.counts, strict=False):
            updates.setdefault(state.over, set()).add(use.event)
        cell = uses.cell
        operand = f"[{cell.instance.name}{f'+{cell.first}' if cell.first else ''}]"
        for number, events in updates.items():
            if number < walk.counts[-1].over:
                yield operand, cell.instance.owner, number, frozenset(events)


def _told(execution: Execution, flow: Flow, event: int, phases: list[Phase]) -> Iterator[Phase]:
    """Of each object the first phase in which a signal or an arrival tells of an access."""
    telling = execution.relation("compl")[event] | execution.relation("po")[flow.in_po(event)]
    seen: set[tuple[str, object]] = set()
    for operand, cta, number, updates in sorted(phases, key=lambda phase: phase[2]):
        if (operand, cta) not in seen and any(telling >> update & 1 for update in updates):
            seen.add((operand, cta))
            yield operand, cta, number, updates


def _nearest(
    waits: dict[tuple[Any, ...], Edit],
    taken: Container[tuple[int, int]],
    place: tuple[int, int] | None,
    operand: str,
    parity: str,
    behind: int = -1,
) -> tuple[int, int] | None:
    """Where a wait is offered: in front of an instruction, or at the last place before it that is not taken, behind
    the arrivals of its own thread."""
    if place is None:
        return None
    thread, last = place
    mine = (index for number, index, *phase in waits if number == thread and phase == [operand, parity])
    free = ((thread, index) for index in mine if behind < index <= last and (thread, index) not in taken)
    return max(free, default=None)
