"""Tiny random models on small shipped tests: every command answers, and both engines give one answer."""

from __future__ import annotations

import pytest
from helpers import fuzz
from helpers.examples import examples
from helpers.tiny_models import tiny_models
from hypothesis import given
from hypothesis import strategies as st

from memmodel import api
from memmodel.answer import Budget, Observation
from memmodel.base.resources import suite_dir
from memmodel.cat import parse_model
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.source import Source

TESTS = (
    "shapes/SB+exch@two-ctas.litmus", "shapes/SB+weak@same-cta.litmus", "shapes/CoWW.litmus",
    "shapes/2+2W+weak@same-cta.litmus", "shapes/CoRR+volatile@two-gpus.litmus", "shapes/LB+weak@same-cta.litmus",
    "shapes/MP+exch.rel+cas.acq@two-ctas.litmus",
    "bytes/B13.litmus", "bytes/B10-hang.litmus", "bytes/B2-race.litmus", "bytes/single-copy.litmus",
)  # fmt: skip
BUDGET = ("--timeout", "3", "--budget", "300k")
EFFORT = Budget(300_000, 3.0)

ONE_ORDER = """"Sequential consistency as one order of everything"
with S from linearisations(~IW, po)
let past = (W * R) & loc & (S | IW * R)
let last = past \\ ((S | IW * (W \\ IW)) ; past)
empty (rf \\ last) | (last \\ rf) as Reads
"""
WERE_WRONG = (
    "empty fr as NoFr",
    "irreflexive [SC]",
    "empty [F & SC]",
    "empty F & SC",
    "acyclic [R]",
    "empty (po ; rf) as A",
    "irreflexive (po | id) as Q",
    "~empty (rf & loc & ext) as Neg",
    "~empty F & SC",
    ONE_ORDER,
)


def commands(name: str, model: str, folder) -> None:
    """Each command answers with a code that is documented, within its budget."""
    folder.joinpath("m.cat").write_text(model)
    test = str(suite_dir() / name)
    for command in (("check",), ("explain",), ("fix", "--search", "2"), ("draw", "-o", str(folder / "x.svg"))):
        argv = (command[0], test, "--model", str(folder / "m.cat"), *command[1:])
        code, out, err = fuzz._run((*argv, *BUDGET) if command[0] != "fix" else (*argv, "--budget", "300k"))
        assert code in fuzz.CODES and "internal error" not in err, f"{argv}: {code}\n{model}{err}{out}"


def answers(name: str, text: str) -> None:
    """Both engines give one answer, where both give one."""
    model = parse_model(Source("m.cat", text))
    path = suite_dir() / name
    found = [api.check(path, model, engine=engine, budget=EFFORT).answer for engine in ("z3", "enumerate")]
    if any(answer.observation is Observation.UNDECIDED for answer in found):
        return
    assert found[0].observation is found[1].observation, f"{name}\n{text}{found}"
    if not any(answer.unsearched for answer in found):
        assert set(found[0].flags) == set(found[1].flags), f"{name}\n{text}"


@pytest.mark.share(4)
@pytest.mark.parametrize("model", WERE_WRONG)
@pytest.mark.parametrize("name", TESTS[:1] + TESTS[4:5] + TESTS[7:8])
def test_models_that_were_taken_wrongly(model: str, name: str, tmp_path) -> None:
    commands(name, model + "\n", tmp_path)
    answers(name, model + "\n")


HANGS = """PTX hangs
.global .u32 y = 0;
thread P0 @ cta 0 { bar.sync 1, 64; }
thread P1 @ cta 1 { ld.relaxed.gpu.u32 %r0, [y]; }
thread P2 @ cta 2 { st.relaxed.gpu.u32 [y], 1; }
exists (true)
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_finding_of_one_hang_is_told_beside_those_of_another(engine: str) -> None:
    """Neither flag names events, and each is raised in one of the two executions, both of which hang."""
    model = parse_model(Source("m.cat", "flag empty [IW] ; rf as of-write\nflag empty [W \\ IW] ; rf as of-start\n"))
    found = api.judge(api.lowered(Source("hangs.litmus", HANGS)), model, Options(engine))
    assert set(found.flags) == {"of-write", "of-start", "hang"}


@examples(20)
@given(tiny_models(), st.sampled_from(TESTS))
def test_random_models(tmp_path_factory, text: str, name: str) -> None:
    try:
        parse_model(Source("m.cat", text))
    except InputError:
        return  # an axiom of another kind, or one name twice
    commands(name, text, tmp_path_factory.mktemp("tiny"))
    answers(name, text)
