"""Which lane of a picture an event stands in, in which row, and in which iteration of a loop.

In: Witness, edges. Out: `Lane`s from left to right, rows by event. Settled here: what a copy engine or a tensor core
does stands in a lane of its own beside the thread that issued it; order goes down, or straight across between lanes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

from memmodel.answer import ShownEvent, Witness
from memmodel.base.graphs import reached
from memmodel.ptx.vocabulary import Place
from memmodel.report.graph import Edge

UNITS = (
    ("cp.async.bulk", "TMA"),
    ("cp.reduce.async.bulk", "TMA"),
    ("tcgen05.ld", "tensor memory"),
    ("tcgen05.st", "tensor memory"),
    ("tcgen05", "tensor core"),
    ("wgmma", "tensor core"),
    ("cp.async", "asynchronous copies"),
    ("st.async", "asynchronous stores"),
    ("red.async", "asynchronous stores"),
    ("clusterlaunchcontrol", "launch control"),
)
"""Who performs an asynchronous instruction, by how its name begins; the first that fits."""

_DOWN = (("iss", "compl", "complwg"), ("mbarobs", "sync"), ("stopped",), ("rf",))
"""Relations that go down in a picture where they can, the most important first."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The events of a thread, or those of one unit that the thread has work for, from top to bottom."""

    thread: str
    unit: str
    place: Place
    events: tuple[ShownEvent, ...]

    @property
    def title(self) -> str:
        return self.unit or self.thread


def is_async(event: ShownEvent) -> bool:
    """True if the event is outside program order."""
    return "ASYNC" in event.tags


def lanes_of(witness: Witness) -> list[Lane]:
    """Every thread with its units to the right of it; threads of one CTA, cluster and GPU stand side by side."""
    issuer = {second: first for first, second in witness.edges.get("iss", ())}
    number = {event.uid: index for index, event in enumerate(witness.events)}
    lanes: list[Lane] = []
    for name in _threads(witness):
        mine = [event for event in witness.events if event.thread == name]
        place = mine[0].place or Place()
        parts: dict[str, list[ShownEvent]] = {"": []}
        for event in sorted(
            mine, key=lambda shown: (number.get(issuer.get(shown.uid, shown.uid), 0), number[shown.uid])
        ):
            parts.setdefault(unit_of(event) if is_async(event) else "", []).append(event)
        lanes += (Lane(name, unit, place, tuple(events)) for unit, events in parts.items() if events or not unit)
    return lanes


def unit_of(event: ShownEvent) -> str:
    """Who performs an asynchronous event."""
    text = event.span.text if event.span is not None else event.text
    words = re.sub(r"^\s*@!?%?\w+\s+", "", text).split() or [""]
    head = words[0].removeprefix("R.").removeprefix("W.")
    return next((unit for begin, unit in UNITS if head.startswith(begin)), "asynchronous")


def heights_of(lanes: Sequence[Lane], edges: Iterable[Edge]) -> dict[int, int]:
    """The row of every event: below the one before it in its lane, and not above what comes before it elsewhere."""
    after: dict[int, list[tuple[int, int]]] = {event.uid: [] for lane in lanes for event in lane.events}
    for lane in lanes:
        for event, next_event in pairwise(lane.events):
            after[event.uid].append((next_event.uid, 1))
    for first, second in _downward(edges):
        if first in after and second in after and first not in reached((second,), lambda uid: dict(after[uid])):
            after[first].append((second, 0))
    rows = dict.fromkeys(after, 0)
    above = {uid: [first for first, following in after.items() if uid in dict(following)] for uid in after}
    for uid in TopologicalSorter(above).static_order():
        for other, step in after[uid]:
            rows[other] = max(rows[other], rows[uid] + step)
    return rows


def _downward(edges: Iterable[Edge]) -> list[tuple[int, int]]:
    """The pairs of edges that go down in a picture, the most important first."""
    ranked: list[tuple[int, int, int]] = []
    for edge in edges:
        rank = next((n for n, words in enumerate(_DOWN) if any(word in edge.name for word in words)), None)
        if rank is not None:
            ranked.append((rank, edge.first, edge.second))
    return [(first, second) for _, first, second in sorted(ranked)]


def iterations(witness: Witness) -> dict[int, int]:
    """For the events of loops, in which round they are, the first being 1; a loop within a loop is not told apart.

    A round begins where a thread goes back in the text of the test. What spins in place makes no rounds.
    """
    rounds: dict[int, int] = {}
    issuer = {second: first for first, second in witness.edges.get("iss", ())}
    for name in _threads(witness):
        mine = [
            event for event in witness.events if event.thread == name and event.span is not None and not is_async(event)
        ]
        starts = [event.span.start for event in mine if event.span is not None]
        loops = [(second, first) for first, second in pairwise(starts) if second < first]
        for low, high in _merged(loops):
            number = 1
            for index, start in enumerate(starts):
                if low <= start <= high:
                    number += index > 0 and start < starts[index - 1] <= high
                    rounds[mine[index].uid] = number
    return rounds | {uid: rounds[first] for uid, first in issuer.items() if first in rounds}


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of which none overlaps another."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _threads(witness: Witness) -> list[str]:
    """Thread names, those of one CTA, cluster and GPU next to each other, otherwise as they come."""
    levels: dict[str, list[Hashable]] = {}
    for event in witness.events:
        if event.thread is not None and event.thread not in levels:
            levels[event.thread] = [key for key, _ in levels_of(event.place or Place())]
    first: dict[Hashable, int] = {}
    for index, keys in enumerate(levels.values()):
        for key in enumerate(keys):
            first.setdefault(key, index)
    return sorted(levels, key=lambda name: [first[key] for key in enumerate(levels[name])])


def levels_of(place: Place, *, grids: bool = False) -> tuple[tuple[Hashable, str], ...]:
    """The GPU, grid, cluster and CTA of a place, each with its title; without one it is not shown.

    `grids`: the first grid of a GPU has a title, too.
    """
    grid = f"grid {place.grid}" if place.grid or grids else ""
    cluster = "" if place.cluster is None else f"cluster {place.cluster}"
    return (
        (place.gpu, f"GPU {place.gpu}"),
        (place.grid_id, grid),
        (place.cluster_id, cluster),
        (place.cta_id, f"CTA {place.cta}"),
    )
