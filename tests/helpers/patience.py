"""Time in tests. Other work may have the machine, so no test fails because the clock went on.

What a test waits for is waited for with patience: the time ends only for what never comes. What a test bounds is the
time of the processor that its own process used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 300.0
"""Seconds after which something that is waited for has failed to come."""


def eventually(condition: Callable[[], object]) -> bool:
    """True as soon as a condition holds; False if it never does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Assert that the block uses the processor for less than so many seconds."""
    began = time.process_time()
    yield
    used = time.process_time() - began
    assert used < most, f"{used:.1f} seconds of the processor"


def reasons_have_time() -> None:
    """For a person, a reason that takes too long is cut short; tests wait for it, as the machine may be busy."""
    from memmodel.why import limited

    limited.MOST = limited.QUICK = PATIENCE


def alive(pid: int) -> bool:
    """True if there is such a process and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processor_time(pid: int) -> float:
    """Seconds of the processor that a process has used, as Linux counts them; 0 if it is gone."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """The processes that a process started, as Linux lists them; none if it is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
