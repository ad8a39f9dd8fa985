"""Rows of the table: groups of asynchronous operations, and waiting for them.

In: a Call. Out: a CommitGroup, or a WaitForGroups. Settled here: which operations a group is about. A wait with .read
waits for the reads of sources and tensor maps, not for the writes.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Family, GroupWait
from memmodel.isa.call import Call
from memmodel.isa.refused import SPELLING, refusing
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import optional
from memmodel.program.expressions import Const
from memmodel.program.ops import CommitGroup, Op, Track, WaitForGroups
from memmodel.ptx.operands import Imm, describe

TRACKS = {
    "cp.async": (Track.CP_ASYNC, Family.CP_ASYNC),
    "cp.async.bulk": (Track.BULK, Family.BULK),
    "wgmma": (Track.WGMMA, Family.WGMMA),
}

_COPY = "Data Movement and Conversion Instructions: "


def commit(call: Call) -> tuple[Op, ...]:
    """commit_group: what was issued since the last one becomes a group."""
    return (CommitGroup(_track(call)[0]),)


def wait(call: Call) -> tuple[Op, ...]:
    """wait_group: all but the last N groups are complete."""
    operand = call.operands[0]
    if not isinstance(operand, Imm) or operand.value < 0:
        call.fail(f"{call.head} takes a number of groups, and this is {describe(operand)}", operand, "write it out")
    track, family = _track(call)
    return (WaitForGroups(GroupWait(family), track, Const(operand.value), call.word("read") is not None),)


def wait_all(call: Call) -> tuple[Op, ...]:
    """cp.async.wait_all: commit_group, then wait_group 0."""
    return (CommitGroup(Track.CP_ASYNC), WaitForGroups(GroupWait(Family.CP_ASYNC), Track.CP_ASYNC, Const(0)))


def _track(call: Call) -> tuple[Track, Family]:
    return TRACKS[call.head.rpartition(".")[0]]


_row = partial(Row, since=Since(80, "7.0"), effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        ("cp.async.commit_group", "cp.async.bulk.commit_group"),
        (),
        (),
        commit,
        "none; the copies issued since the last one become a group",
        _COPY + "cp.async.commit_group; cp.async.bulk.commit_group",
        later={"head=cp.async.bulk.commit_group": Since(90, "8.0")},
        part="",
    ),
    _row(
        ("cp.async.wait_group",),
        (),
        ("N",),
        wait,
        "an event that follows the end of every copy in all but the last N groups",
        _COPY + "cp.async.wait_group / cp.async.wait_all",
        results=0,
    ),
    _row(
        ("cp.async.bulk.wait_group",),
        (optional("read"), refusing(SPELLING, "sync_restrict::proxy::async")),
        ("N",),
        wait,
        "the same for bulk groups; with .read it follows the reads of sources and tensor maps only",
        _COPY + "cp.async.bulk.wait_group",
        since=Since(90, "8.0"),
        results=0,
    ),
    _row(
        ("cp.async.wait_all",),
        (),
        (),
        wait_all,
        "as cp.async.commit_group, then cp.async.wait_group 0",
        _COPY + "cp.async.wait_group / cp.async.wait_all",
    ),
)
