"""The windows of state spaces among the generic addresses of a compiled module.

In: nothing. Out: where each window begins. A generic address that lies in none of them is one of global memory. The
shared memory of a CTA begins at its rank times 2^24 in the window of its cluster, as in hardware. The local memory of
each thread has generic addresses of its own, so that an address that another thread made is told apart.
"""

from __future__ import annotations

from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.ptx.vocabulary import PREDICATE, U64, Space

SHARED_WINDOW = 0x7F5A_0000_0000_0000
PARAM_WINDOW = 0x7F6A_0000_0000_0000
LOCAL_WINDOW = 0x7F7A_0000_0000_0000
CONST_WINDOW = 0x0000_7E40_0000_0000

LOCAL_BITS = 26
"""Bits of an address within the local memory of one thread."""

OWN_LOCAL = "%own_local"
"""The generic address at which the local memory of a thread begins, as a special register that no program can name."""

RANK_BITS = 24
"""Bits of an address within the shared memory of one CTA."""

_STARTS = {
    Space.SHARED: SHARED_WINDOW,
    Space.PARAM: PARAM_WINDOW,
    Space.LOCAL: LOCAL_WINDOW,
    Space.CONST: CONST_WINDOW,
}
_SIZE_BITS = {space: 48 if space is Space.LOCAL else 32 for space in _STARTS}
"""A window has 4 GB; that of the local memory of all threads is larger."""


def is_in(address: int, space: Space) -> bool:
    """True if a generic address lies in the window of a state space."""
    windows = (window for window, bits in _SIZE_BITS.items() if address >> bits == _STARTS[window] >> bits)
    return next(windows, Space.GLOBAL) is space


def within(address: Expr, space: str) -> Expr:
    """1 if a generic address lies in the window of a state space, as the executing thread sees it, else 0.

    That of kernel parameters is contained in that of .global ("isspacep").
    """
    if space == "global":
        elsewhere = [
            Apply("not", (within(address, other),), PREDICATE) for other in ("shared::cluster", "local", "const")
        ]
        return Apply("and", (Apply("and", (elsewhere[0], elsewhere[1]), PREDICATE), elsewhere[2]), PREDICATE)
    family, _, part = space.partition("::")
    if family == "shared" and part != "cluster":
        own = Apply("add", (Get("%cluster_ctarank"), Const(SHARED_WINDOW >> RANK_BITS)), U64)
        return Apply("eq", (Apply("shr", (address, Const(RANK_BITS)), U64), own), U64)
    bits, start = _SIZE_BITS[Space(family)], _STARTS[Space(family)]
    return Apply("eq", (Apply("shr", (address, Const(bits)), U64), Const(start >> bits)), U64)


def beyond_local(address: Expr) -> Expr:
    """1 if an address of .local lies behind the local memory that a thread may have, else 0."""
    return Apply("ne", (Apply("shr", (address, Const(LOCAL_BITS)), U64), Const(0)), U64)


def generic(address: Expr, space: str) -> Expr:
    """The generic address of an address of a state space."""
    start = _start(space)
    return address if start is None else Apply("add", (address, start), U64)


def relative(address: Expr, space: str) -> Expr:
    """The address in a state space of a generic address that lies in its window."""
    start = _start(space)
    return address if start is None else Apply("sub", (address, start), U64)


def _start(space: str) -> Expr | None:
    """The difference between a generic address and the address in its state space; None if they are equal."""
    family = Space(space.partition("::")[0])
    if family is Space.LOCAL:
        return Get(OWN_LOCAL)
    return Const(_STARTS[family]) if family in _STARTS else None
