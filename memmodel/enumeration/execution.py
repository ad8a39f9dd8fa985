"""One concrete candidate execution, with every base set and relation of cat spelled out.

In: events with their static attributes, and the choices (rf, co, sync_fence, syncbar). Out: `Execution`, whose sets are
bit masks over event numbers and whose relations are lists of rows (row a has bit b set: a is related to b).
Settled here: what each base name means on concrete events. docs/executions.md defines it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.enumeration.traces import Operation
from memmodel.isa.memory import Location
from memmodel.litmus.syntax import Instruction
from memmodel.ptx import Place, Scope, Space

Rows = list[int]
"""A relation on events 0..n-1: bit b of row a says that a is related to b."""

INITIAL_TAGS = frozenset(("IW", "W", "M", "GEN", "WEAK"))
"""The cat sets of an initial write."""


STATIC_RELATIONS = (
    *("po", "rmw", "id", "int", "ext", "loc", "vloc", "sr", "scta", "scluster", "sgpu", "addr", "data", "ctrl"),
    *("spcta", "sri", "covers", "iss", "compl", "samebar", "scg", "smma"),
)
"""Base relations that no choice changes."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What a fence is about: `what` as in `isa.ops.Cover`; for "range" the addresses from `first` to below `end`."""

    what: str
    first: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """One event. `thread` is the thread's number and `order` its place in the thread (both None for an initial write).

    `covers`: None for a fence about all memory. `address`: where a memory event's location lies. `seat`: for a signal,
    the CTA that its scope starts from. `addr`, `data`, `ctrl`, `rmw`, `completes`: numbers (`order`) of the thread's
    events that it depends on so, or completes; `rmw` has at most one, as has `source`, the issue of a part or signal.
    `location`, `vaddr`, `value` are None for events that access no memory.
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
    part: int | None = None
    source: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    operation: Operation | None = None
    seat: Place | None = None
    unit: int | None = None
    form: str | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """Events in order (initial writes first, then thread by thread as created) and the base relations on them."""

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
    ordered = sum(1 << index for index, event in enumerate(events) if event.part is None)
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
        if event.part is None:
            relations["po"][a] = mine & ordered & ~((2 << a) - 1)
        for name, sources in (
            *(("rmw", event.rmw), ("addr", event.addr), ("data", event.data), ("ctrl", event.ctrl)),
            *(("iss", event.source), ("compl", event.completes)),
        ):
            for source in sources:
                relations[name][number[event.thread, source]] |= 1 << a
    _add_scopes(events, relations)
    _add_places(events, relations)
    _add_pairs(events, relations)
    return relations


def _add_scopes(events: Sequence[ExecutionEvent], relations: dict[str, Rows]) -> None:
    """Fill sr, sri, scta, scluster and sgpu."""
    placed = [(a, event, event.place) for a, event in enumerate(events) if event.place is not None]
    for a, left, here in placed:
        assert here is not None
        for b, right, there in placed:
            assert there is not None
            for name, scope in (("scta", Scope.CTA), ("scluster", Scope.CLUSTER), ("sgpu", Scope.GPU)):
                if here.shares(scope, there):
                    relations[name][a] |= 1 << b
            if left.scope is None or right.scope is None:
                continue
            for name, mine, other in (("sri", here, there), ("sr", left.seat or here, right.seat or there)):
                if left.thread == right.thread or (mine.shares(left.scope, other) and other.shares(right.scope, mine)):
                    relations[name][a] |= 1 << b


def _add_places(events: Sequence[ExecutionEvent], relations: dict[str, Rows]) -> None:
    """Fill spcta and covers."""
    performed = [_performed(event) for event in events]
    for a, event in enumerate(events):
        about = "F" in event.tags or event.covers is not None
        for b, other in enumerate(events):
            if performed[a] is not None and performed[a] == performed[b]:
                relations["spcta"][a] |= 1 << b
            if about and _covers(event, other):
                relations["covers"][a] |= 1 << b


def _add_pairs(events: Sequence[ExecutionEvent], relations: dict[str, Rows]) -> None:
    """Fill samebar, scg and smma."""
    places = [event.location if event.operation is None else event.operation.object for event in events]
    for a, event in enumerate(events):
        for b, other in enumerate(events):
            on_object = event.operation is not None or other.operation is not None
            if a != b and on_object and places[a] is not None and places[a] == places[b]:
                relations["samebar"][a] |= 1 << b
            if event.unit is not None and event.unit == other.unit:
                relations["scg"][a] |= 1 << b
            both_accumulate = {"MMA", "TMEM"} <= event.tags & other.tags and event.form is not None
            if both_accumulate and event.form == other.form and event.location == other.location:
                relations["smma"][a] |= 1 << b


def _performed(event: ExecutionEvent) -> tuple[object, ...] | None:
    """The CTA in which an event is performed: shared memory, and an object in it, is accessed where it lies."""
    location = event.location if event.operation is None else event.operation.object
    if location is not None and location.space is Space.SHARED:
        return location.owner
    return None if event.place is None else event.place.cta_id


def _covers(fence: ExecutionEvent, access: ExecutionEvent) -> bool:
    """Is the fence about this event: a memory event in its state space or range, or an init that it covers?"""
    covered, location = fence.covers, access.location
    if covered is not None and covered.what == "init":
        earlier = access.thread == fence.thread and (access.order or 0) < (fence.order or 0)
        return "MBINIT" in access.tags and earlier
    if "M" not in access.tags or location is None:
        return False
    if covered is None:
        return True
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
