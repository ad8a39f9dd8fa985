"""The base vocabulary of every model: each set and relation that an engine provides, with what it means.

In: the tables of `memmodel.base`. Out: BASE_NAMES, which the resolver, `memmodel names` and the documentation read.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.kinds import Kind
from memmodel.base.relations import RELATIONS
from memmodel.base.sets import SETS


@dataclass(frozen=True, slots=True)
class BaseName:
    """A name that no model has to define. `source` is the title of the PTX section it renders, or `herd`."""

    name: str
    kind: Kind
    meaning: str
    source: str


BASE_NAMES: tuple[BaseName, ...] = (
    *(BaseName(row.name, Kind.SET, row.meaning, row.source) for row in SETS),
    *(BaseName(row.name, Kind.RELATION, row.meaning, row.source) for row in RELATIONS),
)
"""Every base set, then every base relation."""
