"""The process that judges what a watched program launches.

In: a folder with calls (`*.call`), and the process that waits for them. Out: a `*.result` beside each. It ends when
nothing comes for a while, or when all is judged and that process is gone; what it judged is kept on disk either way.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from memmodel.triton.calls import TritonCall
from memmodel.triton.judging import TritonJudge

IDLE = 30.0
"""Seconds without a call, after which the process ends; the next call starts another."""


def main(folder: Path, parent: int) -> None:
    """Judge the calls of a folder until its program has ended and no call is left."""
    os.closerange(3, 4096)  # whatever the program had open, and meant for its children
    os.nice(10)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    judge = TritonJudge(options["model"], options["seconds"])
    idle_since = time.monotonic()
    while folder.is_dir():
        calls = [path for path in sorted(folder.glob("*.call")) if not path.with_suffix(".result").exists()]
        if not calls:
            if not _lives(parent):
                shutil.rmtree(folder, ignore_errors=True)
                return
            if time.monotonic() - idle_since > IDLE:
                return
            time.sleep(0.1)
            continue
        judged(calls[0], judge)
        idle_since = time.monotonic()


def judged(path: Path, judge: TritonJudge) -> None:
    """Judge one call; its result is there whole, or not at all."""
    busy = path.with_suffix(".busy")
    busy.touch()
    try:
        data = judge.result(TritonCall.of_json(json.loads(path.read_text(encoding="utf-8")))).to_json()
    except Exception as error:
        data = {"word": "refused", "text": f"memmodel failed on it: {type(error).__name__}: {error}"}
    part = path.with_suffix(".done")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path.with_suffix(".result"))
    busy.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    """True if the process that started this one still runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
