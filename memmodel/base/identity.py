"""What is worked out once for each object, whatever it is equal to: to compare or hash a model costs more than a test.

In: a function of one object. Out: the function, with a memory of the objects that were last asked about; `forget`,
which empties all these memories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Subject = TypeVar("Subject")
Result = TypeVar("Result")

_MEMORIES: list[dict[int, tuple[Any, Any]]] = []
"""What all these functions remember."""


def by_identity(most: int) -> Callable[[Callable[[Subject], Result]], Callable[[Subject], Result]]:
    """Decorator: remember the results for up to `most` objects. These are kept alive, so that no id is reused."""

    def decorate(work: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        known: dict[int, tuple[Subject, Result]] = {}
        _MEMORIES.append(known)

        def remembered(subject: Subject) -> Result:
            entry = known.get(id(subject))
            if entry is None:
                entry = subject, work(subject)
                while len(known) >= most:
                    del known[next(iter(known))]
                known[id(subject)] = entry
            return entry[1]

        return remembered

    return decorate


def forget() -> None:
    """Forget all of it: answers share what is remembered, and one that was broken off may leave it half made."""
    for known in _MEMORIES:
        known.clear()
