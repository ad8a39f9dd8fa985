"""The plain evaluator against networkx and set comprehensions, and the fast plan against the plain evaluator."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from memmodel.base.labels import InitialWrite
from memmodel.base.points import Point
from memmodel.base.rows import Rows, bits, pairs_of, rows_of
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import ConcreteEvent
from memmodel.enumeration.matrix import Shape
from memmodel.enumeration.plan import Plan
from memmodel.referee.evaluate import Evaluation, evaluate
from memmodel.source import Source

Pairs = frozenset[tuple[int, int]]

OPERATORS = """
let union = po | rf
let both = po & rf
let less = po \\ rf
let then = po ; rf
let back = po^-1
let maybe = po?
let plus = po+
let star = po*
let other = ~po
let on-set = [R]
let product = R * W
let from = [domain(po)]
let to = [range(po)]
let none-of-it = po & 0
let set-complement = [~R]
let rows-only = [R] ; po
let columns-only = po ; [W]
let rec even = po ; odd and odd = po | po ; even
let rec transitive = rf | transitive ; transitive
acyclic po as po-acyclic
irreflexive rf as rf-irreflexive
empty po & rf as disjoint
~empty R as some-read
~acyclic po as cyclic
flag ~empty po & rf as pairs
flag ~empty R as reads
flag ~acyclic rf as cycles
flag ~irreflexive rf as loops
flag empty po as nothing
"""


@dataclass(frozen=True)
class Execution:
    """Events that nothing made, with whatever sets and relations they are given."""

    events: list[ConcreteEvent]
    sets: dict[str, int]
    relations: dict[str, Rows]

    def set(self, name: str) -> int:
        return self.sets[name]

    def relation(self, name: str) -> Rows:
        return self.relations[name]


def judged(model: Model, execution: Execution) -> Evaluation:
    return evaluate(model, execution)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model() -> Model:
    return parse_model(Source("operators.cat", OPERATORS))


@st.composite
def executions(draw: st.DrawFn) -> Execution:
    """Up to six events with arbitrary po and rf: the evaluator has to take any relation, not only sensible ones."""
    count = draw(st.integers(1, 6))
    number = st.integers(0, count - 1)
    po, rf = (draw(st.frozensets(st.tuples(number, number), max_size=12)) for _ in range(2))
    reads, writes = (sum(1 << one for one in draw(st.frozensets(number))) for _ in range(2))
    events = [ConcreteEvent(Point(number, InitialWrite())) for number in range(count)]
    sets = {"_": (1 << count) - 1, "R": reads, "W": writes}
    names = ("po", "rf", "co", "rmw", "loc", "int", "ext", "syncbar")
    relations = {name: rows_of(po if name == "po" else rf if name == "rf" else (), count) for name in names}
    return Execution(events, sets, relations)


def graph(pairs: Pairs, count: int) -> nx.DiGraph:
    made = nx.DiGraph()
    made.add_nodes_from(range(count))
    made.add_edges_from(pairs)
    return made


def plus(pairs: Pairs, count: int) -> Pairs:
    """Reachable by at least one edge, as networkx sees it."""
    made = graph(pairs, count)
    return frozenset((a, b) for a, after in made.adjacency() for c in after for b in (nx.descendants(made, c) | {c}))


def compose(left: Pairs, right: Pairs) -> Pairs:
    return frozenset((a, d) for a, b in left for c, d in right if b == c)


@examples(200)
@given(execution=executions())
def test_every_operator_means_what_set_theory_says(model: Model, execution: Execution) -> None:
    count = len(execution.events)
    everything = range(count)
    po, rf = (frozenset(pairs_of(execution.relations[name])) for name in ("po", "rf"))
    reads, writes = set(bits(execution.sets["R"])), set(bits(execution.sets["W"]))
    identity = frozenset((a, a) for a in everything)
    even = frozenset(
        (a, b)
        for a in everything
        for b in everything
        if any(nx.has_path(parity(po, count), (c, 1), (b, 0)) for x, c in po if x == a)
    )
    expected = {
        "union": po | rf,
        "both": po & rf,
        "less": po - rf,
        "then": compose(po, rf),
        "back": frozenset((b, a) for a, b in po),
        "maybe": po | identity,
        "plus": plus(po, count),
        "star": plus(po, count) | identity,
        "other": frozenset((a, b) for a in everything for b in everything) - po,
        "on-set": frozenset((a, a) for a in reads),
        "product": frozenset((a, b) for a in reads for b in writes),
        "from": frozenset((a, a) for a, _ in po),
        "to": frozenset((b, b) for _, b in po),
        "none-of-it": frozenset(),
        "set-complement": frozenset((a, a) for a in everything if a not in reads),
        "rows-only": frozenset((a, b) for a, b in po if a in reads),
        "columns-only": frozenset((a, b) for a, b in po if b in writes),
        "even": even,
        "transitive": plus(rf, count),
    }
    evaluation = judged(model, execution)
    for name, pairs in expected.items():
        assert frozenset(pairs_of(evaluation.relation(name))) == pairs, name

    cyclic = not nx.is_directed_acyclic_graph(graph(po, count))
    failing = {
        "po-acyclic": cyclic,
        "rf-irreflexive": any(a == b for a, b in rf),
        "disjoint": bool(po & rf),
        "some-read": not reads,
        "cyclic": not cyclic,
    }
    assert set(evaluation.failed) == {name for name, fails in failing.items() if fails}
    reach = plus(rf, count)
    flags = {
        "pairs": po & rf,
        "reads": frozenset((a, a) for a in reads),
        "cycles": frozenset((a, b) for a, b in rf if a == b or (b, a) in reach),
        "loops": rf & identity,
    }
    assert {name: frozenset(pairs) for name, pairs in evaluation.flags.items() if name != "nothing"} == {
        name: pairs for name, pairs in flags.items() if pairs
    }
    assert evaluation.flags.get("nothing") == ([] if not po else None)


def parity(pairs: Pairs, count: int) -> nx.DiGraph:
    """Nodes (event, parity of the number of edges taken)."""
    made = nx.DiGraph()
    made.add_nodes_from((a, p) for a in range(count) for p in (0, 1))
    made.add_edges_from(((a, p), (b, 1 - p)) for a, b in pairs for p in (0, 1))
    return made


@examples(200)
@given(execution=executions())
def test_the_plan_decides_every_check_as_plain_evaluation_does(model: Model, execution: Execution) -> None:
    plan = Plan(model, [check.name for check in model.flags])
    shape = Shape(len(execution.events))
    values = [0] * plan.size
    for name, slot in plan.slots.items():
        values[slot] = execution.sets[name] if plan.is_set[name] else shape.pack(execution.relations[name])
    failed, raised = set(), set()
    for stage in plan.stages:
        failed |= {test.check.name for test in stage.axioms if not test.holds(values, shape)}
        raised |= {test.check.name for test in stage.flags if test.holds(values, shape)}
        stage.leave(values, shape)
    evaluation = judged(model, execution)
    assert failed == set(evaluation.failed)
    assert raised == set(evaluation.flags)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_packing_a_relation_loses_nothing(count: int) -> None:
    shape = Shape(count)
    rows = [(a * 37 + 11) & shape.row for a in range(count)]
    assert shape.unpack(shape.pack(rows)) == rows
    assert shape.unpack(shape.inverse(shape.inverse(shape.pack(rows)))) == rows


def test_an_axiom_is_settled_in_the_first_stage_that_can() -> None:
    text = "acyclic po as s0\nacyclic po | rf as s1\nacyclic sync_fence as s2\nacyclic rf | co as s3\n"
    plan = Plan(parse_model(Source("stages.cat", text)), ())
    settled = [[test.check.name for test in stage.axioms] for stage in plan.stages]
    assert settled == [["s0"], ["s1"], ["s2"], ["s3", "co-total"], []]


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("acyclic po | sync_fence", True),
        ("acyclic po", True),
        ("empty po \\ sync_fence", False),
        ("empty po \\ ~sync_fence", True),
        ("~empty po \\ sync_fence", True),
        ("let rec r = sync_fence | r ; po\nirreflexive r", True),
        ("let rec r = sync_fence | r ; po\nempty po \\ r", False),
        ("acyclic sync_fence\nflag ~empty po \\ sync_fence as race", True),
        ("acyclic sync_fence\nflag ~empty po & sync_fence as race", False),
    ],
)
def test_least_fence_orders_are_enough_only_where_more_order_cannot_help(text: str, least: bool) -> None:
    model = parse_model(Source("signs.cat", text))
    assert Plan(model, [check.name for check in model.flags]).least_fences is least


def test_a_check_that_is_left_out_still_computes_what_the_others_share(model: Model) -> None:
    """Of two checks over `co ; rf`, the second has its value although only it is asked for."""
    text = "empty (po \\ (co ; rf)) & 0 as first\nempty po \\ (co ; rf) as less\nacyclic (co ; rf) | po as more\n"
    plan = Plan(parse_model(Source("shared.cat", text)), ())
    shape = Shape(2)
    values = [0] * plan.size
    for stage in plan.stages:
        for name, matrix in {"po": 0, "rf": shape.pack([2, 0]), "co": shape.pack([1, 0])}.items():
            if name in plan.slots:
                values[plan.slots[name]] = matrix
        broken = stage.broken(values, shape, lambda test: test.check.name == "more")
        stage.leave(values, shape)
        assert broken == frozenset()
    values[plan.slots["co"]] = shape.pack([0, 1])
    assert plan.stages[3].broken(values, shape, lambda test: test.check.name == "more") == {"more"}
