"""Which accesses touch the same bytes: pairs of classes, with an example of each.

In: Run, Roles. Out: `Pairs`. Nothing is decided here about which pairs are races: two reads are left out, as no model
finds anything in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.base.labels import Access, Label, Side
from memmodel.kernel.judge.events import LaunchTrace, TraceEvent, WeakAccess
from memmodel.kernel.judge.roles import Roles
from memmodel.kernel.machine.memory import Block

Key = tuple[tuple[int, int, int], int, Label, int | None, bool]
"""What an access counts as: classes of its thread, epoch, label, size of its elements, is it strong."""


@dataclass(frozen=True, slots=True)
class Use:
    """An access as conflicts see it. `event`: of a strong access. `parts`: weak accesses that were joined in it."""

    thread: int
    epoch: int
    label: Label
    scalar: int | None
    at: int
    first: int
    size: int
    issue: TraceEvent | None = None
    event: TraceEvent | None = None
    parts: tuple[WeakAccess, ...] = ()

    def stored(self, first: int, size: int) -> int | None:
        """The bytes that a weak store leaves there, if they are known."""
        for one in self.parts:
            if one.first <= first and first + size <= one.first + one.size and one.value is not None:
                return one.value >> 8 * (first - one.first) & (1 << 8 * size) - 1
        return None


@dataclass(slots=True)
class ConflictPair:
    """Two classes of accesses that touch one byte, with an example. `count`: how many intervals of bytes have them.

    `stored`: of two stores, whether they leave the same bytes everywhere: equal, unknown or different.
    """

    block: Block
    one: Use
    other: Use
    first: int
    count: int = 1
    stored: str = "equal"

    def compare(self, one: Use, other: Use, first: int, size: int) -> None:
        """Two stores that both touch these bytes."""
        left, right = one.stored(first, size), other.stored(first, size)
        if left is None or right is None:
            self.stored = "unknown" if self.stored == "equal" else self.stored
        elif left != right:
            self.stored = "different"


class Conflicts:
    """All pairs of a run."""

    def __init__(self, run: LaunchTrace, roles: Roles) -> None:
        self._run = run
        self._roles = roles
        self.pairs: dict[tuple[Key, Key, str], ConflictPair] = {}
        self.intervals = 0
        for block, uses in self._by_block().items():
            self._sweep(block, uses)

    def _by_block(self) -> dict[Block, list[Use]]:
        """The accesses of each block in which something is written; those of one epoch that touch come as one."""
        written: set[Block] = set()
        merged: dict[tuple[object, ...], list[WeakAccess]] = {}
        for one in self._run.weak:
            assert isinstance(one.label, Access)
            if one.label.side is Side.WRITE:
                written.add(one.block)
            issue = None if one.issue is None else id(one.issue)
            merged.setdefault((one.block, one.thread, one.epoch, one.label, one.scalar, issue), []).append(one)
        strong = [
            event
            for thread in self._run.threads
            for event in thread.events
            if isinstance(event.label, Access) and event.block is not None
        ]
        written |= {one.block for one in strong if one.block is not None}
        found: dict[Block, list[Use]] = {block: [] for block in written}
        for members in merged.values():
            if members[0].block in written:
                found[members[0].block] += _joined(members)
        for event in strong:
            assert event.block is not None and event.order is not None
            found[event.block].append(
                Use(event.thread, event.order, event.label, event.size, event.at, event.first, event.size, None, event)
            )
        return found

    def _sweep(self, block: Block, uses: list[Use]) -> None:
        edges: list[tuple[int, int, int]] = []
        for number, use in enumerate(uses):
            edges.append((use.first, 1, number))
            edges.append((use.first + use.size, 0, number))
        edges.sort()
        active: dict[int, Use] = {}
        last = 0
        for place, begins, number in edges:
            if place > last and len(active) > 1:
                self._interval(block, last, place - last, active)
            last = place
            if begins:
                active[number] = uses[number]
            else:
                del active[number]

    def _interval(self, block: Block, first: int, size: int, active: dict[int, Use]) -> None:
        writers = [one for one in active.values() if isinstance(one.label, Access) and one.label.side is Side.WRITE]
        if not writers:
            return
        self.intervals += 1
        keys = {id(one): self._key(one) for one in active.values()}
        threads = self._run.threads
        for writer in writers:
            mine, key = threads[writer.thread], keys[id(writer)]
            for other in active.values():
                if other is writer or (writer.event is not None and other.event is not None):
                    continue
                how = self._roles.related(mine, threads[other.thread])
                name = (key, keys[id(other)], how)
                known = self.pairs.get(name) or self.pairs.get((keys[id(other)], key, how))
                if known is None:
                    known = self.pairs[name] = ConflictPair(block, writer, other, first, 0)
                known.count += 1
                if isinstance(other.label, Access) and other.label.side is Side.WRITE:
                    known.compare(writer, other, first, size)

    def _key(self, use: Use) -> Key:
        return self._roles.who[use.thread], use.epoch, use.label, use.scalar, use.event is not None


def _joined(members: list[WeakAccess]) -> Iterator[Use]:
    """Accesses of one thread, epoch and label, joined where they touch; the instruction of each part is kept."""
    members.sort(key=lambda one: one.first)
    together = [members[0]]
    end = members[0].first + members[0].size
    for one in members[1:]:
        if one.first <= end and one.at == together[0].at:
            end = max(end, one.first + one.size)
            together.append(one)
            continue
        yield _use(together, end)
        together, end = [one], one.first + one.size
    yield _use(together, end)


def _use(members: list[WeakAccess], end: int) -> Use:
    one = members[0]
    return Use(
        one.thread,
        one.epoch,
        one.label,
        one.scalar,
        one.at,
        one.first,
        end - one.first,
        one.issue,
        None,
        tuple(members),
    )
