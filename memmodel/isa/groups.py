"""Rows of the table: groups of asynchronous operations, and waiting for them.

In: a Call. Out: a Commit, or a Wait. Settled here: which operations a group is about. A wait with .read waits for the
reads of sources and tensor maps (tag SRC), not for the writes.
"""

from __future__ import annotations

from memmodel.isa.call import Call, describe
from memmodel.isa.ops import Commit, Const, Event, Op, Wait
from memmodel.isa.row import Row, Slot, flag
from memmodel.litmus.syntax import Imm

TRACKS = {"cp.async": "cp.async", "cp.async.bulk": "bulk", "wgmma": "wgmma"}
WAITED = Event(frozenset({"WAITGROUP"}))

_COPY = "Data Movement and Conversion Instructions: "


def commit(call: Call) -> tuple[Op, ...]:
    """commit_group: what was issued since the last one becomes a group."""
    return (Commit(_track(call)),)


def wait(call: Call) -> tuple[Op, ...]:
    """wait_group: all but the last N groups are complete."""
    operand = call.operands[0]
    if not isinstance(operand, Imm) or operand.value < 0:
        call.fail(f"{call.head} takes a number of groups, and this is {describe(operand)}", operand, "write it out")
    return (Wait(WAITED, _track(call), Const(operand.value), "SRC" if call.word("read") else None),)


def wait_all(call: Call) -> tuple[Op, ...]:
    """cp.async.wait_all: commit_group, then wait_group 0."""
    return (Commit("cp.async"), Wait(WAITED, "cp.async", Const(0)))


def _track(call: Call) -> str:
    return TRACKS[call.head.rpartition(".")[0]]


ALIGNED = (Slot("sync", ("sync",), "qualifier"), flag("aligned"))

ROWS = (
    Row(
        ("cp.async.commit_group", "cp.async.bulk.commit_group"),
        (),
        (),
        commit,
        "none; the copies issued since the last one become a group",
        _COPY + "cp.async.commit_group; cp.async.bulk.commit_group",
        since=80,
        head_needs={"cp.async.bulk.commit_group": 90},
    ),
    Row(
        ("cp.async.wait_group",),
        (),
        ("N",),
        wait,
        "an event that follows the end of every copy in all but the last N groups",
        _COPY + "cp.async.wait_group / cp.async.wait_all",
        since=80,
    ),
    Row(
        ("cp.async.bulk.wait_group",),
        (flag("read"),),
        ("N",),
        wait,
        "the same for bulk groups; with .read it follows the reads of sources and tensor maps only",
        _COPY + "cp.async.bulk.wait_group",
        since=90,
    ),
    Row(
        ("cp.async.wait_all",),
        (),
        (),
        wait_all,
        "as cp.async.commit_group, then cp.async.wait_group 0",
        _COPY + "cp.async.wait_group / cp.async.wait_all",
        since=80,
    ),
)
