"""The words that an edit is about: vocabularies for the search of the smallest program, the smallest first.

In: ComparedModels. Out: tuples of words for `vocabulary`. Settled here: which words. The labels of events say on which
words two models can disagree (`search.judging.alike`). A word without which they still can is left out; what is left is
what the changed definitions speak of. A program of these words also has to load and store at their places, and to
signal and wait for what goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from memmodel.base.labels import Fault, InitialWrite, Label, Mark, Marker, Undefined
from memmodel.search.judging.alike import labels_of
from memmodel.search.programs import Ready
from memmodel.search.sketches import Sketch
from memmodel.search.vocabulary import (
    GLOBAL,
    OBJECT,
    PLACED,
    SHARED,
    TENSOR,
    TILE,
    Ingredient,
    Vocabulary,
    every_word,
    vocabulary,
)

_ALWAYS: frozenset[Label] = frozenset({InitialWrite(), Fault(""), Undefined(""), Mark(Marker.END)})
"""Labels of events that no instruction is."""

_ACCESSES = {
    GLOBAL: ("ld.weak", "st.weak"),
    TILE: ("ld.tile.weak", "st.tile.weak"),
    SHARED: ("ld.shared.weak", "st.shared.weak"),
    TENSOR: ("tcgen05.ld", "tcgen05.st"),
    OBJECT: ("arrive.release", "wait.acquire"),
}
"""What is done at a place, by its class, so that something is seen there."""

_HANDED_OVER = {
    GLOBAL: ("st.release", "ld.acquire"),
    TILE: ("st.tile.release", "ld.tile.acquire"),
    SHARED: ("arrive.release", "wait.acquire"),
    TENSOR: ("arrive.release", "wait.acquire", "tcgen05.wait::st", "tcgen05.fence::before", "tcgen05.fence::after"),
}
"""What hands a place of a class over to another thread."""

Disagree = Callable[[Sequence[str]], bool]
"""Whether two models can disagree on programs of these words."""


def vocabularies(agree_on: Callable[[frozenset[Label]], bool]) -> list[tuple[str, ...]]:
    """The words that the difference of two models is about, then these with what hands places over; none if no word
    shows the difference. `agree_on`: true if the models agree on every program whose events have such labels.
    """

    def disagree(words: Sequence[str]) -> bool:
        return not agree_on(_ALWAYS.union(*(word_labels(word) for word in words)))

    least = least_words(every_word(), disagree)
    if least is None:
        return []
    near = reached(least)
    handed = [word for kind in _kinds(near) for word in _HANDED_OVER.get(kind, ())]
    return list(dict.fromkeys((near, reached((*near, *handed)))))


def least_words(words: Sequence[str], disagree: Disagree) -> tuple[str, ...] | None:
    """Words none of which can be left out if models are to disagree; None if all words do not do. Later words are left
    out first."""
    kept = list(words)
    if not disagree(kept):
        return None
    step = len(kept)
    while step:
        end = len(kept)
        while end > 0:
            rest = kept[: max(0, end - step)] + kept[end:]
            if disagree(rest):
                kept = rest
            end -= step
        step //= 2
    return tuple(kept)


def reached(words: Iterable[str]) -> tuple[str, ...]:
    """The words with accesses to all their places, what waits for what they begin, and what is waited for."""
    wanted = list(words)
    while True:
        ingredients = spelt_out(wanted).ingredients
        names = {ingredient.name for ingredient in ingredients}
        more = [word for kind in _kinds(wanted) for word in _ACCESSES[kind]]
        more += [word for word in every_word() if not names.isdisjoint(_ingredient(word).ends)]
        more += [it.ends[0] for it in ingredients if it.ends and names.isdisjoint(it.ends)]
        if set(more) <= set(wanted):
            return tuple(word for word in every_word() if word in wanted)
        wanted += [word for word in more if word not in wanted]


def spelt_out(words: Sequence[str]) -> Vocabulary:
    """The vocabulary of words. With places that are in some CTA, programs are small: two threads, one place of a kind.
    CTAs are in clusters where a word is about these."""
    placed = any(kind in PLACED for word in words for kind in _ingredient(word).places)
    threads, places = (2, 1) if placed else (3, 2)
    spread = ("cta", "cluster") if any(word.startswith("cluster.") for word in words) else ("cta",)
    return vocabulary(with_access(words), threads=threads, locations=places, spread=spread)


def with_access(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with a weak store if they are fences alone."""
    fences = all(_ingredient(word).fence for word in words)
    return ("st.weak", *words) if fences else tuple(words)


def _kinds(words: Iterable[str]) -> dict[str, None]:
    """The classes of the places that words name; words in global memory if they name none."""
    kinds = dict.fromkeys(kind for word in words for kind in _ingredient(word).places)
    return kinds if any(kind != OBJECT for kind in kinds) else {GLOBAL: None, **kinds}


@cache
def _ingredient(word: str) -> Ingredient:
    return vocabulary((word, "st.weak")).named(word)


@cache
def word_labels(word: str) -> frozenset[Label]:
    """The labels that events of an instruction may have."""
    if _ingredient(word).fence:
        return program_labels(("st.weak", word)) - program_labels(("st.weak",))
    return program_labels((word,))


@cache
def program_labels(names: tuple[str, ...]) -> frozenset[Label]:
    """The labels that events of programs of a vocabulary may have."""
    words, labels = vocabulary(names), set[Label]()
    for number, ingredient in enumerate(words.accesses):
        use = (number, (0,) * len(ingredient.places))
        homes = tuple((place, 0) for place in dict.fromkeys((kind, 0) for kind in ingredient.places if kind in PLACED))
        sketch = Sketch(((use, use),), ((0, 0, 0),), homes)
        labels.update(labels_of(Ready(sketch, words, sketch.size + words.gap)))
    return frozenset(labels) | _ALWAYS
