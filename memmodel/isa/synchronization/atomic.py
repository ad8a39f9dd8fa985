"""Rows of the table: atom and red.

In: a Call. Out: a Read and a Write that are one operation (`rmw`). Settled here: which half has which semantics, and
which operation has which types. A red is an atom whose result no one can use; the tag RED lets a model tell them apart.
Only compiled modules have floating-point operations, whose results are not followed, and vectors: each element, and
each number of a packed one, is an operation of its own ("atom").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memmodel.base.labels import Family, Side
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.movement.access import NO_SC, SHARED, SPACES_SINCE
from memmodel.isa.place import writable
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import in_blocks, needed, optional, scope_slot
from memmodel.isa.rows.types import types_by_operation
from memmodel.program.expressions import Apply, Const, Expr, Get, opaque
from memmodel.program.ops import Op, Read, Write
from memmodel.program.regions import Elements
from memmodel.ptx.operands import Blank, Operand
from memmodel.ptx.vocabulary import U32, DataType, Scope, Sem, Window

HALVES = {
    "relaxed": (Sem.RELAXED, Sem.RELAXED),
    "acquire": (Sem.ACQUIRE, Sem.RELAXED),
    "release": (Sem.RELAXED, Sem.RELEASE),
    "acq_rel": (Sem.ACQUIRE, Sem.RELEASE),
}
"""Semantics of the read and of the write, by the semantics of the instruction."""

MODIFYING_TYPES = {"add": "u32|s32|u64", "min|max": "u32|s32|u64|s64", "inc|dec": "u32", "and|or|xor": "b32|b64"}
"""Types of operations that compute the new value from the old one."""

_EXCHANGING_TYPES = {"exch": "b32|b64|b128", "cas": "b16|b32|b64|b128"}
_FLOAT_TYPES = {
    "f16": DataType("f", 16),
    "bf16": DataType("bf", 16),
    "f16x2": DataType("f", 32, 2),
    "bf16x2": DataType("bf", 32, 2),
    "f32": DataType("f", 32),
    "f64": DataType("f", 64),
}
"""Types that only compiled modules have."""

_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
ALL_TYPES = ("b16", "b32", "b64", "b128", "u32", "u64", "s32", "s64")
NO_FLOATS = {
    word: ("floating-point atomics are not modelled", "use an integer type: the order of accesses is the same")
    for word in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "noftz")
}


def atom(call: Call) -> tuple[Op, ...]:
    """atom: the old value goes to the first operand (`_` drops it)."""
    steps = _modify(call, call.operands[1], call.operands[2:], Family.ATOM)
    target, lanes = call.operands[0], _type(call).lanes
    if isinstance(target, Blank):
        return steps
    olds = (_joined(call, n * lanes, lanes) for n in range(len(_items(call, target))))
    return (*steps, *call.assign(target, *olds))


def red(call: Call) -> tuple[Op, ...]:
    """red: as atom, the old value dropped."""
    return _modify(call, call.operands[0], call.operands[1:], Family.RED)


def _joined(call: Call, first: int, lanes: int) -> Expr:
    """The old value that a register receives: that of an element, or those of the numbers that it packs."""
    old: Expr = Get(f"${first}")
    if lanes == 1:
        return call.reduced(old)
    for n in range(1, lanes):
        high = Apply("shl", (Get(f"${first + n}"), Const(n * _type(call).element.width)), U32)
        old = Apply("or", (old, high), U32)
    return old


def _modify(call: Call, where: Operand, sources: tuple[Operand, ...], family: Family) -> tuple[Op, ...]:
    scope = call.scope or Scope.GPU
    read_sem, write_sem = HALVES[call.word("sem") or "relaxed"]
    read = call.access(Side.READ, read_sem, scope, family=family, rmw=True)
    write = call.access(Side.WRITE, write_sem, scope, family=family, rmw=True)
    type, elements = _type(call), _items(call, sources[0])
    region = _region(call, where, len(elements) * type.lanes)
    olds = tuple(f"${n}" for n in range(region.count))
    values_given = [call.data(element) for element in elements]
    when: Expr | None = None
    values: tuple[Expr, ...]
    op = call.word("op") or ""
    if type.floating:
        pairs = [(old, values_given[n // type.lanes]) for n, old in enumerate(olds)]
        values = tuple(opaque(op, DataType("b", type.element.width), Get(old), operand) for old, operand in pairs)
    elif op == "cas":
        when, values = Apply("eq", (Get("$0"), values_given[0]), call.type), (call.data(sources[1]),)
    else:
        values = (values_given[0] if op == "exch" else Apply(op, (Get("$0"), values_given[0]), call.type),)
    accesses = Read(olds, region, read, call.given_type), Write(values, region, write, when, rmw=True)
    return (*writable(call, where), *accesses)


def _items(call: Call, operand: Operand) -> tuple[Operand, ...]:
    return (operand,) if call.word("vec") is None else call.vector(operand)


def _type(call: Call) -> DataType:
    """The type of an element."""
    return _FLOAT_TYPES.get(call.word("type") or "") or call.type


def _region(call: Call, where: Operand, count: int) -> Elements:
    """The scalars. A generic address is one of global or shared memory, that of a vector of global memory ("atom").

    Of a litmus test, `writable` names what is only read.
    """
    region = call.elements(where, count)
    if _type(call).floating:
        region = replace(region, size=_type(call).element.width // 8)
    if not call.in_module or call.word("space") is not None:
        return region
    return replace(region, window=Window.DATA if call.word("vec") is None else Window.GLOBAL)


_VECTORS_OF_FLOATS = (
    Rule("{head}.{op} has no type .{type}", "write .add", f"op!=add|min|max type={either(_FLOAT_TYPES)}"),
    Rule("{head}.{op} has no type .{type}", "write .add", "op=min|max type=f32|f64"),
    Rule("{head}.{op} of .{type} is for vectors", "add .v2", f"type={either(_HALVES)} !vec op=min|max"),
    Rule("{head} of .{type} needs .noftz", "add .noftz", f"!noftz type={either(_HALVES)}"),
    Rule(".noftz is for numbers of 16 bits", "drop .noftz", f"type!={either(_HALVES)} noftz"),
    Rule("{head}.{vec} has no type .{type}", "drop .{vec}", f"type!={either(_HALVES)}|f32 vec"),
    Rule("{head}.v8 has no type .{type}", "write .v4", "type=f16x2|bf16x2|f32 vec=v8"),
    Rule("{head}.{vec} is for .global memory", "drop .{space}", "vec space!=global"),
)
_HINTED = (
    Rule("{head}.cas takes no cache policy", "drop .{hint}", "op=cas hint"),
    Rule(".{hint} is for .global memory", "drop .{hint}", "space!=global hint"),
)
_REFUSED = {"sc": NO_SC, "weak": ("an atomic is never weak", "write .relaxed or nothing")}
_NO_SUB = {"sub": ("PTX has no {head}.sub", "add the negated value: neg.s32 %n, %v; and {head}.add")}
_SPACE = optional("space", "global", *SHARED)
_LATER = {
    **SPACES_SINCE,
    "space=shared": Since(20, "1.2"),
    "space=shared type=u64|b64": Since(20, "2.0"),
    "type=u64|b64": Since(20, "1.2"),
    "type=u64|b64 op=min|max|and|or|xor": Since(32, "3.1"),
    "type=f32": Since(20, "2.0"),
    "type=s64": Since(32, "3.1"),
    **dict.fromkeys(("scope!=cluster", "type=f64"), Since(60, "5.0")),
    "type=f16x2": Since(60, "6.2"),
    "sem": Since(70, "6.0"),
    "type=f16|b16": Since(70, "6.3"),
    "hint": Since(80, "7.4"),
    "type=bf16|bf16x2": Since(90, "7.8"),
    "vec": Since(90, "8.1"),
    "type=b128": Since(90, "8.3"),
    "type=b128 scope=sys": Since(90, "8.4"),
}


def _row(
    head: str,
    sems: tuple[str, ...],
    types: Mapping[str, str],
    operands: tuple[str, ...],
    events: str,
    refused: dict[str, tuple[str, str]],
    since: Since,
    columns: tuple[str, ...] = (),
) -> Row:
    operations = (*"|".join(types).split("|"), "sub")
    return Row(
        heads=(head,),
        slots=(
            optional("sem", *sems, refused={**_REFUSED, **refused}, columns=columns),
            scope_slot(),
            _SPACE,
            needed("op", *operations, refused={**_NO_SUB, **refused}, columns=("sub",)),
            optional("noftz", refused={"noftz": NO_FLOATS["noftz"]}, modules=("noftz",)),
            CACHE_HINT,
            optional("vec", modules=("v2", "v4", "v8")),
            in_blocks("type", *ALL_TYPES, refused=NO_FLOATS, modules=tuple(_FLOAT_TYPES)),
        ),
        operands=(*operands, "cache_policy"),
        when={"c": "op=cas"} if head == "atom" else {},
        lower=atom if head == "atom" else red,
        events=events,
        source=f"Parallel Synchronization and Communication Instructions: {head}",
        rules=(*types_by_operation(types, ALL_TYPES), *_VECTORS_OF_FLOATS, *_HINTED[head == "red" :]),
        since=since,
        later=_LATER,
    )


_ATOM_ONLY = ("acquire", "acq_rel")
"""A red heads no acquire pattern; published tables write these all the same."""

_DEFAULTS = ".relaxed and .gpu unless it says otherwise"

ROWS = (
    _row(
        "atom",
        tuple(HALVES),
        MODIFYING_TYPES | _EXCHANGING_TYPES,
        ("d", "[a]", "b", "c"),
        f"a read (that acquires) and a write (that releases), joined by rmw; {_DEFAULTS}; a failed cas only reads",
        {},
        FIRST,
    ),
    _row(
        "red",
        tuple(HALVES),
        MODIFYING_TYPES,
        ("[a]", "b"),
        f"as atom, the value read is not used; {_DEFAULTS}; .acquire and .acq_rel in tables only, with a warning",
        {
            word: (f"PTX has no red.{word}", f"write atom.{word}, with _ as destination if its result is not used")
            for word in (*_ATOM_ONLY, "exch", "cas")
        },
        Since(20, "1.2"),
        _ATOM_ONLY,
    ),
)
