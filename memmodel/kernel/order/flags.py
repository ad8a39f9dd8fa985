"""The flags of a model on one run, and the relations that it defines.

In: Model, Execution. Out: `Flags`: the flags that are raised, with their pairs, and relations by name. Only definitions
that a flag or a named relation needs are evaluated. The meaning of the operators is the referee's; tests compare the
two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from memmodel.base.rows import Rows
from memmodel.cat.evaluate.changed import ChangedEvaluator
from memmodel.cat.evaluate.every_value import EveryValue
from memmodel.cat.evaluate.graph import ExpressionGraph, Node, graph_of
from memmodel.cat.evaluate.large import LargeEvaluator
from memmodel.cat.evaluate.readings import FlagPairs, OtherFlags
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, reported
from memmodel.cat.syntax import Check, Model
from memmodel.concrete.execution import Execution
from memmodel.concrete.less_events import LessEvents
from memmodel.errors import InputError
from memmodel.kernel.order.frame import RelabelledFrame, RelabelledNames

T = TypeVar("T")

ASKED = ("synchronizes", "base-causality", "causality", "happens", "conflict", "fence-forced")
"""The definitions that are asked for when the flags have been evaluated."""


FEW, MOST = 8, 15_000
"""Where at most one of so many events is left out, what differs is less than the whole; executions with more events
take too much memory for that."""


class ExecutionRows(RowAlgebra):
    """The base sets and relations of an execution. `gone`: numbers that are no events of it."""

    def __init__(self, model: Model, execution: Execution, gone: int = 0) -> None:
        super().__init__(len(execution.events))
        self.running &= ~gone
        self._model, self._execution = model, execution

    def base(self, node: Node) -> Value:
        return self._execution.set(node.name) if node.is_set else self._execution.relation(node.name)

    def order(self, node: Node, over: Value, extends: Value) -> Value:
        name = self._model.definitions[node.place].name
        raise InputError(f"{self._model.name} chooses an order ({name}); kernels are not judged by such a model")


class Flags:
    """A model's flags on one execution. Definitions are evaluated when something asks for them."""

    def __init__(self, model: Model, execution: Execution, like: Flags | None = None) -> None:
        """`like`: flags on the same events, or on these and more; what is the same there is taken over."""
        self.model, self.execution = model, execution
        same, changed, gone = (None, set(), 0) if like is None else like._difference(execution)
        less = execution.frame.gone if isinstance(execution.frame, LessEvents) else 0
        self._rows = ExecutionRows(model, execution, less)
        self._graph: ExpressionGraph = graph_of(model.definitions).graph if same is None else same._graph
        self._defined = self._graph.define(model.definitions)
        self._every: EveryValue | None = None
        self._raised: dict[str, list[tuple[int, int]]] | None = None
        self._known: dict[str, list[tuple[int, int]]] = {}
        """What flags report in the execution that this one differs little from, without the events that are left out;
        nothing of those that are not raised there."""
        if same is not None and same._every is not None and _differing(execution, same) * FEW <= len(execution.events):
            self._known = same._reported_without(gone) if same.model is model else {}
            self._evaluator: LargeEvaluator = ChangedEvaluator(self._graph, self._rows, same._every, changed, gone)
            if execution is same.execution:
                self._every = same._every
        elif same is not None and isinstance(same._evaluator, ChangedEvaluator) and not changed and not gone:
            self._evaluator = same._evaluator.of(self._rows)
        else:
            self._evaluator = LargeEvaluator(self._graph, self._rows)
            if same is not None and not isinstance(changed, RelabelledNames):
                self._evaluator.take_over(same._evaluator, changed, gone)
        self._evaluator.kept = frozenset(self._defined)
        self._names = dict(zip((definition.name for definition in model.definitions), self._defined, strict=True))
        self._asked = [self._names[name] for name in ASKED if name in self._names]
        self._evaluator.left = self._asked

    def _difference(self, other: Execution) -> tuple[Flags | None, AbstractSet[str] | RelabelledNames, int]:
        """What is taken over from these flags for another execution: these themselves or nothing, the base names that
        decide something else there, and the events that are left out."""
        frame, mine = other.frame, self.execution.frame
        if frame is mine:
            return self, _changed(other, self.execution), 0
        whole, more, gone = other, set[str](), 0
        if isinstance(frame, LessEvents):
            whole, more, gone = frame.whole, frame.changed(other), frame.gone
        changed = _changed(whole, self.execution) | more
        if whole.frame is mine:
            return self, changed, gone
        if isinstance(whole.frame, RelabelledFrame) and whole.frame.whole is mine and self._every is not None:
            return self, RelabelledNames(whole.frame, whole, changed), gone
        return None, set(), 0

    @property
    def by_difference(self) -> bool:
        """True if these flags are evaluated by what differs from another execution."""
        return isinstance(self._evaluator, ChangedEvaluator)

    def keep_every_value(self) -> None:
        """From now on the flags of executions that differ little from this one are evaluated by what differs. That
        takes the values of all expressions: nothing is done in a very large execution."""
        if self._every is None and len(self.execution.events) <= MOST:
            self._every = EveryValue(self._graph, self._rows, self._evaluator.known)
            raised = self.raised()
            self._known = {check.name: raised.get(check.name, []) for check in self.model.flags if check.negated}

    def _reported_without(self, gone: int) -> dict[str, list[tuple[int, int]]]:
        """What flags report here, as far as that is kept, where events are left out and nothing else that a flag is
        about differs. What is on a cycle need not be without them."""
        known = {}
        for check in self.model.flags:
            pairs = self._known.get(check.name)
            if pairs and gone:
                pairs = [pair for pair in pairs if not (gone >> pair[0] | gone >> pair[1]) & 1]
            if pairs is not None and not (pairs and gone and check.kind == "acyclic"):
                known[check.name] = pairs
        return known

    def raised(self, names: Iterable[str] | None = None) -> dict[str, list[tuple[int, int]]]:
        """Each flag that is raised, with the pairs that it reports."""
        if names is not None:
            return dict(self.each_raised(names))
        if self._raised is None:
            self._raised = dict(self.each_raised())
        return self._raised

    def each_raised(
        self, names: Iterable[str] | None = None, *, quick_first: bool = False
    ) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """The raised flags one by one, each evaluated only when it is asked for. `quick_first`: begin with the flags
        that need no closure.
        """
        wanted = None if names is None else set(names)
        checks = [check for check in self.model.flags if wanted is None or check.name in wanted]
        if quick_first:
            checks.sort(key=lambda check: not self._graph.nodes[self._node(check)].flat)
        left = [self._node(check) for check in checks]
        for at, check in enumerate(checks):
            if check.name in self._known and self._unchanged(left[at]):
                if pairs := self._known[check.name]:
                    yield check.name, pairs
                continue
            self._evaluator.left = [*left[at:], *self._asked]
            value = self._evaluator.value(left[at])
            if self._rows.fails(check.kind, value) is check.negated:
                yield check.name, reported(check, value)
            del value
            self._evaluator.left = [*left[at + 1 :], *self._asked]
            self._evaluator.forget()

    def quick(self) -> list[str]:
        """The flags for which no closure is evaluated, as far as that is known; none where all is evaluated anew."""
        evaluator = self._evaluator
        if not isinstance(evaluator, ChangedEvaluator):
            return []
        return [check.name for check in self.model.flags if evaluator.is_quick(self._node(check))]

    def _unchanged(self, node: int) -> bool:
        """True if a node has the value that it has in the execution that this one differs little from, but for events
        that are left out."""
        return isinstance(self._evaluator, ChangedEvaluator) and self._evaluator.same(node)

    def holds(self, check: Check) -> bool:
        """True if what the check says is true of this execution."""
        return self._rows.fails(check.kind, self._evaluator.value(self._node(check))) is check.negated

    def _node(self, check: Check) -> int:
        return self._graph.node(check.body, self._defined)

    def more_with_readings(self) -> list[tuple[str, FlagPairs]]:
        """For each reading, what its flags report here and those of the default model, which this is, do not."""
        return self._other(lambda other: list(other.added_by_readings()))

    def fewer_with_readings(
        self, names: AbstractSet[str], readings: Iterable[str] | None = None
    ) -> list[tuple[str, FlagPairs]]:
        """For each of these readings, what some flags of the default model report here and those of the reading do
        not."""
        return self._other(lambda other: list(other.fewer(names, readings)))

    def both_with_readings(self, fewer: AbstractSet[str]) -> list[tuple[str, FlagPairs, FlagPairs]]:
        """For each reading, what its flags report here and those of the default model do not, and the other way, as far
        as `fewer` names the flags."""
        return self._other(
            lambda other: [
                (name, more, gone)
                for (name, more), (_, gone) in zip(other.added_by_readings(), other.fewer(fewer), strict=True)
            ]
        )

    def readings_that_may(self, fewer: AbstractSet[str] | None) -> list[str]:
        """The readings whose flags may report more, by what a reading defines otherwise; or of which some flags may
        report `fewer`."""
        return self._other(lambda other: list(other.possible(fewer)))

    def _other(self, ask: Callable[[OtherFlags], T]) -> T:
        """Ask about the readings. What was evaluated for them is not kept."""
        count, kept = len(self._graph.nodes), self._evaluator.kept
        try:
            return ask(OtherFlags(self._graph, self._evaluator, self.model.flags))
        finally:
            self._evaluator.kept = kept
            self._evaluator.drop(count)

    def relation(self, name: str) -> Rows | None:
        """A relation that the model defines under that name."""
        number = self._names.get(name)
        return None if number is None else as_relation(self._evaluator.value(number))

    def inverse(self, rows: Rows) -> Rows:
        """The inverse of a relation."""
        return self._rows.inverse(rows)


@dataclass(frozen=True, slots=True)
class FlagsWithout:
    """The flags of a run without some instructions. `removed`: their numbers; `events`: what they do."""

    removed: frozenset[int]
    events: int
    flags: Flags


@dataclass(frozen=True, slots=True)
class FlagsAsked:
    """The flags of a run with some changes, evaluated by what differs from those in `known`."""

    changed: frozenset[tuple[int, str]]
    known: FlagsWithout
    flags: Flags

    def are_about(self, changed: frozenset[tuple[int, str]], known: FlagsWithout) -> bool:
        return self.known is known and self.changed == changed


def _differing(execution: Execution, same: Flags) -> int:
    """The events that an execution has not, or with other labels, and that of other flags has as they are."""
    frame = execution.frame
    if frame is same.execution.frame:
        return 0
    if isinstance(frame, LessEvents):
        more = frame.whole.frame
        labels = more.relabelled if isinstance(more, RelabelledFrame) and more is not same.execution.frame else 0
        return (frame.gone & ~frame.before).bit_count() + labels
    return frame.relabelled if isinstance(frame, RelabelledFrame) else 0


def _changed(execution: Execution, other: Execution) -> set[str]:
    """The base names that two executions of the same events decide in different ways."""
    mine, others = execution.chosen_relations, other.chosen_relations
    relations = {name for name in mine.keys() | others.keys() if mine.get(name) is not others.get(name)}
    sets, other_sets = execution.chosen_sets, other.chosen_sets
    return relations | {name for name in sets.keys() | other_sets.keys() if sets.get(name) != other_sets.get(name)}
