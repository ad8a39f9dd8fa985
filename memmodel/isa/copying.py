"""What all bulk copies share: their two ends, the elements that are copied, their accesses and signals.

In: a Call and operands. Out: ends, element numbers, parts. Settled here: alignment and size, and which elements are
copied: the first, and those that matter to the test (`facts.interest`). A register as address hides the variable behind
it: then only the first element and those that the other end asks for are copied.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.isa.call import Call
from memmodel.isa.memory import element_bytes
from memmodel.isa.ops import Const, Event, Expr, Get, Issue, Part, Signal
from memmodel.isa.place import in_cta, memory_base, shifted
from memmodel.litmus.syntax import Mem, Operand, Sym, Variable
from memmodel.ptx import Proxy, Scope, Space

CHUNK = 16
"""Sizes and addresses of bulk copies are multiples of 16 bytes."""

BULK_GROUP = frozenset({"bulk"})
"""What commit_group and wait_group call the parts of copies that complete by bulk groups."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a copy. `variable` and `first` (an element index) are unknown if the address is in a register."""

    address: Expr
    variable: Variable | None
    first: int
    cta: int | None
    operand: Operand


def end(call: Call, operand: Operand, space: str) -> End:
    """The end of a copy at a memory operand of that state space, aligned as bulk copies are."""
    wanted = Space.GLOBAL if space == "global" else Space.SHARED
    address, variable, offset, symbol = memory_base(call, operand, wanted)
    if variable is None:
        return End(address, None, 0, None, operand)
    root = call.root(variable)
    if root.align is not None and root.align < CHUNK:
        call.fail(f"'{root.name}' is aligned to {root.align} bytes, and {call.head} needs {CHUNK}", operand)
    if offset % CHUNK:
        call.fail(f"{call.head} needs an address that is a multiple of {CHUNK}, and this is {offset} bytes on", operand)
    cta = symbol.cta if symbol is not None else None
    if cta not in (None, call.place.cta) and space == "shared::cta":
        call.fail(f"'{variable.name}@cta{cta}' is in another CTA's shared memory", operand, "write .shared::cluster")
    return End(address, root, offset // element_bytes(root), cta, operand)


def check_extent(call: Call, side: End, size: int) -> None:
    """Do `size` bytes lie within the variable?"""
    if side.variable is not None:
        unit = element_bytes(side.variable)
        last, room = side.first * unit + size, unit * len(side.variable.init)
        if last > room:
            call.fail(
                f"{call.head} copies bytes up to {last - 1} of '{side.variable.name}', which has {room}", side.operand
            )


def size_of(call: Call, operand: Operand) -> int:
    """The number of bytes, which has to be known before the test runs."""
    size = call.constant(operand)
    if size is None:
        call.fail(f"{call.head} needs a size that is known before the test runs", operand, "write the number of bytes")
    if size <= 0 or size % CHUNK:
        call.fail(f"{call.head} copies a positive multiple of {CHUNK} bytes, not {size}", operand)
    return size


def unit_of(call: Call, target: End, source: End) -> int:
    """Bytes of an element, the same on both sides."""
    units = {element_bytes(side.variable) for side in (target, source) if side.variable is not None}
    if len(units) > 1:
        hint = "declare both with elements of one size: a copy is seen element by element"
        call.fail(f"{call.head} copies between elements of different sizes", target.operand, hint)
    return units.pop() if units else CHUNK


def elements(call: Call, target: End, source: End, count: int) -> list[int]:
    """Which of `count` elements to copy: the first, and those that matter on either side."""
    wanted = {0}
    for side in (target, source):
        if side.variable is not None:
            wanted |= {i - side.first for i in call.context.interest.get(side.variable.name, ())}
    return sorted(k for k in wanted if 0 <= k < count)


def signal(call: Call, address: Expr, size: int, of: tuple[int, ...]) -> Signal:
    """A complete-tx, which releases at .cluster scope."""
    event = call.event("MBAR", "SIGNAL", "ASYNC", "REL", scope=Scope.CLUSTER)
    return Signal(address, event, Const(size), of)


def access(call: Call, side: str, space: str, *tags: str) -> Event:
    """An async-proxy access of a bulk copy: weak, or relaxed at the scope written."""
    shared = ("SMEM",) if space.startswith("shared") else ()
    strong = call.scope if call.word("sem") == "relaxed" else None
    sem = "WEAK" if strong is None else "RLX"
    return call.event(side, "M", sem, "ASYNC", "BULK", *shared, *tags, scope=strong, proxy=Proxy.ASYNC)


def destinations(call: Call, target: Expr, barrier: Expr, ctas: tuple[int, ...]) -> list[tuple[Expr, Expr]]:
    """(destination, mbarrier) in every CTA of a multicast; the ones written without."""
    if not ctas:
        return [(target, barrier)]
    made = []
    for cta in ctas:
        there, bar = in_cta(call, target, cta), in_cta(call, barrier, cta)
        if there is not None and bar is not None:
            made.append((there, bar))
    return made


def sources(call: Call, space: str, address: Expr, offsets: list[int], *, grouped: bool) -> list[Part]:
    """A read of the source for each of `offsets` (in bytes); what it read is in `$s` and its number."""
    event = access(call, "R", space, "SRC")
    track = BULK_GROUP if grouped else frozenset()
    return [Part("read", shifted(address, at), event, f"$s{k}", track=track) for k, at in enumerate(offsets)]


def writes(call: Call, space: str, address: Expr, offsets: list[int], *, grouped: bool) -> list[Part]:
    """A write of the destination for each of `offsets`, of what the source read with its number found."""
    event = access(call, "W", space)
    track = BULK_GROUP if grouped else frozenset()
    return [
        Part("write", shifted(address, at), event, value=Get(f"$s{k}"), track=track) for k, at in enumerate(offsets)
    ]


def completed(call: Call, reads: list[Part], made: list[tuple[Expr, list[Part]]], size: int) -> Issue:
    """A copy whose end is told by a complete-tx on an mbarrier for each destination (mbarrier, its parts)."""
    parts: list[Part | Signal] = list(reads)
    for barrier, its in made:
        of = (*range(len(reads)), *range(len(parts), len(parts) + len(its)))
        parts += [*its, signal(call, barrier, size, of)]
    return Issue(Event(frozenset({"ISSUE"})), tuple(parts))


def grouped(reads: list[Part], its: list[Part]) -> Issue:
    """A copy whose end is told by its bulk group."""
    return Issue(Event(frozenset({"ISSUE"})), (*reads, *its))


def check_barrier(call: Call, target: End, where: Operand, *, peer: bool = False) -> None:
    """The mbarrier object lies in the CTA of the destination (or, with cta_group::2, in its peer)."""
    base = where.base if isinstance(where, Mem) else None
    if target.variable is None or not isinstance(base, Sym):
        return
    own = call.place.cta
    there, told = own if target.cta is None else target.cta, own if base.cta is None else base.cta
    if there != told and not (peer and there ^ 1 == told):
        hint = f"write [{base.name}@cta{there}]" if there != own else f"write [{base.name}]"
        call.fail("the mbarrier object is not in the CTA that the copy writes to", where, hint)
