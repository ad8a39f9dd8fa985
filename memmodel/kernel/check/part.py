"""A part of the CTAs of a launch was run: whether all are run after it, and what is assumed if not.

In: `KernelCase`, what the part showed. Out: the case with all CTAs; an assumption. A part says nothing about CTAs that
were not run: they may meet those of the part, or do something else.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from memmodel.kernel.check.case import Effort, KernelCase
from memmodel.kernel.check.inputs import SMALL
from memmodel.kernel.check.so_far import VerdictSoFar

MOST_THREADS, MOST_INSTRUCTIONS = 1 << 16, 8_000_000
"""Threads of a launch of which all CTAs are run after a part, and instructions of lanes that this may take."""


def with_all_ctas(case: KernelCase, report: VerdictSoFar) -> KernelCase | None:
    """The whole launch, if nothing was found in a part that was chosen for its size alone, and it is not too large."""
    verdict, launch, options = report.verdict, case.launch, case.options
    count = prod(launch.grid)
    instructions = verdict.statistics.instructions * count // max(1, len(options.ctas))
    if not options.ctas or not options.widens or count * launch.threads > MOST_THREADS:
        return None
    if instructions > MOST_INSTRUCTIONS or verdict.whole or not (report.awaits_others or verdict.clean):
        return None
    return replace(case, options=replace(options, ctas=()), effort=Effort())


def assume_the_rest(report: VerdictSoFar, why: str = "") -> None:
    """What a verdict on a part takes for granted. `why`: what came in the way of a run of all CTAs."""
    verdict = report.verdict
    others = prod(verdict.launch.grid) - len(verdict.ctas)
    if verdict.ctas and not verdict.whole and verdict.clean:
        needs = f"a launch of at most {SMALL:,} threads" + (f" (all CTAs: {why})" if why else "")
        report.assume(f"the other {others:,} CTAs do nothing new", needs)
