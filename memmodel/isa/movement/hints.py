"""Rows of the table: hints to the caches (prefetch, applypriority, createpolicy), discard. None makes an event.

In: a Call. Out: nothing; of a discard, that what follows is not modelled. Settled here: which spellings and operands
are legal. No hint accesses the memory that its address names, but where a page says so it has to be an address of
global memory, and aligned: anything else is undefined. The value of a cache policy is opaque: `Call` refuses to
read it as a number, and in a compiled module it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memmodel.base.labels import Side
from memmodel.isa.call import Call
from memmodel.isa.copying import checked_size
from memmodel.isa.movement.fabric import endpoint, parts_of
from memmodel.isa.place import address_in, memory_base, within
from memmodel.isa.refused import refusing
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import SPACE_OF, Slot, needed, optional
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, opaque
from memmodel.program.ops import Assign, Op, UndefinedIf, Unmodelled, Write
from memmodel.program.regions import Chunk
from memmodel.ptx.operands import Imm, Operand, Real, describe
from memmodel.ptx.vocabulary import U64, DataType, Space, Window

_PAGE = "Data Movement and Conversion Instructions: "
_EVICT = tuple(f"L2::evict_{word}" for word in ("last", "normal", "first", "unchanged"))
LINE = 128
"""Bytes that applypriority is about."""

F32 = DataType("f", 32)


def in_global(call: Call, operand: Operand, multiple: int = 1) -> tuple[Op, ...]:
    """The steps that refuse the address of a hint outside global memory, or not a multiple of `multiple` bytes."""
    address, variable, symbol = memory_base(call, operand, Space.GLOBAL)
    steps: list[Op] = []
    if variable is None:
        outside = Apply("eq", (within(call, address, Space.GLOBAL.value), Const(0)), U64)
        steps.append(UndefinedIf(f"{call.head} takes an address of global memory", outside))
    rest: Expr = Apply("and", (address, Const(multiple - 1)), U64)
    if symbol is not None and isinstance(address, AddressOf):
        place = call.context.space.address(address.name, address.offset, call.place)
        rest = Const((place or 0) % multiple)
    if multiple > 1 and rest != Const(0):
        steps.append(UndefinedIf(f"{call.head} takes an address that is a multiple of {multiple}", rest))
    return tuple(steps)


def prefetch(call: Call) -> tuple[Op, ...]:
    """prefetch and prefetchu."""
    address_in(call, call.operands[0], SPACE_OF.get(call.word("space") or ""))
    return ()


def apply_priority(call: Call) -> tuple[Op, ...]:
    """applypriority: of 128 bytes of global memory."""
    address, size = call.operands
    steps = in_global(call, address, LINE)
    if not isinstance(size, Imm) or size.value != LINE:
        call.fail(f"{call.head} is for {LINE} bytes, and this is {describe(size)}", size, f"write {LINE}")
    return steps


def apply_priority_to_bulk(call: Call) -> tuple[Op, ...]:
    """applypriority.async.bulk: of a multiple of 16 bytes of global memory."""
    address, size = call.operands
    return (*in_global(call, address, LINE), *checked_size(call, size)[1])


def discard(call: Call) -> tuple[Op, ...]:
    """discard: 128 bytes of global memory have undefined values until they are written."""
    return (
        *apply_priority(call),
        Unmodelled("discard leaves values that may differ from read to read", Const(1)),
    )


def discard_unknown(call: Call) -> tuple[Op, ...]:
    """discard of a module, where values may be unknown: a weak write of such ones."""
    apply_priority(call)
    address = address_in(call, call.operands[0], Space.GLOBAL)
    region = Chunk(address, Window.GLOBAL, Const(LINE), align=LINE)
    return (Write((opaque("discard", DataType("b", 8 * LINE)),), region, call.access(Side.WRITE)),)


def _policy_in(call: Call) -> tuple[Op, ...]:
    """The cache policy that an instruction creates."""
    register = call.register(call.operands[0])
    return (Assign(register, opaque("createpolicy", DataType("b", 64))),) if call.in_module else ()


def range_policy(call: Call) -> tuple[Op, ...]:
    """createpolicy.range: for an address range of global memory."""
    _, address, primary, total = call.operands
    return (*in_global(call, address), *_sized(call, primary, total))


def fabric_policy(call: Call) -> tuple[Op, ...]:
    """createpolicy.range.fabric: for a range of a logical endpoint."""
    _, handle, primary, total = call.operands
    for part in parts_of(call, handle) if call.in_module else (endpoint(call, handle)[1],):
        call.integer(part)
    return _sized(call, primary, total)


def _sized(call: Call, primary: Operand, total: Operand) -> tuple[Op, ...]:
    """The policy of a range of these sizes."""
    sizes = tuple(call.integer(size) for size in (primary, total))
    if isinstance(primary, Imm) and isinstance(total, Imm):
        if not 0 <= primary.value <= total.value <= 1 << 32:
            call.fail("primary-size is at most total-size, which is at most 4 GB", primary)
        return _policy_in(call)
    rule = "the primary-size of createpolicy.range is at most its total-size"
    return (UndefinedIf(rule, Apply("gt", sizes, U64)), *_policy_in(call))


def fraction_policy(call: Call) -> tuple[Op, ...]:
    """createpolicy.fractional: for a fraction of the accesses, all if it is left out."""
    fraction = call.optional(1)
    if isinstance(fraction, Imm) or (isinstance(fraction, Real) and not 0 < fraction.value <= 1):
        _refuse_fraction(call, fraction)
    if fraction is not None:
        call.value(fraction, F32)
    return _policy_in(call)


def _refuse_fraction(call: Call, fraction: Operand) -> None:
    message = f"a fraction is a floating-point number above 0.0 and at most 1.0, and this is {describe(fraction)}"
    call.fail(message, fraction, "write 1.0, or leave it out")


def converted_policy(call: Call) -> tuple[Op, ...]:
    """createpolicy.cvt: from an access property of the CUDA API."""
    call.value(call.operands[1])
    return _policy_in(call)


def _policy(
    head: str, slots: tuple[Slot, ...], operands: tuple[str, ...], lower: Callable[[Call], tuple[Op, ...]], what: str
) -> Row:
    return Row(
        (f"createpolicy.{head}",),
        (*slots, needed("type", "b64")),
        ("d", *operands),
        lower,
        f"none; d is a cache policy {what}: an opaque value, which only a cache_policy operand may read",
        _PAGE + "createpolicy",
        ordered=True,
        since=Since(80, "7.4"),
        effect=Effect.COMPUTES,
    )


_GLOBAL = optional("space", "global")
_PRIORITIES = (needed("primary", *_EVICT), optional("secondary", "L2::evict_first", "L2::evict_unchanged"))
_LEVELS = ("L1", "L2", "L2::evict_last", "L2::evict_normal")

ROWS = (
    Row(
        ("prefetch",),
        (
            optional(
                "space",
                "global",
                "local",
                "const",
                "param",
                refused={
                    word: ("a prefetch of shared memory does nothing, and PTX has no {head}." + word, "drop it")
                    for word in ("shared", "shared::cta", "shared::cluster")
                },
            ),
            needed("level", *_LEVELS, "tensormap"),
            refusing(
                "it is undefined at an address that is not valid, and a prefetch accesses nothing here",
                "L1::32B",
                "valid_addr",
                hint="write .L1",
            ),
        ),
        ("[a]",),
        prefetch,
        "none; a hint, which accesses nothing",
        _PAGE + "prefetch, prefetchu",
        rules=(
            Rule(
                "{head}.tensormap is for .const and .param memory, or names no state space",
                "drop .{space}",
                "level=tensormap space=global|local",
            ),
            Rule(
                "{head}.{space} is for tensor maps",
                "write {head}.{space}.tensormap",
                f"level={either(_LEVELS)} space=const|param",
            ),
            Rule(".{level} is for .global memory", "write .L2", f"space=local level={either(_LEVELS[2:])}"),
        ),
        since=Since(20, "2.0"),
        later={"level=L2::evict_last|L2::evict_normal": Since(80, "7.4"), "level=tensormap": Since(90, "8.0")},
        effect=Effect.NOTHING,
    ),
    Row(
        ("prefetchu",),
        (needed("level", "L1"),),
        ("[a]",),
        prefetch,
        "none; a hint, which accesses nothing",
        _PAGE + "prefetch, prefetchu",
        since=Since(20, "2.0"),
        effect=Effect.NOTHING,
    ),
    Row(
        ("applypriority",),
        (_GLOBAL, needed("level", "L2::evict_normal", what="eviction priority")),
        ("[a]", "size"),
        apply_priority,
        "none; a hint, which accesses nothing",
        _PAGE + "applypriority",
        since=Since(80, "7.4"),
        effect=Effect.NOTHING,
    ),
    Row(
        ("applypriority.async.bulk",),
        (_GLOBAL, needed("completion", "bulk_group"), needed("level", "L2::evict_normal", what="eviction priority")),
        ("[a]", "size"),
        apply_priority_to_bulk,
        "none; a hint, which accesses nothing",
        _PAGE + "applypriority.async.bulk",
        since=Since(version="9.4", families=frozenset({107})),
    ),
    Row(
        ("discard",),
        (_GLOBAL, needed("level", "L2")),
        ("[a]", "size"),
        discard,
        "none; it stands for a weak write of values that are indeterminate, and a test that comes there is undecided",
        _PAGE + "discard",
        since=Since(80, "7.4"),
        lower_module=discard_unknown,
    ),
    _policy("range", (_GLOBAL, *_PRIORITIES), ("[a]", "primary-size", "total-size"), range_policy, "for a range"),
    replace(
        _policy(
            "range.fabric",
            _PRIORITIES,
            ("[handle]", "primary-size", "total-size"),
            fabric_policy,
            "for a range of a handle",
        ),
        since=Since(100, "9.4"),
    ),
    _policy("fractional", _PRIORITIES, ("fraction?",), fraction_policy, "for a fraction of the accesses"),
    _policy("cvt", (needed("level", "L2"),), ("access-property",), converted_policy, "from an access property"),
)
