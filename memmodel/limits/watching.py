"""Limits: a second thread looks at the work of others, and stops what has used up its budget.

In: Budget. Out: BudgetSpent in the thread that works.
"""

from __future__ import annotations

import gc
import importlib._bootstrap as _bootstrap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic, sleep
from types import TracebackType
from weakref import ReferenceType, ref

from memmodel.answer import Budget
from memmodel.base.identity import forget
from memmodel.collecting import COLLECTING
from memmodel.errors import BudgetSpent
from memmodel.limits.current import CURRENT
from memmodel.limits.signals import Signals
from memmodel.limits.usage import DataLimit, Usage

GRACE = 0.3
"""Seconds past the budget before the work is stopped from outside; the engines' own limits come first."""

TIME_TO_FINISH = 1.0
"""Seconds that the engine has to give what it has found before it is stopped for good."""

_BETWEEN_LOOKS = 0.02
"""Seconds."""

_LOOKS_AT_MEMORY = 3
"""Memory is looked at once in this number of looks: asking the system for it takes longer than reading a clock."""

_IDLE = 50
"""Looks without any limits after which the second thread ends."""

_SIGNALS = Signals()


class Limits:
    """`with Limits(budget):` raises BudgetSpent inside the block when time or memory is used up.

    Whoever catches it inside the block has TIME_TO_FINISH seconds left. `grace`: seconds past the budget before that.
    """

    def __init__(self, budget: Budget, grace: float = GRACE) -> None:
        self.budget = budget
        self._grace = grace
        self._interrupt: Callable[[], None] | None = None
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = False
        self._looks = 0
        self._next_stop = 0.0
        self._waits_until = 0.0
        self._woken = False
        self._broken_off = False  # the work, between any two of its steps
        self._spent: type[BudgetSpent] | None = None

    def __enter__(self) -> Limits:
        self._outer = CURRENT.limits
        CURRENT.limits = ref(self)
        self._usage = Usage(self.budget)
        self._data = DataLimit(self._usage.most_memory)
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
        CURRENT.limits = self._outer
        self._data.lift()
        COLLECTING.as_before()
        if self._broken_off or isinstance(error, MemoryError) or not (error is None or isinstance(error, Exception)):
            forget()
        if isinstance(error, MemoryError):
            raise BudgetSpent(self._usage.budget.out_of_memory) from error

    @property
    def over(self) -> bool:
        """True once the work has ended."""
        return self._over

    def reserve(self, size: int) -> None:
        """Raises BudgetSpent if these bytes more exceed the memory allowed."""
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
        if monotonic() < self._next_stop:
            return True
        usage = self._usage
        if usage.seconds_left() + self._grace < 0:
            return self._stop(usage.budget.out_of_seconds)
        if self._interrupt is None and usage.overworked():
            return self._stop(usage.budget.out_of_effort)
        self._looks += 1
        if self._looks % _LOOKS_AT_MEMORY == 0 and usage.memory_left() < 0:
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
        """Stop the work, or wait until a module is loaded, which would be left incomplete. False if it has ended."""
        import ctypes

        if self._interrupt is None and _imports(self._thread):
            self._waits_until = self._waits_until or monotonic() + TIME_TO_FINISH
            if monotonic() < self._waits_until:
                return True
        # Python takes a class here, not an instance: the reason is part of the class.
        # Workers hand over the plain error.
        plain = {"__str__": lambda _: reason, "__reduce__": lambda _: (BudgetSpent, (reason,))}
        spent = type("BudgetSpent", (BudgetSpent,), plain)
        with self._lock:
            if self._over:
                return False
            self._next_stop = monotonic() + TIME_TO_FINISH
            if self._interrupt is not None:
                self._spent = spent
                self._interrupt()
            else:
                self._broken_off = True
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
            if CURRENT.shared is not None:
                CURRENT.shared.usage.solver += passed
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


def _imports(thread: int) -> bool:
    """True if a thread is importing a module: it holds the lock of the module then. Looks at no frame."""
    locks = getattr(_bootstrap, "_module_locks", {})
    return any(getattr(reference(), "owner", None) == thread for reference in tuple(locks.values()))


class _Watcher:
    """The second thread, which looks at all limits in force. It starts when it is needed and ends when it has not been
    for a while: starting a thread for each answer would cost more than many answers.

    It must free nothing that belongs to the thread that works: Z3 may not be called by two threads. So it holds limits
    weakly, never looks at frames, and leaves collecting garbage to others. Limits end with the block under them, also
    where an exception came just as the block ended: then nothing refers to them any more.
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
            sleep(_BETWEEN_LOOKS)
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
    _WATCHER, _SIGNALS = _Watcher(), Signals()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _limits() -> Limits | None:
    """The limits that this thread works under."""
    limits = None if CURRENT.limits is None else CURRENT.limits()
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
    """These steps, or fewer if the limits that this thread works under say so."""
    limits = _limits()
    return most if limits is None else min(most, limits.budget.effort)


def reserve(size: int) -> None:
    """To call before many bytes are taken at once. Raises BudgetSpent if they are more than is left."""
    limits = _limits()
    if limits is not None:
        limits.reserve(size)
