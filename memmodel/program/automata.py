"""The automata of mbarrier objects and of barriers, on plain numbers.

In: nothing. Out: `MbarrierCounts`, `BarrierCounts`: what an object or a barrier counts, and what it is after an
operation. Both engines of litmus tests and the machine of kernels take their steps from here; the formulas of `encode`
say the same, and tests compare them. Source: PTX ISA "Phase Completion of the mbarrier object", "bar, barrier".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memmodel.base.labels import Action
from memmodel.base.oneline import count as count_of
from memmodel.ptx.vocabulary import MAX_TX, MbarrierLayout


def changes(action: Action, count: int, size: int) -> tuple[int, int]:
    """What an operation on a valid mbarrier object adds to the pending arrivals and to the tx-count."""
    match action:
        case Action.ARRIVE:
            return -count, size
        case Action.PENDING:
            return count, 0
        case Action.EXPECT_TX:
            return 0, size
        case Action.COMPLETE_TX:
            return 0, -size
        case _:
            return 0, 0


@dataclass(frozen=True, slots=True)
class MbarrierCounts:
    """An mbarrier object between two operations.

    `over`: phases that are over. `pending`: arrivals that the phase still needs. `expected`: those that the next phase
    needs. `tx`: bytes still to come. `live`: initialised and not invalidated. `life`: a name of its life, which the
    init gave; `number`: how many lives were before that one; `layout`: what the init gave as well.
    """

    over: int = 0
    pending: int = 0
    expected: int = 0
    tx: int = 0
    live: bool = False
    life: int = -1
    number: int = -1
    layout: MbarrierLayout = MbarrierLayout.V0

    def after(
        self,
        action: Action,
        count: int = 0,
        size: int = 0,
        *,
        drop: bool = False,
        no_complete: bool = False,
        life: int = 0,
        layout: MbarrierLayout = MbarrierLayout.V0,
    ) -> tuple[MbarrierCounts, bool]:
        """The object after an operation of `count` arrivals and `size` bytes, and True if that broke its rules.

        `life`, `layout`: of an init.
        """
        if action is Action.INIT:
            return MbarrierCounts(0, count, count, 0, True, life, self.number + 1, layout), self.live
        if not self.live:
            return self, True
        if action is Action.INVAL:
            return replace(self, live=False), False
        arrivals, size_change = changes(action, count, size)
        pending, tx = self.pending + arrivals, self.tx + size_change
        expected = max(0, self.expected - count) if drop else self.expected
        bad = pending < 0 or pending > self.layout.max_arrivals or abs(tx) > MAX_TX
        pending = max(0, pending)
        if pending == 0 and tx == 0:
            over = replace(self, over=self.over + 1, pending=expected, expected=expected, tx=0)
            return over, bad or no_complete
        return replace(self, pending=pending, expected=expected, tx=tx), bad

    def complaint(self, action: Action, count: int, size: int, *, no_complete: bool = False) -> str:
        """Why an operation that breaks the rules of the object does; empty for one that breaks none."""
        after, bad = self.after(action, count, size, no_complete=no_complete)
        if not bad:
            return ""
        if not self.live:
            return "nothing has initialised the object" if self.life < 0 else "the object was invalidated before"
        if action is Action.INIT:
            return "the object is initialised already, and no mbarrier.inval comes before"
        if action is Action.ARRIVE and count > self.pending:
            return f"it brings {count_of(count, 'arrival')}, and the phase expects {self.pending or 'no'} more"
        if no_complete and after.over > self.over:
            return "it completes the phase, which .noComplete says that it does not"
        if action is Action.PENDING:
            return f"the pending count gets above {self.layout.max_arrivals}, its limit in .{self.layout.value}"
        return f"the tx-count gets out of its range, up to {MAX_TX}"


@dataclass(frozen=True, slots=True)
class BarrierCounts:
    """A generation of a barrier so far. Threads are bits of masks.

    `arrived`: arrivals, in the unit of the counts. `needed`: the largest count that an arrival asks for, None if none
    asks for one. `everyone`: an arrival asks for all threads that have not exited; `however_many`: one asks for
    nothing. `arrived_threads`: the threads that arrived.
    """

    generation: int = 0
    arrived: int = 0
    needed: int | None = None
    everyone: bool = False
    however_many: bool = False
    arrived_threads: int = 0

    def after(self, threads: int, units: int, count: int | None) -> BarrierCounts:
        """The generation after threads arrived, which count as `units` units.

        `count`: how many arrivals they ask for; None: those of all threads; negative: however many.
        """
        needed = self.needed
        if count is not None:
            needed = count if needed is None else max(needed, count)
        return BarrierCounts(
            self.generation,
            self.arrived + units,
            needed,
            self.everyone or count is None,
            self.however_many or (count is not None and count < 0),
            self.arrived_threads | threads,
        )

    def size(self, threads: int) -> int:
        """How many arrivals it takes. `threads`: the mask of those that the barrier is for."""
        if self.needed is None:
            return threads.bit_count()
        return max(self.needed, threads.bit_count()) if self.everyone else self.needed

    def overfull(self, threads: int) -> bool:
        """True if more arrived than it takes."""
        return self.arrived > self.size(threads)

    def full(self, threads: int) -> bool:
        """True if as many arrived as it takes."""
        return self.arrived_threads != 0 and self.arrived == self.size(threads)

    def complete(self, threads: int, exited: int) -> bool:
        """True if its waits may end. The exits of other threads complete only a generation without a count."""
        if not self.arrived_threads:
            return False
        if self.needed is None:
            return not threads & ~(self.arrived_threads | exited)
        return self.however_many or self.full(threads)

    def next(self) -> BarrierCounts:
        """The generation that begins when this one is complete."""
        return BarrierCounts(self.generation + 1)
