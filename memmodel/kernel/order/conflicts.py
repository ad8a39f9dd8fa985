"""Which accesses touch the same bytes: pairs of classes, and places that several accesses share.

In: LaunchTrace, Roles. Out: `Conflicts`. Nothing is decided here about which pairs are races: two reads are left out,
as no model finds anything in them.

Bytes that plain weak accesses of the generic proxy alone touch give pairs of classes, since steps of causality between
these compose. Where asynchronous accesses take part, a chain through a third access at the same bytes may order two
others; there all accesses that touch a byte are a `SharedPlace`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from memmodel.base.labels import Label, Side, side_of
from memmodel.kernel.order.roles import Labels, Roles
from memmodel.kernel.order.uses import ConflictPair, Key, SharedPlace, Use, bounded, outlives
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.memory.bytes import CtaId
from memmodel.ptx.vocabulary import Space


class Conflicts:
    """All pairs and places of a run. `by_instruction`: accesses of different instructions are different classes, so
    that each instruction that takes part in a race is found.
    """

    def __init__(self, run: LaunchTrace, roles: Roles, *, by_instruction: bool = False) -> None:
        self._run, self.by_instruction = run, by_instruction
        self._roles = roles
        self._seen: set[UseClass] = set()
        self._label = Labels().number
        self._numbers: dict[Key, int] = {}
        self._first: dict[CtaId, int] = {}
        self._patterns: dict[object, set[tuple[int, ...]]] = {}
        self._uses: list[Use] = []
        self._names: list[Name] = []
        self._classes: list[UseClass] = []
        self._keys: list[int] = []
        self._writing: list[bool] = []
        self._idents: list[int] = []
        self._same: dict[object, int] = {}
        self._meetings: dict[tuple[int, ...], tuple[SharedPlace, set[object]]] = {}
        self._simple: list[bool] = []
        self._members = 0
        self.pairs: dict[tuple[UseClass, UseClass, str], ConflictPair] = {}
        self.places: dict[object, SharedPlace] = {}
        self.touching: dict[tuple[int, int], tuple[Use, int]] = {}
        for block, uses in self._by_block().items():
            self._sweep(block, uses)
            self._alone(block, uses)
            self._objects(block, sorted(at for other, at in run.objects if other is block), uses)

    def _by_block(self) -> dict[Block, list[Use]]:
        """The accesses of each block in which something can be found; those of one epoch that touch come as one.

        Memory of a CTA in which equal threads do the same as in an equal CTA before is left out.
        """
        run = self._run
        strong = [event for thread in run.threads for event in thread.strong()]
        meets = dict.fromkeys(access.block for access in strong if access.block is not None)
        judged = dict.fromkeys(access.block for access in run.single if side_of(access.label) is Side.WRITE) | meets
        judged |= dict.fromkeys(access.block for access in run.lanes if side_of(access.label) is Side.WRITE)
        # Where nothing is written there is no race, and still some reads are judged.
        judged |= dict.fromkeys(block for block, _ in run.objects)
        for access in chain(
            run.single, chain.from_iterable(reads.each() for reads in run.lanes if reads.block not in judged)
        ):
            if access.block not in judged and self._counts_alone(access.block, access.thread, access.label):
                judged[access.block] = None
        by_block: dict[Block, tuple[list[WeakAccess], list[LaneAccesses]]] = {block: ([], []) for block in judged}
        for access in run.single:
            if access.block in by_block:
                by_block[access.block][0].append(access)
        for lane_accesses in run.lanes:
            if lane_accesses.block in by_block:
                by_block[lane_accesses.block][1].append(lane_accesses)
        uses: dict[Block, list[Use]] = {}
        known: set[object] = set()
        for block, (single, lanes) in by_block.items():
            alike = None if block in meets else self._alike(block, single, lanes)
            if alike is not None and alike in known:
                continue
            known.add(alike)
            merged: dict[tuple[object, ...], list[WeakAccess]] = {}
            for access in single:
                issue = None if access.issue is None else access.issue.order
                name = access.thread, access.epoch, self._label(access.label), access.scalar, issue, access.part
                merged.setdefault(name, []).append(access)
            for lane_accesses in lanes:
                label, scalar = self._label(lane_accesses.label), lane_accesses.scalar
                for access in lane_accesses.each():
                    merged.setdefault((access.thread, access.epoch, label, scalar, None, 0), []).append(access)
            joined = uses[block] = list[Use]()
            for members in merged.values():
                _join(members, joined)
        for event in strong:
            whole = event.issue or event
            part = whole.signals.index(event) if event.issue is not None else 0
            assert event.block is not None and whole.order is not None
            uses[event.block].append(
                Use(
                    event.thread, whole.order, event.label, event.size, event.at, event.first, event.size, None, event,
                    part=part,
                )
            )  # fmt: skip
        return uses

    def _alike(self, block: Block, single: list[WeakAccess], lanes: list[LaneAccesses]) -> object:
        """A name for what is done in the memory of a CTA, equal for CTAs that do the same; None for other memory."""
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
            (
                access.first,
                access.size,
                where(access.thread),
                access.epoch,
                access.label,
                access.scalar,
                access.value,
                access.part,
            )
            for access in single
        )
        together = tuple(
            (
                access.size, access.at, tuple(access.firsts), tuple(map(where, access.threads)), tuple(access.epochs),
                None if access.values is None else tuple(access.values),
            )
            for access in lanes
        )  # fmt: skip
        return self._roles.who[self._holder(owner)][0], block.instance.space, alone, together

    def _sweep(self, block: Block, uses: list[Use]) -> None:
        self._uses = uses
        self._meetings = {}
        self._kinds(block, uses)
        edges: list[tuple[int, int, int]] = []
        for number, use in enumerate(uses):
            if use.size <= 0:  # a copy of no bytes
                continue
            edges.append((use.first, 1, number))
            edges.append((use.first + use.size, 0, number))
        edges.sort()
        active: dict[int, None] = {}
        last = writers = shared = 0
        # The same, sorted by their numbers for all parts of an access.
        together, idents = list[int](), list[int]()
        for place, begins, number in edges:
            if place > last and writers and len(active) > 1:
                if shared:
                    self._shared(block, last, place - last, together, tuple(idents))
                else:
                    self._plain(block, last, place - last, list(active))
            last = place
            step, ident = 1 if begins else -1, self._idents[number]
            writers += step * self._writing[number]
            shared += step * (not self._simple[number])
            if begins:
                active[number] = None
                at = bisect_right(idents, ident)
                together.insert(at, number)
                idents.insert(at, ident)
            else:
                del active[number]
                at = together.index(number, bisect_left(idents, ident))
                del together[at], idents[at]

    def _kinds(self, block: Block, uses: list[Use]) -> None:
        """What the accesses are, whatever their bytes: parts of one access, which come one after the other, alike."""
        self._keys, self._idents, self._names, self._classes = keys, idents, names, classes = [], [], [], []
        self._writing, self._simple = writing, simple = [], []
        last: Use | None = None
        for use in uses:
            if last is None or not _is_part(use, last):
                last = use
                key, ident, name = self._key(use), self._ident(use), self._name(use)
                kind, writes, alone = (key, self._away(block, use)), use.writes, use.alone
            keys.append(key)
            idents.append(ident)
            names.append(name)
            classes.append(kind)
            writing.append(writes)
            simple.append(alone)

    def _plain(self, block: Block, first: int, size: int, active: list[int]) -> None:
        """Bytes that accesses touch of which each can be judged against one other access, without third ones."""
        # A place with the same accesses adds nothing, if its stores leave equal and unknown values as before.
        writing, uses = self._writing, self._uses
        ordered = sorted(active, key=self._keys.__getitem__)
        pattern = self._pattern(block, ordered)
        writers = [member for member in active if writing[member]]
        values = {member: uses[member].stored(first, size) for member in writers}
        left = _alike([(uses[member].at, values[member]) for member in ordered if writing[member]])
        known_left = self._patterns.setdefault(pattern, set())
        if left in known_left:
            return
        others = self._enough_of_warps(active if not known_left else writers, values)
        known_left.add(left)
        for number, member in enumerate(others):
            for other in others[number + 1 :]:
                self._pair(block, first, member, other, values)

    def _shared(self, block: Block, first: int, size: int, active: list[int], meeting: tuple[int, ...]) -> None:
        """Bytes that asynchronous accesses touch. `meeting`: the accesses, whatever their bytes."""
        known = self._meetings.get(meeting)
        stored = None
        if known is None or known[0].comparable:
            stores = (self._uses[member] for member in active if self._writing[member])
            stored = _alike([(store.at, store.stored(first, size)) for store in stores])
        if known is None or not (stored is None or stored in known[1]):
            place = self._place(block, first, size, active)
            self._meetings[meeting] = place, {*(known[1] if known else ()), stored}

    def _enough_of_warps(self, members: list[int], stored: dict[int, int | None]) -> list[int]:
        """Of the accesses that meet, those of two lanes for all lanes of a warp that do the same and leave the same:
        their pairs are all pairs of classes, values, and nearness of the threads.
        """
        threads, uses = self._run.threads, self._uses
        by_thread: dict[int, list[int]] = {}
        for member in members:
            by_thread.setdefault(uses[member].thread, []).append(member)
        counts: dict[object, int] = {}
        enough = set[int]()
        for number, done in by_thread.items():
            thread = threads[number]
            what = [(self._classes[member], uses[member].at, stored.get(member)) for member in done]
            key = thread.cta, thread.warp, *what
            counts[key] = counts.get(key, 0) + 1
            if counts[key] <= 2:
                enough.update(done)
        return [member for member in members if member in enough]

    def _pattern(self, block: Block, active: list[int]) -> object:
        """The classes of accesses that meet, sorted by them, and which of these share a CTA, a warp, a lane."""
        threads = self._run.threads
        ctas: dict[int, int] = {}
        warps: dict[tuple[int, int], int] = {}
        lanes: dict[int, int] = {}
        classes = []
        for number in active:
            thread = threads[self._uses[number].thread]
            classes.append((
                self._classes[number],
                ctas.setdefault(thread.cta, len(ctas)),
                warps.setdefault((thread.cta, thread.warp), len(warps)),
                lanes.setdefault(thread.number, len(lanes)),
            ))  # fmt: skip
        return block.instance.space, tuple(classes)

    def _pair(self, block: Block, first: int, a: int, b: int, stored: dict[int, int | None]) -> None:
        """Two accesses of which one writes; two strong ones meet at their own events. `stored`: what each write leaves,
        if it is known.
        """
        if not (self._writing[a] or self._writing[b]) or a == b:
            return
        first_use, second_use = self._uses[a], self._uses[b]
        if first_use.event is not None and second_use.event is not None:
            return
        threads = self._run.threads
        how = self._roles.related(threads[first_use.thread], threads[second_use.thread])
        first_class, second_class = self._classes[a], self._classes[b]
        names = first_class, second_class, how
        known = self.pairs.get(names) or self.pairs.get((second_class, first_class, how))
        if known is None:
            self._seen |= {first_class, second_class}
            known = self.pairs[names] = ConflictPair(block, first_use, second_use, first)
        if self._writing[a] and self._writing[b]:
            known.compare(first_use, second_use, stored[a], stored[b])

    def _away(self, block: Block, use: Use) -> bool:
        """True if the memory belongs to another CTA than the thread's."""
        owner = block.instance.owner
        return owner is not None and owner != self._run.threads[use.thread].place.cta_id

    def _class(self, block: Block, use: Use) -> UseClass:
        return self._key(use), self._away(block, use)

    def _key(self, use: Use) -> int:
        """The number of the class of an access."""
        strong, at = use.event is not None, use.at * self.by_instruction
        key = self._roles.who[use.thread], use.epoch, self._label(use.label), use.scalar, strong, at
        return self._numbers.setdefault(key, len(self._numbers))

    # ---- places ----------------------------------------------------------------------------------------------

    def _ident(self, use: Use) -> int:
        """A number for all parts of an access, whatever their bytes."""
        label, strong, asynchronous = self._label(use.label), use.event is not None, use.issue is not None
        access = use.thread, use.epoch, label, use.scalar, use.part, strong, asynchronous, use.at * self.by_instruction
        return self._same.setdefault(access, len(self._same))

    def _place(self, block: Block, first: int, size: int, active: list[int]) -> SharedPlace:
        """The place of these bytes: places that differ by a permutation of equal threads are one."""
        by_thread: dict[int, list[Done]] = {}
        for number in active:
            use = self._uses[number]
            if use.others:
                for lane_use in self._each_lane(use, active):
                    by_thread.setdefault(lane_use.thread, []).append(
                        (self._name(lane_use), lane_use, self._writing[number])
                    )
            else:
                by_thread.setdefault(use.thread, []).append((self._names[number], use, self._writing[number]))
        for done in by_thread.values():
            if len(done) > 1:
                done.sort(key=_NAME)
        name, chosen, owner = self._canonical(block, by_thread)
        members = [(use, stands) for thread, stands in chosen for _, use, _ in by_thread[thread]]
        known = self.places.get(name)
        if known is None:
            self._members += len(members)
            bounded(self._members)
            known = self.places[name] = SharedPlace(block, owner, members)
            self._seen.update(self._class(block, use) for done in by_thread.values() for _, use, _ in done)
            known.meet(first)
        known.compare(members, first, size)
        return known

    def _name(self, use: Use) -> Name:
        """An access within its thread, as numbers."""
        asynchronous, strong = int(use.issue is not None), int(use.event is not None)
        at = use.at * self.by_instruction
        return use.epoch, self._label(use.label), use.scalar or 0, use.part, asynchronous, strong, at

    def _each_lane(self, use: Use, active: list[int]) -> Iterator[Use]:
        """An access that lanes make together, as accesses of lanes: two of each role, and those that also do others."""
        alone = {self._uses[number].thread for number in active if not self._uses[number].others}
        counts: dict[object, int] = {}
        assert use.issue is not None
        for issue in (use.issue, *use.others):
            who = self._roles.who[issue.thread]
            counts[who] = counts.get(who, 0) + 1
            if counts[who] <= 2 or issue.thread in alone:
                assert issue.order is not None
                yield use._replace(thread=issue.thread, epoch=issue.order, issue=issue, others=(), parts=())

    def _canonical(
        self, block: Block, by_thread: dict[int, list[Done]]
    ) -> tuple[object, list[tuple[int, int]], CtaId | None]:
        """A name for the pattern of accesses, threads with those that stand for them, and the CTA that owns the memory.

        A finding is about two accesses, so two of the equal lanes of a warp are enough, and two of equal warps or CTAs.
        Of those that only read one is enough: two reads are no finding, and both order the same.
        """
        threads, who = self._run.threads, self._roles.who
        warps: dict[tuple[int, int], list[AlikeThreads]] = {}
        for number, done in by_thread.items():
            thread = threads[number]
            if len(done) == 1:
                part, _, writes = done[0]
                lane = AlikeThreads((who[number][2], part), (number,), writes)
            else:
                name = (who[number][2], *[part for part, _, _ in done])
                lane = AlikeThreads(name, (number,), any([writes for _, _, writes in done]))
            warps.setdefault((thread.cta, thread.warp), []).append(lane)
        ctas: dict[int, list[AlikeThreads]] = {}
        for (cta, _), lanes in warps.items():
            group = _enough(lanes)
            ctas.setdefault(cta, []).append(group._replace(name=(who[group.members[0]][1], *group.name)))
        owner = block.instance.owner
        groups: dict[object, list[AlikeThreads]] = {}
        for cta, inside in ctas.items():
            group = _enough(inside)
            first = group.members[0]
            name = (who[first][0], int(threads[first].place.cta_id == owner), *group.name)
            groups.setdefault(self._roles.cluster_of[cta], []).append(group._replace(name=name))
        names, members, _ = _enough([_enough(inside) for inside in groups.values()])
        if owner is None:
            stands = self._roles.representatives(members)
            return (block.instance.space, block.instance.name, names), list(zip(members, stands, strict=True)), None
        holder = self._holder(owner)
        *stands, held = self._roles.representatives((*members, holder))
        kind = (block.instance.space, who[holder][0], names)
        return kind, list(zip(members, stands, strict=True)), threads[held].place.cta_id

    def _holder(self, owner: CtaId) -> int:
        """The first thread of the CTA that owns some memory."""
        if not self._first:
            for thread in reversed(self._run.threads):
                self._first[thread.place.cta_id] = thread.number
        return self._first[owner]

    def _alone(self, block: Block, uses: list[Use]) -> None:
        """Places of accesses that are judged although nothing else touches their bytes: to tensor memory, to memory of
        other CTAs, bulk copies.
        """
        for number, use in enumerate(uses):
            if self._counts_alone(block, use.thread, use.label) and self._classes[number] not in self._seen:
                self._place(block, use.first, use.size, [number])

    def _counts_alone(self, block: Block, thread: int, label: Label) -> bool:
        """True if an access is judged although nothing else touches its bytes."""
        owner = block.instance.owner
        remote = owner is not None and (self._run.threads[thread].place.cta_id != owner or outlives(label))
        return remote or block.instance.space is Space.TENSOR

    def _objects(self, block: Block, objects: list[int], uses: list[Use]) -> None:
        """Accesses to the memory of mbarrier objects: one of each class, with the thread that stands for it."""
        for use in uses if objects else ():
            for at in objects[bisect_left(objects, use.first - OBJECT_BYTES + 1) :]:
                if at >= use.first + use.size:
                    break
                key = (self._key(use), at)
                if key not in self.touching:
                    self.touching[key] = (use, self._roles.representatives([use.thread])[0])


OBJECT_BYTES = 8

UseClass = tuple[int, bool]
"""The class of an access, and whether it goes to another CTA."""
Name = tuple[int, int, int, int, int, int, int]
"""An access within its thread."""
Done = tuple[Name, Use, bool]
"""An access of a thread at a place: its name, itself, and whether it writes."""


_NAME = itemgetter(0)
"""The name of what a thread does, or of a group of threads."""
_FIRST_BYTE = itemgetter(WeakAccess._fields.index("first"))


def _alike(left: list[tuple[int, int | None]]) -> tuple[int, ...]:
    """A number for what each store leaves, equal for equal values; of the instruction where that is not known."""
    values: dict[int, int] = {}
    return tuple([-1 - at if value is None else values.setdefault(value, len(values)) for at, value in left])


def _is_part(use: Use, other: Use) -> bool:
    """True if two accesses differ in their bytes only."""
    return (
        use.thread == other.thread
        and use.epoch == other.epoch
        and use.label is other.label
        and use.at == other.at
        and use.scalar == other.scalar
        and use.part == other.part
        and use.issue is other.issue
        and use.event is None
        and other.event is None
    )


class AlikeThreads(NamedTuple):
    """A group of threads: what they do, as a name, its members, and whether any of them writes."""

    name: tuple[object, ...]
    members: tuple[int, ...]
    writes: bool


def _enough(items: list[AlikeThreads]) -> AlikeThreads:
    """The groups in the order of their names, as one: at most two of one name, and one if they only read."""
    if len(items) > 1:
        counts: dict[object, int] = {}
        every, items = sorted(items, key=_NAME), []
        for item in every:
            name, _, writes = item
            count = counts[name] = counts.get(name, 0) + 1
            if count <= 1 + writes:
                items.append(item)
    members = tuple([thread for group in items for thread in group.members])
    return AlikeThreads(tuple([group.name for group in items]), members, any([group.writes for group in items]))


def _join(members: list[WeakAccess], uses: list[Use]) -> None:
    """Add accesses of one thread, epoch and label, joined where they touch; the instruction of each part is kept."""
    if len(members) == 1:
        uses.append(_use(members, members[0].first + members[0].size))
        return
    members.sort(key=_FIRST_BYTE)
    together = [members[0]]
    at, end = members[0].at, members[0].first + members[0].size
    for access in members[1:]:
        first = access.first
        if first <= end and access.at == at:
            end = max(end, first + access.size)
            together.append(access)
            continue
        uses.append(_use(together, end))
        together, at, end = [access], access.at, first + access.size
    uses.append(_use(together, end))


def _use(members: list[WeakAccess], end: int) -> Use:
    first = members[0]
    return Use(
        first.thread, first.epoch, first.label, first.scalar, first.at, first.first, end - first.first, first.issue,
        None, tuple(members), first.part, first.others,
    )  # fmt: skip
