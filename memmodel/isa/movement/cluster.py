"""Rows of the table: addresses in other CTAs. None makes an event.

In: a Call. Out: Assigns. Settled here: what an address becomes in another CTA of the cluster.
"""

from __future__ import annotations

from functools import partial

from memmodel.isa.call import Call
from memmodel.isa.place import in_cta, mapped, rank_of
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, optional
from memmodel.program import windows
from memmodel.program.addresses import FIRST_GLOBAL
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, stripped
from memmodel.program.ops import Op, UndefinedIf
from memmodel.ptx.operands import Operand, Sym
from memmodel.ptx.vocabulary import U64

_MOVE = "Data Movement and Conversion Instructions: "


def mapa(call: Call) -> tuple[Op, ...]:
    """mapa: the same address in another CTA of the cluster."""
    target, source, rank_operand = call.operands
    rank, address = call.constant(rank_operand), _mappable(call, source)
    if rank is None or (isinstance(address, AddressOf) and address.cta not in (None, rank)):
        moved = mapped(call, address, call.integer(rank_operand) if rank is None else Const(rank))
    else:
        if isinstance(address, AddressOf) and call.context.space.cta_of_rank(rank, call.place) is None:
            call.fail(f"no thread of the test is in CTA {rank} of this cluster", rank_operand)
        moved = in_cta(call, address, rank)
    return (*_check(call, source, address), *call.assign(target, moved))


def mapa_in_module(call: Call) -> tuple[Op, ...]:
    """mapa in a module: of a generic address, if no state space is named, the result is a generic one."""
    target, source, rank = call.operands
    moved = stripped(mapped(call, _shared_address(call, source), call.integer(rank)))
    generic = moved if call.word("space") else windows.generic(moved, "shared")
    return (*_check(call, source, call.value(source)), *call.assign(target, generic))


def getctarank_in_module(call: Call) -> tuple[Op, ...]:
    """getctarank in a module."""
    target, source = call.operands
    rank = rank_of(call, _shared_address(call, source))
    return (*_check(call, source, call.value(source)), *call.assign(target, rank))


def _shared_address(call: Call, operand: Operand) -> Expr:
    """An operand as an address in .shared: a register holds a generic address if no state space is named."""
    address = call.value(operand)
    named = call.word("space") is not None or isinstance(operand, Sym)
    return address if named else windows.relative(address, "shared")


def _check(call: Call, operand: Operand, address: Expr) -> tuple[Op, ...]:
    """The step that finds an address outside the shared memory of the cluster; a name was checked before."""
    if isinstance(operand, Sym) or isinstance(address, AddressOf):
        return ()
    if call.in_module:
        space = call.word("space")
        generic = address if space is None else windows.generic(address, space)
        outside = Apply("eq", (windows.within(generic, "shared::cluster"), Const(0)), U64)
    else:
        outside = Apply("ge", (address, Const(FIRST_GLOBAL)), U64)
    return (UndefinedIf(f"{call.head} takes an address in shared memory", outside),)


def _mappable(call: Call, operand: Operand) -> Expr:
    """An address to be mapped: of a name, it need not be declared in the executing CTA, only the offset counts."""
    if isinstance(operand, Sym) and operand.cta is None:
        root = call.root(call.variable(operand))
        if root.cta not in (None, call.place.cta) and call.context.space.cta_of_rank(root.cta, call.place):
            return AddressOf(operand.name, operand.offset, root.cta)
    return call.value(operand)


def getctarank(call: Call) -> tuple[Op, ...]:
    """getctarank: the rank of the CTA that owns a shared-memory address."""
    target, source = call.operands
    address = call.value(source)
    return (*_check(call, source, address), *call.assign(target, rank_of(call, address)))


_row = partial(Row, since=Since(90, "7.8"), effect=Effect.COMPUTES)

ROWS = (
    _row(
        ("mapa",),
        (optional("space", "shared::cluster"), in_blocks("type", "u32", "u64")),
        ("d", "a", "b"),
        mapa,
        "none; the address of a in the CTA of rank b",
        _MOVE + "mapa",
        sizes={"b": 32},
        lower_module=mapa_in_module,
    ),
    _row(
        ("getctarank",),
        (optional("space", "shared::cluster"), in_blocks("type", "u32", "u64")),
        ("d", "a"),
        getctarank,
        "none; the rank of the CTA that owns a",
        _MOVE + "getctarank",
        sizes={"d": 32},
        of_window=True,
        lower_module=getctarank_in_module,
    ),
)
