"""multimem instructions: all memory that a multimem address points to, as one location whose values are unknown.

In: an Instruction. Out: a step that leaves the accesses in the traces. The replicas are accessed alike, at one offset
each; the launch says which buffers they are, as far as it touches them otherwise. A multimem address is another virtual
address than that of the buffer ("Multimem Addresses"). Source: PTX ISA "multimem.ld_reduce,
multimem.st, multimem.red", "multimem.st.async", "multimem.red.async", "multimem.cp.async.bulk",
"multimem.cp.reduce.async.bulk"; labels as the rows of `isa.movement.multimem` have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memmodel.base.labels import Access, Family, Side
from memmodel.isa.row import numeric_type
from memmodel.kernel.machine.accesses import SCOPES, SEMS, address, registers_of, strong
from memmodel.kernel.machine.compiler import Compiler
from memmodel.kernel.machine.engines.stasync import async_step
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Vector
from memmodel.ptx.vocabulary import Scope, Sem, Window

PACKED = {"e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "e4m3x4": 32, "e5m2x4": 32}
"""Bits of types that only ld_reduce and st have here."""


def multimem_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] != "multimem":
        return None
    if words[2:3] == ("async",):
        return async_step(compiler, replace(instruction, words=(*words[1:3], "multimem", *words[3:])))
    return _access(compiler, instruction) if words[1] in ("ld_reduce", "st", "red") else None


def _access(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    kind, number = words[1], instruction.number
    type = numeric_type(words[-1])
    unit = (PACKED.get(words[-1], 0) if type is None else type.width) // 8
    if not unit or len(operands) != 2:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    where = address(compiler, instruction, operands[1 if kind == "ld_reduce" else 0])
    data = operands[0 if kind == "ld_reduce" else 1]
    count = len(data.items) if isinstance(data, Vector) else 1
    if count != next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1):
        raise Refused(f"{instruction.opcode} moves another number of values", instruction.span)
    labels, size = _labels(words), unit * count
    forget = forgetting(registers_of(compiler, data)) if kind == "ld_reduce" else None

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places = list(where(warp))
        for lane in lanes:
            block, at = machine.place(warp, "generic", places[lane], size, instruction, Window.GLOBAL)
            aligned(block, at, size, places[lane])
            for one in machine.replicas(block, instruction):
                if forget is None:
                    one.forget(at, size)
                _touch(machine, warp, lane, number, labels, one, at, size, unit)
        if forget is not None:
            forget(warp, lanes)
        return True

    return step


def _touch(
    machine: Machine, warp: Warp, lane: int, number: int, labels: list[Access], block: Block, at: int, size: int,
    unit: int,
) -> None:  # fmt: skip
    """The accesses to one replica: a weak one, or strong ones of each element."""
    if labels[0].sem is Sem.WEAK:
        machine.weak(block, at, size, warp.threads[lane], labels[0], number, unit)
        if labels[0].side is Side.WRITE:
            machine.forget(block, at, size)
        return
    for first in range(at, at + size, unit):
        made = [strong(machine, warp, lane, number, label, block, first, unit) for label in labels]
        if len(made) > 1:
            made[0].partner, made[1].partner = made[1], made[0]
            machine.run.atomics.setdefault((block, first), []).append(made[0])


def _labels(words: tuple[str, ...]) -> list[Access]:
    """The access, or the read and the write of a reduction; a reduction is strong, at .sys scope by itself."""
    sem = next((SEMS[word] for word in words if word in SEMS), None)
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    if words[1] == "red":
        halves = (Side.READ, Sem.RELAXED), (Side.WRITE, sem or Sem.RELAXED)
        family, spelt = Family.RED, "multimem"
        return [Access(side, half, scope or Scope.SYS, family=family, rmw=True, spelt=spelt) for side, half in halves]
    side = Side.READ if words[1] == "ld_reduce" else Side.WRITE
    return [Access(side, sem or Sem.WEAK, scope or Scope.SYS if sem else None, spelt="multimem")]


def misused(run: LaunchTrace, declared: Iterable[Block], body: Sequence[PtxInstruction]) -> list[PtxInstruction]:
    """The instructions that access a multimem address and are none of these, which is undefined.

    `declared`: what the launch says to have multimem addresses.
    """
    found = {*run.multimem, *declared}
    if not found:
        return []
    touching = {one.at for one in run.weak(found)}
    touching |= {one.at for thread in run.threads for one in thread.strong() if one.block in found}
    return [body[at] for at in sorted(touching) if body[at].words[0] != "multimem"]
