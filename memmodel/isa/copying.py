"""What all bulk copies share: their two ends, their accesses, and the signals that tell of their end.

In: a Call and operands. Out: regions, labels, parts. A copy is a read of its source, piece by piece, and a write of
each destination; which pieces these are is for the engines to find out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from memmodel.base.labels import Access, Action, Family, Issue, Role, Side, Signal
from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.place import Receiver, in_cta, mapped, memory_base, rank_of
from memmodel.isa.rows.slots import WINDOW_OF
from memmodel.program.expressions import AddressOf, Apply, Const, Expr
from memmodel.program.ops import Gather, IssueAsync, Op, Part, Scatter, SignalPart, Track, UndefinedIf
from memmodel.program.regions import Chunk, Object, Region
from memmodel.ptx.operands import Imm, Operand, Sym
from memmodel.ptx.vocabulary import U32, Proxy, Scope, Sem, Space, Window

CHUNK = 16
"""Sizes and addresses of bulk copies are multiples of 16 bytes."""

B128 = 16
"""Bytes of an element of a .relaxed copy."""

BULK_GROUP = frozenset({Track.BULK})


class CopyEnd(NamedTuple):
    """A memory operand that is one end of a copy. `symbol`: the name in it, if there is one."""

    address: Expr
    window: Window
    symbol: Sym | None


class Destination(NamedTuple):
    """What a copy writes, and the mbarrier object that it signals. `when`: a formula that is not 0 if it does (None:
    surely).
    """

    address: Expr
    barrier: Object
    when: Expr | None


def end(call: Call, operand: Operand, space: str) -> CopyEnd:
    """One end of a copy, from its memory operand."""
    wanted = Space.GLOBAL if space == "global" else Space.SHARED
    address, _, symbol = memory_base(call, operand, wanted)
    return CopyEnd(address, WINDOW_OF[space], symbol)


def checked_size(call: Call, operand: Operand) -> tuple[Expr, tuple[Op, ...]]:
    """The number of bytes, and the step that finds one that is no multiple of 16.

    One that is written out is checked here in a litmus test; a compiler may leave a number to the run.
    """
    size = call.integer(operand)
    if isinstance(operand, Imm):
        if not call.in_module and (operand.value <= 0 or operand.value % CHUNK):
            call.fail(f"{call.head} copies a positive multiple of {CHUNK} bytes, not {operand.value}", operand)
        if operand.value % CHUNK == 0:
            return size, ()
    rest = Apply("and", (size, Const(CHUNK - 1)), U32)
    return size, (UndefinedIf(f"{call.head} copies a multiple of {CHUNK} bytes", rest),)


def access(call: Call, side: Side, role: Role | None = None) -> Access:
    """An async-proxy access of a bulk copy: weak, or relaxed at the scope written."""
    strong = call.word("sem") == "relaxed"
    label = call.access(
        side, Sem.RELAXED if strong else Sem.WEAK, call.scope if strong else None, Proxy.ASYNC, Family.BULK
    )
    return replace(label, asynchronous=True, role=role, spelt=multimem_word(call, side))


def multimem_word(call: Call, side: Side) -> str | None:
    """ "multimem" for an access through a multimem address, to all the memory that this points to; else None."""
    return "multimem" if side is Side.WRITE and call.head.startswith("multimem.") else None


def operation_bytes(call: Call) -> int | None:
    """Bytes of the operations that a copy consists of: .b128 if it is strong, pieces of any size if it is weak."""
    return B128 if call.word("sem") == "relaxed" else None


def group_tracks(in_group: bool) -> frozenset[Track]:
    """How the parts of a copy are found by commit_group and wait_group."""
    return BULK_GROUP if in_group else frozenset()


def gather(call: Call, region: Region, *, in_group: bool) -> Gather:
    """The read of the source."""
    return Gather(access(call, Side.READ, Role.SOURCE), region, group_tracks(in_group))


def signal(family: Family) -> Signal:
    """A complete-tx, which releases at .cluster scope."""
    return Signal(Action.COMPLETE_TX, Scope.CLUSTER, family)


def issue(family: Family, *parts: Part) -> IssueAsync:
    """The instruction as its thread executes it, with its parts."""
    return IssueAsync(Issue(family), parts)


def signalled_copy(
    call: Call,
    first: tuple[Part, ...],
    source: int,
    destinations: list[Destination],
    region: Callable[[Expr], Region],
    size: Expr | None,
) -> tuple[Op, ...]:
    """A copy whose completion is signalled by a complete-tx for each destination.

    `first`: the parts before the writes, of which number `source` reads the data. `region`: the bytes that are written
    at an address. `size` None: that of the source.
    """
    parts: list[Part] = list(first)
    for address, barrier, when in destinations:
        parts.append(Scatter(access(call, Side.WRITE), region(address), source, when=when))
        completed = (*range(len(first)), len(parts) - 1)
        bytes_of = source if size is None else None
        parts.append(SignalPart(signal(Family.BULK), barrier, size, bytes_of, completed, when=when))
    return (issue(Family.BULK, *parts),)


def destinations_in(
    call: Call, target: Expr, barrier: Object, ctas: tuple[Receiver, ...], group: int | None
) -> list[Destination]:
    """What a copy writes in every CTA of a multicast; without one, what its operands name.

    With .cta_group::2 the signal goes to the CTA of each pair that has the parity of the one in which the mbarrier
    operand lies ("cp.async.bulk.tensor").
    """
    if not ctas:
        return [Destination(target, barrier, None)]
    destinations = []
    for rank, when in ctas:
        signalled = _of_pair(call, barrier.address, rank) if group == 2 else in_cta(call, barrier.address, rank)
        destinations.append(Destination(in_cta(call, target, rank), Object(signalled, Window.SHARED_CLUSTER), when))
    return destinations


def _of_pair(call: Call, barrier: Expr, rank: int) -> Expr:
    """The mbarrier object in the pair of that CTA, at the parity of the CTA in which the operand lies."""
    if isinstance(barrier, AddressOf):
        own = call.place.cta if barrier.cta is None else barrier.cta
        return in_cta(call, barrier, rank & ~1 | own & 1)
    parity = Apply("and", (rank_of(call, barrier), Const(1)), ADDRESS)
    return mapped(call, barrier, Apply("or", (parity, Const(rank & ~1)), ADDRESS))


def check_barrier(call: Call, target: Sym | None, where: Sym | None, operand: Operand, *, peer: bool = False) -> None:
    """The mbarrier object lies in the CTA of the destination (or, with cta_group::2, in its peer)."""
    if target is None or where is None:
        return
    own = call.place.cta
    destination, source = own if target.cta is None else target.cta, own if where.cta is None else where.cta
    if destination != source and not (peer and destination ^ 1 == source):
        hint = f"write [{where.name}@cta{destination}]" if destination != own else f"write [{where.name}]"
        call.fail("the mbarrier object is not in the CTA that the copy writes to", operand, hint)


def chunk(call: Call, address: Expr, window: Window, size: Expr) -> Chunk:
    """The bytes at one end of a copy."""
    return Chunk(address, window, size, scalar=operation_bytes(call))
