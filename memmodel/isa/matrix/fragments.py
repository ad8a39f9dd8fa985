"""Rows of the table: ldmatrix and stmatrix, which move 8x8 matrices of 16-bit elements to and from shared memory.

In: a Call. Out: one Read or Write of all rows, weak, in pieces of no particular size. Settled here: which bytes belong
to which lane. A litmus thread stands for its warp and has one address: that of the first row. The other rows follow, 16
bytes each, matrix by matrix. A register is that of lane 0; those of the other lanes are kept beside it, in notes, where
an stmatrix needs them. All lanes hold the same number in a register that no ldmatrix assigns. In a compiled module
each lane names a row of its own, and what the registers hold is not known (`load_in_warp`, `store_in_warp`).
"""

from __future__ import annotations

from memmodel.base.labels import Side
from memmodel.isa.call import Call
from memmodel.isa.place import address_in
from memmodel.isa.refused import refusing
from memmodel.isa.rows.row import Row, Syntax, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, in_blocks, needed, optional
from memmodel.isa.tensor_memory import ALIGNED
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op, Read, Write
from memmodel.program.regions import Chunk, LaneRows
from memmodel.program.warp_ops import MoveMatrix, WarpOp
from memmodel.ptx.operands import Operand, Reg, Vector, describe
from memmodel.ptx.targets import FAMILIES
from memmodel.ptx.vocabulary import DataType, Space, Window

LANES = 32
ROWS_OF_MATRIX, ROW_BYTES = 8, 16
PACKED_BYTES = {"b6x16_p32": 12, "b4x16_p64": 8}
"""Bytes of a row of 16 that hold elements; the others are padding."""
MATRIX_BYTES = ROWS_OF_MATRIX * ROW_BYTES
B16, B32 = DataType("b", 16), DataType("b", 32)


def load(call: Call) -> tuple[Op, ...]:
    """ldmatrix: every lane receives two elements of each matrix."""
    registers = _registers(call, call.operands[0])
    halves: list[str] = []
    at: list[int] = []
    assigns: list[Op] = []
    for number, register in enumerate(registers):
        name = call.register(register)
        for lane in range(LANES if name in call.context.fragments.stored else 1):
            low, high = (f"${number}.{lane}.{half}" for half in ("low", "high"))
            halves += [low, high]
            at += [number * MATRIX_BYTES + first for first in _elements(lane, transposed=bool(call.word("trans")))]
            joined = Apply("or", (Get(low), Apply("shl", (Get(high), Const(16)), B32)), B32)
            assigns.append(Assign(_of_lane(name, lane), joined))
    region = _region(call, call.operands[1], len(registers))
    return (Read(tuple(halves), region, call.access(Side.READ), B16, tuple(at)), *assigns)


def store(call: Call) -> tuple[Op, ...]:
    """stmatrix: every lane gives two elements of each matrix."""
    values: list[Expr] = []
    registers = _registers(call, call.operands[1])
    for register in registers:
        lanes = _lanes(call, register)
        matrix: dict[int, Expr] = {}
        for lane, value in enumerate(lanes):
            low, high = _elements(lane, transposed=bool(call.word("trans")))
            matrix[low] = Apply("cvt", (value,), B16)
            matrix[high] = Apply("cvt", (Apply("shr", (value, Const(16)), B32),), B16)
        values += [matrix[at] for at in sorted(matrix)]
    return (Write(tuple(values), _region(call, call.operands[0], len(registers)), call.access(Side.WRITE)),)


def load_in_warp(call: Call) -> tuple[WarpOp, ...]:
    """ldmatrix in a module: lane 8k + r names row r of matrix k."""
    registers = tuple(call.register(register) for register in _registers(call, call.operands[0]))
    region = _rows_of_lanes(call, call.operands[1])
    return (MoveMatrix(call.access(Side.READ), region, registers, transposed=_transposed(call)),)


def store_in_warp(call: Call) -> tuple[WarpOp, ...]:
    """stmatrix in a module: lane 8k + r names row r of matrix k."""
    values = tuple(call.value(register) for register in _registers(call, call.operands[1]))
    region = _rows_of_lanes(call, call.operands[0])
    return (MoveMatrix(call.access(Side.WRITE), region, values=values, transposed=_transposed(call)),)


def _transposed(call: Call) -> bool | None:
    """True if lanes have elements by columns; None if they do not have two elements of 16 bits of an 8 x 8 matrix."""
    usual = (call.word("shape"), call.word("type")) == ("m8n8", "b16")
    return bool(call.word("trans")) if usual else None


def _rows_of_lanes(call: Call, operand: Operand) -> LaneRows:
    """The rows that a warp moves. Elements of 16 bits with .trans, and those of 8 bits, go to other lanes: the rows
    stay the same. A matrix of .m16n16 has 16 rows, and one of .m16n8 is stored by its 8 columns.
    """
    count = int((call.word("num") or "x1")[1:])
    rows = min(LANES, count * (16 if call.word("shape") == "m16n16" else ROWS_OF_MATRIX))
    moved = PACKED_BYTES.get(call.word("src_fmt") or "", ROW_BYTES)
    return LaneRows(address_in(call, operand, Space.SHARED), Window.SHARED_CTA, rows, ROW_BYTES, moved)


def _elements(lane: int, *, transposed: bool) -> tuple[int, int]:
    """Where in a matrix the two elements of a lane are: neighbours in a row, or, transposed, in a column."""
    line, pair = divmod(lane, 4)
    if transposed:
        return 2 * pair * ROW_BYTES + 2 * line, (2 * pair + 1) * ROW_BYTES + 2 * line
    return line * ROW_BYTES + 4 * pair, line * ROW_BYTES + 4 * pair + 2


def _of_lane(register: str, lane: int) -> str:
    return register if lane == 0 else f"{register}#lane{lane}"


def _lanes(call: Call, register: Operand) -> list[Expr]:
    """What the lanes of the warp have in a register."""
    value = call.value(register, B32)
    if not isinstance(register, Reg):
        return [value] * LANES
    fragments = call.context.fragments
    if register.name in fragments.computed:
        message = f"the lanes have different numbers in '%{register.name}', which comes from an ldmatrix"
        call.fail(message, register, "store what ldmatrix loaded as it is, in registers of its own, or use ld and st")
    if register.name not in fragments.loaded:
        return [value] * LANES
    return [Get(_of_lane(register.name, lane)) for lane in range(LANES)]


def _registers(call: Call, operand: Operand) -> tuple[Operand, ...]:
    """A register for each matrix."""
    wanted = int((call.word("num") or "x1")[1:]) * (2 if call.word("shape") == "m16n16" else 1)
    if not isinstance(operand, Vector):
        call.fail(f"{call.head} has its registers in braces, even one, and this is {describe(operand)}", operand)
    if len(operand.items) != wanted:
        call.fail(f".x{wanted} has {wanted} register(s), and {len(operand.items)} are given", operand)
    return operand.items


def _region(call: Call, operand: Operand, matrices: int) -> Chunk:
    own = (call.place.cta_id, call.place.warp)
    lanes = [thread for thread in call.context.test.threads if (thread.place.cta_id, thread.place.warp) == own]
    if call.place.warp is not None and len(lanes) > 1:
        hint = "let one thread of the test stand for the warp"
        call.fail(f"{call.head} is executed by a warp, and {call.context.thread.name} is a lane of one", hint=hint)
    address = address_in(call, operand, Space.SHARED)
    return Chunk(address, Window.SHARED_CTA, Const(matrices * MATRIX_BYTES), align=ROW_BYTES)


_SHAPES = {"ldmatrix": ("m16n16", "m8n16"), "stmatrix": ("m16n8",)}
"""Matrices of narrow elements, which litmus tests do not have."""
_LINES = {
    "ldmatrix": (
        "m8n8 num trans? space? b16",
        "m8n16 num space? b8x16 src_fmt",
        "m16n16 x1|x2 trans space? b8",
        "m16n16 x1|x2 trans space? b8x16 src_fmt",
    ),
    "stmatrix": ("m8n8 num trans? space? b16", "m16n8 num trans space? b8"),
}
"""The syntax lines of their pages, after .sync.aligned."""


def _unpacked(why: tuple[str, str]) -> Slot:
    return optional("dst_fmt", refused={"b8x16": why}, modules=("b8x16",))


def _packed(why: tuple[str, str]) -> Slot:
    return optional("src_fmt", refused=dict.fromkeys(PACKED_BYTES, why), modules=tuple(PACKED_BYTES))


def _row(head: str, operands: tuple[str, str], since: Since, others: tuple[str, ...]) -> Row:
    reads = head == "ldmatrix"
    why = ("{head} is modelled for 8x8 matrices of 16-bit elements", "write .m8n8 and .b16")
    return Row(
        (head,),
        (
            *ALIGNED,
            needed("shape", "m8n8", refused=dict.fromkeys(others, why), modules=_SHAPES[head]),
            needed("num", "x1", "x2", "x4", what="number of matrices"),
            optional("trans"),
            optional("space", "shared", "shared::cta"),
            *((_unpacked(why), _packed(why)) if reads else ()),
            in_blocks("type", "b16", refused={"b8": why}, modules=("b8",)),
            *((_HALF_BYTES,) if reads else ()),
        ),
        operands,
        load if reads else store,
        f"a weak {'read' if reads else 'write'} of 128 bytes for each matrix, from the address on: the address is that "
        "of the first row, and the rows follow one another, 16 bytes each. A register is that of lane 0",
        f"Warp Level Matrix Multiply-Accumulate Instructions: {head}",
        since=since,
        later={
            "space=shared::cta": Since(since.sm, "7.8"),
            "shape!=m8n8": Since(version="8.6", families=FAMILIES),
        },
        lower_module=load_in_warp if reads else store_in_warp,
        together=Together.WARP,
        live=True,
        forms=tuple(Syntax(f"sync aligned {line}") for line in _LINES[head]),
    )


_HALF_BYTES = refusing(
    "where the elements of 4 bits lie in a row is not followed", "s8", "s4", hint="write .b8x16.b4x16_p64"
)

ROWS = (
    _row("ldmatrix", ("r", "[p]"), Since(75, "6.5"), ("m16n16", "m8n16", "b8", "b8x16", "b6x16_p32", "b4x16_p64")),
    _row("stmatrix", ("[p]", "r"), Since(90, "7.8"), ("m16n8", "b8")),
)
