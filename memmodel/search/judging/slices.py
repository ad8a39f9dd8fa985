"""Relations of all spellings of a program at once: each pair of events holds the set of spellings that relate them.

In: models, the sizes of the choices. Out: `WorldGrid`, and `ModelSlices`, which evaluates definitions and checks over
such relations. A spelling is a *world*, a set of worlds one integer. A set of events is a list of worlds by event, a
relation a list of rows, each a dictionary from event to worlds; what is absent is empty. Equal expressions of all
models share one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from memmodel.base.graphs import reached
from memmodel.cat.analysis import CHOICE
from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import ExpressionGraph, Node
from memmodel.cat.syntax import Check, Model
from memmodel.errors import InputError, InternalError
from memmodel.search.judging.inclusion import Inclusions

WorldSet = int
Members = list[int]
SlicedRows = list[dict[int, int]]

STAGE = {"rf": 1, "sync_fence": 2, "co": 3}
"""When a base relation is chosen; what is not listed is settled by the runs of the threads."""

STAGES = 4


class WorldGrid:
    """`sizes[d]`: how many choices dimension d has."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.strides: list[int] = []
        self.count = 1
        for size in sizes:
            self.strides.append(self.count)
            self.count *= size
        self.full = (1 << self.count) - 1
        self._known: dict[tuple[int, int], int] = {}

    def worlds_with(self, dimension: int, choice: int) -> int:
        """The worlds with this choice in this dimension."""
        key = (dimension, choice)
        if key not in self._known:
            stride, period = self.strides[dimension], self.strides[dimension] * self.sizes[dimension]
            block = (1 << stride) - 1 << choice * stride
            repeats = self.count // period
            # block at 0, period, 2·period, …: doubled until it is long enough
            done, mask = 1, block
            while done < repeats:
                more = min(done, repeats - done)
                mask |= (mask & (1 << more * period) - 1) << done * period
                done += more
            self._known[key] = mask
        return self._known[key]

    def moved(self, worlds: int, dimension: int, old: int, new: int) -> int:
        """For worlds with choice `old`: are the worlds with `new` in its place in the set? As a set of the former."""
        inside = worlds & self.worlds_with(dimension, new)
        by = (new - old) * self.strides[dimension]
        return inside >> by if by > 0 else inside << -by

    def choice(self, world: int) -> tuple[int, ...]:
        """The choices of a world."""
        choices = []
        for size in self.sizes:
            world, option = divmod(world, size)
            choices.append(option)
        return tuple(choices)

    def number(self, choice: Sequence[int]) -> int:
        return sum(option * stride for option, stride in zip(choice, self.strides, strict=True))


def union(sets: Iterable[WorldSet]) -> WorldSet:
    """The worlds of several sets."""
    return reduce(or_, sets, 0)


class ModelSlices:
    """Definitions and checks of several models, to be evaluated on one execution after the other.

    `start(exists, base)`: events and what each base name means; `choose(name, rows)`: chosen relations. What is
    evaluated is kept until what it depends on is chosen anew: each stage has an evaluator.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self.graph = ExpressionGraph()
        self._checks: dict[tuple[int, str], tuple[int, Check]] = {}
        for number, model in enumerate(models):
            defined = self.graph.define(model.definitions)
            for definition, node in zip(model.definitions, defined, strict=True):
                if CHOICE in self.graph.nodes[node].bases:
                    what = f"{model.name} chooses an order ({definition.name}); the search does not follow that"
                    raise InputError(what)
            for check in model.checks:
                self._checks[number, check.name] = (self.graph.node(check.body, defined), check)
        self._stages = [max((STAGE.get(name, 0) for name in node.bases), default=0) for node in self.graph.nodes]
        self.inclusions = Inclusions(self.graph.nodes)
        self._chosen: dict[str, SlicedRows] = {}
        self.start([], lambda name: None)

    # ---- asking ------------------------------------------------------------------------------------------------

    def start(self, exists: Members, base: Callable[[str], Any]) -> None:
        """Turn to other events."""
        self._chosen = {}
        self._algebra = WorldAlgebra(exists, lambda name: self._chosen[name] if name in STAGE else base(name))
        self._evaluators = [self._evaluator(stage) for stage in range(STAGES)]

    def choose(self, name: str, rows: SlicedRows) -> None:
        """Decide a chosen relation; decisions of later stages are open again."""
        self._chosen[name] = rows
        self._enter(STAGE[name])

    def threads_changed(self) -> None:
        """What the runs of the threads settle has changed: barriers, objects."""
        self._enter(0)

    def _enter(self, stage: int) -> None:
        self._evaluators[stage:] = [self._evaluator(later) for later in range(stage, STAGES)]

    def _evaluator(self, stage: int) -> Evaluator[Any]:
        """An evaluator of what a stage settles; it asks those of earlier stages."""
        stages = self._stages

        def known(number: int) -> Any:
            earlier = stages[number]
            return self._evaluators[earlier].value(number) if earlier < stage else None

        return Evaluator(self.graph, self._algebra, known)

    def only_in_one(self) -> list[int]:
        """The smallest expressions that one of two models has and the other has not."""
        graph = self.graph.nodes
        models: list[set[int]] = [set(), set()]
        for (number, _), (node, _) in self._checks.items():
            models[number] |= reached([node], lambda at: graph[at].operands)
        apart = models[0] ^ models[1]
        return [node for node in sorted(apart) if apart.isdisjoint(graph[node].operands)]

    def stage(self, number: int, name: str) -> int:
        """When a check of a model is settled."""
        return self._stages[self._checks[number, name][0]]

    def body(self, number: int, name: str) -> int:
        """The node of what a check of a model tests."""
        return self._checks[number, name][0]

    def fails(self, number: int, name: str) -> WorldSet:
        """The worlds in which the body of a check is not as its test wants, negation aside."""
        node, check = self._checks[number, name]
        return self._algebra.fails(check.kind, self._evaluators[self._stages[node]].value(node))


def repeated(value: Any, lanes: int) -> Any:
    """A set or relation in several lanes; `lanes` has the lowest bit of each."""
    if value and isinstance(value[0], dict):
        return [{b: worlds * lanes for b, worlds in row.items()} for row in value]
    return [worlds * lanes for worlds in value]


def merged(parts: Sequence[tuple[Any, int]]) -> Any:
    """One value from several, each in lanes of its own."""
    united = repeated(*parts[0])
    for value, lanes in parts[1:]:
        for at, entry in enumerate(value):
            if isinstance(entry, dict):
                row = united[at]
                for b, worlds in entry.items():
                    row[b] = row.get(b, 0) | worlds * lanes
            else:
                united[at] |= entry * lanes
    return united


class WorldAlgebra(Algebra[Any]):
    """Sets and relations in all worlds. `exists`: the worlds in which each event is there; `read`: of a base name."""

    def __init__(self, exists: Members, read: Callable[[str], Any]) -> None:
        self._exists, self._read = exists, read
        self._nobody: Members = [0] * len(exists)
        self._none: SlicedRows = [{} for _ in exists]

    def base(self, node: Node) -> Any:
        return self._read(node.name)

    def order(self, node: Node, over: Any, extends: Any) -> Any:
        raise InternalError("the search follows no choice of an order")

    def empty(self, is_set: bool) -> Any:
        return self._nobody if is_set else self._none

    def is_empty(self, value: Any) -> bool:
        return not any(value)

    def union(self, left: Any, right: Any) -> Any:
        if isinstance(left[0], int):
            return [a | b for a, b in zip(left, right, strict=True)]
        united = []
        for mine, other in zip(left, right, strict=True):
            both = dict(mine)
            for b, worlds in other.items():
                both[b] = both.get(b, 0) | worlds
            united.append(both)
        return united

    def intersection(self, left: Any, right: Any) -> Any:
        if isinstance(left[0], int):
            return [a & b for a, b in zip(left, right, strict=True)]
        return [
            {b: both for b, worlds in mine.items() if (both := worlds & other.get(b, 0))}
            for mine, other in zip(left, right, strict=True)
        ]

    def difference(self, left: Any, right: Any) -> Any:
        if isinstance(left[0], int):
            return [a & ~b for a, b in zip(left, right, strict=True)]
        return [
            {b: kept for b, worlds in mine.items() if (kept := worlds & ~other.get(b, 0))}
            for mine, other in zip(left, right, strict=True)
        ]

    def complement(self, value: Any, is_set: bool) -> Any:
        if is_set:
            return [every & ~worlds for every, worlds in zip(self._exists, value, strict=True)]
        return [
            {b: left for b, other in enumerate(self._exists) if (left := every & other & ~row.get(b, 0))}
            for every, row in zip(self._exists, value, strict=True)
        ]

    def compose(self, left: SlicedRows, right: SlicedRows) -> SlicedRows:
        composed: SlicedRows = []
        for row in left:
            mine: dict[int, int] = {}
            for middle, into in row.items():
                for b, worlds in right[middle].items():
                    both = into & worlds
                    if both:
                        mine[b] = mine.get(b, 0) | both
            composed.append(mine)
        return composed

    def from_sources(self, sources: Members, relation: SlicedRows) -> SlicedRows:
        return [
            {b: both for b, related in row.items() if (both := worlds & related)} if worlds else {}
            for worlds, row in zip(sources, relation, strict=True)
        ]

    def to_targets(self, relation: SlicedRows, targets: Members) -> SlicedRows:
        return [{b: both for b, related in row.items() if (both := related & targets[b])} for row in relation]

    def product(self, left: Members, right: Members) -> SlicedRows:
        targets = [(b, other) for b, other in enumerate(right) if other]
        return [{b: both for b, other in targets if (both := worlds & other)} if worlds else {} for worlds in left]

    def identity(self, events: Members) -> SlicedRows:
        return [{a: worlds} if worlds else {} for a, worlds in enumerate(events)]

    def inverse(self, relation: SlicedRows) -> SlicedRows:
        turned: SlicedRows = [{} for _ in relation]
        for a, row in enumerate(relation):
            for b, worlds in row.items():
                turned[b][a] = worlds
        return turned

    def optional(self, relation: SlicedRows) -> SlicedRows:
        return self.union(relation, self.identity(self._exists))  # type: ignore[no-any-return]

    def closure(self, relation: SlicedRows) -> SlicedRows:
        """Warshall, in all worlds at once."""
        closed = [dict(row) for row in relation]
        for middle, row in enumerate(closed):
            through = list(row.items())
            if not through:
                continue
            for other in closed:
                into = other.get(middle)
                if into:
                    for b, worlds in through:
                        both = into & worlds
                        if both:
                            other[b] = other.get(b, 0) | both
        return closed

    def domain(self, relation: SlicedRows) -> Members:
        return [union(row.values()) for row in relation]

    def range(self, relation: SlicedRows) -> Members:
        return self.domain(self.inverse(relation))

    def fails(self, test: str, value: Any) -> WorldSet:
        """The worlds in which a value is not empty, not irreflexive, or not acyclic, as the test asks."""
        if test == "empty":
            return union(members if isinstance(members, int) else union(members.values()) for members in value)
        relation = self.closure(value) if test == "acyclic" else value
        return union(row.get(a, 0) for a, row in enumerate(relation))
