"""States of mbarrier objects: the opaque number that an arrive returns, which may pass through registers and memory.

In: a Call. Out: steps that put a state together after an arrive, and take it apart in a test or a query. A state names
its object by the address, the life and the phase, the arrivals that were pending (if the test asks for any), and
whether an arrive with .noComplete made it. Settled here: which states an instruction may be given
("mbarrier.test_wait", "mbarrier.pending_count"); another one is undefined, and then counts as a state of that phase.
A compiled module has longer lives, and how many arrivals were pending depends on the schedule there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memmodel.base.lives import KERNEL_PHASE_BITS, LIFE_BITS
from memmodel.isa.call import Call
from memmodel.isa.place import rank_of
from memmodel.litmus.constants import instructions
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign, OnObject, Op, UndefinedIf
from memmodel.program.warp_ops import Forget, WarpOp
from memmodel.ptx.vocabulary import U64, Space

PHASE, PENDING = "$phase", "$pending"


@dataclass(frozen=True, slots=True)
class StateLayout:
    """The bits of a state, from the lowest: the life and phase, the pending arrivals, whether it may be asked for
    these, and the address of the object.
    """

    phase: int
    pending: int

    @property
    def queried(self) -> int:
        """The bit which says that an arrive with .noComplete made the state."""
        return self.phase + self.pending

    @property
    def object(self) -> int:
        """The lowest bit of the address."""
        return self.queried + 1


LITMUS = StateLayout(2 * LIFE_BITS, 20)
MODULE = StateLayout(KERNEL_PHASE_BITS + 12, 0)

_ALIGNMENT = 3
"""Low bits of an object's address that are 0."""


def _layout(call: Call) -> StateLayout:
    return MODULE if call.in_module else LITMUS


def returning(call: Call, step: OnObject, state: str | None) -> tuple[Op, ...]:
    """An arrive, and the state that it leaves in a register."""
    if state is None:
        return (step,)
    address, layout = step.region.address, _layout(call)
    value = Apply("or", (Get(PHASE), Apply("shl", (_object(call, address), Const(layout.object)), U64)), U64)
    asked = _asked(call)
    if asked:
        value = Apply("or", (value, Apply("shl", (Get(PENDING), Const(layout.phase)), U64)), U64)
    if step.no_complete:
        value = Apply("or", (value, Const(1 << layout.queried)), U64)
    arrive = replace(step, register=PHASE, pending=PENDING if asked else None)
    return (*_elsewhere(call, address), arrive, Assign(state, value))


def _elsewhere(call: Call, address: Expr) -> tuple[Op, ...]:
    """The step that finds a state asked from another CTA's object; a name was checked when it was read."""
    named = address.args[0] if isinstance(address, Apply) else address
    if isinstance(named, AddressOf):
        return ()
    elsewhere = Apply("ne", (rank_of(call, address), call.own_rank), U64)
    return (UndefinedIf(f"{call.head} returns no state from another CTA's object", elsewhere),)


def phase_of(call: Call, state: Expr) -> Expr:
    """The life and the phase of a state, as one number."""
    return Apply("and", (state, Const((1 << _layout(call).phase) - 1)), U64)


def belongs(call: Call, state: Expr, address: Expr) -> tuple[Op, ...]:
    """The step that finds a state which does not belong to the object at an address."""
    object_at = Const(_layout(call).object)
    other = Apply("ne", (Apply("shr", (state, object_at), U64), _object(call, address)), U64)
    return (UndefinedIf("the state was returned by no arrive on this object", other),)


def pending(call: Call, state: Expr) -> tuple[Op, ...]:
    """mbarrier.pending_count: what was pending before the arrive that made the state."""
    count = Apply("shr", (state, Const(LITMUS.phase)), U64)
    count = Apply("and", (count, Const((1 << LITMUS.pending) - 1)), U64)
    return (_queried(call, state), *call.assign(call.operands[0], count))


def pending_in_module(call: Call, state: Expr) -> tuple[Op | WarpOp, ...]:
    """The same in a module: the order of arrivals decides the count, and a run is to speak for all orders."""
    return (_queried(call, state), Forget((call.register(call.operands[0]),)))


def _queried(call: Call, state: Expr) -> UndefinedIf:
    """The step that finds a state which may not be asked for a pending count."""
    queried = Apply("and", (state, Const(1 << _layout(call).queried)), U64)
    rule = "mbarrier.pending_count takes the state of an arrive with .noComplete"
    return UndefinedIf(rule, Apply("eq", (queried, Const(0)), U64))


def _asked(call: Call) -> bool:
    """True if a thread of the test asks for a pending count."""
    if call.in_module:
        return False
    threads = call.context.test.threads
    return any(
        instruction.mnemonic.startswith("mbarrier.pending_count")
        for thread in threads
        for instruction in instructions(thread)
    )


def _object(call: Call, address: Expr) -> Expr:
    """What a state says of its object: the low bits of its address, by whatever name it is reached."""
    number = Apply("shr", (_own_name(call, address), Const(_ALIGNMENT)), U64)
    return Apply("and", (number, Const((1 << 64 - _layout(call).object) - 1)), U64)


def _own_name(call: Call, address: Expr) -> Expr:
    """The address of an object in this CTA through the name that is no alias."""
    if call.in_module:
        return address
    space = call.context.space
    for variable in call.context.test.variables:
        root = call.root(variable)
        base, own = (space.address(name, 0, call.place) for name in (variable.name, root.name))
        if root.space is not Space.SHARED or root is variable or base is None or own is None:
            continue
        offset = Apply("sub", (address, Const(base)), U64)
        inside = Apply("lt", (offset, Const(space.size(variable.name))), U64)
        address = Apply("selp", (Apply("add", (offset, Const(own)), U64), address, inside), U64)
    return address
