"""Barriers of CTAs, warps and clusters: the halves at which lanes arrive and wait.

In: an AtBarrier or Combine step. Out: what the machine does at it, which leaves events in the traces. Generations are
counted by `program.automata`; settled here: who arrives as what. At a barrier of a CTA a warp counts as all its lanes,
once those of them that have not exited have arrived. Lanes that only arrive, at the barrier of a CTA or of a cluster,
wait for these, too ("bar, barrier", "barrier.cluster": an instruction "causes executing thread to wait for all
non-exited threads from its warp"). They are ordered by it no more than by any other wait of a warp.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memmodel.base.labels import Domain, Half
from memmodel.base.points import BarrierId
from memmodel.kernel.machine.parts import BarrierState, LaneGroup, Lanes, Warp, WarpArrival
from memmodel.kernel.machine.rows import Row, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.problems import Refused
from memmodel.program.ops import AtBarrier, Combine
from memmodel.ptx.module.syntax import PtxInstruction

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter


def at_barrier(interpreter: Interpreter, op: AtBarrier) -> Blocking:
    """One half of a barrier. Raises Refused if the launch has no such barrier."""
    instruction, ops = interpreter.instruction, interpreter.ops
    arrives = op.label.half is Half.ARRIVE
    if op.label.domain is Domain.CLUSTER:
        return _cluster_arrive(op, instruction) if arrives else _cluster_wait(op, instruction)
    if op.label.domain not in (Domain.CTA, Domain.WARP):
        raise Refused(f"{instruction.opcode} cannot be run", instruction.span)
    if not arrives:
        return _wait(op, instruction)
    waits = any(isinstance(other, AtBarrier) and other.label.half is Half.WAIT for other in ops)
    if op.label.domain is Domain.WARP:
        return _warp_arrive(op, instruction, interpreter.value(op.key[0]))
    reduction = next((other for other in ops if isinstance(other, Combine)), None)
    vote = None if reduction is None else (reduction.op, interpreter.value(reduction.value))
    count = None if op.count is None else interpreter.value(op.count)
    return _cta_arrive(op, instruction, interpreter.value(op.key[0]), count, vote, waits=waits)


def _same(machine: Machine, row: Row, lanes: Lanes, instruction: PtxInstruction) -> int:
    """The number that all lanes give. Raises Refused."""
    value = row[lanes[0]]
    if any(row[lane] != value for lane in lanes):
        raise Refused("lanes of one warp name different barriers, or different numbers of threads", instruction.span)
    if value is None:
        machine.unknown("the barrier", instruction)
    return value


# ---- CTAs ----------------------------------------------------------------------------------------------------------


def _cta_arrive(
    op: AtBarrier, instruction: PtxInstruction, number: Get, count: Get | None, vote: tuple[str, Get] | None,
    *, waits: bool,
) -> Blocking:  # fmt: skip
    """The arrive half. `vote`: the operation of a reduction and what it gives to it; `waits`: the wait half follows."""

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        which = _same(machine, number(warp), lanes, instruction)
        if isinstance(group.waits, WarpArrival):
            return _gone_on(group, waits=machine.barrier(warp.cta, which)[0].lacks(warp))
        needed = None if count is None else _same(machine, count(warp), lanes, instruction)
        needed = needed or None  # 0 stands for all threads
        cta = warp.cta
        meeting, identity = machine.barrier(cta, which)
        generation = meeting.counts.generation
        threads = [warp.threads[lane] for lane in lanes]
        for event in machine.each(threads, instruction.number, op.label, which, generation, needed):
            event.barrier, event.generation, event.count = identity, generation, needed
        if vote is not None:
            operation, values = vote[0], vote[1](warp)
            meeting.votes.setdefault(generation, []).extend((operation, values[lane]) for lane in lanes)
        meeting.arrive(warp, lanes, needed)
        if needed is not None and meeting.counts.overfull(cta.everyone):
            machine.problem("barrier-count", f"more threads arrive at barrier {which} than its {needed}", instruction)
        lacks = meeting.lacks(warp)
        if waits:
            group.waits = (which, generation)
            return True
        return _arrived(warp, group, lanes, generation, waits=lacks)

    return run


def _arrived(warp: Warp, group: LaneGroup, lanes: Lanes, generation: int, *, waits: bool) -> bool:
    """True if lanes that have arrived go on; if not, they wait for the other lanes of their warp."""
    if waits:
        warp.split(group, lanes)
        group.waits = WarpArrival(generation)
    return not waits


def _gone_on(group: LaneGroup, *, waits: bool) -> bool:
    """True if lanes that waited for the others of their warp go on."""
    if not waits:
        group.waits = None
    return not waits


def _wait(op: AtBarrier, instruction: PtxInstruction) -> Blocking:
    """The wait half of an instruction, for the generation of its arrive half."""
    domain, reduces = op.label.domain, op.label.reduces

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        assert isinstance(group.waits, tuple)
        which, generation = group.waits
        if domain is Domain.WARP:
            meeting, identity = warp.syncs[which], _of_warp(warp, which)
            meeting.complete(which, ~warp.live)
        else:
            meeting, identity = machine.barrier(warp.cta, which)
            meeting.gather(warp.cta)
        if meeting.counts.generation <= generation:
            return False
        label = op.label
        if domain is Domain.WARP and meeting.missing.get(generation, 0) & warp.everyone:
            label = replace(label, lane_exited=True)
        threads = [warp.threads[lane] for lane in lanes]
        for event in machine.each(threads, instruction.number, label, which, generation):
            event.barrier, event.generation = identity, generation
        if not reduces:
            group.waits = None
        return True

    return run


def combine(interpreter: Interpreter, op: Combine) -> Blocking:
    """What the threads of the generation gave, combined: unknown if one of the predicates is, or the operations differ.

    Which of several operations combines the predicates, the page ("bar, barrier") does not say.
    """
    slot = interpreter.slot(op.register)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        assert isinstance(group.waits, tuple)
        which, generation = group.waits
        votes = machine.barrier(warp.cta, which)[0].votes[generation]
        known = [vote & 1 for operation, vote in votes if vote is not None and operation == op.op]
        results = {"popc": sum(known), "and": int(all(known)), "or": int(any(known))}
        result: Value = results[op.op] if len(known) == len(votes) else None
        row = warp.own(slot)
        for lane in lanes:
            row[lane] = result
        group.waits = None
        return True

    return run


# ---- warps ---------------------------------------------------------------------------------------------------------


def _warp_arrive(op: AtBarrier, instruction: PtxInstruction, masks: Get) -> Blocking:
    """The lanes of a mask meet, wherever they come to one. Lanes with another mask become a group of their own."""

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        mask = _first_team(machine, warp, lanes, group, masks(warp), instruction)
        meeting, identity = warp.syncs.setdefault(mask, BarrierState()), _of_warp(warp, mask)
        generation = meeting.counts.generation
        threads = [warp.threads[lane] for lane in lanes]
        for event in machine.each(threads, instruction.number, op.label, mask, generation):
            event.barrier, event.generation = identity, generation
        meeting.counts = meeting.counts.after(sum(1 << lane for lane in lanes), len(lanes), None)
        meeting.complete(mask, ~warp.live)
        group.waits = (mask, generation)
        return True

    return run


def _first_team(
    machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup, masks: Row, instruction: PtxInstruction
) -> int:
    """The mask of the first lane; lanes that give another one become a group of their own."""
    mask = masks[lanes[0]]
    if mask is None or any(masks[lane] is None for lane in lanes):
        machine.unknown("the member mask", instruction)
    others = [lane for lane in lanes if masks[lane] != mask]
    if others:
        warp.groups.append(LaneGroup(group.at, others, frames=group.frames))
        group.lanes = [lane for lane in group.lanes if lane not in others]
        lanes[:] = [lane for lane in lanes if lane not in others]
    return mask


def _of_warp(warp: Warp, mask: int) -> BarrierId:
    return BarrierId(Domain.WARP, (warp.threads[0].place.cta_id, warp.number), (mask,))


# ---- clusters ------------------------------------------------------------------------------------------------------


def _cluster_arrive(op: AtBarrier, instruction: PtxInstruction) -> Blocking:
    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if isinstance(group.waits, WarpArrival):
            return _gone_on(group, waits=_behind(warp, group.waits.generation))
        meeting, identity = machine.cluster_barrier(warp.cta)
        generation = meeting.counts.generation
        for event in machine.each([warp.threads[lane] for lane in lanes], instruction.number, op.label, generation):
            event.barrier, event.generation = identity, generation
        for lane in lanes:
            if warp.arrived[lane] != warp.waited[lane]:
                message = "a thread arrives twice at the cluster barrier with no wait in between"
                machine.problem("undefined-cluster-barrier", message, instruction)
            warp.arrived[lane] = generation
        meeting.counts = meeting.counts.after(machine.in_cluster(warp, lanes), len(lanes), None)
        machine.cluster_complete(warp.cta)
        return _arrived(warp, group, lanes, generation, waits=_behind(warp, generation))

    return run


def _behind(warp: Warp, generation: int) -> bool:
    """True if a lane of the warp that has not exited has not arrived at a generation of the cluster barrier."""
    return any(warp.arrived[lane] < generation for group in warp.groups for lane in group.lanes)


def _cluster_wait(op: AtBarrier, instruction: PtxInstruction) -> Blocking:
    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        meeting, identity = machine.cluster_barrier(warp.cta)
        machine.cluster_complete(warp.cta)
        generations = [warp.arrived[lane] for lane in lanes]
        if any(generation == warp.waited[lane] for lane, generation in zip(lanes, generations, strict=True)):
            return False  # a thread that has not arrived since it waited waits for itself
        if any(meeting.counts.generation <= generation for generation in generations):
            return False
        for lane, generation in zip(lanes, generations, strict=True):
            event = machine.event(warp.threads[lane], instruction.number, op.label, generation)
            event.barrier, event.generation = identity, generation
            warp.waited[lane] = generation
        return True

    return run
