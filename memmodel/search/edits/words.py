"""The words that an edit is about: vocabularies for the search of the smallest program, the smallest first.

In: ComparedModels. Out: `Vocabulary`s. Settled here: which words are tried, in which order. The labels of events say on
which words two models can disagree (`search.judging.alike`). The fewest such words (`least_words`) are those that the
changed definitions speak of; a program of them has to load and store at their places, too, and to signal and wait for
what goes on by itself (`completing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice

from memmodel.base.labels import Label
from memmodel.isa.rows.ingredients import GLOBAL, OBJECT, Grain
from memmodel.search.edits.completing import (
    ACCESSES,
    Placing,
    by_flags,
    by_word,
    classes_of,
    handing_over,
    joined,
    reached,
    spelt_out,
)
from memmodel.search.edits.least_words import Disagree, sets_of_words
from memmodel.search.edits.word_labels import (
    ALWAYS,
    DEPENDENCIES,
    USUAL_SCOPES,
    ingredient_of,
    rare_relations,
    word_labels,
)
from memmodel.search.judging.alike import ALIASES
from memmodel.search.vocabulary import SCOPES, Vocabulary, every_word

_BRIDGE = "fence.proxy.async"
"""What leads from loads and stores of a tile to instructions that access it as a whole, through the async proxy."""

_SPREADS = {"scluster": "cluster", "CLUSTER": "cluster", "sgpu": "gpu", "SYS": "gpu", "swarpgroup": "warpgroup"}
"""How threads are placed where a difference names such a relation or set."""

_EMPTY = ("foreign", "exits")
"""Relations that are empty in programs of a search: CTAs run from the start, and no thread has an `exit`."""

_OTHERS = 5
"""At most this many further sets of words are asked for, each without an instruction of one before it."""


class ChosenWords:
    """The words that the difference of two models is about.

    `agree_on`: true if the models agree on every program whose events have such labels and in which such relations are
    empty; `named`: the base names beside which the models differ.
    """

    def __init__(self, agree_on: Callable[[frozenset[Label], frozenset[str]], bool], named: Collection[str]) -> None:
        self._agree_on, self._placing = agree_on, _placing(named)
        self._every = every_word(self._placing.scopes)
        self._sets = sets_of_words(self._every, self._disagree)

    @cached_property
    def first(self) -> list[Vocabulary]:
        """Halves of a fence with a flag between them; the fewest words; with a word that a tile hands over; with what
        hands places over and all semantics of their accesses. Empty if no word shows the difference."""
        return [*self.ahead, *(spelt_out(words, self._placing) for words in self._first)]

    @cached_property
    def ahead(self) -> list[Vocabulary]:
        """Those of `first` that are so few that larger programs of them come before those of the others."""
        return [spelt_out(words, self._placing) for words in map(joined, self._first[:1]) if words]

    @cached_property
    def others(self) -> list[Vocabulary]:
        """Further words that may show it: with a proxy fence, with a word that hands over beside an object that is
        signalled, and without an instruction that the first ones need."""
        if not self._first:
            return []
        near = self._first[0]
        sets = [*self._begun[1:], *islice(self._sets, _OTHERS + 1 - len(self._begun))]
        others = [near for words in sets for near in _near(_with_kin(words, self._every), self._disagree)]
        if flagged := by_word(near):
            others.insert(0, flagged)
        if any(ingredient_of(word).grain is Grain.WHOLE for word in near):
            others.insert(0, reached((*near, *handing_over(near), _BRIDGE)))
        return [spelt_out(words, self._placing) for words in dict.fromkeys(others) if words not in self._first]

    @cached_property
    def _begun(self) -> list[tuple[str, ...]]:
        """The first set of words; where a tile may hand a word over, which takes more words, and where the second set
        reaches fewer, that one before it."""
        sets = list(islice(self._sets, 1))
        if any(by_flags(reached(words)) for words in sets):
            sets += islice(self._sets, 1)
        return sorted(sets, key=lambda words: len(reached(words)))

    @cached_property
    def _first(self) -> list[tuple[str, ...]]:
        """The words of `first`, without halves that a flag joins."""
        near = [words for least in self._begun[:1] for words in _near(least, self._disagree)]
        flagged = [words for some in near for words in by_flags(some)]
        return list(dict.fromkeys((*near, *flagged, *map(self._spelt, near))))

    def _spelt(self, near: tuple[str, ...]) -> tuple[str, ...]:
        """The words with what hands places over, and all semantics of their accesses."""
        spelt = [word for word in self._every if any(_is_kin(word, other) for other in near)]
        aliased = {ingredient_of(word).places for word in near if _at_first_address(word)}
        every = reached((*near, *handing_over(near), *spelt))
        return tuple(word for word in every if not _at_first_address(word) or ingredient_of(word).places in aliased)

    @cached_property
    def agree_on_all(self) -> bool:
        """True if the models agree on every program that a search may write, whatever its size and its scopes."""
        return not self._disagree(every_word(SCOPES), SCOPES)

    def _disagree(self, words: Sequence[str], scopes: tuple[str, ...] | None = None) -> bool:
        bring = set().union(*(rare_relations(word) for word in words))
        labels = ALWAYS.union(*(word_labels(word, scopes or self._placing.scopes) for word in words))
        return not self._agree_on(labels, frozenset({*DEPENDENCIES, ALIASES}) - bring | {*_EMPTY})


def _with_kin(words: tuple[str, ...], every: Sequence[str]) -> tuple[str, ...]:
    """The words with other semantics of barriers and of operations on objects."""
    objects = [word for word in words if ingredient_of(word).places in ("", OBJECT)]
    return (*words, *(word for word in every if any(_is_kin(word, other) for other in objects) and word not in words))


def _near(least: tuple[str, ...], disagree: Disagree) -> list[tuple[str, ...]]:
    """The words with what they need to show something: of each class of places, where an access goes through another
    address than the one by which its place is declared."""
    reach = near = reached(least)
    own = tuple(word for word in near if ingredient_of(word).places != GLOBAL)
    if any(kind != OBJECT for word in own for kind in ingredient_of(word).places) and disagree(own):
        near = own  # of two places where something is seen, the one that the other words need
    if any(map(_at_first_address, reach)):
        return [words for words in _by_aliases(near, least) if disagree(words)] or [_with_aliases(near)]
    return [near]


def _by_aliases(near: Sequence[str], least: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """For each class of places the words with accesses of that class alone, through both addresses of a place: labels
    do not tell the classes apart."""
    seen = {word for accesses in ACCESSES.values() for word in accesses}
    signals = {word for word in least if ingredient_of(word).places == OBJECT}
    others = {word for word in near if word not in seen - signals and not _at_first_address(word)}
    for kind in classes_of(near):
        words = _with_aliases((*others, *ACCESSES[kind]))
        if any(map(_at_first_address, words)):
            yield words


def _with_aliases(words: Collection[str]) -> tuple[str, ...]:
    """The words with each access through the other address of its place."""
    return tuple(word for word in every_word() if word in words or _at_first_address(word) in words)


def _at_first_address(word: str) -> str | None:
    """The same access through the address by which the place is declared, if a word names another one."""
    ingredient = ingredient_of(word)
    plain = ingredient.name.removesuffix(".alias")
    return None if ingredient.fence or plain == ingredient.name else word.replace(ingredient.name, plain, 1)


def _is_kin(word: str, other: str) -> bool:
    """True for the same access with any semantics, for one through the same second address, and for a fence that is
    another with more words."""
    mine, its = ingredient_of(word), ingredient_of(other)
    if its.fence:
        return mine.fence and mine.name.startswith(f"{its.name}.")
    same = its.places == mine.places and its.declares == mine.declares
    return its.name == mine.name or (same and ALIASES in rare_relations(word) & rare_relations(other))


def _placing(named: Collection[str]) -> Placing:
    """The scopes that a difference names, beside the usual ones, and the placements that tell them apart."""
    asked = {scope for scope in SCOPES if scope.upper() in named}
    if "sgpu" in named and not asked:
        asked.add("sys")
    scopes = tuple(scope for scope in SCOPES if scope in {*USUAL_SCOPES, *asked})
    return Placing(scopes, tuple(dict.fromkeys(("cta", *(_SPREADS[name] for name in _SPREADS if name in named)))))
