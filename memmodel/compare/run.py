"""Compare two models on many tests, on several processes.

In: files, `Sides`. Out: a `FileResult` for each file, in order. Settled here: a file that cannot be used, or whose
process dies, costs its own result and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from memmodel import api, cat
from memmodel.batch import Entry, Job, died, failed
from memmodel.cache.verdicts import Verdicts
from memmodel.compare.judge import Contrast, Sides, contrasts
from memmodel.workers import Workers


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of one file: a contrast for each question, or what went wrong instead."""

    path: str
    contrasts: tuple[Contrast, ...] = ()
    failure: Entry | None = None


def run(
    paths: Sequence[str], sides: Sides, *, kept: bool, jobs: int = 1, include: Sequence[str] = ()
) -> Iterator[FileResult]:
    """The files one by one, in order. `include`: folders that models may include from."""
    _verdicts.cache_clear()  # one run, one state of each model
    begin = partial(cat.configure, tuple(include), kept=kept)
    return Workers(paths, jobs, partial(_file, sides=sides, kept=kept), _died, begin).results()


def _died(path: str, killed: bool) -> FileResult:
    return FileResult(path, failure=died(Job(path), killed)[0])


def _file(path: str, sides: Sides, kept: bool) -> FileResult:
    try:
        verdicts = _verdicts(kept)
        return FileResult(path, tuple(contrasts(verdicts, verdicts.posed(api.read(path)), sides)))
    except Exception as error:
        return FileResult(path, failure=failed(path, None, error))


@cache
def _verdicts(kept: bool) -> Verdicts:
    return Verdicts.kept(kept)
