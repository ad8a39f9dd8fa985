"""Fences that are added: of proxies, virtual aliases, tensor memory, wgmma, and beside asynchronous accesses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

from memmodel.base.labels import Access, Across, Covers, Family, Fence, Mark, Marker, ProxyFence
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Space
from memmodel.why.changes.situation import Change, Situation, insertion
from memmodel.why.records import Reason

HALF = 1.5
"""The price of the other half of a proxy fence that stands there by half: less than that of a whole one."""

_COVERS = {Sem.RELEASE: Covers.OWN_SHARED, Sem.ACQUIRE: Covers.SHARED}
"""The memory that each half of a proxy fence of the async proxy is about."""


def of_fences(asked: Situation) -> Iterator[Change]:
    labels = [e.label for n, e in enumerate(asked.events) if asked.pair is None or n in asked.pair]
    accesses = [label for label in labels if isinstance(label, Access)]
    proxies = {label.proxy for label in accesses} - {Proxy.GENERIC, Proxy.READ_ONLY}
    cells = [e.point.cell for n, e in enumerate(asked.events) if asked.pair is None or n in asked.pair]
    tensor = any(cell is not None and cell.instance.space is Space.TENSOR for cell in cells)
    names = {(e.point.cell, e.point.name) for e in asked.events if asked.flow.is_memory(e.point.event)}
    for beside, after in _places(asked):
        for proxy in sorted(proxies, key=lambda item: item.value):
            for fence in _proxy_fences(asked, proxy, beside, after):
                words = f"fence.proxy.{proxy.value if fence.across is None else f'{fence.across.value}.alias'}"
                yield insertion(Reason.NO_PROXY_FENCE, beside, fence, words, after=after)
        for fence in _other_halves(asked, proxies):
            words = "fence.proxy.async::generic"
            yield insertion(Reason.NO_PROXY_FENCE, beside, fence, words, after=after, cost=HALF)
        if len({cell for cell, _ in names}) < len(names):
            fence = ProxyFence(None)
            yield insertion(Reason.NO_ALIAS_FENCE, beside, fence, "fence.proxy.alias", after=after)
        if tensor:
            both = asked.pair is None and not after and asked.is_before_link(beside)  # it may also come after another
            first = Marker.AFTER if after or not asked.is_before_link(beside) else Marker.BEFORE
            for marker in (first, Marker.AFTER) if both else (first,):
                yield insertion(Reason.TCGEN05_FENCE, beside, Mark(marker), marker.value, after=after)
        if Family.WGMMA in {label.family for label in accesses}:
            fence_of = Mark(Marker.WGMMA_FENCE)
            yield insertion(Reason.WGMMA_FENCE, beside, fence_of, "wgmma.fence", after=after)
    for link in asked.links:
        for event, after in ((link.first, False), (link.second, True)):
            if asked.flow.is_async(event) and asked.flow.is_memory(event):
                fence_at = Fence(Sem.ACQ_REL, asked.common_scope(link))
                for beside in asked.flow.completion_waits(event) if after else [asked.flow.in_po(event)]:
                    yield insertion(Reason.RELAXED, beside, fence_at, "fence.acq_rel", after=after, cost=2.5)


def _places(asked: Situation) -> list[tuple[int, bool]]:
    """Where something may be added: around the ends of links, and around the two accesses."""
    places: dict[tuple[int, bool], None] = {}
    for link in asked.links:
        places[asked.flow.in_po(link.first), False] = None
        places[asked.flow.in_po(link.second), True] = None
    for event in asked.pair or ():
        if asked.events[event].point.thread is not None:
            places[asked.flow.in_po(event), True] = None
            places[asked.flow.in_po(event), False] = None
    if asked.pair is None:
        for event in range(asked.count):
            if asked.flow.is_memory(event):
                places[asked.flow.in_po(event), False] = None
                if asked.sources >> event & 1 and asked.flow.thread(event) is not None:
                    places[asked.flow.in_po(event), True] = None
    return list(places)


def _other_halves(asked: Situation, proxies: Collection[Proxy]) -> list[ProxyFence]:
    """The other halves of the fences between the generic and the async proxy that the execution has by half."""
    labels = [event.label for event in asked.events] if Proxy.ASYNC in proxies else []
    halves = {n.half: n for n in labels if isinstance(n, ProxyFence) and n.proxy is Proxy.ASYNC and n.half is not None}
    other = {Sem.RELEASE: Sem.ACQUIRE, Sem.ACQUIRE: Sem.RELEASE}
    missing = [(other[half], fence) for half, fence in halves.items() if other[half] not in halves]
    return [replace(fence, half=half, covers=_COVERS[half]) for half, fence in missing]


def _proxy_fences(asked: Situation, proxy: Proxy, beside: int, after: bool) -> Iterator[ProxyFence]:
    """The fence of a proxy at a place; of two halves both where all is done by one thread."""
    if proxy is Proxy.FABRIC:
        for across, half in product(Across, (Sem.RELEASE, Sem.ACQUIRE)):
            yield ProxyFence(proxy, half, Scope.SYS, across=across)
        return
    if proxy is not Proxy.TENSORMAP:
        yield ProxyFence(proxy)
        return
    releases = asked.is_before_link(beside) and not after
    for half in (Sem.RELEASE, Sem.ACQUIRE):
        if not asked.links or releases is (half is Sem.RELEASE):
            yield ProxyFence(proxy, half, asked.widest())
