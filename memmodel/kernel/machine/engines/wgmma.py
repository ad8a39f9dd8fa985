"""wgmma: the matrix instructions of a warpgroup.

In: an Instruction. Out: a step that leaves the reads of shared memory in the traces of all its lanes, and checks the
use of registers as "wgmma.mma_async" and "wgmma.fence" ask for. A lane's reads are those of the whole instruction.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Family, GroupWait, Issue, Mark, Marker, Side
from memmodel.kernel.machine.accesses import gathered, registers_of
from memmodel.kernel.machine.engines.matrices import hopper, matrix_bytes
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp, WgmmaUse
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.problems import Refused
from memmodel.program.ops import Track
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm, Vector
from memmodel.ptx.vocabulary import Proxy

ROWS = 64
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
READ = Access(Side.READ, proxy=Proxy.ASYNC, family=Family.WGMMA, asynchronous=True)
BUSY = "a register of a wgmma.mma_async is used before a wait that covers it"


def wgmma_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] != "wgmma":
        return None
    if words[1] == "fence":
        return _fence(instruction)
    if words[1] == "commit_group":
        return _commit
    if words[1] == "wait_group":
        return _wait(instruction)
    return _multiply(compiler, instruction) if words[1] == "mma_async" else None


def _fence(instruction: PtxInstruction) -> Blocking:
    label = Mark(Marker.WGMMA_FENCE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        for lane in lanes:
            machine.event(warp.threads[lane], instruction.number, label)
        warp.registers_in_use.fences += 1
        return True

    return step


def _commit(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
    if not gathered(warp, lanes):
        return False
    for lane in lanes:
        warp.tracks[Track.WGMMA].commit(lane)
    warp.registers_in_use.committed += 1
    return True


def _wait(instruction: PtxInstruction) -> Blocking:
    operand = instruction.operands[0]
    if not isinstance(operand, Imm):
        raise Refused(f"{instruction.opcode} takes a number of groups", instruction.span)
    left, label = operand.value, GroupWait(Family.WGMMA)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        for lane in lanes:
            made = machine.event(warp.threads[lane], instruction.number, label)
            made.completes = tuple(warp.tracks[Track.WGMMA].over(lane, left))
            made.note = (len(made.completes),)
        warp.registers_in_use.wait(left)
        return True

    return step


def _multiply(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    shape = next(word for word in words if word.startswith("m64n"))
    columns = int(shape[4:].split("k")[0])
    kinds = [word for word in words if word in BITS or word in ("f32", "s32")]
    left_kind, right_kind = kinds[-2], kinds[-1]
    sparse = "sp" in words
    operands = (*operands[:3], *operands[5:]) if sparse else operands
    in_registers = isinstance(operands[1], Vector)
    left = None if in_registers else compiler.get(operands[1], instruction)
    right = compiler.get(operands[2], instruction)
    flags = [one.value for one in operands[4:] if isinstance(one, Imm)]
    # imm-scale-a, imm-scale-b, then imm-trans of the matrices in shared memory.
    turned = flags[2:]
    turns_left = bool(turned[0]) if len(turned) == 2 else False
    turns_right = bool(turned[-1]) if turned else False
    depth = 32
    accumulator, fragment = registers_of(compiler, operands[0]), registers_of(compiler, operands[1])
    fragment = fragment if in_registers else []
    forget = forgetting(accumulator)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        _check(machine, warp.registers_in_use, (shape, *accumulator), accumulator, fragment, instruction)
        issues = []
        for lane in lanes:
            issue = machine.event(warp.threads[lane], instruction.number, Issue(Family.WGMMA))
            warp.tracks[Track.WGMMA].add(lane, issue)
            issues.append(issue)
        for get, rows, kind, turns in ((left, ROWS, left_kind, turns_left), (right, columns, right_kind, turns_right)):
            if get is None:
                continue
            value = get(warp)[lanes[0]]
            if value is None:
                machine.unknown("the matrix descriptor", instruction)
            deep = 2 * depth if sparse and get is right else depth
            for first, size in matrix_bytes(hopper(value), rows, deep, BITS[kind], transposed=turns):
                address = first | warp.cta.base
                block, at = machine.place(warp, "shared", address, size, instruction)
                thread, others = warp.threads[lanes[0]], tuple(issues[1:])
                machine.weak(block, at, size, thread, READ, instruction.number, None, issues[0], None, 0, others)
        forget(warp, lanes)
        return True

    return step


def _check(
    machine: Machine, use: WgmmaUse, key: tuple[object, ...], accumulator: list[int], fragment: list[int],
    instruction: PtxInstruction,
) -> None:  # fmt: skip
    """The registers of a wgmma.mma_async are free, or accumulate on in one shape, and were not used otherwise since
    the last wgmma.fence.
    """
    busy = [slot for slot in accumulator if use.busy(slot) and use.shapes.get(slot) != key]
    busy += [slot for slot in fragment if use.busy(slot) and use.shapes.get(slot)]
    if busy:
        machine.problem("undefined-instruction", BUSY, instruction)
    if use.fences == 0:
        machine.problem("undefined-instruction", "no wgmma.fence stands before this wgmma.mma_async", instruction)
    used = [slot for slot in (*accumulator, *fragment) if use.written.get(slot) == use.fences]
    used += [slot for slot in accumulator if use.read.get(slot) == use.fences]
    again = [slot for slot in (*accumulator, *fragment) if use.multiplied.get(slot) == use.fences]
    used += [slot for slot in again if use.shapes.get(slot) != (key if slot in accumulator else ())]
    if use.fences and used:
        message = "registers of this wgmma.mma_async were used after the last wgmma.fence"
        machine.problem("undefined-instruction", message, instruction)
    for slot in accumulator:
        use.groups[slot], use.shapes[slot] = use.committed + 1, key
    for slot in fragment:
        use.groups[slot], use.shapes[slot] = use.committed + 1, ()
    for slot in (*accumulator, *fragment):
        use.multiplied[slot] = use.fences
