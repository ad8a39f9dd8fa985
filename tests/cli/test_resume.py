"""Long runs: a bar with the time left, control-C that keeps what is done, `--resume`, no process left over.

The bar needs a terminal, so the program runs on a pseudo-terminal here, with control-C as a person types it.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.patience import PATIENCE, alive, children, eventually, processor_seconds

from cli.test_process import GOOD, SLOW
from memmodel import engine
from memmodel.cli import main
from memmodel.errors import InputError
from memmodel.search.tasks import SynthesisTask
from memmodel.search.vocabulary import vocabulary
from memmodel.search.work import Processes, SearchJournal, run

pytestmark = [
    pytest.mark.turns(2),
    pytest.mark.skipif(sys.platform != "linux", reason="terminals and processes as Linux has them"),
]

SEARCH = ("synth", "--size", "7", "-j", "2", "--vocabulary", "core")


class Terminal:
    """The program on a terminal of its own. `text`: what it has written so far."""

    def __init__(self, *argv: object) -> None:
        import pty

        self.pid, self.number = pty.fork()
        if self.pid == 0:
            os.environ["COLUMNS"] = "150"
            os.execv(sys.executable, [sys.executable, "-P", "-m", "memmodel", *map(str, argv)])
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, until: str, seconds: float = PATIENCE) -> None:
        """Read until a pattern comes, or everything if it never does."""
        end = time.monotonic() + seconds
        while not re.search(until, self.text) and time.monotonic() < end:
            if select.select([self.number], [], [], 0.2)[0]:
                try:
                    data = os.read(self.number, 65536)
                except OSError:  # the other end is closed
                    return
                if not data:
                    return
                self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._decoder.decode(data))

    def ended(self) -> int:
        """The exit code, after everything was read."""
        self.read("(?!)")
        os.close(self.number)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def gone(pids: list[int]) -> bool:
    return eventually(lambda: not any(map(alive, pids)))


def has_lines(file: Path, count: int) -> bool:
    return eventually(lambda: file.exists() and len(file.read_text().splitlines()) >= count)


@pytest.fixture
def tests(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.litmus").write_text(GOOD.replace("PTX MP", f"PTX {name}"))
    (folder / "c.litmus").write_text(SLOW)
    return folder


@pytest.fixture
def judged(monkeypatch):
    """How many answers an engine was asked for."""
    asked, answer = [], engine.answer

    def counted(*given, **more):
        asked.append(given[0].test.name)
        return answer(*given, **more)

    monkeypatch.setattr(engine, "answer", counted)
    return asked


def suite(*argv: object) -> int:
    with pytest.raises(SystemExit) as left:
        main(["suite", "--model", "ptx-9.4", "--no-expect", "--no-cache", *map(str, argv)])
    return int(left.value.code)


def test_control_c_ends_a_suite_with_what_is_done_and_the_same_command_goes_on(tests, tmp_path, judged, capsys):
    kept = tmp_path / "run.kept"
    given = (tests, "--model", "ptx-9.4", "--no-cache", "--engine", "enumerate", "--resume", kept)
    child = Terminal("suite", *given)
    child.read(r"b\.litmus .*2/3 [-\d]+:[-\d]+")
    assert re.search(r"2/3 .*[-\d]+:[-\d]+", child.text), "a bar with the time left"
    os.write(child.number, b"\x03")
    assert child.ended() == 130
    assert "stopped after 2 of 3: 2 tests: 2 as expected" in child.text
    assert f"the same command goes on from {kept}" in child.text
    assert "Traceback" not in child.text
    (tests / "c.litmus").write_text(GOOD.replace("PTX MP", "PTX C"))
    assert suite(tests, "--engine", "enumerate", "--resume", kept) == 0
    assert judged == ["C"]
    assert "3 tests: 3 as expected" in capsys.readouterr().out
    (tests / "a.litmus").write_text(GOOD.replace("PTX MP", "PTX a").replace("st.weak x, 1", "st.weak x, 2"))
    assert suite(tests, "--engine", "enumerate", "--resume", kept) == 0
    assert judged == ["C", "a"], "a test that was edited is judged anew"
    assert suite(tests, "--engine", "z3", "--resume", kept) == 0
    assert sorted(judged[2:]) == ["C", "a", "b"], "and so is one that is asked in another way"


def test_an_undecided_answer_is_kept_for_the_same_budget_alone(tmp_path, judged):
    test, kept = tmp_path / "slow.litmus", tmp_path / "run.kept"
    test.write_text(SLOW)
    given = (test, "--engine", "z3", "--resume", kept, "--budget")
    assert [suite(*given, steps) for steps in ("10k", "10k", "11k")] == [3, 3, 3]
    assert len(judged) == 2


def test_a_file_that_is_no_record_of_a_suite_stays_as_it_is(tests, tmp_path, capsys):
    (tests / "c.litmus").unlink()
    other = tmp_path / "notes"
    for text in (b"my notes\n", b"SQLite format 3\0" + bytes(200), bytes(5000)):
        other.write_bytes(text)
        assert suite(tests, "--resume", other) == 2
        assert other.read_bytes() == text
        assert f"{other}: no record of a suite" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, "/dev/null", tmp_path / "pipe", tmp_path / "missing" / "file"):
        assert suite(tests, "--resume", place) == 2
        assert str(place) in capsys.readouterr().err
    assert not (tmp_path / "missing").exists()


def test_control_c_ends_a_search_with_what_it_found_and_leaves_no_worker(tmp_path):
    kept = tmp_path / "search.kept"
    child = Terminal(*SEARCH, "--resume", kept)
    child.read(r"[4-6] instructions .*\d+/\d+ [-\d]+:[-\d]+")
    workers = children(child.pid)
    assert len(workers) >= 2
    os.write(child.number, b"\x03")
    assert child.ended() == 130
    assert re.search(r"minimally forbidden: \d+ shapes, up to [3-6] of 7 .*; stopped by a signal", child.text)
    assert f"the same command goes on from {kept}" in child.text
    assert "Traceback" not in child.text
    assert gone(workers)
    lines = len(kept.read_text().splitlines())
    again = Terminal(*SEARCH, "--resume", kept)
    assert has_lines(kept, lines + 1), "it goes on"
    os.write(again.number, b"\x03")
    assert again.ended() == 130
    late = Terminal(*SEARCH, "--timeout", "1")
    assert late.ended() == 3
    assert "seconds ran out" in " ".join(late.text.split())  # a terminal wraps it


def test_a_search_whose_worker_is_killed_goes_on_and_one_without_memory_is_undecided(tmp_path):
    kept = tmp_path / "search.kept"
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-P", "-m", "memmodel", *SEARCH, "--resume", kept], **more)
    assert has_lines(kept, 3)
    os.kill(children(child.pid)[0], 9)
    assert has_lines(kept, len(kept.read_text().splitlines()) + 3)
    child.send_signal(signal.SIGINT)
    said, err = child.communicate()
    assert child.returncode == 130 and f"the same command goes on from {kept}\n" in err
    assert said.rstrip().endswith("; stopped by a signal")
    found = run(SynthesisTask("ptx-9.4", vocabulary(["core"]), 7), Processes(1, 1 << 20))
    assert (found.interrupted, found.reason) == (True, "the budget of 1 MB of memory ran out")


def test_workers_of_a_search_end_with_it_however_it_ends(tmp_path):
    kept = tmp_path / "search.kept"
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "memmodel", *SEARCH, "--resume", kept], stdout=subprocess.DEVNULL
    )
    assert has_lines(kept, 3)
    workers = children(child.pid)
    child.kill()
    child.wait()
    assert workers and gone(workers)


@pytest.mark.parametrize(
    "more", [b"", b"[1]\n", b'{"size": 1}\n', b'{"size": 2, "chunk": 0, "results": 7}\n', b"\xff{"]
)
def test_lines_of_a_record_that_are_damaged_count_as_not_done(tmp_path, more):
    kept = tmp_path / "kept"
    SearchJournal(str(kept), "key").add(1, 0, [{"size": 1}])
    with kept.open("ab") as handle:
        handle.write(more)
    SearchJournal(str(kept), "key").add(1, 1, [])
    assert SearchJournal(str(kept), "key").done == {(1, 0): [{"size": 1}], (1, 1): []}


def test_a_file_of_something_else_is_no_record_of_a_search(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes").write_bytes(b"\xff my notes\n")
    (tmp_path / "json").write_text("[1, 2]\n")
    for name in ("pipe", "notes", "json", ""):
        with pytest.raises(InputError):
            SearchJournal(str(tmp_path / name), "key")
    assert (tmp_path / "notes").read_bytes() == b"\xff my notes\n"


def test_a_search_ends_in_time_while_it_lists_shapes(tmp_path):
    with processor_seconds(15):
        found = run(SynthesisTask("ptx-9.4", vocabulary(["async", "tensor"]), 9), Processes(1), seconds=1)
    assert found.interrupted and "ran out" in found.reason
