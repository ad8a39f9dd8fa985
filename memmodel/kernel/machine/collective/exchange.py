"""What the lanes of a warp learn from one another: shuffles, votes, matches, reductions, election.

In: an AmongLanes or ActiveLanes step. Out: what the machine does at it. Lanes that give the same mask wait for one
another; what depends on a value that is not known is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.base.points import BarrierId
from memmodel.kernel.machine.parts import BarrierState, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import LANES, Row, Uniform, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.launch import ChoiceKind
from memmodel.kernel.trace.problems import Refused
from memmodel.program.arith import operation
from memmodel.program.warp_ops import SHUFFLES, ActiveLanes, AmongLanes, Exchange
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Scope, Sem

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

Learn = Callable[[Machine, Warp, Lanes], None]
"""What lanes that wait for one another learn."""


def among_lanes(interpreter: Interpreter, op: AmongLanes) -> Blocking:
    """The lanes of a mask wait for one another; without a mask, all lanes of the warp have to be there."""
    instruction, learn = interpreter.instruction, _learning(interpreter, op)
    if op.mask is None:
        return _active(instruction, learn)
    return _masked(instruction, interpreter.value(op.mask), learn, elects=op.exchange is Exchange.ELECT)


def _masked(instruction: PtxInstruction, masks: Get, learn: Learn, *, elects: bool) -> Blocking:
    """Lanes that are not in the mask that they give, which is undefined, do not wait.

    `elects`: it is elect.sync, whose page asks for all lanes of the mask and not for those that have not exited.
    """

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        row = masks(warp)
        teams: dict[int, Lanes] = {}
        for lane in lanes:
            mask = row[lane]
            if mask is None:
                machine.unknown("the member mask", instruction)
            if mask >> lane & 1:
                teams.setdefault(mask, []).append(lane)
        live, gone = warp.live, warp.everyone & ~warp.live
        for mask, members in teams.items():
            if mask & live & ~sum(1 << lane for lane in members):
                return _wait_for_others(warp, group, mask, instruction)
        for mask, members in teams.items():
            learn(machine, warp, members)
            lanes_meet(machine, warp, members, mask, instruction.number, without=elects and bool(mask & gone))
        return True

    return run


def _wait_for_others(warp: Warp, group: LaneGroup, mask: int, instruction: PtxInstruction) -> bool:
    """False: the lanes wait. Raises Refused if all others of the mask wait at instructions like this one: they meet
    then ("have executed shfl.sync with the same qualifiers and same membermask value"), and what one of them learns
    comes from registers that its own instruction does not name.
    """
    like = (mask, frozenset(instruction.opcode.split(".")))
    waiting = warp.exchanges.setdefault(like, [])
    waiting[:] = [other for other in waiting if other is not group and any(other is present for present in warp.groups)]
    there = waiting.copy()
    waiting.append(group)
    lanes = sum(1 << lane for other in waiting for lane in other.lanes)
    if there and not mask & warp.live & ~lanes:
        what = "lanes of one mask execute instructions alike at several places of the text"
        raise Refused(f"{instruction.opcode}: {what}, which is not modelled", instruction.span)
    return False


def _active(instruction: PtxInstruction, learn: Learn) -> Blocking:
    """The lanes that execute the instruction together: known where no lane of the warp is elsewhere."""

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if sum(1 << lane for lane in lanes) != warp.live:
            machine.unknown("which lanes take part", instruction)
        learn(machine, warp, lanes)
        return True

    return run


def lanes_meet(machine: Machine, warp: Warp, lanes: Lanes, mask: int, number: int, *, without: bool = False) -> None:
    """The lanes have waited for one another (`.sync`); that orders no memory, so that both halves are relaxed.

    `without`: lanes of the mask have exited, and the page does not exempt these.
    """
    meeting = warp.syncs.setdefault(~mask, BarrierState())
    generation = meeting.counts.generation
    barrier = BarrierId(Domain.WARP, (warp.threads[0].place.cta_id, warp.number), (mask, 1))
    threads = [warp.threads[lane] for lane in lanes]
    for half in (Half.ARRIVE, Half.WAIT):
        label = Barrier(half, Domain.WARP, Sem.RELAXED, Scope.CTA, lane_exited=without and half is Half.WAIT)
        for event in machine.each(threads, number, label, mask, generation):
            event.barrier, event.generation = barrier, generation
    meeting.counts = meeting.counts.next()


# ---- what they learn -----------------------------------------------------------------------------------------------


def _learning(interpreter: Interpreter, op: AmongLanes) -> Learn:
    """What lanes learn, into the registers of each."""
    slots = [None if register is None else interpreter.slot(register) for register in op.registers]
    slot, flag = slots[0], slots[1] if len(slots) > 1 else None
    values = [interpreter.value(value) for value in op.values]
    if op.exchange in SHUFFLES:
        return _shuffle(op.exchange, slot, flag, *values)
    if op.exchange is Exchange.ELECT:
        return _elect(slot, flag)
    if op.exchange in (Exchange.MATCH_ANY, Exchange.MATCH_ALL):
        return _match(slot, flag, values[0], everyone=op.exchange is Exchange.MATCH_ALL)
    together = _combining(op) if op.exchange is Exchange.REDUCE else _VOTES[op.exchange]
    return _all_the_same(slot, values[0], together)


def _all_the_same(slot: int | None, data: Get, together: Callable[[Lanes, list[int]], Value]) -> Learn:
    """A result that all lanes have: unknown if one of the values is."""

    def learn(machine: Machine, warp: Warp, lanes: Lanes) -> None:
        row = data(warp)
        values = [value for lane in lanes if (value := row[lane]) is not None]
        result = together(lanes, values) if len(values) == len(lanes) else None
        if slot is not None:
            target = warp.own(slot)
            for lane in lanes:
                target[lane] = result

    return learn


def _ballot(lanes: Lanes, votes: list[int]) -> int:
    return sum((vote & 1) << lane for lane, vote in zip(lanes, votes, strict=True))


_VOTES: dict[Exchange, Callable[[Lanes, list[int]], Value]] = {
    Exchange.ALL: lambda lanes, votes: int(all(votes)),
    Exchange.ANY: lambda lanes, votes: int(any(votes)),
    Exchange.UNIFORM: lambda lanes, votes: int(len(set(votes)) == 1),
    Exchange.BALLOT: _ballot,
}


def _combining(op: AmongLanes) -> Callable[[Lanes, list[int]], Value]:
    """The values of all lanes, combined."""
    combine = operation(op.combine, op.type)
    if op.type.floating:
        return lambda lanes, values: combine(*values)
    mask = op.type.mask
    return lambda lanes, values: reduce(lambda a, b: (combine(a, b) or 0) & mask, values) & mask


def _match(slot: int | None, flag: int | None, data: Get, *, everyone: bool) -> Learn:
    """The lanes that have the value of a lane. `everyone`: all of them, or none."""

    def learn(machine: Machine, warp: Warp, lanes: Lanes) -> None:
        row = list(data(warp))
        equal: dict[Value, int] = {}
        for lane in lanes:
            equal[row[lane]] = equal.get(row[lane], 0) | 1 << lane
        for lane in lanes:
            mask: Value = None if None in equal else equal[row[lane]]
            if everyone and mask is not None and len(equal) > 1:
                mask = 0
            if slot is not None:
                warp.own(slot)[lane] = mask
            if flag is not None:
                warp.own(flag)[lane] = None if mask is None else int(mask != 0)

    return learn


def _elect(slot: int | None, flag: int | None) -> Learn:
    """The lane that the schedule names."""

    def learn(machine: Machine, warp: Warp, lanes: Lanes) -> None:
        machine.run.elected = True
        leader = lanes[min(machine.schedule.elected, len(lanes) - 1)]
        for lane in lanes:
            if slot is not None:
                warp.own(slot)[lane] = leader
            if flag is not None:
                warp.own(flag)[lane] = int(lane == leader)

    return learn


def _shuffle(exchange: Exchange, slot: int | None, flag: int | None, data: Get, other: Get, bounds: Get) -> Learn:
    """The value of another lane. A lane whose number depends on data is some lane."""

    def learn(machine: Machine, warp: Warp, lanes: Lanes) -> None:
        a, b, c = list(data(warp)), other(warp), bounds(warp)
        sources = _sources(exchange, b, c)
        members = set(lanes)
        targets = None if slot is None else warp.own(slot)
        flags = None if flag is None else warp.own(flag)
        for lane in lanes:
            source, valid = sources[lane] or (lane, None)
            if targets is not None:
                targets[lane] = a[source] if sources[lane] is not None and source in members else None
            if flags is not None:
                flags[lane] = valid

    return learn


def _sources(exchange: Exchange, numbers: Row, bounds: Row) -> tuple[tuple[int, int] | None, ...]:
    """For each lane the one that it takes a value from, and 1 if that lies in its segment; None if it is not known."""
    if type(numbers) is Uniform and type(bounds) is Uniform:
        return _alike(exchange, numbers.value, bounds.value)
    return tuple(shuffle_source(exchange, lane, numbers[lane], bounds[lane]) for lane in range(LANES))


@lru_cache(maxsize=256)
def _alike(exchange: Exchange, number: Value, bound: Value) -> tuple[tuple[int, int] | None, ...]:
    """The same where all lanes give the same numbers."""
    return tuple(shuffle_source(exchange, lane, number, bound) for lane in range(LANES))


def shuffle_source(exchange: Exchange, lane: int, number: Value, bound: Value) -> tuple[int, int] | None:
    """The lane that a lane takes a value from, and 1 if that lies in its segment ("shfl.sync"); if not, it is its own.

    None if a number is not known.
    """
    if number is None or bound is None:
        return None
    segment, clamp, distance = bound >> 8 & 31, bound & 31, number & 31
    least = lane & segment
    most = least | clamp & ~segment & 31
    if exchange is Exchange.UP:
        source = lane - distance
        valid = source >= most
    elif exchange is Exchange.DOWN:
        source = lane + distance
        valid = source <= most
    else:
        source = lane ^ distance if exchange is Exchange.BUTTERFLY else least | distance & ~segment & 31
        valid = source <= most
    return source if valid else lane, int(valid)


def active_lanes(interpreter: Interpreter, op: ActiveLanes) -> Blocking:
    """The lanes that execute the instruction together, which another run may decide otherwise."""
    instruction, slot = interpreter.instruction, interpreter.slot(op.register)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        machine.run.choices.setdefault((ChoiceKind.ACTIVE_LANES, instruction.number), instruction)
        mask = sum(1 << lane for lane in lanes)
        row = warp.own(slot)
        for lane in lanes:
            value: Value = mask
            if machine.schedule.split:
                value = mask & -mask if lane == lanes[0] else mask & (mask - 1)
            row[lane] = None if instruction.number in machine.schedule.opaque else value
        return True

    return run
