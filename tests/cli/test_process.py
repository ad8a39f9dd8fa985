"""The program as a process: signals, streams that are closed or full, files that cannot be written, workers.

Every test runs `python -m memmodel`, as a shell does.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path

import pytest
from helpers.examples import share
from helpers.patience import PATIENCE, alive, children, eventually, processor_time
from helpers.places import ROOT

pytestmark = [
    pytest.mark.turns(2),
    pytest.mark.skipif(sys.platform != "linux", reason="signals and /dev/full as Linux has them"),
]

GOOD = """PTX MP
Expect=ptx-9.4:never
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.weak x, 1        | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1 | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
TAKERS = range(18)
SLOW = f"""PTX tickets
{{ x = 0; }}
{" | ".join(f"P{i}@cta {i},gpu 0" for i in TAKERS)} ;
{" | ".join("atom.relaxed.gpu.add r0, x, 1" for i in TAKERS)} ;
exists ({f" /{chr(92)} ".join(f"P{i}:r0 != 17" for i in TAKERS)})
"""
"""Beyond any engine for longer than a test may take, in little memory: that one of so many takes the last ticket."""
LONG = ("--engine", "z3", "--budget", "3G", "--timeout", 600)


def start(*argv: object, **more) -> subprocess.Popen:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.Popen([sys.executable, "-m", "memmodel", *map(str, argv)], **given)


def wait_for(child: subprocess.Popen, file: Path, text: str) -> None:
    """Until some file beside it, written in its place, has the text."""

    def written() -> bool:
        return any(text in part.read_text() for part in file.parent.glob(f".{file.name}.*.part"))

    assert eventually(lambda: written() or child.poll() is not None)
    assert child.poll() is None, child.communicate()


def wait_until_it_solves(child: subprocess.Popen) -> None:
    """Until the process itself has worked on SLOW for so long that it is in the solver."""
    began = processor_time(child.pid)
    assert eventually(lambda: processor_time(child.pid) > began + 2 or child.poll() is not None)
    assert child.poll() is None, child.communicate()


def quiet(err: str) -> bool:
    return "Traceback" not in err and "Exception ignored" not in err and "internal error" not in err


@pytest.fixture
def tests(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "a.litmus").write_text(GOOD)
    (folder / "b.litmus").write_text(GOOD.replace("PTX MP", "PTX B"))
    (folder / "c.litmus").write_text(SLOW)
    return folder


@pytest.mark.parametrize(("jobs", "number"), share(product([1, 2], [signal.SIGINT, signal.SIGTERM]), 2))
def test_a_signal_keeps_what_is_done_and_the_summary_says_so(tests, tmp_path, jobs, number):
    out, xml = tmp_path / "out.json", tmp_path / "out.xml"
    child = start("suite", tests, "--model", "ptx-9.4", "--json", out, "--junit", xml, "-j", jobs, *LONG)
    wait_for(child, out, '"B"')
    if jobs == 1:
        wait_until_it_solves(child)
    child.send_signal(number)
    said, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 128 + number, err
    assert "stopped after 2 of 3: 2 tests: 2 as expected" in said
    assert err == "interrupted\n"
    assert [one["test"] for one in json.loads(out.read_text())] == ["MP", "B"]
    assert ElementTree.parse(xml).getroot().get("tests") == "2"
    assert not list(tmp_path.glob(".*.part"))


def test_a_program_that_was_started_to_ignore_control_c_ignores_it(tests, tmp_path):
    """As a script starts its background jobs."""
    out = tmp_path / "out.json"
    argv = ["suite", tests, "--model", "ptx-9.4", "--json", out, *LONG]
    child = start(*argv, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for(child, out, '"B"')
    wait_until_it_solves(child)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (128 + signal.SIGTERM, "interrupted\n")


def test_check_keeps_its_json_when_interrupted(tests, tmp_path):
    out = tmp_path / "out.json"
    child = start("check", tests, "--json", out, *LONG)
    wait_for(child, out, '"B"')
    wait_until_it_solves(child)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (130, "interrupted\n")
    assert len(json.loads(out.read_text())) == 2


def test_workers_end_with_their_parent_however_it_ends(tests, tmp_path):
    out = tmp_path / "out.json"
    child = start("suite", tests, "--model", "ptx-9.4", "--json", out, "-j", 2, *LONG)
    wait_for(child, out, '"B"')
    workers = children(child.pid)
    assert workers
    child.kill()
    child.wait()
    assert eventually(lambda: not any(map(alive, workers))), "a worker outlived its parent"


def test_a_signal_to_the_whole_group_reaches_the_workers_first(tests, tmp_path):
    """They wait for their parent, which knows that they did not die of their work."""
    out = tmp_path / "out.json"
    argv = ["suite", tests, "--model", "ptx-9.4", "--json", out, "-j", 2, *LONG]
    child = start(*argv, start_new_session=True)
    wait_for(child, out, '"B"')
    workers = children(child.pid)
    for one in workers:
        os.kill(one, signal.SIGTERM)
    time.sleep(0.2)
    assert workers and all(map(alive, workers))
    os.killpg(child.pid, signal.SIGTERM)
    said, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (128 + signal.SIGTERM, "interrupted\n")
    assert "stopped after 2 of 3: 2 tests: 2 as expected" in said
    assert eventually(lambda: not any(map(alive, workers))), "a worker that was killed lives on"


def test_a_killed_worker_costs_its_test(tests, tmp_path):
    out = tmp_path / "out.json"
    child = start("suite", tests, "--model", "ptx-9.4", "--json", out, "-j", 2, "--engine", "z3", "--timeout", 2)
    killed: set[int] = set()
    while child.poll() is None and len(killed) < 3:
        for worker in children(child.pid):
            if worker not in killed and len(killed) < 3:
                killed.add(worker)
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.1)
    said, err = child.communicate(timeout=PATIENCE)
    assert killed
    assert quiet(err) and child.returncode in (0, 3)
    assert "3 tests" in said and len(json.loads(out.read_text())) == 3


@pytest.mark.parametrize("delay", [0, 0.01, 0.02, 0.04, 0.08, 0.12, 0.2])
def test_control_c_at_once_leaves_no_traceback(tests, delay):
    """From the first moment on that Python has handed over to the program."""
    child = start("check", tests / "c.litmus", *LONG)
    while not _listens(child.pid, signal.SIGTERM):
        time.sleep(0.001)
    time.sleep(delay)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (130, "interrupted\n")


def _listens(pid: int, number: int) -> bool:
    """Does the process catch this signal, which Python by itself does not?"""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    "argv",
    share(
        ["--help", "--version", "names", "check a.litmus", "fmt a.litmus", "check a.litmus --json -", "check --help"], 3
    ),
)
def test_full_and_closed_streams(tests, argv):
    argv = argv.split()
    with open("/dev/full", "w") as full:
        child = start(*argv, stdout=full, cwd=tests)
        _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and quiet(err) and "No space left on device" in err
    with open("/dev/full", "w") as full:
        child = start(*argv, stdout=full, stderr=full, cwd=tests)
        child.communicate(timeout=PATIENCE)
    assert child.returncode == 2
    child = start(*argv, stdout=None, cwd=tests, preexec_fn=lambda: os.close(1))
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and quiet(err) and "closed" in err
    reader, writer = os.pipe()
    os.close(reader)
    child = start(*argv, stdout=writer, cwd=tests)
    os.close(writer)
    _, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, err) == (141, "")


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))


# The interpreter would leave compiled modules that are cut off, for all who come after.
NOTHING_COMPILED = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_full_disk_keeps_whole_results(tests, tmp_path):
    (tests / "c.litmus").write_text(GOOD.replace("PTX MP", "PTX C"))
    for number in range(8):
        (tests / f"d{number}.litmus").write_text(GOOD.replace("PTX MP", f"PTX D{number}"))
    out = tmp_path / "out.json"
    child = start("suite", tests, "--model", "ptx-9.4", "--json", out, preexec_fn=_small_files, env=NOTHING_COMPILED)
    said, err = child.communicate(timeout=PATIENCE)
    found = json.loads(out.read_text())
    assert 0 < len(found) < 11 and child.returncode == 2
    assert f"File too large; it has the first {len(found)} results" in err
    assert "11 tests: 11 as expected" in said


def test_a_failing_write_leaves_the_file_as_it_was(tests):
    big = GOOD.replace("{ x", "(* " + "long " * 4000 + "*)\n{   x")
    (tests / "a.litmus").write_text(big)
    child = start("fmt", "-i", tests / "a.litmus", preexec_fn=_small_files, env=NOTHING_COMPILED)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and quiet(err)
    assert (tests / "a.litmus").read_text() == big
    assert not list(tests.glob(".*.part"))


def test_pipes_and_devices_are_refused(tests, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    good = tests / "a.litmus"
    for argv in (
        ["check", pipe],
        ["check", "/dev/zero"],
        ["check", good, "--model", pipe],
        ["kernel", ROOT / "docs/examples/kernels/dsmem.ptx", "--launch", pipe],
        ["check", good, "--json", pipe],
        ["suite", good, "--junit", "/dev/full"],
        ["suite", tests, "--expected", pipe],
    ):
        child = start(*argv)
        _, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 2 and quiet(err), (argv, err)
        assert "is a pipe or a device, not a file" in err


def test_output_is_opened_before_the_first_test(tests, tmp_path):
    child = start("suite", tests, "--json", tmp_path / "none" / "out.json", *LONG)
    said, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2 and "No such file or directory" in err
    assert said == ""


def test_what_the_budget_left_half_made_is_not_complained_of(capfd, monkeypatch):
    """Z3's objects clear away what their `__init__` has not come to."""
    import z3

    from memmodel.cli.process import _unraisable

    class Other:
        def __del__(self):
            raise AttributeError("a mistake of ours")

    monkeypatch.setattr(sys, "unraisablehook", _unraisable)
    context = z3.Context.__new__(z3.Context)
    del context
    assert capfd.readouterr().err == ""
    other = Other()
    del other
    assert "a mistake of ours" in capfd.readouterr().err
