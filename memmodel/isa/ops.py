"""What an instruction does, in steps small enough for any engine: the output language of the instruction table.

In: nothing. Out: the `Op` types. `isa.lower` turns one Instruction into a few of these; each engine interprets them
in its own way (with concrete integers, or with formulas), so an instruction's meaning is written once.

Registers are strings; names that begin with `$` are temporaries of one instruction. Values are Python integers,
already reduced to the register's type (`ptx.DataType.wrap`). The guard `@%p` of an instruction guards all its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.ptx import DataType, Proxy, Scope

# ---- expressions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    value: int


@dataclass(frozen=True, slots=True)
class Get:
    """The value of a register; 0 if nothing was ever assigned to it."""

    register: str


@dataclass(frozen=True, slots=True)
class AddressOf:
    """The address of a variable as seen by the executing thread; `cta` picks another CTA's instance."""

    name: str
    offset: int = 0
    cta: int | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A pure operation of `isa.arith` on integers, its result reduced to `type`."""

    op: str
    args: tuple[Expr, ...]
    type: DataType


Expr = Const | Get | AddressOf | Apply


def registers_of(expr: Expr) -> frozenset[str]:
    """The registers that an expression reads."""
    if isinstance(expr, Get):
        return frozenset((expr.register,))
    if isinstance(expr, Apply):
        return frozenset().union(*(registers_of(arg) for arg in expr.args))
    return frozenset()


# ---- steps ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """The static side of an event: its cat sets (`tags`), the scope it specifies, the proxy it goes through."""

    tags: frozenset[str]
    scope: Scope | None = None
    proxy: Proxy = Proxy.GENERIC


@dataclass(frozen=True, slots=True)
class Assign:
    """register := value; no event."""

    register: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to `label` (None: the end of the thread) if `when` is non-zero (None: always)."""

    label: str | None
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read `width` bits at `address` into `register` (None: the value is dropped)."""

    register: str | None
    address: Expr
    event: Event
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Write `value` at `address`, only if `when` is non-zero; `rmw`: one atomic operation with the read just before."""

    value: Expr
    address: Expr
    event: Event
    width: int | None = None
    when: Expr | None = None
    rmw: bool = False


@dataclass(frozen=True, slots=True)
class Fence:
    """A memory fence or proxy fence; all it is stands in `event`."""

    event: Event


@dataclass(frozen=True, slots=True)
class Barrier:
    """One half of a barrier. `domain` says which threads take part: those of one "cta", "warp" or "cluster".

    `key`: barrier resource; equal keys in one domain instance meet. `count`: how many threads make a generation
    (None or value 0: every thread of the domain that the test has; negative: however many arrive).
    The k-th arrive and the k-th wait of a thread on one key belong to generation k; a wait finishes only when its
    generation is complete.
    """

    half: str  # "arrive" | "wait"
    domain: str  # "cta" | "warp" | "cluster"
    key: tuple[Expr, ...]
    count: Expr | None
    event: Event


@dataclass(frozen=True, slots=True)
class Reduce:
    """barrier.cta.red: combine `value` over the threads of the generation just waited for (op: popc, and, or)."""

    register: str
    op: str
    value: Expr


Op = Assign | Jump | Read | Write | Fence | Barrier | Reduce
