"""Which bytes of a launch's memory a region is, for a lane that executes the instruction.

In: a Region of a step. Out: `Locate`: in a warp, for a lane, its `Located` bytes. Settled here: the sizes and the
alignment of every kind of access, as `program.resolve` has them for litmus tests, and which bytes they are in a layout
that litmus tests do not have (`maps`). Bytes that cannot be accessed raise Faulty, unknown ones Refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from memmodel.kernel.machine.parts import Faulty, Warp
from memmodel.kernel.machine.regions.maps import PADDED_4_BITS, PADDED_6_BITS, Stretch, Tile, read_map
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.bytes import Filler
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.program.regions import Box, BoxMode, BoxTile, Chunk, Elements, Object, Region, TensorMapAt
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Space

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

MASK_BYTES, OBJECT_BYTES, MAP_ALIGN = 16, 8, 64
COORDINATES = {PADDED_4_BITS: 128, PADDED_6_BITS: 64}
"""What the first coordinate is a multiple of; in the second type 128 but for copies to .global on sm_103a."""

ROW_ELEMENTS = {PADDED_4_BITS: (128,), PADDED_6_BITS: (128, 64)}
"""How many elements a row of a box has: 64 or 96 bytes; of the second type half of them in copies to .global, too."""

NARROW_ROWS = 96
"""The span of a swizzle that has restrictions of its own."""

TILE_ALIGN = 128
"""What the shared memory of a tensor copy is aligned to by hardware; litmus tests declare smaller tiles."""


def aligned(block: Block, at: int, size: int, operand: Value = None) -> None:
    """Raises Faulty if an access of `size` bytes is not aligned. `operand`: the address as written."""
    if (at + block.address) % size:
        address = at + block.address if operand is None else operand
        raise Faulty("undefined-address", f"address {address:#x} is misaligned for {size} bytes")
    block.trust(at, size)


class PlacedBytes(NamedTuple):
    """Bytes of memory; `at`: where they stand in the data of the access."""

    block: Block
    first: int
    size: int
    at: int = 0


class Located(NamedTuple):
    """The bytes of a region. `size`: of its data, with what is not in memory, for which `filler` stands.

    `scalar`: bytes of the operations that an access consists of; None if it names none. `ordered`: the spans say where
    they stand in the data, which is not followed through a tensor map.
    """

    spans: tuple[PlacedBytes, ...]
    size: int
    scalar: int | None = None
    filler: Filler | None = None
    ordered: bool = True


Locate = Callable[[Machine, Warp], Callable[[int], Located]]
"""The bytes of a region in a warp, lane by lane."""


def locator(interpreter: Interpreter, region: Region) -> Locate:
    """How the bytes of a region are found. Raises Refused if it is of a kind that has no bytes here."""
    match region:
        case Elements(_, _, size, count) if size is not None:
            return _whole(interpreter, region, size * count, size * count, size)
        case Chunk():
            return _chunk(interpreter, region)
        case Object():
            return _whole(interpreter, region, OBJECT_BYTES, OBJECT_BYTES)
        case TensorMapAt():
            return _whole(interpreter, region, TENSORMAP_BYTES, MAP_ALIGN)
        case Box():
            return _box(interpreter, region)
        case BoxTile():
            return _box_tile(interpreter, region)
        case _:
            raise Refused(f"{interpreter.instruction.opcode} cannot be run", interpreter.instruction.span)


def _whole(
    interpreter: Interpreter, region: Elements | Object | TensorMapAt, size: int, align: int, scalar: int | None = None
) -> Locate:
    """Bytes that lie together."""
    pointer, instruction = interpreter.location(region.address, region.window), interpreter.instruction

    def locate(machine: Machine, warp: Warp) -> Callable[[int], Located]:
        addresses = pointer.address(warp)

        def at(lane: int) -> Located:
            block, first = pointer.place(machine, warp, addresses[lane], size, instruction)
            aligned(block, first, align, addresses[lane])
            return Located((PlacedBytes(block, first, size),), size, scalar)

        return at

    return locate


def _chunk(interpreter: Interpreter, region: Chunk) -> Locate:
    """The bytes of a copy whose size is an operand, without the bytes that its other operands leave out."""
    pointer, instruction = interpreter.location(region.address, region.window), interpreter.instruction
    sizes = interpreter.value(region.size)
    exprs = (region.skip_left, region.skip_right, region.mask, region.kept)
    options = [None if expr is None else interpreter.value(expr) for expr in exprs]
    filler, partly, align, scalar = _filler(region), any(options), region.align, region.scalar

    def locate(machine: Machine, warp: Warp) -> Callable[[int], Located]:
        addresses, counts = pointer.address(warp), sizes(warp)
        rows, find = [None if get is None else get(warp) for get in options], pointer.finder(machine, warp, instruction)

        def whole(lane: int) -> Located:
            address, size = addresses[lane], counts[lane]
            if address is None or size is None:
                machine.unknown("what the copy touches", instruction)
            if address % align:
                raise Faulty("undefined-address", f"address {address:#x} is misaligned for {align} bytes")
            if not size:
                return Located((), size, scalar)
            block, first = find(address, size)
            block.trust(first, align)
            return Located((PlacedBytes(block, first, size),), size, scalar)

        def at(lane: int) -> Located:
            address, size = addresses[lane], counts[lane]
            values = [0 if row is None else row[lane] for row in rows]
            if address is None or size is None or None in values:
                machine.unknown("what the copy touches", instruction)
            if address % align:
                raise Faulty("undefined-address", f"address {address:#x} is misaligned for {align} bytes")
            pieces = _accessed(region, size, *values)
            if not pieces:
                return Located((), size, scalar, filler)
            begin, end = pieces[0][0], pieces[-1][1]
            block, first = find(address + begin, end - begin)
            block.trust(first - begin, align)
            spans = [PlacedBytes(block, first + low - begin, high - low, low) for low, high in pieces]
            return Located(tuple(spans), size, scalar, filler)

        return at if partly else whole

    return locate


def _filler(region: Chunk) -> Filler | None:
    """What stands for the bytes that are not accessed; None if all are."""
    if region.mask is not None:
        return Filler.DROPPED
    if region.kept is not None:
        return Filler.ZERO
    return None if region.skip_left is None else Filler.INDETERMINATE


def _accessed(region: Chunk, size: int, *options: Value) -> list[tuple[int, int]]:
    """The part of `size` bytes that is accessed: first, end."""
    left, right, mask, kept = (value or 0 for value in options)
    if region.mask is not None:
        return masked(mask, size)
    end = size - right if region.kept is None else min(kept, size)
    return [(left, end)] if end > left else []


def masked(mask: int, size: int) -> list[tuple[int, int]]:
    """The bytes that a byte mask names: bit i is about byte i of each 16."""
    mask &= (1 << MASK_BYTES) - 1
    ends = [bit for bit in range(MASK_BYTES + 1) if (mask << 1 >> bit & 1) != (mask << 1 >> bit + 1 & 1)]
    runs = list(zip(ends[::2], ends[1::2], strict=True))
    return [(chunk + low, chunk + high) for chunk in range(0, size, MASK_BYTES) for low, high in runs]


# ---- through a tensor map ----------------------------------------------------------------------------------------


def _box(interpreter: Interpreter, region: Box) -> Locate:
    """The bytes of a box that lie in its tensor. Where a copy reads it, the padding counts as transferred."""
    instruction = interpreter.instruction
    numbers = interpreter.value(region.map)
    values = [interpreter.value(coordinate) for coordinate in region.coordinates]
    moved = [interpreter.value(offset) for offset in region.offsets]

    known = WeakKeyDictionary[Machine, dict[tuple[object, ...], Located]]()
    """Boxes that were looked up: lanes of a warp, and CTAs that share a tile, ask for the same."""

    def locate(machine: Machine, warp: Warp) -> Callable[[int], Located]:
        boxes = known.setdefault(machine, {})

        def at(lane: int) -> Located:
            number = numbers(warp)[lane]
            tile = _tile(number, region.mode, instruction)
            coordinates = [_signed(machine, get(warp)[lane], instruction) for get in values]
            offsets = [get(warp)[lane] for get in moved]
            key = number, *coordinates, *offsets
            if key in boxes:
                return boxes[key]
            forbidden = list(_forbidden(tile, region, coordinates))
            for message in forbidden:
                machine.problem("undefined-instruction", message, instruction)
            stretches = _outside(machine, tile, region, coordinates, offsets, instruction)
            if region.reads and "_p" in tile.packed:
                padded = f"line {instruction.line}: the transaction counts the padding of .{tile.packed}"
                machine.run.assumed.setdefault(padded, "a sentence of the PTX ISA about it")
            spans = [
                PlacedBytes(*machine.addressing.place(warp, Space.GLOBAL, first, size, instruction), size)
                for first, size in stretches
            ]
            scalar = tile.map.element if region.scalars else None
            located = Located(tuple(spans), tile.size * region.mode.boxes, scalar, Filler.ZERO, ordered=False)
            heap = machine.memory.heap
            if not (forbidden or any(span.block.address in heap for span in spans)):  # memory of the heap may be freed
                boxes[key] = located
            return located

        return at

    return locate


def _forbidden(tile: Tile, region: Box, coordinates: list[int]) -> Iterator[str]:
    """What a copy may not do with such elements, or rows ("Restriction on Tensor Copy instructions", "Tiled mode")."""
    if region.scalars and tile.packed:
        yield f"a reduction has no elements of .{tile.packed}"
    if not region.reads and tile.packed == PADDED_4_BITS:
        yield f"a copy to .global has no elements of .{tile.packed}"
    if tile.nan and tile.packed:
        yield f"elements of .{tile.packed} outside the tensor are not read as NaN"
    if tile.span == NARROW_ROWS and tile.inner > NARROW_ROWS:
        yield f"a swizzle of {NARROW_ROWS} bytes has boxes of rows of at most {NARROW_ROWS} bytes, not {tile.inner}"
    if tile.span == NARROW_ROWS and "_p" in tile.packed:
        yield f"elements of .{tile.packed} have no swizzle of {NARROW_ROWS} bytes"
    sizes = ROW_ELEMENTS.get(tile.packed, tile.map.box[:1])[: 1 if region.reads else 2]
    if tile.map.box[0] not in sizes:
        allowed = " or ".join(map(str, sizes))
        yield f"a row of a box has {allowed} elements of .{tile.packed}, not {tile.map.box[0]}"
    multiple = COORDINATES.get(tile.packed, 1)
    if coordinates[0] % multiple:
        yield f"the first coordinate of elements of .{tile.packed} is a multiple of {multiple}, not {coordinates[0]}"
    if region.mode is BoxMode.ROWS and tile.map.box[1:] != (1,):
        yield f"four rows are boxes of one row of a matrix, and the box of the map is {tile.map.box}"


def _outside(
    machine: Machine,
    tile: Tile,
    region: Box,
    coordinates: list[int],
    offsets: list[Value],
    instruction: PtxInstruction,
) -> list[Stretch]:
    """The bytes of a box in global memory."""
    if region.mode is BoxMode.ROWS:
        column, *rows = coordinates
        return [stretch for row in rows for stretch in tile.global_bytes((column, row)) or ()]
    if len(coordinates) != len(tile.map.sizes):
        message = f"the tensor map has {len(tile.map.sizes)} dimensions, and {len(coordinates)} coordinates are given"
        raise Refused(message, instruction.span)
    known = [offset for offset in offsets if offset is not None]
    if len(known) < len(offsets):
        machine.unknown("an offset of im2col", instruction)
    distances = known or [0] * (len(coordinates) - 2)
    stretches = tile.global_bytes(tuple(coordinates), tuple(distances))
    if stretches is None:
        raise Refused("the coordinates lie outside the bounding box of im2col", instruction.span)
    return stretches


def _box_tile(interpreter: Interpreter, region: BoxTile) -> Locate:
    """The bytes of a box in shared memory, after the swizzle."""
    pointer, instruction = interpreter.location(region.address, region.window), interpreter.instruction
    numbers = interpreter.value(region.map)

    def locate(machine: Machine, warp: Warp) -> Callable[[int], Located]:
        def at(lane: int) -> Located:
            address = pointer.address(warp)[lane]
            if address is None:
                machine.unknown("the address of the copy", instruction)
            if address % TILE_ALIGN:
                message = f"the shared memory of a tensor copy is aligned to {TILE_ALIGN} bytes"
                raise Faulty("undefined-address", message)
            tile = _tile(numbers(warp)[lane], region.mode, instruction)
            stretches = tile.shared_bytes(address)
            if region.mode is BoxMode.ROWS:
                stretches = [(address, max(tile.inner, tile.span) * region.mode.boxes)]
            spans = [
                PlacedBytes(*pointer.place(machine, warp, first, size, instruction), size) for first, size in stretches
            ]
            for block, first, *_ in spans[:1]:
                block.trust(first - (stretches[0][0] - address), TILE_ALIGN)
            return Located(tuple(spans), tile.size * region.mode.boxes, ordered=False)

        return at

    return locate


def _tile(number: Value, mode: BoxMode, instruction: PtxInstruction) -> Tile:
    """The map that a number stands for, which is one for this mode. Raises Refused."""
    tile = "what the tensor map holds is not known" if number is None else read_map(number)
    if isinstance(tile, str):
        raise Refused(tile, instruction.span)
    image = mode is BoxMode.IMAGE
    if image is not (tile.corners is not None):
        raise Refused(f"the tensor map is {'not ' if image else ''}for im2col", instruction.span)
    return tile


def _signed(machine: Machine, value: Value, instruction: PtxInstruction) -> int:
    """A coordinate, which has 32 bits and a sign."""
    if value is None:
        machine.unknown("a coordinate of the box", instruction)
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
