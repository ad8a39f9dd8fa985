"""Readings: the decisions that the model files speak of, and what a test's condition depends on."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path

import pytest
from helpers.places import ROOT

import memmodel
from memmodel import api
from memmodel.answer import Answer, Observation
from memmodel.base.resources import axioms_dir
from memmodel.cat import load_model
from memmodel.cat.decisions import decisions
from memmodel.cli import main
from memmodel.report.readings import ReadingsReport, Verdict

pytestmark = pytest.mark.turns(2)

LITMUS = ROOT / "litmus"
DOCS = ROOT / "docs"
PLACED = LITMUS / "proxy" / "MP+store-F.tex+tld@two-ctas.litmus"
DECIDED = LITMUS / "generic" / "H2.litmus"

NEVER, SOMETIMES = Answer(Observation.NEVER, "z3"), Answer(Observation.SOMETIMES, "z3")
UNDECIDED = Answer(Observation.UNDECIDED, "z3", reason="the budget ran out")


def made(default: Answer, **others: Answer) -> ReadingsReport:
    """A report in which all readings answer as the default does, except the ones given as D2_accessor=…."""
    from helpers.report_samples import litmus_test

    answers = dict.fromkeys(api.reading_models(), default)
    answers |= {f"readings/{name.replace('_', '-')}": answer for name, answer in others.items()}
    return ReadingsReport.of(litmus_test(), "ptx-9.4", answers)


# ---- the decisions -------------------------------------------------------------------------------------------


def test_every_decision_has_a_question_two_sides_and_a_source():
    numbers = [one.number for one in decisions()]
    assert len(set(numbers)) == len(numbers) >= 17
    order = [int(re.sub(r"\D", "", number)) for number in numbers]
    assert sorted(set(order)) == list(range(1, max(order) + 1)) and order == sorted(order)
    for one in decisions():
        assert one.question.endswith("?") and one.source.endswith(".")
        assert one.readings and all(side.answer.endswith(".") for side in (one.default, *one.readings))
        assert len({side.name for side in (one.default, *one.readings)}) == 1 + len(one.readings)


@pytest.mark.parametrize("name", api.reading_models()[1:])
def test_a_reading_changes_definitions_of_the_default_model_and_nothing_else(name):
    default, reading = load_model("ptx-9.4"), api.load(name)
    assert reading.name == name
    assert [check.name for check in reading.checks] == [check.name for check in default.checks]
    assert reading.definitions != default.definitions


@pytest.mark.parametrize("name", api.reading_models()[1:])
def test_a_reading_includes_the_default_model_and_overrides_few_definitions(name):
    text = re.sub(r"\(\*.*?\*\)", "", (axioms_dir() / f"{name}.cat").read_text(), flags=re.DOTALL)
    _, include, *rest = (line for line in text.splitlines() if line.strip() and not line.startswith(("//", " ")))
    assert include == 'include "../ptx-9.4.cat"'
    assert 1 <= len(rest) <= 4
    assert all(line.startswith(("let ", "override let ")) for line in rest)


def separating(model: str) -> list[str]:
    """The shipped tests that expect another word of this reading than of the default model."""
    found = []
    for path in sorted((ROOT / "litmus").rglob("*.litmus")):
        words = dict(part.split(":") for part in re.findall(r"[\w./-]+:\w+", expectation(path)))
        if model in words and words[model] != words.get("ptx-9.4"):
            name = path.relative_to(ROOT / "litmus").with_suffix("").as_posix().removeprefix("async/")
            found.append(f"`{name}`")
    return sorted(found, key=lambda name: "readings/" not in name)


def expectation(path: Path) -> str:
    return "".join(re.findall(r"^Expect=.*$", path.read_text(), re.MULTILINE))


def long_list() -> str:
    lines = []
    for one in decisions():
        lines.append(f"**{one.number}. {one.question}**\n")
        for side in (one.default, *one.readings):
            told_apart = "" if side.model is None else ", ".join(separating(side.model)[:4])
            tests = "The default." if side.model is None else f"Tests: {told_apart or 'of kernels alone'}."
            lines.append(wrapped(f"- `{one.number} {side.name}`: {side.answer} {tests}", "  "))
        lines.append("\n" + wrapped(f"Left open by {one.source}", "") + "\n")
    return "\n".join(lines)


def short_list() -> str:
    rows = [f"| {one.number} | {one.question} | {one.default.answer} |" for one in decisions()]
    return "\n".join(["| | question | we chose |", "|---|---|---|", *rows, ""])


def wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


@pytest.mark.parametrize(("page", "made"), [("readings.md", long_list), ("model.md", short_list)])
def test_the_pages_list_what_the_cat_files_say(page, made):
    path = DOCS / page
    text = path.read_text()
    begin, end = "<!-- decisions: begin -->\n", "<!-- decisions: end -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    wanted = f"{before}{begin}\n{made()}\n{end}{after}"
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        path.write_text(wanted)
    assert path.read_text() == wanted, "MEMMODEL_REWRITE=1 brings the page up to date"


@pytest.mark.share(3)
@pytest.mark.parametrize("name", api.reading_models()[1:])
def test_every_reading_is_told_apart_by_a_shipped_test(name):
    """D19 and D20 are about lanes of a warp, which tests of kernels tell apart (kernel/machine/test_engines.py and
    test_barriers.py)."""
    assert bool(separating(name)) is (name not in ("readings/D19-together", "readings/D20-all"))


# ---- verdicts ------------------------------------------------------------------------------------------------


def test_all_models_agree():
    assert made(NEVER).verdict is Verdict.FORBIDDEN
    assert made(SOMETIMES).verdict is Verdict.ALLOWED
    assert made(Answer(Observation.ALWAYS, "z3")).verdict is Verdict.ALLOWED
    assert made(Answer(Observation.VACUOUS, "z3", reason="all wait")).verdict is Verdict.FORBIDDEN
    assert made(UNDECIDED).verdict is Verdict.UNDECIDED


def test_a_reading_that_says_the_opposite_is_named_with_both_sides_and_the_source():
    text = made(NEVER, D2_accessor=SOMETIMES).explain().splitlines()
    assert text[0] == (
        "MP under ptx-9.4 and its readings: depends: forbidden under D2 path (default), allowed under D2 accessor"
    )
    assert "  D2: Where may a proxy fence stand?" in text
    assert any(line.startswith("    left open by ") for line in text)


def test_one_decision_is_told_once_and_several_one_after_the_other():
    head = made(SOMETIMES, D2_accessor=NEVER, D2_anywhere=NEVER, D8_mma_cp=NEVER).explain().splitlines()[0]
    assert "forbidden under D2 accessor and D2 anywhere; allowed under D8 listed (default)" in head


def test_what_could_not_be_decided_is_said():
    report = made(NEVER, D2_accessor=UNDECIDED)
    assert (report.verdict, report.undecided) == (Verdict.UNDECIDED, ("D2 accessor",))
    both = made(NEVER, D2_accessor=UNDECIDED, D3_implicit=SOMETIMES)
    assert both.verdict is Verdict.DEPENDS
    assert "undecided under D2 accessor" in both.explain()


def test_the_record_is_json_with_the_documented_keys():
    record = json.loads(json.dumps(made(NEVER, D2_accessor=SOMETIMES).to_json()))
    assert record["verdict"] == "depends"
    (found,) = record["depends"]
    assert (found["decision"], found["default"]["name"], found["other"]["name"]) == ("D2", "path", "accessor")
    assert (found["default"]["verdict"], found["other"]["verdict"]) == ("forbidden", "allowed")
    section = (DOCS / "json.md").read_text().partition("## `check --readings`")[2].partition("\n## ")[0]
    assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")] == list(record)


# ---- with the engines ----------------------------------------------------------------------------------------


def test_where_a_proxy_fence_stands_is_a_matter_of_reading():
    told: list[str] = []
    report = memmodel.readings(PLACED, progress=told.append)
    assert {reading.name for reading in report.depends} == {"D2 accessor", "D2 anywhere"}
    assert report.default is Verdict.ALLOWED
    assert tuple(told) == api.reading_models()


def test_the_command_prints_writes_and_exits(capsys, tmp_path):
    out_file = tmp_path / "out.json"
    with pytest.raises(SystemExit) as left:
        main(["check", "--readings", str(PLACED), str(DECIDED), "--json", str(out_file)])
    out = capsys.readouterr().out
    assert left.value.code == 0
    assert "depends: allowed under D2 path (default)" in out and "readings: forbidden\n" in out
    assert [record["verdict"] for record in json.loads(out_file.read_text())] == ["depends", "forbidden"]


@pytest.mark.parametrize(
    "argv, code", [(("no-such-file",), 2), ((str(DECIDED), "--model", "sc"), 2), ((str(PLACED), "--budget", "1"), 3)]
)
def test_what_cannot_be_decided_has_its_exit_code(argv, code, capsys):
    with pytest.raises(SystemExit) as left:
        main(["check", "--readings", "--engine", "z3", *argv])
    assert left.value.code == code


def test_readings_are_listed(capsys):
    for argv, wanted in ((["models"], "readings/D2-accessor"), (["names", "-m", "ptx-9.4"], "D2 accessor")):
        with pytest.raises(SystemExit):
            main(argv)
        assert wanted in capsys.readouterr().out
