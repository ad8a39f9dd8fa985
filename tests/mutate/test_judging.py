"""What a test says of an edit: by all its candidates, by an engine, and by the labels of its events alone."""

from __future__ import annotations

import gc
import random
import weakref
from functools import cache
from pathlib import Path

import pytest
from helpers.corpus import PATHS, questions
from helpers.examples import SAMPLE, TIMES, examples
from helpers.strategies import programs as plain
from helpers.strategies import wide
from hypothesis import given

from memmodel import api
from memmodel.base.label_bounds import BOUNDS, may_relate
from memmodel.base.labels import Action, Family, Issue, Signal
from memmodel.base.resources import suite_dir
from memmodel.base.rows import pairs_of
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.rows import as_relation
from memmodel.engine import Options
from memmodel.enumeration.estimate import estimate
from memmodel.events.elaborate import elaborate
from memmodel.mutate.candidates import candidates
from memmodel.mutate.edits import edits_of
from memmodel.mutate.family import EditFamily
from memmodel.mutate.judging import TestJudge
from memmodel.mutate.outcome import EditResult, Fate, Strength
from memmodel.mutate.proofs import bounds_of_labels, bounds_of_test, kinds_of
from memmodel.mutate.verdicts import verdict_of
from memmodel.mutate.work import EditJudging, FileJudge
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Scope
from memmodel.search.judging.alike import upper_bounds
from memmodel.search.judging.slices import WorldAlgebra

pytestmark = pytest.mark.turns(2)

MODEL = "ptx-9.4"
BOUND = 3


@cache
def family() -> EditFamily:
    model = api.load(MODEL)
    return EditFamily(model, edits_of(model))


def chosen(count: int, what: str) -> list[str]:
    """Some small shipped tests."""
    small = [path for path in PATHS if estimate(questions(path)[0], BOUND) < 200]
    return random.Random(f"{SAMPLE} {what}").sample(small, count * TIMES if count * TIMES < len(small) else len(small))


@pytest.mark.share(2)
@pytest.mark.parametrize("path", chosen(8, "engines"))
def test_candidates_and_engines_give_an_edit_the_same_verdict(path: str) -> None:
    pick = random.Random(f"{SAMPLE} {path}")
    for steps in questions(path):
        lanes = candidates(steps, BOUND, grounded=True)
        if lanes is None:
            continue
        judge = TestJudge(family(), steps.test, lanes)
        base = verdict_of(api.judge(steps, family().model, Options()))
        assert judge.base() == base
        grounded = [member for member in family().members if member.grounded]
        differing = [member for member in grounded if judge.verdict(member) != base]
        for member in [*pick.sample(grounded, 3), *pick.sample(differing, min(3, len(differing)))]:
            answer = api.judge(steps, member.model, Options())
            assert judge.verdict(member) == verdict_of(answer), member.edit.key


def test_an_edit_that_lets_values_support_themselves_has_candidates_of_its_own() -> None:
    steps = questions("shapes/LB+data+data@two-ctas")[0]
    member = next(m for m in family().members if m.edit.what == "without the axiom `No-Thin-Air`")
    assert not member.grounded
    lanes = candidates(steps, BOUND, grounded=False)
    assert lanes is not None
    verdict = TestJudge(family(), steps.test, lanes).verdict(member)
    assert verdict == verdict_of(api.judge(steps, member.model, Options()))
    assert str(verdict) == "sometimes+race"


def test_values_of_one_edit_are_not_kept_for_the_next() -> None:
    """Of a large test they took more memory than all else."""
    steps = questions("shapes/LB+data+data@two-ctas")[0]
    lanes = candidates(steps, BOUND, grounded=True)
    assert lanes is not None
    judge = TestJudge(family(), steps.test, lanes)
    before = judge.base()
    assert any(judge.verdict(member) != before for member in family().members)
    kept = {node for each in judge._judges for node in each._evaluator._values}
    assert kept and max(kept) < family().own < len(family().graph.nodes)


def test_values_are_freed_with_the_test() -> None:
    """Python looks for cycles of objects too rarely, where values fill the memory."""
    steps = questions("isa/MP")[0]
    lanes = candidates(steps, BOUND, grounded=True)
    assert lanes is not None
    judge = TestJudge(family(), steps.test, lanes)
    for member in family().members[::100]:
        judge.verdict(member)
    kept = [weakref.ref(each) for each in judge._judges]
    gc.disable()
    try:
        del judge
        assert kept and not any(each() for each in kept)
    finally:
        gc.enable()


def test_an_engine_judges_the_edits_that_the_candidates_left() -> None:
    """Where no value supports itself, there are few candidates; the edits that let values do so have too many."""
    path = str(suite_dir() / "async/tcgen05/commit-of-matrix-a.litmus")
    judge = object.__new__(FileJudge)
    judge.judging, judge.family, judge._bounds = EditJudging(api.load(MODEL), MODEL), family(), None
    some = [*range(0, len(family().members), 60), *range(1300, 1400, 4)]
    left = {number for number in some if not family().members[number].grounded}
    assert set(judge.small(path, some, []).large) == left and 0 < len(left) < len(some)


# ---- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", chosen(12, "types"))
def test_relations_have_the_events_that_the_proofs_take_for_granted(path: str) -> None:
    steps = questions(path)[0]
    for lanes in candidates(steps, BOUND, grounded=True, most=500) or []:
        labels = [event.label for event in lanes.skeleton.frame.events]
        for name in BOUNDS:
            may = may_relate(name, labels)
            for a, row in enumerate(lanes.base(name)):
                for b in row:
                    assert may[a] >> b & 1, (name, labels[a], labels[b])


@pytest.mark.parametrize("path", chosen(4, "bounds"))
def test_labels_bound_each_expression_from_above_and_from_below(path: str) -> None:
    """What a candidate has the labels may have, and what they have for certain each candidate has."""
    nodes, lanes = family().graph.nodes[: family().own], candidates(questions(path)[0], BOUND, grounded=True, most=100)
    sure = 0
    for some in (lanes or [])[:2]:
        count, every = some.skeleton.frame.count, some.every
        most = upper_bounds(family().graph, [event.label for event in some.skeleton.frame.events])
        world = Evaluator(family().graph, WorldAlgebra([every] * count, some.base))
        for number, node in enumerate(nodes):
            if node.open or node.is_set or node.op == "recursion":
                continue
            for row, high, low in zip(
                world.value(number),
                as_relation(most.value(number)),
                as_relation(most.opposite.value(number)),
                strict=True,
            ):
                assert not sum(1 << b for b, when in row.items() if when) & ~high, node
                assert not low & ~sum(1 << b for b, when in row.items() if when == every), node
                sure += low.bit_count()
    assert sure or not lanes


def test_a_label_of_each_kind_is_enough() -> None:
    """Two groups of a CTA pair: an mma of one and a cp of the other are not one cta_group, whatever is left out."""
    issues = [Issue(each, group=group) for each, group in ((Family.MMA, 1), (Family.TCGEN_CP, 2), (Family.MMA, 2))]
    ends = [Signal(Action.COMPLETE_TX, Scope.CLUSTER, family) for family in (Family.BULK, Family.TRY_CANCEL)]
    assert kinds_of([*issues, *ends, *issues]) == (*issues, ends[0])
    lanes = [candidates(questions(path)[0], BOUND, grounded=True, most=50) for path in chosen(6, "kinds")]
    every = dict.fromkeys(event.label for each in lanes for one in each or () for event in one.skeleton.frame.events)
    few = kinds_of(every)
    assert set(few) <= every.keys()
    whole, part = bounds_of_labels(family(), list(every)), bounds_of_labels(family(), few)
    for member in random.Random(7).sample(family().members, 40):
        assert whole.agrees(member) is part.agrees(member), member.edit.key


def same_on(steps: LoweredTest) -> None:
    """No edit that the labels of a test, or its events, show to be idle changes a verdict."""
    lanes = candidates(steps, BOUND, grounded=True, most=300)
    if lanes is None:
        return
    judge = TestJudge(family(), steps.test, lanes)
    labels = [event.label for each in lanes for event in each.skeleton.frame.events]
    by_labels, by_events = bounds_of_labels(family(), kinds_of(labels)), bounds_of_test(family(), steps, BOUND)
    pick = random.Random(len(labels))
    for member in pick.sample(family().members, 60):
        if member.grounded and (by_labels.agrees(member) or by_events.agrees(member)):
            assert judge.verdict(member) == judge.base(), member.edit.key


@examples(6)
@given(plain.programs(most=5))
def test_an_idle_edit_differs_on_no_small_program(program: plain.Program) -> None:
    same_on(api.lowered(program.text))


@examples(6)
@given(wide.programs())
def test_an_idle_edit_differs_on_no_asynchronous_program(program: wide.Program) -> None:
    same_on(api.lowered(program.text))


def test_labels_tell_idle_edits_from_others() -> None:
    steps = questions("shapes/MP+rel.cta+acq.gpu@two-ctas")[0]
    lanes = candidates(steps, BOUND, grounded=True)
    assert lanes is not None
    bounds = bounds_of_labels(family(), [event.label for each in lanes for event in each.skeleton.frame.events])
    rules = {"committed", "release-pattern", "in-scope", "morally-strong"}
    agree: dict[str, set[bool]] = {rule: set() for rule in rules}
    for member in family().members:
        if member.edit.rule in rules:
            agree[member.edit.rule].add(bounds.agrees(member))
    assert agree.pop("committed") == {True}
    assert all(False in answers for answers in agree.values())


def test_events_of_a_test_show_more_than_their_labels() -> None:
    """Which events are of one thread or of one place, labels do not say."""
    steps = questions("isa/MP")[0]
    labels = [event.label for event in elaborate(steps, BOUND, ()).events]
    by_labels, by_events = bounds_of_labels(family(), labels), bounds_of_test(family(), steps, BOUND)
    members = random.Random(3).sample(family().members, 150)
    idle = [[member for member in members if each.agrees(member)] for each in (by_labels, by_events)]
    assert {member.edit.key for member in idle[0]} < {member.edit.key for member in idle[1]}


def test_the_lanes_of_a_test_are_all_its_candidates() -> None:
    """Message passing with plain accesses: two reads of two writes each; coherence is settled."""
    steps = questions("isa/MP")[0]
    lanes = candidates(steps, BOUND, grounded=True)
    assert lanes is not None
    assert sum(each.count for each in lanes) == 4
    assert sum((each.yes | each.no).bit_count() for each in lanes) == 4
    assert all(len(pairs_of([0])) == 0 for _ in lanes)


def test_a_test_with_too_many_candidates_is_left_to_an_engine() -> None:
    steps = questions("isa/MP")[0]
    assert candidates(steps, BOUND, grounded=True, most=3) is None


def test_the_share_is_of_what_was_decided() -> None:
    def strength(*fates: Fate) -> float:
        edit = family().members[0].edit
        return Strength("m", [EditResult(edit, fate) for fate in fates], 1).share

    assert strength() == strength(Fate.EQUIVALENT, Fate.UNDECIDED) == 1
    assert strength(Fate.FAILS, Fate.DIFFERS, Fate.FOUND, Fate.SURVIVES, Fate.EQUIVALENT, Fate.UNDECIDED) == 0.5


def test_a_file_that_cannot_be_read_any_more_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "gone.litmus"
    path.write_text("PTX gone\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n st.strange x, 1 ;\nexists (x == 1)\n")
    judge = FileJudge(EditJudging(api.load(MODEL), None))
    for findings in (judge.small(str(path), [0, 1], []), judge.large(str(path), [0, 1], [])):
        assert findings.open == [0, 1] and "unknown" in findings.spent


def test_what_labels_show_is_of_the_test_that_is_judged() -> None:
    def judge() -> FileJudge:
        made = object.__new__(FileJudge)
        made.judging, made.family, made._bounds = EditJudging(api.load(MODEL), None), family(), None
        return made

    def may(judging: FileJudge, each: LoweredTest) -> list[bool]:
        return [judging._may_differ(member, each) for member in members]

    members, kept = random.Random(1).sample(family().members, 60), judge()
    steps = [questions(path)[0] for path in ("shapes/LB+data+data@two-ctas", "async/mbarrier/G3")]
    first, second = (may(kept, each) for each in steps)
    assert [first, second] == [may(judge(), each) for each in steps] and first != second
