"""The smallest programs that tell an edited model from what it was.

In: two models. Out: `Found`: differences, and what was covered. First all shipped tests are run under both models; those
that differ are made smaller. Where none does, tests with one word exchanged. Then all programs of the instructions that
the edit is about are tried, smaller ones first, up to the size of what was found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Any

from memmodel.batch import plan
from memmodel.search.edits.tasks import Record, ShrinkTask, Sides, SuiteTask, VariantTask
from memmodel.search.work import SearchWorkers

_CHUNK = 8
_AHEAD = 3
_SHRUNK = 4
"""So many of the tests that differ are made smaller."""

_SUITE, _SHRINKING = 0.4, 0.25
"""The shares of the time for the shipped tests, and for making programs smaller."""


@dataclass(slots=True)
class Found:
    """`differ`: the shipped tests on which the models differ. `covered`: what was tried to its end, in words.

    `left`: what was not tried to its end.
    """

    results: list[Record] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def size(self) -> int | None:
        """The size of the smallest program that was found."""
        return min((int(result["size"]) for result in self.results), default=None)


def shipped_programs() -> list[str]:
    """The shipped tests, short ones first."""
    return sorted((job.path for job in plan((), ()).jobs), key=lambda path: (os.path.getsize(path), path))


def on_shipped_tests(sides: Sides, where: SearchWorkers, found: Found, seconds: float) -> list[Record]:
    """Run the shipped tests under both models; returns those that differ, the smallest first."""
    paths = shipped_programs()
    records: list[Record] = []
    done = 0
    for number, results in in_chunks(SuiteTask(sides), paths, where, seconds):
        done += number
        records += results
    undecided = [record["path"] for record in records if "undecided" in record]
    differing = sorted((r for r in records if "undecided" not in r), key=lambda record: record["size"])
    found.differ = [record["path"] for record in differing]
    what = f"{done - len(undecided):,} shipped tests" if done == len(paths) else f"{done:,} of {len(paths):,} shipped tests"
    found.covered.append(what)
    return differing


def shrunk(sides: Sides, where: SearchWorkers, found: Found, seeds: Sequence[Record], seconds: float) -> None:
    """Make the smallest of some programs smaller still."""
    texts = [seed["text"] for seed in seeds[:_SHRUNK]]
    if texts:
        task = ShrinkTask(sides, seconds / -(-len(texts) // where.count))
        for _, results in in_chunks(task, texts, where, 3 * seconds, chunk=1):
            found.results += results


def near_shipped_tests(sides: Sides, where: SearchWorkers, found: Found, seconds: float) -> list[Record]:
    """Run the shipped tests with one word exchanged."""
    paths = shipped_programs()
    done, records = 0, list[Record]()
    for number, results in in_chunks(VariantTask(sides), paths, where, seconds, enough=_SHRUNK):
        done += number
        records += results
    if not records and done == len(paths):
        found.covered.append("the small ones among them with any one word exchanged")
    return sorted(records, key=lambda record: record["size"])


def in_chunks(
    task: Any,
    units: Sequence[str],
    where: SearchWorkers,
    seconds: float,
    *,
    chunk: int = _CHUNK,
    enough: int | None = None,
) -> Iterator[tuple[int, list[Record]]]:
    """The results of each chunk of units, as they come, until the time is over or there are enough."""
    until, number = monotonic() + seconds, 0
    todo = iter([units[at : at + chunk] for at in range(0, len(units), chunk)])
    running: dict[Any, int] = {}

    def fill() -> None:
        for some in islice(todo, where.count * _AHEAD - len(running)):
            running[where.submit(task, some)] = len(some)

    fill()
    while running:
        left = until - monotonic()
        if left <= 0 or (enough is not None and number >= enough):
            for future in running:
                future.cancel()
            return
        for future in where.first(set(running), min(1.0, left)):
            results = future.result()
            number += len(results)
            yield running.pop(future), results
        fill()
