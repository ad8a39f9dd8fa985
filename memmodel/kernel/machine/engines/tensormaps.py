"""Tensor maps that a kernel changes: the steps Read, Write and CopyTogether of the 128 bytes of one.

In: a step. Out: what the machine does at it. A map is a number, which temporaries of an instruction hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import locator
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.program.ops import Read, Write
from memmodel.program.warp_ops import CopyTogether

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

PIECE = 4
"""Bytes of a map that each lane copies."""

SEVERAL_PLACES = "lanes name different places for the map that they copy together, and which it is, is not specified"


def read_map(interpreter: Interpreter, op: Read) -> Blocking:
    """The number that stands for a map, into a temporary."""
    locate, number = locator(interpreter, op.region), interpreter.instruction.number
    slot = interpreter.slot(op.registers[0] or "")

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        at, row = locate(machine, warp), warp.own(slot)
        for lane in lanes:
            block, first, size, _ = at(lane).spans[0]
            machine.weak(block, first, size, warp.threads[lane], op.label, number, None)
            row[lane] = block.load(first, size)
        return True

    return run


def write_map(interpreter: Interpreter, op: Write) -> Blocking:
    """Another number in its place."""
    locate, number = locator(interpreter, op.region), interpreter.instruction.number
    values = interpreter.value(op.values[0])

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        at, row = locate(machine, warp), values(warp)
        for lane in lanes:
            block, first, size, _ = at(lane).spans[0]
            machine.weak(block, first, size, warp.threads[lane], op.label, number, None)
            machine.forget(block, first, size)
            block.store(first, size, row[lane])
        return True

    return run


def copy_together(interpreter: Interpreter, op: CopyTogether) -> Blocking:
    """The copy of a warp, to which each lane contributes."""
    sources, targets = locator(interpreter, op.source), locator(interpreter, op.target)
    number = interpreter.instruction.number

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        source, target = ({where(machine, warp)(lane).spans[0][:3] for lane in lanes} for where in (sources, targets))
        if len(source) > 1 or len(target) > 1:
            raise Refused(SEVERAL_PLACES, interpreter.instruction.span)
        ((origin, begin, _),), ((block, first, size),) = source, target
        for moved, start, label in ((origin, begin, op.read), (block, first, op.write)):
            offsets = list(range(start, start + TENSORMAP_BYTES, PIECE))
            machine.weak_matrix(warp, lanes, moved, offsets, PIECE, label, number, PIECE, "map")
        machine.forget(block, first, size)
        block.copy(first, origin, begin, size)
        return True

    return run
