"""The base relations of cat: each name with its meaning, its source, and how it is found.

In: nothing. Out: `RELATIONS`. A relation joins points that agree in a key, or satisfies a predicate on two points, or
is decided by the execution; the engines supply the last kind (`DECIDED`), and a test asks both for every name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Covers,
    Family,
    Fence,
    Label,
    Mbarrier,
    ProxyFence,
    Side,
    Signal,
    group_of,
    is_memory,
    is_read,
    scope_of,
)
from memmodel.base.points import Point
from memmodel.memory.bytes import Instance
from memmodel.ptx.vocabulary import Place, Scope, Space

Key = Callable[[Point], Hashable]
Holds = Callable[[Point, Point], bool]


@dataclass(frozen=True, slots=True)
class BaseRelation:
    """`key`: related when equal and not None. `holds`: a predicate, asked of points that `domain` and `range` admit
    and, if there is a `key` too, that agree in it. Neither: the execution decides.

    `kind`: all that `holds` looks at, where events of few kinds are many; `domain` and `range` are the same then.
    `in_label`: all that `holds` looks at in a label.
    """

    name: str
    meaning: str
    source: str
    key: Key | None = None
    holds: Holds | None = None
    domain: Callable[[Point], bool] | None = None
    range: Callable[[Point], bool] | None = None
    kind: Key | None = None
    in_label: Callable[[Label], Hashable] = lambda label: label

    def rows(self, points: Sequence[Point]) -> list[int]:
        """The pairs of points that `key` and `holds` relate, as rows. `points`: by event number."""
        rows = [0] * len(points)
        if self.key is None:
            left = [point for point in points if self.domain is None or self.domain(point)]
            right = [point for point in points if self.range is None or self.range(point)]
            self._fill(rows, left, right)
            return rows
        groups: dict[Hashable, list[Point]] = {}
        for point in points:
            key = self.key(point)
            if key is not None:
                groups.setdefault(key, []).append(point)
        for group in groups.values():
            self._fill(rows, group, group)
        return rows

    def _fill(self, rows: list[int], left: Sequence[Point], right: Sequence[Point]) -> None:
        holds = self.holds
        if self.kind is not None and holds is not None:
            self._fill_by_kind(rows, left, holds)
            return
        whole = sum(1 << b.event for b in right)
        for a in left:
            row = whole if holds is None else sum(1 << b.event for b in right if holds(a, b))
            rows[a.event] = rows[a.event] | row if rows[a.event] else row  # equal rows are one object, where it may be

    def _fill_by_kind(self, rows: list[int], points: Sequence[Point], holds: Holds) -> None:
        """Ask once for each two kinds: `points` are the domain and the range."""
        assert self.kind is not None
        kinds: dict[Hashable, list[Point]] = {}
        for point in points:
            kinds.setdefault(self.kind(point), []).append(point)
        alike = [(group[0], group, sum(1 << point.event for point in group)) for group in kinds.values()]
        for first, group, _ in alike:
            row = sum(mask for second, _, mask in alike if holds(first, second))
            for point in group:
                rows[point.event] = rows[point.event] | row if rows[point.event] else row


def _location(point: Point) -> Hashable:
    return point.cell if is_memory(point.label) else None


def _address(point: Point) -> Hashable:
    return (point.cell, point.name) if is_memory(point.label) else None


def _instance(point: Point) -> Hashable:
    return None if point.cell is None else point.cell.instance


def _overlap(a: Point, b: Point) -> bool:
    assert a.cell is not None and b.cell is not None
    return a.cell.first < b.cell.end and b.cell.first < a.cell.end


def _before(a: Point, b: Point) -> bool:
    assert a.order is not None and b.order is not None
    return a.order < b.order


def _same_size(a: Point, b: Point) -> bool:
    return a.scalar is None or b.scalar is None or a.scalar == b.scalar


def include(scope: Scope, place: Place, other_scope: Scope, other_place: Place) -> bool:
    """True if two scopes, each specified at a place, include each other's place ("Scope")."""
    return place.shares(scope, other_place) and other_place.shares(other_scope, place)


def _scopes_include(a: Point, b: Point) -> bool:
    first, second = scope_of(a.label), scope_of(b.label)
    assert first is not None and second is not None
    if not isinstance(a.label, Signal) and not isinstance(b.label, Signal) and a.thread == b.thread:
        return True
    return a.seat is not None and b.seat is not None and include(first, a.seat, second, b.seat)


def _issuers_include(a: Point, b: Point) -> bool:
    first, second = scope_of(a.label), scope_of(b.label)
    assert first is not None and second is not None and a.place is not None and b.place is not None
    return a.thread == b.thread or include(first, a.place, second, b.place)


def _scoped(point: Point) -> bool:
    return point.place is not None and scope_of(point.label) is not None


def _atomic(a: Point, b: Point) -> bool:
    first, second = a.label, b.label
    assert isinstance(first, Access) and isinstance(second, Access)
    return first.rmw and first.side is Side.READ and second.rmw and second.side is Side.WRITE


def _is_covering(point: Point) -> bool:
    return isinstance(point.label, Fence | ProxyFence | Allocates)


def _is_covered(point: Point) -> bool:
    return is_memory(point.label) or (isinstance(point.label, Mbarrier) and point.label.action is Action.INIT)


OF_ITS_THREAD = (Covers.INIT, Covers.OWN_READS)
"""What a fence covers of what its own thread did before it, and of no other thread: such a fence is not cumulative."""


def _of_peer(freed: Point) -> Instance | None:
    """What the peer CTA has of tensor memory that both have together ("tcgen05.dealloc": they synchronize accesses
    before it).
    """
    label, place = freed.label, freed.place
    if not isinstance(label, Allocates) or label.group != 2 or label.what is not Allocation.DEALLOC:
        return None
    if place is None or freed.range is None:
        return None
    return replace(freed.range.instance, owner=replace(place, cta=place.cta ^ 1).cta_id)


def covers(fence: Point, access: Point) -> bool:
    """True if a fence (or an alloc or dealloc) is about this event."""
    what = fence.label.covers if isinstance(fence.label, Fence | ProxyFence) else Covers.RANGE
    if what in OF_ITS_THREAD and (
        access.thread != fence.thread or access.order is None or fence.order is None or access.order >= fence.order
    ):
        return False
    if what is Covers.INIT:
        return isinstance(access.label, Mbarrier)
    if not is_memory(access.label) or access.cell is None:
        return False
    instance = access.cell.instance
    if what is Covers.OWN_READS:
        return is_read(access.label) and instance.space is Space.SHARED
    if what is None:
        return True
    if what is Covers.OWN_SHARED:
        return instance.space is Space.SHARED and fence.place is not None and instance.owner == fence.place.cta_id
    if what is Covers.SHARED:
        return instance.space is Space.SHARED
    if what is Covers.GLOBAL:
        return instance.space not in (Space.SHARED, Space.TENSOR)
    named = fence.range
    if named is None or instance not in (named.instance, _of_peer(fence)):
        return False
    return named.first <= access.cell.first and access.cell.end <= named.end


def _accumulator(point: Point) -> Hashable:
    label = point.label
    if not isinstance(label, Access) or label.family is not Family.MMA or label.form is None:
        return None
    return label.form, point.shape, label.group, point.cell


def _allocation(point: Point) -> Hashable:
    if not isinstance(point.label, Allocates) or point.range is None:
        return None
    return point.range.instance, point.label.columns, point.label.exclusive


def _on_object(label: Label) -> bool:
    return isinstance(label, Mbarrier | Signal)


def _nothing(label: Label) -> None:
    """What a relation of places looks at in a label."""


RELATIONS: tuple[BaseRelation, ...] = (
    BaseRelation("id", "each event with itself", "herd", key=lambda p: p.event),
    BaseRelation("int", "events of one thread, an event with itself included", "herd", key=lambda p: p.thread),
    BaseRelation(
        "ext",
        "events of different threads; two initial writes are",
        "herd",
        holds=lambda a, b: a.event != b.event and (a.thread is None or a.thread != b.thread),
    ),
    BaseRelation(
        "po",
        "program order: earlier to later event of one thread; the parts of one instruction are unordered",
        "Program Order",
        key=lambda p: None if p.order is None else p.thread,
        holds=_before,
        in_label=_nothing,
    ),
    BaseRelation("loc", "memory events on one location", "Overlap", key=_location),
    BaseRelation(
        "vloc",
        "memory events through one virtual address; a surface or texture name of x counts as x",
        "Aliases",
        key=_address,
    ),
    BaseRelation(
        "whole",
        "memory events whose scalar operations overlap completely; a copy of no scalar size is cut as the other is",
        "Overlap",
        key=_location,
        holds=_same_size,
    ),
    BaseRelation(
        "si", "parts of one instruction", "Memory Operations on Vector Data Types", key=lambda p: p.instruction
    ),
    BaseRelation("so", "parts of one scalar operation", "Memory Operations", key=lambda p: p.operation),
    BaseRelation(
        "rf", "reads-from: each read has exactly one write, of the same location and value", "Communication Order"
    ),
    BaseRelation(
        "co",
        "a strict partial order on write operations, the same wherever they meet; the initial write is first",
        "Coherence Order",
    ),
    BaseRelation(
        "rmw",
        "the read of an atomic operation to its write, if it writes",
        "Operation Types",
        key=lambda p: (p.operation, p.cell) if isinstance(p.label, Access) and p.label.rmw else None,
        holds=_atomic,
    ),
    BaseRelation("addr", "address dependency: a read to a later event whose address uses its value", "No Thin Air"),
    BaseRelation("data", "data dependency: a read to a later event that uses its value as data", "No Thin Air"),
    BaseRelation("ctrl", "control dependency: a read to every later event that its value may skip", "No Thin Air"),
    BaseRelation(
        "sr",
        "both events specify a scope, and each scope includes the thread of the other",
        "Morally strong operations",
        holds=_scopes_include,
        domain=_scoped,
        range=_scoped,
        kind=lambda p: (scope_of(p.label), isinstance(p.label, Signal), p.thread, p.seat),
    ),
    BaseRelation(
        "sri",
        "as sr, with every signal taken to be at the thread that issued it",
        "Scope",
        holds=_issuers_include,
        domain=_scoped,
        range=_scoped,
        kind=lambda p: (scope_of(p.label), p.thread, p.place),
    ),
    BaseRelation("scta", "events of threads in one CTA", "Scope", key=lambda p: p.place and p.place.cta_id),
    BaseRelation("scluster", "events of threads in one cluster", "Scope", key=lambda p: p.place and p.place.cluster_id),
    BaseRelation(
        "swarpgroup",
        "events of warps in one warpgroup: four warps of a CTA that are numbered one after the other",
        "Warpgroup",
        key=lambda p: None if p.place is None or p.place.warp is None else (p.place.cta_id, p.place.warp // 4),
    ),
    BaseRelation(
        "sgpu", "events of threads on one GPU", "Scope", key=lambda p: None if p.place is None else p.place.gpu
    ),
    BaseRelation(
        "syncbar", "arrive half to wait half of one barrier generation, of any threads", "Memory synchronization"
    ),
    BaseRelation("samegen", "arrive halves of one barrier generation", "bar, barrier"),
    BaseRelation("genbefore", "arrive halves of a generation of a barrier to those of later ones", "bar, barrier"),
    BaseRelation(
        "barmix",
        "arrive halves on one barrier that ask for different counts, or of which only one belongs to a .red",
        "bar, barrier",
    ),
    BaseRelation(
        "sync_fence",
        "Fence-SC order: a strict partial order on fence.sc that relates every pair whose scopes include each other",
        "Fence-SC Order",
    ),
    BaseRelation(
        "iss",
        "an asynchronous instruction to its asynchronous events",
        "Asynchronous Operations",
        key=lambda p: p.issue if p.issue is not None else p.event,
        holds=lambda a, b: a.issue is None and b.issue is not None,
        in_label=_nothing,
    ),
    BaseRelation(
        "compl", "an asynchronous event to the signal or wait that tells of its end", "Asynchronous Operations"
    ),
    BaseRelation(
        "complwg",
        "reads of wgmma by the other warps of a warpgroup to a wgmma.wait_group that covers the same instruction",
        "Warpgroup",
    ),
    BaseRelation("mbar", "the total order of the updates of one mbarrier object", "mbarrier"),
    BaseRelation(
        "mbarobs", "an update of an mbarrier object to a test that returned true and saw its phase end", "mbarrier"
    ),
    BaseRelation("mbarseen", "the same, whatever the test returned", "mbarrier"),
    BaseRelation("mbarfr", "a test of an mbarrier object to an update made after it", "mbarrier"),
    BaseRelation(
        "mbarnext",
        "a test that returned true to the updates made in the phase that it saw as the current one",
        "Primary phase",
    ),
    BaseRelation(
        "mbarended",
        "an update of an mbarrier object to a test that returned true and saw its phase as the last one that ended",
        "Tracking successful completion of an operation using the mbarrier object",
    ),
    BaseRelation(
        "samebar",
        "operations on one mbarrier object, and accesses to its memory with them",
        "mbarrier",
        key=_instance,
        holds=lambda a, b: a.event != b.event and (_on_object(a.label) or _on_object(b.label)) and _overlap(a, b),
        in_label=_on_object,
    ),
    BaseRelation(
        "covers",
        "a fence to the memory events in its state space or range; without one, all",
        "membar, fence",
        holds=covers,
        domain=_is_covering,
        range=_is_covered,
    ),
    BaseRelation(
        "spcta",
        "performed in one CTA; accesses to shared memory in the CTA that owns it",
        "Async proxy",
        key=lambda p: None if p.thread is None else p.home,
    ),
    BaseRelation("scg", "tcgen05 operations of one cta_group", "tcgen05", key=lambda p: group_of(p.label)),
    BaseRelation(
        "smma",
        "tcgen05.mma with the same accumulator, shape and kind",
        "Pipelined tcgen05 Instructions",
        key=_accumulator,
    ),
    BaseRelation(
        "samealloc",
        "tcgen05.alloc and dealloc of one allocation and number of columns, both .exclusive or neither",
        "tcgen05.alloc, tcgen05.dealloc",
        key=_allocation,
    ),
    BaseRelation(
        "exits",
        "accesses and operations in the shared memory of another CTA all of whose threads exit, to these exits",
        "Distributed shared memory",
    ),
    BaseRelation(
        "foreign",
        "accesses and operations in the shared memory of another CTA, and what allocates and frees tensor memory with "
        "it, to the first events of the threads of that CTA; in a litmus test none, since all its CTAs run from the "
        "start",
        "Distributed shared memory; tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
    ),
    BaseRelation(
        "ctaends",
        "events to the ends of all threads of their CTA, where all of them end",
        "tcgen05.alloc, tcgen05.dealloc",
    ),
)

DECIDED = tuple(row.name for row in RELATIONS if row.key is None and row.holds is None)
"""The relations that an execution decides."""

SYMMETRIC = frozenset(row.name for row in RELATIONS if row.key is not None and row.holds is None)
"""The relations between points with the same key."""

RELATION_ROWS = {row.name: row for row in RELATIONS}

ONWARD = ("po", "compl", "complwg")
"""The relations that lead from an event to later ones: in its thread, or because its completion is signalled."""
