"""Steps that only the warps of compiled modules make.

In: nothing. Out: `WarpOp` and its kinds. In a litmus test a thread stands for its warp, and a matrix is the bytes
at an address. So these instructions lower to other steps there, and the engines of litmus tests see none of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access, Allocates, Family, Issue, Side
from memmodel.base.words import WordList
from memmodel.program.expressions import Expr
from memmodel.program.ops import Jump, Track
from memmodel.program.regions import DescribedMatrix, Elements, LaneRows, MatrixLines, Object, TensorMapAt
from memmodel.ptx.vocabulary import DataType, MbarrierLayout


@dataclass(frozen=True, slots=True)
class Forget:
    """The registers receive unknown values: of floating point, or of matrices.

    `of`: what they are a function of, in all lanes of the warp; empty if that is not known.
    """

    registers: tuple[str, ...]
    of: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveMatrix:
    """A warp moves matrices between its registers and memory; what it loads or stores is unknown.

    `registers`: those that receive elements. `values`: the elements that are stored. Each byte is moved by one lane.
    `transposed`: of matrices of 8 x 8 elements of 16 bits, whether the lanes have them by columns; None for others.
    """

    label: Access
    region: LaneRows | MatrixLines
    registers: tuple[str, ...] = ()
    values: tuple[Expr, ...] = ()
    transposed: bool | None = None


@dataclass(frozen=True, slots=True)
class TransposeMatrix:
    """`register` := the two elements of a matrix of 8 x 8 elements of 16 bits that a lane has of the transposed one.

    `value`: the two elements that a lane has of the matrix. They are unknown.
    """

    register: str
    value: Expr


@dataclass(frozen=True, slots=True)
class MultiplyInRegisters:
    """An asynchronous multiplication of a warpgroup into its registers (wgmma.mma_async).

    `matrices`: those in shared memory. `accumulator`, `fragment`: the registers of D, and of A if it is in registers.
    `shape`: of D; accumulations of one shape follow one another.
    """

    issue: Issue
    read: Access
    matrices: tuple[DescribedMatrix, ...]
    accumulator: tuple[str, ...]
    fragment: tuple[str, ...]
    shape: str


@dataclass(frozen=True, slots=True)
class TensorElements:
    """What the kind of a tcgen05.mma says of its elements.

    `bits`: of an element of A and B in shared memory. `scaled`: scale factors multiply, and the instruction descriptor
    has their form. `deepens`: a bit of that descriptor chooses the deeper K.
    """

    bits: int
    scaled: bool
    deepens: bool


@dataclass(frozen=True, slots=True)
class CollectorUse:
    """What a tcgen05.mma does with a collector buffer: takes a matrix from it, leaves one there, or neither."""

    buffer: str
    takes: bool
    fills: bool
    keeps: bool


@dataclass(frozen=True, slots=True)
class MultiplyInTensorMemory:
    """tcgen05.mma: D in tensor memory, A there or in shared memory, B in shared memory.

    `group`: how many CTAs work together. `form`: what has to be equal in instructions that are in pipeline order, with
    the shape. `shape`: the instruction descriptor. `left`: the address of A if it is `left_in_tensor`, else its
    descriptor. `disabled`: the words of disable-output-lane.
    """

    group: int
    form: str
    elements: TensorElements
    sparse: bool
    stationary: bool
    shape: Expr
    accumulator: Expr
    left: Expr
    left_in_tensor: bool
    right: Expr
    adds: Expr
    scales: tuple[Expr, ...]
    metadata: Expr | None
    disabled: tuple[Expr, ...]
    collector: CollectorUse


TensorPiece = tuple[int, int, int]
"""A lane of tensor memory, the first column and the number of columns, counted from the address."""


@dataclass(frozen=True, slots=True)
class MoveTensorMemory:
    """tcgen05.ld and st: what each lane of a warp moves between its registers and tensor memory."""

    family: Family
    side: Side
    address: Expr
    pieces: tuple[tuple[TensorPiece, ...], ...]
    track: Track
    registers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyToTensorMemory:
    """tcgen05.cp: `rows` rows of `bits` bits from shared memory into the columns from an address on."""

    group: int
    form: str
    descriptor: Expr
    address: Expr
    rows: int
    bits: int


@dataclass(frozen=True, slots=True)
class ShiftTensorMemory:
    """tcgen05.shift: the elements from an address on move by one lane."""

    group: int
    address: Expr


@dataclass(frozen=True, slots=True)
class AllocateColumns:
    """tcgen05.alloc: waits until columns of tensor memory are free; the address of the first goes to memory."""

    label: Allocates
    columns: Expr
    target: Elements
    write: Access


@dataclass(frozen=True, slots=True)
class FreeColumns:
    """tcgen05.dealloc: the columns of an allocation are free again."""

    label: Allocates
    address: Expr
    columns: Expr


@dataclass(frozen=True, slots=True)
class RelinquishPermit:
    """tcgen05.relinquish_alloc_permit."""

    label: Allocates


@dataclass(frozen=True, slots=True)
class CopyTogether:
    """A warp copies a tensor map from one place to another. Each byte is moved by one lane."""

    read: Access
    write: Access
    source: TensorMapAt
    target: TensorMapAt


class Exchange(WordList):
    """What the lanes of a warp learn from one another."""

    UP = "the value of a lower lane"
    DOWN = "the value of a higher lane"
    BUTTERFLY = "the value of the lane with other bits"
    INDEX = "the value of a lane by its number"
    ALL = "whether a predicate holds in all lanes"
    ANY = "whether it holds in some lane"
    UNIFORM = "whether it is the same in all lanes"
    BALLOT = "the lanes in which it holds"
    MATCH_ANY = "the lanes that have the same value"
    MATCH_ALL = "all lanes, if they have the same value"
    REDUCE = "the values of all lanes, combined"
    ELECT = "a lane that is elected"


SHUFFLES = (Exchange.UP, Exchange.DOWN, Exchange.BUTTERFLY, Exchange.INDEX)


@dataclass(frozen=True, slots=True)
class AmongLanes:
    """The lanes of `mask` wait for one another, and each learns something from all of them that have not exited.

    Without a mask, those take part that execute the instruction together. `registers`: what receives it, and a
    predicate. `values`: what each lane gives; of a shuffle also the lane or distance, and the bounds. `combine`: the
    operation of REDUCE, in `type`.
    """

    exchange: Exchange
    registers: tuple[str | None, ...]
    values: tuple[Expr, ...]
    mask: Expr | None
    combine: str = ""
    type: DataType = DataType("b", 32)


@dataclass(frozen=True, slots=True)
class ActiveLanes:
    """`register` := the lanes that execute the instruction together, which the hardware decides."""

    register: str


@dataclass(frozen=True, slots=True)
class SeeRefusal:
    """The thread sees that a request to cancel a cluster was refused, if `when` is non-zero. In a litmus test the read
    of the response says so.
    """

    when: Expr


@dataclass(frozen=True, slots=True)
class TakeRegisters:
    """The maximum of registers that each thread of the warp owns becomes `count`: more of them, or fewer.

    `increases`: the warp waits until the CTA has these registers to give.
    """

    count: int
    increases: bool


@dataclass(frozen=True, slots=True)
class Note:
    """An assumption of every execution that comes here with `when` non-zero; the verdict lists it. `needs`: what it
    takes to drop it.
    """

    text: str
    when: Expr
    needs: str = "an operand that the PTX ISA defines"


@dataclass(frozen=True, slots=True)
class CheckLayout:
    """`register` := 1 if the mbarrier object has this layout, else 0."""

    register: str
    region: Object
    layout: MbarrierLayout


@dataclass(frozen=True, slots=True)
class AccessReplicas:
    """An access to all memory that a multimem address points to. Other devices write there, too: `registers` receive
    unknown values, and what is stored is unknown afterwards. `labels`: of the access, or of both halves of a reduction.
    """

    labels: tuple[Access, ...]
    region: Elements
    registers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessTexture:
    """An access to a texture or a surface, of which a launch does not say what it is made of.

    `registers`: those that receive what is read.
    """

    label: Access
    registers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnStack:
    """Moves the end of the thread's stack, which grows down: by `size` bytes, aligned to `alignment`, or back to the
    address `end`. `register` := the new end.
    """

    register: str | None
    size: Expr | None = None
    alignment: int = 1
    end: Expr | None = None


# ---- control -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JumpByTable:
    """Go to the label with the number `index` of a list."""

    labels: tuple[str, ...]
    index: Expr


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function: the one of that name, or the one whose address is `through`.

    `arguments`, `results`: the variables that hold what goes in, and that receive what comes out.
    """

    name: str
    through: Expr | None
    arguments: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """Return: go on after the call. In the entry itself, the thread ends."""


@dataclass(frozen=True, slots=True)
class EndThread:
    """The thread ends, which an event says. In a litmus test this is a jump to the end of its program."""


@dataclass(frozen=True, slots=True)
class Trap:
    """The kernel stops: its threads have come to an instruction, `name`, that is for failures."""

    name: str


Control = Jump | JumpByTable | CallFunction | Return | EndThread | Trap
"""Steps after which a warp may go on elsewhere than at the next instruction: each is all that its instruction does."""

WarpOp = (
    AccessReplicas
    | ActiveLanes
    | AmongLanes
    | CallFunction
    | CheckLayout
    | EndThread
    | JumpByTable
    | OnStack
    | Return
    | Trap
    | Forget
    | Note
    | MoveMatrix
    | TransposeMatrix
    | MultiplyInRegisters
    | MultiplyInTensorMemory
    | MoveTensorMemory
    | CopyToTensorMemory
    | ShiftTensorMemory
    | TakeRegisters
    | AllocateColumns
    | FreeColumns
    | RelinquishPermit
    | SeeRefusal
    | CopyTogether
    | AccessTexture
)
"""Steps that only the warps of compiled modules make."""
