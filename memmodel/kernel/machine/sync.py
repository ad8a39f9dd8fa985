"""Fences, barriers, mbarrier objects, groups of copies, bulk copies without a tensor map.

In: an Instruction. Out: a step that waits as the instruction does and leaves its events in the traces.
"""

from __future__ import annotations

from memmodel.base.labels import (
    Access,
    Action,
    Barrier,
    Covers,
    Domain,
    Family,
    Fence,
    GroupWait,
    Half,
    Issue,
    Label,
    Mbarrier,
    ProxyFence,
    Role,
    Side,
    Signal,
)
from memmodel.kernel.judge.events import Refused, TraceEvent
from memmodel.kernel.machine.accesses import SCOPES, SEMS, address, space_of
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Faulty, LaneGroup, Lanes, Machine, Warp
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.text.syntax import IntegerLiteral, Operand, PairOperand, PtxInstruction, Register, Sink
from memmodel.ptx import Proxy, Scope, Sem

NOTHING = ("nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "createpolicy", "pmevent")
RESTRICTED = {"sync_restrict::shared::cta": Covers.OWN_SHARED, "sync_restrict::shared::cluster": Covers.SHARED}
PROXY_SPACES = {"shared::cta": Covers.OWN_SHARED, "shared::cluster": Covers.SHARED, "global": Covers.GLOBAL}
LEVELS = {"cta": Scope.CTA, "gl": Scope.GPU, "sys": Scope.SYS}


def sync_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] in ("fence", "membar"):
        label = fence_label(words)
        return None if label is None else _emit(instruction, label)
    if words[0] in NOTHING:
        return lambda machine, warp, lanes, group: True
    if words[0] in ("bar", "barrier") and "cluster" not in words and "warp" not in words:
        return _barrier(compiler, instruction)
    if words[0] == "mbarrier":
        return _object(compiler, instruction)
    if words[:2] == ("cp", "async"):
        return _groups(compiler, instruction)
    return None


def fence_label(words: tuple[str, ...]) -> Label | None:
    """The event of a fence; None if it is not known."""
    rest = words[1:]
    scope = next((SCOPES[word] for word in rest if word in SCOPES), None)
    if words[0] == "membar" and rest[0] in LEVELS:
        return Fence(Sem.SC, LEVELS[rest[0]])
    if rest[0] == "proxy":
        if rest[1] == "async":
            return ProxyFence(Proxy.ASYNC, covers=PROXY_SPACES[rest[2]] if len(rest) > 2 else None)
        return ProxyFence(None) if rest[1] == "alias" else None
    if rest[0] == "mbarrier_init":
        return Fence(Sem.RELEASE, Scope.CLUSTER, Covers.INIT)
    if words[0] != "fence" or scope is None:
        return None
    restrict = next((RESTRICTED[word] for word in rest if word in RESTRICTED), None)
    sem = Sem.SC if rest[0] == "sc" else SEMS.get(rest[0], Sem.ACQ_REL)
    return Fence(sem, scope, restrict)


def _emit(instruction: PtxInstruction, label: Label) -> Blocking:
    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            machine.event(warp.threads[lane], instruction.number, label)
        return True

    return step


# ---- execution barriers --------------------------------------------------------------------------------------


def _barrier(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    kind = next((word for word in words if word in ("sync", "arrive", "red")), None)
    if kind in (None, "red") or not operands:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    aligned = words[0] == "bar" or "aligned" in words
    number = compiler.get(operands[0], instruction)
    counts = compiler.get(operands[1], instruction) if len(operands) > 1 else None

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if group.waits is None:
            if aligned and sum(1 << lane for lane in lanes) != warp.live:
                return False
            which = number(warp)[lanes[0]]
            count = None if counts is None else counts(warp)[lanes[0]]
            if which is None or (counts is not None and count is None):
                machine.unknown("the barrier", instruction)
            meeting, identity = machine.barrier(warp.cta, which)
            for lane in lanes:
                made = machine.event(
                    warp.threads[lane], instruction.number, Barrier(Half.ARRIVE, Domain.CTA), which, meeting.generation
                )
                made.barrier, made.generation, made.count = identity, meeting.generation, count
            group.waits = (which, meeting.generation)
            meeting.arrived += len(lanes)
            meeting.needed = count
            meeting.over = 0 if count is None else max(0, meeting.arrived - count)
            if meeting.over:
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
        for lane in lanes:
            made = machine.event(
                warp.threads[lane], instruction.number, Barrier(Half.WAIT, Domain.CTA), which, generation
            )
            made.barrier, made.generation = identity, generation
        group.waits = None
        return True

    return step


def _complete(machine: Machine, warp: Warp, which: int) -> None:
    """Begin the next generation if everyone has arrived."""
    meeting, _ = machine.barrier(warp.cta, which)
    total = len(warp.cta.threads)
    if meeting.arrived == 0:
        return
    full = meeting.arrived >= meeting.needed if meeting.needed is not None else False
    if full or (meeting.needed is None and meeting.arrived + warp.cta.exited >= total):
        meeting.generation, meeting.arrived, meeting.needed = meeting.generation + 1, 0, None


# ---- mbarrier objects ----------------------------------------------------------------------------------------


def _semantics(instruction: PtxInstruction, action: Action, default: Sem) -> Mbarrier:
    words = instruction.words
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    sem = next((SEMS[word] for word in words if word in SEMS), default)
    return Mbarrier(action, sem, scope or Scope.CTA, unscoped=scope is None)


def _object(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    words, operands = instruction.words, list(instruction.operands)
    kind = words[1]
    if kind in ("test_wait", "try_wait"):
        return _test(compiler, instruction)
    if kind in ("arrive", "arrive_drop"):
        return _arrive(compiler, instruction, operands)
    if kind == "init":
        return _update(compiler, instruction, Mbarrier(Action.INIT), operands, counts=True)
    if kind == "inval":
        return _update(compiler, instruction, Mbarrier(Action.INVAL), operands, counts=False)
    if kind == "expect_tx":
        return _update(
            compiler, instruction, _semantics(instruction, Action.EXPECT_TX, Sem.RELAXED), operands, counts=True
        )
    return None


def made_at(
    machine: Machine, warp: Warp, lane: int, instruction: PtxInstruction, label: Label, where: int | None
) -> TraceEvent:
    """An event about the mbarrier object at an address."""
    block, at = machine.place(warp, "shared" if where is None or where < 1 << 32 else "generic", where, 8, instruction)
    if at % 8:
        raise Faulty("undefined-address", f"address {where:#x} is misaligned for an mbarrier object")
    made = machine.event(warp.threads[lane], instruction.number, label)
    made.block, made.first, made.size = block, at, 8
    return made


def _update(
    compiler: Compiler, instruction: PtxInstruction, label: Mbarrier, operands: list[Operand], *, counts: bool
) -> Blocking:
    where = address(compiler, instruction, operands[0])
    amounts = compiler.get(operands[1], instruction) if counts else None

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), None if amounts is None else amounts(warp)
        for lane in lanes:
            amount = 0 if values is None else values[lane]
            if amount is None:
                machine.unknown("the count", instruction)
            made = made_at(machine, warp, lane, instruction, label, places[lane])
            made.count = amount
            assert made.block is not None
            if label.action is Action.INIT:
                made.block.store(made.first, 8, None)
            tx = amount if label.action is Action.EXPECT_TX else 0
            machine.update(made, label.action, 0 if tx else amount, tx)
        return True

    return step


def _arrive(compiler: Compiler, instruction: PtxInstruction, operands: list[Operand]) -> Blocking:
    words = instruction.words
    if "noComplete" in words:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    target: Operand = operands.pop(0) if isinstance(operands[0], Register | Sink) else Sink()
    slot = target.slot if isinstance(target, Register) else None
    where = address(compiler, instruction, operands[0])
    amounts = compiler.get(operands[1], instruction) if len(operands) > 1 else None
    expects, drop = "expect_tx" in words, words[1] == "arrive_drop"
    label = _semantics(instruction, Action.ARRIVE, Sem.RELEASE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), None if amounts is None else amounts(warp)
        for lane in lanes:
            amount = 1 if values is None else values[lane]
            if amount is None:
                machine.unknown("the count", instruction)
            made = made_at(machine, warp, lane, instruction, label, places[lane])
            made.count = amount
            assert made.block is not None
            if slot is not None:
                warp.registers[slot][lane] = machine.object(made.block, made.first).over
            count, tx = (1, amount) if expects else (amount, 0)
            machine.update(made, Action.ARRIVE, count, tx, drop=drop)
        return True

    return step


def _test(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """A test waits until it can return true: what a loop around it does."""
    operands = instruction.operands
    target = operands[0].first if isinstance(operands[0], PairOperand) else operands[0]
    if not isinstance(target, Register) or len(operands) < 3:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    slot = target.slot
    where, phases = address(compiler, instruction, operands[1]), compiler.get(operands[2], instruction)
    parity = "parity" in instruction.words
    label = _semantics(instruction, Action.TEST, Sem.ACQUIRE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        machine.run.tests[instruction.number] = instruction
        places, values = list(where(warp)), phases(warp)
        for lane in lanes:
            phase = values[lane]
            if phase is None:
                machine.unknown("the phase", instruction)
            block, at = machine.place(warp, "shared", places[lane], 8, instruction)
            one = machine.object(block, at)
            passes = one.over % 2 != phase % 2 if parity else one.over > phase
            if not one.live or not passes:
                return False
        for lane in lanes:
            made = made_at(machine, warp, lane, instruction, label, places[lane])
            assert made.block is not None
            machine.test(made, machine.object(made.block, made.first).over)
            warp.registers[slot][lane] = 1
        return True

    return step


# ---- groups and copies ----------------------------------------------------------------------------------------


def _groups(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    words = instruction.words
    bulk = words[2] == "bulk"
    rest = words[3:] if bulk else words[2:]
    if rest[:2] == ("mbarrier", "arrive"):
        return _arrive_on(compiler, instruction)
    if rest[:1] == ("commit_group",):
        return _commit(bulk=bulk)
    if rest[:1] in (("wait_group",), ("wait_all",)):
        return _wait(instruction, bulk=bulk)
    if bulk and rest and "tensor" not in rest and "prefetch" not in rest:
        return _bulk(compiler, instruction)
    return None


def _commit(*, bulk: bool) -> Blocking:
    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        open_, closed = (warp.bulk, warp.bulk_groups) if bulk else (warp.pending, warp.committed)
        for lane in lanes:
            closed[lane].append(_since(open_, lane, closed))
        return True

    return step


def _since(open_: list[list[TraceEvent]], lane: int, closed: list[list[list[TraceEvent]]]) -> list[TraceEvent]:
    """What was issued since the last commit."""
    before = sum(len(one) for one in closed[lane])
    return open_[lane][before:]


def _wait(instruction: PtxInstruction, *, bulk: bool) -> Blocking:
    operand = instruction.operands[0] if instruction.operands else IntegerLiteral(0)
    if not isinstance(operand, IntegerLiteral):
        raise Refused(f"{instruction.opcode} takes a number of groups", instruction.span)
    left, reads_only = operand.value, "read" in instruction.words
    label = GroupWait(Family.BULK if bulk else Family.CP_ASYNC)
    everything = "wait_all" in instruction.words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            open_, closed = (warp.bulk, warp.bulk_groups) if bulk else (warp.pending, warp.committed)
            done = closed[lane][: len(closed[lane]) - left] if left else closed[lane]
            made = machine.event(warp.threads[lane], instruction.number, label, reads_only)
            made.completes = list(open_[lane]) if everything else [one for issues in done for one in issues]
            made.note = (reads_only, len(made.completes))
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
            block, at = machine.place(warp, "shared", places[lane], 8, instruction)
            signal = Signal(Action.ARRIVE, Scope.CTA, Family.CP_ASYNC)
            told = TraceEvent(issue.thread, None, instruction.number, signal, block, at, 8, issue)
            told.completes = list(warp.pending[lane])
            issue.partner = told
            machine.update(told, Action.ARRIVE, 1)
            issue.note = told.note
        return True

    return step


def _bulk(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """cp.async.bulk between global and shared memory of the own CTA."""
    words, operands = instruction.words, instruction.operands
    spaces = [word for word in words if word.split("::")[0] in ("shared", "global") and "mbarrier" not in word]
    known = len(spaces) == 2 and "global" in spaces and "ignore_oob" not in words and "cp_mask" not in words
    if not known or any("multicast" in word for word in words) or any(word in SEMS for word in words):
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    grouped = "bulk_group" in words
    target, source = address(compiler, instruction, operands[0]), address(compiler, instruction, operands[1])
    sizes = compiler.get(operands[2], instruction)
    objects = None if grouped else address(compiler, instruction, operands[3])
    reads = Access(Side.READ, proxy=Proxy.ASYNC, family=Family.BULK, asynchronous=True, role=Role.SOURCE)
    writes = Access(Side.WRITE, proxy=Proxy.ASYNC, family=Family.BULK, asynchronous=True)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        to, start, size_of = list(target(warp)), list(source(warp)), sizes(warp)
        for lane in lanes:
            size = size_of[lane]
            if size is None:
                machine.unknown("the size of the copy", instruction)
            thread = warp.threads[lane]
            block, at = machine.place(warp, spaces[0], to[lane], size, instruction)
            origin, begin = machine.place(warp, spaces[1], start[lane], size, instruction)
            if size % 16 or (at + block.address) % 16 or (begin + origin.address) % 16:
                raise Faulty("undefined-address", "a bulk copy works on multiples of 16 bytes")
            issue = machine.event(thread, instruction.number, Issue(Family.BULK))
            machine.weak(origin, begin, size, thread, reads, instruction.number, None, issue)
            machine.weak(block, at, size, thread, writes, instruction.number, None, issue)
            machine.forget(block, at, size)
            block.copy(at, origin, begin, size)
            if objects is None:
                warp.bulk[lane].append(issue)
                continue
            where, offset = machine.place(warp, "shared", objects(warp)[lane], 8, instruction)
            signal = Signal(Action.COMPLETE_TX, Scope.CLUSTER, Family.BULK)
            told = TraceEvent(issue.thread, None, instruction.number, signal, where, offset, 8, issue)
            told.completes = [issue]
            issue.partner = told
            machine.update(told, Action.COMPLETE_TX, 0, -size)
            issue.note = told.note
        return True

    return step


__all__ = ["fence_label", "space_of", "sync_step"]
