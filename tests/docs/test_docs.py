"""What the documentation shows is what the program prints.

Every ```console block of README.md and docs/*.md is run, and the ```pycon blocks of a page are one doctest; times in
the output aside. `MEMMODEL_REWRITE=1 pytest tests/docs/test_docs.py` writes the output of today into the pages.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from helpers.examples import share
from helpers.places import ROOT

from memmodel.cat.load import configure
from memmodel.cli import main

REWRITE = os.environ.get("MEMMODEL_REWRITE") == "1"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = ROOT / "docs" / "examples" / "first"
QUOTED = re.compile(r"^```(?:litmus|cuda|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYCON = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: it looks like a checkout, and a command may write in it."""
    for name in ("litmus", "axioms", "docs", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def played(block: str) -> str:
    """The commands of a block, each followed by what it prints in the current directory."""
    shown = []
    for command in re.findall(r"^\$ memmodel (.*)$", block, re.MULTILINE):
        configure((), kept=True)  # the options of the command before count no more
        said = StringIO()
        with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit):
            main(shlex.split(command))
        shown.append(f"$ memmodel {command}\n{said.getvalue()}")
    return "".join(shown)


def timeless(text: str) -> str:
    return re.sub(r"\d+(\.\d+)? (m?s)\b", r"N \2", text)


@pytest.mark.parametrize("page", share(PAGES, 1 if REWRITE else 3), ids=lambda page: page.name)
def test_console_blocks_show_real_output(page: Path, place: Path) -> None:
    text = page.read_text()
    if REWRITE:
        page.write_text(CONSOLE.sub(lambda found: f"```console\n{played(found[1])}```", text))
        return
    for block in CONSOLE.findall(text):
        assert block.startswith("$ memmodel "), "a console block begins with a command"
        assert timeless(played(block)) == timeless(block), "MEMMODEL_REWRITE=1 brings the page up to date"


@pytest.mark.parametrize("page", ["first-test.md", "first-kernel.md"])
def test_files_of_the_first_pages_are_shipped(page: str) -> None:
    """A reader may type each file or take it from docs/examples/first, and both are the same."""
    shipped = {file.read_text() for file in FIRST.iterdir()}
    quoted = QUOTED.findall((ROOT / "docs" / page).read_text())
    assert len(quoted) >= 4
    assert [text for text in quoted if text not in shipped] == []


def test_pictures_are_what_draw_draws(place: Path) -> None:
    """docs/img/NAME.svg is the picture of the only shipped test or example of that name."""
    for picture in share(sorted((ROOT / "docs" / "img").glob("*.svg")), 1 if REWRITE else 3):
        (test,) = (*(ROOT / "litmus").rglob(f"{picture.stem}.litmus"), *FIRST.glob(f"{picture.stem}.litmus"))
        played(f"$ memmodel draw {test.relative_to(ROOT)} -o drawn.svg")
        drawn = (place / "drawn.svg").read_text()
        if REWRITE:
            picture.write_text(drawn)
        assert picture.read_text() == drawn, "MEMMODEL_REWRITE=1 draws it anew"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pycon_blocks_are_true(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = "\n".join(PYCON.findall(page.read_text()))
    test = doctest.DocTestParser().get_doctest(blocks, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text()), f"{target}#{anchor}"


def anchors(text: str) -> set[str]:
    """The names under which the headings of a page are linked to."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def test_the_first_screen_has_the_two_commands() -> None:
    """One installs and judges the suite, one installs and runs the tests; `.ci/run` takes the second from here."""
    commands = re.findall(r"^```sh\n(.*?)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    assert all("\n" not in command and "venv" in command for command in commands)
    assert "memmodel suite" in commands[0] and "pytest" in commands[1]
    head = (ROOT / "README.md").read_text().split(commands[1])[0]
    assert head.count("\n") < 25
