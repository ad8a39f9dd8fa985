"""Rows of the table: tcgen05.cp, shift, ld and st, which move data in, within and out of tensor memory.

In: a Call. Out: one instruction; for ld the registers receive what its parts read. Settled here: how many registers a
shape has, and how many columns of tensor memory it touches for each ("Data Movement Shape"). shift moves the columns
after its address down by one: rows, like columns, are counted by the address here, and the last one stays.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Family, Side
from memmodel.isa.call import Call
from memmodel.isa.place import shifted
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.tensor_memory import (
    ALIGNED,
    GROUP,
    PAGE,
    TCGEN05,
    ctas,
    descriptor,
    group,
    in_shared,
    issue,
    label,
    lane_of,
    peer,
    tensor,
    tracked,
)
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import AsyncRead, AsyncWrite, Gather, IssueAsync, Op, Part, Scatter, Track, UndefinedIf
from memmodel.program.regions import Accumulator, Columns
from memmodel.program.warp_ops import CopyToTensorMemory, MoveTensorMemory, ShiftTensorMemory, TensorPiece, WarpOp
from memmodel.ptx.operands import Imm, Operand, Reg, Vector
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import U32, DataType, Proxy

REGISTERS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
"""32-bit registers of one repetition of a shape."""

MAX_REGISTERS = 128
WARP = 32
ROWS_SHIFTED = 7
"""An element of 32 bytes has 8 columns: the instruction touches no more of them, and the last one stays."""

_SPLIT = {"immHalfSplitoff": "shape=16x32bx2"}
_SUFFIX = ("", ".high", ".2", ".3")
"""What the temporaries for the columns of one register are called."""

U16 = DataType("b", 16)


def copy(call: Call) -> tuple[Op, ...]:
    """tcgen05.cp: shared memory to tensor memory, of each CTA of the group."""
    shape = call.word("shape") or ""
    target, source = tensor(call, call.operands[0]), descriptor(call, call.operands[1])
    lanes, bits = (int(number) for number in shape.removesuffix("b").split("x"))
    parts: list[Part] = []
    for cta in ctas(call):
        read = label(call, Side.READ, Family.TCGEN_CP, form=shape, proxy=Proxy.ASYNC)
        parts.append(Gather(read, in_shared(call, source, cta, lanes * bits // 8), tracked(call)))
        write = label(call, Side.WRITE, Family.TCGEN_CP, form=shape)
        region = Accumulator(target, bits // 32, peer(call, cta))
        parts.append(Scatter(write, region, len(parts) - 1, tracked(call)))
    return (IssueAsync(issue(call, Family.TCGEN_CP, shape), tuple(parts)),)


def copy_in_module(call: Call) -> tuple[WarpOp, ...]:
    """tcgen05.cp in a module: its descriptor says which bytes of shared memory it copies, to all lanes."""
    shape = call.word("shape") or ""
    rows, bits = (int(number) for number in shape.removesuffix("b").split("x"))
    target, source = tensor(call, call.operands[0]), descriptor(call, call.operands[1])
    return (CopyToTensorMemory(group(call) or 1, shape, source, target, rows, bits),)


def shift_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """tcgen05.shift in a module, where tensor memory has lanes."""
    address = tensor(call, call.operands[0])
    astray = Apply("and", (lane_of(address), Const(31)), U32)
    rule = f"the lane of the address of {call.head} is a multiple of 32"
    return (UndefinedIf(rule, astray), ShiftTensorMemory(group(call) or 1, address))


def load_in_warp(call: Call) -> tuple[WarpOp, ...]:
    """tcgen05.ld and ld.red in a module: each lane has its own part of the shape."""
    reduces = call.head.endswith("red")
    targets = _registers(call, call.operands[0])
    names = [call.destination(target, sink=True) for target in targets]
    if reduces:
        names.append(call.register(call.operands[1]))
    registers = tuple(name for name in names if name is not None)
    address = tensor(call, call.operands[2 if reduces else 1])
    pieces = _pieces(call, _split(call))
    return (MoveTensorMemory(Family.TCGEN_LD, Side.READ, address, pieces, Track.TCGEN_LD, registers),)


def store_in_warp(call: Call) -> tuple[WarpOp, ...]:
    """tcgen05.st in a module: each lane has its own part of the shape."""
    for source in _registers(call, call.operands[-1]):
        call.value(source)
    address, pieces = tensor(call, call.operands[0]), _pieces(call, _split(call))
    return (MoveTensorMemory(Family.TCGEN_ST, Side.WRITE, address, pieces, Track.TCGEN_ST),)


def _pieces(call: Call, split: int | None) -> tuple[tuple[TensorPiece, ...], ...]:
    """What each lane of the warp moves ("Data Movement Shape"). With .pack::16b and .unpack::16b a register holds the
    elements of two columns. 16 lanes of tensor memory: four threads have the rows r and r + 8. Each has its columns of
    both, but for .16x64b, where two have those of one row.
    """
    shape, times = call.word("shape") or "", int((call.word("num") or "x1")[1:])
    double = 2 if call.word("pack::16b") or call.word("unpack::16b") else 1
    if shape == "32x32b":
        return tuple(((lane, 0, times * double),) for lane in range(WARP))
    if split is not None:
        return tuple(((lane % 16, 0 if lane < 16 else split, times * double),) for lane in range(WARP))
    width = {"16x64b": 2, "16x128b": 4, "16x256b": 8}[shape] * double
    pieces: list[tuple[TensorPiece, ...]] = []
    for lane in range(WARP):
        upper, column = lane // 4, lane % 4
        rows: tuple[int, ...] = (upper, upper + 8)
        shares = 4
        if shape == "16x64b":
            rows, column, shares = (upper + 8 * (lane % 2),), lane // 2 % 2, 2
        count = width // shares
        pieces.append(tuple((row, turn * width + column * count, count) for turn in range(times) for row in rows))
    return tuple(pieces)


def shift(call: Call) -> tuple[Op, ...]:
    """tcgen05.shift: every row but the last receives the next one; the column after it stands for it."""
    address = tensor(call, call.operands[0])
    parts: list[Part] = []
    for cta in ctas(call):
        cta_of_pair = peer(call, cta)
        read, write = (label(call, side, Family.SHIFT) for side in (Side.READ, Side.WRITE))
        parts.append(Gather(read, Columns(shifted(address, 1), ROWS_SHIFTED, cta_of_pair, 0), tracked(call)))
        parts.append(Scatter(write, Columns(address, ROWS_SHIFTED, cta_of_pair, 1), len(parts) - 1, tracked(call)))
    return (IssueAsync(issue(call, Family.SHIFT), tuple(parts)),)


def load(call: Call) -> tuple[Op, ...]:
    """tcgen05.ld: a read of every column; each register receives the first of its columns, or two packed into one."""
    registers = _registers(call, call.operands[0])
    wanted = [call.destination(register, sink=True) is not None for register in registers]
    results = (_in_register(call, k) for k in range(len(registers)))
    return (_read(call, call.operands[1], wanted), *call.assign(call.operands[0], *results))


def load_and_reduce(call: Call) -> tuple[Op, ...]:
    """tcgen05.ld.red: as tcgen05.ld, and the least or greatest of what was read."""
    results = [_in_register(call, k) for k in range(len(_registers(call, call.operands[0])))]
    reduced = results[0]
    for result in results[1:]:
        reduced = Apply(call.word("op") or "", (reduced, result), call.type)
    read = _read(call, call.operands[2], [True] * len(results))
    return (read, *call.assign(call.operands[0], *results), *call.assign(call.operands[1], reduced))


def _read(call: Call, operand: Operand, wanted: list[bool]) -> IssueAsync:
    """The reads of a load: of all columns, those that some register shows into temporaries."""
    address = tensor(call, operand)
    width, shown = _columns(call), 2 if call.word("pack::16b") else 1
    temporaries = [
        f"$r{k}{_SUFFIX[column]}" if shows and column < shown else None
        for k, shows in enumerate(wanted)
        for column in range(width)
    ]
    access = label(call, Side.READ, Family.TCGEN_LD)
    tracks = frozenset({Track.TCGEN_LD})
    parts = [AsyncRead(access, Columns(address, len(temporaries)), tuple(temporaries), tracks=tracks)]
    split = _split(call)
    if split is not None:  # the other 16 lanes
        second = Columns(shifted(address, split), len(temporaries))
        parts.append(AsyncRead(access, second, (None,) * len(temporaries), tracks=tracks))
    return IssueAsync(issue(call, Family.TCGEN_LD), tuple(parts))


def _in_register(call: Call, number: int) -> Expr:
    """What a load puts into its register of that number."""
    first = Get(f"$r{number}")
    if not call.word("pack::16b"):
        return Apply("cvt", (first,), call.type)
    low, high = (Apply("cvt", (Get(f"$r{number}{half}"),), U16) for half in _SUFFIX[:2])
    return Apply("or", (low, Apply("shl", (high, Const(16)), call.type)), call.type)


def store(call: Call) -> tuple[Op, ...]:
    """tcgen05.st: a write of every column; a register goes to all its columns, or half of it to every second one."""
    sources = _registers(call, call.operands[-1])
    address, width = tensor(call, call.operands[0]), _columns(call)
    values = tuple(value for source in sources for value in _of_register(call, source, width))
    access = label(call, Side.WRITE, Family.TCGEN_ST)
    bases = [address]
    split = _split(call)
    if split is not None:
        bases.append(shifted(address, split))
    parts = tuple(
        AsyncWrite(access, Columns(base, len(values)), values, tracks=frozenset({Track.TCGEN_ST})) for base in bases
    )
    return (IssueAsync(issue(call, Family.TCGEN_ST), parts),)


def _of_register(call: Call, source: Operand, width: int) -> list[Expr]:
    """What a register gives to its columns."""
    value = call.reduced(call.value(source))
    if not call.word("unpack::16b"):
        return [value] * width
    halves: list[Expr] = [
        Apply("cvt", (value,), U16),
        Apply("cvt", (Apply("shr", (value, Const(16)), call.type),), U16),
    ]
    return halves * (width // 2)


def _columns(call: Call) -> int:
    """Columns of each register: 64 bits of a lane are two, and 16-bit elements have a column each."""
    width = 2 if (call.word("shape") or "").startswith(("16x64b", "16x128b", "16x256b")) else 1
    return 2 * width if call.word("pack::16b") or call.word("unpack::16b") else width


def _registers(call: Call, operand: Operand) -> tuple[Operand, ...]:
    """As many registers as the shape has."""
    shape, times = call.word("shape") or "", int((call.word("num") or "x1")[1:])
    wanted = REGISTERS[shape] * times
    if wanted > MAX_REGISTERS:
        call.refuse(f"{call.head}.{shape} has at most .x{MAX_REGISTERS // REGISTERS[shape]}", "num")
    if not isinstance(operand, Vector):
        hint = "write {%" + operand.name + "}" if isinstance(operand, Reg) else "for example {%r0, %r1}"
        call.fail(f"{call.head} has its registers in braces, even one", operand, hint)
    if len(operand.items) != wanted:
        message = f".{shape}.x{times} has {wanted} register(s), and {len(operand.items)} are given"
        call.fail(message, operand, None if wanted > 1 else "write {%r0}")
    return operand.items


def _split(call: Call) -> int | None:
    """The distance from the first half of a .16x32bx2 to the second."""
    operand = call.operand("immHalfSplitoff")
    if operand is not None and not isinstance(operand, Imm):
        call.fail("immHalfSplitoff is a number", operand)
    return None if operand is None else operand.value


_SHAPE = needed("shape", *REGISTERS)
_NUMBER = needed("num", *(f"x{1 << k}" for k in range(8)))
_NO_FLOATS = {
    word: ("floating-point reductions are not modelled", "write .u32 or .s32") for word in ("f32", "abs", "NaN")
}
_CP_SHAPES = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
_TWO, _FOUR = ("warpx2::02_13", "warpx2::01_23"), ("warpx4",)

_row = partial(Row, since=TCGEN05, effect=Effect.ASYNCHRONOUS)

ROWS = (
    _row(
        ("tcgen05.cp",),
        (
            GROUP,
            needed("shape", *_CP_SHAPES),
            optional("multicast", *_TWO, *_FOUR, what="multicast to warps"),
            optional("dst_fmt", "b8x16", what="format"),
            optional("src_fmt", "b6x16_p32", "b4x16_p64", what="source format"),
        ),
        ("[taddr]", "s-desc"),
        copy,
        "an issue; outside of program order a read of shared memory (async proxy) and a write of tensor memory; with "
        ".cta_group::2 the same in the peer CTA, if the test has it",
        PAGE + "tcgen05.cp",
        rules=(
            Rule(
                "{head}.64x128b needs .warpx2::02_13 or .warpx2::01_23",
                "write {head}.cta_group::N.64x128b.warpx2::02_13",
                "!multicast shape=64x128b",
            ),
            Rule("{head}.32x128b needs .warpx4", "write .32x128b.warpx4", "!multicast shape=32x128b"),
            Rule("{head}.{shape} takes no .{multicast}", "drop it", f"shape={either(_CP_SHAPES[:3])} multicast"),
            Rule(
                "{head}.64x128b needs .warpx2::02_13 or .warpx2::01_23",
                "write it instead of .{multicast}",
                f"shape=64x128b multicast={either(_FOUR)}",
            ),
            Rule(
                "{head}.32x128b needs .warpx4",
                "write it instead of .{multicast}",
                f"shape=32x128b multicast={either(_TWO)}",
            ),
            Rule(".{dst_fmt} needs a source format", "write .b8x16.b6x16_p32 or .b8x16.b4x16_p64", "dst_fmt !src_fmt"),
            Rule(".{src_fmt} needs .b8x16 in front", "write .b8x16.{src_fmt}", "src_fmt !dst_fmt"),
        ),
        lower_module=copy_in_module,
    ),
    _row(
        ("tcgen05.shift",),
        (GROUP, needed("down")),
        ("[taddr]",),
        shift,
        "an issue; outside of program order a read of tensor memory and a write of the elements before: of the 8 "
        "columns from its address on, as far as the variable has them, each but the last receives the next",
        PAGE + "tcgen05.shift",
        since=Since(version="8.6", alone=FAMILY_100),
        lower_module=shift_in_module,
    ),
    _row(
        ("tcgen05.ld",),
        (*ALIGNED, _SHAPE, _NUMBER, optional("pack::16b"), in_blocks("type", "b32")),
        ("r", "[taddr]", "immHalfSplitoff"),
        load,
        "an issue; outside of program order a read of each column that the shape has: one for each register, two with "
        ".16x64b, .16x128b and .16x256b, twice as many with .pack::16b; .16x32bx2 reads them at both addresses",
        PAGE + "tcgen05.ld",
        when=_SPLIT,
        lower_module=load_in_warp,
        together=Together.WARP,
        live=True,
        uniform=("[taddr]",),
    ),
    _row(
        ("tcgen05.ld.red",),
        (
            *ALIGNED,
            needed("shape", "32x32b", "16x32bx2"),
            _NUMBER,
            needed("op", "min", "max"),
            optional("abs", modules=("abs",)),
            optional("nan", modules=("NaN",)),
            needed("type", "u32", "s32", refused=_NO_FLOATS, modules=("f32",)),
        ),
        ("r", "redval", "[taddr]", "immHalfSplitoff"),
        load_and_reduce,
        "as tcgen05.ld; redval is the least or greatest of what the registers of the first half receive",
        PAGE + "tcgen05.ld",
        when=_SPLIT,
        lower_module=load_in_warp,
        since=Since(version="8.8", families=frozenset({103, 107, 110})),
        together=Together.WARP,
        live=True,
        uniform=("[taddr]",),
        results=2,
        rules=(
            Rule("{head} reads two registers at least", "write .x2", "num=x1"),
            Rule("{head}.{type} has no .{abs}", "drop .{abs}", "abs type=u32|s32"),
            Rule("{head}.{type} has no .{nan}", "drop .{nan}", "nan type=u32|s32"),
        ),
    ),
    _row(
        ("tcgen05.st",),
        (*ALIGNED, _SHAPE, _NUMBER, optional("unpack::16b"), in_blocks("type", "b32")),
        ("[taddr]", "immHalfSplitoff", "r"),
        store,
        "an issue; outside of program order a write of each column that the shape has, as tcgen05.ld",
        PAGE + "tcgen05.st",
        when=_SPLIT,
        lower_module=store_in_warp,
        together=Together.WARP,
        live=True,
        uniform=("[taddr]",),
    ),
)
