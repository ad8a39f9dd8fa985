"""The evaluator over each of its algebras against the referee, which reads the same expressions by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from helpers.examples import examples
from helpers.expressions import MOST_EVENTS, bodies, execution_of, executions, model_texts, parsed, restricted
from hypothesis import given
from hypothesis import strategies as st

from memmodel.base.logic import FALSE, Logic
from memmodel.base.rows import Rows, bits, inverse
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import ExpressionGraph, Node, graph_of
from memmodel.cat.evaluate.large import LargeEvaluator
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set
from memmodel.cat.syntax import Model, Name
from memmodel.concrete.execution import Execution
from memmodel.encode.algebra import FormulaAlgebra
from memmodel.enumeration.code import ModelCode
from memmodel.enumeration.matrix import Shape
from memmodel.errors import InputError
from memmodel.referee.evaluate import Ranks, evaluate
from memmodel.refine.views import SureRows, View
from memmodel.search.judging.slices import ModelSlices, WorldAlgebra

pytestmark = pytest.mark.turns(2)

counts = st.integers(1, MOST_EVENTS)


def ordered(over: int, extends: Sequence[int], ranks: Sequence[int]) -> Rows:
    """A strict total order on a set that contains a relation, if that has no cycle; lower ranks come first."""
    left = sorted(bits(over), key=ranks.__getitem__)
    before = inverse(extends)
    order = [0] * len(extends)
    while left:
        remaining = sum(1 << event for event in left)
        first = next((event for event in left if not before[event] & remaining), left[0])
        left.remove(first)
        order[first] = remaining & ~(1 << first)
    return order


class PlainRows(RowAlgebra):
    """The rows of one execution."""

    def __init__(self, execution: Execution, ranks: Ranks) -> None:
        super().__init__(len(execution.events))
        self.execution, self.ranks = execution, ranks

    def base(self, node: Node) -> Value:
        return self.execution.set(node.name) if node.is_set else self.execution.relation(node.name)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        return ordered(as_set(over), as_relation(extends), self.ranks[node.place])


def names_of(model: Model) -> list[Name]:
    """A name for each definition of a model."""
    return [Name(one.name, one.kind, number) for number, one in enumerate(model.definitions)]


def draw_ranks(data: st.DataObject, model: Model, count: int) -> Ranks:
    orders = [number for number, definition in enumerate(model.definitions) if definition.order is not None]
    return {number: data.draw(st.permutations(range(count))) for number in orders}


def expected(model: Model, execution: Execution, ranks: Ranks | None = None) -> tuple[list[Value], list[bool]]:
    """What the referee says each definition is, and of which checks the body is bad."""
    judged = evaluate(model, execution, ranks)
    bad = [judged.evaluator.holds(check) is check.negated for check in model.checks]
    return [judged.evaluator.defined(number) for number in range(len(model.definitions))], bad


@examples(60)
@given(count=counts, text=model_texts(orders=True), data=st.data())
def test_rows(count: int, text: str, data: st.DataObject) -> None:
    model = parsed(text)
    execution = data.draw(executions(count))
    ranks = draw_ranks(data, model, count)
    algebra, graph = PlainRows(execution, ranks), graph_of(model.definitions)
    evaluator = Evaluator(graph.graph, algebra)
    fails = [algebra.fails(check.kind, evaluator.value(graph.node(check.body))) for check in model.checks]
    assert ([evaluator.value(number) for number in graph.defined], fails) == expected(model, execution, ranks)


@pytest.mark.parametrize("large", [0, 6_000])
@examples(50)
@given(count=counts, text=model_texts(), data=st.data())
def test_large_rows(large: int, count: int, text: str, data: st.DataObject) -> None:
    model = parsed(text)
    execution = data.draw(executions(count))
    graph = graph_of(model.definitions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memmodel.cat.evaluate.large.LARGE", large)
        algebra = PlainRows(execution, {})
        evaluator = LargeEvaluator(graph.graph, algebra)
        evaluator.kept = frozenset(graph.defined)
        fails = [algebra.fails(check.kind, evaluator.value(graph.node(check.body))) for check in model.checks]
        assert ([evaluator.value(number) for number in graph.defined], fails) == expected(model, execution)


@examples(60)
@given(count=counts, text=model_texts(orders=True), data=st.data())
def test_packed_integers(count: int, text: str, data: st.DataObject) -> None:
    model = parsed(text)
    execution = data.draw(executions(count))
    ranks = draw_ranks(data, model, count)
    values, bad = expected(model, execution, ranks)
    code, shape = ModelCode(model.definitions), Shape(count)
    bodies = [*names_of(model), *(check.body for check in model.checks)]
    slots = [code.slot(body) for body in bodies]
    filled = [0] * len(code.stage)
    for name, slot in code.slots.items():
        filled[slot] = execution.set(name) if code.is_set[name] else shape.pack(execution.relation(name))
    for order in code.orders:
        filled[order.slot] = shape.pack(as_relation(values[order.definition]))
    for slot in slots:
        for run in code.runs(code.needed(slot)):
            run(filled, shape)
    packed = [value if isinstance(value, int) else shape.pack(value) for value in values]
    assert [filled[slot] for slot in slots[: len(values)]] == packed
    for check, slot, is_bad in zip(model.checks, slots[len(values) :], bad, strict=True):
        assert shape.passes(check.kind, filled[slot]) is not is_bad


@examples(50)
@given(count=counts, worlds=st.integers(1, 4), text=model_texts(), data=st.data())
def test_worlds(count: int, worlds: int, text: str, data: st.DataObject) -> None:
    """In each world some events exist: the others are as if they had never been."""
    model = parsed(text)
    runs = [data.draw(executions(count)) for _ in range(worlds)]
    there = [data.draw(st.integers(0, (1 << count) - 1)) for _ in runs]
    exists = [sum(1 << world for world, mask in enumerate(there) if mask >> event & 1) for event in range(count)]

    def read(name: str) -> list[int] | list[dict[int, int]]:
        is_set = name in runs[0].chosen_sets
        if is_set:
            masks = [run.set(name) & mask for run, mask in zip(runs, there, strict=True)]
            return [sum(1 << world for world, mask in enumerate(masks) if mask >> a & 1) for a in range(count)]
        rows: list[dict[int, int]] = [{} for _ in range(count)]
        for world, (run, mask) in enumerate(zip(runs, there, strict=True)):
            for a in bits(mask):
                for b in bits(run.relation(name)[a] & mask):
                    rows[a][b] = rows[a].get(b, 0) | 1 << world
        return rows

    slices = ModelSlices([model])
    slices.start(exists, read)
    for name in ("rf", "sync_fence", "co"):
        slices.choose(name, read(name))  # type: ignore[arg-type]
    graph = ExpressionGraph()
    defined = graph.define(model.definitions)
    evaluator = Evaluator(graph, WorldAlgebra(exists, read))
    for world, (run, mask) in enumerate(zip(runs, there, strict=True)):
        values, bad = expected(model, restricted(run, mask))
        seen = [_in_world(evaluator.value(number), world, mask) for number in defined]
        assert seen == values
        assert [bool(slices.fails(0, check.name) >> world & 1) for check in model.checks] == bad


def _in_world(value: list[int] | list[dict[int, int]], world: int, mask: int) -> Value:
    """A value in one world, its events numbered anew."""
    numbers = {event: number for number, event in enumerate(bits(mask))}

    def packed(events: list[int]) -> int:
        return sum(1 << numbers[event] for event in events)

    rows: Rows = []
    for event, row in enumerate(value):
        if isinstance(row, dict):
            targets = [b for b, worlds in row.items() if worlds >> world & 1]
            assert event in numbers or not targets
            rows += [packed(targets)] if event in numbers else []
    if rows or (value and isinstance(value[0], dict)):
        return rows
    return packed([event for event, worlds in enumerate(value) if isinstance(worlds, int) and worlds >> world & 1])


@examples(50)
@given(count=counts, text=model_texts(), data=st.data())
def test_formulas(count: int, text: str, data: st.DataObject) -> None:
    """Two variables choose among four executions, in each of which some events run."""
    model, logic = parsed(text), Logic()
    runs = [data.draw(executions(count)) for _ in range(4)]
    there = [data.draw(st.integers(0, (1 << count) - 1)) for _ in runs]
    first, second = logic.var("first"), logic.var("second")
    cases = [logic.both(a, b) for a in (first, -first) for b in (second, -second)]

    def cell(holds: Callable[[int], bool]) -> int:
        return logic.disj(case for at, case in enumerate(cases) if holds(at))

    def read(node: Node) -> dict[int, int] | list[dict[int, int]]:
        if node.is_set:
            masks = [run.set(node.name) & mask for run, mask in zip(runs, there, strict=True)]
            return {a: f for a in range(count) if (f := cell(lambda at, a=a: masks[at] >> a & 1)) != FALSE}
        rows = [[run.relation(node.name)[a] for a in range(count)] for run in runs]
        for mask, relation in zip(there, rows, strict=True):
            relation[:] = [row & mask if mask >> a & 1 else 0 for a, row in enumerate(relation)]
        return [
            {b: f for b in range(count) if (f := cell(lambda at, a=a, b=b: rows[at][a] >> b & 1)) != FALSE}
            for a in range(count)
        ]

    graph = graph_of(model.definitions)
    exists = [cell(lambda at, a=a: there[at] >> a & 1) for a in range(count)]
    algebra = FormulaAlgebra(logic, exists, read)
    evaluator = Evaluator(graph.graph, algebra)
    for at, (run, mask) in enumerate(zip(runs, there, strict=True)):
        chosen, known = {first: at < 2, second: at % 2 == 0}, dict[int, bool]()
        values, bad = expected(model, restricted(run, mask))
        for check, is_bad in zip(model.checks, bad, strict=True):
            formula = algebra.fails(check.kind, evaluator.value(graph.node(check.body)))
            assert logic.value(formula, known, chosen.__getitem__) is is_bad
        for number, value in zip(graph.defined, values, strict=True):
            formulas = evaluator.value(number)
            rows = [formulas] if isinstance(formulas, dict) else formulas
            held = [{b: 1 for b, f in row.items() if logic.value(f, known, chosen.__getitem__)} for row in rows]
            now = [held[0].get(a, 0) for a in range(count)] if isinstance(formulas, dict) else held
            assert _in_world(now, 0, mask) == value


class BoundRows(RowAlgebra):
    """The rows of a bound: what all of some executions have, or what one of them has."""

    def __init__(self, runs: list[Execution], *, most: bool) -> None:
        super().__init__(len(runs[0].events))
        self.runs, self.most = [PlainRows(run, {}) for run in runs], most

    def base(self, node: Node) -> Value:
        value = self.runs[0].base(node)
        for run in self.runs:
            value = self.union(value, run.base(node)) if self.most else self.intersection(value, run.base(node))
        return value

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        raise AssertionError


class SurelyBound(SureRows):
    """The same, by the algebra that knows which events run where others do: here all of them."""

    def __init__(self, runs: list[Execution]) -> None:
        count = len(runs[0].events)
        super().__init__([(1 << count) - 1] * count)
        self.bound = BoundRows(runs, most=False)

    def base(self, node: Node) -> Value:
        return self.bound.base(node)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        raise AssertionError


@examples(60)
@given(count=counts, text=model_texts(), data=st.data())
def test_bounds(count: int, text: str, data: st.DataObject) -> None:
    """Two evaluators that are each other's opposite contain what any execution between them has."""
    model = parsed(text)
    runs = [data.draw(executions(count)) for _ in range(data.draw(st.integers(1, 3)))]
    graph = graph_of(model.definitions)
    most = View(graph.graph, BoundRows(runs, most=True))
    least = View(graph.graph, BoundRows(runs, most=False))
    sure = View(graph.graph, SurelyBound(runs))
    most.opposite, least.opposite, sure.opposite = least, most, most
    for run in runs:
        for number, value in zip(graph.defined, expected(model, run)[0], strict=True):
            assert most.algebra.is_empty(most.algebra.difference(value, most.value(number)))
            assert least.algebra.is_empty(least.algebra.difference(least.value(number), value))
            assert sure.value(number) == least.value(number)


@examples(80)
@given(count=counts, body=bodies("again"), data=st.data())
def test_what_a_let_rec_may_say_grows_with_it(count: int, body: str, data: st.DataObject) -> None:
    """Else it may have no least fixpoint."""
    try:
        parsed(f"let rec again = {body}")
    except InputError:
        return
    smaller, larger = (body.replace("again", value) for value in ("(po & rf)", "po"))
    model = parsed(f"empty ({smaller}) \\ ({larger}) as grows")
    _, bad = expected(model, data.draw(executions(count)))
    assert not bad[[check.name for check in model.checks].index("grows")]


def test_equal_expressions_are_one_node() -> None:
    """Whatever they are called, in whichever model, and whatever the order of what commutes."""
    text = "let a = po | rf\nlet b = rf | po\nlet rec f = a | f ; f and g = f\nlet rec x = b | x ; x and y = x\n"
    graph = ExpressionGraph()
    first, second = (graph.define(parsed(text).definitions) for _ in range(2))
    assert first == second
    a, b, f, g, x, y = first[-6:]
    assert (a, f, g) == (b, x, y) and f != g


@pytest.mark.parametrize(
    ("body", "bases", "flat"),
    [("po | rf", {"po", "rf"}, True), ("(po & 0)+", {"po"}, False), ("[domain(f)]", {"po", "co"}, False)],
)
def test_what_a_node_depends_on(body: str, bases: set[str], flat: bool) -> None:
    model = parsed(f"let rec f = po | f ; co\nempty {body}\n")
    graph = graph_of(model.definitions)
    node = graph.graph.nodes[graph.node(model.checks[0].body)]
    assert (node.bases, node.flat, node.open) == (bases, flat, False)


def test_what_is_left_out_when_nothing_is_left() -> None:
    """The larger side of an intersection is not evaluated where the smaller one is empty."""
    model = parsed("let larger = (po ; rf)+\nlet both = larger & co\n")
    graph = graph_of(model.definitions)
    execution = execution_of({}, {"po": [2, 1], "rf": [2, 1], "co": [0, 0]}, 2)
    evaluator = Evaluator(graph.graph, PlainRows(execution, {}))
    assert evaluator.value(graph.defined[-1]) == [0, 0]
    assert graph.defined[-2] not in evaluator._values


def test_a_graph_is_whole_when_a_budget_ends_while_an_expression_is_added(monkeypatch):
    """All answers about a model share its graph: an expression half added had the number of the next one."""
    graph = ExpressionGraph()
    real = ExpressionGraph._node

    def ends(self, op, operands, name, place, *, is_set):
        if name == "co":
            raise KeyboardInterrupt
        return real(self, op, operands, name, place, is_set=is_set)

    monkeypatch.setattr(ExpressionGraph, "_node", ends)
    like = Node("base", (), "rf", 0, False, frozenset(), False, True, 1)
    with pytest.raises(KeyboardInterrupt):
        graph.add(replace(like, name="co"), ())
    monkeypatch.setattr(ExpressionGraph, "_node", real)
    numbers = {name: graph.add(replace(like, name=name), ()) for name in ("rf", "co")}
    assert {name: graph.nodes[number].name for name, number in numbers.items()} == {"rf": "rf", "co": "co"}
