"""The windows of state spaces among the generic addresses of a compiled module.

In: nothing. Out: where each window begins. A generic address that lies in none of them is one of global memory. The
shared memory of a CTA begins at its rank times 2^24 in the window of its cluster, as in hardware. An address in .const
is its generic address.
"""

from __future__ import annotations

from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.ptx.vocabulary import PREDICATE, U64

SHARED_WINDOW = 0x7F5A_0000_0000_0000
PARAM_WINDOW = 0x7F6A_0000_0000_0000
LOCAL_WINDOW = 0x7F7A_0000_0000_0000
CONST_WINDOW = 0x0000_7E40_0000_0000

SIZE_BITS = 32
"""A window has 4 GB."""

RANK_BITS = 24
"""Bits of an address within the shared memory of one CTA."""

STARTS = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "local": LOCAL_WINDOW}
"""What an address of a state space and its generic address differ by, where they do."""

_WINDOWS = {**STARTS, "const": CONST_WINDOW}


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
    return Apply("eq", (Apply("shr", (address, Const(SIZE_BITS)), U64), Const(_WINDOWS[family] >> SIZE_BITS)), U64)


def generic(address: Expr, space: str) -> Expr:
    """The generic address of an address of a state space."""
    start = STARTS.get(space.partition("::")[0])
    return address if start is None else Apply("add", (address, Const(start)), U64)


def relative(address: Expr, space: str) -> Expr:
    """The address in a state space of a generic address that lies in its window."""
    start = STARTS.get(space.partition("::")[0])
    return address if start is None else Apply("sub", (address, Const(start)), U64)
