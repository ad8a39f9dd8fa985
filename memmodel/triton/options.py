"""How a program is watched.

In: `MEMMODEL_TRITON`, or fields by name. Out: `WatchOptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memmodel.errors import InputError
from memmodel.triton import VARIABLE

SECONDS = 120.0
"""Seconds of the processor for a verdict, by default."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`model`: as in `check`. `launches`: how many different launches of one specialization are judged.
    `seconds`: of the processor, for each verdict. `wait`: for how long verdicts are awaited at the end of the program.
    `quiet`: nothing is printed. `only`: names of kernels; none: all.
    """

    model: str | None = None
    launches: int = 1
    seconds: float = SECONDS
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
