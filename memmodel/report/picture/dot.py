"""A picture in the language of Graphviz, for those who want to lay it out themselves.

In: Witness and edges. Out: a `digraph` with nested clusters for GPU, cluster and CTA.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memmodel.answer import ShownEvent, Witness
from memmodel.ptx.vocabulary import Place
from memmodel.report.graph import Edge
from memmodel.report.picture.lanes import is_async, levels_of
from memmodel.report.picture.layout import shorten
from memmodel.report.picture.svg import PO_COLOUR, Words, colours

LEVELS = 5
"""GPU, grid, cluster, CTA, thread."""


def dot(witness: Witness, edges: Sequence[Edge], po: Sequence[tuple[int, int]], words: Words) -> str:
    """The whole graph as text."""
    colour = colours(list(dict.fromkeys(edge.name for edge in edges)))
    label = "\n".join((words.title, *words.subtitle, *words.foot))
    lines = [
        "digraph execution {",
        f'  graph [label={_quoted(label)}, labelloc=t, fontname="Helvetica", newrank=true];',
        '  node [shape=box, style=rounded, fontname="Courier"];',
        '  edge [fontname="Courier"];',
    ]
    lines += (f"  {_node(event)}" for event in witness.events if event.thread is None)
    lines += _boxes([event for event in witness.events if event.thread is not None], 0, "  ", "")
    lines += (
        f'  e{first} -> e{second} [color="{PO_COLOUR}", label="po", fontcolor="{PO_COLOUR}"];' for first, second in po
    )
    for edge in edges:
        paint = colour[edge.name]
        style = f'color="{paint}", fontcolor="{paint}", label={_quoted(edge.name)}, constraint=false'
        lines.append(f"  e{edge.first} -> e{edge.second} [{style}];")
    return "\n".join([*lines, "}", ""])


def _boxes(events: Sequence[ShownEvent], level: int, indent: str, path: str) -> list[str]:
    """Nested subgraphs, one for every value of the level among these events."""
    if level == LEVELS:
        return [f"{indent}{_node(event)}" for event in events]
    groups: dict[object, tuple[str, list[ShownEvent]]] = {}
    for event in events:
        key, title = (*levels_of(event.place or Place()), (event.thread, event.thread or ""))[level]
        groups.setdefault(key, (title, []))[1].append(event)
    lines: list[str] = []
    for index, (title, members) in enumerate(groups.values()):
        name = f"{path}_{index}"
        if not title:
            lines += _boxes(members, level + 1, indent, name)
            continue
        lines.append(f"{indent}subgraph cluster{name} {{")
        lines.append(f"{indent}  label={_quoted(title)};")
        lines += _boxes(members, level + 1, indent + "  ", name)
        lines.append(f"{indent}}}")
    return lines


def _node(event: ShownEvent) -> str:
    dashes = ', style="rounded,dashed"' if is_async(event) else ""
    return f"e{event.uid} [label={_quoted(f'{event.label}: {shorten(event.text, 60)}')}{dashes}];"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
