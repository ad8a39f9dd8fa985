"""Operations on mbarrier objects: of threads, and the signals of hardware.

In: an OnObject step. Out: what the machine does at it, which leaves events in the traces. What an object counts is in
`program.automata`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memmodel.base.labels import Action, Mbarrier, Signal
from memmodel.base.lives import KERNEL_PHASE_BITS, in_life
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.program.automata import MbarrierCounts
from memmodel.program.ops import OnObject
from memmodel.program.warp_ops import CheckLayout
from memmodel.ptx.module.syntax import PtxInstruction

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter, Pointer

OBJECT_BYTES = 8


def signalled(
    machine: Machine,
    issue: TraceEvent,
    label: Signal,
    block: Block,
    at: int,
    completes: Iterable[TraceEvent],
    tx: int = 0,
) -> TraceEvent:
    """A complete-tx of a number of bytes, or an arrive-on, that the hardware makes when some issues are done."""
    signal = TraceEvent(issue.thread, None, issue.at, label, block, at, 8, issue)
    signal.completes = tuple(completes)
    issue.signals += (signal,)
    machine.update(signal, label.action, int(label.action is Action.ARRIVE), tx)
    issue.note = (*issue.note, *signal.note)
    return signal


# ---- operations of threads -------------------------------------------------------------------------------------


def on_objects(interpreter: Interpreter, ops: Sequence[OnObject]) -> Blocking:
    """An operation of a thread on an mbarrier object; of several objects if it is a multicast."""
    if ops[0].label.action is Action.TEST:
        return _test(interpreter, ops[0])
    if len(ops) == 1 and ops[0].when is None:
        return _update(interpreter, ops[0])
    return _multicast(interpreter, ops)


def _multicast(interpreter: Interpreter, ops: Sequence[OnObject]) -> Blocking:
    """The parts of one instruction, each on the object of one CTA, if its condition holds."""
    conditions = [None if op.when is None else interpreter.value(op.when) for op in ops]
    updates = [_update(interpreter, op) for op in ops]
    instruction = interpreter.instruction

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        firsts: dict[int, TraceEvent] = {}
        for condition, update in zip(conditions, updates, strict=True):
            holds = None if condition is None else condition(warp)
            if holds is not None and any(holds[lane] is None for lane in lanes):
                machine.unknown("the CTA mask", instruction)
            reached = [lane for lane in lanes if holds is None or holds[lane]]
            update(machine, warp, reached, group)
            for lane in reached:
                event = warp.threads[lane].events[-1]
                event.beside = firsts.get(lane)
                firsts.setdefault(lane, event)
        return True

    return run


def _find(location: Pointer, machine: Machine, warp: Warp, lane: int, instruction: PtxInstruction) -> tuple[Block, int]:
    """The object at an address. Raises Faulty where it cannot be one."""
    block, at = location.find(machine, warp, lane, OBJECT_BYTES, instruction)
    if at % OBJECT_BYTES:
        address = location.address(warp)[lane]
        raise Faulty("undefined-address", f"address {address:#x} is misaligned for an mbarrier object")
    return block, at


def _update(interpreter: Interpreter, op: OnObject) -> Blocking:
    """An update, which may leave the state before it in a register."""
    instruction, label, action = interpreter.instruction, op.label, op.label.action
    location = interpreter.location(op.region.address, op.region.window)
    counts, sizes = (None if expr is None else interpreter.value(expr) for expr in (op.count, op.bytes))
    slot = None if op.register is None else interpreter.slot(op.register)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        count_row, size_row = None if counts is None else counts(warp), None if sizes is None else sizes(warp)
        for lane in lanes:
            count, size = 0 if count_row is None else count_row[lane], 0 if size_row is None else size_row[lane]
            if count is None or size is None:
                machine.unknown("the count", instruction)
            block, at = _find(location, machine, warp, lane, instruction)
            event = machine.event(warp.threads[lane], instruction.number, label)
            event.block, event.first, event.size = block, at, OBJECT_BYTES
            event.count = count if size_row is None else size
            if action is Action.INIT:
                block.forget(at, OBJECT_BYTES)
            if slot is not None:
                warp.own(slot)[lane] = _phase(machine.object(block, at))
            machine.update(event, action, count, size, drop=op.drop, no_complete=op.no_complete)
        return True

    return run


def check_layout(interpreter: Interpreter, op: CheckLayout) -> Blocking:
    """What the inits of the object in this run said; objects that are made again with another layout are refused."""
    instruction, slot = interpreter.instruction, interpreter.slot(op.register)
    location = interpreter.location(op.region.address, op.region.window)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            steps = machine.run.objects.get(_find(location, machine, warp, lane, instruction), ())
            labels = [step.event.label for step in steps]
            inits = {label.layout for label in labels if isinstance(label, Mbarrier) and label.action is Action.INIT}
            if len(inits) > 1:
                machine.unknown("the layout of an mbarrier object", instruction)
            warp.own(slot)[lane] = int(op.layout in inits)
        return True

    return run


def _phase(counts: MbarrierCounts) -> int:
    """The life and the phase of an object as one number."""
    return in_life(counts.number, counts.over, KERNEL_PHASE_BITS)


def _test(interpreter: Interpreter, op: OnObject) -> Blocking:
    """A test waits until it can return true: what a loop around it does. One that only looks ahead returns false."""
    instruction, label, parity = interpreter.instruction, op.label, op.parity is not None
    assert op.register is not None
    location, slot = interpreter.location(op.region.address, op.region.window), interpreter.slot(op.register)
    asked = op.parity if op.parity is not None else op.state
    assert asked is not None
    phases, number = interpreter.value(asked), instruction.number
    peeks = number in interpreter.surroundings.peeks

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        phase_row = list(phases(warp))
        machine.run.tests[number] = instruction
        passed: dict[int, tuple[Block, int]] = {}
        failed: list[int] = []
        group.mbarrier = None
        for lane in lanes:
            phase = phase_row[lane]
            if phase is None:
                machine.unknown("the phase", instruction)
            block, at = _find(location, machine, warp, lane, instruction)
            if not peeks and machine.failing.fails(warp, lane, number, group.frames, (block, at, phase)):
                failed.append(lane)
                continue
            counts = machine.object(block, at)
            stale = not parity and phase + 1 < _phase(counts)
            if peeks:
                if not counts.live:
                    machine.problem("undefined-mbarrier", "the mbarrier object is not initialised here", instruction)
                machine.peeked(warp, lane, instruction, block, at, phase, stale=stale)
                continue
            if counts.live and (counts.over % 2 != phase % 2 if parity else _phase(counts) > phase):
                passed[lane] = block, at
            elif number in machine.schedule.truthful:
                failed.append(lane)
            else:
                group.mbarrier, group.parity = (block, at), parity
        if group.mbarrier is not None:
            if not passed and not failed:
                return False
            _leave_behind(warp, group, [lane for lane in lanes if lane not in passed and lane not in failed])
            lanes[:] = [lane for lane in lanes if lane in passed or lane in failed]
        machine.polled |= bool(failed)
        machine.failing.passed(warp, list(passed), number, machine.memory_terms)
        for lane, (block, at) in passed.items():
            event = machine.event(warp.threads[lane], number, label)
            event.block, event.first, event.size = block, at, OBJECT_BYTES
            counts = machine.object(block, at)
            phase = phase_row[lane] or 0
            machine.test(event, counts.over, stale=not parity and phase + 1 < _phase(counts))
            machine.waited(warp, lane, instruction, block, at)
        row = warp.own(slot)
        for lane in lanes:
            row[lane] = int(not peeks and lane not in failed)
        return True

    return run


def _leave_behind(warp: Warp, group: LaneGroup, lanes: Lanes) -> None:
    """Lanes that wait for other objects than the rest of their group are a group of their own."""
    group.lanes = [lane for lane in group.lanes if lane not in lanes]
    others = LaneGroup(
        group.at,
        lanes,
        mbarrier=group.mbarrier,
        parity=group.parity,
        frames=group.frames,
        step=group.step,
        checked=True,
    )
    warp.groups.append(others)
    group.mbarrier = None
