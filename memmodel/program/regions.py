"""Regions: which bytes an access touches, as expressions; `program.resolve` gives them numbers.

In: nothing. Out: `Region` and its kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.words import WordList
from memmodel.program.expressions import Expr
from memmodel.ptx.vocabulary import Window


@dataclass(frozen=True, slots=True)
class Elements:
    """`count` scalars of `size` bytes, one after the other, aligned as a whole; size None: a declared element.

    `left_out`: the numbers of those that are not accessed.
    """

    address: Expr
    window: Window
    size: int | None = None
    count: int = 1
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """`size` bytes, aligned to `align`. `scalar`: bytes of the operations that it consists of, None if it names none.

    `multiple`: what `size` has to be a multiple of. `skip_left`, `skip_right`: bytes at either end that are not
    accessed, and `filler` what stands for them. `mask`: of every 16 bytes, those whose bit is 1 are accessed.
    `kept`: bytes from the beginning that are accessed, the others read as zero. `replica`: the address is a multimem
    address, and the bytes are those of the variable of that number after it.
    """

    address: Expr
    window: Window
    size: Expr
    align: int = 16
    scalar: int | None = None
    multiple: int = 1
    skip_left: Expr | None = None
    skip_right: Expr | None = None
    mask: Expr | None = None
    kept: Expr | None = None
    replica: int | None = None


class BoxMode(WordList):
    """How the coordinates name elements of a tensor. Litmus tests have boxes only.

    ROWS: the first coordinate is that of a column, the others those of four rows, each a box. IMAGE: pixels of images,
    moved by offsets ("im2col mode").
    """

    TILE = "tile"
    ROWS = "tile::gather4, tile::scatter4"
    IMAGE = "im2col, im2col_no_offs"

    @property
    def boxes(self) -> int:
        """The number of boxes of the map that are copied."""
        return 4 if self is BoxMode.ROWS else 1


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a tensor map (the number `map`) at some coordinates; outside the tensor are zeros, or nothing.

    `scalars`: the access consists of operations on elements of the tensor. `offsets`: of IMAGE, if it has any.
    """

    map: Expr
    coordinates: tuple[Expr, ...]
    reads: bool
    scalars: bool = False
    mode: BoxMode = BoxMode.TILE
    offsets: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxTile:
    """The bytes in shared memory that a box of a tensor map is copied to or from."""

    address: Expr
    window: Window
    map: Expr
    mode: BoxMode = BoxMode.TILE


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix operand in shared memory: `limit` bytes by its shape, or up to the next matrix or the variable's end."""

    address: Expr
    limit: int | None


@dataclass(frozen=True, slots=True)
class Columns:
    """`count` columns of tensor memory in the CTA of that rank (None: the executing one).

    `spare`: there may be fewer, so that this many are left after them in the variable.
    """

    address: Expr
    count: int
    cta: int | None = None
    spare: int | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A matrix in tensor memory: up to the next one, or the variable's end; `limit` columns by its shape.

    `shape`: what an instruction descriptor says of the shape; it gives the columns, too.
    """

    address: Expr
    limit: int | None
    cta: int | None = None
    shape: Expr | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """The 8 bytes of an mbarrier object."""

    address: Expr
    window: Window


@dataclass(frozen=True, slots=True)
class TensorMapAt:
    """The 128 bytes of a tensor map."""

    address: Expr
    window: Window


@dataclass(frozen=True, slots=True)
class Multimem:
    """A scalar of `size` bytes in each variable that a multimem address points to, in their order."""

    address: Expr
    size: int


@dataclass(frozen=True, slots=True)
class LaneRows:
    """Rows of matrices that the first `rows` lanes of a warp name, one each: `size` bytes, aligned to as many.

    Of a row the first `moved` bytes are accessed, in pieces of 4 by four neighbouring lanes.
    """

    address: Expr
    window: Window
    rows: int
    size: int
    moved: int


@dataclass(frozen=True, slots=True)
class MatrixLines:
    """A matrix of a warp: `lines` lines of `length` elements of `bits` bits, `stride` elements apart.

    `stride` None: they lie one after the other. Each line is aligned to `align` bytes. `fragment`: what decides which
    lane has which element, as far as that is said of two matrices at one place.
    """

    address: Expr
    window: Window
    stride: Expr | None
    lines: int
    length: int
    bits: int
    align: int
    fragment: str


@dataclass(frozen=True, slots=True)
class DescribedMatrix:
    """A matrix in shared memory as its descriptor says ("Matrix Descriptor").

    It has `rows` along M or N, and `depth` bytes along K. `bits`: of an element. `transposed`: stored along M or N.
    """

    descriptor: Expr
    rows: int
    depth: int
    bits: int
    transposed: bool


Region = Elements | Chunk | Box | BoxTile | Matrix | Columns | Accumulator | Object | TensorMapAt | Multimem


def region_exprs(region: Region) -> tuple[Expr, ...]:
    """The expressions that a region depends on, in the order in which `program.resolve.resolve` takes their values."""
    match region:
        case Chunk(address, _, size, _, _, _, left, right, mask, kept, _):
            return tuple(expr for expr in (address, size, left, right, mask, kept) if expr is not None)
        case Box(map_, coordinates, offsets=offsets):
            return (map_, *coordinates, *offsets)
        case BoxTile(address, _, map_):
            return (address, map_)
        case Accumulator(address, _, _, shape) if shape is not None:
            return (address, shape)
        case _:
            return (region.address,)
