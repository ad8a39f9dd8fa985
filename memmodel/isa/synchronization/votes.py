"""Rows of the table: votes, reductions, matches, shuffles and election among the lanes of a warp.

In: a Call. Out: Assigns. None makes an event: the pages promise that lanes wait for one another, no order of memory.
Settled here: what a warp finds. A litmus thread stands for its warp, whose lanes have the same number in a register.
Where the test has several lanes of one warp, what they find together is not modelled, nor which of them is elected.

In a compiled module the lanes have values of their own, so that these instructions are lowered to one step of the whole
warp (`AmongLanes`). Modules for older targets have shfl and vote without .sync, of the lanes that are active.
"""

from __future__ import annotations

from functools import partial

from memmodel.isa.call import Call
from memmodel.isa.place import FULL_MASK, lane, member_mask, own_lane_in, warp_members
from memmodel.isa.refused import NO_OVERLAP, SPELLING, refusing
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.synchronization.atomic import NO_FLOATS
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Op, Unmodelled
from memmodel.program.warp_ops import ActiveLanes, AmongLanes, Exchange, WarpOp
from memmodel.ptx.operands import Operand, Pair, Reg, describe
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import U32

_PAGE = "Parallel Synchronization and Communication Instructions: "
LAST_LANE = 31


def vote(call: Call) -> tuple[Op, ...]:
    """vote.sync: all lanes of the mask say the same."""
    mask, steps = _mask(call, call.operands[2])
    holds = call.predicate(call.operands[1])
    mode = call.word("mode")
    result = Apply("selp", (mask, Const(0), holds), U32) if mode == "ballot" else Const(1) if mode == "uni" else holds
    return (*steps, *call.assign(call.operands[0], result))


def reduce(call: Call) -> tuple[Op, ...]:
    """redux.sync: the value of every lane of the mask, combined."""
    mask, steps = _mask(call, call.operands[2])
    value, many = _same(call, call.operands[1]), Apply("popc", (mask,), U32)
    result = value
    if call.word("op") == "add":
        result = Apply("mul", (value, many), call.type)
    elif call.word("op") == "xor":
        result = Apply("mul", (value, Apply("and", (many, Const(1)), U32)), U32)
    return (*steps, *call.assign(call.operands[0], result))


def match(call: Call) -> tuple[Op, ...]:
    """match.any.sync and match.all.sync: the lanes of the mask, which have one value."""
    mask, steps = _mask(call, call.operands[2])
    _same(call, call.operands[1])
    _results(call)
    return (*steps, *call.assign(call.operands[0], mask, Const(1)))


def shuffle(call: Call) -> tuple[Op, ...]:
    """shfl.sync: what another lane has, which is what this one has."""
    mask, steps = _mask(call, call.operands[4])
    value, bounds = _same(call, call.operands[1]), call.constant(call.operands[3])
    call.integer(call.operands[2])
    _, *in_range = _results(call)
    if any(in_range) and (call.word("mode") not in ("idx", "bfly") or bounds != LAST_LANE):
        hint = f"leave it out, or write .idx or .bfly with the bounds {LAST_LANE}"
        call.fail("the lanes of a warp have different numbers in this predicate", call.operands[0], hint)
    beyond = Unmodelled(
        f"{call.head} with a mask that is not full: a lane outside it may be the source",
        Apply("ne", (mask, Const(FULL_MASK)), U32),
    )
    return (*steps, beyond, *call.assign(call.operands[0], value, Const(1)))


def active(call: Call) -> tuple[Op, ...]:
    """activemask: which lanes run together is open."""
    beyond = Unmodelled("activemask depends on which lanes of the warp run together", Const(1))
    return (beyond, *call.assign(call.operands[0], Const(FULL_MASK)))


def elect(call: Call) -> tuple[Op, ...]:
    """elect.sync: true in a thread that is a whole warp, or in the only thread of the mask that the test has.

    The page does not say which of several threads is elected.
    """
    _results(call)
    mask, own = member_mask(call, call.operands[1]), lane(call)
    bits = mask.value if isinstance(mask, Const) else FULL_MASK
    lanes = [number for number in range(len(warp_members(call))) if bits >> number & 1]
    steps = own_lane_in(call, mask)
    if own is not None and (not isinstance(mask, Const) or len(lanes) > 1):
        open_choice = "elect.sync elects one of several threads of a warp, PTX does not say which"
        steps = (*steps, Unmodelled(open_choice, Const(1)))
    elected = lanes[0] if lanes else 0
    return (*steps, *call.assign(call.operands[0], Const(elected), Const(int(own in (None, elected)))))


# ---- the lanes of a module ---------------------------------------------------------------------------------------

_SHUFFLES = {"up": Exchange.UP, "down": Exchange.DOWN, "bfly": Exchange.BUTTERFLY, "idx": Exchange.INDEX}
_VOTES = {"all": Exchange.ALL, "any": Exchange.ANY, "uni": Exchange.UNIFORM, "ballot": Exchange.BALLOT}


def _among(
    call: Call, exchange: Exchange, values: tuple[Expr, ...], where: int, combine: str = ""
) -> tuple[Op | WarpOp, ...]:
    """What the lanes of the mask at operand `where` learn; all that are active if there is no such operand."""
    operand = call.optional(where)
    mask = None if operand is None else member_mask(call, operand)
    checks = () if mask is None else own_lane_in(call, mask)
    return (*checks, AmongLanes(exchange, _results(call), values, mask, combine, call.type))


def vote_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """vote.sync, and vote of all active lanes."""
    return _among(call, _VOTES[call.word("mode") or ""], (call.predicate(call.operands[1]),), 2)


def reduce_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """redux.sync; floating-point numbers are compared by magnitude with .abs, and .NaN wins."""
    words = [word for slot in ("op", "abs", "NaN") if (word := call.word(slot))]
    return _among(call, Exchange.REDUCE, (call.value(call.operands[1]),), 2, ".".join(words))


def match_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """match.any.sync and match.all.sync."""
    exchange = Exchange.MATCH_ANY if call.head == "match.any.sync" else Exchange.MATCH_ALL
    return _among(call, exchange, (call.value(call.operands[1]),), 2)


def shuffle_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """shfl.sync, and shfl of all active lanes."""
    value, lane_number, bounds = call.operands[1:4]
    values = (call.value(value), call.integer(lane_number), call.integer(bounds))
    return _among(call, _SHUFFLES[call.word("mode") or ""], values, 4)


def active_in_module(call: Call) -> tuple[WarpOp, ...]:
    """activemask."""
    return (ActiveLanes(call.register(call.operands[0])),)


def elect_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """elect.sync among the lanes of a warp: the schedule says which one is elected."""
    mask = member_mask(call, call.operands[1])
    return (*own_lane_in(call, mask), AmongLanes(Exchange.ELECT, _results(call), (), mask))


# ---- operands ----------------------------------------------------------------------------------------------------


def _mask(call: Call, operand: Operand) -> tuple[Expr, tuple[Op, ...]]:
    """The lanes that take part, and the steps that find a thread outside them, or several lanes in the test."""
    mask = member_mask(call, operand)
    if not isinstance(mask, Const):
        mask = Apply("cvt", (mask,), U32)
    checks = own_lane_in(call, mask)
    if lane(call) is None:
        return mask, checks
    return mask, (*checks, Unmodelled(f"{call.head} among lanes of one warp that are threads of the test", Const(1)))


def _same(call: Call, operand: Operand) -> Expr:
    """A value that is the same in all lanes. Raises InputError for what ldmatrix has loaded."""
    fragments = call.context.fragments
    if isinstance(operand, Reg) and operand.name in fragments.loaded | fragments.computed:
        call.fail(f"the lanes have different numbers in '%{operand.name}', which comes from an ldmatrix", operand)
    return call.reduced(call.value(operand))


def _results(call: Call) -> tuple[str | None, ...]:
    """The registers of d or d|p, as the instruction has it."""
    target = call.operands[0]
    if not isinstance(target, Pair):
        if call.head == "elect.sync":
            call.fail(f"{call.head} writes d|p: the elected lane and a predicate", target, "write _|%p")
        return (call.destination(target),)
    if call.head == "match.any.sync":
        call.fail(f"{call.head} writes one register, and this is {describe(target)}", target)
    return tuple(call.destination(operand, sink=True) for operand in (target.first, target.second))


_NO_OVERLAP = refusing(SPELLING, NO_OVERLAP)

_row = partial(Row, ordered=True, effect=Effect.SYNCHRONIZES)
_of_active_lanes = partial(_row, lower=None, events="none that litmus tests have")
"""The form without .sync, which is removed for later targets."""

_ALONE = "; where the test has several lanes of the warp, it is undecided"
_BITS, _NUMBERS = ("and", "or", "xor"), ("add", "min", "max")
_FLOATS = ("f32", "abs", "NaN")
_NO_FLOATS = dict.fromkeys(_FLOATS, NO_FLOATS["f32"])
_VOTE = (needed("mode", *_VOTES), in_blocks("type", "pred", "b32"))
_SHUFFLE = (needed("mode", *_SHUFFLES), in_blocks("type", "b32"))
_VOTE_RULES = (
    Rule("{head}.ballot gives a .b32", "write .b32", "mode=ballot type=pred"),
    Rule("{head}.{mode} gives a .pred", "write .pred", "mode!=ballot type=b32"),
)
_MOVES = "Data Movement and Conversion Instructions: "

ROWS = (
    _row(
        ("vote.sync",),
        (*_VOTE, _NO_OVERLAP),
        ("d", "{!}a", "membermask"),
        vote,
        f"none; d is a, which all lanes have; with .ballot the mask if a is true, else 0{_ALONE}",
        _PAGE + "vote.sync",
        _VOTE_RULES,
        since=Since(30, "6.0"),
        lower_module=vote_in_module,
    ),
    _of_active_lanes(
        ("vote",),
        _VOTE,
        ("d", "{!}a"),
        rules=_VOTE_RULES,
        source=_PAGE + "vote",
        since=Since(20, "1.2", until=62),
        later={"mode=ballot": Since(20, "2.0")},
        lower_module=vote_in_module,
    ),
    _row(
        ("redux.sync",),
        (
            needed("op", *_NUMBERS, *_BITS),
            optional("abs", refused=_NO_FLOATS, modules=("abs",)),
            optional("NaN", modules=("NaN",)),
            in_blocks("type", "u32", "s32", "b32", modules=("f32",)),
            _NO_OVERLAP,
        ),
        ("d", "a", "membermask"),
        reduce,
        f"none; d is a, which all lanes of the mask have, combined as often{_ALONE}",
        _PAGE + "redux.sync",
        rules=(
            Rule("{head}.{op} is for .b32", "write .b32", f"op={either(_BITS)} type!=b32"),
            Rule("{head}.{op} is for .u32 and .s32", "write .u32", f"op={either(_NUMBERS)} type=b32"),
            Rule("{head}.{op} is for .u32 and .s32", "write .u32", "op=add type=f32"),
            *(Rule(f"{{head}} with .{word} is for .f32", "drop it", f"type!=f32 {word}") for word in ("abs", "NaN")),
        ),
        since=Since(80, "7.0"),
        later={"type=f32": Since(version="8.6", families=FAMILY_100 - {110})},
        lower_module=reduce_in_module,
    ),
    _row(
        ("match.any.sync", "match.all.sync"),
        (in_blocks("type", "b32", "b64"), _NO_OVERLAP),
        ("d", "a", "membermask"),
        match,
        f"none; d is the mask, p is true{_ALONE}",
        _PAGE + "match.sync",
        sizes={"d": 32},
        since=Since(70, "6.0"),
        lower_module=match_in_module,
    ),
    _row(
        ("shfl.sync",),
        (*_SHUFFLE, _NO_OVERLAP),
        ("d|p", "a", "b", "c", "membermask"),
        shuffle,
        f"none; d is a, which all lanes have{_ALONE}",
        _MOVES + "shfl.sync",
        since=Since(30, "6.0"),
        lower_module=shuffle_in_module,
    ),
    _of_active_lanes(
        ("shfl",),
        _SHUFFLE,
        ("d|p", "a", "b", "c"),
        source=_MOVES + "shfl",
        since=Since(30, "3.0", until=62),
        lower_module=shuffle_in_module,
    ),
    _row(
        ("elect.sync",),
        (),
        ("d|p", "membermask"),
        elect,
        "none; p is true in a thread that stands for its warp, and in the only thread of the mask that the test has; "
        "which of several threads is elected is open, and the test undecided",
        _PAGE + "elect.sync",
        since=Since(90, "8.0"),
        lower_module=elect_in_module,
    ),
    _row(
        ("activemask",),
        (in_blocks("type", "b32"),),
        ("d",),
        active,
        "none; PTX leaves open which lanes run together, and the test is undecided",
        _PAGE + "activemask",
        since=Since(30, "6.2"),
        lower_module=active_in_module,
    ),
)
