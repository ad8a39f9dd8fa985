"""What the result of a command is worth as one number (docs/exit-codes.md).

In: nothing. Out: `Exit`, and the worst of several. Here and not in `cli`, since results of the library know theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of commands."""

    AS_EXPECTED = 0
    DIFFERS = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    INTERNAL = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


_WORST_FIRST = (Exit.INTERNAL, Exit.BAD_INPUT, Exit.DIFFERS, Exit.UNDECIDED)


def worst(codes: Iterable[Exit]) -> Exit:
    """The code of several results: a bad file outranks a difference, which outranks an undecided test."""
    seen = set(codes)
    return next((code for code in _WORST_FIRST if code in seen), Exit.AS_EXPECTED)
