"""The fewest words on whose programs two models can still disagree.

In: words, and whether the models can disagree on programs of some of them. Out: sets of words none of which can be left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memmodel.isa.searching.searched import SEARCHED
from memmodel.search.edits.word_labels import ingredient_of

_ROW = {it.name: number for number, (_, ingredients) in enumerate(SEARCHED) for it in ingredients}
"""The row of each instruction."""

Disagree = Callable[[Sequence[str]], bool]
"""Whether two models can disagree on programs of these words."""


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
        least = least_words([word for word in words if _ROW[ingredient_of(word).name] not in without], disagree)
        if least is None or least in known:
            continue
        known.add(least)
        lacking += [without | {_ROW[ingredient_of(word).name]} for word in least]
        yield least
