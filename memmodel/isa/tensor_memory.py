"""What tcgen05 instructions share: tensor-memory operands, matrix descriptors, the CTAs of a pair, labels.

In: a Call and an operand. Out: addresses, regions and labels. A tensor variable has an instance in every CTA; addresses
count its columns. A matrix descriptor is a 64-bit register that holds the address of the matrix.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.isa.call import Call
from memmodel.isa.place import in_cta, memory_base, pair
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import AsyncRead, Track
from memmodel.program.regions import Accumulator, Matrix
from memmodel.ptx.operands import Mem, Operand, Reg, Sym, describe
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import U32, Proxy, Space

TCGEN05 = Since(version="8.6", families=FAMILY_100)
"""Targets with tcgen05: the sm_100 and sm_110 families."""

PAGE = "TensorCore 5th Generation Family Instructions: "
GROUP = needed("cta_group", "cta_group::1", "cta_group::2")
ALIGNED = tuple(
    needed(word, missing=("{head} is .sync.aligned", "write {head}.sync.aligned")) for word in ("sync", "aligned")
)
"""Qualifiers of what all threads of a warp execute together."""


def group(call: Call) -> int | None:
    """1 or 2 for .cta_group::N."""
    word = call.word("cta_group")
    return int(word[-1]) if word else None


def ctas(call: Call) -> tuple[int, ...]:
    """The CTAs whose tensor memory and shared memory the instruction works on, the executing one first."""
    return pair(call) if group(call) == 2 else (call.place.cta,)


def tensor(call: Call, operand: Operand) -> Expr:
    """The address of tensor memory at an operand in brackets."""
    address, variable, symbol = memory_base(call, operand, Space.TENSOR)
    if variable is None:
        return address
    root = call.root(variable)
    if root.space is not Space.TENSOR:
        hint = f"declare it `.tensor .b32 {root.name};`"
        call.fail(f"'{root.name}' is not in tensor memory", operand, hint)
    if symbol is not None and symbol.cta not in (None, call.place.cta):
        call.fail(f"{call.head} reaches the tensor memory of its own CTA only", operand, f"write [{root.name}]")
    return address


def lane_of(address: Expr) -> Expr:
    """The lane that an address of tensor memory has in its upper half ("Tensor Memory Addressing")."""
    return Apply("shr", (address, Const(16)), U32)


def descriptor(call: Call, operand: Operand) -> Expr:
    """The address of a matrix in shared memory, from its descriptor."""
    if not isinstance(operand, Reg):
        name = operand.name if isinstance(operand, Sym) else "tile"
        call.fail(
            f"a matrix descriptor is a 64-bit register, and this is {describe(operand)}",
            operand,
            f"write mov.u64 %d, {name}; and then %d",
        )
    return call.value(operand)


def label(call: Call, side: Side, family: Family, *, form: str | None = None, proxy: Proxy = Proxy.GENERIC) -> Access:
    """An asynchronous access of a tcgen05 instruction, to tensor memory or, with a proxy, to shared memory."""
    return Access(side, proxy=proxy, family=family, asynchronous=True, group=group(call), form=form)


def issue(call: Call, family: Family, form: str | None = None) -> Issue:
    """A tcgen05 instruction as its thread executes it."""
    return Issue(family, group=group(call), form=form)


def tracked(call: Call) -> frozenset[Track]:
    """The name by which commits find the parts of an mma, cp or shift."""
    return frozenset({Track.GROUP_2 if group(call) == 2 else Track.GROUP_1})


def matrix_a(call: Call) -> Track:
    """The name by which commits about matrix A alone find the reads of it in shared memory."""
    return Track.MATRIX_A_2 if group(call) == 2 else Track.MATRIX_A_1


def peer(call: Call, cta: int) -> int | None:
    """The CTA whose tensor memory is meant; None for the executing one."""
    return None if cta == call.place.cta else cta


def in_shared(call: Call, address: Expr, cta: int, most: int | None) -> Matrix:
    """A matrix in the shared memory of a CTA of the pair."""
    return Matrix(address if cta == call.place.cta else in_cta(call, address, cta), most)


def shared_operand(call: Call, family: Family, address: Expr, cta: int, register: str, *more: Track) -> AsyncRead:
    """A shared-memory operand, summed into a temporary. `more`: further names by which commits find it."""
    access = label(call, Side.READ, family, proxy=Proxy.ASYNC)
    tracks = tracked(call) | {*more}
    return AsyncRead(access, in_shared(call, address, cta, None), (register,), sums=True, tracks=tracks)


def tensor_operand(call: Call, family: Family, address: Expr, cta: int, register: str) -> AsyncRead:
    """An operand in tensor memory, summed into a temporary."""
    region = Accumulator(address, None, peer(call, cta))
    return AsyncRead(label(call, Side.READ, family), region, (register,), sums=True, tracks=tracked(call))


def is_tensor_operand(operand: Operand) -> bool:
    """True if this operand is written as memory, in brackets."""
    return isinstance(operand, Mem)
