"""Tests of mbarrier objects that fail a few times, to see that a failure changes nothing that matters.

In: a thread that comes to a test. Out: whether the test fails. Settled here: where a thread comes back to the test
twice in one state, with no effect on the way, it does so after any number of failures. What differs from one time to
the next (a count of rounds) is unknown from then on, so that nothing can depend on it unseen; so is, after the loop,
what differs from the first time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memmodel.base.labels import Access, Side
from memmodel.isa.lowered import LoweredInstruction
from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.values.cells import MemoryTerms
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import Bits

Asked = tuple[Block, int, int]
"""The object and the phase that a test asks for."""

FAILS = 6
"""So often a test fails at most, until a thread comes to it in one state."""


@dataclass(frozen=True, slots=True)
class ThreadState:
    """Registers and own memory of a thread at a test; `memory`: the bytes, and which of them are known."""

    registers: tuple[Value, ...]
    bits: frozenset[tuple[int | None, Bits]]
    stacked: int
    nested: int
    memory: tuple[bytes, bytes] | None
    names: frozenset[tuple[int, int]] = field(compare=False)


@dataclass(slots=True)
class Failing:
    """A thread in a loop around a test: the first state that it came in, and the last one; `over`: they come back.

    `events`: how many it had made; `single`, `lanes`: how many accesses all threads had made.
    """

    number: int
    frames: tuple[int, ...]
    asked: Asked
    first: ThreadState
    last: ThreadState
    events: int
    single: int
    lanes: int
    fails: int = 0
    over: bool = False


class FailingTests:
    """The tests that are looked at in a run. `unproven`: those of which a failure may change something."""

    def __init__(self, run: LaunchTrace, tests: frozenset[int]) -> None:
        self.tests, self.unproven = tests, set[int]()
        self._run = run
        self._at: dict[tuple[int, int, int], Failing] = {}

    def fails(self, warp: Warp, lane: int, number: int, frames: tuple[int, ...], asked: Asked) -> bool:
        """A thread comes to a test. True if the test fails."""
        if number not in self.tests:
            return False
        key = warp.cta.number, warp.number, lane
        known = self._at.get(key)
        thread, run = warp.threads[lane], self._run
        if known is not None and (known.number, known.frames) != (number, frames):
            self.unproven.add(known.number)
            known = None
        if known is None:
            now = _state(warp, lane)
            known = self._at[key] = Failing(number, frames, asked, now, now, len(thread.events), 0, 0)
        elif not known.over:
            if known.asked != asked or self._changed(known, thread.number, len(thread.events)):
                self.unproven.add(number)
            now = _state(warp, lane)
            known.over = known.fails > 1 and now == known.last
            if known.fails > 1 and not known.over:
                _forget(warp, lane, known.last, now)
                now = _state(warp, lane)
            known.last = now
            if known.fails > FAILS:
                self.unproven.add(number)
                known.over = True
        known.single, known.lanes, known.fails = len(run.single), len(run.lanes), known.fails + 1
        return not known.over

    def passed(self, warp: Warp, lanes: Lanes, number: int, terms: MemoryTerms | None) -> None:
        """Threads go on after a test that returned true: what failures change is not known there. `terms`: where
        values are followed.
        """
        for lane in lanes if number in self.tests else ():
            known = self._at.pop((warp.cta.number, warp.number, lane), None)
            if known is not None:
                _forget(warp, lane, known.first, known.last)
                warp.clear({slot for slot, _ in known.first.names ^ known.last.names}, [lane])
                own = warp.locals[lane]
                if terms is not None and own is not None:
                    terms.written(own, 0, own.size, number)

    def met(self, warp: Warp, lanes: Lanes, does: LoweredInstruction) -> None:
        """Threads do more than compute: what they do with other threads is not the same if these do not fail.

        Loads and stores leave accesses, which are compared.
        """
        if not self._at or does.loads or does.stores or does.instruction.number in self.tests:
            return
        for lane in lanes:
            known = self._at.get((warp.cta.number, warp.number, lane))
            if known is not None and not known.over:
                self.unproven.add(known.number)

    def proved(self) -> frozenset[int]:
        """The tests of which no failure changed anything."""
        inside = {failing.number for failing in self._at.values() if not failing.over}
        return self.tests - self.unproven - inside

    def _changed(self, known: Failing, thread: int, events: int) -> bool:
        """True if a thread did more since it last came than compute and read."""
        if events != known.events:
            return True
        singles = (access.label for access in self._run.single[known.single :] if access.thread == thread)
        many = (access.label for access in self._run.lanes[known.lanes :] if thread in access.threads)
        return any(_writes(label) for label in (*singles, *many))


def _writes(label: object) -> bool:
    return not isinstance(label, Access) or label.side is Side.WRITE


def _state(warp: Warp, lane: int) -> ThreadState:
    own = warp.locals[lane]
    return ThreadState(
        tuple(row[lane] for row in warp.registers),
        frozenset((slot, bits) for (slot, other), bits in warp.bits.items() if other == lane),
        warp.stacked[lane],
        len(warp.aside[lane]),
        None if own is None or own.known is None else (bytes(own.data), bytes(own.known)),
        frozenset((slot, name) for slot, row in warp.names.items() if (name := row[lane]) is not None),
    )


def _forget(warp: Warp, lane: int, before: ThreadState, after: ThreadState) -> None:
    """Make everything unknown that differs between two states of a thread."""
    bits = {slot for slot, _ in before.bits ^ after.bits if slot is not None}
    slots = [n for n, (a, b) in enumerate(zip(before.registers, after.registers, strict=True)) if a != b]
    for slot in {*slots, *bits}:
        warp.own(slot)[lane] = None
    warp.clear({*slots, *bits}, [lane])
    own = warp.locals[lane]
    if own is None or before.memory == after.memory:
        return
    for at in _different(before.memory, after.memory):
        own.forget(at, 1)


def _different(before: tuple[bytes, bytes] | None, after: tuple[bytes, bytes] | None) -> Iterable[int]:
    """The places of bytes that are not the same, or known in one of them only."""
    if before is None or after is None:
        whole = before or after
        return range(len(whole[0])) if whole is not None else ()
    both = zip(before[0], after[0], before[1], after[1], strict=True)
    return [n for n, (a, b, x, y) in enumerate(both) if x != y or (x and a != b)]
