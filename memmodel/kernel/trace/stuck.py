"""Lanes that wait for ever.

In: nothing. Out: `StuckLanes`.
"""

from __future__ import annotations

from typing import NamedTuple

from memmodel.kernel.trace.objects import AwaitedPhase


class StuckLanes(NamedTuple):
    """Lanes of a warp that wait for ever at an instruction. `awaits`: the phase that they test, if it is a test."""

    threads: tuple[int, ...]
    at: int
    awaits: AwaitedPhase | None = None
