"""One program under two models: what only one of them allows or reports.

In: two models, the steps of a program. Out: a `Behaviour` for each model: final states, hangs, findings. Every
execution of the program is tried, once for each model. Labels are looked at first: most programs have none of those on
which the models can disagree.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from memmodel.answer import Budget
from memmodel.base.labels import Fault, InitialWrite, Label, Mark, Marker, Undefined
from memmodel.cat.analysis import grounds_values
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Position
from memmodel.concrete.meter import Meter
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.question import WAITS, AskedKey, Key, Stopped
from memmodel.enumeration.search import Search
from memmodel.errors import BudgetSpent
from memmodel.program.expressions import Expr
from memmodel.program.lowered import LoweredTest
from memmodel.referee.finals import outcome_terms
from memmodel.search.differences import compared_flags
from memmodel.search.judging.alike import alike
from memmodel.search.judging.slices import ModelSlices

EFFORT = 400_000
"""What one program may cost under one model, in the steps of the enumeration."""

MORE_EFFORT = (10 * EFFORT, 100 * EFFORT)
"""What a program may cost that was not decided with less: in turn, where no difference is known."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The answers of a model about a program. `reports`: each flag with the instructions that it relates."""

    states: frozenset[Key]
    hangs: bool
    flags: frozenset[str]
    reports: frozenset[tuple[str, frozenset[Position]]]


class ComparedModels:
    """Two models. `outcomes`: findings do not count."""

    def __init__(self, models: tuple[Model, Model], *, outcomes: bool = False) -> None:
        self.models, self.outcomes = models, outcomes
        self.flags = () if outcomes else compared_flags(models)
        self._formulas = ModelSlices(models)
        self._plans = [
            Plan(m, tuple(c.name for c in m.flags if c.name in self.flags or kind_of(c.name) is FindingKind.MIXED))
            for m in models
        ]
        self._grounded = [grounds_values(model) for model in models]
        self._alike: dict[tuple[frozenset[Label], frozenset[str]], bool] = {}

    def differ(self, lowered: LoweredTest, effort: int = EFFORT) -> tuple[Behaviour, Behaviour] | None:
        """What the models make of a program, if it is not the same. Raises BudgetSpent, TooLarge."""
        if self.agree_on(labels_in(lowered)):
            return None
        budget = Budget(effort=effort, seconds=sys.maxsize)
        problems = self._problems(lowered, budget)
        behaviours = tuple(
            self._behaviour(number, lowered, problems[grounded], budget)
            for number, grounded in enumerate(self._grounded)
        )
        return None if behaviours[0] == behaviours[1] else (behaviours[0], behaviours[1])

    def agree_on(self, labels: frozenset[Label], absent: frozenset[str] = frozenset()) -> bool:
        """True if the models agree on every program whose events have such labels. `absent`: relations that are empty
        in all of them."""
        key = labels, absent
        if key not in self._alike:
            self._alike[key] = alike(self._formulas, self.models, self.flags, tuple(labels), absent)
        return self._alike[key]

    def named_by_the_change(self) -> frozenset[str]:
        """The base names beside which the models differ: in the smallest expressions that only one of them has."""
        nodes = self._formulas.graph.nodes
        names: set[str] = set()
        for number in self._formulas.only_in_one():
            near = [nodes[at] for at in (number, *nodes[number].operands)]
            names.update(node.name for node in near)
            names.update(nodes[at].name for node in near if len(node.operands) == 1 for at in node.operands)
        return frozenset(names - {""})

    def _problems(self, lowered: LoweredTest, budget: Budget) -> dict[bool, Problem]:
        """The runs of the threads, by whether values may support themselves."""
        asked = AskedKey(lowered, outcome_terms(lowered)).extents
        return {
            grounded: prepare(lowered, 3, Meter(budget), waits=not self.outcomes, asked=asked, grounded=grounded)
            for grounded in set(self._grounded)
        }

    def _behaviour(self, number: int, lowered: LoweredTest, problem: Problem, budget: Budget) -> Behaviour:
        question = AskedKey(lowered, outcome_terms(lowered))
        undefined = [name for name in self.flags if kind_of(name) is FindingKind.UNDEFINED]
        search = Search(problem, self._plans[number], question, None, undefined, Meter(budget))
        search.run()
        result = search.result
        if any(isinstance(key, Stopped) for key in result.found):
            raise BudgetSpent("an execution goes beyond what is followed")
        states = frozenset(key for key in result.found if isinstance(key, tuple))
        if any(kind_of(name) is FindingKind.MIXED for name in result.raised):
            states = frozenset()  # the model says nothing of outcomes
        return Behaviour(
            states,
            WAITS in result.found and not self.outcomes,
            frozenset(result.raised) & {*self.flags},
            frozenset(key for key in result.flags if key[0] in self.flags),
        )


def labels_in(lowered: LoweredTest) -> frozenset[Label]:
    """The labels that an event of some execution may have: those of all steps, and those of events that no step is."""
    labels: set[Label] = set(_OF_NO_STEP)
    for program in lowered.programs:
        for step in program.steps:
            labels.update(_labels_of(step.op))
    return frozenset(labels)


_OF_NO_STEP: tuple[Label, ...] = (InitialWrite(), Fault(""), Undefined(""), Mark(Marker.END))


def _labels_of(value: object) -> Iterator[Label]:
    """The labels inside a step."""
    if isinstance(value, Label):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _labels_of(item)
    elif is_dataclass(value) and not isinstance(value, Expr):
        for field in fields(value):
            yield from _labels_of(getattr(value, field.name))
