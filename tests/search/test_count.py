"""How many programs there are: the search against trying every text, for the presets that figures are given for."""

from __future__ import annotations

from itertools import product

import pytest

from memmodel.isa.rows.ingredients import Ingredient
from memmodel.search.sketches import Body, canonical, connected, sketches
from memmodel.search.vocabulary import Vocabulary, vocabulary


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


@pytest.mark.parametrize(
    ("names", "size", "threads", "places"),
    [
        ("core", 3, 4, 3),
        ("core", 4, 4, 2),
        ("async", 3, 3, 2),
        ("async", 4, 4, 1),
        ("copy.in,copy.out,wait,wait_group,st.shared.weak", 3, 3, 2),
        ("copy.in,wait,st.shared.weak", 4, 2, 1),
    ],
)
def test_no_program_is_missed(names: str, size: int, threads: int, places: int) -> None:
    words = vocabulary(names.split(","), threads=threads, locations=places, spread=("one",))
    made = [sketch.threads for sketch in sketches(words, size)]
    assert len(made) == len(set(made))
    assert set(made) == every_program(words, size)
