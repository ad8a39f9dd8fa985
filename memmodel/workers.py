"""Work on many things, on several processes.

In: jobs, and a function for one of them. Out: results in the order of the jobs, or as they come. Settled here: a
process that dies costs its own job and nothing else; signals are the parent's; no process outlives its parent.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from memmodel.limits import hold_memory

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

J = TypeVar("J")
R = TypeVar("R")

_SIGKILL = 9


class Workers(Generic[J, R]):
    """Jobs under way. On one process they run in this one.

    `work` and `begin`, which every process calls first, must be what `pickle` takes. `died`: the result of a job whose
    process ended; true if it was killed, as the system does when memory runs out.
    """

    def __init__(
        self,
        jobs: Sequence[J],
        processes: int,
        work: Callable[[J], R],
        died: Callable[[J, bool], R],
        begin: Callable[[], None],
    ) -> None:
        self._jobs, self._processes = jobs, min(processes, len(jobs))
        self._work, self._died, self._begin = work, died, begin
        self._given = 0
        self._futures: list[Future[R]] = []

    def results(self) -> Iterator[R]:
        """One result for each job, as they come."""
        if self._processes <= 1:
            yield from map(self._work, self._jobs)
            return
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(self._processes, initializer=settle, initargs=(self._begin,)) as pool:
            self._futures = [_submitted(pool, self._work, job) for job in self._jobs]
            try:
                for job, future in zip(self._jobs, self._futures, strict=True):
                    result = self._result(job, future)
                    self._given += 1
                    yield result
            except BaseException:  # a signal, or the reader of our output is gone: do not wait for jobs under way
                abandon(pool)
                raise

    def each(self, take: Callable[[R], None]) -> KeyboardInterrupt | None:
        """Give each result to `take`, as they come. A signal ends the work; it is returned when `take` has got what was
        ready but had to wait for its turn.
        """
        try:
            for result in self.results():
                take(result)
        except KeyboardInterrupt as signal:
            for future in self._futures[self._given :]:
                if future.done() and not future.cancelled() and future.exception() is None:
                    take(future.result())
            return signal
        return None

    def _result(self, job: J, future: Future[R]) -> R:
        from concurrent.futures.process import BrokenProcessPool

        try:
            return future.result()
        except BrokenProcessPool:
            end_processes()  # the pool asks them with a signal that they do not heed, and waits for them
            return self._alone(job)

    def _alone(self, job: J) -> R:
        """Run one job in a process of its own, after some job ended the shared ones."""
        from multiprocessing import Pipe, Process

        receiver, sender = Pipe(duplex=False)
        child = Process(target=_send, args=(sender, self._begin, self._work, job))
        child.start()
        sender.close()
        try:
            result: R = receiver.recv()
            return result
        except EOFError:
            child.join()
        finally:
            child.kill()
        child.join(1)  # its processor time counts as ours from then on
        return self._died(job, child.exitcode == -_SIGKILL)


KILLED = "a process was killed (did memory run out?)"

_AHEAD = 4
"""Jobs that are begun for each process: all but one of them wait."""


class WorkerKilled(Exception):
    """A process ended that did a job, or another job beside it."""


def _submitted(pool: ProcessPoolExecutor, work: Callable[..., R], *arguments: Any) -> Future[R]:
    """A job that is begun as soon as a process is free. If a process has ended meanwhile, its future says so."""
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    try:
        return pool.submit(work, *arguments)
    except BrokenProcessPool as broken:
        future: Future[R] = Future()
        future.set_exception(broken)
        return future


class JobRunner(Protocol):
    """Runs jobs. Each job that is begun is a future."""

    count: int

    def results(self, future: Any) -> Any:
        """What a job that is done came to. Raises WorkerKilled."""

    def first(self, futures: set[Any], seconds: float) -> set[Any]:
        """Wait until one of some futures is done or the time is over; the futures that are done."""

    def forget(self) -> None:
        """Give up what was begun, and be ready for more."""


class ProcessPool:
    """A number of processes of this machine. `begin`: what each does first; it has to settle."""

    def __init__(
        self, count: int, context: BaseContext | None = None, begin: Callable[[], object] | None = None
    ) -> None:
        self.count = count
        self._context, self._begin = context, begin or settle
        self._pool = self._fresh(count)

    def _fresh(self, count: int) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(count, self._context, self._begin)

    def submit(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """Begin a job, as soon as a process is free."""
        return _submitted(self._pool, work, *arguments)

    def alone(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """The same in a process of its own, after some job ended the shared ones."""
        pool = self._fresh(1)
        future = pool.submit(work, *arguments)
        pool.shutdown(wait=False)  # it ends with its job
        return future

    def results(self, future: Future[R]) -> R:
        """What a job came to. Raises WorkerKilled, and what the job raised."""
        from concurrent.futures.process import BrokenProcessPool

        try:
            return future.result()
        except BrokenProcessPool:
            raise WorkerKilled from None

    def first(self, futures: set[Any], seconds: float | None) -> set[Any]:
        """Wait until one of some futures is done or the time is over; the futures that are done."""
        from concurrent.futures import FIRST_COMPLETED, wait

        return set(wait(futures, seconds, FIRST_COMPLETED).done)

    def forget(self) -> None:
        """Give up what was begun, and be ready for more."""
        self.close()
        self._pool = self._fresh(self.count)

    def close(self) -> None:
        """End the processes, whatever they do."""
        abandon(self._pool)


def surviving(
    jobs: Iterable[J], runner: JobRunner, begin: Callable[[J, bool], Any], until: float, ahead: int = _AHEAD
) -> Iterator[tuple[J, Any | None]]:
    """Each job with its result, as they come; None if its process was killed. Jobs are begun in their order. What was
    under way when a process ended is done once more, each job in a process of its own.

    `begin`: begins a job, in a process of its own if it is told so. `until`, on the clock of `monotonic`: raises
    TimeoutError then. `ahead`: how many jobs are begun for each process.
    """
    waiting, suspects = deque(jobs), deque[J]()
    running: dict[Any, J] = {}
    alone: set[Any] = set()
    while waiting or suspects or running:
        # Suspects first, while nothing else is under way that they could end.
        while suspects and len(running) < runner.count:
            job = suspects.popleft()
            future = begin(job, True)
            running[future] = job
            alone.add(future)
        while alone.isdisjoint(running) and waiting and len(running) < runner.count * ahead:
            job = waiting.popleft()
            running[begin(job, False)] = job
        left = until - monotonic()
        if left <= 0:
            raise TimeoutError
        broken = False
        for future in runner.first(set(running), min(1.0, left)):
            job = running.pop(future)
            try:
                yield job, runner.results(future)
            except WorkerKilled:
                if future in alone:
                    yield job, None
                else:
                    suspects.append(job)
                    broken = True
        if broken:  # what else is under way ends, too
            suspects.extend(running.values())
            running.clear()
            runner.forget()


_FORKED: list[Callable[[Any], Any]] = []
"""What forked processes do with a job. It is there before they are forked, so that `pickle` need not take it."""


def forked(
    jobs: Sequence[J],
    processes: int,
    work: Callable[[J], R],
    killed: Callable[[J], R],
    until: float,
    patience: float = 0.0,
) -> Iterator[tuple[J, R]]:
    """Each job with its result, as they come; jobs are begun in their order. On one process, or where no process can be
    forked, they run in this one. `killed`: the result of a job whose process was killed.

    `until`, on the clock of `monotonic`: no job is begun in this process after that, and other processes may go on for
    `patience` seconds. Raises TimeoutError then.
    """
    import multiprocessing

    parallel = min(processes, len(jobs), os.cpu_count() or 1)
    if parallel <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for job in jobs:
            if monotonic() > until:
                raise TimeoutError
            yield job, work(job)
        return
    _FORKED.append(work)
    try:
        pool = ProcessPool(parallel, multiprocessing.get_context("fork"))

        def begin(job: J, alone: bool) -> Future[R]:
            return (pool.alone if alone else pool.submit)(_forked_job, job)

        try:
            for job, result in surviving(jobs, pool, begin, until + patience):
                yield job, killed(job) if result is None else result
        finally:  # a signal may have come, or the time be over: jobs under way are not waited for
            pool.close()
    finally:
        _FORKED.pop()


def _forked_job(job: Any) -> Any:
    return _FORKED[-1](job)


def abandon(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they do."""
    pool.shutdown(wait=False)  # what waits fails with the processes; cancelled as well, it would fail twice
    end_processes()


def end_processes() -> None:
    """End every process that this one has started for work, whatever it does."""
    from multiprocessing import active_children

    for child in active_children():
        child.kill()
        child.join(1)  # its processor time counts as ours from then on


def _send(to: Connection, begin: Callable[[], None], work: Callable[[J], R], job: J) -> None:
    settle(begin)
    to.send(work(job))


def settle(begin: Callable[[], None] | None = None) -> None:
    """Begin a process for work. Signals to the whole group are the parent's to handle, and without the parent there is
    nothing to do. `begin` is called first."""
    import signal
    from multiprocessing import connection, parent_process
    from threading import Thread

    if begin is not None:
        begin()
    hold_memory()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a worker that ended first would look like one that died
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    Thread(target=watch, name="memmodel-parent", daemon=True).start()


def cores() -> int:
    """How many processes run at once on this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
