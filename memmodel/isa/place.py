"""Addresses that asynchronous instructions need: mbarrier objects, shared memory of other CTAs, CTA masks, peers.

In: a Call and an operand. Out: address expressions, checked as far as they are written out. Settled here: what lies in
which CTA. The shared-memory windows of a cluster's CTAs lie one after the other, so an address is mapped to another CTA
by replacing its upper bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.rows.cases import covers
from memmodel.isa.rows.row import OperandRange
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import optional
from memmodel.litmus.syntax import Variable
from memmodel.program import windows
from memmodel.program.addresses import FIRST_GLOBAL, WINDOW_BITS
from memmodel.program.expressions import WITHIN, AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Op, UndefinedIf, Unmodelled
from memmodel.program.regions import Object
from memmodel.ptx.operands import Blank, Imm, Mem, Operand, Reg, Sym
from memmodel.ptx.vocabulary import U32, U64, DataType, Space, Window

FULL_MASK = 0xFFFFFFFF
CTAS = 16
"""A CTA mask has 16 bits."""

READ_ONLY = (Space.CONST, Space.PARAM)


Base = tuple[Expr, Variable | None, Sym | None]
"""The address at a memory operand, the variable that it names (None for a register), the name."""


def memory_base(call: Call, operand: Operand, space: Space | None = None) -> Base:
    """A memory operand taken apart.

    A register of a module has a generic address if the instruction may name a state space and does not. Raises
    InputError if it is not a memory operand, or names a variable of another state space than `space`.
    """
    if not isinstance(operand, Mem):
        call.no_memory(operand)
    if call.in_module:
        generic = not isinstance(operand.base, Sym) and _names_no_space(call)
        return call.in_space(call.location_of(operand), None if generic or space is None else space.value), None, None
    if not isinstance(operand.base, Sym):
        return shifted(call.value(operand.base), operand.offset), None, None
    variable = call.variable(operand.base)
    root = call.root(variable)
    if not call.head.startswith("multimem"):
        call.no_multimem(variable, operand)
    if space is not None and root.space not in (Space.GENERIC, space):
        call.fail(f"'{variable.name}' is a .{root.space.value} variable, not .{space.value}", operand)
    return call.address_of(operand.base, operand.offset), variable, operand.base


def address_in(call: Call, operand: Operand, space: Space | None = None) -> Expr:
    """The address at a memory operand. Raises InputError as `memory_base` does."""
    return memory_base(call, operand, space)[0]


def shifted(address: Expr, offset: int) -> Expr:
    """An address plus a number of bytes."""
    if offset == 0:
        return address
    if isinstance(address, AddressOf):
        return AddressOf(address.name, address.offset + offset, address.cta)
    if isinstance(address, Apply) and address.op == "add" and isinstance(address.args[1], Const):
        return Apply("add", (address.args[0], Const(address.args[1].value + offset)), ADDRESS)
    return Apply("add", (address, Const(offset)), ADDRESS)


def _names_no_space(call: Call) -> bool:
    return call.word("space") is None and any(slot.name == "space" for slot in call.reading.row.slots)


def mbarrier(call: Call, operand: Operand, window: Window) -> Object:
    """The mbarrier object at a memory operand, which has to lie in that window."""
    if call.in_module:
        return Object(address_in(call, operand, Space.SHARED), window)
    address, variable, _ = memory_base(call, operand, Space.SHARED)
    if variable is not None and call.root(variable).maps:
        call.fail(f"'{variable.name}' is a tensor map, not an mbarrier object", operand)
    return Object(address, window)


def in_cta(call: Call, address: Expr, rank: int) -> Expr:
    """The same address in the CTA of that rank in the executing thread's cluster."""
    named = not call.in_module and isinstance(address, AddressOf)
    if named and call.context.space.cta_of_rank(rank, call.place) is not None:
        assert isinstance(address, AddressOf)
        return AddressOf(address.name, address.offset, rank)
    return mapped(call, address, Const(rank))


def mapped(call: Call, address: Expr, rank: Expr) -> Expr:
    """The same address in the CTA whose rank an expression gives."""
    offset = Apply("and", (address, Const((1 << call.window_bits) - 1)), ADDRESS)
    window: Expr = Apply("add", (rank, Const(call.first_window)), ADDRESS)
    moved = Apply("or", (offset, Apply("shl", (window, Const(call.window_bits)), ADDRESS)), ADDRESS)
    return call.in_space(moved, Space.SHARED.value)


def rank_of(call: Call, address: Expr) -> Expr:
    """The rank of the CTA in whose shared memory an address lies."""
    if call.in_module:  # of a generic address, too
        address = Apply("and", (address, Const(0xFFFFFFFF)), ADDRESS)
    window = Apply("shr", (address, Const(call.window_bits)), ADDRESS)
    return Apply("sub", (window, Const(call.first_window)), ADDRESS)


def cluster_ranks(call: Call) -> tuple[int, ...]:
    """The ranks of the CTAs in the executing thread's cluster that the test has threads in."""
    return call.cluster_ranks


Receiver = tuple[int, Expr | None]
"""A CTA of a multicast: its number, and a formula that is not 0 if it is one (None: surely)."""


MASKS = {"multicast::cluster": 16, "multicast::cluster::16b": 16, "multicast::cluster::32b": 32}
"""The bits of the mask that names the CTAs of a multicast."""

MULTICAST = optional("multicast", *MASKS)
WIDE_MASKS = {
    "multicast=multicast::cluster::16b": Since(90, "9.4"),
    "multicast=multicast::cluster::32b": Since(version="9.4", families=frozenset({107})),
}


def mask(call: Call, operand: Operand, *addresses: Expr) -> tuple[tuple[Op, ...], tuple[Receiver, ...]]:
    """The CTAs in a mask, and the steps that refuse one which names a CTA without threads.

    `addresses`: those that a multicast takes to the CTAs. A step finds one that is in no shared memory of the cluster.
    """
    outside = tuple(step for address in addresses for step in in_shared(call, address))
    ranks, width = cluster_ranks(call), MASKS[call.word("multicast") or "multicast::cluster"]
    type = DataType("u", width)
    value = call.constant(operand)
    if value is None:
        bits = call.integer(operand)
        others = Const(~sum(1 << rank for rank in ranks) & (1 << width) - 1)
        where = "that the cluster does not have" if call.in_module else "that has no thread in the test"
        beyond = Unmodelled(f"a CTA mask names a CTA {where}", Apply("and", (bits, others), type))
        chosen = tuple((rank, Apply("and", (bits, Const(1 << rank)), type)) for rank in ranks)
        return (*outside, beyond), chosen
    if call.in_module:  # a number of the width of the type, with or without a sign
        value &= (1 << width) - 1
    if not 0 < value < 1 << width:
        call.fail(f"a CTA mask is a {width}-bit number with a bit for each CTA, not {value}", operand)
    ctas = tuple(cta for cta in range(width) if value >> cta & 1)
    for cta in ctas:
        if cta not in ranks:
            call.fail(f"the mask names CTA {cta}, which has no thread in this cluster", operand)
    return outside, tuple((cta, None) for cta in ctas)


def warp_members(call: Call) -> tuple[str, ...]:
    """The threads that share the warp of the executing one, in the order of the file: lane 0, 1, and so on."""
    if call.place.warp is None:
        return (call.context.thread.name,)
    warp = (call.place.cta_id, call.place.warp)
    return tuple(t.name for t in call.context.test.threads if (t.place.cta_id, t.place.warp) == warp)


def lane(call: Call) -> int | None:
    """The lane of a thread that shares its warp with others, in the order of the file; None if it is a whole warp."""
    members = warp_members(call)
    return members.index(call.context.thread.name) if len(members) > 1 else None


def pair(call: Call) -> tuple[int, ...]:
    """The CTAs of the executing thread's CTA pair that the test has, its own first ("CTA Pair")."""
    own = call.place.cta
    has_peer = own ^ 1 in cluster_ranks(call)
    return (own, own ^ 1) if has_peer and call.place.cluster is not None else (own,)


def in_range(call: Call, operand: Operand, allowed: OperandRange) -> tuple[Op, ...]:
    """The step that finds an operand beyond its range. Raises InputError for a number of a litmus test.

    A compiler may leave a number to the run.
    """
    least, most, what = allowed.least, allowed.most, allowed.what
    if isinstance(operand, Imm):
        if least <= operand.value <= most:
            return ()
        if not call.in_module:
            call.fail(f"{what} is a number from {least} to {most}, not {operand.value}", operand)
    below = call.integer(operand)
    if least:
        below = Apply("sub", (below, Const(least)), U32)
    beyond = Apply("gt", (below, Const(most - least)), U32)
    return (UndefinedIf(f"{what} is from {least} to {most}", beyond),)


def member_mask(call: Call, operand: Operand) -> Expr:
    """The lanes that take part in an instruction, as a mask; a number has 32 bits."""
    mask = call.integer(operand)
    return Const(mask.value & FULL_MASK) if isinstance(mask, Const) else mask


def own_lane_in(call: Call, mask: Expr) -> tuple[Op, ...]:
    """The step that finds a thread outside the mask that it gives.

    Which lane a litmus thread is that stands for a whole warp is open; it is not in an empty mask.
    """
    own_lane = None if call.in_module else lane(call)
    bit = Const(FULL_MASK) if own_lane is None else Const(1 << own_lane)
    known = isinstance(mask, Const) and (mask.value == FULL_MASK if call.in_module else mask.value & bit.value)
    if known:
        return ()
    own: Expr = Get("%lanemask_eq") if call.in_module else bit
    bits = mask if own == Const(FULL_MASK) else Apply("and", (mask, own), U32)
    rule = f"a thread executes {call.head} with a mask that does not have its own lane"
    return (UndefinedIf(rule, Apply("eq", (bits, Const(0)), U32)),)


def writable(call: Call, operand: Operand) -> tuple[Op, ...]:
    """The steps that find a write through a register into memory that is only read: constants and parameters.

    A name was checked when it was read, and the window of a state space that is named has none of them.
    """
    if call.word("space") is not None or not isinstance(operand, Mem) or not isinstance(operand.base, Reg):
        return ()
    steps = [
        UndefinedIf(f"{variable.name} is in memory that is only read", within)
        for variable, within in inside(call, call.location(operand), READ_ONLY)
    ]
    return tuple(steps)


def check_global(call: Call, operand: Operand, what: str) -> tuple[Op, ...]:
    """The steps that find an address in a register that is not in global memory; a name was checked before."""
    address, variable, _ = memory_base(call, operand, Space.GLOBAL)
    if variable is not None or call.in_module:  # the machine of modules finds where an address lies
        return ()
    rule = f"{what} is in .global memory"
    shared = Apply("lt", (address, Const(FIRST_GLOBAL)), U64)
    return (UndefinedIf(rule, shared), *(UndefinedIf(rule, within) for _, within in inside(call, address, READ_ONLY)))


def inside(call: Call, address: Expr, spaces: tuple[Space, ...]) -> Iterator[tuple[Variable, Expr]]:
    """Each variable in these state spaces, with 1 if the address is in it, else 0."""
    if call.in_module:
        return
    space = call.context.space
    for variable in call.context.test.variables:
        base = space.address(variable.name, 0, call.place)
        if call.root(variable).space in spaces and base is not None:
            offset = Apply("sub", (address, Const(base)), U64)
            yield variable, Apply("lt", (offset, Const(space.size(variable.name))), U64)


def within(call: Call, address: Expr, space: str) -> Expr:
    """1 if an address lies in the window of a state space, as the executing thread sees it, else 0."""
    if call.in_module:
        return windows.within(address, space)
    places = call.context.space
    window: Expr = Apply("shr", (address, Const(WINDOW_BITS)), U64)
    if space == "shared::cluster":
        rank = Apply("sub", (window, Const(places.first_window(call.place))), U64)
        return Apply("lt", (rank, Const(places.cluster_size(call.place))), U64)
    if space.startswith("shared"):
        return Apply("eq", (window, Const(places.window(call.place))), U64)
    if space == "global":
        beyond = Apply("ge", (address, Const(FIRST_GLOBAL)), U64)
        return Apply("and", (beyond, Apply("eq", (_in(call, address, Space.CONST), Const(0)), U64)), U64)
    return Const(0) if space == "local" else _in(call, address, Space.CONST if space == "const" else Space.PARAM)


def _in(call: Call, address: Expr, space: Space) -> Expr:
    inside_any: Expr = Const(0)
    for _, within_variable in inside(call, address, (space,)):
        inside_any = Apply("or", (inside_any, within_variable), U64)
    return inside_any


def in_shared(call: Call, address: Expr, *, own: bool = False) -> tuple[Op, ...]:
    """The step that finds an address of a multicast in no shared memory of the cluster, or with `own` of the CTA.

    The address in each CTA is made of its lower bits, which say nothing of that. A name was checked when it was read.
    """
    if isinstance(address, AddressOf):
        return ()
    rank = rank_of(call, address)
    outside = Apply("ne", (rank, call.own_rank), U64) if own else Apply("ge", (rank, Const(call.cluster_size)), U64)
    relative = isinstance(address, Apply) and address.op.startswith(WITHIN)
    if call.in_module and not relative:
        elsewhere = Apply("eq", (within(call, address, "shared::cluster"), Const(0)), U64)
        outside = Apply("or", (outside, elsewhere), U64)
    space = "shared::cta" if own else "shared::cluster"
    return (UndefinedIf(f"{call.head}.{call.word('multicast')} takes an address in .{space} memory", outside),)


def range_checks(call: Call) -> tuple[Op, ...]:
    """The steps that find operands beyond their ranges. Raises InputError for a number of a litmus test."""
    row, words = call.reading.row, call.reading.words
    ranges: dict[str, OperandRange] = {}
    for allowed in row.ranges:
        if covers(allowed.case, words):
            ranges.setdefault(allowed.operand, allowed)
    steps: list[Op] = []
    for name, allowed in ranges.items():
        operand = call.operand(name)
        if operand is not None and not isinstance(operand, Blank):
            steps += in_range(call, operand, allowed)
    return tuple(steps)
