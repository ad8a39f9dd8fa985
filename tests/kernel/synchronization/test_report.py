"""The synchronization report of a kernel: what each instruction orders, if it is needed, and what can go at once."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, entry, kernel_text, launch, module
from helpers.places import ROOT

from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.errors import BudgetSpent
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge, judge_case
from memmodel.kernel.check.inputs import entry_of, reading_models
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import read_launch
from memmodel.kernel.mutate.mutants import Noticed, findings_of_readings
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, mutations
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.mutate.table import MutationTable, mutation_table
from memmodel.kernel.mutate.together import MinimumSet, RemovalJudge, minimum_set
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.repair.wants import _next
from memmodel.kernel.synchronization.page import MOST, report_page
from memmodel.kernel.synchronization.picture import COLUMN, EDGE, LANE, TOP, legend, picture
from memmodel.kernel.synchronization.pipeline import pipeline
from memmodel.kernel.synchronization.report import (
    Necessity,
    SynchronizationReport,
    _synchronization,
    synchronization_report,
)
from memmodel.kernel.synchronization.text import minimum_lines, report_lines, report_record
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.source import Source

EXAMPLES = ROOT / "docs" / "examples" / "kernels"
TWICE = NEIGHBOUR.format(sync="bar.sync 0;\nbar.sync 0;")
SPARE = NEIGHBOUR.format(sync="bar.sync 0;") + "fence.acq_rel.gpu;\nbar.sync 0;\n"
"""Behind the reads there is nothing left to be ordered."""


@cache
def report(body: str) -> SynchronizationReport:
    read = module(body)
    return synchronization_report(mutation_table(read, entry(read), launch(), load_model("ptx-9.4"), together=True))


@cache
def example(name: str) -> SynchronizationReport:
    read = parse_module(Source.read(EXAMPLES / f"{name}.ptx"))
    launched = read_launch(EXAMPLES / f"{name}.launch.json")
    table = mutation_table(read, entry_of(read, launched.kernel), launched, load_model("ptx-9.4"), together=True)
    return synchronization_report(table)


def test_what_is_handed_over_and_what_breaks_without_it() -> None:
    (barrier,) = report(NEIGHBOUR.format(sync="bar.sync 0;")).synchronizations
    assert barrier.need is Necessity.NEEDED
    assert re.fullmatch(r"hands shared memory.* from st\.shared\.u32 \(line \d+\) to ld\.shared\.u32 \(line \d+\)",
                        barrier.phrase)  # fmt: skip
    assert barrier.without.startswith("without it: data-race of lines ")


def test_what_is_given_back() -> None:
    phrases = {it.instruction.opcode: it.phrase for it in example("tma_pipeline").synchronizations}
    assert phrases["fence.proxy.async.shared::cta"].startswith(
        "gives shared memory of CTA 0 back: read by ld.shared.f32"
    )
    assert "makes an object ready: mbarrier.init" in phrases["mbarrier.init.shared.b64"]


def test_a_weaker_form_that_is_enough() -> None:
    made = example("tma_pipeline")
    (arrive,) = (it for it in made.synchronizations if it.need is Necessity.STRONGER)
    assert "expect_tx" in arrive.instruction.opcode and arrive.weaker[0][0] == ".release becomes .relaxed"
    (fence,) = (it for it in made.synchronizations if it.need is Necessity.READING)
    assert "needed under D15 fence" in fence.without


def test_of_two_barriers_one_can_go() -> None:
    made = report(TWICE)
    assert made.count(Necessity.NEEDLESS) == 2
    assert made.minimum is not None
    assert len(made.minimum.dropped) == len(made.minimum.kept) == 1
    assert any("needless alone, but not beside it" in line for line in report_lines(made))


def test_what_is_needless_goes_at_once() -> None:
    minimum = report(SPARE).minimum
    assert minimum is not None and not minimum.kept
    assert [it.opcode for it in minimum.dropped] == ["fence.acq_rel.gpu", "bar.sync"]


@pytest.mark.parametrize("body", [TWICE, SPARE])
def test_what_is_left_is_clean_and_all_of_it_is_needed(body: str) -> None:
    """Judged without the report: the kernel without what can go, then without each of the others as well."""
    minimum = report(body).minimum
    assert minimum is not None
    dropped = {it.number for it in minimum.dropped}
    read = module(body)

    def word(without: set[int]) -> str:
        function = entry(read)
        for change in mutations(entry(read)):
            if change.what == REMOVED and change.instruction.number in without:
                function = change.of(function)
        return judge(read, function, launch(), load_model("ptx-9.4")).word

    assert word(dropped) == "clean"
    members = {change.instruction.number for change in mutations(entry(read))} - dropped
    assert members and all(word({*dropped, number}) == "findings" for number in members)


class JudgedBy(RemovalJudge):
    """Judges removals by a function alone."""

    def __init__(self, unnoticed: Callable[[PtxFunction], bool]) -> None:
        self._unnoticed = unnoticed

    def unnoticed(self, mutant: PtxFunction) -> bool:
        return self._unnoticed(mutant)


def test_what_another_one_made_necessary_goes_with_it() -> None:
    """An arrive is needed as long as there is the wait, which is needless."""
    read = module(NEIGHBOUR.format(sync="bar.arrive 1, 64;\nbar.sync 1, 64;\nbar.sync 0;"))
    arrive, wait, sync = removals = [change for change in mutations(entry(read)) if change.what == REMOVED]

    def unnoticed(function: PtxFunction) -> bool:
        left = [it.opcode for it in function.body or () if it.words[0] == "bar"]
        return left in (["bar.arrive", "bar.sync", "bar.sync"], ["bar.arrive", "bar.sync"], ["bar.sync"])

    found = minimum_set(entry(read), removals, [wait], JudgedBy(unnoticed))
    assert found == MinimumSet((arrive.instruction, wait.instruction), (), exact=True)
    assert sync.instruction not in found.dropped
    assert minimum_set(entry(read), removals, [], JudgedBy(unnoticed)) == found  # by judging every set
    assert minimum_set(entry(read), removals, [], JudgedBy(lambda _: False)) == MinimumSet((), (), exact=True)
    many = minimum_set(entry(read), removals * 2, [], JudgedBy(lambda _: False))
    assert many == MinimumSet((), (), exact=False)


def test_what_can_go_is_said_where_the_time_runs_out() -> None:
    """What went together until then is an upper bound, and nothing is said of the others."""
    read = module(NEIGHBOUR.format(sync="bar.warp.sync -1;\nbar.warp.sync -1;\nbar.sync 0;"))
    first, second, sync = removals = [change for change in mutations(entry(read)) if change.what == REMOVED]
    answers = iter([False, True])  # all at once, then the first

    def unnoticed(function: PtxFunction) -> bool:
        try:
            return next(answers)
        except StopIteration:
            raise BudgetSpent("the time ran out") from None

    minimum = minimum_set(entry(read), removals, removals, JudgedBy(unnoticed))
    assert minimum == MinimumSet((first.instruction,), (), late="the time ran out")
    assert "not all others were tried" in minimum_lines(minimum)[0]
    assert not any("needless alone" in line for line in minimum_lines(minimum))
    with pytest.raises(BudgetSpent):  # nothing was judged
        minimum_set(entry(read), removals, [second, sync], JudgedBy(unnoticed))


def test_what_takes_too_much_work_is_not_tried_and_counted() -> None:
    """Nothing is said of it: neither that it can go, nor that it cannot."""
    read = module(NEIGHBOUR.format(sync="bar.warp.sync -1;\n" * 6 + "bar.sync 0;"))
    first, *_, sync = removals = [change for change in mutations(entry(read)) if change.what == REMOVED]

    class OneMore(JudgedBy):
        def affordable(self, changes: Sequence[Mutation]) -> bool:
            return changes[-1] is sync

    least = minimum_set(entry(read), removals, [first], OneMore(lambda _: True))
    assert least == MinimumSet((first.instruction, sync.instruction), (), untried=5)
    assert "nothing else is known to; not tried: 5 that take another verdict each" in minimum_lines(least)[0]


def test_what_can_go_is_listed_by_name() -> None:
    read = module(NEIGHBOUR.format(sync="bar.warp.sync -1;\nbar.warp.sync -1;\nbar.sync 0;"))
    gone = tuple(change.instruction for change in mutations(entry(read)) if change.what == REMOVED)
    first = gone[0].line
    lines = minimum_lines(MinimumSet(gone, ()))
    assert f"2 bar.warp.sync (lines {first}, {first + 1}), bar.sync (line {first + 2}); " in lines[0]


@pytest.mark.parametrize("dropped", [0, 1])
def test_what_is_undecided_is_not_said_to_stay(dropped: int) -> None:
    read = module(NEIGHBOUR.format(sync="bar.warp.sync -1;\nbar.sync 0;"))
    first, second = (change.instruction for change in mutations(entry(read)) if change.what == REMOVED)
    minimum = MinimumSet((first,)[:dropped], (), exact=True)
    assert any("nothing" in line and "can" in line for line in minimum_lines(minimum))
    text = " ".join(minimum_lines(minimum, (second,)))
    assert f"undecided: bar.sync (line {second.line})" in text and "is known to" in text
    assert "nothing else can" not in text and "nothing can" not in text and "each larger set" not in text


@pytest.mark.parametrize("name", ["dsmem", "tma_pipeline"])
def test_answers_are_those_of_independent_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged without what mutants share: to the end, and under every reading."""
    made, model = example(name), load_model("ptx-9.4")
    read = parse_module(Source.read(EXAMPLES / f"{name}.ptx"))
    launched = read_launch(EXAMPLES / f"{name}.launch.json")
    kernel, readings = entry_of(read, launched.kernel), reading_models()
    monkeypatch.setattr("memmodel.kernel.order.readings._different", lambda *_: None)

    def verdict(function: PtxFunction) -> KernelVerdict:
        return judge_case(KernelCase(read, function, launched, model, CheckOptions(4, readings=readings))).verdict

    known = findings_of_readings(verdict(kernel), readings)
    removals = {change.instruction.number: change for change in mutations(kernel) if change.what == REMOVED}
    compared = [it for it in made.synchronizations if it.instruction.number in removals][-5:]
    compared += [it for it in made.synchronizations if it.need in (Necessity.READING, Necessity.NEEDLESS)]
    for synchronization in compared:
        mutant = verdict(removals[synchronization.instruction.number].of(kernel))
        found = findings_of_readings(mutant, readings)
        needing = any(not found[reading] <= known[reading] for reading in found)
        need = Necessity.NEEDED if mutant.serious else Necessity.READING if needing else Necessity.NEEDLESS
        assert need is synchronization.need or (need, synchronization.need) == (Necessity.NEEDED, Necessity.STRONGER)


def test_the_page_has_every_line_and_nothing_foreign() -> None:
    made = example("tma_pipeline")
    page = report_page(made)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    allowed = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in page and "default-src 'none'" in page
    assert "<script" not in page and " style=" not in page
    for it in made.synchronizations:
        assert page.count(f'id="at{it.instruction.number}"') == 1
        assert f'href="#at{it.instruction.number}"' in page
        assert f'<span class="number">{it.instruction.line}</span>' in page
    many = [len(it.orders) - MOST for it in made.synchronizations if len(it.orders) > MOST]
    assert list(map(int, re.findall(r"<li>(-?\d+) more</li>", page))) == many
    counts = {accesses.count for it in made.synchronizations for accesses in it.orders}
    assert set(map(int, re.findall(r"\((\d+) pairs\)", page))) == counts - {1}


def test_the_picture_shows_roles_hand_overs_and_what_is_missing() -> None:
    drawn = example("tma_pipeline").pipeline
    assert drawn is not None and drawn.lanes == ("warp 0", "warp 1", "warp 2", "warp 2, async") and not drawn.left_out
    assert drawn.does == ("ld.shared", "ld.shared", "cp.async", "cp.async")
    full = [over for over in drawn.hand_overs if any(mark.instruction.line == 141 for mark in over.gives)]
    assert len(full) == 5 and {mark.lane for over in full for mark in over.takes} == {0, 1}
    assert {mark.instruction.line for over in full for mark in over.takes} == {187}
    for over in drawn.hand_overs:
        assert all(give.column < take.column for give in over.gives for take in over.takes)
    (line,) = {it.instruction.number for it in example("tma_pipeline").synchronizations if it.instruction.line == 270}
    part = drawn.about(line)
    assert part is not None and all(line in over.instructions for over in part.hand_overs) and len(part.hand_overs) == 3
    assert "stroke-dasharray" not in picture(drawn) and 'class="missing"' not in picture(drawn)
    race = synchronization_report(_broken()).pipeline
    assert race is not None and any("data-race" in over.missing for over in race.hand_overs)
    assert 'class="missing"' in picture(race) and "Dashed" in legend(race)
    assert '<ul class="absent">' in picture(race) and '<ul class="absent">' not in picture(drawn)


def test_objects_of_the_same_lines_are_told_apart_by_their_ctas() -> None:
    """Each CTA of a cluster has the object of its own."""
    drawn = example("st_async").pipeline
    assert drawn is not None
    names = re.findall(r"<title>(49 → 137[^<]*)</title>", picture(drawn))
    assert sorted(set(names)) == ["49 → 137, CTA 0", "49 → 137, CTA 1"]


def arrows(svg: str) -> Counter[tuple[int, int, int, int]]:
    """Lane and column of both ends of each arrow of a picture; an end outside the lanes is -1."""
    found: Counter[tuple[int, int, int, int]] = Counter()
    for x, y, *_, end_x, end_y in re.findall(r'd="M(\S+) (\S+?)[CL](?:\S+ \S+ \S+ \S+ )?(\S+) (\S+)"', svg):
        ends = [(int((float(b) - TOP) // LANE), int((float(a) - EDGE) // COLUMN)) for a, b in ((x, y), (end_x, end_y))]
        found[(*ends[0], *ends[1])] += 1
    return found


def test_an_arrow_leads_from_the_last_that_arrives_to_each_that_waits() -> None:
    shown, race = example("tma_pipeline").pipeline, synchronization_report(_broken()).pipeline
    assert shown is not None and race is not None
    for drawn in (shown, race):
        expected: Counter[tuple[int, int, int, int]] = Counter()
        for over in drawn.hand_overs:
            gives = over.gives[-1:] if over.ring >= 0 or over.missing else over.gives
            pairs = [((give.lane, give.column), (take.lane, take.column)) for give in gives for take in over.takes]
            expected.update((*give, *take) for give, take in pairs if give != take)
        assert arrows(picture(drawn)) == expected
        columns = 1 + max(mark.column for over in drawn.hand_overs for mark in (*over.gives, *over.takes))
        assert f'viewBox="0 0 {max(columns, 4) * COLUMN + 2 * EDGE} ' in picture(drawn)
    names = re.findall(r"<text[^>]*><title>([^<]*)", picture(shown))[len(shown.lanes) + len(shown.does) :]
    rings = ("123 → 187", "270 → 104")
    assert names == ["barrier 0", *(f"{lines}, stage {stage}" for lines in rings for stage in range(2))]


RING = """
@%p0 mbarrier.init.shared.b64 [%r4], 32;
@%p0 mbarrier.init.shared.b64 [%r4+8], 32;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra WAIT;
mbarrier.arrive.shared.b64 %d1, [%r4];
mbarrier.arrive.shared.b64 %d1, [%r4+8];
bra DONE;
WAIT: mov.u32 %r5, 0;
NEXT: add.s32 %r6, %r4, %r5;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0;
@!%p2 bra AGAIN;
add.s32 %r5, %r5, 8;
setp.lt.u32 %p3, %r5, 16;
@%p3 bra NEXT;
DONE:
"""
"""A loop that waits for two objects, at which different instructions arrive, as in an unrolled prologue."""


def test_objects_for_which_one_loop_waits_are_stages_of_a_ring() -> None:
    order = LaunchOrder.of(_kernel(RING).representative)
    assert order is not None
    drawn = pipeline(order)
    assert order.pairs(proxies=False) is order.pairs(proxies=False)  # each synchronization asks for them
    assert len({over.ring for over in drawn.hand_overs if over.ring >= 0}) == 1
    named = re.findall(r"(\d+) → (\d+), stage (\d)</title>", picture(drawn))
    (first, wait, _), (second, same, _) = named
    assert [stage for *_, stage in named] == ["0", "1"] and wait == same and int(second) == int(first) + 1


def test_marks_stand_as_far_to_the_left_as_they_may() -> None:
    """Each stands right behind one of its lane or, if it waits, behind one that arrives."""
    drawn = example("tma_pipeline").pipeline
    assert drawn is not None
    lanes = {(mark.lane, mark.column) for over in drawn.hand_overs for mark in (*over.gives, *over.takes)}
    for over in drawn.hand_overs:
        together = [over.takes] if over.ring < 0 else [(take,) for take in over.takes]
        for group in (*((give,) for give in over.gives), *together):
            column = group[0].column
            given = column == 0 or (group[0] in over.takes and any(give.column == column - 1 for give in over.gives))
            behind = {(lane, column - 1) for mark in group for lane in (mark.lane, mark.issuer)} & lanes
            assert all(mark.column == column for mark in group) and (given or behind), group


def _kernel(body: str) -> JudgedKernel:
    read = module(body)
    return judge_case(KernelCase(read, entry(read), launch(), load_model("ptx-9.4"), CheckOptions()))


def _broken() -> MutationTable:
    """The verdict on a kernel with a race, and none on its mutants."""
    kernel = _kernel(NEIGHBOUR.format(sync=""))
    return MutationTable(kernel.verdict, LaunchOrder.of(kernel.representative), runs=kernel.runs)


def test_pairs_of_a_run_are_in_its_order_and_what_comes_next_is_behind() -> None:
    stores = "".join(f"st.shared.u32 [%r3+{256 * number}], %r0;\nfence.acq_rel.cta;\n" for number in range(3))
    order = LaunchOrder.of(
        _kernel(stores + NEIGHBOUR.format(sync="") + "bar.sync 0;\nld.shared.u32 %r12, [%r11];\n").representative
    )
    assert order is not None
    pairs = set(order.pairs(proxies=False))
    assert pairs and all(order.after[first] >> second & 1 for first, second in pairs)
    assert len(pairs) < sum(len(set(ends)) == 2 for ends in order.graph.pair_of)  # some are a race
    for number, point in enumerate(order.graph.points):
        following = _next(order.run, number, ordering=False)
        assert following is None or following.number > order.graph.origins[number].at, point


def test_a_hostile_text_stays_text(tmp_path: Path) -> None:
    body = NEIGHBOUR.format(sync='bar.sync 0; // </code><script>alert("1")</script> \u202e')
    read = parse_module(Source("<b>k</b>.ptx", kernel_text(body)))
    page = report_page(synchronization_report(mutation_table(read, entry(read), launch(), load_model("ptx-9.4"))))
    assert "<script" not in page and "<b>" not in page and "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_from_the_command_line(tmp_path: Path) -> None:
    command = ["kernel", str(EXAMPLES / "dsmem.ptx"), "--launch", str(EXAMPLES / "dsmem.launch.json")]
    page, data = tmp_path / "out.html", tmp_path / "out.json"
    done = CliRunner().invoke(app, [*command, "--annotate", "--report", str(page), "--json", str(data)])
    assert done.exit_code == 0
    assert done.output.startswith("clean: dsmem") and "\ndsmem (clean): 4 synchronizations: 4 needed\n" in done.output
    assert "\nline 50: barrier.cluster.arrive: needed\n  hands shared memory of CTA 0 from" in done.output
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert json.loads(data.read_text()) == report_record(example("dsmem"))
    assert CliRunner().invoke(app, [*command, "--report", "-"]).output.startswith("<!DOCTYPE html>")
    refused = CliRunner().invoke(app, [*command, "--annotate", "--mutate"])
    assert refused.exit_code == 2 and "--mutate does not go with --annotate" in refused.output


@pytest.mark.parametrize(
    ("removed", "weaker", "need"),
    [
        # An instruction that can go: what becomes of the kernel without it counts first.
        ("unnoticed", "finding", "needless here"), ("unnoticed", "", "needless here"),
        ("unnoticed under a reading", "finding", "needed under a reading"),
        ("finding", "hang undefined", "needed"), ("hang", "not judged undecided", "needed"),
        ("undefined", "finding unnoticed", "stronger than needed"),
        ("hang", "unnoticed under a reading", "needed"),
        ("undecided", "unnoticed", "undecided"), ("undecided", "finding", "undecided"),
        ("not judged", "finding", "not judged"), ("not reached", "unnoticed", "not reached"),
        # An access that synchronizes is only ever weakened.
        (None, "finding", "needed"), (None, "hang undefined not_reached", "needed"),
        (None, "finding unnoticed", "stronger than needed"), (None, "not judged unnoticed", "stronger than needed"),
        (None, "finding not judged", "not judged"), (None, "not reached", "not reached"),
        (None, "finding undecided", "undecided"), (None, "unnoticed under a reading", "undecided"),
    ],
)  # fmt: skip
def test_what_an_instruction_is_needed_for(removed: str | None, weaker: str, need: str) -> None:
    """Only what was judged and broken makes it needed, only what was judged and unnoticed makes it needless."""
    words = ("unnoticed under a reading", *(fate.value for fate in Noticed))

    def result(what: str, fate: str) -> Any:
        needing = ("D4a no-before",) if "reading" in fate else ()
        noticed = Noticed(fate.removesuffix(" under a reading"))
        mutation = SimpleNamespace(instruction=None, what=what)
        return SimpleNamespace(mutation=mutation, noticed=noticed, needing=needing, how="", lines=())

    fates = re.findall("|".join(words), weaker.replace("_", " "))
    results = [result("relaxed", fate) for fate in fates] + ([] if removed is None else [result(REMOVED, removed)])
    made = _synchronization(results, None)
    assert made.need is Necessity(need)
    assert bool(made.weaker) is (need != "needless here" and "unnoticed" in fates)
