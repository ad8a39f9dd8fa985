"""Both engines give one answer: the same observation, the same final states, the same flagged pairs.

They share the parsed test, the parsed model and the instruction table, and nothing below. Run more examples with
`MEMMODEL_EXAMPLES=50 pytest tests/test_agreement.py`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from strategies_programs import Program, judged, model_texts, programs, quick

from memmodel import engine, litmus
from memmodel.answer import Answer, Budget, Observation, Race, ShownEvent
from memmodel.cat import load_model, parse_model
from memmodel.cat.syntax import Model
from memmodel.litmus.syntax import LitmusTest
from memmodel.source import Source

MODELS = ("sc", "ptx-6.0", "ptx-7.5", "ptx-9.3")
LITTLE = Budget(effort=4_000_000, seconds=5)
"""A generated test that needs more than this is dropped: it says nothing in a test of agreement."""


def flagged(races: tuple[Race, ...]) -> set[tuple[str, frozenset[tuple[object, ...]]]]:
    """Races by flag and by the instruction and half (read or write) of both events."""

    def place(event: ShownEvent) -> tuple[object, ...]:
        half = "R" if "R" in event.tags else "W" if "W" in event.tags else "-"
        where = event.location if event.thread is None else event.span and event.span.start
        return (event.thread, where, half)

    return {(race.flag, frozenset((place(race.first), place(race.second)))) for race in races}


def answer(test: LitmusTest, model: Model, name: str) -> Answer:
    found = engine.answer(test, model, engine=name, budget=LITTLE, bound=2)
    judged(found.observation is not Observation.UNDECIDED and "budget" not in found.reason)
    return found


def agree(text: str, model: Model) -> None:
    """Both engines say the same of a test."""
    test = litmus.parse_litmus(Source("generated.litmus", text))
    slow, fast = answer(test, model, "enumerate"), answer(test, model, "z3")
    where = f"under {model.name}\n{text}"
    assert fast.observation is slow.observation, where
    assert fast.bound == slow.bound, where
    assert flagged(fast.races) == flagged(slow.races), where
    assert set(fast.flags) == set(slow.flags), where
    states = engine.outcomes(test, model, engine="enumerate", budget=LITTLE, bound=2)
    judged(states.complete)
    again = engine.outcomes(test, model, engine="z3", budget=LITTLE, bound=2)
    judged(again.complete)
    assert again.states == states.states, where
    assert any(state.satisfies for state in states.states) == (
        slow.observation in (Observation.SOMETIMES, Observation.ALWAYS)
    ), where


@pytest.mark.parametrize("name", MODELS)
@quick(60)
@given(program=programs())
def test_engines_agree_under_shipped_models(name: str, program: Program) -> None:
    agree(program.text, load_model(name))


@quick(120)
@given(program=programs(most=6), text=model_texts())
def test_engines_agree_under_any_model(program: Program, text: str) -> None:
    agree(program.text, parse_model(Source("generated.cat", text)))


def test_a_wrong_engine_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: give Z3 a model without one axiom, and message passing shows it."""
    text = Program(
        ("cta 0, gpu 0", "cta 1, gpu 0"),
        (
            ("st.weak.global.u32 [x], 1;", "st.release.gpu.global.u32 [y], 1;"),
            ("ld.acquire.gpu.global.u32 %r0, [y];", "ld.weak.global.u32 %r1, [x];"),
        ),
        r"exists (P1:r0 == 1 /\ P1:r1 == 0)",
    ).text
    model = load_model("ptx-9.3")
    agree(text, model)
    right = engine.answer

    def wrong(test: LitmusTest, model: Model, **options: object) -> Answer:
        model = model.without("Causality") if options["engine"] == "z3" else model
        return right(test, replace(model), **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "answer", wrong)
    with pytest.raises(AssertionError):
        agree(text, model)
