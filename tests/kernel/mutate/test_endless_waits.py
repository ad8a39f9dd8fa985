"""Removals without which threads wait for ever: a run of their own hangs in the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from helpers.kernel.samples import NEIGHBOUR, entry, launch, module

from kernel.mutate.test_same_runs import HANDED_OVER, PEEK, TWICE, WAITS, judged, with_all
from memmodel.cat.load import load_model
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, mutations
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.order.verdict import FindingKey
from memmodel.ptx.module.syntax import PtxModule

MODEL = load_model("ptx-9.4")
WAIT = "{0}:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r4], {1};\n@!%p5 bra {0};\n"
ARRIVE = "@%p0 mbarrier.arrive.shared.b64 _, [%r4];\n"
BEGIN = "@%p0 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\n"
IN_TURN = BEGIN + ARRIVE + WAIT.format("A", 0) + "bar.sync 0;\n" + ARRIVE + WAIT.format("B", 1)
"""Each of two phases is waited for."""
SPARE = BEGIN + ARRIVE + WAIT.format("A", 0) + "bar.sync 0;\n" + ARRIVE
"""One arrival more than the waits need."""
AHEAD = BEGIN + ARRIVE + PEEK.format("%r4") + WAITS.format("%r4") + WAIT.format("A", 0)
AHEAD += "bar.sync 0;\n" + ARRIVE + WAIT.format("B", 1)
"""A test that looks ahead saves the first of two waits for one phase."""
RUNS_AHEAD = BEGIN.replace("], 1", "], 2") + ARRIVE * 3 + WAIT.format("A", 0)
"""The third arrival, of the second phase, takes the place of one of the first phase."""
DIVERGES = BEGIN + "setp.eq.s32 %p6, %r0, 32;\n" + ARRIVE.replace("%p0", "%p6")
DIVERGES += "@!%p0 bra Z;\n" + WAIT.format("A", 0) + "Z:\nbar.sync 0;\n"
"""Where one lane waits for ever, the others of its warp come to a barrier without it."""
HALVES = NEIGHBOUR.format(sync="bar.arrive 1, 128;\nbar.sync 1, 128;\nbar.sync 0;")
APART = "setp.ge.u32 %p6, %r0, 32;\n@%p6 bra X;\nbar.sync 0;\nbra Y;\nX:\nbar.sync 0;\nY:\n"
"""Where half of the threads do not come to the barrier, their end ends the wait of the others."""
EXPECT = "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 16;\n"
COPY = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 16, [%r4];\n"
BYTES_FIRST = BEGIN + EXPECT + COPY + ARRIVE + WAIT.format("A", 0)
BYTES_LAST = BEGIN + EXPECT + ARRIVE + COPY + WAIT.format("A", 0)
"""Without the announcement the phase ends before the bytes come."""
BODIES = {
    "handed over": HANDED_OVER, "waits twice": TWICE, "in turn": IN_TURN, "spare": SPARE, "looks ahead": AHEAD,
    "runs ahead": RUNS_AHEAD, "halves": HALVES, "apart": APART, "bytes first": BYTES_FIRST, "bytes last": BYTES_LAST,
    "diverges": DIVERGES, "lanes apart": DIVERGES.replace("Z:\nbar.sync 0", "Z:\nbar.warp.sync -1"),
}  # fmt: skip
HANGING = {
    "handed over": ["arrive"], "waits twice": ["arrive"] * 3, "in turn": ["arrive"] * 2, "spare": ["arrive"],
    "looks ahead": ["arrive"] * 2, "runs ahead": [], "halves": ["arrive"], "apart": [],
    "bytes first": ["expect_tx", "arrive"], "bytes last": ["arrive"], "diverges": [], "lanes apart": [],
}  # fmt: skip


def same_run(read: PtxModule) -> SameRun:
    (first, *_) = judged(read, entry(read), launch()).judged
    assert first.judgement.flags is not None
    return SameRun(first.run, MODEL, first.judgement.flags, often=False)


def hangs(read: PtxModule, changes: Sequence[Mutation]) -> list[FindingKey]:
    """Where the kernel with these changes hangs in a run of its own."""
    verdict = judged(read, with_all(entry(read), tuple(changes)), launch()).verdict
    return [finding.key for finding in verdict.serious if finding.rule == "hang"]


@pytest.mark.parametrize("name", BODIES)
def test_what_is_said_to_hang_does_so_in_the_same_lines(name: str) -> None:
    read = module(BODIES[name])
    same = same_run(read)
    changes = list(mutations(entry(read)))
    removals = [change for change in changes if change.what == REMOVED]
    assert not any(same.endless_waits([change]) for change in changes if change.what != REMOVED)  # it is still there
    alone = [change for change in removals if same.endless_waits([change])]
    assert [change.instruction.words[1] for change in alone] == HANGING[name]
    assert all(same.endless_waits([change]) == hangs(read, [change]) for change in alone)
    sets = [changes for changes in combinations(removals, 2) if same.endless_waits(changes)]
    assert all(same.endless_waits(changes) == hangs(read, changes) for changes in sets[::3])
    for arrive in alone:  # with all waits that it is for, it can go
        tests = [change for change in removals if change.instruction.words[1] in ("try_wait", "sync")]
        assert not same.endless_waits([arrive, *tests])
        orders = [change for change in removals if same.only_orders(change) and change.instruction.words[0] != "bar"]
        assert same.endless_waits([arrive, *orders])


def test_without_a_test_that_looks_ahead_the_wait_that_it_saves_does_not_count() -> None:
    read = module(AHEAD)
    same = same_run(read)
    removals = [it for it in mutations(entry(read)) if it.what == REMOVED]
    first, second = (it for it in removals if it.instruction.words[1] == "arrive")
    ahead, saved, wait, last = (it for it in removals if it.instruction.words[1] == "try_wait")
    for arrive in (first, second):
        assert all(same.endless_waits([arrive, it]) for it in (ahead, saved, wait))
    for changes in ([first, wait, ahead], [first, wait, saved], [second, last]):
        assert not same.endless_waits(changes)
    assert same.endless_waits([first, last]) == hangs(read, [first, last]) != []


def test_a_state_that_counts_for_a_register_is_not_read_off() -> None:
    """What is left of the kernel does not do what the run does."""
    read = module(BEGIN + "@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];\n" + WAIT.format("A", 0) + "mov.b64 %d6, %d5;\n")
    (arrive,) = (it for it in mutations(entry(read)) if it.what == REMOVED and it.instruction.words[1] == "arrive")
    assert not same_run(read).endless_waits([arrive])
