"""The command line. `program` is the process `memmodel`; a command loads what it needs when it runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = ["main", "program"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and raise SystemExit with its code."""
    from memmodel.cli.process import perform

    raise SystemExit(perform(argv))


def program() -> None:
    """The process: as `main`, and it ends without a word of Python's own, whatever happens and however early."""
    import gc
    import os
    import signal

    from memmodel.collecting import ALLOCATIONS

    gc.set_threshold(ALLOCATIONS, 20, 50)  # a short run ends before Python looks for cycles: looking took a sixteenth

    def early(number: int, _frame: FrameType | None) -> None:
        try:
            os.write(2, b"interrupted\n")
        finally:
            os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, early)
    from memmodel.cli.process import leave, perform

    leave(perform(None))
