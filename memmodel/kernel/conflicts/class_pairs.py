"""Pairs of classes of accesses that meet at bytes which only accesses that are judged alone touch.

In: the accesses to some bytes, what stores leave there. Out: `ClassPairs.found`, a `ConflictPair` for each two classes
and each nearness of their threads, with the first two accesses that met so. What holds for all accesses of two classes
is looked at once: a kernel whose rounds reuse some bytes has few classes there, and thousands of accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from memmodel.kernel.conflicts.block_accesses import BlockAccesses, UseClass
from memmodel.kernel.conflicts.roles import ONE_WARP, Roles
from memmodel.kernel.conflicts.uses import ConflictPair, Use
from memmodel.kernel.trace.launch import LaunchTrace

Nearness = str
"""What `Roles.related` says of two threads."""


class ClassMembers(NamedTuple):
    """The accesses of one class that touch some bytes. `use`: the first of them; what it is, all are but for the thread
    and the bytes. `threads`: a number for the list of their threads. `left`: the instructions, and what they leave.
    """

    name: UseClass
    pieces: Sequence[int]
    use: Use
    threads: int
    left: frozenset[tuple[int, int | None]]


class ClassPairs:
    """The pairs of a run, of all blocks of its memory."""

    def __init__(self, run: LaunchTrace, roles: Roles) -> None:
        self._run, self._roles = run, roles
        self._threads: dict[tuple[int, ...], int] = {}
        self._near: dict[tuple[int, int, bool], frozenset[Nearness]] = {}
        self.found: dict[tuple[UseClass, UseClass, Nearness], ConflictPair] = {}
        self.classes: set[UseClass] = set()
        """Those that are in a pair."""

    def meet(
        self, accesses: BlockAccesses, first: int, pieces: Sequence[int], stored: Mapping[int, int | None]
    ) -> None:
        """Pair what touches a byte, of which one writes; two strong accesses meet at their own events. `stored`: what
        each write leaves, if it is known.
        """
        members = self._members(accesses, pieces, stored)
        met = [
            (one, other, self._nearness(accesses, one, other))
            for number, one in enumerate(members)
            for other in members[number:]
            if (one.use.writes or other.use.writes) and (one.use.event is None or other.use.event is None)
        ]
        new = [(one, other, how) for one, other, near in met for how in near if self._known(one, other, how) is None]
        place = {piece: number for number, piece in enumerate(pieces)} if new else {}
        for left, right, how in sorted(self._example(accesses, *each, place) for each in new):
            names = accesses.class_of(pieces[left]), accesses.class_of(pieces[right])
            uses = accesses.use(pieces[left]), accesses.use(pieces[right])
            self.classes.update(names)
            self.found[*names, how] = ConflictPair(accesses.block, *uses, first)
        for one, other, near in met:
            if near and one.use.writes and other.use.writes:
                self._compare(accesses, one, other, near, stored)

    def _members(
        self, accesses: BlockAccesses, pieces: Sequence[int], stored: Mapping[int, int | None]
    ) -> list[ClassMembers]:
        """The accesses by their classes, in the order of the first of each."""
        classes: dict[UseClass, list[int]] = {}
        for piece in pieces:
            classes.setdefault(accesses.class_of(piece), []).append(piece)
        return [
            ClassMembers(
                name,
                of_class,
                accesses.use(of_class[0]),
                self._threads.setdefault(tuple(map(accesses.thread_of, of_class)), len(self._threads)),
                frozenset((accesses.instruction_of(piece), stored.get(piece)) for piece in of_class),
            )
            for name, of_class in classes.items()
        ]

    def _nearness(self, accesses: BlockAccesses, one: ClassMembers, other: ClassMembers) -> frozenset[Nearness]:
        """The distances between the threads of accesses of two classes. Left out are accesses that one lane makes,
        whichever it is: parts of equal fragments that a warp moves at one place.
        """
        key = one.threads, other.threads, one is other
        if key not in self._near:
            self._near[key] = frozenset(self._related(accesses, *pair) for pair in _pairs(one, other))
        one_matrix = one.use.matrix // 2 == other.use.matrix // 2 > 0
        return self._near[key] - ONE_WARP if one_matrix else self._near[key]

    def _related(self, accesses: BlockAccesses, piece: int, other: int) -> Nearness:
        threads = self._run.threads
        return self._roles.related(threads[accesses.thread_of(piece)], threads[accesses.thread_of(other)])

    def _known(self, one: ClassMembers, other: ClassMembers, how: Nearness) -> ConflictPair | None:
        return self.found.get((one.name, other.name, how)) or self.found.get((other.name, one.name, how))

    def _example(
        self, accesses: BlockAccesses, one: ClassMembers, other: ClassMembers, how: Nearness, place: Mapping[int, int]
    ) -> tuple[int, int, Nearness]:
        """The first two accesses of two classes whose threads are so near, by where they stand among all."""
        both = one.pieces if one is other else sorted([*one.pieces, *other.pieces], key=place.__getitem__)
        first = {*one.pieces}
        return next(
            (place[piece], place[partner], how)
            for piece in both
            for partner in (other.pieces if piece in first else one.pieces)
            if place[piece] < place[partner] and self._related(accesses, piece, partner) == how
        )

    def _compare(
        self,
        accesses: BlockAccesses,
        one: ClassMembers,
        other: ClassMembers,
        near: frozenset[Nearness],
        stored: Mapping[int, int | None],
    ) -> None:
        """Compare what the stores of two classes leave: once, if all of a class leave the same."""
        known = {how: self._known(one, other, how) for how in near}
        if len(one.left) == len(other.left) == 1 and one.use.issue is None:
            ((_, left),), ((_, right),) = one.left, other.left
            for pair in known.values():
                assert pair is not None
                pair.compare(one.use, other.use, left, right)
            return
        for piece, partner in _pairs(one, other):
            pair = known.get(self._related(accesses, piece, partner))
            if pair is not None:
                pair.compare(accesses.use(piece), accesses.use(partner), stored[piece], stored[partner])


def _pairs(one: ClassMembers, other: ClassMembers) -> Iterator[tuple[int, int]]:
    """The pairs of an access of one class and one of another, or of two of one class."""
    return combinations(one.pieces, 2) if one is other else product(one.pieces, other.pieces)
