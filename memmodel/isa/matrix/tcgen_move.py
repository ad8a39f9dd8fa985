"""Rows of the table: tcgen05.cp, shift, ld and st, which move data in, within and out of tensor memory.

In: a Call. Out: one instruction; for ld the registers receive what its parts read. Settled here: how many registers a
shape has, one column of tensor memory for each. shift moves the column after its address to its address: rows, like
columns, are counted by the address here.
"""

from __future__ import annotations

from memmodel.base.labels import Family, Side
from memmodel.isa.call import Call
from memmodel.isa.place import shifted
from memmodel.isa.row import Need, Row, Rule, Slot, flag, type_slot
from memmodel.isa.tensor_memory import (
    ALIGNED,
    BOTH_ALIGNED,
    GROUP,
    PAGE,
    TENSOR_CORES,
    ctas,
    descriptor,
    in_shared,
    issue,
    label,
    peer,
    tensor,
    tracked,
)
from memmodel.litmus.syntax import Group, Imm, Operand, Reg
from memmodel.program.expressions import Apply, Get
from memmodel.program.ops import Assign, AsyncRead, AsyncWrite, Gather, IssueAsync, Op, Part, Scatter, Track
from memmodel.program.regions import Accumulator, Columns
from memmodel.ptx import Proxy

REGISTERS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
"""32-bit registers of one repetition of a shape."""

MAX_REGISTERS = 128


def copy(call: Call) -> tuple[Op, ...]:
    """tcgen05.cp: shared memory to tensor memory, of each CTA of the group."""
    shape = call.word("shape") or ""
    target, source = tensor(call, call.operands[0]), descriptor(call, call.operands[1])
    lanes, bits = (int(number) for number in shape.removesuffix("b").split("x"))
    parts: list[Part] = []
    for cta in ctas(call):
        read = label(call, Side.READ, Family.TCGEN_CP, form=shape, proxy=Proxy.ASYNC)
        parts.append(Gather(read, in_shared(call, source, cta, lanes * bits // 8), tracked(call)))
        write = label(call, Side.WRITE, Family.TCGEN_CP, form=shape)
        region = Accumulator(target, bits // 32, peer(call, cta))
        parts.append(Scatter(write, region, len(parts) - 1, tracked(call)))
    return (IssueAsync(issue(call, Family.TCGEN_CP, shape), tuple(parts)),)


def shift(call: Call) -> tuple[Op, ...]:
    """tcgen05.shift: every row receives the next one; the column after it stands for it."""
    address = tensor(call, call.operands[0])
    parts: list[Part] = []
    for cta in ctas(call):
        there = peer(call, cta)
        read, write = (label(call, side, Family.SHIFT) for side in (Side.READ, Side.WRITE))
        parts.append(Gather(read, Columns(shifted(address, 1), 1, there), tracked(call)))
        parts.append(Scatter(write, Columns(address, 1, there), len(parts) - 1, tracked(call)))
    return (IssueAsync(issue(call, Family.SHIFT), tuple(parts)),)


def load(call: Call) -> tuple[Op, ...]:
    """tcgen05.ld: a read for each register."""
    targets = _registers(call, call.operands[0])
    _check_split(call, 2)
    region = Columns(tensor(call, call.operands[1]), len(targets))
    names = [call.destination(target, sink=True) for target in targets]
    temporaries = tuple(None if name is None else f"$r{k}" for k, name in enumerate(names))
    read = AsyncRead(label(call, Side.READ, Family.TCGEN_LD), region, temporaries, tracks=frozenset({Track.TCGEN_LD}))
    assigns = [
        Assign(name, Apply("cvt", (Get(f"$r{k}"),), call.type)) for k, name in enumerate(names) if name is not None
    ]
    return (IssueAsync(issue(call, Family.TCGEN_LD), (read,)), *assigns)


def store(call: Call) -> tuple[Op, ...]:
    """tcgen05.st: a write for each register."""
    split = call.word("shape") == "16x32bx2"
    if len(call.operands) != 2 + split:
        call.fail(f"this {call.head} takes [taddr]{', immHalfSplitoff' if split else ''}, r")
    sources = _registers(call, call.operands[-1])
    if split and not isinstance(call.operands[1], Imm):
        call.fail("immHalfSplitoff is a number", call.operands[1])
    region = Columns(tensor(call, call.operands[0]), len(sources))
    values = tuple(call.reduced(call.value(source)) for source in sources)
    write = AsyncWrite(label(call, Side.WRITE, Family.TCGEN_ST), region, values, tracks=frozenset({Track.TCGEN_ST}))
    return (IssueAsync(issue(call, Family.TCGEN_ST), (write,)),)


def _registers(call: Call, operand: Operand) -> tuple[Operand, ...]:
    """As many registers as the shape has."""
    shape, times = call.word("shape") or "", int((call.word("num") or "x1")[1:])
    wanted = REGISTERS[shape] * times
    if wanted > MAX_REGISTERS:
        call.refuse(f"{call.head}.{shape} has at most .x{MAX_REGISTERS // REGISTERS[shape]}", "num")
    if not isinstance(operand, Group) or operand.bracketed:
        hint = "write {%" + operand.name + "}" if isinstance(operand, Reg) else "for example {%r0, %r1}"
        call.fail(f"{call.head} has its registers in braces, even one", operand, hint)
    if len(operand.items) != wanted:
        message = f".{shape}.x{times} has {wanted} register(s), and {len(operand.items)} are given"
        call.fail(message, operand, None if wanted > 1 else "write {%r0}")
    return operand.items


def _check_split(call: Call, position: int) -> None:
    split = call.word("shape") == "16x32bx2"
    if (len(call.operands) > position) is not split:
        call.fail(f"this {call.head} takes r, [taddr]{', immHalfSplitoff' if split else ''}")
    if split and not isinstance(call.operands[position], Imm):
        call.fail("immHalfSplitoff is a number", call.operands[position])


_SHAPE = Slot("shape", tuple(REGISTERS), "shape", Need.ALWAYS)
_NUMBER = Slot("num", tuple(f"x{1 << k}" for k in range(8)), "number of repetitions", Need.ALWAYS)
_CP_SHAPES = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
_TWO, _FOUR = ("warpx2::02_13", "warpx2::01_23"), ("warpx4",)

ROWS = (
    Row(
        ("tcgen05.cp",),
        (
            GROUP,
            Slot("shape", _CP_SHAPES, "shape", Need.ALWAYS),
            Slot("multicast", (*_TWO, *_FOUR), "multicast to warps"),
            Slot("dst_fmt", ("b8x16",), "format"),
            Slot("src_fmt", ("b6x16_p32", "b4x16_p64"), "source format"),
        ),
        ("[taddr]", "s-desc"),
        copy,
        "an issue; outside of program order a read of shared memory (async proxy) and a write of tensor memory; with "
        ".cta_group::2 the same in the peer CTA, if the test has it",
        PAGE + "tcgen05.cp",
        rules=(
            Rule(
                "{head}.64x128b needs .warpx2::02_13 or .warpx2::01_23",
                "write {head}.cta_group::N.64x128b.warpx2::02_13",
                {"shape": ("64x128b",)},
                ("multicast",),
                at="shape",
            ),
            Rule(
                "{head}.32x128b needs .warpx4",
                "write .32x128b.warpx4",
                {"shape": ("32x128b",)},
                ("multicast",),
                at="shape",
            ),
            Rule(
                "{head}.{shape} takes no .{multicast}",
                "drop it",
                {"shape": _CP_SHAPES[:3], "multicast": ()},
                at="multicast",
            ),
            Rule(
                "{head}.64x128b needs .warpx2::02_13 or .warpx2::01_23",
                "write it instead of .{multicast}",
                {"shape": ("64x128b",), "multicast": _FOUR},
                at="multicast",
            ),
            Rule(
                "{head}.32x128b needs .warpx4",
                "write it instead of .{multicast}",
                {"shape": ("32x128b",), "multicast": _TWO},
                at="multicast",
            ),
            Rule(
                ".{dst_fmt} needs a source format",
                "write .b8x16.b6x16_p32 or .b8x16.b4x16_p64",
                {"dst_fmt": ()},
                ("src_fmt",),
            ),
            Rule(".{src_fmt} needs .b8x16 in front", "write .b8x16.{src_fmt}", {"src_fmt": ()}, ("dst_fmt",)),
        ),
        since=100,
        families=TENSOR_CORES,
    ),
    Row(
        ("tcgen05.shift",),
        (GROUP, Slot("down", ("down",), "direction", Need.ALWAYS)),
        ("[taddr]",),
        shift,
        "an issue; outside of program order a read of tensor memory and a write of the element before",
        PAGE + "tcgen05.shift",
        since=100,
        families=frozenset({100, 103, 110}),
    ),
    Row(
        ("tcgen05.ld",),
        (*ALIGNED, _SHAPE, _NUMBER, flag("pack::16b"), type_slot(("b32",))),
        ("r", "[taddr]", "immHalfSplitoff?"),
        load,
        "an issue; outside of program order a read of tensor memory for each register",
        PAGE + "tcgen05.ld",
        rules=BOTH_ALIGNED,
        since=100,
        families=TENSOR_CORES,
    ),
    Row(
        ("tcgen05.st",),
        (*ALIGNED, _SHAPE, _NUMBER, flag("unpack::16b"), type_slot(("b32",))),
        ("[taddr]", "r", "r?"),
        store,
        "an issue; outside of program order a write of tensor memory for each register",
        PAGE + "tcgen05.st",
        rules=BOTH_ALIGNED,
        since=100,
        families=TENSOR_CORES,
        written="[taddr]{, immHalfSplitoff}, r",
    ),
)
