"""Stores of different threads that leave the same value at one place, whatever the data is.

In: a LaunchTrace, the stores in question. Out: `Stores`. The run is carried out once more with symbolic values
(`values.terms`): stores of one term leave the same bytes. The first such run takes what a warp does as a row, which is
enough for most; where it finds no equality, a second one takes each lane alone. Where a limit keeps two terms apart,
nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from memmodel.kernel.machine.values.terms import MOST_TERMS, TermsSpent
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.launch import LaunchTrace, TermsOf

WARP, CTA, LAUNCH = range(3)
"""The threads whose stores are compared: those of one warp, of one CTA, of the launch."""

BUT_NAN = "the values are equal unless a number is NaN"


Class = tuple[object, int]
"""A class of threads that do the same, and an epoch of theirs: the number of events before."""


class Stores:
    """Compares stores. `stores`: the instructions in question. `who`: the classes of the threads.

    `doubtful`: more stores would be equal if no number were NaN.
    """

    def __init__(self, run: LaunchTrace, chosen: frozenset[int], stores: frozenset[int], who: Sequence[object]) -> None:
        self._run, self._chosen, self._stores, self._who = run, chosen, stores, who
        self._are_equal: dict[object, bool] = {}
        self._stores_of: dict[TermsOf, dict[tuple[int, Class], list[WeakAccess]]] = {}
        self._limited_terms: dict[TermsOf, Mapping[int, str]] = {}
        self._terms_spent: dict[TermsOf, str] = {}
        self._limits: dict[object, str] = {}
        self.doubtful = False

    def _stored(self, terms: TermsOf) -> dict[tuple[int, Class], list[WeakAccess]]:
        """The stores of each instruction and class, with what they leave."""
        if terms not in self._stores_of:
            stores: dict[tuple[int, Class], list[WeakAccess]] = {}
            try:
                named_run = None if self._run.with_symbols is None else self._run.with_symbols(self._stores, terms)
            except TermsSpent:
                named_run, self._terms_spent[terms] = None, f"more than {MOST_TERMS:,} terms of values"
            run = None if named_run is None else demote_unobserved(named_run, self._chosen)
            self.doubtful |= terms is not TermsOf.WARPS and run is not None and run.doubtful
            self._limited_terms[terms] = {} if run is None else run.limited
            for access in () if run is None else run.weak():
                if access.at in self._stores and access.issue is None:
                    stores.setdefault((access.at, (self._who[access.thread], access.epoch)), []).append(access)
            self._stores_of[terms] = stores
        return self._stores_of[terms]

    @property
    def known(self) -> bool:
        """True if a run with symbolic values was carried out."""
        return TermsOf.WARPS in self._stores_of

    def equal(self, at: tuple[int, int], level: int, classes: frozenset[Class], *, ordered: bool = False) -> bool:
        """True if the threads of two classes store one value to each place with two instructions. `ordered`: no number
        is taken to be NaN.
        """
        if ordered:
            return self._known_equal(frozenset(at), level, classes, TermsOf.NUMBERS)
        which = frozenset(at), level, classes
        return self._known_equal(*which, TermsOf.WARPS) or self._known_equal(*which, TermsOf.LANES)

    def _known_equal(self, at: frozenset[int], level: int, classes: frozenset[Class], terms: TermsOf) -> bool:
        key = at, level, classes, terms
        if key not in self._are_equal:
            self._are_equal[key] = self._equal(*key)
        return self._are_equal[key]

    def limit(self, at: tuple[int, int], level: int, classes: frozenset[Class]) -> str | None:
        """The limit that keeps it open whether these stores are equal; None if that is known."""
        return (
            None if self.equal(at, level, classes) else self._limits.get((frozenset(at), level, classes, TermsOf.LANES))
        )

    def _equal(self, at: frozenset[int], level: int, classes: frozenset[Class], terms: TermsOf) -> bool:
        seen: dict[object, tuple[int, int, int | None]] = {}
        key, stored, compared = (at, level, classes, terms), self._stored(terms), set()
        limited = self._limited_terms[terms]
        if terms in self._terms_spent:
            self._limits[key] = self._terms_spent[terms]
            return False
        for store in (store for which in product(at, classes) for store in stored.get(which, ())):
            compared.add(store.at)
            thread = self._run.threads[store.thread]
            group = (thread.cta, thread.warp)[: 2 - level]
            result = store.first, store.size, store.value
            for byte in range(store.first, store.first + store.size):
                other = seen.setdefault((group, store.block.instance, byte), result)
                if store.value is None or other != result:
                    limit = next(
                        (limited[term] for *_, term in (result, other) if term is not None and term in limited), None
                    )
                    if limit is not None and store.value is not None:
                        self._limits[key] = limit
                    return False
        return compared == at  # what strong stores leave is not followed
