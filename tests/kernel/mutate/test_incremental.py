"""Mutants that are judged without a run of their own: what shows in the kernel's run, and what many show at once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, ROUNDS, entry, kernel_text, launch, module

from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.cli.exits import Exit
from memmodel.cli.kernels.mutations import exit_code
from memmodel.cli.process import Interrupted
from memmodel.errors import BudgetSpent
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge, judge_case
from memmodel.kernel.check.inputs import reading_models
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.mutate import mutants
from memmodel.kernel.mutate.mutants import BROKEN, MutantFate, MutantWork, Noticed
from memmodel.kernel.mutate.mutations import REMOVED, is_weaker, mutations
from memmodel.kernel.mutate.same_run import SameRun, Shown
from memmodel.kernel.mutate.same_runs import SameRuns
from memmodel.kernel.mutate.table import MutationTable, mutation_table
from memmodel.kernel.mutate.together import largest
from memmodel.kernel.synchronization.page import report_page
from memmodel.kernel.synchronization.report import Necessity, synchronization_report
from memmodel.kernel.synchronization.text import report_lines
from memmodel.limits.usage import Usage
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.workers import KILLED

pytestmark = pytest.mark.turns(2)

MODEL = load_model("ptx-9.4")
HALVES = NEIGHBOUR.format(sync="bar.arrive 1, 128;\nbar.sync 1, 128;\nbar.sync 0;")
HANDED_OVER = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 fence.acq_rel.cta;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r5, [%r2];
bar.sync 0;
bar.warp.sync 0xffffffff;
@%p0 mbarrier.inval.shared.b64 [%r4];
"""
"""The fence and the release of the arrive do the same; what stands last is needless."""


def same_run(body: str, threads: int = 64) -> SameRun:
    read = module(body)
    kernel = judge_case(KernelCase(read, entry(read), launch(threads), MODEL, CheckOptions()))
    representative = kernel.representative
    assert representative is not None and representative.judgement.flags is not None
    return SameRun(representative.run, MODEL, representative.judgement.flags, kernel.verdict.known_keys)


def test_each_fate_is_that_of_an_independent_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[PtxFunction] = []
    outcome = MutantWork.outcome
    monkeypatch.setattr(
        MutantWork, "outcome", lambda work, mutant, **how: (judged.append(mutant), outcome(work, mutant, **how))[1]
    )
    read = module(HANDED_OVER)
    table: MutationTable = mutation_table(read, entry(read), launch(), MODEL, together=True)
    fates = set()
    for result in table.results:
        verdict = judge(read, result.mutation.of(entry(read)), launch(), MODEL)
        assert (result.noticed in BROKEN) is bool(verdict.serious), result
        fates.add((result.mutation.instruction.kind, result.mutation.what, result.noticed))
    needless = {"acq_rel", "warp", "inval"}
    assert needless == {kind for kind, what, fate in fates if (what, fate) == (REMOVED, Noticed.UNNOTICED)}
    assert ("arrive", "with .relaxed", Noticed.UNNOTICED) in fates
    assert ("try_wait", "with .relaxed", Noticed.FINDING) in fates
    assert table.minimum is not None
    gone = {it.number for it in table.minimum.dropped}
    assert len(gone) == len(needless) + 1  # without the inval, the barrier before it is not needed either
    removals = [result.mutation for result in table.results if result.mutation.what == REMOVED]
    least = entry(read)
    for change in removals:
        least = change.of(least) if change.instruction.number in gone else least
    assert not judge(read, least, launch(), MODEL).serious
    left = [change for change in removals if change.instruction.number not in gone]
    assert all(judge(read, change.of(least), launch(), MODEL).serious for change in left)
    assert len(judged) < len(table.results)


def test_needless_waits_are_judged_at_once_and_their_weaker_forms_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new object is empty: who waits for the phase before the first one passes. The last wait is needed."""
    loop = "{0}:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r4], {1};\n@!%p3 bra {0};\n"
    ahead = "mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 1;\n@%p2 bra GO;\n" + loop.format("SAVED", 1) + "GO:\n"
    body = f"""
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
{ahead}{loop.format("FREE", 1)}bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
{loop.format("FULL", 0)}ld.shared.u32 %r5, [%r2];
"""
    judged: list[PtxFunction] = []
    outcome = MutantWork.outcome
    monkeypatch.setattr(
        MutantWork, "outcome", lambda work, mutant, **how: (judged.append(mutant), outcome(work, mutant, **how))[1]
    )
    read = module(body)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    waits = [it for it in table.results if it.mutation.instruction.kind == "try_wait"]
    needed = max(it.mutation.instruction.line for it in waits)
    removals = [it for it in waits if it.mutation.what == REMOVED]
    assert len(removals) == 4 and len(waits) > 4
    for result in waits:
        assert (result.noticed is Noticed.UNNOTICED) is (result.mutation.instruction.line < needed), result
        assert (result.noticed in BROKEN) is bool(judge(read, result.mutation.of(entry(read)), launch(), MODEL).serious)
    changed = [
        [mine for mine, its in zip(it.body or (), entry(read).body or (), strict=True) if mine.words != its.words]
        for it in judged
    ]
    opcodes = [[it.opcode for it in instructions] for instructions in changed]
    assert ["mov.pred"] * 3 in opcodes and ["mov.pred"] not in opcodes


TWO_OBJECTS = """
add.u32 %r5, %r4, 8;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
{0}bar.sync 0;
@%p0 mbarrier.init.shared.b64 [%r5], 1;
{1}@%p0 mbarrier.arrive.shared.b64 _, [%r4];
"""
"""Whoever has waited for the first object may test the second one."""
WAIT = "{0}:\nmbarrier.try_wait.parity.shared.b64 %p3, [{1}], {2};\n@!%p3 bra {0};\n"
LAST = WAIT.format("LAST", "%r5", 1)
THIRD = "@%p0 mbarrier.{} [%r2]{};\n"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (  # of which wait an acquire fence stands behind counts under D10 alone
            TWO_OBJECTS.format(THIRD.format("init.shared.b64", ", 1"), THIRD.format("arrive.shared.b64 _,", ""))
            + WAIT.format("FIRST", "%r4", 0) + "fence.acq_rel.cta;\n" + WAIT.format("THIRD", "%r2", 0) + LAST,
            ("removed", "D10 dependent"),
        ),
        (  # the fences may come in another order
            TWO_OBJECTS.format("", "fence.sc.cta;\n") + WAIT.format("FIRST", "%r4", 0) + "fence.sc.cta;\n" + LAST,
            ("removed", ""),
        ),
        (  # removed, its own test is not there
            "setp.eq.u32 %p0, %r0, 32;\n" + TWO_OBJECTS.format("", "fence.sc.cta;\n")
            + "mov.u32 %r6, 0;\nmov.u32 %r7, %r4;\nNEXT:\n" + WAIT.format("EACH", "%r7", "%r6")
            + "add.u32 %r7, %r7, 8;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p4, %r6, 2;\n@%p4 bra NEXT;\n",
            ("with .relaxed", ""),
        ),
    ],
)  # fmt: skip
def test_without_a_wait_the_test_of_another_one_may_be_wrong(body: str, wrong: tuple[str, str]) -> None:
    """Without both, nothing is."""
    read = module(body)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    waits = [it for it in table.results if it.mutation.instruction.kind == "try_wait"]
    noticed = [it for it in waits if it.noticed is not Noticed.UNNOTICED or it.needing]
    assert [(it.mutation.what, *(it.needing or [""])) for it in noticed] == [wrong]
    options = CheckOptions(readings=reading_models() if wrong[1] else ())
    verdict = judge(read, noticed[0].mutation.of(entry(read)), launch(), MODEL, options)
    assert [it.rule for it in verdict.serious] == [] if wrong[1] else ["undefined-before-init"]
    assert [it.name for it in verdict.readings] == ([wrong[1]] if wrong[1] else [])


def test_a_longer_run_shows_what_the_first_one_does_not() -> None:
    """Where another lane than the first is elected, more is executed: a write, which one of two barriers orders before
    the read of the others."""
    body = """
elect.sync _|%p1, 0xffffffff;
setp.ne.s32 %p2, %r0, 0;
and.pred %p1, %p1, %p2;
fence.acq_rel.cta;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 st.shared.u32 [%r2], 7;
fence.acq_rel.cta;
bar.sync 0;
ld.shared.u32 %r5, [%r2];
bar.sync 0;
fence.acq_rel.cta;
"""
    read = module(body)
    table = mutation_table(read, entry(read), launch(32), MODEL, together=True)
    kernel = judge_case(KernelCase(read, entry(read), launch(32), MODEL, CheckOptions(4)))
    assert SameRuns(kernel, MODEL)._longer
    for result in table.results:
        verdict = judge(read, result.mutation.of(entry(read)), launch(32), MODEL)
        assert (result.noticed in BROKEN) is bool(verdict.serious), result
    assert [it.noticed is Noticed.FINDING for it in table.results] == [False, False, False, True, False, False]


def test_of_weaker_forms_the_weakest_is_judged_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """With .cta as with .gpu, the fence is enough: one verdict says both."""
    judged: list[PtxFunction] = []
    outcome = MutantWork.outcome
    monkeypatch.setattr(
        MutantWork, "outcome", lambda work, mutant, **how: (judged.append(mutant), outcome(work, mutant, **how))[1]
    )
    read = module(NEIGHBOUR.format(sync="fence.acq_rel.sys;\nbar.sync 0;"))
    scopes = [change for change in mutations(entry(read)) if change.what.startswith(".sys becomes")]
    narrow, wide = sorted(scopes, key=lambda change: change.what)
    assert narrow.what.endswith(".cta") and is_weaker(narrow, wide) and not is_weaker(wide, narrow)
    monkeypatch.setattr("memmodel.kernel.mutate.table.mutations", lambda function, miscounts: scopes)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert len(judged) == 1
    assert {result.noticed for result in table.results} == {Noticed.UNNOTICED}


def test_what_stands_in_for_another_one_is_told_apart_in_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three barriers two can go: the run shows that all three cannot, and no such kernel is judged."""
    body = NEIGHBOUR.format(sync="bar.sync 0;\nbar.sync 0;\nbar.sync 0;")
    read, run = module(body), same_run(body)
    removals = [change for change in mutations(entry(read)) if change.what == REMOVED]
    assert run.new_findings(*removals[:2]) == []
    assert "data-race" in {finding.rule for finding in run.new_findings(*removals) or ()}

    fates: list[bool] = []
    outcome = MutantWork.outcome

    def recorded(work: MutantWork, mutant: PtxFunction, **how: bool) -> tuple[MutantFate, JudgedKernel | None]:
        made = outcome(work, mutant, **how)
        fates.append(made[0].unnoticed)
        return made

    monkeypatch.setattr(MutantWork, "outcome", recorded)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert {result.noticed for result in table.results} == {Noticed.UNNOTICED} and fates == [True, True]
    assert table.minimum is not None and table.minimum.exact
    assert [it.number for it in table.minimum.dropped] == [it.instruction.number for it in removals[:2]]


def test_a_removal_of_which_the_run_is_no_execution_hides_nothing() -> None:
    """The machine checks registers by groups of wgmma. Without a commit less is waited for, and nothing else."""
    body = NEIGHBOUR.format(sync="bar.sync 0;\nwgmma.commit_group.sync.aligned;\nbar.sync 0;")
    run, removals = same_run(body, 128), [it for it in mutations(entry(module(body))) if it.what == REMOVED]
    first, commit, last = removals
    assert run.only_orders(commit) and run.new_findings(*removals) is None and run.shows(removals)
    assert not run.shows([first, commit]) and not run.shows([commit]) and not run.shows([commit, last])


@pytest.mark.parametrize(
    "body", [HANDED_OVER, NEIGHBOUR.format(sync="fence.acq_rel.gpu;\nbar.sync 0;\nbar.sync 1;\nbar.warp.sync -1;")]
)
def test_what_the_run_shows_without_some_instructions_it_shows_without_more(body: str) -> None:
    """What is said not to be asked again is wrong where it is asked."""
    run, removals = same_run(body), [it for it in mutations(entry(module(body))) if it.what == REMOVED]
    told = 0
    for some in (list(it) for size in (1, 2) for it in combinations(removals, size)):
        shown = run.shows(some)
        rest = [it for it in removals if it not in some]
        for others in (list(it) for size in (1, 2) for it in combinations(rest, size)) if shown is not None else ():
            if run.still_shows(shown, others, [*some, *others]):
                told += 1
                assert run.shows([*some, *others]), (some, others)
    assert told > 2
    assert not run.still_shows(Shown(), removals[1:], removals)


def test_what_a_later_wait_for_groups_orders_too() -> None:
    copy = "cp.async.ca.shared.global [%r3], [%d0], 4;\ncp.async.commit_group;\n"
    body = copy + "cp.async.wait_group 0;\ncp.async.wait_group 0;\nld.shared.u32 %r5, [%r3];\n"
    run, removals = same_run(body), [it for it in mutations(entry(module(body))) if it.what == REMOVED]
    _, first, last = removals
    assert run.new_findings(first) == run.new_findings(last) == []
    assert [it.rule for it in run.new_findings(first, last) or ()] == ["data-race"]


def test_an_object_without_its_init_is_undefined() -> None:
    """What hangs without an init is undefined first. Nothing is lost with the init of an object that nobody uses."""
    run, removals = same_run(HANDED_OVER), [it for it in mutations(entry(module(HANDED_OVER))) if it.what == REMOVED]
    of = {it.instruction.kind: it for it in removals if it.instruction.words[0] == "mbarrier"}
    assert [it.rule for it in run.new_findings(of["init"]) or ()] == ["undefined-mbarrier"]
    assert not run.idle([of["init"]]) and not run.idle([of["init"], of["arrive"]])
    assert run.idle([of["init"], of["arrive"], of["try_wait"], of["inval"]])


def test_what_cannot_be_counted_without_two_waits_is_told_in_the_run() -> None:
    """Each of two barriers of a round keeps the generations of the third apart."""
    body = "bar.arrive 1, 64;\nbar.sync 0;\nbar.sync 2;\nbar.arrive 1, 64;\n"
    run, removals = same_run(body), [it for it in mutations(entry(module(body))) if it.what == REMOVED]
    _, first, second, _ = removals
    assert run.new_findings(first, second) == []
    assert run.shows([first, second]) and not run.shows([first]) and not run.shows([second])


@pytest.mark.parametrize("apart", [1, 2, 3, 5])
def test_the_largest_part_is_that_of_adding_one_by_one(apart: int) -> None:
    def allowed(items: Sequence[int]) -> bool:
        return all(second - first >= apart for first, second in pairwise(sorted(items))) and 4 not in items

    kept: list[int] = []
    for item in range(13):
        if allowed([*kept, item]):
            kept.append(item)
    assert largest(range(13), allowed) == kept


def test_a_half_of_a_barrier_does_more_than_order() -> None:
    """Without it nobody comes past the other half."""
    run, removals = same_run(HALVES), [it for it in mutations(entry(module(HALVES))) if it.what == REMOVED]
    alone = [(change.instruction.opcode, run.only_orders(change)) for change in removals]
    assert alone == [("bar.arrive", False), ("bar.sync", False), ("bar.sync", True)]
    assert not run.new_findings(removals[0])


@pytest.mark.parametrize(
    ("what", "option"),
    [
        (Budget(seconds=7).out_of_seconds, "--timeout"),
        (Usage(Budget(original=Budget())).budget.out_of_memory, "--memory"),
    ],
)
def test_where_the_budget_runs_out_the_rest_is_not_judged(
    what: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes a verdict of its own comes last. What ran out is said, and how to go on."""

    def spent(*_: object) -> None:
        raise BudgetSpent(what)

    monkeypatch.setattr("memmodel.kernel.mutate.incremental.judged_alone", spent)
    read = module(HALVES)
    assert not mutation_table(read, entry(read), launch(), MODEL).partial
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert table.base.word == "clean" and table.partial and exit_code(table) == Exit.UNDECIDED
    made = synchronization_report(table)
    needs = [(it.instruction.opcode, it.need) for it in made.synchronizations]
    assert needs == [
        ("bar.arrive", Necessity.NEEDED),
        ("bar.sync", Necessity.LATE),
        ("bar.sync", Necessity.NEEDLESS),
    ]
    assert made.synchronizations[1].without == what and made.minimum is None
    assert " 0 MB" not in what and report_lines(made)[1] == f"not all was judged: {what}; {option} gives more"
    assert f"{option} gives more" in report_page(made)


def test_a_report_that_is_interrupted_has_what_was_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ended(*_: object) -> None:
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr("memmodel.kernel.mutate.incremental.judged_alone", ended)
    (tmp_path / "k.ptx").write_text(kernel_text(HALVES))
    described = {"grid": [1, 1, 1], "block": [64, 1, 1], "params": [{"name": "p", "type": "ptr", "bytes": 65536}]}
    (tmp_path / "l.json").write_text(json.dumps(described))
    files = {name: tmp_path / name for name in ("page.html", "data.json")}
    words = ["kernel", f"{tmp_path / 'k.ptx'}", "--launch", f"{tmp_path / 'l.json'}"]
    words += ["--report", f"{files['page.html']}", "--json", f"{files['data.json']}"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == Exit.UNDECIDED and "1 not judged" in answer.output, answer.output
    assert "1 not judged" in files["page.html"].read_text()
    needs = [(it["need"], it["without"]) for it in json.loads(files["data.json"].read_text())["synchronizations"]]
    assert [need for need, _ in needs] == ["needed", "not judged", "needless here"] and needs[1][1] == "interrupted"


def test_a_process_that_is_killed_costs_its_own_change(monkeypatch: pytest.MonkeyPatch) -> None:
    fate = mutants._fate

    def deadly(work: MutantWork, number: int) -> MutantFate:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return fate(work, number)

    read = module(HALVES)
    alone = mutation_table(read, entry(read), launch(), MODEL)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(mutants, "_fate", deadly)
    table = mutation_table(read, entry(read), launch(), MODEL, jobs=2)
    fates = [(it.noticed, it.how) for it in alone.results]
    fates[1] = (Noticed.LATE, KILLED)
    assert [(it.noticed, it.how) for it in table.results] == fates and len(fates) > 3
    assert table.partial and exit_code(table) == Exit.UNDECIDED


def test_what_the_run_shows_is_new_and_harmful() -> None:
    body = HANDED_OVER + "st.shared.u32 [%r2+512], %r0;\n"  # a race of the kernel itself
    run, changes = same_run(body), mutations(entry(module(body)))
    shown = {(it.instruction.kind, it.what): [each.rule for each in run.new_findings(it) or ()] for it in changes}
    assert shown["try_wait", "with .relaxed"] == ["data-race"]
    assert shown["acq_rel", REMOVED] == shown["inval", REMOVED] == []


def test_a_race_of_the_kernel_hides_no_other_one() -> None:
    """Without the second barrier the two loads are alike, and the verdict names the first one only."""
    body = (
        NEIGHBOUR.format(sync="bar.sync 0;") + "st.shared.u32 [%r3], %r0;\nbar.sync 0;\nld.shared.u32 %r13, [%r11];\n"
    )
    read = module(body)
    table = mutation_table(read, entry(read), launch(), MODEL, together=True)
    assert table.base.word == "findings"
    assert [result.noticed for result in table.results] == [Noticed.FINDING, Noticed.FINDING]
    assert table.minimum is not None and not table.minimum.dropped


@pytest.mark.parametrize("together", [False, True])
def test_what_is_ordered_counts_although_the_same_lines_race(together: bool) -> None:
    read = module(ROUNDS)
    table = mutation_table(read, entry(read), launch(), MODEL, together=together)
    assert [finding.rule for finding in table.base.serious] == ["data-race"]
    assert [result.noticed for result in table.results] == [Noticed.FINDING, Noticed.UNNOTICED]
    assert "between accesses that it orders" in table.results[0].how
    assert table.minimum is not None and [it.kind for it in table.minimum.dropped] == ["warp"]
