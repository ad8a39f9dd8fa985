"""The changes that fix tries: which there are, what they leave alone, and when one need not be judged."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Observation
from memmodel.cli import main
from memmodel.engine import Options
from memmodel.lsp.changes import edits
from memmodel.lsp.document import Document
from memmodel.repair.carry import Carry, _shifted, survives
from memmodel.repair.edits import Edit, apply, diff
from memmodel.repair.fix import fix
from memmodel.repair.hints import moves_a_fence
from memmodel.repair.insertion.accesses import moved_accesses
from memmodel.repair.insertion.meetings import meetings
from memmodel.repair.judge import AnswersOfTest, judging, parse
from memmodel.repair.searching.search import RepairSearch
from memmodel.repair.searching.trials import Trials
from memmodel.repair.vocabulary import replacements, strengthenings
from memmodel.source import Source, with_line_ends_of
from memmodel.why.story import execution_of

SHIPPED = ROOT / "litmus"
MODELS = (api.load("ptx-9.4"),)


def text_of(name: str) -> str:
    return (SHIPPED / f"{name}.litmus").read_text()


def changes(text: str) -> list[Edit]:
    lowered = api.lowered(Source("t", text))
    return [*strengthenings(lowered), *replacements(lowered)]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bytes/B3-no-empty-wait", "TMA, line 26: a wait for parity %phase of %empty before mbarrier.arrive.expect_tx"),
        ("async/pipelines/multicast-no-empty-wait", "a wait for parity 0 of empty before mbarrier.arrive.expect_tx.s"),
        ("async/pipelines/scheduler-no-empty-wait", "SCHED: a wait in each round but the first of empty"),
        ("async/pipelines/multicast-few-bytes", "TMA0, TMA1, lines 15, 20, 48, 53: 16 -> 32 in mbarrier.arrive.exp"),
        ("async/patterns/threads-to-tma-load.cluster-cta", "-> mbarrier.arrive.release.cluster.shared::cluster.b64"),
        ("async/patterns/tma-store-to-threads.cluster-cta", "-> mbarrier.try_wait.parity.acquire.cluster.shared::cta"),
    ],
)
def test_the_change_is_offered(name: str, change: str) -> None:
    assert any(change in one.what for one in changes(text_of(name)))


def test_a_wait_is_put_into_all_like_threads() -> None:
    text = text_of("async/pipelines/multicast-no-empty-wait")
    both = [one for one in changes(text) if one.what.endswith("and in TMA1") and "parity 0 of empty" in one.what]
    assert both and all(apply(text, [one]).count("[empty], 0;") == 2 for one in both)


def test_waits_in_all_rounds_take_turns() -> None:
    text = text_of("async/pipelines/scheduler-no-empty-wait")
    rounds = next(one for one in changes(text) if "each round but the first of empty" in one.what)
    assert re.findall(r"\[empty\], (\d);", apply(text, [rounds])) == ["0", "1"]


def test_no_thread_waits_for_its_own_arrivals_alone() -> None:
    waits = [one for one in changes(text_of("async/pipelines/scheduler-no-empty-wait")) if one.rank == 0]
    assert any(" of empty" in one.what for one in waits)
    assert not any(one.what.startswith("WORK") and " of empty" in one.what for one in waits)


def test_a_wait_does_not_repeat_the_one_before_it() -> None:
    """P1 waits for parity 0; after that it may wait for parity 1, before that for parity 0."""
    offered = changes(text_of("async/mbarrier/G5-no-acquire"))
    waits = [one for one in offered if one.what.startswith("P1") and "a wait for parity" in one.what]
    assert [one.what.split(" of ")[0].rpartition(" ")[2] for one in waits] == ["0", "1"]


@pytest.mark.parametrize("name", ["async/pipelines/multicast-few-bytes", "async/proxy/A16", "async/proxy/A9"])
def test_no_change_of_a_number_is_one_of_an_access(name: str) -> None:
    """Sizes, masks and addresses of copies stay."""
    for one in changes(text_of(name)):
        if one.group[2] == "number" and " in " in one.what:
            assert one.what.rpartition(" in ")[2].startswith(("mbarrier.", "bar.", "barrier.")) or "wait" in one.what


def test_an_object_is_declared_with_an_arrival_at_least() -> None:
    counts = [one.text for one in changes(text_of("async/mbarrier/G5-no-acquire")) if one.what.startswith("line ")]
    assert counts == ["2", "3"]


def test_a_label_that_is_put_in_is_not_indented() -> None:
    text = text_of("async/mbarrier/G11-no-wait")
    wait = next(one for one in changes(text) if "a wait for parity 0 of bar before ld.shared" in one.what)
    added = [line for line in diff("t", text, apply(text, [wait])).splitlines() if line.startswith("+")]
    assert re.fullmatch(r"\+READY\d+:", added[1]) and all(line.startswith("+    ") for line in added[2:])


BRANCH = """PTX branch
.global .u32 x = 0;
.global .u32 f = 0;
.global .u32 y = 0;
thread P0 @ cta 0, gpu 0 {
    st.global.u32 [x], 1;
    st.relaxed.gpu.global.u32 [f], 1;
}
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.u32 %r0, [f];
    setp.eq.u32 %p, %r0, 1;
    @%p bra SEEN;
    st.relaxed.gpu.global.u32 [y], 1;
SEEN:
    ld.global.u32 %r1, [x];
}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def test_an_execution_that_does_not_come_by_survives() -> None:
    """Before the store that is skipped no fence and nothing else does anything to the execution; that is told."""
    judge, lowered = judging("t", MODELS, Options()), api.lowered(Source("t", BRANCH))
    before = judge(BRANCH)
    assert before is not None
    counterexample = next(one for one in before.counterexamples if one.flag is None)
    execution = execution_of(counterexample.witness)
    assert execution is not None
    carry = Carry(BRANCH, lambda one: (parse("t", one) or (None,))[0])
    passed = [one for one in strengthenings(lowered) if carry.passed_by(execution, one)]
    assert passed and all(one.group[:2] == (1, 3) for one in passed)
    for one in passed:
        carried, now = carry.carried(execution, (), (one,)), judge(apply(BRANCH, (one,)))
        assert carried is not None and survives(counterexample, carried)
        assert now is not None and now.observations[0][2] is Observation.SOMETIMES


def test_two_threads_meet_between_a_fence_that_releases_and_one_that_acquires() -> None:
    text = text_of("async/honest/H16-no-barrier")
    judge = judging("t", MODELS, Options())
    before = judge(text)
    assert before is not None and before.findings
    found = [
        one for one in meetings(api.lowered(Source("t", text)), before.counterexamples) if "arrive.relaxed" in one.text
    ]
    assert [one.text.strip().split(";")[0] for one in (*found, *found[0].more)] == [
        "barrier.cluster.arrive.relaxed"
    ] * 2
    after = judge(apply(text, found))
    assert after is not None and not after.findings and after.observations[0][2] is Observation.NEVER


THREE = """PTX three
.shared .u32 x = 0;
thread P0 @ cta 0, gpu 0 {{ st.shared.u32 [x], 1; }}
thread P1 @ cta 0, gpu 0 {{ ld.shared.u32 %r0, [x]; }}
thread P2 @ cta {cta}, gpu 0 {{ mov.u32 %r0, 1; }}
~exists (P1:r0 == 0)
"""


@pytest.mark.parametrize(("cta", "barrier"), [(0, "bar.sync 0, 64;"), (1, "bar.sync 0;")])
def test_two_threads_meet_without_the_others_of_their_cta(cta: int, barrier: str) -> None:
    (repair,) = fix("three", THREE.format(cta=cta), MODELS, Options()).repairs
    assert repair.new.count(barrier) == 2 == repair.new.count("bar.sync")


def test_an_access_is_moved_over_what_synchronizes_and_nothing_that_it_needs() -> None:
    moves = {one.what.removeprefix("P0, ") for one in moved_accesses(api.lowered(Source("t", MOVES)))}
    assert moves == {
        "line 9: move st.global.u32 before fence.acq_rel.gpu (line 8)",
        "line 10: move ld.global.u32 before ld.global.u32 (line 6)",
        "line 10: move ld.global.u32 before fence.acq_rel.gpu (line 8)",
        "line 11: move st.global.u32 before fence.acq_rel.gpu (line 8)",
    }
    branch = MOVES.replace("fence.acq_rel.gpu", "bra ON;\nON:\n    fence.acq_rel.gpu")
    assert not any("line 6" in one.what for one in moved_accesses(api.lowered(Source("t", branch))))


MOVES = """PTX moves
.global .u32 x = 0;
.global .u32 y = 0;
.global .u32 z = 0;
thread P0 @ cta 0, gpu 0 {
    ld.global.u32 %r0, [x];
    add.u32 %r0, %r0, 1;
    fence.acq_rel.gpu;
    st.global.u32 [x], 2;
    ld.global.u32 %r1, [z];
    st.global.u32 [y], %r0;
}
exists (P0:r0 == 1)
"""


def moved(body: str) -> set[str]:
    given = "PTX moves\n.global .u32 x = 0;\n.global .u32 y = 0;\n.global .u32 f = 0;\n"
    test = f"{given}thread P0 @ cta 0, gpu 0 {{{body}}}\n"
    return {one.what for one in moved_accesses(api.lowered(Source("t", test + "exists (y == 1)\n")))}


WAIT = """
    ld.global.u32 %r2, [y];
    setp.eq.u32 %q, %r2, 1;
    {jump}
    st.global.u32 [x], 1;
    fence.acq_rel.gpu;
W:
    ld.relaxed.gpu.global.u32 %r0, [f];
    setp.eq.u32 %p, %r0, 0;
    {leave}
    @%p bra W;
    st.global.u32 [y], 1;
{out}
"""


def test_no_access_is_moved_to_where_a_jump_leads_around_it() -> None:
    over = "P0, line 9: move st.global.u32 before the loop of ld.relaxed.gpu.global.u32 (line 12)"
    assert over in moved(WAIT.format(jump="", leave="", out=""))
    assert moved(WAIT.format(jump="@%q bra W;", leave="", out="")) == {over}
    left = moved(WAIT.format(jump="", leave="@%q bra OUT;", out="OUT: ret;"))
    assert not any("move st.global.u32 after" in one or "line 16" in one for one in left)


def test_a_register_without_a_percent_sign_is_one() -> None:
    declared = ".reg .u32 a; .reg .u32 b; "
    body = declared + "ld.global.u32 a, [x]; fence.acq_rel.gpu; st.global.u32 [y], {};"
    over = "P0, line 5: move st.global.u32 before ld.global.u32 (line 5)"
    assert over in moved(body.format("b"))
    assert over not in moved(body.format("a"))


def test_an_access_moves_where_nothing_else_is_a_repair() -> None:
    found = fix("t", text_of("async/honest/H9-after"), MODELS, Options())
    assert [one.changes[0].what for one in found.repairs] == [
        "P0, line 10: move st.global.u32 before st.async.release.gpu.global.u32 (line 9)"
    ]


def test_a_moved_fence_is_refuted_by_an_execution() -> None:
    """It is there with the fence in both places, and so without the first."""
    text = text_of("async/proxy/A15-wrong-space")
    trials = RepairSearch(
        text, standing_of(text), None, lambda changed: (parse("t", changed) or (None,))[0], lambda _: ()
    )
    trials.until = float("inf")
    moves = [one for one in replacements(api.lowered(Source("t", text))) if moves_a_fence(one)]
    vain = [one for one in moves for bad in trials.before.counterexamples if trials.moved_in_vain(bad, one)]
    assert vain
    for one in vain:
        assert standing_of(apply(text, [one])).counterexamples


def standing_of(text: str) -> AnswersOfTest:
    found = judging("t", MODELS, Options())(text)
    assert found is not None
    return found


def test_nobody_waits_for_what_cannot_have_been_signalled() -> None:
    text = text_of("async/pipelines/block-scaled")
    trials = RepairSearch(
        text, standing_of(text), None, lambda changed: (parse("t", changed) or (None,))[0], lambda _: ()
    )
    waits = {one.what: trials.waits_in_vain([one]) for one in changes(text) if one.what.startswith("MMA")}
    assert waits["MMA, line 28: a wait for parity 0 of free before tcgen05.cp.cta_group::1.32x128b.warpx4"]
    with_commit = [what for what in waits if "commit" in what and "a wait for parity 0 of it" in what]
    assert with_commit and not any(map(waits.get, with_commit))


# ---- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fix", "weaken"])
def test_a_file_keeps_its_line_ends(command: str, tmp_path: Path) -> None:
    old = text_of("async/mbarrier/G15-no-acquire" if command == "fix" else "async/mbarrier/G9")
    file = tmp_path / "dos.litmus"
    file.write_bytes(b"\xef\xbb\xbf" + old.replace("\n", "\r\n").encode())
    with pytest.raises(SystemExit) as done:
        main([command, str(file), "-i"])
    assert not done.value.code
    data = file.read_bytes()
    assert data.startswith(b"\xef\xbb\xbfPTX") and b"sync_restrict" in data
    assert data.count(b"\n") == data.count(b"\r\n") == old.count("\n") + 1


def test_lines_that_stay_keep_ends_of_their_own() -> None:
    assert with_line_ends_of("a\nnew\nb\nc\nd", "a\r\nb\nc\r\nd\r\n") == "a\r\nnew\r\nb\nc\r\nd"
    assert with_line_ends_of("a\nnew\n", "a\n") == "a\nnew\n"


def test_an_editor_gets_the_line_ends_of_its_document() -> None:
    (one,) = edits(Document("file:///t.litmus", "a\r\nb\r\n", "litmus"), "a\nnew\nb\n")
    assert one["newText"] == "new\r\n"


def test_what_is_asked_fully_has_every_finding() -> None:
    """A glance at a text ends with the first finding."""

    class Glancing(Trials):
        def _quick_counterexample(self, text: str) -> Any:
            return SimpleNamespace(flag="race")

    trials = Glancing("PTX t", AnswersOfTest((), frozenset(), True), None, lambda text: None, lambda text: ())
    trials.until = float("inf")
    trials.judge = trials.quick_judge = lambda text: AnswersOfTest((), frozenset({"race", "hang"}), True)
    for fully in (True, False):
        assert not trials.is_right((), fully=fully)
        assert trials.failed is not None and trials.failed.complete is fully


def test_a_fence_stands_before_the_barrier_that_was_put_into_its_gap() -> None:
    """The barrier is put into two threads; in each of them its turn comes after that of the fence."""
    barrier = Edit(9, 9, "bar.sync 0;", "", 1.0, (1, 2, "bar"), adds=1, rank=8)
    meeting = Edit(5, 5, "bar.sync 0;", "", 1.0, (0, 1, "bar", 1, 2, "bar"), adds=1, rank=8, more=(barrier,))
    fence = Edit(9, 9, "fence.proxy.async;", "", 1.0, (1, 2, "fence"), adds=1, rank=4)
    assert _shifted((1, 2), fence, [meeting]) == (1, 2)
    assert _shifted((1, 3), fence, [meeting]) == (1, 4)
