"""Waits that would have seen an arrival or a signal which they have not seen."""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.rows import Rows, bits
from memmodel.why.alter import Alteration
from memmodel.why.changes.situation import Change, Situation
from memmodel.why.phases import came_early, copied, phase_reason, sees_nothing_new
from memmodel.why.records import Reason


def of_phases(asked: Situation) -> Iterator[Change]:
    """A wait that saw its phase end before an arrival or signal which it was meant for."""
    seen, same = asked.execution.relation("mbarobs"), asked.execution.relation("samebar")
    done = bits(asked.execution.set("MBDONE"))
    updates = bits(asked.execution.set("ARRIVEON") | asked.execution.set("SIGNAL"))
    for update in updates:
        for wait in done:
            if not same[update] >> wait & 1 or seen[update] >> wait & 1 or asked.flow.surely_leads(wait, update):
                continue
            if asked.pair is not None and not any(
                (a == update or asked.flow.leads(a, update)) and asked.flow.leads(wait, b)
                for a, b in (asked.pair, asked.pair[::-1])
            ):
                continue
            edges = (("mbarobs", update, wait),)
            reason = phase_reason(asked.execution, asked.flow, update, wait)
            earlier = [n for n in _earlier(asked, update, wait, seen) if n in updates]
            idle = reason is Reason.EARLIER_PHASE and sees_nothing_new(asked.execution, wait)
            if reason in (Reason.COUNT, Reason.EARLIER_PHASE) and earlier and not idle:
                continue  # the thread arrived in the phase that the wait saw: this arrival is for a later one
            if reason is Reason.BYTES and (
                copied(asked.execution, update) & copied(asked.execution, *earlier) or came_early(asked.execution, wait)
            ):
                continue  # a thread's later copy to the same place is for a later phase
            cost = 2.7 if reason is Reason.PARITY else 2.8
            yield Change(reason, Alteration((), (), edges), update, wait, "", 1, cost)


def _earlier(asked: Situation, update: int, wait: int, seen: Rows) -> list[int]:
    """What a wait has seen of what the thread of an update did before it."""
    thread, at = asked.events[update].point.thread, asked.flow.in_po(update)
    return [
        n
        for n, row in enumerate(seen)
        if row >> wait & 1 and asked.events[n].point.thread == thread and asked.po[asked.flow.in_po(n)] >> at & 1
    ]
