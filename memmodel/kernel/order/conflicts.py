"""Which accesses touch the same bytes: pairs of classes, and places that several accesses share.

In: LaunchTrace, Roles. Out: `Conflicts`. Nothing is decided here about which pairs are races: two reads are left out,
as no model finds anything in them.

Bytes that plain weak accesses of the generic proxy alone touch give pairs of classes, since steps of causality between
these compose. Where asynchronous accesses take part, a chain through a third access at the same bytes may order two
others; there all accesses that touch a byte are a `SharedPlace`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from memmodel.base.labels import Access, Label, Side
from memmodel.kernel.order.labels import Labels
from memmodel.kernel.order.roles import Roles
from memmodel.kernel.order.uses import ConflictPair, Key, SharedPlace, Use, bounded, outlives
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.memory.bytes import CtaId
from memmodel.ptx.vocabulary import Space


class Conflicts:
    """All pairs and places of a run."""

    def __init__(self, run: LaunchTrace, roles: Roles) -> None:
        self._run = run
        self._roles = roles
        self._seen: set[Here] = set()
        self._label = Labels().number
        self._labels: dict[int, int] = {}
        self._numbers: dict[Key, int] = {}
        self._first: dict[CtaId, int] = {}
        self._patterns: set[object] = set()
        self._uses: list[Use] = []
        self._names: list[Name] = []
        self._heres: list[Here] = []
        self._keys: list[int] = []
        self._writing: list[bool] = []
        self._idents: list[int] = []
        self._same: dict[object, int] = {}
        self._meetings: dict[tuple[int, ...], tuple[SharedPlace, set[object]]] = {}
        self._simple: list[bool] = []
        self._members = 0
        self.pairs: dict[tuple[Here, Here, str], ConflictPair] = {}
        self.places: dict[object, SharedPlace] = {}
        self.touching: dict[tuple[int, int], tuple[Use, int]] = {}
        for block, uses in self._by_block().items():
            self._sweep(block, uses)
            self._alone(block, uses)
            self._objects(block, sorted(at for other, at in run.objects if other is block), uses)

    def _by_block(self) -> dict[Block, list[Use]]:
        """The accesses of each block in which something is written; those of one epoch that touch come as one.

        Memory of a CTA in which equal threads do the same as in an equal CTA before is left out.
        """
        run = self._run
        strong = [event for thread in run.threads for event in thread.strong()]
        meets = dict.fromkeys(one.block for one in strong if one.block is not None)
        written = dict.fromkeys(one.block for one in run.single if _writes(one.label)) | meets
        written |= dict.fromkeys(one.block for one in run.lanes if _writes(one.label))
        by_block: dict[Block, tuple[list[WeakAccess], list[LaneAccesses]]] = {block: ([], []) for block in written}
        for one in run.single:
            if one.block in by_block:
                by_block[one.block][0].append(one)
        for many in run.lanes:
            if many.block in by_block:
                by_block[many.block][1].append(many)
        found: dict[Block, list[Use]] = {}
        known: set[object] = set()
        for block, (single, lanes) in by_block.items():
            alike = None if block in meets else self._alike(block, single, lanes)
            if alike is not None and alike in known:
                continue
            known.add(alike)
            merged: dict[tuple[object, ...], list[WeakAccess]] = {}
            for one in chain(single, *(many.each() for many in lanes)):
                issue = None if one.issue is None else one.issue.order
                name = one.thread, one.epoch, self._label(one.label), one.scalar, issue, one.part
                merged.setdefault(name, []).append(one)
            found[block] = [use for members in merged.values() for use in _joined(members)]
        for event in strong:
            whole = event.issue or event
            part = whole.signals.index(event) if event.issue is not None else 0
            assert event.block is not None and whole.order is not None
            found[event.block].append(
                Use(
                    event.thread, whole.order, event.label, event.size, event.at, event.first, event.size, None, event,
                    part=part,
                )
            )  # fmt: skip
        return found

    def _alike(self, block: Block, single: list[WeakAccess], lanes: list[LaneAccesses]) -> object:
        """All that is done in the memory of a CTA, the same for CTAs that do the same; None for other memory."""
        owner, threads = block.instance.owner, self._run.threads
        if owner is None:
            return None

        rank = threads[self._holder(owner)].place.rank
        names: dict[int, object] = {}

        def where(number: int) -> object:
            """A thread by the rank of its CTA, seen from the memory, its number there and its classes."""
            if number not in names:
                place = threads[number].place
                who = self._roles.who[number]
                names[number] = place.rank - rank, number - self._holder(place.cta_id), who[1:]
            return names[number]

        alone = tuple(
            (one.first, one.size, where(one.thread), one.epoch, one.label, one.scalar, one.value, one.part)
            for one in single
        )
        together = tuple(
            (
                one.size, one.at, tuple(one.firsts), tuple(map(where, one.threads)), tuple(one.epochs),
                None if one.values is None else tuple(one.values),
            )
            for one in lanes
        )  # fmt: skip
        return self._roles.who[self._holder(owner)][0], block.instance.space, alone, together

    def _sweep(self, block: Block, uses: list[Use]) -> None:
        self._uses = uses
        self._keys = [self._key(one) for one in uses]
        self._idents = [self._ident(one) for one in uses]
        self._names = [self._name(one) for one in uses]
        self._heres = [(key, self._away(block, one)) for key, one in zip(self._keys, uses, strict=True)]
        self._meetings = {}
        self._writing = [one.writes for one in uses]
        self._simple = [one.alone for one in uses]
        edges: list[tuple[int, int, int]] = []
        for number, use in enumerate(uses):
            if use.size <= 0:  # a copy of no bytes
                continue
            edges.append((use.first, 1, number))
            edges.append((use.first + use.size, 0, number))
        edges.sort()
        active: dict[int, None] = {}
        last = 0
        for place, begins, number in edges:
            if place > last and len(active) > 1:
                self._interval(block, last, place - last, list(active))
            last = place
            if begins:
                active[number] = None
            else:
                del active[number]

    def _interval(self, block: Block, first: int, size: int, active: list[int]) -> None:
        writing = self._writing
        writers = [one for one in active if writing[one]]
        if not writers:
            return
        uses = self._uses
        if all(self._simple[one] for one in active):
            # Where all stores leave one value, or none of the same stores is known, another place says nothing new.
            values = {uses[one].stored(first, size) for one in writers}
            pattern = self._pattern(block, active)
            if len(values) == 1:
                unknown = sorted((self._keys[one], uses[one].at) for one in writers) if None in values else ()
                here = pattern, tuple(unknown)
                if here in self._patterns:
                    return
                self._patterns.add(here)
            if pattern in self._patterns:
                for number, one in enumerate(writers):
                    for other in writers[number + 1 :]:
                        self._pair(block, first, size, one, other)
                return
            self._patterns.add(pattern)
            for number, one in enumerate(active):
                for other in active[number + 1 :]:
                    self._pair(block, first, size, one, other)
            return
        active.sort(key=self._idents.__getitem__)
        meeting = tuple(self._idents[one] for one in active)
        known = self._meetings.get(meeting)
        stored = None
        if known is None or known[0].comparable:
            stored = self._left_there([uses[one] for one in active if writing[one]], first, size)
        if known is None or not (stored is None or stored in known[1]):
            place = self._place(block, first, size, active)
            self._meetings[meeting] = place, {*(known[1] if known else ()), stored}

    @staticmethod
    def _left_there(stores: list[Use], first: int, size: int) -> tuple[int, ...]:
        """Which of some stores leave the same: all that the comparison of two of them looks at, of the same stores."""
        values: dict[int, int] = {}
        left = [(one.at, one.stored(first, size)) for one in stores]
        return tuple([-1 - at if value is None else values.setdefault(value, len(values)) for at, value in left])

    def _pattern(self, block: Block, active: list[int]) -> object:
        """Which classes of accesses meet, and how their threads lie to one another."""
        threads = self._run.threads
        ctas: dict[int, int] = {}
        warps: dict[tuple[int, int], int] = {}
        lanes: dict[int, int] = {}
        found = []
        for one in sorted(active, key=self._keys.__getitem__):
            thread = threads[self._uses[one].thread]
            found.append((
                self._heres[one],
                ctas.setdefault(thread.cta, len(ctas)),
                warps.setdefault((thread.cta, thread.warp), len(warps)),
                lanes.setdefault(thread.number, len(lanes)),
            ))  # fmt: skip
        return block.instance.space, tuple(found)

    def _pair(self, block: Block, first: int, size: int, a: int, b: int) -> None:
        """Two accesses of which one writes; two strong ones meet at their own events."""
        if not (self._writing[a] or self._writing[b]) or a == b:
            return
        one, other = self._uses[a], self._uses[b]
        if one.event is not None and other.event is not None:
            return
        threads = self._run.threads
        how = self._roles.related(threads[one.thread], threads[other.thread])
        mine, others = self._heres[a], self._heres[b]
        names = mine, others, how
        known = self.pairs.get(names) or self.pairs.get((others, mine, how))
        if known is None:
            self._seen |= {mine, others}
            known = self.pairs[names] = ConflictPair(block, one, other, first)
        if self._writing[a] and self._writing[b]:
            known.compare(one, other, one.stored(first, size), other.stored(first, size))

    def _away(self, block: Block, use: Use) -> bool:
        """Is it the memory of another CTA than that of the thread?"""
        owner = block.instance.owner
        return owner is not None and owner != self._run.threads[use.thread].place.cta_id

    def _here(self, block: Block, use: Use) -> Here:
        return self._key(use), self._away(block, use)

    def _key(self, use: Use) -> int:
        """A number for what an access counts as."""
        key = self._roles.who[use.thread], use.epoch, self._label(use.label), use.scalar, use.event is not None
        return self._numbers.setdefault(key, len(self._numbers))

    # ---- places ----------------------------------------------------------------------------------------------

    def _ident(self, use: Use) -> int:
        """A number for all parts of an access, whatever their bytes."""
        label = self._labels.setdefault(self._label(use.label), len(self._labels))
        return self._same.setdefault(
            (use.thread, use.epoch, label, use.scalar, use.part, use.event is not None, use.issue is not None),
            len(self._same),
        )

    def _place(self, block: Block, first: int, size: int, active: list[int]) -> SharedPlace:
        """The place of these bytes: places that differ by a permutation of equal threads are one."""
        by_thread: dict[int, list[Done]] = {}
        for number in active:
            use = self._uses[number]
            if use.others:
                for one in self._each_lane(use, active):
                    by_thread.setdefault(one.thread, []).append((self._name(one), one, self._writing[number]))
            else:
                by_thread.setdefault(use.thread, []).append((self._names[number], use, self._writing[number]))
        for done in by_thread.values():
            done.sort(key=_name_of)
        name, chosen, owner = self._canonical(block, by_thread)
        members = [(use, stands) for thread, stands in chosen for _, use, _ in by_thread[thread]]
        known = self.places.get(name)
        if known is None:
            self._members += len(members)
            bounded(self._members)
            known = self.places[name] = SharedPlace(block, owner, members)
            self._seen.update(self._here(block, use) for done in by_thread.values() for _, use, _ in done)
            known.meet(first)
        known.compare(members, first, size)
        return known

    def _name(self, use: Use) -> Name:
        """An access within its thread, as numbers."""
        label = self._labels.setdefault(self._label(use.label), len(self._labels))
        return use.epoch, label, use.scalar or 0, use.part, int(use.issue is not None), int(use.event is not None)

    def _each_lane(self, use: Use, active: list[int]) -> Iterator[Use]:
        """An access that lanes make together, as accesses of lanes: two of each role, and those that also do others."""
        alone = {self._uses[one].thread for one in active if not self._uses[one].others}
        counts: dict[object, int] = {}
        assert use.issue is not None
        for issue in (use.issue, *use.others):
            who = self._roles.who[issue.thread]
            counts[who] = counts.get(who, 0) + 1
            if counts[who] <= 2 or issue.thread in alone:
                assert issue.order is not None
                yield replace(use, thread=issue.thread, epoch=issue.order, issue=issue, others=(), parts=())

    def _canonical(
        self, block: Block, by_thread: dict[int, list[Done]]
    ) -> tuple[object, list[tuple[int, int]], CtaId | None]:
        """A name for the pattern of accesses, threads with those that stand for them, and the CTA that owns the memory.

        Of equal lanes of a warp two are enough, since a finding is about two accesses; so of warps and CTAs. One is
        enough of those that only read: two reads are no finding, and what a read of one orders, that of the other does.
        """
        threads, who = self._run.threads, self._roles.who
        warps: dict[tuple[int, int], list[AlikeThreads]] = {}
        for number, done in by_thread.items():
            name = (who[number][2], *[part for part, _, _ in done])
            lane = AlikeThreads(name, (number,), any([writes for _, _, writes in done]))
            warps.setdefault((threads[number].cta, threads[number].warp), []).append(lane)
        ctas: dict[int, list[AlikeThreads]] = {}
        for (cta, _), lanes in warps.items():
            one = _enough(lanes)
            ctas.setdefault(cta, []).append(one._replace(name=(who[one.members[0]][1], *one.name)))
        owner = block.instance.owner
        groups: dict[object, list[AlikeThreads]] = {}
        for cta, inside in ctas.items():
            one = _enough(inside)
            first = one.members[0]
            name = (who[first][0], int(threads[first].place.cta_id == owner), *one.name)
            groups.setdefault(self._roles.cluster_of[cta], []).append(one._replace(name=name))
        names, members, _ = _enough([_enough(inside) for inside in groups.values()])
        if owner is None:
            stands = self._roles.standing(members)
            return (block.instance.space, block.instance.name, names), list(zip(members, stands, strict=True)), None
        holder = self._holder(owner)
        *stands, held = self._roles.standing((*members, holder))
        kind = (block.instance.space, who[holder][0], names)
        return kind, list(zip(members, stands, strict=True)), threads[held].place.cta_id

    def _holder(self, owner: CtaId) -> int:
        """The first thread of the CTA that owns some memory."""
        if not self._first:
            for thread in reversed(self._run.threads):
                self._first[thread.place.cta_id] = thread.number
        return self._first[owner]

    def _alone(self, block: Block, uses: list[Use]) -> None:
        """What is judged although nothing else touches its bytes: tensor memory, memory of other CTAs, bulk copies."""
        owner, threads = block.instance.owner, self._run.threads
        for number, use in enumerate(uses):
            remote = owner is not None and (threads[use.thread].place.cta_id != owner or outlives(use.label))
            if (remote or block.instance.space is Space.TENSOR) and self._heres[number] not in self._seen:
                self._place(block, use.first, use.size, [number])

    def _objects(self, block: Block, objects: list[int], uses: list[Use]) -> None:
        """Accesses to the memory of mbarrier objects: one of each class, with the thread that stands for it."""
        for use in uses if objects else ():
            for at in objects[bisect_left(objects, use.first - OBJECT_BYTES + 1) :]:
                if at >= use.first + use.size:
                    break
                key = (self._key(use), at)
                if key not in self.touching:
                    self.touching[key] = (use, self._roles.standing([use.thread])[0])


OBJECT_BYTES = 8

Here = tuple[int, bool]
"""The number of what an access counts as, and whether it goes to another CTA."""
Name = tuple[int, int, int, int, int, int]
"""An access within its thread."""
Done = tuple[Name, Use, bool]
"""An access of a thread at a place: its name, itself, and whether it writes."""


def _name_of(done: Done) -> Name:
    return done[0]


class AlikeThreads(NamedTuple):
    """A group of threads: what they do, as a name, its members, and whether any of them writes."""

    name: tuple[object, ...]
    members: tuple[int, ...]
    writes: bool


def _enough(items: list[AlikeThreads]) -> AlikeThreads:
    """The groups in the order of their names, as one: at most two of one name, and one if they only read."""
    counts: dict[object, int] = {}
    kept = []
    for item in sorted(items, key=lambda one: one.name):
        counts[item.name] = counts.get(item.name, 0) + 1
        if counts[item.name] <= 1 + item.writes:
            kept.append(item)
    members = tuple(thread for one in kept for thread in one.members)
    return AlikeThreads(tuple(one.name for one in kept), members, any(one.writes for one in kept))


def _writes(label: Label) -> bool:
    return isinstance(label, Access) and label.side is Side.WRITE


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
        one.thread, one.epoch, one.label, one.scalar, one.at, one.first, end - one.first, one.issue, None,
        tuple(members), one.part, one.others,
    )  # fmt: skip
