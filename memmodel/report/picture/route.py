"""The arrows of a picture: curves through the free strips between boxes, and labels where there is room.

In: Picture and edges. Out: `Route` for each edge, a chain of cubic curves with the place of its label. Settled here: no
curve crosses a box except where it starts and ends, and labels avoid boxes first, each other second, curves third.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from memmodel.report.graph import Edge
from memmodel.report.picture.layout import BAND_WIDTH, NodeBox, Picture, label_lines, label_width

Point = tuple[float, float]
Cubic = tuple[Point, Point, Point, Point]
Size = tuple[float, float]

LABEL_HEIGHT = 15.0
LANES = (0, -6, 6, -12, 12)
"""Arrows that cross columns at the same height lie this far beside each other."""

SAMPLES = 14
"""Points of each cubic that label placement looks at."""


@dataclass(frozen=True, slots=True)
class Route:
    """An edge with its curve and the centre of its label."""

    edge: Edge
    curve: tuple[Cubic, ...]
    label: Point


def routes(layout: Picture, edges: tuple[Edge, ...]) -> tuple[Route, ...]:
    """Route all edges whose ends are in the picture."""
    drawn = [edge for edge in edges if edge.first in layout.boxes and edge.second in layout.boxes]
    router = _Router(layout, drawn)
    curves = [router.curve(index) for index in range(len(drawn))]
    return _label(layout, drawn, curves)


def sample(curve: tuple[Cubic, ...]) -> list[Point]:
    """Points along a curve, ends included."""
    return [_at(cubic, step / SAMPLES) for cubic in curve for step in range(SAMPLES + 1)]


class _Router:
    """Decides for every edge which side of its boxes it uses, spreads the ends over that side, and draws the curve."""

    def __init__(self, layout: Picture, edges: list[Edge]) -> None:
        self.layout = layout
        self.edges = edges
        self.tracks: Counter[object] = Counter()
        self.sides = self._sides()
        self.ports = self._ports()

    def _sides(self) -> list[tuple[str, str]]:
        load: Counter[int] = Counter()
        for edge in self.edges:
            for gutter in self._between(edge):
                load[gutter] += 1
        sides = []
        for edge in self.edges:
            (first, _), (second, row) = self.layout.cell[edge.first], self.layout.cell[edge.second]
            if first < 0:
                sides.append(("bottom", "top" if row == 0 else self._outer_side(second, load)))
            elif first == second:
                side = self._outer_side(first, load)
                sides.append((side, side))
            else:
                sides.append(("right", "left") if first < second else ("left", "right"))
        return sides

    def _between(self, edge: Edge) -> range:
        first, second = self.layout.cell[edge.first][0], self.layout.cell[edge.second][0]
        return range(min(first, second) + 1, max(first, second) + 1) if min(first, second) >= 0 else range(0)

    def _outer_side(self, column: int, load: Counter[int]) -> str:
        """The side of a column with less traffic; the outside of the picture in doubt."""
        left, right = load[column], load[column + 1]
        if left == right:
            side = "left" if column == 0 and len(self.layout.columns) > 1 else "right"
        else:
            side = "left" if left < right else "right"
        load[column + (side == "right")] += 1
        return side

    def _ports(self) -> list[tuple[Point, Point]]:
        """Both ends of every edge, spread over the sides that they share, in the order that crosses least."""
        users: dict[tuple[int, str], list[tuple[int, float, int, int, int]]] = {}
        boxes = self.layout.boxes
        for index, (edge, (leave, enter)) in enumerate(zip(self.edges, self.sides, strict=True)):
            for end, uid, side, other in ((0, edge.first, leave, edge.second), (1, edge.second, enter, edge.first)):
                far = boxes[other].x if side in ("top", "bottom") else boxes[other].middle
                key = (0, far, index)
                # Arcs on one side of a column nest. Those that lead up have the upper ports.
                if leave == enter:
                    key = (1 if far > boxes[uid].middle else -1, -far, -index if end else index)
                users.setdefault((uid, side), []).append((*key, index, end))
        ends: dict[tuple[int, int], Point] = {}
        for (uid, side), ports in users.items():
            for rank, (*_, index, end) in enumerate(sorted(ports)):
                ends[index, end] = _port(boxes[uid], side, (rank + 1) / (len(ports) + 1))
        return [(ends[index, 0], ends[index, 1]) for index in range(len(self.edges))]

    def curve(self, index: int) -> tuple[Cubic, ...]:
        edge, (start, end) = self.edges[index], self.ports[index]
        leave, enter = self.sides[index]
        first, second = self.layout.cell[edge.first][0], self.layout.cell[edge.second][0]
        if first < 0:
            return self._from_initial(start, end, second, enter)
        if first == second:
            reach = (26 + 20 * self._inside_arcs(index)) * 4 / 3
            out = reach if leave == "right" else -reach
            return ((start, (start[0] + out, start[1]), (end[0] + out, end[1]), end),)
        direct = _swing(start, end)
        if abs(first - second) == 1 or not self._hits((direct,), edge):
            return (direct,)
        return self._across(start, end, first, second)

    def _inside_arcs(self, index: int) -> int:
        """How many arcs on the same side of the same column lie within this one, each of which it passes outside."""

        def span(i: int) -> tuple[int, int]:
            a, b = self.layout.cell[self.edges[i].first][1], self.layout.cell[self.edges[i].second][1]
            return min(a, b), max(a, b)

        def key(i: int) -> tuple[int, int]:
            return span(i)[1] - span(i)[0], i

        column, side = self.layout.cell[self.edges[index].first][0], self.sides[index]
        low, high = span(index)
        return sum(
            key(other) < key(index) and span(other)[0] < high and low < span(other)[1]
            for other, edge in enumerate(self.edges)
            if self.sides[other] == side and side[0] == side[1] and self.layout.cell[edge.first][0] == column
        )

    def _from_initial(self, start: Point, end: Point, column: int, enter: str) -> tuple[Cubic, ...]:
        if enter == "top":
            half = (end[1] - start[1]) / 2
            return ((start, (start[0], start[1] + half), (end[0], end[1] - half), end),)
        outward = 1 if enter == "right" else -1
        x = end[0] + outward * (18 + 10 * self._track(("drop", column, enter)))
        top = self.layout.rows_top - 6
        half = (top - start[1]) / 2
        turn = (x, end[1] - 16)
        return (
            (start, (start[0], start[1] + half), (x, top - half), (x, top)),
            _line((x, top), turn),
            (turn, (x, end[1]), (x, end[1]), end),
        )

    def _across(self, start: Point, end: Point, first: int, second: int) -> tuple[Cubic, ...]:
        """Over the columns between, through the free height between two rows that is nearest and least used."""
        low, high = min(first, second), max(first, second)
        left, right = self.layout.columns[low + 1].x - 8, self.layout.columns[high - 1].right + 8

        def cost(height: float) -> float:
            titles = 80 if height < self.layout.rows_top else 0
            return abs(start[1] - height) + abs(end[1] - height) + 45 * self.tracks["across", height] + titles

        height = min(self.layout.channels, key=cost)
        y = height + LANES[self._track(("across", height)) % len(LANES)]
        near, far = ((left, y), (right, y)) if first < second else ((right, y), (left, y))
        return (_swing(start, near), _line(near, far), _swing(far, end))

    def _track(self, key: object) -> int:
        """The number of curves that already took this way."""
        self.tracks[key] += 1
        return self.tracks[key] - 1

    def _hits(self, curve: tuple[Cubic, ...], edge: Edge) -> bool:
        """True if a curve comes near a box other than those at its ends."""
        others = [box for uid, box in self.layout.boxes.items() if uid not in (edge.first, edge.second)]
        return any(_inside(point, box, 6) for point in sample(curve) for box in others)


def _label(layout: Picture, edges: list[Edge], curves: list[tuple[Cubic, ...]]) -> tuple[Route, ...]:
    """Give every curve its label, the shortest curves first since they have the least choice."""
    points = [sample(curve) for curve in curves]
    solid = [((b.x + b.width / 2, b.middle), (b.width + 4, b.height + 4)) for b in layout.boxes.values()]
    bands = [((b.x + BAND_WIDTH / 2, b.y + b.height / 2), (BAND_WIDTH, b.height)) for b in layout.bands]
    taken: list[tuple[Point, Size]] = []
    labels: dict[int, Point] = {}
    for index in sorted(range(len(edges)), key=lambda i: _length(points[i])):
        width, height = label_width(edges[index].name) + 6, LABEL_HEIGHT * len(label_lines(edges[index].name))
        mine = points[index]

        def cost(step: int, size: Size = (width, height), mine: list[Point] = mine, index: int = index) -> float:
            at = mine[step]
            on_boxes = sum(_overlap(at, size, where, other_size) for where, other_size in solid)
            on_bands = sum(_overlap(at, size, where, other_size) for where, other_size in bands)
            on_labels = sum(_overlap(at, size, where, other_size) for where, other_size in taken)
            others = (path for other, path in enumerate(points) if other != index)
            near = sum(_within(at, size, point) for path in others for point in path)
            off_centre = abs(step / len(mine) - 0.5)
            covered = 1e6 * on_boxes + 1e5 * on_bands + 1e4 * on_labels
            return covered + 15 * near + 60 * off_centre + 2000 * max(0.0, off_centre - 0.3)

        best = min(range(len(mine)), key=cost)
        labels[index] = mine[best]
        taken.append((mine[best], (width, height)))
    return tuple(Route(edge, curves[index], labels[index]) for index, edge in enumerate(edges))


def _port(box: NodeBox, side: str, share: float) -> Point:
    if side in ("left", "right"):
        return (box.x if side == "left" else box.right, box.y + box.height * share)
    # The top keeps its left half free for the thread's name.
    along = box.x + box.width * (0.5 + 0.5 * share if side == "top" else share)
    return (along, box.y if side == "top" else box.bottom)


def _swing(start: Point, end: Point) -> Cubic:
    """A curve that leaves and arrives horizontally."""
    half = (end[0] - start[0]) / 2
    return (start, (start[0] + half, start[1]), (end[0] - half, end[1]), end)


def _line(start: Point, end: Point) -> Cubic:
    third = ((end[0] - start[0]) / 3, (end[1] - start[1]) / 3)
    return (start, (start[0] + third[0], start[1] + third[1]), (end[0] - third[0], end[1] - third[1]), end)


def _at(cubic: Cubic, t: float) -> Point:
    a, b, c, d = cubic
    s = 1 - t
    weights = (s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t)
    x, y = (sum(w * p[axis] for w, p in zip(weights, (a, b, c, d), strict=True)) for axis in (0, 1))
    return (x, y)


def _length(points: list[Point]) -> float:
    return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(points))


def _inside(point: Point, box: NodeBox, room: float) -> bool:
    return box.x - room < point[0] < box.right + room and box.y - room < point[1] < box.bottom + room


def _overlap(at: Point, size: Size, other: Point, other_size: Size) -> float:
    """By how many pixels two centred rectangles overlap in the direction in which they overlap less."""
    across = (size[0] + other_size[0]) / 2 - abs(at[0] - other[0])
    down = (size[1] + other_size[1]) / 2 - abs(at[1] - other[1])
    return max(0.0, min(across, down))


def _within(at: Point, size: Size, point: Point) -> bool:
    return abs(at[0] - point[0]) < size[0] / 2 + 2 and abs(at[1] - point[1]) < size[1] / 2 + 2
