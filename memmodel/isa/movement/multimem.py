"""Rows of the table: multimem.ld_reduce, multimem.st and multimem.red.

In: a Call. Out: steps with an unordered access for each variable that the multimem address points to. Settled here: how
the values are combined. The multimem address is a virtual address that differs from those of the variables ("Multimem
Addresses"). In a module the launch says what it points to. Other devices write there too, so the values are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Family, Side
from memmodel.isa.call import Call
from memmodel.isa.place import memory_base
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional, scope_slot
from memmodel.isa.rows.types import numeric_type, types_by_operation
from memmodel.isa.synchronization.atomic import HALVES, NO_FLOATS
from memmodel.program.expressions import Apply, Expr, Get
from memmodel.program.ops import Assign, Op, Read, Write
from memmodel.program.regions import Elements, Multimem
from memmodel.program.warp_ops import AccessReplicas, WarpOp
from memmodel.ptx.operands import Operand
from memmodel.ptx.targets import FAMILIES, FAMILY_100
from memmodel.ptx.vocabulary import Scope, Sem, Space, Window

SEMANTICS = {"weak": Sem.WEAK, "relaxed": Sem.RELAXED, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE}
TYPES = ("b32", "b64", "u32", "u64", "s32", "s64")
BY_OPERATION = {"add": "u32|u64|s32", "and|or|xor": "b32|b64", "min|max": "u32|s32|u64|s64"}
HALVES_OF_WORDS = ("f16", "f16x2", "bf16", "bf16x2")
FLOATS = (*HALVES_OF_WORDS, "f32", "f64")
EIGHT_BITS = {"e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "e4m3x4": 4, "e5m2x4": 4}
"""Bytes of types that only ld_reduce and st have."""

VECTORS = {
    "!vec": "f16x2|bf16x2|f32|f64|e5m2x4|e4m3x4",
    "vec=v2": "f16|f16x2|bf16|bf16x2|f32|e5m2x2|e5m2x4|e4m3x2|e4m3x4",
    "vec=v4": "f16|f16x2|bf16|bf16x2|f32|e5m2|e5m2x2|e5m2x4|e4m3|e4m3x2|e4m3x4",
    "vec=v8": "f16|bf16|e5m2|e4m3|e5m2x2|e4m3x2",
}
"""The floating-point types of vectors. Only modules have these types."""
_PAGE = "Data Movement and Conversion Instructions: multimem.ld_reduce, multimem.st, multimem.red"


def load(call: Call) -> tuple[Op, ...]:
    """multimem.ld_reduce: the values of all variables, combined."""
    target = call.register(call.operands[0])
    region, count = replicas(call, call.operands[1])
    label = _label(call, Side.READ)
    each = tuple(f"${k}" for k in range(count))
    result: Expr = Get(each[0])
    for register in each[1:]:
        result = Apply(call.word("op") or "", (result, Get(register)), call.type)
    return (Read(each, region, label, call.given_type), Assign(target, call.reduced(result)))


def store(call: Call) -> tuple[Op, ...]:
    """multimem.st: the value, to all variables."""
    region, count = replicas(call, call.operands[0])
    value = call.data(call.operands[1])
    return (Write((value,) * count, region, _label(call, Side.WRITE)),)


def reduce(call: Call) -> tuple[Op, ...]:
    """multimem.red: an atomic update of each variable, whose old value is not returned."""
    region, count = replicas(call, call.operands[0])
    operand = call.data(call.operands[1])
    read, write = _halves(call)
    each = tuple(f"${k}" for k in range(count))
    values = tuple(Apply(call.word("op") or "", (Get(register), operand), call.type) for register in each)
    return (Read(each, region, read, call.given_type), Write(values, region, write, rmw=True))


def _label(call: Call, side: Side) -> Access:
    return call.access(side, SEMANTICS[call.word("sem") or "weak"], call.scope)


def _halves(call: Call) -> tuple[Access, Access]:
    """The read and the write of a reduction."""
    read_sem, write_sem = HALVES[call.word("sem") or "relaxed"]
    scope = call.scope or Scope.SYS
    return (
        call.access(Side.READ, read_sem, scope, family=Family.RED, rmw=True),
        call.access(Side.WRITE, write_sem, scope, family=Family.RED, rmw=True),
    )


def load_in_module(call: Call) -> tuple[WarpOp, ...]:
    """multimem.ld_reduce in a module."""
    elements = call.vector(call.operands[0])
    registers = tuple(call.register(element) for element in elements)
    return (AccessReplicas((_label(call, Side.READ),), _elements(call, call.operands[1], len(elements)), registers),)


def store_in_module(call: Call) -> tuple[WarpOp, ...]:
    """multimem.st in a module."""
    return (AccessReplicas((_label(call, Side.WRITE),), _elements(call, call.operands[0], _values(call))),)


def reduce_in_module(call: Call) -> tuple[WarpOp, ...]:
    """multimem.red in a module."""
    return (AccessReplicas(_halves(call), _elements(call, call.operands[0], _values(call))),)


def _values(call: Call) -> int:
    """The number of values that are stored. Raises InputError if an element is not a value."""
    return len([call.value(element) for element in call.vector(call.operands[1])])


def _elements(call: Call, operand: Operand, count: int) -> Elements:
    """The bytes at a multimem address."""
    word = call.word("type") or ""
    type = numeric_type(word)
    size = EIGHT_BITS[word] if type is None else type.width // 8
    return Elements(call.location(operand), Window.GLOBAL, size, count)


def replicas(call: Call, operand: Operand) -> tuple[Multimem, int]:
    """The memory that a multimem address points to, and the number of its variables, which all such addresses share."""
    address, variable, _ = memory_base(call, operand, Space.GLOBAL)
    declared = next((variable for variable in call.context.variables.values() if variable.multimem), None)
    if declared is None or (variable is not None and not variable.multimem):
        name = "m" if variable is None else variable.name
        hint = "declare one: `.global .u32 m = multimem(x, y);` points to x and y"
        message = f"'{name}' is not a multimem address" if variable else "no multimem address is declared"
        call.fail(message, operand, hint)
    return Multimem(address, (call.width or 32) // 8), len(declared.multimem)


_EIGHT_BITS = f"type={either(EIGHT_BITS)}"
_EIGHT_BITS_SINCE = Since(version="8.6", families=FAMILY_100, alone=FAMILIES)


def _row(
    head: str,
    words: tuple[str, ...],
    operands: tuple[str, str],
    events: str,
    rules: tuple[Rule, ...],
    *,
    op: bool = True,
    floats: tuple[str, ...] = (*FLOATS, *EIGHT_BITS),
) -> Row:
    of_floats, slots = {"add": either(floats)}, list[Slot]()
    if op:
        slots.append(needed("op", *"|".join(BY_OPERATION).split("|")))
        if head == "ld_reduce":
            of_floats["min|max"] = either((*HALVES_OF_WORDS, *EIGHT_BITS))
            slots.append(optional("acc", modules=("acc::f32", "acc::f16")))
    lower, lower_module = {
        "ld_reduce": (load, load_in_module),
        "st": (store, store_in_module),
        "red": (reduce, reduce_in_module),
    }[head]
    return Row(
        (f"multimem.{head}",),
        (
            optional("sem", *words),
            scope_slot(),
            optional("space", "global"),
            *slots,
            optional("vec", modules=("v2", "v4", "v8")),
            needed("type", *TYPES, refused=NO_FLOATS, modules=floats),
        ),
        operands,
        lower,
        events,
        _PAGE,
        rules=(
            *rules,
            *(types_by_operation(BY_OPERATION, (*TYPES, *floats), modules=of_floats) if op else ()),
            Rule("{head}.{type} has no .{vec}", "write an instruction for each element", f"vec type={either(TYPES)}"),
            *_vector_rules(floats),
        ),
        since=Since(90, "8.1"),
        later={
            **({_EIGHT_BITS: _EIGHT_BITS_SINCE} if floats != FLOATS else {}),
            **({"acc=acc::f32": Since(90, "8.2"), "acc=acc::f16": Since(90, "8.6")} if head == "ld_reduce" else {}),
        },
        lower_module=lower_module,
    )


def _vector_rules(floats: tuple[str, ...]) -> Iterator[Rule]:
    """A vector has 32, 64 or 128 bits."""
    for case, types in VECTORS.items():
        others = either(word for word in floats if word not in types.split("|"))
        message = "{head}.{type} needs a vector qualifier" if case == "!vec" else "{head}.{vec} has no type .{type}"
        yield Rule(message, "the values have 32, 64 or 128 bits together", f"{case} type={others}")


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
_PRECISION = (
    Rule("{head}.{acc} is for types of 16 bits", "drop .{acc}", f"acc=acc::f32 type!={either(HALVES_OF_WORDS)}"),
    Rule("{head}.{acc} is for types of 8 bits", "drop .{acc}", f"acc=acc::f16 type!={either(EIGHT_BITS)}"),
)
_OF_EACH = "of each variable that the multimem address points to, through that address"

ROWS = (
    _row(
        "ld_reduce",
        ("weak", "relaxed", "acquire"),
        ("d", "[a]"),
        f"a read {_OF_EACH}, weak unless it says otherwise; d is what they give together",
        (*_SCOPES[:2], *_WEAK, *_PRECISION),
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
        floats=FLOATS,
    ),
)
