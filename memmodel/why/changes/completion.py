"""Waits for the end of asynchronous accesses, and arrivals beside their signals."""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Action, Family, Fence, GroupWait, Mark, Mbarrier, ProxyFence, Signal
from memmodel.base.rows import bits
from memmodel.concrete.records import ObjectRecord
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Scope, Sem
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.changes.situation import Change, Situation, is_told_elsewhere
from memmodel.why.records import Reason

LAST = 4
"""The tier of what is tried only where nothing else is enough."""


def of_waits(asked: Situation) -> Iterator[Change]:
    """Waits for the end of asynchronous accesses, where what comes later could need them."""
    completes = asked.execution.relation("compl")
    for event in range(asked.count):
        label = asked.events[event].label
        if not (isinstance(label, Access) and label.asynchronous) or (asked.pair and event not in asked.pair):
            continue
        issue = asked.flow.in_po(event)
        signalled = any(isinstance(asked.events[n].label, Signal) for n in bits(completes[event]))
        mine = asked.events[event].point.thread
        parts = [n for n in range(asked.count) if asked.flow.issue_of.get(n) == issue and asked.flow.is_memory(n)]
        own = label.family in (Family.TCGEN_LD, Family.TCGEN_ST)
        places = _later(asked, event)
        for place in [place for place in places if not is_told_elsewhere(asked.execution, event, place)] or places:
            core = label.family in (Family.MMA, Family.TCGEN_CP, Family.SHIFT)
            if not (signalled or core) and asked.events[place].point.thread != mine:
                continue
            wait = Inserted(place, GroupWait(label.family))
            edges = tuple(("compl", part, asked.count) for part in parts)
            if core:
                seen = any(completes[part] for part in parts)
                reason = Reason.NOT_WAITED if seen else Reason.TCGEN05_COMMIT
                signal = Inserted(issue, Signal(Action.ARRIVE, Scope.CLUSTER, Family.COMMIT), after=True)
                meets = ("mbarobs", asked.count, asked.count + 1)
                ends = tuple(("compl", part, asked.count + 1) for part in parts if not asked.in_tensor_memory(part))
                yield Change(reason, Alteration((), (signal, wait), (*edges, meets, *ends)), event, place, "", 1, 4.0)
            else:
                reason = Reason.TCGEN05_WAIT if own else Reason.NOT_WAITED
                tier = LAST if about_an_earlier_copy(asked, event) or gives_back_elsewhere(asked, event) else 1
                yield Change(reason, Alteration((), (wait,), edges), event, place, "", tier, 3.0)


def about_an_earlier_copy(asked: Situation, event: int) -> bool:
    """True if the other access is of another thread that has waited for the copy before this one to the same place, and
    has not accessed the place since: it comes before this copy."""
    cell, completes = asked.events[event].point.cell, asked.execution.relation("compl")
    issue, mine = asked.flow.in_po(event), asked.events[event].point.thread
    others = [n for n in range(asked.count) if asked.events[n].point.cell == cell and asked.flow.is_memory(n)]
    before = [n for n in others if asked.flow.is_async(n) and asked.po[asked.flow.in_po(n)] >> issue & 1]
    ends = [end for n in before if asked.events[n].point.thread == mine for end in bits(completes[n])]
    for access in (n for n in asked.pair or () if n != event):
        at = asked.flow.in_po(access)
        own = [n for n in others if n != access and asked.po[asked.flow.in_po(n)] >> at & 1]
        seen = any(asked.flow.leads(end, at) for end in ends) and asked.events[access].point.thread != mine
        if seen and not any(asked.flow.leads(end, asked.flow.in_po(n)) for end in ends for n in own):
            return True
    return False


def gives_back_elsewhere(asked: Situation, event: int) -> bool:
    """True if the thread of the other access arrives behind it on an object in another CTA than that of this name for
    which the thread of the copy has waited: it gives back what the copy overwrites, and tells the wrong CTA."""
    frame, issue = asked.execution.frame, asked.flow.in_po(event)
    waits = [n for n in bits(asked.execution.set("MBDONE")) if asked.po[n] >> issue & 1]
    awaited = {use.object for n in waits if isinstance(use := frame.record_of(asked.events[n]), ObjectRecord)}
    for access in (asked.flow.in_po(n) for n in asked.pair or () if n != event):
        for n in bits(asked.po[access] & asked.execution.set("ARRIVEON")):
            use = frame.record_of(asked.events[n])
            told = use.object if isinstance(use, ObjectRecord) else None
            if told is not None and told not in awaited and any(_alike(told, cell) for cell in awaited):
                return True
    return False


def _alike(one: Cell, other: Cell) -> bool:
    """True of the instances of one place in two CTAs."""
    return (one.instance.name, one.first) == (other.instance.name, other.first)


def _later(asked: Situation, event: int) -> list[int]:
    """The thread-level events before which the end of an asynchronous access may have to be known."""
    issue = asked.flow.in_po(event)
    sources = [
        asked.flow.in_po(link.first) for link in asked.links if asked.po[issue] >> asked.flow.in_po(link.first) & 1
    ]
    # What leads to the copy is over before it begins, and cannot wait for it; a write that it reads need not be.
    earlier = [n for n, row in enumerate(asked.po) if row >> issue & 1]
    others = [asked.flow.in_po(other) for other in asked.pair or () if other != event]
    others = [n for n in others if not any(n == before or asked.flow.leads(n, before) for before in earlier)]
    if asked.pair is None:
        cell = asked.events[event].point.cell
        others = [
            asked.flow.in_po(n)
            for n in range(asked.count)
            if n != event and cell and asked.events[n].point.cell == cell
        ]
    places = dict.fromkeys(
        asked.last_of((Mark, Fence, ProxyFence), n, back=True)
        for n in (*others, *sources)
        if asked.events[n].point.thread is not None
    )
    mine = asked.events[issue].point.thread
    return [
        n
        for n in places
        if n != issue
        and not asked.po[n] >> issue & 1
        and (asked.events[n].point.thread == mine or not asked.flow.surely_leads(n, event))
    ]


def of_signals(asked: Situation) -> Iterator[Change]:
    """An arrival by the thread itself beside that of its asynchronous operation."""
    for link in asked.links:
        if isinstance(asked.events[link.first].label, Signal):
            issue = asked.flow.in_po(link.first)
            arrive = Inserted(issue, Mbarrier(Action.ARRIVE, Sem.RELEASE, asked.common_scope(link, issue)), after=True)
            edges = (("mbarobs", asked.count, link.second),)
            yield Change(Reason.NOT_TRANSITIVE, Alteration((), (arrive,), edges), link.first, link.second, "", 1, 5.0)
