"""From files to a verdict.

In: paths. Out: `KernelVerdict`; `entry_of` chooses the entry. What is wrong with the files raises InputError.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from memmodel.answer import Budget
from memmodel.cat.decisions import decisions
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError, nearest
from memmodel.kernel.check.launch_judge import ExploreOptions, LaunchJudge
from memmodel.kernel.launch import Launch, read_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.limits import Limits, rarely_collecting
from memmodel.ptx.module.linking import linked
from memmodel.ptx.module.reader import read_module
from memmodel.ptx.module.syntax import PtxFunction, PtxModule

DEFAULT_MODEL = "ptx-9.3"
SMALL = 8192
"""Threads of a launch whose CTAs are all run."""


def check_kernel(
    file: str | os.PathLike[str],
    launch: Launch | str | os.PathLike[str],
    *,
    entry: str | None = None,
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    ctas: Sequence[tuple[int, int, int]] = (),
    readings: bool = False,
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    budget: Budget | None = None,
    litmus: str | os.PathLike[str] | None = None,
    any_grid: bool = False,
    any_trips: bool = False,
) -> KernelVerdict:
    """Judge one launch of a kernel.

    `ctas`: indices of those to look at; default: all, or one cluster and a neighbour in large grids. `readings`: with
    every decision the other way as well. `schedules`: as many are explored where something depends on the schedule.
    `assume_pure`: opcodes that are taken to touch nothing but registers. `litmus`: a folder for litmus tests that show
    the findings; the notes of the verdict say what became of each. `any_grid`, `any_trips`: say in `beyond` whether the
    verdict holds for any grid and any trip count.
    """
    given = launch if isinstance(launch, Launch) else read_launch(launch)
    module = read_module(file)
    others = reading_models() if readings else ()
    options = ExploreOptions(
        schedules, chosen(given, ctas), tuple(assume_pure), others, any_grid=any_grid, any_trips=any_trips
    )
    chosen_entry = entry_of(module, entry or given.kernel)
    work = LaunchJudge(module, chosen_entry, given, load_model(model), options)
    verdict = judged(work, budget)
    if litmus is not None:
        from memmodel.kernel.export.litmus import cut  # loads the engines of litmus tests

        verdict.notes += cut(verdict.findings, work.made, litmus)
    return verdict


def judge(
    module: PtxModule,
    entry: PtxFunction,
    launch: Launch,
    model: Model,
    options: ExploreOptions | None = None,
    budget: Budget | None = None,
) -> KernelVerdict:
    """Judge a launch."""
    return judged(LaunchJudge(module, entry, launch, model, options or ExploreOptions()), budget)


def judged(work: LaunchJudge, budget: Budget | None) -> KernelVerdict:
    """The verdict. A budget that runs out leaves it open."""
    if budget is None:
        with rarely_collecting():
            return work.judge()
    try:
        with Limits(budget):
            return work.judge()
    except BudgetSpent as spent:
        work.verdict.open.append(str(spent))
        work.verdict.spent = True
        return work.verdict


def reading_models() -> tuple[tuple[str, str, Model], ...]:
    """Every reading of the documents: its name, its answer, its model."""
    return tuple(
        (f"{one.number} {side.name}", side.answer, load_model(side.model))
        for one in decisions()
        for side in one.readings
        if side.model is not None
    )


def chosen(launch: Launch, wanted: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    """The numbers of the CTAs to run, with all CTAs of their clusters; empty: all."""
    grid, size = launch.grid, launch.cluster
    count = grid[0] * grid[1] * grid[2]
    if not wanted:
        if count * launch.threads <= SMALL or count <= 2 * size[0] * size[1] * size[2]:
            return ()
        near = size[0] if grid[0] > size[0] else 0
        wanted = [(0, 0, 0), (near, 0 if near else size[1] if grid[1] > size[1] else 0, 0)]
    found: set[int] = set()
    for index in wanted:
        if any(not 0 <= i < g for i, g in zip(index, grid, strict=True)):
            raise InputError(f"the grid {'×'.join(map(str, grid))} has no CTA {','.join(map(str, index))}")
        first = [i // c * c for i, c in zip(index, size, strict=True)]
        for n in range(size[0] * size[1] * size[2]):
            inside = n % size[0], n // size[0] % size[1], n // (size[0] * size[1])
            x, y, z = (a + b for a, b in zip(first, inside, strict=True))
            found.add(x + grid[0] * (y + grid[1] * z))
    return tuple(sorted(found)) if len(found) < count else ()


def entry_of(module: PtxModule, name: str | None) -> PtxFunction:
    """The entry of that name, without a name the only one, with the functions that it calls."""
    entries = [one for one in module.entries if one.body is not None]
    names = [one.name for one in entries]
    for one in entries:
        if one.name == name:
            return linked(module, one)
    if name is None and len(entries) == 1:
        return linked(module, entries[0])
    if not entries:
        raise InputError(f"{module.source.name}: no entry is defined there")
    if name is None:
        raise InputError(f"{module.source.name}: has {len(entries)} entries", hint="--entry NAME: " + ", ".join(names))
    close = nearest(name, names)
    raise InputError(f"{module.source.name}: has no entry {name}", hint=f"did you mean {close}?" if close else None)
