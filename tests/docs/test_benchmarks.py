"""The generated main loops of benchmarks/ are the shipped ones, so that their curve speaks of real tests; and what
benchmarks/explanations.py finds wrong with explanations: nothing."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from helpers.places import ROOT

from memmodel.base.resources import suite_dir
from memmodel.litmus import parse_litmus
from memmodel.source import Source

BENCHMARKS = ROOT / "benchmarks"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("stages", "iterations"), [(2, 2), (2, 3), (3, 3)])
def test_the_generated_main_loop_is_the_shipped_one(stages: int, iterations: int) -> None:
    module = loaded("pipelines")
    generated = parse_litmus(Source("generated.litmus", module.main_loop(stages, iterations)))
    path = suite_dir() / "async" / "pipelines" / f"gemm-tcgen05-{stages}x{iterations}.litmus"
    shipped = parse_litmus(Source.read(path))
    assert generated.threads == shipped.threads
    assert generated.variables == shipped.variables
    assert generated.condition == shipped.condition


def test_explanations_hold_when_they_are_looked_up(capsys: pytest.CaptureFixture[str]) -> None:
    module = loaded("explanations")
    module.main(
        [str(suite_dir() / one) for one in ("isa", "async/proxy/A1.litmus", "shapes/RMW-chain+two@two-ctas.litmus")]
    )
    output = capsys.readouterr().out
    counts = {
        what: int(number) for number, _, what in (line.strip().partition(" ") for line in output.splitlines()[:-1])
    }
    assert "WRONG" not in counts and counts["nevers with axioms"] > 1 and counts["edges looked up"] > 10
    assert counts["left one out: sometimes"] == counts["nevers with axioms"]
