"""The process around a command: signals, what was typed wrongly, the end.

In: argv. Out: an exit code. Settled here: control-C and its like arrive as `Interrupted`, also while the solver works,
and once; a process ends without the interpreter's own farewell, which would complain of closed streams and late
signals.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType

import click

from memmodel.cli.exits import Exit, complain, guarded_code
from memmodel.errors import BudgetSpent

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
IMPATIENT = 1.0
"""Seconds after which a second signal ends the process on the spot."""


_FIRST: list[float] = []
"""When the first signal came, if one has."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class _Closed(io.StringIO):
    """In place of a standard output that was closed before the program began."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "is closed")


def perform(argv: Sequence[str] | None) -> int:
    """Run one command; its exit code."""
    from memmodel.cli.app import app

    if sys.stdout is None:
        sys.stdout = _Closed()
    sys.unraisablehook = _unraisable
    if argv is None:
        from memmodel.limits import hold_memory

        hold_memory()
    with _signals():
        return guarded_code(lambda: _command(app, argv))


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """A budget or a signal may arrive while Python clears away an object, where it is ignored: a signal is repeated."""
    if isinstance(what.exc_value, Interrupted):
        _FIRST.clear()
        number = what.exc_value.exit_code - 128
        threading.Timer(0.02, os.kill, (os.getpid(), number)).start()
        return
    if what.exc_type is None or not (issubclass(what.exc_type, BudgetSpent) or _half_made(what)):
        sys.__unraisablehook__(what)


def _half_made(what: sys.UnraisableHookArgs) -> bool:
    """True for an object of Z3 that cannot be cleared away, since a budget or a signal came while it was made."""
    of_z3 = str(getattr(what.object, "__module__", "")).partition(".")[0] == "z3"
    return of_z3 and what.exc_type is AttributeError and getattr(what.object, "__name__", "") == "__del__"


def _command(app: click.Command, argv: Sequence[str] | None) -> int:
    """Run one command. Not by click's `main`, which answers signals and closed streams in its own way."""
    if argv is None and "_MEMMODEL_COMPLETE" in os.environ:
        app.main(prog_name="memmodel")
    try:
        with app.make_context("memmodel", list(sys.argv[1:] if argv is None else argv)) as context:
            app.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        complain(error.format_message())
        return Exit.BAD_INPUT
    except click.UsageError as error:
        if error.ctx is not None:
            complain(error.ctx.get_usage() + f"\nTry '{error.ctx.command_path} --help' for help.\n")
        complain(f"Error: {error.format_message()}")
        return Exit.BAD_INPUT
    except click.ClickException as error:
        complain(f"error: {error.format_message()}")
        return Exit.BAD_INPUT
    return Exit.AS_EXPECTED


@contextmanager
def _signals() -> Iterator[None]:
    """Let the signals raise `Interrupted` inside the block. Only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _FIRST.clear()
    owner = os.getpid()

    def handle(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a worker that has only just been forked: its parent ends it
            return
        if not _FIRST:
            _FIRST.append(monotonic())
            raise Interrupted(number)
        if monotonic() - _FIRST[0] > IMPATIENT:
            os._exit(128 + number)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in before.items():
            with suppress(TypeError, ValueError):
                signal.signal(number, old)


def leave(code: int) -> None:
    """End the process."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
