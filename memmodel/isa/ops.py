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
class Cover:
    """What a fence is about, when it is not about all memory.

    `what`: "own-shared" (shared memory of the executing CTA), "shared" (all shared memory), "global",
    "init" (the thread's earlier mbarrier.init), or "range" (`size` bytes from `address`, a tensor map).
    """

    what: str
    address: Expr | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """The static side of an event: its cat sets (`tags`), the scope it specifies, the proxy it goes through.

    `covers`: for a fence that names a state space or range. `unit`: cta_group of a tcgen05 operation; `form`: its
    shape and kind.
    """

    tags: frozenset[str]
    scope: Scope | None = None
    proxy: Proxy = Proxy.GENERIC
    covers: Cover | None = None
    unit: int | None = None
    form: str | None = None


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


# ---- asynchronous steps --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """One asynchronous read or write of an `Issue`: an event of the thread that is not in program order.

    A read part puts what it read into `register` (a temporary that later parts and steps of the instruction may use);
    a write part writes `value`. `rmw`: one atomic operation with the read part just before. `track`: the names by
    which a `Commit`, `Wait` or `Signal` finds it ("cp.async", "bulk", "wgmma", "tcgen05.mma", …).
    """

    half: str  # "read" | "write"
    address: Expr
    event: Event
    register: str | None = None
    value: Expr | None = None
    width: int | None = None
    rmw: bool = False
    track: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Signal:
    """An operation on an mbarrier object that the hardware makes when something is complete.

    `bytes`: a complete-tx of that many bytes; None: an arrive-on with count 1. It completes the parts `of` this
    instruction (by position), and with `tracks` every earlier part of the thread that carries that name.
    """

    address: Expr
    event: Event
    bytes: Expr | None = None
    of: tuple[int, ...] = ()
    tracks: str | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """An asynchronous instruction: an issue event in program order, then its parts and signals, outside of it.

    A part may use registers that read parts before it in the tuple assigned.
    """

    event: Event
    parts: tuple[Part | Signal, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Close the group of all parts named `track` that the thread issued since the last one; no event."""

    track: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until parts named `track` are complete: an event in program order, completed (`compl`) by these parts.

    `pending` None: all earlier parts. Otherwise all those in committed groups except the `pending` most recent groups.
    `only`: a cat set; just the parts in it are waited for (bulk wait_group.read waits for reads).
    """

    event: Event
    track: str
    pending: Expr | None = None
    only: str | None = None


@dataclass(frozen=True, slots=True)
class Mbarrier:
    """A thread's operation on the mbarrier object at `address` (one event).

    action "init": `count` arrivals a phase. "inval". "arrive": `count` arrivals (drop: and that many fewer in later
    phases), after raising the tx-count by `bytes` if given; `register` receives the state, a number that names
    the phase. "expect_tx", "complete_tx": raise or lower the tx-count by `bytes`. "pending": raise the pending count by
    `count` (cp.async.mbarrier.arrive without .noinc). "test": `register` := 1 if the phase asked for is over, else 0;
    the phase is given by `parity` or by a `state`. test_wait and try_wait are the same step. `pending`: an arrive puts
    the arrivals that were pending just before it into that register (only if the thread asks for them).
    `no_complete`: the thread promises that the phase does not end by this arrive; if it does, the update is in MBBAD.
    """

    action: str
    address: Expr
    event: Event
    count: Expr | None = None
    bytes: Expr | None = None
    drop: bool = False
    register: str | None = None
    parity: Expr | None = None
    state: Expr | None = None
    pending: str | None = None
    no_complete: bool = False


Op = Assign | Jump | Read | Write | Fence | Barrier | Reduce | Issue | Commit | Wait | Mbarrier
