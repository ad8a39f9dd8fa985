"""The automata of mbarrier objects and barriers, and that both doors count as they do."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of, wait

from memmodel import api
from memmodel.base.labels import Action
from memmodel.program.automata import BarrierCounts, MbarrierCounts
from memmodel.ptx.vocabulary import MAX_TX, MbarrierLayout


def started(count: int, layout: MbarrierLayout = MbarrierLayout.V0) -> MbarrierCounts:
    counts, bad = MbarrierCounts().after(Action.INIT, count, layout=layout)
    assert not bad
    return counts


# ---- mbarrier objects --------------------------------------------------------------------------------------------


def test_a_phase_is_over_when_arrivals_and_bytes_have_come() -> None:
    counts = started(2)
    for action, count, size in ((Action.ARRIVE, 1, 16), (Action.COMPLETE_TX, 0, 16), (Action.ARRIVE, 1, 0)):
        assert counts.over == 0
        counts, bad = counts.after(action, count, size)
        assert not bad
    assert (counts.over, counts.pending, counts.expected, counts.tx) == (1, 2, 2, 0)


def test_a_drop_lowers_the_expected_count_by_its_count() -> None:
    """ "Decrements the expected arrival count of the mbarrier object by the value specified by" count."""
    counts, _ = started(5).after(Action.ARRIVE, 3, drop=True)
    assert (counts.pending, counts.expected) == (2, 2)
    counts, _ = counts.after(Action.ARRIVE, 2)
    assert (counts.over, counts.pending) == (1, 2)


@pytest.mark.parametrize(
    ("count", "action", "arrivals", "size"),
    [
        (1, Action.ARRIVE, 2, 0),
        (1, Action.EXPECT_TX, 0, MAX_TX + 1),
        (1, Action.COMPLETE_TX, 0, MAX_TX + 1),
    ],
)
def test_counts_out_of_range_are_bad(count: int, action: Action, arrivals: int, size: int) -> None:
    assert not started(count).after(action, max(0, arrivals - 1), max(0, size - 1))[1]
    assert started(count).after(action, arrivals, size)[1]


@pytest.mark.parametrize("layout", MbarrierLayout)
def test_the_pending_count_has_the_limit_of_the_layout_in_every_phase(layout: MbarrierLayout) -> None:
    counts = started(layout.max_arrivals, layout)
    for _ in range(2):
        assert counts.after(Action.PENDING, 1)[1]
        assert str(layout.max_arrivals) in counts.complaint(Action.PENDING, 1, 0)
        counts, bad = counts.after(Action.ARRIVE, 1)
        counts, bad_too = counts.after(Action.PENDING, 1)
        assert not (bad or bad_too)
        counts, _ = counts.after(Action.ARRIVE, layout.max_arrivals)


def test_lives() -> None:
    never = MbarrierCounts()
    assert never.after(Action.ARRIVE, 1) == (never, True)
    first, bad = never.after(Action.INIT, 1, life=7)
    assert (first.life, first.number, bad) == (7, 0, False)
    assert first.after(Action.INIT, 1)[1]
    ended, bad = first.after(Action.INVAL)
    assert not ended.live and not bad
    again, bad = ended.after(Action.INIT, 2, life=9)
    assert (again.life, again.number, again.over, again.expected, bad) == (9, 1, 0, 2, False)


def test_no_complete_is_bad_if_it_completes() -> None:
    assert not started(2).after(Action.ARRIVE, 1, no_complete=True)[1]
    assert started(1).after(Action.ARRIVE, 1, no_complete=True)[1]


DROPS = """PTX drops
.shared .align 8 .b64 bar = mbarrier(3);
thread P0 @ cta 0, gpu 0 {
  mbarrier.arrive_drop.shared::cta.b64 _, [bar], 2;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 0;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 1;
  selp.u32 %r0, 1, 0, %p;
}
forall (P0:r0 == 1)
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_drop_with_a_count_in_a_litmus_test(engine: str) -> None:
    answer = api.check(DROPS, engine=engine).answer
    assert (str(answer.observation.value), answer.flags) == ("always", ())


@pytest.mark.parametrize(("count", "hangs"), [(2, False), (1, True)])
def test_a_drop_with_a_count_in_a_kernel(count: int, hangs: bool) -> None:
    body = f"""@!%p0 bra OVER;
mbarrier.init.shared::cta.b64 [bar], 3;
mbarrier.arrive_drop.shared::cta.b64 _, [bar], {count};
mbarrier.arrive.shared::cta.b64 _, [bar], {3 - count};
{wait("bar", 0)}
mbarrier.arrive.shared::cta.b64 _, [bar];
{wait("bar", 1)}
OVER:
"""
    verdict = verdict_of(body)
    assert (verdict.word == "clean", "hang" in rules(verdict)) == (not hangs, hangs)


PENDING = """PTX pending
.shared .align 8 .b64 bar;
thread P0 @ cta 0, gpu 0 {{
  {init}
  cp.async.mbarrier.arrive.shared::cta.b64 [bar];
}}
exists (true)
"""
OTHER_LIFE = "mbarrier.init.layout::v1.shared::cta.b64 [bar], 1; mbarrier.inval.shared::cta.b64 [bar];"


def init(layout: MbarrierLayout, count: int) -> str:
    return f"mbarrier.init.{layout.value}.shared::cta.b64 [bar], {count};"


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("before", ["", OTHER_LIFE])
@pytest.mark.parametrize("layout", MbarrierLayout)
def test_the_pending_count_has_a_limit_in_a_litmus_test(
    layout: MbarrierLayout, before: str, over: int, engine: str
) -> None:
    """ "The pending count of the mbarrier object after the increment should not exceed the limit"."""
    text = PENDING.format(init=f"{before} {init(layout, layout.max_arrivals - 1 + over)}")
    assert ("undefined-mbarrier" in api.check(text, engine=engine).answer.flags) is bool(over)


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_declaration_gives_the_first_layout(over: int, engine: str) -> None:
    text = PENDING.format(init="").replace("bar;", f"bar = mbarrier({MbarrierLayout.V0.max_arrivals - 1 + over});", 1)
    assert ("undefined-mbarrier" in api.check(text, engine=engine).answer.flags) is bool(over)


@pytest.mark.parametrize("size", [3, 300, 1 << 19])
def test_how_many_are_pending_has_no_limit_but_that_of_the_object(size: int) -> None:
    """Only the counts that an object can have are told apart, however large they are."""
    text = f"""PTX large
.shared .align 8 .b64 bar = mbarrier({size});
thread P0 @ cta 0, gpu 0 {{
  mbarrier.arrive_drop.shared::cta.b64 _, [bar], {size - 2};
  mbarrier.arrive.noComplete.shared::cta.b64 %s, [bar], 1;
  mbarrier.pending_count.b64 %r0, %s;
}}
thread P1 @ cta 0, gpu 0 {{
  mbarrier.arrive.shared::cta.b64 _, [bar];
}}
exists (P0:r0 == 1)
"""
    states = api.outcomes(text, engine="z3")
    assert sorted(number for state in states.states for _, number in state.values) == [1, 2] and states.complete


@pytest.mark.parametrize(("layout", "word"), [(MbarrierLayout.V0, "always"), (MbarrierLayout.V1, "undecided")])
def test_how_many_are_pending_is_asked_of_the_first_layout(layout: MbarrierLayout, word: str) -> None:
    """ ".layout = { .layout::v0 }" (mbarrier.pending_count): what it returns for another one, is not said."""
    asked = "mbarrier.arrive.noComplete.shared::cta.b64 %s, [bar], 1; mbarrier.pending_count.b64 %r0, %s;"
    text = PENDING.format(init=f"{init(layout, 3)} {asked}").replace("(true)", "(P0:r0 == 3)")
    answer = api.check(text).answer
    assert (answer.observation.value, answer.flags) == (word, ())


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("layout", MbarrierLayout)
def test_the_pending_count_has_a_limit_in_a_kernel(layout: MbarrierLayout, over: int) -> None:
    body = f"""@!%p0 bra OVER;
{init(layout, layout.max_arrivals - 1 + over)}
cp.async.mbarrier.arrive.shared::cta.b64 [bar];
OVER:
"""
    assert ("undefined-mbarrier" in rules(verdict_of(body))) is bool(over)


@pytest.mark.parametrize("layout", MbarrierLayout)
@pytest.mark.parametrize(("guard", "word"), [("@%p0", "clean"), ("@%p6", "undecided")])
def test_the_pending_count_has_a_limit_in_other_schedules(layout: MbarrierLayout, guard: str, word: str) -> None:
    """Two warps add an arrival each, which is made at once in this run; together they get above the limit."""
    count = layout.max_arrivals - 1
    body = f"""@%p0 {init(layout, count)}
bar.sync 0;
and.b32 %r9, %r0, 31; setp.eq.s32 %p6, %r9, 0;
{guard} cp.async.mbarrier.arrive.shared::cta.b64 [bar];
bar.sync 0;
@!%p0 bra OVER;
mbarrier.arrive.shared::cta.b64 _, [bar], {count};
{wait("bar", 0)}
OVER:
"""
    assert verdict_of(body, threads=64).word == word


@pytest.mark.parametrize(("size", "word"), [(MAX_TX // 2, "clean"), (MAX_TX // 2 + 1, "undecided")])
def test_the_tx_count_has_a_limit_in_other_schedules(size: int, word: str) -> None:
    """Two warps expect and complete as many bytes each; together they may have expected too many."""
    body = f"""@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
and.b32 %r9, %r0, 31; setp.eq.s32 %p6, %r9, 0;
@%p6 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {size};
@%p6 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {size};
bar.sync 0;
@!%p0 bra OVER;
mbarrier.arrive.shared::cta.b64 _, [bar];
{wait("bar", 0)}
OVER:
"""
    assert verdict_of(body, threads=64).word == word


# ---- barriers ----------------------------------------------------------------------------------------------------

ALL = 0b1111


def arrivals(*threads: int, count: int | None = None, units: int = 1) -> BarrierCounts:
    counts = BarrierCounts()
    for thread in threads:
        counts = counts.after(1 << thread, units, count)
    return counts


def test_without_a_count_all_threads_arrive_or_exit() -> None:
    assert not BarrierCounts().complete(ALL, ALL)
    assert not arrivals(0, 1, 2).complete(ALL, 0)
    assert arrivals(0, 1, 2, 3).complete(ALL, 0)
    assert arrivals(0, 1, 2).complete(ALL, 1 << 3)


def test_a_count_is_met_by_arrivals_and_not_by_exits() -> None:
    assert not arrivals(0, count=2).complete(ALL, ALL)
    assert arrivals(0, 1, count=2).complete(ALL, 0)
    assert arrivals(0, 0, count=2).complete(ALL, 0)
    assert arrivals(0, 1, count=64, units=32).complete(ALL, 0)


def test_more_than_a_generation_takes() -> None:
    assert not arrivals(0, 1, count=2).overfull(ALL)
    assert arrivals(0, 1, 2, count=2).overfull(ALL)
    assert not arrivals(0, 1, 2, count=2).full(ALL)


def test_a_negative_count_takes_however_many_come() -> None:
    assert arrivals(0, count=-1).complete(ALL, 0)


def test_generations() -> None:
    assert arrivals(0, 1).next() == BarrierCounts(1)
