"""Names that could stand in each other's place: a fence for a fence, a scope for the next one, a read for a write.

In: a name of a model. Out: the names that an edit puts in its place. Settled here: base names are listed, each row from
narrow to wide where that has a meaning; defined names are siblings if their spellings differ in one word of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from memmodel.cat.syntax import Model, Name, operands_of

ROWS = (
    ("CTA", "CLUSTER", "GPU", "SYS"),
    ("scta", "scluster", "sgpu"),
    ("spcta", "scluster"),
    ("sr", "sri"),
    ("R", "M", "W"),
    ("RLX", "WEAK"),
    ("ACQ", "REL"),
    ("SC", "ACQ_REL"),
    ("vloc", "loc"),
    ("rf", "co"),
    ("SUR", "TEX", "CON"),
    ("ASY", "TMP"),
    ("ATOM", "RMW"),
    ("RED", "RMW"),
    ("ARRIVE", "WAIT"),
    ("MBINIT", "MBINVAL"),
    ("MBARRIVE", "MBAR"),
    ("mbarseen", "mbarobs", "mbarfr"),
    ("BULK", "WGMMA", "CLC"),
    ("BEFORE", "AFTER"),
    ("MMA", "CP", "SHIFT"),
    ("TLD", "TST"),
    ("addr", "data", "ctrl"),
)
"""Base names; neighbours in a row are siblings."""

OPPOSITES = (
    ("release", "acquire"),
    ("read", "write"),
    ("from", "to"),
    ("leave", "enter"),
    ("before", "after"),
    ("first", "last"),
)
"""Words of the names that models define."""

_BASE: dict[str, list[str]] = {}
for _row in ROWS:
    for _first, _second in pairwise(_row):
        _BASE.setdefault(_first, []).append(_second)
        _BASE.setdefault(_second, []).append(_first)


def siblings(name: Name, model: Model, before: int) -> Iterator[Name]:
    """The names that an edit may put in the place of one. `before`: the first definition that is not known there."""
    if name.ref is None:
        yield from (Name(word, name.kind) for word in _BASE.get(name.name, ()))
        return
    for ref in range(before):
        other = model.definitions[ref]
        if other.kind is name.kind and ref != name.ref and _opposite(name.name, other.name):
            yield Name(other.name, other.kind, ref)
    body = model.definitions[name.ref].body
    for part in operands_of(body):
        if isinstance(part, Name) and part.kind is name.kind and (part.ref is None or part.ref < before):
            yield part


def _opposite(first: str, second: str) -> bool:
    """True if two names differ in one word of a pair."""
    mine, theirs = first.split("-"), second.split("-")
    if len(mine) != len(theirs):
        return False
    apart = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
    return len(apart) == 1 and (apart[0] in OPPOSITES or apart[0][::-1] in OPPOSITES)
