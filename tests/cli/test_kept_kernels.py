"""Answers of `memmodel kernel` that are kept: found again as they were, and only if nothing changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, kernel_text

from memmodel.cli.app import app
from memmodel.kernel.check import conductor

SIZES = ("--grid", "2", "--block", "64")
RACY = kernel_text(NEIGHBOUR.format(sync=""))


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries that were judged, and not known."""
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(RACY)
    entries, judge = [], conductor.judge_case

    def noted(*args: object) -> object:
        entries.append("k")
        return judge(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(conductor, "judge_case", noted)
    return entries


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["kernel", "k.ptx", *words])
    return result.exit_code, result.output


def test_an_answer_is_found_again_in_every_form(judged: list[str], tmp_path: Path) -> None:
    first = run(*SIZES)
    assert first[0] == 1 and "data-race" in first[1]
    assert run(*SIZES, "--json", "j", "--sarif", "s", "--jobs", "2") == first
    assert run(*SIZES, "--short")[1].startswith("findings k k.ptx data-race@")
    assert judged == ["k"]
    kept, log = ((tmp_path / name).read_text() for name in "js")
    assert run(*SIZES, "--no-cache", "--json", "j", "--sarif", "s") == first and judged == ["k", "k"]
    assert json.loads(kept)["findings"] == json.loads((tmp_path / "j").read_text())["findings"]
    assert log == (tmp_path / "s").read_text()


def test_what_changes_an_answer_is_judged_again(judged: list[str], tmp_path: Path) -> None:
    """The text, the launch in words, in a file and in a comment, options, the model, a source with comments."""
    (tmp_path / "l.json").write_text('{"grid": 2, "block": 64}')
    (tmp_path / "k.cu").write_text("\n\n")
    located = RACY.replace("ld.param", ".loc 1 3 1\nld.param") + '\n.file 1 "k.cu"\n'
    for number, (text, words) in enumerate((
        (RACY, SIZES), (RACY + "\n// another", SIZES), (RACY, ("--grid", "3", "--block", "64")),
        (RACY, ("-l", "l.json")), (RACY, (*SIZES, "--readings")), (RACY, (*SIZES, "--model", "ptx-9.3")),
        ('// memmodel: launch {"grid": 2, "block": 64}\n' + RACY, ()), (located, SIZES),
    )):  # fmt: skip
        (tmp_path / "k.ptx").write_text(text)
        code, output = run(*words)
        assert code == 1, output
        assert len(judged) == number + 1, words
        assert run(*words) == (code, output) and len(judged) == number + 1, words
    (tmp_path / "k.cu").write_text('\n\n// memmodel: ignore data-race "for a test"\n')
    assert run(*SIZES)[0] == 0
    (tmp_path / "l.json").write_text('{"grid": 2, "block": 32}')
    (tmp_path / "k.ptx").write_text(RACY)
    run("-l", "l.json")
    assert len(judged) == 10


def test_what_ran_out_of_its_budget_is_judged_again(judged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    judge = conductor.judge_case

    def spent(*args: object) -> object:
        kernel = judge(*args)  # type: ignore[arg-type]
        kernel.verdict.spent = True
        return kernel

    monkeypatch.setattr(conductor, "judge_case", spent)
    assert run(*SIZES) == run(*SIZES) and judged == ["k", "k"]
