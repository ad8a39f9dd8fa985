"""Barriers, mbarrier objects and groups of one thread, with numbers.

In: a step, a run. Out: records; one successor for each answer that an object or a reduction may give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from memmodel.base.labels import BETWEEN_GRIDS, Action, Domain, Half
from memmodel.base.points import BarrierId
from memmodel.concrete.accessing import locate
from memmodel.concrete.meter import STEP
from memmodel.concrete.records import AccessRecord, BarrierRecord, Contribution, End, Ending, ObjectRecord, WaitRecord
from memmodel.concrete.state import Run, RunState
from memmodel.memory.bytes import BadFootprint, Cell
from memmodel.program.ops import AtBarrier, Combine, Decide, OnObject, Track, WaitForGroups

if TYPE_CHECKING:
    from memmodel.concrete.runner import Runner


def at_barrier(runner: Runner, state: RunState, op: AtBarrier, run: Run) -> bool:
    """One half of a barrier; in front of a wait half the thread may wait for ever."""
    key = tuple(runner.value(part, state) for part in op.key)
    asked = None if op.count is None else runner.value(op.count, state)
    barrier = BarrierId.of(op.label.domain, key, runner.place, runner.number)
    if op.label.half is Half.WAIT and run.waits:
        runner.keep(state.copy(), run, _waits_at(state, barrier))
    record = runner.record(
        BarrierRecord,
        state,
        op.label,
        half=op.label.half,
        barrier=barrier,
        count=asked or None,
        data=state.depend(*op.key, op.count),
        reduces=op.label.reduces,
    )
    state.add(record)
    return True


def _waits_at(state: RunState, barrier: BarrierId) -> Ending:
    """The ending of a thread that waits for ever at a barrier.

    It waits for the generation of its instruction's arrive half; at barrier.cluster for that of its number, and between
    grids for the only one.
    """
    if barrier.domain in (Domain.CLUSTER, *BETWEEN_GRIDS):
        waits = [
            record
            for record in state.records
            if isinstance(record, BarrierRecord) and record.barrier == barrier and record.half is Half.WAIT
        ]
        number = len(waits) if barrier.domain is Domain.CLUSTER else 0
        return Ending(End.WAITS, state.at, state.times.get(state.at, 0), barrier=barrier, generation=number)
    return Ending(End.WAITS, state.at, state.times.get(state.at, 0), arrive=len(state.records) - 1)


def combine(runner: Runner, state: RunState, op: Combine, run: Run) -> bool:
    """One successor for each result of a reduction. The two records before it are the halves of its barrier."""
    value = runner.value(op.value, state)
    for result in reversed(run.oracle.reduction(runner.name(state), op.op)):
        run.meter.spend(STEP)
        after = state.copy()
        after.contributions.append(Contribution(len(after.records) - 2, op.op, value, result))
        after.set(op.register, result, after.depend(op.value))
        runner.leave_step(after)
        run.pending.append(after)
    return False


def wait_for_groups(runner: Runner, state: RunState, op: WaitForGroups) -> None:
    """A wait for groups of asynchronous operations."""
    if op.pending is None:
        completes = tracked(state, op.track)
    else:
        ends = [end for track, end in state.groups if track is op.track]
        closed = len(ends) - runner.value(op.pending, state)
        completes = tracked(state, op.track, ends[closed - 1]) if closed > 0 else frozenset()
    if op.sources_only:
        completes = frozenset(number for number in completes if _is_source(state, number))
    state.add(runner.record(WaitRecord, state, op.label, completes=completes))


def _is_source(state: RunState, number: int) -> bool:
    record = state.records[number]
    return isinstance(record, AccessRecord) and record.access.role is not None


def tracked(state: RunState, track: Track, end: int | None = None) -> frozenset[int]:
    """The parts of that name among the first `end` records."""
    return frozenset(
        number
        for number, record in enumerate(state.records[:end])
        if isinstance(record, AccessRecord) and track in record.tracks
    )


def on_object(runner: Runner, state: RunState, op: OnObject, run: Run) -> bool:
    """An operation on an mbarrier object; one successor for each answer that it may give, if it gives any."""
    if op.when is not None and not runner.value(op.when, state):
        return True
    where, addr = locate(runner, state, op.region)
    if isinstance(where, BadFootprint):
        runner.fault(state, where.text, addr)
        return True
    extent = where.extents[0]
    count, size, parity, token = (
        None if expr is None else runner.value(expr, state) for expr in (op.count, op.bytes, op.parity, op.state)
    )
    record = runner.record(
        ObjectRecord,
        state,
        op.label,
        addr=addr,
        data=state.depend(op.count, op.bytes, op.parity, op.state, op.when),
        object=Cell(extent.instance, extent.first, extent.size),
        action=op.label.action,
        count=count or 0,
        bytes=size or 0,
        drop=op.drop,
        parity=parity,
        state=token,
        no_complete=op.no_complete,
        conditional=op.conditional,
    )
    for result, pending, report in reversed(list(_answers(op, record, run))):
        run.meter.spend(STEP)
        after = state.copy()
        number = after.add(replace(record, result=result, pending=pending, report=report if result else None))
        for register, answer in ((op.register, result), (op.pending, pending), (op.report, report)):
            if register is not None and answer is not None:
                after.set(register, answer, after.token(number, 0, 1))
        runner.leave_step(after)
        run.pending.append(after)
    return False


def _answers(op: OnObject, record: ObjectRecord, run: Run) -> Iterator[tuple[int | None, int | None, int | None]]:
    """What an object may answer: the result, the pending count and the report, each None where none is asked for."""
    results: tuple[int | None, ...] = (None,)
    if op.register is not None:
        ask = run.oracle.test if op.label.action is Action.TEST else run.oracle.phases
        results = tuple(ask(record.name, record.object))
    pendings: tuple[int | None, ...] = (None,)
    if op.pending is not None:
        pendings = tuple(run.oracle.pending(record.name, record.object))
    reports = tuple(run.oracle.report(record.name)) if op.report is not None else (None,)
    return product(results, pendings, reports)


def decide(runner: Runner, state: RunState, op: Decide, run: Run) -> bool:
    """One successor for each number that an execution may decide on."""
    if op.when is not None and not runner.value(op.when, state):
        state.set(op.register, 0, state.depend(op.when))
        return True
    for number in reversed(run.oracle.success(runner.name(state))):
        run.meter.spend(STEP)
        after = state.copy()
        after.set(op.register, number, after.depend(op.when))
        runner.leave_step(after)
        run.pending.append(after)
    return False
