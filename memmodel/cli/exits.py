"""Exit codes, and the one place where exceptions end.

In: a command's body. Out: an exit code, with a message on stderr where there is something to say (docs/exit-codes.md).
"""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TextIO

from memmodel.base.codes import Exit as Exit
from memmodel.base.codes import worst as worst
from memmodel.errors import BudgetSpent, InputError, TooLarge, exhausted

P = ParamSpec("P")


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Run a command's body and leave with its code; no exception of ours or the user's gets past this."""

    @functools.wraps(command)
    def body(*args: P.args, **kwargs: P.kwargs) -> None:
        import click

        raise click.exceptions.Exit(int(guarded_code(lambda: command(*args, **kwargs))))

    return body


def guarded_code(work: Callable[[], int]) -> int:
    """The exit code of some work, whatever it raises; what it printed has been written by then."""
    try:
        code = work()
        _flush()
        return code
    except BaseException as error:
        if isinstance(error, (SystemExit, GeneratorExit)):
            raise
        try:
            _flush()
        except OSError as closed:
            error = closed
        return _code_of(error)


def _code_of(error: BaseException) -> int:
    if isinstance(error, InputError):
        complain(error.render())
        return Exit.UNDECIDED if isinstance(error, TooLarge) else Exit.BAD_INPUT
    signal = _signal_behind(error)
    if signal is not None:
        complain("interrupted")
        return int(getattr(signal, "exit_code", Exit.INTERRUPTED))
    if isinstance(error, OSError):
        if not error.filename:  # our own output; Python would complain once more when it closes stdout
            _silence()
        if isinstance(error, BrokenPipeError):  # whoever read it has left
            return Exit.PIPE_CLOSED
        complain(f"error: {error.filename or 'standard output'}: {error.strerror or error}")
        return Exit.BAD_INPUT
    if isinstance(error, BudgetSpent):
        complain(f"undecided: {error}")
        return Exit.UNDECIDED
    if isinstance(error, (MemoryError, RecursionError)):
        complain(f"undecided: {exhausted(error)}")
        return Exit.UNDECIDED
    complain(f"internal error: {type(error).__name__}: {error}; please report it (MEMMODEL_TRACEBACK=1 shows where)")
    if os.environ.get("MEMMODEL_TRACEBACK") == "1":
        import traceback

        traceback.print_exception(error)
    return Exit.INTERNAL


def _signal_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The signal that an error is, or that other code has made an error of."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _silence() -> None:
    """Send what is still to be written to stdout nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """A message on stderr, if anyone can hear it."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            say(message, sys.stderr)
            sys.stderr.flush()


def not_kept(trouble: str) -> None:
    """Say on stderr why verdicts are not kept, if there is a reason."""
    if trouble:
        complain(f"note: verdicts are not kept: {trouble}")


STYLED = "\x1e" + os.urandom(8).hex()
"""Stands before `1;31m` where a style begins, and before `0m` where it ends. Nothing else can write it: text from files
cannot pass for a style.
"""


def say(text: str, stream: TextIO | None = None) -> None:
    """A line on a stream (None: stdout), with every character that commands a terminal written out."""
    from memmodel.output import escaped

    first, *styled = text.split(STYLED)
    shown = escaped(first)
    for part in styled:
        code, _, rest = part.partition("m")
        shown += f"\x1b[{code}m{escaped(rest)}"
    _put(shown + "\n", stream or sys.stdout)


def give(text: str) -> None:
    """Data on stdout, as it is; on a terminal as `say` would."""
    if sys.stdout is not None and sys.stdout.isatty():
        from memmodel.output import escaped

        text = escaped(text)
    _put(text, sys.stdout)


def write_out(path: str, text: str) -> None:
    """Data in a file, or on stdout where the path is `-`. Raises InputError, OSError."""
    from memmodel.output import STANDARD_OUTPUT, write_text

    if path == STANDARD_OUTPUT:
        give(text)
    else:
        write_text(path, text)


def write_json(path: str, data: object) -> None:
    """JSON in a file, or on stdout where the path is `-`. Raises InputError, OSError."""
    write_out(path, json.dumps(data, indent=1) + "\n")


def _put(text: str, stream: TextIO | None) -> None:
    """Whatever the characters: a file's name need not be encodable."""
    if stream is None:
        raise OSError(errno.EBADF, "is closed")
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
