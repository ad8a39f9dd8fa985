"""Strong reads that return the writes that a script names for them.

In: `ChosenRead`s, whether a value leads a polling loop back to its read. Out: what reads return, and who waits. A load
waits until its write has been made, and then returns it. An atomic operation waits until its write is the last one at
the place, and all other writes to the place wait for it. A read that a loop makes once more, and that changes nothing,
is not counted: an execution without it has the same events, and less order. A thread may have to stay in such a loop.
Where no other thread can go on, the run ends; the script cannot be followed if a thread waits for something else.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.choices.chosen_reads import ChosenReads
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import Bits

LeadsBack = Callable[[TraceEvent, int | None], bool]

NOT_COUNTED = -2
"""The turn of a read that a loop makes once more. What asynchronous instructions access has no turn, which is -1."""


class ScriptedReads(ChosenReads):
    """The strong accesses of a run, and the script."""

    def __init__(self, run: LaunchTrace, choices: tuple[ChosenRead, ...], leads_back: LeadsBack) -> None:
        super().__init__(run, choices)
        self._leads_back = leads_back
        self._reserved: dict[tuple[str, int], dict[AccessKey | None, AccessKey]] = {}
        self._staying = {choice.read[:2] for choice in choices if choice.never}
        for choice in choices:
            if choice.place is not None and not choice.fails:
                self._reserved.setdefault(choice.place, {})[choice.write] = choice.read

    def __bool__(self) -> bool:
        return True

    def stays(self, thread: int, at: int) -> bool:
        return (thread, at) in self._staying

    def early(self, thread: int, at: int, count: int) -> bool:
        turn = self._turns[thread, at, Side.READ]
        choices = (self._choices.get((thread, at, number)) for number in range(turn, turn + count))
        return any(choice is not None and choice.never for choice in choices) or super().early(thread, at, count)

    def drop(self) -> None:
        """No thread can go on: the script cannot be followed."""
        self.run.infeasible = True
        self._choices, self._reserved = {}, {}

    def waits(self, thread: int, at: int, block: Block, first: int, last: TraceEvent | None, *, atomic: bool) -> bool:
        """True if an atomic operation, or a store, is not to be made yet. `last`: the last strong write there."""
        place = block.instance.name, first
        reserved = self._reserved.get(place)
        write = None if last is None else write_key(last)
        choice = self._choices.get((thread, at, self._turns[thread, at, Side.READ])) if atomic else None
        if choice is None:
            return reserved is not None and write in reserved
        if choice.never:
            return True
        if choice.place is not None and not choice.fails:
            return choice.write != write
        written = choice.write is None or choice.write in self._writes
        return not written or (choice.fails and choice.write == write)

    def older(self, read: TraceEvent) -> Bits | None:
        self.made(read)
        choice = self._choices.get(read.key)
        if choice is not None:
            known = None if read.source is None else write_key(read.source)
            if known != choice.write and (choice.place is None or choice.fails):
                return super().returned(read)
            self._reserved.get(choice.place or ("", 0), {}).pop(choice.write, None)
            self.run.infeasible |= known != choice.write
        return None

    def inserted(self, write: TraceEvent, older: Bits, value: int | None) -> None:
        read = write.partner
        choice = None if read is None else self._choices.get(read.key)
        if choice is not None and choice.fails and not self.run.infeasible:
            self.run.conflict = True  # it writes after all, and another operation came right after that write
        super().inserted(write, older, value)
        self.run.infeasible = True

    def load_ended(self, reads: list[TraceEvent]) -> None:
        if len(reads) == 1:
            self.settled(reads[0])
            return
        values = [read.number for read in reads]
        back = [self._leads_back(read, value) for read, value in zip(reads, values, strict=True)]
        if not any(back):
            return
        for read, leads in zip(reads, back, strict=True):
            if leads:  # what the script says of the others is of the round that is counted
                self._choices.pop(read.key, None)
            self._turns[read.thread, read.at, Side.READ] -= 1
        for read in reads:
            read.turn = NOT_COUNTED

    def settled(self, read: TraceEvent) -> bool:
        """A read, and the write of its operation, have been made: they are left out if a loop makes them once more."""
        write, value = read.partner, read.number
        unchanged = write is None or (write.bits is not None and write.bits == read.bits)
        if not isinstance(read.label, Access) or not unchanged or not self._leads_back(read, value):
            return False
        self._choices.pop(read.key, None)
        self._turns[read.thread, read.at, Side.READ] -= 1
        read.turn = NOT_COUNTED
        if write is not None:
            self._turns[write.thread, write.at, Side.WRITE] -= 1
            self._writes.pop(write.key, None)
            write.turn = NOT_COUNTED
            read.source = counted_write(read.source)
        return write is not None


def counted_write(write: TraceEvent | None) -> TraceEvent | None:
    """The write whose value a write leaves: an operation that a loop makes once more leaves what it read."""
    while write is not None and write.turn == NOT_COUNTED and write.partner is not None:
        write = write.partner.source
    return write


def write_key(write: TraceEvent) -> AccessKey | None:
    """The name of the write whose value a write leaves; None for the value before all strong writes."""
    counted = counted_write(write)
    return None if counted is None else counted.key
