"""Why a thread waits for ever: what it waits for, who would have to do it, and what would let it go on.

In: the witness of a hang. Out: `HangExplanation`. Counting is exact, so the reasons are read off the objects and
barriers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memmodel.answer import Witness
from memmodel.base.labels import Access, Action, Domain, Half
from memmodel.base.oneline import count
from memmodel.base.points import BarrierId
from memmodel.base.rows import bits, pairs_of
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.execution import Execution
from memmodel.concrete.records import AccessRecord, BarrierRecord, End, ObjectRecord, Record
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Thread
from memmodel.memory.bytes import Cell, Instance
from memmodel.program.ops import AtBarrier
from memmodel.program.spelling import spell_cell
from memmodel.why.polls import comparisons
from memmodel.why.records import HangExplanation, Reason, Waiting
from memmodel.why.story import execution_of


def stuck(witness: Witness) -> HangExplanation:
    """Who waits in a hang, and for what."""
    execution = execution_of(witness)
    if execution is None:
        return HangExplanation(tuple(Waiting("", text, Reason.COUNT, "") for text in witness.waits), witness)
    frame = execution.frame
    stopped = [n for n, trace in enumerate(frame.traces) if trace.ending.end is End.WAITS]
    causes = {thread: _cause(execution, thread, stopped) for thread in stopped}
    waiting = []
    for thread, text in zip(stopped, witness.waits, strict=True):
        cause = causes[thread]
        mutual = not cause.others or thread in _waited_for(thread, causes)
        step = frame.lowered.programs[thread].steps[frame.traces[thread].ending.step]
        name = frame.lowered.test.threads[thread].name
        reason = cause.reason if mutual else Reason.OTHER_THREAD_WAITS
        waiting.append(Waiting(name, text, reason, cause.goes_on, step.instruction.span))
    return HangExplanation(tuple(waiting), witness)


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a thread waits. `others`: the waiting threads that would let it go on."""

    reason: Reason
    goes_on: str
    others: tuple[int, ...] = ()


def _waited_for(thread: int, causes: Mapping[int, _Cause]) -> set[int]:
    """The threads for which a thread waits, and for which these wait, and so on."""
    reached: set[int] = set()
    left = [*causes[thread].others]
    while left:
        other = left.pop()
        if other not in reached:
            reached.add(other)
            left += causes[other].others
    return reached


def _cause(execution: Execution, thread: int, stopped: list[int]) -> _Cause:
    frame = execution.frame
    ending = frame.traces[thread].ending
    records = frame.traces[thread].records
    if ending.first is None:
        return _at_barrier(execution, thread, stopped)
    for record in records[ending.first :]:
        if isinstance(record, ObjectRecord):
            return _at_object(execution, record, thread, stopped)
    for record in records[ending.first :]:
        if isinstance(record, AccessRecord) and isinstance(record.label, Access):
            place = _cell_read(execution, thread, record)
            action = None if place is None else _missing_action(execution, stopped, thread, place.instance)
            if action is not None:
                held = "" if place is None else _held(execution, place, action.thread)
                return _Cause(Reason.DEADLOCK, f"{action.text} before its own wait{held}", (action.thread,))
            return _Cause(Reason.NEVER_WRITTEN, _never_written(execution, thread, record))
    return _Cause(Reason.NEVER_WRITTEN, "a round of its loop that changes what the loop depends on")


def _at_barrier(execution: Execution, thread: int, stopped: list[int]) -> _Cause:
    waiting = tuple(blocked for blocked in stopped if blocked != thread)
    names = [execution.frame.lowered.test.threads[blocked].name for blocked in waiting]
    records = execution.frame.traces[thread].records
    last = records[-1] if records else None
    if isinstance(last, BarrierRecord) and last.barrier.domain is Domain.COLUMNS:
        return _Cause(Reason.NO_COLUMNS, "a dealloc before it, or fewer columns")
    if _has_not_arrived(execution, thread):
        return _Cause(Reason.COUNT, "an arrive of the thread itself, barrier.cluster.arrive, before this wait")
    places = {_waits_at(execution, blocked) for blocked in (thread, *waiting)}
    if waiting and len(places) > 1:
        return _Cause(Reason.DEADLOCK, f"the arrivals of {', '.join(names)}, which waits itself", waiting)
    if isinstance(last, BarrierRecord) and (ended := _ended_without(execution, thread)):
        several = _arrived(execution, last.barrier) > 1  # a warp alone meets nobody
        smaller = ", or a smaller count" if last.count is not None and several else ""
        elsewhere = _met_elsewhere(execution, last.barrier, ended)
        return _Cause(Reason.COUNT, f"the arrival{'s' * (len(ended) > 1)} of {', '.join(ended)}{elsewhere}{smaller}")
    alone = _completed_alone(execution, last.barrier) if isinstance(last, BarrierRecord) else ""
    return _Cause(Reason.COUNT, alone or "the missing arrivals, or a smaller count")


def _completed_alone(execution: Execution, barrier: BarrierId) -> str:
    """The two arrivals of one thread in one generation of a barrier of the CTA, in words; empty without them."""
    meets = execution.relation("syncbar")
    for arrival, wait in pairs_of(meets):
        first, second = (execution.events[n] for n in (arrival, wait))
        records = [execution.frame.record_of(event) for event in (first, second)]
        here = all(isinstance(it, BarrierRecord) and it.barrier == barrier for it in records)
        apart = execution.frame.instruction_of(first) is not execution.frame.instruction_of(second)
        if here and apart and barrier.domain is Domain.CTA and first.point.thread == second.point.thread:
            both = " and ".join(_where(execution, n) for n in (arrival, wait))
            return f"another barrier for one of the two: {both} come to one, and count for each other"
    return ""


def _arrived(execution: Execution, barrier: BarrierId) -> int:
    """The number of threads that come to a barrier."""
    traces = execution.frame.traces
    return sum(any(isinstance(it, BarrierRecord) and it.barrier == barrier for it in trace.records) for trace in traces)


def _met_elsewhere(execution: Execution, barrier: BarrierId, names: tuple[str, ...]) -> str:
    """The barrier of the CTA to which the one thread of this name comes in place of this one, as a clause."""
    frame = execution.frame
    mine = [
        trace.records
        for trace, thread in zip(frame.traces, frame.lowered.test.threads, strict=True)
        if thread.name in names
    ]
    others = {it.barrier for records in mine for it in records if isinstance(it, BarrierRecord)}
    others = {other for other in others if other.domain is barrier.domain is Domain.CTA}
    if len(names) != 1 or len(others) != 1:
        return ""
    (other,) = others
    alone = _arrived(execution, other) == 1
    return f", which comes to barrier {other.key[0]} instead" if alone and other.key else ""


def _has_not_arrived(execution: Execution, thread: int) -> bool:
    """True if a thread waits at the barrier of its cluster without an arrive of its own."""
    trace = execution.frame.traces[thread]
    blocked = execution.frame.lowered.programs[thread].steps[trace.ending.step].op
    if not isinstance(blocked, AtBarrier) or blocked.label.domain is not Domain.CLUSTER:
        return False
    halves = [
        record.half
        for record in trace.records
        if isinstance(record, BarrierRecord) and record.barrier.domain is Domain.CLUSTER
    ]
    return halves.count(Half.ARRIVE) <= halves.count(Half.WAIT)


def _ended_without(execution: Execution, waiting: int) -> tuple[str, ...]:
    """The other threads at the place of a barrier that never come to it."""
    frame = execution.frame
    last = frame.traces[waiting].records[-1]
    assert isinstance(last, BarrierRecord)
    mine, wide = frame.lowered.test.threads[waiting].place, last.barrier.domain is Domain.CLUSTER
    return tuple(
        thread.name
        for thread, trace in zip(frame.lowered.test.threads, frame.traces, strict=True)
        if (thread.place.cluster_id if wide else thread.place.cta_id) == (mine.cluster_id if wide else mine.cta_id)
        and not any(isinstance(record, BarrierRecord) and record.barrier == last.barrier for record in trace.records)
    )


def _waits_at(execution: Execution, thread: int) -> object:
    """The barrier that a thread waits at, or what else it waits for."""
    records = execution.frame.traces[thread].records
    last = records[-1] if records else None
    return last.barrier if isinstance(last, BarrierRecord) else thread


def _at_object(execution: Execution, test: ObjectRecord, thread: int, stopped: list[int]) -> _Cause:
    frame = execution.frame
    name = spell_cell(frame.lowered.space, test.object)
    uses = next(object_uses for object_uses in Assembly(frame).objects if object_uses.cell == test.object)
    walk = uses.walk_of(execution.relation("mbar"))
    last = walk.counts[-1]
    if not last.live:
        return _Cause(Reason.GONE, f"mbarrier.init of {name} before the wait")
    if last.pending == 0 and last.tx != 0:
        more = "more bytes" if last.tx > 0 else "fewer bytes"
        elsewhere = _completed_elsewhere(execution, last.tx)
        if elsewhere:
            less = f"an expect_tx that is smaller by {last.tx}"
            return _Cause(Reason.BYTES, f"the {last.tx} bytes that {elsewhere} gets and does not expect, or {less}")
        text = f"an expect_tx that matches the copies: {abs(last.tx)} {more} are expected than come"
        return _Cause(Reason.BYTES, text)
    waited = _waited_for_phases(execution, thread, test)
    if test.parity is not None and waited < last.over:
        if test.parity == waited % 2:  # the parity that its phase had
            text = f"a wait of the others for this thread: phase {waited} is over, and so is the one behind it"
            return _Cause(Reason.NO_SYNCHRONIZATION, text)
        text = f"parity {1 - test.parity}: the phase before is over, and the thread has not waited for it"
        return _Cause(Reason.PARITY, text)
    action = _missing_action(execution, stopped, thread, test.object.instance)
    if action is not None:
        parity_hint = (
            f", or parity 1 at this wait: on a fresh {name} that is over" if not last.over and not test.parity else ""
        )
        return _Cause(Reason.DEADLOCK, f"{action.text} before its own wait{parity_hint}", (action.thread,))
    begun = any(
        walk.has_effect(n)
        and walk.order[n].record.action is Action.ARRIVE
        and (walk.counts[n].life, walk.counts[n].over) == (last.life, last.over)
        for n in range(len(walk.order))
    )
    if not begun and last.over > 0 and test.parity is not None and waited != last.over:
        text = f"parity {1 - test.parity}: the phase before is over and nobody arrives in this one"
        return _Cause(Reason.PARITY, text)
    unheard = "" if last.tx else _unheard(execution, test.object, last.pending)
    if unheard:
        return _Cause(Reason.COUNT, unheard)
    if not begun:
        expects = f"; it has to expect the {-last.tx} bytes that come there" if last.tx < 0 else ""
        before = f", phase {last.over}" if last.over and test.parity is not None else ""
        return _Cause(
            Reason.COUNT, f"an arrive on {name}: nobody arrives in the phase that it waits for{before}{expects}"
        )
    in_phase = [n for n, now in enumerate(walk.counts) if (now.life, now.over) == (last.life, last.over) and now.live]
    text = f"{count(last.pending, 'more arrival')} on {name}"
    raised = [n for n in in_phase if n < len(walk.order) and walk.order[n].record.action is Action.PENDING]
    if raised:
        where = _where(execution, walk.order[raised[0]].event)
        text = f".noinc at {where}: without it, that raises the count by the arrival that it brings; or {text}"
    elif last.pending < walk.counts[in_phase[0]].pending:
        text = f"{text}, or a count that is smaller by {last.pending}"
    return _Cause(Reason.COUNT, text)


def _waited_for_phases(execution: Execution, thread: int, test: ObjectRecord) -> int:
    """How many waits of a thread for the object of this one have seen a phase over."""
    frame, seen = execution.frame, execution.relation("mbarobs")
    done = [
        frame.of_record[thread, number][0]
        for number, it in enumerate(frame.traces[thread].records)
        if isinstance(it, ObjectRecord) and it.object == test.object and it.done
    ]
    return sum(any(row >> wait & 1 for row in seen) for wait in done)


def _where(execution: Execution, event: int) -> str:
    """The instruction of an event, with its thread and line."""
    point = execution.events[event].point
    item = execution.frame.instruction_of(execution.events[event])
    if point.thread is None or item is None:
        return "an instruction"
    return f"{item.mnemonic} ({execution.frame.lowered.test.threads[point.thread].name}, line {item.span.line})"


def _completed_elsewhere(execution: Execution, missing: int) -> str:
    """An object on which just as many bytes are completed more than it expects; empty without one."""
    counts = (
        (uses.cell, uses.walk_of(execution.relation("mbar")).counts) for uses in Assembly(execution.frame).objects
    )
    cell = next((cell for cell, known in counts if known and known[-1].live and known[-1].tx == -missing < 0), None)
    return "" if cell is None else _name(execution, cell)


def _unheard(execution: Execution, cell: Cell, pending: int) -> str:
    """As many arrivals on the object of the same name in another CTA, for which no thread waits; empty without them."""
    for uses in Assembly(execution.frame).objects:
        same = uses.cell.instance.name == cell.instance.name and uses.cell.first == cell.first
        arrivals = [use for use in uses.updates if use.record.action is Action.ARRIVE]
        enough = sum(use.record.count for use in arrivals) == pending
        if uses.cell != cell and same and enough and not uses.tests:
            names = _name(execution, cell), _name(execution, uses.cell)
            return f"{_where(execution, arrivals[0].event)} on {names[0]}: it is on {names[1]}, for which nobody waits"
    return ""


def _name(execution: Execution, cell: Cell) -> str:
    return spell_cell(execution.frame.lowered.space, cell)


def _held(execution: Execution, place: Cell, thread: int) -> str:
    """A clause that says with which atomic operation a thread, which waits itself, has taken a place: a lock."""
    events, co = execution.events, execution.relation("co")
    for n in bits(execution.set("W")):
        label = events[n].label
        taken = events[n].point.cell == place and events[n].point.thread == thread and not co[n]
        if taken and isinstance(label, Access) and label.rmw:
            both = f"{_where(execution, n)} has taken {_name(execution, place)}"
            return f": {both} and holds it; or one order in which all threads take the two"
    return ""


def _never_written(execution: Execution, thread: int, record: AccessRecord) -> str:
    """What a thread waits for that polls memory: with which number it compares, and what has been there."""
    frame, goes_on = execution.frame, "a write of the value that it waits for"
    event = frame.of_record[thread, frame.traces[thread].records.index(record)][0]
    place, value = execution.events[event].point.cell, execution.values[event]
    step = frame.lowered.programs[thread].steps[record.name.step].index
    poll = next((it for it in comparisons(frame.lowered.test.threads[thread]) if it.load == step), None)
    if place is None or value is None or poll is None:
        return goes_on
    events, co, own = execution.events, execution.relation("co"), execution.set("IW")
    writes = [n for n in bits(execution.set("W") & ~own) if events[n].point.cell == place]
    mine, others = ([n for n in writes if (events[n].point.thread == thread) is side] for side in (True, False))
    seen = [n for n in others if (stored := execution.values[n]) is not None and poll.differ(stored, value)]
    for write in sorted(seen, key=lambda n: sum(co[n] >> other & 1 for other in writes)):  # the last one first
        after = [n for n in writes if co[write] >> n & 1]
        later = max(after, key=lambda n: sum(co[n] >> other & 1 for other in writes), default=None)
        if later is not None:
            return f"{goes_on}; {_where(execution, write)} is overwritten by {_where(execution, later)}"
    last = next((n for n in writes if not co[n] and execution.values[n] == value), None)
    left = f"holds {value}" if last is None or last in mine else f"is left as {value} by {_where(execution, last)}"
    return f"{goes_on}: it compares with {poll.number.value}, and {_name(execution, place)} {left}"


def _cell_read(execution: Execution, thread: int, record: Record) -> Cell | None:
    """The cell that a record reads."""
    event = execution.frame.of_record[thread, execution.frame.traces[thread].records.index(record)][0]
    return execution.events[event].point.cell


class _MissingAction(NamedTuple):
    """What a waiting thread would do to a variable, had it gone on."""

    thread: int
    text: str


def _missing_action(execution: Execution, stopped: list[int], thread: int, instance: Instance) -> _MissingAction | None:
    """What another waiting thread would do to a variable; None if none would do anything."""
    frame = execution.frame
    for other in stopped:
        if other == thread:
            continue
        steps = frame.lowered.programs[other].steps
        at = frame.traces[other].ending.step + 1
        program = frame.lowered.test.threads[other]
        places = named = _pointing(program, instance.name)
        if instance.owner is not None and instance.owner != program.place.cta_id:
            named = places & _mapped(program)  # its name is that of the variable of its own CTA
        for step in (*steps[at:], *steps[:at]):
            span = step.instruction.span
            head = step.instruction.mnemonic
            waits = "wait" in head or head.startswith(("ld", "bra"))
            meant = places if "multicast" in head and "arrive" in head else named
            if span is not None and not waits and meant & set(re.findall(r"\[\s*([%\w.$]+)", span.text)):
                return _MissingAction(other, f"{program.name}, line {span.line}: {head}")
    return None


def _mapped(thread: Thread) -> frozenset[str]:
    """The registers of a thread that may hold an address in another CTA."""
    mapped = {
        words[0]
        for item in instructions(thread)
        if item.mnemonic.startswith("mapa") and (words := re.findall(r"[%\w.$]+", item.span.text[len(item.mnemonic) :]))
    }
    return frozenset(name for register in mapped for name in _pointing(thread, register))


def _pointing(thread: Thread, name: str) -> frozenset[str]:
    """The name of a variable, and the registers of a thread that may hold an address in it."""
    names = {name}
    while True:
        more = {
            words[0]
            for item in instructions(thread)
            if not item.mnemonic.startswith(("ld", "atom"))
            and (words := re.findall(r"[%\w.$]+", item.span.text[len(item.mnemonic) :]))
            and words[0].startswith("%")
            and names & set(words[1:])
        }
        if more <= names:
            return frozenset(names)
        names |= more
