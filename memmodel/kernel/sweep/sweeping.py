"""From a file and sizes to the verdicts on a family of launches.

In: a path, what is said of the launches. Out: `Sweep`. Raises InputError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic

from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.question import GivenLaunch, LaunchWords, kernel_text
from memmodel.kernel.sweep.axes import axes
from memmodel.kernel.sweep.family import Sweep, SweepRequest
from memmodel.kernel.sweep.judging import sweep
from memmodel.limits import within_budget
from memmodel.ptx.module.syntax import PtxModule

SECONDS = 600.0
"""For all launches together."""


def sweep_kernel(
    file: str | os.PathLike[str] | PtxModule,
    sizes: str,
    launch: GivenLaunch = None,
    *,
    entry: str | None = None,
    words: LaunchWords = LaunchWords(),
    compiler: Sequence[str] = (),
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    unwritten: bool = False,
    budget: Budget = Budget(seconds=SECONDS),
    jobs: int = 1,
    baseline: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Sweep:
    """Judge a kernel with each of the sizes, such as `K=0..1024:64,M=1..256,grid.x=(M+63)/64`.

    `launch`, `words`: what all launches have in common. `budget`: of all of them together. `progress`: is given sizes,
    of how many launches the answer is known, and how many there are. The other options are those of `check_kernel`.
    """
    until, family = monotonic() + budget.seconds, axes(sizes)
    with within_budget(budget):
        text, loaded = kernel_text(file, compiler, entry), load_model(model)
    options = CheckOptions(schedules, assumed=tuple(assume_pure), unwritten=unwritten)
    request = SweepRequest(text, launch, words, entry, family, loaded, options, budget, until, baseline)

    def told(which: str, done: int) -> None:
        if progress is not None:
            progress(which, done, family.count)

    return sweep(request, jobs=jobs, progress=told)
