"""Which registers are still needed.

In: PtxFunction. Out: `liveness`.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.isa.lowered import body_of
from memmodel.ptx.module.syntax import PtxFunction


@lru_cache(maxsize=8)
def liveness(entry: PtxFunction) -> list[set[int]]:
    """The registers whose value may still be read, before each instruction."""
    body = body_of(entry)
    live: list[set[int]] = [set() for _ in range(len(body) + 1)]
    kills = [set(does.writes) if does.instruction.guard is None else set[int]() for does in body]
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            new = body[at].reads | set[int]().union(*(live[later] for later in body[at].follows)) - kills[at]
            changed |= new != live[at]
            live[at] = set(new)
    return live
