"""Operands of tcgen05.mma that change what it computes, and not what it touches: masks, and collector buffers.

In: a Call, operands, temporaries. Out: the steps that find what the numbers of a litmus test cannot show: lanes of the
accumulator that a mask leaves as they are, columns of B that a mask makes zero, a matrix that a collector buffer may
still have while memory has another one ("tcgen05.mma", "Zero-Column Mask Descriptor"). Settled here: whether a buffer
is filled. A thread keeps notes of that, and of what was read into it (registers with a `#`).
"""

from __future__ import annotations

from collections.abc import Collection

from memmodel.isa.call import Call
from memmodel.isa.tensor_memory import ctas, descriptor
from memmodel.litmus.constants import instructions
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Operand
from memmodel.ptx.vocabulary import U32, U64

ZERO_COLUMNS = 1 << 39 | 0x3F << 56
"""Non-Zero Mask and Column Shift of a zero-column mask descriptor; without them all columns of B are used."""


def hidden_lanes(call: Call, words: tuple[Operand, ...]) -> tuple[Op, ...]:
    """disable-output-lane: lanes whose bit is 1 keep what they have."""
    bits = [call.integer(word) for word in words]
    if all(bit == Const(0) for bit in bits):
        return ()
    hidden = bits[0]
    for other in bits[1:]:
        hidden = Apply("or", (hidden, other), U32)
    return (Unmodelled("disable-output-lane hides lanes, and tensor memory has columns only in a litmus test", hidden),)


def zero_columns(call: Call, operand: Operand) -> tuple[Op, ...]:
    """zero-column-mask-desc: columns of B that count as zero."""
    masked = Apply("and", (descriptor(call, operand), Const(ZERO_COLUMNS)), U64)
    return (Unmodelled("a zero-column mask hides columns of B, and a matrix is its sum in a litmus test", masked),)


def collector(call: Call) -> tuple[str, str]:
    """The collector buffer of an mma, a or b0 to b3, and what it does with it; without a word it discards its own."""
    default = f"collector::{'b0' if call.head.startswith('tcgen05.mma.ws') else 'a'}::discard"
    _, buffer, use = (call.word("collector") or default).split("::")
    return buffer, use


def collected(call: Call, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[Op, ...]:
    """What an mma that read A and B into these temporaries leaves in its collector buffer, and takes from it.

    With ::use and ::lastuse the matrix may come from the buffer, or from memory: the answer is known if they are equal.
    """
    buffer, use = collector(call)
    if not any(f"collector::{buffer}::{again}" in line for again in ("use", "lastuse") for line in _of_pair(call)):
        return ()
    filled, matrix = f"#{buffer}", left if buffer == "a" else right
    if use == "fill":
        return (Assign(filled, Const(1)), *(Assign(f"{filled}{name}", Get(name)) for name in matrix))
    if use == "discard":
        return (Assign(filled, Const(0)),)
    checks = _checks(call, buffer, matrix)
    return (*checks, Assign(filled, Const(0))) if use == "lastuse" else checks


def _checks(call: Call, buffer: str, matrix: tuple[str, ...]) -> tuple[Op, ...]:
    """The steps before a matrix is taken from a collector buffer."""
    filled: Expr = Get(f"#{buffer}")
    kind = f"collector::{buffer[0]}"
    own = {id(instruction) for instruction in instructions(call.context.thread)}
    for line in _of_pair(call, without=own):
        if line.startswith("tcgen05.mma") and (kind in line or line.startswith("tcgen05.mma.ws") == (buffer != "a")):
            return (Unmodelled("another thread may have filled or discarded the collector buffer", Const(1)),)
    other: Expr = Const(0)
    for name in matrix:
        other = Apply("or", (other, Apply("ne", (Get(name), Get(f"#{buffer}{name}")), U64)), U64)
    return (
        UndefinedIf(
            f"the collector buffer {buffer} is used, and no mma before has filled it",
            Apply("eq", (filled, Const(0)), U32),
        ),
        Unmodelled("the collector buffer may hold another matrix than memory", Apply("and", (filled, other), U64)),
    )


def _of_pair(call: Call, without: Collection[int] = ()) -> list[str]:
    """The mnemonics of the threads in the CTAs that the instruction works in."""
    places = {(call.place.cluster_id, cta) for cta in ctas(call)}
    threads = [thread for thread in call.context.test.threads if (thread.place.cluster_id, thread.place.cta) in places]
    return [
        instruction.mnemonic
        for thread in threads
        for instruction in instructions(thread)
        if id(instruction) not in without
    ]
