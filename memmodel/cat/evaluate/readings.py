"""The checks of the default model and of its readings, in one graph: what they have in common is evaluated once.

In: nothing. Out: `ReadingsGraph`. A reading differs from the default model in a few definitions, so that all of them
together have four times the nodes of one. The graph is kept on disk, where models are. `OtherFlags` are the flags of
readings in an execution that was judged under the default model: where a reading has the value of the default, the
nodes of the default stand for it, so that no more is evaluated than the reading changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass
from functools import cache
from typing import NamedTuple

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.evaluate.graph import ExpressionGraph, Node, StoredGraph, StoredNodes, parts_of
from memmodel.cat.evaluate.large import LargeEvaluator
from memmodel.cat.evaluate.rows import Value, differences, pairs_in, reporting
from memmodel.cat.kept import kept_text
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Check, Model


@dataclass(frozen=True, slots=True)
class ReadingCheck:
    """A check of a model. `node`: its body. The rest is as in `Check`."""

    name: str
    kind: str
    negated: bool
    flag: bool
    node: int


@dataclass(frozen=True, slots=True)
class ReadDifferently:
    """An expression of the default model, and what a reading has in its place. `grown`: the flags that may report more
    where it has more; `shrunk`: those that may where it has less."""

    default: int
    reading: int
    grown: tuple[str, ...]
    shrunk: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadingsGraph:
    """`checks`: of the default model, and of each reading by a name such as `D2 accessor`. `differences`: the least
    expressions in which the flags of a reading differ from those of the default."""

    graph: StoredGraph
    checks: dict[str, tuple[ReadingCheck, ...]]
    differences: dict[str, tuple[ReadDifferently, ...]]

    @property
    def readings(self) -> list[str]:
        """All but the default model, in the order of the decisions."""
        return [name for name in self.checks if name != DEFAULT_MODEL]


@cache
def readings_graph() -> ReadingsGraph:
    """The graph of the shipped models. Raises InputError where one of their files cannot be read."""
    try:
        return _restored(kept_text("readings", _written))
    except (ValueError, TypeError, AttributeError):  # what is on disk is not what was written
        return _restored(_written())


def _restored(text: str) -> ReadingsGraph:
    parts, checks, differences = json.loads(text)
    return ReadingsGraph(
        StoredGraph(StoredNodes(parts)),
        {name: tuple(ReadingCheck(*check) for check in of) for name, of in checks.items()},
        {name: tuple(ReadDifferently(*difference) for difference in of) for name, of in differences.items()},
    )


def _written() -> str:
    """The graph as JSON, from the models."""
    from memmodel.cat.decisions import decisions

    models = {DEFAULT_MODEL: DEFAULT_MODEL}
    for decision in decisions():
        models |= {f"{decision.number} {side.name}": side.model for side in decision.readings if side.model is not None}
    graph = ExpressionGraph()
    checks = {name: list(_checks(load_model(model), graph)) for name, model in models.items()}
    default = checks[DEFAULT_MODEL]
    differences = {name: _differences(graph, default, of) for name, of in checks.items() if name != DEFAULT_MODEL}
    stored = ({name: list(map(astuple, of)) for name, of in group.items()} for group in (checks, differences))
    return json.dumps((parts_of(graph), *stored))


def _checks(model: Model, graph: ExpressionGraph) -> Iterator[ReadingCheck]:
    defined = graph.define(model.definitions)
    for check in model.checks:
        yield ReadingCheck(check.name, check.kind, check.negated, check.flag, graph.node(check.body, defined))


def _differences(
    graph: ExpressionGraph, default: Iterable[ReadingCheck], checks: Iterable[ReadingCheck]
) -> list[ReadDifferently]:
    """The least expressions in which flags differ. The sign changes on the right of `\\` and inside `~`."""
    flags: dict[tuple[int, int], tuple[set[str], set[str]]] = {}
    known = {check.name: check.node for check in default}
    for check in checks:
        left, met = [(known[check.name], check.node, not check.negated)] if check.flag else [], set()
        while left:
            first, second, shrinks = key = left.pop()
            if first == second or key in met:
                continue
            met.add(key)
            node, other = graph.nodes[first], graph.nodes[second]
            if not _alike(node, other):
                flags.setdefault((first, second), (set(), set()))[shrinks].add(check.name)
                continue
            for place, operands in enumerate(zip(node.operands, other.operands, strict=True)):
                turns = node.op == "~" or (node.op == "\\" and place == 1)
                left.append((*operands, shrinks ^ turns))
    return [
        ReadDifferently(*nodes, tuple(sorted(grown)), tuple(sorted(shrunk))) for nodes, (grown, shrunk) in flags.items()
    ]


def _alike(node: Node, other: Node) -> bool:
    """True if two expressions differ in their operands alone."""
    operands = len(node.operands), len(other.operands)
    return operands[0] == operands[1] > 0 and (node.op, node.name, node.place) == (other.op, other.name, other.place)


CLOSURES = ("+", "*", "recursion")
"""Operators that take long in a large execution."""

FlagPairs = dict[str, list[tuple[int, int]]]
"""Pairs of events by the flag that reports them."""


class MayReport(NamedTuple):
    """The flags that may report more, or fewer pairs, under a reading."""

    more: set[str]
    fewer: set[str]


class OtherFlags:
    """The flags of readings in one execution. `evaluator`: has the values of the default model's `checks` there, by
    the nodes of its `graph`; those that it keeps are compared."""

    def __init__(self, graph: ExpressionGraph, evaluator: LargeEvaluator, checks: Iterable[Check]) -> None:
        self._readings = readings_graph()
        self._graph, self._evaluator = graph, evaluator
        self._checks = {check.name: check for check in checks}
        self._default = {check.name: check for check in self._readings.checks[DEFAULT_MODEL]}
        self._nodes = self._readings.graph.nodes
        self._made: dict[int, int] = {}
        self._same: dict[str, dict[tuple[int, int], int | None]] = {}
        """By reading, the nodes that stand for pairs of an expression of the default and one of the reading."""
        self._may: dict[str, MayReport] = {}
        self._by_default: dict[str, Value] = {}
        """What each flag of the default reports, as far as it was asked for."""

    def added_by_readings(self) -> Iterator[tuple[str, FlagPairs]]:
        """For each reading, what its flags report and those of the default do not."""
        for reading in self._readings.readings:
            yield reading, self._reported(reading, self._may_report(reading).more, more=True)

    def fewer(self, names: AbstractSet[str], readings: Iterable[str] | None = None) -> Iterator[tuple[str, FlagPairs]]:
        """For each of these readings, what some flags of the default report and those of the reading do not."""
        for reading in self._readings.readings if readings is None else readings:
            yield reading, self._reported(reading, self._may_report(reading).fewer & names, more=False)

    def possible(self, fewer: AbstractSet[str] | None) -> Iterator[str]:
        """The readings whose flags may report more; or `fewer`, some flags. No closure is evaluated: where a reading
        changes what one is made of, it may.
        """
        more = fewer is None
        for reading in self._readings.readings:
            may = self._may_report(reading)
            names = may.more if fewer is None else may.fewer & fewer
            same: dict[tuple[int, int], int | None] = {}
            for check in self._checks_of(reading, names):
                number = self._other(self._default[check.name].node, check.node, same, closures=False)
                if number is None or self._pairs(check.name, number, more=more):
                    yield reading
                    break

    def _may_report(self, reading: str) -> MayReport:
        """The flags that may report more under a reading, and fewer, by the expressions in which it differs."""
        if reading not in self._may:
            self._may[reading] = self._growing(reading)
        return self._may[reading]

    def _growing(self, reading: str) -> MayReport:
        may = MayReport(set(), set())
        for difference in self._readings.differences[reading]:
            pair = difference.default, difference.reading
            if any(self._nodes[node].open for node in pair):
                return MayReport(set(self._default), set(self._default))
            nodes = [self._node(node) for node in pair]
            if self._evaluator.equal(*nodes):
                continue
            parts = differences(*map(self._evaluator.value, nodes))
            grows, shrinks = (not self._evaluator.rows.is_empty(part) for part in parts)
            for changes, more, fewer in (
                (grows, difference.grown, difference.shrunk),
                (shrinks, difference.shrunk, difference.grown),
            ):
                may.more.update(more if changes else ())
                may.fewer.update(fewer if changes else ())
        return may

    def _reported(self, reading: str, names: AbstractSet[str], *, more: bool) -> FlagPairs:
        """What flags report under a reading and not under the default, or the other way."""
        pairs, same = {}, self._same.setdefault(reading, {})
        for check in self._checks_of(reading, names):
            number = self._other(self._default[check.name].node, check.node, same)
            pairs[check.name] = [] if number is None else self._pairs(check.name, number, more=more)
        return {name: which for name, which in pairs.items() if which}

    def _checks_of(self, reading: str, names: AbstractSet[str]) -> Iterator[ReadingCheck]:
        return (check for check in self._readings.checks[reading] if check.name in names) if names else iter(())

    def _pairs(self, name: str, number: int, *, more: bool) -> list[tuple[int, int]]:
        """What a flag whose body has become another node reports and that of the default does not, or the other way."""
        theirs = reporting(self._checks[name], self._evaluator.value(number))
        if name not in self._by_default:
            value = self._evaluator.value(self._node(self._default[name].node))
            self._by_default[name] = reporting(self._checks[name], value)
        added, gone = differences(self._by_default[name], theirs)
        return pairs_in(added if more else gone)

    def _node(self, stored: int) -> int:
        """The node of the default's graph that an expression of the stored graph is."""
        number = self._made.get(stored)
        if number is None:
            node = self._nodes[stored]
            number = self._made[stored] = self._graph.add(node, tuple(map(self._node, node.operands)))
        return number

    def _other(
        self, default: int, stored: int, same: dict[tuple[int, int], int | None], *, closures: bool = True
    ) -> int | None:
        """The node that stands for an expression of a reading: that of the default where the values are equal. None if
        it would take the evaluation of a closure to know, and these are not wanted.
        """
        if default == stored:
            return self._node(default)
        key = default, stored
        if key not in same:
            same[key] = self._changed(default, stored, same, closures=closures)
        return same[key]

    def _changed(
        self, default: int, stored: int, same: dict[tuple[int, int], int | None], *, closures: bool
    ) -> int | None:
        mine, node, other = self._node(default), self._nodes[default], self._nodes[stored]
        number = self._node(stored)
        if _alike(node, other):
            pairs = zip(node.operands, other.operands, strict=True)
            operands = [self._other(*pair, same, closures=closures) for pair in pairs]
            if None in operands:
                return None
            number = self._graph.add(other, tuple(operand for operand in operands if operand is not None))
            if number != mine and not closures and other.op in CLOSURES:
                return None
        known = self._evaluator.known(mine)
        if number != mine and known is not None and mine in self._evaluator.kept:
            self._evaluator.kept |= {number}
            return mine if self._evaluator.equal(number, mine) else number
        return number
