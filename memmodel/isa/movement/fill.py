"""Row of the table: st.bulk, which sets shared memory to zero.

In: a Call. Out: one Write of zeros. Settled here: the size. The bytes are written in pieces of no particular size, as
by a weak copy.
"""

from __future__ import annotations

from memmodel.base.labels import Side
from memmodel.isa.call import Call
from memmodel.isa.place import address_in
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import optional
from memmodel.program.expressions import Apply, Const
from memmodel.program.ops import Op, UndefinedIf, Write
from memmodel.program.regions import Chunk
from memmodel.ptx.operands import Imm, Reg, describe
from memmodel.ptx.vocabulary import U64, UNTYPED, Space, Window

UNIT = 8
MOST = 1 << 24


def store(call: Call) -> tuple[Op, ...]:
    """st.bulk: `size` bytes of zeros. No bytes, no write."""
    target, amount, initial = call.operands
    odd = isinstance(amount, Imm) and bool(amount.value % UNIT or not 0 <= amount.value <= MOST)
    if isinstance(amount, Imm) and odd and not call.in_module:
        call.fail(f"st.bulk writes a multiple of {UNIT} bytes, 16 MB at most, not {amount.value}", amount)
    if not isinstance(initial, Imm) or initial.value:
        call.fail(f"st.bulk writes zeros, and this is {describe(initial)}", initial, "write 0")
    address = address_in(call, target, Space.SHARED)
    size = call.integer(amount)
    region = Chunk(address, Window.SHARED_CTA, size, align=UNIT, multiple=UNIT)
    any_bytes = Apply("ne", (size, Const(0)), UNTYPED)
    written = Write((Const(0),), region, call.access(Side.WRITE), any_bytes)
    if not call.in_module or not (odd or isinstance(amount, Reg)):
        return (written,)
    rest = Apply("ne", (Apply("rem", (size, Const(UNIT)), U64), Const(0)), U64)
    return (UndefinedIf(f"st.bulk writes a multiple of {UNIT} bytes", rest), written)


ROWS = (
    Row(
        ("st.bulk",),
        (
            optional("sem", "weak"),
            optional(
                "space",
                "shared::cta",
                refused={
                    word: ("{head} writes to shared memory of the own CTA", "write .shared::cta")
                    for word in ("shared", "shared::cluster", "global")
                },
            ),
        ),
        ("[a]", "size", "initval"),
        store,
        "a weak write of zeros, in pieces of no particular size; the address is a multiple of 8",
        "Data Movement and Conversion Instructions: st.bulk",
        since=Since(100, "8.6"),
    ),
)
