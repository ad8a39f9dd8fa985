"""Sums over all phases of an mbarrier object: they hold in every execution, with them and without them the same."""

from __future__ import annotations

import pytest
from helpers.agreement import agree
from helpers.examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from memmodel import api
from memmodel.answer import Observation
from memmodel.base.logic import Logic
from memmodel.cat import load_model
from memmodel.encode import object_phases
from memmodel.events.values import Cases
from memmodel.source import Source

HEAD = "PTX phases\n.shared .align 8 .b64 bar = mbarrier({size});\n.shared .u32 x = 0;\n"
ARRIVE = "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [bar], {bytes};"
PLAIN = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];"
COMPLETE = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {bytes};"
TEST = "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p{n}, [bar], {n}; selp.u32 %r{n}, 1, 0, %p{n};"


def text(size: int, *threads: list[str]) -> str:
    bodies = "".join(
        f"thread P{number} @ cta 0, gpu 0 {{\n" + "\n".join(lines) + "\n}\n" for number, lines in enumerate(threads)
    )
    return HEAD.format(size=size) + bodies + "exists (true)\n"


def expect(*amounts: int) -> list[str]:
    return [ARRIVE.format(bytes=one) for one in amounts]


def complete(*amounts: int) -> list[str]:
    return [COMPLETE.format(bytes=one) for one in amounts]


TESTS = {
    "one by one": text(1, [*expect(4, 4), TEST.format(n=0)], complete(4, 4)),
    "two for one": text(1, [*expect(8, 8), TEST.format(n=0)], complete(4, 4), complete(4)),
    "too many bytes": text(1, [*expect(4, 4), TEST.format(n=1)], complete(4, 4), complete(4)),
    "of different amounts": text(1, [*expect(4, 8), TEST.format(n=0)], complete(8, 4)),
    "without bytes too": text(1, [*expect(4), PLAIN, TEST.format(n=0)], complete(4)),
    "two arrivals": text(2, [*expect(4), PLAIN, TEST.format(n=0)], [PLAIN, PLAIN], complete(4)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", TESTS)
def test_sums_over_phases_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(object_phases, "FEW_PHASES", few)
        states = api.outcomes(TESTS[name], engine="z3")
        answer = api.check(TESTS[name], engine="z3").answer
        assert states.complete
        found.append((states.states, answer.observation, sorted(set(answer.flags))))
    assert found[0] == found[1]
    tried = api.outcomes(TESTS[name], engine="enumerate")
    assert tried.complete and tried.states == found[0][0]


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_an_object_is_used_in_a_life_that_no_init_has_begun(engine: str) -> None:
    """The init comes after what its own thread did before: the wait there finds no object, and stays."""
    wait = "W: mbarrier.try_wait.parity.relaxed.cta.b64 %p, [bar], 0; @!%p bra W;"
    threads = [wait, "mbarrier.init.shared.b64 [bar], 1;"], [PLAIN]
    test = text(1, *threads).replace(" = mbarrier(1)", "")
    found = api.check(test.replace("exists (true)", "exists undefined"), engine=engine).answer
    assert set(found.flags) == {"undefined-mbarrier"}


NOINC = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
RAISE = "cp.async.mbarrier.arrive.shared.b64 [bar];"


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    "threads",
    [
        ([ARRIVE.format(bytes=16)], [NOINC, RAISE]),
        ([NOINC, RAISE], [ARRIVE.format(bytes=16)]),
        ([RAISE], [PLAIN.replace("[bar];", "[bar], 2;"), TEST.format(n=0)]),
        ([PLAIN.replace("[bar];", "[bar], 2;"), TEST.format(n=0)], [RAISE]),
        ([PLAIN, RAISE, PLAIN], [PLAIN, TEST.format(n=0)]),
        ([NOINC, TEST.format(n=0)], [RAISE]),
        ([RAISE], [NOINC, TEST.format(n=0)]),
    ],
    ids=str,
)
def test_arrivals_taken_back_after_one_too_many(size: int, threads: tuple[list[str], ...]) -> None:
    """An arrival that exceeds the count came to nothing, and gives nothing to one that is taken back later."""
    told = []
    for engine in ("z3", "enumerate"):
        answer = api.check(text(size, *threads), "ptx-9.4", engine=engine).answer
        places = {
            (one.flag, *(event.span.line if event and event.span else 0 for event in (one.first, one.second)))
            for one in answer.findings
        }
        states = api.outcomes(text(size, *threads), "ptx-9.4", engine=engine).states
        told.append((answer.observation, places, sorted(str(state.values) for state in states)))
    assert told[0] == told[1]


# ---- any operations, whatever they break -----------------------------------------------------------------------------

OPERATIONS = (
    *("mbarrier.init.shared::cta.b64 [bar], <1|2>;",) * 3,
    "mbarrier.inval.shared::cta.b64 [bar];",
    "mbarrier.arrive.shared::cta.b64 _, [bar];",
    "mbarrier.arrive.shared::cta.b64 %s#, [bar]; mbarrier.pending_count.b64 %r#, %s#;",
    "mbarrier.arrive.shared::cta.b64 %s#, [bar]; mbarrier.pending_count.b64 %r#, %s#;",
    "mbarrier.arrive.shared::cta.b64 %s#, [bar], 2; mbarrier.pending_count.b64 %r#, %s#;",
    "mbarrier.arrive_drop.shared::cta.b64 %s#, [bar]<|, 2>; mbarrier.pending_count.b64 %r#, %s#;",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], <4|8>;",
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 4;",
    "mbarrier.test_wait.parity.shared::cta.b64 %p#, [bar], <0|1>; selp.u32 %r#, 1, 0, %p#;",
    RAISE,
)


@st.composite
def operations(draw: st.DrawFn) -> str:
    """A test with up to five operations on one object, which may be initialised late, twice, or never."""
    start = draw(st.sampled_from(["", "", " = mbarrier(1)", " = mbarrier(2)"]))
    threads: list[list[str]] = [[] for _ in range(draw(st.integers(1, 2)))]
    registers = []
    for number in range(draw(st.integers(2, 5))):
        line = draw(st.sampled_from(OPERATIONS)).replace("#", str(number))
        while "<" in line:
            before, _, rest = line.partition("<")
            options, _, after = rest.partition(">")
            line = before + draw(st.sampled_from(options.split("|"))) + after
        thread = draw(st.integers(0, len(threads) - 1))
        threads[thread].append(line)
        registers += [f"P{thread}:r{number} == 1"] if "%r" in line else []
    asked = " /\\ ".join(registers) or "true"
    return text(1, *threads).replace(" = mbarrier(1)", start, 1).replace("exists (true)", f"exists ({asked})")


EARLY = [line.replace("#", str(number)) for number, line in enumerate((OPERATIONS[5], OPERATIONS[0], OPERATIONS[5]))]


@examples(9)
@given(program=operations())
@example(
    text(1, [line.replace("<1|2>", "2") for line in EARLY])
    .replace(" = mbarrier(1)", "")
    .replace("exists (true)", "forall (P0:r0 == 0 /\\ P0:r2 == 2)")
)
def test_engines_agree_on_lives_and_phases(program: str) -> None:
    """Also where an operation comes before the init, after the inval, or is one too many."""
    agree(program, load_model("ptx-9.4"))


WAITS = """mov.u32 %i, 0;
L: mbarrier.arrive.shared::cta.b64 %t, [bar];
setp.gt.u32 %late, %i, {after};
@%late mbarrier.arrive.shared::cta.b64 %t, [bar];
W: mbarrier.try_wait.shared::cta.b64 %w, [bar], %t;
@!%w bra W;
add.u32 %i, %i, 1;
setp.lt.u32 %q, %i, {rounds};
@%q bra L;"""


def test_a_state_may_be_one_of_many() -> None:
    """With more operations than values are listed for, a test still compares the state that its thread has."""
    body = WAITS.format(after=3, rounds=9).splitlines()
    test = text(1, [*body, "st.shared.u32 [x], 1;"]).replace("exists (true)", "exists (x == 1)")
    report = api.check(test, engine="z3")
    assert report.answer.observation.value == "always"
    assert "undefined-unobserved-phase" in report.answer.flags and "hang" not in report.answer.flags
    several = WAITS.format(after=9, rounds=7).splitlines()
    test = text(2, [*several, "st.shared.u32 [x], 1;"], several).replace("exists (true)", "exists (x == 1)")
    report = api.check(test, engine="z3")
    assert report.answer.observation.value == "always" and not report.answer.flags


@pytest.mark.parametrize("number", range(-3, 40, 7))
def test_a_wide_value_is_compared_like_a_narrow_one(number: int) -> None:
    logic = Logic()
    chosen = {case: logic.var(f"case {case}") for case in range(0, 36, 3)}
    logic.exactly_one(list(chosen.values()))
    narrow, wide = Cases(chosen), Cases({}, Cases(chosen).as_bits(logic))
    pairs = [(narrow.is_less(logic, number), wide.is_less(logic, number)), (narrow.is_odd(logic), wide.is_odd(logic))]
    for case, formula in chosen.items():
        for same, other in pairs:
            known = dict.fromkeys(chosen.values(), False) | {formula: True}
            assert logic.value(same, {}, known.__getitem__) == logic.value(other, {}, known.__getitem__), case


STATES = """PTX states
.shared .align 8 .b64 bar{declared};
thread P0 @ cta 0, gpu 0 {{
{init}
mbarrier.arrive.shared::cta.b64 %d0, [bar];
mbarrier.arrive.shared::cta.b64 %d1, [bar];
mbarrier.arrive.shared::cta.b64 %d2, [bar];
}}
exists (true)
"""


@pytest.mark.parametrize(
    ("declared", "init"), [(" = mbarrier(1)", ""), ("", "mbarrier.init.shared::cta.b64 [bar], 1;")]
)
def test_the_states_of_one_life_are_the_same_in_both_engines(declared: str, init: str) -> None:
    test = Source("states.litmus", STATES.format(declared=declared, init=init))
    states = [api.outcomes(test, engine=engine).states for engine in ("z3", "enumerate")]
    assert states[0] == states[1] and len(states[0]) == 1


def test_a_state_may_be_of_any_phase() -> None:
    states = "".join(f"mbarrier.arrive.shared::cta.b64 %s{n}, [bar];\n" for n in range(3))
    body = HEAD.format(size=1) + f"thread P0 @ cta 0, gpu 0 {{\n{states}mbarrier.test_wait.b64 %p, [bar], %s2;\n}}\n"
    assert agree(body + "exists (P0:%p == 1)\n", load_model("ptx-9.4")).observation is Observation.ALWAYS
