"""Many sketches judged: on one process, on several, or on a Dask cluster; a file keeps what is done.

In: a `Work`, sizes. Out: `Progress`, with every result and the largest size that is done. Settled here: chunks. A chunk
of sketches is judged as a whole, counted once, whichever worker ends it and however often it was begun; a run that was
interrupted goes on with the chunks that the file lacks. A process that is killed costs its own chunk and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Protocol

from memmodel.answer import Budget
from memmodel.errors import BudgetSpent, InputError
from memmodel.limits import Limits, default_memory
from memmodel.search.journal import Journal
from memmodel.search.sketches import Sketch, sketches
from memmodel.search.vocabulary import Vocabulary
from memmodel.workers import KILLED, ProcessPool, WorkerKilled, settle, surviving

NO_END = Budget(sys.maxsize, 1e9)
"""The budget of work that is not bounded in time."""

Record = dict[str, Any]
"""One result, as JSON has it."""


class Work(Protocol):
    """A task: the question that a long run asks of each of its parts. It is sent to workers as it is."""

    @property
    def most(self) -> int:
        """The instructions of the largest ones."""

    @property
    def chunk(self) -> int:
        """The number of parts that are judged together."""

    @property
    def first_only(self) -> bool:
        """True if the search ends with the first result."""

    def key(self) -> str:
        """All that the results depend on."""

    def parts(self, size: int) -> list[Any]:
        """What is judged for programs of this number of instructions."""

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
        """The sketches of this number of instructions."""
        return list(sketches(self.vocabulary, size))


@dataclass(slots=True)
class Progress:
    """`bound`: every program of up to `bound` instructions has been judged. `seconds`: when each size was done.

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
    """Judges chunks, in this process or in others."""

    count: int

    def submit(self, task: Work, chunk: Sequence[Any]) -> Any: ...

    def alone(self, task: Work, chunk: Sequence[Any]) -> Any:
        """Judge a chunk in a process of its own, after some chunk ended the shared processes."""

    def results(self, future: Any) -> list[Record]:
        """The records of a chunk that is done. Raises WorkerKilled and BudgetSpent."""

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

    alone = submit

    def results(self, future: Future[list[Record]]) -> list[Record]:
        return future.result()

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        return set(futures)

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass


class Processes:
    """A number of processes of this machine."""

    def __init__(self, count: int, memory: int | None = None) -> None:
        self.count = count
        whole = memory or default_memory()
        # This process takes one share of the memory, too.
        self._budget = replace(NO_END, memory=whole // (count + 1), original=Budget(memory=whole))
        self._pool = ProcessPool(count, begin=_begin)
        self.first, self.forget, self.close = self._pool.first, self._pool.forget, self._pool.close

    def submit(self, task: Work, chunk: Sequence[Any]) -> Future[list[Record]]:
        return self._pool.submit(judge_chunk, task, chunk, self._budget)

    def alone(self, task: Work, chunk: Sequence[Any]) -> Future[list[Record]]:
        return self._pool.alone(judge_chunk, task, chunk, self._budget)

    def results(self, future: Future[list[Record]]) -> list[Record]:
        return self._pool.results(future)


def _begin() -> None:
    """Begin a process of a search. Where memory runs out C++ says so before it ends the process; the search says it."""
    settle()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


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
        """Wait until this number of workers is there."""
        self._client.wait_for_workers(workers, timeout=60)
        self.count = max(self.count, workers)

    def submit(self, task: Work, chunk: Sequence[Any]) -> Any:
        return self._client.submit(judge_chunk, task, chunk, pure=False, retries=3)

    alone = submit

    def results(self, future: Any) -> list[Record]:
        from distributed import KilledWorker

        try:
            records: list[Record] = future.result()
        except KilledWorker:
            raise WorkerKilled from None
        return records

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        from distributed import wait as wait_for

        try:
            with self._client.as_current():
                return set(wait_for(list(futures), timeout=seconds, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return set()

    def forget(self) -> None:
        """The cluster ends what was begun, without being waited for."""

    def close(self) -> None:
        self._client.close()


def workers(jobs: int, executor: str | None, memory: int | None = None) -> SearchWorkers:
    """The workers that `--jobs` and `--executor` ask for. Raises InputError."""
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
    killed: Callable[[Any], list[Record]] | None = None,
    open_after: bool = False,
) -> Progress:
    """Judge every sketch up to the task's size, or while time and memory last. `first`: the size to begin with, where
    smaller ones have been judged. `whole`: the seconds of which `seconds` are left, as the reason names them. `report`:
    size, chunks done, chunks.

    `enough`: asked once a size is done; then no larger programs are tried. `killed`: what is said of a part whose
    process was killed; without it the size counts as interrupted. `open_after`: the workers have more to do.
    """
    kept, progress, started = SearchJournal(journal, task.key()), Progress(), monotonic()
    limits = replace(NO_END, seconds=NO_END.seconds if seconds is None else seconds, memory=memory)
    named = limits if whole is None else replace(limits, seconds=whole)
    budget = replace(limits, memory=None if memory is None else memory // (where.count + 1), original=named)
    try:
        with Limits(budget):
            for size in range(first, task.most + 1):
                _Size(task, where, kept, size, killed).judge(progress, started + budget.seconds, report)
                progress.seconds[size] = monotonic() - started
                results = [record for records in kept.done.values() for record in records]
                if results and task.first_only:
                    break
                progress.bound = size
                if enough(results):
                    break
    except BudgetSpent as spent:
        late = monotonic() - started >= budget.seconds
        progress.interrupted, progress.reason = True, budget.out_of_seconds if late else str(spent)
    except KeyboardInterrupt as signal:
        progress.interrupted, progress.reason, progress.signal = True, "stopped by a signal", signal
    finally:
        if not open_after:
            where.close()
    progress.results = [record for key in sorted(kept.done) for record in kept.done[key]]
    # A sketch of `size` instructions may take fences up to the bound: only a run to its end has seen all of them.
    progress.results.sort(key=lambda record: int(record.get("size", 0)))
    return progress


class _Size:
    """All sketches of one size."""

    def __init__(
        self,
        task: Work,
        where: SearchWorkers,
        kept: SearchJournal,
        size: int,
        killed: Callable[[Any], list[Record]] | None,
    ) -> None:
        self.task, self.where, self.kept, self.size, self.killed = task, where, kept, size, killed
        self.parts = task.parts(size)
        self.chunks = [self.parts[at : at + task.chunk] for at in range(0, len(self.parts), task.chunk)]
        self.lost = False

    def judge(self, progress: Progress, deadline: float, report: Callable[[int, int, int], None]) -> None:
        """Raises BudgetSpent."""
        progress.sketches += len(self.parts)
        waiting = [number for number in range(len(self.chunks)) if (self.size, number) not in self.kept.done]
        try:
            for number, records in surviving(waiting, self.where, self._begin, deadline):
                if records is None:
                    results = self._given_up(number)
                else:
                    results = records
                    self.kept.add(self.size, number, results)
                report(self.size, sum(key[0] == self.size for key in self.kept.done), len(self.chunks))
                if results and self.task.first_only:
                    return
        except TimeoutError:
            raise BudgetSpent from None
        if self.lost:
            raise BudgetSpent(KILLED)

    def _begin(self, number: int, alone: bool) -> Any:
        return (self.where.alone if alone else self.where.submit)(self.task, self.chunks[number])

    def _given_up(self, number: int) -> list[Record]:
        """The records of a chunk that ended even a process of its own. The file does not keep them, so a resumed run
        tries the chunk again.
        """
        if self.killed is None:
            self.lost = True
            return []
        records = [record for part in self.chunks[number] for record in self.killed(part)]
        self.kept.done[self.size, number] = records
        return records
