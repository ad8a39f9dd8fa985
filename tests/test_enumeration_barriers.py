"""Which barrier halves meet: generations, counts, over-subscription, waits that never end."""

from __future__ import annotations

import pytest
from memmodel.enumeration.barriers import BarrierEvent, Company, combine, meetings, reductions_agree
from memmodel.enumeration.traces import Half, Reduction, Resource

ONE: Resource = ("cta", (0,), (1,))
TWO: Resource = ("cta", (0,), (2,))


def halves(*threads: str, count: int = 0) -> list[BarrierEvent]:
    """Events 0, 1, … of threads written as text: `a` arrives at ONE, `w` waits there, `A` and `W` at TWO."""
    found = []
    for thread, text in enumerate(threads):
        for letter in text:
            half = Half("arrive" if letter in "aA" else "wait", ONE if letter in "aw" else TWO, count)
            found.append(BarrierEvent(len(found), thread, half))
    return found


def met(events: list[BarrierEvent], size: int) -> list[set[tuple[int, int]]]:
    return [set(pairs) for _, pairs in meetings(events, {ONE: Company(size), TWO: Company(size)})]


def test_all_threads_of_the_domain_meet_when_no_count_is_given() -> None:
    assert met(halves("aw", "aw"), 2) == [{(0, 1), (0, 3), (2, 1), (2, 3)}]


def test_a_wait_for_too_few_arrivals_never_ends() -> None:
    assert met(halves("aw", "aw"), 3) == []
    assert met(halves("aw", "aw", count=3), 2) == []
    assert met(halves("w"), 1) == []


def test_an_arrival_alone_keeps_nobody() -> None:
    assert met(halves("a", ""), 2) == [set()]


def test_the_kth_arrival_and_the_kth_wait_are_one_generation() -> None:
    assert met(halves("awaw", "awaw"), 2) == [{(0, 1), (0, 5), (4, 1), (4, 5), (2, 3), (2, 7), (6, 3), (6, 7)}]


def test_any_two_of_three_meet_when_the_barrier_asks_for_two() -> None:
    ways = list(meetings(halves("aw", "aw", "aw", count=2), {ONE: Company(3)}))
    assert [set(*groups.values()) for groups, _ in ways] == [{0, 1}, {0, 2}, {1, 2}]
    assert set(ways[0][1]) == {(0, 1), (0, 3), (2, 1), (2, 3)}


def test_without_a_number_those_that_arrive_are_enough() -> None:
    assert met(halves("aw", "aw", count=-1), 5) == [{(0, 1), (0, 3), (2, 1), (2, 3)}]


def test_the_largest_count_of_a_generation_decides() -> None:
    events = halves("aw", "aw", "aw", count=2)
    events[0] = BarrierEvent(0, 0, Half("arrive", ONE, 3))
    assert len(met(events, 3)) == 1


def test_barriers_taken_in_opposite_orders_never_end() -> None:
    assert met(halves("awAW", "AWaw"), 2) == []
    assert len(met(halves("aAwW", "AaWw"), 2)) == 1


@pytest.mark.parametrize(
    ("op", "values", "result"),
    [("popc", (0, 3, 1), 2), ("and", (1, 0), 0), ("and", (1, 7), 1), ("or", (0, 0), 0), ("or", (0, 2), 1)],
)
def test_reductions_combine_predicates(op: str, values: tuple[int, ...], result: int) -> None:
    assert combine(op, values) == result
    taken = [Reduction(ONE, 0, op, value, result) for value in values]
    assert reductions_agree(taken)
    assert not reductions_agree([*taken, Reduction(ONE, 0, op, values[0], result + 5)])


def test_an_exited_thread_is_not_waited_for_and_publishes_nothing() -> None:
    events = halves("aw", "aw")
    assert not list(meetings(events, {ONE: Company(3)}))
    [(_, pairs)] = list(meetings(events, {ONE: Company(3, frozenset({2}))}))
    assert {events[wait].thread for _, wait in pairs} == {0, 1}
