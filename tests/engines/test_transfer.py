"""An execution of one test, tried on another (`referee.transfer`)."""

import pytest

from memmodel import api, engine
from memmodel.answer import HANG
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice
from memmodel.referee.replay import Replay
from memmodel.referee.transfer import transferred
from memmodel.repair.glance import Glance
from memmodel.solve.seek import OUTCOME, Sought
from memmodel.source import Source

MODEL = api.load(api.DEFAULT_MODEL)

TEXT = """PTX again
.shared .align 4 .u32 x = 0;
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 more = mbarrier(1);
thread P0 @ cta 0, cluster 0, gpu 0 {
    st.shared.u32 [x], 1;
    mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [more];
    mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [full], 0;
}
thread P1 @ cta 0, cluster 0, gpu 0 {
WAIT:
    mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [full], 0;
    @!%p bra WAIT;
    ld.shared.u32 %r0, [x];
}
exists (P1:r0 == 0)
"""
WAIT = """READY:
    mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %q, [more], 0;
    @!%q bra READY;
"""
ENDED, HUNG = TEXT, TEXT.replace("[full], 0;\n}", "[full], 16;\n}")


def lowered(text: str) -> LoweredTest:
    return api.lowered(Source("again", text))


def tried(old: str, new: str, name: str) -> Replay | None:
    """An execution of the old text that shows something, as one of the new."""
    seen = engine.seek(lowered(old), MODEL, Options(), Sought((name,)))
    assert seen is not None and seen.witness.evaluated is not None
    execution, choice = seen.witness.evaluated.execution, seen.witness.evaluated.choice
    assert isinstance(execution, Execution) and isinstance(choice, Choice)
    return transferred(execution.frame.lowered, choice, lowered(new), MODEL)


def test_the_same_test_has_the_execution() -> None:
    found = tried(ENDED, ENDED, OUTCOME)
    assert found is not None and found.satisfies and found.ended and "data-race" in found.flags


def test_a_wait_that_is_put_in_sees_what_lets_it_pass() -> None:
    new = ENDED.replace("    ld.shared", f"{WAIT}    ld.shared")
    found = tried(ENDED, new, OUTCOME)
    assert found is not None and found.satisfies and found.ended
    execution = found.witness.evaluated.execution if found.witness.evaluated else None
    assert isinstance(execution, Execution) and execution.set("MBDONE").bit_count() == 2


def test_a_wait_that_orders_the_accesses_has_no_such_execution() -> None:
    new = ENDED.replace("    ld.shared", f"{WAIT}    ld.shared").replace(".relaxed.cluster", "")
    assert tried(ENDED, new, OUTCOME) is None


def test_an_instruction_may_move() -> None:
    arrive = "    mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [more];\n"
    assert arrive in ENDED
    found = tried(ENDED, ENDED.replace(arrive, "").replace("    st.shared", f"{arrive}    st.shared"), OUTCOME)
    assert found is not None and found.satisfies


def test_an_arrival_that_is_put_in_has_a_place_in_the_order() -> None:
    arrive = "    mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [more];\n"
    found = tried(ENDED, ENDED.replace("    st.shared", f"{arrive}    st.shared"), OUTCOME)
    assert found is not None and found.satisfies


@pytest.mark.parametrize(
    ("old", "new"), [("[full], 16;", "[full], 32;"), ("full = mbarrier(1)", "full = mbarrier(2)"), ("P1:r0", "P1:r1")]
)
def test_a_hang_stays_where_a_number_does_not_end_it(old: str, new: str) -> None:
    assert old in HUNG
    found = tried(HUNG, HUNG.replace(old, new), HANG)
    assert found is not None and found.waits and not found.ended


@pytest.mark.parametrize(("old", "new"), [("[full], 16;", "[full], 0;"), ("%p, [full], 0", "%p, [full], 1")])
def test_a_hang_that_is_another_or_gone_is_not_found(old: str, new: str) -> None:
    assert old in HUNG
    assert tried(HUNG, HUNG.replace(old, new), HANG) is None


def test_what_was_found_speaks_against_the_next_text_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    glance = Glance("again", (MODEL,), Options(), frozenset((HANG,)), outcomes=True)
    first = glance.at(HUNG)
    assert first is not None and first.flag == HANG
    monkeypatch.setattr(engine, "seek", None)
    other = glance.known_counterexample(HUNG.replace("[full], 16;", "[full], 32;"))
    assert other is not None and other.flag == HANG
    assert glance.known_counterexample(HUNG.replace("[full], 16;", "[full], 0;")) is None


def test_a_test_with_other_threads_or_variables_has_none() -> None:
    assert tried(ENDED, ENDED.replace(".u32 x = 0", ".u32 y = 0").replace("[x]", "[y]"), OUTCOME) is None
