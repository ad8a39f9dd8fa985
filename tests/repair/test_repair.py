"""fix and weaken: what they return is right when judged again, and what they must not touch stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Observation
from memmodel.engine import Options
from memmodel.errors import BudgetSpent, InputError
from memmodel.isa.convert import convert
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import Layout
from memmodel.repair import fix as fix_module
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import apply
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.repair.fix import Fixed, fix, wrong_words
from memmodel.repair.judge import ended, judging, parse
from memmodel.repair.layout import laid
from memmodel.repair.purpose import keeps_phases
from memmodel.repair.searching import trials
from memmodel.repair.searching.search import RepairSearch
from memmodel.repair.vocabulary import replacements, strengthenings
from memmodel.repair.weaken import weaken
from memmodel.repair.weakening.forms import sites
from memmodel.source import Source
from memmodel.why.story import execution_of

pytestmark = pytest.mark.turns(2)

HAND_OVER = """PTX hand-over
.global .u32 x = 0;
.global .u32 f = 0;
thread P0 @ cta 0, cluster 0, gpu 0 {{
    st.weak.global.u32 [x], 1;
    {fence}
    st.{store}.global.u32 [f], 1;
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
WAIT:
    ld.acquire.sys.global.u32 %r0, [f];
    setp.ne.u32 %p, %r0, 1;
    @%p bra WAIT;
    ld.weak.global.u32 %r1, [x];
}}
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
BROKEN = HAND_OVER.format(fence="mov.u32 %n, 0;", store="relaxed.sys")
GENEROUS = HAND_OVER.format(fence="fence.sc.sys;", store="release.sys")
MODELS = (api.load("ptx-9.4"),)


def test_a_repair_is_right_and_keeps_every_access() -> None:
    found = fix("t", BROKEN, MODELS, Options())
    assert found.wrong == ("its outcome is allowed", "data-race") and found.repairs
    for repair in found.repairs:
        report = api.check(Source("t", repair.new))
        assert report.answer.observation is Observation.NEVER and not report.answer.findings
        assert all(line in repair.new for line in ("[x], 1;", "[f], 1;", "%r0, [f];", "%r1, [x];"))
    assert [one.cost for one in found.repairs] == sorted(one.cost for one in found.repairs)


def test_nothing_is_repaired_where_nothing_is_wrong() -> None:
    found = fix("t", GENEROUS, MODELS, Options())
    assert not found.wrong and not found.repairs


def test_weaken_drops_the_fence_and_narrows_the_scopes() -> None:
    found = weaken("t", GENEROUS, MODELS, Options())
    assert "fence" not in found.new and ".sys" not in found.new and found.best
    report = api.check(Source("t", found.new))
    assert report.answer.observation is Observation.NEVER and not report.answer.findings


@pytest.mark.parametrize("text", [BROKEN])
def test_weaken_adds_no_outcome(text: str) -> None:
    found = weaken("t", text, MODELS, Options())
    before, after = (
        {state.values for state in api.outcomes(Source("t", one)).states} for one in (found.old, found.new)
    )
    assert after <= before and found.wrong == ("data-race",)


SHIPPED = ROOT / "litmus"


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("async/patterns/tma-to-cp", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;"),
        ("async/tcgen05/T12", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar1];"),
        ("async/patterns/cp.async-to-mma", "fence.proxy.async.shared::cta;"),
        ("async/undefined/peer-waits-before-exit", "barrier.cluster.arrive;"),
    ],
)
def test_what_was_taken_away_is_the_first_repair(name: str, gone: str) -> None:
    """Of repairs that cost the same, one that is right under every reading comes first."""
    text = (SHIPPED / f"{name}.litmus").read_text()
    line = next(line for line in text.splitlines(keepends=True) if line.strip() == gone)
    first, *_ = fix("t", text.replace(line, "", 1), MODELS, Options()).repairs
    assert [edit.text.strip() for edit in first.changes] == [gone] and not first.depends


def test_an_arrival_that_is_missing_stands_behind_a_fence() -> None:
    """Before the proxy fence it would do under some readings only."""
    text = (SHIPPED / "async/patterns/threads-to-cp.cluster.litmus").read_text()
    lines = [line for line in text.splitlines(keepends=True) if "mbarrier.arrive" not in line]
    found = fix("t", "".join(lines), MODELS, Options())
    assert "fence.proxy.async;\n    mbarrier.arrive.release" in found.repairs[0].new and not found.repairs[0].depends


@pytest.mark.parametrize(
    "name", ["async/proxy/A4", "async/mbarrier/G4-fence-after-arrive", "async/tcgen05/T5-no-fence"]
)
def test_what_an_execution_survives_is_no_repair(name: str) -> None:
    """Carrying an execution into a changed text says the same as judging that text."""
    path = SHIPPED / f"{name}.litmus"
    text, judge = path.read_text(), judging(str(path), MODELS, Options())
    asked, before = parse(str(path), text), judge(text)
    assert asked is not None and before is not None and before.counterexamples
    carry = Carry(text, lambda one: (parse(str(path), one) or (None,))[0])
    survived = ended = 0
    for edit in strengthenings(asked[0])[::5]:
        if not carry.legal(edit):
            continue
        for counterexample in before.counterexamples:
            execution = execution_of(counterexample.witness)
            assert execution is not None
            carried = carry.carried(execution, (), (edit,))
            if carried is None:
                continue
            if not survives(counterexample, carried):
                ended += 1
                continue
            survived += 1
            now = judge(apply(text, (edit,)))
            assert now is not None
            bad = any(one[2] in (Observation.SOMETIMES, Observation.ALWAYS) for one in now.observations)
            assert bad if counterexample.flag is None else counterexample.flag in now.findings, edit.what
    assert survived


def test_a_hang_is_repaired_by_the_number_that_is_wrong() -> None:
    path = SHIPPED / "async/proxy/A17.litmus"
    found = fix(str(path), path.read_text(), MODELS, Options())
    assert found.wrong == ("hang",)
    assert [edit.what for edit in found.repairs[0].changes] == [
        "P1, line 14: 32 -> 16 in mbarrier.arrive.expect_tx.shared::cta.b64"
    ]


@pytest.mark.parametrize("name", ["async/proxy/A1", "async/mbarrier/G4", "async/tcgen05/T4"])
def test_what_weaken_returns_is_forbidden_by_both_engines(name: str) -> None:
    path = SHIPPED / f"{name}.litmus"
    found = weaken(str(path), path.read_text(), MODELS, Options())
    for engine in ("z3", "enumerate"):
        report = api.check(Source("t", found.new), engine=engine)
        assert report.answer.observation is Observation.NEVER and not report.answer.findings


def changes_of(name: str, most: int = 1) -> list[list[str]]:
    path = SHIPPED / f"{name}.litmus"
    found = fix(str(path), path.read_text(), MODELS, Options(), most=most)
    return [[edit.what for edit in one.changes] for one in found.repairs]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Fixed]:
    """fix of a shipped test, whose time is up when the clock was read so many times."""
    clock = count()
    for module in (fix_module, trials):
        monkeypatch.setattr(module, "monotonic", lambda: float(next(clock)))

    def found(name: str, looks: int) -> Fixed:
        path = SHIPPED / f"{name}.litmus"
        return fix(str(path), path.read_text(), MODELS, Options(), seconds=looks)

    return found


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("async/mbarrier/G11-no-wait", "P1, line 14: a wait for parity 0 of bar before ld.shared::cta.u32"),
        ("async/instructions/grid-no-wait", "P1, line 13: griddepcontrol.wait before ld.global.u32"),
        ("async/honest/H8-count-one", "line 7: count of bar: 1 -> 2"),
        ("async/proxy/A4", "P0, line 11: fence.proxy.async.global -> fence.proxy.async.shared::cta"),
        (
            "async/fabric/put-own-read-no-fence",
            "P0, line 18: fence.proxy.generic::fabric.alias.release.sys and .acquire before ld.weak.global.u32",
        ),
        ("bytes/B10-flag-first", "P1, line 17: move bar.sync before st.relaxed.cta.shared.u32 (line 16)"),
        (
            "async/mbarrier/G15-no-acquire",
            "P1, line 18: fence.acquire.sync_restrict::shared::cluster.cluster before ld.shared::cluster.u32",
        ),
        (
            "async/tcgen05/alloc-handed-over-early-free",
            "P0, line 12: bar.sync 1; before tcgen05.dealloc.cta_group::1.sync.aligned.b32; "
            "P1, line 22: bar.sync 1; after tcgen05.wait::ld.sync.aligned",
        ),
    ],
)
def test_what_is_missing_is_found(name: str, change: str) -> None:
    assert [change] in changes_of(name)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("async/pipelines/split-k-two-warps-no-barrier", "W0, line 10: bar.sync 1; before atom.add.release.gpu"),
        ("async/proxy/dsmem-copy-reuse", "barrier.cluster.arrive; barrier.cluster.wait; before st.shared.u32"),
        ("async/proxy/A16", "_, [bar]; with count of bar 1 -> 2 after cp.async.bulk.shared::cluster"),
        ("async/instructions/multimem-store-no-alias-fence", "P1, line 17: fence.proxy.alias before ld.global.u32"),
        ("async/proxy/A17-no-arrive", "-> mbarrier.arrive.expect_tx.shared::cta.b64"),
        ("async/proxy/A14-mbarrier-order", "move cp.async.mbarrier.arrive.noinc.shared::cta.b64 after cp.async.ca"),
        ("async/proxy/credit-no-acquire", "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"),
        ("async/patterns/mma-to-operand.thread-no-wait", "a wait for parity 0 of it and tcgen05.fence::after_thread"),
        ("async/patterns/mma-pair-to-ld.cluster-one-signal", ".multicast::cluster.b64"),
        ("async/tcgen05/T5-no-wait", "[done] and a wait for it, with a new mbarrier object done,"),
        ("distinguish/D13-smallest", "wgmma.fence before wgmma.mma_async"),
        ("async/tcgen05/T11", "mbarrier.arrive.shared::cta.b64 -> tcgen05.commit.cta_group::1"),
        ("control/cluster+one-missing", "barrier.cluster.arrive; barrier.cluster.wait; before ld.global.u32"),
        ("async/regressions/exit-does-not-replace-the-living", "_, [b]; before bar.sync"),
    ],
)
def test_the_class_of_a_change_is_there(name: str, change: str) -> None:
    assert any(change in one for most in (1, 3) for changes in changes_of(name, most) for one in changes)


ROUNDS = """PTX rounds
.shared .align 16 .u32 s[4] = {0};
.global .align 16 .u32 g[4] = {1};
.shared .align 8 .b64 full = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
}
~exists (s == 0)
"""


def test_a_number_that_is_wrong_in_all_rounds_is_changed_in_all() -> None:
    lowered = api.lowered(Source("t", ROUNDS))
    changed = [apply(ROUNDS, [one]) for one in replacements(lowered) if one.group[3:] == ALIKE and one.text == "16"]
    assert [one.count("_, [full], 16;") for one in changed] == [2]


def test_a_rule_that_is_broken_once_nothing_hangs_is_named(hasty: Callable[[str, int], Fixed]) -> None:
    found = hasty("async/pipelines/scheduler-bytes", 16)
    assert (
        not found.repairs
        and "lines 13, 18, 23: 32 -> 16" in found.reason
        and "after its CTA has seen that none" in found.reason
    )


def test_a_repair_is_right_under_every_model() -> None:
    """Under a reading that is asked first and lost the others are not asked; what passes is judged under all."""
    path = SHIPPED / "async/proxy/A4.litmus"
    models = (*MODELS, api.load("readings/D2-accessor"))
    found = fix(str(path), path.read_text(), models, Options(), most=2)
    assert found.repairs
    for repair in found.repairs:
        for model in models:
            answer = api.judge(api.lowered(Source("t", repair.new)), model, Options())
            assert answer.observation is Observation.NEVER and not answer.flags


@pytest.mark.parametrize("name", ["async/honest/H11-memory-fences", "async/honest/H11-async-fence"])
def test_two_fences_that_two_explanations_ask_for(name: str, hasty: Callable[[str, int], Fixed]) -> None:
    release, acquire = (one.what for one in hasty(name, 40).repairs[0].changes)
    assert "tensormap::generic.release.gpu" in release and "tensormap::generic.acquire.gpu" in acquire


def test_a_commit_in_place_of_an_arrive_comes_first(hasty: Callable[[str, int], Fixed]) -> None:
    (change,) = hasty("async/pipelines/gemm-tcgen05-2x2-no-commit", 30).repairs[0].changes
    assert "mbarrier.arrive.shared::cta.b64 -> tcgen05.commit" in change.what


def test_two_changes_of_which_neither_suffices() -> None:
    release, acquire = changes_of("async/honest/H11-cta")[0]
    assert release.endswith("release.gpu") and acquire.endswith("acquire.gpu")


def test_the_repair_of_a_hang_skips_no_phase() -> None:
    """A smaller count or the other parity would end it as well."""
    assert all("arrive_drop" in one for [one] in changes_of("async/mbarrier/drop-missing", 3))


@pytest.mark.parametrize(("thread", "kept"), [("TMA", True), ("USE", False)])
def test_the_repair_of_a_hang_reads_nothing_that_nobody_has_produced(thread: str, *, kept: bool) -> None:
    """Either thread of the ring may go first for all that hangs; the consumer would read what is not there yet."""
    path = SHIPPED / "bytes/B3-first-parity.litmus"
    text = path.read_text()
    before = judging(str(path), MODELS, Options())(text)
    [edit] = [
        one
        for one in replacements(api.lowered(Source(str(path), text)))
        if f"{thread}, line" in one.what and "for a parity" in one.what
    ]
    after = ended(str(path), apply(text, [edit]), MODELS, Options())
    assert before is not None and keeps_phases(before, after, (edit,)) is kept


DEADLOCK = """PTX deadlock
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
.shared .u32 s = 0;
thread P0 @ cta 0, gpu 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra W;
    st.shared.u32 [s], 1;
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread P1 @ cta 0, gpu 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra W;
    ld.shared.u32 %r0, [s];
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
exists (P1:r0 == 0)
"""


def test_no_move_lets_the_consumer_go_first() -> None:
    repairs = fix("t", DEADLOCK, MODELS, Options()).repairs
    assert len(repairs) == 2
    assert all(api.check(Source("t", one.new)).answer.observation is Observation.NEVER for one in repairs)


@pytest.mark.parametrize(
    ("name", "way"), [("async/honest/H6-wrong-parity", "_onward"), ("shapes/MP+rlx.gpu+acq.gpu@two-ctas", "guided")]
)
def test_explanations_lead_the_search_but_where_a_test_hangs(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang alone asks for other numbers."""
    first: list[str] = []

    def noted(which: str) -> Callable[..., tuple[()]]:
        def went(*_: object) -> tuple[()]:
            first.append(which)
            raise BudgetSpent

        return went

    for which in ("guided", "_onward"):
        monkeypatch.setattr(RepairSearch, which, noted(which))
    path = SHIPPED / f"{name}.litmus"
    fix(str(path), print_litmus(convert(parse_litmus(Source.read(str(path))), Layout.BLOCKS)), MODELS, Options())
    assert first[0] == way


def test_two_parities_that_are_the_wrong_way_round() -> None:
    [[first, second]] = changes_of("async/honest/H6-wrong-parity")
    assert "0 -> 1" in first and "1 -> 0" in second


def test_a_race_that_stays_is_said_to_stay() -> None:
    """Where the flag is not seen, the accesses of a test without a loop race whatever is between them."""
    path = SHIPPED / "proxy" / "MP+alias+F-before-store@two-ctas.litmus"
    text = print_litmus(convert(parse_litmus(Source.read(str(path))), Layout.BLOCKS))
    found = fix("t", text, MODELS, Options(), most=1)
    assert "data-race" in found.reason
    report = api.check(Source("t", found.repairs[0].new))
    assert report.answer.observation is Observation.NEVER


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("async/barriers/arrive-then-own-sync", "every execution has the outcome"),
        ("async/undefined/src-size-beyond", "a rule is broken whatever the order"),
    ],
)
def test_why_there_is_no_repair(name: str, reason: str) -> None:
    path = SHIPPED / f"{name}.litmus"
    found = fix(str(path), path.read_text(), MODELS, Options())
    assert not found.repairs and reason in found.reason


def test_nothing_is_put_into_a_loop_that_waits() -> None:
    lowered = api.lowered(Source("t", GENEROUS))
    edits = [edit for edit in strengthenings(lowered) if edit.group[0] == 1 and edit.adds]
    loop = "".join(GENEROUS.partition("WAIT:")[1:]).partition("bra WAIT;")[0]
    assert edits and all(loop in apply(GENEROUS, (edit,)) for edit in edits)


PULL = """PTX pull
.shared .u32 x = 0;
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, cluster 0, gpu 0 {{
    st.shared::cta.u32 [x], 1;
    {release}
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
WAIT:
    mbarrier.try_wait.parity.{wait}.cluster.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    {acquire}
    ld.shared::cluster.u32 %r0, [x@cta0];
}}
~exists (P1:r0 == 0)
"""
ARRIVE = "mbarrier.arrive.{}.cluster.shared::cluster.b64 _, [bar@cta1];"
WITH_FENCES = PULL.format(
    release="fence.acq_rel.cluster; " + ARRIVE.format("relaxed"), wait="relaxed", acquire="fence.acq_rel.cluster;"
)
WITHOUT = PULL.format(release=ARRIVE.format("release"), wait="acquire", acquire="mov.u32 %n, 0;")


@pytest.mark.parametrize("text", [WITH_FENCES, WITHOUT])
def test_weaken_finds_the_fence_that_is_about_shared_memory(text: str) -> None:
    found = weaken("t", text, MODELS, Options())
    assert "fence.release.sync_restrict::shared::cta.cluster" in found.new
    assert "fence.acquire.sync_restrict::shared::cluster.cluster" in found.new
    assert "acq_rel" not in found.new and "parity.relaxed.cluster" in found.new
    assert all("only shared memory is handed over" in one.what for one in found.changes)
    for engine in ("z3", "enumerate"):
        assert api.check(Source("t", found.new), engine=engine).answer.observation is Observation.NEVER


def test_weaken_narrows_scope_and_semantics_at_once() -> None:
    text = GENEROUS.replace("ld.acquire", "ld.relaxed").replace("ld.weak", "fence.sc.sys; ld.weak")
    found = weaken("t", text, MODELS, Options())
    assert "fence.acquire.cluster; ld.weak" in found.new and "st.release.cluster" in found.new and found.best


MEMBAR = """PTX membar
.global .u32 x = 0;
.global .u32 f = 0;
thread P0 @ cta 0, gpu 0 { st.global.u32 [x], 5; membar.sys; st.relaxed.gpu.global.u32 [f], 1; }
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.u32 %a, [f];
    setp.ne.u32 %p, %a, 1;
    @%p bra END;
    membar.gl;
    ld.global.u32 %r, [x];
END:
}
exists (P1:a == 1 /\\ P1:r == 0)
"""

COPIED_OUT = """PTX copied-out
.shared .align 16 .u32 s[4] = {1, 1, 1, 1};
.global .align 16 .u32 g[4] = {0};
thread P0 @ cta 0, gpu 0 {
    cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    st.shared.u32 [s], 2;
}
exists (g == 2)
"""


def test_weaken_has_cheaper_forms_of_membar() -> None:
    found = weaken("t", MEMBAR, MODELS, Options())
    assert "fence.release.gpu" in found.new and "fence.acquire.gpu" in found.new and found.best
    scoped = (
        MEMBAR.replace("gpu 0 {\n", "gpu 1 {\n")
        .replace(".relaxed.gpu", ".relaxed.sys")
        .replace("membar.gl", "membar.sys")
    )
    found = weaken("t", scoped, MODELS, Options())
    assert "fence.release.sys" in found.new and "fence.acquire.sys" in found.new


def test_weaken_waits_for_reads_alone_where_nothing_else_has_to_be_over() -> None:
    found = weaken("t", COPIED_OUT, MODELS, Options())
    assert "cp.async.bulk.wait_group.read 0" in found.new and [only.cost for only in found.changes] == [-0.5]
    needed = COPIED_OUT.replace("st.shared.u32 [s], 2", "ld.global.u32 %r, [g]").replace("(g == 2)", "(P0:r == 0)")
    assert not weaken("t", needed, MODELS, Options()).changes


GROUPLESS = """PTX groupless
.shared .align 16 .u32 s[4] = {0};
.global .align 16 .u32 g[4] = {1, 1, 1, 1};
thread P0 @ cta 0, gpu 0 {
    cp.async.ca.shared.global [s], [g], 16;
    cp.async.wait_group 0;
    ld.shared.u32 %r, [s];
}
exists (P0:r == 0)
"""


def test_a_copy_that_is_in_no_group_is_committed() -> None:
    first, *_ = fix("t", GROUPLESS, MODELS, Options()).repairs
    assert [edit.what for edit in first.changes] == ["P0, line 6: cp.async.commit_group before cp.async.wait_group"]
    (obstacle,) = api.explain(GROUPLESS).stories[0].obstacles
    assert obstacle.text.endswith("no commit_group has put it into one")
    assert obstacle.repair.startswith("commit_group before")


def test_a_fence_that_comes_in_stays_where_the_next_line_goes() -> None:
    path = SHIPPED / "async/patterns/threads-to-cp.cluster.litmus"
    found = weaken(str(path), path.read_text(), MODELS, Options())
    assert found.saves == 34.5 and found.best
    fence = "fence.acquire.sync_restrict::shared::cluster.cluster;"
    (apart,) = (one for one in found.changes if "with fence" in one.what)
    drop = next(one for one in sites(api.lowered(Source("t", found.old)))[3] if "drop" in one.what)
    assert fence in found.new and f"    {fence}\n    tcgen05.fence" in apply(found.old, (apart, drop))


def test_weaken_keeps_what_global_memory_needs() -> None:
    text = WITH_FENCES.replace(".shared .u32 x", ".global .u32 x").replace("shared::cta.u32 [x]", "global.u32 [x]")
    text = text.replace("shared::cluster.u32 %r0, [x@cta0]", "global.u32 %r0, [x]")
    assert "sync_restrict" not in weaken("t", text, MODELS, Options()).new


def test_no_repair_is_listed_twice() -> None:
    text = """PTX race
.global .u32 x = 0;
.global .u32 flag = 0;
thread P0 @ cta 0, gpu 0 {
    st.weak.u32 [x], 1;
    st.relaxed.gpu.u32 [flag], 1;
}
thread P1 @ cta 0, gpu 0 {
    ld.relaxed.gpu.u32 %r0, [flag];
    ld.weak.u32 %r1, [x];
}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    repairs = fix("race.litmus", text, (api.load("ptx-9.4"),), Options(), most=4).repairs
    assert len(repairs) > 1
    assert len({repair.new for repair in repairs}) == len(repairs)


TABLE = """PTX race
// kept
{ x = 0; flag = 0; }
P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
st.weak x, 1 | ld.relaxed.gpu r0, flag ;
st.relaxed.gpu flag, 1 | ld.weak r1, x ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def test_a_table_is_changed_as_a_table() -> None:
    source = Source("t.litmus", TABLE.replace("ld.weak r1, x ;", "ld.relaxed.gpu r1, x ;"))
    text = source.text.replace("st.weak x", "st.relaxed.gpu x")
    (repair,) = fix(source.name, text, (api.load("ptx-9.4"),), Options(), most=1).repairs
    assert repair.old == text
    assert "// kept\n{ x = 0; flag = 0; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n" in repair.new
    assert parse_litmus(Source("t.litmus", repair.new)).layout is Layout.COLUMNS
    assert api.check(Source("t.litmus", repair.new), "ptx-9.4").answer.observation is Observation.NEVER
    assert all("P0, line 6" in edit.what or "P1, line 5" in edit.what for edit in repair.changes)
    assert " st.relaxed.gpu x, 1 " in repair.new


def test_a_cheaper_table_is_a_table() -> None:
    text = TABLE.replace("relaxed.gpu flag, 1", "release.sys flag, 1").replace("relaxed.gpu r0", "acquire.sys r0")
    weaker = weaken("t.litmus", text, (api.load("ptx-9.4"),), Options())
    assert weaker.old == text
    assert weaker.changes
    assert parse_litmus(Source("t.litmus", weaker.new)).layout is Layout.COLUMNS
    assert ".sys" not in weaker.new


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("isa/*.litmus"))[::3], ids=lambda path: path.stem)
def test_blocks_that_did_not_change_are_the_table_as_it_was(path: Path) -> None:
    test = parse_litmus(Source.read(str(path)))
    try:
        table = print_litmus(convert(test, Layout.COLUMNS))
    except InputError:
        return
    given = laid(Source("t.litmus", table))
    assert given.back(given.blocks) == table


SEEN_ONCE = {
    "a load": ("st.release.gpu.global.u32 [f], 1;", "ld.acquire.gpu.global.u32 %r0, [f];", ""),
    "a test of a phase": (
        "mbarrier.arrive.shared::cta.b64 _, [bar];",
        "mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;",
        "",
    ),
    "two threads in a row": (
        "st.release.gpu.global.u32 [f], 1;",
        "ld.acquire.gpu.global.u32 %r0, [g];",
        "ld.acquire.gpu.global.u32 %r0, [f]; st.release.gpu.global.u32 [g], 1;",
    ),
}
"""What tells, what sees it, what passes it on."""


@pytest.mark.parametrize("name", SEEN_ONCE)
def test_a_race_where_a_flag_was_not_seen_is_repaired_by_waiting_for_it(name: str) -> None:
    """The outcome is forbidden already: the reader waits, and the two accesses stay weak."""
    telling, seeing, passing = SEEN_ONCE[name]
    third = f"thread P2 @ cta 0, gpu 0 {{ {passing} }}" if passing else ""
    test = f"""PTX seen-once
.global .u32 x = 0;
.global .u32 f = 0;
.global .u32 g = 0;
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {{
    st.weak.global.u32 [x], 1;
    {telling}
}}
thread P1 @ cta 0, gpu 0 {{
    {seeing}
    ld.weak.global.u32 %r1, [x];
}}
{third}
exists (P1:%r1 == 2)
"""
    first = fix("t", test, MODELS, Options()).repairs[0]
    assert all("repeat" in edit.what for edit in first.changes)
    assert len(first.changes) == (2 if passing else 1)
    for engine in ("z3", "enumerate"):
        assert not api.check(Source("t", first.new), engine=engine).answer.findings


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "line", "now"),
    [
        ("async/mbarrier/G4", "[bar], 0;", "[bar], 1;"),
        ("shapes/R+sc.gpu@two-ctas", "st.relaxed.gpu.s64 [y], 2;", "st.relaxed.cta.s64 [y], 2;"),
        ("async/instructions/multimem-store", "st.release.gpu.global", "st.release.cta.global"),
        ("async/pipelines/split-k-bulk-reader", "expect_tx.shared::cta.b64 _, [bar], 16;",
         "expect_tx.shared::cta.b64 _, [bar], 32;"),
        ("async/mbarrier/multicast-bytes", "fence.acq_rel.cluster;", ""),
        ("async/patterns/st.async-to-wgmma.cluster", "wgmma.fence.sync.aligned;", ""),
        ("async/pipelines/dsmem-reduction-restricted", "fence.acquire.sync_restrict::shared::cluster.cluster;", ""),
    ],
)  # fmt: skip
def test_what_was_taken_from_a_shipped_test_is_given_back_for_no_more(name: str, line: str, now: str) -> None:
    """The first repair is right, and no dearer than the change that makes the text what it was."""
    old = laid(Source.read(SHIPPED / f"{name}.litmus")).blocks
    assert line in old
    text = old.replace(line, now, 1)
    asked, found = parse(name, text), fix(name, text, MODELS, Options(), most=2)
    assert asked is not None and found.wrong
    edits = (*strengthenings(asked[0]), *replacements(asked[0]))
    back = [edit.cost for edit in edits if apply(text, (edit,)).split() == old.split()]
    assert found.repairs[0].cost <= min(back)
    for repair in found.repairs:
        answers = judging(name, MODELS, Options())(repair.new)
        assert answers is not None and answers.complete and not wrong_words(answers)


def test_an_expectation_of_one_of_two_ctas_is_given_back() -> None:
    text = (SHIPPED / "async/readings/R4-cluster.litmus").read_text()
    line = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;"
    assert text.count(line) == 2
    (repair,) = fix("t", text.replace(line, "", 1), MODELS, Options()).repairs
    assert repair.new.count(line) == 2


def test_a_copy_that_is_not_there_has_no_repair() -> None:
    text = (SHIPPED / "async/readings/R4-cluster.litmus").read_text()
    without = "\n".join(line for line in text.split("\n") if "cp.async.bulk" not in line)
    found = fix("t", without, MODELS, Options())
    assert found.wrong and not found.repairs and found.reason.startswith("no such change among the ")
