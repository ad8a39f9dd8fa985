"""Where everything in a picture stands: a column for each lane inside the boxes of its CTA, cluster and GPU.

In: Witness, the edges to draw, phases, iterations. Out: `Picture`, in pixels. Settled here: which side of a box an
arrow leaves from is `route`'s matter, but the room for it, the gutters between columns, is made here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from memmodel.answer import ShownEvent, Witness
from memmodel.ptx.vocabulary import Place
from memmodel.report.graph import Edge
from memmodel.report.picture.lanes import Lane, heights_of, is_async, lanes_of, levels_of
from memmodel.report.picture.phases import Phase

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

PO_INSET = 15
"""How far from the left of its column program order goes down."""

MAX_LABEL = 24
"""Characters of an arrow's name on one line."""

BAND_WIDTH = 104
BAND_LINE = 14
BAND_GAP = 8

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
class PictureFrame:
    """A GPU, cluster or CTA around its threads, or the events of a lane that belong to one iteration of a loop.

    `depth` 0 is the outermost.
    """

    x: float
    y: float
    width: float
    height: float
    title: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A lane: its thread, its unit if it is not the thread's own, and where its boxes begin and end horizontally."""

    thread: str
    x: float
    right: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class PhaseBand:
    """A phase of an mbarrier object beside the events that are counted in it."""

    phase: Phase
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture without its arrows.

    `cell`: uid -> (column, row), column -1 for initial writes. `channels`: heights at which arrows may cross columns.
    """

    boxes: dict[int, NodeBox]
    cell: dict[int, tuple[int, int]]
    columns: tuple[Column, ...]
    frames: tuple[PictureFrame, ...]
    channels: tuple[float, ...]
    rows_top: float
    header: float
    bottom: float
    bands: tuple[PhaseBand, ...] = ()
    rounds: tuple[PictureFrame, ...] = ()


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


def label_lines(name: str) -> list[str]:
    """The name of an arrow, on as many lines as it needs."""
    return textwrap.wrap(name, MAX_LABEL, break_on_hyphens=False) or [name]


def label_width(name: str) -> float:
    """How wide a label is."""
    return max(map(len, label_lines(name))) * CHAR if name else 0.0


def arrange(
    witness: Witness,
    edges: Iterable[Edge],
    top: float,
    phases: Sequence[Phase] = (),
    rounds: Mapping[int, int] | None = None,
) -> Picture:
    """Place the events below `top`. The edges decide how much room there is between columns, and what stands above."""
    drawn = tuple(edges)
    lanes = _with_bands(lanes_of(witness), phases)
    rows = heights_of(lanes, drawn)
    cell = {event.uid: (c, rows[event.uid]) for c, lane in enumerate(lanes) for event in lane.events}
    initial = _initial(witness, drawn)
    cell |= {event.uid: (-1, index) for index, event in enumerate(initial)}
    texts = {event.uid: _lines(event) for event in witness.events}
    tracks = _tracks(lanes, phases, cell)
    widths = [_width(lane, texts, tracks) for lane in lanes]
    gutters = _gutters(lanes, cell, drawn)

    columns = _columns(lanes, widths, gutters)

    groups = _groups([lane.place for lane in lanes])
    depths = 1 + max((group.depth for group in groups), default=0)
    frames_top = top + (INIT_HEIGHT + 34 if initial else 0)
    header = frames_top + depths * (FRAME_TITLE + 5) + 16
    rows_top = header + 12
    natural = {uid: len(texts[uid]) * LINE + 12 for uid in rows}
    heights = [max(natural[uid] for uid in rows if rows[uid] == r) for r in range(1 + max(rows.values(), default=-1))]
    tops = [rows_top + sum(heights[:r]) + r * GAP for r in range(len(heights) + 1)]

    boxes: dict[int, NodeBox] = {}
    for column, lane in zip(columns, lanes, strict=True):
        for event in lane.events:
            r, height = rows[event.uid], natural[event.uid]
            y, width = tops[r] + (heights[r] - height) / 2, column.right - column.x
            lines, kind = texts[event.uid], kind_of(event)
            boxes[event.uid] = NodeBox(event.uid, column.x, y, width, height, lines, kind, dashed=is_async(event))
    bands = _bands(columns, tracks, boxes, tops)
    rows_bottom = max((tops[-1] - GAP, *(band.y + band.height for band in bands)))
    boxes |= _place_initial(initial, texts, boxes, drawn, top)
    frames = tuple(_frames(groups, columns, depths, frames_top, rows_bottom))
    channels = tuple(y - GAP / 2 for y in tops)
    return Picture(
        boxes, cell, tuple(columns), frames, channels, rows_top, header, rows_bottom + depths * PAD, bands,
        _rounds(lanes, boxes, rounds or {}),
    )  # fmt: skip


def _columns(lanes: Sequence[Lane], widths: Sequence[float], gutters: Sequence[float]) -> list[Column]:
    """The columns from left to right, with a gutter on each side of every one."""
    columns: list[Column] = []
    x = gutters[0]
    for lane, width, gutter in zip(lanes, widths, gutters[1:], strict=True):
        columns.append(Column(lane.thread, x, x + width, lane.unit))
        x += width + gutter
    return columns


def _frames(
    groups: Iterable[ColumnGroup], columns: Sequence[Column], depths: int, top: float, bottom: float
) -> Iterator[PictureFrame]:
    """The frames around columns that belong together, inner ones inside outer ones. `bottom`: of the lowest row."""
    for group in groups:
        around, y = (depths - group.depth) * PAD, top + group.depth * (FRAME_TITLE + 5)
        x, right = columns[group.first].x - around, columns[group.last].right + around
        yield PictureFrame(x, y, right - x, bottom + around - y, group.title, group.depth)


BANDS = "mbarriers"


def _with_bands(lanes: list[Lane], phases: Sequence[Phase]) -> list[Lane]:
    """The lanes, with one for the phases of each CTA that has some, after the CTA's last lane."""
    ids = [lane.place.cta_id for lane in lanes]
    banded: list[Lane] = []
    for index, lane in enumerate(lanes):
        banded.append(lane)
        last = index == len(lanes) - 1 or ids[index + 1] != ids[index]
        if last and any(_home(phase, ids) == ids[index] for phase in phases):
            banded.append(Lane("", BANDS, lane.place, ()))
    return banded


def _home(phase: Phase, ids: Sequence[tuple[object, ...]]) -> tuple[object, ...] | None:
    """The CTA beside which a phase is drawn: that of its object, if any of its threads are in the picture."""
    return phase.owner if phase.owner in ids else next(iter(ids), None)


Tracks = dict[int, list[list[Phase]]]
"""For the lanes with phases, what is drawn in each of their tracks, from top to bottom."""


def _tracks(lanes: Sequence[Lane], phases: Sequence[Phase], cell: Mapping[int, tuple[int, int]]) -> Tracks:
    """Phases of one lane side by side where their rows overlap."""
    ids = [lane.place.cta_id for lane in lanes]
    by_lane: Tracks = {}
    for number, lane in enumerate(lanes):
        if lane.unit != BANDS:
            continue
        mine = [phase for phase in phases if _home(phase, ids) == lane.place.cta_id]
        tracks: list[list[Phase]] = []
        for phase in sorted(mine, key=lambda item: (_span(item, cell), item.name, item.number)):
            low = _span(phase, cell)[0]
            free = next((track for track in tracks if _span(track[-1], cell)[1] < low), None)
            if free is None:
                tracks.append([phase])
            else:
                free.append(phase)
        by_lane[number] = tracks
    return by_lane


def _span(phase: Phase, cell: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """The first and the last row of a phase."""
    rows = [cell[uid][1] for uid in phase.events if uid in cell]
    return min(rows, default=0), max(rows, default=0)


def _bands(
    columns: Sequence[Column], tracks: Tracks, boxes: Mapping[int, NodeBox], tops: Sequence[float]
) -> tuple[PhaseBand, ...]:
    bands = []
    for number, lane in tracks.items():
        for index, track in enumerate(lane):
            x, least = columns[number].x + index * (BAND_WIDTH + BAND_GAP), 0.0
            for phase in track:
                mine = [boxes[uid] for uid in phase.events if uid in boxes]
                y = max(least, min((box.y for box in mine), default=tops[0]))
                needed = (2 + len(phase.counted)) * BAND_LINE + 12
                height = max(max((box.bottom for box in mine), default=y) - y, needed)
                bands.append(PhaseBand(phase, x, y, height))
                least = y + height + BAND_GAP
    return tuple(bands)


def _width(lane: Lane, texts: Mapping[int, tuple[Line, ...]], tracks: Tracks) -> float:
    """Of a lane's column."""
    if lane.unit == BANDS:
        count = max((len(rows) for rows in tracks.values()), default=1)
        return count * (BAND_WIDTH + BAND_GAP) - BAND_GAP
    needed = max((len(line.text) * CHAR + 22 for event in lane.events for line in texts[event.uid]), default=82)
    return max(needed, len(lane.title) * 8.6)


def _rounds(lanes: Sequence[Lane], boxes: Mapping[int, NodeBox], rounds: Mapping[int, int]) -> tuple[PictureFrame, ...]:
    """A frame around the events of each iteration in each lane."""
    frames = []
    for lane in lanes:
        for number, events in groupby(lane.events, key=lambda event: rounds.get(event.uid)):
            if number is not None:
                mine = [boxes[event.uid] for event in events]
                box, y = mine[0], mine[0].y - 6
                height = mine[-1].bottom + 6 - y
                frames.append(PictureFrame(box.x - 6, y, box.width + 12, height, f"iteration {number}"))
    return tuple(frames)


class ColumnGroup(NamedTuple):
    """Neighbouring columns whose threads share a GPU, a cluster or a CTA. `depth` 0 is the outermost."""

    depth: int
    first: int
    last: int
    title: str


def _groups(places: list[Place]) -> list[ColumnGroup]:
    grids = any(place.grid for place in places)
    levels = zip(*(levels_of(place, grids=grids) for place in places), strict=True)
    groups = []
    for depth, level in enumerate(level for level in levels if any(title for _, title in level)):
        for (_, title), run in groupby(range(len(level)), key=level.__getitem__):
            columns = list(run)
            if title:
                groups.append(ColumnGroup(depth, columns[0], columns[-1], title))
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
    direction = f"{head.split('.')[0]} " if event.location and event.thread else ""
    return direction + rest


def _gutters(lanes: Sequence[Lane], cell: Mapping[int, tuple[int, int]], edges: tuple[Edge, ...]) -> list[float]:
    """Widths of the free strips left of, between and right of the columns, by the arrows and labels they may carry."""
    count = len(lanes)
    load: list[list[str]] = [[] for _ in range(count + 1)]
    spans = sorted(
        (sorted(cell.get(end, (-1, 0))[0] for end in (edge.first, edge.second)), edge.name) for edge in edges
    )
    for (low, high), name in sorted(spans, key=lambda entry: entry[0][1] - entry[0][0]):
        if low < 0 or low == high:
            load[high if high < (count + 1) / 2 and high == 0 else high + 1].append(name)
            continue
        # One free strip has room for the name, the others for the line: the one that has most room anyway.
        widest = max(range(low + 1, high + 1), key=lambda gutter: max(map(label_width, load[gutter]), default=0.0))
        for gutter in range(low + 1, high + 1):
            load[gutter].append(name if gutter == widest else "")
    widths = []
    for index, names in enumerate(load):
        room = (max(map(label_width, names)) + 36 + 7 * len(names)) if names else 0.0
        outer = index in (0, count)
        if outer:
            widths.append(max(3 * PAD + MARGIN, 3 * PAD + room))
        elif lanes[index - 1].place.cta_id == lanes[index].place.cta_id:
            widths.append(max(3 * PAD, room + PAD))
        else:
            widths.append(max(6 * PAD + 22, room + 4 * PAD))
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
