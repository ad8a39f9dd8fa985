"""What a program needs beside some words so that it shows anything.

In: words. Out: words with accesses to their places, with what hands these over to another thread; a `Vocabulary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.isa.rows.ingredients import GLOBAL, OBJECT, PLACED, SHARED, TENSOR, TILE
from memmodel.search.edits.word_labels import USUAL_SCOPES, ingredient_of
from memmodel.search.vocabulary import Vocabulary, every_word, vocabulary

ACCESSES = {
    GLOBAL: ("ld.weak", "st.weak"),
    TILE: ("ld.tile.weak", "st.tile.weak"),
    SHARED: ("ld.shared.weak", "st.shared.weak"),
    TENSOR: ("tcgen05.ld", "tcgen05.st"),
    OBJECT: ("arrive.release", "wait.acquire"),
}
"""What is done at a place, by its class, so that something is seen there."""

_HANDED_OVER = {
    GLOBAL: ("st.release", "ld.acquire", "fence.acq_rel"),
    SHARED: ("arrive.release", "wait.acquire"),
    TENSOR: ("arrive.release", "wait.acquire", "tcgen05.wait::st", "tcgen05.fence::before", "tcgen05.fence::after"),
}
"""What hands a place of a class over to another thread. A tile goes with the shared memory that it is copied to."""

_FLAGS = {SHARED: ("ld.shared.acquire", "st.shared.release"), TILE: ("ld.tile.acquire", "st.tile.release")}
"""What hands another place over by a tile: first by one in shared memory, whose programs cost less."""

_FLAGGED = ("ld.acquire", "st.release")
"""What hands another place over by a word in global memory."""

_STRONG = ("ld.relaxed", "ld.acquire", "st.relaxed", "st.release")
"""What joins two halves of a proxy fence that stand in two threads, with synchronization or without."""

_ORDERING = ("fence.acq_rel", "fence.sc", "fence.acquire", "fence.release")
"""Fences that hand over what is done elsewhere."""


@dataclass(frozen=True, slots=True)
class Placing:
    """The scopes and the placements of programs."""

    scopes: tuple[str, ...] = USUAL_SCOPES
    spread: tuple[str, ...] = ("cta",)


def reached(words: Iterable[str]) -> tuple[str, ...]:
    """The words with accesses to all their places, what waits for what they begin, and what is waited for."""
    wanted = list(words)
    while True:
        ingredients = spelt_out(wanted).ingredients
        names = {ingredient.name for ingredient in ingredients}
        more = [word for kind in classes_of(wanted) for word in ACCESSES[kind]]
        more += [word for word in every_word() if not names.isdisjoint(ingredient_of(word).ends)]
        more += [it.ends[0] for it in ingredients if it.ends and names.isdisjoint(it.ends)]
        more += [word for it in ingredients for word in it.pairs if word not in names]
        if set(more) <= set(wanted):
            return tuple(word for word in every_word() if word in wanted)
        wanted += [word for word in more if word not in wanted]


def handing_over(words: Iterable[str]) -> list[str]:
    """What hands the places of words over to another thread."""
    return [word for kind in classes_of(words) for word in _HANDED_OVER.get(kind, ())]


def by_flags(words: Sequence[str]) -> list[tuple[str, ...]]:
    """For each class of tiles the words with a word in global memory that such a tile hands over; none if no fence can
    do so, or a word is there."""
    kinds = {kind for word in words for kind in ingredient_of(word).places}
    if GLOBAL in kinds or not any(word in _ORDERING for word in words):
        return []
    weak = {word for kind in _FLAGS for word in ACCESSES[kind]}
    wanted = [{*words, *flags, *ACCESSES[GLOBAL]} - weak for kind, flags in _FLAGS.items() if kind in kinds]
    return [tuple(word for word in every_word() if word in some) for some in wanted]


def by_word(words: Sequence[str]) -> tuple[str, ...]:
    """The words with a word in global memory that hands over what an instruction does that signals an object: the phase
    that it ends hands nothing else over. Empty if none does, or a word is there."""
    places = [ingredient_of(word).places for word in words]
    if any(GLOBAL in kinds for kinds in places) or not any(OBJECT in kinds and len(kinds) > 1 for kinds in places):
        return ()
    return tuple(word for word in every_word() if word in {*words, *_FLAGGED})


def joined(words: Sequence[str]) -> tuple[str, ...]:
    """The words with a flag in global memory between the halves of a proxy fence whose scopes may be too small, and
    without what is done at other places: what a copy did is seen at the end. Empty if there are no two halves."""
    if sum(map(_is_scoped_half, words)) < 2 or any(GLOBAL in ingredient_of(word).places for word in words):
        return ()
    seen = {word for accesses in ACCESSES.values() for word in accesses}
    return tuple(word for word in every_word() if word in {*words, *_STRONG} - seen)


def _is_scoped_half(word: str) -> bool:
    """True for half a proxy fence, alone or in an instruction, that has a choice of scopes."""
    forms = ingredient_of(word).forms
    return len(forms) > 1 and forms[0].words[0] in ("half", "proxy")


def spelt_out(words: Sequence[str], placing: Placing = Placing()) -> Vocabulary:
    """The vocabulary of words. With places that are in some CTA, programs are small: two threads, one place of a kind,
    but for loads and stores alone two. CTAs are in clusters where a word is about these."""
    kinds = {kind for word in words for kind in ingredient_of(word).places}
    threads, places = (3, 2) if kinds.isdisjoint(PLACED) else (2, 2 if kinds == {GLOBAL, SHARED} else 1)
    spread = dict.fromkeys((*placing.spread, *(("cluster",) if any(w.startswith("cluster.") for w in words) else ())))
    return vocabulary(with_access(words), placing.scopes, threads, places, tuple(spread))


def with_access(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with a weak store if they are fences alone."""
    fences = all(ingredient_of(word).fence for word in words)
    return ("st.weak", *words) if fences else tuple(words)


def classes_of(words: Iterable[str]) -> dict[str, None]:
    """The classes of the places that words name; words in global memory if they name none."""
    kinds = dict.fromkeys(kind for word in words for it in [ingredient_of(word)] for kind in it.places or it.covers)
    return kinds if any(kind != OBJECT for kind in kinds) else {GLOBAL: None, **kinds}
