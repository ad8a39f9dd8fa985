"""Compare two models on many tests, on several processes.

In: files, `Sides`. Out: a `FileResult` for each file, in order. Settled here: a file that cannot be used, or whose
process dies, costs its own result and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from enum import Enum
from functools import cache
from multiprocessing import active_children

from memmodel import api
from memmodel.cache.verdicts import Verdicts
from memmodel.compare.judge import Contrast, Sides, contrasts
from memmodel.errors import InputError, TooLarge


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


def run(paths: Sequence[str], sides: Sides, *, kept: bool, jobs: int = 1) -> Iterator[FileResult]:
    """The files one by one, in order."""
    if jobs <= 1 or len(paths) <= 1:
        yield from (_file(path, sides, kept) for path in paths)
        return
    with ProcessPoolExecutor(min(jobs, len(paths)), initializer=_quiet) as pool:
        futures = [pool.submit(_file, path, sides, kept) for path in paths]
        try:
            for path, future in zip(paths, futures, strict=True):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield _alone(path, sides, kept)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise


def _alone(path: str, sides: Sides, kept: bool) -> FileResult:
    """One file in a process of its own, after some file killed the shared ones."""
    with ProcessPoolExecutor(1, initializer=_quiet) as pool:
        try:
            return pool.submit(_file, path, sides, kept).result()
        except BrokenProcessPool:
            message = f"internal error in {path}: its process died (out of memory?); please report it"
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
    except Exception as error:  # a bug of ours in one test must not hide the results of the others
        message = f"internal error in {path}: {type(error).__name__}: {error}; please report it"
        return FileResult(path, fault=FileFault.INTERNAL, message=message)


@cache
def _verdicts(kept: bool) -> Verdicts:
    return Verdicts.kept(kept)


def _quiet() -> None:
    """Control-C is the parent's to handle."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
