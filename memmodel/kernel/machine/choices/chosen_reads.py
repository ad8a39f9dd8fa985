"""Strong reads that return another write than the last one in time, as a schedule says.

In: `ChosenRead`s. Out: what such a read returns. A read of a write that has not been made yet waits for it; where
nobody else can go on, it returns what the write is to leave, and the run counts only if the write is made and leaves
that.
"""

from __future__ import annotations

from collections import Counter

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import Bits


class ChosenReads:
    """The strong accesses of a run so far, and the reads for which the schedule chooses a write."""

    def __init__(self, run: LaunchTrace, choices: tuple[ChosenRead, ...]) -> None:
        self.run = run
        self._choices = {choice.read: choice for choice in choices}
        self._turns: Counter[tuple[int, int, Side]] = Counter()
        self._writes: dict[AccessKey, TraceEvent] = {}
        self._before: dict[tuple[Block, int], Bits] = {}
        self._foretold: dict[AccessKey, list[tuple[TraceEvent, Bits]]] = {}

    def __bool__(self) -> bool:
        return bool(self._choices)

    @property
    def foretold(self) -> bool:
        """True if there is a read of a write that has not been made."""
        return bool(self._foretold)

    def number(self, event: TraceEvent, label: Access, block: Block, first: int, size: int) -> None:
        """A strong access of a thread begins."""
        key = event.thread, event.at, label.side
        event.turn = self._turns[key]
        self._turns[key] += 1
        if label.side is Side.WRITE:
            self._before.setdefault((block, first), block.bits(first, size))

    def all_made(self, events: list[TraceEvent]) -> None:
        """Strong accesses have been made."""
        for event in events:
            self.made(event)

    def made(self, event: TraceEvent) -> None:
        """A strong access has been made."""
        if event.block is not None:
            event.bits = event.block.bits(event.first, event.size)
        if not self._choices or not isinstance(event.label, Access) or event.label.side is not Side.WRITE:
            return
        key = event.key
        self._writes[key] = event
        for read, bits in self._foretold.pop(key, ()):
            self.run.infeasible |= bits != event.bits or (read.block, read.first, read.size) != (
                event.block, event.first, event.size,
            )  # fmt: skip
            read.source = event
            self.run.chosen.append((read, event))

    def early(self, thread: int, at: int, count: int) -> bool:
        """True if one of the next reads of a thread returns a write that has not been made."""
        turn = self._turns[thread, at, Side.READ]
        choices = (self._choices.get((thread, at, number)) for number in range(turn, turn + count))
        return any(
            choice is not None and choice.write is not None and choice.write not in self._writes for choice in choices
        )

    def older(self, read: TraceEvent) -> Bits | None:
        """What an atomic operation reads if it comes right after a write that is not the last one; None otherwise."""
        self.made(read)
        choice = self._choices.get(read.key) if self._choices else None
        if choice is None:
            return None
        if choice.write is not None and choice.write not in self._writes:
            self.run.infeasible = True
            return None
        return self.returned(read)

    def inserted(self, write: TraceEvent, older: Bits, value: int | None) -> None:
        """Such an operation has to leave the value that it read, so that other reads are not changed."""
        write.bits = older
        self._writes[write.key] = write
        self.run.infeasible |= value is None or older.number(8 * write.size) != value

    def waits(self, thread: int, at: int, block: Block, first: int, last: TraceEvent | None, *, atomic: bool) -> bool:
        """True if a write is not to be made yet."""
        return False

    def settled(self, read: TraceEvent) -> bool:
        """A read, and the write of its operation, have been made. True if that write is left out."""
        return False

    def stays(self, thread: int, at: int) -> bool:
        """True if a thread is to stay at one of its next reads."""
        return False

    def drop(self) -> None:
        """No thread can go on."""

    def load_ended(self, reads: list[TraceEvent]) -> None:
        """A load has returned all its elements. They are left out if a loop makes them once more."""

    def returned(self, read: TraceEvent) -> Bits | None:
        """What a read returns; None if nothing is chosen for it."""
        choice = self._choices.get(read.key)
        if choice is None:
            return None
        if choice.write is not None and choice.write not in self._writes:
            self._foretold.setdefault(choice.write, []).append((read, choice.bits))
            read.source, read.bits = None, choice.bits
            return choice.bits
        source = None if choice.write is None else self._writes[choice.write]
        if source is not None:
            self.run.infeasible |= (source.block, source.first, source.size) != (read.block, read.first, read.size)
            read.bits = source.bits
        elif read.block is not None:
            read.bits = self._before.get((read.block, read.first), read.bits)
        read.source = source
        self.run.chosen.append((read, source))
        return read.bits
