"""The smallest programs that tell an edited model from what it was.

In: two models. Out: `WhatDiffers`: differences, and what was covered. First all shipped tests are run under both
models; those that differ are made smaller. Where none does, tests with one word exchanged. Then all programs of the
presets on which the models can differ are tried, smaller ones first, up to the size of what was found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from time import monotonic
from typing import Any

from memmodel.batch import plan
from memmodel.errors import BudgetSpent
from memmodel.output import few
from memmodel.search.edits.comparing import MORE_EFFORT
from memmodel.search.edits.tasks import SearchedPair, ShrinkTask, SuiteTask, VariantTask
from memmodel.search.solving.task import SolvingTask
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import Record, SearchWorkers, run

_CHUNK = 8
_AHEAD = 3
_SHRUNK = 4
"""At most this many of the tests that differ are made smaller."""

SECONDS = 60.0
"""How long the plain command looks."""

_FIRST, _SUITE, _SHRINKING, _CHOSEN, _NEAR = 0.2, 0.5, 0.2, 0.3, 0.3
"""The shares of the time for programs of the words that the difference is about, for the shipped tests, for making
programs smaller, for more programs of these words, and for tests with other words."""

ALL_PROGRAMS = "every program that a search may write, of any size, by the labels of its events"
"""What is covered where the labels of all words together show no difference."""

_LARGEST, _LARGEST_SOLVED = 5, 7
"""The largest programs that are listed, and asked for, where nothing is found: their number of instructions."""


@dataclass(slots=True)
class WhatDiffers:
    """`differ`: the shipped tests on which the models differ. `covered`: what was tried to its end, in words.

    `left`: what was not tried to its end. `bounds`: the size up to which all programs of a vocabulary were tried.
    `identical`: the models were proved equal, so that nothing was tried.
    """

    results: list[Record] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    bounds: dict[Vocabulary, int] = field(default_factory=dict)
    identical: bool = False
    signal: KeyboardInterrupt | None = None

    def reach(self) -> str:
        """What was covered, in one line."""
        programs: dict[tuple[int, str], list[Vocabulary]] = {}
        for words, size in self.bounds.items():
            programs.setdefault((-size, words.room), []).append(words)
        every = [
            f"every program up to {few(-size, 'instruction')} among {names(words.words for words in same)} ({room})"
            for (size, room), same in sorted(programs.items(), key=lambda item: item[0])
        ]
        return "; ".join([*self.covered, *every])

    @property
    def size(self) -> int | None:
        """The size of the smallest program that was found."""
        return min((int(result["size"]) for result in self.results), default=None)


def edited(
    sides: SearchedPair,
    where: SearchWorkers,
    seconds: float = SECONDS,
    report: Callable[[str], None] = lambda stage: None,
) -> WhatDiffers:
    """Look for the smallest programs on which two models differ, for so long; closes the workers."""
    differences, until = WhatDiffers(), monotonic() + seconds
    try:
        report("definitions")
        differences.identical = sides.identical()
        if differences.identical:
            return differences
        chosen_programs(sides, where, differences, monotonic() + _FIRST * seconds, report)
        report("shipped tests")
        seeds = on_shipped_tests(sides, where, differences, _SUITE * seconds)
        report("smaller programs")
        shrunk(sides, where, differences, seeds, min(_SHRINKING * seconds, until - monotonic()))
        chosen_programs(sides, where, differences, min(until, monotonic() + _CHOSEN * seconds), report)
        if not differences.results and until > monotonic():
            small_programs(sides, where, differences, 3, until, report)
            report("shipped tests with other words")
            near = near_shipped_tests(sides, where, differences, min(_NEAR * seconds, until - monotonic()))
            shrunk(sides, where, differences, near, until - monotonic())
        if until > monotonic():
            chosen_programs(sides, where, differences, until, report, others=True)
        if not differences.differ and sides.chosen_words().agree_on_all:
            differences.covered.append(ALL_PROGRAMS)
        small_programs(sides, where, differences, (differences.size or _LARGEST + 1) - 1, until, report)
    except BudgetSpent as spent:
        differences.left.append(str(spent))
    except KeyboardInterrupt as signal:
        differences.left.append("stopped by a signal")
        differences.signal = signal
    finally:
        where.close()
    differences.results.sort(key=lambda record: (record["size"], record["finding"] is not None, record["text"]))
    return differences


def chosen_programs(
    sides: SearchedPair,
    where: SearchWorkers,
    differences: WhatDiffers,
    until: float,
    report: Callable[[str], None],
    *,
    others: bool = False,
) -> None:
    """Ask for a smallest program of the words that the difference is about, smaller than what was found. What was
    tried before is not tried again. `others`: of the further words; where a program is known, one that is smaller by
    one first, of the first words if they are few: what has idle instructions stands for smaller programs, too."""
    chosen, done = sides.chosen_words(), dict[Vocabulary, set[int]]()
    sizes = range(1, (_LARGEST if others else _LARGEST_SOLVED) + 1)
    if others and differences.size is not None:
        sizes = range(min(differences.size - 1, _LARGEST_SOLVED), 0, -1)
    asked = list(product(sizes, chosen.others if others else chosen.first))
    if not others:
        asked.sort(key=lambda question: question[0] - 1.5 * (question[1] in chosen.ahead))
    if differences.size is not None and not others:
        least = differences.size - 1
        asked.sort(key=lambda question: question[0] != least or _is_wide(question[1], chosen.first))
    for size, known in asked:
        words = replace(known, idle=True)
        if until - monotonic() < 1:
            return
        if size >= (differences.size or _LARGEST_SOLVED + 1) or differences.bounds.get(words, 0) >= size:
            continue
        report(f"programs of {few(size, 'instruction')} of {', '.join(words.words)}")
        task = SolvingTask(sides.first, sides.second, words, size, sides.outcomes, sides.old)
        progress = run(task, where, first=size, seconds=until - monotonic(), open_after=True)
        differences.results += progress.results
        if progress.signal is not None:
            raise progress.signal
        if progress.bound == size:
            done.setdefault(words, set()).add(size)
        while differences.bounds.get(words, 0) + 1 in done.get(words, ()):
            differences.bounds[words] = differences.bounds.get(words, 0) + 1
        if progress.interrupted:
            where.forget()
            return


def _is_wide(words: Vocabulary, every: Sequence[Vocabulary]) -> bool:
    """True for at least twice as many words as the fewest: their programs cost many times more."""
    return len(words.words) >= 2 * min(len(some.words) for some in every)


def small_programs(
    sides: SearchedPair,
    where: SearchWorkers,
    found: WhatDiffers,
    most: int,
    until: float,
    report: Callable[[str], None],
) -> None:
    """Try all programs of fewer instructions than what was found has, smaller ones first."""
    presets = sides.presets()
    for size in range(2, most + 1):
        for preset in presets:
            words = vocabulary([preset])
            if size >= (found.size or most + 1) or found.bounds.get(words, 0) >= size:
                continue
            left = until - monotonic()
            if left < 1:
                found.left.append(f"larger programs, and those of {size} instructions of {preset}")
                return
            report(f"programs of {size} instructions ({preset})")
            task = DifferenceTask(sides.first, sides.second, words, size, sides.outcomes, sides.old, sides.digest)
            progress = run(task, where, seconds=left, open_after=True)
            found.results += progress.results
            if progress.signal is not None:
                raise progress.signal
            if progress.bound == size:
                found.bounds[words] = size


def shipped_programs() -> list[str]:
    """The shipped tests, short ones first."""
    return sorted((job.path for job in plan((), ()).jobs), key=lambda path: (os.path.getsize(path), path))


def on_shipped_tests(sides: SearchedPair, where: SearchWorkers, found: WhatDiffers, seconds: float) -> list[Record]:
    """Run the shipped tests under both models; returns those that differ, the smallest first."""
    paths, until = shipped_programs(), monotonic() + seconds
    records: list[Record] = []
    done = 0
    for tests, results in in_chunks(SuiteTask(sides), paths, where, seconds):
        done += len(tests)
        records += results
    undecided = {record["path"]: record for record in records if "undecided" in record}
    differing = [record for record in records if "undecided" not in record]
    small = [path for path, record in undecided.items() if record["size"] <= _LARGEST_SOLVED and not record["jumps"]]
    for some, effort in product((small, list(undecided)), MORE_EFFORT):
        if not differing:
            left = until - monotonic()
            differing = _with_more_effort(SuiteTask(sides, effort), where, undecided, some, left)
    differing.sort(key=lambda record: record["size"])
    found.differ = [record["path"] for record in differing]
    decided = done - len(undecided)
    tests = "1 shipped test" if len(paths) == 1 else f"{len(paths):,} shipped tests"
    found.covered.append(tests if decided == len(paths) else f"{decided:,} of {tests}")
    if done < len(paths):
        found.left.append("the other shipped tests")
    if undecided:
        few = "1 shipped test, which is" if len(undecided) == 1 else f"{len(undecided):,} shipped tests, which are"
        found.left.append(f"{few} too large for the time")
    return differing


def _with_more_effort(
    task: SuiteTask, where: SearchWorkers, undecided: dict[str, Record], paths: Sequence[str], seconds: float
) -> list[Record]:
    """Run some of the undecided tests again, small ones first, until one differs; the decided ones are taken out."""
    paths = sorted((path for path in paths if path in undecided), key=lambda path: (undecided[path]["size"], path))
    differing = list[Record]()
    for tests, results in in_chunks(task, paths, where, seconds, chunk=1):
        for path in tests:
            if not any("undecided" in record for record in results):
                del undecided[path]
        differing += [record for record in results if "undecided" not in record]
        if differing:
            where.forget()
            break
    return differing


def names(vocabularies: Iterable[Sequence[str]]) -> str:
    """The instructions of some vocabularies; two that are not part of each other are told apart."""
    every = [dict.fromkeys(words) for words in vocabularies]
    whole = [words for words in every if not any(words.keys() < other.keys() for other in every)]
    return ", or among ".join(", ".join(words) for words in whole)


def shrunk(
    sides: SearchedPair, where: SearchWorkers, found: WhatDiffers, seeds: Sequence[Record], seconds: float
) -> None:
    """Make the smallest of some programs smaller still."""
    texts = [seed["text"] for seed in seeds[:_SHRUNK]]
    if texts:
        effort = max(seed["effort"] for seed in seeds[:_SHRUNK])
        task = ShrinkTask(sides, seconds / -(-len(texts) // where.count), effort)
        for _, results in in_chunks(task, texts, where, 3 * seconds, chunk=1):
            found.results += results


def near_shipped_tests(sides: SearchedPair, where: SearchWorkers, found: WhatDiffers, seconds: float) -> list[Record]:
    """Run the shipped tests with one word exchanged."""
    paths = shipped_programs()
    done, records = 0, list[Record]()
    for tests, results in in_chunks(VariantTask(sides), paths, where, seconds, enough=_SHRUNK):
        done += len(tests)
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
) -> Iterator[tuple[Sequence[str], list[Record]]]:
    """Each chunk of units with its results, as they come, until the time is over or there are enough."""
    until, number = monotonic() + seconds, 0
    todo = iter([units[at : at + chunk] for at in range(0, len(units), chunk)])
    running: dict[Any, Sequence[str]] = {}

    def fill() -> None:
        for some in islice(todo, where.count * _AHEAD - len(running)):
            running[where.submit(task, some)] = some

    fill()
    while running:
        left = until - monotonic()
        if left <= 0 or (enough is not None and number >= enough):
            where.forget()
            return
        for future in where.first(set(running), min(1.0, left)):
            results = future.result()
            number += len(results)
            yield running.pop(future), results
        fill()
