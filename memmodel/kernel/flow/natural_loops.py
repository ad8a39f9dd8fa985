"""The loop that a jump back repeats.

In: PtxFunction, a branch. Out: `repeated`, the instructions of its natural loop. The loop begins where the branch leads
to or, if it is entered at its test, with the branch: one of them is on every path to the other. A jump to code that
stands further up, as at the end of a block that was moved out of line, repeats nothing.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.base.graphs import reached
from memmodel.isa.lowered import body_of
from memmodel.ptx.module.syntax import PtxFunction


@lru_cache(maxsize=256)
def repeated(entry: PtxFunction, branch: int, target: int) -> frozenset[int]:
    """The instructions of the loop that a branch to a target repeats; none if it repeats no loop."""
    after = [[one for one in does.follows if one < len(body_of(entry))] for does in body_of(entry)]
    start = max((each.start for each in entry.callees.values() if each.start <= branch), default=0)

    def always_before(first: int, at: int) -> bool:
        """True if every path to an instruction leads through another one."""
        others = reached([start], lambda one: () if one == first else after[one])
        return first == start or at not in others

    head = next((one for one, other in ((target, branch), (branch, target)) if always_before(one, other)), None)
    if head is None:
        return frozenset()
    before: dict[int, list[int]] = {}
    for at in reached([target], lambda one: after[one]):
        for one in after[at]:
            before.setdefault(one, []).append(at)
    leading = reached(before.get(branch, ()), lambda one: () if one == head else before.get(one, ()))
    return frozenset({target, branch, *leading})
