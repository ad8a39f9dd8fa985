"""Asynchronous executions by enumeration, against small cases worked out by hand.

Most use a model that allows everything, so that only the counting of mbarrier objects and the orders of their updates
decide what can be seen.
"""

from __future__ import annotations

import pytest
from helpers.executions import problem_of

from memmodel import api
from memmodel.answer import Answer, Budget, Observation
from memmodel.cat import load_model
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Model
from memmodel.concrete.records import AccessRecord, ObjectRecord, WaitRecord
from memmodel.enumeration.answers import enumerate_answer, enumerate_outcomes
from memmodel.enumeration.estimate import estimate
from memmodel.program.lowered import LoweredTest
from memmodel.source import Source

ANYTHING = parse_model(Source("anything.cat", "acyclic 0 as nothing\nflag ~empty MBBAD as bad\n"))
PTX = load_model("ptx-9.4")

SHORT = {
    "arrive": "mbarrier.arrive.shared::cta.b64 _, [{0}];",
    "arrive-n": "mbarrier.arrive.shared::cta.b64 _, [{0}], {1};",
    "state": "mbarrier.arrive.shared::cta.b64 %{1}, [{0}];",
    "drop": "mbarrier.arrive_drop.shared::cta.b64 _, [{0}];",
    "arrive-tx": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], {1};",
    "expect": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{0}], {1};",
    "complete": "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [{0}], {1};",
    "init": "mbarrier.init.shared::cta.b64 [{0}], {1};",
    "inval": "mbarrier.inval.shared::cta.b64 [{0}];",
    "test": "mbarrier.test_wait.parity.shared::cta.b64 %{2}, [{0}], {1};",
    "passed": "mbarrier.test_wait.shared::cta.b64 %{2}, [{0}], %{1};",
    "wait": "L{2}: mbarrier.try_wait.parity.shared::cta.b64 %p{2}, [{0}], {1}; @!%p{2} bra L{2};",
    "pending": "mbarrier.pending_count.b64 %{0}, %{1};",
    "no-complete": "mbarrier.arrive.noComplete.shared::cta.b64 %{1}, [{0}], 1;",
    "load": "ld.shared.u32 %{1}, [{0}];",
    "store": "st.shared.u32 [{0}], {1};",
    "copy-in": "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [{0}];",
    "copy-out": "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;",
    "commit": "cp.async.bulk.commit_group;",
    "drain": "cp.async.bulk.wait_group {0};",
    "drain-read": "cp.async.bulk.wait_group.read {0};",
}


def spell(short: str) -> str:
    """`test bar 0 a` and the like in full; what is not a short form stands as it is."""
    lines = []
    for part in (one.strip() for one in short.split(";")):
        word, *args = part.split() or [""]
        lines.append(SHORT[word].format(*args) if word in SHORT else f"{part};" if part else "")
    return "\n".join(lines)


def async_test(*threads: str, objects: str = "bar=1", condition: str = "true") -> LoweredTest:
    """Threads of one CTA that share mbarrier objects (`name=count`, or `name` alone without initialisation)."""
    text = ["PTX test", ".shared .align 16 .u32 s[4];", ".global .align 16 .u32 g[4] = {5, 5, 5, 5};"]
    for one in objects.split():
        name, _, count = one.partition("=")
        text.append(f".shared .align 8 .b64 {name}{f' = mbarrier({count})' if count else ''};")
    for number, thread in enumerate(threads):
        text += [f"thread P{number} @ cta 0, cluster 0 {{", spell(thread), "}"]
    text.append(f"exists ({condition})")
    return api.lowered(Source("test.litmus", "\n".join(text)))


def states(test: LoweredTest, model: Model = ANYTHING) -> list[tuple[int, ...]]:
    """All final states: every register of every thread, in order of name (and no locations); of a state its phase."""
    found = enumerate_outcomes(test, model, budget=Budget(), bound=2)
    assert found.complete
    return sorted({tuple(_plain(name, value) for name, value in state.values if ":" in name) for state in found.states})


def _plain(name: str, value: int) -> int:
    return value & 0xFFFF if name.endswith(":s") else value


def ask(test: LoweredTest, model: Model = PTX, findings: bool = True, bound: int = 2) -> Answer:
    return enumerate_answer(test, model, budget=Budget(), bound=bound, findings=findings)


def waits(answer: Answer) -> tuple[str, ...]:
    """The sentences of the hang that was found, if one was."""
    return () if answer.hang is None else answer.hang.witness.waits


# ---- counting, in one thread ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "thread", "seen"),
    [
        # Parity: a fresh object has passed no phase of parity 0, and "the one before it" of parity 1.
        (1, "test bar 0 a; test bar 1 b", (0, 1)),
        (1, "arrive bar; test bar 0 a; test bar 1 b", (1, 0)),
        (1, "arrive bar; arrive bar; test bar 0 a; test bar 1 b", (0, 1)),
        (2, "arrive bar; test bar 0 a; arrive bar; test bar 0 b", (0, 1)),
        (3, "arrive-n bar 2; test bar 0 a; arrive bar; test bar 0 b", (0, 1)),
        # State: true once the phase of the arrive is over, however long ago.
        (1, "state bar s; passed bar s a", (1, 0)),
        (2, "state bar s; passed bar s a; arrive bar; passed bar s b", (0, 1, 0)),
        (1, "arrive bar; state bar s; arrive bar; arrive bar; passed bar s a", (1, 1)),
        (1, "arrive bar; arrive bar; state bar s; passed bar s a", (1, 2)),
        # Drop: one arrival fewer, in this phase and later ones.
        (2, "drop bar; test bar 0 a; arrive bar; test bar 0 b; arrive bar; test bar 1 c", (0, 1, 1)),
        # Transactions: before, after, more than enough expectation, negative in between.
        (1, "expect bar 16; arrive bar; test bar 0 a; complete bar 16; test bar 0 b", (0, 1)),
        (1, "expect bar 16; complete bar 16; test bar 0 a; arrive bar; test bar 0 b", (0, 1)),
        (1, "complete bar 16; arrive bar; test bar 0 a; expect bar 16; test bar 0 b", (0, 1)),
        (1, "arrive-tx bar 32; complete bar 16; test bar 0 a; complete bar 16; test bar 0 b", (0, 1)),
        (
            1,
            "arrive bar; test bar 0 a; expect bar 16; arrive bar; test bar 1 b; complete bar 16; test bar 1 c",
            (1, 0, 1),
        ),
        # pending_count: what was pending before the arrive.
        (3, "arrive bar; no-complete bar s; pending n s", (2, 0)),
    ],
)
def test_a_thread_counts(count: int, thread: str, seen: tuple[int, ...]) -> None:
    assert states(async_test(thread, objects=f"bar={count}")) == [seen]
    assert ask(async_test(thread, objects=f"bar={count}"), ANYTHING).flags == ()


@pytest.mark.parametrize(
    ("objects", "thread", "seen"),
    [
        ("bar=1", "arrive-n bar 2; test bar 0 a", (1,)),
        ("bar=1", "inval bar; arrive bar; test bar 0 a", (0,)),
        ("bar=1", "arrive bar; inval bar; test bar 0 a", (1,)),
        ("bar", "arrive bar; test bar 0 a; test bar 1 b", (0, 1)),
        ("bar", "arrive bar; init bar 1; test bar 0 a", (0,)),
        ("bar", "test bar 1 a; init bar 1", (1,)),
    ],
)
def test_what_breaks_an_object_is_flagged_and_goes_on(objects: str, thread: str, seen: tuple[int, ...]) -> None:
    test = async_test(thread, objects=objects)
    assert states(test) == [seen]
    assert ask(test, ANYTHING).flags == ("bad",)


def test_an_object_counts_from_its_init() -> None:
    test = async_test("init bar 2; arrive bar; test bar 0 a; arrive bar; test bar 0 b", objects="bar")
    assert states(test) == [(0, 1)]
    assert ask(test, ANYTHING).flags == ()


@pytest.mark.parametrize("threads", [("init bar 1", ""), ("init bar 1; init bar 2",), ("init bar 1", "init bar 1")])
def test_a_second_initialisation_of_a_valid_object_is_bad_and_starts_it_anew(threads: tuple[str, ...]) -> None:
    objects = "bar=1" if "" in threads else "bar"
    assert "bad" in ask(async_test(*threads, objects=objects), ANYTHING).flags


def test_an_object_has_another_life_after_inval() -> None:
    test = async_test("init bar 1; arrive bar; inval bar; init bar 2; arrive bar; test bar 0 a", objects="bar")
    assert states(test) == [(0,)]
    assert ask(test, ANYTHING).flags == ()


def test_objects_do_not_know_each_other() -> None:
    assert states(async_test("arrive a; test a 0 x; test b 0 y; arrive b; test b 0 z", objects="a=1 b=1")) == [
        (1, 0, 1)
    ]


# ---- orders, between threads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "threads", "seen"),
    [
        # Two arrives of one phase, or of two, in either order.
        (2, ("state bar s", "state bar s"), [(0, 0)]),
        (1, ("state bar s", "state bar s"), [(0, 1), (1, 0)]),
        # A test may come before or after what another thread does.
        (1, ("arrive bar", "test bar 0 a"), [(0,), (1,)]),
        # Tests of one thread never see the object go back.
        (1, ("arrive bar", "test bar 0 a; test bar 0 b"), [(0, 0), (0, 1), (1, 1)]),
        # Completion first leaves the count negative, so the arrive alone does not end the phase.
        (1, ("arrive bar; test bar 0 a; expect bar 16; test bar 0 b", "complete bar 16"), [(0, 1), (1, 1)]),
        (1, ("arrive-tx bar 16; test bar 0 a", "complete bar 16; test bar 0 a"), [(0, 1), (1, 0), (1, 1)]),
        # A wait that loops ends only when its phase does.
        (1, ("arrive bar", "wait bar 0 1"), [(1,)]),
        (1, ("arrive bar; wait back 0 1", "wait bar 0 1; arrive back"), [(1, 1)]),
    ],
)
def test_threads_share_an_object(count: int, threads: tuple[str, ...], seen: list[tuple[int, ...]]) -> None:
    assert states(async_test(*threads, objects=f"bar={count} back=1")) == seen


def test_a_phase_of_the_wrong_parity_is_awaited_for_ever() -> None:
    answer = ask(async_test("arrive bar", "wait bar 1 1; wait bar 1 2"))
    assert answer.observation is Observation.ALWAYS  # before the arrive, both waits pass
    (hang,) = waits(answer)
    assert hang.endswith("bar phase 1: 0 of 1 arrivals")
    assert "hang" in answer.flags


# ---- copies and groups ----------------------------------------------------------------------------------------------


def test_the_signal_of_a_copy_completes_its_parts() -> None:
    (trace,) = problem_of(async_test("copy-in bar"), waits=False).complete[0]
    write, signal = trace.records[2:]
    assert [record.issue for record in trace.records] == [None, 0, 0, 0]
    assert [record.order is None for record in trace.records] == [False, True, True, True]
    assert isinstance(signal, ObjectRecord) and signal.completes == {1, 2}
    assert isinstance(write, AccessRecord) and write.copies == 1
    assert trace.values == (None, trace.values[1], trace.values[1], None)
    assert trace.values[1] == 5 * (1 + (1 << 32) + (1 << 64) + (1 << 96))


def test_a_copy_ends_the_phase_that_expects_it() -> None:
    copied = ("copy-in bar; arrive-tx bar 16; wait bar 0 1; load s x", "")
    assert ask(async_test(*copied, condition="P0:%x == 5")).observation is Observation.ALWAYS
    early = ("copy-in bar; arrive bar; wait bar 0 1; load s x", "expect bar 16")
    assert ask(async_test(*early, condition="P0:%x == 0")).observation is Observation.SOMETIMES


@pytest.mark.parametrize(
    ("thread", "completed"),
    [
        # Events: 0 issue, 1 read, 2 write, then the same from 3 on.
        ("copy-out; commit; drain 0", 0b110),
        ("copy-out; commit; drain-read 0", 0b010),
        ("copy-out; drain 0", 0),
        ("copy-out; commit; copy-out; commit; drain 1", 0b110),
        ("copy-out; commit; copy-out; commit; drain-read 0", 0b010010),
        ("copy-out; copy-out; commit; commit; drain 1", 0b110110),
        ("copy-out; commit; drain 1", 0),
    ],
)
def test_groups_complete_what_was_committed(thread: str, completed: int) -> None:
    trace = problem_of(async_test(thread), waits=False).complete[0][0]
    last = trace.records[-1]
    assert isinstance(last, WaitRecord)
    assert sum(1 << record for record in last.completes) == completed


# ---- hangs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "objects", "missing"),
    [
        (("wait bar 0 1", "arrive bar"), "bar=2", "P0 … bar phase 0: 1 of 2 arrivals"),
        (("wait bar 0 1", "drop bar; arrive bar; wait bar 1 2"), "bar=2", "P1 … bar phase 1: 0 of 1 arrivals"),
        (
            ("wait bar 0 1", "copy-in bar; arrive-tx bar 32"),
            "bar=1",
            "P0 … bar phase 0: 1 of 1 arrivals, 16 of 32 bytes",
        ),
        (("wait bar 0 1", "complete bar 16; arrive bar"), "bar=1", "P0 … bar phase 0: 1 of 1 arrivals, 16 of 0 bytes"),
        (("bar.cta.sync 0", ""), "bar=1", "P0 … cta barrier 0: 1 of 2 arrivals"),
        (("L: ld.relaxed.cta.shared.u32 %r, [s]; setp.eq.u32 %q, %r, 0; @%q bra L", ""), "bar=1", "P0 … s stays 0"),
        (("L: ld.relaxed.cta.shared.u32 %r, [s]; setp.eq.u32 %q, %r, 0; @%q bra L", "store s 1"), "bar=1", None),
        (("wait bar 0 1", "arrive bar"), "bar=1", None),
        (("bar.cta.sync 0", "bar.cta.sync 0"), "bar=1", None),
    ],
)
def test_a_hang_says_what_is_missing(threads: tuple[str, ...], objects: str, missing: str | None) -> None:
    answer = ask(async_test(*threads, objects=objects))
    if missing is None:
        assert answer.hang is None and "hang" not in answer.flags
        return
    name, _, what = missing.partition(" … ")
    assert "hang" in answer.flags
    assert any(one.startswith(f"{name} waits for ever at test.litmus:") for one in waits(answer))
    assert any(one.endswith(what) for one in waits(answer))


def test_hangs_are_looked_for_with_findings_only() -> None:
    test = async_test("wait bar 0 1")
    assert ask(test, findings=False).hang is None
    assert ask(test, findings=True).hang is not None


def test_races_and_undefined_behaviour_before_a_hang_are_found() -> None:
    answer = ask(async_test("store s 1; wait bar 0 1", "store s 2; arrive-n bar 2"), PTX)
    assert {"data-race", "undefined-mbarrier"} <= set(answer.flags)
    stuck = ask(async_test("store s 1; wait bar 0 1", "store s 2"), PTX)
    assert stuck.observation is Observation.VACUOUS
    assert stuck.flags == ("data-race", "hang")


def test_an_execution_with_undefined_behaviour_is_no_hang() -> None:
    test = async_test("wait bar 0 1", objects="bar")
    assert ask(test, PTX).flags == ("undefined-mbarrier",)
    (sentence,) = waits(ask(test, ANYTHING))
    assert sentence.endswith("bar is never initialised")


def test_a_hang_must_satisfy_the_model() -> None:
    spin = "L: ld.relaxed.cta.shared.u32 %r, [s]; setp.eq.u32 %q, %r, 1; @%q bra L"
    test = async_test(spin, "store s 1; store s 2")  # what stays 1 would be the older store, seen as the last one
    assert ask(test, PTX).hang is None
    assert ask(test, ANYTHING).hang is not None


# ---- size -----------------------------------------------------------------------------------------------------------


def test_the_estimate_grows_with_orders_of_updates() -> None:
    few = estimate(async_test("arrive bar", "wait bar 0 1"), 2)
    many = estimate(async_test(*["arrive bar; arrive bar; arrive bar; wait bar 0 1"] * 4, objects="bar=4"), 2)
    assert few < 100
    assert many > 1e5


def test_many_orders_stop_at_the_budget() -> None:
    test = async_test(*["arrive bar; arrive bar; arrive bar; test bar 0 a"] * 5, objects="bar=4")
    answer = enumerate_answer(test, PTX, budget=Budget(effort=500_000, seconds=5), bound=1, findings=True)
    assert "budget" in answer.reason


SPIN = """PTX spin
.global .align 16 .u32 g[4] = {{1}};
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {{
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    {inside}
    @!%p bra W;
    {behind}
}}
exists race
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_failed_round_may_race_with_a_copy_of_its_own_thread(engine: str) -> None:
    load = "ld.shared.u32 %r, [s];"
    assert api.check(SPIN.format(inside=load, behind=""), engine=engine).holds is True
    assert api.check(SPIN.format(inside="", behind=load), engine=engine).holds is False


def test_an_operation_of_no_bytes_writes_nothing() -> None:
    reduction = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], %size; commit; drain 0"
    test = async_test(f"ld.relaxed.cta.shared.u32 %size, [s]; {reduction}", condition="g[0] != 5")
    answer = enumerate_answer(test, PTX, budget=Budget(), bound=2, findings=True)
    assert answer.observation is Observation.NEVER and not answer.flags
