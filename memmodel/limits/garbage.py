"""Cycles of objects that nobody needs any more, in work that makes many answers under one budget.

Python looks for cycles when there are many new objects, and rarely while answers are made. The rows of a relation are
few objects and much memory, so that what an answer leaves behind is looked for when the process has grown.
"""

from __future__ import annotations

import gc

from memmodel.limits.usage import memory_in_use

GROWTH = 256 << 20
"""Bytes that the process may have more than after the last look."""

_AFTER_LAST_LOOK = [0]


def collect_what_has_grown() -> None:
    """Free what lies on cycles and cannot be reached, if the process has grown much since that was done."""
    if memory_in_use() > _AFTER_LAST_LOOK[0] + GROWTH:
        gc.collect()
        _AFTER_LAST_LOOK[0] = memory_in_use()
