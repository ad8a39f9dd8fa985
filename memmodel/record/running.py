"""A program, run with the library in front of the driver.

In: words of a command, the library, a folder. Out: how the program ended. Settled here: it has our standard files and
our terminal; a signal that we get goes to it, and does not end us before it has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from memmodel.errors import InputError

FOLDER, PRELOADED = "MEMMODEL_RECORD", "LD_PRELOAD"
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends these to the program as well."""
HANDED_ON = (signal.SIGTERM, signal.SIGHUP)


def run_watched(command: Sequence[str], library: Path, folder: Path) -> int:
    """The exit code of a program; 128 and the number of the signal that ended it. Raises InputError."""
    preloaded = os.environ.get(PRELOADED, "")
    words = f"{library}:{preloaded}" if preloaded else str(library)
    environment = {**os.environ, PRELOADED: words, FOLDER: str(folder)}
    with _handing_on() as hand_on_to:
        try:
            program = subprocess.Popen(command, env=environment, close_fds=False)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{command[0]}: cannot be started: {why}") from error
        hand_on_to(program)
        code = program.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _handing_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Inside the block, signals are for the program that is named: also those that come while it is being started."""
    programs: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if number in HANDED_ON and programs:
            with suppress(OSError):
                programs[0].send_signal(number)
        elif number in HANDED_ON:
            early.append(number)

    def hand_on_to(program: subprocess.Popen[bytes]) -> None:
        programs.append(program)
        for number in early:
            with suppress(OSError):
                program.send_signal(number)

    before = {number: signal.getsignal(number) for number in (*FROM_TERMINAL, *HANDED_ON)}
    try:
        for number, old in before.items():
            if old is not signal.SIG_IGN:  # what is ignored stays so, here and in the program
                with suppress(ValueError):  # not the main thread: nothing arrives here
                    signal.signal(number, handle)
        yield hand_on_to
    finally:
        for number, old in before.items():
            with suppress(TypeError, ValueError):
                signal.signal(number, old)
