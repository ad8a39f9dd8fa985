"""Which writes a read may read from, judged one pair at a time, before whole candidates are built.

In: Skeleton, Variant. Out: the axioms that keep a read from a write, whatever else an execution has; or that nothing
does. A pair is judged alone: no other pair is in rf, and sync_fence is empty. It is refused if then every co breaks an
axiom that a larger rf or sync_fence cannot mend.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.cat.monotonicity import LESS, MORE
from memmodel.concrete.meter import CANDIDATE, Meter
from memmodel.enumeration.plan import Plan, PlannedCheck
from memmodel.enumeration.skeleton import Skeleton, Variant

Refusals = frozenset[frozenset[str]]
"""Sets of axioms; each co breaks all those of one set."""

_MANY = 50
"""After this many co's a pair counts as possible."""

JUDGING = 0.5
"""The share of a search that finding the possible writes of each read is taken to be, where that is worth it."""


class Sources:
    """The pairs of one skeleton with its barriers and objects decided."""

    def __init__(
        self, plan: Plan, skeleton: Skeleton, variant: Variant, meter: Meter, progress: Callable[[], None]
    ) -> None:
        self._plan = plan
        self._skeleton = skeleton
        self._values = variant.values
        self._meter = meter
        self._progress = progress
        self._known: dict[tuple[int, int], Refusals] = {}

    def refused(self, write: int, read: int) -> Refusals:
        """The axioms that keep the read from that write; empty if it may read from it."""
        pair = (write, read)
        if pair not in self._known:
            self._known[pair] = self._judge(write, read)
        return self._known[pair]

    def _judge(self, write: int, read: int) -> Refusals:
        plan, shape = self._plan, self._skeleton.shape
        chosen = {"rf": 1 << write * shape.count + read, "sync_fence": 0}
        for stage, (name, matrix) in enumerate(chosen.items(), start=1):
            plan.fill(self._values, name, matrix)
            failed = self._broken(stage, None)
            if failed:
                return frozenset((failed,))
            self._meter.spend(CANDIDATE)
            plan.stages[stage].leave(self._values, shape)
        refusals: set[frozenset[str]] = set()

        def alive(least: int, greatest: int) -> bool:
            self._progress()
            for co, breaks in ((least, MORE), (greatest, LESS)):
                plan.fill(self._values, "co", co)
                failed = self._broken(3, breaks)
                if failed:
                    refusals.add(failed)
                    return False
            return True

        for number, (co, _) in enumerate(self._skeleton.coherence.choices(alive)):
            plan.fill(self._values, "co", co)
            failed = self._broken(3, None)
            if not failed or number == _MANY:
                return frozenset()
            refusals.add(failed)
        return frozenset(refusals)

    def _broken(self, stage: int, breaks: frozenset[int] | None) -> frozenset[str]:
        """The axioms of a stage that are broken for good: all, or those that more (less) of co breaks."""
        self._meter.spend(CANDIDATE)

        def for_good(test: PlannedCheck) -> bool:
            return test.only_more_breaks and breaks in (None, test.broken_by)

        return self._plan.stages[stage].broken(self._values, self._skeleton.shape, for_good)
