"""Rows of the table: changing a tensor map.

In: a Call. Out: generic accesses of the map, and for cp_fenceproxy a proxy fence. Settled here: which part of the
number that stands for a map each field is.
"""

from __future__ import annotations

from memmodel.base.labels import ProxyFence, Side
from memmodel.isa.call import SPACE_OF, Call
from memmodel.isa.place import memory_base
from memmodel.isa.row import Need, Row, Rule, Slot, Together, flag, scope_slot
from memmodel.isa.synchronization.fence_async import size_128
from memmodel.isa.tensor_memory import BOTH_ALIGNED, SYNC
from memmodel.litmus.syntax import Variable
from memmodel.memory.tensormap import (
    ADDRESS,
    ELEMENT_BYTES,
    RANK,
    TENSORMAP_BYTES,
    box_field,
    size_field,
    stride_field,
)
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Emit, Op, Read, Unmodelled, Write
from memmodel.program.regions import TensorMapAt
from memmodel.ptx.operands import Imm, Operand
from memmodel.ptx.vocabulary import DataType, Proxy, Sem, Space, Window

MAP = DataType("b", TENSORMAP_BYTES * 8)
ELEMENT_SIZES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 4, 9: 8, 10: 2, 11: 4, 12: 4}
"""Bytes of an element by the code of its type; the others are packed ("tensormap.replace")."""

WIDE = ("global_address", "global_stride")
INDEXED = ("box_dim", "global_dim", "global_stride", "element_stride")
CODED = ("elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode")
FIELDS = ("global_address", "rank", *INDEXED, *CODED)


def replace(call: Call) -> tuple[Op, ...]:
    """tensormap.replace: a weak write of the whole map."""
    field = call.word("field") or ""
    names = ["[addr]", *(["ord"] if field in INDEXED else []), "new_val"]
    if len(call.operands) != len(names):
        call.fail(f"{call.head}.tile.{field} takes {', '.join(names)}; {len(call.operands)} operands are given")
    if field in INDEXED and not (isinstance(call.operands[1], Imm) and 0 <= call.operands[1].value <= 4):
        call.fail("ord is a number from 0 to 4", call.operands[1])
    if field in CODED and not isinstance(call.operands[-1], Imm):
        call.fail(f"the new value of .{field} is written out", call.operands[-1])
    window = call.window if call.word("space") else Window.OWN_DATA
    region = TensorMapAt(_map(call, call.operands[0], SPACE_OF.get(call.word("space") or "")), window)
    read = Read(("$map",), region, call.access(Side.READ), MAP)
    return (*_beyond(call, field), read, Write((_replaced(call, field),), region, call.access(Side.WRITE)))


def _beyond(call: Call, field: str) -> tuple[Op, ...]:
    """What a map may say that this model does not follow."""
    new, plain = call.operands[-1], {"element_stride": 1, **dict.fromkeys(CODED[1:], 0)}
    if field == "elemtype" and isinstance(new, Imm) and new.value not in ELEMENT_SIZES:
        return (Unmodelled("a tensor map of packed elements", Const(1)),)
    if field not in plain:
        return ()
    other = Apply("ne", (call.integer(new), Const(plain[field])), DataType("u", 32))
    return (Unmodelled(f"a tensor map with another {field} than {plain[field]}", other),)


def _replaced(call: Call, field: str) -> Expr:
    """The map with the new value in its field. Fields that move no byte elsewhere leave the number as it is."""
    new = call.operands[-1]
    axis = call.operands[1].value if field in INDEXED and isinstance(call.operands[1], Imm) else 0
    if field == "elemtype" and isinstance(new, Imm) and new.value in ELEMENT_SIZES:
        return _insert(ELEMENT_BYTES, Const(ELEMENT_SIZES[new.value]))
    if field in ("elemtype", "element_stride", *CODED):
        return Get("$map")
    value = call.value(new, DataType("u", 64))
    if field == "rank":  # "zero-based": 0 is one dimension
        return _insert(RANK, Apply("add", (value, Const(1)), DataType("u", 32)))
    where = {
        "global_address": ADDRESS,
        "global_dim": size_field(axis),
        "box_dim": box_field(axis),
        "global_stride": stride_field(min(axis, 3)),
    }
    return _insert(where[field], value)


def _insert(field: tuple[int, int], value: Expr) -> Expr:
    return Apply(f"insert {field[0]} {field[1]}", (Get("$map"), value), MAP)


def copy_and_fence(call: Call) -> tuple[Op, ...]:
    """tensormap.cp_fenceproxy: a generic copy from shared to global memory, and the release half of a proxy fence."""
    size_128(call, call.operands[2])
    target = TensorMapAt(_map(call, call.operands[0], Space.GLOBAL), Window.GLOBAL)
    source = TensorMapAt(_map(call, call.operands[1], Space.SHARED), Window.SHARED_CTA)
    return (
        Read(("$map",), source, call.access(Side.READ), MAP),
        Write((Get("$map"),), target, call.access(Side.WRITE)),
        Emit(ProxyFence(Proxy.TENSORMAP, Sem.RELEASE, call.scope)),
    )


def _map(call: Call, operand: Operand, space: Space | None) -> Expr:
    """The address of a map: of a declared one, or of 128 bytes that will hold one."""
    address, variable, _, _ = memory_base(call, operand, space)
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
            Slot("mode", ("tile",), "mode", Need.ALWAYS),
            Slot("field", FIELDS, "field", Need.ALWAYS),
            Slot("space", ("global", "shared::cta"), "state space"),
            Slot("size", ("b1024",), "size of the object", Need.ALWAYS),
            Slot("type", ("b32", "b64"), "type", Need.ALWAYS),
        ),
        ("[addr]", "a", "b?"),
        replace,
        "a weak read of the map, then a weak write (generic proxy)",
        "Data Movement and Conversion Instructions: tensormap.replace",
        rules=(
            Rule("{head}.tile.{field} has type .b64", "write .b64", {"field": WIDE, "type": ("b32",)}, at="type"),
            Rule(
                "{head}.tile.{field} has type .b32",
                "write .b32",
                {"field": tuple(f for f in FIELDS if f not in WIDE), "type": ("b64",)},
                at="type",
            ),
        ),
        since=90,
        families=frozenset({90, 100, 103, 110, 120}),
        word_families={"swizzle_atomicity": frozenset({100, 103, 110, 120})},
        written="[addr]{, ord}, new_val",
    ),
    Row(
        ("tensormap.cp_fenceproxy",),
        (
            Slot("dst", ("global",), "destination", Need.ALWAYS),
            Slot("src", ("shared::cta",), "source", Need.ALWAYS),
            Slot("proxies", ("tensormap::generic",), "pair of proxies", Need.ALWAYS),
            Slot("sem", ("release",), "memory semantics", Need.ALWAYS),
            scope_slot(Need.ALWAYS),
            SYNC,
            flag("aligned"),
        ),
        ("[dst]", "[src]", "size"),
        copy_and_fence,
        "a weak read and a weak write (generic proxy), then the release half of a proxy fence to the tensormap proxy",
        "Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy",
        rules=BOTH_ALIGNED,
        since=90,
        together=Together.WARP,
    ),
)
