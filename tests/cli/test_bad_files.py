"""Files that are no tests and no models, given to every command that takes one: exit code 2, a place, no traceback."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from cli.test_process import GOOD
from memmodel.cli import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and devices as Unix has them")

TEST_COMMANDS = {
    "check": "check {}",
    "outcomes": "outcomes {}",
    "suite": "suite {}",
    "draw": "draw {} -o -",
    "fmt": "fmt {}",
    "ptx": "ptx {}",
    "explain": "explain {}",
    "fix": "fix {}",
    "weaken": "weaken {}",
    "diff": "diff sc ptx-9.4 {}",
    "kernel": "kernel {} --launch {}",
}

MODEL_COMMANDS = {
    "check": "check good.litmus --model {}",
    "outcomes": "outcomes good.litmus --model {}",
    "suite": "suite good.litmus --model {}",
    "draw": "draw good.litmus -o - --model {}",
    "explain": "explain good.litmus --model {}",
    "fix": "fix good.litmus --model {}",
    "weaken": "weaken good.litmus --model {}",
    "diff": "diff sc {} good.litmus",
    "names": "names --model {}",
    "verify": "verify {}",
    "verify under": "verify coherence --model {} -j 1",
    "synth": "synth --model {} --size 2 -j 1",
    "search": "diff {} sc --search 2 -j 1",
    "expected": "suite good.litmus --expected {}",
}

TEXTS = {
    "empty": b"",
    "cut off": GOOD.encode()[:120],
    "binary": bytes(range(256)) * 12,
    "large": b"st.weak x, 1 ;\n" * 140_000,
    "not utf-8": b"PTX \xff\xfe\n",
}


@pytest.fixture(params=[*TEXTS, "missing", "directory", "fifo", "device"])
def bad(request, tmp_path, monkeypatch):
    """The name of a file that no command can use, in a folder with a good test."""
    monkeypatch.chdir(tmp_path)
    Path("good.litmus").write_text(GOOD)
    name = "bad.cat"
    if request.param in TEXTS:
        Path(name).write_bytes(TEXTS[request.param])
    elif request.param == "directory":
        Path(name).mkdir()
    elif request.param == "fifo":
        os.mkfifo(name)
    elif request.param == "device":
        Path(name).symlink_to("/dev/zero")
    return name


@pytest.mark.parametrize("command", [*TEST_COMMANDS, *(f"model of {name}" for name in MODEL_COMMANDS)])
def test_every_command_refuses_it_with_its_place(bad, capsys, command):
    said = TEST_COMMANDS.get(command) or MODEL_COMMANDS[command.removeprefix("model of ")]
    with pytest.raises(SystemExit) as left:
        main([part.format(bad) for part in said.split()])
    out, err = capsys.readouterr()
    told = out + err
    assert left.value.code == 2, told
    assert re.search(rf"{bad}(:\d+:\d+)?\b", told), told
    assert "Traceback" not in told and "internal error" not in told
    assert len(told) < 3000, "no line of such a file is of use to anybody"
