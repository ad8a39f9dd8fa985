"""Waits for phases that one execution of a test without waits allows, all at once.

In: an execution in which every thread ends, as the test wants it; the waits that are offered. Out: for each two
accesses that conflict, waits in front of the later one, for the phases that the thread of the earlier one arrives in
after it. Settled here: a wait that would come before an arrival of its own phase is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from memmodel.base.rows import Rows, bits, inverse, pairs_of
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.execution import Execution
from memmodel.repair.edits import Edit
from memmodel.repair.guided import instruction_of
from memmodel.why.flow import Flow

Phase = tuple[str, object, int, frozenset[int]]
"""The operand that names an object in its own CTA, that CTA, the number of a phase, the events that complete it."""


def phase_waits(execution: Execution, waits: dict[tuple[Any, ...], Edit]) -> list[Edit]:
    """The waits to make, one at a place. `waits`: those offered, by thread, instruction, operand and parity."""
    flow = Flow(execution)
    happens, ordered = _Reach(execution, ()), _Reach(execution, _conflicts(execution))
    phases = list(_phases(execution))
    chosen: dict[tuple[int, int], Edit] = {}

    def turn(pair: tuple[int, int]) -> tuple[bool, int]:
        """Other threads first: what a thread waits for in one of its own accesses may be known then."""
        return flow.thread(pair[0]) == flow.thread(pair[1]), ordered.depth(pair[1])

    for first, second in sorted(_conflicts(execution), key=turn):
        issue = flow.in_po(second)
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
            place = _nearest(waits, chosen, instruction_of(execution, issue), operand, str(number % 2))
            if place is not None:
                chosen[place] = waits[*place, operand, str(number % 2)]
                happens.add(updates, issue)
                ordered.add(updates, issue)
    return list(chosen.values())


class _Reach:
    """What comes before what in an execution: in program order, by completion, by other pairs and edges added."""

    def __init__(self, execution: Execution, pairs: Iterable[tuple[int, int]]) -> None:
        rows = list(execution.relation("po"))
        for name in ("iss", "compl", "complwg"):
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


def _union(rows: Rows, events: int) -> int:
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
) -> tuple[int, int] | None:
    """Where a wait is offered: in front of an instruction, or at the last place before it that is not taken."""
    if place is None:
        return None
    thread, last = place
    indices = (index for number, index, *phase in waits if number == thread and phase == [operand, parity])
    return max(((thread, index) for index in indices if index <= last and (thread, index) not in taken), default=None)
