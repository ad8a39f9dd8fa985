"""Launches of a program are judged while it runs, and the program does not notice, whatever it does.

The programs run under a stand-in for Triton (`helpers/stubs`); `test_real.py` has some under Triton itself.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.patience import PATIENCE
from helpers.triton_programs import run_program

from memmodel.errors import InputError
from memmodel.triton import judging_process
from memmodel.triton.__main__ import main
from memmodel.triton.options import WatchOptions

pytestmark = pytest.mark.turns(2)

START = "from memmodel.triton import startup; startup.begin()"
"""What the .pth file does when Python starts; in these tests nothing is installed."""

BEGIN = "import memmodel.triton as mt; watch = mt.install(wait=300)\n"


def test_a_race_is_printed_and_the_program_ends_as_ever(tmp_path: Path) -> None:
    run = run_program(tmp_path, BEGIN + "racy[(1,)](x, y, 64, BLOCK=64, num_warps=2); print('done'); sys.exit(7)")
    assert (run.returncode, run.stdout) == (7, "done\n")
    assert "memmodel: findings: k (BLOCK=64, num_warps=2)" in run.stderr
    assert "data-race" in run.stderr and "kernels.py:8:5" in run.stderr and "kernels.py:9:5" in run.stderr
    assert "memmodel: 1 kernel: 1 findings" in run.stderr


def test_nothing_but_the_variable_is_needed(tmp_path: Path) -> None:
    """As installed: the .pth file runs before the program, which loads Triton whenever it likes."""
    launch = "racy[(1,)](x, y, 64, BLOCK=64, num_warps=2); good[(1,)](x, y, 64, BLOCK=64)\n"
    code = f"{START}; import runpy; runpy.run_path('program.py', run_name='__main__')"
    run = run_program(tmp_path, launch, "-c", code, env={"MEMMODEL_TRITON": "wait=300"})
    assert run.returncode == 0 and "memmodel: 2 kernels: 1 clean, 1 findings" in run.stderr
    quiet = run_program(tmp_path, launch, "-c", code, env={"MEMMODEL_TRITON": ""})
    assert (quiet.returncode, quiet.stderr) == (0, "")
    module = run_program(tmp_path, launch + "print(sys.argv)", "-m", "memmodel.triton", "program.py", "a", "b")
    assert module.stdout == "['program.py', 'a', 'b']\n" and "1 findings" in module.stderr
    other_rank = {"MEMMODEL_TRITON": "1", "LOCAL_RANK": "3"}
    assert run_program(tmp_path, launch, "-c", code, env=other_rank).stderr == ""


def test_a_wrong_option_leaves_the_program_alone(tmp_path: Path) -> None:
    code = f"{START}; import runpy; runpy.run_path('program.py', run_name='__main__')"
    run = run_program(tmp_path, "good[(1,)](x, y, 64, BLOCK=64); print('done')", "-c", code,
                      env={"MEMMODEL_TRITON": "wiat=3"})  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "done\n")
    assert "are not watched" in run.stderr and "wiat=3" in run.stderr
    with pytest.raises(InputError, match="is no option"):
        WatchOptions.of_text("seconds=long")
    assert WatchOptions.of_text("launches=3,wait=0,only=a:b") == WatchOptions(launches=3, wait=0, only=("a", "b"))


def test_a_specialization_is_judged_once_and_its_verdict_is_kept(tmp_path: Path) -> None:
    text = """
for number in range(20):
    good[(number + 1,)](x, y, 64, BLOCK=64)
    good[(1,)](Tensor(0x7100_0000_0000 + 4096 * number), y, 64, BLOCK=64)
racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)
"""
    first = run_program(tmp_path, BEGIN + text)
    assert "memmodel: 2 kernels: 1 clean, 1 findings" in first.stderr
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "triton").glob("*.json")}
    assert len(kept) == 2
    again = run_program(tmp_path, BEGIN + text)
    assert "memmodel: 2 kernels: 1 clean, 1 findings" in again.stderr
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "triton").glob("*.json")} == kept
    several = run_program(tmp_path, BEGIN.replace("wait", "launches=3, wait") + text)
    assert "memmodel: 4 kernels: 3 clean, 1 findings" in several.stderr


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("good[(1,)](x, y, 64, BLOCK=64); raise KeyError('mine')", 1, "KeyError: 'mine'"),
        ("good[(1,)](x, y, 64, BLOCK=64); os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("good[(1,)](x, y, 64, BLOCK=64); os._exit(3)", 3, ""),
        ("good[(1,)](x, y, 64, BLOCK=64); sys.stderr.close()", 0, ""),
    ],
)
def test_a_program_that_fails_fails_as_it_would(tmp_path: Path, text: str, code: int, line: str) -> None:
    """`run` reads the output to its end: a process that is left over and holds it open would hang here."""
    run = run_program(tmp_path, BEGIN + text, timeout=PATIENCE)
    assert run.returncode == code and line in run.stderr


def test_launches_from_threads_and_from_forked_processes(tmp_path: Path) -> None:
    text = """
def work(number):
    for _ in range(50):
        good[(1,)](x, y, 64, BLOCK=number)
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
child = os.fork()
if child == 0:
    racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)
    os._exit(0)
[thread.join() for thread in threads]
assert os.waitpid(child, 0)[1] == 0
"""
    run = run_program(tmp_path, BEGIN + text)
    assert run.returncode == 0, run.stderr
    assert "memmodel: 5 kernels: 4 clean, 1 findings" in run.stderr


def test_arguments_that_cannot_be_used_stop_nothing(tmp_path: Path) -> None:
    text = """
class Fake(Tensor):
    shape = (1 << 40,)
    def stride(self): return (0,)
    def data_ptr(self): return 0
class Raising(Tensor):
    def data_ptr(self): raise RuntimeError("a fake tensor has no address")
    def untyped_storage(self): raise SystemError("no storage")
class Wrong(Tensor):
    shape = "no shape"
class Odd:
    def data_ptr(self): return "text"
for number, tensor in enumerate((Fake(), Raising(), Wrong(), Odd())):
    good[(1,)](tensor, y, 64, BLOCK=number)
good[(0,)](x, y, 64, BLOCK=10)
good[(1 << 40,)](x, y, 64, BLOCK=11)
good[(1, 2, 3)](x, y, 1 << 200, BLOCK=12)
print('done')
"""
    run = run_program(tmp_path, BEGIN + text)
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
    assert "a launch was not watched" in run.stderr
    assert "undefined-address" in run.stderr, "an array that strides by 0 has 4 bytes"
    assert run.stderr.count("memmodel: refused: k") == 2 and "Traceback" not in run.stderr


def test_other_hooks_and_metadata_of_a_kernel_stay(tmp_path: Path) -> None:
    text = """
seen = []
def mine(grid, metadata, args):
    return {"name": f"mine {grid[0]}"}
def compiled(**said): seen.append("compiled")
triton.knobs.runtime.jit_post_compile_hook = compiled
triton.knobs.runtime.launch_enter_hook.add(lambda lazy: seen.append(lazy.get()["name"]))
watch = memmodel.triton.install(wait=300)
racy.launch_metadata = mine
racy[(3,)](x, y, 64, BLOCK=64, num_warps=2)
print(seen)
watch.wait(300)
memmodel.triton.uninstall()
print(triton.knobs.runtime.jit_post_compile_hook is compiled, racy.launch_metadata is mine)
print(len(triton.knobs.runtime.launch_enter_hook.calls))
"""
    run = run_program(tmp_path, "import memmodel.triton\n" + text)
    assert run.stdout == "['compiled', 'mine 3']\nTrue True\n1\n", run.stderr
    assert "memmodel: findings" in run.stderr


def test_a_block_has_its_results_behind_it(tmp_path: Path) -> None:
    text = """
from memmodel.triton import checked
good[(1,)](x, y, 64, BLOCK=1)
with checked(wait=300) as launches:
    good[(1,)](x, y, 64, BLOCK=1)
    good[(1,)](x, y, 64, BLOCK=2)
print(launches.results.table)
launches.assert_clean()
with checked(wait=300) as launches:
    racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)
try: launches.assert_clean()
except AssertionError as error: print("data-race" in str(error))
with checked(wait=300) as launches: pass
try: launches.assert_clean()
except AssertionError as error: print(error)
with checked(wait=0) as launches: good[(1,)](x, y, 64, BLOCK=3)
print([result.word for result in launches.results], launches.clean)
try:
    with checked(wait=300): raise ValueError("mine")
except ValueError as error: print(error)
"""
    run = run_program(tmp_path, text)
    assert run.stdout.splitlines() == [
        "clean  k (BLOCK=1)", "clean  k (BLOCK=2)", "True", "no kernel was launched", "['undecided'] False", "mine",
    ], run.stderr  # fmt: skip


def test_a_worker_that_is_killed_costs_one_verdict(tmp_path: Path) -> None:
    text = """
good[(1,)](x, y, 64, BLOCK=64)
os.kill(watch._worker.process, 9)
while watch._worker.runs: pass
(watch._folder / (next(iter(watch._noted)) + ".busy")).touch()
racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)
"""
    run = run_program(tmp_path, BEGIN + text)
    assert run.returncode == 0 and "1 findings" in run.stderr, run.stderr
    assert "1 undecided" in run.stderr and "the process that judged it ended" in run.stderr


def test_where_no_process_has_a_session_of_its_own_one_is_started_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = os.posix_spawn, []

    def spawned(*words: Any, setsid: bool = False, **more: Any) -> int:
        asked.append(setsid)
        if setsid:
            raise NotImplementedError
        return real(*words, **more)

    monkeypatch.setattr(judging_process.os, "posix_spawn", spawned)
    monkeypatch.setattr(judging_process.sys, "executable", "/bin/true")  # in place of the process that judges
    assert judging_process.JudgingProcess.spawned(tmp_path).process > 0
    assert asked == [True, False]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["none.py"], "none.py: cannot be read"),
        (["-m"], "-m needs a module"),
        (["-m", "none.none"], "no module is called none.none"),
    ],
)
def test_a_program_that_is_not_there(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2 and f"error: {says}" in capsys.readouterr().err
