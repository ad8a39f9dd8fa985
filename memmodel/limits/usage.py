"""What work has used of a budget: seconds, memory, and computing beside the solver.

In: Budget. Out: `Usage`; the system's own limit on memory, where a process is all memmodel's.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from time import monotonic

from memmodel.answer import Budget

SLACK = 64 << 20
"""Bytes past the memory of a budget at which the system gives no more: one object may be larger than a machine."""

STEPS_A_SECOND = 1_000_000
"""Solver steps that a second of other work counts as, such as writing formulas; the first second is free."""

MOST_MEMORY = 4 << 30
"""Bytes of one answer, unless its budget says otherwise."""


def default_memory() -> int:
    """Half of the machine's memory, at most 4 GB."""
    try:
        return min(MOST_MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    except (AttributeError, OSError, ValueError):
        return MOST_MEMORY


def shared(budget: Budget, jobs: int) -> Budget:
    """The budget of each of several processes that run at once: they share the memory."""
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


class DataLimit:
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


class Usage:
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
