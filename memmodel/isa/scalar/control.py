"""Rows of the table: branches and the end of a thread.

In: a Call. Out: one Jump, or nothing. A guard on a branch guards its Jump like any other step. A function of a module
has an end of its own, and lists of labels.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Mark, Marker
from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row, Together
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.synchronization.grids import at_end
from memmodel.isa.tensor_memory import ALIGNED
from memmodel.program.expressions import Apply, Const
from memmodel.program.ops import Emit, Jump, Op, Unmodelled
from memmodel.program.warp_ops import EndThread, JumpByTable, Return, TakeRegisters, Trap, WarpOp
from memmodel.ptx.operands import Imm, JumpTable, describe
from memmodel.ptx.targets import FAMILIES
from memmodel.ptx.vocabulary import U32, UNTYPED

_FLOW = "Control Flow Instructions: "


def jump(call: Call) -> tuple[Op, ...]:
    """bra and goto."""
    return (Jump(call.label(call.operands[0])),)


def end(call: Call) -> tuple[Op, ...]:
    """ret and exit: the thread is done, and says so by an event."""
    return (Emit(Mark(Marker.EXIT)), *at_end(call.context.test, call.context.thread), Jump(None))


def branch(call: Call) -> tuple[Op, ...]:
    """beq and its kin: jump if the comparison of two values, as signed integers, holds."""
    first, second, label = call.operands
    condition = Apply(call.head[1:], (call.value(first), call.value(second)), UNTYPED)
    return (Jump(call.label(label), condition),)


def nothing(call: Call) -> tuple[Op, ...]:
    """Time passes; no event."""
    call.integer(call.operands[0])
    return ()


def jump_by_table(call: Call) -> tuple[Op | WarpOp, ...]:
    """brx.idx, in a module: to one of a list of labels."""
    index, table = call.operands
    if not isinstance(table, JumpTable):
        call.fail(f"{call.head} takes a list of branch targets, and this is {describe(table)}", table)
    return (JumpByTable(tuple(map(str, table.targets)), call.source(index, U32)),)


def leave_function(call: Call) -> tuple[Op | WarpOp, ...]:
    """ret in a module."""
    return (Return(),)


def end_thread(call: Call) -> tuple[Op | WarpOp, ...]:
    """exit in a module."""
    return (EndThread(),)


def trap(call: Call) -> tuple[Op | WarpOp, ...]:
    """trap and brkpt in a module: a kernel is not to come there."""
    return (Trap(call.head),)


def stop(call: Call) -> tuple[Op, ...]:
    """trap and brkpt: what memory holds after a grid that stops early is not modelled."""
    return (Unmodelled(f"{call.head} stops the execution", Const(1)),)


def event(call: Call) -> tuple[Op, ...]:
    """pmevent: a performance counter counts; no event."""
    number = call.operands[0]
    most = 15 if call.word("mask") is None else 0xFFFF
    if not isinstance(number, Imm) or not 0 <= number.value <= most:
        call.fail(
            f"{call.instruction.mnemonic} takes a number from 0 to {most}, and this is {describe(number)}", number
        )
    return ()


def set_registers(call: Call) -> tuple[Op, ...]:
    """setmaxnreg: registers of a warp change hands; no event."""
    count = call.operands[0]
    if not isinstance(count, Imm) or count.value % 8 or not 24 <= count.value <= 256:
        call.fail(f"a register count is a multiple of 8 from 24 to 256, and this is {describe(count)}", count)
    return ()


def take_registers(call: Call) -> tuple[Op | WarpOp, ...]:
    """The same in a module, where a warp may have to wait for the registers that others give back."""
    set_registers(call)
    count = call.operands[0]
    assert isinstance(count, Imm)
    return (TakeRegisters(count.value, call.word("action") == "inc"),)


_row = partial(Row, effect=Effect.CONTROL, since=FIRST)

ROWS = (
    _row(("bra",), (optional("uni"),), ("label",), jump, "none", _FLOW + "bra", results=0),
    _row(
        ("brx.idx",),
        (optional("uni"),),
        ("index", "tlist"),
        None,
        "none",
        _FLOW + "brx.idx",
        lower_module=jump_by_table,
        results=0,
        since=Since(30, "6.0"),
    ),
    _row(("ret",), (optional("uni"),), (), end, "none; ends the thread", _FLOW + "ret", lower_module=leave_function),
    _row(("exit",), (), (), end, "none; ends the thread", _FLOW + "exit", lower_module=end_thread),
    _row(("goto",), (), ("label",), jump, "none", "litmus dialect", columns=True),
    _row(
        tuple(f"b{relation}" for relation in ("eq", "ne", "lt", "le", "gt", "ge")),
        (),
        ("a", "b", "label"),
        branch,
        "none",
        "litmus dialect",
        columns=True,
    ),
    _row(
        ("nanosleep",),
        (in_blocks("type", "u32"),),
        ("t",),
        nothing,
        "none",
        "Miscellaneous Instructions: nanosleep",
        since=Since(70, "6.2"),
        effect=Effect.NOTHING,
        results=0,
    ),
    _row(
        ("trap", "brkpt"),
        (),
        (),
        stop,
        "none; what happens after it is not modelled, and a test that comes there is undecided",
        "Miscellaneous Instructions: trap; brkpt",
        lower_module=trap,
    ),
    _row(
        ("pmevent",),
        (optional("mask"),),
        ("a",),
        event,
        "none",
        "Miscellaneous Instructions: pmevent",
        since=Since(20, "1.4"),
        later={"mask": Since(20, "3.0")},
        effect=Effect.NOTHING,
        results=0,
    ),
    _row(
        ("setmaxnreg",),
        (needed("action", "inc", "dec"), *ALIGNED, needed("type", "u32")),
        ("imm-reg-count",),
        set_registers,
        "none; the pool of registers always has enough for .inc",
        "Miscellaneous Instructions: setmaxnreg",
        lower_module=take_registers,
        effect=Effect.SYNCHRONIZES,
        together=Together.WARPGROUP,
        live=True,
        # Compilers let each role of a warpgroup give its registers back at a place of its own.
        elsewhere=True,
        rules=tuple(
            Rule("{head} is .sync.aligned", "write {head}.{action}.sync.aligned.u32", f"action !{word}")
            for word in ("sync", "aligned")
        ),
        since=Since(version="8.0", families=FAMILIES, alone=frozenset({90})),
        results=0,
    ),
)
