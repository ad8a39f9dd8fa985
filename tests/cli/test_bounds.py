"""What a person bounds is bounded: all of a command's work, and by the number that was given."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from click.testing import CliRunner
from helpers import fuzz
from helpers.examples import share
from helpers.places import ROOT

from memmodel import limits
from memmodel.answer import Budget
from memmodel.base.resources import suite_dir
from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.errors import BudgetSpent, InputError
from memmodel.kernel.mutate import table
from memmodel.kernel.sweep.family import SweepRequest
from memmodel.mutate.work import EditJudging

pytestmark = pytest.mark.turns(2)

UNBOUNDED = 30.0
"""Seconds of the processor that only a command without its bound takes (minutes to hours), on a slow machine too."""


def run(*argv: object, folder: Path) -> tuple[int, str, float]:
    """The code, what is said, and seconds of the processor."""
    began = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "memmodel", *map(str, argv)],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    ended = os.times()
    used = ended.children_user + ended.children_system - began.children_user - began.children_system
    return done.returncode, done.stdout + done.stderr, used


def kernel_that_takes_long(folder: Path) -> list[str]:
    """A loop of many rounds, and its launch."""
    import json

    text = fuzz.KERNEL.replace("WAIT:", "mov.u32 %r30, 0;\nROUND:\nadd.u32 %r30, %r30, 1;\n"
                               "setp.lt.u32 %p7, %r30, 100000000;\n@%p7 bra ROUND;\nWAIT:")  # fmt: skip
    (folder / "k.ptx").write_text(text)
    (folder / "l.json").write_text(json.dumps(fuzz.LAUNCH))
    return ["kernel", "k.ptx", "--launch", "l.json"]


def test_solver_steps_are_those_of_each_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an hour for all, a report ended when the mutants had taken the steps of one together."""
    left: list[int] = []

    def spends(*_: object, budget: Budget, **__: object) -> None:
        limits.counted(lambda: 2 * budget.effort)
        left.append(limits.available(budget).effort)
        raise InputError("enough is known")

    monkeypatch.setattr(table, "mutation_table", spends)
    example = ROOT / "docs/examples/kernels/dsmem.ptx"
    CliRunner().invoke(app, ["kernel", f"{example}", "--launch", f"{example.with_suffix('.launch.json')}", "--mutate"])
    assert left == [Budget().effort]


@pytest.mark.parametrize("more", share([(), ("--mutate",), ("--fix",), ("--readings",), ("--any-grid",)], 5))
def test_seconds_of_a_kernel(more: tuple[str, ...], tmp_path: Path) -> None:
    code, said, used = run(*kernel_that_takes_long(tmp_path), *more, "--timeout", 2, folder=tmp_path)
    assert code == 3 and used < UNBOUNDED, said
    assert "--mutate" in more or "the budget of 2 seconds ran out" in said


def test_memory_of_mutants(tmp_path: Path) -> None:
    argv = kernel_that_takes_long(tmp_path)
    _, said, _ = run(*argv, "--mutate", "--timeout", 3, "--memory", "100M", folder=tmp_path)
    assert "internal" not in said


def test_a_text_of_nothing_but_lines(tmp_path: Path) -> None:
    argv = kernel_that_takes_long(tmp_path)
    with (tmp_path / "k.ptx").open("a") as file:
        file.write("\n" * 8_000_000)
    code, said, used = run(*argv, "--timeout", 2, folder=tmp_path)
    assert code == 3 and used < UNBOUNDED, said


def test_a_budget_that_is_shared_is_named_as_it_was_given(tmp_path: Path) -> None:
    test = suite_dir() / "bytes" / "B13.litmus"
    (tmp_path / "m.cat").write_text('"m"\nempty fr as NoFr\n')
    code, said, _ = run("check", test, "--model", "m.cat", "--engine", "enumerate", "--timeout", 1.5, folder=tmp_path)
    assert code == 3 and "the budget of 1.5 seconds ran out" in said
    code, said, _ = run("fix", test, "--model", "m.cat", "--engine", "enumerate", "--timeout", 1.5, folder=tmp_path)
    assert code == 3 and not re.search(r"of \d+\.\d{2,} seconds", said)


def test_one_object_that_is_larger_than_the_memory() -> None:
    """MemoryError is the end of the budget, wherever it comes from."""
    with (
        pytest.raises(BudgetSpent, match="the budget of 100 MB of memory ran out"),
        limits.within_budget(Budget(memory=100_000_000)),
    ):
        raise MemoryError


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the system as Linux has it")
def test_the_system_gives_no_more_than_the_budget() -> None:
    script = (
        "from memmodel import limits\nfrom memmodel.answer import Budget\nfrom memmodel.errors import BudgetSpent\n"
        "limits.hold_memory()\n"
        "try:\n    with limits.within_budget(Budget(memory=100_000_000)): bytearray(400_000_000)\n"
        "except BudgetSpent as spent: print(spent)\n"
        "bytearray(400_000_000)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "the budget of 100 MB of memory ran out\n"


def test_limits_within_limits_interrupt_a_library() -> None:
    """What the outer ones stop inside a library is raised when it has returned."""
    interrupted: list[float] = []
    with (
        pytest.raises(BudgetSpent),
        limits.within_budget(Budget(seconds=0.2)),
        limits.Limits(Budget(seconds=60)),
        limits.outside(lambda: interrupted.append(time.monotonic())),
    ):
        while not interrupted:
            time.sleep(0.01)


def test_a_module_is_loaded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it would stay behind, for all that comes after in this process."""
    (tmp_path / "takes_long.py").write_text(
        "from time import monotonic\nend = monotonic() + 0.7\nwhile monotonic() < end:\n    pass\nlast = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BudgetSpent), limits.Limits(Budget(seconds=0.05)):
        import takes_long  # type: ignore[import-not-found]

        while True:
            pass
    assert takes_long.last == 1


def litmus_that_takes_long(folder: Path) -> None:
    from benchmarks.bounded import fences

    (folder / "t.litmus").write_text(fences(8, 16))


@pytest.mark.parametrize(
    "command",
    share(
        [
            "fix t.litmus", "weaken t.litmus", "report t.litmus -o x.html", "explain t.litmus",
            "diff sc ptx-9.4 t.litmus", "check t.litmus --readings", "sync t.litmus --strip order",
            "mutate-model ptx-9.4 t.litmus -j 1", "synth -n 8 -j 1", "verify coherence -n 8 -j 1",
        ],
        4,
    ),
)  # fmt: skip
def test_every_answer_says_which_bound_it_met(command: str, tmp_path: Path) -> None:
    litmus_that_takes_long(tmp_path)
    code, said, used = run(*command.split(), "--timeout", 1.5, folder=tmp_path)
    assert code == 3 and "the budget of 1.5 seconds ran out" in said
    assert used < UNBOUNDED, said


def of_edits(budget: Budget) -> EditJudging:
    return EditJudging(load_model("sc"), None, budget=budget)


def of_launches(budget: Budget) -> SweepRequest:
    nothing: Any = None
    return SweepRequest(nothing, nothing, nothing, nothing, nothing, nothing, nothing, budget, monotonic() + 60)


def _pages(size: int) -> mmap.mmap:
    """New memory in use: a bytearray may lie in what tests before have left."""
    pages = mmap.mmap(-1, size)
    while pages.tell() < size:
        pages.write(bytes(1_000_000))
    return pages


@pytest.mark.parametrize("work", [of_edits, of_launches])
def test_answers_of_a_process_share_the_memory(work: Callable[[Budget], EditJudging | SweepRequest]) -> None:
    """What the answers before have taken is not there for the next."""
    asked = work(Budget(seconds=60, memory=200_000_000))
    with asked.sharing():
        taken = _pages(120_000_000)
        left = asked.left().memory
        assert left is not None and left < 200_000_000 - len(taken) + 20_000_000
        more = _pages(120_000_000)
        with pytest.raises(BudgetSpent, match="the budget of 200 MB of memory ran out"):
            asked.left()
    del taken, more


def test_processes_of_a_search_share_the_memory(tmp_path: Path) -> None:
    code, said, _ = run("synth", "-n", 8, "-j", 1, "--memory", "90M", "--timeout", 60, folder=tmp_path)
    assert code == 3 and "the budget of 90 MB of memory ran out" in said
