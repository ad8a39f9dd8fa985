"""What a program may lack between two accesses: changes of an execution, each with the reason that it stands for.

In: an execution, its flow, the events in question. Out: `Change`s in tiers: what a writer would add first (semantics,
scopes, fences, waits), then fence.sc and strong accesses, then synchronization that is not there at all. That two
accesses are weak is a reason for a race only where nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from memmodel.base.labels import (
    Access,
    Across,
    Action,
    Barrier,
    Domain,
    Family,
    Fence,
    GroupWait,
    Half,
    Label,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Side,
    Signal,
    scope_of,
)
from memmodel.base.rows import Rows, bits, pairs_of
from memmodel.concrete.execution import Execution
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Space
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.flow import Between, Flow
from memmodel.why.phases import came_early, copied, phase_reason
from memmodel.why.records import Reason

FENCES = (Fence, ProxyFence, Mark, GroupWait)
"""What may have to stand between an access and the synchronization that is about it."""


FEW = 40
"""With no more events than this, a fence.sc is tried before writes as well."""


def is_submit(label: Label) -> bool:
    """True of fabric.submit. A wait before it does not cover what it submits."""
    return isinstance(label, Mark) and label.what in (Marker.SUBMIT, Marker.SUBMIT_FETCHING)


FIRST = 8
"""Pairs between which a third thread is looked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `at`: the event that is changed or beside which something is added; `other`: what it has to reach.

    `words`: what is there now, or what is added. `tier`: 1 to 4.
    """

    reason: Reason
    alteration: Alteration
    at: int
    other: int | None = None
    words: str = ""
    tier: int = 1
    cost: float = 1.0


class Changes:
    """The changes worth trying on one execution, between the two of a pair or anywhere.

    `data`: the two are data, and not a flag by which one thread tells the other. `sources`: the accesses that the
    outcome is about, where it is asked about.
    """

    def __init__(
        self,
        execution: Execution,
        flow: Flow,
        pair: tuple[int, int] | None,
        *,
        data: bool = False,
        sources: int = 0,
    ) -> None:
        self.execution = execution
        self.events = execution.events
        self.count = len(self.events)
        self.flow = flow
        self.pair = pair
        self.data = data
        self.sources = sources
        self.links = flow.links
        if pair is not None:
            ways = [link for a, b in (pair, pair[::-1]) for link in flow.between(a, b)]
            self.links = list(dict.fromkeys(ways))
        self.po = execution.relation("po")

    def all(self) -> list[Change]:
        """Every change, each once."""
        changes = [
            *self._fields(),
            *self._waits(),
            *self._signals(),
            *self._phases(),
            *self._unseen(),
            *self._fences(),
            *self._stronger(),
            *self._virtual(),
        ]
        unique: dict[object, Change] = {}
        for change in changes:
            unique.setdefault((change.alteration.fields, change.alteration.inserted, change.alteration.edges), change)
        return list(unique.values())

    # ---- labels ------------------------------------------------------------------------------------------------

    def _fields(self) -> Iterator[Change]:
        for link in self.links:
            if self.data and self.pair is not None and {link.first, link.second} == set(self.pair):
                continue
            yield from self._ends(link)
            yield from self._memory_fences(link)
        for number, event in enumerate(self.events):
            label = event.label
            if isinstance(label, ProxyFence) and label.covers is not None:
                yield self._field(Reason.PROXY_FENCE_SPACE, number, None, label.covers.value, covers=None)
            if isinstance(label, ProxyFence) and label.restricted:
                yield self._field(Reason.RESTRICTED, number, None, "sync_restrict", restricted=False)
            if isinstance(label, Fence) and label.covers is not None:
                yield self._field(Reason.RESTRICTED, number, None, label.covers.value, covers=None)

    def _ends(self, link: Between) -> Iterator[Change]:
        """Semantics and scopes of what meets in a link."""
        scope = self._scope(link)
        for event, other, wanted in ((link.first, link.second, Sem.RELEASE), (link.second, link.first, Sem.ACQUIRE)):
            label = self.events[event].label
            if isinstance(label, Signal) or (isinstance(label, Access) and label.asynchronous):
                continue
            if isinstance(label, Access) and label.rmw and label.family is Family.RED and label.side is Side.READ:
                halves = [n for n in range(self.count) if self._half(event, n)]
                fields = tuple((n, "family", Family.ATOM) for n in halves)
                yield Change(Reason.REDUCTION, Alteration(((event, "sem", wanted), *fields)), event, other, "reduction")
            sem = getattr(label, "sem", None)
            cluster = isinstance(label, Barrier) and label.domain is Domain.CLUSTER
            if (isinstance(label, Access | Mbarrier) or cluster) and sem is not wanted and sem is not None:
                weak = {"scope": scope} if sem is Sem.WEAK else {}
                yield self._field(Reason.RELAXED, event, other, sem.value, sem=wanted, **weak)
            yield from self._wider(event, other, scope)

    def _half(self, event: int, other: int) -> bool:
        point, other_point = self.events[event].point, self.events[other].point
        return point.operation == other_point.operation and point.operation is not None

    def _wider(self, event: int, other: int, scope: Scope) -> Iterator[Change]:
        now = scope_of(self.events[event].label)
        if now is not None and now < scope and not isinstance(self.events[event].label, Signal):
            words = f".{now.name.lower()} of {scope.name.lower()}"
            yield self._field(Reason.SCOPES, event, other, words, scope=scope)

    def _memory_fences(self, link: Between) -> Iterator[Change]:
        """Fences before the first and after the second event of a link."""
        scope = self._scope(link)
        before = [n for n in range(self.count) if self.po[n] >> self.flow.in_po(link.first) & 1]
        after = bits(self.po[self.flow.in_po(link.second)])
        for side, numbers, other in ((Sem.RELEASE, before, link.second), (Sem.ACQUIRE, after, link.first)):
            for number in numbers:
                label = self.events[number].label
                if isinstance(label, Fence | ProxyFence) and label.scope is not None:
                    yield from self._wider(number, other, scope)
                if isinstance(label, Fence) and label.sem not in (side, Sem.ACQ_REL, Sem.SC):
                    yield self._field(Reason.RELAXED, number, other, label.sem.value, sem=Sem.ACQ_REL)

    def _field(
        self, reason: Reason, event: int, other: int | None, words: str, tier: int = 1, **fields: object
    ) -> Change:
        label = self.events[event].label
        halves = [event]
        if isinstance(label, Access) and label.rmw and "scope" in fields and "sem" not in fields:
            halves = [n for n in range(self.count) if self._half(event, n)] or [event]
        change = Alteration(tuple((half, name, value) for half in halves for name, value in fields.items()))
        return Change(reason, change, event, other, words, tier)

    def _scope(self, link: Between, first: int | None = None) -> Scope:
        """The least scope that takes in both ends, or another event in place of the first."""
        seat, other = (self.events[n].point.seat for n in (link.first if first is None else first, link.second))
        assert seat is not None and other is not None
        return seat.common_scope(other)

    # ---- fences ------------------------------------------------------------------------------------------------

    def _places(self) -> list[tuple[int, bool]]:
        """Where something may be added: around the ends of links, and around the two accesses."""
        places: dict[tuple[int, bool], None] = {}
        for link in self.links:
            places[self.flow.in_po(link.first), False] = None
            places[self.flow.in_po(link.second), True] = None
        for event in self.pair or ():
            if self.events[event].point.thread is not None:
                places[self.flow.in_po(event), True] = None
                places[self.flow.in_po(event), False] = None
        if self.pair is None:
            for event in range(self.count):
                if self.flow.is_memory(event):
                    places[self.flow.in_po(event), False] = None
                    if self.sources >> event & 1 and self.flow.thread(event) is not None:
                        places[self.flow.in_po(event), True] = None
        return list(places)

    def _fences(self) -> Iterator[Change]:
        labels = [e.label for n, e in enumerate(self.events) if self.pair is None or n in self.pair]
        accesses = [label for label in labels if isinstance(label, Access)]
        proxies = {label.proxy for label in accesses} - {Proxy.GENERIC, Proxy.READ_ONLY}
        cells = [e.point.cell for n, e in enumerate(self.events) if self.pair is None or n in self.pair]
        tensor = any(cell is not None and cell.instance.space is Space.TENSOR for cell in cells)
        names = {(e.point.cell, e.point.name) for e in self.events if self.flow.is_memory(e.point.event)}
        for beside, after in self._places():
            for proxy in sorted(proxies, key=lambda item: item.value):
                for fence in self._proxy_fences(proxy, beside, after):
                    words = f"fence.proxy.{proxy.value if fence.across is None else f'{fence.across.value}.alias'}"
                    yield self._insert(Reason.NO_PROXY_FENCE, beside, fence, words, after=after)
            if len({cell for cell, _ in names}) < len(names):
                fence = ProxyFence(None)
                yield self._insert(Reason.NO_ALIAS_FENCE, beside, fence, "fence.proxy.alias", after=after)
            if tensor:
                both = self.pair is None and not after and self._before_link(beside)  # it may also come after another
                first = Marker.AFTER if after or not self._before_link(beside) else Marker.BEFORE
                for marker in (first, Marker.AFTER) if both else (first,):
                    yield self._insert(Reason.TCGEN05_FENCE, beside, Mark(marker), marker.value, after=after)
            if Family.WGMMA in {label.family for label in accesses}:
                fence_of = Mark(Marker.WGMMA_FENCE)
                yield self._insert(Reason.WGMMA_FENCE, beside, fence_of, "wgmma.fence", after=after)
        for link in self.links:
            for event, after in ((link.first, False), (link.second, True)):
                if self.flow.is_async(event) and self.flow.is_memory(event):
                    fence_at = Fence(Sem.ACQ_REL, self._scope(link))
                    for beside in self.flow.completion_waits(event) if after else [self.flow.in_po(event)]:
                        yield self._insert(Reason.RELAXED, beside, fence_at, "fence.acq_rel", after=after, cost=2.5)

    def _proxy_fences(self, proxy: Proxy, beside: int, after: bool) -> Iterator[ProxyFence]:
        """The fence of a proxy at a place; of two halves both where all is done by one thread."""
        if proxy is Proxy.FABRIC:
            for across, half in product(Across, (Sem.RELEASE, Sem.ACQUIRE)):
                yield ProxyFence(proxy, half, Scope.SYS, across=across)
            return
        if proxy is not Proxy.TENSORMAP:
            yield ProxyFence(proxy)
            return
        releases = self._before_link(beside) and not after
        for half in (Sem.RELEASE, Sem.ACQUIRE):
            if not self.links or releases is (half is Sem.RELEASE):
                yield ProxyFence(proxy, half, self._widest())

    def _before_link(self, event: int) -> bool:
        return any(self.flow.in_po(link.first) == event for link in self.links)

    def _insert(
        self, reason: Reason, beside: int, label: Label, words: str, *, after: bool, tier: int = 1, cost: float = 2.0
    ) -> Change:
        return Change(reason, Alteration((), (Inserted(beside, label, after),)), beside, None, words, tier, cost)

    # ---- completion --------------------------------------------------------------------------------------------

    def _waits(self) -> Iterator[Change]:
        """Waits for the end of asynchronous accesses, where what comes later could need them."""
        completes = self.execution.relation("compl")
        for event in range(self.count):
            label = self.events[event].label
            if not (isinstance(label, Access) and label.asynchronous) or (self.pair and event not in self.pair):
                continue
            issue = self.flow.in_po(event)
            signalled = any(isinstance(self.events[n].label, Signal) for n in bits(completes[event]))
            mine = self.events[event].point.thread
            parts = [n for n in range(self.count) if self.flow.issue_of.get(n) == issue and self.flow.is_memory(n)]
            own = label.family in (Family.TCGEN_LD, Family.TCGEN_ST)
            for place in self._later(event):
                core = label.family in (Family.MMA, Family.TCGEN_CP, Family.SHIFT)
                if not (signalled or core) and self.events[place].point.thread != mine:
                    continue
                wait = Inserted(place, GroupWait(label.family))
                edges = tuple(("compl", part, self.count) for part in parts)
                if core:
                    seen = any(completes[part] for part in parts)
                    reason = Reason.NOT_WAITED if seen else Reason.TCGEN05_COMMIT
                    signal = Inserted(issue, Signal(Action.ARRIVE, Scope.CLUSTER, Family.COMMIT), after=True)
                    meets = ("mbarobs", self.count, self.count + 1)
                    ends = tuple(("compl", part, self.count + 1) for part in parts if not self._tensor(part))
                    yield Change(
                        reason, Alteration((), (signal, wait), (*edges, meets, *ends)), event, place, "", 1, 4.0
                    )
                else:
                    reason = Reason.TCGEN05_WAIT if own else Reason.NOT_WAITED
                    yield Change(reason, Alteration((), (wait,), edges), event, place, "", 1, 3.0)

    def _tensor(self, event: int) -> bool:
        cell = self.events[event].point.cell
        return cell is not None and cell.instance.space is Space.TENSOR

    def _later(self, event: int) -> list[int]:
        """The thread-level events before which the end of an asynchronous access may have to be known."""
        issue = self.flow.in_po(event)
        sources = [
            self.flow.in_po(link.first) for link in self.links if self.po[issue] >> self.flow.in_po(link.first) & 1
        ]
        # What leads to the copy is over before it begins, and cannot wait for it; a write that it reads need not be.
        earlier = [n for n, row in enumerate(self.po) if row >> issue & 1]
        others = [self.flow.in_po(other) for other in self.pair or () if other != event]
        others = [n for n in others if not any(n == before or self.flow.leads(n, before) for before in earlier)]
        if self.pair is None:
            cell = self.events[event].point.cell
            others = [
                self.flow.in_po(n)
                for n in range(self.count)
                if n != event and cell and self.events[n].point.cell == cell
            ]
        places = dict.fromkeys(
            self._last_of((Mark, Fence, ProxyFence), n, back=True)
            for n in (*others, *sources)
            if self.events[n].point.thread is not None
        )
        mine = self.events[issue].point.thread
        return [
            n
            for n in places
            if n != issue
            and not self.po[n] >> issue & 1
            and (self.events[n].point.thread == mine or not self.flow.surely_leads(n, event))
        ]

    def _last_of(self, kinds: tuple[type[Label], ...], event: int, *, back: bool = False) -> int:
        """The event, or the last of these kinds of events that follow it at once, or (`back`) stand in front of it, but
        for those that submit operations."""
        others = [n for n, row in enumerate(self.po) if row >> event & 1] if back else bits(self.po[event])
        for number in sorted(others, key=lambda n: self.events[n].point.order or 0, reverse=back):
            label = self.events[number].label
            if not isinstance(label, kinds) or is_submit(label):
                break
            event = number
        return event

    def _signals(self) -> Iterator[Change]:
        """An arrival by the thread itself beside that of its asynchronous operation."""
        for link in self.links:
            if isinstance(self.events[link.first].label, Signal):
                issue = self.flow.in_po(link.first)
                arrive = Inserted(issue, Mbarrier(Action.ARRIVE, Sem.RELEASE, self._scope(link, issue)), after=True)
                edges = (("mbarobs", self.count, link.second),)
                yield Change(
                    Reason.NOT_TRANSITIVE, Alteration((), (arrive,), edges), link.first, link.second, "", 1, 5.0
                )

    def _phases(self) -> Iterator[Change]:
        """A wait that saw its phase end before an arrival or signal which it was meant for."""
        seen, same = self.execution.relation("mbarobs"), self.execution.relation("samebar")
        done = bits(self.execution.set("MBDONE"))
        updates = bits(self.execution.set("ARRIVEON") | self.execution.set("SIGNAL"))
        for update in updates:
            for wait in done:
                if not same[update] >> wait & 1 or seen[update] >> wait & 1 or self.flow.surely_leads(wait, update):
                    continue
                if self.pair is not None and not any(
                    (a == update or self.flow.leads(a, update)) and self.flow.leads(wait, b)
                    for a, b in (self.pair, self.pair[::-1])
                ):
                    continue
                edges = (("mbarobs", update, wait),)
                reason = phase_reason(self.execution, self.flow, update, wait)
                earlier = self._earlier(update, wait, seen)
                if reason in (Reason.COUNT, Reason.EARLIER_PHASE) and earlier:
                    continue  # the thread arrived in the phase that the wait saw: this arrival is for a later one
                if reason is Reason.BYTES and (
                    copied(self.execution, update) & copied(self.execution, *earlier)
                    or came_early(self.execution, wait)
                ):
                    continue  # a thread's later copy to the same place is for a later phase
                cost = 2.7 if reason is Reason.PARITY else 2.8
                yield Change(reason, Alteration((), (), edges), update, wait, "", 1, cost)

    def _earlier(self, update: int, wait: int, seen: Rows) -> list[int]:
        """What a wait has seen of the thread of an update."""
        thread = self.events[update].point.thread
        return [n for n, row in enumerate(seen) if row >> wait & 1 and self.events[n].point.thread == thread]

    def _unseen(self) -> Iterator[Change]:
        """What threads could have seen between the two accesses, so that the first would be known to be over."""
        meetings = [] if self.pair is None else [*self._reads_of_writes(), *self._tests_of_updates()]
        if not meetings or self.pair is None:
            return
        leads = self.flow.with_links((update, seeing) for _, update, seeing in meetings)
        for first, second in (self.pair, self.pair[::-1]):
            end = self.flow.in_po(second)
            for name, update, seeing in meetings:
                on_the_way = leads[first] >> update & 1 and leads[seeing] >> end & 1
                if on_the_way and not self.flow.surely_leads(seeing, update):
                    change = Alteration((), (), ((name, update, seeing),))
                    yield Change(Reason.NOT_SEEN, change, update, seeing, "", 1, 8.0)

    def _reads_of_writes(self) -> Iterator[tuple[str, int, int]]:
        """Strong reads with the strong writes of other threads to their locations that they do not read."""
        reads_from = self.execution.relation("rf")
        writes: dict[Cell | None, list[int]] = {}
        reads: list[int] = []
        for number, event in enumerate(self.events):
            label = event.label
            if isinstance(label, Access) and label.sem is not Sem.WEAK and not label.asynchronous:
                (reads if label.side is Side.READ else writes.setdefault(event.point.cell, [])).append(number)
        for read in reads:
            for write in writes.get(self.events[read].point.cell, ()):
                if self.flow.thread(write) != self.flow.thread(read) and not reads_from[write] >> read & 1:
                    yield "rf", write, read

    def _tests_of_updates(self) -> Iterator[tuple[str, int, int]]:
        """Tests of mbarrier objects that returned false, with the arrivals and signals on their objects."""
        same = self.execution.relation("samebar")
        updates = bits(self.execution.set("ARRIVEON") | self.execution.set("SIGNAL"))
        tests = bits(self.execution.set("MBTEST") & ~self.execution.set("MBDONE"))
        return (("mbarobs", update, test) for update, test in product(updates, tests) if same[update] >> test & 1)

    # ---- more ---------------------------------------------------------------------------------------------------

    def _stronger(self) -> Iterator[Change]:
        """fence.sc, and strong accesses where weak ones meet."""
        widest = self._widest()
        weak_tier = 2 if self.pair is None else 4
        memory = [n for n in range(self.count) if self.flow.is_memory(n) and not self.flow.is_async(n)]
        for number in memory:
            label = self.events[number].label
            assert isinstance(label, Access)
            if label.sem is Sem.WEAK:
                yield self._field(Reason.WEAK, number, None, "weak", weak_tier, sem=Sem.RELAXED, scope=widest)
            elif label.scope is not None and label.scope < widest:
                yield self._field(Reason.SCOPES, number, None, f".{label.scope.name.lower()}", 2, scope=widest)
            may_pass = label.side is Side.READ or (self.pair is None and self.count <= FEW)
            if may_pass and any(self.po[n] >> number & 1 for n in memory):
                fence = Fence(Sem.SC, widest)
                tier = 2 if label.side is Side.READ else 4
                yield self._insert(Reason.NO_FENCE_SC, number, fence, "fence.sc", after=False, tier=tier, cost=6)
        flags = {event for link in self.links for event in (link.first, link.second) if self.flow.is_async(event)}
        for number in sorted(flags):
            label = self.events[number].label
            if isinstance(label, Access) and label.sem is Sem.WEAK:
                yield self._field(Reason.WEAK, number, None, "weak", weak_tier, sem=Sem.RELAXED, scope=widest)
        for number, event in enumerate(self.events):
            if isinstance(event.label, Fence):
                sem = event.label.sem
                if sem is not Sem.SC:
                    yield self._field(Reason.NO_FENCE_SC, number, None, sem.value, 2, sem=Sem.SC)
                if event.label.scope < widest:
                    yield self._field(
                        Reason.SCOPES, number, None, f".{event.label.scope.name.lower()}", 2, scope=widest
                    )

    def strong(self) -> Change | None:
        """Those of the pair that are weak as relaxed ones, all at once."""
        labels = ((end, self.events[end].label) for end in self.pair or ())
        weak = [end for end, label in labels if isinstance(label, Access) and label.sem is Sem.WEAK]
        scope = self._widest()
        fields = [(end, name, value) for end in weak for name, value in (("sem", Sem.RELAXED), ("scope", scope))]
        words = f".relaxed.{scope.name.lower()}"
        return Change(Reason.WEAK, Alteration(tuple(fields)), weak[0], None, words) if weak else None

    def _widest(self) -> Scope:
        places = {event.point.place for event in self.events if event.point.place is not None}
        return next(s for s in Scope if all(place.shares(s, other) for place in places for other in places))

    def _virtual(self) -> Iterator[Change]:
        """Synchronization where there is none."""
        pairs = [self.pair, self.pair[::-1]] if self.pair is not None else [*self._overtaken(), *self._early()]
        about = self.sources
        pairs.sort(key=lambda pair: not (about >> pair[0] & 1 or about >> pair[1] & 1 or self._tells_nobody(pair[0])))
        for number, (a, b) in enumerate(pairs):
            start, end = self.flow.in_po(a), self.flow.in_po(b)
            first, second = self.events[start].point, self.events[end].point
            if first.thread is None or second.thread is None or first.thread == second.thread:
                continue
            if self.flow.surely_leads(b, a):
                continue  # the order that there is goes the other way
            yield self._meeting(a, b, 10.0 + number / 100)
            if number < FIRST:
                yield from self._passed_on(a, b, 9.0 + number / 100)

    def _tells_nobody(self, event: int) -> bool:
        """True if the thread of an event arrives later on an mbarrier object that no thread tests."""
        same, tests = self.execution.relation("samebar"), self.execution.set("MBTEST")
        arrivals = self.po[self.flow.in_po(event)] & self.execution.set("ARRIVEON")
        return any(not same[arrival] & tests for arrival in bits(arrivals))

    def _meeting(self, a: int, b: int, cost: float) -> Change:
        """A hand-over from one event to another one."""
        start, end = self.flow.in_po(a), self.flow.in_po(b)
        last = self._last_of(FENCES, start)
        later = min(bits(self.po[last]), key=lambda n: self.events[n].point.order or 0, default=None)
        beside = (last, True) if later is None else (later, False)  # behind fences that are put after the last one
        arrive = Inserted(beside[0], Barrier(Half.ARRIVE, Domain.CTA), after=beside[1])
        wait = Inserted(self._last_of(FENCES, end, back=True), Barrier(Half.WAIT, Domain.CTA))
        edges = [("syncbar", self.count, self.count + 1)]
        if start != a:
            edges += [("compl", a, self.count)]
        return Change(Reason.NO_SYNCHRONIZATION, Alteration((), (arrive, wait), tuple(edges)), a, b, "", 3, cost)

    def _passed_on(self, a: int, b: int, cost: float) -> Iterator[Change]:
        """Hand-overs inside the CTA of the second access, where the first comes from another CTA: from the last event
        of each thread there that the first access leads to."""
        threads: dict[int, list[int]] = {}
        for number, event in enumerate(self.events):
            if event.point.thread is not None and event.point.order is not None and self.flow.leads(a, number):
                threads.setdefault(event.point.thread, []).append(number)
        for thread, reached in threads.items():
            last = max(reached, key=lambda number: self.events[number].point.order or 0)
            elsewhere = thread not in (self.flow.thread(self.flow.in_po(a)), self.flow.thread(self.flow.in_po(b)))
            if elsewhere and self._one_cta(last, b) and not self._one_cta(a, b):
                yield self._meeting(last, b, cost)

    def _one_cta(self, a: int, b: int) -> bool:
        first, second = (self.events[self.flow.in_po(event)].point.place for event in (a, b))
        return first is not None and second is not None and first.cta_id == second.cta_id

    def _overtaken(self) -> list[tuple[int, int]]:
        """Writes and the reads that read something older."""
        rf, co = self.execution.relation("rf"), self.execution.relation("co")
        pairs = []
        for write, read in pairs_of(rf):
            pairs += [(later, read) for later in bits(co[write])]
        return pairs

    def _early(self) -> list[tuple[int, int]]:
        """Reads and the writes that they read."""
        return [(read, write) for write, read in pairs_of(self.execution.relation("rf"))]
