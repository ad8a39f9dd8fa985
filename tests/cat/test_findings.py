"""A question may ask for a finding instead of a final state: `exists hang`, `~exists race`."""

from __future__ import annotations

import pytest

from memmodel import api, check
from memmodel.answer import HANG, Budget, Observation
from memmodel.errors import InputError
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.source import Source


def text(question: str, store: str = "st.weak x, 1", variable: str = "x") -> str:
    return f"""PTX findings
"Two threads and a question."
{{
{variable} = 0;
}}
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 {store} | ld.relaxed.cta r0, {variable} ;
{question}
"""


ENGINES = pytest.mark.parametrize("engine", ["z3", "enumerate"])


@ENGINES
@pytest.mark.parametrize(
    ("question", "store", "observation", "holds"),
    [
        ("exists race", "st.weak x, 1", Observation.SOMETIMES, True),
        ("~exists (race)", "st.weak x, 1", Observation.SOMETIMES, False),
        ("~exists race", "st.relaxed.cta x, 1", Observation.NEVER, True),
        ("exists hang", "bar.cta.sync 0", Observation.SOMETIMES, True),
        ("exists undefined", "st.weak x, 1", Observation.NEVER, False),
    ],
)
def test_a_finding_is_asked_for(question: str, store: str, observation: Observation, holds: bool, engine: str) -> None:
    report = check(text(question, store), engine=engine)
    assert report.answer.observation is observation
    assert report.holds is holds


HANGS = """PTX hangs
.global .u32 x = 0;
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    st.global.u32 [x], 1;
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
}
thread P1 @ cta 1, gpu 0 {
    st.global.u32 [x], 2;
    mov.u64 %a, x;
    st.global.u32 [%a+2], 3;
}
"""


@ENGINES
@pytest.mark.parametrize("question", ["exists race", "exists undefined"])
def test_what_happens_before_a_hang_is_found(question: str, engine: str) -> None:
    """No execution ends, and the ones that hang are executions all the same."""
    report = check(HANGS + question, engine=engine)
    assert report.answer.observation is Observation.SOMETIMES
    assert check(HANGS + "exists (true)", engine=engine).answer.observation is Observation.VACUOUS


@ENGINES
def test_an_execution_with_undefined_behaviour_is_no_hang(engine: str) -> None:
    assert check(HANGS + "exists hang", engine=engine).answer.observation is Observation.NEVER
    fine = HANGS.replace("%a+2", "%a")
    assert check(fine + "exists hang", engine=engine).answer.observation is Observation.SOMETIMES


@ENGINES
def test_the_witness_of_a_finding_shows_it(engine: str) -> None:
    """Its labels and values are those of one execution: that of the finding."""
    report = check(text("exists race"), engine=engine)
    (race,) = report.answer.findings
    assert report.answer.witness == race.witness
    assert race.first in race.witness.events and race.second in race.witness.events
    values = {event.text for event in race.witness.events}
    assert any(one.startswith("W.weak x = 1") for one in values)


@ENGINES
def test_a_hang_has_a_witness_that_says_who_waits(engine: str) -> None:
    (hang,) = check(text("exists hang", "bar.cta.sync 0"), engine=engine).answer.findings
    assert hang.flag == HANG and hang.first is None
    (sentence,) = hang.witness.waits
    assert sentence.startswith("P0 waits for ever") and sentence.endswith("1 of 2 arrivals")


QUIET = """PTX quiet
.global .u32 x = 0;
.global .u32 y = 0;
thread P0 @ cta 0, gpu 0 { st.weak.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1; }
thread P1 @ cta 0, gpu 0 {
L:  ld.acquire.gpu.global.u32 %r0, [y];
    setp.eq.u32 %p, %r0, 0;
    @%p bra L;
    ld.weak.global.u32 %r1, [x];
    mov.u64 %a, x;
    sub.u32 %r2, 1, %r1;
    mul.wide.u32 %b, %r2, 2;
    add.u64 %a, %a, %b;
    ld.weak.global.u32 %r3, [%a];
}
"""


@ENGINES
@pytest.mark.parametrize("question", ["exists race", "exists hang", "exists undefined"])
def test_what_was_not_searched_is_not_denied(question: str, engine: str) -> None:
    assert check(QUIET + question, engine=engine).answer.observation is Observation.NEVER
    report = check(QUIET + question, engine=engine, budget=Budget(seconds=0.0))
    assert report.answer.observation is Observation.UNDECIDED
    assert "seconds" in report.answer.reason


def test_a_model_without_the_rule_cannot_tell() -> None:
    report = check(text("exists race"), "sc")
    assert report.answer.observation is Observation.UNDECIDED
    assert report.answer.reason == "sc has no rule for this finding"


def test_a_location_may_have_the_name_of_a_finding() -> None:
    test = parse_litmus(Source("t", text("exists (race == 1)", "st.weak race, 1", "race")))
    assert test.finding is None


@pytest.mark.parametrize("question", ["exists hang", "~exists (race)"])
def test_printing_keeps_it(question: str) -> None:
    test = parse_litmus(Source("t", text(question)))
    assert parse_litmus(Source("t", print_litmus(test))) == test


def test_forall_asks_nothing_of_a_finding() -> None:
    with pytest.raises(InputError, match="asks nothing"):
        parse_litmus(Source("t", text("forall race")))


def test_every_flag_says_what_it_is_about() -> None:
    """The comment directly before a flag is the rule that reports quote; one line further up it is nobody's."""
    names = ["ptx-9.4", "ptx-7.5", "ptx-6.0", *api.reading_models()]
    flags = [(name, check.name, check.doc) for name in names for check in api.load(name).flags]
    assert flags and [(name, flag) for name, flag, doc in flags if not doc.strip()] == []


UNDEFINED_FIRST = """PTX undefined-first
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    mbarrier.arrive.shared::cta.b64 _, [bar];
    mbarrier.arrive.shared::cta.b64 _, [bar], 5;
}
thread P1 @ cta 0, gpu 0 {
FIRST:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra FIRST;
SECOND:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 1;
    @!%p bra SECOND;
THIRD:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra THIRD;
}
exists hang
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_wait_for_ever_behind_undefined_behaviour_is_no_hang_and_is_said(engine: str) -> None:
    """The second arrival finds one pending count and takes five; as the counts go on, no third phase ends."""
    answer = check(UNDEFINED_FIRST, engine=engine).answer
    assert answer.observation is Observation.NEVER and "undefined-mbarrier" in answer.flags
    assert "(P0, line 5) comes first" in answer.reason and "P1 waits for ever" in answer.reason
    alone = UNDEFINED_FIRST[: UNDEFINED_FIRST.index("thread P1")] + "exists hang\n"
    assert check(alone, engine=engine).answer.reason == "no execution has it"
