"""Why an outcome is never seen: a minimal set of axioms, and for each the cycle or contradiction that it forbids.

In: a lowered test, a model, the axioms that the answer names. Out: `Contradiction`s. The execution of each is one that
every other axiom of the model allows, or, where there is none, every other axiom of the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from memmodel import engine
from memmodel.answer import Answer, Observation, Witness
from memmodel.cat.syntax import Check, Model
from memmodel.engine import Options
from memmodel.errors import InternalError
from memmodel.program.lowered import LoweredTest
from memmodel.referee.relevance import condition_sources
from memmodel.why.records import At, Contradiction, PathStep
from memmodel.why.story import Path, execution_of
from memmodel.why.unfold import Unfolding
from memmodel.why.values import Values

MANY = 100
"""At most this many models without one of their axioms are kept."""


def contradictions(
    lowered: LoweredTest, model: Model, options: Options, axioms: tuple[str, ...], answer: Answer
) -> tuple[Contradiction, ...]:
    """A contradiction for each axiom that the `never` needs; fewer where the budget ran out.

    `answer`: what was answered. The axioms that the solver names are minimal, and it makes the formulas of the test
    once for all parts of the axioms.
    """
    known = {check.name for check in model.axioms}
    names = tuple(name for name in axioms if name in known)
    by_solver = answer.engine == "z3"
    parts = (engine.axiom_parts(lowered, model, options) if by_solver else None) or EachByItself(lowered, options)
    if not (by_solver and answer.observation is Observation.NEVER):
        names = minimal(parts, model, names)
    shown = []
    for name in names:
        witness = parts.witness(_less(model, name))
        if witness is None:
            witness = parts.witness(only(model, [other for other in names if other != name]))
        if witness is not None:
            shown.append(_contradiction(model, name, witness))
    return tuple(contradiction for contradiction in shown if contradiction is not None)


class Parts(Protocol):
    """Questions about the condition of a test under parts of a model's axioms."""

    def forbids(self, part: Model) -> bool:
        """True if no execution that the part allows satisfies the condition."""

    def witness(self, part: Model) -> Witness | None:
        """An execution that satisfies the condition and that the part allows, if one was found."""


@dataclass(frozen=True, slots=True)
class EachByItself:
    """Every part is a model of its own, which any engine may judge."""

    lowered: LoweredTest
    options: Options

    def forbids(self, part: Model) -> bool:
        """True if the condition is never seen under the part, or no execution ends."""
        answer = self._answer(part)
        return answer is not None and answer.observation in (Observation.NEVER, Observation.VACUOUS)

    def witness(self, part: Model) -> Witness | None:
        """The execution that an engine shows for the condition under the part."""
        answer = self._answer(part)
        return None if answer is None else answer.witness

    def _answer(self, part: Model) -> Answer | None:
        """What a model with less axioms says; None where it has an execution that cannot be run: without some
        axiom, values may come out of thin air, and then no numbers need fit."""
        try:
            return engine.answer(self.lowered, part, self.options, findings=False)
        except InternalError:
            return None


def minimal(parts: Parts, model: Model, axioms: tuple[str, ...]) -> tuple[str, ...]:
    """A part of the axioms that forbids the condition and of which none can be left out."""
    kept = list(axioms)
    if len(kept) < 2:
        return axioms
    for name in axioms:
        rest = [kept_name for kept_name in kept if kept_name != name]
        if parts.forbids(only(model, rest)):
            kept = rest
    return tuple(kept)


_LESS: dict[tuple[int, str], tuple[Model, Model]] = {}
"""Models less an axiom, by the identity of the model: engines keep what they work out on a model by its identity."""


def _less(model: Model, name: str) -> Model:
    if (id(model), name) not in _LESS:
        if len(_LESS) > MANY:
            _LESS.clear()
        _LESS[id(model), name] = (model, model.without(name))
    return _LESS[id(model), name][1]


def only(model: Model, names: list[str]) -> Model:
    """The model with these axioms alone."""
    return replace(model, checks=tuple(check for check in model.axioms if check.name in names))


def _contradiction(model: Model, name: str, witness: Witness) -> Contradiction | None:
    check: Check = next(axiom for axiom in model.axioms if axiom.name == name)
    execution = execution_of(witness)
    if execution is None or witness.evaluated is None:
        return None
    values = Values(model, execution, witness.evaluated.ranks)
    if values.holds(check):
        return None
    sources = condition_sources(execution, execution.frame.lowered.test.condition)
    steps = Path(witness, (), values).steps(Unfolding(values).broken(check, sources))
    return Contradiction(name, check.doc, steps, _places(steps), witness)


def _places(steps: tuple[PathStep, ...]) -> tuple[At, ...]:
    """The instructions on a path, each once, in the order of the test."""
    places: dict[At, None] = {}
    for step in steps:
        for place in (step.first, step.second):
            if place.thread is not None:
                places[place] = None
        places |= dict.fromkeys(_places(step.parts))
    return tuple(sorted(places, key=lambda place: (place.thread or "", place.line or 0, place.label)))
