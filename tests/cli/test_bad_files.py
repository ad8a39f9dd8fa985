"""Files that are no tests and no models, given to every command that takes one: exit code 2, a place, no traceback."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from helpers import fuzz

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


@pytest.mark.share(3)
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


@pytest.mark.parametrize("seconds", ["nan", "NaN", "inf", "-inf", "-1", "0", "1e400", "-nan", "1e7"])
@pytest.mark.parametrize("command", ["check t", "outcomes t", "suite t", "fix t", "kernel k -l l", "verify coherence"])
def test_a_timeout_is_a_number_of_seconds(seconds, command, run_command) -> None:
    code, said = run_command(*command.split(), f"--timeout={seconds}")
    assert code == 2 and "--timeout" in said and "Traceback" not in said


@pytest.fixture
def run_command(capsys):
    def run(*argv: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main(list(argv))
        return left.value.code, "".join(capsys.readouterr())

    return run


@pytest.mark.parametrize("kind", ["fifo", "endless", "large"])
def test_a_kept_model_that_is_none(kind, tmp_path, monkeypatch) -> None:
    """Whatever lies in its place, it is ignored, at once."""
    from memmodel import cat
    from memmodel.cat import kept

    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path))
    monkeypatch.setattr(kept, "_LOADED", {})
    monkeypatch.setattr(kept, "_ON_DISK", [True])
    cat.load_model("sc")
    for file in tmp_path.glob(f"*{kept.SUFFIX}"):
        file.unlink()
        if kind == "fifo":
            os.mkfifo(file)
        elif kind == "endless":
            file.symlink_to("/dev/zero")
        else:
            with file.open("wb") as handle:
                handle.truncate(kept.LARGEST + 1)
    monkeypatch.setattr(kept, "_LOADED", {})
    assert cat.load_model("sc").axioms


def test_a_cache_that_is_locked_is_waited_for_once(tmp_path) -> None:
    import sqlite3
    import time

    from memmodel.cache.store import Store

    store = Store(tmp_path)
    store.put("a", "text")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    for number in range(100):
        assert store.get(str(number)) is None
        store.put(str(number), "text")
    assert time.monotonic() - began < 30  # 100 s if each were to wait
    other.execute("COMMIT")
    store.put("b", "text")
    assert store.get("a") == store.get("b") == "text" and not store.trouble
    store.close()


def test_a_model_of_too_many_checks(tmp_path, run_command) -> None:
    (tmp_path / "m.cat").write_text('"m"\n' + "".join("empty rf & po as same\n" for _ in range(40_000)))
    (tmp_path / "t.litmus").write_text(GOOD)
    code, said = run_command("check", str(tmp_path / "t.litmus"), "--model", str(tmp_path / "m.cat"))
    assert code == 2 and "more than 5,000 checks" in said


JSON_DOORS = {
    "a launch": "kernel k.ptx --launch bad.json",
    "a baseline": "kernel k.ptx --launch l.json --baseline bad.json",
    "a table of costs": "sync good.litmus --costs bad.json",
    "a pipeline": "sync bad.json",
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ' + "[" * 200_000, r"bad\.json:1:206: error: .*nested too deeply"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", r"bad\.json:1:206: error: .*nested too deeply"),
        ('{"a": ' + '{"]": ' * 100_000, r"bad\.json:1:\d+: error: .*nested too deeply"),
        ('{"a":\n' + "7" * 5000 + "}", r"bad\.json:2:1: error: .*a number of too many digits"),
        ('{"a":\n1,}', r"bad\.json:2:3: error: .*: Expecting property name"),
        ('{"a":\n"\udcff"}', r"bad\.json.*not"),
    ],
    ids=["unclosed", "closed", "objects", "digits", "comma", "not UTF-8"],
)
@pytest.mark.parametrize("door", JSON_DOORS)
def test_json_is_refused_with_its_place(door, text, message, tmp_path, monkeypatch, run_command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text(text, errors="surrogateescape")
    Path("good.litmus").write_text(GOOD)
    Path("k.ptx").write_text(fuzz.KERNEL)
    Path("l.json").write_text(json.dumps(fuzz.LAUNCH))
    code, said = run_command(*JSON_DOORS[door].split())
    assert code == 2 and re.search(message, said), said[:500]
    assert "recursion" not in said and "internal error" not in said and len(said) < 1500


def test_a_launch_in_a_comment_that_is_nested_too_deeply(tmp_path, run_command) -> None:
    (tmp_path / "k.ptx").write_text("// memmodel: launch " + "[" * 100_000 + "\n" + fuzz.KERNEL)
    code, said = run_command("kernel", str(tmp_path / "k.ptx"))
    assert code == 2 and "k.ptx:1:" in said and "not JSON: nested too deeply" in said
