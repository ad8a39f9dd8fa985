"""Rows of the table: tcgen05.mma and its sparse and weight-stationary forms.

In: a Call. Out: one instruction: reads of the operands and of the accumulator, and its write. Every column of the
accumulator receives D + A * B in integers, or A * B without enable-input-d, where a matrix counts as the sum of its
elements; scale factors multiply. Of a CTA pair each accumulator takes its own CTA's A and both CTAs' B (their sum).
Settled here: which kinds take which operands.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Family, Side
from memmodel.isa.call import Call, describe
from memmodel.isa.matrix.tcgen_values import collected, hidden_lanes, zero_columns
from memmodel.isa.place import U32
from memmodel.isa.row import Effect, Need, Row, Rule, Slot, either, flag
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
from memmodel.ptx.operands import Imm, Negated, Operand, Reg, Vector
from memmodel.ptx.vocabulary import UNTYPED

BITS = {"kind::f16": 16, "kind::tf32": 32, "kind::mxf4": 4, "kind::mxf4nvf4": 4}
"""Bits of an element of A and B in shared memory; 8 for the other kinds."""
FOUR_BITS = ("kind::mxf4", "kind::mxf4nvf4")
"""Kinds of which bit 31 of the instruction descriptor says how deep K is."""
FLOATING = ("kind::f16", "kind::tf32", "kind::f8f6f4")


def mma(call: Call) -> tuple[Op, ...]:
    """tcgen05.mma{.sp, .ws}."""
    rest = list(call.operands)
    accumulator = tensor(call, rest.pop(0))
    left, right = rest.pop(0), rest.pop(0)
    sparse = call.head.endswith(".sp")
    tensors = [tensor(call, _brackets(call, rest, "[sp-meta-tmem]"))] if sparse else []
    if not rest:
        call.fail(f"{call.head} needs an instruction descriptor")
    shape = rest.pop(0)
    variant = " ws" * (".ws" in call.head) + " sp" * sparse  # K of a sparse shape is twice as large
    form, size = f"{call.word('kind')}{variant}", _shape(call, shape)
    if call.word("block_scale"):
        tensors += [tensor(call, _brackets(call, rest, name)) for name in ("[scale-A-tmem]", "[scale-B-tmem]")]
    beyond: tuple[Op, ...] = ()
    if rest and isinstance(rest[0], Vector):
        beyond = _lanes(call, rest.pop(0))
    if not rest:
        call.fail(f"{call.head} needs the predicate enable-input-d", hint="add a predicate register as last operand")
    add = _accumulates(call, rest.pop(0))
    if rest and not call.head.startswith("tcgen05.mma.ws"):
        _check_scale(call, rest.pop(0))
    elif rest:
        beyond = zero_columns(call, rest.pop(0))
    if rest:
        call.fail(f"{call.head} has no operand here", rest[0])
    parts: list[Part] = []
    matrices = ctas(call)
    from_tensor = tensor(call, left) if is_tensor_operand(left) else None
    if call.word("ashift") and from_tensor is None:
        call.refuse(".ashift is for a matrix A in tensor memory", "ashift", "drop it, or write [a-tmem]")
    first = None if from_tensor is not None else descriptor(call, left)
    second = descriptor(call, right)
    for k, cta in enumerate(matrices):
        parts.append(shared_operand(call, Family.MMA, second, cta, f"$b{k}", None))
    for k, cta in enumerate(matrices):
        if first is not None:
            parts.append(shared_operand(call, Family.MMA, first, cta, f"$a{k}", None, matrix_a(call)))
        elif from_tensor is not None:
            parts.append(tensor_operand(call, Family.MMA, from_tensor, cta, f"$a{k}"))
        parts += [tensor_operand(call, Family.MMA, scale, cta, f"$f{k}.{i}") for i, scale in enumerate(tensors)]
        region = Accumulator(accumulator, None, peer(call, cta), size)
        parts += _accumulate(call, region, k, len(matrices), len(tensors), add, form, len(parts))
    reads = (tuple(f"${matrix}{k}" for k in range(len(matrices))) for matrix in "ab")
    return (*beyond, IssueAsync(issue(call, Family.MMA, form), tuple(parts)), *collected(call, *reads))


def mma_in_module(call: Call) -> tuple[WarpOp, ...]:
    """tcgen05.mma in a module: which bytes and which lanes and columns it touches, its descriptors say."""
    rest = list(call.operands)
    accumulator = tensor(call, rest.pop(0))
    left, right = rest.pop(0), rest.pop(0)
    sparse, stationary = call.head.endswith(".sp"), call.head.startswith("tcgen05.mma.ws")
    metadata = tensor(call, _brackets(call, rest, "[sp-meta-tmem]")) if sparse else None
    if not rest:
        call.fail(f"{call.head} needs an instruction descriptor")
    shape = call.integer(rest.pop(0))
    scales: tuple[Expr, ...] = ()
    if call.word("block_scale"):
        scales = tuple(tensor(call, _brackets(call, rest, name)) for name in ("[scale-A-tmem]", "[scale-B-tmem]"))
    disabled: tuple[Expr, ...] = ()
    if rest and isinstance(rest[0], Vector):
        disabled = tuple(call.integer(item) for item in _lane_words(call, rest.pop(0)))
    if not rest:
        call.fail(f"{call.head} needs the predicate enable-input-d", hint="add a predicate register as last operand")
    adds = call.predicate(rest.pop(0))
    if rest and not stationary:
        _check_scale(call, rest.pop(0))
    elif rest:
        descriptor(call, rest.pop(0))
    if rest:
        call.fail(f"{call.head} has no operand here", rest[0])
    kind, in_tensor = call.word("kind") or "", is_tensor_operand(left)
    if call.word("ashift") and not in_tensor:
        call.refuse(".ashift is for a matrix A in tensor memory", "ashift", "drop it, or write [a-tmem]")
    elements = TensorElements(BITS.get(kind, 8), kind in SCALED, kind in FOUR_BITS)
    return (
        MultiplyInTensorMemory(
            group=group(call) or 1,
            form=f"{kind}{' ws' * stationary}{' sp' * sparse}",
            elements=elements,
            sparse=sparse,
            stationary=stationary,
            shape=shape,
            accumulator=accumulator,
            left=tensor(call, left) if in_tensor else descriptor(call, left),
            left_in_tensor=in_tensor,
            right=descriptor(call, right),
            adds=adds,
            scales=scales,
            metadata=metadata,
            disabled=disabled,
            collector=_collector_use(call),
        ),
    )


def _collector_use(call: Call) -> CollectorUse:
    """What the instruction does with its collector buffer ("tcgen05 collector buffer")."""
    default = f"collector::{'b0' if call.head.startswith('tcgen05.mma.ws') else 'a'}::discard"
    _, buffer, use = (call.word("collector") or default).split("::")
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
        found = describe(rest[0]) if rest else "left out"
        call.fail(f"{call.head} takes {name} here, and this is {found}", rest[0] if rest else None)
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
    return initial or any(name in targets(item) for item in instructions(thread))


def _lanes(call: Call, operand: Operand) -> tuple[Op, ...]:
    _lane_words(call, operand)
    assert isinstance(operand, Vector)
    return hidden_lanes(call, operand)


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


_KIND = Slot("kind", (*FLOATING, "kind::i8", *SCALED), "kind", Need.ALWAYS)
_SCALING = (
    flag("block_scale"),
    Slot("vector", ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"), "scale vector size"),
)
_USES = ("fill", "use", "lastuse", "discard")
_KEEP_A = tuple(f"collector::a::{use}" for use in _USES)
_KEEP_B = tuple(f"collector::b{number}::{use}" for number in range(4) for use in _USES)


def _collector(words: tuple[str, ...], others: tuple[str, ...], repair: str) -> Slot:
    refused = dict.fromkeys(others, ("{head} has no such collector buffer", repair))
    return Slot("collector", words, "collector buffer use", refused=refused)


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

ROWS = (
    _row(
        ("tcgen05.mma", "tcgen05.mma.sp"),
        (
            GROUP,
            _KIND,
            *_SCALING,
            _collector(_KEEP_A, _KEEP_B, "write .collector::a::fill, ::use, ::lastuse or ::discard"),
            flag("ashift"),
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
        lower_module=mma_in_module,
        written="[d-tmem], a-desc or [a-tmem], b-desc{, [sp-meta-tmem]}, idesc{, [scale-A-tmem], [scale-B-tmem]}"
        "{, disable-output-lane}, enable-input-d{, scale-input-d}",
    ),
    _row(
        ("tcgen05.mma.ws", "tcgen05.mma.ws.sp"),
        (
            Slot(
                "cta_group",
                ("cta_group::1",),
                "CTA group",
                Need.ALWAYS,
                refused={"cta_group::2": ("{head} works in one CTA", "write .cta_group::1")},
            ),
            Slot("kind", (*FLOATING, "kind::i8"), "kind", Need.ALWAYS),
            flag("block_scale"),
            _collector(_KEEP_B, _KEEP_A, "write .collector::b0::fill, or another of b0 to b3"),
        ),
        _OPERANDS,
        mma,
        "as tcgen05.mma",
        PAGE + "tcgen05.mma.ws; tcgen05.mma.ws.sp",
        rules=(Rule("{head} has no .block_scale", "drop it", "block_scale"),),
        lower_module=mma_in_module,
        written="[d-tmem], a-desc or [a-tmem], b-desc{, [sp-meta-tmem]}, idesc, enable-input-d{, zero-columns}",
    ),
)
