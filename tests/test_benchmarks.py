"""The generated main loops of benchmarks/ are the shipped ones, so that their curve speaks of real tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from memmodel.base.resources import suite_dir
from memmodel.litmus import parse_litmus
from memmodel.source import Source

GENERATOR = Path(__file__).resolve().parent.parent / "benchmarks" / "pipelines.py"


@pytest.mark.parametrize(("stages", "iterations"), [(2, 2), (2, 3), (3, 3)])
def test_the_generated_main_loop_is_the_shipped_one(stages: int, iterations: int) -> None:
    spec = importlib.util.spec_from_file_location("pipelines", GENERATOR)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    generated = parse_litmus(Source("generated.litmus", module.main_loop(stages, iterations)))
    path = suite_dir() / "async" / "pipelines" / f"gemm-tcgen05-{stages}x{iterations}.litmus"
    shipped = parse_litmus(Source.read(path))
    assert generated.threads == shipped.threads
    assert generated.variables == shipped.variables
    assert generated.condition == shipped.condition
