"""Many sketches judged: on one process, on several, or on a Dask cluster; a file keeps what is done.

In: a `Work`, sizes. Out: `Progress`, with every result and the largest size that is done. Settled here: chunks. A chunk
of sketches is judged as a whole, counted once, whichever worker ends it and however often it was begun; a run that was
interrupted goes on with the chunks that the file lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from memmodel.answer import Budget
from memmodel.errors import BudgetSpent, InputError
from memmodel.limits import Limits, default_memory
from memmodel.search.journal import Journal
from memmodel.search.sketches import Sketch, sketches
from memmodel.search.vocabulary import Vocabulary
from memmodel.workers import abandon, settle

NO_END = Budget(sys.maxsize, 1e9)
"""The budget of work that is not bounded in time."""
_AHEAD = 4
"""Chunks that wait for each worker."""

Record = dict[str, Any]
"""One result, as JSON has it."""


class Work(Protocol):
    """What is asked of every part of a long run. It travels to workers as it is."""

    @property
    def most(self) -> int:
        """The instructions of the largest ones."""

    @property
    def chunk(self) -> int:
        """So many parts are judged together."""

    @property
    def first_only(self) -> bool:
        """True if the search ends with the first result."""

    def key(self) -> str:
        """All that the results depend on."""

    def parts(self, size: int) -> list[Any]:
        """What is judged for programs of so many instructions."""

    def judge(self, part: Any) -> list[Record]:
        """The results of one part."""


class Task(Work, Protocol):
    """What is asked of every part of a search, such as a sketch."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What programs are made of."""


class SketchTask:
    """What is asked of every sketch."""

    __slots__ = ()
    vocabulary: Vocabulary
    chunk = 16
    first_only = False

    def parts(self, size: int) -> list[Sketch]:
        """The sketches of so many instructions."""
        return list(sketches(self.vocabulary, size))


@dataclass(slots=True)
class Progress:
    """`bound`: every program up to so many instructions has been judged. `seconds`: when each size was done.

    `reason`: why it was interrupted, if it was. `signal`: by whom, if by a signal.
    """

    results: list[Record] = field(default_factory=list)
    bound: int = 0
    sketches: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    interrupted: bool = False
    reason: str = ""
    signal: KeyboardInterrupt | None = None


class SearchWorkers(Protocol):
    """Where chunks are judged."""

    count: int

    def submit(self, task: Work, chunk: Sequence[Any]) -> Any: ...

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]: ...

    def forget(self) -> None:
        """Give up what was submitted, and be ready for more."""

    def close(self) -> None: ...


def judge_chunk(task: Work, chunk: Sequence[Any], budget: Budget = NO_END) -> list[Record]:
    """What a worker does. Raises BudgetSpent."""
    try:
        with Limits(budget):
            return [record for part in chunk for record in task.judge(part)]
    except BudgetSpent as spent:
        raise BudgetSpent(str(spent)) from None  # one that travels between processes
    except MemoryError:
        raise BudgetSpent("memory ran out") from None


class HereAndNow:
    """The own process."""

    count = 1

    def submit(self, task: Work, chunk: Sequence[Any]) -> Future[list[Record]]:
        future: Future[list[Record]] = Future()
        future.set_result(judge_chunk(task, chunk))
        return future

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        return set(futures)

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass


class Processes:
    """So many processes of this machine."""

    def __init__(self, count: int, memory: int | None = None) -> None:
        self.count = count
        whole = memory or default_memory()
        self._budget = replace(NO_END, memory=whole // (count + 1), whole=Budget(memory=whole))  # one share is our own
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.count, initializer=settle)

    def submit(self, task: Work, chunk: Sequence[Any]) -> Future[list[Record]]:
        return self._pool.submit(judge_chunk, task, chunk, self._budget)

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        return set(wait(futures, seconds, FIRST_COMPLETED).done)

    def forget(self) -> None:
        self.close()
        self._pool = self._fresh()

    def close(self) -> None:
        abandon(self._pool)


class DaskCluster:
    """A running Dask cluster, by the address of its scheduler. A chunk whose worker dies is judged by another."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise InputError(
                "--executor dask:// needs dask.distributed", hint="pip install 'memmodel[dask]'"
            ) from error
        try:
            self._client = Client(address, timeout=10, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise InputError(f"no Dask scheduler answers at {address}", hint="start one: dask scheduler") from error
        self.count = max(1, sum(self._client.nthreads().values()))

    def wait_for(self, workers: int) -> None:
        """Until so many workers are there."""
        self._client.wait_for_workers(workers, timeout=60)
        self.count = max(self.count, workers)

    def submit(self, task: Work, chunk: Sequence[Any]) -> Any:
        return self._client.submit(judge_chunk, task, chunk, pure=False, retries=3)

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        from distributed import wait as wait_for

        try:
            with self._client.as_current():
                return set(wait_for(list(futures), timeout=seconds, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return set()

    def forget(self) -> None:
        """The cluster ends what was begun; nobody waits for it."""

    def close(self) -> None:
        self._client.close()


def workers(jobs: int, executor: str | None, memory: int | None = None) -> SearchWorkers:
    """Those that `--jobs` and `--executor` ask for. Raises InputError."""
    if executor is not None:
        if not executor.startswith("dask://"):
            raise InputError(f"unknown executor {executor!r}", hint="dask://HOST:PORT")
        return DaskCluster("tcp://" + executor.removeprefix("dask://"))
    return Processes(jobs, memory)  # one as well: it can be ended when the time is over


# ---- the file that keeps what is done ----------------------------------------------------------------------


class SearchJournal:
    """Finished chunks, by size and number, and the file that keeps them."""

    def __init__(self, path: str | None, key: str) -> None:
        self._journal = Journal(path, key, name="search", what="search", repeat="its options")
        self.done: dict[tuple[int, int], list[Record]] = {}
        for entry in self._journal.entries:
            match entry:
                case {"size": int(size), "chunk": int(chunk), "results": list(results)}:
                    self.done[size, chunk] = results

    def add(self, size: int, chunk: int, results: list[Record]) -> None:
        """Keep a chunk."""
        self.done[size, chunk] = results
        self._journal.add({"size": size, "chunk": chunk, "results": results})


# ---- running -----------------------------------------------------------------------------------------------


def run(
    task: Work,
    where: SearchWorkers,
    *,
    journal: str | None = None,
    first: int = 1,
    seconds: float | None = None,
    whole: float | None = None,
    memory: int | None = None,
    report: Callable[[int, int, int], None] = lambda size, done, total: None,
    enough: Callable[[list[Record]], bool] = lambda results: False,
    open_after: bool = False,
) -> Progress:
    """Judge every sketch up to the task's size, or while time and memory last. `first`: the size to begin with, where
    smaller ones have been judged. `whole`: the seconds of which `seconds` are left, as the reason names them. `report`:
    size, chunks done, chunks.

    `enough`: asked once a size is done; then no larger programs are tried. `open_after`: the workers have more to do.
    """
    kept, progress, started = SearchJournal(journal, task.key()), Progress(), monotonic()
    limits = replace(NO_END, seconds=NO_END.seconds if seconds is None else seconds, memory=memory)
    named = limits if whole is None else replace(limits, seconds=whole)
    budget = replace(limits, memory=None if memory is None else memory // (where.count + 1), whole=named)
    try:
        with Limits(budget):
            for size in range(first, task.most + 1):
                _size(task, where, kept, progress, size, started + budget.seconds, report)
                progress.seconds[size] = monotonic() - started
                results = [record for those in kept.done.values() for record in those]
                if results and task.first_only:
                    break
                progress.bound = size
                if enough(results):
                    break
    except BudgetSpent as spent:
        late = monotonic() - started >= budget.seconds
        progress.interrupted, progress.reason = True, budget.out_of_seconds if late else str(spent)
    except BrokenProcessPool:
        progress.interrupted, progress.reason = True, "a process was killed (did memory run out?)"
    except KeyboardInterrupt as signal:
        progress.interrupted, progress.reason, progress.signal = True, "stopped by a signal", signal
    finally:
        if not open_after:
            where.close()
    progress.results = [record for key in sorted(kept.done) for record in kept.done[key]]
    # A sketch of `size` instructions may take fences up to the bound: only a run to its end has seen all of them.
    progress.results.sort(key=lambda record: int(record.get("size", 0)))
    return progress


def _size(
    task: Work,
    where: SearchWorkers,
    kept: SearchJournal,
    progress: Progress,
    size: int,
    deadline: float,
    report: Callable[[int, int, int], None],
) -> None:
    """All sketches of one size. Raises BudgetSpent."""
    every = task.parts(size)
    progress.sketches += len(every)
    chunks = [(number, every[at : at + task.chunk]) for number, at in enumerate(range(0, len(every), task.chunk))]
    todo = iter([(number, chunk) for number, chunk in chunks if (size, number) not in kept.done])
    running: dict[Any, int] = {}

    def fill() -> None:
        for number, chunk in islice(todo, where.count * _AHEAD - len(running)):
            running[where.submit(task, chunk)] = number

    fill()
    while running:
        left = deadline - monotonic()
        if left <= 0:
            raise BudgetSpent
        for future in where.first(set(running), min(1.0, left)):
            number = running.pop(future)
            results = future.result()
            kept.add(size, number, results)
            report(size, sum(key[0] == size for key in kept.done), len(chunks))
            if results and task.first_only:
                return
        fill()
