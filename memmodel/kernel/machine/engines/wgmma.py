"""wgmma.mma_async in the machine: the bytes of its matrices, and its registers, which are in use until a wait.

In: the step MultiplyInRegisters. Out: what a warp does at it. The groups are those of `asynchronous`; how far they are
complete counts for registers, too (`WgmmaUse`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.labels import Mark, Marker
from memmodel.kernel.machine.engines.matrices import hopper, matrix_spans
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp, WgmmaUse
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.program.ops import CommitGroup, Emit, Track, WaitForGroups
from memmodel.program.warp_ops import MultiplyInRegisters
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Window

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

BUSY = "a register of a wgmma.mma_async is used before a wait that covers it"


def multiply_in_registers(interpreter: Interpreter, op: MultiplyInRegisters) -> Blocking:
    """The issue of each lane, which read the matrices together, and the registers from now on in use."""
    instruction = interpreter.instruction
    matrices = [(interpreter.value(matrix.descriptor), matrix) for matrix in op.matrices]
    accumulator = [interpreter.slot(name) for name in op.accumulator]
    fragment = [interpreter.slot(name) for name in op.fragment]
    clear = forgetting(accumulator)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        _check_registers(machine, warp.registers_in_use, (op.shape, *accumulator), accumulator, fragment, instruction)
        issues = []
        for lane in lanes:
            issue = machine.event(warp.threads[lane], instruction.number, op.issue)
            warp.tracks[Track.WGMMA].add(lane, issue)
            issues.append(issue)
        thread, others = warp.threads[lanes[0]], tuple(issues[1:])
        for descriptors, matrix in matrices:
            value = descriptors(warp)[lanes[0]]
            if value is None:
                machine.unknown("the matrix descriptor", instruction)
            spans = matrix_spans(
                machine, warp, warp.cta, hopper(value), (matrix.rows, matrix.depth, matrix.bits), Window.SHARED_CTA,
                instruction, transposed=matrix.transposed,
            )  # fmt: skip
            machine.weak_parts(spans, thread, op.read, instruction.number, None, issues[0], 0, others)
        clear(warp, lanes)
        return True

    return run


def counted(step: Blocking, op: Emit | CommitGroup | WaitForGroups, left: int = 0) -> Blocking:
    """A fence, a commit or a wait of wgmma, which counts for the registers of the warp, too."""

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not step(machine, warp, lanes, group):
            return False
        use = warp.registers_in_use
        if isinstance(op, WaitForGroups):
            use.wait(left)
        elif isinstance(op, CommitGroup):
            use.committed += 1
        else:
            use.fences += 1
        return True

    return run


def counts_registers(op: Emit | CommitGroup | WaitForGroups) -> bool:
    """True for a step that counts for the registers of wgmma.mma_async."""
    if isinstance(op, Emit):
        return op.label == Mark(Marker.WGMMA_FENCE)
    return op.track is Track.WGMMA


def _check_registers(
    machine: Machine,
    use: WgmmaUse,
    key: tuple[object, ...],
    accumulator: list[int],
    fragment: list[int],
    instruction: PtxInstruction,
) -> None:
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
