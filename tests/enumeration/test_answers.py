"""Whole tests through the engine: verdicts that are known, witnesses, races, final states, budgets."""

from __future__ import annotations

import pytest

from enumeration.test_threads import columns
from memmodel import api
from memmodel.answer import Answer, Budget, Observation
from memmodel.cat import load_model
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Model
from memmodel.enumeration.answers import enumerate_answer, enumerate_outcomes
from memmodel.enumeration.estimate import estimate
from memmodel.program.lowered import LoweredTest
from memmodel.source import Source

ANYTHING = parse_model(Source("anything.cat", "acyclic 0 as nothing\n"))
SC, PTX = load_model("sc"), load_model("ptx-9.4")

MP = ("st.weak x, 1; st.{w}.{s} y, 1", "ld.{r}.{s} r0, y; ld.weak r1, x")
MP_SEEN = "P1:r0 == 1 /\\ P1:r1 == 0"


def ask(test: LoweredTest, model: Model, findings: bool = False, budget: Budget = Budget(), bound: int = 2) -> Answer:
    return enumerate_answer(test, model, budget=budget, bound=bound, findings=findings)


def states(test: LoweredTest, model: Model) -> list[tuple[int, ...]]:
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
    assert witness.memory["x"] == "2"
    labels = [(event.label, event.thread) for event in witness.events]
    assert labels[-3:] == [("a", "P0"), ("b", "P0"), ("c", "P1")]
    assert witness.waits == ()


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


def test_spin_loops_need_no_bound_and_other_loops_name_the_one_that_would_do() -> None:
    spin = columns("st.weak x, 1; st.release.gpu y, 1", "L0:; ld.acquire.gpu r0, y; beq r0, 0, L0; ld.weak r1, x")
    assert ask(spin, PTX, bound=1).observation is Observation.ALWAYS
    assert states(spin, PTX) == [(1, 1, 1, 1)]
    unrolled = columns("L0:; st.weak x, 1; ld.weak r0, y; add r1, r1, 1; blt r1, r0, L0", "st.weak y, 4")
    answer = ask(unrolled, SC, bound=2)
    assert answer.observation is Observation.UNDECIDED
    assert "--bound 3 would do" in answer.reason and answer.unsearched
    assert ask(unrolled, SC, bound=3).observation is Observation.ALWAYS
    assert not enumerate_outcomes(unrolled, SC, budget=Budget(), bound=2).complete


def test_findings_are_reported_once_with_their_execution() -> None:
    test = columns("st.weak x, 1; st.weak x, 2", "ld.weak r0, x", condition="P1:r0 == 1")
    answer = ask(test, PTX, findings=True)
    assert answer.flags == ("data-race",) and answer.with_condition == ("data-race",)
    texts = [tuple(event.text.split(" =")[0] for event in (one.first, one.second) if event) for one in answer.findings]
    assert texts == [("W.weak x", "R.weak x")] * 2
    for one in answer.findings:
        assert {one.first, one.second} <= set(one.witness.events)
    assert ask(test, PTX).findings == () and ask(test, PTX).with_condition is None
    quiet = columns("st.relaxed.gpu x, 1", "ld.relaxed.gpu r0, x", condition="P1:r0 == 1")
    assert ask(quiet, PTX, findings=True).findings == ()


def test_a_hang_is_a_finding_with_its_own_execution() -> None:
    answer = ask(columns("st.weak x, 1; bar.cta.sync 0", "st.weak x, 2"), PTX, findings=True)
    assert answer.observation is Observation.VACUOUS
    assert answer.flags == ("data-race", "hang")
    assert answer.hang is not None
    (sentence,) = answer.hang.witness.waits
    assert sentence.startswith("P0 waits for ever at test.litmus:5:") and sentence.endswith("1 of 2 arrivals")


def test_a_race_of_sizes_in_an_execution_that_hangs_decides_nothing() -> None:
    """Even if nobody asks for findings: of such a program the model says nothing."""
    text = """PTX sizes
.global .u32 x = 0;
thread P0 @ cta 0, gpu 0 { st.weak.global.u32 [x], 1; }
thread P1 @ cta 0, gpu 0 {
    ld.weak.global.u16 %r0, [x];
    L: ld.relaxed.gpu.global.u32 %r1, [x];
    setp.ne.u32 %p, %r1, 7;
    @%p bra L;
}
exists (P1:r0 == 0)
"""
    test = api.lowered(Source("sizes.litmus", text))
    for findings in (False, True):
        answer = ask(test, PTX, findings=findings)
        assert answer.observation is Observation.UNDECIDED and "different sizes" in answer.reason
    assert not enumerate_outcomes(test, PTX, budget=Budget(), bound=2).complete


def test_an_execution_with_a_bad_address_is_an_execution() -> None:
    text = """PTX bad
.global .u32 x = 0; .global .u64 p = 0;
thread P0 @ cta 0, gpu 0 { mov.u64 %a, x; st.relaxed.gpu.global.u64 [p], %a; }
thread P1 @ cta 0, gpu 0 {
    mov.u32 %r1, 1;
    ld.relaxed.gpu.global.u64 %b, [p];
    st.weak.global.u32 [%b], 1;
    mov.u32 %r1, 2;
}
exists (P1:r1 == 1 /\\ x == 0)
"""
    answer = ask(api.lowered(Source("bad.litmus", text)), PTX, findings=True)
    assert answer.observation is Observation.SOMETIMES
    (finding,) = answer.findings
    assert finding.flag == "undefined-address" and finding.rule == "address 0x0 is outside every object"
    assert finding.first is not None and finding.first.span is not None and finding.first.span.line == 7


def test_when_the_budget_runs_out_the_answer_says_so() -> None:
    test = columns(*["st.relaxed.gpu x, 1; ld.relaxed.gpu r0, x; st.relaxed.gpu x, 2"] * 4, condition="P0:r0 == 9")
    answer = ask(test, PTX, budget=Budget(effort=200_000))
    assert answer.observation is Observation.UNDECIDED
    assert "effort" in answer.reason
    timed = ask(test, PTX, budget=Budget(seconds=0.0))
    assert timed.observation is Observation.UNDECIDED
    assert "seconds" in timed.reason and "seconds" in timed.unsearched
    found = enumerate_outcomes(test, PTX, budget=Budget(effort=200_000), bound=1)
    assert not found.complete


def test_what_was_settled_before_the_budget_ran_out_stands() -> None:
    readers = ["ld.weak r0, x; ld.weak r1, x"] * 3
    test = columns("st.weak x, 1", "st.weak x, 2", *readers, condition="x == 1")
    answer = ask(test, PTX, findings=True, budget=Budget(effort=500_000))
    assert answer.observation is Observation.SOMETIMES
    assert answer.witness is not None and answer.counter is not None
    assert "effort" in answer.unsearched


def test_the_estimate_grows_with_what_can_be_chosen() -> None:
    small = columns("st.weak x, 1", "ld.weak r0, x")
    large = columns(*["st.weak x, 1; ld.weak r0, x"] * 4)
    assert 1 <= estimate(small, 2) < estimate(large, 2)
    assert estimate(columns(*["L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0"] * 6), 50) <= 1e300


def test_a_model_is_compiled_for_what_it_says_now() -> None:
    test = columns(*(thread.format(w="release", r="acquire", s="gpu") for thread in MP), condition=MP_SEEN)
    assert ask(test, PTX).observation is Observation.NEVER
    assert ask(test, PTX.without("Causality")).observation is Observation.SOMETIMES


# ---- what single pairs of rf are refused for -----------------------------------------------------------------------


@pytest.mark.parametrize("findings", [False, True])
def test_updates_of_one_thread_add_up(findings: bool) -> None:
    """Of the values that the reads might return nearly all are refused by what one pair of rf breaks."""
    test = columns("; ".join(["atom.relaxed.gpu.add r0, x, 1"] * 4), condition="x == 4", init="x=0;")
    assert ask(test, PTX, findings=findings).observation is Observation.ALWAYS


def test_an_axiom_that_needs_the_whole_of_rf_refuses_no_pair() -> None:
    every_read_reads = parse_model(Source("whole.cat", "empty [R] \\ (rf^-1 ; rf) as every-read-reads\n"))
    test = columns("st.weak x, 0", "st.weak x, 0", "ld.weak r0, x; ld.weak r1, x; ld.weak r2, x")
    assert ask(test, every_read_reads).observation is Observation.ALWAYS


def test_blame_falls_on_the_axioms_that_refuse_pairs() -> None:
    test = columns("st.weak x, 1; st.weak x, 1; st.weak x, 2; ld.weak r0, x; ld.weak r1, x", condition="P0:r1 == 1")
    answer = ask(test, PTX)
    assert answer.observation is Observation.NEVER
    assert "Causality" in answer.axioms or "SC-per-Location" in answer.axioms


def test_axioms_are_blamed_for_what_an_execution_could_show() -> None:
    """With 1 read, the compare-and-swap writes nothing: no execution ends with 2, and no axiom has a part in that."""
    text = """PTX swap
.global .u32 x;
thread P0 @ cta 0 { atom.relaxed.gpu.global.exch.b32 %old, [x], 1; }
thread P1 @ cta 1 { atom.relaxed.gpu.global.cas.b32 %old, [x], 0, 2; }
exists (P1:%old == 1 /\\ x == 2)
"""
    answer = api.check(text, engine="enumerate").answer
    assert answer.observation is Observation.NEVER and answer.axioms == ()
    blamed = api.check(text.replace("/\\ x == 2", "/\\ P0:%old == 2"), engine="enumerate").answer
    assert blamed.observation is Observation.NEVER and blamed.axioms == ()
    torn = api.check(
        text.replace("P1:%old == 1 /\\ x == 2", "P1:%old == 0 /\\ P0:%old == 0"), engine="enumerate"
    ).answer
    assert torn.observation is Observation.NEVER and torn.axioms == ("Atomicity-of-Any-Size",)
