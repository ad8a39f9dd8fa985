"""The two kinds of things that cat speaks of."""

from __future__ import annotations

from memmodel.base.words import WordList


class Kind(WordList):
    """Every expression is a set of events or a relation between events."""

    SET = "set"
    RELATION = "relation"
    EITHER = "set or relation"  # only `0`, the empty set or relation, before its context decides
