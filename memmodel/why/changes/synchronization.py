"""Hand-overs where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memmodel.base.labels import Action, Barrier, Domain, Fence, GroupWait, Half, Mark, Marker, Mbarrier, ProxyFence
from memmodel.base.rows import bits, pairs_of
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.changes.completion import LAST, about_an_earlier_copy
from memmodel.why.changes.situation import Change, Situation, insertion
from memmodel.why.present.apart import synchronizes
from memmodel.why.records import Reason

FENCES = (Fence, ProxyFence, Mark, GroupWait)
"""What may have to stand between an access and the synchronization that is about it."""

_FIRST = 8
"""Pairs between which a third thread is looked for."""


def of_synchronization(asked: Situation) -> Iterator[Change]:
    """Synchronization where there is none."""
    about = asked.sources
    early = [(read, write) for read, write in _early(asked) if not about or about >> read & 1]
    pairs = [asked.pair, asked.pair[::-1]] if asked.pair is not None else [*_overtaken(asked), *early]
    lost = {pair: updates for pair in pairs if (updates := _lost_updates(asked, *pair))}
    concerned = {(a, b) for a, b in pairs if about & (1 << a | 1 << b | lost.get((a, b), 0)) or _tells_nobody(asked, a)}
    handed_over = asked.flow.reach_by(link for link in asked.flow.links if synchronizes(asked.execution, link))
    turns = _later_first(asked, pairs)
    pairs.sort(
        key=lambda pair: (
            _uses_what_ended(asked, *pair),
            bool(handed_over[asked.flow.in_po(pair[1])] >> asked.flow.in_po(pair[0]) & 1),  # against the order there is
            asked.flow.leads(*pair[::-1]),
            pair not in concerned,
            pair not in lost,
            turns[pair],
        )
    )
    for number, (a, b) in enumerate(pairs):
        start, end = asked.flow.in_po(a), asked.flow.in_po(b)
        first, second = asked.events[start].point, asked.events[end].point
        if first.thread is None or second.thread is None or first.thread == second.thread:
            continue
        if asked.flow.surely_leads(b, a):
            continue  # the order that there is goes the other way
        if asked.in_tensor_memory(a):  # dearer than the hand-over, in front of which it stands
            last, words = asked.last_of(FENCES, start), Marker.BEFORE.value
            mark = Mark(Marker.BEFORE)
            yield insertion(Reason.TCGEN05_FENCE, last, mark, words, after=True, tier=3, cost=11.0 + number / 100)
        meeting = _meeting(asked, a, b, 10.0 + number / 100)
        backward = asked.flow.is_async(a) and about_an_earlier_copy(asked, a)  # the other one is meant
        yield replace(meeting, tier=LAST) if backward else meeting
        if number < _FIRST and not asked.in_dependent_grid(start, end):
            yield from _passed_on(asked, a, b, 9.0 + number / 100)


def _later_first(asked: Situation, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Numbers for pairs, in their order; of a write and several reads by one thread, the last read has the least."""
    first: dict[tuple[int, int | None], int] = {}
    turns = {}
    for number, (a, b) in enumerate(pairs):
        at = asked.events[asked.flow.in_po(b)].point
        turns[a, b] = (first.setdefault((a, at.thread), number), -(at.order or 0))
    return turns


def _uses_what_ended(asked: Situation, first: int, second: int) -> bool:
    """True if the first event invalidates an object, and the second one is no init of it: it has to come before."""
    actions = [label.action if isinstance(label := asked.events[n].label, Mbarrier) else None for n in (first, second)]
    return actions[0] is Action.INVAL and actions[1] is not Action.INIT


def _lost_updates(asked: Situation, write: int, read: int) -> int:
    """The later writes of the reading thread to the same place, before which the write comes."""
    later = bits(asked.po[read] & asked.execution.relation("co")[write])
    return sum(1 << n for n in later if asked.events[n].point.cell == asked.events[read].point.cell)


def _tells_nobody(asked: Situation, event: int) -> bool:
    """True if the thread of an event arrives later on an mbarrier object that no thread tests."""
    same, tests = asked.execution.relation("samebar"), asked.execution.set("MBTEST")
    arrivals = asked.po[asked.flow.in_po(event)] & asked.execution.set("ARRIVEON")
    return any(not same[arrival] & tests for arrival in bits(arrivals))


def _meeting(asked: Situation, a: int, b: int, cost: float) -> Change:
    """A hand-over from one event to another one."""
    start, end = asked.flow.in_po(a), asked.flow.in_po(b)
    last = asked.last_of(FENCES, start)
    later = min(bits(asked.po[last]), key=lambda n: asked.events[n].point.order or 0, default=None)
    beside = (last, True) if later is None else (later, False)  # behind fences that are put after the last one
    domain = Domain.GRID if asked.in_dependent_grid(start, end) else Domain.CTA
    arrive = Inserted(beside[0], Barrier(Half.ARRIVE, domain, ends=domain is Domain.GRID), after=beside[1])
    wait = Inserted(_in_front(asked, b, end), Barrier(Half.WAIT, domain))
    edges = [("syncbar", asked.count, asked.count + 1)]
    if start != a:
        edges += [("compl", a, asked.count)]
    return Change(Reason.NO_SYNCHRONIZATION, Alteration((), (arrive, wait), tuple(edges)), a, b, "", 3, cost)


def _in_front(asked: Situation, access: int, issue: int) -> int:
    """The event before which a thread has to hear of others: an access or the fences at once before it; of an
    asynchronous access also a proxy fence from which only arrivals separate it."""
    front = asked.last_of(FENCES, issue, back=True)
    if not asked.flow.is_async(access):
        return front
    earlier = [n for n, row in enumerate(asked.po) if row >> front & 1]
    for number in sorted(earlier, key=lambda n: asked.events[n].point.order or 0, reverse=True):
        label = asked.events[number].label
        if isinstance(label, ProxyFence):
            return asked.last_of(FENCES, number, back=True)
        if not (isinstance(label, Mbarrier) and label.action in (Action.ARRIVE, Action.EXPECT_TX)):
            break
    return front


def _passed_on(asked: Situation, a: int, b: int, cost: float) -> Iterator[Change]:
    """Hand-overs inside the CTA of the second access, where the first comes from another CTA: from the last event
    of each thread there that the first access leads to."""
    threads: dict[int, list[int]] = {}
    for number, event in enumerate(asked.events):
        if event.point.thread is not None and event.point.order is not None and asked.flow.leads(a, number):
            threads.setdefault(event.point.thread, []).append(number)
    for thread, reached in threads.items():
        last = max(reached, key=lambda number: asked.events[number].point.order or 0)
        elsewhere = thread not in (
            asked.flow.thread(asked.flow.in_po(a)),
            asked.flow.thread(asked.flow.in_po(b)),
        )
        if elsewhere and asked.in_one_cta(last, b) and not asked.in_one_cta(a, b):
            yield _meeting(asked, last, b, cost)


def _overtaken(asked: Situation) -> list[tuple[int, int]]:
    """Writes and the reads that read something older."""
    rf, co = asked.execution.relation("rf"), asked.execution.relation("co")
    pairs = []
    for write, read in pairs_of(rf):
        pairs += [(later, read) for later in bits(co[write])]
    return pairs


def _early(asked: Situation) -> list[tuple[int, int]]:
    """Reads and the writes that they read."""
    return [(read, write) for write, read in pairs_of(asked.execution.relation("rf"))]
