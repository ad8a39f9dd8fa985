"""An execution as a graph of networkx, and as GraphML for other programs.

In: Witness. Out: a MultiDiGraph whose nodes are events (by uid) and whose edges have the relation's name as their key;
GraphML text. Settled here: every attribute is a plain value, and one that an event does not have is missing. networkx
is loaded on first use.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from memmodel.answer import ShownEvent, Witness

LARGEST = (1 << 63) - 1
"""The largest number that a GraphML reader has to take."""


def graph(witness: Witness) -> MultiDiGraph:
    """Events and all relations of an execution."""
    from networkx import MultiDiGraph

    execution: MultiDiGraph = MultiDiGraph(waits="\n".join(witness.waits))
    for event in witness.events:
        execution.add_node(event.uid, **_attributes(event))
    for name, pairs in sorted(witness.edges.items()):
        for first, second in pairs:
            execution.add_edge(first, second, key=name, relation=name)
    return execution


def graphml(witness: Witness) -> str:
    """The graph as GraphML; a value beyond 64 bits is written as text."""
    from networkx import write_graphml

    execution = graph(witness)
    for _, attributes in execution.nodes(data=True):
        if abs(attributes.get("value", 0)) > LARGEST:
            attributes["wide_value"] = hex(attributes.pop("value"))
    out = BytesIO()
    write_graphml(execution, out, encoding="utf-8", named_key_ids=True)
    return out.getvalue().decode("utf-8") + "\n"


def _attributes(event: ShownEvent) -> dict[str, object]:
    """`kind`: R or W for an access to memory, else F (fences, barriers and whatever else makes no access)."""
    place = event.place
    kind = next((word for word in ("R", "W") if word in event.tags), "F")
    attributes: dict[str, object] = {
        "label": event.label,
        "kind": kind,
        "text": event.text,
        "initial": event.thread is None,
        "tags": " ".join(sorted(event.tags)),
        "thread": event.thread,
        "line": event.line,
        "location": event.location,
        "value": event.value,
    }
    if place is not None:
        attributes |= {"gpu": place.gpu, "grid": place.grid, "cluster": place.cluster, "cta": place.cta}
    return {name: value for name, value in attributes.items() if value is not None}
