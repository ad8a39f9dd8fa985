"""What the events of an instruction may be: their labels, and the relations that few instructions bring.

In: a word. Out: labels; names of relations. Settled here: a word is tried in programs of one thread, with every access
of its vocabulary twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from memmodel.base.labels import Fault, InitialWrite, Label, Mark, Marker, Undefined
from memmodel.isa.rows.ingredients import PLACED, Ingredient
from memmodel.search.judging.alike import ALIASES, labels_of
from memmodel.search.judging.frames import Readied
from memmodel.search.programs import Ready
from memmodel.search.sketches import Sketch
from memmodel.search.vocabulary import SCOPES, vocabulary

USUAL_SCOPES = ("cta", "gpu")
"""The scopes that programs have if the difference does not ask for others."""

ALWAYS: frozenset[Label] = frozenset({InitialWrite(), Fault(""), Undefined(""), Mark(Marker.END)})
"""Labels of events that no instruction is."""

DEPENDENCIES = ("addr", "data", "ctrl")
"""Relations that few instructions have, and that no label shows. So it is with ALIASES."""


@cache
def ingredient_of(word: str) -> Ingredient:
    """The instruction of a word, among those that a search writes."""
    return vocabulary((word, "st.weak"), SCOPES).named(word)


@cache
def word_labels(word: str, scopes: tuple[str, ...] = USUAL_SCOPES) -> frozenset[Label]:
    """The labels that events of an instruction may have."""
    if ingredient_of(word).fence:
        return program_labels(("st.weak", word), scopes) - program_labels(("st.weak",), scopes)
    return program_labels((word,), scopes)


@cache
def rare_relations(word: str) -> frozenset[str]:
    """The dependencies that an instruction may have: on a load before it, and within itself; ALIASES if it accesses a
    location through another address."""
    own = {"data"} if any(form.data for form in ingredient_of(word).forms) else set()
    if ingredient_of(word).fence:
        return frozenset(own)
    frames = [frame for ready in _programs((word,), SCOPES) for frame in Readied(ready).frames()]
    if any(frame.fixed.relation("loc") != frame.fixed.relation("vloc") for frame in frames):
        own.add(ALIASES)
    return frozenset(own) | {name for name in DEPENDENCIES if any(any(frame.fixed.relation(name)) for frame in frames)}


@cache
def program_labels(names: tuple[str, ...], scopes: tuple[str, ...] = USUAL_SCOPES) -> frozenset[Label]:
    """The labels that events of programs of a vocabulary may have."""
    labels = (label for ready in _programs(names, scopes) for label in labels_of(ready))
    return frozenset(labels) | ALWAYS


def _programs(names: Sequence[str], scopes: Sequence[str]) -> Iterator[Ready]:
    """For each access of a vocabulary a thread that does it twice."""
    words = vocabulary(names, scopes)
    for number, ingredient in enumerate(words.accesses):
        use = (number, (0,) * len(ingredient.places))
        homes = tuple((place, 0) for place in dict.fromkeys((kind, 0) for kind in ingredient.places if kind in PLACED))
        sketch = Sketch(((use, use),), ((0, 0, 0),), homes)
        yield Ready(sketch, words, sketch.size + words.gap)
