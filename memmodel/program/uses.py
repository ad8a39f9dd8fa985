"""What a step reads and assigns: the expressions and registers in it.

In: an op or a step, or a test. Out: expressions, register names, constants. Temporaries of one instruction (`$…`) never
outlive it.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.base.labels import FABRIC, Allocates
from memmodel.litmus.syntax import Number, terms_of
from memmodel.program.expressions import AddressOf, Const, Expr, leaves_of, registers_of, substituted
from memmodel.program.lowered import LoweredTest, Step
from memmodel.program.ops import (
    Assign,
    AsyncRead,
    AsyncWrite,
    AtBarrier,
    Combine,
    Decide,
    Emit,
    IssueAsync,
    Jump,
    OnObject,
    Op,
    Part,
    Read,
    Scatter,
    SignalPart,
    UndefinedIf,
    Unmodelled,
    Update,
    WaitForGroups,
    Write,
)
from memmodel.program.regions import region_exprs


def expressions(op: Op) -> tuple[Expr, ...]:
    """The expressions that a step evaluates, those of its regions included."""
    exprs: tuple[Expr | None, ...] = ()
    match op:
        case Assign(_, value) | Combine(_, _, value):
            exprs = (value,)
        case UndefinedIf(_, when) | Unmodelled(_, when) | Jump(_, when) | Decide(_, when):
            exprs = (when,)
        case Read(_, region):
            exprs = region_exprs(region)
        case Write(values, region, _, when):
            exprs = (*values, *region_exprs(region), when)
        case Emit(_, address):
            exprs = (address,)
        case AtBarrier(_, key, count):
            exprs = (*key, count)
        case WaitForGroups(_, _, pending):
            exprs = (pending,)
        case OnObject():
            exprs = (*region_exprs(op.region), op.count, op.bytes, op.parity, op.state, op.when)
        case IssueAsync(_, parts):
            exprs = tuple(expr for part in parts for expr in part_expressions(part))
        case _:
            pass
    return tuple(expr for expr in exprs if expr is not None)


def part_expressions(part: Part) -> tuple[Expr, ...]:
    """The expressions of one part of an asynchronous instruction."""
    exprs: tuple[Expr | None, ...]
    match part:
        case Scatter(when=when) | Update(when=when):
            exprs = (*region_exprs(part.region), when)
        case AsyncWrite(_, region, values, adds_if=condition, when=when):
            exprs = (*region_exprs(region), *values, condition, when)
        case SignalPart(_, region, size, when=when, failed=failed):
            exprs = (*region_exprs(region), size, when, failed)
        case _:
            exprs = region_exprs(part.region)
    return tuple(expr for expr in exprs if expr is not None)


def assigned(op: Op) -> tuple[str, ...]:
    """The registers that a step assigns."""
    names: tuple[str | None, ...] = ()
    match op:
        case Assign(register) | Combine(register) | Decide(register):
            names = (register,)
        case Read(registers):
            names = registers
        case OnObject():
            names = (op.register, op.pending, op.report)
        case IssueAsync(_, parts):
            names = tuple(name for part in parts if isinstance(part, AsyncRead) for name in part.registers)
        case _:
            pass
    return tuple(name for name in names if name is not None)


def marks_ends(lowered: LoweredTest) -> bool:
    """True if the ends of threads are events: something has to be done before them."""
    ops = [step.op for program in lowered.programs for step in program.steps]
    return any(
        (isinstance(op, Emit) and isinstance(op.label, Allocates))
        or (isinstance(op, IssueAsync) and op.label.family in FABRIC)
        for op in ops
    )


def results_of(ops: Iterable[object]) -> dict[str, Expr]:
    """What registers hold after some assignments, of what they held before; notes too, but no temporaries."""
    values: dict[str, Expr] = {}
    for op in ops:
        if isinstance(op, Assign):
            values[op.register] = substituted(op.value, values)
    return {register: expr for register, expr in values.items() if register[0] != "$"}


def used(step: Step) -> frozenset[str]:
    """The registers that a step reads, its guard included."""
    names = frozenset[str]().union(*(registers_of(expr) for expr in expressions(step.op)))
    return names if step.guard is None else names | {step.guard.register}


def is_hidden(register: str) -> bool:
    """True for a temporary of one instruction or a note beside one, which is no register of the program."""
    return register.startswith("$") or "#" in register


def constants(lowered: LoweredTest) -> frozenset[int]:
    """The numbers and addresses that the programs of a test name."""
    numbers: set[int | None] = set()
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        for expr in (expr for step in program.steps for expr in expressions(step.op)):
            for leaf in leaves_of(expr):
                if isinstance(leaf, Const):
                    numbers.add(leaf.value)
                elif isinstance(leaf, AddressOf):
                    numbers.add(lowered.space.address(leaf.name, leaf.offset, thread.place, leaf.cta))
    return frozenset(number for number in numbers if number is not None)


def asked_constants(lowered: LoweredTest) -> frozenset[int]:
    """The numbers that the condition of a test names."""
    return frozenset(term.value for term in terms_of(lowered.test.condition) if isinstance(term, Number))
