"""Rows of the table: votes, reductions, matches and shuffles among the lanes of a warp.

In: a Call. Out: Assigns. None makes an event: the pages promise that lanes wait for one another, no order of memory.
Settled here: what a warp finds. A litmus thread stands for its warp, whose lanes have the same number in a register.
Where the test has several lanes of one warp, what they find together is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.isa.call import Call, describe
from memmodel.isa.place import FULL_MASK, U32, lane
from memmodel.isa.row import Need, Row, Rule, Slot, type_slot
from memmodel.isa.synchronization.atomic import NO_FLOATS
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Assign, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Operand, Pair, Reg

_PAGE = "Parallel Synchronization and Communication Instructions: "
LAST_LANE = 31


def vote(call: Call) -> tuple[Op, ...]:
    """vote.sync: all lanes of the mask say the same."""
    mask, steps = _mask(call, call.operands[2])
    said = call.predicate(call.operands[1])
    mode = call.word("mode")
    result = Apply("selp", (mask, Const(0), said), U32) if mode == "ballot" else Const(1) if mode == "uni" else said
    return (*steps, Assign(call.register(call.operands[0]), result))


def reduce(call: Call) -> tuple[Op, ...]:
    """redux.sync: the value of every lane of the mask, combined."""
    mask, steps = _mask(call, call.operands[2])
    value, many = _same(call, call.operands[1]), Apply("popc", (mask,), U32)
    result = value
    if call.word("op") == "add":
        result = Apply("mul", (value, many), call.type)
    elif call.word("op") == "xor":
        result = Apply("mul", (value, Apply("and", (many, Const(1)), U32)), U32)
    return (*steps, Assign(call.register(call.operands[0]), result))


def match(call: Call) -> tuple[Op, ...]:
    """match.any.sync and match.all.sync: the lanes of the mask, which have one value."""
    mask, steps = _mask(call, call.operands[2])
    _same(call, call.operands[1])
    target, *all_equal = _results(call)
    made = [Assign(target, mask)] if target is not None else []
    return (*steps, *made, *(Assign(name, Const(1)) for name in all_equal if name is not None))


def shuffle(call: Call) -> tuple[Op, ...]:
    """shfl.sync: what another lane has, which is what this one has."""
    mask, steps = _mask(call, call.operands[4])
    value, bounds = _same(call, call.operands[1]), call.constant(call.operands[3])
    call.integer(call.operands[2])
    target, *in_range = _results(call)
    if any(in_range) and (call.word("mode") not in ("idx", "bfly") or bounds != LAST_LANE):
        hint = f"leave it out, or write .idx or .bfly with the bounds {LAST_LANE}"
        call.fail("the lanes of a warp have different numbers in this predicate", call.operands[0], hint)
    beyond = Unmodelled(
        f"{call.head} with a mask that is not full: a lane outside it may be the source",
        Apply("ne", (mask, Const(FULL_MASK)), U32),
    )
    made = [Assign(target, value)] if target is not None else []
    return (*steps, beyond, *made, *(Assign(name, Const(1)) for name in in_range if name is not None))


def active(call: Call) -> tuple[Op, ...]:
    """activemask: which lanes run together is open."""
    return (
        Unmodelled("activemask depends on which lanes of the warp run together", Const(1)),
        Assign(call.register(call.operands[0]), Const(FULL_MASK)),
    )


def _mask(call: Call, operand: Operand) -> tuple[Expr, tuple[Op, ...]]:
    """The lanes that take part, and the steps that find a thread outside them, or several lanes in the test."""
    given = call.integer(operand)
    mask: Expr = Const(given.value & FULL_MASK) if isinstance(given, Const) else Apply("cvt", (given,), U32)
    own = lane(call)
    bit = mask if own is None else Apply("and", (mask, Const(1 << own)), U32)
    rule = f"a thread executes {call.head} with a mask that does not have its own lane"
    steps: list[Op] = []
    if not isinstance(bit, Const) or bit.value == 0:
        steps.append(UndefinedIf(rule, Apply("eq", (bit, Const(0)), U32)))
    if own is not None:
        steps.append(Unmodelled(f"{call.head} among lanes of one warp that are threads of the test", Const(1)))
    return mask, tuple(steps)


def _same(call: Call, operand: Operand) -> Expr:
    """A value that is the same in all lanes. Raises InputError for what ldmatrix has loaded."""
    fragments = call.context.fragments
    if isinstance(operand, Reg) and operand.name in fragments.loaded | fragments.computed:
        call.fail(f"the lanes have different numbers in '%{operand.name}', which comes from an ldmatrix", operand)
    return call.reduced(call.value(operand))


def _results(call: Call) -> tuple[str | None, ...]:
    """d, or d|p."""
    target = call.operands[0]
    if not isinstance(target, Pair):
        return (call.destination(target),)
    if call.head == "match.any.sync":
        call.fail(f"{call.head} writes one register, and this is {describe(target)}", target)
    return tuple(call.destination(item, sink=True) for item in (target.first, target.second))


def _row(
    head: str,
    slots: tuple[Slot, ...],
    operands: tuple[str, ...],
    lower: Callable[[Call], tuple[Op, ...]],
    events: str,
    since: int,
    rules: tuple[Rule, ...] = (),
    page: str = _PAGE,
) -> Row:
    alone = "; where the test has several lanes of the warp, it is undecided"
    return Row((head,), slots, operands, lower, f"none; {events}{alone}", page + head, rules, ordered=True, since=since)


_BITS, _NUMBERS = ("and", "or", "xor"), ("add", "min", "max")

ROWS = (
    _row(
        "vote.sync",
        (Slot("mode", ("all", "any", "uni", "ballot"), "mode", Need.ALWAYS), type_slot(("pred", "b32"))),
        ("d", "{!}a", "membermask"),
        vote,
        "d is a, which all lanes have; with .ballot the mask if a is true, else 0",
        30,
        (
            Rule("{head}.ballot gives a .b32", "write .b32", {"mode": ("ballot",), "type": ("pred",)}, at="type"),
            Rule(
                "{head}.{mode} gives a .pred",
                "write .pred",
                {"mode": ("all", "any", "uni"), "type": ("b32",)},
                at="type",
            ),
        ),
    ),
    _row(
        "redux.sync",
        (
            Slot("op", (*_NUMBERS, *_BITS), "operation", Need.ALWAYS),
            type_slot(("u32", "s32", "b32"), refused=dict.fromkeys(("f32", "abs", "NaN"), NO_FLOATS["f32"])),
        ),
        ("d", "a", "membermask"),
        reduce,
        "d is a, which all lanes of the mask have, combined as often",
        80,
        (
            Rule("{head}.{op} is for .b32", "write .b32", {"op": _BITS, "type": ("u32", "s32")}, at="type"),
            Rule("{head}.{op} is for .u32 and .s32", "write .u32", {"op": _NUMBERS, "type": ("b32",)}, at="type"),
        ),
    ),
    *(
        _row(
            f"match.{mode}.sync",
            (type_slot(("b32", "b64")),),
            ("d", "a", "membermask"),
            match,
            "d is the mask, p is true",
            70,
        )
        for mode in ("any", "all")
    ),
    _row(
        "shfl.sync",
        (Slot("mode", ("up", "down", "bfly", "idx"), "mode", Need.ALWAYS), type_slot(("b32",))),
        ("d|p", "a", "b", "c", "membermask"),
        shuffle,
        "d is a, which all lanes have",
        30,
        page="Data Movement and Conversion Instructions: ",
    ),
    Row(
        ("activemask",),
        (type_slot(("b32",)),),
        ("d",),
        active,
        "none; PTX leaves open which lanes run together, and the test is undecided",
        _PAGE + "activemask",
        since=30,
    ),
)
