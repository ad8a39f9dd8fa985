"""Executions of asynchronous tests: what the referee accepts, what it computes, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from enumeration.test_async import ANYTHING, PTX, async_test
from helpers.executions import candidates, choice_of, execution_of

from memmodel.base.rows import pairs_of
from memmodel.cat.syntax import Model
from memmodel.concrete.records import RecordName
from memmodel.errors import InternalError
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice
from memmodel.referee.replay import replay


@pytest.mark.parametrize("model", [ANYTHING, PTX], ids=lambda model: model.name)
@pytest.mark.parametrize(
    "threads",
    [
        ("store s 1; arrive bar", "wait bar 0 1; load s a"),
        ("arrive bar; arrive bar", "test bar 0 a; test bar 1 b"),
        ("state bar x; passed bar x a", "state bar y; passed bar y b"),
        ("state bar x; pending n x", "test bar 0 a"),
        ("arrive bar; wait back 0 1; store s 2", "wait bar 0 1; load s a; arrive back"),
        ("store s 1; copy-out; commit; drain 0; arrive bar", "wait bar 0 1; ld.global.u32 %a, [g]"),
        ("arrive-tx bar 16; copy-in bar", "wait bar 0 1; load s a"),
        ("bar.sync 1, 64; load s a", "store s 1; bar.sync 1, 64", "bar.arrive 1, 64"),
        ("setp.eq.u32 %p, %p, 1; bar.red.popc.u32 %a, 1, 64, %p", "bar.red.popc.u32 %b, 1, 64, !%p"),
        ("wait bar 0 1", "store s 1"),
        ("inval bar; init bar 2; arrive bar; test bar 0 a", "test bar 0 b"),
    ],
)
def test_every_execution_found_replays_as_the_same(threads: tuple[str, ...], model: Model) -> None:
    test = async_test(*threads, objects="bar=1 back=1", condition="g == 0")
    found = candidates(test, model)
    assert found
    for candidate in found:
        execution = execution_of(candidate)
        again = replay(test, model, choice_of(candidate))
        assert again.failed == ()
        assert again.waits is not all(trace.ending.complete for trace in candidate.traces)
        for relation in ("po", "rf", "co"):
            assert again.witness.edges[relation] == tuple(pairs_of(execution.relation(relation)))
        decided = {name: execution.set(name) for name in ("MBDONE", "MBBAD", "MBSTALE", "MBLATER")}
        for event in again.witness.events:
            assert {name for name in decided if name in event.tags} == {
                name for name, mask in decided.items() if mask >> event.uid & 1
            }


# ---- one copy, step by step ------------------------------------------------------------------------------------------

READ, WRITE, SIGNAL = (RecordName(0, 0, 0, part) for part in range(3))
ARRIVE, WAIT = RecordName(0, 1, 0), RecordName(1, 0, 0)
LOAD = RecordName(1, 2, 0)


@pytest.fixture
def copied() -> tuple[LoweredTest, Choice]:
    """P0 copies and expects the bytes; P1 waits and loads what was copied."""
    test = async_test("copy-in bar; arrive-tx bar 16", "wait bar 0 1; load s a")
    s, g, bar = (cells(test)[name] for name in ("s", "g", "bar"))
    first = Cell(s.instance, 0, 4)
    choice = Choice(
        values=((LOAD, first, 5),),
        answers={WAIT: (1,)},
        rf=((None, READ, g), (WRITE, LOAD, first)),
        co=(),
        sync_fence=(),
        generations={},
        mbar=((bar, (ARRIVE, SIGNAL)),),
        seen={WAIT: (None, 1)},
        finals=(),
        waiting=(None, None),
    )
    return test, choice


def cells(test: LoweredTest) -> dict[str, Cell]:
    return {one.name: Cell(one, 0, one.size) for one in test.space.instances}


def test_a_good_choice_becomes_a_witness(copied: tuple[LoweredTest, Choice]) -> None:
    test, choice = copied
    again = replay(test, PTX, choice)
    assert again.failed == ()
    assert again.witness.registers["P1", "a"] == 5
    tags = [event.tags for event in again.witness.events if event.thread is not None]
    signal = next(number for number, one in enumerate(tags) if "SIGNAL" in one)
    assert "ISSUE" in tags[0] and any("MBDONE" in one for one in tags)
    assert all(("ASYNC" in one) is (0 < number <= signal) for number, one in enumerate(tags))


def test_the_copy_is_cut_where_its_destination_is_read(copied: tuple[LoweredTest, Choice]) -> None:
    test, choice = copied
    writes = [event.location for event in replay(test, PTX, choice).witness.events if {"BULK", "W"} <= event.tags]
    assert writes == ["s", "s[1..3]"]


def test_a_stale_read_after_the_wait_is_forbidden(copied: tuple[LoweredTest, Choice]) -> None:
    test, choice = copied
    (_, _, whole), (_, _, first) = choice.rf
    stale = replace(choice, values=((LOAD, first, 0),), rf=((None, READ, whole), (None, LOAD, first)))
    assert replay(test, PTX, stale).failed == ("Causality",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": {}}, "P1 does not end"),
        ({"answers": {WAIT: (0,)}}, "P1 does not end"),
        ({"mbar": ()}, "cannot have the order chosen"),
        ({"seen": {}}, "cannot see"),
        ({"seen": {WAIT: (None, 0)}}, "cannot see"),
        ({"seen": {WAIT: (None, 2)}}, "cannot see"),
        ({"seen": {WAIT: (SIGNAL, 1)}}, "cannot see"),
        ({"seen": {WAIT: (None, 1), ARRIVE: (None, 1)}}, "no such event"),
        ({"seen": {RecordName(1, 9, 0): (None, 1)}}, "no event"),
    ],
)
def test_a_choice_that_is_no_execution_is_refused(
    copied: tuple[LoweredTest, Choice], change: dict[str, object], message: str
) -> None:
    test, choice = copied
    with pytest.raises(InternalError, match=message):
        replay(test, PTX, replace(choice, **change))  # type: ignore[arg-type]


def test_an_order_must_keep_what_the_thread_did_before_a_signal() -> None:
    test = async_test("arrive-tx bar 16; copy-in bar")
    arrive, signal = RecordName(0, 0, 0), RecordName(0, 1, 0, 2)
    bar, g = cells(test)["bar"], cells(test)["g"]
    choice = Choice(
        (), {}, ((None, RecordName(0, 1, 0, 0), g),), (), (), {}, ((bar, (arrive, signal)),), {}, (), (None,)
    )
    assert replay(test, PTX, choice).failed == ()
    with pytest.raises(InternalError, match="cannot have the order chosen"):
        replay(test, PTX, replace(choice, mbar=((bar, (signal, arrive)),)))


def test_a_thread_that_waits_for_ever_reads_the_last_write() -> None:
    spin = "L: ld.relaxed.cta.shared.u32 %r, [s]; setp.eq.u32 %q, %r, 0; @%q bra L"
    test = async_test(spin, "store s 1")
    read = RecordName(0, 0, 0)
    first = Cell(cells(test)["s"].instance, 0, 4)
    stuck = Choice(((read, first, 0),), {}, ((None, read, first),), (), (), {}, (), {}, (), (RecordName(0, 2, 0), None))
    with pytest.raises(InternalError, match="reads what is overwritten"):
        replay(test, ANYTHING, stuck)
    alone = async_test(spin)
    again = replay(alone, ANYTHING, replace(stuck, waiting=(RecordName(0, 2, 0),)))
    assert again.waits and again.witness.waits[0].endswith("s stays 0")
