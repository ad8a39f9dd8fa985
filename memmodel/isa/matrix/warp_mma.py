"""Rows of the table: matrices that a warp multiplies in its registers: mma, wmma, movmatrix. Compiled modules only.

In: a Call. Out: MoveMatrix for the loads and stores of wmma, Forget for results, which are unknown. Settled here:
how many registers a lane has of a matrix, which bytes wmma.load and wmma.store access, and what they are aligned to.
Which lane moves which element is not specified ("wmma.load").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel.base.labels import Side
from memmodel.isa.call import Call
from memmodel.isa.place import address_in
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row, Syntax, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Op, UndefinedIf
from memmodel.program.regions import MatrixLines
from memmodel.program.warp_ops import Forget, MoveMatrix, Note, TransposeMatrix, WarpOp
from memmodel.ptx.operands import Blank, Operand, Vector, describe
from memmodel.ptx.vocabulary import S32, U32, DataType

LANES, GUIDE_ALIGN = 32, 16
B32, B64 = DataType("b", 32), DataType("b", 64)

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64,
    "u8": 8, "s8": 8, "s32": 32, "u4": 4, "s4": 4, "b1": 1,
}  # fmt: skip
"""Bits of an element by its type."""

_FOUR_BITS = ("kind::mxf4", "kind::mxf4nvf4")
"""The kinds that have two elements of 4 bits in a byte; others have one."""
_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_FACTORS = (*BITS, *_NARROW)
_RESULTS = ("f16", "f32", "f64", "s32")
_ACCUMULATORS = {
    "u8|s8|u4|s4|b1": "s32",
    "f64": "f64",
    "bf16|tf32": "f32",
    either(("f16", *_NARROW)): "f16|f32",
}
"""The types of C and D, by that of A ("mma", "wmma.mma")."""
_LAYOUTS = ("row", "col")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")

_PAGE = "Warp Level Matrix Multiply-Accumulate Instructions: "


def multiply(call: Call) -> tuple[WarpOp, ...]:
    """mma, wmma.mma: the result is a matrix in registers."""
    m, n, k = _extents(call)
    types = {slot: call.word(f"{slot}type") or "f16" for slot in "dabc"}
    if call.word("btype") is None:  # the two types of wmma.mma for .f16 are those of D and C
        types |= {"c": types["a"], "a": "f16"}
    matrices = {"d": m * n, "a": m * k // (2 if call.head.startswith("mma.sp") else 1), "b": k * n, "c": m * n}
    result, *sources = call.operands
    names = call.reading.operand_names(len(call.operands)) or ()
    values = list[Expr]()
    for name, operand in zip(names[1:], sources, strict=False):
        if name in matrices:
            elements = _elements(call, operand, _count(call, types[name], name, matrices[name]))
            values += [call.source(element, _register(types[name])) for element in elements]
        else:
            values += [
                call.value(element) for element in (operand.items if isinstance(operand, Vector) else (operand,))
            ]
    return (Forget(_results(call, result, types["d"], _count(call, types["d"], "d", matrices["d"])), tuple(values)),)


def transpose(call: Call) -> tuple[WarpOp, ...]:
    """movmatrix."""
    target, source = call.operands
    return (TransposeMatrix(call.register(target), call.value(source)),)


def load_tile(call: Call) -> tuple[Op | WarpOp, ...]:
    """wmma.load: a whole matrix."""
    type, count = _fragment(call)
    registers = _results(call, call.operands[0], type, count)
    checks, tile = _tile(call, call.operands[1])
    return (*checks, MoveMatrix(call.access(Side.READ), tile, registers))


def store_tile(call: Call) -> tuple[Op | WarpOp, ...]:
    """wmma.store: a whole matrix."""
    type, count = _fragment(call)
    for element in _elements(call, call.operands[1], count):
        call.source(element, _register(type))
    checks, tile = _tile(call, call.operands[0])
    return (*checks, MoveMatrix(call.access(Side.WRITE), tile))


# ---- the registers of a lane ("Matrix Fragments for WMMA", and those for the shapes of mma) ---------------------


def _extents(call: Call) -> tuple[int, int, int]:
    shape = _SHAPE.fullmatch(call.word("shape") or "")
    assert shape is not None, "the slot has shapes alone"
    m, n, k = (int(extent) for extent in shape.groups())
    return m, n, k


def _register(type: str) -> DataType:
    """What a register of a matrix with elements of that type is."""
    return B64 if type == "f64" else B32


def _count(call: Call, type: str, matrix: str, elements: int) -> int:
    """The number of registers of a lane that hold its share of a matrix."""
    if call.head.startswith("wmma") and type == "f16" and matrix in "ab":
        return 8  # for every shape
    bits = 4 if type == "e2m1" and call.word("kind") in _FOUR_BITS else BITS.get(type, 8)
    at_once = 4 if call.word("shape") == "m8n8k4" and type != "f64" else 1  # four quads of lanes, a matrix each
    return elements * bits * at_once // (LANES * _register(type).width)


def _fragment(call: Call) -> tuple[str, int]:
    """The type of the elements that wmma.load or wmma.store moves, and how many registers a lane has of them."""
    type, lines, length = call.word("type") or "", *_lines(call)
    return type, _count(call, type, call.head[-1], lines * length)


def _elements(call: Call, operand: Operand, count: int) -> tuple[Operand, ...]:
    """The registers of a matrix."""
    if not isinstance(operand, Vector):
        call.fail(f"{call.head} has matrices in braces, even one register, and this is {describe(operand)}", operand)
    if len(operand.items) != count:
        call.fail(f"a lane has {count} register(s) of this matrix, and {len(operand.items)} are given", operand)
    return operand.items


def _results(call: Call, operand: Operand, type: str, count: int) -> tuple[str, ...]:
    return tuple(
        call.target(element, _register(type))
        for element in _elements(call, operand, count)
        if not isinstance(element, Blank)
    )


# ---- matrices in memory ("Matrix Storage for WMMA") -------------------------------------------------------------


def _lines(call: Call) -> tuple[int, int]:
    """How many lines the matrix that the head names has in memory, its rows or its columns, and how long they are."""
    m, n, k = _extents(call)
    rows, columns = {"wmma.load.a": (m, k), "wmma.load.b": (k, n)}.get(call.head, (m, n))
    return (rows, columns) if call.word("layout") == "row" else (columns, rows)


def _tile(call: Call, place: Operand) -> tuple[tuple[Op | WarpOp, ...], MatrixLines]:
    """The lines of a matrix, and the steps that find a stride which is too small, or leaves a line misaligned."""
    lines, length = _lines(call)
    type, count = _fragment(call)
    bits, align = BITS[type], count * _register(type).width // 8
    address = call.in_space(address_in(call, place), call.word("space"))
    stride = call.optional(2)
    apart = None if stride is None else call.source(stride, U32)
    tile = MatrixLines(address, call.window, apart, lines, length, bits, align, _which_fragment(call))
    return (() if apart is None else tuple(_checks(call, apart, tile))), tile


def _which_fragment(call: Call) -> str:
    """Accumulators of one type and shape are one fragment, whether wmma.load.c or wmma.store.d moves them: a kernel
    adds to a matrix in memory by loading and storing it at one place. `layout` decides where its elements are there."""
    matrix = call.head[-1]
    words = "cd" if matrix in "cd" else matrix, *(call.word(slot) or "" for slot in ("layout", "shape", "type"))
    return ".".join(words)


def _checks(call: Call, stride: Expr, tile: MatrixLines) -> Iterator[Op | WarpOp]:
    """The steps that find a stride below the length of a line, and one after which lines are misaligned.

    "The starting address of each instance of the leading dimension must be aligned with the size of the corresponding
    fragment", but the default strides of some are half of that, and the guide to `nvcuda::wmma` asks for multiples of
    16 bytes only: what has these is taken to be aligned, and the verdict says so.
    """
    small = Apply("lt", (stride, Const(tile.length)), S32)
    yield UndefinedIf(f"the stride of {call.head} is not below {tile.length}, the length of a line", small)
    enough, wanted = (min(tile.align, most) * 8 // tile.bits for most in (GUIDE_ALIGN, tile.align))
    if enough > 1:
        odd = Apply("and", (stride, Const(enough - 1)), U32)
        yield UndefinedIf(f"the stride of {call.head} is a multiple of {enough}, so that lines are aligned", odd)
    if wanted > enough:
        odd = Apply("ne", (Apply("and", (stride, Const(wanted - 1)), U32), Const(0)), U32)
        text = f"lines {GUIDE_ALIGN} bytes apart are aligned enough for {call.head}, and the PTX ISA wants {tile.align}"
        loose = Apply("ne", (stride, Const(tile.length)), U32)
        yield Note(text, Apply("and", (odd, loose), U32), f"a stride that is a multiple of {wanted}")


_WMMA_SHAPES = ("m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128")
_MMA_SHAPES = (
    "m8n8k4", "m8n8k16", "m8n8k32", "m8n8k128", "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64", "m16n8k128",
    "m16n8k256",
)  # fmt: skip


def _row(head: str, slots: tuple[Slot, ...], operands: tuple[str, ...], **more: object) -> Row:
    page = head if head.startswith("wmma") else head.partition(".")[0]
    return Row(
        (head,),
        slots,
        operands,
        None,
        "none that litmus tests have",
        _PAGE + page,
        together=Together.WARP,
        aligned=True,
        live=True,
        **more,  # type: ignore[arg-type]
    )


_ALIGNED = (needed("sync"), optional("aligned"))
_FOUR = (needed("dtype", *_RESULTS), needed("atype", *_FACTORS), needed("btype", *_FACTORS), needed("ctype", *_RESULTS))
_SPACE = optional("space", "shared", "shared::cta", "global")
_LAYOUT = needed("layout", *_LAYOUTS)
_BITS_COMBINED = (optional("op", "xor", "and"), optional("popc"))


_RULES = (
    *(
        Rule(
            f"{{head}} of .{{atype}} has no .{{{slot}}} accumulator",
            f"write .{results.partition('|')[0]}",
            f"atype={factors} btype {slot}!={results}",
        )
        for factors, results in _ACCUMULATORS.items()
        for slot in ("dtype", "ctype")
    ),
    Rule("{head} of .b1 names its operation", "add .xor.popc or .and.popc", "atype=b1 !op"),
    *(Rule(f".{word} is for .b1", "drop it", f"atype!=b1 {slot}") for slot, word in (("op", "{op}"), ("popc", "popc"))),
)


_F8, _NARROW_WORDS = "e4m3|e5m2", either(_NARROW)
_SCALES = ("scale-a-data", "{byte-id-a, thread-id-a}", "scale-b-data", "{byte-id-b, thread-id-b}")
_MMA_LINES = (
    "m8n8k4 alayout blayout f16 f16 f16 f16",
    "m8n8k4 alayout blayout f32 f16 f16 f16|f32",
    "m16n8k8|m16n8k16 row col f16 f16 f16 f16",
    "m16n8k8|m16n8k16 row col f32 f16 f16 f32",
    "m16n8k4|m16n8k8 row col f32 tf32 tf32 f32",
    "m16n8k8|m16n8k16 row col f32 bf16 bf16 f32",
    *(f"m16n8k16|m16n8k32 row col {d} {_F8} {_F8} {d}" for d in ("f16", "f32")),
    *(f"m16n8k32 row col kind::f8f6f4 {d} {_NARROW_WORDS} {_NARROW_WORDS} {d}" for d in ("f16", "f32")),
    "m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col f64 f64 f64 f64",
    "m8n8k16|m16n8k16|m16n8k32 row col satfinite? s32 u8|s8 u8|s8 s32",
    "m8n8k32|m16n8k32|m16n8k64 row col satfinite? s32 u4|s4 u4|s4 s32",
    "m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 op popc",
)
_SPARSE_LINES = (
    "m16n8k16|m16n8k32 row col f16 f16 f16 f16",
    "m16n8k16|m16n8k32 row col f32 f16 f16 f32",
    "m16n8k16|m16n8k32 row col f32 bf16 bf16 f32",
    "m16n8k8|m16n8k16 row col f32 tf32 tf32 f32",
    f"m16n8k64 row col f32 {_F8} {_F8} f32",
    "m16n8k32|m16n8k64 row col satfinite? s32 u8|s8 u8|s8 s32",
    "m16n8k64|m16n8k128 row col satfinite? s32 u4|s4 u4|s4 s32",
)
_ORDERED_LINES = (
    *_SPARSE_LINES,
    f"m16n8k64 row col f16 {_F8} {_F8} f16",
    *(f"m16n8k64 row col kind::f8f6f4 {d} {_NARROW_WORDS} {_NARROW_WORDS} {d}" for d in ("f16", "f32")),
)
_WMMA_16 = "m16n16k16|m8n32k16|m32n8k16"
_WMMA_LINES = (
    f"alayout blayout {_WMMA_16} f16|f32 f16|f32",
    *(f"alayout blayout {_WMMA_16} s32 {byte} {byte} s32 satfinite?" for byte in ("u8", "s8")),
    f"alayout blayout {_WMMA_16} f32 bf16 bf16 f32",
    "alayout blayout m16n16k8 f32 tf32 tf32 f32",
    "alayout blayout m8n8k4 rounding? f64 f64 f64 f64",
    *(f"row col m8n8k32 s32 {half} {half} s32 satfinite?" for half in ("u4", "s4")),
)
_FACTOR_LINES = (
    f"layout {_WMMA_16} space? f16|bf16|u8|s8",
    "layout m16n16k8 space? tf32",
    "layout m8n8k4 space? f64",
)
_ACCUMULATOR_LINES = (
    f"layout {_WMMA_16} space? f16|f32|s32",
    "layout m16n16k8 space? f32",
    "layout m8n8k4 space? f64",
    "layout m8n8k32|m8n8k128 space? s32",
)
_LINES_OF_TILES = {
    **{
        f"wmma.load.{matrix}": (*_FACTOR_LINES, f"{layout} m8n8k32 space? u4|s4", f"{layout} m8n8k128 space? b1")
        for matrix, layout in (("a", "row"), ("b", "col"))
    },
    "wmma.load.c": _ACCUMULATOR_LINES,
    "wmma.store.d": _ACCUMULATOR_LINES,
}
"""The syntax lines of their pages, after .sync.aligned."""


def _scaled(four_bits: str, eight_bits: str) -> tuple[str, ...]:
    """The lines of matrices with scale factors, of a shape for elements of 4 bits and of one for those of 8 bits."""
    return (
        f"{four_bits} row col kind::mxf4 block_scale scale_vec::2X? f32 e2m1 e2m1 f32 ue8m0",
        f"{four_bits} row col kind::mxf4nvf4 block_scale scale_vec::2X f32 e2m1 e2m1 f32 ue8m0",
        f"{four_bits} row col kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 f32 ue8m0|ue4m3",
        f"{eight_bits} row col kind::mxf8f6f4 block_scale scale_vec::1X? f32 {_NARROW_WORDS} {_NARROW_WORDS} f32 ue8m0",
    )


def _mma(head: str, since: Since, lines: tuple[str, ...], scaled: tuple[str, ...]) -> Row:
    operands = ("d", "a", "b", "c", *(() if head == "mma" else ("e", "f")))
    return _row(
        head,
        (
            needed("sync"),
            needed("aligned"),
            needed("shape", *_MMA_SHAPES),
            needed("alayout", *_LAYOUTS),
            needed("blayout", *_LAYOUTS),
            optional("kind", *(f"kind::{kind}" for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"))),
            optional("block_scale"),
            optional("scale_vec", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X"),
            optional("satfinite"),
            *_FOUR,
            *_BITS_COMBINED,
            optional("stype", "ue8m0", "ue4m3"),
        ),
        operands,
        lower_module=multiply,
        effect=Effect.COMPUTES,
        rules=_RULES,
        since=since,
        later=_MMA_SINCE if head != ORDERED else _MMA_SINCE | _ORDERED_SINCE,
        forms=(
            *(Syntax(f"sync aligned {line}", operands) for line in lines),
            *(Syntax(f"sync aligned {line}", (*operands, *_SCALES)) for line in scaled),
        ),
    )


_MMA_SINCE = {
    "shape=m16n8k8|m8n8k16|m8n8k32": Since(75, "6.5"),
    "shape=m8n8k128": Since(75, "7.0"),
    "shape=m16n8k4|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256": Since(80, "7.0"),
    "op=and": Since(80, "7.1"),
    "atype=bf16|tf32|f64": Since(80, "7.0"),
    "atype=f64 shape!=m8n8k4": Since(90, "7.8"),
    "atype=e4m3|e5m2": Since(89, "8.4"),
    "atype=e4m3|e5m2 shape=m16n8k16": Since(89, "8.7"),
    "atype=e4m3|e5m2 dtype=f16": Since(89, "8.7"),
    "kind": Since(version="8.7", families=frozenset({120, 121})),
    "kind=kind::mxf4nvf4 scale_vec=scale_vec::4X stype=ue8m0": Since(version="9.1", families=frozenset({120, 121})),
}
ORDERED = "mma.sp::ordered_metadata"
_ORDERED_SINCE = {
    "atype=e4m3|e5m2 dtype=f16": Since(version="8.7", families=frozenset({120, 121})),
    "kind=kind::mxf4|kind::mxf4nvf4": Since(version="8.7", alone=frozenset({120, 121})),
}
_WMMA = Since(70, "6.3")
_WMMA_TYPES_SINCE = {
    "u8|s8": Since(72, "6.3"),
    "u4|s4|b1": Since(75, "6.3"),
    "bf16|tf32|f64": Since(80, "7.0"),
}
_WMMA_PLACES_SINCE = {
    "shape=m16n16k8|m8n8k4": Since(80, "7.0"),
    "shape=m8n8k32|m8n8k128": Since(75, "6.3"),
    "type=s32": Since(72, "6.3"),
    "space=shared::cta": Since(70, "7.8"),
}
_WMMA_SINCE = {**{f"type={words}": since for words, since in _WMMA_TYPES_SINCE.items()}, **_WMMA_PLACES_SINCE}

ROWS = (
    _mma("mma", Since(70, "6.4"), _MMA_LINES, _scaled("m16n8k64", "m16n8k32")),
    _mma("mma.sp", Since(80, "7.1"), _SPARSE_LINES, ()),
    _mma(ORDERED, Since(80, "8.5"), _ORDERED_LINES, _scaled("m16n8k128", "m16n8k64")),
    *(
        _row(
            head,
            (*_ALIGNED, _LAYOUT, needed("shape", *_WMMA_SHAPES), _SPACE, needed("type", *BITS)),
            ("[p]", "r", "stride?") if head == "wmma.store.d" else ("r", "[p]", "stride?"),
            lower_module=store_tile if head == "wmma.store.d" else load_tile,
            uniform=("[p]", "stride"),
            since=_WMMA,
            later=_WMMA_SINCE,
            forms=tuple(Syntax(f"sync aligned? {line}") for line in lines),
        )
        for head, lines in _LINES_OF_TILES.items()
    ),
    _row(
        "wmma.mma",
        (
            *_BITS_COMBINED,
            *_ALIGNED,
            needed("alayout", *_LAYOUTS),
            needed("blayout", *_LAYOUTS),
            needed("shape", *_WMMA_SHAPES),
            optional("rounding", "rn", "rz", "rm", "rp"),
            needed("dtype", *BITS),
            optional("atype", *BITS),
            optional("btype", *BITS),
            optional("ctype", *BITS),
            optional("satfinite"),
        ),
        ("d", "a", "b", "c"),
        lower_module=multiply,
        effect=Effect.COMPUTES,
        rules=(
            *_RULES,
            *(
                Rule(f"{{head}} of .f16 has no .{{{slot}}} accumulator", "write .f32", f"!btype {slot}!=f16|f32")
                for slot in ("dtype", "atype")  # where the two types are those of D and C
            ),
        ),
        since=_WMMA,
        later={
            **{f"{slot}={words}": since for slot in ("atype", "btype") for words, since in _WMMA_TYPES_SINCE.items()},
            "op=and": Since(80, "7.1"),
        },
        forms=(
            *(Syntax(f"sync aligned? {line}") for line in _WMMA_LINES),
            Syntax("op popc sync aligned? row col m8n8k128 s32 b1 b1 s32"),
        ),
    ),
    _row(
        "movmatrix",
        (needed("sync"), needed("aligned"), needed("shape", "m8n8"), needed("trans"), needed("type", "b16")),
        ("d", "a"),
        lower_module=transpose,
        effect=Effect.COMPUTES,
        since=Since(75, "7.8"),
    ),
)
