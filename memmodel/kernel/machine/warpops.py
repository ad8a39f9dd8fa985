"""Instructions in which the lanes of a warp look at one another.

In: an Instruction. Out: a step that waits until the lanes of its mask are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.base.points import BarrierId
from memmodel.kernel.arithmetic.alu import function
from memmodel.kernel.machine.parts import BarrierState, Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Pair
from memmodel.ptx.vocabulary import Scope, Sem

Blocking = Callable[[Machine, Warp, Lanes, LaneGroup], bool]
Work = Callable[[Machine, Warp, Lanes, int], None]


def warp_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[:2] == ("shfl", "sync"):
        return _together(compiler, instruction, 4, _shuffle(compiler, instruction))
    if words[:2] == ("vote", "sync"):
        return _together(compiler, instruction, 2, _vote(compiler, instruction))
    if words[0] in ("shfl", "vote"):
        return _converged(compiler, instruction)
    if words[0] == "match":
        return _together(compiler, instruction, 2, _match(compiler, instruction))
    if words[0] == "redux":
        return _together(compiler, instruction, 2, _reduce(compiler, instruction))
    if words[0] == "elect":
        return _together(compiler, instruction, 1, _elect(compiler, instruction))
    if words[0] == "activemask":
        return _active(compiler, instruction)
    return None


def _together(compiler: Compiler, instruction: PtxInstruction, where: int, work: Work) -> Blocking:
    """Wait until all lanes of the member mask are at the instruction."""
    if len(instruction.operands) <= where:
        raise Refused(f"{instruction.opcode} has no member mask", instruction.span)
    masks = compiler.get(instruction.operands[where], instruction, 32)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        given = masks(warp)
        teams: dict[int, Lanes] = {}
        for lane in lanes:
            mask = given[lane]
            if mask is None:
                machine.unknown("the member mask", instruction)
            teams.setdefault(mask, []).append(lane)
        for mask, members in teams.items():
            _member(mask, members)
            if mask & warp.live & ~sum(1 << lane for lane in members):
                return False
        for mask, members in teams.items():
            work(machine, warp, members, mask)
            lanes_meet(machine, warp, members, mask, instruction.number)
        return True

    return step


def _converged(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """shfl and vote without .sync, of the lanes that are active: known where no lane of the warp is elsewhere."""
    words = instruction.words
    synced = replace(instruction, words=(words[0], "sync", *words[1:]))
    work = (_shuffle if words[0] == "shfl" else _vote)(compiler, synced)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        mask = sum(1 << lane for lane in lanes)
        if mask != warp.live:
            machine.unknown("which lanes take part", instruction)
        work(machine, warp, lanes, mask)
        return True

    return step


def _member(mask: int, lanes: Lanes) -> None:
    """The lanes that execute an instruction are in the mask that they give."""
    if any(not mask >> lane & 1 for lane in lanes):
        raise Faulty("undefined-instruction", f"a lane is not in its own member mask {mask:#x}")


def lanes_meet(machine: Machine, warp: Warp, lanes: Lanes, mask: int, number: int) -> None:
    """The lanes have waited for one another (`.sync`); that orders no memory, so that both halves are relaxed."""
    meeting = warp.syncs.setdefault(~mask, BarrierState())
    barrier = BarrierId(Domain.WARP, (warp.threads[0].place.cta_id, warp.number), (mask, 1))
    for half in (Half.ARRIVE, Half.WAIT):
        label = Barrier(half, Domain.WARP, Sem.RELAXED, Scope.CTA)
        for lane in lanes:
            made = machine.event(warp.threads[lane], number, label, mask, meeting.counts.generation)
            made.barrier, made.generation = barrier, meeting.counts.generation
    meeting.counts = meeting.counts.next()


def _results(compiler: Compiler, instruction: PtxInstruction) -> tuple[int | None, int | None]:
    target = instruction.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Blank())
    return compiler.slot_of(first), compiler.slot_of(second)


def shuffle_source(mode: str, lane: int, offset: int, how: int) -> tuple[int, bool]:
    """The lane that a lane takes a value from, and whether it lies in its segment ("shfl.sync")."""
    segment, clamp = how >> 8 & 31, how & 31
    least = lane & segment
    most = least | clamp & ~segment & 31
    value = offset & 31
    if mode == "up":
        return lane - value, lane - value >= most
    if mode == "down":
        return lane + value, lane + value <= most
    source = lane ^ value if mode == "bfly" else least | value & ~segment & 31
    return source, source <= most


def _shuffle(compiler: Compiler, instruction: PtxInstruction) -> Work:
    slot, flag = _results(compiler, instruction)
    mode = instruction.words[2]
    data, other, control = (compiler.get(one, instruction, 32) for one in instruction.operands[1:4])

    def work(machine: Machine, warp: Warp, lanes: Lanes, mask: int) -> None:
        a, b, c = list(data(warp)), list(other(warp)), list(control(warp))
        found: list[tuple[int, Value, Value]] = []
        for lane in lanes:
            offset, how = b[lane], c[lane]
            if offset is None or how is None:  # a gather by data: some value of some lane
                found.append((lane, None, None))
                continue
            source, valid = shuffle_source(mode, lane, offset, how)
            source = source if valid else lane
            found.append((lane, a[source] if source in lanes else None, int(valid)))
        for lane, result, valid_bit in found:
            if slot is not None:
                warp.own(slot)[lane] = result
            if flag is not None:
                warp.own(flag)[lane] = valid_bit

    return work


def _vote(compiler: Compiler, instruction: PtxInstruction) -> Work:
    slot, _ = _results(compiler, instruction)
    mode = instruction.words[2]
    data = compiler.get(instruction.operands[1], instruction, 1)

    def work(machine: Machine, warp: Warp, lanes: Lanes, mask: int) -> None:
        values = [(lane, data(warp)[lane]) for lane in lanes if mask >> lane & 1]
        result: Value = None
        if all(value is not None for _, value in values):
            bits = [value or 0 for _, value in values]
            result = {
                "all": int(all(bits)),
                "any": int(any(bits)),
                "uni": int(len(set(bits)) <= 1),
                "ballot": sum((value or 0) << lane for lane, value in values),
            }[mode]
        if slot is not None:
            for lane in lanes:
                warp.own(slot)[lane] = result

    return work


def _match(compiler: Compiler, instruction: PtxInstruction) -> Work:
    slot, flag = _results(compiler, instruction)
    everyone = instruction.words[1] == "all"
    data = compiler.get(instruction.operands[1], instruction, 64)

    def work(machine: Machine, warp: Warp, lanes: Lanes, mask: int) -> None:
        values = list(data(warp))
        known = all(values[lane] is not None for lane in lanes)
        for lane in lanes:
            same = sum(1 << one for one in lanes if values[one] == values[lane] and mask >> one & 1)
            result: Value = same if known else None
            if everyone and known:
                result = mask if all(values[one] == values[lane] for one in lanes) else 0
            if slot is not None:
                warp.own(slot)[lane] = result
            if flag is not None:
                warp.own(flag)[lane] = None if result is None else int(result != 0)

    return work


def _reduce(compiler: Compiler, instruction: PtxInstruction) -> Work:
    slot, _ = _results(compiler, instruction)
    fn = function((instruction.words[2], instruction.words[-1]))
    data = compiler.get(instruction.operands[1], instruction, 32)

    def work(machine: Machine, warp: Warp, lanes: Lanes, mask: int) -> None:
        values = [data(warp)[lane] for lane in lanes]
        result: Value = values[0]
        for one in values[1:]:
            result = None if result is None or one is None or fn is None else fn(result, one)
        if slot is not None:
            for lane in lanes:
                warp.own(slot)[lane] = result

    return work


def _elect(compiler: Compiler, instruction: PtxInstruction) -> Work:
    slot, flag = _results(compiler, instruction)

    def work(machine: Machine, warp: Warp, lanes: Lanes, mask: int) -> None:
        machine.run.elected = True
        members = [lane for lane in lanes if mask >> lane & 1]
        leader = (members[-1] if machine.elect_last else members[0]) if members else lanes[0]
        for lane in lanes:
            if slot is not None:
                warp.own(slot)[lane] = leader
            if flag is not None:
                warp.own(flag)[lane] = int(lane == leader)

    return work


def _active(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    slot, _ = _results(compiler, instruction)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        machine.run.choices.setdefault(("activemask", instruction.number), instruction)
        mask = sum(1 << lane for lane in lanes)
        if slot is not None:
            for lane in lanes:
                value: Value = mask
                if machine.schedule.split:
                    value = mask & -mask if lane == lanes[0] else mask & (mask - 1)
                warp.own(slot)[lane] = None if instruction.number in machine.schedule.opaque else value
        return True

    return step
