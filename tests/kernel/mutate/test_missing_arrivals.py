"""Removals without which too few arrive: a run of their own hangs."""

from __future__ import annotations

from itertools import combinations

import pytest
from helpers.kernel.samples import entry, launch, module

from kernel.mutate.test_same_runs import HANDED_OVER, PEEK, TWICE, WAITS, judged, with_all
from memmodel.cat.load import load_model
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, mutations
from memmodel.kernel.mutate.same_run import SameRun

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
BODIES = {"handed over": HANDED_OVER, "waits twice": TWICE, "in turn": IN_TURN, "spare": SPARE, "looks ahead": AHEAD}
HANGING = {
    "handed over": ["arrive"], "waits twice": ["arrive"] * 3, "in turn": ["arrive"] * 2, "spare": [],
    "looks ahead": ["arrive"] * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_what_is_said_to_hang_does(name: str) -> None:
    read = module(BODIES[name])
    kernel = judged(read, entry(read), launch())
    (first, *_) = kernel.judged
    assert first.judgement.flags is not None
    same = SameRun(first.run, MODEL, first.judgement.flags, often=False)
    removals = [change for change in mutations(entry(read)) if change.what == REMOVED]
    alone = [change for change in removals if same.waits_for_ever([change])]
    assert [change.instruction.words[1] for change in alone] == HANGING[name]

    def hangs(changes: tuple[Mutation, ...]) -> bool:
        verdict = judged(read, with_all(entry(read), changes), launch()).verdict
        return any(finding.rule == "hang" for finding in verdict.serious)

    sets = [changes for size in (1, 2) for changes in combinations(removals, size) if same.waits_for_ever(changes)]
    assert all(map(hangs, sets[::3]))
    for arrive in alone:  # with all waits that it is for, it can go
        tests = [change for change in removals if change.instruction.words[1] == "try_wait"]
        assert not same.waits_for_ever([arrive, *tests])
        assert same.waits_for_ever([arrive, *(change for change in removals if same.only_orders(change))])


def test_without_a_test_that_looks_ahead_the_wait_that_it_saves_does_not_count() -> None:
    read = module(AHEAD)
    kernel = judged(read, entry(read), launch())
    flags = kernel.judged[0].judgement.flags
    assert flags is not None
    same = SameRun(kernel.judged[0].run, MODEL, flags, often=False)
    removals = [it for it in mutations(entry(read)) if it.what == REMOVED]
    arrives = [it for it in removals if it.instruction.words[1] == "arrive"]
    ahead, saved, wait, last = (it for it in removals if it.instruction.words[1] == "try_wait")
    for arrive in arrives:
        assert all(same.waits_for_ever([arrive, it]) for it in (ahead, saved, wait))
        assert not any(same.waits_for_ever([arrive, wait, it]) for it in (ahead, saved))
        assert not same.waits_for_ever([arrive, last])


def test_a_state_that_counts_for_a_register_is_not_read_off() -> None:
    """What is left of the kernel does not do what the run does."""
    read = module(BEGIN + "@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];\n" + WAIT.format("A", 0) + "mov.b64 %d6, %d5;\n")
    kernel = judged(read, entry(read), launch())
    flags = kernel.judged[0].judgement.flags
    assert flags is not None
    same = SameRun(kernel.judged[0].run, MODEL, flags, often=False)
    (arrive,) = (it for it in mutations(entry(read)) if it.what == REMOVED and it.instruction.words[1] == "arrive")
    assert not same.waits_for_ever([arrive])
