"""Which models allow whatever others allow: an order of models, drawn.

In: models, a vocabulary, a size. Out: a networkx graph, SVG. Settled here: a model implies another if it allows no
outcome in any program up to the size that the other forbids. Models that allow the same are one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from memmodel import api
from memmodel.report.picture.svg import DARK
from memmodel.search.judging.judge import ModelJudge
from memmodel.search.programs import Ready
from memmodel.search.sketches import sketches
from memmodel.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    import networkx

_ROW, _LETTER, _LINE = 60, 8, 16


def implications(names: Sequence[str], vocabulary: Vocabulary, most: int) -> set[tuple[str, str]]:
    """Pairs (a, b): all that a allows, b allows too."""
    judge = ModelJudge([api.load(name) for name in names])
    implied = set(permutations(names, 2))
    for size in range(1, most + 1):
        for sketch in sketches(vocabulary, size):
            ready = Ready(sketch, vocabulary, most)
            judgements = judge.judge(ready)
            implied -= {
                (names[mine], names[other])
                for mine, other in permutations(range(len(names)), 2)
                if any(judgements.only(mine, other, ready.worlds).values())
            }
    return implied


def lattice(names: Sequence[str], implied: set[tuple[str, str]]) -> networkx.DiGraph:
    """The order without what follows from the rest; a node is the names of models that allow the same."""
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(implied)
    condensed = networkx.condensation(graph)
    groups = {node: tuple(sorted(data["members"])) for node, data in condensed.nodes(data=True)}
    return networkx.relabel_nodes(networkx.transitive_reduction(condensed), groups)


def lattice_svg(graph: networkx.DiGraph) -> str:
    """A line leads up to a model that allows more; a model stands one row below the lowest of those."""
    import networkx

    rows = list(networkx.topological_generations(graph.reverse()))[::-1]
    column = _LETTER * (2 + max(len(name) for names in graph for name in names))
    width = max(len(row) for row in rows) * column
    tall = max(len(names) for names in graph) * _LINE + _ROW
    height = len(rows) * tall
    at: dict[tuple[str, ...], tuple[float, float]] = {}
    for number, row in enumerate(rows):
        for place, names in enumerate(sorted(row)):
            at[names] = (width * (place + 0.5) / len(row), height - tall * (number + 0.5))
    lines = [
        f'<line x1="{at[a][0]:.0f}" y1="{at[a][1] - _LINE:.0f}" x2="{at[b][0]:.0f}" '
        f'y2="{at[b][1] + len(b) * _LINE:.0f}" stroke="grey"/>'
        for a, b in sorted(graph.edges)
    ]
    texts = [
        f'<text x="{x:.0f}" y="{y + number * _LINE:.0f}" text-anchor="middle">{escape(name)}</text>'
        for names, (x, y) in sorted(at.items())
        for number, name in enumerate(names)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="12"'
    body = "\n".join([DARK, '<rect width="100%" height="100%" fill="white"/>', *lines, *texts])
    return f'{head} font-family="sans-serif">\n{body}\n</svg>\n'
