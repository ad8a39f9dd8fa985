"""A watch is hooked into Triton and taken out of it: for a program, or for the launches of a block.

In: `WatchOptions`. Out: `TritonWatch`, `CheckedLaunches`. Settled here: hooks that were there before are still called.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from memmodel.errors import InputError
from memmodel.triton.judging import TritonResult, TritonResults
from memmodel.triton.options import WatchOptions
from memmodel.triton.watching import HandingOver, TritonWatch


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
    """The launches inside this block are judged; the results are complete after it.

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
    """Call the watch after the hooks that are installed already."""
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
                    watch.follow(function, kernel)


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
            if isinstance(function.launch_metadata, HandingOver):
                function.launch_metadata = function.launch_metadata.before


def _at_exit() -> None:
    if _STATE.watch is not None:
        _STATE.watch.finish()


def _forked() -> None:
    for watch in _STATE.hooked:
        watch.forked()
