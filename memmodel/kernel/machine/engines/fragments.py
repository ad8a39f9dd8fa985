"""Matrices that a warp moves and multiplies together: ldmatrix, stmatrix, movmatrix, mma, wmma.

In: an Instruction. Out: a step. The values are unknown afterwards; what is settled here is which bytes are touched.
"""

from __future__ import annotations

import re

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.accesses import address, gathered, registers_of, space_of
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Window

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "u8": 8, "s8": 8, "s32": 32, "u4": 4, "s4": 4, "b1": 1}


def fragment_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] in ("ldmatrix", "stmatrix"):
        return _matrix(compiler, instruction)
    if words[0] in ("mma", "movmatrix") or words[:2] == ("wmma", "mma"):
        return _mma(compiler, instruction)
    if words[:2] in (("wmma", "load"), ("wmma", "store")):
        return _tile(compiler, instruction)
    return None


def _tile(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """wmma.load and wmma.store: a whole matrix, its rows or columns `stride` elements apart.

    Which lane touches which element is not specified ("wmma.load"); here they take turns.
    """
    words, operands = instruction.words, instruction.operands
    load, which = words[1] == "load", words[2]
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word) for word in words if word.startswith("m")), None)
    bits = BITS.get(words[-1])
    if shape is None or bits is None:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    m, n, k = (int(one) for one in shape.groups())
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    lines, length = (rows, columns) if "row" in words else (columns, rows)
    place = operands[1 if load else 0]
    get = address(compiler, instruction, place)
    strides = compiler.get(operands[2], instruction) if len(operands) > 2 else None
    slots = registers_of(compiler, operands[0]) if load else []
    label, forget, size = Access(Side.READ if load else Side.WRITE), forgetting(slots), length * bits // 8
    space = space_of(words)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        start, stride = get(warp)[lanes[0]], length if strides is None else strides(warp)[lanes[0]]
        if stride is None:
            machine.unknown("the stride", instruction)
        apart = stride * bits // 8
        block, at = machine.place(warp, space, start, apart * (lines - 1) + size, instruction)
        unit = min(4, size)
        offsets = [at + line * apart + byte for line in range(lines) for byte in range(0, size, unit)]
        movers = [lanes[number % len(lanes)] for number in range(len(offsets))]
        machine.weak_lanes(warp, movers, block, offsets, unit, label, instruction.number, max(1, bits // 8))
        if not load:
            machine.forget_all(block, offsets, unit)
            for one in offsets:
                block.forget(one, unit)
        forget(warp, lanes)
        return True

    return step


def _matrix(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """ldmatrix and stmatrix: lane 8k + r names row r of matrix k, 16 bytes; lanes 4r to 4r + 3 move it.

    16-bit elements with .trans, and .m16n8 and .m16n16 of 8 bits, give the bytes to other lanes of the warp: the rows
    that are touched stay the same. A matrix of .m16n16 has 16 rows, and one of .m16n8 is stored by its 8 columns.
    """
    words = instruction.words
    load = words[0] == "ldmatrix"
    count = next((int(word[1:]) for word in words if word in ("x1", "x2", "x4")), 0)
    shape = next((word for word in words if word in ("m8n8", "m16n8", "m16n16", "m8n16")), None)
    if not count or shape is None:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    rows = min(LANES, count * (16 if shape == "m16n16" else 8))
    get = address(compiler, instruction, instruction.operands[1 if load else 0])
    slots = registers_of(compiler, instruction.operands[0]) if load else []
    label = Access(Side.READ if load else Side.WRITE)
    forget = forgetting(slots)
    packed = "b4x16_p64" in words or "b6x16_p32" in words
    whole = 8 if "b4x16_p64" in words else 12 if packed else 16

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        addresses = list(get(warp))
        found = machine.places(warp, "shared", addresses, lanes[:rows], 16, Window.GENERIC)
        if found is None:
            for lane in lanes[:rows]:
                machine.place(warp, "shared", addresses[lane], 16, instruction)
            raise Faulty("undefined-address", "the rows of a matrix lie in different objects")
        block, offsets = found
        if any(one % 16 for one in offsets):
            raise Faulty("undefined-address", "a row of a matrix is misaligned for 16 bytes")
        pieces = [at + 4 * column for at in offsets for column in range(whole // 4)]
        movers = [number % 8 * 4 + column for number in range(len(offsets)) for column in range(whole // 4)]
        machine.weak_lanes(warp, movers, block, pieces, 4, label, instruction.number, 4)
        if not load:
            machine.forget_all(block, offsets, 16)
            for at in offsets:
                block.forget(at, 16)
        forget(warp, lanes)
        return True

    return step


def _mma(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    forget = forgetting(registers_of(compiler, instruction.operands[0]))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        forget(warp, lanes)
        return True

    return step
