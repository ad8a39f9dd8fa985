"""Threads that do the same: roles, classes of warps and CTAs, and who stands for them.

In: Run. Out: `Roles`. Two lanes of a warp whose events are the same, up to the bytes of weak accesses, can be swapped
without changing the order of anything; so can warps with the same lanes, and CTAs that only meet in weak accesses.
docs/kernels.md, "Symmetry", has the argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Sequence

from memmodel.base.labels import Access
from memmodel.kernel.judge.events import LaunchTrace, TraceThread

Who = tuple[int, int, int]
"""(class of the CTA, class of the warp in it, role of the lane)."""


class Roles:
    """The classes of the threads of a run. `who[t]`: of thread t."""

    def __init__(self, run: LaunchTrace, *, symmetric: bool = True) -> None:
        self.run = run
        self._numbers: dict[Hashable, int] = {}
        alone = not symmetric
        roles = [self._number("role", t.number if alone else _signature(t)) for t in run.threads]
        warps: dict[tuple[int, int], list[TraceThread]] = {}
        for thread in run.threads:
            warps.setdefault((thread.cta, thread.warp), []).append(thread)
        classes = {
            key: self._number("warp", frozenset(Counter(roles[t.number] for t in members).items()))
            for key, members in warps.items()
        }
        ctas: dict[int, list[tuple[int, int]]] = {}
        for key in warps:
            ctas.setdefault(key[0], []).append(key)
        meets = any(isinstance(event.label, Access) for thread in run.threads for event in thread.events)
        meets |= any(thread.place.cluster is not None for thread in run.threads)
        self.cta_class = {
            cta: self._number("cta", cta if meets or alone else frozenset(Counter(classes[k] for k in keys).items()))
            for cta, keys in ctas.items()
        }
        self.who: list[Who] = [(self.cta_class[t.cta], classes[t.cta, t.warp], roles[t.number]) for t in run.threads]
        self._ctas: dict[int, list[int]] = {}
        for cta, one in self.cta_class.items():
            self._ctas.setdefault(one, []).append(cta)
        self._warps: dict[tuple[int, int], list[int]] = {}
        for (cta, warp), one in classes.items():
            self._warps.setdefault((cta, one), []).append(warp)
        self._lanes: dict[tuple[int, int, int], list[int]] = {}
        for thread in run.threads:
            self._lanes.setdefault((thread.cta, thread.warp, roles[thread.number]), []).append(thread.number)

    def _number(self, *key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def related(self, one: TraceThread, other: TraceThread) -> str:
        """How two threads lie to one another."""
        if one is other:
            return "thread"
        if one.cta != other.cta:
            return "other"
        return "warp" if one.warp == other.warp else "cta"

    def representative(self, who: Who, cta: int = 0, warp: int = 0, lane: int = 0) -> int:
        """A thread of these classes: of the CTA, the warp and the lane of that number, as far as there are any."""
        ctas = self._ctas[who[0]]
        chosen = ctas[min(cta, len(ctas) - 1)]
        warps = self._warps[chosen, who[1]]
        of = warps[min(warp, len(warps) - 1)]
        lanes = self._lanes[chosen, of, who[2]]
        return lanes[min(lane, len(lanes) - 1)]

    def pair(self, one: TraceThread, other: TraceThread) -> tuple[int, int]:
        """Two representatives that lie to one another as these threads do."""
        first, second = self.who[one.number], self.who[other.number]
        mine = self.representative(first)
        how = self.related(one, other)
        if how == "thread":
            return mine, mine
        if how == "warp":
            return mine, self.representative(second, lane=int(first == second))
        if how == "cta":
            return mine, self.representative(second, warp=int(first[1] == second[1]))
        return mine, self.representative(second, cta=int(first[0] == second[0]))

    def standing(self, members: Sequence[int]) -> list[int]:
        """Threads that lie to one another as these do, and are of the same classes: the first ones there are."""
        ctas: dict[int, int] = {}
        warps: dict[tuple[int, int], int] = {}
        lanes: dict[int, int] = {}
        used: Counter[Hashable] = Counter()
        found = []
        for number in members:
            thread, who = self.run.threads[number], self.who[number]
            if thread.cta not in ctas:
                ctas[thread.cta] = used["cta", who[0]]
                used["cta", who[0]] += 1
            warp = (thread.cta, thread.warp)
            if warp not in warps:
                warps[warp] = used["warp", thread.cta, who[1]]
                used["warp", thread.cta, who[1]] += 1
            if number not in lanes:
                lanes[number] = used["lane", warp, who[2]]
                used["lane", warp, who[2]] += 1
            found.append(self.representative(who, ctas[thread.cta], warps[warp], lanes[number]))
        return found

    def kept(self, ctas: Container[int] | None = None) -> set[int]:
        """For every class two lanes of a warp and one of another; of two CTAs of a class, or of its first and `ctas`."""
        found: set[int] = set()
        for who in set(self.who):
            for number, cta in enumerate(self._ctas[who[0]][:2]):
                if number and ctas is not None and cta not in ctas:
                    continue
                for warp, lane in ((0, 0), (0, 1), (1, 0)):
                    found.add(self.representative(who, number, warp, lane))
        return found


def _signature(thread: TraceThread) -> Hashable:
    return tuple((event.at, event.label, event.note) for event in thread.events)
