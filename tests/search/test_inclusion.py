"""What the laws of the operators show of two expressions holds of every relation."""

from __future__ import annotations

import random

from helpers.examples import SAMPLE, TIMES

from memmodel.base import rows
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import ExpressionGraph, Node
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation
from memmodel.search.judging.inclusion import Inclusions

COUNT = 4
RELATIONS = ("po", "rf", "co", "id")
SETS = ("W", "R")


class RandomRows(RowAlgebra):
    """Any base names; `po` is transitive."""

    def __init__(self, pick: random.Random) -> None:
        super().__init__(COUNT)
        self._named: dict[str, Value] = {name: pick.getrandbits(COUNT) for name in SETS}
        for name in RELATIONS:
            self._named[name] = [pick.getrandbits(COUNT) & pick.getrandbits(COUNT) for _ in range(COUNT)]
        self._named["po"] = rows.closure(as_relation(self._named["po"]))
        self._named["id"] = [1 << event for event in range(COUNT)]

    def base(self, node: Node) -> Value:
        return self._named[node.name]

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        raise AssertionError("no expression chooses an order")


def expressions(pick: random.Random, count: int) -> tuple[ExpressionGraph, list[int]]:
    """Relations, each made of those before it."""
    graph = ExpressionGraph()
    sets = [graph._add("base", name=name, is_set=True) for name in SETS]
    made = [graph._add("base", name=name) for name in RELATIONS]
    made += [graph._add("[]", (each,)) for each in sets] + [graph._add("product", tuple(sets))]
    while len(made) < count:
        op = pick.choice(["|", "|", ";", ";", "&", "\\", "?", "+", "*", "^-1", "~"])
        some = [pick.choice(made) for _ in range(2 if op in ("|", ";", "&", "\\") else 1)]
        made.append(graph._add(op, tuple(some)))
    return graph, made


def test_what_is_within_is_so_of_every_relation() -> None:
    """Of the pairs that the laws show, hundreds are of two expressions of more than one operator."""
    pick, shown = random.Random(f"{SAMPLE} inclusion"), 0
    for _ in range(12 * TIMES):
        graph, made = expressions(pick, 40)
        inclusions = Inclusions(graph.nodes)
        worlds = [Evaluator(graph, RandomRows(pick)) for _ in range(12)]
        for part in made:
            for whole in made:
                if part != whole and inclusions.within(part, whole):
                    shown += len(graph.nodes[part].operands) > 0 < len(graph.nodes[whole].operands)
                    for world in worlds:
                        mine, other = as_relation(world.value(part)), as_relation(world.value(whole))
                        assert not any(a & ~b for a, b in zip(mine, other, strict=True)), (part, whole, graph.nodes)
    assert shown > 500


def test_laws_that_edits_of_a_model_need() -> None:
    graph = ExpressionGraph()
    po, rf, identity = (graph._add("base", name=name) for name in ("po", "rf", "id"))

    def node(op: str, *operands: int) -> int:
        return graph._add(op, operands)

    both = node("+", node("|", po, rf))
    reaches = node("|", both, identity)
    laws = Inclusions(graph.nodes)
    assert laws.equal(node("+", node("|", po, node("+", rf))), both)
    assert laws.equal(node("?", reaches), reaches) and laws.equal(node("+", reaches), reaches)
    assert laws.equal(node(";", reaches, reaches), reaches)
    assert laws.equal(node("+", po), po) and not laws.equal(node("+", rf), rf)
    assert laws.within(node(";", po, both), both) and not laws.within(both, node(";", po, both))
    assert not laws.within(node("\\", both, po), node("\\", both, both))
