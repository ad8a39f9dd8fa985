"""Python's search for cycles of objects, which is rare while answers are made.

Out: `rarely_collecting`; `COLLECTING` for a block that begins in one function and ends in another.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 200_000
"""More objects made than freed, before Python looks for cycles of them while an answer is made."""


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
        """An answer has ended: after the last one, Python collects as often as before."""
        with self._lock:
            self._answers -= 1
            if not self._answers:
                gc.set_threshold(*self._before)


COLLECTING = _Collecting()
"""Of this process."""


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Work without limits that makes as many objects as answers do."""
    COLLECTING.rarely()
    try:
        yield
    finally:
        COLLECTING.as_before()
