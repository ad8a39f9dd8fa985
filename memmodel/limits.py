"""Time and memory of one answer: a second thread looks at both and stops the work that has used them up.

In: Budget. Out: BudgetSpent, raised in the thread that does the work, wherever it stands. Settled here: work is not
trusted to look at the clock itself. Z3 is interrupted through its own call. Memory is what the process has gained since
the work began, so that an answer does not depend on what else the program holds.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from time import monotonic, sleep
from types import TracebackType
from weakref import ReferenceType, ref

from memmodel.answer import Budget
from memmodel.errors import BudgetSpent

GRACE = 0.5
"""Seconds past the budget before the work is stopped from outside; the engines' own limits come first."""

AGAIN = 1.0
"""Seconds that the engine has to give what it has found before it is stopped for good."""

STEPS_A_SECOND = 1_000_000
"""What a second of work outside the solver counts for, such as writing formulas; the first second is free."""

_EVERY = 0.02
_MEMORY_EVERY = 3
"""At so many looks the memory is asked for: the system takes longer to say it than a clock."""

_IDLE = 50
"""Looks without any limits after which the second thread ends."""

_MOST = 4 << 30

ALLOCATIONS = 50_000
"""More objects made than freed, before Python looks for cycles of them while an answer is made."""


def default_memory() -> int:
    """Half of the machine's memory, at most 4 GB."""
    try:
        return min(_MOST, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    except (AttributeError, OSError, ValueError):
        return _MOST


def shared(budget: Budget, jobs: int) -> Budget:
    """The budget of each of so many processes at once: they share the memory."""
    return budget if jobs <= 1 else replace(budget, memory=(budget.memory or default_memory()) // jobs)


def memory_in_use() -> int:
    """Bytes of the process that are in memory; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Limits:
    """`with Limits(budget):` raises BudgetSpent inside the block when time or memory is used up.

    Whoever catches it inside the block has AGAIN seconds to finish.
    """

    def __init__(self, budget: Budget) -> None:
        self.effort = budget.effort
        self._seconds = budget.seconds
        self._memory = budget.memory or default_memory()
        self._interrupt: Callable[[], None] | None = None
        self._most_work = 1 + budget.effort / STEPS_A_SECOND
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = False
        self._looks = 0
        self._spent: type[BudgetSpent] | None = None

    def __enter__(self) -> Limits:
        self._outer: ReferenceType[Limits] | None = _CURRENT.__dict__.get("limits")
        _CURRENT.limits = ref(self)
        self._started = monotonic()
        self._before = memory_in_use()
        self._solver = 0.0
        self._worked = self._cpu()
        self._deadline = self._started + self._seconds + GRACE
        self._again = 0.0
        _COLLECTING.rarely()
        _WATCHER.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._finish()
        except BudgetSpent:  # it came too late: the work was done
            self._finish()
        _CURRENT.limits = self._outer
        _COLLECTING.as_before()

    @property
    def over(self) -> bool:
        """True once the work has ended."""
        return self._over

    def reserve(self, size: int) -> None:
        """Raises BudgetSpent if so many bytes more are more than the memory allowed."""
        if memory_in_use() - self._before + size > self._memory:
            raise BudgetSpent(f"the budget of {self._memory / (1 << 20):,.0f} MB of memory ran out")

    def _finish(self) -> None:
        self._over = True
        with self._lock:  # after this nothing more is raised, and what was raised before arrives in the next lines
            pass
        sleep(0)

    def look(self) -> bool:
        """Stop the work if it has used up its budget. False once it has ended. Called by the second thread."""
        if self._over:
            return False
        now = monotonic()
        if now < self._again:
            return True
        if now > self._deadline:
            return self._stop(f"the budget of {self._seconds:g} seconds ran out")
        if self._interrupt is None and self._cpu() - self._worked - self._solver > self._most_work:
            return self._stop(f"the budget of {self.effort:,} solver steps ran out")
        self._looks += 1
        if self._looks % _MEMORY_EVERY == 0 and memory_in_use() - self._before > self._memory:
            return self._stop(f"the budget of {self._memory / (1 << 20):,.0f} MB of memory ran out")
        return True

    def _cpu(self) -> float:
        """Seconds that the thread that works has computed so far."""
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self._thread))
        except (AttributeError, OSError):  # no such clock here: the seconds of the budget have to do
            return 0.0

    def _stop(self, reason: str) -> bool:
        """Stop the work. False if it has ended."""
        import ctypes

        # Python takes a class here, not an instance: the reason is part of the class.
        spent = type("BudgetSpent", (BudgetSpent,), {"__str__": lambda _: reason})
        with self._lock:
            if self._over:
                return False
            self._again = monotonic() + AGAIN
            if self._interrupt is not None:
                self._spent = spent
                self._interrupt()
            else:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(spent))
        return True

    @contextmanager
    def outside(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Around calls into a library that Python's exceptions must not reach: they are interrupted instead.

        `interrupt` may be called at any time in between, by another thread, also where there is nothing to interrupt.
        """
        before = self._cpu()
        with self._lock:
            self._interrupt = interrupt
        try:
            yield
        finally:
            passed = self._cpu() - before
            together: _Together | None = _CURRENT.__dict__.get("together")
            if together is not None:
                together.solver += passed
            with self._lock:
                self._solver += passed
                self._interrupt = None
                spent, self._spent = self._spent, None
            if spent is not None:
                raise spent

    def settle(self) -> None:
        """Between two calls under `outside`, where an exception does no harm: raise what would come at its end."""
        with self._lock:
            spent, self._spent = self._spent, None
        if spent is not None:
            raise spent


_CURRENT = threading.local()


class _Collecting:
    """Python's search for cycles of objects, which is rare while answers are made: formulas are many, and hold none.
    As often as Python does, it took a tenth of a large test."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers = 0
        self._before = gc.get_threshold()

    def rarely(self) -> None:
        """An answer begins."""
        with self._lock:
            if not self._answers:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < ALLOCATIONS:
                    gc.set_threshold(ALLOCATIONS, *self._before[1:])
            self._answers += 1

    def as_before(self) -> None:
        """It has ended."""
        with self._lock:
            self._answers -= 1
            if not self._answers:
                gc.set_threshold(*self._before)


_COLLECTING = _Collecting()


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Work without limits that makes as many objects as answers do."""
    _COLLECTING.rarely()
    try:
        yield
    finally:
        _COLLECTING.as_before()


class _Watcher:
    """The second thread, which looks at all limits in force. It starts when it is needed and ends when it has not been
    for a while: starting a thread for each answer would cost more than many answers.

    It must free nothing that belongs to the thread that works: Z3 may not be called by two threads. So it holds limits
    weakly, never looks at frames, and leaves collecting garbage to others. Limits end with the block under them, also
    where an exception came just as the block ended: then nobody refers to them any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: list[ReferenceType[Limits]] = []
        self._runs = False

    def add(self, limits: Limits) -> None:
        """Look at these limits until the work under them has ended."""
        with self._lock:
            self._limits.append(ref(limits))
            if not self._runs:
                threading.Thread(target=self._run, name="memmodel-limits", daemon=True).start()
                self._runs = True

    def _run(self) -> None:
        idle, needed = 0, True
        while needed:
            sleep(_EVERY)
            collects = gc.isenabled()
            gc.disable()  # what is garbage may be of Z3
            try:
                idle = 0 if self._look() else idle + 1
                needed = self._needed(idle)
            finally:
                if collects:
                    gc.enable()

    def _needed(self, idle: int) -> bool:
        with self._lock:
            self._runs = idle < _IDLE or bool(self._limits)
            return self._runs

    def _look(self) -> bool:
        """Look at all limits once. False if none is left."""
        with self._lock:
            known = tuple(self._limits)
        ended = [reference for reference in known if not _watched(reference())]
        with self._lock:
            self._limits = [reference for reference in self._limits if reference not in ended]
            return bool(self._limits)


def _watched(limits: Limits | None) -> bool:
    """`look`, whatever happens in it: what fails once, such as a file that cannot be opened just now, is tried again at
    the next look. This thread must not end while it is needed."""
    try:
        return limits is not None and limits.look()
    except Exception:
        return True


_WATCHER = _Watcher()


def _forked() -> None:
    """A forked process has no second thread."""
    global _WATCHER
    _WATCHER = _Watcher()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# ---- several answers under one budget --------------------------------------------------------------------------------


class _Together:
    """What a number of answers have used so far."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._memory = budget.memory or default_memory()
        self._deadline = monotonic() + budget.seconds
        self._before = memory_in_use()
        self._counts: list[Callable[[], int]] = []
        self._effort = 0
        self.solver = 0.0
        self._worked = time.thread_time()

    def count(self, spent: Callable[[], int]) -> None:
        """From now on, this is part of the effort."""
        self._counts.append(spent)

    def left(self) -> Budget:
        """What the next answer may use. Raises BudgetSpent if there is nothing left."""
        self._effort += sum(spent() for spent in self._counts)
        self._counts.clear()
        effort, seconds = self._budget.effort - self._effort, self._deadline - monotonic()
        memory = self._memory - max(0, memory_in_use() - self._before)
        worked = time.thread_time() - self._worked - self.solver
        if effort <= 0 or worked > 1 + self._budget.effort / STEPS_A_SECOND:
            raise BudgetSpent(f"the budget of {self._budget.effort:,} solver steps ran out")
        if seconds <= 0:
            raise BudgetSpent(f"the budget of {self._budget.seconds:g} seconds ran out")
        if memory <= 0:
            raise BudgetSpent(f"the budget of {self._memory / (1 << 20):,.0f} MB of memory ran out")
        return Budget(effort, seconds, memory)


@contextmanager
def together(budget: Budget) -> Iterator[None]:
    """All answers inside the block share one budget."""
    outer = _CURRENT.__dict__.get("together")
    _CURRENT.together = _Together(budget)
    try:
        yield
    finally:
        _CURRENT.together = outer


def available(budget: Budget) -> Budget:
    """The budget of one answer: what is left of the one shared, if any. Raises BudgetSpent if nothing is."""
    shared: _Together | None = _CURRENT.__dict__.get("together")
    if shared is None:
        return budget
    left = shared.left()
    return Budget(
        min(left.effort, budget.effort),
        min(left.seconds, budget.seconds),
        min(left.memory or _MOST, budget.memory or default_memory()),
    )


def counted(spent: Callable[[], int]) -> None:
    """Let a worker's effort count where several answers share a budget."""
    shared: _Together | None = _CURRENT.__dict__.get("together")
    if shared is not None:
        shared.count(spent)


def _limits() -> Limits | None:
    """The limits that this thread works under."""
    known: ReferenceType[Limits] | None = _CURRENT.__dict__.get("limits")
    limits = None if known is None else known()
    return None if limits is None or limits.over else limits


def outside(interrupt: Callable[[], None]) -> AbstractContextManager[None]:
    """`Limits.outside` of the limits that this thread works under, if any."""
    limits = _limits()
    return nullcontext() if limits is None else limits.outside(interrupt)


def settle() -> None:
    """`Limits.settle` of the limits that this thread works under, if any."""
    limits = _limits()
    if limits is not None:
        limits.settle()


def effort(most: int) -> int:
    """So many steps, or fewer if the limits that this thread works under say so."""
    limits = _limits()
    return most if limits is None else min(most, limits.effort)


def reserve(size: int) -> None:
    """Before so many bytes are taken at once. Raises BudgetSpent if they are more than is left."""
    limits = _limits()
    if limits is not None:
        limits.reserve(size)
