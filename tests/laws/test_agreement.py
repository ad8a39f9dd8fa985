"""Both engines give one answer: the same observation, the same findings and hangs, the same final states.

They share the lowered test, the parsed model and the tables of base names, and nothing below.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.agreement import agree
from helpers.examples import examples
from helpers.strategies import bytes as strategies_bytes
from helpers.strategies import programs as strategies_programs
from helpers.strategies.programs import Program, model_texts
from hypothesis import given

from memmodel import api
from memmodel.answer import Answer, Observation
from memmodel.cat import load_model, parse_model
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.program.lowered import LoweredTest
from memmodel.source import Source

MODELS = ("sc", "ptx-6.0", "ptx-7.5", "ptx-9.4")


@pytest.mark.share(2)
@pytest.mark.parametrize("name", MODELS)
@examples(9)
@given(program=strategies_programs.programs())
def test_engines_agree_under_shipped_models(name: str, program: Program) -> None:
    agree(program.text, load_model(name))


@examples(15)
@given(program=strategies_bytes.programs())
def test_engines_agree_on_bytes(program: Program) -> None:
    agree(program.text, load_model("ptx-9.4"))


@examples(25)
@given(program=strategies_programs.programs(most=6), text=model_texts())
def test_engines_agree_under_any_model(program: Program, text: str) -> None:
    agree(program.text, parse_model(Source("generated.cat", text)))


@examples(10)
@given(program=strategies_bytes.programs(most=4, finding=False), text=model_texts())
def test_engines_agree_on_bytes_under_any_model(program: Program, text: str) -> None:
    agree(program.text, parse_model(Source("generated.cat", text)))


def test_a_mask_makes_an_address_of_a_value_that_may_be_anything() -> None:
    """What the counter holds is not a short list; its last bit is one of two."""
    counted = (
        "atom.acquire.cluster.global.add.u32 %r1, [x], 1;",
        "and.b32 %o, %r1, 1;",
        "shl.b32 %o, %o, 2;",
        "add.u64 %a, t, %o;",
        "atom.acq_rel.sys.global.cas.b32 %r4, [%a], 1, 2;",
        "st.weak.global.u32 [x], %r4;",
    )
    program = Program(("cta 0, gpu 0", "cta 0, gpu 0"), (counted, ("ld.weak.global.u32 %r1, [x];",)), "exists (x == 0)")
    answer = agree(program.text, load_model("ptx-9.4"))
    assert answer.observation is Observation.ALWAYS and not answer.unsearched


# ---- the comparison can fail -------------------------------------------------------------------------------------


def message_passing(question: str) -> str:
    return Program(
        ("cta 0, gpu 0", "cta 1, gpu 0"),
        (
            ("st.weak.global.u32 [x], 1;", "st.release.gpu.global.u32 [y], 1;"),
            ("ld.acquire.gpu.global.u32 %r0, [y];", "ld.weak.global.u32 %r1, [x];"),
        ),
        question,
    ).text


@pytest.mark.parametrize(
    ("question", "dropped"),
    [
        (r"exists (P1:r0 == 1 /\ P1:r1 == 0)", "Causality"),
        (r"exists (P1:r0 == 1 /\ P1:r1 == 0)", "data-race"),
        ("~exists race", "data-race"),
    ],
)
def test_a_wrong_engine_would_be_noticed(question: str, dropped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give Z3 a model without one axiom, or without one flag."""
    text, model = message_passing(question), load_model("ptx-9.4")
    agree(text, model)
    right = api.judge

    def wrong(steps: LoweredTest, model: Model, options: Options, **others: Any) -> Answer:
        return right(steps, model.without(dropped) if options.engine == "z3" else model, options, **others)

    monkeypatch.setattr(api, "judge", wrong)
    with pytest.raises(AssertionError):
        agree(text, model)
