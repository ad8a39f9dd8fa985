"""Work on many things, on several processes.

In: jobs, and a function for one of them. Out: results in the order of the jobs, as they come. Settled here: a process
that dies costs its own job and nothing else; signals are the parent's to handle; no process outlives its parent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memmodel.limits import hold_memory

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection

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
            self._futures = [pool.submit(self._work, job) for job in self._jobs]
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


_FORKED: list[Callable[[Any], Any]] = []
"""What forked processes do with a job. It is there before they are forked, so that `pickle` need not take it."""


def forked(
    jobs: Sequence[J], processes: int, work: Callable[[J], R], until: float, patience: float = 0.0
) -> Iterator[tuple[J, R]]:
    """Each job with its result, as they come; jobs are begun in their order. On one process, or where no process can be
    forked, they run in this one.

    `until`, on the clock of `monotonic`: no job is begun in this process after that, and other processes may go on for
    `patience` seconds. Raises TimeoutError then, and BrokenProcessPool where a process was killed.
    """
    import multiprocessing

    parallel = min(processes, len(jobs), os.cpu_count() or 1)
    if parallel <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for job in jobs:
            if monotonic() > until:
                raise TimeoutError
            yield job, work(job)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed

    _FORKED.append(work)
    try:
        with ProcessPoolExecutor(parallel, multiprocessing.get_context("fork"), settle) as pool:
            try:
                job_of = {pool.submit(_forked_job, job): job for job in jobs}
                for future in as_completed(job_of, timeout=max(0.0, until + patience - monotonic())):
                    yield job_of[future], future.result()
            except BaseException:  # a signal, or the time is over: do not wait for jobs under way
                abandon(pool)
                raise
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
