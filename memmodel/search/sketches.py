"""Every program without its spellings, once up to renaming threads, places and values.

In: Vocabulary, a number of instructions. Out: `Sketch`es. A sketch is canonical if no order of its threads, with
places numbered as they are first named, reads smaller. Settled here: which sketches are worth judging (`connected`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from memmodel.isa.rows.ingredients import BEGINS, ENDS, OBJECT, PLACED, Ingredient
from memmodel.search.vocabulary import Vocabulary

Use = tuple[int, tuple[int, ...]]
"""The number of an ingredient among the accesses of the vocabulary, and its places: numbers, by class."""

Body = tuple[Use, ...]

REDUCTIONS = 2
"""The most reductions of one place. Each sets a bit of its own, so that each one doubles the values that may be read.
"""

Homes = tuple[tuple[tuple[str, int], int], ...]
"""The CTA in whose memory a place is, by class and number."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A program whose instructions have no spelling yet, and whose gaps may hold fences.

    `seats`: for each thread (gpu, cluster, cta); None: every placement is tried at once. `homes`: the CTAs of places
    that threads of several CTAs use; any other place of a CTA is in that of its users.
    """

    threads: tuple[Body, ...]
    seats: tuple[tuple[int, int, int], ...] | None = None
    homes: Homes = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.threads))


def sketches(vocabulary: Vocabulary, size: int) -> Iterator[Sketch]:
    """All canonical connected sketches of `size` instructions, fences not counted."""
    accesses = vocabulary.accesses
    if vocabulary.most is not None and size > vocabulary.most:
        return
    for lengths in partitions(size, vocabulary.threads):
        for names in product(range(len(accesses)), repeat=size):
            if not _sorted(lengths, names):
                continue
            for places in _places([accesses[name].places for name in names], vocabulary.locations):
                uses = list(zip(names, places, strict=True))
                threads = _cut(uses, lengths)
                if connected(threads, accesses) and canonical(threads, accesses) == threads:
                    yield from _seated(Sketch(threads), vocabulary)


def partitions(size: int, most: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Lengths of threads, the longest first."""
    if size == 0:
        yield ()
        return
    if most == 0:
        return
    for first in range(min(size, largest or size), 0, -1):
        for rest in partitions(size - first, most - 1, first):
            yield (first, *rest)


def _sorted(lengths: Sequence[int], names: tuple[int, ...]) -> bool:
    """True if threads of equal length are sorted by their instructions; any other order has a smaller spelling."""
    start = 0
    last: tuple[int, ...] | None = None
    for length in lengths:
        mine = names[start : start + length]
        if last is not None and len(last) == length and mine < last:
            return False
        last, start = mine, start + length
    return True


def _places(classes: Sequence[str], most: int) -> Iterator[list[tuple[int, ...]]]:
    """Numbers for all places, each class counted as it is first named."""
    flat = [kind for text in classes for kind in text]

    def extend(at: int, used: dict[str, int], chosen: list[int]) -> Iterator[list[int]]:
        if at == len(flat):
            yield chosen
            return
        known = used.get(flat[at], 0)
        for number in range(min(known + 1, most)):
            yield from extend(at + 1, {**used, flat[at]: max(known, number + 1)}, [*chosen, number])

    for numbers in extend(0, {}, []):
        numbered, at = [], 0
        for text in classes:
            numbered.append(tuple(numbers[at : at + len(text)]))
            at += len(text)
        yield numbered


def _cut(uses: Sequence[Use], lengths: Sequence[int]) -> tuple[Body, ...]:
    threads, at = [], 0
    for length in lengths:
        threads.append(tuple(uses[at : at + length]))
        at += length
    return tuple(threads)


def renamed(threads: Sequence[Body], accesses: Sequence[Ingredient]) -> tuple[Body, ...]:
    """The same threads, with the places of each class numbered as they are first named."""
    known: dict[tuple[str, int], int] = {}
    used: dict[str, int] = {}
    bodies = []
    for body in threads:
        mine = []
        for name, places in body:
            new = []
            for kind, place in zip(accesses[name].places, places, strict=True):
                if (kind, place) not in known:
                    known[kind, place] = used.get(kind, 0)
                    used[kind] = known[kind, place] + 1
                new.append(known[kind, place])
            mine.append((name, tuple(new)))
        bodies.append(tuple(mine))
    return tuple(bodies)


def canonical(threads: Sequence[Body], accesses: Sequence[Ingredient]) -> tuple[Body, ...]:
    """The smallest spelling under every order of the threads; longer threads come first."""
    key = [(-len(body), tuple(name for name, _ in body)) for body in threads]
    order = sorted(range(len(threads)), key=lambda number: key[number])
    groups: list[list[int]] = []
    for thread in order:
        if groups and key[groups[-1][0]] == key[thread]:
            groups[-1].append(thread)
        else:
            groups.append([thread])
    return min(
        renamed([threads[thread] for part in parts for thread in part], accesses)
        for parts in product(*(permutations(group) for group in groups))
    )


def connected(threads: Sequence[Body], accesses: Sequence[Ingredient]) -> bool:
    """True if every instruction can matter: a place is named twice and written, or is an end of a copy; an object is
    arrived at and waited for, or has one copy's signal; a copy shares a place; a wait for completions has some to wait
    for, and something after it; no part of the program is without a place or a barrier that the rest has. Memory is
    freed before it is allocated again."""
    if any(_idle(body, accesses) for body in threads) or not _allocated_in_turn(threads, accesses):
        return False
    uses: dict[tuple[str, int], list[tuple[str, Ingredient]]] = {}
    for body in threads:
        for name, places in body:
            ingredient = accesses[name]
            for kind, does, place in zip(ingredient.places, ingredient.does, places, strict=True):
                uses.setdefault((kind, place), []).append((does, ingredient))
    # Where some memory is allocated, all other memory of its class is not there.
    allocated = {
        kind for body in threads for name, _ in body for kind in accesses[name].places * _begins(accesses[name])
    }
    if not all(kind in allocated or _matters(kind, mine) for (kind, _), mine in uses.items()):
        return False
    shared = {where for where, mine in uses.items() if len(mine) > 1}
    for body in threads:
        for name, places in body:
            kinds = accesses[name].places
            lives = accesses[name].life or not allocated.isdisjoint(kinds)
            if kinds and not lives and shared.isdisjoint(zip(kinds, places, strict=True)):
                return False
    return _joined(threads, accesses, allocated)


def _begins(ingredient: Ingredient) -> bool:
    return ingredient.life == BEGINS


def _matters(kind: str, mine: Sequence[tuple[str, Ingredient]]) -> bool:
    """True if the accesses of a place can matter. A place that is only read cannot: each reader could have its own."""
    if any(ingredient.life for _, ingredient in mine):
        return True
    if sum(ingredient.reduces for _, ingredient in mine) > REDUCTIONS:
        return False
    if len(mine) == 1:
        return len(mine[0][1].places) > 1
    if kind == OBJECT:
        return any(ingredient.arrives for _, ingredient in mine) and not all(
            ingredient.arrives for _, ingredient in mine
        )
    return any(does != "r" for does, _ in mine)


def _allocated_in_turn(threads: Sequence[Body], accesses: Sequence[Ingredient]) -> bool:
    """True if one thread alone begins the life of a place, and ends it before it begins again."""
    begun: dict[tuple[int, ...], int] = {}  # places, with the thread that allocates them
    for thread, body in enumerate(threads):
        alive: set[tuple[int, ...]] = set()
        for name, places in body:
            if _begins(accesses[name]):
                if places in alive or begun.setdefault(places, thread) != thread:
                    return False
                alive.add(places)
            elif accesses[name].life == ENDS:
                alive.discard(places)
    return True


def _idle(body: Body, accesses: Sequence[Ingredient]) -> bool:
    """True if an instruction waits for nothing, or is a wait that nothing follows."""
    begun: set[tuple[str, str]] = set()
    for at, (number, _) in enumerate(body):
        ingredient = accesses[number]
        if ingredient.ends:
            if at + 1 == len(body) or not any((ingredient.name, name) in begun for name in ingredient.ends):
                return True
            begun -= {(ingredient.name, name) for name in ingredient.ends}
        begun |= {(other.name, ingredient.name) for other in accesses if ingredient.name in other.ends}
    return False


def _joined(threads: Sequence[Body], accesses: Sequence[Ingredient], allocated: Collection[str]) -> bool:
    """True if the threads form one component. A barrier joins the threads that have it, an allocation those that name
    memory of its class."""
    marks = []
    for body in threads:
        mine: set[object] = set()
        for name, places in body:
            ingredient = accesses[name]
            mine.update(zip(ingredient.places, places, strict=True))
            mine.update(kind for kind in ingredient.places if kind in allocated)
            if ingredient.meets:
                mine.add(ingredient.meets)
        marks.append(mine)
    left, reached = list(range(1, len(marks))), set(marks[0])
    while True:
        near = [number for number in left if marks[number] & reached]
        if not near:
            return not left
        for number in near:
            reached |= marks[number]
        left = [number for number in left if number not in near]


# ---- placements --------------------------------------------------------------------------------------------


def seatings(count: int, spread: Sequence[str]) -> list[tuple[tuple[int, int, int], ...]]:
    """The ways to place a number of threads, as (gpu, cluster, cta): each partition into CTAs, these into clusters (or
    each its own), these onto GPUs (or one)."""
    placements = []
    ctas = _set_partitions(count) if "cta" in spread else [(0,) * count] if "one" in spread else [tuple(range(count))]
    for cta in ctas:
        clusters = _set_partitions(max(cta) + 1) if "cluster" in spread else [tuple(range(max(cta) + 1))]
        for cluster in clusters:
            gpus = _set_partitions(max(cluster) + 1) if "gpu" in spread else [(0,) * (max(cluster) + 1)]
            for gpu in gpus:
                placements.append(tuple((gpu[cluster[block]], cluster[block], block) for block in cta))
    return placements


def _set_partitions(count: int) -> list[tuple[int, ...]]:
    """Restricted growth strings."""
    partitions: list[tuple[int, ...]] = [()]
    for _ in range(count):
        partitions = [
            (*partition, block) for partition in partitions for block in range(max(partition, default=-1) + 2)
        ]
    return partitions


def _seated(sketch: Sketch, vocabulary: Vocabulary) -> Iterator[Sketch]:
    """One sketch for all placements, or one for each if the instructions depend on them."""
    if not any(vocabulary.accesses[name].local for body in sketch.threads for name, _ in body):
        yield sketch
        return
    alike = _symmetries(sketch.threads, vocabulary.accesses)
    for seats in seatings(len(sketch.threads), vocabulary.spread):
        for homes in _homes(sketch, vocabulary, seats):
            if all((seats, homes) <= _turned(seats, homes, order, names) for order, names in alike):
                yield Sketch(sketch.threads, seats, homes)


def _symmetries(
    threads: Sequence[Body], accesses: Sequence[Ingredient]
) -> list[tuple[tuple[int, ...], dict[tuple[str, int], tuple[str, int]]]]:
    """The orders of the threads in which they read the same, with what becomes of the places."""
    symmetries = []
    for order in permutations(range(len(threads))):
        moved = [threads[thread] for thread in order]
        if renamed(moved, accesses) == tuple(threads):
            names: dict[tuple[str, int], tuple[str, int]] = {}
            for old, new in zip(moved, threads, strict=True):
                for (name, before), (_, after) in zip(old, new, strict=True):
                    kinds = accesses[name].places
                    names.update(zip(zip(kinds, before, strict=True), zip(kinds, after, strict=True), strict=True))
            symmetries.append((order, names))
    return symmetries


def _turned(
    seats: Sequence[tuple[int, int, int]],
    homes: Homes,
    order: Sequence[int],
    names: dict[tuple[str, int], tuple[str, int]],
) -> tuple[tuple[tuple[int, int, int], ...], Homes]:
    """A placement as it is after a symmetry, with CTAs, clusters and GPUs numbered as they come."""
    numbers: list[dict[int, int]] = [{}, {}, {}]
    moved = []
    for thread in order:
        gpu, cluster, cta = (known.setdefault(at, len(known)) for known, at in zip(numbers, seats[thread], strict=True))
        moved.append((gpu, cluster, cta))
    return tuple(moved), tuple(sorted((names[place], numbers[2][cta]) for place, cta in homes))


def _homes(sketch: Sketch, vocabulary: Vocabulary, seats: Sequence[tuple[int, int, int]]) -> Iterator[Homes]:
    """Where places of shared and tensor memory may be: with their users, or where those can reach them."""
    near: dict[tuple[str, int], set[int]] = {}
    far: dict[tuple[str, int], set[int]] = {}
    together: list[tuple[tuple[str, int], tuple[str, int]]] = []
    clusters = {cta: cluster for _, cluster, cta in seats}
    for number, body in enumerate(sketch.threads):
        for name, places in body:
            ingredient = vocabulary.accesses[name]
            mine = list(zip(ingredient.places, places, strict=True))
            for hole, place in zip("xyz", mine, strict=False):
                if place[0] in PLACED:
                    (far if hole in ingredient.far else near).setdefault(place, set()).add(seats[number][2])
            if len(ingredient.far) == 2:
                first, second = (mine["xyz".index(hole)] for hole in ingredient.far)
                together.append((first, second))
    choices = []
    for place in sorted({*near, *far}):
        users = near.get(place, set()) | far.get(place, set())
        home = [cta for cta in clusters if near.get(place, {cta}) == {cta}]
        reached = [cta for cta in home if all(clusters[user] == clusters[cta] for user in users)]
        choices.append([(place, cta) for cta in sorted(reached)])
    for chosen in product(*choices):
        where = dict(chosen)
        if all(where[first] == where[second] for first, second in together):
            yield chosen
