"""Rows of the table: multimem.ld_reduce, multimem.st and multimem.red.

In: a Call. Out: one instruction with an access for each variable that the multimem address points to; between these
there is no order. Settled here: what is combined. The address is a virtual address of its own, other than those of the
variables ("Multimem Addresses").
"""

from __future__ import annotations

from memmodel.base.labels import Family, Side
from memmodel.isa.call import Call
from memmodel.isa.place import memory_base
from memmodel.isa.row import Need, Row, Rule, Since, Slot, scope_slot, types_by_operation
from memmodel.isa.synchronization.atomic import HALVES, NO_FLOATS
from memmodel.program.expressions import Apply, Expr, Get
from memmodel.program.ops import Assign, Op, Read, Write
from memmodel.program.regions import Multimem
from memmodel.ptx.operands import Operand
from memmodel.ptx.vocabulary import Scope, Sem, Space

SEMANTICS = {"weak": Sem.WEAK, "relaxed": Sem.RELAXED, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE}
TYPES = ("b32", "b64", "u32", "u64", "s32", "s64")
BY_OPERATION = {"add": "u32|u64|s32", "and|or|xor": "b32|b64", "min|max": "u32|s32|u64|s64"}
_PAGE = "Data Movement and Conversion Instructions: multimem.ld_reduce, multimem.st, multimem.red"


def load(call: Call) -> tuple[Op, ...]:
    """multimem.ld_reduce: the values of all variables, combined."""
    target = call.register(call.operands[0])
    region, count = _region(call, call.operands[1])
    sem = SEMANTICS[call.word("sem") or "weak"]
    each = tuple(f"${k}" for k in range(count))
    result: Expr = Get(each[0])
    for one in each[1:]:
        result = Apply(call.word("op") or "", (result, Get(one)), call.type)
    return (
        Read(each, region, call.access(Side.READ, sem, call.scope), call.given_type),
        Assign(target, call.reduced(result)),
    )


def store(call: Call) -> tuple[Op, ...]:
    """multimem.st: the value, to all variables."""
    region, count = _region(call, call.operands[0])
    value = call.reduced(call.value(call.operands[1]))
    label = call.access(Side.WRITE, SEMANTICS[call.word("sem") or "weak"], call.scope)
    return (Write((value,) * count, region, label),)


def reduce(call: Call) -> tuple[Op, ...]:
    """multimem.red: an atomic update of each variable, whose old value is not returned."""
    region, count = _region(call, call.operands[0])
    given, scope = call.reduced(call.value(call.operands[1])), call.scope or Scope.SYS
    halves = HALVES[call.word("sem") or "relaxed"]
    read, write = (
        call.access(side, sem, scope, family=Family.RED, rmw=True)
        for side, sem in zip((Side.READ, Side.WRITE), halves, strict=True)
    )
    each = tuple(f"${k}" for k in range(count))
    values = tuple(Apply(call.word("op") or "", (Get(one), given), call.type) for one in each)
    return (Read(each, region, read, call.given_type), Write(values, region, write, rmw=True))


def _region(call: Call, operand: Operand) -> tuple[Multimem, int]:
    """The memory behind a multimem address, and how many variables that is: as many for each such address."""
    address, variable, _, _ = memory_base(call, operand, Space.GLOBAL)
    declared = next((one for one in call.context.variables.values() if one.multimem), None)
    if declared is None or (variable is not None and not variable.multimem):
        name = "m" if variable is None else variable.name
        hint = "declare one: `.global .u32 m = multimem(x, y);` points to x and y"
        message = f"'{name}' is not a multimem address" if variable else "no multimem address is declared"
        call.fail(message, operand, hint)
    return Multimem(address, (call.width or 32) // 8), len(declared.multimem)


def _row(
    head: str,
    words: tuple[str, ...],
    operands: tuple[str, str],
    events: str,
    rules: tuple[Rule, ...],
    *,
    op: bool = True,
) -> Row:
    return Row(
        (f"multimem.{head}",),
        (
            Slot("sem", words, "memory semantics"),
            scope_slot(),
            Slot("space", ("global",), "state space"),
            *(
                (Slot("op", tuple(word for ops in BY_OPERATION for word in ops.split("|")), "operation", Need.ALWAYS),)
                if op
                else ()
            ),
            Slot("type", TYPES, "type", Need.ALWAYS, NO_FLOATS),
        ),
        operands,
        {"ld_reduce": load, "st": store, "red": reduce}[head],
        events,
        _PAGE,
        rules=(*rules, *(types_by_operation(BY_OPERATION, TYPES) if op else ())),
        since=Since(90),
    )


_SCOPES = tuple(
    Rule("{head}.{sem} needs a scope", "write {head}.{sem}.sys, or another scope", f"sem={word} !scope")
    for word in ("relaxed", "acquire", "release")
)
_WEAK = (
    Rule("{head}.weak takes no scope", "drop .{scope}", "sem=weak scope"),
    Rule(
        "{head} without semantics is weak, and takes no scope",
        "write {head}.relaxed.{scope}, or drop .{scope}",
        "!sem scope",
    ),
)
_OF_EACH = "of each variable that the multimem address points to, through that address"

ROWS = (
    _row(
        "ld_reduce",
        ("weak", "relaxed", "acquire"),
        ("d", "[a]"),
        f"a read {_OF_EACH}, weak unless it says otherwise; d is what they give together",
        (*_SCOPES[:2], *_WEAK),
    ),
    _row(
        "st",
        ("weak", "relaxed", "release"),
        ("[a]", "b"),
        f"a write {_OF_EACH}, weak unless it says otherwise",
        (_SCOPES[0], _SCOPES[2], *_WEAK),
        op=False,
    ),
    _row(
        "red",
        ("relaxed", "release"),
        ("[a]", "b"),
        f"as red, {_OF_EACH}; .relaxed and .sys unless it says otherwise",
        (),
    ),
)
