"""Why a wait for an mbarrier object has not seen an arrival or a signal.

In: an execution, the two events. Out: a reason.
"""

from __future__ import annotations

from itertools import combinations

from memmodel.base.labels import Access, Action, Side, Signal
from memmodel.base.rows import bits
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.execution import Execution
from memmodel.concrete.mbarriers import ObjectUse
from memmodel.concrete.records import ObjectRecord
from memmodel.memory.bytes import Cell
from memmodel.why.flow import Flow
from memmodel.why.records import Reason


def phase_reason(execution: Execution, flow: Flow, update: int, wait: int) -> Reason:
    """Why a wait has not seen an update of its object: it asks for the other parity, the update comes in a later phase,
    or the phase ends too early.

    It asks for the other parity if it sees nothing that its thread has not waited for before.
    """
    waited = execution.frame.record_of(execution.events[wait])
    assert isinstance(waited, ObjectRecord)
    if sees_nothing_new(execution, wait):
        return Reason.PARITY if waited.parity is not None else Reason.EARLIER_PHASE
    if over_before(execution, flow, update, wait) is not None:
        return Reason.EARLIER_PHASE
    seen, arrivals = execution.relation("mbarobs"), execution.set("ARRIVEON")
    uses = [(n, execution.frame.record_of(event)) for n, event in enumerate(execution.events)]
    own = [(n, use) for n, use in uses if isinstance(use, ObjectRecord) and use.object == waited.object]
    expecting = [n for n, use in own if use.bytes and arrivals >> n & 1]
    # If no arrival that expects bytes was seen, other arrivals were enough to end the phase.
    counted = bool(expecting) and not any(seen[n] >> wait & 1 for n in expecting)
    in_bytes = any(use.bytes or use.action is Action.COMPLETE_TX for _, use in own)
    signal = isinstance(execution.events[update].label, Signal)
    return Reason.BYTES if in_bytes and signal and not counted else Reason.COUNT


def sees_nothing_new(execution: Execution, wait: int) -> bool:
    """True if a wait sees nothing that its thread has not waited for before."""
    thread, order = execution.events[wait].point.thread, execution.relation("po")
    phases_seen = [row for row in execution.relation("mbarobs") if row >> wait & 1]
    earlier = sum(
        1 << n for n, row in enumerate(order) if row >> wait & 1 and execution.events[n].point.thread == thread
    )
    return all(row & earlier for row in phases_seen)


def broken_rule(execution: Execution, event: int) -> str | None:
    """Why an operation breaks the rules of its mbarrier object; None for one that breaks none."""
    record = execution.frame.record_of(execution.events[event])
    if not isinstance(record, ObjectRecord):
        return None
    uses = next(uses for uses in Assembly(execution.frame).objects if uses.cell == record.object)
    walk = uses.walk_of(execution.relation("mbar"))
    before = next((n for n, use in zip(walk.counts, walk.order, strict=False) if use.event == event), None)
    if before is None:
        return None
    return before.complaint(record.action, record.count, record.bytes, no_complete=record.no_complete) or None


def over_before(execution: Execution, flow: Flow, update: int, wait: int) -> int | None:
    """A wait that comes before an update, or before another wait in its thread, and has seen the phase over for which
    this one waits; None without one."""
    seen, order = execution.relation("mbarobs"), execution.relation("po")
    others = [
        number
        for number in bits(execution.set("MBDONE"))
        if number != wait and all(row >> number & 1 for row in seen if row >> wait & 1)
    ]
    own = next((other for other in others if order[other] >> wait & 1), None)
    return own if own is not None else next((other for other in others if flow.surely_leads(other, update)), None)


def copied(execution: Execution, *signals: int) -> set[object]:
    """The places that the copies have written of whose end signals tell; reductions add up, and do not count."""
    ends = sum(1 << signal for signal in signals)
    completed = (n for n, row in enumerate(execution.relation("compl")) if row & ends)
    labels = ((execution.events[n].label, execution.events[n].point.cell) for n in completed)
    return {cell for label, cell in labels if isinstance(label, Access) and label.side is Side.WRITE and not label.rmw}


def came_early(execution: Execution, wait: int) -> bool:
    """True if bytes of a later phase completed the phase that the wait saw: two copies by a thread to one place."""
    events, phases_seen = execution.events, execution.relation("mbarobs")
    signals = [n for n, row in enumerate(phases_seen) if row >> wait & 1 and isinstance(events[n].label, Signal)]
    return any(
        events[a].point.thread == events[b].point.thread and copied(execution, a) & copied(execution, b)
        for a, b in combinations(signals, 2)
    )


def expected_late(execution: Execution, wait: int) -> tuple[int, int] | None:
    """An expect_tx and the arrival before it that ends the phase that a wait sees, of its thread if it has one; None
    without one."""
    waited = execution.frame.record_of(execution.events[wait])
    seen, program, on_object = (execution.relation(name) for name in ("mbarobs", "po", "mbar"))
    arrivals = [n for n in bits(execution.set("ARRIVEON")) if seen[n] >> wait & 1]
    for order in (program, on_object):
        for number, event in enumerate(execution.events):
            use = execution.frame.record_of(event)
            if isinstance(use, ObjectRecord) and isinstance(waited, ObjectRecord) and use.object == waited.object:
                arrival = next((n for n in reversed(arrivals) if order[n] >> number & 1), None)
                if use.action is Action.EXPECT_TX and arrival is not None:
                    return number, arrival
    return None


def told_on_another(execution: Execution, wait: int) -> tuple[int, Cell] | None:
    """The last signal on the object of a wait that brings more than is expected there, where just as much is expected
    on another object and does not come; with that object."""
    waited = execution.frame.record_of(execution.events[wait])
    objects = {uses.cell: uses.updates for uses in Assembly(execution.frame).objects}
    missing = {cell: sum(map(_expects, updates)) for cell, updates in objects.items()}
    if not isinstance(waited, ObjectRecord):
        return None
    for use in reversed(objects[waited.object]):
        other = next((cell for cell, left in missing.items() if left == use.record.bytes > 0), None)
        if use.record.action is Action.COMPLETE_TX and other is not None and missing[waited.object] < 0:
            return use.event, other
    return None


def _expects(use: ObjectUse) -> int:
    """The bytes that an operation expects; those that it completes count against them."""
    return -use.record.bytes if use.record.action is Action.COMPLETE_TX else use.record.bytes


def waited_again(execution: Execution, event: int) -> tuple[int, int] | None:
    """The last wait of a thread before an event, and an earlier one that has seen all that it sees; None without."""
    seen, order = execution.relation("mbarobs"), execution.relation("po")
    waits = [n for n in bits(execution.set("MBDONE")) if order[n] >> event & 1]
    last = max(waits, key=lambda n: execution.events[n].point.order or 0, default=None)
    if last is None:
        return None
    phases_seen = [row for row in seen if row >> last & 1]
    return next(
        ((last, other) for other in waits if order[other] >> last & 1 and all(row >> other & 1 for row in phases_seen)),
        None,
    )
