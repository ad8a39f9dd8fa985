"""Hooks of Triton: each new specialization that a program launches is judged once, in another process.

In: the hooks of `triton.knobs.runtime`. Out: results, and lines on standard error. Settled here: the program goes on
whatever happens. A hook does nothing but note the first launch of a kernel as a file, and no exception leaves it. The
files are read by one process, of low priority (`worker`), which shares no file of the program, so that nobody who
reads the program's output waits for it. A shell spawns it: a fork of the program in another thread would keep the pipe
of `subprocess` open, and a program that waits for all its children would wait for it. At the end of the program its
verdicts are awaited for a time that is said. A process that the program forks writes into the same folder, and starts
no worker of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import memmodel
from memmodel.errors import InputError
from memmodel.triton.calls import TritonCall, call_of
from memmodel.triton.judging import TritonResult, TritonResults

VARIABLE = "MEMMODEL_TRITON"
"""The environment variable that watches a program: 1, or options such as `wait=0,launches=3`."""

MOST_LINES = 60
LOOK_EVERY = 1.0
"""Seconds between two looks for verdicts while the program launches kernels."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`model`: as in `check`. `launches`: how many different launches of one specialization are judged.
    `seconds`: for each verdict. `wait`: for how long verdicts are awaited at the end of the program. `quiet`: nothing
    is printed. `only`: names of kernels; none: all.
    """

    model: str | None = None
    launches: int = 1
    seconds: float = 60.0
    wait: float = 60.0
    quiet: bool = False
    only: tuple[str, ...] = ()

    @staticmethod
    def of_text(text: str) -> WatchOptions:
        """The options of `MEMMODEL_TRITON`: `1`, or `wait=0,launches=3,only=gemm:softmax`. Raises InputError."""
        values: dict[str, Any] = {}
        kinds: dict[str, Callable[[str], Any]] = {
            "model": str, "launches": int, "seconds": float, "wait": float, "quiet": lambda word: word not in ("", "0"),
            "only": lambda word: tuple(word.split(":")),
        }  # fmt: skip
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if part.strip() in ("1", "true", "on"):
                continue
            try:
                values[name.strip()] = kinds[name.strip()](value.strip())
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"{VARIABLE}: {part!r} is no option", hint=f"1, or {', '.join(kinds)} with ="
                ) from error
        return WatchOptions(**values)


@dataclass(slots=True)
class _Noted:
    """A launch that was written down. `shown`: its verdict was printed."""

    call: TritonCall | None
    path: Path
    shown: bool = False


class TritonWatch:
    """Watches the launches of a program."""

    def __init__(self, options: WatchOptions, say: Callable[[str], None] | None = None) -> None:
        self.options = options
        self.trouble = ""
        """Why something was not watched; empty while all is well."""
        self.results: list[TritonResult] = []
        self._say = say or _say
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._process = os.getpid()
        self._worker: _Worker | None = None
        # Made before anything is launched: a process that is forked later has it too.
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix="memmodel-triton-"))
        _put(self._folder / "options.json", {"model": options.model, "seconds": options.seconds})
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
                self._follow(function, kernel)

    def _follow(self, function: Any, kernel: Any) -> None:
        """From now on, a launch of the kernel hands its grid and its arguments to the hooks."""
        with self._lock:
            self._kernels[str(kernel.hash)] = kernel
            if not isinstance(function.launch_metadata, _Chain):
                function.launch_metadata = _Chain(function.launch_metadata)

    def _launched(self, metadata: Any) -> None:
        handed = [args for func, args in list(getattr(metadata, "extras", ())) if isinstance(func, _Chain)]
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
            self._say(text)

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
                self._counts[key] = self.options.launches  # it would fail again, and cost time again
                raise
            again = f"{key} {call.text}" if self.options.launches > 1 else key
            if again in self._seen:
                return
            self._seen.add(again)
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
                _put(busy.with_suffix(".result"), {"word": "undecided", "text": "the process that judged it ended"})
                busy.unlink(missing_ok=True)
        if not sys.executable or self._folder is None:
            self.trouble = self.trouble or "there is no Python to judge with"
            return
        self._worker = _Worker.spawned(self._folder)

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
                data = _take(noted.path.with_suffix(".result"))
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
        """The program ends: await verdicts, say in one line what became of the launches, leave nothing behind."""
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


SPAWN = '"$0" -m memmodel.triton.worker "$1" "$2" & echo $! > "$1/worker.pid"'
"""What the shell runs: the worker is no child of the program, which may wait for all its children."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """The process that judges."""

    process: int

    @staticmethod
    def spawned(folder: Path) -> _Worker:
        """Start it. Its three standard files are empty, and it closes all others."""
        home = str(Path(memmodel.__file__).resolve().parent.parent)
        paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        environment.pop(VARIABLE, None)
        command = ["/bin/sh", "-c", SPAWN, sys.executable, str(folder), str(os.getpid())]
        files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        try:
            shell = os.posix_spawn(command[0], command, environment, file_actions=files, setsid=True)
        except NotImplementedError:
            shell = os.posix_spawn(command[0], command, environment, file_actions=files)
        with suppress(ChildProcessError):
            os.waitpid(shell, 0)
        return _Worker(int((folder / "worker.pid").read_text()))

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


_ASKED = threading.local()
"""In each thread, what the last launch handed over to another hook that asked for it (a profiler), if one did."""


class _Chain:
    """Stands as `launch_metadata` of a function, so that its launches hand over their grid and their arguments; says
    what the one before it says."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(self, *args: Any) -> Any:
        _ASKED.handed = [args]
        return {} if self.before is None else self.before(*args)


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return  # standard error is closed


def _put(path: Path, data: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path)


def _take(path: Path) -> dict[str, Any] | None:
    """A result; None until it is there."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


# ---- installing ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Installed:
    """The watch that `install` has made, and all that are hooked."""

    watch: TritonWatch | None = None
    prepared: bool = False
    hooked: list[TritonWatch] = field(default_factory=list)


_STATE = _Installed()


def install(options: WatchOptions | None = None, **named: Any) -> TritonWatch:
    """From now on, each new specialization of a kernel that this process launches is judged once, in another process.

    Findings go to standard error as they come, and one line at the end of the program. `named`: the fields of
    `WatchOptions`. Kernels that were compiled before are watched as far as Triton knows them. Raises InputError where
    there is no Triton.
    """
    if _STATE.watch is not None:
        return _STATE.watch
    watch = TritonWatch(options or WatchOptions(**named))
    _hook(watch)
    _STATE.watch = watch
    return watch


def uninstall() -> None:
    """Nothing is watched any more. Verdicts that have not come are not awaited."""
    watch, _STATE.watch = _STATE.watch, None
    if watch is not None:
        _unhook(watch)
        watch.close()


@contextmanager
def checked(options: WatchOptions | None = None, **named: Any) -> Iterator[CheckedLaunches]:
    """The launches inside this block are judged; the results are complete behind it.

        with memmodel.triton.checked() as launches:
            kernel[grid](x, y)
        launches.results.assert_clean()

    It waits at most `wait` seconds; what did not come until then counts as undecided. An exception of the block goes
    on, at once.
    """
    named.setdefault("quiet", True)
    watch = TritonWatch(options or WatchOptions(**named))
    launches = CheckedLaunches(watch)
    _hook(watch)
    try:
        yield launches
    except BaseException:
        _unhook(watch)
        watch.close()
        raise
    _unhook(watch)
    try:
        launches.missing = watch.wait(watch.options.wait)
    finally:
        watch.close()


class CheckedLaunches:
    """What a block of `checked` launched. `missing`: launches whose verdict did not come in time."""

    def __init__(self, watch: TritonWatch) -> None:
        self._watch = watch
        self.missing = 0

    @property
    def results(self) -> TritonResults:
        """A result for each specialization; undecided for those that did not come in time."""
        late = TritonResult("a kernel", "", "undecided", f"no verdict came in {self._watch.options.wait:g} s")
        return TritonResults((*self._watch.results, *(late,) * self.missing))

    @property
    def clean(self) -> bool:
        """True if something was launched and nothing was found."""
        return self.results.clean

    def assert_clean(self, *accept: str) -> None:
        """Raise AssertionError unless something was launched and every verdict is `clean` or one of these words."""
        __tracebackhide__ = True
        if not len(self.results):
            raise AssertionError(
                "no kernel was launched" + (f" ({self._watch.trouble})" if self._watch.trouble else "")
            )
        self.results.assert_clean(*accept)


def _runtime() -> Any:
    """The knobs of Triton at run time. Raises InputError."""
    try:
        from triton import knobs
    except ImportError as error:
        raise InputError(f"Triton cannot be loaded: {error}", hint="pip install triton") from error
    return knobs.runtime


def _hook(watch: TritonWatch) -> None:
    """Put the watch behind the hooks that are there."""
    runtime = _runtime()
    if not _STATE.prepared:
        _STATE.prepared = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)
    _STATE.hooked.append(watch)
    before = runtime.jit_post_compile_hook

    def both(**said: Any) -> Any:
        watch.compiled(**said)
        return None if before is None else before(**said)

    both.before = before  # type: ignore[attr-defined]
    both.watch = watch  # type: ignore[attr-defined]
    runtime.jit_post_compile_hook = both
    enter = runtime.launch_enter_hook
    if hasattr(enter, "add"):
        enter.add(watch.launched)
    else:  # before Triton 3.5 it was one function
        runtime.launch_enter_hook = _both_launched(enter, watch)
    for function in _known_functions():
        for cache in list(function.device_caches.values()):
            for kernel in list(cache[0].values()):
                if hasattr(kernel, "asm"):
                    watch._follow(function, kernel)


def _both_launched(before: Any, watch: TritonWatch) -> Any:
    def both(metadata: Any) -> None:
        watch.launched(metadata)
        if before is not None:
            before(metadata)

    return both


def _known_functions() -> list[Any]:
    """The functions that Triton has met; none where it does not say."""
    try:
        from triton.runtime import jit

        return list(jit._triton_jit_function_registry.values())
    except (ImportError, AttributeError):
        return []


def _unhook(watch: TritonWatch) -> None:
    runtime = _runtime()
    hook = runtime.jit_post_compile_hook
    if getattr(hook, "watch", None) is watch:
        runtime.jit_post_compile_hook = hook.before
    enter = runtime.launch_enter_hook
    if hasattr(enter, "remove"):
        enter.remove(watch.launched)
    _STATE.hooked = [other for other in _STATE.hooked if other is not watch]
    if not _STATE.hooked:
        for function in _known_functions():
            if isinstance(function.launch_metadata, _Chain):
                function.launch_metadata = function.launch_metadata.before


def _at_exit() -> None:
    if _STATE.watch is not None:
        _STATE.watch.finish()


def _forked() -> None:
    for watch in _STATE.hooked:
        watch.forked()
