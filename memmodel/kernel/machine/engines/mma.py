"""tcgen05.mma, cp, shift, ld and st: what they touch in shared and in tensor memory.

In: an Instruction. Out: a step that leaves an issue and its parts. Sources: PTX ISA "Instruction descriptor", "Data
Path Layout Organization", "Data Movement Shape", "Matrix Descriptors"; labels as the rows of `isa.matrix` have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.kernel.machine.accesses import address, gathered, registers_of
from memmodel.kernel.machine.engines.matrices import blackwell, matrix_bytes
from memmodel.kernel.machine.engines.tensor import group_of_words, issued, owners, pair_of, stretch, tensor_memory
from memmodel.kernel.machine.parts import Collected, Cta, Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.descriptor import SCALED, columns_of, rows_of, shape_mask
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm, Mem, Operand, TensorOperand, Vector
from memmodel.ptx.vocabulary import Proxy

Spans = Iterable[tuple[Block, int, int]]
BITS = {"kind::f16": 16, "kind::tf32": 32, "kind::mxf4": 4, "kind::mxf4nvf4": 4}
"""Bits of an element of A and B in shared memory; 8 for the other kinds."""

DEPTH, DEEPER = 32, 48
"""Bytes of K that one dense tcgen05.mma works on; the second where K is 96."""

META = 4
"""Columns of tensor memory that the metadata of a sparse matrix A may lie in."""

LOOSE = 1
"""The part of an issue with bytes that it may touch or not: the text does not say which."""

FOURS = ("kind::mxf4", "kind::mxf4nvf4")
"""Kinds of which bit 31 of the instruction descriptor says how deep K is."""


def mma_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] != "tcgen05":
        return None
    if words[1] == "mma":
        return _multiply(compiler, instruction)
    if words[1] in ("ld", "st"):
        return _move(compiler, instruction)
    if words[1] == "cp":
        return _copy(compiler, instruction)
    return _shift(compiler, instruction) if words[1] == "shift" else None


class _Issued:
    """A tcgen05 instruction being issued by a lane."""

    def __init__(
        self, machine: Machine, warp: Warp, lane: int, instruction: PtxInstruction, family: Family, form: str | None,
        group: int | None,
    ) -> None:  # fmt: skip
        self.machine, self.warp, self.lane, self.number = machine, warp, lane, instruction.number
        self.instruction = instruction
        self.family, self.form, self.group = family, form, group
        self.issue = machine.event(warp.threads[lane], instruction.number, Issue(family, group=group, form=form))
        issued(warp, family, lane).append(self.issue)

    def touch(self, side: Side, spans: Spans, *, form: str | None = None, proxy: Proxy = Proxy.GENERIC) -> None:
        label = Access(side, proxy=proxy, family=self.family, asynchronous=True, group=self.group, form=form)
        thread = self.warp.threads[self.lane]
        for block, at, size in spans:
            self.machine.weak(block, at, size, thread, label, self.number, None, self.issue)

    def may_touch(self, side: Side, cta: Cta, where: int, lanes: Iterable[int], count: int, why: str) -> None:
        """Some of these columns; as many of them as are allocated. `why`: what the text leaves open."""
        columns = tensor_memory(cta).columns[where & 0xFFFF :][:count]
        count = next((n for n, one in enumerate(columns) if one is None), len(columns))
        label = Access(side, family=self.family, asynchronous=True, group=self.group)
        thread, run = self.warp.threads[self.lane], self.machine.run
        run.loose.add((self.number, LOOSE))
        run.unchecked.setdefault(f"line {self.instruction.line}: {self.instruction.opcode}: {why} is not specified")
        for block, at, size in _spans(cta, where, lanes, count):
            self.machine.weak(block, at, size, thread, label, self.number, None, self.issue, part=LOOSE)

    def own(self, cta: Cta, column: int, count: int) -> None:
        """The allocation that these columns belong to, as the executing CTA has it."""
        self.issue.owners = tuple(dict.fromkeys((*self.issue.owners, *owners(cta, column, count))))


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


def shape_of(value: int, kind: str) -> MmaShape:
    """An instruction descriptor taken apart."""
    rows = rows_of(value, scaled=kind in SCALED)
    depth = DEEPER if kind in FOURS and value >> 31 & 1 else DEPTH
    return MmaShape(rows, columns_of(value), bool(value >> 15 & 1), bool(value >> 16 & 1), depth)


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of a tcgen05.mma by their names."""

    target: Get
    left: Get
    left_in_tensor: bool
    right: Get
    meta: Get | None
    shape: Get
    scales: tuple[Get, ...]
    disabled: tuple[Get, ...]
    adds: Get


def _operands(compiler: Compiler, instruction: PtxInstruction) -> _Operands:
    rest, words = list(instruction.operands), instruction.words
    target = address(compiler, instruction, rest.pop(0))
    left = rest.pop(0)
    in_tensor = isinstance(left, Mem | TensorOperand)
    first = address(compiler, instruction, left) if in_tensor else compiler.get(left, instruction)
    right = compiler.get(rest.pop(0), instruction)
    meta = address(compiler, instruction, rest.pop(0)) if "sp" in words else None
    shape = compiler.get(rest.pop(0), instruction, 32)
    scales = []
    while rest and isinstance(rest[0], Mem | TensorOperand):
        scales.append(address(compiler, instruction, rest.pop(0)))
    mask: tuple[Get, ...] = ()
    if rest and isinstance(rest[0], Vector):
        mask = tuple(compiler.get(one, instruction, 32) for one in rest[0].items)
        del rest[0]
    adds = compiler.get(rest[0], instruction, 1)
    return _Operands(target, first, in_tensor, right, meta, shape, tuple(scales), mask, adds)


def _multiply(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words = instruction.words
    kind = next((word for word in words if word.startswith("kind::")), "kind::f16")
    group_number, mask = group_of_words(words), shape_mask(scaled=kind in SCALED)
    given = _operands(compiler, instruction)
    bits, sparse, serial = BITS.get(kind, 8), "sp" in words, "ws" in words
    form = f"{kind} ws" if serial else kind
    collects = next((word for word in words if word.startswith("collector::")), None)
    _, buffer, use = (collects or f"collector::{'b0' if serial else 'a'}::discard").split("::")

    def known(machine: Machine, warp: Warp, lane: int, get: Get, what: str) -> int:
        value = get(warp)[lane]
        if value is None:
            machine.unknown(what, instruction)
        return value

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            idesc = known(machine, warp, lane, given.shape, "the instruction descriptor")
            shape = shape_of(idesc, kind)
            if not shape.rows or not shape.columns:
                raise Faulty("undefined-instruction", f"the instruction descriptor {idesc:#x} names no shape")
            for cta in pair_of(machine, warp, group_number):
                _collect(machine, cta, warp.threads[lane].number, buffer, use, instruction)
            adds = known(machine, warp, lane, given.adds, "enable-input-d")
            made = _Issued(machine, warp, lane, instruction, Family.MMA, f"{form} shape {idesc & mask}", group_number)
            target = known(machine, warp, lane, given.target, "the address of the accumulator")
            layout = _layout(shape.rows // group_number, shape.columns, group_number, serial=serial, sparse=sparse)
            made.own(warp.cta, target & 0xFFFF, layout[1])
            right = known(machine, warp, lane, given.right, "the matrix descriptor")
            left = known(machine, warp, lane, given.left, "the matrix A")
            for cta in pair_of(machine, warp, group_number):
                columns = shape.columns // group_number
                deep = shape.depth * 2 if sparse else shape.depth
                _matrix(made, instruction, cta, right, columns, deep, bits, turned=shape.turns_b)
                rows = shape.rows // group_number
                if not given.left_in_tensor:
                    _matrix(made, instruction, cta, left, rows, shape.depth, bits, turned=shape.turns_a)
                else:
                    made.own(warp.cta, left & 0xFFFF, shape.depth // 4)
                    made.touch(Side.READ, _spans(cta, left, _rows(rows, serial=serial), shape.depth // 4))
                # Each CTA of a pair scales its own rows of A, and all columns of B: 32 in each column, all lane
                # partitions alike.
                counts = -(-max(rows, 128) // 32), -(-shape.columns // 32)
                for get, count in zip(given.scales, counts, strict=False):
                    where = known(machine, warp, lane, get, "the address of scale factors") & 0xFFFF
                    made.own(warp.cta, where, count)
                    made.touch(Side.READ, _spans(cta, where, range(128), count))
                    if shape.depth != DEPTH:  # "Scale Factor A ID" has it in figures
                        why = "where scale factors for a K of 96 go on"
                        made.may_touch(Side.READ, cta, where + count, range(128), count, why)
                if given.meta is not None:
                    where = known(machine, warp, lane, given.meta, "the address of the metadata") & 0xFFFF
                    made.own(warp.cta, where, 1)
                    made.may_touch(Side.READ, cta, where, range(128), META, "which columns the metadata lies in")
                reached = enabled([one(warp)[lane] for one in given.disabled])
                _accumulate(made, cta, target, layout, reached, adds=bool(adds & 1))
        return True

    return step


def enabled(words: Sequence[Value]) -> tuple[frozenset[int] | None, frozenset[int]]:
    """The lanes that disable-output-lane leaves enabled, None for all of them, and those of which that is not known.

    The text does not say which half of a mask of 256 bits is for which CTA of a pair.
    """
    both = list(zip(words, words[4:] or words, strict=False))
    if not both:
        return None, frozenset()
    bits = [{None if one is None else one >> lane % 32 & 1 for one in both[lane // 32]} for lane in range(128)]
    kept = frozenset(lane for lane in range(128) if bits[lane] == {0})
    return kept if len(kept) < 128 else None, frozenset(lane for lane in range(128) if bits[lane] not in ({0}, {1}))


def _accumulate(
    made: _Issued, cta: Cta, target: int, layout: tuple[Iterable[int], int],
    lanes: tuple[frozenset[int] | None, frozenset[int]], *, adds: bool,
) -> None:  # fmt: skip
    """The accumulator is written, and read before if the product is added to it. `lanes`: as `enabled` has them."""
    base, (kept, open_) = target >> 16, lanes
    there = list(layout[0])
    spans = list(_spans(cta, target, [x for x in there if kept is None or (base + x) % 128 in kept], layout[1]))
    unsure = [x for x in there if (base + x) % 128 in open_]
    for side in (Side.READ, Side.WRITE) if adds else (Side.WRITE,):
        made.touch(side, spans, form=made.form)
        if unsure:
            made.may_touch(side, cta, target, unsure, layout[1], "which lanes disable-output-lane names")


def _collect(machine: Machine, cta: Cta, thread: int, buffer: str, use: str, instruction: PtxInstruction) -> None:
    """What an mma leaves in a collector buffer. To take a matrix from one that no mma has filled is undefined
    ("tcgen05 collector buffer"). An mma of another thread may fill or discard it before that, or after: not known.
    """
    held = tensor_memory(cta).collected.setdefault(buffer, Collected())
    held.threads.add(thread)
    if use in ("use", "lastuse"):
        held.used = True
        if not held.filled:
            message = f"the collector buffer {buffer} is used, and no mma before has filled it"
            machine.problem("undefined-instruction", message, instruction)
    if held.used and len(held.threads) > 1:
        machine.unknown("which matrix a collector buffer holds that several threads fill", instruction)
    held.filled = use == "fill" or (held.filled and use == "use")


def _layout(rows: int, columns: int, group: int, *, serial: bool, sparse: bool) -> tuple[Iterable[int], int]:
    """The lanes and the number of columns of an accumulator ("Data Path Layout Organization")."""
    if serial and rows < 128:
        return range(128), columns * rows // 128
    if rows == 64 and group == 2 and not sparse:
        return range(128), columns // 2
    return _rows(rows, serial=serial), columns


def _rows(rows: int, *, serial: bool) -> Iterable[int]:
    """The lanes of a matrix with so many rows: 64 of them are spread over the four parts of 32."""
    if rows >= 128 or serial:
        return range(128)
    return [32 * (row // 16) + row % 16 for row in range(rows)]


def _spans(cta: Cta, where: int, lanes: Iterable[int], count: int) -> Spans:
    base, column = where >> 16, where & 0xFFFF
    for lane in lanes:
        yield stretch(cta, (base + lane) % 128 if base else lane, column, count)


def _matrix(
    made: _Issued, instruction: PtxInstruction, cta: Cta, value: int, rows: int, depth: int, bits: int, *, turned: bool
) -> None:
    """A matrix in the shared memory of a CTA of the pair."""
    matrix = blackwell(value)
    if matrix is None:
        raise Refused("the layout that this matrix descriptor names is not known", instruction.span)
    spans = []
    for first, size in matrix_bytes(matrix, rows, depth, bits, transposed=turned):
        place = first & 0x3FFFF | cta.base
        block, at = made.machine.place(made.warp, "shared::cluster", place, size, instruction)
        spans.append((block, at, size))
    made.touch(Side.READ, spans, proxy=Proxy.ASYNC)


# ---- tcgen05.cp, shift -------------------------------------------------------------------------------------------


def _copy(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.cp: shared memory to tensor memory, in each CTA of the group."""
    words = instruction.words
    form = next(word for word in words if word.endswith("b") and "x" in word and word[0].isdigit())
    rows, bits = (int(number) for number in form.removesuffix("b").split("x"))
    target, source = address(compiler, instruction, instruction.operands[0]), instruction.operands[1]
    descriptor = compiler.get(source, instruction)
    group_number = group_of_words(words)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            where, value = target(warp)[lane], descriptor(warp)[lane]
            if where is None or value is None:
                machine.unknown("an operand of tcgen05.cp", instruction)
            made = _Issued(machine, warp, lane, instruction, Family.TCGEN_CP, form, group_number)
            made.own(warp.cta, where & 0xFFFF, bits // 32)
            for cta in pair_of(machine, warp, group_number):
                _matrix(made, instruction, cta, value, rows, bits // 8, 8, turned=False)
                if rows == 4:
                    why = "which lanes four rows go to"
                    made.may_touch(Side.WRITE, cta, where, range(128), bits // 32, why)
                else:
                    made.touch(Side.WRITE, _spans(cta, where, range(128), bits // 32), form=form)
        return True

    return step


def _shift(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.shift.down: elements of 32 bytes move by one lane. The page leaves out "the last" of the rows, and does
    not say on which side; all 32 lanes count as read and as written, of which one is too many.
    """
    target = address(compiler, instruction, instruction.operands[0])
    group_number = group_of_words(instruction.words)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            where = target(warp)[lane]
            if where is None:
                machine.unknown("the address of tcgen05.shift", instruction)
            made = _Issued(machine, warp, lane, instruction, Family.SHIFT, None, group_number)
            made.own(warp.cta, where & 0xFFFF, 8)
            for cta in pair_of(machine, warp, group_number):
                spans = list(_spans(cta, where, range(32), 8))
                made.touch(Side.READ, spans)
                made.touch(Side.WRITE, spans)
        return True

    return step


# ---- tcgen05.ld, st ------------------------------------------------------------------------------------------------

PER_REGISTER = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}


def _move(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """tcgen05.ld and st: a warp reaches the 32 lanes that its number in the warpgroup gives it."""
    words, operands = instruction.words, list(instruction.operands)
    load = words[1] == "ld"
    shape = next(word for word in words if word in PER_REGISTER)
    times = next(int(word[1:]) for word in words if word[0] == "x" and word[1:].isdigit())
    data = operands.pop(0) if load else operands.pop(-1)
    reduced = operands.pop(0) if load and "red" in words else None
    where = address(compiler, instruction, operands.pop(0))
    split = operands.pop(0) if shape == "16x32bx2" else None
    offset = split.value if isinstance(split, Imm) else None
    results: list[Operand] = [data, *([reduced] if reduced is not None else [])] if load else []
    forget = forgetting([slot for one in results for slot in registers_of(compiler, one)])
    side = Side.READ if load else Side.WRITE
    family = Family.TCGEN_LD if load else Family.TCGEN_ST
    packed = "pack::16b" in words or "unpack::16b" in words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        places = list(where(warp))
        base = places[lanes[0]]
        if base is None:
            machine.unknown("the address in tensor memory", instruction)
        first, column = base >> 16, base & 0xFFFF
        part = 32 * (warp.number % 4)
        if not part <= first < part + 32:
            message = f"lane {first} of tensor memory is not among those that this warp may access"
            raise Faulty("undefined-tensor-memory", message)
        for lane in lanes:
            made = _Issued(machine, warp, lane, instruction, family, None, None)
            spans = []
            for row, begin, count in _pieces(shape, times, lane, packed=packed, offset=offset):
                made.own(warp.cta, column + begin, count)
                spans.append(stretch(warp.cta, first + row, column + begin, count))
            made.touch(side, spans)
        forget(warp, lanes)
        return True

    return step


def _pieces(shape: str, times: int, lane: int, *, packed: bool, offset: int | None) -> Iterable[tuple[int, int, int]]:
    """What a lane moves: (lane of tensor memory, first column, columns), counted from the address."""
    double = 2 if packed else 1
    if shape == "32x32b":
        yield lane, 0, times * double
        return
    if shape == "16x32bx2":
        half = 0 if lane < 16 else offset or 0
        yield lane % 16, half, times * double
        return
    # 16 lanes: four threads share a row, and have the rows r and r + 8 but for 16x64b.
    width = {"16x64b": 2, "16x128b": 4, "16x256b": 8}[shape] * double
    for number in range(times):
        if shape == "16x64b":
            yield lane // 2 % 16, number * width + lane % 2 * width // 2, width // 2
            continue
        for row in (lane // 4, lane // 4 + 8):
            yield row, number * width + lane % 4 * width // 4, width // 4
