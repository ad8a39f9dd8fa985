"""How many programs there are: the search against trying every text, for the presets that figures are given for and for
each part of the vocabulary; with fences, spellings and placements too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest

from memmodel.base.rows import bits
from memmodel.isa.rows.ingredients import PLACED, Form, Ingredient
from memmodel.search.programs import Ready
from memmodel.search.sketches import Body, Sketch, canonical, connected, sketches
from memmodel.search.vocabulary import Vocabulary, every_word, vocabulary


def uses_of(accesses: tuple[Ingredient, ...], places: int) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (name, where) for name, one in enumerate(accesses) for where in product(range(places), repeat=len(one.places))
    ]


def every_program(words: Vocabulary, size: int) -> set[tuple[Body, ...]]:
    """Every text of so many instructions, cut into threads in every way, by its smallest spelling."""
    found: set[tuple[Body, ...]] = set()
    seen: set[tuple[Body, ...]] = set()
    for body in product(uses_of(words.accesses, words.locations), repeat=size):
        for cuts in product((False, True), repeat=size - 1):
            if sum(cuts) >= words.threads:
                continue
            threads, now = [], [body[0]]
            for cut, use in zip(cuts, body[1:], strict=True):
                if cut:
                    threads.append(tuple(now))
                    now = []
                now.append(use)
            threads.append(tuple(now))
            text = tuple(sorted(threads))
            if text not in seen:
                seen.add(text)
                if connected(text, words.accesses):
                    found.add(canonical(text, words.accesses))
    return found


PRESETS = [
    ("core", 3, 4, 3),
    ("core", 4, 4, 2),
    ("async", 3, 3, 2),
    ("async", 4, 4, 1),
    ("copy.in,copy.out,wait,wait_group,st.shared.weak", 3, 3, 2),
    ("copy.in,wait,st.shared.weak", 4, 2, 1),
]

PARTS = [
    ("ld,st,st.data,atom,red", 4, 3, 2),
    ("ld,st,ld.alias,st.alias", 4, 2, 2),
    ("ld.shared,st.shared.alias,ld.shared.alias,ld.tile.alias,st.tile.alias,copy.out,wait_group", 3, 2, 1),
    ("ld,st,multimem.ld,multimem.st,multimem.red", 4, 2, 1),
    ("ld.weak,st.weak,bar,cluster.arrive,cluster.wait", 4, 3, 2),
    ("ld.shared,st.shared,arrive,wait,arrive.plain,wait.plain,init,inval", 3, 3, 2),
    ("copy.in,copy.out,reduce,wait_group,wait_group.read,ld.tile,st.tile,wait", 4, 2, 1),
    ("copy.in.relaxed,copy.out.relaxed,wait_group,wait,ld.shared", 3, 2, 2),
    ("cp.async,cp.async.wait,cp.async.arrive,wait,ld.shared,st.tile", 4, 2, 1),
    (
        "copy.map,tensormap.replace,tensormap.replace.alias,fence.proxy.tensormap.acquire,wait,ld.shared,st.tile",
        4,
        2,
        1,
    ),
    ("copy.map,tensormap.cp_fenceproxy,fence.proxy.tensormap.acquire,wait,ld.shared", 3, 2, 1),
    ("st.async,st.async.release,red.async.release,ld,st,wait,ld.shared", 3, 3, 2),
    ("tcgen05.st,tcgen05.ld,tcgen05.wait::st,tcgen05.wait::ld,wait,tcgen05.commit", 4, 2, 2),
    ("tcgen05.mma,tcgen05.cp,tcgen05.shift,tcgen05.commit,tcgen05.ld,st.shared", 4, 2, 1),
    ("wgmma,wgmma.registers,wgmma.wait,wgmma.fence,st.shared,ld.shared", 4, 2, 1),
    ("try_cancel,wait,ld.shared", 4, 3, 2),
    ("tcgen05.alloc,tcgen05.dealloc,tcgen05.relinquish,tcgen05.st", 4, 3, 2),
]
"""Words of each part of the vocabulary, with the size, threads and places that every text is tried of."""


@pytest.mark.share(4)
@pytest.mark.parametrize(("names", "size", "threads", "places"), PRESETS + PARTS)
def test_no_program_is_missed(names: str, size: int, threads: int, places: int) -> None:
    words = vocabulary(names.split(","), threads=threads, locations=places, spread=("one",))
    made = [sketch.threads for sketch in sketches(words, size)]
    assert len(made) == len(set(made))
    assert set(made) == every_program(words, size)


def test_every_instruction_is_counted_in_some_part() -> None:
    counted = {it.name for names, *_ in PARTS for it in vocabulary(names.split(",")).accesses}
    assert counted == {it.name for it in vocabulary(every_word()).accesses}


# ---- fences and spellings --------------------------------------------------------------------------------------------

Spelt = tuple[tuple[tuple[Form | None, tuple[int, ...]], ...], ...]
"""Threads of forms, each with its places."""


def spelt(words: Vocabulary, size: int) -> Iterator[Spelt]:
    """Every text of so many instructions and fences in one CTA, a fence of each form between any two instructions. A
    value may depend on what was read before."""
    for number in range(1, size + 1):
        for threads in every_program(words, number):
            choices: list[list[tuple[Form, tuple[int, ...]] | None]] = []
            for mine, at, (name, places) in ((body, at, use) for body in threads for at, use in enumerate(body)):
                answered = any(words.accesses[before].answers for before, _ in mine[:at])
                if at > 0:
                    choices.append([None, *[(form, ()) for form in words.fences]])
                forms = [form for form in words.accesses[name].forms if answered or not form.data]
                choices.append([(form, places) for form in forms])
            for chosen in product(*choices):
                if sum(it is not None for it in chosen) != size:
                    continue
                left = iter(chosen)
                yield tuple(
                    tuple(it for _, it in zip(range(2 * len(body) - 1), left, strict=False) if it is not None)
                    for body in threads
                )


def alike(threads: Spelt) -> Spelt:
    """One of the programs that differ by the order of threads and the names of places alone."""
    every = []
    for order in permutations(threads):
        known: dict[int, int] = {}
        every.append(
            tuple(
                tuple((form, tuple(known.setdefault(place, len(known)) for place in places)) for form, places in body)
                for body in order
            )
        )
    return min(every, key=repr)


@pytest.mark.parametrize(
    ("names", "size"),
    [
        ("ld,st,fence.acq_rel,fence.sc", 3),
        ("ld.weak,st.weak,fence.acq_rel,fence.acquire,fence.release", 4),
        ("ld.weak,st.data,atom,fence.acq_rel", 3),
        ("ld.alias,st.weak,fence.proxy.alias,fence.proxy.alias.release", 4),
    ],
)
def test_no_spelling_and_no_fence_is_missed(names: str, size: int) -> None:
    """Words of one kind of places."""
    words = vocabulary(names.split(","), threads=3, locations=2, spread=("one",), gap=1)
    made: set[Spelt] = set()
    for number in range(1, size + 1):
        for sketch in sketches(words, number):
            ready = Ready(sketch, words, size)
            for choice in map(ready.grid.choice, bits(ready.worlds)):
                specimen = ready.specimen(choice)
                if specimen.size == size:
                    bodies = [
                        tuple(
                            (spot.forms[choice[spot.dimension]], () if spot.use is None else spot.use[1])
                            for spot in body
                            if spot.forms[choice[spot.dimension]] is not None
                        )
                        for body in specimen.draft.threads
                    ]
                    made.add(alike(tuple(bodies)))
    assert made == {alike(threads) for threads in spelt(words, size)}


# ---- placements ------------------------------------------------------------------------------------------------------


def every_placement(threads: tuple[Body, ...], words: Vocabulary) -> set[object]:
    """The ways to place a program in CTAs, and these in clusters: one of those that differ by names alone."""
    accesses, found = words.accesses, set()
    users = [
        (number, hole in accesses[name].far, place)
        for number, body in enumerate(threads)
        for name, places in body
        for hole, place in zip("xyz", zip(accesses[name].places, places, strict=True), strict=False)
        if place[0] in PLACED
    ]
    pairs = [
        [(kind, place) for hole, kind, place in zip("xyz", it.places, places, strict=False) if hole in it.far]
        for body in threads
        for it, places in ((accesses[name], places) for name, places in body)
        if len(it.far) == 2
    ]
    placed = sorted({place for _, _, place in users})
    count = len(threads)
    for ctas in product(range(count), repeat=count):
        for cluster in product(range(count), repeat=count) if "cluster" in words.spread else [tuple(range(count))]:
            for homes in product(sorted(set(ctas)), repeat=len(placed)):
                home = dict(zip(placed, homes, strict=True))
                if all(
                    cluster[home[place]] == cluster[ctas[number]] if far else home[place] == ctas[number]
                    for number, far, place in users
                ) and all(home[first] == home[second] for first, second in pairs):
                    found.add(unnamed(threads, accesses, ctas, cluster, home))
    return found


def unnamed(
    threads: tuple[Body, ...],
    accesses: tuple[Ingredient, ...],
    ctas: tuple[int, ...],
    cluster: tuple[int, ...],
    home: dict[tuple[str, int], int],
) -> object:
    """A placed program, with everything numbered as it comes, in the order of threads that reads smallest."""
    every = []
    for order in permutations(range(len(threads))):
        known: dict[object, int] = {}

        def number(kind: object, name: object, known: dict[object, int] = known) -> int:
            same = [key for key in known if key[0] == kind]  # type: ignore[index]
            return known.setdefault((kind, name), len(same))

        text: list[tuple[int, ...]] = []
        for thread in order:
            cta = ctas[thread]
            text.append((number("cta", cta), number("cluster", cluster[cta])))
            for name, places in threads[thread]:
                mine = zip(accesses[name].places, places, strict=True)
                text.append((name, *(number(kind, place) for kind, place in mine)))
        where = sorted((kind, number(kind, place), number("cta", cta)) for (kind, place), cta in home.items())
        every.append((tuple(len(threads[thread]) for thread in order), tuple(text), tuple(where)))
    return min(every, key=repr)


@pytest.mark.parametrize(
    ("names", "size", "threads"),
    [
        ("ld.shared.weak,st.shared.weak", 3, 3),
        ("arrive,wait,st.shared.weak", 3, 2),
        ("copy.in,wait,ld.shared.weak", 3, 2),
        ("st.async,wait,ld.shared.weak", 3, 2),
        ("tcgen05.mma,tcgen05.ld,st.shared.weak", 3, 2),
        ("copy.out,wait_group,st.shared.weak", 3, 3),
        ("try_cancel,wait,ld.shared", 3, 2),
    ],
)
@pytest.mark.parametrize("spread", [("cta",), ("cta", "cluster")])
def test_no_placement_is_missed(names: str, size: int, threads: int, spread: tuple[str, ...]) -> None:
    words = vocabulary(names.split(","), threads=threads, locations=1, spread=spread)
    made = [placed(sketch, words) for sketch in sketches(words, size)]
    assert len(made) == len(set(made))
    assert set(made) == {one for program in every_program(words, size) for one in every_placement(program, words)}


def placed(sketch: Sketch, words: Vocabulary) -> object:
    assert sketch.seats is not None
    ctas = tuple(cta for _, _, cta in sketch.seats)
    cluster = {cta: number for _, number, cta in sketch.seats}
    every = tuple(cluster.get(cta, 0) for cta in range(max(ctas) + 1))
    return unnamed(sketch.threads, words.accesses, ctas, every, dict(sketch.homes))
