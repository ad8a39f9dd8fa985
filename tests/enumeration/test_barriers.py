"""Which barrier halves meet: generations by order of arrival, reuse at once, waits that never end, exits."""

from __future__ import annotations

import pytest

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.base.points import BarrierId
from memmodel.concrete.barriers import (
    BarrierUses,
    HalfEvent,
    ThreadsOf,
    WaitsFor,
    combined,
    meetings,
    mixed,
    reductions_agree,
)
from memmodel.concrete.records import BarrierRecord, Contribution, RecordName

ONE, TWO = (BarrierId(Domain.CTA, (0,), (number,)) for number in (1, 2))

Met = tuple[dict[int, int], set[tuple[int, int]]]
"""Generations by event, and syncbar."""


def halves(*threads: str, count: int | None = None, counts: dict[int, int | None] | None = None) -> list[HalfEvent]:
    """Events 0, 1, … of threads written as text: `a` arrives at ONE, `w` waits there, `A` and `W` at TWO.

    A `w` right after an `a` belongs to its instruction. `counts`: of single events.
    """
    found: list[HalfEvent] = []
    for thread, text in enumerate(threads):
        for at, letter in enumerate(text):
            half = Half.ARRIVE if letter in "aA" else Half.WAIT
            event, order = len(found), at
            together = at > 0 and letter in "wW" and text[at - 1].lower() == "a"
            record = BarrierRecord(
                name=RecordName(thread, at, 0),
                label=Barrier(half, Domain.CTA),
                order=order,
                instruction=at - together,
                half=half,
                barrier=ONE if letter in "aw" else TWO,
                count=(counts or {}).get(event, count),
            )
            found.append(HalfEvent(event, thread, at - together, record))
    return found


def barriers(events: list[HalfEvent], size: int, exited: frozenset[int] = frozenset()) -> dict[BarrierId, BarrierUses]:
    threads = ThreadsOf.of(range(size), exited)
    return {
        barrier: BarrierUses(barrier, [one for one in events if one.record.barrier == barrier], threads)
        for barrier in (ONE, TWO)
    }


def met(
    events: list[HalfEvent], size: int, exited: frozenset[int] = frozenset(), stuck: tuple[WaitsFor, ...] = ()
) -> list[Met]:
    waiting = [(ONE, one) for one in stuck]
    return [(one.generations, set(one.syncbar)) for one in meetings(barriers(events, size, exited), events, waiting)]


def test_all_threads_of_the_domain_meet_when_no_count_is_given() -> None:
    [(_, pairs)] = met(halves("aw", "aw"), 2)
    assert pairs == {(0, 1), (0, 3), (2, 1), (2, 3)}


def test_a_wait_for_too_few_arrivals_never_ends() -> None:
    assert met(halves("aw", "aw"), 3) == []
    assert met(halves("aw", "aw", count=3), 2) == []


def test_an_arrival_alone_keeps_nobody() -> None:
    [(_, pairs)] = met(halves("a", ""), 2)
    assert pairs == set()


def test_without_counts_the_kth_arrival_and_the_kth_wait_are_one_generation() -> None:
    [(_, pairs)] = met(halves("awaw", "awaw"), 2)
    assert pairs == {(0, 1), (0, 5), (4, 1), (4, 5), (2, 3), (2, 7), (6, 3), (6, 7)}


def test_of_three_arrivals_any_two_are_the_first_generation() -> None:
    """The one that is left over waits for ever, so all three cannot pass."""
    assert met(halves("aw", "aw", "aw", count=2), 3) == []
    left = [WaitsFor(2, 4, None)]
    [(generations, pairs)] = met(halves("aw", "aw", "a", count=2), 3, stuck=tuple(left))
    assert generations == {0: 0, 2: 0, 4: 1}
    assert pairs == {(0, 1), (0, 3), (2, 1), (2, 3)}


def test_four_arrivals_of_three_threads_make_two_generations() -> None:
    """B10: the thread that comes twice meets one of the others each time, in either order."""
    ways = met(halves("awaw", "aw", "aw", count=2), 3)
    first = {frozenset(event for event, number in generations.items() if number == 0) for generations, _ in ways}
    assert first == {frozenset({0, 4}), frozenset({0, 6})}


def test_an_arrive_and_a_later_sync_of_one_thread_both_count() -> None:
    [(generations, pairs)] = met(halves("aaw", "", count=2), 2)
    assert generations == {0: 0, 1: 0}
    assert pairs == {(0, 2), (1, 2)}


def test_without_a_number_those_that_arrive_are_enough() -> None:
    [(_, pairs)] = met(halves("aw", "aw", count=-1), 5)
    assert pairs == {(0, 1), (0, 3), (2, 1), (2, 3)}


def test_the_largest_count_of_a_generation_decides() -> None:
    ways = met(halves("aw", "aw", "aw", count=2, counts={0: 3}), 3)
    assert [set(generations.values()) for generations, _ in ways] == [{0}]


def test_barriers_taken_in_opposite_orders_never_end() -> None:
    assert met(halves("awAW", "AWaw"), 2) == []
    assert len(met(halves("awAW", "awAW"), 2)) == 1


def test_an_exited_thread_is_not_waited_for_and_publishes_nothing() -> None:
    events = halves("aw", "aw")
    assert met(events, 3) == []
    [(_, pairs)] = met(events, 3, exited=frozenset({2}))
    assert {events[wait].thread for _, wait in pairs} == {0, 1}


def test_no_wait_for_ever_at_a_generation_that_is_complete() -> None:
    events = halves("a", "aw")
    assert met(events, 2, stuck=(WaitsFor(0, 0, None),)) == []
    assert len(met(halves("a"), 2, stuck=(WaitsFor(0, 0, None),))) == 1


def test_what_is_missing_is_counted() -> None:
    one = barriers(halves("a", "a", count=3), 3)[ONE]
    assert one.text({0: 0, 1: 0}, WaitsFor(0, 0, None)) == "cta barrier 1: 2 of 3 arrivals"


@pytest.mark.parametrize(("counts", "pairs"), [({}, []), ({0: 2}, [(0, 2), (2, 0)])])
def test_different_counts_are_reported(counts: dict[int, int | None], pairs: list[tuple[int, int]]) -> None:
    assert mixed(list(barriers(halves("aw", "aw", counts=counts), 2).values())) == pairs


@pytest.mark.parametrize(
    ("op", "values", "result"),
    [("popc", (0, 3, 1), 2), ("and", (1, 0), 0), ("and", (1, 7), 1), ("or", (0, 0), 0), ("or", (0, 2), 1)],
)
def test_reductions_combine_predicates(op: str, values: tuple[int, ...], result: int) -> None:
    assert combined(op, values) == result
    events = halves(*["aw"] * len(values))
    homes = barriers(events, len(values))
    [meeting] = meetings(homes, events, [])
    taken = [(2 * number, Contribution(0, op, value, result)) for number, value in enumerate(values)]
    assert reductions_agree(taken, homes, meeting)
    wrong = (taken[0][0], Contribution(0, op, values[0], result + 5))
    assert not reductions_agree([wrong, *taken[1:]], homes, meeting)
