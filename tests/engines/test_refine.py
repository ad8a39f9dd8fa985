"""Judging candidates one by one comes to the same as a formula for every cell of every relation of the model."""

from __future__ import annotations

import random
import time

import pytest
from helpers.examples import examples
from helpers.full_encoding import ModelFormulas
from helpers.strategies import bytes as strategies_bytes
from helpers.strategies import programs as strategies_programs
from helpers.strategies.programs import Program, model_texts
from hypothesis import given

from memmodel import api
from memmodel.answer import Budget
from memmodel.base import rows
from memmodel.base.resources import suite_dir
from memmodel.cat import load_model, parse_model
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.litmus.syntax import terms_of
from memmodel.program.lowered import LoweredTest
from memmodel.refine.query import encode
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.questions import Asker
from memmodel.solve.solver import Solver
from memmodel.source import Source

SHIPPED = (
    "isa/MP",
    "bytes/B1",
    "async/mbarrier/G1-race",
    "async/pipelines/gemm-tcgen05-2x2",
    "async/pipelines/gemm-tcgen05-2x2-no-commit",
    "async/pipelines/gemm-tcgen05-2x3-few-bytes",
)


def answers(steps: LoweredTest, model: Model, full: Model) -> tuple[dict[str, Satisfiable], dict[str, Satisfiable]]:
    """What the solver says to each question: with candidates judged under one model, with all formulas of the other."""
    query = encode(steps, model, 2, tuple(terms_of(steps.test.condition)))
    formulas = ModelFormulas(full, query.base)
    axioms = [formulas.holds(check) for check in full.axioms]
    plain = Solver(query.graph.logic, Budget(seconds=60), time.monotonic())
    asker = Asker(query, Solver(query.graph.logic, Budget(seconds=60), time.monotonic()))
    asked = {"yes": [query.ends, query.condition], "no": [query.ends, -query.condition], "rests": [query.stops]}
    slow = {name: plain.check([*axioms, *formula]) for name, formula in asked.items()}
    fast = {name: asker.check(formula) for name, formula in asked.items()}
    for check in model.flags:
        slow[check.name] = plain.check([*axioms, query.stops, formulas.holds(check)])
        fast[check.name] = asker.check([query.stops], raised=query.flags[check.name])
        slow[f"not {check.name}"] = plain.check([*axioms, query.stops, -formulas.holds(check)])
        fast[f"not {check.name}"] = asker.check([query.stops], quiet=[query.flags[check.name]])
    return slow, fast


def alike(steps: LoweredTest, model: Model) -> None:
    slow, fast = answers(steps, model, model)
    assert slow == fast


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_tests(name: str) -> None:
    path = suite_dir() / f"{name}.litmus"
    if not path.exists():
        path = sorted((suite_dir() / name).parent.glob("*.litmus"))[0]
    alike(api.lowered(path), load_model("ptx-9.4"))


@examples(12)
@given(program=strategies_programs.programs())
def test_generated_programs(program: Program) -> None:
    alike(api.lowered(Source("generated.litmus", program.text)), load_model("ptx-9.4"))


@examples(25)
@given(program=strategies_bytes.programs(most=4), text=model_texts())
def test_generated_models(program: Program, text: str) -> None:
    alike(api.lowered(Source("generated.litmus", program.text)), parse_model(Source("generated.cat", text)))


def test_the_comparison_can_fail() -> None:
    steps, model = api.lowered(suite_dir() / "isa" / "MP.litmus"), load_model("ptx-9.4")
    slow, fast = answers(steps, model.without("Causality"), model)
    assert slow["no"] is Satisfiable.UNSAT and fast["no"] is Satisfiable.SAT


# ---- rows ------------------------------------------------------------------------------------------------------------


def _naive_closure(found: list[int]) -> list[int]:
    while True:
        longer = [a | b for a, b in zip(found, rows.compose(found, found), strict=True)]
        if longer == found:
            return found
        found = longer


@pytest.mark.parametrize("count", [1, 2, 5, 13, 40])
def test_rows(count: int) -> None:
    choice = random.Random(count)
    for density in (0.02, 0.1, 0.5):
        some = [sum(1 << b for b in range(count) if choice.random() < density) for _ in range(count)]
        other = [sum(1 << b for b in range(count) if choice.random() < density) for _ in range(count)]
        assert rows.inverse(some) == [sum((some[a] >> b & 1) << a for a in range(count)) for b in range(count)]
        assert rows.compose(some, other) == [
            sum(1 << c for c in range(count) if any(row >> b & other[b] >> c & 1 for b in range(count))) for row in some
        ]
        assert rows.closure(some) == _naive_closure(some)
        parts = list(rows.components(some))
        assert sorted(one for part in parts for one in part) == list(range(count))


WRITERS = """PTX four-writers
{ x = 0; y = 0; }
P0 | P1 | P2 | P3 ;
st.relaxed.gpu x, 1 | st.relaxed.gpu x, 2 | st.weak x, 3 | ld.relaxed.gpu r0, x ;
st.relaxed.gpu y, 1 | st.weak y, 2 | st.weak x, 4 | ld.relaxed.gpu r1, x ;
exists (P3:r0 == 4 /\\ P3:r1 == 3)
"""


@pytest.mark.parametrize("edges", [-1, 10**9])
def test_coherence_is_transitive_if_it_is_asked_for_at_once_or_on_sight(
    edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.encode.communication.EDGES", edges)
    model = parse_model(Source("co.cat", "empty co & (po^-1) as forth\nflag ~empty ((co;co) \\ co) as broken\n"))
    query = encode(api.lowered(Source("writers.litmus", WRITERS)), model, 2, ())
    asker = Asker(query, Solver(query.graph.logic, Budget(seconds=60), time.monotonic()))
    assert asker.check([query.stops], raised=query.flags["broken"]) is Satisfiable.UNSAT
    assert asker.check([query.stops]) is Satisfiable.SAT


@examples(15)
@given(program=strategies_programs.programs())
def test_coherence_on_sight(program: Program) -> None:
    steps, model = api.lowered(Source("generated.litmus", program.text)), load_model("ptx-9.4")
    told = []
    with pytest.MonkeyPatch.context() as patch:
        for edges in (-1, 10**9):
            patch.setattr("memmodel.encode.communication.EDGES", edges)
            answer = api.judge(steps, model, Options("z3", Budget(seconds=60)))
            told.append((answer.observation, sorted({one.flag for one in answer.findings}), answer.axioms))
    assert told[0] == told[1]
