"""Do threads store the same value to one place, whatever the data is?

In: a LaunchTrace, the stores that are asked about. Out: `Stores`. The run is carried out once more, with terms for the
values that nobody knows (`values.terms`): stores of one term leave the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product

from memmodel.kernel.machine.values.terms import TermsSpent
from memmodel.kernel.order.unobserved_atomics import hushed
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.launch import LaunchTrace

WARP, CTA, LAUNCH = range(3)
"""Whose stores are compared: those of one warp, of one CTA, of all."""

BUT_NAN = "the values are equal unless a number is NaN"


Class = tuple[object, int]
"""Threads that do the same, and an epoch of theirs: so many events come before."""


class Stores:
    """`stores`: the instructions that are asked about. `who`: the classes of the threads."""

    def __init__(self, run: LaunchTrace, chosen: frozenset[int], stores: frozenset[int], who: Sequence[object]) -> None:
        self._run, self._chosen, self._stores, self._who = run, chosen, stores, who
        self._found: dict[object, bool] = {}
        self._made: dict[bool, dict[tuple[int, Class], list[WeakAccess]]] = {}
        self.doubtful = False
        """Would more be equal if no number were NaN?"""

    def _stored(self, ordered: bool) -> dict[tuple[int, Class], list[WeakAccess]]:
        """The stores of each instruction and class, with what they leave. `ordered`: where no number is NaN."""
        if ordered not in self._made:
            found: dict[tuple[int, Class], list[WeakAccess]] = {}
            with suppress(TermsSpent):
                run = None if self._run.again is None else hushed(self._run.again(self._stores, ordered), self._chosen)
                self.doubtful |= run is not None and run.doubtful
                for one in () if run is None else run.weak():
                    if one.at in self._stores and one.issue is None:
                        found.setdefault((one.at, (self._who[one.thread], one.epoch)), []).append(one)
            self._made[ordered] = found
        return self._made[ordered]

    @property
    def known(self) -> bool:
        """Was the run made that shows what they leave?"""
        return False in self._made

    def equal(self, at: tuple[int, int], level: int, classes: frozenset[Class], *, ordered: bool = False) -> bool:
        """Do the threads of two classes store one value to each place with two instructions? `ordered`: if no number is
        NaN.
        """
        key = frozenset(at), level, classes, ordered
        if key not in self._found:
            self._found[key] = self._equal(*key)
        return self._found[key]

    def _equal(self, at: frozenset[int], level: int, classes: frozenset[Class], ordered: bool) -> bool:
        seen: dict[object, tuple[int, int, int | None]] = {}
        stored, met = self._stored(ordered), set()
        for one in (one for key in product(at, classes) for one in stored.get(key, ())):
            met.add(one.at)
            thread = self._run.threads[one.thread]
            who = (thread.cta, thread.warp)[: 2 - level]
            mine = one.first, one.size, one.value
            for byte in range(one.first, one.first + one.size):
                if one.value is None or seen.setdefault((who, one.block.instance, byte), mine) != mine:
                    return False
        return met == at  # what strong stores leave is not followed
