"""What happens to the mbarrier objects of a run.

In: nothing. Out: `ObjectStep`, `AwaitedPhase`.
"""

from __future__ import annotations

from typing import NamedTuple

from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent

PARITIES = 2


class ObjectStep(NamedTuple):
    """An update of an mbarrier object or a test that saw a phase end, in the order of the run.

    `pending`: the pending count before an update; `arrivals`, `bytes`: what it adds to that and to the tx-count.
    """

    event: TraceEvent
    update: bool
    before: int
    after: int
    life: int
    seen_by_tests: int
    pending: int = 0
    arrivals: int = 0
    bytes: int = 0


class AwaitedPhase(NamedTuple):
    """The phase of an mbarrier object at the end of a run. `pending`, `tx`: the arrivals and bytes that it lacks;
    `live`: the object is initialised. `waited`: how many phases a thread that waits has seen over.
    """

    block: Block
    first: int
    phase: int
    pending: int
    tx: int
    live: bool
    waited: int = 0

    @property
    def is_late(self) -> bool:
        """True if the thread missed phases: its waits by parity may have taken a later phase for their own."""
        return self.phase - self.waited >= PARITIES
