"""A model and all its edits as one graph of expressions, in which equal expressions are one node.

In: Model, edits. Out: `EditFamily`: for each edit, the checks whose nodes are others than those of the model, and
whether its values may support themselves. An edit without such a check says the same as the model of every execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memmodel.cat.analysis import CHOICE, grounds_values, group_at, names_in
from memmodel.cat.evaluate.graph import DefinitionGraph, ExpressionGraph
from memmodel.cat.syntax import Check, Definition, Expr, Model
from memmodel.mutate.edits import ModelEdit, changed, edited, places
from memmodel.search.judging.inclusion import Inclusions


@dataclass(frozen=True, slots=True)
class PlacedCheck:
    """A check, and the node of what it tests."""

    check: Check
    node: int


@dataclass(frozen=True, slots=True)
class ChangedDefinition:
    """A definition whose node is another one in an edited model. `needs`: the changed definitions that it refers to."""

    number: int
    mine: int
    other: int
    needs: frozenset[int]


@dataclass(frozen=True, slots=True)
class ModelChanges:
    """What differs in an edited model: definitions in order, and checks, each with the changed definitions that it
    refers to; None: the check is gone."""

    definitions: tuple[ChangedDefinition, ...]
    checks: dict[str, tuple[PlacedCheck | None, frozenset[int]]]


class Member:
    """An edited model. `frontier`: pairs of nodes, of the model and of the edited one, in which all differences begin;
    empty if a check is dropped or its test is changed."""

    def __init__(self, family: EditFamily, edit: ModelEdit) -> None:
        self.edit = edit
        self._family = family
        self.frontier = tuple(pair for pair in family.differing(edit) if pair[0] != pair[1])
        self.of_check = edit.target[3].startswith("check ")

    @property
    def unchanged(self) -> bool:
        """True if all its expressions are those of the model."""
        return not self.frontier and not self.of_check

    @cached_property
    def model(self) -> Model:
        """The edited model."""
        return edited(self._family.model, self.edit)

    @cached_property
    def grounded(self) -> bool:
        """True if no value supports itself under it."""
        return grounds_values(self.model)

    @cached_property
    def changes(self) -> ModelChanges:
        """What differs in the edited model."""
        return self._family.changes(self.model)


class EditFamily:
    """`checks`: those of the model by name; `members`: its edits, in order; `own`: the number of the first node that
    only edits have; `inclusions`: what the laws of the operators show of its nodes, in whatever test."""

    def __init__(self, model: Model, edits: Sequence[ModelEdit]) -> None:
        self.model = model
        self.graph = ExpressionGraph()
        self.inclusions = Inclusions(self.graph.nodes)
        self._defined = self.graph.define(model.definitions)
        self.checks = {
            check.name: PlacedCheck(check, self.graph.node(check.body, self._defined)) for check in model.checks
        }
        self.grounded = grounds_values(model)
        self.chooses = any(CHOICE in self.graph.nodes[placed.node].bases for placed in self.checks.values())
        self._needs = [
            {name.ref for name in names_in(definition.body) if name.ref is not None} for definition in model.definitions
        ]
        self._refers = [self._of_group(number) for number in range(len(model.definitions))]
        self.own = len(self.graph.nodes)
        self.members = [Member(self, edit) for edit in edits]

    @property
    def definitions(self) -> DefinitionGraph:
        """The definitions of the model, in the graph that has the edited expressions as well."""
        return DefinitionGraph(self.graph, tuple(self._defined))

    def _of_group(self, number: int) -> frozenset[int]:
        """The definitions that a definition refers to; of a `let rec`, those outside the group that any member refers
        to.
        """
        group = self.model.definitions[number].group
        if group is None:
            return frozenset(self._needs[number])
        members = {n for n, other in enumerate(self.model.definitions) if other.group == group}
        return frozenset(ref for n in members for ref in self._needs[n] if ref not in members)

    def differing(self, edit: ModelEdit) -> Iterator[tuple[int, int]]:
        """The nodes that an edit changes, each with what it becomes; of a `let rec`, its members."""
        definitions = self.model.definitions
        for number in edit.definitions:
            if definitions[number].group is None:
                yield from self._changed_nodes(definitions[number].body, edit)
            else:
                group = [n for n, other in enumerate(definitions) if other.group == definitions[number].group]
                bodies = [replace(definitions[n], body=changed(definitions[n].body, edit)) for n in group]
                nodes = self.graph.recursion(bodies, self._defined[: group[0]])
                yield from zip((self._defined[n] for n in group), nodes, strict=True)
        for check in self.model.checks:
            if check.name in edit.checks:
                yield from self._changed_nodes(check.body, edit)

    def _changed_nodes(self, body: Expr, edit: ModelEdit) -> Iterator[tuple[int, int]]:
        for old, new in places(body, edit):
            yield self.graph.node(old, self._defined), self.graph.node(new, self._defined)

    def changes(self, model: Model) -> ModelChanges:
        """What differs in an edited model."""
        defined = self._nodes(model.definitions)
        differing = frozenset(n for n, node in enumerate(defined) if node != self._defined[n])
        definitions = tuple(
            ChangedDefinition(number, self._defined[number], defined[number], self._refers[number] & differing)
            for number in sorted(differing)
        )
        kept = {check.name: check for check in model.checks}
        checks: dict[str, tuple[PlacedCheck | None, frozenset[int]]] = {}
        for name, placed in self.checks.items():
            check = kept.get(name)
            if check is None:
                checks[name] = None, frozenset()
                continue
            node = self.graph.node(check.body, defined)
            if node != placed.node or check.kind != placed.check.kind:
                needs = frozenset(name.ref for name in names_in(placed.check.body) if name.ref is not None)
                checks[name] = PlacedCheck(check, node), needs & differing
        return ModelChanges(definitions, checks)

    def _nodes(self, definitions: Sequence[Definition]) -> list[int]:
        """The nodes of an edited model's definitions; those of the model where nothing below is edited."""
        defined: list[int] = []
        while len(defined) < len(definitions):
            at = len(defined)
            members = group_at(definitions, at)
            same = all(
                definitions[number] is self.model.definitions[number]
                and all(ref >= at or defined[ref] == self._defined[ref] for ref in self._needs[number])
                for number in members
            )
            if same:
                defined += [self._defined[number] for number in members]
            elif definitions[at].group is not None:
                defined += self.graph.recursion([definitions[number] for number in members], defined)
            else:
                defined.append(self.graph.node(definitions[at].body, defined))
        return defined
