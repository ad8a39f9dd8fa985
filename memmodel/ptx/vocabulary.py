"""The words of PTX that every stage shares: scopes, semantics, proxies, state spaces, types, places.

Nothing here decides what is allowed; it only names. Source: PTX ISA chapter 8 (titles, since numbers move).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from memmodel.base.words import WordList


class Scope(IntEnum):
    """How far an operation reaches ("Scope"), ordered by reach."""

    CTA = 1
    CLUSTER = 2
    GPU = 3
    SYS = 4


class Sem(WordList):
    """Memory semantics of an access or a fence ("Operation Types")."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"

    def orders(self, other: Sem) -> bool:
        """True if an operation with these semantics orders all that one with the others orders."""
        return other in _ORDERED[self]


_ORDERED = {
    Sem.WEAK: (Sem.WEAK,),
    Sem.RELAXED: (Sem.WEAK, Sem.RELAXED),
    Sem.ACQUIRE: (Sem.WEAK, Sem.RELAXED, Sem.ACQUIRE),
    Sem.RELEASE: (Sem.WEAK, Sem.RELAXED, Sem.RELEASE),
    Sem.ACQ_REL: (Sem.WEAK, Sem.RELAXED, Sem.ACQUIRE, Sem.RELEASE, Sem.ACQ_REL),
    Sem.SC: tuple(Sem),
}


class Proxy(WordList):
    """The method of an access ("Proxies"). READ_ONLY: ld.global.nc, which the model leaves to the texture path."""

    GENERIC = "generic"
    SURFACE = "surface"
    TEXTURE = "texture"
    CONSTANT = "constant"
    ASYNC = "async"
    TENSORMAP = "tensormap"
    READ_ONLY = "read-only"
    FABRIC = "fabric"


class Space(WordList):
    """State space of a variable ("State Spaces"). GENERIC: a litmus location of the column layout, global memory.

    Only compiled modules have variables in LOCAL.
    """

    GENERIC = "generic"
    GLOBAL = "global"
    SHARED = "shared"
    CONST = "const"
    PARAM = "param"
    LOCAL = "local"
    TENSOR = "tensor"


class Window(WordList):
    """Where an address must be for an instruction that names this state space.

    GENERIC: anywhere but in tensor memory. DATA, DATA_OR_LOCAL, OWN_DATA, MAPS: generic addresses of which an
    instruction takes some. Only compiled modules have local memory and parameters of functions. PARAM: parameters of
    the kernel; ANY_PARAM: these or those of functions, as the address says.
    """

    GENERIC = "generic"
    DATA = "generic, global or shared"
    DATA_OR_LOCAL = "generic, global, shared or local"
    OWN_DATA = "generic, global or shared::cta"
    MAPS = "generic, global, const or param"
    READ_ONLY = "generic, global or const"
    GLOBAL = "global"
    CONST = "const"
    PARAM = "param"
    FUNCTION_PARAM = "param::func"
    ANY_PARAM = "param::entry or param::func"
    LOCAL = "local"
    SHARED_CTA = "shared::cta"
    SHARED_CLUSTER = "shared::cluster"
    SHARED_OTHER = "shared::cluster, of another CTA"
    TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class DataType:
    """A type such as .u32: `kind` is one of u s b f bf pred, `width` is in bits.

    A packed type (.f16x2) has several `lanes`, which share its width.
    """

    kind: str
    width: int
    lanes: int = 1

    def __str__(self) -> str:
        if self.lanes > 1:
            return f"{self.element}x{self.lanes}"
        return "pred" if self.kind == "pred" else f"{self.kind}{self.width}"

    @property
    def element(self) -> DataType:
        """The type of one lane."""
        return DataType(self.kind, self.width // self.lanes)

    @property
    def floating(self) -> bool:
        """True for floating-point numbers."""
        return self.kind in ("f", "bf")

    @property
    def signed(self) -> bool:
        """True for integers with a sign."""
        return self.kind == "s" and self.lanes == 1

    @property
    def mask(self) -> int:
        """The bits of a register of this type."""
        return (1 << self.width) - 1

    def wrap(self, value: int) -> int:
        """Reduce an integer to the value that a register of this type holds (two's complement for .s types)."""
        masked = value & ((1 << self.width) - 1)
        return masked - (1 << self.width) if self.signed and masked >> (self.width - 1) else masked


U32, U64, S32 = DataType("u", 32), DataType("u", 64), DataType("s", 32)
PREDICATE = DataType("pred", 1)

UNTYPED = DataType("s", 64)
"""What an instruction without a type suffix works on (column layout)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread runs. `cluster` None: the CTA is a cluster of its own. `warp` None: a warp of its own.

    `grid`: of the launches on one GPU, which depend on one another in this order.
    """

    gpu: int = 0
    cluster: int | None = None
    cta: int = 0
    warp: int | None = None
    grid: int = 0

    @property
    def cta_id(self) -> tuple[object, ...]:
        """Identity of the thread's CTA among all CTAs of the test."""
        return (self.gpu, self.cluster_id, self.cta)

    @property
    def cluster_id(self) -> tuple[object, ...]:
        """Identity of the thread's cluster."""
        launch = (self.gpu,) if self.grid == 0 else (self.gpu, "grid", self.grid)
        return (*launch, "cta", self.cta) if self.cluster is None else (*launch, self.cluster)

    @property
    def grid_id(self) -> tuple[int, int]:
        """Identity of the launch that the thread belongs to."""
        return (self.gpu, self.grid)

    @property
    def rank(self) -> int:
        """The number of the CTA in its cluster (%cluster_ctarank)."""
        return 0 if self.cluster is None else self.cta

    def shares(self, scope: Scope, other: Place) -> bool:
        """Does `scope`, specified by a thread here, include a thread at `other`? (PTX "Scope")"""
        if scope is Scope.SYS:
            return True
        if scope is Scope.GPU:
            return self.gpu == other.gpu
        if scope is Scope.CLUSTER:
            return self.cluster_id == other.cluster_id
        return self.cta_id == other.cta_id

    def common_scope(self, other: Place) -> Scope:
        """The least scope that reaches the other place from here, and here from there."""
        return next(scope for scope in Scope if self.shares(scope, other) and other.shares(scope, self))


class MbarrierLayout(WordList):
    """A layout of mbarrier objects, and the range of their counts ("Contents of the mbarrier object")."""

    V0 = "layout::v0"
    V1 = "layout::v1"

    @property
    def max_arrivals(self) -> int:
        """The largest count of pending arrivals, and of expected ones."""
        return (1 << 20) - 1 if self is MbarrierLayout.V0 else (1 << 9) - 1


MAX_TX = (1 << 20) - 1
"""The largest tx-count of an mbarrier object of any layout; its negation is the smallest."""
