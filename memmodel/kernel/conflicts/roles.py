"""Threads that do the same: roles, classes of warps and CTAs, and the threads that stand for them.

In: LaunchTrace. Out: `Roles`. Two lanes of a warp whose events are the same, up to the bytes of weak accesses, can be
swapped without changing the order of anything; so can warps with the same lanes, and clusters that only meet in weak
accesses. docs/kernels-theorem.md, "Symmetry", has the argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterator, Sequence

from memmodel.base.labels import Access, Family, Fence, Issue, Label, is_atomic
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.vocabulary import Sem

Who = tuple[int, int, int]
"""(class of the CTA, class of the warp in it, role of the lane)."""

ONE_WARP = frozenset({"thread", "warp"})
"""What `Roles.related` says of two threads of one warp."""


class Labels:
    """Numbers for labels; equal labels have one number. Most equal labels are one object, which is found faster."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Label, int]] = {}
        self._equal: dict[Label, int] = {}

    def number(self, label: Label) -> int:
        known = self._objects.get(id(label))
        if known is None:
            known = self._objects[id(label)] = label, self._equal.setdefault(label, len(self._equal))
        return known[1]


class Roles:
    """The classes of the threads of a run. `who[t]`: of thread t.

    `chosen`: the instructions on whose results the run depends: loads there are equal only if they read from one write.
    """

    def __init__(self, run: LaunchTrace, chosen: Container[int] = (), *, symmetric: bool = True) -> None:
        self.run = run
        self._numbers: dict[Hashable, int] = {}
        alone = not symmetric
        labels = Labels()
        roles = [self._number("role", t.number if alone else _signature(run, t, chosen, labels)) for t in run.threads]
        warps: dict[tuple[int, int], list[TraceThread]] = {}
        for thread in run.threads:
            warps.setdefault((thread.cta, thread.warp), []).append(thread)
        classes = {
            key: self._number("warp", _warpgroup(members), frozenset(Counter(roles[t.number] for t in members).items()))
            for key, members in warps.items()
        }
        ctas: dict[int, list[tuple[int, int]]] = {}
        for key in warps:
            ctas.setdefault(key[0], []).append(key)
        self.cluster_of = {cta: _cluster(warps[keys[0]][0]) for cta, keys in ctas.items()}
        inside: dict[Hashable, list[tuple[int, int]]] = {}
        meets = any(True for thread in run.threads for _ in thread.strong())
        for cta, keys in ctas.items():
            kind = cta if meets or alone else frozenset(Counter(classes[k] for k in keys).items())
            inside.setdefault(self.cluster_of[cta], []).append((cta, self._number("cta", kind)))
        self.cta_class: dict[int, int] = {}
        self.cluster_class: dict[int, int] = {}
        self._ctas: dict[int, list[int]] = {}
        for members in inside.values():
            whole = self._number("cluster", tuple(kind for _, kind in members))
            for rank, (cta, _) in enumerate(members):
                number = self.cta_class[cta] = self._number("rank", whole, rank)
                self.cluster_class[number] = whole
                self._ctas.setdefault(number, []).append(cta)
        self.who: list[Who] = [(self.cta_class[t.cta], classes[t.cta, t.warp], roles[t.number]) for t in run.threads]
        self._warps: dict[tuple[int, int], list[int]] = {}
        for (cta, warp), number in classes.items():
            self._warps.setdefault((cta, number), []).append(warp)
        self._lanes: dict[tuple[int, int, int], list[int]] = {}
        for thread in run.threads:
            self._lanes.setdefault((thread.cta, thread.warp, roles[thread.number]), []).append(thread.number)

    def _number(self, *key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def related(self, first: TraceThread, second: TraceThread) -> str:
        """The narrowest group that has two threads."""
        if first is second:
            return "thread"
        if first.cta != second.cta:
            return "cluster" if self.cluster_of[first.cta] == self.cluster_of[second.cta] else "other"
        return "warp" if first.warp == second.warp else "cta"

    def representative(self, who: Who, cta: int = 0, warp: int = 0, lane: int = 0) -> int:
        """A thread of these classes: in the CTA, the warp and the lane of that number, or in the last of its class."""
        ctas = self._ctas[who[0]]
        chosen = ctas[min(cta, len(ctas) - 1)]
        warps = self._warps[chosen, who[1]]
        of = warps[min(warp, len(warps) - 1)]
        lanes = self._lanes[chosen, of, who[2]]
        return lanes[min(lane, len(lanes) - 1)]

    def pair(self, thread: TraceThread, other: TraceThread) -> tuple[int, int]:
        """Two representatives that are related as these threads are."""
        first, second = self.who[thread.number], self.who[other.number]
        left = self.representative(first)
        how = self.related(thread, other)
        if how == "thread":
            return left, left
        if how == "warp":
            return left, self.representative(second, lane=int(first == second))
        if how == "cta":
            return left, self.representative(second, warp=int(first[1] == second[1]))
        if how == "cluster":
            return left, self.representative(second)
        alike = self.cluster_class[first[0]] == self.cluster_class[second[0]]
        return left, self.representative(second, cta=int(alike))

    def representatives(self, members: Sequence[int]) -> list[int]:
        """Representatives of some threads: of the same classes, and related as these threads are."""
        clusters: dict[Hashable, int] = {}
        warps: dict[tuple[int, int], int] = {}
        lanes: dict[int, int] = {}
        used: Counter[Hashable] = Counter()
        representatives = []
        for number in members:
            thread, who = self.run.threads[number], self.who[number]
            cluster, whole = self.cluster_of[thread.cta], self.cluster_class[who[0]]
            if cluster not in clusters:
                clusters[cluster] = used["cluster", whole]
                used["cluster", whole] += 1
            warp = (thread.cta, thread.warp)
            if warp not in warps:
                warps[warp] = used["warp", thread.cta, who[1]]
                used["warp", thread.cta, who[1]] += 1
            if number not in lanes:
                lanes[number] = used["lane", warp, who[2]]
                used["lane", warp, who[2]] += 1
            representatives.append(self.representative(who, clusters[cluster], warps[warp], lanes[number]))
        return representatives

    def kept(self, ctas: Container[int] | None = None) -> set[int]:
        """For every class two lanes of a warp and one lane of another warp, in the first CTA of the class and in the
        second one, if that is in `ctas`.
        """
        kept: set[int] = set()
        for who in set(self.who):
            for number, cta in enumerate(self._ctas[who[0]][:2]):
                if number and ctas is not None and cta not in ctas:
                    continue
                for warp, lane in ((0, 0), (0, 1), (1, 0)):
                    kept.add(self.representative(who, number, warp, lane))
        return kept


def _cluster(thread: TraceThread) -> Hashable:
    """The cluster of a thread; a CTA without one is alone."""
    return ("cta", thread.cta) if thread.place.cluster is None else ("cluster", thread.place.cluster)


def _warpgroup(members: list[TraceThread]) -> int:
    """The warpgroup of a warp that uses wgmma, whose waits cover what the whole warpgroup reads; others have none."""
    issues = (event.label for event in members[0].events if isinstance(event.label, Issue))
    return members[0].warp // 4 if any(label.family is Family.WGMMA for label in issues) else -1


def _signature(run: LaunchTrace, thread: TraceThread, chosen: Container[int], labels: Labels) -> Hashable:
    """All that a thread did, but for the bytes of its weak accesses."""
    orders = any(_orders(event.label) for event in thread.events)
    return tuple([
        (
            event.at, labels.number(event.label), event.note,
            None if event.source is None else _read_from(event, event.source, chosen, orders=orders),
            *(_parts(event) if event.signals else ()),
            *([_allocation(run, owner) for owner in event.owners] if event.owners else ()),
        )
        for event in thread.events
    ])  # fmt: skip


def _orders(label: Label) -> bool:
    """True of what makes strong accesses of a thread order its other accesses."""
    return isinstance(label, Fence) or (isinstance(label, Access) and label.sem in (Sem.ACQUIRE, Sem.RELEASE))


def _read_from(event: TraceEvent, source: TraceEvent, chosen: Container[int], *, orders: bool) -> Hashable:
    """The write that a read returned, if the run depends on the result. `orders`: an atomic operation orders accesses
    of its thread, so that it makes a difference which of two threads comes first.
    """
    if event.at not in chosen or (is_atomic(event.label) and not orders):
        return None
    return source.thread, source.order, source.at, source.first


def _parts(event: TraceEvent) -> Iterator[Hashable]:
    """The strong accesses of an asynchronous instruction."""
    for signal in event.signals:
        if isinstance(signal.label, Access) and signal.block is not None:
            yield signal.block.instance.name, signal.first, signal.size


def _allocation(run: LaunchTrace, event: TraceEvent) -> Hashable:
    """An allocation of tensor memory, by who made it in its cluster."""
    thread = run.threads[event.thread]
    rank = 0 if thread.place.cluster is None else thread.place.rank
    return rank, thread.warp, thread.lane, event.order
