"""Assertions about litmus tests and kernels, for tests in Python.

In: a test's text or path, a model; PTX and what it is called with. Out: the report or verdict, or AssertionError with
what was expected, what came out, and why.
Settled here: the words are those of Expect lines: `sometimes` is not met by what happens always, and `never` not by a
test that no thread gets through (vacuous) or that is undecided.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memmodel.base.resources import DEFAULT_MODEL

if TYPE_CHECKING:
    from memmodel.api import ModelInput, TestInput
    from memmodel.engine import Options
    from memmodel.kernel.arguments.launches import Extents
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.report.report import Report


def assert_never(test: TestInput, model: ModelInput = DEFAULT_MODEL, *, ask: str | None = None) -> Report:
    """The test's condition holds at the end of no execution. `ask`: a question in place of the test's own."""
    __tracebackhide__ = True
    return Asserting(model).assert_never(test, ask=ask)


def assert_sometimes(test: TestInput, model: ModelInput = DEFAULT_MODEL, *, ask: str | None = None) -> Report:
    """The condition holds at the end of some executions and not of others."""
    __tracebackhide__ = True
    return Asserting(model).assert_sometimes(test, ask=ask)


def assert_always(test: TestInput, model: ModelInput = DEFAULT_MODEL, *, ask: str | None = None) -> Report:
    """The condition holds at the end of every execution, and there is one."""
    __tracebackhide__ = True
    return Asserting(model).assert_always(test, ask=ask)


def assert_clean(
    compiled: Any,
    args: Sequence[object] | Mapping[str, object],
    grid: Extents,
    *,
    accept: Sequence[str] = (),
    **options: Any,
) -> KernelVerdict:
    """One launch of a kernel is clean.

    `compiled`: PTX, the path of a file with it, or what has it as `asm["ptx"]`. A kernel that Triton has compiled takes
    the arguments of its function, constants included. `args`, `grid`, `options`: as in
    `check_ptx`. `accept`: words that do as well, such as `explored`: clean for the schedules that were looked at.
    """
    __tracebackhide__ = True
    from memmodel.kernel.check import check_ptx
    from memmodel.kernel.output.text import explain_kernel

    if hasattr(compiled, "metadata") and hasattr(compiled, "src"):
        return _triton_clean(compiled, args, grid, accept, options)
    asm = getattr(compiled, "asm", None)
    text = compiled if asm is None else asm["ptx"]
    verdict = check_ptx(text, grid=grid, args=args, **options)
    if verdict.word not in ("clean", *accept):
        raise AssertionError(f"expected: {' or '.join(('clean', *accept))}\n\n{explain_kernel(verdict)}")
    return verdict


def _triton_clean(
    kernel: Any,
    args: Sequence[object] | Mapping[str, object],
    grid: Extents,
    accept: Sequence[str],
    options: Mapping[str, Any],
) -> KernelVerdict:
    """As `assert_clean`, of a kernel that Triton has compiled."""
    __tracebackhide__ = True
    from memmodel.triton.calls import call_of
    from memmodel.triton.judging import TritonJudge, TritonResults

    names = kernel.src.fn.arg_names
    bound = args if isinstance(args, Mapping) else dict(zip(names, args, strict=False))
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    result = TritonJudge(kept=False, **options).result(call_of(kernel, sizes, bound))
    TritonResults((result,)).assert_clean(*accept)
    assert result.verdict is not None
    return result.verdict


class Asserting:
    """Assertions under one model; the fixture `memmodel` is one, under the model of `--memmodel`."""

    def __init__(
        self, model: ModelInput = DEFAULT_MODEL, options: Options | None = None, *, kept: bool = False
    ) -> None:
        from memmodel.cache.verdicts import Verdicts
        from memmodel.engine import Options

        self.model = os.fspath(model) if isinstance(model, str | os.PathLike) else model
        self._options = options or Options()
        self._verdicts = Verdicts.kept(kept)

    def check(self, test: TestInput, *, ask: str | None = None) -> Report:
        """What happens to the test's condition. Raises InputError."""
        from memmodel import api

        posed = self._verdicts.posed(api.read(test), () if ask is None else (ask,))
        return self._verdicts.report(posed[0], self.model, self._options)

    def assert_never(self, test: TestInput, *, ask: str | None = None) -> Report:
        """As the function of that name."""
        __tracebackhide__ = True
        return self._expect("never", test, ask)

    def assert_sometimes(self, test: TestInput, *, ask: str | None = None) -> Report:
        """As the function of that name."""
        __tracebackhide__ = True
        return self._expect("sometimes", test, ask)

    def assert_always(self, test: TestInput, *, ask: str | None = None) -> Report:
        """As the function of that name."""
        __tracebackhide__ = True
        return self._expect("always", test, ask)

    def _expect(self, word: str, test: TestInput, ask: str | None) -> Report:
        __tracebackhide__ = True
        from dataclasses import replace

        report = replace(self.check(test, ask=ask), expected=word)
        if not report.ok:
            raise AssertionError(failure(report))
        return report


def failure(report: Report, standing: str = "") -> str:
    """Why a report is not as expected: what was expected, what came out, and the explanation. `standing`: for which
    model the judged one stands."""
    where = f"{report.path}, {report.test}" if report.path and report.path != "<text>" else report.test
    under = f"under {report.model}" + (f" in place of {standing}" if standing else "")
    got = report.answer.observation.value
    flags = ", ".join(report.answer.flags)
    lines = [
        f"{where} {under}",
        f"  expected: {report.expected}",
        f"  got:      {got}" + (f", with {flags}" if flags else ""),
        "",
        report.explain(),
    ]
    return "\n".join(lines)
