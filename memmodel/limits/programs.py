"""Another program, which ends when the budget of this thread does.

In: a command. Out: what it wrote. Nothing of it is left behind, the programs that it has started included.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from memmodel.limits.watching import outside


def output(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program without input, for `seconds` at most. Raises BudgetSpent, OSError, ValueError, TimeoutExpired."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            with outside(lambda: _end(process)):
                out, complaints = process.communicate(timeout=seconds)
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, complaints)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and those that it has started, which may hold its streams open."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
