"""Exit codes, and the one place where exceptions end.

In: a command's body. Out: an exit code, with a message on stderr where there is something to say (docs/exit-codes.md).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TextIO

from memmodel.codes import Exit as Exit
from memmodel.codes import worst as worst
from memmodel.errors import InputError, TooLarge

P = ParamSpec("P")


def guarded(command: Callable[P, Exit]) -> Callable[P, None]:
    """Run a command's body and leave with its code; no exception of ours or the user's gets past this."""

    @functools.wraps(command)
    def body(*args: P.args, **kwargs: P.kwargs) -> None:
        import typer

        raise typer.Exit(int(_code(command, *args, **kwargs)))

    return body


def _code(command: Callable[P, Exit], *args: P.args, **kwargs: P.kwargs) -> Exit:
    try:
        code = command(*args, **kwargs)
        sys.stdout.flush()
        return code
    except InputError as error:
        complain(error.render())
        return Exit.UNDECIDED if isinstance(error, TooLarge) else Exit.BAD_INPUT
    except KeyboardInterrupt:
        complain("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    except OSError as error:
        complain(f"error: {error.filename or 'output'}: {error.strerror or error}")
        return Exit.BAD_INPUT
    except Exception as error:  # a bug of ours
        what = f"{type(error).__name__}: {error}"
        complain(f"internal error: {what}; please report it (MEMMODEL_TRACEBACK=1 shows where)")
        if os.environ.get("MEMMODEL_TRACEBACK") == "1":
            import traceback

            traceback.print_exc()
        return Exit.INTERNAL


def complain(message: str) -> None:
    """A message on stderr."""
    say(message, sys.stderr)
    sys.stderr.flush()


def say(text: str, stream: TextIO | None = None) -> None:
    """A line on a stream (None: stdout), whatever its characters: a file's name need not be encodable."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
