"""Which accesses touch the same bytes: pairs of classes, and places that several accesses share.

In: LaunchTrace, Roles. Out: `Conflicts`. Nothing is decided here about which pairs are races: two reads are left out,
as no model finds anything in them.

Bytes that plain weak accesses of the generic proxy alone touch give pairs of classes, since steps of causality between
these compose. Where asynchronous accesses take part, a chain through a third access at the same bytes may order two
others; there all accesses that touch a byte are a `SharedPlace`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from memmodel.kernel.conflicts.block_accesses import (
    AccessClasses,
    Holders,
    UseClass,
    accesses_by_block,
    counts_alone,
    may_count_alone,
    numbered,
)
from memmodel.kernel.conflicts.class_pairs import ClassPairs
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.conflicts.uses import Name, SharedPlace, Use, bounded
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.memory.bytes import CtaId


class Conflicts:
    """All pairs and places of a run. `by_instruction`: accesses of different instructions are different classes, so
    that each instruction that takes part in a race is found.
    """

    def __init__(self, run: LaunchTrace, roles: Roles, *, by_instruction: bool = False) -> None:
        self._run, self._roles = run, roles
        self._of = AccessClasses(run, roles, by_instruction=by_instruction)
        self.by_instruction = by_instruction
        self._seen: set[UseClass] = set()
        self._holder = Holders(run).of
        self._patterns: dict[object, set[tuple[int, ...]]] = {}
        self._warps = numbered((thread.cta, thread.warp) for thread in run.threads)
        self._clusters = numbered(roles.cluster_of[thread.cta] for thread in run.threads)
        self._meetings: dict[tuple[int, ...], MeetingShape] = {}
        self._shapes: dict[object, MeetingShape] = {}
        self._members = 0
        self._class_pairs = ClassPairs(run, roles)
        self.pairs = self._class_pairs.found
        self.places: dict[object, SharedPlace] = {}
        self.touching: dict[tuple[int, int], tuple[Use, int]] = {}
        for block, accesses in accesses_by_block(run, roles, self._of):
            self._accesses = accesses
            self._sweep()
            self._judged_alone()
            self._objects(sorted(at for other, at in run.objects if other is block))

    def _sweep(self) -> None:
        """Go over the bytes of a block, from each where an access begins or ends to the next."""
        accesses, self._meetings, self._shapes = self._accesses, {}, {}
        self._keys = [accesses.key[access] for access in accesses.access]
        self._idents = [] if all(accesses.alone) else accesses.idents()
        begins, ends = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for piece, (first, end) in enumerate(zip(accesses.first, accesses.end, strict=True)):
            if first < end:  # else a copy of no bytes
                begins[first].append(piece)
                ends[end].append(piece)
        access_of, writes, alone = accesses.access, accesses.writes, accesses.alone
        active: dict[int, None] = {}
        last = writers = shared = 0
        for place in sorted(begins.keys() | ends.keys()):
            if writers and len(active) > 1:
                if shared:
                    self._shared(last, place - last, list(active))
                else:
                    self._plain(last, place - last, list(active))
            last = place
            for piece in ends.get(place, ()):
                del active[piece]
                writers -= writes[access_of[piece]]
                shared -= not alone[access_of[piece]]
            for piece in begins.get(place, ()):
                active[piece] = None
                writers += writes[access_of[piece]]
                shared += not alone[access_of[piece]]

    def _plain(self, first: int, size: int, active: list[int]) -> None:
        """Bytes that accesses touch of which each can be judged against one other access, without third ones."""
        # A place with the same accesses adds nothing, if its stores leave equal and unknown values as before.
        accesses, access_of = self._accesses, self._accesses.access
        writes, at = accesses.writes, accesses.at
        ordered = sorted(active, key=self._keys.__getitem__)
        pattern = self._pattern(ordered)
        writers = [piece for piece in active if writes[access_of[piece]]]
        values = {piece: accesses.stored(piece, first, size) for piece in writers}
        left = _numbered_values([(at[access_of[piece]], values[piece]) for piece in ordered if piece in values])
        known_left = self._patterns.setdefault(pattern, set())
        if left in known_left:
            return
        others = self._enough_of_warps(active if not known_left else writers, values)
        known_left.add(left)
        self._class_pairs.meet(accesses, first, others, values)

    def _shared(self, first: int, size: int, active: list[int]) -> None:
        """Bytes that asynchronous accesses touch."""
        accesses, access_of = self._accesses, self._accesses.access
        idents = self._idents
        active.sort(key=idents.__getitem__)
        names = tuple([idents[piece] for piece in active])
        known = self._meetings.get(names)
        if known is None:
            shape = self._shape(active)
            known = self._shapes.setdefault(shape, MeetingShape())
            self._meetings[names] = known
        if known.place is not None and not known.place.comparable:
            return
        writers = (piece for piece in active if accesses.writes[access_of[piece]])
        stored = _numbered_values(
            [(accesses.at[access_of[piece]], accesses.stored(piece, first, size)) for piece in writers]
        )
        if stored not in known.stored:
            known.place = self._place(first, size, active)
            known.stored.add(stored)

    def _shape(self, active: list[int]) -> object:
        """What makes the place of some accesses, given in an order: what each is, which of them one thread makes, which
        of these threads share a warp or a cluster (perhaps that of the memory), and which copies are equal.

        Of two lists of accesses with one shape, one becomes the other if threads are renamed: so `_place`, which looks
        at nothing else but the bytes that are left, gives both one place, and compares alike where these are alike.
        The class of a thread says which CTA of its cluster it is in. Lanes that make an access together are looked at
        one by one, so it has a shape of its own.
        """
        accesses, access_of, cluster_of = self._accesses, self._accesses.access, self._clusters
        lanes, warps, clusters, copies = dict[int, int](), dict[int, int](), dict[int, int](), dict[int, int]()
        owner = accesses.block.instance.owner
        if owner is not None:
            clusters[cluster_of[self._holder(owner)]] = 0
        shape = []
        for piece in active:
            access = access_of[piece]
            if accesses.together[access]:
                return object()
            thread = accesses.thread[access]
            what, copy = accesses.described(piece)
            shape.append((
                what,
                -1 if copy is None else copies.setdefault(copy, len(copies)),
                lanes.setdefault(thread, len(lanes)),
                warps.setdefault(self._warps[thread], len(warps)),
                clusters.setdefault(cluster_of[thread], len(clusters)),
            ))  # fmt: skip
        return tuple(shape)

    def _enough_of_warps(self, pieces: list[int], stored: dict[int, int | None]) -> list[int]:
        """Of the accesses that meet, those of two lanes for all lanes of a warp that do the same and leave the same:
        their pairs are all pairs of classes, values, and nearness of the threads.
        """
        accesses, access_of = self._accesses, self._accesses.access
        by_thread: dict[int, list[int]] = {}
        for piece in pieces:
            by_thread.setdefault(accesses.thread[access_of[piece]], []).append(piece)
        counts: dict[object, int] = {}
        enough = set[int]()
        for thread, done in by_thread.items():
            what = [
                (accesses.use_class[access_of[piece]], accesses.at[access_of[piece]], stored.get(piece))
                for piece in done
            ]
            key = self._warps[thread], *what
            counts[key] = counts.get(key, 0) + 1
            if counts[key] <= 2:
                enough.update(done)
        return [piece for piece in pieces if piece in enough]

    def _pattern(self, active: list[int]) -> object:
        """The classes of accesses that meet, sorted by them, and which of these share a CTA, a warp, a lane."""
        accesses, access_of, threads, warp_of = self._accesses, self._accesses.access, self._run.threads, self._warps
        use_class, thread_of = accesses.use_class, accesses.thread
        ctas, warps, lanes = dict[int, int](), dict[int, int](), dict[int, int]()
        classes = []
        for piece in active:
            access = access_of[piece]
            thread = thread_of[access]
            classes.append((
                use_class[access],
                ctas.setdefault(threads[thread].cta, len(ctas)),
                warps.setdefault(warp_of[thread], len(warps)),
                lanes.setdefault(thread, len(lanes)),
            ))  # fmt: skip
        return accesses.block.instance.space, tuple(classes)

    def _by_one_lane(self, first: Use, second: Use) -> bool:
        """True if two accesses to one byte are parts of equal fragments that a warp moves at one place: whichever lane
        makes the one makes the other.
        """
        one_matrix = first.matrix // 2 == second.matrix // 2 > 0
        return one_matrix and self._warps[first.thread] == self._warps[second.thread]

    # ---- places ----------------------------------------------------------------------------------------------

    def _place(self, first: int, size: int, active: list[int]) -> SharedPlace:
        """The place of these bytes: places that differ by a permutation of equal threads are one."""
        accesses, access_of = self._accesses, self._accesses.access
        thread_of, writes, together = accesses.thread, accesses.writes, accesses.together
        by_thread: dict[int, list[AccessAtPlace]] = {}
        for piece in active:
            access = access_of[piece]
            if together[access]:
                for use in self._each_lane(accesses.use(piece), active):
                    by_thread.setdefault(use.thread, []).append((self._of.name(use), piece, writes[access], use))
            else:
                done = accesses.name(piece), piece, writes[access], None
                by_thread.setdefault(thread_of[access], []).append(done)
        for several in by_thread.values():
            if len(several) > 1:
                several.sort(key=_NAME)
        name, chosen, owner = self._canonical(accesses.block, by_thread)
        known = self.places.get(name)
        if known is not None and not known.comparable:
            return known
        members = [(self._use(done), stands) for thread, stands in chosen for done in by_thread[thread]]
        if known is None:
            self._members += len(members)
            bounded(self._members)
            known = self.places[name] = SharedPlace(accesses.block, owner, members)
            all_uses = (self._use(done) for several in by_thread.values() for done in several)
            self._seen.update(self._of.of(accesses.block, use) for use in all_uses)
            known.meet(first, self._by_one_lane)
        known.compare(members, first, size)
        return known

    def _use(self, done: AccessAtPlace) -> Use:
        _, piece, _, lane_use = done
        return lane_use or self._accesses.use(piece)

    def _each_lane(self, use: Use, active: list[int]) -> Iterator[Use]:
        """An access that lanes make together, as accesses of lanes: two of each role, and those that also do others."""
        accesses, access_of = self._accesses, self._accesses.access
        alone = {accesses.thread[access_of[piece]] for piece in active if not accesses.together[access_of[piece]]}
        counts: dict[object, int] = {}
        assert use.issue is not None
        for issue in (use.issue, *use.others):
            who = self._roles.who[issue.thread]
            counts[who] = counts.get(who, 0) + 1
            if counts[who] <= 2 or issue.thread in alone:
                assert issue.order is not None
                yield use._replace(thread=issue.thread, epoch=issue.order, issue=issue, others=(), parts=())

    def _canonical(
        self, block: Block, by_thread: dict[int, list[AccessAtPlace]]
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
                part, _, writes, _ = done[0]
                lane = AlikeThreads((who[number][2], part), (number,), writes)
            else:
                name = (who[number][2], *[part for part, _, _, _ in done])
                lane = AlikeThreads(name, (number,), any([writes for _, _, writes, _ in done]))
            warps.setdefault((thread.cta, thread.warp), []).append(lane)
        ctas: dict[int, list[AlikeThreads]] = {}
        for (cta, _), lanes in warps.items():
            group = _at_most_two(lanes)
            ctas.setdefault(cta, []).append(group._replace(name=(who[group.members[0]][1], *group.name)))
        owner = block.instance.owner
        groups: dict[object, list[AlikeThreads]] = {}
        for cta, inside in ctas.items():
            group = _at_most_two(inside)
            first = group.members[0]
            name = (who[first][0], int(threads[first].place.cta_id == owner), *group.name)
            groups.setdefault(self._roles.cluster_of[cta], []).append(group._replace(name=name))
        names, members, _ = _at_most_two([_at_most_two(inside) for inside in groups.values()])
        if owner is None:
            stands = self._roles.representatives(members)
            return (block.instance.space, block.instance.name, names), list(zip(members, stands, strict=True)), None
        holder = self._holder(owner)
        *stands, held = self._roles.representatives((*members, holder))
        kind = (block.instance.space, who[holder][0], names)
        return kind, list(zip(members, stands, strict=True)), threads[held].place.cta_id

    def _judged_alone(self) -> None:
        """Places of accesses that are judged although nothing else touches their bytes: to tensor memory, to memory of
        other CTAs, bulk copies.
        """
        accesses, block = self._accesses, self._accesses.block
        for piece, access in enumerate(accesses.access if may_count_alone(block) else ()):
            name = accesses.use_class[access]
            if name not in self._seen and name not in self._class_pairs.classes:
                use = accesses.use(piece)
                if counts_alone(self._of, block, use.thread, use.label):
                    self._place(use.first, use.size, [piece])

    def _objects(self, objects: list[int]) -> None:
        """Accesses to the memory of mbarrier objects: one of each class, with the thread that stands for it."""
        accesses = self._accesses
        for piece in range(len(accesses)) if objects else ():
            for at in objects[bisect_left(objects, accesses.first[piece] - OBJECT_BYTES + 1) :]:
                if at >= accesses.end[piece]:
                    break
                key = (accesses.key[accesses.access[piece]], at)
                if key not in self.touching:
                    use = accesses.use(piece)
                    self.touching[key] = (use, self._roles.representatives([use.thread])[0])


OBJECT_BYTES = 8

AccessAtPlace = tuple[Name, int, bool, Use | None]
"""An access of a thread at a place: its name, its piece, whether it writes, and itself if lanes make it together."""


_NAME = itemgetter(0)
"""The name of what a thread does, or of a group of threads."""


def _numbered_values(left: list[tuple[int, int | None]]) -> tuple[int, ...]:
    """A number for what each store leaves, equal for equal values; of the instruction where that is not known."""
    values: dict[int, int] = {}
    return tuple([-1 - at if value is None else values.setdefault(value, len(values)) for at, value in left])


@dataclass(slots=True)
class MeetingShape:
    """Accesses that meet at several places: the place that they make, and what they were seen to leave there."""

    place: SharedPlace | None = None
    stored: set[object] = field(default_factory=set)


class AlikeThreads(NamedTuple):
    """A group of threads: what they do, as a name, its members, and whether any of them writes."""

    name: tuple[object, ...]
    members: tuple[int, ...]
    writes: bool


def _at_most_two(items: list[AlikeThreads]) -> AlikeThreads:
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
