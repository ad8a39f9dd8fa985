"""Rows of the table: calls of functions, and the stack of a thread. Compiled modules only.

In: a Call. Out: the function that is called and the variables of its arguments, or a step on the stack.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import needed, optional
from memmodel.program.warp_ops import CallFunction, OnStack, WarpOp
from memmodel.ptx.operands import Arguments, Imm, Operand, Register, Sym, describe

ALIGNMENT, MOST_ALIGNMENT = 8, 1 << 23
"""Bytes to which alloca aligns memory if it says nothing, and at most ("alloca")."""


def call_function(call: Call) -> tuple[WarpOp, ...]:
    """call: of a function by its name, or by its address, followed by a prototype or a list of functions."""
    operands = list(call.operands)
    results = _variables(call, operands.pop(0)) if isinstance(operands[0], Arguments) else ()
    function = operands.pop(0) if operands else None
    arguments = _variables(call, operands[0]) if operands and isinstance(operands[0], Arguments) else ()
    if isinstance(function, Register):
        return (CallFunction("", call.source(function, ADDRESS), arguments, results),)
    if not isinstance(function, Sym):
        call.fail("call takes the name of a function, or a register with its address")
    return (CallFunction(function.name, None, arguments, results),)


def _variables(call: Call, listed: Operand) -> tuple[str, ...]:
    """The variables that hold the arguments of a call, or receive its results."""
    names = []
    for argument in listed.items if isinstance(listed, Arguments) else ():
        if not isinstance(argument, Sym):
            call.fail(
                f"only variables in .param are known as arguments of a call, and this is {describe(argument)}", argument
            )
        names.append(argument.name)
    return tuple(names)


def take(call: Call) -> tuple[WarpOp, ...]:
    """alloca: memory from the stack."""
    alignment = call.operands[2] if len(call.operands) > 2 else Imm(ALIGNMENT)
    if not isinstance(alignment, Imm) or not 0 < alignment.value <= MOST_ALIGNMENT or alignment.value.bit_count() > 1:
        call.fail(f"an alignment is a power of 2 up to {MOST_ALIGNMENT}, and this is {describe(alignment)}", alignment)
    target, size = call.target(call.operands[0], call.type), call.source(call.operands[1], call.type)
    return (OnStack(target, size=size, alignment=max(alignment.value, ALIGNMENT)),)


def save(call: Call) -> tuple[WarpOp, ...]:
    """stacksave: where the stack ends."""
    return (OnStack(call.target(call.operands[0], call.type)),)


def restore(call: Call) -> tuple[WarpOp, ...]:
    """stackrestore: the stack ends there again."""
    return (OnStack(None, end=call.source(call.operands[0], call.type)),)


def _stack(head: str, operands: tuple[str, ...], lower: Callable[[Call], tuple[WarpOp, ...]], results: int) -> Row:
    return Row(
        (head,),
        (needed("type", "u32", "u64"),),
        operands,
        None,
        "none",
        f"Stack Manipulation Instructions: {head}",
        since=Since(52, "7.3"),
        lower_module=lower,
        results=results,
    )


ROWS = (
    Row(
        ("call",),
        (optional("uni"),),
        ("(ret-param)?", "func", "(param-list)?", "prototype?"),
        None,
        "none",
        "Control Flow Instructions: call",
        since=FIRST,
        written="{(ret-param), }func{, (param-list)}{, prototype}",
        lower_module=call_function,
        results=0,
        effect=Effect.CONTROL,
    ),
    _stack("alloca", ("ptr", "size", "immAlign?"), take, 1),
    _stack("stacksave", ("d",), save, 1),
    _stack("stackrestore", ("a",), restore, 0),
)
