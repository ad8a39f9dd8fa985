"""Mutants whose verdict follows from the runs of the kernel: it is that of runs of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from helpers.kernel.samples import NEIGHBOUR, entry, launch, module

from memmodel.cat.load import load_model
from memmodel.concrete.less_events import LessEvents
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge, judge_case
from memmodel.kernel.check.inputs import reading_models
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate import mutants
from memmodel.kernel.mutate.mutants import MutantWork, Noticed, findings_of_readings
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, mutations
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.mutate.same_runs import SameRuns
from memmodel.kernel.mutate.table import Removals, mutation_table
from memmodel.kernel.order.flags import ASKED, Flags
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.syntax import PtxFunction, PtxModule

MODEL = load_model("ptx-9.4")
READINGS = reading_models()
OPTIONS = CheckOptions(4, readings=READINGS)

HANDED_OVER = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 fence.acq_rel.gpu;
@%p0 mbarrier.arrive.release.cta.shared.b64 _, [%r4];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r5, [%r2];
bar.sync 0;
@%p0 mbarrier.inval.shared.b64 [%r4];
bar.sync 0;
bar.warp.sync 0xffffffff;
"""
ELECTED = (
    HANDED_OVER
    + """
elect.sync _|%p1, 0xffffffff;
bar.sync 0;
@%p1 st.shared.u32 [%r2+4], 9;
bar.sync 0;
ld.shared.u32 %r6, [%r2+4];
bar.sync 0;
"""
)
COPIED = """
cp.async.ca.shared.global [%r3], [%d0], 4;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ld.shared.u32 %r5, [%r2];
bar.sync 0;
cp.async.wait_all;
"""
FENCED = NEIGHBOUR.format(sync="fence.sc.sys;\nbar.sync 0;\nfence.acq_rel.gpu;\nbar.sync 1;")
TWICE = (
    HANDED_OVER.replace("ld.shared.u32 %r5, [%r2];", "ld.shared.u32 %r5, [%r2];\nbar.sync 0;")
    + """
@%p0 mbarrier.init.shared.b64 [%r4], 2;
bar.sync 0;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
@%p0 st.shared.u32 [%r2+8], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
FIRST:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
@!%p2 bra FIRST;
SECOND:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
@!%p2 bra SECOND;
ld.shared.u32 %r5, [%r2+8];
"""
)
"""Each of two waits for one phase can go, and not both."""
AHEAD = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
mov.u32 %r6, 0;
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
ROUND:
@%p2 bra GO;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [%r4], %r6;
@!%p3 bra WAIT;
GO:
ld.shared.u32 %r5, [%r2];
bar.sync 0;
@%p0 st.shared.u32 [%r2], 8;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
bar.sync 0;
setp.eq.s32 %p4, %r6, 0;
xor.b32 %r6, %r6, 1;
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r6;
@%p4 bra ROUND;
"""
"""The first of two tests that look ahead saves the wait of one round, and the second that of the next."""
RING = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 64;
bar.sync 0;
""" + "".join(
    f"""
@%p0 st.shared.u32 [%r2], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
FULL{parity}:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], {parity};
@!%p2 bra FULL{parity};
ld.shared.u32 %r5, [%r2];
mbarrier.arrive.shared.b64 _, [%r4+8];
EMPTY{parity}:
mbarrier.try_wait.parity.shared.b64 %p3, [%r4+8], {parity};
@!%p3 bra EMPTY{parity};
"""
    for parity in (0, 1)
)
"""The last wait is needless, as at the end of the pipelines of CUTLASS."""
PEEK = "mbarrier.try_wait.parity.shared.b64 %p2, [{}], 0;\n"
WAITS = "@%p2 bra GO;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [{}], 0;\n@!%p3 bra WAIT;\nGO:\n"
PASSED_ON = f"""
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
{PEEK.format("%r4")}{{between}}{WAITS.format("%r4")}ld.shared.u32 %r5, [%r2];
"""
LATE_FENCE = PASSED_ON.format(between="fence.acq_rel.cta;\n")
"""The fence stands behind the test, not behind the wait that it saves."""
CIRCLE = f"""
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
setp.lt.u32 %p4, %r0, 32;
selp.u32 %r5, 8, 0, %p4;
add.u32 %r6, %r4, %r5;
sub.u32 %r5, 8, %r5;
add.u32 %r7, %r4, %r5;
bar.sync 0;
setp.eq.s32 %p1, %r0, 32;
@%p1 st.shared.u32 [%r2], 7;
or.pred %p1, %p0, %p1;
{PEEK.format("%r6")}@%p1 mbarrier.arrive.shared.b64 _, [%r7];
{WAITS.format("%r6")}@%p0 ld.shared.u32 %r5, [%r2+128];
"""
"""Each of two warps tests whether the other one has arrived before it arrives itself."""
GROUPS = """
cp.async.ca.shared.global [%r3], [%d0], 4;
cp.async.commit_group;
cp.async.commit_group;
cp.async.ca.shared.global [%r3+256], [%d0+256], 4;
@%p0 cp.async.commit_group;
setp.ne.s32 %p1, %r0, 0;
@%p1 cp.async.commit_group;
cp.async.ca.shared.global [%r3+512], [%d0+512], 4;
cp.async.commit_group;
cp.async.wait_group 3;
cp.async.wait_group 2;
ld.shared.u32 %r5, [%r3];
cp.async.wait_group 1;
ld.shared.u32 %r6, [%r3+256];
cp.async.wait_group 0;
ld.shared.u32 %r7, [%r3+512];
"""
BULK = """
@%p0 bra ISSUE;
bra END;
ISSUE:
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16;
cp.async.bulk.commit_group;
cp.async.bulk.global.shared::cta.bulk_group [%d0+16], [%r2+16], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 1;
st.shared.u32 [%r2], 1;
cp.async.bulk.wait_group.read 0;
st.shared.u32 [%r2+16], 1;
cp.async.bulk.wait_group 0;
END:
"""
BODIES = {
    "elected": ELECTED, "waits twice": TWICE, "copied": COPIED, "fenced": FENCED, "looks ahead": AHEAD,
    "groups": GROUPS.replace("@%p1 ", "").replace("@%p0 ", ""), "bulk": BULK,
}  # fmt: skip


def judged(read: PtxModule, function: PtxFunction, launched: Launch) -> JudgedKernel:
    return judge_case(KernelCase(read, function, launched, MODEL, OPTIONS))


def said(kernel: JudgedKernel) -> object:
    """What counts of a verdict."""
    verdict = kernel.verdict
    return {it.key for it in verdict.findings}, findings_of_readings(verdict, READINGS)


def needing(kernel: JudgedKernel, known: dict[str, set[object]]) -> set[str]:
    """The readings that find something which is not known of them."""
    found = findings_of_readings(kernel.verdict, READINGS)
    return {name for name in found if not found[name] <= known[name]}


def with_all(function: PtxFunction, changes: tuple[Mutation, ...]) -> PtxFunction:
    for change in changes:
        function = change.of(function)
    return function


def sets(changes: list[Mutation]) -> Iterator[tuple[Mutation, ...]]:
    """Each change, neighbours together, and all removals."""
    removals = [change for change in changes if change.what == REMOVED]
    yield from ((change,) for change in changes)
    yield from pairwise(removals)
    yield tuple(removals)


@pytest.mark.share(3)
@pytest.mark.parametrize("body", [ELECTED, FENCED, LATE_FENCE], ids=["elected", "fenced", "looks ahead"])
def test_what_differs_is_what_an_evaluation_from_nothing_says(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each run with other labels, without one instruction, or without one more than was looked from."""
    monkeypatch.setattr("memmodel.kernel.mutate.same_run.SMALL", 0)
    monkeypatch.setattr("memmodel.kernel.order.flags.FEW", 1)
    monkeypatch.setattr("memmodel.cat.evaluate.reaching.FEW_TARGETS", 1)
    read = module(body)
    kernel = judged(read, entry(read), launch())
    run = kernel.judged[0].run
    rules = {check.name for check in MODEL.flags}
    changes = list(mutations(entry(read), miscounts=False))
    removals = [change for change in changes if change.what == REMOVED]
    whole = kernel.judged[0].judgement.flags
    assert whole is not None
    compared = beside = 0
    for first in (None, *removals[:3]):
        same = SameRun(run, MODEL, whole)
        with monkeypatch.context() as patch:
            patch.setattr("memmodel.kernel.order.flags.FEW", len(run.graph.points) + 1)
            same.look_from([] if first is None else [first])
        for change in changes if first is None else removals:
            asked = [change] if first in (None, change) else [first, change]
            flags = same._flags(asked)
            if flags is None:
                continue
            mine, alone = flags.execution, Flags(MODEL, flags.execution)
            assert not same.shows_at_once(asked) or same.shows(asked)
            assert flags.by_difference and flags.raised() == alone.raised()
            assert all(flags.relation(name) == alone.relation(name) for name in ASKED)
            assert flags.both_with_readings(rules) == alone.both_with_readings(rules)
            for _, _, model in READINGS[:: 7 if first is None else len(READINGS)]:
                assert Flags(model, mine, flags).raised() == Flags(model, mine).raised()
            compared += 1
            if first is None and change in removals[:4]:
                for _, _, model in READINGS[::7]:
                    own = SameRun(run, model, Flags(model, run.execution), often=False).new_findings(change)
                    found = same.under(model).new_findings(change)
                    assert found is not None and own is not None and [it.key for it in found] == [it.key for it in own]
            beside += isinstance(mine.frame, LessEvents) and bool(mine.frame.before)
    assert compared > len(removals) and beside


@pytest.mark.share(2)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_verdict_is_that_of_runs_of_their_own(body: str) -> None:
    read = module(body)
    kernel = judged(read, entry(read), launch())
    runs, followed = SameRuns(kernel, MODEL), 0
    known = findings_of_readings(kernel.verdict, READINGS)
    only_others = replace(OPTIONS, known_to=known)
    for changes in sets(mutations(entry(read))):
        mutant = with_all(entry(read), changes)
        of_runs = runs.judged(KernelCase(read, mutant, launch(), MODEL, OPTIONS), changes)
        if of_runs is None:
            continue
        own, followed = judged(read, mutant, launch()), followed + 1
        assert bool(of_runs.verdict.serious) is bool(own.verdict.serious), changes
        if len(changes) == 1:
            assert {it.key for it in of_runs.verdict.serious} <= {it.key for it in own.verdict.serious}
        if not own.verdict.serious:  # what is undefined may end in several ways
            assert said(of_runs) == said(own), changes
            assert bool(of_runs.verdict.open) is bool(own.verdict.open), changes
            briefly = runs.judged(KernelCase(read, mutant, launch(), MODEL, only_others), changes)
            assert briefly is not None and needing(briefly, known) == needing(own, known)
    assert followed > 4


def test_without_a_test_that_looks_ahead_the_waits_go_that_it_saves() -> None:
    read = module(AHEAD)
    kernel = judged(read, entry(read), launch())
    removals = [it for it in mutations(entry(read)) if it.what == REMOVED and "try_wait" in it.instruction.words]
    first, wait, second = removals
    same = SameRuns(kernel, MODEL)._runs[0]
    found = [{it.rule for it in same.new_findings(removal) or ()} for removal in removals]
    assert found == [{"data-race"}, {"data-race"}, {"undefined-unobserved-phase"}]
    made = same._events((wait,))
    of_first, of_second = (same._events((it,)) & made for it in (first, second))
    assert of_first and of_second and of_first | of_second == made and not of_first & of_second
    assert SameRuns(kernel, MODEL).cover(second)
    line = wait.instruction.line  # of the wait that is saved, which may be what is wrong
    assert not same.stays_broken(first, [line], [second], hangs=False)
    assert same.stays_broken(first, [line + 1], [second], hangs=False)


def test_of_a_condition_that_stays_open_as_many_instructions_are_executed_as_are_given() -> None:
    """A weaker test no longer looks ahead: what is wrong is looked for in runs whose warps are late."""
    weaker = AHEAD.replace("try_wait.parity.shared.b64 %p2", "try_wait.parity.relaxed.cta.shared.b64 %p2", 1)
    weaker = weaker.replace("ld.shared.u32 %r5, [%r2];\n", "")
    read = module(weaker)
    few, many = (judge(read, entry(read), launch(), MODEL, CheckOptions(4, instructions=most)) for most in (0, 10_000))
    assert few.open and few.open == many.open and few.statistics.runs < many.statistics.runs


def test_sets_that_take_runs_of_their_own_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the instructions that are executed, which are the same everywhere: the last arrival goes by such a run."""
    read = module(RING)
    whole = mutation_table(read, entry(read), launch(), MODEL, together=True).minimum
    monkeypatch.setattr("memmodel.kernel.mutate.table.OF_SETS", 0)
    few = mutation_table(read, entry(read), launch(), MODEL, together=True).minimum
    assert whole is not None and few is not None and not whole.untried and few.untried
    assert {it.number for it in few.dropped} < {it.number for it in whole.dropped} and not few.late


@pytest.mark.share(2)
@pytest.mark.parametrize("body", [HANDED_OVER, AHEAD, RING], ids=["handed over", "looks ahead", "ring"])
def test_what_stays_broken_is_wrong_in_a_run_of_its_own(body: str) -> None:
    """Beside what can go: waits too, those of the object at which the removed instruction arrives."""
    read = module(body)
    removals = [it for it in mutations(entry(read)) if it.what == REMOVED]
    same = SameRuns(judged(read, entry(read), launch()), MODEL)._runs[0]

    def verdict(*changes: Mutation) -> KernelVerdict:
        return judge(read, with_all(entry(read), changes), launch(), MODEL, CheckOptions(4))

    alone = {it.instruction.number: verdict(it) for it in removals}
    told = 0
    for others in [(it,) for it in removals] + list(combinations(removals, 2)):
        left = [it for it in removals if it not in others and alone[it.instruction.number].serious]
        kept = [
            it for it in left if same.stays_broken(
                it, alone[it.instruction.number].serious[0].key[1], others,
                hangs=any(finding.rule == "hang" for finding in alone[it.instruction.number].serious),
            )
        ]  # fmt: skip
        if kept and verdict(*others).clean:
            told += len(kept)
            for it in kept:
                assert verdict(it, *others).serious, (it, others)
    assert told > 4


@pytest.mark.parametrize(
    "body,shown",
    [
        (PASSED_ON.format(between=""), {"data-race"}),
        (LATE_FENCE, set()),
        (CIRCLE, None),
    ],
    ids=["at once", "a fence between", "both cannot"],
)
def test_a_weaker_test_that_looks_ahead_observes_what_the_wait_does(
    body: str, shown: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it may return true in the run at all. A run of its own would leave open what the test is for."""
    read = module(body)
    kernel = judged(read, entry(read), launch())
    assert not kernel.verdict.serious and not kernel.verdict.open, kernel.verdict
    runs = SameRuns(kernel, MODEL)
    weaker = [it for it in mutations(entry(read)) if it.what == "with .relaxed" and "try_wait" in it.instruction.words]
    test = weaker[0]
    found = runs._runs[0].new_findings(test)
    assert (found if found is None else {it.rule for it in found}) == shown
    assert not runs.cover(test)  # it may return false as well
    own = judged(read, test.of(entry(read)), launch()).verdict
    assert {it.key for it in found or ()} <= {it.key for it in own.serious}
    if shown == set():
        monkeypatch.setattr("memmodel.kernel.mutate.table.mutations", lambda function, miscounts: [test])
        monkeypatch.setattr(MutantWork, "outcome", None)
        (result,) = mutation_table(read, entry(read), launch(), MODEL, together=True).results
        assert (result.noticed, [result.how]) == (Noticed.UNDECIDED, own.open) and not own.serious


def test_what_counts_for_registers_takes_a_run_of_its_own() -> None:
    """The run checks the registers of wgmma.mma_async by its fences and waits."""
    body = """
wgmma.fence.sync.aligned;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
bar.sync 0;
"""
    read = module(body)
    runs = SameRuns(judged(read, entry(read), launch(128)), MODEL)
    assert [runs.cover(it) for it in mutations(entry(read)) if it.what == REMOVED] == [False, False, False, True]


def test_where_order_decides_a_mutant_takes_runs_of_its_own() -> None:
    """The last of two writes is known as long as the barrier orders them."""
    body = """
@%p0 st.relaxed.gpu.global.u32 [%d0], 1;
bar.sync 0;
setp.eq.s32 %p1, %r0, 32;
@%p1 st.relaxed.gpu.global.u32 [%d0], 2;
"""
    read = module(body)
    runs = SameRuns(judged(read, entry(read), launch()), MODEL)
    assert not any(runs.cover(it) for it in mutations(entry(read)))


def test_what_is_needed_alone_is_needed_without_idle_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside an object that nobody waits for, the barrier that hangs without its other half is not judged again."""
    asked: list[PtxFunction] = []
    unnoticed = Removals.unnoticed
    monkeypatch.setattr(Removals, "unnoticed", lambda work, it: (asked.append(it), unnoticed(work, it))[1])
    spare = "@%p0 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\n@%p0 mbarrier.inval.shared.b64 [%r4];\n"
    read = module(spare + NEIGHBOUR.format(sync="bar.arrive 1, 128;\nbar.sync 1, 128;"))
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert table.minimum is not None
    kept = {it.instruction.number for it in mutations(entry(read)) if it.what == REMOVED} - {
        it.number for it in table.minimum.dropped
    }
    opcodes = [it.opcode for it in entry(read).body or () if it.number in kept]
    assert opcodes == ["bar.arrive", "bar.sync"] and len(table.minimum.dropped) == 3
    gone = {it.number for it in table.minimum.dropped}
    for function in asked:  # neither half alone beside the set
        changed = {it.number for it, old in zip(function.body or (), entry(read).body or (), strict=True) if it != old}
        assert not gone < changed or kept <= changed


def test_copies_of_maps_by_their_fences_are_weakened_in_the_run() -> None:
    """Of an instruction of several steps, those that become weaker are known."""
    copy = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{}.sync.aligned [%d0], [%r2], 128;"
    read = module(copy.format("gpu"))
    kernel = judged(read, entry(read), launch(32))
    assert not kernel.verdict.open, kernel.verdict.open
    runs = SameRuns(kernel, MODEL)
    assert [it.what for it in mutations(entry(read)) if runs.cover(it)] == [
        ".gpu becomes .cluster",
        ".gpu becomes .cta",
    ]


def test_groups_are_known_where_threads_that_are_alike_commit_alike() -> None:
    """Two commits stand for one here: lane 0 comes to the first of them, the others to the second."""
    read = module(GROUPS)
    runs = SameRuns(judged(read, entry(read), launch()), MODEL)
    changes = [it for it in mutations(entry(read)) if "commit_group" in it.instruction.words or "group" in it.what]
    assert changes and not any(runs.cover(it) for it in changes)
    read = module(BODIES["groups"])
    runs = SameRuns(judged(read, entry(read), launch()), MODEL)
    changes = [it for it in mutations(entry(read)) if "commit_group" in it.instruction.words or "group" in it.what]
    assert len(changes) == 9 and all(runs.cover(it) for it in changes)


def test_a_commit_of_nothing_counts_as_a_group() -> None:
    """Of the two groups one is empty. A wait that leaves a group open counts the empty ones, too."""
    copy = "cp.async.ca.shared.global [%r3], [%d0], 4;\ncp.async.commit_group;\ncp.async.commit_group;\n"
    for left, needed in ((0, [False, False]), (1, [True, True])):
        read = module(f"{copy}cp.async.wait_group {left};\nld.shared.u32 %r5, [%r3];\n")
        same = SameRuns(judged(read, entry(read), launch()), MODEL)._runs[0]
        removals = [it for it in mutations(entry(read)) if it.what == REMOVED]
        assert [bool(same.new_findings(it)) for it in removals[:2]] == needed


def test_beside_removals_that_took_runs_of_their_own_more_is_asked_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the last wait its arrival can go, but the object is waited for before: a run of its own shows that. What
    is needed beside these is read off that run."""
    wait = "{0}:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r4], {1};\n@!%p5 bra {0};\n"
    arrive = "@%p0 mbarrier.arrive.shared.b64 _, [%r4];\n"
    body = "@%p0 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\n@%p0 st.shared.u32 [%r2], 7;\n" + arrive
    body += wait.format("A", 0) + "ld.shared.u32 %r5, [%r2];\nbar.sync 0;\n" + arrive
    body += wait.format("B", 1)
    read = module(body)
    runs: list[PtxFunction] = []
    own: list[int] = []
    unnoticed = Removals.unnoticed

    def run(case: KernelCase, *_: object) -> JudgedKernel:
        runs.append(case.entry)
        return judge_case(case)

    def asked(removals: Removals, mutant: PtxFunction) -> bool:
        before = len(runs)
        answer = unnoticed(removals, mutant)
        own.append(len(runs) - before)
        return answer

    monkeypatch.setattr(mutants, "judge_case", run)
    monkeypatch.setattr(Removals, "unnoticed", asked)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert table.minimum is not None
    assert [it.words[1] for it in table.minimum.dropped] == ["sync", "arrive", "try_wait"]
    assert sum(own) == 1, own
    numbers = {it.number for it in table.minimum.dropped}
    removals = [it for it in mutations(entry(read)) if it.what == REMOVED]
    gone = [it for it in removals if it.instruction.number in numbers]
    assert not judged(read, with_all(entry(read), tuple(gone)), launch()).verdict.serious
    for more in removals:
        if more not in gone:
            assert judged(read, with_all(entry(read), (*gone, more)), launch()).verdict.serious, more
