"""One question: does some program of a layout break a property, in an execution that a model allows?

In: PropertyCheck, Vocabulary, ThreadLayout; as a task of `search.work`, names of a property and of a model. Out:
`Counterexample`s. A property that says what holds in every execution needs one execution to fail, so that each answer
of the solver is a counterexample; the engines confirm it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from memmodel.base.logic import FALSE
from memmodel.errors import InputError
from memmodel.search.properties import Counterexample, PropertyCheck, load_property
from memmodel.search.solving.layouts import ThreadLayout, layouts
from memmodel.search.solving.question import LayoutQuestion, Slots
from memmodel.search.tasks import models_key, property_check
from memmodel.search.vocabulary import Vocabulary
from memmodel.search.work import Record


@dataclass(frozen=True, slots=True)
class Breach:
    """One way to break a property: its check fails for events of these slots. `formula`: that it does."""

    check: str
    slots: Slots
    formula: int


class PropertyQuestion(LayoutQuestion):
    """All programs of a layout that break a property."""

    def __init__(self, check: PropertyCheck, vocabulary: Vocabulary, layout: ThreadLayout) -> None:
        super().__init__([check.model], check.own, vocabulary, layout)
        self.check = check
        self.logic.require(self.ends)
        self.logic.require(self.programs[-1])

    def counterexamples(self) -> Iterator[Counterexample]:
        """The first program that breaks the property; none: the layout has no such program. Raises BudgetSpent.

        What would break it is asked for one pair of slots after the other: this takes half of the time, or less.
        """
        allowed, left = self.allowed[0], self._breaches()
        while left:
            formula = left[0].formula
            # Mostly not even an execution that the axioms forbid breaks it, a question without their formulas.
            if not (self.satisfiable(formula) and self.satisfiable(self.logic.both(allowed, formula))):
                left = left[1:]
                continue
            some = self.logic.both(allowed, self.logic.disj(breach.formula for breach in left))
            next(programs for programs in self.programs if self.satisfiable(programs, some))
            name = next(breach.check for breach in left if self.solver.holds(breach.formula))
            specimen, literals = self.candidate()
            if name in specimen.flags(self.check.model):
                yield self.check.raised(specimen, name, 1)
                return
            self.logic.require(*(-literal for literal in literals))
        self.is_settled()

    def _breaches(self) -> list[Breach]:
        """All of them; those that begin at the last slots come first, since they help with the rest."""
        breaches = [
            Breach(check, slots, formula)
            for check, by_slots in self.raised[0].items()
            for slots, formula in by_slots.items()
            if formula != FALSE
        ]
        return sorted(breaches, key=lambda breach: (-min(breach.slots, default=0), max(breach.slots, default=0)))


@dataclass(frozen=True, slots=True)
class PropertySolvingTask:
    """Finds a smallest program that breaks a property which says what holds in every execution."""

    property: str
    model: str
    vocabulary: Vocabulary
    most: int
    chunk: int = 1
    first_only: bool = True

    def key(self) -> str:
        return (
            f"solve to verify {self.property} {self.model} {models_key(self.model)} {self.most} "
            f"{self.vocabulary.text()}"
        )

    def parts(self, size: int) -> list[ThreadLayout]:
        """The layouts, those of one thread first: they take longest, and are not to be left to the end."""
        return layouts(self.vocabulary, size)[::-1]

    def judge(self, part: ThreadLayout) -> list[Record]:
        question = PropertyQuestion(property_check(self.property, self.model), self.vocabulary, part)
        return [asdict(counterexample) for counterexample in question.counterexamples()]


def ask_for(name: str, model: str, vocabulary: Vocabulary, most: int) -> PropertySolvingTask:
    """The task for a property. Raises InputError if it is of another kind."""
    prop = load_property(name)
    if prop.kind != "invariant":
        raise InputError(
            f"{prop.name} is no invariant: it says more than what holds in every execution",
            hint="leave out --by solving",
        )
    return PropertySolvingTask(name, model, vocabulary, most)
