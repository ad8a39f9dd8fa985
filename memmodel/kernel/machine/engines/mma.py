"""tcgen05.mma, cp, shift, ld and st: what they touch in shared and in tensor memory.

In: a step of `program.warp_ops`. Out: what the lanes of a warp do at it: an issue and its accesses. Sources: PTX ISA
"Instruction descriptor", "Data Path Layout Organization", "Matrix Descriptors".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.kernel.machine.engines.matrices import blackwell, matrix_spans
from memmodel.kernel.machine.engines.tensor import owners, pair_of, stretch, tensor_memory
from memmodel.kernel.machine.parts import MATRIX_A, Collected, Cta, Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get, forgetting
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.descriptor import matrix_columns, matrix_rows, shape_mask
from memmodel.program.ops import Track
from memmodel.program.warp_ops import (
    CollectorUse,
    CopyToTensorMemory,
    MoveTensorMemory,
    MultiplyInTensorMemory,
    ShiftTensorMemory,
    TensorElements,
)
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy, Window

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

FOUR_ROWS = 4
"""A copy of this number of rows goes to lanes that the ISA does not name."""

Spans = Iterable[tuple[Block, int, int]]
DEPTH, DEEPER = 32, 48
"""Bytes of K that one dense tcgen05.mma works on; the second where K is 96."""

META = 4
"""Columns of tensor memory that the metadata of a sparse matrix A may lie in."""

LOOSE = 1
"""The part of an issue with bytes that it may touch or not: the text does not say which."""


class _Issued:
    """A tcgen05 instruction being issued by a lane."""

    def __init__(
        self,
        machine: Machine,
        warp: Warp,
        lane: int,
        instruction: PtxInstruction,
        family: Family,
        track: Track,
        form: str | None = None,
        group: int | None = None,
    ) -> None:
        self.machine, self.warp, self.lane, self.number = machine, warp, lane, instruction.number
        self.instruction = instruction
        self.family, self.form, self.group = family, form, group
        self.issue = machine.event(warp.threads[lane], instruction.number, Issue(family, group=group, form=form))
        warp.tracks[track].add(lane, self.issue)

    def known(self, get: Get, what: str) -> int:
        """An operand of the lane. `what`: its name, if it is not known."""
        return _known(self.machine, self.warp, self.lane, get, what, self.instruction)

    def touch(
        self, side: Side, spans: Spans, *, form: str | None = None, proxy: Proxy = Proxy.GENERIC, part: int = 0
    ) -> None:
        label = Access(side, proxy=proxy, family=self.family, asynchronous=True, group=self.group, form=form)
        thread = self.warp.threads[self.lane]
        self.machine.weak_parts(list(spans), thread, label, self.number, None, self.issue, part)

    def may_touch(self, side: Side, cta: Cta, where: int, lanes: Iterable[int], count: int, why: str) -> None:
        """Some of these columns; as many of them as are allocated. `why`: what the text leaves open."""
        columns = tensor_memory(cta).columns[where & 0xFFFF :][:count]
        count = next((n for n, column in enumerate(columns) if column is None), len(columns))
        label = Access(side, family=self.family, asynchronous=True, group=self.group)
        thread, run = self.warp.threads[self.lane], self.machine.run
        run.unspecified_parts.add((self.number, LOOSE))
        run.unchecked.setdefault(f"line {self.instruction.line}: {self.instruction.opcode}: {why} is not specified")
        for block, at, size in _spans(cta, where, lanes, count):
            self.machine.weak(block, at, size, thread, label, self.number, None, self.issue, part=LOOSE)

    def own(self, cta: Cta, column: int, count: int) -> None:
        """The allocation that these columns belong to, as the executing CTA has it."""
        self.issue.owners = tuple(dict.fromkeys((*self.issue.owners, *owners(cta, column, count))))


def _known(machine: Machine, warp: Warp, lane: int, get: Get, what: str, instruction: PtxInstruction) -> int:
    value = get(warp)[lane]
    if value is None:
        machine.unknown(what, instruction)
    return value


# ---- tcgen05.mma -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MmaShape:
    """M and N, and which matrices are stored along M or N: from the instruction descriptor. `depth`: bytes of K of a
    dense matrix.
    """

    rows: int
    columns: int
    turns_a: bool
    turns_b: bool
    depth: int = DEPTH


def shape_of(value: int, elements: TensorElements) -> MmaShape:
    """An instruction descriptor taken apart."""
    rows = matrix_rows(value, scaled=elements.scaled)
    depth = DEEPER if elements.deepens and value >> 31 & 1 else DEPTH
    return MmaShape(rows, matrix_columns(value), bool(value >> 15 & 1), bool(value >> 16 & 1), depth)


class _Multiplication:
    """A tcgen05.mma: its operands as values of lanes, and what a lane touches when it issues it."""

    def __init__(self, interpreter: Interpreter, op: MultiplyInTensorMemory) -> None:
        self.instruction, self.op = interpreter.instruction, op
        self._track = Track.GROUP_2 if op.group == 2 else Track.GROUP_1
        self._track_of_a = Track.MATRIX_A_2 if op.group == 2 else Track.MATRIX_A_1
        self._shape_mask = shape_mask(scaled=op.elements.scaled)
        self._descriptors, self._targets, self._lefts, self._rights, self._adds = (
            interpreter.value(expr) for expr in (op.shape, op.accumulator, op.left, op.right, op.adds)
        )
        self._scales = [interpreter.value(expr) for expr in op.scales]
        self._metadata = None if op.metadata is None else interpreter.value(op.metadata)
        self._disabled = [interpreter.value(expr) for expr in op.disabled]

    def issue(self, machine: Machine, warp: Warp, lane: int) -> None:
        """Issue it in a lane: its accesses in each CTA of the group."""
        op = self.op
        descriptor = _known(machine, warp, lane, self._descriptors, "the instruction descriptor", self.instruction)
        shape = shape_of(descriptor, op.elements)
        if not shape.rows or not shape.columns:
            raise Faulty("undefined-instruction", f"the instruction descriptor {descriptor:#x} names no shape")
        ctas = pair_of(machine, warp, op.group)
        for cta in ctas:
            _collect(machine, cta, warp.threads[lane].number, op.collector, self.instruction)
        accumulates = _known(machine, warp, lane, self._adds, "enable-input-d", self.instruction)
        form = f"{op.form} shape {descriptor & self._shape_mask}"
        issued = _Issued(machine, warp, lane, self.instruction, Family.MMA, self._track, form, op.group)
        if not op.left_in_tensor:
            warp.tracks[self._track_of_a].add(lane, issued.issue)
        target = issued.known(self._targets, "the address of the accumulator")
        rows = shape.rows // op.group
        layout = _layout(rows, shape.columns, op.group, stationary=op.stationary, sparse=op.sparse)
        issued.own(warp.cta, target & 0xFFFF, layout[1])
        right = issued.known(self._rights, "the matrix descriptor")
        left = issued.known(self._lefts, "the matrix A")
        reached = enabled([words(warp)[lane] for words in self._disabled])
        for cta in ctas:
            self._read_b(issued, cta, shape, right)
            self._read_a(issued, cta, shape, left)
            self._read_scales(issued, cta, shape)
            self._read_metadata(issued, cta)
            _accumulate(issued, cta, target, layout, reached, adds=bool(accumulates & 1))

    def _read_b(self, issued: _Issued, cta: Cta, shape: MmaShape, descriptor: int) -> None:
        depth = shape.depth * 2 if self.op.sparse else shape.depth
        columns, bits = shape.columns // self.op.group, self.op.elements.bits
        _matrix(issued, self.instruction, cta, descriptor, columns, depth, bits, turned=shape.turns_b)

    def _read_a(self, issued: _Issued, cta: Cta, shape: MmaShape, left: int) -> None:
        """`left`: an address in tensor memory, or a descriptor of shared memory."""
        rows, bits = shape.rows // self.op.group, self.op.elements.bits
        if self.op.left_in_tensor:
            issued.own(issued.warp.cta, left & 0xFFFF, shape.depth // 4)
            lanes = _rows(rows, stationary=self.op.stationary)
            issued.touch(Side.READ, _spans(cta, left, lanes, shape.depth // 4))
        else:
            turned = shape.turns_a
            _matrix(issued, self.instruction, cta, left, rows, shape.depth, bits, turned=turned, part=MATRIX_A)

    def _read_scales(self, issued: _Issued, cta: Cta, shape: MmaShape) -> None:
        """Each CTA of a pair scales its own rows of A, and all columns of B: 32 in each column, all lane partitions
        alike.
        """
        counts = -(-max(shape.rows // self.op.group, 128) // 32), -(-shape.columns // 32)
        for addresses, count in zip(self._scales, counts, strict=False):
            where = issued.known(addresses, "the address of scale factors") & 0xFFFF
            issued.own(issued.warp.cta, where, count)
            issued.touch(Side.READ, _spans(cta, where, range(128), count))
            if shape.depth != DEPTH:  # "Scale Factor A ID" has it in figures
                why = "where scale factors for a K of 96 go on"
                issued.may_touch(Side.READ, cta, where + count, range(128), count, why)

    def _read_metadata(self, issued: _Issued, cta: Cta) -> None:
        """Read what says which elements of a sparse A are there."""
        if self._metadata is not None:
            where = issued.known(self._metadata, "the address of the metadata") & 0xFFFF
            issued.own(issued.warp.cta, where, 1)
            issued.may_touch(Side.READ, cta, where, range(128), META, "which columns the metadata lies in")


def multiply_in_tensor_memory(interpreter: Interpreter, op: MultiplyInTensorMemory) -> Blocking:
    """The issue of each lane and what it touches, in each CTA of the group."""
    multiplication = _Multiplication(interpreter, op)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            multiplication.issue(machine, warp, lane)
        return True

    return run


def enabled(words: Sequence[Value]) -> tuple[frozenset[int] | None, frozenset[int]]:
    """The lanes that disable-output-lane leaves enabled, None for all of them, and those of which that is not known.

    The text does not say which half of a mask of 256 bits is for which CTA of a pair.
    """
    both = list(zip(words, words[4:] or words, strict=False))
    if not both:
        return None, frozenset()
    bits = [{None if word is None else word >> lane % 32 & 1 for word in both[lane // 32]} for lane in range(128)]
    kept = frozenset(lane for lane in range(128) if bits[lane] == {0})
    return kept if len(kept) < 128 else None, frozenset(lane for lane in range(128) if bits[lane] not in ({0}, {1}))


def _accumulate(
    issued: _Issued, cta: Cta, target: int, layout: tuple[Iterable[int], int],
    lanes: tuple[frozenset[int] | None, frozenset[int]], *, adds: bool,
) -> None:  # fmt: skip
    """The accumulator is written, and read before if the product is added to it. `lanes`: as `enabled` has them."""
    base, (kept, open_) = target >> 16, lanes
    rows = list(layout[0])
    spans = list(_spans(cta, target, [row for row in rows if kept is None or (base + row) % 128 in kept], layout[1]))
    unsure = [row for row in rows if (base + row) % 128 in open_]
    for side in (Side.READ, Side.WRITE) if adds else (Side.WRITE,):
        issued.touch(side, spans, form=issued.form)
        if unsure:
            issued.may_touch(side, cta, target, unsure, layout[1], "which lanes disable-output-lane names")


def _collect(machine: Machine, cta: Cta, thread: int, use: CollectorUse, instruction: PtxInstruction) -> None:
    """What an mma leaves in a collector buffer. To take a matrix from one that no mma has filled is undefined
    ("tcgen05 collector buffer"). An mma of another thread may fill or discard it before that, or after: not known.
    """
    held = tensor_memory(cta).collected.setdefault(use.buffer, Collected())
    held.threads.add(thread)
    if use.takes:
        held.used = True
        if not held.filled:
            message = f"the collector buffer {use.buffer} is used, and no mma before has filled it"
            machine.problem("undefined-instruction", message, instruction)
    if held.used and len(held.threads) > 1:
        machine.unknown("which matrix a collector buffer holds that several threads fill", instruction)
    held.filled = use.fills or (held.filled and use.keeps)


def _layout(rows: int, columns: int, group: int, *, stationary: bool, sparse: bool) -> tuple[Iterable[int], int]:
    """The lanes and the number of columns of an accumulator ("Data Path Layout Organization")."""
    if stationary and rows < 128:
        return range(128), columns * rows // 128
    if rows == 64 and group == 2 and not sparse:
        return range(128), columns // 2
    return _rows(rows, stationary=stationary), columns


def _rows(rows: int, *, stationary: bool) -> Iterable[int]:
    """The lanes of a matrix with this many rows: 64 of them are spread over the four parts of 32."""
    if rows >= 128 or stationary:
        return range(128)
    return [32 * (row // 16) + row % 16 for row in range(rows)]


def _spans(cta: Cta, where: int, lanes: Iterable[int], count: int) -> Spans:
    base, column = where >> 16, where & 0xFFFF
    for lane in lanes:
        yield stretch(cta, base + lane, column, count)


def _matrix(
    issued: _Issued,
    instruction: PtxInstruction,
    cta: Cta,
    value: int,
    rows: int,
    depth: int,
    bits: int,
    *,
    turned: bool,
    part: int = 0,
) -> None:
    """A matrix in the shared memory of a CTA of the pair."""
    matrix = blackwell(value)
    if matrix is None:
        raise Refused("the layout that this matrix descriptor names is not known", instruction.span)
    spans = matrix_spans(
        issued.machine, issued.warp, cta, matrix, (rows, depth, bits), Window.SHARED_CLUSTER, instruction,
        transposed=turned, mask=0x3FFFF,
    )  # fmt: skip
    issued.touch(Side.READ, spans, proxy=Proxy.ASYNC, part=part)


# ---- tcgen05.cp, shift -------------------------------------------------------------------------------------------


def copy_to_tensor_memory(interpreter: Interpreter, op: CopyToTensorMemory) -> Blocking:
    """Shared memory to tensor memory, in each CTA of the group."""
    instruction, track = interpreter.instruction, Track.GROUP_2 if op.group == 2 else Track.GROUP_1
    targets, descriptors = interpreter.value(op.address), interpreter.value(op.descriptor)
    columns = op.bits // 32

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            where, value = targets(warp)[lane], descriptors(warp)[lane]
            if where is None or value is None:
                machine.unknown("an operand of the copy to tensor memory", instruction)
            issued = _Issued(machine, warp, lane, instruction, Family.TCGEN_CP, track, op.form, op.group)
            issued.own(warp.cta, where & 0xFFFF, columns)
            for cta in pair_of(machine, warp, op.group):
                _matrix(issued, instruction, cta, value, op.rows, op.bits // 8, 8, turned=False)
                if op.rows == FOUR_ROWS:
                    why = "which lanes four rows go to"
                    issued.may_touch(Side.WRITE, cta, where & 0xFFFF, range(128), columns, why)
                else:
                    issued.touch(Side.WRITE, _spans(cta, where, range(128), columns), form=op.form)
        return True

    return run


def shift_tensor_memory(interpreter: Interpreter, op: ShiftTensorMemory) -> Blocking:
    """Elements of 32 bytes move by one lane. The page leaves out "the last" of the rows, and does not say on which
    side: all 32 lanes count as read and as written, of which one is too many.
    """
    instruction, track = interpreter.instruction, Track.GROUP_2 if op.group == 2 else Track.GROUP_1
    targets = interpreter.value(op.address)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            where = targets(warp)[lane]
            if where is None:
                machine.unknown("the address of what is shifted", instruction)
            issued = _Issued(machine, warp, lane, instruction, Family.SHIFT, track, None, op.group)
            issued.own(warp.cta, where & 0xFFFF, 8)
            for cta in pair_of(machine, warp, op.group):
                spans = list(_spans(cta, where, range(32), 8))
                issued.touch(Side.READ, spans)
                issued.touch(Side.WRITE, spans)
        return True

    return run


# ---- tcgen05.ld, st ------------------------------------------------------------------------------------------------


def move_tensor_memory(interpreter: Interpreter, op: MoveTensorMemory) -> Blocking:
    """A warp reaches the 32 lanes that its number in the warpgroup gives it."""
    instruction, addresses = interpreter.instruction, interpreter.value(op.address)
    clear = forgetting([interpreter.slot(name) for name in op.registers])
    last = max(row for pieces in op.pieces for row, _, _ in pieces)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        base = addresses(warp)[lanes[0]]
        if base is None:
            machine.unknown("the address in tensor memory", instruction)
        first, column = base >> 16, base & 0xFFFF
        part = 32 * (warp.number % 4)
        for row in (first, first + last):
            if not part <= row < part + 32:
                message = f"lane {row} of tensor memory is not among those that this warp may access"
                raise Faulty("undefined-tensor-memory", message)
        for lane in lanes:
            issued = _Issued(machine, warp, lane, instruction, op.family, op.track)
            spans = []
            for row, begin, count in op.pieces[lane]:
                issued.own(warp.cta, column + begin, count)
                spans.append(stretch(warp.cta, first + row, column + begin, count))
            issued.touch(op.side, spans)
        clear(warp, lanes)
        return True

    return run
