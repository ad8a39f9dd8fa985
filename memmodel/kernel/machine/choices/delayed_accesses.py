"""Accesses of words that are polled, which a schedule delays until all other threads are blocked.

In: a strong access that is about to be made. Out: whether its thread waits; when all are blocked, which of those that
wait goes on.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from memmodel.kernel.machine.choices.chosen_reads import ChosenReads
from memmodel.kernel.machine.choices.schedule import FIRST, LAST, Schedule
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.module.syntax import PtxInstruction

PATIENCE = 64
"""Rounds for which threads are held back at words that are polled, or are slow."""

DelayedAccess = tuple[int, int, str, int]
"""Thread, instruction, the name of the memory or why else it waits, offset."""


class DelayedAccesses:
    """The accesses that are delayed now, and those that were let go on.

    `strong`: by block and offset the last strong write, with its size.
    """

    def __init__(
        self, schedule: Schedule, reads: ChosenReads, strong: Mapping[Block, Mapping[int, tuple[int, TraceEvent]]]
    ) -> None:
        self._schedule = schedule
        self._reads = reads
        self._strong = strong
        self._delayed: dict[DelayedAccess, None] = {}
        self._released: set[DelayedAccess] = set()
        self._patience = PATIENCE

    def polls(self, thread: TraceThread, instruction: PtxInstruction, place: tuple[Block, int], *, reads: bool) -> bool:
        """True if an access of a polled word is delayed until all other threads are blocked.

        `reads`: it only reads the word; else it writes it, and a first write is not delayed.
        """
        looks, (block, at) = self._schedule.looks, place
        if not looks or (instruction.number not in self._schedule.looked if reads else not self._written(block, at)):
            return False
        key = thread.number, instruction.number, block.instance.name, at
        late = reads == (looks == LAST) if looks in (FIRST, LAST) else random.Random(f"{looks} {key}").random() < 0.5
        if not late or key in self._released:
            return False
        self._delayed.setdefault(key)
        return True

    def awaits_chosen_write(self, thread: TraceThread, at: int, count: int) -> bool:
        """True if a thread waits for a write that one of its next reads is to return."""
        if not self._reads or not self._reads.early(thread.number, at, count):
            return False
        key = thread.number, at, "early", 0
        if key in self._released:
            return False
        self._delayed.setdefault(key)
        return True

    def awaits_turn(self, thread: TraceThread, at: int, block: Block, first: int, *, atomic: bool) -> bool:
        """True if a thread waits before a write to a place that an atomic operation has to read first."""
        last = self._strong.get(block, {}).get(first)
        if not self._reads.waits(thread.number, at, block, first, None if last is None else last[1], atomic=atomic):
            return False
        self._delayed.setdefault((thread.number, at, "script", first))
        return True

    def next_round(self) -> None:
        """All warps have had a turn. Threads that poll, and meet at barriers while they do, can go on for ever."""
        self._patience = self._patience - 1 if self._delayed and not self.all_stay else PATIENCE
        if self._patience < 0:
            self.release()
        if self._schedule.scripted is not None:
            self._delayed = {}  # those that are still delayed say so in this round

    @property
    def all_stay(self) -> bool:
        """True if all threads whose accesses are delayed are to stay there."""
        return bool(self._delayed) and all(self._reads.stays(access[0], access[1]) for access in self._delayed)

    def release(self) -> bool:
        """All threads are blocked: let one of those go on whose access is delayed. False if there is none."""
        if self.all_stay:
            return False
        waiting, self._delayed = list(self._delayed), {}
        if waiting:
            self._reads.drop()
            looks = self._schedule.looks
            chosen = 0 if looks in (FIRST, LAST) else random.Random(f"{looks} {waiting}").randrange(len(waiting))
            self._released.add(waiting[chosen])
        self._patience = PATIENCE
        return bool(waiting)

    def _written(self, block: Block, at: int) -> bool:
        return at in self._strong.get(block, ())
