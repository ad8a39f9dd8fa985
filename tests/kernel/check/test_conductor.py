"""The passes over one launch: a budget that runs out in any of them leaves the verdict of the passes before."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import share
from helpers.kernel.samples import copy, entry, launch, module
from helpers.places import ROOT

from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.errors import BudgetSpent
from memmodel.kernel.check import case as case_module
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import read_launch
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import FindingKey
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.reader import read_module

EXAMPLES = ROOT / "docs" / "examples" / "kernels"


def example() -> KernelCase:
    launch, module = read_launch(EXAMPLES / "scan.launch.json"), read_module(EXAMPLES / "scan-broken.ptx")
    return KernelCase(module, entry_of(module, launch.kernel), launch, load_model("ptx-9.4"))


def judged_with(runs: int, monkeypatch: pytest.MonkeyPatch) -> tuple[JudgedKernel, int]:
    """The kernel, judged with a budget for so many runs; how many were wanted."""
    wanted = 0

    def run(*arguments: Any) -> LaunchTrace:
        nonlocal wanted
        wanted += 1
        if wanted > runs:
            raise BudgetSpent("no more runs")
        return run_launch(*arguments)

    monkeypatch.setattr(case_module, "run_launch", run)
    return judge_case(example(), Budget(seconds=60)), wanted


def test_a_budget_that_runs_out_leaves_the_verdict_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, wanted = judged_with(1000, monkeypatch)
    assert whole.verdict.word == "findings" and whole.verdict.explored > 0 and not whole.verdict.spent
    before: set[FindingKey] = set()
    for runs in sorted({0, 1, *share(range(wanted), 3), wanted - 1}):
        kernel, _ = judged_with(runs, monkeypatch)
        verdict, found = kernel.verdict, {finding.key for finding in kernel.verdict.findings}
        assert verdict.spent and verdict.open[-1] == "no more runs"
        assert (verdict.explored > 0) is (runs > 0)
        assert before <= found <= {finding.key for finding in whole.verdict.findings}
        assert kernel.representative is not None or not found
        before = found
    assert before, "all runs but the last one show something"


def test_the_conductor_keeps_the_run_that_shows_a_finding() -> None:
    kernel = judge_case(example())
    assert kernel.representative is not None and kernel.verdict.findings
    assert all(id(finding) in kernel.runs for finding in kernel.verdict.findings)


def test_a_hang_that_a_run_showed_is_found_though_the_budget_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object) -> None:
        raise BudgetSpent("the time is over")

    read = module(copy().replace("[%r4], 64;", "[%r4], 65;"))
    case = KernelCase(read, entry(read), launch(), load_model("ptx-9.4"))
    assert {finding.rule for finding in judge_case(case).verdict.findings} == {"hang"}
    monkeypatch.setattr("memmodel.kernel.check.conductor.settled_waits", spent)
    verdict = judge_case(case, Budget(seconds=60)).verdict
    assert verdict.word == "findings" and verdict.spent and verdict.open == ["the time is over"]
    assert [finding.rule for finding in verdict.findings] == ["hang"]
