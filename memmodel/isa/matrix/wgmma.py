"""Rows of the table: wgmma, the asynchronous matrix instructions of sm_90a.

In: a Call. Out: for wgmma.fence an event, for wgmma.mma_async an instruction that reads its operands and the assignment
of its result registers: each receives D + A * B, or A * B if scale-d is false. A matrix in shared memory counts as the
sum of its elements; a matrix A in registers is its first register. Of a sparse A, half is stored; which elements these
are its metadata say, and the sum stays. Settled here: how many operands each form has.
`isa.wgmma_registers` adds what the page says of registers that are still in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from memmodel.base.labels import Access, Family, Issue, Mark, Marker, Side
from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed, optional
from memmodel.isa.synchronization.groups import commit as commit_group
from memmodel.isa.synchronization.groups import wait as wait_group
from memmodel.isa.tensor_memory import ALIGNED, descriptor
from memmodel.program.expressions import Apply, Const, Expr, Get, registers_of
from memmodel.program.ops import Assign, AsyncRead, Emit, IssueAsync, Op, Track
from memmodel.program.regions import DescribedMatrix, Matrix
from memmodel.program.warp_ops import MultiplyInRegisters, WarpOp
from memmodel.ptx.operands import Imm, Operand, Vector, describe
from memmodel.ptx.vocabulary import U32, UNTYPED, Proxy

HOPPER = Since(version="8.0", alone=frozenset({90}))
DEPTH = 32
"""Bytes of K that one dense instruction works on, whatever the type."""
READ = Access(Side.READ, proxy=Proxy.ASYNC, family=Family.WGMMA, asynchronous=True)
"""A matrix in shared memory is read through the async proxy."""
A_REGISTERS = 4
INTEGERS = ("s8", "u8")

_PAGE = "Asynchronous Warpgroup Level Matrix Instructions: "


def fence(call: Call) -> tuple[Op, ...]:
    """wgmma.fence: an event of its own, no memory fence."""
    return (Emit(Mark(Marker.WGMMA_FENCE)),)


@dataclass(frozen=True, slots=True)
class MmaAsyncOperands:
    """The operands of a wgmma.mma_async. `fragment`: A in registers, none if it is in shared memory.

    `metadata`: of a sparse A. `transposed`: whether A and B in shared memory are.
    """

    accumulator: tuple[str, ...]
    fragment: tuple[Operand, ...]
    left: Operand
    right: Operand
    metadata: Expr | None
    scale_d: Operand
    transposed: tuple[bool, bool]


def _operands(call: Call) -> MmaAsyncOperands:
    """The operands, checked. Raises InputError."""
    result, left, right, *rest = call.operands
    metadata = _metadata(call, rest.pop(0), rest.pop(0)) if call.head == SPARSE else None
    scale_d, *numbers = rest
    accumulator = _vector(call, result, _result_registers(call), "its result")
    fragment = _vector(call, left, A_REGISTERS, "A") if isinstance(left, Vector) else ()
    _check_numbers(call, numbers, in_registers=bool(fragment))
    turned = [isinstance(operand, Imm) and operand.value != 0 for operand in numbers[2:]]
    transposed = (len(turned) > 1 and turned[0], bool(turned) and turned[-1])
    names = tuple(call.register(register) for register in accumulator)
    return MmaAsyncOperands(names, fragment, left, right, metadata, scale_d, transposed)


def mma(call: Call) -> tuple[Op, ...]:
    """wgmma.mma_async: D is in registers, A in shared memory or registers, B in shared memory."""
    operands = _operands(call)
    rows, columns, depth = _shape(call)
    parts: list[AsyncRead] = []
    first: Expr = Get("$a")
    if operands.fragment:
        first = call.value(operands.fragment[0])
    else:
        stored = depth if operands.metadata is None else depth // 2
        parts.append(_operand(call, operands.left, "$a", rows * stored * BITS[call.word("atype") or ""] // 8))
    parts.append(_operand(call, operands.right, "$b", columns * depth * BITS[call.word("btype") or ""] // 8))
    product = Apply("mul", (first, Get("$b")), UNTYPED)
    if operands.metadata is not None:  # depends on them
        product = Apply("add", (product, Apply("and", (operands.metadata, Const(0)), UNTYPED)), UNTYPED)
    # The registers keep their old values until all parts have read: A may be one of them.
    sums = (Assign(name, Apply("cvt", (_sum(call, name, operands.scale_d),), U32)) for name in operands.accumulator)
    return (IssueAsync(Issue(Family.WGMMA), tuple(parts)), Assign("$p", product), *sums)


def mma_in_warpgroup(call: Call) -> tuple[WarpOp, ...]:
    """wgmma.mma_async in a module: which bytes the matrices are, their descriptors say; the result is unknown."""
    operands = _operands(call)
    rows, columns, _ = _shape(call)
    left_bits, right_bits = (BITS[call.word(slot) or ""] for slot in ("atype", "btype"))
    left_transposed, right_transposed = operands.transposed
    deep = DEPTH if operands.metadata is None else 2 * DEPTH
    matrices = [DescribedMatrix(call.value(operands.right), columns, deep, right_bits, right_transposed)]
    if not operands.fragment:
        matrices.insert(0, DescribedMatrix(call.value(operands.left), rows, DEPTH, left_bits, left_transposed))
    fragment = tuple(name for register in operands.fragment for name in registers_of(call.value(register)))
    shape = call.word("shape") or ""
    return (MultiplyInRegisters(Issue(Family.WGMMA), READ, tuple(matrices), operands.accumulator, fragment, shape),)


def _metadata(call: Call, metadata: Operand, selector: Operand) -> Expr:
    """sp-meta, a register, and sp-sel, which says whose metadata count."""
    kind = call.word("atype")
    valid = (0, 1) if kind in ("f16", "bf16", "tf32") else (0,)
    if not isinstance(selector, Imm) or selector.value not in valid:
        known = " or ".join(str(number) for number in valid)
        call.fail(f"sp-sel of .{kind} is {known}, and this is {describe(selector)}", selector, "write 0")
    return call.integer(metadata)


def _operand(call: Call, operand: Operand, register: str, most: int) -> AsyncRead:
    """A matrix in shared memory, read through the async proxy."""
    region = Matrix(descriptor(call, operand), most)
    return AsyncRead(READ, region, (register,), sums=True, tracks=frozenset({Track.WGMMA}))


def _shape(call: Call) -> tuple[int, int, int]:
    """Rows of A, columns of B, and the depth that they share."""
    rows, _, rest = (call.word("shape") or "").removeprefix("m").partition("n")
    columns, _, depth = rest.partition("k")
    return int(rows), int(columns), int(depth)


def _vector(call: Call, operand: Operand, wanted: int, what: str) -> tuple[Operand, ...]:
    """A matrix fragment in that many registers."""
    if not isinstance(operand, Vector):
        call.fail(f"{call.head} has {what} in a vector of registers, and this is {describe(operand)}", operand)
    if len(operand.items) != wanted:
        spelled = ", ".join(f"%r{k}" for k in range(wanted)) if wanted <= A_REGISTERS else f"%r0, ... %r{wanted - 1}"
        message = f"this {call.head} has {what} in {wanted} registers, and {len(operand.items)} are given"
        call.fail(message, operand, f"write {{{spelled}}}")
    return operand.items


def _result_registers(call: Call) -> int:
    """How many registers hold a thread's part of D: 64 * N values of 128 threads, .f16 in pairs."""
    columns = _shape(call)[1]
    return columns // (4 if call.word("dtype") == "f16" else 2)


def _check_numbers(call: Call, numbers: list[Operand], *, in_registers: bool) -> None:
    """imm-scale-a and -b, and for 16-bit types imm-trans of the matrices in shared memory."""
    kind = call.word("atype")
    scales = 0 if kind in (*INTEGERS, "b1") else 2
    transposed = 0 if kind not in ("f16", "bf16") else 1 if in_registers else 2
    if len(numbers) != scales + transposed:
        wanted = scales + transposed
        call.fail(f"this {call.head} takes {wanted} numbers after scale-d, and {len(numbers)} are given", hint=_FORMS)
    for position, operand in enumerate(numbers):
        name, values = ("imm-scale", (1, -1)) if position < scales else ("imm-trans", (0, 1))
        if not isinstance(operand, Imm) or operand.value not in values:
            call.fail(f"{name} is {values[0]} or {values[1]}, and this is {describe(operand)}", operand)


def _sum(call: Call, name: str, scale_d: Operand) -> Expr:
    """D + A * B, or A * B, as scale-d says: a predicate, or the number 0 or 1."""
    total = Apply("add", (Get(name), Get("$p")), UNTYPED)
    if isinstance(scale_d, Imm):
        return total if scale_d.value else Get("$p")
    return Apply("selp", (total, Get("$p"), call.predicate(scale_d)), UNTYPED)


_FORMS = (
    "f16 and bf16: scale-a, scale-b, trans-a, trans-b (no trans-a if A is in registers); tf32 and fp8: scale-a, "
    "scale-b; integers: none"
)
SPARSE = "wgmma.mma_async.sp"
_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
"""Bits of an element of A or B."""

_PAIRS = {
    ("f16",): (("f16",), ("f16", "f32")),
    ("bf16",): (("bf16",), ("f32",)),
    ("tf32",): (("tf32",), ("f32",)),
    ("e4m3", "e5m2"): (("e4m3", "e5m2"), ("f16", "f32")),
    INTEGERS: (INTEGERS, ("s32",)),
    ("b1",): (("b1",), ("s32",)),
}
"""Types of A: those of B and of D that go with them."""

_D = ("f16", "f32", "s32")
_ODD = tuple(n for n in range(8, 257, 8) if n > 24 and n % 16)
"""Values of N that integers lack."""


def _types(left: tuple[str, ...], right: tuple[str, ...], result: tuple[str, ...]) -> tuple[Rule, ...]:
    return (
        Rule(
            "{head} does not multiply .{atype} by .{btype}",
            "write " + " or ".join(f".{word}" for word in right) + " for B",
            f"atype={either(left)} btype!={either(right)}",
        ),
        Rule(
            "{head} of .{atype} has no result of type .{dtype}",
            "write " + " or ".join(f".{word}" for word in result),
            f"atype={either(left)} dtype!={either(result)}",
        ),
    )


def _mma_row(depths: Mapping[str, int], head: str = "wgmma.mma_async") -> Row:
    """The row of the dense or of the sparse form; `depths`: k of each type of A."""
    shapes = tuple(f"m64n{n}k{k}" for k in dict.fromkeys(depths.values()) for n in range(8, 257, 8))
    types, sparse = tuple(depths), head == SPARSE
    integers = tuple(kind for kind in (*INTEGERS, "b1") if kind in depths)
    odd = tuple(f"m64n{n}k{k}" for n in _ODD for k in dict.fromkeys(depths[kind] for kind in integers))
    operands = ("d", "a", "b-desc", *(("sp-meta", "sp-sel") if sparse else ()), "scale-d")
    written = f"d, a-desc or a, b-desc{', sp-meta, sp-sel' if sparse else ''}, scale-d{_NUMBERS}"
    return _row(
        (head,),
        (
            *ALIGNED,
            needed("shape", *shapes),
            needed("dtype", *_D, what="type of D"),
            needed("atype", *types, what="type of A"),
            needed("btype", *types, what="type of B"),
            optional("satfinite"),
            *(() if sparse else (optional("op", "and"), optional("popc"))),
        ),
        (*operands, *(f"imm{k}?" for k in range(4))),
        mma,
        "as wgmma.mma_async; half of A is stored" if sparse else _EVENTS,
        _PAGE + head,
        rules=(
            *(
                Rule(
                    "{head} has no shape .{shape} for .{atype}",
                    f"its k is {k}: write .m64nNk{k}",
                    f"atype={kind} shape={either(s for s in shapes if not s.endswith(f'k{k}'))}",
                )
                for kind, k in depths.items()
            ),
            *(
                rule
                for left, (right, result) in _PAIRS.items()
                if set(left) <= set(types)
                for rule in _types(left, right, result)
            ),
            Rule(
                "{head} of .{atype} has no shape .{shape}",
                "N is 8, 16, 24 or a multiple of 16 for integers",
                f"atype={either(integers)} shape={either(odd)}",
            ),
            *(() if sparse else _BITS_ALONE),
            Rule(".satfinite is for .s8 and .u8", "drop it", f"atype!={either(INTEGERS)} satfinite"),
        ),
        since=replace(HOPPER, version="8.2") if sparse else HOPPER,
        later={
            f"atype={left} btype={right}": replace(HOPPER, version="8.4")
            for left, right in (("s8", "u8"), ("u8", "s8"))
        },
        written=written,
        lower_module=mma_in_warpgroup,
        uniform=("a", "b-desc"),
        effect=Effect.ASYNCHRONOUS,
    )


_NUMBERS = "{, imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}}"
_EVENTS = (
    "an issue; outside of program order a weak read of each operand in shared memory (async proxy); an event of "
    "its own where a register is touched that is still in use, or no wgmma.fence stands before it"
)
_BITS_ALONE = (
    Rule("{head} of .b1 is .and.popc", "add .and.popc", "atype=b1 !op"),
    Rule("{head} of .b1 is .and.popc", "add .popc", "atype=b1 !popc"),
    *(Rule(f".{word} is for .b1", "drop it", f"atype!=b1 {slot}") for slot, word in (("op", "and"), ("popc", "popc"))),
)

_row = partial(Row, since=HOPPER, together=Together.WARPGROUP, live=True, effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        ("wgmma.fence",),
        ALIGNED,
        (),
        fence,
        "an event: the wgmma.mma_async after it come after what is in front of it",
        _PAGE + "wgmma.fence",
    ),
    _mma_row(_K),
    _mma_row({kind: 2 * k for kind, k in _K.items() if kind != "b1"}, SPARSE),
    _row(
        ("wgmma.commit_group",),
        ALIGNED,
        (),
        commit_group,
        "none; the wgmma.mma_async issued since the last one become a group",
        _PAGE + "wgmma.commit_group",
        part="",
    ),
    _row(
        ("wgmma.wait_group",),
        ALIGNED,
        ("N",),
        wait_group,
        "an event that follows the end of every wgmma.mma_async in all but the last N groups",
        _PAGE + "wgmma.wait_group",
    ),
)
