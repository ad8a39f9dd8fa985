"""States of mbarrier objects: the opaque number that an arrive returns, which may pass through registers and memory.

In: a Call. Out: steps that put a state together after an arrive, and take it apart in a test or a query. A state names
its object by the address, the life and the phase, the arrivals that were pending (if the test asks for any), and
whether an arrive with .noComplete made it. Settled here: which states an instruction may be given
("mbarrier.test_wait", "mbarrier.pending_count"); another one is undefined, and then counts as a state of that phase.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.base.lives import LIFE_BITS
from memmodel.isa.call import Call
from memmodel.isa.place import U64, rank_of
from memmodel.litmus.constants import instructions
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign, OnObject, Op, UndefinedIf
from memmodel.ptx.vocabulary import Space

PHASE_BITS = 2 * LIFE_BITS
PENDING_BITS = 20
PHASE, PENDING = "$phase", "$pending"

_QUERIED_AT = PHASE_BITS + PENDING_BITS
_OBJECT_AT = _QUERIED_AT + 1
_OBJECT_BITS = 64 - _OBJECT_AT
_ALIGNMENT = 3
"""Low bits of an object's address that are 0."""


def returning(call: Call, step: OnObject, state: str | None) -> tuple[Op, ...]:
    """An arrive, and the state that it leaves in a register."""
    if state is None:
        return (step,)
    address = step.region.address
    made = Apply("or", (Get(PHASE), Apply("shl", (_object(call, address), Const(_OBJECT_AT)), U64)), U64)
    asked = _asked(call)
    if asked:
        made = Apply("or", (made, Apply("shl", (Get(PENDING), Const(PHASE_BITS)), U64)), U64)
    if step.no_complete:
        made = Apply("or", (made, Const(1 << _QUERIED_AT)), U64)
    arrive = replace(step, register=PHASE, pending=PENDING if asked else None)
    return (*_elsewhere(call, address), arrive, Assign(state, made))


def _elsewhere(call: Call, address: Expr) -> tuple[Op, ...]:
    """The step that finds a state asked from another CTA's object; a name was checked when it was read."""
    if isinstance(address, AddressOf):
        return ()
    elsewhere = Apply("ne", (rank_of(call, address), Const(call.place.rank)), U64)
    return (UndefinedIf(f"{call.head} returns no state from another CTA's object", elsewhere),)


def phase_of(state: Expr) -> Expr:
    """The life and the phase of a state, as one number."""
    return Apply("and", (state, Const((1 << PHASE_BITS) - 1)), U64)


def belongs(call: Call, state: Expr, address: Expr) -> tuple[Op, ...]:
    """The step that finds a state which is none of the object at an address."""
    other = Apply("ne", (Apply("shr", (state, Const(_OBJECT_AT)), U64), _object(call, address)), U64)
    return (UndefinedIf("the state was returned by no arrive on this object", other),)


def pending(call: Call, state: Expr) -> tuple[Op, ...]:
    """mbarrier.pending_count: what was pending before the arrive that made the state."""
    count = Apply("shr", (state, Const(PHASE_BITS)), U64)
    count = Apply("and", (count, Const((1 << PENDING_BITS) - 1)), U64)
    queried = Apply("and", (state, Const(1 << _QUERIED_AT)), U64)
    wrong = Apply("eq", (queried, Const(0)), U64)
    step = UndefinedIf("mbarrier.pending_count takes the state of an arrive with .noComplete", wrong)
    return (step, Assign(call.register(call.operands[0]), count))


def _asked(call: Call) -> bool:
    """Does a thread ask for a pending count?"""
    threads = call.context.test.threads
    return any(one.mnemonic.startswith("mbarrier.pending_count") for thread in threads for one in instructions(thread))


def _object(call: Call, address: Expr) -> Expr:
    """What a state says of its object: the low bits of its address, by whatever name it is reached."""
    number = Apply("shr", (_own_name(call, address), Const(_ALIGNMENT)), U64)
    return Apply("and", (number, Const((1 << _OBJECT_BITS) - 1)), U64)


def _own_name(call: Call, address: Expr) -> Expr:
    """The address of an object in this CTA through the name that is no alias."""
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
