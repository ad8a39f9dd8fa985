"""What to find out about executions: each has a key, and executions with equal keys give the same answer.

In: LoweredTest. Out: `AskedKey`, which gives a final state its key; the keys of executions that have no final state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.concrete.records import End, Trace
from memmodel.litmus.syntax import Term, terms_of
from memmodel.memory.bytes import Extent
from memmodel.program.lowered import LoweredTest
from memmodel.referee.finals import Finals, Memory, Registers


@dataclass(frozen=True, slots=True)
class Stopped:
    """The key of an execution in which a thread goes beyond the bound, or beyond what is modelled."""

    thread: int
    end: End
    step: int
    reason: str


WAITS = "waits"
"""The key of an execution in which some thread waits for ever, and nothing in it is undefined."""

Key = bool | tuple[int, ...] | Stopped | str


class AskedKey:
    """What is asked of a final state. `terms` None: the truth of the condition; otherwise: the values of the terms."""

    def __init__(self, lowered: LoweredTest, terms: Sequence[Term] | None = None) -> None:
        self._condition = lowered.test.condition
        self._terms = terms
        self.finals = Finals(lowered, tuple(terms_of(self._condition)) if terms is None else terms)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The elements of memory that it asks for."""
        return self.finals.extents

    def key(self, registers: Registers, memory: Memory) -> bool | tuple[int, ...]:
        """The key of a final state."""
        if self._terms is None:
            return self.finals.holds(self._condition, registers, memory)
        return tuple(self.finals.value(term, registers, memory) for term in self._terms)


def stopped_key(traces: Sequence[Trace]) -> Stopped | None:
    """The key of a combination in which some thread is stopped; None if none is."""
    for number, trace in enumerate(traces):
        if trace.ending.end in (End.CUT, End.BEYOND):
            return Stopped(number, trace.ending.end, trace.ending.step, trace.ending.reason)
    return None
