"""What may be put into a thread, and where: lines, phases, barriers, worked out for tests of a few lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

import memmodel
from memmodel import api
from memmodel.program.lowered import LoweredTest
from memmodel.repair.edits import Edit
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.repair.guided import Nearby
from memmodel.repair.insertion.arrivals import _missed
from memmodel.repair.insertion.completed_bytes import completed_bytes
from memmodel.repair.insertion.lines import Lines
from memmodel.repair.insertion.meetings import barrier_of_two
from memmodel.repair.insertion.phases import Phases
from memmodel.repair.insertion.rereads import repeated
from memmodel.repair.judge import AnswersOfTest
from memmodel.repair.searching.search import RepairSearch
from memmodel.repair.synchronizing.phases_of import _nearest
from memmodel.repair.vocabulary import replacements
from memmodel.source import Source
from memmodel.why.story import execution_of

OBJECTS = ".shared .align 8 .b64 bars[2] = mbarrier(1);\n.shared .u64 p;\n"
WAIT = "mbarrier.test_wait.parity.shared.b64 %q, [{}], {};"


def lowered(declared: str, *threads: str) -> LoweredTest:
    """Each thread as its place and its body."""
    places = (thread.partition(": ") for thread in threads)
    bodies = "".join(f"thread P{k} @ {place} {{\n{body}\n}}\n" for k, (place, _, body) in enumerate(places))
    return api.lowered(Source("t.litmus", f"PTX t\n{declared}{bodies}exists (true)\n"))


def test_which_objects_are_waited_for_and_in_which_phase() -> None:
    body = f"ld.shared.u64 %a, [p]; {WAIT.format('bars', 0)} {WAIT.format('bars+8', 1)} {WAIT.format('%a', 0)}"
    phases = Phases(lowered(OBJECTS, f"cta 0: {body}"), ["bars", "bars+8"])
    assert phases.waits == [[(1, "bars", 0), (2, "bars+8", 1)]]
    assert phases.waited_for() == {"bars"}


def test_a_register_with_an_unknown_address_is_no_object() -> None:
    through = f"{{}} {WAIT.format('%a', 0)}"
    for before, waited in (("ld.shared.u64 %a, [p];", set()), ("mov.u64 %a, bars;", {"bars"})):
        assert Phases(lowered(OBJECTS, f"cta 0: {through.format(before)}"), ["bars"]).waited_for() == waited


def test_a_map_that_no_thread_changes_needs_no_fence() -> None:
    declared = ".global .align 16 .u32 x[4];\n" + "".join(
        f".{space} .align 128 .b8 {space}map[128] = tensormap(x, {{4}}, {{4}});\n" for space in ("global", "const")
    )
    assert [variable.name for variable in Lines(lowered(declared, "cta 0: ld.global.u32 %r, [x];")).maps] == [
        "globalmap"
    ]


@pytest.mark.parametrize(
    ("places", "line"),
    [
        (("cta 0", "cta 0"), "bar.sync 1;"),
        (("cta 0", "cta 0", "cta 0"), "bar.sync 1, 64;"),
        (("cta 0", "cta 0", "cta 1"), "bar.sync 1;"),
        (("cta 0, cluster 0", "cta 1, cluster 0"), "barrier.cluster.arrive;\nbarrier.cluster.wait;"),
        (("cta 0, cluster 0", "cta 1, cluster 0", "cta 1, cluster 0"), None),
        (("cta 0", "cta 1"), None),
    ],
)
def test_at_which_barrier_two_threads_may_meet(places: tuple[str, ...], line: str | None) -> None:
    """All threads of a CTA, or two of them by their number; number 0 is in use."""
    test = lowered("", *(f"{place}: barrier.sync 0;" for place in places))
    found = barrier_of_two(test, 0, 1)
    assert (found and found[0]) == line


def test_a_thread_joins_a_barrier_of_its_own_cta_or_cluster() -> None:
    meets = "bar.sync 3; barrier.cluster.arrive; barrier.cluster.wait;"
    others = "cta 0, cluster 0", "cta 1, cluster 0", "cta 2, cluster 1"
    test = lowered("", f"cta 0, cluster 0: {meets}", *(f"{place}: mov.u32 %r, 1;" for place in others))
    cluster = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
    missed = [[line for line, _ in _missed(test, number)] for number in range(4)]
    assert missed == [[], ["bar.sync 3;", cluster], [cluster], []]
    rounds = lowered("", f"cta 0: {meets}bar.sync 3;", f"cta 0: {meets}")
    assert [line for line, _ in _missed(rounds, 1)] == ["bar.sync 3;"]


def test_a_count_is_changed_in_all_instructions_at_a_barrier() -> None:
    test = lowered("", "cta 0: bar.arrive 2, 96;", "cta 0: bar.sync 2, 96;", "cta 0: bar.sync 1, 96;")
    together = [edit.what for edit in replacements(test) if edit.group[3:] == ALIKE and "barrier" in edit.what]
    assert together == [f"P0, P1, lines 3, 6: 96 -> {count} in barrier 2" for count in (64, 128, 160)]


def test_what_instructions_complete_on_an_object_is_in_their_steps() -> None:
    declared = """.shared .align 128 .u32 s[64];
.global .align 16 .u32 g[64];
.const .b8 map[128] = tensormap(g, {8}, {64});
e @ fabric aliases g;
.shared .align 8 .b64 bar = mbarrier(1);
.shared .align 8 .b64 idle = mbarrier(1);
"""
    bulk, tx = "cp.async.bulk", "mbarrier::complete_tx"
    copies = f"""{bulk}.shared::cluster.global.{tx}::bytes [s], [g], 48, [bar];
    {bulk}.shared::cluster.global.{tx}::bytes.multicast::cluster [s], [g], 16, [bar], 3;
    {bulk}.tensor.1d.shared::cluster.global.tile.{tx}::bytes [s], [map, {{0}}], [bar];
    st.async.shared::cluster.{tx}::bytes.u64 [s@cta1], 1, [bar@cta1];
    fabric.try_put.async.shared::cta.{tx}::16B.mbarrier::report::fabric.relaxed.sys.b128 [e, 0], [s], 32, [bar];"""
    test = lowered(declared, f"cta 0, cluster 0: {copies}", "cta 1, cluster 0: mov.u32 %r, 1;")
    assert completed_bytes(test) == {"bar": [48, 16, 32, 8, 2]}


def test_the_wait_for_a_phase_of_an_object_is_the_nearest_for_this_phase() -> None:
    offered = {(0, 1, "a", "0"): None, (0, 2, "b", "0"): None, (0, 3, "a", "1"): None, (1, 4, "a", "0"): None}
    asked = ((0, 5), "a", "0")
    assert _nearest(offered, (), *asked) == (0, 1)  # type: ignore[arg-type]
    assert _nearest(offered, {(0, 1)}, *asked) is None  # type: ignore[arg-type]
    assert _nearest(offered, (), (0, 0), "a", "0") is None  # type: ignore[arg-type]
    assert _nearest(offered, (), *asked, 1) is None  # type: ignore[arg-type]  # its own arrival comes first


def test_a_load_and_a_test_are_repeated_and_nothing_else() -> None:
    body = """ld.relaxed.gpu.global.u32 %r, [x];
    mbarrier.test_wait.parity.shared.b64 %p, [bars], 0;
    fence.acq_rel.gpu;
    ld.relaxed.gpu.global.v2.u32 {%a, %b}, [x];
    st.global.u32 [x], %r;"""
    test = lowered(f".global .align 8 .u32 x[2];\n{OBJECTS}", f"cta 0: {body}")
    found = [repeated(test, 0, index, 1) for index in range(5)]
    assert [edit and " ".join(edit.text.split()) for edit in found] == [
        "setp.ne.u32 %early, %r, 1; @%early bra SEEN0;", "@!%p bra SEEN1;", None, None, None,
    ]  # fmt: skip


def test_a_wait_is_in_vain_where_nothing_can_have_arrived() -> None:
    """Only the thread itself arrives, behind it; or another thread does, at any time."""
    arrive, load = "mbarrier.arrive.shared.b64 _, [bars];", "ld.shared.u64 %r, [p];"
    wait = WAIT.format("bars", 0).replace("test", "try")
    for other, index, vain in ((load, 0, True), (load, 2, False), (arrive, 0, False)):
        text = (
            f"PTX t\n{OBJECTS}thread P0 @ cta 0 {{ {arrive} {load} }}\nthread P1 @ cta 0 {{ {other} }}\nexists (true)\n"
        )
        search = RepairSearch(
            text, AnswersOfTest((), frozenset(), True), None, lambda text: api.lowered(Source("t", text)), lambda _: ()
        )
        edit = Edit(0, 0, wait, "wait", 1.0, (0, index, "wait"), adds=1)
        assert search.waits_in_vain([edit]) is vain
        assert not search.waits_in_vain([edit, replace(edit, text=arrive)])


def test_waits_are_put_between_two_places_of_one_thread_or_anywhere_before_a_place_of_another() -> None:
    """The nearest first."""
    report = memmodel.check("PTX t\n.global .u32 x;\nthread P0 @ cta 0 { st.global.u32 [x], 1; }\nexists (x == 1)\n")
    assert report.execution is not None
    execution = execution_of(report.execution)
    assert execution is not None
    waits = [Edit(n, n, "cp.async.wait_all;", f"{n}", 1.0, (n // 10, n % 10, "wait"), adds=1) for n in (1, 3, 5, 12)]
    near = Nearby(execution, (), waits)
    for first, numbers in (((0, 2), [5, 3]), ((1, 2), [5, 3, 1]), (None, [5, 3, 1])):
        assert [edit.start for edit in near._waits(first, (0, 5))] == numbers
    assert near._waits((0, 2), None) == []
