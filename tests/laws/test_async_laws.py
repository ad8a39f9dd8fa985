"""What the model ptx-9.4 promises of asynchronous programs: more synchronization never adds an outcome.

Each law compares the final states of a generated program and of a changed one. Known exceptions: none; docs/limits.md
says what is not a strengthening. A reading that takes order away never removes an outcome. The engines are also
compared on these programs.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from helpers.agreement import BOUND, agree, lowered
from helpers.examples import examples
from helpers.executions import candidates, execution_of
from helpers.strategies.asynchronous import Line, Program, fences, programs
from helpers.strategies.programs import judged
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel import api, engine
from memmodel.answer import Budget
from memmodel.base.resources import suite_dir
from memmodel.cat import load_model, parse_model
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.enumeration.estimate import estimate
from memmodel.program.lowered import LoweredTest
from memmodel.referee.evaluate import evaluate
from memmodel.source import Source

States = frozenset[frozenset[tuple[str, int]]]

LITTLE = Options("z3", Budget(effort=20_000_000), bound=BOUND)
FEW = 5_000
"""Up to about this many candidate executions a program is also given to explicit enumeration."""
ADDRESS = re.compile(r":(desc_|idesc|clear)")


def states(program: Program, model: Model) -> States:
    """All final states, registers that hold addresses left out."""
    found = engine.outcomes(lowered(program.text), model, LITTLE)
    judged(found.complete)
    return frozenset(frozenset(pair for pair in one.values if not ADDRESS.search(pair[0])) for one in found.states)


def only_removes(program: Program, changed: Program, model: Model) -> None:
    """The changed program has no final state that the program does not have."""
    added = states(changed, model) - states(program, model)
    assert not added, f"{[sorted(one) for one in added]} are new in\n{changed.text}\ncompared with\n{program.text}"


@st.composite
def fenced(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with a fence in front of some instruction or after it."""
    program = draw(programs())
    t, i, line = draw(st.sampled_from(list(program.lines())))
    fence = draw(fences())
    return program, program.changed(t, i, *((fence, line) if draw(st.booleans()) else (line, fence)))


@st.composite
def widened(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with one scope widened."""
    program = draw(programs())
    places = [place for place in program.lines() if place[2].wider]
    assume(places)
    t, i, line = draw(st.sampled_from(places))
    scope = draw(st.sampled_from(line.wider))
    return program, program.changed(t, i, Line(line.kind, line.text, line.sem, scope, line.top))


@st.composite
def strengthened(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with one semantics strengthened, or a fence for more memory."""
    program = draw(programs())
    places = [place for place in program.lines() if place[2].stronger]
    assume(places)
    t, i, line = draw(st.sampled_from(places))
    sem = draw(st.sampled_from(line.stronger))
    scope = line.scope or (draw(st.sampled_from(("cta", "cluster", "gpu"))) if line.kind in ("ld", "st") else None)
    return program, program.changed(t, i, Line(line.kind, line.text, sem, scope, line.top))


@examples(15)
@given(pair=fenced())
def test_adding_a_fence_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


@examples(15)
@given(pair=widened())
def test_widening_a_scope_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


@examples(15)
@given(pair=strengthened())
def test_strengthening_a_semantics_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


@examples(15)
@given(program=programs())
def test_engines_agree_on_asynchronous_programs(program: Program) -> None:
    assume(estimate(lowered(program.text), BOUND) <= FEW)
    agree(program.text, load_model("ptx-9.4"))


# ---- readings --------------------------------------------------------------------------------------------------------

REMOVING = (
    "D5-fence",
    "D9-letter",
    "D10-dependent",
    "D11-unfinished",
    "D13-thread",
    "D15-fence",
    "D21-relaxed",
    "D22-fence",
)
"""The readings that only take order away."""

OF_KERNELS = ("D19-together", "D20-all")
"""Readings about the lanes of a warp, which a litmus thread stands for."""

ORDERS = ("happens", "morally-strong", "base-causality", "causality", "tensor-before", "signalled-after")

TELLING = (
    *(f"readings/{name}" for name in ("R1", "R2", "R3", "R3-relaxed", "R4-cluster", "R4-relaxed", "R5", "R6")),
    *(
        f"readings/{name}"
        for name in ("D3", "D7", "D10-one-shot", "D11", "D12", "D13", "D15", "D16", "D17", "D18", "D21", "D24")
    ),
    "fabric/get-flag",
    "fabric/put-own-read-relaxed",
    "proxy/relaxed-copy-as-flag",
    "patterns/threads-to-mma-pair.cluster-leader-fence",
)
"""Shipped tests in which together every reading differs from the default model, and adds order if it ever does."""


@cache
def telling() -> tuple[tuple[LoweredTest, Execution], ...]:
    """An execution of each of these tests: the last one, since in the first a fabric operation fails."""
    tests = [api.lowered(suite_dir() / "async" / f"{name}.litmus") for name in TELLING]
    return tuple((test, execution_of(candidates(test, load_model("ptx-9.4"))[-1])) for test in tests)


def changes(name: str) -> set[str]:
    """What a reading does to the orders of these executions: it adds to them, or removes from them."""
    found = set()
    for _, execution in telling():
        default, reading = (evaluate(api.load(model), execution) for model in ("ptx-9.4", name))
        for order in ORDERS:
            for before, after in zip(default.relation(order), reading.relation(order), strict=True):
                found |= {"adds"} if after & ~before else set()
                found |= {"removes"} if before & ~after else set()
    return found


def test_some_readings_only_take_order_away() -> None:
    found = {name: changes(name) for name in api.reading_models() if name != api.DEFAULT_MODEL}
    assert {name for name, what in found.items() if not what} == {f"readings/{name}" for name in OF_KERNELS}
    assert {name for name, what in found.items() if what == {"removes"}} == {f"readings/{name}" for name in REMOVING}


@pytest.mark.share(4)
@pytest.mark.parametrize("reading", REMOVING)
def test_a_reading_that_takes_order_away_removes_no_outcome_of_shipped_tests(reading: str) -> None:
    for path in sorted((suite_dir() / "async").glob("readings/*.litmus")):
        steps = api.lowered(path)
        default, other = (
            engine.outcomes(steps, api.load(model), Options()) for model in ("ptx-9.4", f"readings/{reading}")
        )
        assert default.complete and other.complete
        assert set(default.states) <= set(other.states), path.name


@pytest.mark.share(4)
@pytest.mark.parametrize("reading", REMOVING)
@examples(12)
@given(program=programs())
def test_a_reading_that_takes_order_away_removes_no_outcome(reading: str, program: Program) -> None:
    default, other = load_model("ptx-9.4"), api.load(f"readings/{reading}")
    removed = states(program, default) - states(program, other)
    assert not removed, f"{[sorted(one) for one in removed]} are gone under {reading} in\n{program.text}"


# ---- the laws can fail -----------------------------------------------------------------------------------------------


def test_a_reading_that_adds_order_removes_outcomes() -> None:
    steps = api.lowered(suite_dir() / "async" / "readings" / "R5.litmus")
    default, other = (engine.outcomes(steps, api.load(name), Options()) for name in ("ptx-9.4", "readings/D8-mma-cp"))
    assert set(other.states) < set(default.states)


def test_a_model_in_which_a_release_is_weaker_breaks_the_law() -> None:
    """The comparison can fail: here only a relaxed arrive orders anything, and a release no longer does."""
    wrong = parse_model(
        Source("wrong.cat", "irreflexive (rf | fr) ; ((po | [MBARRIVE & RLX] ; mbarobs)+ & loc) as Causality\n")
    )
    arrive = Line("arrive", "mbarrier.arrive.{}.shared::cta.b64 _, [bar];", "relaxed", "cta", "cluster")
    bodies = (
        (Line("st", "st.{}.shared::cta.u32 [s], 1;", "weak"), arrive),
        (
            Line("wait", "W: mbarrier.try_wait.parity.{}.shared::cta.b64 %p, [bar], 0; @!%p bra W;", "acquire", "cta"),
            Line("ld", "ld.{}.shared::cta.u32 %r1, [s];", "weak"),
        ),
    )
    program = Program(False, 1, bodies)
    stronger = program.changed(0, 1, Line(arrive.kind, arrive.text, "release", "cta", "cluster"))
    only_removes(program, stronger, load_model("ptx-9.4"))
    with pytest.raises(AssertionError, match="are new in"):
        only_removes(program, stronger, wrong)
