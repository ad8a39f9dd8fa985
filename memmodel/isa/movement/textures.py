"""Rows of the table: textures and surfaces, which only compiled modules have.

In: a Call. Out: an access without a place: a launch does not say what a texture or a surface is made of, and the memory
consistency model "does not apply to texture and surface accesses". Settled here: the spelling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memmodel.base.labels import Access, Side
from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.program.expressions import opaque
from memmodel.program.ops import Assign, Op
from memmodel.program.warp_ops import AccessTexture, WarpOp
from memmodel.ptx.operands import Operand, Pair, Vector
from memmodel.ptx.vocabulary import DataType, Proxy

VALUE = DataType("b", 64)


def _registers(call: Call, operand: Operand) -> Iterator[str]:
    """The registers of a result: one, a vector, or either with a predicate."""
    if isinstance(operand, Pair):
        yield from (*_registers(call, operand.first), *_registers(call, operand.second))
    elif isinstance(operand, Vector):
        for element in operand.items:
            yield from _registers(call, element)
    elif (register := call.destination(operand, sink=True)) is not None:
        yield register


def fetch(call: Call) -> tuple[WarpOp, ...]:
    """tex, tld4 and suld: a read that returns unknown values."""
    proxy = Proxy.SURFACE if call.head.startswith("su") else Proxy.TEXTURE
    return (AccessTexture(Access(Side.READ, proxy=proxy), tuple(_registers(call, call.operands[0]))),)


def query(call: Call) -> tuple[Op, ...]:
    """txq, suq and istypep: a property that the launch does not say."""
    return tuple(Assign(register, opaque(call.head, VALUE)) for register in _registers(call, call.operands[0]))


def store(call: Call) -> tuple[WarpOp, ...]:
    """sust and sured: a write of a surface."""
    return (AccessTexture(Access(Side.WRITE, proxy=Proxy.SURFACE)),)


_VECTOR = optional("vec", "v2", "v4")
_CLAMP = needed("clamp", "trap", "clamp", "zero")
_ARRAYS = ("1d", "2d", "3d", "a1d", "a2d")
_BITS = ("b8", "b16", "b32", "b64")
_B32 = needed("type", "b32")
_SIZES = ("width", "height", "depth")
_CHANNELS = ("channel_data_type", "channel_order", "array_size")


def _geometry(*words: str) -> Slot:
    return needed("geom", *words)


_FETCHED = (
    Rule("{head}.{geom} has coordinates of .s32", "write .s32", "geom=2dms|a2dms ctype=f32"),
    Rule("{head}.{dtype} returns two registers", "write .v2", "dtype=f16x2 vec=v4"),
    Rule("{head}.{dtype} returns four registers", "write .v4", "dtype!=f16x2 vec=v2"),
)


def _fetch(
    head: str,
    slots: tuple[Slot, ...],
    operands: tuple[str, ...],
    title: str,
    since: Since,
    later: Mapping[str, Since],
    rules: tuple[Rule, ...] = (),
) -> Row:
    events = "none; what it returns is unknown, and taken not to be written by the launch"
    return Row((head,), slots, operands, None, events, title, rules, since=since, later=later, lower_module=fetch)


def _query(
    head: str, slots: tuple[Slot, ...], operands: tuple[str, ...], title: str, since: Since, later: Mapping[str, Since]
) -> Row:
    events, computes = "none; the result is unknown", Effect.COMPUTES
    return Row(
        (head,), slots, operands, None, events, title, since=since, later=later, lower_module=query, effect=computes
    )


def _store(
    head: str,
    slots: tuple[Slot, ...],
    title: str,
    since: Since,
    later: Mapping[str, Since],
    rules: tuple[Rule, ...] = (),
) -> Row:
    events = "none; the verdict is left open, since the model does not apply to it"
    return Row(
        (head,), slots, ("[a, b]", "c"), None, events, title, rules, since=since, later=later, lower_module=store
    )


_CHANNELS_SINCE = {
    "query=channel_data_type|channel_order": Since(20, "2.1"),
    "query=array_size": Since(20, "4.1"),
}
_CLAMPS_SINCE = {"clamp=clamp|zero": Since(20, "2.0"), "geom=3d": Since(20, "3.0")}
_SURFACES_SINCE = {**_CLAMPS_SINCE, "cop": Since(20, "2.0"), "geom=a1d|a2d": Since(20, "3.0")}
_TEXTURES, _SURFACES = "Texture Instructions: ", "Surface Instructions: "

ROWS = (
    _fetch(
        "tex",
        (
            optional("level", "base", "level", "grad", what="mipmap mode"),
            _geometry(*_ARRAYS, "cube", "acube", "2dms", "a2dms"),
            needed("vec", "v2", "v4"),
            needed("dtype", "u32", "s32", "f16", "f32", "f16x2", what="type of the result"),
            needed("ctype", "s32", "f32", what="type of the coordinates"),
        ),
        ("d", "[a, c]", "lod?", "dPdy?", "e?", "f?"),
        _TEXTURES + "tex",
        FIRST,
        {
            "geom=a1d|a2d": Since(20, "2.3"),
            "level": Since(20, "3.1"),
            "geom=2dms|a2dms": Since(30, "3.2"),
        },
        _FETCHED,
    ),
    _fetch(
        "tld4",
        (
            needed("comp", "r", "g", "b", "a"),
            _geometry("2d", "a2d", "cube", "acube"),
            needed("vec", "v4"),
            needed("dtype", "u32", "s32", "f32", what="type of the result"),
            needed("ctype", "f32", what="type of the coordinates"),
        ),
        ("d", "[a, c]", "e?", "f?"),
        _TEXTURES + "tld4",
        Since(20, "2.2"),
        {"geom!=2d": Since(30, "4.3"), "e": Since(30, "4.3"), "f": Since(30, "4.3")},
    ),
    _query(
        "txq",
        (
            optional("level", what="mipmap mode"),
            needed(
                "query",
                *_SIZES,
                *_CHANNELS,
                "normalized_coords",
                "num_mipmap_levels",
                "num_samples",
                "force_unnormalized_coords",
                "filter_mode",
                "addr_mode_0",
                "addr_mode_1",
                "addr_mode_2",
            ),
            _B32,
        ),
        ("d", "[a]", "lod?"),
        _TEXTURES + "txq",
        Since(20, "1.5"),
        _CHANNELS_SINCE
        | {
            "query=num_mipmap_levels": Since(20, "4.1"),
            "query=num_samples": Since(30, "4.1"),
            "level": Since(30, "4.3"),
        },
    ),
    _query(
        "istypep",
        (needed("type", "texref", "samplerref", "surfref"),),
        ("p", "a"),
        _TEXTURES + "istypep",
        Since(30, "4.0"),
        {},
    ),
    _fetch(
        "suld.b",
        (_geometry(*_ARRAYS), optional("cop", "ca", "cg", "cs", "cv"), _VECTOR, needed("dtype", *_BITS), _CLAMP),
        ("d", "[a, b]"),
        _SURFACES + "suld",
        Since(20, "1.5"),
        _SURFACES_SINCE,
    ),
    _store(
        "sust.b",
        (_geometry(*_ARRAYS), optional("cop", "wb", "cg", "cs", "wt"), _VECTOR, needed("ctype", *_BITS), _CLAMP),
        _SURFACES + "sust",
        Since(20, "1.5"),
        _SURFACES_SINCE,
    ),
    _store(
        "sust.p",
        (_geometry("1d", "2d", "3d"), _VECTOR, _B32, _CLAMP),
        _SURFACES + "sust",
        Since(20, "2.0"),
        _CLAMPS_SINCE,
    ),
    *(
        _store(
            head,
            (needed("op", *ops), _geometry("1d", "2d", "3d"), needed("ctype", *types), _CLAMP),
            _SURFACES + "sured",
            Since(20, "2.0"),
            {"geom=3d": Since(20, "3.0"), **dict.fromkeys(wide, Since(50, "8.1"))},
            tuple(Rule("{head}.{op} has no type .{ctype}", hint, case) for hint, case in wrong),
        )
        for head, ops, types, wide, wrong in (
            (
                "sured.b",
                ("add", "min", "max", "and", "or"),
                ("u32", "u64", "s32", "b32", "s64"),
                ("ctype=s64", "ctype=u64 op=min|max"),
                (
                    ("write .u32, .u64 or .s32", "op=add ctype=b32|s64"),
                    ("write .u32, .s32, .u64 or .s64", "op=min|max ctype=b32"),
                    ("write .b32", "op=and|or ctype!=b32"),
                ),
            ),
            (
                "sured.p",
                ("add", "min", "max", "and", "or"),
                ("b32", "b64"),
                ("ctype=b64",),
                (("write .b32", "op!=min|max ctype=b64"),),
            ),
        )
    ),
    _query(
        "suq",
        (needed("query", *_SIZES, *_CHANNELS, "memory_layout"), _B32),
        ("d", "[a]"),
        _SURFACES + "suq",
        Since(20, "1.5"),
        _CHANNELS_SINCE | {"query=memory_layout": Since(20, "4.2")},
    ),
)
