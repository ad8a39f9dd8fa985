"""Changes of labels: wider scopes, stronger semantics, fences and accesses that are of more than they are now."""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Barrier, Domain, Family, Fence, Mbarrier, ProxyFence, Side, Signal, scope_of
from memmodel.base.rows import bits
from memmodel.ptx.vocabulary import Scope, Sem
from memmodel.why.alter import Alteration
from memmodel.why.changes.situation import Change, Situation, insertion
from memmodel.why.flow import Between
from memmodel.why.records import Reason

_FEW = 40
"""With no more events than this, a fence.sc is tried before writes as well."""


IN_PLACE_OF_RED = 1.5
"""The price of an atomic operation in place of a reduction: more than that of other semantics."""


def of_labels(asked: Situation) -> Iterator[Change]:
    """Semantics and scopes of what meets in links and of the fences around; restricted fences that are not."""
    for link in asked.links:
        if asked.data and asked.pair is not None and {link.first, link.second} & set(asked.pair):
            continue  # data hands nothing over
        yield from _ends(asked, link)
        yield from _memory_fences(asked, link)
    for number, event in enumerate(asked.events):
        label = event.label
        if isinstance(label, ProxyFence) and label.covers is not None:
            yield asked.field(Reason.PROXY_FENCE_SPACE, number, None, label.covers.value, covers=None)
        if isinstance(label, ProxyFence) and label.restricted:
            yield asked.field(Reason.RESTRICTED, number, None, "sync_restrict", restricted=False)
        if isinstance(label, Fence) and label.covers is not None:
            yield asked.field(Reason.RESTRICTED, number, None, label.covers.value, covers=None)


def _ends(asked: Situation, link: Between) -> Iterator[Change]:
    """Semantics and scopes of what meets in a link."""
    scope = asked.common_scope(link)
    for event, other, wanted in ((link.first, link.second, Sem.RELEASE), (link.second, link.first, Sem.ACQUIRE)):
        label = asked.events[event].label
        if isinstance(label, Signal) or (isinstance(label, Access) and label.asynchronous):
            continue
        if isinstance(label, Access) and label.sem is Sem.WEAK and not asked.may_be_strong(event):
            continue
        if isinstance(label, Access) and label.rmw and label.family is Family.RED and label.side is Side.READ:
            halves = [n for n in range(asked.count) if asked.are_halves(event, n)]
            fields = tuple((n, "family", Family.ATOM) for n in halves)
            change = Alteration(((event, "sem", wanted), *fields))
            yield Change(Reason.REDUCTION, change, event, other, "reduction", cost=IN_PLACE_OF_RED)
            yield from _later_reads(asked, halves, other)
        sem = getattr(label, "sem", None)
        cluster = isinstance(label, Barrier) and label.domain is Domain.CLUSTER
        if (isinstance(label, Access | Mbarrier) or cluster) and sem is not wanted and sem is not None:
            weak = {"scope": scope} if sem is Sem.WEAK else {}
            yield asked.field(Reason.RELAXED, event, other, sem.value, sem=wanted, **weak)
        yield from _wider(asked, event, other, scope)


def _later_reads(asked: Situation, halves: list[int], other: int) -> Iterator[Change]:
    """The relaxed reads of a thread that return what its reduction has left: they may be acquires."""
    reads_from = asked.execution.relation("rf")
    for read in (n for half in halves for n in bits(reads_from[half])):
        label = asked.events[read].label
        if isinstance(label, Access) and label.sem is Sem.RELAXED and not label.rmw:
            yield asked.field(Reason.RELAXED, read, other, label.sem.value, sem=Sem.ACQUIRE)


def _wider(asked: Situation, event: int, other: int, scope: Scope) -> Iterator[Change]:
    now = scope_of(asked.events[event].label)
    if now is not None and now < scope and not isinstance(asked.events[event].label, Signal):
        words = f".{now.name.lower()} of {scope.name.lower()}"
        yield asked.field(Reason.SCOPES, event, other, words, scope=scope)


def _memory_fences(asked: Situation, link: Between) -> Iterator[Change]:
    """Fences before the first and after the second event of a link."""
    scope = asked.common_scope(link)
    before = [n for n in range(asked.count) if asked.po[n] >> asked.flow.in_po(link.first) & 1]
    after = bits(asked.po[asked.flow.in_po(link.second)])
    for side, numbers, other in ((Sem.RELEASE, before, link.second), (Sem.ACQUIRE, after, link.first)):
        for number in numbers:
            label = asked.events[number].label
            if isinstance(label, Fence | ProxyFence) and label.scope is not None:
                yield from _wider(asked, number, other, scope)
            if isinstance(label, Fence) and label.sem not in (side, Sem.ACQ_REL, Sem.SC):
                yield asked.field(Reason.RELAXED, number, other, label.sem.value, sem=Sem.ACQ_REL)


def stronger(asked: Situation) -> Iterator[Change]:
    """fence.sc, and strong accesses where weak ones meet."""
    widest = asked.widest()
    weak_tier = 2 if asked.pair is None else 4
    memory = [n for n in range(asked.count) if asked.flow.is_memory(n) and not asked.flow.is_async(n)]
    for number in memory:
        label = asked.events[number].label
        assert isinstance(label, Access)
        if label.sem is Sem.WEAK:
            yield asked.field(Reason.WEAK, number, None, "weak", weak_tier, sem=Sem.RELAXED, scope=widest)
        elif label.scope is not None and label.scope < widest:
            yield asked.field(Reason.SCOPES, number, None, f".{label.scope.name.lower()}", 2, scope=widest)
        may_pass = label.side is Side.READ or (asked.pair is None and asked.count <= _FEW)
        if may_pass and any(asked.po[n] >> number & 1 for n in memory):
            fence = Fence(Sem.SC, widest)
            tier = 2 if label.side is Side.READ else 4
            yield insertion(Reason.NO_FENCE_SC, number, fence, "fence.sc", after=False, tier=tier, cost=6)
    flags = {event for link in asked.links for event in (link.first, link.second) if asked.flow.is_async(event)}
    for number in sorted(flags):
        label = asked.events[number].label
        if isinstance(label, Access) and label.sem is Sem.WEAK:
            yield asked.field(Reason.WEAK, number, None, "weak", weak_tier, sem=Sem.RELAXED, scope=widest)
    for number, event in enumerate(asked.events):
        if isinstance(event.label, Fence):
            sem = event.label.sem
            if sem is not Sem.SC:
                yield asked.field(Reason.NO_FENCE_SC, number, None, sem.value, 2, sem=Sem.SC)
            if event.label.scope < widest:
                yield asked.field(Reason.SCOPES, number, None, f".{event.label.scope.name.lower()}", 2, scope=widest)


def of_strong_accesses(asked: Situation) -> Change | None:
    """The weak accesses of the pair made relaxed, all at once."""
    labels = ((end, asked.events[end].label) for end in asked.pair or ())
    weak = [end for end, label in labels if isinstance(label, Access) and label.sem is Sem.WEAK]
    scope = asked.widest()
    fields = [(end, name, value) for end in weak for name, value in (("sem", Sem.RELAXED), ("scope", scope))]
    words = f".relaxed.{scope.name.lower()}"
    return Change(Reason.WEAK, Alteration(tuple(fields)), weak[0], None, words) if weak else None
