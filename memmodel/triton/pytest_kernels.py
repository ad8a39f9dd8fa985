"""Kernels that a test hands over or launches, judged: what the fixture `memmodel_kernels` is.

In: kernels, launches, the marker of the test. Out: a result for each specialization, as an item of its own in pytest's
report where nothing runs the tests on several processes. Settled here: a result is as expected if its word is `clean`,
or one that the marker accepts, or if it breaks exactly the rules that the marker names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from memmodel.kernel.check import check_ptx
from memmodel.kernel.output.record import record
from memmodel.kernel.output.sarif import in_folder, sarif
from memmodel.kernel.output.text import explain_kernel
from memmodel.output import write_text
from memmodel.triton.judging import TritonResult, TritonResults

if TYPE_CHECKING:
    from memmodel.kernel.order.verdict import KernelVerdict

MARK = "memmodel_findings"

PATIENCE = 600.0
"""Seconds for the verdicts on what a test launched: on a busy machine a test does not fail for want of one."""


@dataclass(frozen=True, slots=True)
class KernelExpectation:
    """What a marker says. `rules`: those that are broken; `kernel`: of the kernel with this name, or of each."""

    rules: frozenset[str]
    kernel: str | None
    accept: tuple[str, ...]

    @staticmethod
    def of(mark: Any) -> KernelExpectation:
        """`memmodel_findings("data-race", kernel="gemm", accept=["partial"])`."""
        accept = mark.kwargs.get("accept", ())
        words = (accept,) if isinstance(accept, str) else tuple(accept)
        return KernelExpectation(frozenset(mark.args), mark.kwargs.get("kernel"), words)

    def about(self, result: TritonResult) -> bool:
        """True if it speaks of this kernel."""
        return self.kernel in (None, result.name)


class KernelChecks:
    """The fixture `memmodel_kernels`. `results`: one for each specialization that was judged."""

    def __init__(self, item: pytest.Item) -> None:
        self._expected = [KernelExpectation.of(mark) for mark in item.iter_markers(MARK)]
        self._own: list[TritonResult] = []
        self._launches: Any = None
        self._watching: Any = None
        self.items: list[tuple[TritonResult, str | None]] = []
        """Results, each with what is wrong with it, that are to be items of the report."""

    @property
    def results(self) -> TritonResults:
        """What was handed over, and what was launched and has been judged so far."""
        launched = () if self._launches is None else self._launches.results.results
        return TritonResults((*self._own, *launched))

    def check(self, kernel: Any, *args: object, grid: Any, **options: Any) -> TritonResults:
        """Compile a kernel of Triton and judge it, as `memmodel.triton.check` does. The test fails by what is found."""
        from memmodel.triton.compiling import check

        results = check(kernel, *args, grid=grid, **options)
        self._own += results.results
        return results

    def check_ptx(
        self, text: Any, *, grid: Any, args: Sequence[object] | Mapping[str, object] = (), label: str = "",
        **options: Any,
    ) -> KernelVerdict:  # fmt: skip
        """Judge PTX, as `memmodel.check_ptx` does. `label`: what tells it from others in the report."""
        verdict = check_ptx(text, grid=grid, args=args, **options)
        self._own.append(
            TritonResult(
                verdict.entry, label, verdict.word, explain_kernel(verdict), record(verdict), 0.0, verdict,
                sarif([verdict], by_source=True),
            )
        )  # fmt: skip
        return verdict

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Judge what the test launches, if it has loaded Triton."""
        import sys

        if "triton" in sys.modules:
            from memmodel.triton.installing import checked

            self._watching = checked(wait=PATIENCE)
            self._launches = self._watching.__enter__()
        try:
            yield
        finally:
            self.settle()

    def settle(self) -> None:
        """Await the verdicts on what was launched."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.__exit__(None, None, None)

    def problem(self, result: TritonResult) -> str | None:
        """Why a result is not as expected; None if it is."""
        spoken = [expected for expected in self._expected if expected.about(result)]
        rules = frozenset().union(*(expected.rules for expected in spoken))
        accepted = {"clean", *(word for expected in spoken for word in expected.accept)}
        if rules:
            if frozenset(result.rules) == rules:
                return None
            return f"expected: {', '.join(sorted(rules))}\n\n{result.text}"
        return None if result.word in accepted else result.text

    def report(self, item: pytest.Item) -> str | None:
        """What is wrong with the test. Where that is possible, every result will be an item of its own."""
        apart = not hasattr(item.config, "workerinput")
        wrong: list[str] = []
        for result in self.results:
            problem = self.problem(result)
            if problem is not None:
                wrong.append(f"{result.title}: {', '.join(result.rules) or result.word}" if apart else problem)
            if apart:
                self.items.append((result, problem))
        return "\n".join(wrong) or None


class KernelLog:
    """The findings of all tests as one SARIF log, written when the session ends. Processes of pytest-xdist hand theirs
    over. A finding that a marker expects is suppressed.
    """

    def __init__(self, config: pytest.Config, path: str) -> None:
        self._config, self._path = config, path
        self._logs: list[dict[str, Any]] = []

    def add(self, checks: KernelChecks) -> None:
        """Note what was found in the kernels of a test."""
        for result in checks.results:
            log = json.loads(json.dumps(result.sarif or {"runs": []}))
            for found in (found for run in log["runs"] for found in run["results"]):
                if checks.problem(result) is None and "suppressions" not in found:
                    found["suppressions"] = [{"kind": "inSource", "justification": f"expected by @{MARK}"}]
            self._logs.append(log)

    def pytest_sessionfinish(self) -> None:
        """Write the log, or hand it over."""
        if hasattr(self._config, "workerinput"):
            self._config.workeroutput["memmodel_sarif"] = self._logs  # type: ignore[attr-defined]
            return
        log = sarif(())
        runs = [run for each in self._logs for run in each["runs"] if run["results"]]
        whole = in_folder({**log, "runs": runs or log["runs"]}, str(self._config.invocation_params.dir))
        write_text(self._path, json.dumps(whole, indent=1) + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist has ended."""
        self._logs += getattr(node, "workeroutput", {}).get("memmodel_sarif", ())


def log_kernels(item: pytest.Item, checks: KernelChecks) -> None:
    """The items of the report for the kernels of a test that has ended: while it runs, its output is captured."""
    for result, problem in checks.items:
        _logged(item, result, problem)
    checks.items.clear()


def _logged(item: pytest.Item, result: TritonResult, problem: str | None) -> None:
    """An item of the report for one specialization."""
    nodeid = f"{item.nodeid}::{result.title}"
    path, line, _ = item.location
    location = (path, line, f"{item.name} {result.title}")
    item.ihook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    now = time()
    for when in ("setup", "call", "teardown"):
        failed = when == "call" and problem is not None
        words: dict[str, Any] = {
            "keywords": {item.name: 1}, "outcome": "failed" if failed else "passed",
            "longrepr": problem if failed else None, "when": when,
            "start": now, "stop": now + result.seconds, "duration": result.seconds if when == "call" else 0.0,
        }  # fmt: skip
        item.ihook.pytest_runtest_logreport(report=pytest.TestReport(nodeid=nodeid, location=location, **words))
    item.ihook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
