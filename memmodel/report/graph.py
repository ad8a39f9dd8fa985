"""Which edges of a witness a reader wants to see.

In: Witness. Out: `Edge` lists with everything that the reader infers by eye left out: what follows by transitivity,
from-reads to any but the first later write, coherence from the initial write (it comes before every other), and what a
model's own relation only repeats of program order, issue and completion, or of a smaller such relation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memmodel.answer import Witness
from memmodel.base.graphs import reached

Pair = tuple[int, int]

BASIC = ("rf", "co", "fr", "rmw")
"""The relations of every execution, in the order in which they are told; what a model shows comes after them."""

GIVEN = ("addr", "data", "ctrl", "iss", "compl", "mbarobs")
"""Relations that say more than the order that they imply: dependencies, asynchronous operations, observed phases."""

ORDERING = ("po", "iss", "compl")
"""What a model's own relations mostly repeat."""

UNSHOWN = frozenset(("po", "loc", "int", "ext", "id"))
"""Told by the layout (program order) or by the locations in the events."""


JOIN = " + "
"""Between the names of relations that coincide."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One arrow: the relation's name, or several with JOIN between them, and the uids of its ends."""

    name: str
    first: int
    second: int


def shown_edges(witness: Witness) -> tuple[Edge, ...]:
    """The arrows worth showing, basic relations first, without program order."""
    initial = {event.uid for event in witness.events if event.thread is None}
    order = {event.uid: index for index, event in enumerate(witness.events)}
    pairs_of = {name: reduced(name, witness) for name in witness.edges if name not in UNSHOWN}
    pairs_of["co"] = {pair for pair in pairs_of.get("co", ()) if pair[0] not in initial}
    ordered = {pair for name in ORDERING for pair in witness.edges.get(name, ())}
    derived = [name for name in pairs_of if name not in BASIC + GIVEN]
    for name in sorted(derived, key=lambda name: (len(pairs_of[name]), name)):
        pairs_of[name] -= ordered
        ordered |= pairs_of[name]
    edges: list[Edge] = []
    for name in sorted(pairs_of, key=lambda name: (BASIC.index(name) if name in BASIC else len(BASIC), name)):
        known = (pair for pair in pairs_of[name] if pair[0] in order and pair[1] in order and pair[0] != pair[1])
        edges += (Edge(name, *pair) for pair in sorted(known, key=lambda pair: (order[pair[0]], order[pair[1]])))
    return tuple(edges)


def merged(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """One arrow where relations coincide, with all their names."""
    names: dict[Pair, list[str]] = {}
    for edge in edges:
        names.setdefault((edge.first, edge.second), []).append(edge.name)
    return tuple(Edge(JOIN.join(dict.fromkeys(labels)), *ends) for ends, labels in names.items())


def reduced(name: str, witness: Witness) -> set[Pair]:
    """The pairs of a relation that do not follow from its others (or, for fr, from fr and co)."""
    pairs = set(witness.edges.get(name, ()))
    if name == "fr":
        later = set(witness.edges.get("co", ()))
        return {(a, c) for a, c in pairs if not any(x == a and (b, c) in later for x, b in pairs)}
    return transitive_reduction(pairs)


def transitive_reduction(pairs: Iterable[Pair]) -> set[Pair]:
    """The smallest relation with the same closure; a relation with a cycle comes back whole."""
    edges = set(pairs)
    after: dict[int, set[int]] = {}
    for first, second in edges:
        after.setdefault(first, set()).add(second)
    reach = {first: reached(after[first], lambda node: after.get(node, ())) for first in after}
    if any(first in later for first, later in reach.items()):
        return edges
    return {(a, c) for a, c in edges if not any(c in reach.get(b, ()) for b in after[a])}
