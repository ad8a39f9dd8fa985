"""The library beside `check`: suites, models, parsing and formatting; every result is one line at a prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, judged
from helpers.places import ROOT

import memmodel
from memmodel import api
from memmodel.answer import HANG
from memmodel.base.codes import Exit
from memmodel.base.oneline import WIDTH, shown
from memmodel.cli.app import app
from memmodel.emit import emit
from memmodel.engine import Options
from memmodel.repair.fix import fix
from memmodel.repair.weaken import weaken
from memmodel.report.readings import ReadingsReport

A2 = str(ROOT / "litmus/async/proxy/A2.litmus")
TEST = "PTX {name}\n{expect}\n.global .u32 x;\nthread P0 @ cta 0 {{ st.u32 [x], 1; }}\nexists (x == 1)\n"


def test_every_public_name_loads() -> None:
    for name in memmodel.__all__:
        assert getattr(memmodel, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        memmodel.nothing  # noqa: B018


# ---- suites ----------------------------------------------------------------------------------------------------


def write(path: Path, expect: str) -> Path:
    path.write_text(TEST.format(name=path.stem, expect=expect))
    return path


def test_a_suite_is_its_entries(tmp_path: Path) -> None:
    write(tmp_path / "a.litmus", "Expect=ptx-9.4:always")
    write(tmp_path / "b.litmus", "Expect=ptx-9.4:never")
    seen: list[memmodel.Entry] = []
    result = memmodel.suite(tmp_path, "ptx-9.4", progress=seen.append)
    assert list(result) == list(result.entries) == seen
    assert len(result) == 2
    assert [entry.outcome.value for entry in result] == ["as expected", "differs"]
    assert [Path(entry.path).name for entry in result.surprises] == ["b.litmus"]
    assert result.exit_code == Exit.DIFFERS == 1
    assert result.summary.startswith("2 tests: 1 as expected, 1 differ, 0 bad, 0 undecided (")
    assert [record["status"] for record in result.to_json()] == ["as expected", "differs"]


def test_a_suite_takes_one_path_or_several_and_several_models(tmp_path: Path) -> None:
    first, second = (write(tmp_path / f"{name}.litmus", "") for name in "ab")
    assert len(memmodel.suite(str(first), no_expect=True)) == 1
    assert len(memmodel.suite([first, second], ["ptx-9.4", "ptx-7.5"], no_expect=True)) == 4


def test_a_suite_that_expects_nothing_is_bad_input_unless_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.litmus", "")
    assert memmodel.suite(path).exit_code == Exit.BAD_INPUT
    assert memmodel.suite(path, no_expect=True).exit_code == Exit.AS_EXPECTED


def test_a_bad_file_is_an_entry_and_a_bad_path_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.litmus").write_text("nonsense")
    (entry,) = memmodel.suite(tmp_path)
    assert entry.report is None and "bad.litmus" in entry.message
    assert memmodel.suite(tmp_path).exit_code == Exit.BAD_INPUT
    for call in (lambda: memmodel.suite(tmp_path / "none"), lambda: memmodel.suite(tmp_path, "ptx-9.9")):
        with pytest.raises(memmodel.InputError):
            call()


def test_a_suite_takes_a_csv_of_expectations(tmp_path: Path) -> None:
    write(tmp_path / "a.litmus", "")
    write(tmp_path / "b.litmus", "")
    (tmp_path / "x.csv").write_text("path,holds\na.litmus,1\n")
    result = memmodel.suite(tmp_path, expected=tmp_path / "x.csv")
    assert [entry.outcome.value for entry in result] == ["as expected"]
    assert [Path(path).name for path in result.unlisted] == ["b.litmus"]


# ---- models, text ----------------------------------------------------------------------------------------------


def test_models_are_those_that_the_command_lists() -> None:
    found = memmodel.models()
    printed = CliRunner().invoke(app, ["models"]).output.splitlines()
    assert [line.split()[0] for line in printed] == [one.name for one in found]
    assert all(one.title for one in found)
    assert api.DEFAULT_MODEL in [one.name for one in found if not one.reading]
    assert {one.name for one in found if one.reading} == set(api.reading_models()[1:])


def test_parse_takes_a_path_or_a_text() -> None:
    test = memmodel.parse(A2)
    assert test == memmodel.parse(Path(A2)) == memmodel.parse(Path(A2).read_text())
    assert isinstance(test, memmodel.LitmusTest)
    with pytest.raises(memmodel.InputError, match="1:1"):
        memmodel.parse("nonsense\n")


def test_format_is_what_fmt_prints() -> None:
    printed = CliRunner().invoke(app, ["fmt", A2]).output
    assert memmodel.format(A2) == memmodel.format(memmodel.parse(A2)) == printed
    columns = str(ROOT / "litmus/shapes/MP+rel.cta+acq.gpu@two-ctas.litmus")
    blocks = memmodel.format(columns, "blocks")
    assert CliRunner().invoke(app, ["fmt", columns, "--layout", "blocks"]).output == blocks
    assert "thread P0" in blocks and memmodel.format(blocks) == blocks


# ---- one line at a prompt --------------------------------------------------------------------------------------

BROKEN = "PTX broken\n.global .u32 x;\nthread P0 @ cta 0 { st.u32 [x], 1; }\nthread P1 @ cta 1 { ld.u32 %r0, [x]; }\n"
LONG = TEST.format(name="n" * 300, expect="")


def results() -> dict[str, Callable[[], object]]:
    report = api.check(A2)
    answer = report.answer
    hang = api.check(str(ROOT / "litmus/async/proxy/tensor-2d-half-expected.litmus"))
    models, options = (api.load("ptx-9.4"),), Options()
    race = BROKEN + "exists (P1:r0 == 0)\n"
    one = ReadingsReport.of(memmodel.parse(A2), "ptx-9.4", dict.fromkeys(api.reading_models(), answer))
    return {
        "Report": lambda: report,
        "Report of a long name": lambda: api.check(LONG),
        "Answer": lambda: answer,
        "Answer of a hang": lambda: hang.answer,
        "Witness": lambda: report.execution,
        "Witness of a hang": lambda: next(f.witness for f in hang.answer.findings if f.flag == HANG),
        "Finding": lambda: answer.findings[0],
        "ShownEvent": lambda: answer.findings[0].first,
        "Outcomes": lambda: memmodel.outcomes(race),
        "FinalValues": lambda: memmodel.outcomes(race).states[0],
        "ReadingsReport": lambda: one,
        "ReadingAnswer": lambda: one.readings[0],
        "SuiteResult": lambda: memmodel.suite(A2),
        "Entry": lambda: memmodel.suite(A2).entries[0],
        "ShippedModel": lambda: memmodel.models()[-1],
        "LitmusTest": lambda: memmodel.parse(A2),
        "Model": lambda: models[0],
        "EmittedModule": lambda: emit(memmodel.parse(A2)),
        "Fixed": lambda: fix("t", race, models, options, seconds=2),
        "Weaker": lambda: weaken(
            "t", BROKEN.replace("; }", "; fence.sc.gpu; }", 1) + "exists (P1:r0 == 0)\n", models, options
        ),
        "KernelVerdict": lambda: judged(NEIGHBOUR.format(sync="")),
    }


def test_every_result_is_one_line_that_says_what_matters() -> None:
    lines = {name: repr(make()) for name, make in results().items()}
    for name, text in lines.items():
        assert text.startswith(f"<{name.split()[0]} ") and text.endswith(">")
        assert len(text) <= WIDTH and "\n" not in text
    assert lines["Report"] == "<Report A2 under ptx-9.4: sometimes; exists (g == 0) holds; as expected>"
    assert lines["Finding"] == "<Finding data-race; P0: W s = 1 and P1: R.cp.async.bulk s = 0>"
    assert "vacuous" in lines["Answer of a hang"] and "hang" in lines["Answer of a hang"]
    assert "waits for ever" in lines["Witness of a hang"]
    assert "data-race" in lines["KernelVerdict"]


def test_a_long_line_is_cut() -> None:
    assert shown("Kind", "a" * 500) == f"<Kind {'a' * (WIDTH - 11)} ...>"
    assert shown("Kind", "a", "", "b\nc") == "<Kind a; b c>"
