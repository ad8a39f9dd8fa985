"""What tcgen05 instructions share: tensor-memory operands, matrix descriptors, the CTAs of a pair, events.

In: a Call and an operand. Out: addresses and events. A tensor variable has an instance in every CTA; addresses count
its elements, each of which stands for a block of columns and rows. A matrix descriptor is a 64-bit register that holds
the address of the matrix; the first element of a matrix stands for all of it.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.isa.call import Call, describe
from memmodel.isa.ops import Event, Expr, Part
from memmodel.isa.place import in_cta, memory_base, pair, shifted
from memmodel.isa.row import Need, Rule, Slot, flag
from memmodel.litmus.syntax import Mem, Operand, Reg, Sym
from memmodel.ptx import Proxy, Space

TENSOR_CORES = frozenset({100, 103, 110})
"""Targets with tcgen05: the sm_100 and sm_110 families."""

PAGE = "TensorCore 5th Generation Family Instructions: "
GROUP = Slot("cta_group", ("cta_group::1", "cta_group::2"), "CTA group", Need.ALWAYS)
SYNC = Slot("sync", ("sync",), "qualifier")
ALIGNED = (SYNC, flag("aligned"))
BOTH_ALIGNED = tuple(
    Rule("{head} is .sync.aligned", "write {head}.sync.aligned", lacks=(word,)) for word in ("sync", "aligned")
)


def group(call: Call) -> int | None:
    """1 or 2 for .cta_group::N."""
    word = call.word("cta_group")
    return int(word[-1]) if word else None


def ctas(call: Call) -> tuple[int, ...]:
    """The CTAs whose tensor memory and shared memory the instruction works on, the executing one first."""
    return pair(call) if group(call) == 2 else (call.place.cta,)


def tensor(call: Call, operand: Operand, count: int = 1) -> Expr:
    """The address of `count` elements of tensor memory at an operand in brackets."""
    address, variable, offset, symbol = memory_base(call, operand, Space.TENSOR)
    if variable is None:
        return address
    root = call.root(variable)
    if root.space is not Space.TENSOR:
        hint = f"declare it `.tensor .b32 {root.name};`"
        call.fail(f"'{root.name}' is not in tensor memory", operand, hint)
    if symbol is not None and symbol.cta not in (None, call.place.cta):
        call.fail(f"{call.head} reaches the tensor memory of its own CTA only", operand, f"write [{root.name}]")
    last, size = offset + count - 1, len(root.init)
    if offset < 0 or last >= size:
        call.fail(
            f"{call.head} accesses elements {offset} to {last} of '{root.name}', which has {size}",
            operand,
            f"declare it `.tensor .b32 {root.name}[{last + 1}];`; an address counts elements here",
        )
    return address


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


def there(call: Call, address: Expr, cta: int) -> Expr:
    """The same address in another CTA of the pair."""
    if cta == call.place.cta:
        return address
    return in_cta(call, address, cta) or address


def event(call: Call, *tags: str) -> Event:
    """A tcgen05 event of the instruction's CTA group; it goes through no proxy."""
    return Event(frozenset(("TCGEN", *tags)), unit=group(call))


def in_tensor_memory(call: Call, side: str, *tags: str, form: str | None = None) -> Event:
    """An asynchronous access to tensor memory."""
    return replace(event(call, side, "M", "TMEM", "WEAK", "ASYNC", *tags), form=form)


def in_shared_memory(call: Call, *tags: str) -> Event:
    """An asynchronous read of a shared-memory operand, through the async proxy."""
    made = event(call, "R", "M", "SMEM", "WEAK", "ASYNC", "ASY", *tags)
    return replace(made, proxy=Proxy.ASYNC)


def tracked(call: Call, name: str) -> frozenset[str]:
    """The names by which commits find the parts of an mma, cp or shift."""
    return frozenset({f"tcgen05.{name}", f"tcgen05.cta_group::{group(call)}"})


def shared_read(call: Call, address: Expr, register: str, *tags: str) -> Part:
    """A shared-memory operand, read into a temporary."""
    return Part("read", address, in_shared_memory(call, *tags), register, track=tracked(call, tags[0].lower()))


def is_tensor_operand(operand: Operand) -> bool:
    """Is this operand written as memory, in brackets?"""
    return isinstance(operand, Mem)


def next_element(address: Expr) -> Expr:
    """The element behind."""
    return shifted(address, 1)
