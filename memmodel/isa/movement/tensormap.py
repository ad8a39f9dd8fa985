"""Rows of the table: changing a tensor map.

In: a Call. Out: generic accesses of the map, and for cp_fenceproxy a proxy fence. Settled here: which part of the
number that stands for a map each field is.
"""

from __future__ import annotations

from memmodel.base.labels import ProxyFence, Side
from memmodel.isa.call import Call
from memmodel.isa.place import memory_base
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Row, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import SPACE_OF, needed, optional, scope_slot
from memmodel.isa.synchronization.fence_async import size_128
from memmodel.isa.tensor_memory import ALIGNED
from memmodel.litmus.syntax import Variable
from memmodel.memory.tensormap import (
    ADDRESS,
    ELEMENT_BYTES,
    ELEMENT_SIZES,
    INTERLEAVED,
    LAST_PLAIN,
    MAX_DIMENSIONS,
    NAN_FILL,
    PACKING,
    RANK,
    SWIZZLE,
    TENSORMAP_BYTES,
    box_field,
    insertion,
    size_field,
    step_field,
    stride_field,
)
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Emit, Op, Read, Unmodelled, Write
from memmodel.program.regions import TensorMapAt
from memmodel.program.warp_ops import CopyTogether, WarpOp
from memmodel.ptx.operands import Imm, Operand
from memmodel.ptx.targets import FAMILIES
from memmodel.ptx.vocabulary import U32, U64, DataType, Proxy, Sem, Space, Window

MAP = DataType("b", TENSORMAP_BYTES * 8)
MAX_STEP = 8
"""The largest element stride that a map has."""
WIDE = ("global_address", "global_stride")
INDEXED = ("box_dim", "global_dim", "global_stride", "element_stride")
CODES = {
    "elemtype": len(ELEMENT_SIZES),
    "interleave_layout": 3,
    "swizzle_mode": 5,
    "swizzle_atomicity": 4,
    "fill_mode": 2,
}
"""How many codes a field has ("Tensormap new_val validity")."""

CODED = tuple(CODES)
FIELDS = ("global_address", "rank", *INDEXED, *CODED)


def replace(call: Call) -> tuple[Op, ...]:
    """tensormap.replace: a weak write of the whole map."""
    field = call.word("field") or ""
    ord = call.operand("ord")
    if ord is not None and not (isinstance(ord, Imm) and 0 <= ord.value < MAX_DIMENSIONS):
        call.fail(f"ord is a number from 0 to {MAX_DIMENSIONS - 1}", ord)
    code = call.operands[-1]
    if field in CODED and not isinstance(code, Imm):
        call.fail(f"the new value of .{field} is written out", code)
    if field in CODED and isinstance(code, Imm) and not 0 <= code.value < CODES[field]:
        call.fail(f"the new value of .{field} is from 0 to {CODES[field] - 1}, and not {code.value}", code)
    window = call.window if call.word("space") else Window.OWN_DATA
    region = TensorMapAt(_map(call, call.operands[0], SPACE_OF.get(call.word("space") or "")), window)
    read = Read(("$map",), region, call.access(Side.READ), MAP)
    return (*_beyond(call, field), read, Write((_replaced(call, field),), region, call.access(Side.WRITE)))


def _beyond(call: Call, field: str) -> tuple[Op, ...]:
    """What a map may say that is not followed: in a litmus test every layout but a box of a dense tensor."""
    new, plain = call.operands[-1], {"element_stride": 1, **dict.fromkeys(CODED[1:], 0)}
    if field == "global_stride" and _axis(call) == MAX_DIMENSIONS - 1:
        return (Unmodelled("a tensor map with a stride beyond its dimensions", Const(1)),)
    if call.in_module:
        beyond = Apply("gt", (Apply("sub", (call.integer(new), Const(1)), U32), Const(MAX_STEP - 1)), U32)
        return (Unmodelled(f"an element stride beyond {MAX_STEP}", beyond),) if field == "element_stride" else ()
    if field == "elemtype" and isinstance(new, Imm) and new.value > LAST_PLAIN:
        return (Unmodelled("a tensor map of packed elements", Const(1)),)
    if field not in plain:
        return ()
    other = Apply("ne", (call.integer(new), Const(plain[field])), U32)
    return (Unmodelled(f"a tensor map with another {field} than {plain[field]}", other),)


def _replaced(call: Call, field: str) -> Expr:
    """The map with the new value in its field. Fields that move no byte elsewhere leave the number as it is."""
    new, axis = call.operands[-1], _axis(call)
    if field in CODED and isinstance(new, Imm):
        return _with_code(field, new.value)
    value = call.value(new, U64)
    if field == "rank":  # "zero-based": 0 is one dimension
        return _insert(RANK, Apply("add", (value, Const(1)), U32))
    if field == "element_stride":
        return _insert(step_field(axis), Apply("sub", (value, Const(1)), U32))
    where = {
        "global_address": ADDRESS,
        "global_dim": size_field(axis),
        "box_dim": box_field(axis),
        "global_stride": stride_field(min(axis, MAX_DIMENSIONS - 2)),
    }
    return _insert(where[field], value)


def _axis(call: Call) -> int:
    """The dimension that a field is about."""
    ord = call.operand("ord")
    return ord.value if isinstance(ord, Imm) else 0


def _with_code(field: str, code: int) -> Expr:
    """The map with another layout. Which bytes are swizzled together moves no byte."""
    if field == "elemtype":
        return _insert(PACKING, Const(max(0, code - LAST_PLAIN)), _insert(ELEMENT_BYTES, Const(ELEMENT_SIZES[code])))
    if field == "interleave_layout":
        return _insert(INTERLEAVED, Const(int(code != 0)))
    if field == "fill_mode":
        return _insert(NAN_FILL, Const(code))
    return _insert(SWIZZLE, Const(code)) if field == "swizzle_mode" else Get("$map")


def _insert(field: tuple[int, int], value: Expr, number: Expr = Get("$map")) -> Expr:
    return Apply(insertion(field), (number, value), MAP)


def copy_and_fence(call: Call) -> tuple[Op, ...]:
    """tensormap.cp_fenceproxy: a generic copy from shared to global memory, and the release half of a proxy fence."""
    target, source = _ends(call)
    return (
        Read(("$map",), source, call.access(Side.READ), MAP),
        Write((Get("$map"),), target, call.access(Side.WRITE)),
        Emit(ProxyFence(Proxy.TENSORMAP, Sem.RELEASE, call.scope)),
    )


def _ends(call: Call) -> tuple[TensorMapAt, TensorMapAt]:
    """Where the map is copied to, and from where."""
    size_128(call, call.operands[2])
    target = TensorMapAt(_map(call, call.operands[0], Space.GLOBAL), Window.GLOBAL)
    return target, TensorMapAt(_map(call, call.operands[1], Space.SHARED), Window.SHARED_CTA)


def copy_together(call: Call) -> tuple[Op | WarpOp, ...]:
    """tensormap.cp_fenceproxy in a module: the lanes of a warp share the copy. A litmus thread stands for the warp."""
    target, source = _ends(call)
    fence = Emit(ProxyFence(Proxy.TENSORMAP, Sem.RELEASE, call.scope))
    return CopyTogether(call.access(Side.READ), call.access(Side.WRITE), source, target), fence


def _map(call: Call, operand: Operand, space: Space | None) -> Expr:
    """The address of a map: of a declared one, or of 128 bytes that will hold one."""
    address, variable, _ = memory_base(call, operand, space)
    if variable is not None:
        root = call.root(variable)
        if not root.maps and (root.mbarrier is not None or root.length * _unit(root) < TENSORMAP_BYTES):
            call.fail(f"'{variable.name}' is not a tensor map", operand, "declare it `.b8 map[128] = tensormap(x);`")
    return address


def _unit(root: Variable) -> int:
    return root.type.width // 8 if root.type is not None else 8


ROWS = (
    Row(
        ("tensormap.replace",),
        (
            needed("mode", "tile"),
            needed("field", *FIELDS),
            optional("space", "global", "shared::cta"),
            needed("size", "b1024", what="size of the object"),
            needed("type", "b32", "b64"),
        ),
        ("[addr]", "ord", "new_val"),
        replace,
        "a weak read of the map, then a weak write (generic proxy)",
        "Data Movement and Conversion Instructions: tensormap.replace",
        rules=(
            Rule("{head}.tile.{field} has type .b64", "write .b64", f"field={either(WIDE)} type=b32"),
            Rule("{head}.tile.{field} has type .b32", "write .b32", f"field!={either(WIDE)} type=b64"),
        ),
        since=Since(version="8.3", families=FAMILIES, alone=frozenset({90})),
        later={"field=swizzle_atomicity": Since(version="8.6", families=FAMILIES)},
        when={"ord": f"field={either(INDEXED)}"},
    ),
    Row(
        ("tensormap.cp_fenceproxy",),
        (
            needed("dst", "global"),
            needed("src", "shared::cta"),
            needed("proxies", "tensormap::generic"),
            needed("sem", "release"),
            scope_slot(needed),
            *ALIGNED,
        ),
        ("[dst]", "[src]", "size"),
        copy_and_fence,
        "a weak read and a weak write (generic proxy), then the release half of a proxy fence to the tensormap proxy",
        "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy",
        since=Since(90, "8.3"),
        together=Together.WARP,
        lower_module=copy_together,
    ),
)
