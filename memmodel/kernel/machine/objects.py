"""Operations on mbarrier objects: of threads, and the signals of hardware.

In: an Instruction. Out: a step that leaves its events in the traces. A state is the number of phases that are over,
above it whether an arrive with .noComplete made it, and a number of its object in its life. How many arrivals were
pending depends on the schedule, and is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from memmodel.base.labels import Action, Family, Issue, Mbarrier, Signal
from memmodel.kernel.machine.accesses import SCOPES, SEMS, address
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.problems import Refused
from memmodel.program.automata import MbarrierCounts
from memmodel.program.ops import Track
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Operand, Pair, Register
from memmodel.ptx.vocabulary import Scope, Sem

_QUERIED_AT = 31
_OBJECT_AT = 32
_PHASES = (1 << _QUERIED_AT) - 1


def object_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words, operands = instruction.words, list(instruction.operands)
    if words[:4] == ("cp", "async", "mbarrier", "arrive"):
        return _arrive_on(compiler, instruction)
    if words[0] != "mbarrier":
        return None
    kind = words[1]
    if kind in ("test_wait", "try_wait"):
        return _test(compiler, instruction)
    if kind in ("arrive", "arrive_drop"):
        return _arrive(compiler, instruction, operands)
    if kind == "pending_count":
        return _pending_count(compiler, instruction)
    if kind == "init":
        return _update(compiler, instruction, Mbarrier(Action.INIT), operands, counts=True)
    if kind == "inval":
        return _update(compiler, instruction, Mbarrier(Action.INVAL), operands, counts=False)
    if kind in ("expect_tx", "complete_tx"):
        action = Action.EXPECT_TX if kind == "expect_tx" else Action.COMPLETE_TX
        return _update(compiler, instruction, _semantics(instruction, action, Sem.RELAXED), operands, counts=True)
    return None


def _semantics(instruction: PtxInstruction, action: Action, default: Sem) -> Mbarrier:
    words = instruction.words
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    sem = next((SEMS[word] for word in words if word in SEMS), default)
    return Mbarrier(action, sem, scope or Scope.CTA, unscoped=scope is None)


def window_of(instruction: PtxInstruction, where: int | None) -> str:
    """The state space in which the address of an object is."""
    if "shared::cluster" in instruction.words:
        return "shared::cluster"
    return "shared" if where is None or where < 1 << 32 else "generic"


def at_object(machine: Machine, warp: Warp, instruction: PtxInstruction, where: int | None) -> tuple[Block, int]:
    """The object at an address."""
    block, at = machine.place(warp, window_of(instruction, where), where, 8, instruction)
    if at % 8:
        raise Faulty("undefined-address", f"address {where:#x} is misaligned for an mbarrier object")
    return block, at


def made_at(
    machine: Machine, warp: Warp, lane: int, instruction: PtxInstruction, label: Mbarrier, where: int | None
) -> TraceEvent:
    """An event about the mbarrier object at an address."""
    block, at = at_object(machine, warp, instruction, where)
    made = machine.event(warp.threads[lane], instruction.number, label)
    made.block, made.first, made.size = block, at, 8
    return made


def signalled(
    machine: Machine,
    issue: TraceEvent,
    label: Signal,
    block: Block,
    at: int,
    completes: Iterable[TraceEvent],
    tx: int = 0,
) -> TraceEvent:
    """A complete-tx of so many bytes, or an arrive-on, that the hardware makes when some issues are done."""
    told = TraceEvent(issue.thread, None, issue.at, label, block, at, 8, issue)
    told.completes = tuple(completes)
    issue.signals += (told,)
    machine.update(told, label.action, int(label.action is Action.ARRIVE), tx)
    issue.note = (*issue.note, *told.note)
    return told


def _update(
    compiler: Compiler, instruction: PtxInstruction, label: Mbarrier, operands: list[Operand], *, counts: bool
) -> Blocking:
    where = address(compiler, instruction, operands[0])
    amounts = compiler.get(operands[1], instruction) if counts else None

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), None if amounts is None else list(amounts(warp))
        for lane in lanes:
            amount = 0 if values is None else values[lane]
            if amount is None:
                machine.unknown("the count", instruction)
            made = made_at(machine, warp, lane, instruction, label, places[lane])
            made.count = amount
            assert made.block is not None
            if label.action is Action.INIT:
                made.block.forget(made.first, 8)
                machine.update(made, label.action, amount)
            else:
                machine.update(made, label.action, 0, amount)
        return True

    return step


def _arrive(compiler: Compiler, instruction: PtxInstruction, operands: list[Operand]) -> Blocking:
    words = instruction.words
    target: Operand = operands.pop(0) if isinstance(operands[0], Register | Blank) else Blank()
    slot = compiler.slot_of(target)
    where = address(compiler, instruction, operands[0])
    amounts = compiler.get(operands[1], instruction) if len(operands) > 1 else None
    expects, drop = "expect_tx" in words, words[1] == "arrive_drop"
    queried = "noComplete" in words
    label = _semantics(instruction, Action.ARRIVE, Sem.RELEASE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), None if amounts is None else list(amounts(warp))
        for lane in lanes:
            amount = 1 if values is None else values[lane]
            if amount is None:
                machine.unknown("the count", instruction)
            made = made_at(machine, warp, lane, instruction, label, places[lane])
            made.count = amount
            assert made.block is not None
            if slot is not None:
                if made.block.instance.owner != warp.threads[lane].place.cta_id:
                    message = f"{instruction.opcode} returns no state from another CTA's object"
                    machine.problem("undefined-instruction", message, instruction)
                one = machine.object(made.block, made.first)
                warp.own(slot)[lane] = _state(one, made.block, made.first, queried=queried)
            count, tx = (1, amount) if expects else (amount, 0)
            machine.update(made, Action.ARRIVE, count, tx, drop=drop, no_complete=queried)
        return True

    return step


def _state(one: MbarrierCounts, block: Block, first: int, *, queried: bool) -> int:
    """The state of an object; it is not 0."""
    return one.over | queried << _QUERIED_AT | _number(one, block, first) << _OBJECT_AT


def _number(one: MbarrierCounts, block: Block, first: int) -> int:
    """A number of an object in its life; it is not 0, and another one has it by chance at most."""
    return crc32(f"{block.instance.name} {block.instance.owner} {first} {one.life}".encode()) or 1


def _test(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """A test waits until it can return true: what a loop around it does. One that only looks ahead returns false."""
    operands = instruction.operands
    first = operands[0]
    target, report = (first.first, first.second) if isinstance(first, Pair) else (first, Blank())
    if not isinstance(target, Register) or len(operands) < 3:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    slots = [slot for slot in (compiler.slot_of(target), compiler.slot_of(report)) if slot is not None]
    where, phases = address(compiler, instruction, operands[1]), compiler.get(operands[2], instruction)
    parity = "parity" in instruction.words
    label = _semantics(instruction, Action.TEST, Sem.ACQUIRE)
    peeks = instruction.number in compiler.peeks

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), list(phases(warp))
        machine.run.tests[instruction.number] = instruction
        found: dict[int, tuple[Block, int]] = {}
        failed: list[int] = []
        group.on = None
        for lane in lanes:
            phase = values[lane]
            if phase is None:
                machine.unknown("the phase", instruction)
            block, at = at_object(machine, warp, instruction, places[lane])
            one = machine.object(block, at)
            if not peeks and machine.failing.fails(warp, lane, instruction.number, group.frames, (block, at, phase)):
                failed.append(lane)
                continue
            if peeks:
                machine.peeked(warp, lane, instruction, block, at, phase)
                continue
            strange = not parity and phase >> _OBJECT_AT != _number(one, block, at)
            passes = one.over % 2 != phase % 2 if parity else one.over > phase & _PHASES
            if not one.live or not (passes or strange):
                if instruction.number in machine.schedule.truthful:
                    failed.append(lane)
                else:
                    group.on = block, at
                continue
            if strange:
                message = "the state was returned by no arrive on this object in its present life"
                machine.problem("undefined-instruction", message, instruction)
            found[lane] = block, at
        if group.on is not None:
            if not found and not failed:
                return False
            _leave_behind(warp, group, [lane for lane in lanes if lane not in found and lane not in failed])
            lanes = [lane for lane in lanes if lane in found or lane in failed]
        machine.polled |= bool(failed)
        machine.failing.passed(warp, list(found), instruction.number, machine.noted)
        for lane, (block, at) in found.items():
            made = machine.event(warp.threads[lane], instruction.number, label)
            made.block, made.first, made.size = block, at, 8
            machine.test(made, machine.object(block, at).over, None if parity else (values[lane] or 0) & _PHASES)
            machine.waited(warp, lane, instruction, block, at)
        for number, slot in enumerate(slots):
            row = warp.own(slot)
            for lane in lanes:
                row[lane] = int(number == 0 and not peeks and lane not in failed)
        return True

    return step


def _leave_behind(warp: Warp, group: LaneGroup, lanes: Lanes) -> None:
    """Lanes that wait for other objects than the rest of their group are a group of their own."""
    group.lanes = [lane for lane in group.lanes if lane not in lanes]
    warp.groups.append(LaneGroup(group.at, lanes, on=group.on, frames=group.frames))
    group.on = None


def _pending_count(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """What was pending before the arrive that made a state, which depends on the schedule."""
    slot, states = compiler.target(instruction), compiler.get(instruction.operands[1], instruction)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        row, values = warp.own(slot), list(states(warp))
        for lane in lanes:
            state = values[lane]
            if state is None:
                machine.unknown("the state", instruction)
            if not state >> _QUERIED_AT & 1:
                message = "mbarrier.pending_count takes the state of an arrive with .noComplete"
                machine.problem("undefined-instruction", message, instruction)
            row[lane] = None
        return True

    return step


def _arrive_on(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """cp.async.mbarrier.arrive: an arrive-on when the earlier cp.async of the thread are done."""
    where = address(compiler, instruction, instruction.operands[0])
    extra = "noinc" not in instruction.words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places = list(where(warp))
        for lane in lanes:
            if extra:
                label = Mbarrier(Action.PENDING, Sem.RELAXED, Scope.CTA)
                made = made_at(machine, warp, lane, instruction, label, places[lane])
                machine.update(made, Action.PENDING, 1)
            issue = machine.event(warp.threads[lane], instruction.number, Issue(Family.CP_ASYNC))
            block, at = at_object(machine, warp, instruction, places[lane])
            signal = Signal(Action.ARRIVE, Scope.CTA, Family.CP_ASYNC)
            signalled(machine, issue, signal, block, at, list(warp.tracks[Track.CP_ASYNC].issued[lane]))
        return True

    return step
