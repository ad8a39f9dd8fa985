"""Rows of the table: tcgen05.mma and its sparse and weight-stationary forms.

In: a Call. Out: one instruction: reads of the operands and of the accumulator, and its write. Every column of the
accumulator receives D + A * B in integers, or A * B without enable-input-d, where a matrix counts as the sum of its
elements; scale factors multiply. Of a CTA pair each accumulator takes its own CTA's A and both CTAs' B (their sum).
Settled here: which kinds take which operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from memmodel.base.labels import Family, Side
from memmodel.isa.call import Call
from memmodel.isa.matrix.tcgen_shapes import lane_checks, shape_checks
from memmodel.isa.matrix.tcgen_values import collected, collector, hidden_lanes, zero_columns
from memmodel.isa.refused import refusing
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.isa.tensor_memory import (
    GROUP,
    PAGE,
    TCGEN05,
    ctas,
    descriptor,
    group,
    is_tensor_operand,
    issue,
    label,
    matrix_a,
    peer,
    shared_operand,
    tensor,
    tensor_operand,
    tracked,
)
from memmodel.litmus.constants import instructions, targets
from memmodel.memory.descriptor import SCALED, shape_mask
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import AsyncRead, AsyncWrite, IssueAsync, Op, Part
from memmodel.program.regions import Accumulator
from memmodel.program.warp_ops import CollectorUse, MultiplyInTensorMemory, TensorElements, WarpOp
from memmodel.ptx.operands import Imm, Negated, Operand, Reg, Vector, describe
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import U32, UNTYPED

BITS = {"kind::f16": 16, "kind::tf32": 32, "kind::mxf4": 4, "kind::mxf4nvf4": 4}
"""Bits of an element of A and B in shared memory; 8 for the other kinds."""
FOUR_BITS = ("kind::mxf4", "kind::mxf4nvf4")
"""Kinds of which bit 31 of the instruction descriptor says how deep K is."""
FLOATING = ("kind::f16", "kind::tf32", "kind::f8f6f4")


@dataclass(frozen=True, slots=True)
class MmaOperands:
    """The operands of a tcgen05.mma. `adds`: enable-input-d. `disabled`: the words of disable-output-lane.

    `last`: scale-input-d, or the zero-column mask of a weight-stationary form.
    """

    accumulator: Expr
    left: Operand
    right: Expr
    metadata: Expr | None
    shape: Operand
    scales: tuple[Expr, ...]
    disabled: tuple[Operand, ...]
    adds: Operand
    last: Operand | None

    @property
    def left_in_tensor(self) -> bool:
        """True if A is in tensor memory."""
        return is_tensor_operand(self.left)


def _operands(call: Call) -> MmaOperands:
    """The operands, checked as far as their text goes. Raises InputError."""
    first, left, right, *rest = call.operands
    accumulator = tensor(call, first)
    metadata = tensor(call, _brackets(call, rest, "[sp-meta-tmem]")) if _sparse(call) else None
    if not rest:
        call.fail(f"{call.head} needs an instruction descriptor")
    shape = rest.pop(0)
    scale_names = ("[scale-A-tmem]", "[scale-B-tmem]") if call.word("block_scale") else ()
    scales = tuple(tensor(call, _brackets(call, rest, name)) for name in scale_names)
    disabled = _lane_words(call, rest.pop(0)) if rest and isinstance(rest[0], Vector) else ()
    if not rest:
        call.fail(f"{call.head} needs the predicate enable-input-d", hint="add a predicate register as last operand")
    adds, *rest = rest
    last = rest.pop(0) if rest else None
    if last is not None and not _stationary(call):
        _check_scale(call, last)
    if rest:
        call.fail(f"{call.head} has no operand here", rest[0])
    if call.word("ashift") and not is_tensor_operand(left):
        call.refuse(".ashift is for a matrix A in tensor memory", "ashift", "drop it, or write [a-tmem]")
    return MmaOperands(accumulator, left, descriptor(call, right), metadata, shape, scales, disabled, adds, last)


def _sparse(call: Call) -> bool:
    return call.head.endswith(".sp")


def _stationary(call: Call) -> bool:
    return call.head.startswith("tcgen05.mma.ws")


def _form(call: Call) -> str:
    """The kind and the variant: K of a sparse shape is twice as large."""
    return f"{call.word('kind')}{' ws' * _stationary(call)}{' sp' * _sparse(call)}"


def mma(call: Call) -> tuple[Op, ...]:
    """tcgen05.mma{.sp, .ws}."""
    operands, form = _operands(call), _form(call)
    size, add = _shape(call, operands.shape), _accumulates(call, operands.adds)
    beyond = hidden_lanes(call, operands.disabled)
    if operands.last is not None and _stationary(call):
        beyond += zero_columns(call, operands.last)
    factors = (*(() if operands.metadata is None else (operands.metadata,)), *operands.scales)
    matrices = ctas(call)
    left = tensor(call, operands.left) if operands.left_in_tensor else descriptor(call, operands.left)
    parts: list[Part] = [
        shared_operand(call, Family.MMA, operands.right, cta, f"$b{k}") for k, cta in enumerate(matrices)
    ]
    for k, cta in enumerate(matrices):
        if operands.left_in_tensor:
            parts.append(tensor_operand(call, Family.MMA, left, cta, f"$a{k}"))
        else:
            parts.append(shared_operand(call, Family.MMA, left, cta, f"$a{k}", matrix_a(call)))
        parts += [tensor_operand(call, Family.MMA, factor, cta, f"$f{k}.{i}") for i, factor in enumerate(factors)]
        region = Accumulator(operands.accumulator, None, peer(call, cta), size)
        parts += _accumulate(call, region, k, len(matrices), len(factors), add, form, len(parts))
    reads = (tuple(f"${matrix}{k}" for k in range(len(matrices))) for matrix in "ab")
    return (*beyond, IssueAsync(issue(call, Family.MMA, form), tuple(parts)), *collected(call, *reads))


def mma_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """tcgen05.mma in a module: which bytes and which lanes and columns it touches, its descriptors say."""
    operands, kind = _operands(call), call.word("kind") or ""
    if operands.last is not None and _stationary(call):
        descriptor(call, operands.last)
    left = tensor(call, operands.left) if operands.left_in_tensor else descriptor(call, operands.left)
    in_tensor = {"matrix A": left if operands.left_in_tensor else None, "metadata": operands.metadata}
    others = {what: address for what, address in in_tensor.items() if address is not None}
    shape, stationary, sparse = call.integer(operands.shape), _stationary(call), _sparse(call)
    return (
        *shape_checks(call, shape, stationary=stationary, sparse=sparse),
        *lane_checks(call, shape, operands.accumulator, others, stationary=stationary, sparse=sparse),
        MultiplyInTensorMemory(
            group=group(call) or 1,
            form=_form(call),
            elements=TensorElements(BITS.get(kind, 8), kind in SCALED, kind in FOUR_BITS),
            sparse=sparse,
            stationary=stationary,
            shape=shape,
            accumulator=operands.accumulator,
            left=left,
            left_in_tensor=operands.left_in_tensor,
            right=operands.right,
            adds=call.predicate(operands.adds),
            scales=operands.scales,
            metadata=operands.metadata,
            disabled=tuple(call.integer(word) for word in operands.disabled),
            collector=_collector_use(call),
        ),
    )


def _collector_use(call: Call) -> CollectorUse:
    """What the instruction does with its collector buffer ("tcgen05 collector buffer")."""
    buffer, use = collector(call)
    return CollectorUse(buffer, use in ("use", "lastuse"), use == "fill", use in ("fill", "use"))


def _accumulate(
    call: Call, region: Accumulator, k: int, pairs: int, scales: int, add: Expr, form: str, at: int
) -> list[Part]:
    """The read of the accumulator, which will be part number `at`, and its write."""
    product: Expr = Get("$b0") if pairs == 1 else Apply("add", (Get("$b0"), Get("$b1")), UNTYPED)
    for factor in (f"$a{k}", *(f"$f{k}.{i}" for i in range(scales))):
        product = Apply("mul", (Get(factor), product), UNTYPED)
    write = label(call, Side.WRITE, Family.MMA, form=form)
    if add == Const(0):
        return [AsyncWrite(write, region, (product,), tracks=tracked(call))]
    read = AsyncRead(label(call, Side.READ, Family.MMA, form=form), region, (), tracks=tracked(call))
    condition = None if isinstance(add, Const) else add
    return [read, AsyncWrite(write, region, (product,), adds_to=at, adds_if=condition, tracks=tracked(call))]


def _brackets(call: Call, rest: list[Operand], name: str) -> Operand:
    if not rest or not is_tensor_operand(rest[0]):
        what = describe(rest[0]) if rest else "left out"
        call.fail(f"{call.head} takes {name} here, and this is {what}", rest[0] if rest else None)
    return rest.pop(0)


def _shape(call: Call, operand: Operand) -> Expr:
    """What the instruction descriptor says of the shape, wherever the instruction is executed."""
    value = call.constant(operand)
    call.integer(operand)
    mask = shape_mask(scaled=call.word("kind") in SCALED)
    return Apply("and", (call.value(operand), Const(mask)), U32) if value is None else Const(value & mask)


def _accumulates(call: Call, operand: Operand) -> Expr:
    """enable-input-d as 0, 1 or a value."""
    if isinstance(operand, Imm):
        call.fail(f"enable-input-d is a predicate, and this is {describe(operand)}", operand, "write mov.pred %p, 1;")
    value = call.predicate(operand)
    register = operand.operand if isinstance(operand, Negated) else operand
    known = call.constant(register)
    if known is None and isinstance(register, Reg) and not _assigned(call, register.name):
        known = 0
    if known is None:
        return value
    return Const(int(bool(known) is not isinstance(operand, Negated)))


def _assigned(call: Call, name: str) -> bool:
    thread = call.context.thread
    initial = any(r.register == name and r.thread == thread.name for r in call.context.test.registers)
    return initial or any(name in targets(instruction) for instruction in instructions(thread))


def _lane_words(call: Call, operand: Operand) -> tuple[Operand, ...]:
    wanted = 4 if group(call) == 1 else 8
    if not isinstance(operand, Vector) or len(operand.items) != wanted:
        call.fail(f"disable-output-lane is a vector of {wanted} with .cta_group::{group(call)}", operand)
    return operand.items


def _check_scale(call: Call, operand: Operand) -> None:
    """scale-input-d scales D by a power of two. It orders nothing, and integers are not scaled."""
    if not isinstance(operand, Imm) or not 0 <= operand.value <= 15:
        call.fail("scale-input-d is a number from 0 to 15", operand)
    if call.word("kind") not in FLOATING[:2]:
        call.fail(f"scale-input-d is for .kind::f16 and .kind::tf32, not .{call.word('kind')}", operand)


_OTHERS = refusing(
    "how many bytes its matrices have, and which stay in the buffer of B, is not followed",
    "kind::ti16",
    "decompress::lut::b",
    *(f"collector::b::{use}" for use in ("fill", "use", "lastuse", "discard")),
)
_KIND = needed("kind", *FLOATING, "kind::i8", *SCALED)
_SCALING = (
    optional("block_scale"),
    optional("vector", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"),
)
_USES = ("fill", "use", "lastuse", "discard")
_KEEP_A = tuple(f"collector::a::{use}" for use in _USES)
_KEEP_B = tuple(f"collector::b{number}::{use}" for number in range(4) for use in _USES)


def _collector(words: tuple[str, ...], others: tuple[str, ...], repair: str) -> Slot:
    refused = dict.fromkeys(others, ("{head} has no such collector buffer", repair))
    return optional("collector", *words, refused=refused)


_RULES = (
    Rule("{head}.{kind} needs .block_scale", "write .{kind}.block_scale", f"!block_scale kind={either(SCALED)}"),
    Rule(
        ".block_scale is for the kinds .mxf8f6f4, .mxf4 and .mxf4nvf4",
        "drop .block_scale and the scale operands",
        f"kind!={either(SCALED)} block_scale",
    ),
    Rule(
        "{head}.kind::mxf8f6f4 has no .{vector}",
        "write .scale_vec::1X or .block32",
        "kind=kind::mxf8f6f4 vector!=scale_vec::1X|block32",
    ),
    Rule(
        "{head}.kind::mxf4 has no .{vector}",
        "write .scale_vec::2X or .block32",
        "kind=kind::mxf4 vector!=scale_vec::2X|block32",
    ),
    Rule(
        "{head}.kind::mxf4nvf4 has no .{vector}",
        "write .scale_vec::2X, .scale_vec::4X, .block16 or .block32",
        "kind=kind::mxf4nvf4 vector=scale_vec::1X",
    ),
    Rule(
        "{head}.kind::mxf4nvf4 needs a scale vector size",
        "write .scale_vec::2X, .scale_vec::4X, .block16 or .block32",
        "!vector kind=kind::mxf4nvf4",
    ),
    Rule("a scale vector size needs .block_scale", "write .block_scale.{vector}", "!block_scale vector"),
)
_OPERANDS = ("[d-tmem]", "a", "b-desc", "idesc", "enable-input-d", *(f"{name}?" for name in "cdefg"))
_EVENTS = (
    "an issue; outside of program order reads of operands in shared memory (async proxy) and tensor memory, a "
    "read of the accumulator unless enable-input-d is known to be false, and its write; with .cta_group::2 also those "
    "of the peer CTA, if the test has it"
)

_row = partial(Row, since=TCGEN05, effect=Effect.ASYNCHRONOUS)

_INTEGERS_SINCE = Since(version="8.6", alone=frozenset({100, 110}))

ROWS = (
    _row(
        ("tcgen05.mma", "tcgen05.mma.sp"),
        (
            GROUP,
            _KIND,
            *_SCALING,
            _collector(_KEEP_A, _KEEP_B, "write .collector::a::fill, ::use, ::lastuse or ::discard"),
            optional("ashift"),
            _OTHERS,
        ),
        _OPERANDS,
        mma,
        _EVENTS,
        PAGE + "tcgen05.mma; tcgen05.mma.sp",
        rules=(
            *_RULES,
            Rule(
                ".ashift goes with .kind::f16, .kind::tf32, .kind::f8f6f4 and .kind::i8",
                "drop .ashift",
                f"kind={either(SCALED)} ashift",
            ),
            Rule(
                ".ashift and .{collector} exclude each other",
                "write .collector::a::lastuse or ::discard, or drop it",
                f"ashift collector={either(_KEEP_A[:2])}",
            ),
        ),
        later={
            "kind=kind::i8": _INTEGERS_SINCE,
            "kind=kind::mxf4nvf4": Since(version="8.7", families=FAMILY_100),
            "vector=block16|block32": Since(version="8.8", families=FAMILY_100),
            "vector!=block16|block32": Since(version="8.6", alone=FAMILY_100),
        },
        lower_module=mma_in_module,
        written="[d-tmem], a-desc or [a-tmem], b-desc{, [sp-meta-tmem]}, idesc{, [scale-A-tmem], [scale-B-tmem]}"
        "{, disable-output-lane}, enable-input-d{, scale-input-d}",
    ),
    _row(
        ("tcgen05.mma.ws", "tcgen05.mma.ws.sp"),
        (
            needed(
                "cta_group",
                "cta_group::1",
                refused={"cta_group::2": ("{head} works in one CTA", "write .cta_group::1")},
            ),
            needed("kind", *FLOATING, "kind::i8"),
            optional("block_scale"),
            _OTHERS,
            _collector(_KEEP_B, _KEEP_A, "write .collector::b0::fill, or another of b0 to b3"),
        ),
        _OPERANDS,
        mma,
        "as tcgen05.mma",
        PAGE + "tcgen05.mma.ws; tcgen05.mma.ws.sp",
        rules=(Rule("{head} has no .block_scale", "drop it", "block_scale"),),
        later={"kind=kind::i8": _INTEGERS_SINCE},
        lower_module=mma_in_module,
        written="[d-tmem], a-desc or [a-tmem], b-desc{, [sp-meta-tmem]}, idesc, enable-input-d{, zero-columns}",
    ),
)
