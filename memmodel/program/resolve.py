"""Which bytes a region is, once its operands have values.

In: a Region, the values of its expressions, the executing place. Out: Footprint, or BadFootprint. Settled here: sizes,
alignment, bounds and windows of every kind of access ("Addresses as Operands", and the page of each instruction). A
matrix operand that is shorter than its shape, as in a litmus test, ends where the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memmodel.memory.bytes import (
    COLUMN_BYTES,
    BadAddress,
    BadFootprint,
    CtaId,
    Extent,
    Filler,
    Footprint,
    Gap,
    Instance,
    Stretch,
)
from memmodel.memory.cells import Starts
from memmodel.memory.descriptor import matrix_columns
from memmodel.memory.tensormap import TENSORMAP_BYTES, TensorMap
from memmodel.program.addresses import AddressSpace
from memmodel.program.regions import (
    Accumulator,
    Box,
    BoxTile,
    Chunk,
    Columns,
    Elements,
    Matrix,
    Multimem,
    Object,
    Region,
    TensorMapAt,
)
from memmodel.ptx.vocabulary import Place, Window

OBJECT_BYTES = 8
BULK_ALIGN = 16
MATRIX_ALIGN = 16
MASK_BYTES = 16
MAP_ALIGN = 64


def resolve(
    region: Region, numbers: Sequence[int], space: AddressSpace, place: Place, starts: Starts
) -> Footprint | BadFootprint:
    """The bytes of a region for a thread at `place`; `numbers` are the values of `region_exprs(region)`."""
    match region:
        case Elements(_, window, size, count, left_out):
            whole = _elements(numbers[0], window, size, count, space, place)
            return _without(whole, left_out) if left_out and isinstance(whole, Footprint) else whole
        case Chunk():
            return _chunk(region, numbers, space, place)
        case Box(_, _, reads, scalars):
            return _box(numbers, reads, scalars, space, place)
        case BoxTile(_, window):
            return _box_tile(numbers, window, space, place)
        case Matrix(_, most):
            return _matrix(numbers[0], most, space, place, starts)
        case Columns(_, count, cta, spare):
            owner = _owner(cta, space, place)
            if spare is not None:
                count = max(1, min(count, space.columns_from(numbers[0], owner) - spare))
            return _footprint(space.find_columns(numbers[0], count, owner), COLUMN_BYTES)
        case Accumulator(_, most, cta):
            return _accumulator(numbers, most, _owner(cta, space, place), space, starts)
        case Object(_, window):
            return _footprint(space.find(numbers[0], OBJECT_BYTES, OBJECT_BYTES, window, place))
        case Multimem(_, size):
            each = space.find_multimem(numbers[0], size)
            return each if isinstance(each, BadFootprint) else Footprint(each, size)
        case TensorMapAt(_, window):
            return _footprint(space.find(numbers[0], TENSORMAP_BYTES, MAP_ALIGN, window, place))


def start_of(region: Region, numbers: Sequence[int], space: AddressSpace, place: Place) -> tuple[Instance, int] | None:
    """Where a matrix operand begins (instance, byte), so that the one before it ends there; None for other regions."""
    start: Extent | BadFootprint
    match region:
        case Matrix():
            start = space.find(numbers[0], 1, MATRIX_ALIGN, Window.SHARED_CLUSTER, place)
        case Accumulator(cta=cta):
            start = space.find_columns(numbers[0], 1, _owner(cta, space, place))
        case _:
            return None
    return None if isinstance(start, BadFootprint) else (start.instance, start.first)


def _owner(cta: int | None, space: AddressSpace, place: Place) -> CtaId:
    owner = place.cta_id if cta is None else space.cta_of_rank(cta, place)
    return place.cta_id if owner is None else owner


def _footprint(extent: Extent | BadFootprint, scalar: int | None = None) -> Footprint | BadFootprint:
    return extent if isinstance(extent, BadFootprint) else Footprint((extent,), scalar)


def _elements(
    address: int, window: Window, size: int | None, count: int, space: AddressSpace, place: Place
) -> Footprint | BadFootprint:
    align = None if size is None else size * count
    if size is None:  # the column layout: a whole element of whatever is declared there
        declared = space.find(address, 1, 1, window, place)
        if isinstance(declared, BadFootprint):
            return declared
        size = declared.instance.unit
        if declared.first % size:
            return BadFootprint(BadAddress.MISALIGNED, address)
    return _footprint(space.find(address, size * count, align or 1, window, place), size)


def _without(whole: Footprint, left_out: Sequence[int]) -> Footprint:
    """The scalars of a footprint that are accessed; the others are read as zero."""
    size, (data,) = whole.scalar or whole.size, whole.extents
    scalars = (Extent(data.instance, first, size, data.name) for first in range(data.first, data.end, size))
    parts = [Gap(size, Filler.ZERO) if n in left_out else scalar for n, scalar in enumerate(scalars)]
    return Footprint(_joined(parts), size)


def _chunk(region: Chunk, numbers: Sequence[int], space: AddressSpace, place: Place) -> Footprint | BadFootprint:
    rest = iter(numbers)
    address, size = next(rest), next(rest)
    left, right, mask, kept = (
        None if expr is None else next(rest) for expr in (region.skip_left, region.skip_right, region.mask, region.kept)
    )
    if size < 0 or size % region.multiple:
        return BadFootprint(BadAddress.MISALIGNED, address + size)
    if address % region.align:
        return BadFootprint(BadAddress.MISALIGNED, address)
    if size == 0:  # a multiple as well: nothing is accessed, wherever it is
        return Footprint((), region.scalar)
    if region.replica is not None:
        each = space.find_multimem(address, size)
        return each if isinstance(each, BadFootprint) else Footprint((each[region.replica],), region.scalar)
    if mask is not None:
        return _masked(address, size, mask, region, space, place)
    if kept is not None:
        return _with_gaps(address, 0, min(kept, size), size, Filler.ZERO, region, space, place)
    if left is not None and right is not None:
        return _with_gaps(address, left, size - right, size, Filler.INDETERMINATE, region, space, place)
    return _footprint(space.find(address, size, region.align, region.window, place), region.scalar)


def _with_gaps(
    address: int, first: int, end: int, size: int, filler: Filler, region: Chunk, space: AddressSpace, place: Place
) -> Footprint | BadFootprint:
    """Of `size` bytes, those from `first` to below `end` are accessed."""
    end = max(first, end)
    parts: list[Stretch] = [Gap(first, filler)] if first else []
    if end > first:
        accessed = space.find(address + first, end - first, 1, region.window, place)
        if isinstance(accessed, BadFootprint):
            return accessed
        parts.append(accessed)
    if size > end:
        parts.append(Gap(size - end, filler))
    return Footprint(tuple(parts), region.scalar)


def _masked(
    address: int, size: int, mask: int, region: Chunk, space: AddressSpace, place: Place
) -> Footprint | BadFootprint:
    """The bytes whose bit of the mask is 1, of every 16; the others are dropped, wherever they would be."""
    parts: list[Stretch] = []
    for kept, first, end in _runs(lambda at: bool(mask >> at % MASK_BYTES & 1), size):
        if not kept:
            parts.append(Gap(end - first, Filler.DROPPED))
            continue
        accessed = space.find(address + first, end - first, 1, region.window, place)
        if isinstance(accessed, BadFootprint):
            return accessed
        parts.append(accessed)
    return Footprint(tuple(parts), region.scalar)


def _runs(kept: Callable[[int], bool], size: int) -> Iterator[tuple[bool, int, int]]:
    """Runs of bytes that are alike: (kept, first, end)."""
    first = 0
    for at in range(1, size + 1):
        if at == size or kept(at) != kept(first):
            yield kept(first), first, at
            first = at


def _box(
    numbers: Sequence[int], reads: bool, scalars: bool, space: AddressSpace, place: Place
) -> Footprint | BadFootprint:
    described = TensorMap.unpack(numbers[0])
    if described is None or len(described.sizes) != len(numbers) - 1:
        return BadFootprint(BadAddress.NO_OBJECT, 0)
    if described.address % BULK_ALIGN:
        return BadFootprint(BadAddress.MISALIGNED, described.address)
    filler = Filler.ZERO if reads else Filler.DROPPED
    parts: list[Stretch] = []
    for start, size in described.rows(tuple(_signed(number) for number in numbers[1:])):
        if start is None:
            parts.append(Gap(size, filler))
            continue
        row = space.find(start, size, 1, Window.GLOBAL, place)
        if isinstance(row, BadFootprint):
            return row
        parts.append(row)
    return Footprint(_joined(parts), described.element if scalars else None)


def _signed(coordinate: int) -> int:
    """A tensor coordinate is a signed number of 32 bits."""
    number = coordinate & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _joined(parts: list[Stretch]) -> tuple[Stretch, ...]:
    """Neighbouring stretches that touch, as one."""
    joined: list[Stretch] = []
    for part in parts:
        match joined[-1] if joined else None, part:
            case Gap() as last, Gap():
                joined[-1] = Gap(last.size + part.size, part.filler)
            case Extent() as last, Extent() if last.instance == part.instance and last.end == part.first:
                joined[-1] = Extent(last.instance, last.first, last.size + part.size, last.name)
            case _:
                joined.append(part)
    return tuple(joined)


def _box_tile(numbers: Sequence[int], window: Window, space: AddressSpace, place: Place) -> Footprint | BadFootprint:
    address, number = numbers
    described = TensorMap.unpack(number)
    if described is None:
        return BadFootprint(BadAddress.NO_OBJECT, 0)
    if described.box_bytes % BULK_ALIGN:
        return BadFootprint(BadAddress.MISALIGNED, address + described.box_bytes)
    return _footprint(space.find(address, described.box_bytes, BULK_ALIGN, window, place))


def _matrix(
    address: int, most: int | None, space: AddressSpace, place: Place, starts: Starts
) -> Footprint | BadFootprint:
    first = space.find(address, 1, MATRIX_ALIGN, Window.SHARED_CLUSTER, place)
    if isinstance(first, BadFootprint):
        return first
    return Footprint((_tile(first, most, starts),))


def _accumulator(
    numbers: Sequence[int], most: int | None, owner: CtaId, space: AddressSpace, starts: Starts
) -> Footprint | BadFootprint:
    address, *shapes = numbers
    first = space.find_columns(address, 1, owner)
    if isinstance(first, BadFootprint):
        return first
    shape = shapes[0] if shapes else None
    if shape is not None:
        most = matrix_columns(shape)
    tile = _tile(first, most * COLUMN_BYTES if most else None, starts)
    return Footprint((tile,), COLUMN_BYTES, shape)


def _tile(first: Extent, most: int | None, starts: Starts) -> Extent:
    """`most` bytes where the variable has room for them; else up to the next matrix, or the end of the variable."""
    instance, at = first.instance, first.first
    fits = most is not None and at + most <= instance.size
    size = most if fits and most is not None else starts.next(instance, at) - at
    return Extent(instance, at, size, first.name)
