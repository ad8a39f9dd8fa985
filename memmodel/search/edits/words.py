"""The words that an edit is about: vocabularies for the search of the smallest program, the smallest first.

In: ComparedModels. Out: `Vocabulary`s. Settled here: which words. The labels of events say on which
words two models can disagree (`search.judging.alike`). A word without which they still can is left out; what is left is
what the changed definitions speak of. A program of these words also has to load and store at their places, and to
signal and wait for what goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

from memmodel.base.labels import Fault, InitialWrite, Label, Mark, Marker, Undefined
from memmodel.isa.rows.ingredients import GLOBAL, OBJECT, PLACED, SHARED, TENSOR, TILE, Ingredient
from memmodel.isa.searched import SEARCHED
from memmodel.search.judging.alike import ALIASES, labels_of
from memmodel.search.judging.frames import Readied
from memmodel.search.programs import Ready
from memmodel.search.sketches import Sketch
from memmodel.search.vocabulary import SCOPES, Vocabulary, every_word, vocabulary

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
    GLOBAL: ("st.release", "ld.acquire", "fence.acq_rel"),
    SHARED: ("arrive.release", "wait.acquire"),
    TENSOR: ("arrive.release", "wait.acquire", "tcgen05.wait::st", "tcgen05.fence::before", "tcgen05.fence::after"),
}
"""What hands a place of a class over to another thread. A tile goes with the shared memory that it is copied to."""

_FLAGS = {TILE: ("ld.tile.acquire", "st.tile.release"), SHARED: ("ld.shared.acquire", "st.shared.release")}
"""What hands another place over by a tile."""

_ORDERING = ("fence.acq_rel", "fence.sc", "fence.acquire", "fence.release")
"""Fences that hand over what is done elsewhere."""

_BRIDGE = "fence.proxy.async"
"""What leads from loads and stores of a tile to instructions that access it as a whole, through the async proxy."""

_SCOPES = ("cta", "gpu")
"""The scopes that programs have if the difference does not ask for others."""

_SPREADS = {"scluster": "cluster", "CLUSTER": "cluster", "sgpu": "gpu", "SYS": "gpu", "swarpgroup": "warpgroup"}
"""How threads are placed where a difference names such a relation or set."""

_DEPENDENCIES = ("addr", "data", "ctrl")
"""Relations that few instructions have, and that no label shows. So it is with ALIASES."""

_EMPTY = ("foreign", "exits")
"""Relations that are empty in programs of a search: CTAs run from the start, and no thread has an `exit`."""

_OTHERS = 5
"""At most this many further sets of words are asked for, each without an instruction of one before it."""

_ROW = {it.name: number for number, (_, ingredients) in enumerate(SEARCHED) for it in ingredients}
"""The row of each instruction."""

Disagree = Callable[[Sequence[str]], bool]
"""Whether two models can disagree on programs of these words."""


@dataclass(frozen=True, slots=True)
class Placing:
    """The scopes and the placements of programs."""

    scopes: tuple[str, ...] = _SCOPES
    spread: tuple[str, ...] = ("cta",)


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
        """Those words; with a word that a tile hands over; with what hands places over and all semantics of their
        accesses. None if no word shows the difference."""
        return [spelt_out(words, self._placing) for words in self._first]

    @cached_property
    def others(self) -> list[Vocabulary]:
        """Further words that may show it: with a proxy fence, and without an instruction that the first ones need."""
        if not self._first:
            return []
        near = self._first[0]
        sets = [*self._begun[1:], *islice(self._sets, _OTHERS + 1 - len(self._begun))]
        others = [near for words in sets for near in _near(_with_kin(words, self._every), self._disagree)]
        if any(_ingredient(word).whole_tiles for word in near):
            others.insert(0, reached((*near, *_handed(near), _BRIDGE)))
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
        near = [words for least in self._begun[:1] for words in _near(least, self._disagree)]
        flagged = [words for some in near for words in by_flags(some)]
        return list(dict.fromkeys((*near, *flagged, *map(self._spelt, near))))

    def _spelt(self, near: tuple[str, ...]) -> tuple[str, ...]:
        """The words with what hands places over, and all semantics of their accesses."""
        spelt = [word for word in self._every if any(_is_kin(word, other) for other in near)]
        aliased = {_ingredient(word).places for word in near if _at_first_address(word)}
        every = reached((*near, *_handed(near), *spelt))
        return tuple(word for word in every if not _at_first_address(word) or _ingredient(word).places in aliased)

    @cached_property
    def agree_on_all(self) -> bool:
        """True if the models agree on every program that a search may write, whatever its size and its scopes."""
        return not self._disagree(every_word(SCOPES), SCOPES)

    def _disagree(self, words: Sequence[str], scopes: tuple[str, ...] | None = None) -> bool:
        bring = set().union(*(brought(word) for word in words))
        labels = _ALWAYS.union(*(word_labels(word, scopes or self._placing.scopes) for word in words))
        return not self._agree_on(labels, frozenset({*_DEPENDENCIES, ALIASES}) - bring | {*_EMPTY})


def _handed(words: Iterable[str]) -> list[str]:
    """What hands the places of words over to another thread."""
    return [word for kind in _kinds(words) for word in _HANDED_OVER.get(kind, ())]


def by_flags(words: Sequence[str]) -> list[tuple[str, ...]]:
    """For each class of tiles the words with a word in global memory that such a tile hands over; none if no fence can
    do so, or a word is there."""
    kinds = {kind for word in words for kind in _ingredient(word).places}
    if GLOBAL in kinds or not any(word in _ORDERING for word in words):
        return []
    weak = {word for kind in _FLAGS for word in _ACCESSES[kind]}
    wanted = [{*words, *flags, *_ACCESSES[GLOBAL]} - weak for kind, flags in _FLAGS.items() if kind in kinds]
    return [tuple(word for word in every_word() if word in some) for some in wanted]


def _with_kin(words: tuple[str, ...], every: Sequence[str]) -> tuple[str, ...]:
    """The words with other semantics of barriers and of operations on objects."""
    objects = [word for word in words if _ingredient(word).places in ("", OBJECT)]
    return (*words, *(word for word in every if any(_is_kin(word, other) for other in objects) and word not in words))


def _near(least: tuple[str, ...], disagree: Disagree) -> list[tuple[str, ...]]:
    """The words with what they need to show something."""
    reach = near = reached(least)
    own = tuple(word for word in near if _ingredient(word).places != GLOBAL)
    if any(kind != OBJECT for word in own for kind in _ingredient(word).places) and disagree(own):
        near = own  # of two places where something is seen, the one that the other words need
    if any(map(_at_first_address, reach)):
        return [words for words in _by_aliases(near, least) if disagree(words)] or [_with_aliases(near)]
    return [near]


def _by_aliases(near: Sequence[str], least: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """For each class of places the words with accesses of that class alone, through both addresses of a place: labels
    do not tell the classes apart."""
    seen = {word for accesses in _ACCESSES.values() for word in accesses}
    signals = {word for word in least if _ingredient(word).places == OBJECT}
    others = {word for word in near if word not in seen - signals and not _at_first_address(word)}
    for kind in _kinds(near):
        words = _with_aliases((*others, *_ACCESSES[kind]))
        if any(map(_at_first_address, words)):
            yield words


def _with_aliases(words: Collection[str]) -> tuple[str, ...]:
    """The words with each access through the other address of its place."""
    return tuple(word for word in every_word() if word in words or _at_first_address(word) in words)


def _at_first_address(word: str) -> str | None:
    """The same access through the address by which the place is declared, if a word names another one."""
    ingredient = _ingredient(word)
    plain = ingredient.name.removesuffix(".alias")
    return None if ingredient.fence or plain == ingredient.name else word.replace(ingredient.name, plain, 1)


def _is_kin(word: str, other: str) -> bool:
    """True for the same access with any semantics, for one through the same second address, and for a fence that is
    another with more words."""
    mine, its = _ingredient(word), _ingredient(other)
    if its.fence:
        return mine.fence and mine.name.startswith(f"{its.name}.")
    same = its.places == mine.places and its.declares == mine.declares
    return its.name == mine.name or (same and ALIASES in brought(word) & brought(other))


def _placing(named: Collection[str]) -> Placing:
    """The scopes that a difference names, beside the usual ones, and the placements that tell them apart."""
    asked = {scope for scope in SCOPES if scope.upper() in named}
    if "sgpu" in named and not asked:
        asked.add("sys")
    scopes = tuple(scope for scope in SCOPES if scope in {*_SCOPES, *asked})
    return Placing(scopes, tuple(dict.fromkeys(("cta", *(_SPREADS[name] for name in _SPREADS if name in named)))))


def least_words(words: Sequence[str], disagree: Disagree) -> tuple[str, ...] | None:
    """Words none of which can be left out if models are to disagree; None if all words do not do. Later words are left
    out first. More words never make models agree."""
    if not disagree(words):
        return None
    kept: list[str] = []
    open_words = list(words)
    while not disagree(kept):
        # The last word that is needed, of those before which all later ones can be left out.
        few, many = 0, len(open_words)
        while few < many:
            middle = (few + many) // 2
            if disagree([*open_words[:middle], *kept]):
                many = middle
            else:
                few = middle + 1
        kept.insert(0, open_words[few - 1])
        del open_words[few - 1 :]
    return tuple(kept)


def sets_of_words(words: Sequence[str], disagree: Disagree) -> Iterator[tuple[str, ...]]:
    """Sets of words none of which can be left out if models are to disagree; each set after the first
    lacks an instruction of one before it. What differs may be shown in ways that have little in common."""
    known, lacking = set[tuple[str, ...]](), [frozenset[int]()]
    while lacking:
        without = lacking.pop(0)
        least = least_words([word for word in words if _ROW[_ingredient(word).name] not in without], disagree)
        if least is None or least in known:
            continue
        known.add(least)
        lacking += [without | {_ROW[_ingredient(word).name]} for word in least]
        yield least


def reached(words: Iterable[str]) -> tuple[str, ...]:
    """The words with accesses to all their places, what waits for what they begin, and what is waited for."""
    wanted = list(words)
    while True:
        ingredients = spelt_out(wanted).ingredients
        names = {ingredient.name for ingredient in ingredients}
        more = [word for kind in _kinds(wanted) for word in _ACCESSES[kind]]
        more += [word for word in every_word() if not names.isdisjoint(_ingredient(word).ends)]
        more += [it.ends[0] for it in ingredients if it.ends and names.isdisjoint(it.ends)]
        more += [word for it in ingredients for word in it.pairs if word not in names]
        if set(more) <= set(wanted):
            return tuple(word for word in every_word() if word in wanted)
        wanted += [word for word in more if word not in wanted]


def spelt_out(words: Sequence[str], placing: Placing = Placing()) -> Vocabulary:
    """The vocabulary of words. With places that are in some CTA, programs are small: two threads, one place of a kind,
    but for loads and stores alone two. CTAs are in clusters where a word is about these."""
    kinds = {kind for word in words for kind in _ingredient(word).places}
    threads, places = (3, 2) if kinds.isdisjoint(PLACED) else (2, 2 if kinds == {GLOBAL, SHARED} else 1)
    spread = dict.fromkeys((*placing.spread, *(("cluster",) if any(w.startswith("cluster.") for w in words) else ())))
    return vocabulary(with_access(words), placing.scopes, threads, places, tuple(spread))


def with_access(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with a weak store if they are fences alone."""
    fences = all(_ingredient(word).fence for word in words)
    return ("st.weak", *words) if fences else tuple(words)


def _kinds(words: Iterable[str]) -> dict[str, None]:
    """The classes of the places that words name; words in global memory if they name none."""
    kinds = dict.fromkeys(kind for word in words for it in [_ingredient(word)] for kind in it.places or it.covers)
    return kinds if any(kind != OBJECT for kind in kinds) else {GLOBAL: None, **kinds}


@cache
def _ingredient(word: str) -> Ingredient:
    return vocabulary((word, "st.weak"), SCOPES).named(word)


@cache
def word_labels(word: str, scopes: tuple[str, ...] = _SCOPES) -> frozenset[Label]:
    """The labels that events of an instruction may have."""
    if _ingredient(word).fence:
        return program_labels(("st.weak", word), scopes) - program_labels(("st.weak",), scopes)
    return program_labels((word,), scopes)


@cache
def brought(word: str) -> frozenset[str]:
    """The dependencies that an instruction may have: on a load before it, and within itself; ALIASES if it accesses a
    location through another address."""
    own = {"data"} if any(form.data for form in _ingredient(word).forms) else set()
    if _ingredient(word).fence:
        return frozenset(own)
    frames = [frame for ready in _programs((word,), SCOPES) for frame in Readied(ready).frames()]
    if any(frame.fixed.relation("loc") != frame.fixed.relation("vloc") for frame in frames):
        own.add(ALIASES)
    return frozenset(own) | {name for name in _DEPENDENCIES if any(any(frame.fixed.relation(name)) for frame in frames)}


@cache
def program_labels(names: tuple[str, ...], scopes: tuple[str, ...] = _SCOPES) -> frozenset[Label]:
    """The labels that events of programs of a vocabulary may have."""
    labels = (label for ready in _programs(names, scopes) for label in labels_of(ready))
    return frozenset(labels) | _ALWAYS


def _programs(names: Sequence[str], scopes: Sequence[str]) -> Iterator[Ready]:
    """For each access of a vocabulary a thread that does it twice."""
    words = vocabulary(names, scopes)
    for number, ingredient in enumerate(words.accesses):
        use = (number, (0,) * len(ingredient.places))
        homes = tuple((place, 0) for place in dict.fromkeys((kind, 0) for kind in ingredient.places if kind in PLACED))
        sketch = Sketch(((use, use),), ((0, 0, 0),), homes)
        yield Ready(sketch, words, sketch.size + words.gap)
