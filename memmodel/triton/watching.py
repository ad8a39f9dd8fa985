"""Hooks of Triton: each new specialization that a program launches is judged once, in another process.

In: what the hooks of `triton.knobs.runtime` say. Out: results, and lines on standard error. Settled here: the program
goes on whatever happens. A hook does nothing but note the first launch of a kernel as a file, and no exception leaves
it. The files are read by one other process (`judging_process`). At the end of the program its verdicts are awaited for
a time that is said. A process that the program forks writes into the same folder, and starts no such process of its
own.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memmodel.triton.calls import TritonCall, call_of
from memmodel.triton.judging import TritonResult
from memmodel.triton.judging_process import JudgingProcess, put, take
from memmodel.triton.options import WatchOptions

MOST_LINES = 60
LOOK_EVERY = 1.0
"""Seconds between two looks for verdicts while the program launches kernels."""


_ASKED = threading.local()
"""In each thread, what the last launch handed over to another hook that asked for it (a profiler), if one did."""


class HandingOver:
    """Stands as `launch_metadata` of a function, so that its launches hand over their grid and their arguments; says
    what the one before it says."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(self, *args: Any) -> Any:
        _ASKED.handed = [args]
        return {} if self.before is None else self.before(*args)


@dataclass(slots=True)
class _Noted:
    """A launch that was written down. `shown`: its verdict was printed."""

    call: TritonCall | None
    path: Path
    shown: bool = False


class TritonWatch:
    """Watches the launches of a program."""

    def __init__(self, options: WatchOptions) -> None:
        self.options = options
        self.trouble = ""
        """Why something was not watched; empty while all is well."""
        self.results: list[TritonResult] = []
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._process = os.getpid()
        self._worker: JudgingProcess | None = None
        # Made before anything is launched: a process that is forked later has it too.
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix="memmodel-triton-"))
        put(self._folder / "options.json", {"model": options.model, "seconds": options.seconds})
        self._kernels: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._counts: dict[str, int] = {}
        self._seen: set[str] = set()
        self._noted: dict[str, _Noted] = {}
        self._number = 0
        self._looked = 0.0

    # ---- hooks: nothing leaves them --------------------------------------------------------------------------------

    def compiled(self, *, key: str = "", fn: Any = None, **_: Any) -> bool | None:
        """`jit_post_compile_hook`: a specialization was compiled, or read from the disk."""
        try:
            self._compiled(key, fn)
        except Exception as error:
            self._troubled(error)
        return None

    def launched(self, metadata: Any) -> None:
        """`launch_enter_hook`: a kernel is about to run."""
        if getattr(self._busy, "inside", False):
            return
        self._busy.inside = True
        try:
            self._launched(metadata)
        except Exception as error:
            self._troubled(error)
        finally:
            self._busy.inside = False
            _ASKED.handed = []

    def _compiled(self, key: str, fn: Any) -> None:
        function = getattr(fn, "jit_function", fn)
        for cache in function.device_caches.values():
            kernel = cache[0].get(key)
            if kernel is not None and hasattr(kernel, "asm"):
                self.follow(function, kernel)

    def follow(self, function: Any, kernel: Any) -> None:
        """From now on, a launch of the kernel hands its grid and its arguments to the hooks."""
        with self._lock:
            self._kernels[str(kernel.hash)] = kernel
            if not isinstance(function.launch_metadata, HandingOver):
                function.launch_metadata = HandingOver(function.launch_metadata)

    def _launched(self, metadata: Any) -> None:
        handed = [args for func, args in list(getattr(metadata, "extras", ())) if isinstance(func, HandingOver)]
        for grid, kernel_metadata, bound in handed or getattr(_ASKED, "handed", []):
            self.launch(str(kernel_metadata.hash), tuple(grid), bound)
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY and self._noted:
            self._looked = now
            self.look()

    def _troubled(self, error: Exception) -> None:
        first = not self.trouble
        self.trouble = self.trouble or f"{type(error).__name__}: {error}"
        if first:
            self._tell(f"memmodel: a launch was not watched: {self.trouble}")

    def _tell(self, text: str) -> None:
        if not self.options.quiet:
            _say(text)

    # ---- launches --------------------------------------------------------------------------------------------------

    def launch(self, key: str, grid: tuple[int, ...], bound: dict[str, Any]) -> None:
        """Note the launch of a kernel, unless enough launches of its specialization were."""
        with self._lock:
            if self._counts.get(key, 0) >= self.options.launches:
                return
            kernel = self._kernels.get(key)
            if kernel is None or 0 in grid:
                return
            if self.options.only and str(kernel.metadata.name) not in self.options.only:
                self._counts[key] = self.options.launches
                return
            sizes = tuple(int(size) for size in grid)
            try:
                call = call_of(kernel, sizes, bound)
            except Exception:
                self._counts[key] = self.options.launches  # it would fail in the same way, and take as long
                raise
            launch = f"{key} {call.text}" if self.options.launches > 1 else key
            if launch in self._seen:
                return
            self._seen.add(launch)
            self._counts[key] = self._counts.get(key, 0) + 1
            self._note(call)

    def _note(self, call: TritonCall) -> None:
        folder = self._folder
        if folder is None:
            return
        self._number += 1
        path = folder / f"{self._number:06}-{os.getpid()}.call"
        part = path.with_suffix(".part")
        part.write_text(call.text, encoding="utf-8")
        part.replace(path)
        self._noted[path.stem] = _Noted(call, path)
        if os.getpid() == self._process:
            self._start()

    def _start(self) -> None:
        """Start the process that judges, unless it runs."""
        if self._worker is not None and self._worker.runs:
            return
        if self._worker is not None and self._folder is not None:
            for busy in self._folder.glob("*.busy"):  # what it was at when it ended
                put(busy.with_suffix(".result"), {"word": "undecided", "text": "the process that judged it ended"})
                busy.unlink(missing_ok=True)
        if not sys.executable or self._folder is None:
            self.trouble = self.trouble or "there is no Python to judge with"
            return
        self._worker = JudgingProcess.spawned(self._folder)

    # ---- verdicts --------------------------------------------------------------------------------------------------

    def look(self) -> int:
        """Take the verdicts that came, print the findings; returns how many are still awaited."""
        with self._lock:
            if self._folder is None or not self._folder.is_dir():
                return 0
            for path in self._folder.glob("*.call"):  # of processes that were forked
                self._noted.setdefault(path.stem, _Noted(None, path))
            waiting = 0
            for noted in self._noted.values():
                if noted.shown:
                    continue
                data = take(noted.path.with_suffix(".result"))
                if data is None:
                    waiting += 1
                    continue
                noted.shown = True
                call = noted.call
                data.setdefault("name", call.name if call else "a kernel")
                data.setdefault("label", call.label if call else "")
                self._came(TritonResult(**data))
            return waiting

    def _came(self, result: TritonResult) -> None:
        self.results.append(result)
        if result.clean:
            return
        lines = result.text.splitlines()
        more = [f"  … {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        self._tell("\n".join((f"memmodel: {result.word}: {result.title}", *lines[:MOST_LINES], *more)))

    def wait(self, seconds: float) -> int:
        """Await verdicts for so long; returns how many did not come."""
        end = time.monotonic() + seconds
        waiting = self.look()
        said = False
        while waiting and time.monotonic() < end and os.getpid() == self._process:
            self._start()
            if self._worker is None:
                break
            if not said and seconds > 2:
                said = True
                plural = "" if waiting == 1 else "s"
                self._tell(f"memmodel: awaiting {waiting} verdict{plural} on kernels, for {seconds:g} s at most")
            time.sleep(0.1)
            waiting = self.look()
        return waiting

    def finish(self) -> None:
        """The program ends: await verdicts, say in one line what became of the launches, and end the other process."""
        try:
            if os.getpid() != self._process:
                return
            waiting = self.wait(self.options.wait)
            if self._noted:
                self._tell(self._summary(waiting))
        except (Exception, KeyboardInterrupt) as error:
            self._tell(f"memmodel: verdicts were not awaited: {type(error).__name__}")
        finally:
            self.close()

    def _summary(self, waiting: int) -> str:
        words: dict[str, int] = {}
        for result in self.results:
            words[result.word] = words.get(result.word, 0) + 1
        parts = [f"{count} {word}" for word, count in sorted(words.items())]
        parts += [f"{waiting} not judged in time"] if waiting else []
        count = len(self.results) + waiting
        return f"memmodel: {count} kernel{'' if count == 1 else 's'}: {', '.join(parts)}"

    def close(self) -> None:
        """End the worker and remove its folder. Only the process that made them does."""
        if os.getpid() != self._process:
            return
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def forked(self) -> None:
        """In the child: its locks are free, and it has no worker of its own."""
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._worker = None


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return  # standard error is closed
