"""Time and memory of one answer: a second thread watches both and stops the work that has used them up.

In: Budget. Out: BudgetSpent, raised in the thread that does the work, wherever it stands. Settled here: work is not
trusted to look at the clock itself. Z3 is interrupted through its own call, by a signal too: Python runs the handler of
a signal when the call returns. Memory is what the process has gained since the work began, so that an answer does not
depend on what else the program holds.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from time import monotonic, sleep
from types import TracebackType
from weakref import ReferenceType, ref

from memmodel.answer import Budget
from memmodel.collecting import COLLECTING
from memmodel.errors import BudgetSpent

GRACE = 0.3
"""Seconds past the budget before the work is stopped from outside; the engines' own limits come first."""

LAST = 0.7
"""Seconds past the budget before all work of an answer is stopped, reading and explaining included."""

SLACK = 64 << 20
"""Bytes past the memory of a budget at which the system gives no more: one object may be larger than a machine."""

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


_HELD = [False]


def hold_memory() -> None:
    """From now on the system gives the process no more memory than its budgets and SLACK. For a process that is all
    memmodel's own."""
    _HELD[0] = True


class _DataLimit:
    """The system's limit on the writable memory of the process, while it is lowered; nothing where it has none."""

    def __init__(self, more: int) -> None:
        self._before: tuple[int, int] | None = None
        if not _HELD[0]:
            return
        try:
            import resource

            with open("/proc/self/statm", "rb") as handle:
                most = int(handle.read().split()[5]) * os.sysconf("SC_PAGE_SIZE") + more + SLACK
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            if soft == resource.RLIM_INFINITY or most < soft:
                resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
                self._before = soft, hard
        except (ImportError, OSError, ValueError, IndexError):
            return

    def lift(self) -> None:
        """As it was before."""
        if self._before is not None:
            import resource

            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_DATA, self._before)


class _Usage:
    """What the thread that makes this has used of a budget since then. `solver`: seconds that the solver computed."""

    def __init__(self, budget: Budget) -> None:
        self.most_memory = budget.memory or default_memory()
        self.budget = replace(budget, memory=self.most_memory)
        self.solver = 0.0
        self._most_work = 1 + budget.effort / STEPS_A_SECOND
        self._thread = threading.get_ident()
        self._started = monotonic()
        self._memory = memory_in_use()
        self._computed = self.computed()

    def computed(self) -> float:
        """Seconds that the thread has computed so far."""
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self._thread))
        except (AttributeError, OSError):  # no such clock here: the seconds of the budget have to do
            return 0.0

    def seconds_left(self) -> float:
        return self.budget.seconds - (monotonic() - self._started)

    def memory_left(self) -> int:
        return self.most_memory - (memory_in_use() - self._memory)

    def overworked(self) -> bool:
        """True if the work outside the solver has taken longer than the whole effort would."""
        return self.computed() - self._computed - self.solver > self._most_work


class _Signals:
    """A pipe into which Python writes a byte when a signal arrives: the handler itself runs in the main thread, as soon
    as a call into a library has returned there."""

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        self._others = -1

    def hear(self) -> int | None:
        """Begin to listen, where that is possible: who was written to before (-1: nobody)."""
        if os.name != "posix" or threading.current_thread() is not threading.main_thread():
            return None
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
        before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        if before != self._pipe[1]:
            self._others = before
        return before

    def came(self) -> bool:
        """True if signals have come since the last look. Who would have been told of them is told."""
        if self._pipe is None:
            return False
        try:
            numbers = os.read(self._pipe[0], 4096)
        except BlockingIOError:
            return False
        if self._others >= 0:
            with suppress(OSError):
                os.write(self._others, numbers)
        return True


_SIGNALS = _Signals()


class Limits:
    """`with Limits(budget):` raises BudgetSpent inside the block when time or memory is used up.

    Whoever catches it inside the block has AGAIN seconds to finish. `grace`: seconds past the budget before that.
    """

    def __init__(self, budget: Budget, grace: float = GRACE) -> None:
        self.budget = budget
        self._grace = grace
        self._interrupt: Callable[[], None] | None = None
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = False
        self._looks = 0
        self._again = 0.0
        self._woken = False
        self._spent: type[BudgetSpent] | None = None

    def __enter__(self) -> Limits:
        self._outer: ReferenceType[Limits] | None = _CURRENT.__dict__.get("limits")
        _CURRENT.limits = ref(self)
        self._usage = _Usage(self.budget)
        self._data = _DataLimit(self._usage.most_memory)
        COLLECTING.rarely()
        self._heard = _SIGNALS.hear()
        _WATCHER.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._finish()
        except BudgetSpent:  # it came too late: the work was done
            self._finish()
        if self._heard is not None:
            signal.set_wakeup_fd(self._heard)
        _CURRENT.limits = self._outer
        self._data.lift()
        COLLECTING.as_before()
        if isinstance(error, MemoryError):
            raise BudgetSpent(self._usage.budget.out_of_memory) from error

    @property
    def over(self) -> bool:
        """True once the work has ended."""
        return self._over

    def reserve(self, size: int) -> None:
        """Raises BudgetSpent if so many bytes more are more than the memory allowed."""
        if self._usage.memory_left() < size:
            raise BudgetSpent(self._usage.budget.out_of_memory)

    def _finish(self) -> None:
        self._over = True
        with self._lock:  # after this nothing more is raised, and what was raised before arrives in the next lines
            pass
        sleep(0)

    def look(self) -> bool:
        """Stop the work if it has used up its budget. False once it has ended. Called by the second thread."""
        if self._over:
            return False
        if self._woken:
            self.wake()
        if monotonic() < self._again:
            return True
        usage = self._usage
        if usage.seconds_left() + self._grace < 0:
            return self._stop(usage.budget.out_of_seconds)
        if self._interrupt is None and usage.overworked():
            return self._stop(usage.budget.out_of_effort)
        self._looks += 1
        if self._looks % _MEMORY_EVERY == 0 and usage.memory_left() < 0:
            return self._stop(usage.budget.out_of_memory)
        return True

    def wake(self) -> None:
        """Let the library return, at every look until it does: it may not have begun yet. Called by the second thread
        when a signal came."""
        with self._lock:
            self._woken = self._interrupt is not None and self._heard is not None
            if self._woken and self._interrupt is not None:
                self._interrupt()

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
        chain = tuple(self._chain())
        before = self._usage.computed()
        for limits in chain:
            with limits._lock:
                limits._interrupt = interrupt
        try:
            yield
        finally:
            passed = self._usage.computed() - before
            together: _Together | None = _CURRENT.__dict__.get("together")
            if together is not None:
                together.usage.solver += passed
            for limits in chain:
                with limits._lock:
                    limits._usage.solver += passed
                    limits._interrupt, limits._woken = None, False
            self.settle()

    def settle(self) -> None:
        """Between two calls under `outside`, where an exception does no harm: raise what would come at its end."""
        for limits in self._chain():
            with limits._lock:
                spent, limits._spent = limits._spent, None
            if spent is not None:
                raise spent

    def _chain(self) -> Iterator[Limits]:
        """These limits and those around them, which the same thread works under."""
        limits: Limits | None = self
        while limits is not None:
            yield limits
            limits = None if limits._outer is None else limits._outer()


_CURRENT = threading.local()


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
                with self._lock:
                    needed = self._runs = idle < _IDLE or bool(self._limits)
            finally:
                if collects:
                    gc.enable()

    def _look(self) -> bool:
        """Look at all limits once. False if none is left."""
        signalled = _SIGNALS.came()
        with self._lock:
            known = tuple(self._limits)
        ended = [reference for reference in known if not _watched(reference(), signalled)]
        with self._lock:
            self._limits = [reference for reference in self._limits if reference not in ended]
            return bool(self._limits)


def _watched(limits: Limits | None, signalled: bool) -> bool:
    """`look`, whatever happens in it: what fails once, such as a file that cannot be opened just now, is tried again at
    the next look. This thread must not end while it is needed."""
    try:
        if limits is not None and signalled:
            limits.wake()
        return limits is not None and limits.look()
    except Exception:
        return True


_WATCHER = _Watcher()


def _forked() -> None:
    """A forked process has no second thread, and a pipe that is its parent's."""
    global _WATCHER, _SIGNALS
    _WATCHER, _SIGNALS = _Watcher(), _Signals()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# ---- several answers under one budget --------------------------------------------------------------------------------


class _Together:
    """What a number of answers have used so far."""

    def __init__(self, budget: Budget) -> None:
        self.usage = _Usage(budget)
        self._counts: list[Callable[[], int]] = []
        self._effort = 0

    def count(self, spent: Callable[[], int]) -> None:
        """From now on, this is part of the effort."""
        self._counts.append(spent)

    def left(self) -> Budget:
        """What the next answer may use. Raises BudgetSpent if there is nothing left."""
        self._effort += sum(spent() for spent in self._counts)
        self._counts.clear()
        usage, budget = self.usage, self.usage.budget
        left = Budget(
            budget.effort - self._effort,
            usage.seconds_left(),
            min(usage.memory_left(), usage.most_memory),
            budget.whole or budget,
        )
        if left.effort <= 0 or usage.overworked():
            raise BudgetSpent(budget.out_of_effort)
        if left.seconds <= 0:
            raise BudgetSpent(budget.out_of_seconds)
        if usage.memory_left() <= 0:
            raise BudgetSpent(budget.out_of_memory)
        return left


@contextmanager
def together(budget: Budget) -> Iterator[None]:
    """All answers inside the block share one budget."""
    outer = _CURRENT.__dict__.get("together")
    _CURRENT.together = _Together(budget)
    try:
        yield
    finally:
        _CURRENT.together = outer


@contextmanager
def whole(budget: Budget) -> Iterator[None]:
    """Everything inside the block shares one budget: what is answered, and also what no engine watches, such as reading
    and explaining. Raises BudgetSpent."""
    with together(budget), Limits(replace(budget, effort=sys.maxsize, whole=budget.whole or budget), LAST):
        yield


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
        left.whole,
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
    return most if limits is None else min(most, limits.budget.effort)


def reserve(size: int) -> None:
    """Before so many bytes are taken at once. Raises BudgetSpent if they are more than is left."""
    limits = _limits()
    if limits is not None:
        limits.reserve(size)
