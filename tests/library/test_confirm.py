"""`--confirm`: the engine that did not give an answer is asked as well."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from helpers import fuzz

from memmodel import api
from memmodel.answer import Budget, Confirmation, Observation
from memmodel.base.resources import suite_dir
from memmodel.engine import Options
from memmodel.errors import InternalError

SHAPES = suite_dir() / "shapes"
SB = SHAPES / "SB+weak@same-cta.litmus"
TILE = suite_dir() / "bytes" / "B13.litmus"


@pytest.mark.parametrize("engine, words", [("z3", "confirmed by enumeration: "), ("enumerate", "confirmed by Z3")])
def test_the_other_engine_is_asked(engine: str, words: str) -> None:
    code, out, _ = fuzz._run(("check", str(SB), "--engine", engine, "--confirm", "--json", "-"))
    record = json.loads(out)[0]
    assert code == 0 and record["confirmed"] is True and record["confirmation"].startswith(words)
    code, out, _ = fuzz._run(("check", str(SB), "--engine", engine, "--confirm"))
    assert out.splitlines()[1].startswith(f"  {words}")


def test_how_many_executions_enumeration_judged() -> None:
    """SB has two reads of two writes each: rf is chosen in four ways, and co has nothing to choose."""
    report = _confirmed(SB, "sc", "z3", Budget())
    assert report.confirmation is not None and 1 <= report.confirmation.executions <= 4


def test_a_test_that_is_too_large_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.engine.MANY", 1)
    report = _confirmed(SB, "ptx-9.4", "z3", Budget())
    assert report.confirmation is not None and not report.confirmation.agrees
    assert report.confirmation.text == "not confirmed: too large to enumerate"


def test_an_engine_that_does_not_come_to_an_end_confirms_nothing() -> None:
    steps, model = api.lowered(TILE), api.load("ptx-9.4")
    report = api.report_on(steps, model, Options("z3"))
    late = api.confirmed(report, steps, model, Options("z3", Budget(effort=10_000)))
    assert late.confirmation is not None and not late.confirmation.agrees
    assert "ran out" in late.confirmation.text


def test_engines_that_disagree_are_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, model = api.lowered(SB), api.load("ptx-9.4")
    report = api.report_on(steps, model, Options("z3"))
    wrong = replace(report, answer=replace(report.answer, observation=Observation.NEVER))
    with pytest.raises(InternalError, match=r"z3 answers never .* and enumerate answers sometimes"):
        api.confirmed(wrong, steps, model, Options("z3"))
    fewer = replace(report, answer=replace(report.answer, findings=()))
    with pytest.raises(InternalError, match="flags: none"):
        api.confirmed(fewer, steps, model, Options("z3"))


def test_an_undecided_answer_has_nothing_to_confirm() -> None:
    assert _confirmed(TILE, "ptx-9.4", "enumerate", Budget(effort=1_000)).confirmation is None


def test_a_suite_counts_what_is_confirmed(tmp_path) -> None:
    (tmp_path / "t.litmus").write_text(SB.read_text())
    code, out, _ = fuzz._run(("suite", str(tmp_path), "--model", "sc", "--confirm", "--no-expect"))
    assert code == 0 and "1 confirmed" in out
    code, out, _ = fuzz._run(("suite", str(tmp_path), "--model", "sc", "--no-expect"))
    assert "confirmed" not in out


def test_words() -> None:
    assert Confirmation("enumerate", 1).text == "confirmed by enumeration: 1 execution"
    assert Confirmation("enumerate", 36).text == "confirmed by enumeration: 36 executions"


def _confirmed(path, model: str, engine: str, budget: Budget):
    steps, loaded, options = api.lowered(path), api.load(model), Options(engine, budget)
    return api.confirmed(api.report_on(steps, loaded, options), steps, loaded, options)
