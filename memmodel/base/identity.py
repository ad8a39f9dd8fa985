"""What is worked out once for each object, whatever it is equal to: to compare or hash a model costs more than a test.

In: a function of one object. Out: the function, with a memory of the objects that were last asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def by_identity(most: int) -> Callable[[Callable[[Subject], Result]], Callable[[Subject], Result]]:
    """Decorator: remember what a function returns for so many objects. They are kept alive, so no number is reused."""

    def decorate(work: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        known: dict[int, tuple[Subject, Result]] = {}

        def remembered(subject: Subject) -> Result:
            if id(subject) not in known:
                result = work(subject)
                while len(known) >= most:
                    del known[next(iter(known))]
                known[id(subject)] = (subject, result)
            return known[id(subject)][1]

        return remembered

    return decorate
