"""Rows of the table: branches and the end of a thread.

In: a Call. Out: one Jump, or nothing. A guard on a branch guards its Jump like any other step.
"""

from __future__ import annotations

from memmodel.base.labels import Mark, Marker
from memmodel.isa.call import Call
from memmodel.isa.row import Row, flag, type_slot
from memmodel.program.expressions import Apply
from memmodel.program.ops import Emit, Jump, Op
from memmodel.ptx import UNTYPED

_FLOW = "Control Flow Instructions: "


def jump(call: Call) -> tuple[Op, ...]:
    """bra and goto."""
    return (Jump(call.label(call.operands[0])),)


def end(call: Call) -> tuple[Op, ...]:
    """ret and exit: the thread is done, and says so by an event."""
    return (Emit(Mark(Marker.EXIT)), Jump(None))


def branch(call: Call) -> tuple[Op, ...]:
    """beq and its kin: jump if the comparison of two values, as signed integers, holds."""
    first, second, label = call.operands
    condition = Apply(call.head[1:], (call.value(first), call.value(second)), UNTYPED)
    return (Jump(call.label(label), condition),)


def nothing(call: Call) -> tuple[Op, ...]:
    """Time passes; no event."""
    call.integer(call.operands[0])
    return ()


ROWS = (
    Row(("bra",), (flag("uni"),), ("label",), jump, "none", _FLOW + "bra"),
    Row(("ret",), (flag("uni"),), (), end, "none; ends the thread", _FLOW + "ret"),
    Row(("exit",), (), (), end, "none; ends the thread", _FLOW + "exit"),
    Row(("goto",), (), ("label",), jump, "none", "litmus dialect", columns=True),
    Row(
        tuple(f"b{relation}" for relation in ("eq", "ne", "lt", "le", "gt", "ge")),
        (),
        ("a", "b", "label"),
        branch,
        "none",
        "litmus dialect",
        columns=True,
    ),
    Row(
        ("nanosleep",),
        (type_slot(("u32",)),),
        ("t",),
        nothing,
        "none",
        "Miscellaneous Instructions: nanosleep",
        since=70,
    ),
)
