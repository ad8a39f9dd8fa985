"""The rooms of memmodel as a picture: boxes in layers, an arrow from a room to each room that it imports.

In: the rooms, who imports whom, the group of each room. Out: SVG text. Settled here: an import that others imply (A
imports B, B imports C, so an arrow from A to C adds nothing) is not drawn; a room stands right below the lowest room
that imports it; the order within a layer is chosen so that few arrows cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from statistics import mean

import networkx

HEIGHT, GAP, LAYER, MARGIN = 30, 14, 62, 24
"""Of a box; between two boxes; from one layer to the next; around everything."""

THREAD = 10
"""The width of a place where an arrow passes a layer."""

SWEEPS = 24
"""Downwards and upwards, to order the layers."""

LEANING, MOVES = 20, 60
"""The first moves of places are towards the layer moved before, the others towards both neighbouring layers."""

COLORS = ("#e8eef9", "#e6f4ea", "#fdf1dc", "#f7e8f3", "#e3f3f5", "#fbe9e7", "#efebe4")
EDGES = ("#4a6da7", "#3c8d55", "#b7791f", "#a0468a", "#2a7f8c", "#b5483a", "#7a6a50")

Imports = Mapping[str, frozenset[str]]


@dataclass
class Drawing:
    """Layers from the top. A place in a layer is a room, or one at which an arrow passes the layer."""

    layers: list[list[str]]
    above: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    below: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    arrows: list[list[str]] = field(default_factory=list)
    x: dict[str, float] = field(default_factory=dict)


def width(place: str) -> float:
    return THREAD if " -> " in place else 8.4 * len(place) + 22


def needed(imports: Imports) -> Imports:
    """The imports that no chain of others implies."""
    graph = networkx.DiGraph([(room, other) for room, others in imports.items() for other in others])
    reduced = networkx.transitive_reduction(graph)
    return {room: frozenset(reduced.successors(room)) if room in reduced else frozenset() for room in imports}


def layered(imports: Imports) -> Drawing:
    """Each room right below the lowest that imports it, and a place in every layer that an arrow passes."""
    users = {room: [other for other in imports if room in imports[other]] for room in imports}
    depth: dict[str, int] = {}
    for room in networkx.topological_sort(networkx.DiGraph([(a, b) for a in imports for b in imports[a]])):
        depth[room] = 1 + max((depth[user] for user in users[room]), default=-1)
    drawing = Drawing([[] for _ in range(1 + max(depth.values()))])
    for room in imports:
        drawing.layers[depth[room]].append(room)
    for room in imports:
        for other in sorted(imports[room]):
            passes = [f"{room} -> {other} {layer}" for layer in range(depth[room] + 1, depth[other])]
            for layer, place in enumerate(passes, depth[room] + 1):
                drawing.layers[layer].append(place)
            arrow = [room, *passes, other]
            drawing.arrows.append(arrow)
            for upper, lower in pairwise(arrow):
                drawing.below[upper].append(lower)
                drawing.above[lower].append(upper)
    return drawing


def crossings(drawing: Drawing) -> int:
    total = 0
    for upper, lower in pairwise(drawing.layers):
        at = {place: number for number, place in enumerate(lower)}
        ends = [at[other] for place in upper for other in sorted(drawing.below[place], key=at.__getitem__)]
        total += sum(end > later for number, end in enumerate(ends) for later in ends[number + 1 :])
    return total


def untangled(drawing: Drawing) -> None:
    """Sort each layer by where the neighbours of its places are, downwards and upwards in turn; keep the best order."""

    def along(layer: list[str]) -> dict[str, float]:
        return {place: number / max(1, len(layer) - 1) for number, place in enumerate(layer)}

    def sort(layer: list[str], beside: list[str], neighbours: dict[str, list[str]]) -> None:
        at, own = along(beside), along(layer)
        layer.sort(key=lambda place: mean([at[other] for other in neighbours[place]] or [own[place]]))

    best, least = [list(layer) for layer in drawing.layers], crossings(drawing)
    for sweep in range(SWEEPS):
        if sweep % 2 == 0:
            for upper, lower in pairwise(drawing.layers):
                sort(lower, upper, drawing.above)
        else:
            for lower, upper in pairwise(reversed(drawing.layers)):
                sort(upper, lower, drawing.below)
        if (now := crossings(drawing)) < least:
            best, least = [list(layer) for layer in drawing.layers], now
    drawing.layers = best


def spread(layer: list[str], wanted: dict[str, float]) -> dict[str, float]:
    """Places in their order and apart, as near as possible to where they are wanted; those that collide are a block."""
    blocks: list[tuple[float, int, list[str]]] = []  # the sum of the left ends that its places want, their number, them
    for place in layer:
        total, count, members = wanted[place] - width(place) / 2, 1, [place]
        while blocks:
            before, many, others = blocks[-1]
            length = sum(width(other) + GAP for other in others)
            if before / many + length <= total / count:
                break
            blocks.pop()
            total, count, members = before + total - length * count, many + count, [*others, *members]
        blocks.append((total, count, members))
    centres = {}
    for total, count, members in blocks:
        left = total / count
        for place in members:
            centres[place] = left + width(place) / 2
            left += width(place) + GAP
    return centres


def placed(drawing: Drawing) -> None:
    """Centres of places: each near the middle of its neighbours."""
    for layer in drawing.layers:
        drawing.x.update(spread(layer, dict.fromkeys(layer, 0.0)))
    for move in range(MOVES):
        down = move % 2 == 0
        for layer in drawing.layers if down else reversed(drawing.layers):
            wanted = {}
            for place in layer:
                near = drawing.above[place] + drawing.below[place]
                if move < LEANING:
                    near = (drawing.above if down else drawing.below)[place]
                wanted[place] = mean([drawing.x[other] for other in near] or [drawing.x[place]])
            drawing.x.update(spread(layer, wanted))


def curve(places: list[tuple[float, float]], number: int) -> str:
    """An arrow from the foot of a box to the head of another. It passes a layer upright, and so beside its boxes."""
    points = [(x, y + down) for x, y in places for down in (0, HEIGHT)][1:-1]
    path = f"M{points[0][0]:.0f},{points[0][1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        middle = (ay + by) / 2
        path += f" C{ax:.0f},{middle:.0f} {bx:.0f},{middle:.0f} {bx:.0f},{by:.0f}"
    look = f'fill="none" stroke="{EDGES[number]}" stroke-opacity="0.7"'
    return f'<path d="{path}" {look} marker-end="url(#end{number})"/>'


def box(left: float, top: float, size: tuple[float, float], number: int) -> str:
    wide, high = size
    look = f'rx="6" fill="{COLORS[number]}" stroke="{EDGES[number]}"'
    return f'<rect x="{left:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{high:.0f}" {look}/>'


def shapes(drawing: Drawing, number: Mapping[str, int]) -> Iterator[str]:
    """The arrows, then the boxes on top of them. `number`: of a room's colour."""
    left = min(drawing.x[place] - width(place) / 2 for layer in drawing.layers for place in layer)
    x = {place: at - left + MARGIN for place, at in drawing.x.items()}
    y = {place: MARGIN + LAYER * depth for depth, layer in enumerate(drawing.layers) for place in layer}
    for arrow in drawing.arrows:
        yield curve([(x[place], y[place]) for place in arrow], number[arrow[0]])
    for room in number:
        yield box(x[room] - width(room) / 2, y[room], (width(room), HEIGHT), number[room])
        yield f'<text x="{x[room]:.0f}" y="{y[room] + 20}" text-anchor="middle">{escape(room)}</text>'


def picture(rooms: tuple[str, ...], imports: Imports, group: Mapping[str, str]) -> str:
    drawing = layered(needed({room: imports[room] for room in reversed(rooms)}))
    untangled(drawing)
    placed(drawing)
    ends = [
        drawing.x[place] + side * width(place) / 2 for layer in drawing.layers for place in layer for side in (-1, 1)
    ]
    wide = max(ends) - min(ends) + 2 * MARGIN
    legend = MARGIN + LAYER * len(drawing.layers)
    groups = list(dict.fromkeys(group[room] for room in rooms))
    color = {name: number % len(COLORS) for number, name in enumerate(groups)}
    high = legend + 26 * ((len(groups) + 3) // 4) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}"'
        ' font-family="ui-monospace, monospace" font-size="14">',
        "<defs>",
        *(
            f'<marker id="end{number}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            f' orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{stroke}"/></marker>'
            for number, stroke in enumerate(EDGES)
        ),
        "</defs>",
        f'<rect width="{wide:.0f}" height="{high}" fill="#ffffff"/>',
        *shapes(drawing, {room: color[group[room]] for room in rooms}),
    ]
    for index, name in enumerate(groups):
        left, top = MARGIN + (index % 4) * (wide - 2 * MARGIN) / 4, legend + 26 * (index // 4)
        words = f'x="{left + 24:.0f}" y="{top + 13}" font-family="system-ui, sans-serif"'
        lines += [box(left, top, (16, 16), color[name]), f"<text {words}>{escape(name)}</text>"]
    return "\n".join([*lines, "</svg>"]) + "\n"
