"""One concrete candidate execution, with every base set and relation of cat spelled out.

In: events with their static attributes, and the choices (rf, co, sync_fence, syncbar). Out: `Execution`, whose sets are
bit masks over event numbers and whose relations are lists of rows (row a has bit b set: a is related to b).
Settled here: what each base name means on concrete events. docs/executions.md defines it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.isa.memory import Location
from memmodel.litmus.syntax import Instruction
from memmodel.ptx import Place, Scope, Space

Rows = list[int]
"""A relation on events 0..n-1: bit b of row a says that a is related to b."""

INITIAL_TAGS = frozenset(("IW", "W", "M", "GEN", "WEAK"))
"""The cat sets of an initial write."""


STATIC_RELATIONS = (
    *("po", "rmw", "id", "int", "ext", "loc", "vloc", "sr", "scta", "scluster", "sgpu", "addr", "data", "ctrl"),
    *("spcta", "sri", "covers", "iss", "compl", "mbar", "mbarobs", "mbarfr", "samebar", "scg", "smma"),
)
"""Base relations that no choice changes. The last eight speak of asynchronous operations, which have no events here."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What a fence is about: `what` as in `isa.ops.Cover`; for "range" the addresses from `first` to below `end`."""

    what: str
    first: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """One event. `thread` is the thread's number and `order` its place in the thread (both None for an initial write).

    `covers`: None for a fence about all memory. `address`: where a memory event's location lies.
    `addr`, `data`, `ctrl`, `rmw`: numbers (`order`) of earlier reads of the thread that it depends on so; `rmw` has at
    most one. `location`, `vaddr`, `value` are None for events that access no memory.
    """

    tags: frozenset[str]
    thread: int | None = None
    order: int | None = None
    place: Place | None = None
    scope: Scope | None = None
    location: Location | None = None
    vaddr: tuple[str, int] | None = None
    value: int | None = None
    addr: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    ctrl: tuple[int, ...] = ()
    rmw: tuple[int, ...] = ()
    covers: Covered | None = None
    address: int | None = None
    instruction: Instruction | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """Events in order (initial writes first, then thread by thread in program order) and the base relations on them."""

    events: tuple[ExecutionEvent, ...]
    sets: dict[str, int]
    relations: dict[str, Rows]


def empty(count: int) -> Rows:
    """The relation on `count` events that relates nothing."""
    return [0] * count


def rows_of(pairs: Iterable[tuple[int, int]], count: int) -> Rows:
    """Pairs of event numbers as rows."""
    rows = empty(count)
    for first, second in pairs:
        rows[first] |= 1 << second
    return rows


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set, smallest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def pairs_of(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Rows as pairs of event numbers, in order."""
    return [(first, second) for first, row in enumerate(rows) for second in bits(row)]


def base_sets(events: Sequence[ExecutionEvent]) -> dict[str, int]:
    """Every tag as the mask of the events that carry it; `_` is all of them."""
    sets: dict[str, int] = {"_": (1 << len(events)) - 1}
    for number, event in enumerate(events):
        for tag in event.tags:
            sets[tag] = sets.get(tag, 0) | 1 << number
    return sets


def static_relations(events: Sequence[ExecutionEvent]) -> dict[str, Rows]:
    """The base relations that the events decide without any choice: all but rf, co, fr, syncbar and sync_fence."""
    count = len(events)
    everything = (1 << count) - 1
    number = {(event.thread, event.order): index for index, event in enumerate(events) if event.thread is not None}
    of_thread: dict[int, int] = {}
    of_location: dict[Location, int] = {}
    of_address: dict[tuple[Location, tuple[str, int] | None], int] = {}
    for index, event in enumerate(events):
        if event.thread is not None:
            of_thread[event.thread] = of_thread.get(event.thread, 0) | 1 << index
        if event.location is not None:
            key = (event.location, event.vaddr)
            of_location[event.location] = of_location.get(event.location, 0) | 1 << index
            of_address[key] = of_address.get(key, 0) | 1 << index

    relations = {name: empty(count) for name in STATIC_RELATIONS}
    for a, event in enumerate(events):
        relations["id"][a] = 1 << a
        relations["ext"][a] = everything
        if event.location is not None:
            relations["loc"][a] = of_location[event.location]
            relations["vloc"][a] = of_address[event.location, event.vaddr]
        if event.thread is None:
            continue
        mine = of_thread[event.thread]
        relations["int"][a] = mine
        relations["ext"][a] = everything & ~mine
        relations["po"][a] = mine & ~((2 << a) - 1)
        for name, sources in (("rmw", event.rmw), ("addr", event.addr), ("data", event.data), ("ctrl", event.ctrl)):
            for source in sources:
                relations[name][number[event.thread, source]] |= 1 << a
    _add_scopes(events, relations)
    _add_places(events, relations)
    return relations


def _add_scopes(events: Sequence[ExecutionEvent], relations: dict[str, Rows]) -> None:
    """Fill sr, scta, scluster and sgpu."""
    placed = [(a, event, event.place) for a, event in enumerate(events) if event.place is not None]
    for a, left, here in placed:
        assert here is not None
        for b, right, there in placed:
            assert there is not None
            if here.shares(Scope.CTA, there):
                relations["scta"][a] |= 1 << b
            if here.shares(Scope.CLUSTER, there):
                relations["scluster"][a] |= 1 << b
            if here.shares(Scope.GPU, there):
                relations["sgpu"][a] |= 1 << b
            if left.scope is None or right.scope is None:
                continue
            if left.thread == right.thread or (here.shares(left.scope, there) and there.shares(right.scope, here)):
                relations["sr"][a] |= 1 << b


def _add_places(events: Sequence[ExecutionEvent], relations: dict[str, Rows]) -> None:
    """Fill spcta, sri and covers."""
    performed = [_performed(event) for event in events]
    for a, event in enumerate(events):
        relations["sri"][a] = relations["sr"][a]
        for b, other in enumerate(events):
            if performed[a] is not None and performed[a] == performed[b]:
                relations["spcta"][a] |= 1 << b
            if "F" in event.tags and "M" in other.tags and _covers(event, other):
                relations["covers"][a] |= 1 << b


def _performed(event: ExecutionEvent) -> tuple[object, ...] | None:
    """The CTA in which an event is performed: shared memory is accessed where it lies."""
    if event.location is not None and event.location.owner is not None:
        return event.location.owner
    return None if event.place is None else event.place.cta_id


def _covers(fence: ExecutionEvent, access: ExecutionEvent) -> bool:
    """Does the access lie in what the fence is about?"""
    covered, location = fence.covers, access.location
    if covered is None:
        return True
    assert location is not None
    if covered.what == "own-shared":
        return location.space is Space.SHARED and fence.place is not None and location.owner == fence.place.cta_id
    if covered.what == "shared":
        return location.space is Space.SHARED
    if covered.what == "global":
        return location.space not in (Space.SHARED, Space.TENSOR)
    return access.address is not None and covered.first <= access.address < covered.end


def from_reads(rf: Sequence[int], co: Sequence[int]) -> Rows:
    """fr: from a read to every write that base co puts directly after the one it reads from."""
    rows = empty(len(rf))
    for write, read in pairs_of(rf):
        rows[read] |= co[write]
    return rows
