"""The frame of a run computes relations for many events at once: as the tables of `memmodel.base` decide them pair by
pair, on random events of every kind of label.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import cast

from helpers.examples import each_seed

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Covers,
    Family,
    Fence,
    InitialWrite,
    Issue,
    Label,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Role,
    Side,
    Signal,
    is_replicated,
)
from memmodel.base.points import Point, Range
from memmodel.base.relations import RELATION_ROWS
from memmodel.base.rows import bits
from memmodel.concrete.execution import ConcreteEvent, FixedPart
from memmodel.kernel.order.frame import _OWN, KernelFrame, covered, ends
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.memory.bytes import Cell, Instance
from memmodel.ptx.vocabulary import Place, Proxy, Scope, Sem, Space

COUNT = 60
PLACES = [Place(0, 0, 0), Place(0, 0, 0, warp=1), Place(0, 0, 1), Place(0, 1, 0), Place(0, None, 0), Place(1, 0, 0)]
"""Of the threads by number: two in one CTA, one beside it in the cluster, other clusters, another device."""
INSTANCES = [
    Instance("x", space=Space.GLOBAL),
    Instance("y", space=Space.GENERIC),
    *(Instance("s", place.cta_id, Space.SHARED) for place in (PLACES[0], PLACES[2])),
    Instance("t", PLACES[0].cta_id, Space.TENSOR),
]
CELLS = [Cell(instance, first, size) for instance in INSTANCES for first, size in ((0, 8), (4, 4), (8, 8), (2, 2))]
STRONG: tuple[Label, ...] = tuple(
    label
    for scope in (Scope.CTA, Scope.CLUSTER, Scope.GPU, Scope.SYS)
    for label in (
        Access(Side.READ, Sem.RELAXED, scope),
        Access(Side.WRITE, Sem.RELEASE, scope, rmw=True),
        Fence(Sem.ACQ_REL, scope),
        Fence(Sem.SC, scope),
        Signal(Action.ARRIVE, scope, Family.BULK),
    )
)
LABELS: tuple[Label, ...] = (
    *STRONG,
    *(Fence(Sem.ACQUIRE, Scope.CLUSTER, what) for what in Covers),
    *(ProxyFence(Proxy.ASYNC, covers=what) for what in (None, *Covers)),
    *(Access(side, proxy=proxy) for side in Side for proxy in (Proxy.GENERIC, Proxy.ASYNC, Proxy.TENSORMAP)),
    *(Mbarrier(action, Sem.RELEASE, Scope.CTA) for action in (Action.INIT, Action.ARRIVE, Action.TEST)),
    Allocates(Allocation.ALLOC, 1, 32),
    Issue(Family.BULK),
    Mark(Marker.EXIT),
    InitialWrite(),
)


def event(random: Random, number: int) -> ConcreteEvent:
    """An event as a run may have it: only memory and objects have cells, an initial write no thread."""
    label = random.choice(LABELS)
    placed = isinstance(label, Access | InitialWrite | Mbarrier | Signal)
    cell = random.choice(CELLS) if placed else None
    if isinstance(label, Mbarrier | Signal):
        cell = random.choice([cell for cell in CELLS if cell.instance.space is Space.SHARED and cell.size == 8])
    if isinstance(label, InitialWrite):
        return ConcreteEvent(Point(number, label, cell=cell, name=random.choice("xy")))
    thread = random.randrange(len(PLACES))
    order = None if isinstance(label, Signal) or random.random() < 0.1 else random.randrange(8)
    at = random.choice((0, 2, 4))
    named = Range(random.choice(INSTANCES), at, at + random.choice((2, 4, 8)))
    return ConcreteEvent(
        Point(
            number, label, thread, PLACES[thread], order, instruction=number, operation=number, cell=cell,
            name=None if cell is None else random.choice("xy"), scalar=random.choice((None, 2, 4)),
            range=named if isinstance(label, Fence | ProxyFence | Allocates) else None,
        )
    )  # fmt: skip


def frame(events: list[ConcreteEvent], pairs: tuple[tuple[int, int], ...] = ()) -> KernelFrame:
    return KernelFrame(events, {}, pairs)


@each_seed(12)
def test_relations_are_those_of_the_tables(seed: int) -> None:
    random = Random(seed)
    events = [event(random, number) for number in range(COUNT)]
    mine, tables = frame(events), frame(events)
    for name in _OWN:
        assert mine.relation(name) == FixedPart.relation(tables, name), name
        assert any(mine.relation(name)), name


@each_seed(4)
def test_further_pairs_are_at_one_location_both_ways(seed: int) -> None:
    """`vloc` and `whole` hold of them, too, where the addresses, or the sizes, are the same."""
    random = Random(seed)
    events = [event(random, number) for number in range(COUNT)]
    memory = [number for number, each in enumerate(events) if isinstance(each.label, Access)]
    pairs = tuple(tuple(random.sample(memory, 2)) for _ in range(30))
    mine, tables = frame(events, cast(tuple[tuple[int, int], ...], pairs)), frame(events)
    for name in ("loc", "vloc", "whole"):
        expected = [set(bits(row)) for row in FixedPart.relation(tables, name)]
        for first, second in pairs:
            a, b = events[first].point, events[second].point
            sizes = {a.scalar, b.scalar}
            if {
                "loc": True,
                "vloc": is_replicated(a.label) == is_replicated(b.label),
                "whole": len(sizes - {None}) < 2,
            }[name]:
                expected[first].add(second)
                expected[second].add(first)
        assert [set(bits(row)) for row in mine.relation(name)] == expected, name


def test_an_event_that_names_bytes_of_a_run_covers_what_the_run_says() -> None:
    fence = Point(0, ProxyFence(Proxy.TENSORMAP, Sem.ACQUIRE, Scope.GPU, Covers.RANGE), 0, PLACES[0], 3)
    access = Point(1, Access(Side.READ), 0, PLACES[0], 4, cell=CELLS[0])
    events = [ConcreteEvent(fence), ConcreteEvent(access)]
    assert KernelFrame(events, {0: 0b10}).relation("covers") == [0b10, 0]
    assert KernelFrame(events, {0: 0}).relation("covers") == [0, 0]
    assert set(RELATION_ROWS) > set(_OWN)


def test_what_a_run_covers() -> None:
    """An acquire fence the reads of maps that lie in its bytes; an alloc and a dealloc what is done in their memory."""
    block, other, memory = (cast(Block, SimpleNamespace()) for _ in range(3))
    column = Cell(INSTANCES[4], 0, 4)
    descriptor = Access(Side.READ, proxy=Proxy.TENSORMAP, role=Role.DESCRIPTOR)
    points = [
        *(Point(number, descriptor, 0, PLACES[0], issue=10 + number) for number in range(3)),
        *(Point(number, Access(Side.WRITE), 0, PLACES[0], issue=10 + number, cell=column) for number in (3, 4)),
        Point(5, Access(Side.WRITE), 0, PLACES[0], issue=15, cell=CELLS[0]),
    ]
    ranges = {10: (block, 0, 128), 11: (block, 128, 256), 12: (other, 0, 128)}
    owners: dict[int, tuple[object, ...]] = {13: (memory,), 14: (block,), 15: (memory,), 21: (memory,), 22: ()}
    fence, alloc = ProxyFence(Proxy.TENSORMAP, Sem.ACQUIRE, Scope.GPU), Allocates(Allocation.ALLOC, 1, 32)
    labels: dict[int, Label] = {20: fence, 23: fence, 24: fence, 21: alloc, 22: alloc}
    ranges |= {20: (block, 0, 128), 23: (block, 0, 256), 24: (block, 4, 132)}
    events = {
        number: cast(
            TraceEvent,
            SimpleNamespace(
                label=labels.get(number, Issue(Family.BULK)), range=ranges.get(number), owners=owners.get(number, ())
            ),
        )
        for number in (*range(10, 16), *range(20, 25))
    }
    assert covered(points, events) == {20: 0b001, 23: 0b011, 24: 0, 21: 0b01000, 22: 0}


def test_the_ends_of_the_threads_of_a_cta() -> None:
    """What others, or a bulk copy, do in its memory -> these ends; what others do there -> its first events."""
    mine, near, peer = PLACES[0], PLACES[1], PLACES[2]
    shared, its, outside = CELLS[8], CELLS[12], CELLS[0]
    leaves = Mark(Marker.EXIT)
    labels: list[tuple[Label, int | None, Place | None, int | None, Cell | None]] = [
        (leaves, 0, mine, 9, None),
        (leaves, 1, near, 9, None),
        (leaves, 2, peer, 9, None),
        (Access(Side.WRITE), 2, peer, 1, shared),
        (Access(Side.WRITE), 0, mine, 1, shared),
        (Access(Side.WRITE, family=Family.BULK, asynchronous=True), 0, mine, None, shared),
        (Access(Side.WRITE), 0, mine, 2, outside),
        (Signal(Action.ARRIVE, Scope.CLUSTER, Family.BULK), 2, peer, None, shared),
        (Mbarrier(Action.ARRIVE), 1, near, 3, its),
        (Allocates(Allocation.ALLOC, 1, 32), 0, mine, 4, None),
        (InitialWrite(), None, None, None, shared),
    ]
    points = [
        Point(number, label, thread, place, order, cell=cell)
        for number, (label, thread, place, order, cell) in enumerate(labels)
    ]
    threads = [
        cast(TraceThread, SimpleNamespace(place=place, ended=ended))
        for place, ended in ((mine, True), (near, True), (peer, True))
    ]
    all_ended = {name: {n: row for n, row in enumerate(rows) if row} for name, rows in ends(points, threads).items()}
    exits, first = 0b011, 1 << 4 | 1 << 8
    assert all_ended == {
        "exits": {3: exits, 5: exits, 7: exits, 8: 1 << 2},
        "foreign": {3: first, 7: first, 8: 1 << 3},
        "ctaends": {9: exits},
    }
    threads[1].ended = False  # then the CTA is still there
    rows = ends(points, threads)
    assert {n: row for n, row in enumerate(rows["exits"]) if row} == {8: 1 << 2} and not any(rows["ctaends"])
