"""Witnesses of asynchronous tests: what replay accepts, what it computes, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from memmodel.enumeration.choice import EventId, ThreadEventId
from memmodel.enumeration.execution import Execution, pairs_of
from memmodel.enumeration.finals import outcome_question, outcome_terms
from memmodel.enumeration.meter import Meter
from memmodel.enumeration.traces import answers
from memmodel.isa.memory import Location
from test_enumeration_async import ANYTHING, PTX, async_test

from memmodel.answer import Budget
from memmodel.cat.syntax import Model
from memmodel.enumeration import Choice, replay
from memmodel.enumeration.answers import execution_of
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.search import Candidate, Search
from memmodel.errors import InternalError
from memmodel.litmus.syntax import LitmusTest


def name(execution: Execution, number: int) -> EventId:
    event = execution.events[number]
    if event.thread is None or event.order is None:
        assert event.location is not None
        return ("init", event.location)
    return (event.thread, event.order)


def in_thread(execution: Execution, number: int) -> ThreadEventId:
    event = execution.events[number]
    assert event.thread is not None and event.order is not None
    return (event.thread, event.order)


def choice_of(problem: Problem, candidate: Candidate) -> Choice:
    """A candidate as the other engine would hand it over, if every update of an object ends a phase.

    A test then has seen as many phases as there are updates that do not come after it.
    """
    execution = execution_of(problem, candidate)
    events, relations = execution.events, execution.relations
    threads = range(len(candidate.traces))
    orders: dict[Location, list[int]] = {}
    for number, event in enumerate(events):
        if event.operation is not None and event.operation.updates:
            orders.setdefault(event.operation.object, []).append(number)
    for updates in orders.values():
        updates.sort(key=lambda n: -relations["mbar"][n].bit_count())
    tests = [n for n, event in enumerate(events) if event.operation is not None and not event.operation.updates]

    def seen(test: int) -> int:
        operation = events[test].operation
        assert operation is not None
        return sum(not relations["mbarfr"][test] >> update & 1 for update in orders.get(operation.object, []))

    reads = [(event.thread, event.value) for event in events if "R" in event.tags]
    return Choice(
        tuple(tuple(value for thread, value in reads if thread == t and value is not None) for t in threads),
        tuple((name(execution, a), in_thread(execution, b)) for a, b in pairs_of(relations["rf"])),
        tuple((name(execution, a), name(execution, b)) for a, b in pairs_of(relations["co"])),
        results=tuple(tuple(x for e in events if e.thread == t for x in answers(e.operation)) for t in threads),
        mbar=tuple((where, tuple(in_thread(execution, n) for n in order)) for where, order in orders.items()),
        seen=tuple((in_thread(execution, n), seen(n)) for n in tests),
    )


def candidates(test: LitmusTest, model: Model) -> tuple[Problem, list[Candidate]]:
    problem = prepare(test, 2, Meter(Budget()))
    question = outcome_question(problem, outcome_terms(test))
    search = Search(problem, Plan(model, flags=False), question, None, Meter(Budget()))
    search.run()
    return problem, list(search.findings.found.values())


@pytest.mark.parametrize("model", [ANYTHING, PTX], ids=lambda model: model.name)
@pytest.mark.parametrize(
    "threads",
    [
        ("store s 1; arrive bar", "wait bar 0 1; load s a"),
        ("arrive bar; arrive bar", "test bar 0 a; test bar 1 b"),
        ("state bar x; passed bar x a", "state bar y; passed bar y b"),
        ("arrive bar; wait back 0 1; store s 2", "wait bar 0 1; load s a; arrive back"),
        ("store s 1; copy-out; commit; drain 0; arrive bar", "wait bar 0 1; ld.global.u32 %a, [g]"),
    ],
)
def test_every_execution_found_replays_as_the_same(threads: tuple[str, ...], model: Model) -> None:
    test = async_test(*threads, objects="bar=1 back=1")
    problem, found = candidates(test, model)
    assert found
    for candidate in found:
        execution = execution_of(problem, candidate)
        again = replay(test, model, choice_of(problem, candidate))
        assert again.failed == ()
        edges = again.witness.edges
        assert edges["po"] == tuple(pairs_of(execution.relations["po"]))
        assert edges["rf"] == tuple(pairs_of(execution.relations["rf"]))
        assert [event.tags for event in again.witness.events] == [event.tags for event in execution.events]


# ---- one copy, step by step -----------------------------------------------------------------------------------------


@pytest.fixture
def copied() -> tuple[LitmusTest, Choice]:
    """P0 copies and expects the bytes; P1 waits and loads what was copied."""
    test = async_test("copy-in bar; arrive-tx bar 16", "wait bar 0 1; load s a")
    memory = prepare(test, 2, Meter(Budget())).memory
    s, g, bar = (memory.find(one) for one in ("s", "g", "bar"))
    assert s is not None and g is not None and bar is not None
    choice = Choice(
        reads=((5,), (5,)),
        rf=((("init", g), (0, 1)), ((0, 2), (1, 1))),
        results=((), (1,)),
        mbar=((bar, ((0, 4), (0, 3))),),
        seen=(((1, 0), 1),),
    )
    return test, choice


def test_a_good_choice_becomes_a_witness(copied: tuple[LitmusTest, Choice]) -> None:
    test, choice = copied
    again = replay(test, PTX, choice)
    assert again.failed == ()
    assert again.witness.registers["P1", "a"] == 5
    tags = [event.tags for event in again.witness.events if event.thread is not None]
    assert "ISSUE" in tags[0] and "SIGNAL" in tags[3] and "MBDONE" in tags[5]
    assert all(("ASYNC" in one) is (number in (1, 2, 3)) for number, one in enumerate(tags))


def test_a_stale_read_after_the_wait_is_forbidden(copied: tuple[LitmusTest, Choice]) -> None:
    test, choice = copied
    s = prepare(test, 2, Meter(Budget())).memory.find("s")
    assert s is not None
    stale = replace(choice, reads=((5,), (0,)), rf=(choice.rf[0], (("init", s), (1, 1))))
    assert replay(test, PTX, stale).failed == ("Causality",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"results": ()}, "does not reach its end"),
        ({"results": ((),)}, "another number of threads"),
        ({"results": ((1,), (1,))}, "hears 0 results, not 1"),
        ({"mbar": ()}, "cannot have the order chosen"),
        ({"seen": ()}, "cannot see"),
        ({"seen": (((1, 0), 0),)}, "cannot see"),
        ({"seen": (((1, 0), 2),)}, "cannot see"),
        ({"seen": (((1, 0), 1), ((1, 1), 1))}, "no such event"),
        ({"seen": (((1, 9), 1),)}, "no event"),
    ],
)
def test_a_choice_that_is_no_execution_is_refused(
    copied: tuple[LitmusTest, Choice], change: dict[str, object], message: str
) -> None:
    test, choice = copied
    with pytest.raises(InternalError, match=message):
        replay(test, PTX, replace(choice, **change))  # type: ignore[arg-type]


def test_an_order_must_keep_what_the_thread_did_before_a_signal() -> None:
    test = async_test("arrive-tx bar 16; copy-in bar")
    memory = prepare(test, 2, Meter(Budget())).memory
    g, bar = memory.find("g"), memory.find("bar")
    assert g is not None and bar is not None
    choice = Choice(reads=((5,),), rf=((("init", g), (0, 2)),), mbar=((bar, ((0, 0), (0, 4))),))
    assert replay(test, PTX, choice).failed == ()
    with pytest.raises(InternalError, match="cannot have the order chosen"):
        replay(test, PTX, replace(choice, mbar=((bar, ((0, 4), (0, 0))),)))
