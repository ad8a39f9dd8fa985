"""Repairs of one idea are shown as one, and other ideas are looked for (`repair.searching.ideas`)."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Budget
from memmodel.engine import Options
from memmodel.repair.edits import Edit
from memmodel.repair.fix import Fixed, fix
from memmodel.repair.hints import relevant
from memmodel.repair.searching.ideas import FORMS, by_idea, does_more, has_all, idea
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes
from memmodel.why.records import Reason

pytestmark = pytest.mark.turns(2)

LITMUS = ROOT / "litmus"


def put(thread: int, index: int, text: str, cost: float = 1.0) -> Edit:
    """A line that is put into a thread."""
    return Edit(index, index, f"    {text}\n", f"{text} at {thread}:{index}", cost, (thread, index, text), adds=1)


def spelt(thread: int, index: int, old: str, new: str, cost: float = 1.0) -> Edit:
    """An instruction that is spelt in another way."""
    return Edit(index, index + 1, new, f"P{thread}, line {index}: {old} -> {new}", cost, (thread, index, "spelling"))


FENCE, LATER = put(0, 3, "fence.acquire.cta;"), put(0, 7, "fence.acquire.gpu;")
WAIT = spelt(0, 2, "mbarrier.try_wait.parity.relaxed.cta.b64", "mbarrier.try_wait.parity.acquire.cta.b64")
BOTH, RELEASE = put(0, 3, "fence.acq_rel.cta;", 9.0), put(0, 3, "fence.release.cta;")


def test_place_scope_and_spelling_make_no_other_idea() -> None:
    assert idea([FENCE]) == idea([LATER]) == idea([WAIT])
    assert idea([put(1, 3, "fence.proxy.async.global;")]) == idea([put(1, 5, "fence.proxy.async;")])


def test_threads_semantics_proxies_and_objects_do() -> None:
    assert idea([FENCE]) != idea([put(1, 3, "fence.acquire.cta;")])
    assert idea([FENCE]) != idea([RELEASE])
    assert idea([put(0, 3, "fence.proxy.async;")]) != idea([put(0, 3, "fence.proxy.alias;")])
    first, second = (
        put(0, 3, f"READY:\nmbarrier.try_wait.parity.b64 %p, [{name}], 0;\n@!%p bra READY;") for name in ("a", "b")
    )
    assert idea([first]) != idea([second])


def test_what_orders_more_than_a_cheaper_repair_is_no_idea_of_its_own() -> None:
    assert does_more(idea([BOTH]), idea([FENCE])) and does_more(idea([BOTH]), idea([RELEASE]))
    assert not has_all(idea([BOTH]), idea([FENCE, RELEASE])) and not does_more(idea([FENCE]), idea([BOTH]))
    assert does_more(idea([FENCE, RELEASE]), idea([LATER]))
    assert by_idea([(FENCE,), (BOTH,)], 6) == [((FENCE,), [])]


def test_a_few_forms_of_an_idea_are_told_and_others_count() -> None:
    forms: list[Changes] = [(put(0, at, "fence.acquire.cta;"),) for at in range(6)]
    (first, others), (second, none) = by_idea([*forms, (put(1, 1, "fence.acquire.cta;", 2.0),)], 2)
    assert first == forms[0] and others == forms[1:FORMS]
    assert second[0].cost == 2.0 and none == []


def fixed(name: str) -> Fixed:
    text = (LITMUS / f"{name}.litmus").read_text()
    return fix(name, text, (api.load(api.DEFAULT_MODEL),), Options(budget=Budget(seconds=120)), most=6, seconds=600)


def test_three_waits_that_may_each_be_an_acquire_are_one_repair() -> None:
    found = fixed("async/pipelines/scheduler-relaxed")
    (repair,) = found.repairs
    # How many forms are met depends on the executions that the solver happened to find first.
    assert len(repair.changes) == 3 and len(repair.others) < FORMS
    assert all(1 <= len(words) <= 3 for words in repair.instead)


def test_the_forms_of_one_idea_leave_room_for_others() -> None:
    """H16 has halves of the proxy fence, one fence for each direction, where the cheapest repair has whole fences."""
    found = fixed("async/honest/H16-generic-fences")
    kinds = [{("generic" in edit.text) for edit in one.changes} for one in found.repairs]
    assert {False} in kinds and {True} in kinds


MP = """PTX mp
.global .u32 data = 0;
.global .u32 flag = 0;
thread P @ cta 0, gpu 0 {
    st.global.u32 [data], 42;
    st.release.cta.global.u32 [flag], 1;
}
thread C @ cta 1, gpu 0 {
    ld.acquire.gpu.global.u32 %f, [flag];
    ld.global.u32 %d, [data];
}
exists (C:f == 1 /\\ C:d == 0)
"""


def test_what_takes_the_outcome_away_is_told_apart_from_what_ends_other_races() -> None:
    found = fix("mp", MP, (api.load(api.DEFAULT_MODEL),), Options())
    wanted = (
        "to take the outcome away it is enough: P, line 6: st.release.cta.global.u32 -> st.release.gpu.global.u32; "
    )
    assert found.reason == f"{wanted}executions without it keep the data-race"
    assert [len(repair.changes) for repair in found.repairs] == [
        2,
        3,
    ]  # waiting, or strong accesses
    narrow = MP.replace("thread C @ cta 1, gpu 0", "thread C @ cta 0, gpu 0").replace("release", "relaxed")
    assert "to take the outcome away" in fix("mp", narrow, (api.load(api.DEFAULT_MODEL),), Options()).reason


BEHIND = """PTX behind
.shared .align 16 .u32 buf[4] = {0, 0, 0, 0};
.global .align 16 .u32 out[4] = {0, 0, 0, 0};
thread P @ cta 0, gpu 0 {
    st.shared.u32 [buf], 7;
    bar.sync 0;
    fence.proxy.async.shared::cta;
}
thread T @ cta 0, gpu 0 {
    bar.sync 0;
    cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
}
exists ([out] == 0)
"""


def test_a_fence_and_a_barrier_that_change_places_are_one_repair() -> None:
    found = fix("behind", BEHIND, (api.load(api.DEFAULT_MODEL),), Options())
    assert len({one.new for one in found.repairs}) == len(found.repairs) == 3
    (moved,) = found.repairs[0].changes
    assert moved.what == "P, line 7: move fence.proxy.async.shared::cta before bar.sync (line 6)"


def test_what_is_moved_answers_reasons_of_its_kind() -> None:
    def answers(name: str, reason: Reason) -> bool:
        moved = Edit(0, 1, "", f"P0, line 1: {name} is moved", 1.0, (0, 1, "move"))
        return relevant(moved, frozenset({reason}))

    for name, own, other in (
        ("fence.acq_rel.gpu", Reason.RELAXED, Reason.NOT_WAITED),
        ("membar.gl", Reason.NO_FENCE_SC, Reason.NOT_WAITED),
        ("cp.async.bulk.wait_group", Reason.NOT_WAITED, Reason.RELAXED),
        ("fence.proxy.async", Reason.NO_PROXY_FENCE, Reason.RELAXED),
        ("tcgen05.fence::after_thread_sync", Reason.TCGEN05_FENCE, Reason.NOT_WAITED),
    ):
        assert answers(name, own) and not answers(name, other), name


def test_as_many_forms_of_an_idea_that_cost_the_same_are_tried() -> None:
    """One of the same cost is shown already once there are so many; a cheaper one is not."""
    known = SimpleNamespace(ideas=lambda: [[(FENCE,)] * FORMS])
    fewer = SimpleNamespace(ideas=lambda: [[(FENCE,)] * (FORMS - 1)])
    assert Trials.shown_already(known, (FENCE,)) and not Trials.shown_already(fewer, (FENCE,))
    assert not Trials.shown_already(known, (replace(FENCE, cost=0.5),))
