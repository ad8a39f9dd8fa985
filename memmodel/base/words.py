"""`WordList`, an Enum whose members are cheap to look up in dictionaries and sets."""

from __future__ import annotations

from enum import Enum


class WordList(Enum):
    """A closed list of words. The standard library hashes the name of a member, in Python; here identity is enough."""

    __hash__ = object.__hash__
