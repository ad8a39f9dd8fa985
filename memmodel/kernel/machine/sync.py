"""Barriers of CTAs and clusters, the pool of registers, and hints.

In: an Instruction. Out: a step that waits as the instruction does and leaves its events in the traces.
"""

from __future__ import annotations

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.isa.synchronization.barrier import RESOURCES
from memmodel.kernel.flow.registers import written
from memmodel.kernel.machine.accesses import gathered
from memmodel.kernel.machine.parts import BarrierState, Faulty, LaneGroup, Lanes, PairTurn, Warp
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.rows import LANES, Value
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.objects import AwaitedPhase
from memmodel.kernel.trace.problems import Refused
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm
from memmodel.ptx.vocabulary import Scope, Sem

NOTHING = (
    "nanosleep",
    "prefetch",
    "prefetchu",
    "applypriority",
    "pmevent",
    "griddepcontrol",
)


def sync_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] in NOTHING:
        return lambda machine, warp, lanes, group: True
    if words[0] == "createpolicy":
        return _policy(instruction)
    if words[0] in ("bar", "barrier") and "cluster" not in words and "warp" not in words:
        return _barrier(compiler, instruction)
    if words[:2] == ("barrier", "cluster"):
        return _cluster(instruction)
    if words[0] == "setmaxnreg":
        return _pool(instruction)
    return None


def _policy(instruction: PtxInstruction) -> Blocking:
    """createpolicy: a cache policy is an opaque value."""
    forget = forgetting(written(instruction))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        forget(warp, lanes)
        return True

    return step


def _pool(instruction: PtxInstruction) -> Blocking:
    """setmaxnreg: an increase waits until the CTA has as many registers to give; it orders nothing."""
    operand = instruction.operands[0]
    if not isinstance(operand, Imm):
        raise Refused(f"{instruction.opcode} takes a number of registers", instruction.span)
    wanted, increases = operand.value, "inc" in instruction.words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        more = (wanted - warp.limit) * LANES
        if (more > 0) is not increases:
            return True
        if more > warp.cta.spare:
            return False
        warp.cta.spare -= more
        warp.limit = wanted
        machine.version += 1
        return True

    return step


# ---- execution barriers --------------------------------------------------------------------------------------


def _barrier(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    kind = next((word for word in words if word in ("sync", "arrive", "red")), None)
    reduces = kind == "red"
    if kind is None or len(operands) < 1 + 2 * reduces:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    target, vote = (
        (compiler.target(instruction), compiler.get(operands[-1], instruction, 1)) if reduces else (None, None)
    )
    operands = operands[1:-1] if reduces else operands
    operation = next((word for word in words if word in ("popc", "and", "or")), "")
    aligned = words[0] == "bar" or "aligned" in words
    number = compiler.get(operands[0], instruction)
    counts = compiler.get(operands[1], instruction) if len(operands) > 1 else None
    arrives, waits = (Barrier(half, Domain.CTA, reduces=reduces) for half in (Half.ARRIVE, Half.WAIT))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if group.waits is None:
            if aligned and sum(1 << lane for lane in lanes) != warp.live:
                return False
            which = number(warp)[lanes[0]]
            count = None if counts is None else counts(warp)[lanes[0]]
            if any(number(warp)[lane] != which for lane in lanes):
                raise Refused("lanes of one warp name different barriers", instruction.span)
            if which is None or (counts is not None and count is None):
                machine.unknown("the barrier", instruction)
            _permitted(which, count, arrives=kind == "arrive")
            count = count or None  # 0 stands for all threads
            meeting, identity = machine.barrier(warp.cta, which)
            threads, generation = [warp.threads[lane] for lane in lanes], meeting.generation
            for made in machine.each(threads, instruction.number, arrives, which, generation, count):
                made.barrier, made.generation, made.count = identity, generation, count
            group.waits = (which, meeting.generation)
            if vote is not None:
                given = vote(warp)
                meeting.votes.setdefault(meeting.generation, []).extend(given[lane] for lane in lanes)
            meeting.partly[warp] = meeting.partly.get(warp, 0) + len(lanes)
            meeting.who |= {thread.number for thread in threads}
            meeting.needed = count
            _whole(meeting)
            if count is not None and meeting.arrived > count:
                machine.problem(
                    "barrier-count", f"more threads arrive at barrier {which} than its {count}", instruction
                )
            _complete(machine, warp, which)
        assert isinstance(group.waits, tuple)
        which, generation = group.waits
        meeting, identity = machine.barrier(warp.cta, which)
        if kind == "arrive":
            group.waits = None
            return True
        _complete(machine, warp, which)
        if meeting.generation <= generation:
            return False
        for made in machine.each([warp.threads[lane] for lane in lanes], instruction.number, waits, which, generation):
            made.barrier, made.generation = identity, generation
        if target is not None:
            _combined(operation, meeting.votes[generation], warp, lanes, target)
        group.waits = None
        return True

    return step


def _permitted(which: int, count: int | None, *, arrives: bool) -> None:
    """Numbers and counts that the page of "bar, barrier" allows."""
    if which >= RESOURCES:
        raise Faulty("undefined-instruction", f"a CTA has the barriers 0 to {RESOURCES - 1}, and not {which}")
    if (count or 0) % LANES:
        raise Faulty("undefined-instruction", f"the thread count of a barrier is a multiple of {LANES}, not {count}")
    if arrives and not count:
        raise Faulty("undefined-instruction", "bar.arrive has a thread count that is not zero")


def _whole(meeting: BarrierState) -> None:
    """A warp counts as all its lanes, once those that have not exited have arrived."""
    for warp, lanes in list(meeting.partly.items()):
        if lanes >= warp.live.bit_count():
            del meeting.partly[warp]
            meeting.arrived += LANES


def _combined(operation: str, votes: list[Value], warp: Warp, lanes: Lanes, target: int) -> None:
    """What bar.red gives: unknown if a predicate is."""
    known = [one & 1 for one in votes if one is not None]
    results = {"popc": sum(known), "and": int(all(known)), "or": int(any(known))}
    row = warp.own(target)
    for lane in lanes:
        row[lane] = results[operation] if len(known) == len(votes) else None


def _complete(machine: Machine, warp: Warp, which: int) -> None:
    """Begin the next generation if everyone has arrived. Only a barrier without a count, which is for all threads of
    the CTA, is released by the exit of the others ("exit").
    """
    meeting, _ = machine.barrier(warp.cta, which)
    if not meeting.who:
        return
    _whole(meeting)
    counted = meeting.needed is not None and meeting.arrived >= meeting.needed
    everyone = meeting.needed is None and len(meeting.who | warp.cta.gone) >= len(warp.cta.threads)
    if counted or everyone:
        meeting.generation, meeting.arrived, meeting.needed, meeting.who = meeting.generation + 1, 0, None, set()


# ---- clusters ----------------------------------------------------------------------------------------------------


def _cluster(instruction: PtxInstruction) -> Blocking:
    """barrier.cluster.arrive and wait: all threads of the cluster that have not exited."""
    words = instruction.words
    half = Half.WAIT if "wait" in words else Half.ARRIVE
    sem = Sem.ACQUIRE if half is Half.WAIT else Sem.RELAXED if "relaxed" in words else Sem.RELEASE
    label, aligned = Barrier(half, Domain.CLUSTER, sem, Scope.CLUSTER), "aligned" in words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if aligned and not gathered(warp, lanes):
            return False
        threads = [warp.threads[lane] for lane in lanes]
        if half is Half.ARRIVE:
            meeting, identity = machine.cluster_barrier(warp.cta)
            for thread in threads:
                made = machine.event(thread, instruction.number, label, meeting.generation)
                made.barrier, made.generation = identity, meeting.generation
                if warp.arrived[thread.lane] == meeting.generation:
                    message = "a thread arrives twice at the cluster barrier with no wait in between"
                    machine.problem("undefined-cluster-barrier", message, instruction)
                warp.arrived[thread.lane] = meeting.generation
                meeting.who.add(thread.number)
            machine.cluster_complete(warp.cta)
            return True
        meeting, identity = machine.cluster_barrier(warp.cta)
        machine.cluster_complete(warp.cta)
        waited = [warp.arrived[thread.lane] for thread in threads]
        if any(generation < 0 for generation in waited):
            raise Faulty("undefined-cluster-barrier", "a thread waits at the cluster barrier and has not arrived")
        if any(meeting.generation <= generation for generation in waited):
            return False
        for thread, generation in zip(threads, waited, strict=True):
            made = machine.event(thread, instruction.number, label, generation)
            made.barrier, made.generation = identity, generation
        return True

    return step


def lacks(machine: Machine, warp: Warp, group: LaneGroup) -> str:
    """What the barrier, the mbarrier object or the peer CTA that threads wait for lacks."""
    if isinstance(group.waits, PairTurn):
        return ": no warp of the peer CTA does the same"
    if isinstance(group.waits, tuple) and group.waits[0] in warp.cta.barriers:
        meeting = warp.cta.barriers[group.waits[0]]
        needed = len(warp.cta.threads) if meeting.needed is None else meeting.needed
        there = meeting.arrived if meeting.needed is not None else len(meeting.who)
        return f": {there} of {needed} threads have arrived at barrier {group.waits[0]}"
    if group.on is None:
        return ""
    one = machine.object(*group.on)
    if not one.live:
        return ": its mbarrier object is not initialised"
    found = [f"lacks {one.pending} of {one.expected} arrivals"] if one.pending else []
    found += [f"lacks {one.tx} bytes that were announced"] if one.tx > 0 else []
    found += [f"got {-one.tx} bytes that nobody announced"] if one.tx < 0 else []
    return f": phase {one.over} of its mbarrier object {' and '.join(found) or 'has not ended'}"


def stuck(machine: Machine, warp: Warp, group: LaneGroup) -> StuckLanes:
    """Lanes that wait for ever."""
    threads = tuple(warp.threads[lane].number for lane in group.lanes)
    if group.on is None:
        return StuckLanes(threads, group.at)
    one = machine.object(*group.on)
    return StuckLanes(threads, group.at, AwaitedPhase(*group.on, one.over, one.pending, one.tx, one.live))
