"""`memmodel kernel DIRECTORY`: every kernel under its own launch, and a run that was cut off goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, kernel_text

from memmodel.cli.app import app
from memmodel.kernel.check import conductor
from memmodel.search import work

RACY, SYNCHRONIZED = (kernel_text(NEIGHBOUR.format(sync=sync)) for sync in ("", "bar.sync 0;"))


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A directory with four kernels; the files that were judged."""
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("a/copy.ptx", SYNCHRONIZED), ("a/copy-broken.ptx", RACY), ("b.ptx", SYNCHRONIZED), ("c.ptx", "no module"),
    ):  # fmt: skip
        (tmp_path / "k" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "k" / name).write_text(text)
    (tmp_path / "k" / "a" / "copy.launch.json").write_text('{"grid": 2, "block": 64}')
    monkeypatch.setattr(work, "workers", lambda *asked: work.HereAndNow())
    files, judge = [], conductor.judge_case

    def noted(case: conductor.KernelCase, *args: object) -> object:
        files.append(case.module.source.name)
        return judge(case, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(conductor, "judge_case", noted)
    return files


def run(*words: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(app, ["kernel", *words])
    return result.exit_code, [" ".join(line.split()) for line in result.output.splitlines()]


def test_each_kernel_has_a_row_and_the_worst_code_counts(judged: list[str], tmp_path: Path) -> None:
    code, (broken, fixed, without, unread, last) = run("k", "--json", "out.json")
    assert broken == "findings 1 data-race k/a/copy-broken.ptx k" and fixed == "clean k/a/copy.ptx k"
    assert without.startswith("undecided") and without.endswith(" k/b.ptx k")  # nothing says how it is launched
    assert unread.startswith("bad input") and last == "4 kernels: 1 bad input, 1 clean, 1 findings, 1 undecided"
    rows = json.loads((tmp_path / "out.json").read_text())
    assert code == 2 and [(row["file"], row["verdict"]) for row in rows] == [
        ("k/a/copy-broken.ptx", "findings"), ("k/a/copy.ptx", "clean"), ("k/b.ptx", "undecided"),
        ("k/c.ptx", "bad input"),
    ]  # fmt: skip
    assert rows[3]["why"] in unread and rows[3]["entry"] is None
    assert run("k/a", "k/b.ptx", "--grid", "1", "--block", "64", "--short")[0] == 1


def test_a_run_that_was_cut_off_goes_on(judged: list[str], tmp_path: Path) -> None:
    whole = run("k", "--resume", "kept")
    assert judged == ["k/a/copy-broken.ptx", "k/a/copy.ptx", "k/b.ptx"]
    first, *kept = (tmp_path / "kept").read_text().splitlines()
    kept.sort(key=lambda line: json.loads(line)["chunk"])  # as they were done
    (tmp_path / "kept").write_text("\n".join([first, kept[0], kept[1][:40]]))  # killed while it wrote the second
    assert run("k", "--resume", "kept") == whole and judged[3:] == ["k/a/copy.ptx", "k/b.ptx"]
    assert run("k", "--resume", "kept") == whole and len(judged) == 5
    (tmp_path / "k" / "b.ptx").write_text(RACY)
    code, message = run("k", "--resume", "kept")
    assert code == 2 and "another" in message[0], "the file is about other texts"


def test_questions_about_one_kernel_are_not_asked_of_a_directory(judged: list[str]) -> None:
    assert run("k", "--fix")[0] == 2 and run("k/b.ptx", "--resume", "kept")[0] == 2 and not judged
