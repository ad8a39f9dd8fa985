"""Do threads store the same value to one place, whatever the data is?

In: a LaunchTrace, the stores that are asked about. Out: `Stores`. The run is carried out once more, with terms for the
values that nobody knows (`values.terms`): stores of one term leave the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from memmodel.kernel.judge.events import LaunchTrace, WeakAccess
from memmodel.kernel.judge.quiet import hushed
from memmodel.kernel.values.terms import TermsSpent

WARP, CTA, LAUNCH = range(3)
"""Whose stores are compared: those of one warp, of one CTA, of all."""

BUT_NAN = "the values are equal unless a number is NaN"


class Stores:
    """`stores`: the instructions that are asked about. `rounds`: how often a thread had executed an instruction, from
    its number and an epoch.
    """

    def __init__(
        self, run: LaunchTrace, chosen: frozenset[int], stores: frozenset[int], rounds: Callable[[int, int, int], int]
    ) -> None:
        self._run, self._chosen, self._stores, self._rounds = run, chosen, stores, rounds
        self._found: dict[object, bool] = {}
        self._made: dict[bool, list[WeakAccess]] = {}
        self.doubtful = False
        """Would more be equal if no number were NaN?"""

    def _stored(self, ordered: bool) -> list[WeakAccess]:
        """The stores, with what they leave. `ordered`: where no number is NaN."""
        if ordered not in self._made:
            found: list[WeakAccess] = []
            with suppress(TermsSpent):
                run = None if self._run.again is None else hushed(self._run.again(self._stores, ordered), self._chosen)
                self.doubtful |= run is not None and run.doubtful
                weak = () if run is None else run.weak()
                found = [one for one in weak if one.at in self._stores and one.issue is None]
            self._made[ordered] = found
        return self._made[ordered]

    @property
    def known(self) -> bool:
        """Was the run made that shows what they leave?"""
        return False in self._made

    def equal(self, at: tuple[int, int], level: int, *, alike: bool, ordered: bool = False) -> bool:
        """Do two instructions store one value to each place? `alike`: only in the same round; `ordered`: if no number
        is NaN.
        """
        key = frozenset(at), level, alike, ordered
        if key not in self._found:
            self._found[key] = self._equal(*key)
        return self._found[key]

    def _equal(self, at: frozenset[int], level: int, alike: bool, ordered: bool) -> bool:
        seen: dict[object, tuple[int, int, int | None]] = {}
        met = set()
        for one in self._stored(ordered):
            if one.at not in at:
                continue
            met.add(one.at)
            thread = self._run.threads[one.thread]
            who = (thread.cta, thread.warp)[: 2 - level]
            turn = self._rounds(one.thread, one.at, one.epoch) if alike else 0
            mine = one.first, one.size, one.value
            for byte in range(one.first, one.first + one.size):
                if one.value is None or seen.setdefault((who, turn, one.block.instance, byte), mine) != mine:
                    return False
        return met == at  # what strong stores leave is not followed
