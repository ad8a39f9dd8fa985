"""An execution that differs little from another one, evaluated by what differs: the referee says the same."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from helpers.examples import examples
from helpers.expressions import (
    MOST_EVENTS,
    RELATIONS,
    SETS,
    execution_of,
    executions,
    model_texts,
    parsed,
    restricted,
)
from hypothesis import given
from hypothesis import strategies as st

from memmodel.base.rows import bits, rows_without
from memmodel.cat.evaluate.changed import ChangedEvaluator
from memmodel.cat.evaluate.every_value import EveryValue
from memmodel.cat.evaluate.graph import Node, graph_of
from memmodel.cat.evaluate.large import LargeEvaluator
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set
from memmodel.concrete.execution import Execution
from memmodel.referee.evaluate import evaluate


class PlainRows(RowAlgebra):
    """The rows of one execution, of which some events are left out."""

    def __init__(self, execution: Execution, running: int) -> None:
        super().__init__(len(execution.events), running)
        self.execution = execution

    def base(self, node: Node) -> Value:
        return self.execution.set(node.name) if node.is_set else self.execution.relation(node.name)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        raise AssertionError("these models choose no order")


@examples(150)
@given(count=st.integers(1, MOST_EVENTS), text=model_texts(), data=st.data())
def test_what_differs(count: int, text: str, data: st.DataObject) -> None:
    model = parsed(text)
    execution, other = data.draw(executions(count)), data.draw(executions(count))
    events = (1 << count) - 1
    gone = data.draw(st.integers(0, events))
    names = sorted([*execution.chosen_sets, *execution.chosen_relations])
    changed = data.draw(st.sets(st.sampled_from(names), max_size=2))
    source = {name: other if name in changed else execution for name in names}
    less = execution_of(
        {name: source[name].set(name) & ~gone for name in execution.chosen_sets},
        {name: rows_without(source[name].relation(name), gone) for name in execution.chosen_relations},
        count,
    )
    graph = graph_of(model.definitions)
    whole = PlainRows(execution, events)
    every = EveryValue(graph.graph, whole, LargeEvaluator(graph.graph, whole).known)
    evaluator = ChangedEvaluator(graph.graph, PlainRows(less, events & ~gone), every, changed, gone)
    judged = evaluate(model, restricted(less, events & ~gone))
    with patch("memmodel.cat.evaluate.every_value.LARGE", data.draw(st.sampled_from((0, count)))):
        values = [evaluator.value(node) for node in graph.defined]
    for number, (node, value) in enumerate(zip(graph.defined, values, strict=True)):
        assert _packed(value, events & ~gone) == judged.evaluator.defined(number)
        if evaluator.same(node):
            old = every.value(node)
            assert value == (as_set(old) & ~gone if isinstance(old, int) else rows_without(as_relation(old), gone))
    for check in model.checks:
        fails = evaluator.rows.fails(check.kind, evaluator.value(graph.node(check.body)))
        assert fails is (judged.evaluator.holds(check) is check.negated)


def _packed(value: Value, here: int) -> Value:
    """A value, its events numbered anew; nothing else is in it."""
    kept = bits(here)

    def packed(row: int) -> int:
        assert not row & ~here
        return sum(1 << number for number, event in enumerate(kept) if row >> event & 1)

    if isinstance(value, int):
        return packed(value)
    assert not any(row for event, row in enumerate(value) if not here >> event & 1)
    return [packed(value[event]) for event in kept]


@pytest.mark.parametrize("text", ["[F] ; (po ; rf+)", "(rf+ ; po) ; [F]", "(po & 0) & (rf+ ; (po ; rf))", "[F] \\ rf+"])
def test_nothing_is_asked_of_what_meets_nothing(text: str) -> None:
    """No event is in F: what the changed `rf` is decides nothing."""
    model = parsed(f"let x = {text}")
    chain = [0b010, 0b100, 0]
    execution = execution_of(dict.fromkeys(SETS, 0), {**dict.fromkeys(RELATIONS, [0] * 3), "po": chain, "rf": chain}, 3)
    graph = graph_of(model.definitions)
    whole = PlainRows(execution, 0b111)
    every = EveryValue(graph.graph, whole, LargeEvaluator(graph.graph, whole).known)
    evaluator = ChangedEvaluator(graph.graph, Unasked(execution, 0b111), every, {"rf"}, 0)
    assert evaluator.is_quick(graph.defined[-1]) and evaluator.same(graph.defined[-1])


def test_what_leads_to_a_cycle_reaches_less_when_the_cycle_does() -> None:
    """An event before a cycle reaches what those on the cycle reach, no more and no less."""
    model = parsed("let x = rf+")
    rf = [0b00010, 0b00100, 0b01010, 0b10000, 0]
    empty = dict.fromkeys(RELATIONS, [0] * 5)
    execution = execution_of(dict.fromkeys(SETS, 0), {**empty, "rf": rf}, 5)
    less = execution_of(dict.fromkeys(SETS, 0), {**empty, "rf": rows_without(rf, 0b01000)}, 5)
    graph = graph_of(model.definitions)
    whole = PlainRows(execution, 0b11111)
    every = EveryValue(graph.graph, whole, LargeEvaluator(graph.graph, whole).known)
    evaluator = ChangedEvaluator(graph.graph, PlainRows(less, 0b10111), every, (), 0b01000)
    assert evaluator.value(graph.defined[-1]) == [0b00110, 0b00110, 0b00110, 0, 0]


class Unasked(PlainRows):
    """Rows of an execution of which nothing may be asked."""

    def base(self, node: Node) -> Value:
        raise AssertionError(f"{node.name} was asked for")
