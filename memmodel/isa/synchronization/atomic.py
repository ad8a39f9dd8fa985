"""Rows of the table: atom and red.

In: a Call. Out: a Read and a Write that are one operation (`rmw`). Settled here: which half has which semantics, and
which operation has which types. A red is an atom whose result no one can use; the tag RED lets a model tell them apart.
"""

from __future__ import annotations

from memmodel.base.labels import Family, Side
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.movement.access import CLUSTER_SINCE, NO_SC, SHARED
from memmodel.isa.place import writable
from memmodel.isa.row import Need, Row, Rule, Slot, scope_slot
from memmodel.program.expressions import Apply, Expr, Get
from memmodel.program.ops import Assign, Op, Read, Write
from memmodel.ptx.operands import Operand
from memmodel.ptx.vocabulary import Scope, Sem

HALVES = {
    "relaxed": (Sem.RELAXED, Sem.RELAXED),
    "acquire": (Sem.ACQUIRE, Sem.RELAXED),
    "release": (Sem.RELAXED, Sem.RELEASE),
    "acq_rel": (Sem.ACQUIRE, Sem.RELEASE),
}
"""Semantics of the read and of the write, by the semantics of the instruction."""

TYPES = {
    "add": ("u32", "s32", "u64"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
}
ALL_TYPES = ("b16", "b32", "b64", "b128", "u32", "u64", "s32", "s64")
NO_FLOATS = {
    word: ("floating-point atomics are not modelled", "use an integer type: the order of accesses is the same")
    for word in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "noftz")
}


def atom(call: Call) -> tuple[Op, ...]:
    """atom: the old value goes to the first operand (`_` drops it)."""
    _count(call, ("d", "[a]"))
    steps = _modify(call, call.operands[1], call.operands[2:], Family.ATOM)
    target = call.destination(call.operands[0], sink=True)
    return steps if target is None else (*steps, Assign(target, call.reduced(Get("$0"))))


def red(call: Call) -> tuple[Op, ...]:
    """red: as atom, the old value dropped."""
    _count(call, ("[a]",))
    return _modify(call, call.operands[0], call.operands[1:], Family.RED)


def _count(call: Call, before: tuple[str, ...]) -> None:
    names = (*before, "b", "c") if call.word("op") == "cas" else (*before, "b")
    hinted = call.word("hint") is not None
    if len(call.operands) != len(names) + hinted:
        names = (*names, "cache_policy") if hinted else names
        call.fail(f"{call.head}.{call.word('op')} takes {', '.join(names)}; {len(call.operands)} operands are given")


def _modify(call: Call, where: Operand, sources: tuple[Operand, ...], family: Family) -> tuple[Op, ...]:
    scope = call.scope or Scope.GPU
    read_sem, write_sem = HALVES[call.word("sem") or "relaxed"]
    read = call.access(Side.READ, read_sem, scope, family=family, rmw=True)
    write = call.access(Side.WRITE, write_sem, scope, family=family, rmw=True)
    region, old, given = call.elements(where), Get("$0"), call.reduced(call.value(sources[0]))
    when: Expr | None = None
    op = call.word("op") or ""
    if op == "cas":
        when, value = Apply("eq", (old, given), call.type), call.reduced(call.value(sources[1]))
    else:
        value = given if op == "exch" else Apply(op, (old, given), call.type)
    made = Read(("$0",), region, read, call.given_type), Write((value,), region, write, when, rmw=True)
    return (*writable(call, where), *made)


def _type_rules(ops: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            "{head}.{op} has no type .{type}",
            "it has " + " ".join(f".{word}" for word in TYPES[op]),
            {"op": (op,), "type": tuple(word for word in ALL_TYPES if word not in TYPES[op])},
            at="type",
        )
        for op in ops
    )


_REFUSED = {"sc": NO_SC, "weak": ("an atomic is never weak", "write .relaxed or nothing")}
_NO_SUB = {"sub": ("PTX has no {head}.sub", "add the negated value: neg.s32 %n, %v; and {head}.add")}
_SPACE = Slot("space", ("global", *SHARED), "state space")
_NEEDS = {**CLUSTER_SINCE, **dict.fromkeys(HALVES, 70), "cta": 60, "gpu": 60, "sys": 60, "L2::cache_hint": 80}


def _row(
    head: str,
    sems: tuple[str, ...],
    ops: tuple[str, ...],
    operands: tuple[str, ...],
    events: str,
    refused: dict[str, tuple[str, str]],
    columns: tuple[str, ...] = (),
) -> Row:
    return Row(
        heads=(head,),
        slots=(
            Slot("sem", sems, "memory semantics", refused={**_REFUSED, **refused}, columns=columns),
            scope_slot(),
            _SPACE,
            Slot("op", (*ops, "sub"), "operation", Need.ALWAYS, columns=("sub",), refused={**_NO_SUB, **refused}),
            CACHE_HINT,
            Slot("type", ALL_TYPES, "type", Need.BLOCKS, refused=NO_FLOATS),
        ),
        operands=(*operands, "cache_policy?"),
        lower=atom if head == "atom" else red,
        events=events,
        source=f"Parallel Synchronization and Communication Instructions: {head}",
        rules=_type_rules(ops),
        needs={**_NEEDS, **({"b16": 70, "b128": 90} if head == "atom" else {})},
    )


_ATOM_ONLY = ("acquire", "acq_rel")
"""A red heads no acquire pattern; published tables write these all the same."""

_DEFAULTS = ".relaxed and .gpu unless it says otherwise"

ROWS = (
    _row(
        "atom",
        tuple(HALVES),
        tuple(TYPES),
        ("d", "[a]", "b", "c?"),
        f"a read (that acquires) and a write (that releases), joined by rmw; {_DEFAULTS}; a failed cas only reads",
        {},
    ),
    _row(
        "red",
        tuple(HALVES),
        tuple(op for op in TYPES if op not in ("exch", "cas")),
        ("[a]", "b"),
        f"as atom, the value read is not used; {_DEFAULTS}; .acquire and .acq_rel in tables only, with a warning",
        {
            word: (f"PTX has no red.{word}", f"write atom.{word}, with _ as destination if its result is not used")
            for word in (*_ATOM_ONLY, "exch", "cas")
        },
        _ATOM_ONLY,
    ),
)
