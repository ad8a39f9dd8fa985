"""Rows of the table: changing a tensor map.

In: a Call. Out: generic accesses of the map, and for cp_fenceproxy a proxy fence. A map is one element whose value is
the address of the data. Settled here: replacing any other field writes the map without changing that address.
"""

from __future__ import annotations

from memmodel.isa.call import SPACE_OF, Call
from memmodel.isa.fence_async import size_128, uni
from memmodel.isa.ops import Expr, Fence, Get, Op, Read, Write
from memmodel.isa.place import memory_base, smem
from memmodel.isa.row import Need, Row, Rule, Slot, flag, scope_slot
from memmodel.isa.tensor_memory import BOTH_ALIGNED, SYNC
from memmodel.litmus.syntax import Imm, Operand
from memmodel.ptx import Space

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
    where = _map(call, call.operands[0], SPACE_OF.get(call.word("space") or ""))
    tags = smem(call, call.operands[0])
    write = call.event("W", "M", "WEAK", *tags)
    if field == "global_address":
        return (Write(call.value(call.operands[-1]), where, write),)
    return (Read("$0", where, call.event("R", "M", "WEAK", *tags)), Write(Get("$0"), where, write))


def copy_and_fence(call: Call) -> tuple[Op, ...]:
    """tensormap.cp_fenceproxy: a generic copy from shared to global memory, and the release half of a proxy fence."""
    size_128(call, call.operands[2])
    target = _map(call, call.operands[0], Space.GLOBAL)
    source = _map(call, call.operands[1], Space.SHARED)
    return (
        Read("$0", source, call.event("R", "M", "WEAK", "SMEM")),
        Write(Get("$0"), target, call.event("W", "M", "WEAK")),
        Fence(uni(call.scope, "TMP", "REL")),
    )


def _map(call: Call, operand: Operand, space: Space | None) -> Expr:
    address, variable, _, _ = memory_base(call, operand, space)
    if variable is not None and call.root(variable).tensormap is None:
        call.fail(f"'{variable.name}' is no tensor map", operand, "declare it `.b8 map[128] = tensormap(x);`")
    return address


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
        "a weak write of the map (generic proxy); for any field but the address after a weak read of it",
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
    ),
)
