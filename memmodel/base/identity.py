"""What is worked out once for each object, whatever it is equal to: to compare or hash a model costs more than a test.

In: a function of one object. Out: the function, with a memory of the objects that were last asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

One = TypeVar("One")
Found = TypeVar("Found")


def by_identity(most: int) -> Callable[[Callable[[One], Found]], Callable[[One], Found]]:
    """Decorator: remember what a function returns for so many objects. They are kept alive, so no number is reused."""

    def decorate(work: Callable[[One], Found]) -> Callable[[One], Found]:
        known: dict[int, tuple[One, Found]] = {}

        def remembered(one: One) -> Found:
            if id(one) not in known:
                found = work(one)
                while len(known) >= most:
                    del known[next(iter(known))]
                known[id(one)] = (one, found)
            return known[id(one)][1]

        return remembered

    return decorate
