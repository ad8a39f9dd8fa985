"""Bulk and tensor copies and reductions, cp.async groups.

In: an Instruction. Out: a step that leaves an issue, the parts of the copy and its signals in the traces. What the
parts are is what the rows of `isa.movement` say of litmus tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from memmodel.base.labels import Access, Action, Family, Issue, Role, Side, Signal
from memmodel.kernel.arithmetic.alu import width_of
from memmodel.kernel.machine.accesses import SCOPES, SEMS, address, strong
from memmodel.kernel.machine.engines.operands import maps_of, multicast_ranks
from memmodel.kernel.machine.memory import RANK_SHIFT, SHARED_WINDOW
from memmodel.kernel.machine.objects import at_object, signalled
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.regions.maps import Stretch
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.program.ops import Track
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy, Scope, Sem

CHUNK = 16
TENSOR_CHUNK = 128
"""What the shared memory of a bulk copy, and of a tensor copy, is aligned to."""
OBSERVED, MOST_OBSERVED = 1024, 65536
"""Bytes of a strong copy whose elements are always told apart, and of all larger ones in a run for which that is so;
what other ones leave is taken as unknown.
"""


def copy_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    reduces = words[:4] == ("cp", "reduce", "async", "bulk")
    if words[:2] != ("cp", "async") and not reduces:
        return None
    bulk = reduces or words[2] == "bulk"
    rest = words[4:] if reduces else words[3:] if bulk else words[2:]
    if not bulk or not rest:
        return None
    if rest[0] == "prefetch":
        return lambda machine, warp, lanes, group: True
    return _tensor(compiler, instruction) if rest[0] == "tensor" else None


# ---- what copies have in common ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyForm:
    """What the words of a copy say. `reads`, `writes`: the labels of its parts; a reduction writes what it read."""

    family: Family
    target: str
    source: str
    grouped: bool
    multicast: bool
    reads: Access
    writes: Access
    updates: Access | None
    scalar: int | None

    def observed(self, machine: Machine, size: int) -> bool:
        """Is each element of a strong copy an access of its own, which others may observe?"""
        if self.updates is not None or self.scalar is None:
            return False
        machine.observed += size if size > OBSERVED else 0
        return size <= OBSERVED or machine.observed <= MOST_OBSERVED


def _form(instruction: PtxInstruction) -> CopyForm:
    words = instruction.words
    spaces = [word for word in words if word.split("::")[0] in ("shared", "global") and "mbarrier" not in word]
    if len(spaces) != 2:
        raise Refused(f"{instruction.opcode} does not say from where to where it copies", instruction.span)
    reduces = words[1] == "reduce"
    family = Family.BULK_REDUCTION if reduces else Family.BULK
    sem = next((SEMS[word] for word in words if word in SEMS), Sem.WEAK)
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    common = {"proxy": Proxy.ASYNC, "family": family, "asynchronous": True}
    reads = Access(Side.READ, role=Role.SOURCE, **common)  # type: ignore[arg-type]
    common |= {"spelt": "multimem"} if "multimem" in words else {}
    if reduces:
        scope = scope or (Scope.GPU if "tensor" in words else Scope.SYS)
        read, write = (Access(s, Sem.RELAXED, scope, rmw=True, **common) for s in (Side.READ, Side.WRITE))  # type: ignore[arg-type]
        unit = width_of(words[-1])
        return CopyForm(
            family, spaces[0], spaces[1], "bulk_group" in words, False, reads, write, read, unit and unit // 8
        )
    if sem is not Sem.WEAK:
        reads = replace(reads, sem=sem, scope=scope)
    writes = Access(Side.WRITE, sem, scope if sem is not Sem.WEAK else None, **common)  # type: ignore[arg-type]
    many = any("multicast" in word for word in words)
    scalar = None if sem is Sem.WEAK else CHUNK
    return CopyForm(family, spaces[0], spaces[1], "bulk_group" in words, many, reads, writes, None, scalar)


Spans = list[tuple[Block, int, int]]


class _Copying:
    """One copy being issued by a lane. `size`: its bytes."""

    def __init__(
        self, machine: Machine, warp: Warp, lane: int, instruction: PtxInstruction, form: CopyForm, size: int = 0
    ) -> None:
        self.machine, self.warp, self.lane, self.form = machine, warp, lane, form
        self.instruction = instruction
        self.issue = machine.event(warp.threads[lane], instruction.number, Issue(form.family))
        self.observed = form.observed(machine, size)

    def twin(self, step: int, target: object, source: object) -> None:
        """What lanes copy from one place to another with one instruction is the same."""
        if self.form.updates is None:
            what = self.warp.cta.number, self.warp.number, step, target, source
            self.issue.twin = self.machine.twins.setdefault(what, len(self.machine.twins))

    def read(self, spans: Spans) -> None:
        for block, at, size in spans:
            self._part(block, at, size, self.form.reads, 0)

    def described(self, block: Block, at: int) -> None:
        """The read of the tensor map."""
        label = Access(Side.READ, proxy=Proxy.TENSORMAP, family=Family.BULK, asynchronous=True, role=Role.DESCRIPTOR)
        self.issue.range = (block, at, at + 128)
        self.issue.note = (*self.issue.note, self.machine.alias(self.warp.cta, block, at))
        self._part(block, at, 128, label, 0)

    def write(self, spans: Spans, part: int = 1) -> None:
        for block, at, size in spans:
            if self.form.updates is not None:
                self._part(block, at, size, self.form.updates, part)
            self._part(block, at, size, self.form.writes, part)
            if not self.observed:
                self.machine.forget(block, at, size)

    def _part(self, block: Block, at: int, size: int, label: Access, part: int) -> None:
        thread, number = self.warp.threads[self.lane], self.instruction.number
        if self.observed and label.sem is not Sem.WEAK:
            for first in range(at, at + size, CHUNK):
                one = strong(self.machine, self.warp, self.lane, number, label, block, first, CHUNK, self.issue)
                one.parts = frozenset((part,))
            return
        self.machine.weak(block, at, size, thread, label, number, self.form.scalar, self.issue, None, part)

    def tell(self, where: tuple[Block, int], size: int, part: int = 1) -> None:
        """A complete-tx when the reads and this part are done."""
        label = Signal(Action.COMPLETE_TX, Scope.CLUSTER, self.form.family)
        told = signalled(self.machine, self.issue, label, *where, [self.issue], size)
        told.parts = frozenset((0, part))

    def together(self, where: int, barrier: int) -> None:
        """The mbarrier object of a copy to one CTA is there, with .cta_group::2 in the same pair."""
        pairs = "cta_group::2" in self.instruction.words
        there, here = (one % SHARED_WINDOW >> RANK_SHIFT + pairs for one in (where, barrier))
        if there != here:
            what = "CTA pair" if pairs else "CTA"
            message = f"{self.instruction.opcode} to one {what}, and its mbarrier object in another"
            self.machine.problem("undefined-instruction", message, self.instruction)

    def receivers(self, where: int, barrier: int, mask: int) -> list[tuple[int, int]]:
        """Destination and mbarrier object in each CTA of a multicast: at the same offset, but with .cta_group::2 the
        object is in the CTA of its pair with the parity of the operand's ("cp.async.bulk.tensor")."""
        low = (1 << RANK_SHIFT) - 1
        pairs = "cta_group::2" in self.instruction.words
        found = []
        for rank in multicast_ranks(self.machine, self.warp, mask, self.instruction):
            told = rank & ~1 | barrier >> RANK_SHIFT & 1 if pairs else rank
            found.append((where & low | rank << RANK_SHIFT, barrier & low | told << RANK_SHIFT))
        return found


def _aligned(one: tuple[Block, int], size: int, unit: int = CHUNK) -> None:
    block, at = one
    if size % CHUNK or (at + block.address) % unit:
        raise Faulty("undefined-address", f"a bulk copy works on multiples of {unit} bytes")


def _known(machine: Machine, value: int | None, instruction: PtxInstruction) -> int:
    if value is None:
        machine.unknown("the address of the mbarrier object", instruction)
    return value


# ---- copies through a tensor map -----------------------------------------------------------------------------------


def _tensor(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor."""
    form, operands = _form(instruction), list(instruction.operands)
    if any(word.startswith("im2col::") for word in instruction.words):
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    to_global = form.target == "global"
    offsets = operands.pop(3) if "im2col" in instruction.words else None
    tensor = maps_of(compiler, instruction, operands[0 if to_global else 1], offsets)
    shared = address(compiler, instruction, operands[1 if to_global else 0])
    objects = None if to_global else address(compiler, instruction, operands[2])
    masks = compiler.get(operands[3], instruction, 16) if form.multicast else None

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places = list(shared(warp))
        for lane in lanes:
            where = places[lane]
            if where is None:
                machine.unknown("the address of the copy", instruction)
            found = tensor(machine, warp, lane)
            if where % TENSOR_CHUNK:
                message = f"the shared memory of a tensor copy is aligned to {TENSOR_CHUNK} bytes"
                raise Faulty("undefined-address", message)
            if to_global and found.negative:
                message = f"the coordinates of {instruction.opcode} to .global are not negative"
                machine.problem("undefined-instruction", message, instruction)
            made = _Copying(machine, warp, lane, instruction, form)
            made.described(found.block, found.at)
            made.twin(machine.steps, where, (found.block, found.at, tuple(found.outside)))
            outside: Spans = [
                (*machine.place(warp, "global", first, size, instruction), size) for first, size in found.outside
            ]
            inside = _placing(machine, warp, instruction, found.inside)
            if to_global:
                made.read(inside(form.source, where))
                made.write(outside)
                for block, at, size in outside:
                    block.forget(at, size)
                warp.tracks[Track.BULK].add(lane, made.issue)
                continue
            made.read(outside)
            assert objects is not None
            barrier = _known(machine, objects(warp)[lane], instruction)
            mask = None if masks is None else masks(warp)[lane]
            if masks is None:
                made.together(where, barrier)
            ends = [(where, barrier)] if masks is None else made.receivers(where, barrier, mask or 0)
            for part, (there, bar) in enumerate(ends, 1):
                spans = inside(form.target, there)
                made.write(spans, part)
                for block, at, size in spans:
                    block.forget(at, size)
                made.tell(at_object(machine, warp, instruction, bar), found.size, part)
            if "_p" in found.packed:
                note = f"line {instruction.line}: the transaction was taken to count the padding of .{found.packed}"
                machine.run.assumed.setdefault(note)
        return True

    return step


def _placing(
    machine: Machine, warp: Warp, instruction: PtxInstruction, stretches: Callable[[int], list[Stretch]]
) -> Callable[[str, int], Spans]:
    def inside(space: str, where: int) -> Spans:
        return [(*machine.place(warp, space, first, size, instruction), size) for first, size in stretches(where)]

    return inside
