"""What `suite` prints on a terminal and elsewhere; what its exit code and its JUnit say when nothing was expected."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from memmodel import batch
from memmodel.cli.app import app
from memmodel.cli.listing import run_suite
from memmodel.cli.options import model_names
from memmodel.cli.tables import TextTable, show

TEST = "PTX {name}\n{expect}\n.global .u32 x;\nthread P0 @ cta 0 {{ st.u32 [x], 1; }}\nexists (x == 1)\n"


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test as expected, one that is not, and one that cannot be read; the last has brackets in its name."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    (tmp_path / "good.litmus").write_text(TEST.format(name="good", expect="Expect=ptx-9.4:always"))
    (tmp_path / "wrong.litmus").write_text(TEST.format(name="wrong", expect="Expect=ptx-9.4:never"))
    (tmp_path / "bad[red].litmus").write_text("PTX bad\nnonsense\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, verbose: bool) -> tuple[int, list[str]]:
    monkeypatch.setattr(sys, "stdout", stream)
    work = batch.plan(["."], ["ptx-9.4"])
    code = run_suite(work, batch.Settings(), 1, json_out=None, junit_out=None, verbose=verbose)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    return code, [" ".join(line.split()) for line in plain.splitlines() if line.strip(" ─")]


def test_a_terminal_gets_a_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, lines = ran(Terminal(), monkeypatch, verbose=True)
    assert code == 2
    assert lines[0] == "outcome test model what happens"
    assert "as expected ./good.litmus ptx-9.4 always" in lines
    assert "differs ./wrong.litmus ptx-9.4 always, expected never" in lines
    assert any(line.startswith("bad ./bad[red].litmus") for line in lines)
    assert lines[-1].startswith("3 tests: 1 as expected, 1 differ, 1 bad, 0 undecided (")


def test_a_table_of_surprises_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, lines = ran(Terminal(), monkeypatch, verbose=False)
    assert not any("good.litmus" in line for line in lines)
    assert any(line.startswith("differs ./wrong.litmus") for line in lines)


def test_anything_else_gets_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, lines = ran(io.StringIO(), monkeypatch, verbose=False)
    assert "differs ./wrong.litmus under ptx-9.4: always, expected never" in lines
    assert not any(line.startswith("outcome") for line in lines)


def test_tables_take_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    show([TextTable("", ("a", "b"), [("[bold]x", "\udcff")])], stream)
    assert "[bold]x" in stream.getvalue()


def test_a_run_that_cannot_fail_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.litmus").write_text(TEST.format(name="t", expect=""))
    junit = tmp_path / "o.xml"
    runner = CliRunner()
    assert runner.invoke(app, ["suite", str(tmp_path)]).exit_code == 2
    done = runner.invoke(app, ["suite", str(tmp_path), "--no-expect", "--junit", str(junit)])
    assert done.exit_code == 0
    root = ElementTree.parse(junit).getroot()
    assert float(root.attrib["time"]) >= 0 and re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", root.attrib["timestamp"])
    (case,) = root
    assert float(case.attrib["time"]) >= 0
    assert [child.tag for child in case] == ["skipped"] and case[0].attrib["message"] == "always; no expectation"
    assert "nothing" not in junit.read_text()


def test_the_shell_completes_names_of_models() -> None:
    names = model_names("ptx-")
    assert "ptx-9.4" in names and all(name.startswith("ptx-") for name in names)
    assert any(name.startswith("readings/D2") for name in model_names("readings/"))
    assert model_names("none") == []
