"""Signals that arrive while a call into a library keeps Python from handling them.

In: nothing. Out: `Signals`.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress


class Signals:
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
