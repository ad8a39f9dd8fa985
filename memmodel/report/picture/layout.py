"""Where everything in a picture stands: a column per thread inside the boxes of its CTA, cluster and GPU.

In: Witness and the edges to draw. Out: `Layout`, in pixels. Settled here: which side of a box an arrow leaves from is
`route`'s matter, but the room for it, the gutters between columns, is made here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Sequence

from memmodel.answer import ShownEvent, Witness
from memmodel.base.classes import dataclass
from memmodel.ptx import Place
from memmodel.report.graph import Edge

CHAR = 7.5
"""Width of a character of the 12 px monospace font; a little generous, fonts differ."""

LINE = 15
MARGIN = 26
GAP = 40  # free height between two rows, where arrows that cross columns pass
PAD = 13  # between a frame and what is in it
FRAME_TITLE = 19
INIT_HEIGHT = 26
MAX_TEXT = 30
"""Characters of one line in a box; the operands of a longer instruction take a line of their own."""

INDENT = 30
"""How far an asynchronous event stands in from its thread's own; program order passes it on the left."""

MAX_NAME = 36
"""Characters of an instruction's name on one line; a longer one takes two lines."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line in a box; faint for what was observed rather than written."""

    text: str
    faint: bool = False


@dataclass(frozen=True, slots=True)
class NodeBox:
    """An event: top left corner, size, its lines of text, and what it is (read, write, fence, init, other).

    `dashed`: it is asynchronous, outside of program order.
    """

    uid: int
    x: float
    y: float
    width: float
    height: float
    lines: tuple[Line, ...]
    kind: str
    dashed: bool = False

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class ThreadFrame:
    """A GPU, cluster or CTA around its threads. `depth` 0 is the outermost."""

    x: float
    y: float
    width: float
    height: float
    title: str
    depth: int


@dataclass(frozen=True, slots=True)
class Column:
    """A thread: its name, and where its boxes begin and end horizontally."""

    thread: str
    x: float
    right: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture without its arrows.

    `cell`: uid -> (column, row), column -1 for initial writes. `channels`: heights at which arrows may cross columns.
    """

    boxes: dict[int, NodeBox]
    cell: dict[int, tuple[int, int]]
    columns: tuple[Column, ...]
    frames: tuple[ThreadFrame, ...]
    channels: tuple[float, ...]
    rows_top: float
    header: float
    bottom: float


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """The text on one line, cut with an ellipsis when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def kind_of(event: ShownEvent) -> str:
    """What an event is, for its colour."""
    if event.thread is None:
        return "init"
    for tag, kind in (("R", "read"), ("W", "write"), ("F", "fence")):
        if tag in event.tags:
            return kind
    return "other"


def arrange(witness: Witness, edges: Iterable[Edge], top: float) -> Picture:
    """Place the events below `top`; the edges only decide how much room there is between columns."""
    drawn = tuple(edges)
    threads = _threads(witness)
    rows = {name: _rows(witness, name) for name in threads}
    cell = {event.uid: (c, r) for c, name in enumerate(threads) for r, event in enumerate(rows[name])}
    initial = _initial(witness, drawn)
    cell |= {event.uid: (-1, index) for index, event in enumerate(initial)}
    texts = {event.uid: _lines(event) for event in witness.events}
    widths = [
        max((len(line.text) * CHAR + 22 + _indent(e) for e in rows[name] for line in texts[e.uid]), default=82)
        for name in threads
    ]
    gutters = _gutters(len(threads), cell, drawn)

    columns: list[Column] = []
    x = gutters[0]
    for name, width, gutter in zip(threads, widths, gutters[1:], strict=True):
        columns.append(Column(name, x, x + width))
        x += width + gutter

    places = [next(iter(rows[name])).place or Place() for name in threads]
    groups = _groups(places)
    depths = 1 + max((depth for depth, *_ in groups), default=0)
    frames_top = top + (INIT_HEIGHT + 34 if initial else 0)
    header = frames_top + depths * (FRAME_TITLE + 5) + 16
    rows_top = header + 12
    count = max((len(rows[name]) for name in threads), default=0)
    depth_of = [max(len(texts[rows[n][r].uid]) for n in threads if r < len(rows[n])) for r in range(count)]
    heights = [lines * LINE + 12 for lines in depth_of]
    tops = [rows_top + sum(heights[:r]) + r * GAP for r in range(count + 1)]
    rows_bottom = tops[-1] - GAP

    boxes: dict[int, NodeBox] = {}
    for c, name in enumerate(threads):
        for r, event in enumerate(rows[name]):
            inward = _indent(event)
            x, width = columns[c].x + inward, widths[c] - inward
            lines, kind = texts[event.uid], kind_of(event)
            boxes[event.uid] = NodeBox(event.uid, x, tops[r], width, heights[r], lines, kind, dashed=inward > 0)
    boxes |= _place_initial(initial, texts, boxes, drawn, top)
    bottom = rows_bottom + depths * PAD
    frames = tuple(
        ThreadFrame(
            columns[first].x - (depths - depth) * PAD,
            frames_top + depth * (FRAME_TITLE + 5),
            columns[last].right - columns[first].x + 2 * (depths - depth) * PAD,
            rows_bottom + (depths - depth) * PAD - frames_top - depth * (FRAME_TITLE + 5),
            title,
            depth,
        )
        for depth, first, last, title in groups
    )
    channels = tuple(y - GAP / 2 for y in tops)
    return Picture(boxes, cell, tuple(columns), frames, channels, rows_top, header, bottom)


def is_async(event: ShownEvent) -> bool:
    """Does the event stand outside of program order?"""
    return "ASYNC" in event.tags


def _indent(event: ShownEvent) -> int:
    return INDENT if is_async(event) else 0


def _rows(witness: Witness, thread: str) -> list[ShownEvent]:
    """The events of a thread from top to bottom, asynchronous ones below the instruction that issued them."""
    mine = [event for event in witness.events if event.thread == thread]
    place = {event.uid: index for index, event in enumerate(mine)}
    issue = {second: first for first, second in witness.edges.get("iss", ()) if first in place}
    return sorted(
        mine, key=lambda event: (place[issue.get(event.uid, event.uid)], event.uid in issue, place[event.uid])
    )


def _threads(witness: Witness) -> list[str]:
    """Thread names, those of one CTA, cluster and GPU next to each other, otherwise as they come."""
    place: dict[str, Place] = {}
    for event in witness.events:
        if event.thread is not None:
            place.setdefault(event.thread, event.place or Place())
    first: dict[Hashable, int] = {}
    for index, where in enumerate(place.values()):
        for key in (("gpu", where.gpu), ("grid", where.grid_id), ("cluster", where.cluster_id), ("cta", where.cta_id)):
            first.setdefault(key, index)
    return sorted(
        place,
        key=lambda name: (
            first["gpu", place[name].gpu],
            first["grid", place[name].grid_id],
            first["cluster", place[name].cluster_id],
            first["cta", place[name].cta_id],
        ),
    )


def _groups(places: list[Place]) -> list[tuple[int, int, int, str]]:
    """Runs of columns that share a GPU, cluster or CTA: depth, first and last column, title."""
    levels: list[tuple[Sequence[Hashable], list[str]]] = [([p.gpu for p in places], [f"GPU {p.gpu}" for p in places])]
    if any(p.grid for p in places):
        levels.append(([p.grid_id for p in places], [f"grid {p.grid}" for p in places]))
    if any(p.cluster is not None for p in places):
        titles = ["" if p.cluster is None else f"cluster {p.cluster}" for p in places]
        levels.append(([p.cluster_id for p in places], titles))
    levels.append(([p.cta_id for p in places], [f"CTA {p.cta}" for p in places]))
    groups = []
    for depth, (keys, titles) in enumerate(levels):
        start = 0
        for end in range(1, len(keys) + 1):
            if end == len(keys) or keys[end] != keys[start]:
                if titles[start]:
                    groups.append((depth, start, end - 1, titles[start]))
                start = end
    return groups


def _initial(witness: Witness, edges: tuple[Edge, ...]) -> list[ShownEvent]:
    """The initial writes that an arrow touches."""
    touched = {uid for edge in edges for uid in (edge.first, edge.second)}
    return [event for event in witness.events if event.thread is None and event.uid in touched]


def _lines(event: ShownEvent) -> tuple[Line, ...]:
    if event.thread is None:
        return (Line(shorten(f"init {_effect(event)}")),)
    if event.span is None or is_async(event):
        first, *rest = textwrap.wrap(_effect(event) if event.location else event.text, MAX_NAME)
        return (Line(f"{event.label}: {first}"), *(Line(f"   {line}") for line in rest))
    spelled, effect = _spelled(event.span.text.strip().rstrip(";")), textwrap.wrap(_effect(event), MAX_NAME)
    lines = [Line(f"{event.label}: {spelled[0]}"), *(Line(f"   {line}") for line in spelled[1:])]
    return (*lines, *(Line(f"   {line}", faint=True) for line in effect))


def _spelled(text: str) -> list[str]:
    """An instruction on at most three lines: broken before its operands, and at a dot if its name is long."""
    line = " ".join(text.split())
    if len(line) <= MAX_TEXT:
        return [line]
    name, _, operands = line.partition(" ")
    lines = [name]
    if len(name) > MAX_NAME:
        cut = name.rfind(".", 1, MAX_NAME)
        cut = cut if cut > 0 else MAX_NAME
        lines = [name[:cut], shorten(name[cut:])]
    return [*lines, shorten(operands)] if operands else lines


def _effect(event: ShownEvent) -> str:
    """`R x = 1`: what the instruction's own text does not say. Nothing for a fence."""
    head, _, rest = event.text.partition(" ")
    access = f"{head.split('.')[0]} " if event.location and event.thread else ""
    return access + rest


def _gutters(count: int, cell: dict[int, tuple[int, int]], edges: tuple[Edge, ...]) -> list[float]:
    """Widths of the free strips left of, between and right of the columns, by the arrows and labels they may carry."""
    load: list[list[str]] = [[] for _ in range(count + 1)]
    for edge in edges:
        first, second = cell.get(edge.first, (-1, 0))[0], cell.get(edge.second, (-1, 0))[0]
        low, high = min(first, second), max(first, second)
        if low < 0 or low == high:
            load[high if high < (count + 1) / 2 and high == 0 else high + 1].append(edge.name)
        else:
            for gutter in range(low + 1, high + 1):
                load[gutter].append(edge.name)
    widths = []
    for index, names in enumerate(load):
        room = (max(map(len, names)) * CHAR + 44 + 7 * len(names)) if names else 0.0
        outer = index in (0, count)
        least = 3 * PAD + MARGIN if outer else 6 * PAD + 22
        widths.append(max(least, (3 * PAD + room) if outer else room + 4 * PAD))
    return widths


def _place_initial(
    initial: list[ShownEvent],
    texts: dict[int, tuple[Line, ...]],
    boxes: dict[int, NodeBox],
    edges: tuple[Edge, ...],
    top: float,
) -> dict[int, NodeBox]:
    """Initial writes in a strip at the top, each as near as possible to the events that it is connected to."""
    wanted = []
    for index, event in enumerate(initial):
        ends = [boxes[e.second] for e in edges if e.first == event.uid and e.second in boxes]
        centre = sum(b.x + b.width / 2 for b in ends) / max(1, len(ends))
        wanted.append((centre, index, event))
    placed: dict[int, NodeBox] = {}
    least = float(MARGIN)
    for centre, _, event in sorted(wanted):
        width = len(texts[event.uid][0].text) * CHAR + 18
        x = max(least, centre - width / 2)
        placed[event.uid] = NodeBox(event.uid, x, top, width, INIT_HEIGHT, texts[event.uid], "init")
        least = x + width + 18
    return placed
