"""Compare two models on many tests, on several processes.

In: files, `Sides`. Out: a `FileResult` for each file, in order. Settled here: a file that cannot be used, or whose
process dies, costs its own result and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial

from memmodel import api, cat
from memmodel.cache.verdicts import Verdicts
from memmodel.compare.judge import Contrast, Sides, contrasts
from memmodel.errors import InputError, TooLarge
from memmodel.workers import Workers


class FileFault(Enum):
    """Why a file has no contrasts."""

    NONE = ""
    BAD = "bad"
    UNDECIDED = "undecided"
    INTERNAL = "internal error"


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file: a contrast for each question, or a message."""

    path: str
    contrasts: tuple[Contrast, ...] = ()
    fault: FileFault = FileFault.NONE
    message: str = ""


def run(
    paths: Sequence[str], sides: Sides, *, kept: bool, jobs: int = 1, include: Sequence[str] = ()
) -> Iterator[FileResult]:
    """The files one by one, in order. `include`: folders that models may include from."""
    _verdicts.cache_clear()  # one run, one state of each model
    begin = partial(cat.settle, tuple(include), kept=kept)
    return Workers(paths, jobs, partial(_file, sides=sides, kept=kept), _died, begin).results()


def _died(path: str, killed: bool) -> FileResult:
    if killed:
        message = f"undecided: {path}: the process that judged it was killed (did memory run out?)"
        return FileResult(path, fault=FileFault.UNDECIDED, message=message)
    message = f"internal error in {path}: its process died; please report it"
    return FileResult(path, fault=FileFault.INTERNAL, message=message)


def _file(path: str, sides: Sides, kept: bool) -> FileResult:
    try:
        verdicts = _verdicts(kept)
        asked = verdicts.posed(api.read(path))
        return FileResult(path, tuple(contrasts(verdicts, asked, sides)))
    except TooLarge as error:
        return FileResult(path, fault=FileFault.UNDECIDED, message=error.render())
    except InputError as error:
        return FileResult(path, fault=FileFault.BAD, message=error.render())
    except (MemoryError, RecursionError) as error:
        what = "memory ran out" if isinstance(error, MemoryError) else "it is nested more deeply than can be followed"
        return FileResult(path, fault=FileFault.UNDECIDED, message=f"undecided: {path}: {what}")
    except Exception as error:  # a bug of ours in one test must not hide the results of the others
        message = f"internal error in {path}: {type(error).__name__}: {error}; please report it"
        return FileResult(path, fault=FileFault.INTERNAL, message=message)


@cache
def _verdicts(kept: bool) -> Verdicts:
    return Verdicts.kept(kept)
