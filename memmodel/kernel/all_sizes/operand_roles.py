"""The numbers that an instruction uses beside computing results, each with what it is for.

In: an instruction of a module. Out: `uses_of`. Settled here: which numbers may change from CTA to CTA, or from round to
round, without another thing being done: places of accesses, and what is stored. All others say what is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache

from memmodel.base.words import WordList
from memmodel.isa.lowered import LoweredInstruction, registers
from memmodel.isa.rows.row import Effect
from memmodel.memory.tensormap import MAX_DIMENSIONS, insertion, size_field, stride_field
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get, registers_of
from memmodel.program.ops import Assign, AsyncWrite, Gather, IssueAsync, OnObject, Op, Part, Read, Write
from memmodel.program.regions import Box, Chunk, Elements
from memmodel.program.warp_ops import AccessTexture, AmongLanes, WarpOp
from memmodel.ptx.operands import Mem, TensorOperand
from memmodel.ptx.vocabulary import Window

SIZES = frozenset(insertion(field(axis)) for axis in range(MAX_DIMENSIONS) for field in (size_field, stride_field))
"""The operations that change a size or a stride of a tensor map."""


class OperandRole(WordList):
    """What a number is for."""

    PLACE = "the address at which elements are loaded or stored"
    SOURCE = "where a copy reads in global memory: an address, or the coordinates of a box"
    ADDRESS = "another address"
    VALUE = "what a register or memory receives"
    SIZE = "a size or a stride that a tensor map receives: it changes what lies where, and nothing else"
    COMBINED = "what an atomic operation combines with what memory holds"
    LANES = "what a lane gives to the other lanes of its warp"
    STATE = "a state of an mbarrier object, which a test asks for"
    SETTING = "what else says what is done: a condition, a size, a count, a parity, a barrier"


@dataclass(frozen=True, slots=True)
class OperandUse:
    """A number that an instruction uses. `slots`: the registers in it. `align`: an address is a multiple of it."""

    role: OperandRole
    expr: Expr
    slots: frozenset[int]
    align: int = 1


ADDRESSES = ("address", "coordinates", "offsets", "map", "accumulator")
"""Fields of steps and regions that say where something is."""


@lru_cache(maxsize=1 << 15)
def uses_of(does: LoweredInstruction) -> tuple[OperandUse, ...]:
    """The numbers that an instruction uses. Those of one that has no steps may all say what is done."""
    if not does.ops and (does.row is None or does.row.effect not in (Effect.COMPUTES, Effect.NOTHING)):
        return tuple(_by_operands(does))
    uses = [use for op in does.ops for use in _uses(op)]
    states = frozenset[int]().union(*(use.slots for use in uses if use.role is OperandRole.STATE))
    uses = [
        replace(use, role=OperandRole.STATE) if use.slots & states else use for use in uses
    ]  # it says of which object it is
    if any(isinstance(op, AccessTexture) for op in does.ops):  # the step does not say where
        uses += [_use(OperandRole.ADDRESS, Get(str(slot))) for slot in does.sources]
    return tuple(uses)


def _by_operands(does: LoweredInstruction) -> Iterator[OperandUse]:
    for operand in does.instruction.operands:
        role = OperandRole.ADDRESS if isinstance(operand, Mem | TensorOperand) else OperandRole.SETTING
        yield from (_use(role, Get(str(slot))) for slot in registers(operand) if slot in does.sources)


def _uses(op: Op | WarpOp) -> Iterator[OperandUse]:
    if isinstance(op, IssueAsync):
        for part in op.parts:
            yield from _of_part(part)
        return
    for field, expr in _numbers(op):
        role, align = OperandRole.ADDRESS if field in ADDRESSES else OperandRole.SETTING, 1
        match op, field:
            case ((Read() | Write()), "address") if isinstance(op.region, Elements) and not op.label.rmw:
                role, align = OperandRole.PLACE, (op.region.size or 1) * op.region.count
            case Write(rmw=True), ("values" | "when"):
                role = OperandRole.COMBINED
            case (Assign(), "value") | (Write(), "values"):
                role = OperandRole.SIZE if isinstance(expr, Apply) and expr.op in SIZES else OperandRole.VALUE
            case AmongLanes(), "values":
                role = OperandRole.LANES if expr is op.values[0] else OperandRole.SETTING
            case OnObject(), "state":
                role = OperandRole.STATE
            case _:
                pass
        yield _use(role, expr, align)


def _of_part(part: Part) -> Iterator[OperandUse]:
    for field, expr in _numbers(part):
        role, align = OperandRole.ADDRESS if field in ADDRESSES else OperandRole.SETTING, 1
        match part, field:
            case Gather(region=Box()), "coordinates":
                role = OperandRole.SOURCE
            case Gather(region=Chunk(window=Window.GLOBAL, align=align)), "address":
                role = OperandRole.SOURCE
            case AsyncWrite(), "values":
                role = OperandRole.VALUE
            case _:
                pass
        yield _use(role, expr, align)


def _use(role: OperandRole, expr: Expr, align: int = 1) -> OperandUse:
    return OperandUse(role, expr, slots_in(expr), align)


def slots_in(expr: Expr) -> frozenset[int]:
    """The registers in an expression, by their numbers."""
    return frozenset(int(name) for name in registers_of(expr) if name.isdigit())


def _numbers(step: object, field: str = "") -> Iterator[tuple[str, Expr]]:
    """The expressions in a step, each with the name of its field."""
    if isinstance(step, Const | Get | AddressOf | Apply):
        yield field, step
    elif isinstance(step, tuple):
        for element in step:
            yield from _numbers(element, field)
    elif is_dataclass(step):
        for inner in fields(step):
            yield from _numbers(getattr(step, inner.name), inner.name)
