"""The process that judges, and the folder that it shares with the program.

In: a folder. Out: `JudgingProcess`. Settled here: it has low priority (`worker`) and shares no file of the program, so
that no reader of the program's output waits for it. A shell spawns it: a fork of the program in another thread
would keep the pipe of `subprocess` open, and a program that waits for all its children would wait for it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memmodel
from memmodel.triton import VARIABLE

SPAWN = '"$0" -m memmodel.triton.worker "$1" "$2" & echo $! > "$1/worker.pid"'
"""What the shell runs: the worker is no child of the program, which may wait for all its children."""


@dataclass(frozen=True, slots=True)
class JudgingProcess:
    """The process that judges."""

    process: int

    @staticmethod
    def spawned(folder: Path) -> JudgingProcess:
        """Start it. Its three standard files are empty, and it closes all others."""
        home = str(Path(memmodel.__file__).resolve().parent.parent)
        paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        environment.pop(VARIABLE, None)
        command = ["/bin/sh", "-c", SPAWN, sys.executable, str(folder), str(os.getpid())]
        files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        try:
            shell = os.posix_spawn(command[0], command, environment, file_actions=files, setsid=True)
        except NotImplementedError:  # a system that starts no process in a session of its own
            shell = os.posix_spawn(command[0], command, environment, file_actions=files)
        with suppress(ChildProcessError):
            os.waitpid(shell, 0)
        return JudgingProcess(int((folder / "worker.pid").read_text()))

    @property
    def runs(self) -> bool:
        """True until it has ended."""
        try:
            os.kill(self.process, 0)
            state = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[0]
        except ProcessLookupError:
            return False
        except (OSError, IndexError):
            return not Path("/proc/self").exists()
        return state != "Z"

    def end(self) -> None:
        """End it, and wait until it has ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for _ in range(50):
                if not self.runs:
                    return
                with suppress(OSError):
                    os.kill(self.process, number)
                time.sleep(0.1)


def put(path: Path, data: dict[str, Any]) -> None:
    """Write a file that is complete as soon as it is there."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path)


def take(path: Path) -> dict[str, Any] | None:
    """A result; None until it is there."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
