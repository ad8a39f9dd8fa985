"""Rows of the table: matrices that a warp multiplies in its registers: mma, wmma, movmatrix. Compiled modules only.

In: a Call. Out: MoveMatrix for the loads and stores of wmma, Forget for results, which nobody knows. Settled here:
which bytes wmma.load and wmma.store access. Which lane moves which element is not specified ("wmma.load").
"""

from __future__ import annotations

import re

from memmodel.base.labels import Side
from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.place import address_in
from memmodel.isa.row import Effect, Need, Row, Since, Slot, Together, flag
from memmodel.program.regions import MatrixLines
from memmodel.program.warp_ops import Forget, MoveMatrix, TransposeMatrix, WarpOp
from memmodel.ptx.operands import Operand, Vector

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64,
    "u8": 8, "s8": 8, "s32": 32, "u4": 4, "s4": 4, "b1": 1,
}  # fmt: skip
"""Bits of an element by its type."""

_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_FACTORS = (*BITS, *_NARROW)
_RESULTS = ("f16", "f32", "f64", "s32")
_LAYOUTS = ("row", "col")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")

_PAGE = "Warp Level Matrix Multiply-Accumulate Instructions: "


def multiply(call: Call) -> tuple[WarpOp, ...]:
    """mma, wmma.mma: the result is a matrix in registers."""
    for operand in call.operands[1:]:
        for element in operand.items if isinstance(operand, Vector) else (operand,):
            call.value(element)
    return (Forget(_results(call, call.operands[0])),)


def transpose(call: Call) -> tuple[WarpOp, ...]:
    """movmatrix."""
    target, source = call.operands
    return (TransposeMatrix(call.register(target), call.value(source)),)


def load_tile(call: Call) -> tuple[WarpOp, ...]:
    """wmma.load: a whole matrix."""
    label = call.access(Side.READ)
    return (MoveMatrix(label, _tile(call, call.operands[1], call.optional(2)), _results(call, call.operands[0])),)


def store_tile(call: Call) -> tuple[WarpOp, ...]:
    """wmma.store: a whole matrix."""
    return (MoveMatrix(call.access(Side.WRITE), _tile(call, call.operands[0], call.optional(2))),)


def _results(call: Call, operand: Operand) -> tuple[str, ...]:
    elements = operand.items if isinstance(operand, Vector) else (operand,)
    return tuple(call.register(element) for element in elements)


def _tile(call: Call, place: Operand, stride: Operand | None) -> MatrixLines:
    """The lines of the matrix that the head names: its rows, or its columns where it is stored by these."""
    shape = _SHAPE.fullmatch(call.word("shape") or "")
    assert shape is not None, "the slot has shapes alone"
    m, n, k = (int(extent) for extent in shape.groups())
    rows, columns = {"wmma.load.a": (m, k), "wmma.load.b": (k, n)}.get(call.head, (m, n))
    lines, length = (rows, columns) if call.word("layout") == "row" else (columns, rows)
    space = call.word("space")
    address = call.in_space(address_in(call, place), space)
    apart = None if stride is None else call.value(stride, ADDRESS)
    return MatrixLines(address, call.window, apart, lines, length, BITS[call.word("type") or ""])


def _wmma_shapes() -> tuple[str, ...]:
    return ("m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128")


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


def _types(name: str, words: tuple[str, ...], need: Need = Need.ALWAYS) -> Slot:
    return Slot(name, words, "type", need)


_ALIGNED = (Slot("sync", ("sync",), "qualifier", Need.ALWAYS), flag("aligned"))
_FOUR = (_types("dtype", _RESULTS), _types("atype", _FACTORS), _types("btype", _FACTORS), _types("ctype", _RESULTS))
_SPACE = Slot("space", ("shared", "shared::cta", "global"), "state space")
_LAYOUT = Slot("layout", _LAYOUTS, "layout", Need.ALWAYS)
_BITS_COMBINED = (Slot("op", ("xor", "and"), "operation"), flag("popc"))


def _mma(head: str, *, sparse: bool) -> Row:
    metadata = ("e", "f") if sparse else ()
    return _row(
        head,
        (
            *_ALIGNED,
            Slot("shape", _MMA_SHAPES, "shape", Need.ALWAYS),
            Slot("alayout", _LAYOUTS, "layout of A", Need.ALWAYS),
            Slot("blayout", _LAYOUTS, "layout of B", Need.ALWAYS),
            Slot("kind", tuple(f"kind::{kind}" for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")), "kind"),
            flag("block_scale"),
            Slot("scale_vec", ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X"), "size of the vector of scales"),
            flag("satfinite"),
            *_FOUR,
            *_BITS_COMBINED,
            Slot("stype", ("ue8m0", "ue4m3"), "type of the scales"),
        ),
        ("d", "a", "b", "c", *metadata, *(f"scale{number}?" for number in range(4))),
        lower_module=multiply,
        effect=Effect.COMPUTES,
        since=Since(70),
    )


ROWS = (
    _mma("mma", sparse=False),
    _mma("mma.sp", sparse=True),
    _mma("mma.sp::ordered_metadata", sparse=True),
    *(
        _row(
            f"wmma.load.{matrix}",
            (
                *_ALIGNED,
                _LAYOUT,
                Slot("shape", _wmma_shapes(), "shape", Need.ALWAYS),
                _SPACE,
                _types("type", tuple(BITS)),
            ),
            ("r", "[p]", "stride?"),
            lower_module=load_tile,
            uniform=("[p]", "stride"),
            since=Since(70),
        )
        for matrix in "abc"
    ),
    _row(
        "wmma.store.d",
        (*_ALIGNED, _LAYOUT, Slot("shape", _wmma_shapes(), "shape", Need.ALWAYS), _SPACE, _types("type", _RESULTS)),
        ("[p]", "r", "stride?"),
        lower_module=store_tile,
        uniform=("[p]", "stride"),
        since=Since(70),
    ),
    _row(
        "wmma.mma",
        (
            *_BITS_COMBINED,
            *_ALIGNED,
            Slot("alayout", _LAYOUTS, "layout of A", Need.ALWAYS),
            Slot("blayout", _LAYOUTS, "layout of B", Need.ALWAYS),
            Slot("shape", _wmma_shapes(), "shape", Need.ALWAYS),
            Slot("rounding", ("rn", "rz", "rm", "rp"), "rounding"),
            _types("dtype", tuple(BITS)),
            _types("atype", tuple(BITS), Need.OPTIONAL),
            _types("btype", tuple(BITS), Need.OPTIONAL),
            _types("ctype", tuple(BITS), Need.OPTIONAL),
            flag("satfinite"),
        ),
        ("d", "a", "b", "c"),
        lower_module=multiply,
        effect=Effect.COMPUTES,
        since=Since(70),
    ),
    _row(
        "movmatrix",
        (
            *_ALIGNED,
            Slot("shape", ("m8n8",), "shape", Need.ALWAYS),
            Slot("trans", ("trans",), "qualifier", Need.ALWAYS),
            _types("type", ("b16",)),
        ),
        ("d", "a"),
        lower_module=transpose,
        effect=Effect.COMPUTES,
        since=Since(75),
    ),
)
