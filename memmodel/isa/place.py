"""Addresses that asynchronous instructions need: mbarrier objects, shared memory of other CTAs, CTA masks, peers.

In: a Call and an operand. Out: address expressions, checked as far as they are written out. Settled here: what lies in
which CTA. Instances of one variable in neighbouring CTAs (in `memory.cta_places` order) lie `memory.STRIDE` apart, so
that an address in a register can be mapped to another CTA by adding.
"""

from __future__ import annotations

from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.memory import STRIDE, cta_places, element_bytes
from memmodel.isa.ops import AddressOf, Apply, Const, Expr
from memmodel.litmus.syntax import Imm, Mem, Operand, Reg, Sym, Variable
from memmodel.ptx import Place, Space

CTAS = 16
"""A CTA mask has 16 bits."""


Base = tuple[Expr, Variable | None, int, Sym | None]
"""The address at a memory operand, the variable it names (None for a register), the offset, the name."""


def memory_base(call: Call, operand: Operand, space: Space | None = None) -> Base:
    """A memory operand taken apart.

    Raises InputError if it is no memory operand, or names a variable of another state space than `space`.
    """
    if not isinstance(operand, Mem):
        call.no_memory(operand)
    if isinstance(operand.base, Reg):
        return shifted(call.value(operand.base), operand.offset), None, operand.offset, None
    variable = call.variable(operand.base)
    root = call.root(variable)
    if space is not None and root.space not in (Space.GENERIC, space):
        call.fail(f"'{variable.name}' is a .{root.space.value} variable, not .{space.value}", operand)
    return call.address_of(operand.base, operand.offset), variable, operand.offset, operand.base


def shifted(address: Expr, offset: int) -> Expr:
    """An address plus a number of bytes."""
    if offset == 0:
        return address
    if isinstance(address, AddressOf):
        return AddressOf(address.name, address.offset + offset, address.cta)
    if isinstance(address, Apply) and address.op == "add" and isinstance(address.args[1], Const):
        return Apply("add", (address.args[0], Const(address.args[1].value + offset)), ADDRESS)
    return Apply("add", (address, Const(offset)), ADDRESS)


def mbarrier(call: Call, operand: Operand, *, own: bool = False) -> Expr:
    """The address of an mbarrier object; `own`: it must be in the executing CTA."""
    address, variable, offset, symbol = memory_base(call, operand, Space.SHARED)
    if variable is None or symbol is None:
        return address
    root = call.root(variable)
    size = element_bytes(root)
    if size != 8:
        call.fail(
            f"'{variable.name}' is no mbarrier object, which is 8 bytes of shared memory",
            operand,
            f"declare it `.shared .align 8 .b64 {variable.name};`",
        )
    if offset % 8 or not 0 <= offset < size * len(root.init):
        call.fail(f"no mbarrier object lies at byte {offset} of '{variable.name}'", operand)
    if own and symbol.cta not in (None, call.place.cta):
        call.fail(
            f"{call.head} works on mbarrier objects of its own CTA, and '{variable.name}@cta{symbol.cta}' is remote",
            operand,
            "arrive, expect_tx and complete_tx may be remote; let a thread of that CTA do the rest",
        )
    return address


def smem(call: Call, operand: Operand) -> tuple[str, ...]:
    """("SMEM",) if a memory operand is known to be in shared memory, by its name or by the state space written."""
    base = operand.base if isinstance(operand, Mem) else operand
    if isinstance(base, Sym):
        variable = call.context.variables.get(base.name)
        return ("SMEM",) if variable is not None and call.root(variable).space is Space.SHARED else ()
    return ("SMEM",) if (call.word("space") or "").startswith("shared") else ()


def in_cta(call: Call, address: Expr, cta: int) -> Expr | None:
    """The same address in the CTA of that number in the executing thread's cluster; None if the test has none."""
    places = cta_places(call.context.test)
    target = _index(places, call.place, cta)
    if target is None:
        return None
    if isinstance(address, AddressOf):
        return AddressOf(address.name, address.offset, cta)
    own = [place.cta_id for place in places].index(call.place.cta_id)
    return shifted(address, (target - own) * STRIDE)


def _index(places: tuple[Place, ...], here: Place, cta: int) -> int | None:
    return next((i for i, p in enumerate(places) if p.cta == cta and p.cluster_id == here.cluster_id), None)


def mask(call: Call, operand: Operand) -> tuple[int, ...]:
    """The CTAs in a mask that is written out. Raises InputError if it is empty or names a CTA without threads."""
    value = call.constant(operand)
    if value is None:
        hint = "write it out, or assign it once with mov: mov.b16 %m, 3;"
        call.fail(f"{call.head} needs a CTA mask that is known before the test runs", operand, hint)
    if not 0 < value < 1 << CTAS:
        call.fail(f"a CTA mask is a 16-bit number with a bit for each CTA, not {value}", operand)
    ctas = tuple(cta for cta in range(CTAS) if value >> cta & 1)
    for cta in ctas:
        if _index(cta_places(call.context.test), call.place, cta) is None:
            call.fail(f"the mask names CTA {cta}, which has no thread in this cluster", operand)
    return ctas


def pair(call: Call) -> tuple[int, ...]:
    """The CTAs of the executing thread's CTA pair that the test has, its own first ("CTA Pair")."""
    own = call.place.cta
    there = _index(cta_places(call.context.test), call.place, own ^ 1) is not None
    return (own, own ^ 1) if there and call.place.cluster is not None else (own,)


def count_operand(call: Call, operand: Operand, least: int, most: int, what: str) -> Expr:
    """A number or register; a number is checked against its range."""
    if isinstance(operand, Imm) and not least <= operand.value <= most:
        call.fail(f"{what} is a number from {least} to {most}, not {operand.value}", operand)
    return call.integer(operand)
