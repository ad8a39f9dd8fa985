"""multimem instructions: all memory that a multimem address points to, as one location whose values are unknown.

In: the step AccessReplicas. Out: what leaves the accesses in the traces. The replicas are accessed alike, at one offset
each; the launch says which buffers they are, as far as it touches them otherwise. A multimem address is another virtual
address than that of the buffer ("Multimem Addresses").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memmodel.base.labels import Access, Side, is_replicated
from memmodel.kernel.machine.accesses import strong
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import locator
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.warp_ops import AccessReplicas
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Sem

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter


def access_replicas(interpreter: Interpreter, op: AccessReplicas) -> Blocking:
    """An access to the replicas that a multimem address stands for."""
    instruction, labels, unit = interpreter.instruction, op.labels, op.region.size
    assert unit is not None, "an access of a module names its type"
    locate, forget = locator(interpreter, op.region), forgetting(list(map(interpreter.slot, op.registers)))
    writes = any(label.side is Side.WRITE for label in labels)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        located = locate(machine, warp)
        for lane in lanes:
            block, first, size, _ = located(lane).spans[0]
            for replica in machine.replicas(block, instruction):
                if writes:
                    replica.forget(first, size)
                _access(machine, warp, lane, instruction.number, labels, replica, first, size, unit)
        forget(warp, lanes)
        return True

    return run


def _access(
    machine: Machine, warp: Warp, lane: int, at: int, labels: Sequence[Access], block: Block, first: int, size: int,
    unit: int,
) -> None:  # fmt: skip
    """The accesses to one replica: a weak one, or strong ones of each element."""
    if labels[0].sem is Sem.WEAK:
        machine.weak(block, first, size, warp.threads[lane], labels[0], at, unit)
        if labels[0].side is Side.WRITE:
            machine.forget(block, first, size)
        return
    for place in range(first, first + size, unit):
        events = [strong(machine, warp, lane, at, label, block, place, unit) for label in labels]
        if len(events) > 1:
            events[0].partner, events[1].partner = events[1], events[0]
            machine.run.atomics.setdefault((block, place), []).append(events[0])


def misused(run: LaunchTrace, declared: Iterable[Block], body: Sequence[PtxInstruction]) -> list[PtxInstruction]:
    """The instructions that access a multimem address and are none of these, which is undefined.

    `declared`: what the launch says to have multimem addresses.
    """
    blocks = {*run.multimem, *declared}
    if not blocks:
        return []
    accesses = {access.at for access in run.weak(blocks) if not is_replicated(access.label)}
    events = (event for thread in run.threads for event in thread.strong() if event.block in blocks)
    return [body[at] for at in sorted(accesses | {event.at for event in events if not is_replicated(event.label)})]
