"""What the flags of a model are about: data races, tensor-memory hazards, undefined behaviour.

In: the name of a flag. Out: its kind. Settled here: the names that a model gives its flags decide their kind; a
flag with any other name is reported under that name. A model that raises MIXED_SIZES says nothing of outcomes
("Limitations on Mixed-size Data-races"), so every question about them is undecided then.
"""

from __future__ import annotations

from enum import Enum

MIXED_SIZES = "mixed-size-race"


class FindingKind(Enum):
    """What a flag is about, as reports call it."""

    RACE = "data race"
    MIXED = "mixed-size data race"
    HAZARD = "tensor-memory hazard"
    UNDEFINED = "undefined behaviour"
    OTHER = "flag"


def kind_of(flag: str) -> FindingKind:
    """The kind of a flag, by its name."""
    if flag == MIXED_SIZES:
        return FindingKind.MIXED
    if flag == "data-race":
        return FindingKind.RACE
    if flag == "tensor-memory-hazard":
        return FindingKind.HAZARD
    return FindingKind.UNDEFINED if flag.startswith("undefined") else FindingKind.OTHER
