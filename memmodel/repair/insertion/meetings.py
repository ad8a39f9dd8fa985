"""Barriers at which two threads meet between two accesses that nothing orders.

In: a lowered test, its counterexamples. Out: edits, each of which puts a barrier into two threads.
Settled here: the threads of one CTA meet at bar.sync, the two threads of a cluster of two at barrier.cluster. Those who
meet are threads of the two accesses, or others: one that sees what the first did, one from which the second hears.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from memmodel.answer import ShownEvent, Witness
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import CommitGroup, Emit, Op, WaitForGroups
from memmodel.repair.costs import SCOPE_COST, SEM_FACTOR, WAIT
from memmodel.repair.edits import Edit
from memmodel.repair.guided import diagnosis
from memmodel.repair.insertion.gaps import Opening, gaps
from memmodel.repair.judge import TextCounterexample
from memmodel.why.changes.synchronization import FENCES
from memmodel.why.flow import Flow
from memmodel.why.story import execution_of

WARP = 32
MOST_PAIRS = 8
RELEASES = SCOPE_COST["cluster"] * SEM_FACTOR["release"]
"""What a barrier of the cluster costs less where its arrive is relaxed."""

FIRST, LAST = -1, 8
"""The turn of a barrier among what is put into one gap: behind all else, or, for who only waits there, before it."""


def meetings(lowered: LoweredTest, known: Iterable[TextCounterexample]) -> list[Edit]:
    """For each pair of accesses that a finding names: a barrier after the one and before the other."""
    edits: dict[frozenset[tuple[int, str]], Edit] = {}
    for counterexample in known:
        for shown_event, other in pairs_of_accesses(counterexample):
            for first, second in _around(counterexample.witness, shown_event, other):
                for edit in _between(lowered, first, second):
                    edits.setdefault(frozenset((part.start, part.text) for part in (edit, *edit.more)), edit)
                if len(edits) >= MOST_PAIRS:
                    return list(edits.values())[:MOST_PAIRS]
    return list(edits.values())


def _around(witness: Witness, event: ShownEvent, other: ShownEvent) -> list[tuple[ShownEvent, ShownEvent]]:
    """Between what a barrier would order two accesses: the two, then others to which or from which a way leads."""
    direct = [(event, other), (other, event)]
    execution = execution_of(witness)
    if execution is None:
        return direct
    shown, flow = {event.uid: event for event in witness.events}, Flow(execution)
    ways = []
    for first, second in direct:
        begins, ends = _heard(flow, shown, first.uid), _heard(flow, shown, second.uid, back=True)
        ways += [(begin, end) for begin in begins for end in ends if begin.thread != end.thread]
    return list(dict.fromkeys((*direct, *ways)))


def _heard(flow: Flow, shown: dict[int, ShownEvent], event: int, *, back: bool = False) -> list[ShownEvent]:
    """The event itself, and of each other thread the first to which a way leads from it, or (`back`) the last back."""
    by_thread: dict[int | None, int] = {flow.thread(event): event} if not (flow.is_async(event) and not back) else {}
    for number in sorted(shown, key=lambda n: (flow.events[n].point.order or 0) * (-1 if back else 1)):
        point = flow.events[number].point
        if point.thread is None or point.order is None or flow.is_async(number):
            continue
        if flow.leads(number, event) if back else flow.leads(event, number):
            by_thread.setdefault(point.thread, number)
    return [shown[number] for number in by_thread.values()]


def pairs_of_accesses(counterexample: TextCounterexample) -> list[tuple[ShownEvent, ShownEvent]]:
    """The two accesses of a finding; those between which an outcome's explanation misses synchronization."""
    finding = counterexample.finding
    if finding is not None:
        return [] if finding.first is None or finding.second is None else [(finding.first, finding.second)]
    shown = {event.uid: event for event in counterexample.witness.events}
    explained = diagnosis(counterexample)
    changes = () if explained is None else explained.changes
    return [
        (shown[change.at], shown[change.other]) for change in changes if change.at in shown and change.other in shown
    ]


def _between(lowered: LoweredTest, first: ShownEvent, second: ShownEvent) -> Iterator[Edit]:
    from_place, to_place = instruction_of(lowered, first), instruction_of(lowered, second)
    if from_place is None or to_place is None or from_place[0] == to_place[0]:
        return
    barrier = barrier_of_two(lowered, from_place[0], to_place[0])
    if barrier is None:
        return
    line, price = barrier
    relaxed = line.replace(".arrive;", ".arrive.relaxed;")
    seams = _seam(lowered, from_place, after=True), _seam(lowered, to_place, after=False)
    if None not in seams:
        for what, cost in dict.fromkeys(((relaxed, price - RELEASES * (relaxed != line)), barrier)):
            yield _meeting(seams, what, cost)  # type: ignore[arg-type]
    after = [gap for gap in gaps(lowered, from_place[0]) if gap.index > from_place[1]]
    begin = next((gap for gap in after if not (gap.ahead and _in_between(gap.ahead[0]))), None)
    before = [gap for gap in gaps(lowered, to_place[0]) if gap.index <= to_place[1] and not gap.last]
    end = before[-1] if before else None
    for gap in reversed(before[:-1]):
        if not _in_between(gap.ahead[0]):
            break
        end = gap
    if begin is None or end is None:
        return
    for gap in dict.fromkeys((begin, after[-1])):  # soon, or once the thread has done all that others wait for
        yield _meeting((gap, end), line, price)
    around = [gap for gap in gaps(lowered, to_place[0], branches=True) if gap.item.parts[0] == "bra"]
    earlier = [gap for gap in around if gap.index <= to_place[1] and not gap.last]
    if earlier:  # where the thread comes whether it takes the branch or not
        yield _meeting((begin, earlier[-1]), line, price)


def barriers_between(lowered: LoweredTest, pairs: Iterable[tuple[tuple[int, int], tuple[int, int]]]) -> list[Edit]:
    """For each two instructions, by thread and number, a barrier: behind what is put after the first one, and before
    what is put in front of the second one. Two threads that meet have a barrier of their own."""
    threads: dict[frozenset[int], int] = {}
    edits: dict[frozenset[tuple[int, str]], Edit] = {}
    for first, second in pairs:
        number = threads.setdefault(frozenset((first[0], second[0])), len(threads))
        barrier = barrier_of_two(lowered, first[0], second[0], number)
        begin = next((gap for gap in gaps(lowered, first[0]) if gap.index > first[1]), None)
        before = [gap for gap in gaps(lowered, second[0]) if gap.index <= second[1] and not gap.last]
        if barrier is not None and begin is not None and before:
            edit = _meeting((begin, before[-1]), *barrier, (LAST, FIRST))
            edits.setdefault(frozenset((part.start, part.text) for part in (edit, *edit.more)), edit)
    return list(edits.values())


def _meeting(places: tuple[Opening, Opening], line: str, price: float, turns: tuple[int, int] = (LAST, LAST)) -> Edit:
    inserted = [
        place.insertion(line, " ".join(line.split()), price, turn, name=line)
        for place, turn in zip(places, turns, strict=True)
    ]
    edit, other = sorted(inserted, key=lambda edit: edit.start)  # one change, whichever access comes first
    group = (*edit.group, *other.group)
    return replace(edit, what=f"{edit.what}; {other.what}", cost=edit.cost + other.cost, group=group, more=(other,))


def _seam(lowered: LoweredTest, at: tuple[int, int], *, after: bool) -> Opening | None:
    """The nearest gap between a fence that releases and one that acquires, where a relaxed barrier is enough."""
    thread, index = at
    names = [item.mnemonic for item in instructions(lowered.test.threads[thread])]
    openings = [
        gap
        for gap in gaps(lowered, thread)
        if not gap.last and gap.index > 0 and (gap.index > index if after else gap.index <= index)
        if "fence" in names[gap.index - 1] and ".acquire" not in names[gap.index - 1]
        if "fence" in names[gap.index] and ".release" not in names[gap.index]
    ]
    return None if not openings else openings[0] if after else openings[-1]


def _in_between(op: Op) -> bool:
    """True if an operation may stand between an access and the barrier: a fence, a commit or a wait for a group."""
    return isinstance(op, WaitForGroups | CommitGroup) or (isinstance(op, Emit) and isinstance(op.label, FENCES))


def instruction_of(lowered: LoweredTest, event: ShownEvent) -> tuple[int, int] | None:
    """The thread and the instruction of an event."""
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            if thread.name == event.thread and event.span is not None and item.span.start == event.span.start:
                return number, index
    return None


def barrier_of_two(lowered: LoweredTest, first: int, second: int, number: int = 0) -> tuple[str, float] | None:
    """The barrier at which two threads may meet, and its price for each. `number`: which of the unused barriers."""
    places = [thread.place for thread in lowered.test.threads]
    start, end = places[first], places[second]
    if start.cta_id == end.cta_id:
        others = sum(place.cta_id == start.cta_id for place in places)
        used = {int(number) for number in re.findall(r"\bbar(?:rier)?[\w.:]*\s+(\d+)", lowered.test.source.text)}
        free = [barrier for barrier in range(len(used) + number + 1) if barrier not in used][number]
        return (f"bar.sync {free};" if others == 2 else f"bar.sync {free}, {2 * WARP};"), WAIT + 1
    if start.cluster_id == end.cluster_id and sum(place.cluster_id == start.cluster_id for place in places) == 2:
        return "barrier.cluster.arrive;\nbarrier.cluster.wait;", WAIT + SCOPE_COST["cluster"]
    return None
