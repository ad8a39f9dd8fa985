"""`memmodel mutate-model` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.places import ROOT
from jsonschema import Draft202012Validator

from memmodel.cli.app import app

MODEL = """"small"
let unused = po
acyclic rf | co | fr | po & loc as Coherent
acyclic [W] ; (rf | po & loc) ; [M] as Typed
"""

TESTS = {
    "CoRR": """PTX CoRR
{EXPECT}
.global .u32 x;
thread P0 @ cta 0 {{ st.weak.global.u32 [x], 1; }}
thread P1 @ cta 0 {{ ld.weak.global.u32 %r0, [x]; ld.weak.global.u32 %r1, [x]; }}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
""",
    "LB": """PTX LB
{EXPECT}
.global .u32 x;
.global .u32 y;
thread P0 @ cta 0 {{ ld.weak.global.u32 %r0, [x]; st.weak.global.u32 [y], 1; }}
thread P1 @ cta 0 {{ ld.weak.global.u32 %r0, [y]; st.weak.global.u32 [x], 1; }}
exists (P0:r0 == 1 /\\ P1:r0 == 1)
""",
}


def written(folder: Path, *, never: str = "Expect=small.cat:never", sometimes: str = "") -> tuple[str, str]:
    """A model and a folder of tests."""
    model = folder / "small.cat"
    model.write_text(MODEL)
    for name, text in TESTS.items():
        expect = never if name == "CoRR" else sometimes
        (folder / f"{name}.litmus").write_text(text.format(EXPECT=expect).replace("\n\n", "\n", 1))
    return str(model), str(folder)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["mutate-model", *words])


def test_each_edit_has_its_smallest_test_or_none(tmp_path: Path) -> None:
    model, tests = written(tmp_path, never="", sometimes="")
    result = run(model, tests, "--all", "--jobs", "1")
    assert result.exit_code == 1, result.output
    lines = result.output.splitlines()
    by_edit = dict(zip(lines[:-1:2], lines[1::2], strict=True))
    test = f"{tmp_path}/CoRR.litmus"
    assert by_edit["small.cat:3 Coherent: without the axiom `Coherent`"] == (
        f"  a test fails: {test}, never becomes sometimes"
    )
    assert by_edit["small.cat:3 Coherent: without `po & loc`"].endswith("never becomes sometimes")
    assert by_edit["small.cat:3 Coherent: without `loc`"] == (
        f"  a test fails: {tmp_path}/LB.litmus, sometimes becomes never"
    )
    assert by_edit["small.cat:4 Typed: without `[W]`"] == "  survives"
    assert by_edit["small.cat:4 Typed: without `[M]`"] == (
        "  equivalent: no labels of events can tell the expressions apart"
    )
    assert "by 2 tests" in lines[-1] and "by no test" in lines[-1]


def test_an_answer_that_no_expect_line_speaks_of_counts_as_such(tmp_path: Path) -> None:
    model, tests = written(tmp_path, sometimes="Expect=small:sometimes")
    result = run(model, tests, "--all", "--jobs", "1", "--only", "Coherent", "--expect", "small")
    assert "LB.litmus, sometimes becomes never" in result.output
    assert "CoRR" not in result.output  # it speaks of another model
    unknown = run(model, tests, "--only", "unused")
    assert unknown.exit_code == 2
    assert "no edit of `unused`" in unknown.output


def test_json_is_as_its_schema_says(tmp_path: Path) -> None:
    model, tests = written(tmp_path, never="")
    result = run(model, tests, "--json", "-", "--jobs", "1")
    record = json.loads(result.stdout)
    Draft202012Validator(json.loads((ROOT / "docs" / "schema" / "mutate-model.json").read_text())).validate(record)
    assert record["tests"] == 2
    assert sum(record["counts"].values()) == len(record["edits"])
    fates = {(edit["rule"], edit["what"]): edit["fate"] for edit in record["edits"]}
    assert fates["Coherent", "without the axiom `Coherent`"] == "a test fails"


def test_a_run_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tests = written(tmp_path, never="")
    journal = str(tmp_path / "kept")
    first = run(model, tests, "--resume", journal, "--jobs", "1")
    from memmodel.mutate.work import FileJudge

    def never(*_: object) -> None:
        raise AssertionError("judged again")

    monkeypatch.setattr(FileJudge, "small", never)
    again = run(model, tests, "--resume", journal, "--jobs", "1")
    assert again.output == first.output
    other = run(model, tests, "--resume", journal, "--only", "Typed", "--jobs", "1")
    assert other.exit_code == 2
    assert "another run" in other.output


def test_a_run_without_time_says_what_was_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tests = written(tmp_path, never="")
    import memmodel.mutate.run as running

    monkeypatch.setattr(running, "monotonic", lambda: float("inf"))
    result = run(model, tests, "--timeout", "5", "--jobs", "1")
    assert result.exit_code == 3
    assert result.output.splitlines()[-1].endswith("undecided; the budget of 5 seconds ran out, 2 tests not judged")


def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    model, tests = written(tmp_path, never="")
    assert run(model, tests, "--all", "--jobs", "2").output == run(model, tests, "--all", "--jobs", "1").output


def test_large_tests_are_judged_by_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import memmodel.mutate.work as work

    model, tests = written(tmp_path, never="")
    whole = run(model, tests, "--all", "--jobs", "1").output
    monkeypatch.setattr(work, "candidates", lambda *_, **__: None)
    assert run(model, tests, "--all", "--jobs", "1").output == whole


def test_a_listing_judges_nothing(tmp_path: Path) -> None:
    model, tests = written(tmp_path)
    result = run(model, tests, "--list")
    assert result.exit_code == 0
    assert "small.cat:4:9 Typed: without `[W]`" in result.output
    assert result.output.splitlines()[-1].startswith("small: ")


def test_a_search_finds_a_program_where_no_test_does(tmp_path: Path) -> None:
    model, _ = written(tmp_path, never="")
    test = str(tmp_path / "LB.litmus")
    words = ["--only", "Coherent", "--search", "2", "--vocabulary", "ld.weak,st.weak", "--jobs", "1", "--json", "-"]
    edits = {edit["what"]: edit for edit in json.loads(run(model, test, *words).stdout)["edits"]}
    found = edits["without `fr`"]
    assert found["fate"] == "a program differs"
    assert found["how"] == "2 instructions"
    assert "exists (P0:r1 == 0 /\\ x == 1)" in found["program"]
    assert edits["`loc` -> `vloc`"]["fate"] == "survives"
    assert edits["`loc` -> `vloc`"]["how"].startswith("no difference up to 2 instructions")
