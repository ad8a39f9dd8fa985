"""Which step of the order between two accesses to tensor memory is missing.

In: the flags of a judged run, the points of its graph, two events, how a line is named. Out: a text, or None where
nothing leads from the thread of one access to the other one at all.

Accesses to tensor memory are ordered by the end of the first, which a tcgen05.wait or a tcgen05.commit tells of, then
by synchronization between the threads, with a tcgen05.fence on each side of it (`axioms/ptx-9.3/tensor.cat`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memmodel.base.labels import Access, Family, GroupWait, Label, Mark, Marker
from memmodel.base.points import Point
from memmodel.base.rows import Rows, bits, inverse
from memmodel.kernel.order.flags import Flags

WAITED = (Family.TCGEN_LD, Family.TCGEN_ST)
"""Accesses whose end the thread itself waits for."""


class TensorOrder:
    """The order of accesses to tensor memory in one judged run."""

    def __init__(self, flags: Flags, points: Sequence[Point], line: Callable[[int], str]) -> None:
        count = len(points)
        self._points, self._line = points, line
        self._program = flags.execution.relation("po")
        self._before = inverse(self._program)
        self._ends = flags.execution.relation("compl")
        self._execution: Rows = flags.relation("execution") or [0] * count

    def missing(self, first: int, second: int) -> str | None:
        """What is missing from the first access to the second."""
        started, follows = self._issue(first), self._issue(second)
        label = self._points[first].label
        assert isinstance(label, Access)
        waited = label.family in WAITED
        ends = [end for end in bits(self._ends[first]) if not waited or self._is_wait(end)]
        before = self._before[follows]
        alone = bool(self._program[started] >> follows & 1)
        if not waited:
            return self._after_commit(ends, before, self._line(first))
        leads = [event for event in bits(self._program[started]) if self._execution[event] & before]
        if not (alone or leads):
            return None
        passed = bits(before) if alone else leads
        wait = next((end for end in ends if end in passed or any(self._program[end] >> at & 1 for at in passed)), None)
        if wait is None:
            kind = label.family.value.rpartition(".")[2]
            return f"no tcgen05.wait::{kind} after {self._line(first)}"
        if alone:
            return ""
        fenced = [at for at in leads if self._between(wait, at, Marker.BEFORE)]
        if not fenced:
            return f"no {Marker.BEFORE.value} between {self._line(wait)} and {self._line(leads[0])}"
        return self._not_after(fenced, before)

    def told(self, first: int) -> str | None:
        """Where the end of a matrix operation or a copy is told, which the thread itself does not wait for."""
        label = self._points[first].label
        ends = bits(self._ends[first]) if isinstance(label, Access) and label.family not in WAITED else []
        return self._line(ends[0]) if ends else None

    def _after_commit(self, ends: Sequence[int], before: int, first: str) -> str | None:
        """What is missing if a tcgen05.commit has to signal the end of the first access; None if nothing is."""
        if not ends:
            return f"no tcgen05.commit tracks {first}"
        leads = [end for end in ends if self._execution[end] & before]
        return self._not_after(leads, before) if leads else None

    def _not_after(self, leads: Sequence[int], before: int) -> str:
        """A sentence: no fence stands behind the event at which the other thread has waited."""
        reached = next(event for at in leads for event in bits(self._execution[at] & before))
        return f"no {Marker.AFTER.value} behind {self._line(reached)}"

    def _between(self, first: int, second: int, mark: Marker) -> bool:
        """True if a fence of tcgen05 stands between two events of a thread."""
        later = bits(self._program[first])
        return any(_is(self._points[n].label, mark) and self._program[n] >> second & 1 for n in later)

    def _issue(self, access: int) -> int:
        issue = self._points[access].issue
        return access if issue is None else issue

    def _is_wait(self, event: int) -> bool:
        return isinstance(self._points[event].label, GroupWait)


def _is(label: Label, mark: Marker) -> bool:
    return isinstance(label, Mark) and label.what is mark
