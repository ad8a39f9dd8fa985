"""The generated main loops of benchmarks/ are the shipped ones, so that their curve speaks of real tests; what
benchmarks/explanations.py finds wrong with explanations: nothing; and which changes benchmarks/mutants.py makes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from helpers.places import ROOT

from benchmarks import mutants, repairs
from benchmarks.argued import ARGUED
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


def test_a_repair_is_judged_again() -> None:
    files = (suite_dir() / "shapes" / f"2+2W+{fence}.gpu@two-ctas.litmus" for fence in ("sc", "rel"))
    assert [repairs._right(*repairs.blocks(str(file))) for file in files] == [True, False]


CHANGED = """class A:
    def f(self, x: int | None) -> bool:
        def inner() -> bool:
            return not x
        assert x == 1
        if x is None or x < 2 and inner():
            return min(x, 3)
        return [y for y in x if y]
"""


def test_the_changes_of_a_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(CHANGED)
    made = {(mutant.line, mutant.function, mutant.old, mutant.new) for mutant in mutants.mutants_of(tmp_path / "a.py")}
    whole, both = "x is None or x < 2 and inner()", "x < 2 and inner()"
    assert made == {
        (4, "A.f.<locals>.inner", "not x", "bool(x)"),
        (6, "A.f", whole, f"(({both}))"),
        (6, "A.f", whole, "((x is None))"),
        (6, "A.f", both, "((inner()))"),
        (6, "A.f", both, "((x < 2))"),
        (6, "A.f", "x is None", "(x is not None)"),
        (6, "A.f", "x < 2", "(x <= 2)"),
        (6, "A.f", "x < 2", "(x >= 2)"),
        (7, "A.f", "min(x, 3)", "max(x, 3)"),
        (8, "A.f", "y", "(not y)"),
    }


def test_what_is_argued_of_a_mutant_is_about_the_text_as_it_is() -> None:
    files = {name.partition(":")[0] for name in ARGUED}
    names = {mutant.name for file in files for mutant in mutants.mutants_of(ROOT / file)}
    assert set(ARGUED) <= names
