"""Whole tests through the engine: verdicts that are known, witnesses, races, final states, budgets."""

from __future__ import annotations

import pytest
from test_enumeration_threads import columns

from memmodel.answer import Answer, Budget, Observation
from memmodel.cat import load_model
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Model
from memmodel.enumeration import enumerate_answer, enumerate_outcomes, estimate
from memmodel.litmus.syntax import LitmusTest
from memmodel.source import Source

ANYTHING = parse_model(Source("anything.cat", "acyclic 0 as nothing\n"))
SC, PTX = load_model("sc"), load_model("ptx-9.3")

MP = ("st.weak x, 1; st.{w}.{s} y, 1", "ld.{r}.{s} r0, y; ld.weak r1, x")
MP_SEEN = "P1:r0 == 1 /\\ P1:r1 == 0"


def ask(test: LitmusTest, model: Model, races: bool = False, budget: Budget = Budget(), bound: int = 2) -> Answer:
    return enumerate_answer(test, model, budget=budget, bound=bound, races=races)


def states(test: LitmusTest, model: Model) -> list[tuple[int, ...]]:
    found = enumerate_outcomes(test, model, budget=Budget(), bound=2)
    assert found.complete
    return [tuple(value for _, value in state.values) for state in found.states]


@pytest.mark.parametrize(
    ("write", "read", "scope", "seen"),
    [
        ("release", "acquire", "gpu", Observation.NEVER),
        ("relaxed", "acquire", "gpu", Observation.SOMETIMES),
        ("release", "relaxed", "gpu", Observation.SOMETIMES),
    ],
)
def test_message_passing(write: str, read: str, scope: str, seen: Observation) -> None:
    threads = [thread.format(w=write, r=read, s=scope) for thread in MP]
    answer = ask(columns(*threads, condition=MP_SEEN), PTX)
    assert answer.observation is seen
    if seen is Observation.NEVER:
        assert answer.axioms == ("Causality",)
        assert answer.witness is None
    assert answer.counter is not None


def test_a_witness_tells_values_sources_and_order() -> None:
    test = columns("st.weak x, 1; st.weak x, 2", "ld.weak r0, x", condition="P1:r0 == 1")
    witness = ask(test, SC).witness
    assert witness is not None
    name = {event.uid: event.text for event in witness.events}
    assert [(name[a], name[b]) for a, b in witness.edges["rf"]] == [("W.weak x = 1", "R.weak x = 1")]
    assert ("R.weak x = 1", "W.weak x = 2") in [(name[a], name[b]) for a, b in witness.edges["fr"]]
    assert witness.registers["P1", "r0"] == 1
    assert witness.memory["x"] == 2
    labels = [(event.label, event.thread) for event in witness.events]
    assert labels[-3:] == [("a", "P0"), ("b", "P0"), ("c", "P1")]


def test_always_vacuous_and_never_are_told_apart() -> None:
    one = columns("st.weak x, 1; ld.weak r0, x", condition="P0:r0 == 1")
    assert ask(one, SC).observation is Observation.ALWAYS
    stuck = columns("L0:; ld.weak r0, x; beq r0, 0, L0")
    answer = ask(stuck, SC)
    assert answer.observation is Observation.VACUOUS
    assert "no consistent execution" in answer.reason


def test_a_location_ends_with_any_co_maximal_write() -> None:
    test = columns("st.weak x, 1", "st.weak x, 2", "st.weak x, 3", condition="x == 1", init="x=0;")
    assert states(test, PTX) == [(1,), (2,), (3,)]
    assert ask(test, PTX).observation is Observation.SOMETIMES
    two = columns("st.weak x, 1; st.weak x, 2", condition="x == 1", init="x=0;")
    assert states(two, PTX) == [(2,)]
    assert states(two, ANYTHING) == [(1,), (2,)]


def test_an_unwritten_location_keeps_its_initial_value() -> None:
    assert states(columns("ld.weak r0, x", init="x=5; y=6;", condition="x == 5 /\\ y == 6"), SC) == [(5, 6)]


def test_without_a_condition_all_registers_and_locations_are_shown() -> None:
    found = enumerate_outcomes(columns("st.weak x, 1; ld.weak r0, y"), SC, budget=Budget(), bound=2)
    assert [state.values for state in found.states] == [(("P0:r0", 0), ("x", 1), ("y", 0))]


def test_the_outcomes_of_store_buffering() -> None:
    test = columns("st.weak x, 1; ld.weak r0, y", "st.weak y, 1; ld.weak r0, x", condition="P0:r0 == P1:r0")
    assert states(test, SC) == [(0, 1), (1, 0), (1, 1)]
    assert states(test, PTX) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_values_out_of_thin_air_need_a_model_that_allows_them() -> None:
    threads = ("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y; st.weak x, r0")
    test = columns(*threads, condition="P0:r0 == 42")
    assert ask(test, ANYTHING).observation is Observation.SOMETIMES
    assert ask(test, PTX).observation is Observation.NEVER


def test_two_compare_and_swaps_cannot_both_win() -> None:
    test = columns(*["atom.relaxed.gpu.cas r0, x, 0, 1"] * 2, condition="P0:r0 == 0 /\\ P1:r0 == 0")
    assert ask(test, PTX).observation is Observation.NEVER
    assert ask(test, ANYTHING).observation is Observation.SOMETIMES
    failing = columns("atom.relaxed.gpu.cas r0, x, 5, 1", condition="x == 1")
    assert ask(failing, ANYTHING).observation is Observation.NEVER


def test_reductions_add_up() -> None:
    test = columns(*["red.relaxed.gpu.add x, 1"] * 3, condition="x == 3", init="x=0;")
    assert ask(test, PTX).observation is Observation.ALWAYS


def test_an_alias_is_another_name_for_one_location() -> None:
    init = "x=0; y @ generic aliases x;"
    seen = columns("st.weak x, 1; ld.weak r0, y", init=init, condition="P0:r0 == 0")
    assert ask(seen, ANYTHING).observation is Observation.SOMETIMES
    assert ask(seen, SC).observation is Observation.NEVER
    assert ask(seen, PTX).observation is Observation.SOMETIMES


def test_barriers_order_and_a_missing_arrival_hangs() -> None:
    threads = ("st.weak x, 1; bar.cta.sync 0", "bar.cta.sync 0; ld.weak r0, x")
    assert ask(columns(*threads, condition="P1:r0 == 1"), PTX).observation is Observation.ALWAYS
    assert ask(columns("bar.cta.sync 0", "ld.weak r0, x"), PTX).observation is Observation.VACUOUS


def test_spin_loops_need_no_bound_and_other_loops_say_theirs() -> None:
    spin = columns("st.weak x, 1; st.release.gpu y, 1", "L0:; ld.acquire.gpu r0, y; beq r0, 0, L0; ld.weak r1, x")
    assert ask(spin, PTX).bound is None
    assert states(spin, PTX) == [(1, 1, 1, 1)]
    unrolled = columns("L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0", "st.weak y, 1")
    assert ask(unrolled, SC, bound=1).bound == 1


def test_races_are_reported_once_with_both_accesses() -> None:
    test = columns("st.weak x, 1; st.weak x, 2", "ld.weak r0, x", condition="P1:r0 == 1")
    answer = ask(test, PTX, races=True)
    assert "data-race" in answer.flags
    assert [(race.first.text.split(" =")[0], race.second.text.split(" =")[0]) for race in answer.races] == [
        ("W.weak x", "R.weak x"),
        ("W.weak x", "R.weak x"),
    ]
    assert ask(test, PTX).races == ()
    quiet = columns("st.relaxed.gpu x, 1", "ld.relaxed.gpu r0, x", condition="P1:r0 == 1")
    assert ask(quiet, PTX, races=True).races == ()


def test_when_the_budget_runs_out_the_answer_says_so() -> None:
    test = columns(*["st.relaxed.gpu x, 1; ld.relaxed.gpu r0, x; st.relaxed.gpu x, 2"] * 4, condition="P0:r0 == 9")
    answer = ask(test, PTX, budget=Budget(effort=200_000))
    assert answer.observation is Observation.UNDECIDED
    assert "effort" in answer.reason
    timed = ask(test, PTX, budget=Budget(seconds=0.0))
    assert timed.observation is Observation.UNDECIDED
    assert "seconds" in timed.reason
    found = enumerate_outcomes(test, PTX, budget=Budget(effort=200_000), bound=1)
    assert not found.complete


def test_what_was_settled_before_the_budget_ran_out_stands() -> None:
    readers = ["ld.weak r0, x; ld.weak r1, x"] * 3
    test = columns("st.weak x, 1", "st.weak x, 2", *readers, condition="x == 1")
    answer = ask(test, PTX, races=True, budget=Budget(effort=500_000))
    assert answer.observation is Observation.SOMETIMES
    assert answer.witness is not None and answer.counter is not None
    assert "effort" in answer.reason


def test_the_estimate_grows_with_what_can_be_chosen() -> None:
    small = columns("st.weak x, 1", "ld.weak r0, x")
    large = columns(*["st.weak x, 1; ld.weak r0, x"] * 4)
    assert 1 <= estimate(small, 2) < estimate(large, 2)
    assert estimate(columns(*["L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0"] * 6), 50) <= 1e300


def test_a_model_is_compiled_for_what_it_says_now() -> None:
    test = columns(*(thread.format(w="release", r="acquire", s="gpu") for thread in MP), condition=MP_SEEN)
    assert ask(test, PTX).observation is Observation.NEVER
    assert ask(test, PTX.without("Causality")).observation is Observation.SOMETIMES
