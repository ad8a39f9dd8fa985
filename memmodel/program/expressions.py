"""Expressions of lowered tests: integers, registers, addresses and pure operations on them.

In: nothing. Out: `Expr`. Registers are strings; names that begin with `$` are temporaries of one instruction, and names
with a `#` are notes that an instruction leaves for later ones. Values are Python integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memmodel.ptx.vocabulary import DataType


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
    """A pure operation of `program.arith` on integers, its result reduced to `type`."""

    op: str
    args: tuple[Expr, ...]
    type: DataType


Expr = Const | Get | AddressOf | Apply


WITHIN = "in "
"""How the operation of an address begins that is relative to the window of a state space."""


def opaque(what: str, type: DataType, *args: Expr) -> Apply:
    """A value that is not followed; `what` says of which instruction."""
    return Apply(f"opaque.{what}", args, type)


def stripped(expr: Expr) -> Expr:
    """An expression without the name of the state space that it is relative to."""
    while isinstance(expr, Apply) and expr.op.startswith(WITHIN):
        expr = expr.args[0]
    return expr


def space_named(expr: Expr) -> str | None:
    """The state space that an address is relative to; None for a generic one."""
    return expr.op.removeprefix(WITHIN) if isinstance(expr, Apply) and expr.op.startswith(WITHIN) else None


def registers_of(expr: Expr) -> frozenset[str]:
    """The registers that an expression reads."""
    if isinstance(expr, Get):
        return frozenset((expr.register,))
    if isinstance(expr, Apply):
        return frozenset().union(*(registers_of(arg) for arg in expr.args))
    return frozenset()


def leaves_of(expr: Expr) -> Iterator[Const | Get | AddressOf]:
    """The constants, registers and names in an expression."""
    if isinstance(expr, Apply):
        for arg in expr.args:
            yield from leaves_of(arg)
    else:
        yield expr


def substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with registers replaced by what they hold."""
    if isinstance(expr, Get):
        return values.get(expr.register, expr)
    if isinstance(expr, Apply):
        return Apply(expr.op, tuple(substituted(arg, values) for arg in expr.args), expr.type)
    return expr
