"""What the launch says of others: any grid, any trip count.

In: `KernelCase`, `OpenChoices`. Out: sentences.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from memmodel.kernel.all_sizes.grids import any_grid
from memmodel.kernel.all_sizes.trips import any_trips
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.choices import OpenChoices
from memmodel.kernel.machine.run import run_launch


def other_sizes(
    case: KernelCase, choices: OpenChoices, equal_stores: frozenset[int], *, decided: bool
) -> dict[str, str]:
    """By what may vary: whether the verdict holds for all of it, or what stops that. Only what the options ask for.

    `equal_stores`: stores that race with others and store the same. `decided`: the run represents every schedule.
    """
    sentences = {}
    if case.options.any_grid:
        sentences["any grid"] = any_grid(case.module, case.entry, case.launch, choices.trace)
    if case.options.any_trips:
        last_elected = (False, True) if choices.trace.elected else (False,)
        schedules = [replace(choices.base, last_elected=last) for last in last_elected if decided]
        again = [partial(run_launch, case.module, case.entry, case.launch, schedule) for schedule in schedules]
        sentences["any trip count"] = any_trips(case.entry, again, equal_stores)
    return sentences
