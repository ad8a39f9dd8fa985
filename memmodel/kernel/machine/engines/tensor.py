"""Tensor memory: its lanes and columns, and the instructions that allocate it and wait for others.

In: an Instruction. Out: a step. Tensor memory has 128 lanes of 512 columns of 4 bytes; lane l, column c is at byte
(512 l + c) * 4 here, and an address holds the lane in its upper half. Source: PTX ISA "Tensor Memory Addressing",
"tcgen05.alloc", "tcgen05.wait", "tcgen05.fence", "tcgen05.commit".
"""

from __future__ import annotations

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Family,
    GroupWait,
    Issue,
    Mark,
    Marker,
    Side,
    Signal,
)
from memmodel.kernel.machine.accesses import address, gathered
from memmodel.kernel.machine.memory import RANK_SHIFT
from memmodel.kernel.machine.objects import at_object, signalled
from memmodel.kernel.machine.parts import Cta, Faulty, LaneGroup, Lanes, PairTurn, TensorMemory, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking, lanes_meet
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.bytes import Instance
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Scope, Space

COLUMNS, TENSOR_LANES, UNIT = 512, 128, 4
ROW = COLUMNS * UNIT
TRACKED = (Family.MMA, Family.TCGEN_CP, Family.SHIFT)
"""What a commit waits for."""


def tensor_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] != "tcgen05":
        return None
    if words[1] == "alloc":
        return _alloc(compiler, instruction)
    if words[1] == "dealloc":
        return _dealloc(compiler, instruction)
    if words[1] == "relinquish_alloc_permit":
        return _relinquish(instruction)
    if words[1] == "commit":
        return _commit(compiler, instruction)
    if words[1] in ("wait::ld", "wait::st"):
        return _wait(instruction)
    if words[1] in ("fence::before_thread_sync", "fence::after_thread_sync"):
        return _fence(instruction)
    return None


def group_of_words(words: tuple[str, ...]) -> int:
    """N of .cta_group::N."""
    return 2 if "cta_group::2" in words else 1


def tensor_memory(cta: Cta) -> TensorMemory:
    """The tensor memory of a CTA."""
    if cta.tensor is None:
        size = TENSOR_LANES * ROW
        instance = Instance(f"tensor memory of CTA {cta.number}", cta.threads[0].place.cta_id, Space.TENSOR, size)
        cta.tensor = TensorMemory(Block(instance, 0, size), [None] * COLUMNS)
    return cta.tensor


def stretch(cta: Cta, lane: int, column: int, count: int) -> tuple[Block, int, int]:
    """So many columns of one lane. Raises Faulty where they are not allocated."""
    memory = tensor_memory(cta)
    if not (0 <= lane < TENSOR_LANES and column >= 0 and column + count <= COLUMNS):
        raise Faulty("undefined-tensor-memory", f"lane {lane}, columns {column} to {column + count - 1} do not exist")
    if None in memory.columns[column : column + count]:
        message = f"columns {column} to {column + count - 1} of tensor memory are not all allocated"
        raise Faulty("undefined-tensor-memory", message)
    return memory.block, lane * ROW + column * UNIT, count * UNIT


def owners(cta: Cta, column: int, count: int) -> tuple[TraceEvent, ...]:
    """The allocations that columns belong to."""
    return tuple(dict.fromkeys(one for one in tensor_memory(cta).columns[column : column + count] if one is not None))


def pair_of(machine: Machine, warp: Warp, group: int) -> list[Cta]:
    """The CTAs of a .cta_group::N, the executing one first."""
    if group == 1:
        return [warp.cta]
    other = machine.ctas.get((warp.cta.cluster, warp.cta.rank ^ 1))
    if other is None:
        raise Faulty("undefined-cta-groups", ".cta_group::2 in a cluster that has no pair of CTAs")
    return [warp.cta, other]


def together(machine: Machine, warp: Warp, group: LaneGroup, label: Allocates) -> bool:
    """Has a warp of the peer CTA come to the same, if .cta_group::2 asks for it? "The first warp to perform the
    operation could block until the second warp in the Peer CTA also performs the operation" ("Issue Granularity").

    It orders nothing, since it may as well not block.
    """
    if label.group != 2:
        return True
    peer = pair_of(machine, warp, 2)[1]
    if not isinstance(group.waits, PairTurn):
        warp.cta.together[label.what] += 1
        group.waits = PairTurn(label.what, warp.cta.together[label.what])
        machine.version += 1
    return peer.together[label.what] >= group.waits.turn


def _alloc(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.alloc: waits until columns are free; its warp writes the address of the first to shared memory."""
    where = address(compiler, instruction, instruction.operands[0])
    count = compiler.get(instruction.operands[1], instruction, 32)
    label = Allocates(Allocation.ALLOC, group_of_words(instruction.words))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        columns, place = count(warp)[lanes[0]], where(warp)[lanes[0]]
        if columns is None:
            machine.unknown("the number of columns", instruction)
        if columns not in (32, 64, 128, 256, 512):
            raise Faulty("undefined-instruction", f"tcgen05.alloc takes 32 to 512 columns, not {columns}")
        if not together(machine, warp, group, label):
            return False
        memory = tensor_memory(warp.cta)
        first = memory.promised.pop(columns, None) if label.group == 2 else None
        if first is None:
            others = [tensor_memory(cta) for cta in pair_of(machine, warp, label.group or 1)]
            free = (
                at for at in range(0, COLUMNS, columns) if not any(any(x.columns[at : at + columns]) for x in others)
            )
            first = next(free, None)
            if first is None:
                return False
            for other in others[1:]:
                other.promised[columns] = first
        group.waits = None
        block, at = machine.place(warp, "shared", place, 4, instruction)
        thread = warp.threads[lanes[0]]
        made = machine.event(thread, instruction.number, label, columns)
        lanes_meet(machine, warp, lanes, warp.live, instruction.number)
        memory.columns[first : first + columns] = [made] * columns
        if first in [tensor_memory(cta).promised.get(columns) for cta in pair_of(machine, warp, label.group or 1)[1:]]:
            # The warp of the peer CTA takes part in the same allocation, and makes its own event of it.
            tensor_memory(pair_of(machine, warp, 2)[1]).columns[first : first + columns] = [made] * columns
        made.owners = (made,)
        machine.weak(block, at, 4, thread, Access(Side.WRITE), instruction.number, 4, None, first)
        machine.forget(block, at, 4)
        block.store(at, 4, first)
        return True

    return step


def _dealloc(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.dealloc: the columns of an allocation are free again."""
    where, count = (compiler.get(one, instruction, 32) for one in instruction.operands[:2])
    label = Allocates(Allocation.DEALLOC, group_of_words(instruction.words))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        first, columns = where(warp)[lanes[0]], count(warp)[lanes[0]]
        if first is None or columns is None:
            machine.unknown("what is freed", instruction)
        if not together(machine, warp, group, label):
            return False
        group.waits = None
        lanes_meet(machine, warp, lanes, warp.live, instruction.number)
        memory, column = tensor_memory(warp.cta), first & 0xFFFF
        made = machine.event(warp.threads[lanes[0]], instruction.number, label, columns)
        owner = memory.columns[column] if column < COLUMNS else None
        held = [one is owner for one in memory.columns]
        if owner is None or held.count(True) != columns or not held[column] or (column and held[column - 1]):
            message = f"no allocation has {columns} columns from column {column} on"
            raise Faulty("undefined-tensor-memory-freed", message)
        made.owners = (owner,)
        memory.columns[column : column + columns] = [None] * columns
        machine.version += 1
        return True

    return step


def _relinquish(instruction: PtxInstruction) -> Blocking:
    label = Allocates(Allocation.RELINQUISH, group_of_words(instruction.words))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes) or not together(machine, warp, group, label):
            return False
        group.waits = None
        lanes_meet(machine, warp, lanes, warp.live, instruction.number)
        machine.event(warp.threads[lanes[0]], instruction.number, label)
        return True

    return step


def _commit(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.commit: an arrive-on when all earlier mma, cp and shift of the thread and CTA group are done."""
    words, operands = instruction.words, instruction.operands
    group_number = group_of_words(words)
    where = address(compiler, instruction, operands[0])
    masks = compiler.get(operands[1], instruction, 16) if "multicast::cluster" in words else None
    label = Issue(Family.COMMIT, group=group_number)
    signal = Signal(Action.ARRIVE, Scope.CLUSTER, Family.COMMIT, group_number)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places = list(where(warp))
        for lane in lanes:
            place = places[lane]
            if place is None:
                machine.unknown("the address of the mbarrier object", instruction)
            issue = machine.event(warp.threads[lane], instruction.number, label)
            done = [
                one for family in TRACKED for one in issued(warp, family, lane)
                if isinstance(one.label, Issue) and one.label.group == group_number
            ]  # fmt: skip
            targets = [place]
            if masks is not None:
                ranks = multicast_ranks(machine, warp, masks(warp)[lane] or 0, instruction)
                targets = [place & (1 << RANK_SHIFT) - 1 | rank << RANK_SHIFT for rank in ranks]
            for target in targets:
                signalled(machine, issue, signal, *at_object(machine, warp, instruction, target), done)
        return True

    return step


def issued(warp: Warp, family: Family, lane: int) -> list[TraceEvent]:
    """The instructions of a family that a lane has issued."""
    if family not in warp.tensor:
        warp.tensor[family] = [[] for _ in range(32)]
    return warp.tensor[family][lane]


def _wait(instruction: PtxInstruction) -> Blocking:
    family = Family.TCGEN_LD if instruction.words[1] == "wait::ld" else Family.TCGEN_ST
    label = GroupWait(family)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        for lane in lanes:
            made = machine.event(warp.threads[lane], instruction.number, label)
            made.completes = tuple(issued(warp, family, lane))
            made.note = (len(made.completes),)
        return True

    return step


def _fence(instruction: PtxInstruction) -> Blocking:
    before = instruction.words[1] == "fence::before_thread_sync"
    label = Mark(Marker.BEFORE if before else Marker.AFTER)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            machine.event(warp.threads[lane], instruction.number, label)
        return True

    return step


def multicast_ranks(machine: Machine, warp: Warp, mask: int, instruction: PtxInstruction) -> list[int]:
    """The CTAs of the cluster that a mask names."""
    ranks = [rank for rank in range(16) if mask >> rank & 1]
    for rank in ranks:
        if (warp.cta.cluster, rank) not in machine.ctas:
            raise Refused(f"the mask {mask:#x} names a CTA that the cluster does not have", instruction.span)
    return ranks
