"""Why an outcome is never seen: a minimal set of axioms, and for each the cycle or contradiction that it forbids.

In: a lowered test, a model, the axioms that the answer names. Out: `Contradiction`s. The execution of each is one that
every other axiom of the model allows, or, where there is none, every other axiom of the set.
"""

from __future__ import annotations

from dataclasses import replace

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
    lowered: LoweredTest, model: Model, options: Options, axioms: tuple[str, ...]
) -> tuple[Contradiction, ...]:
    """One for each axiom that the `never` needs; fewer where the budget ran out."""
    known = {check.name for check in model.axioms}
    names = minimal(lowered, model, options, tuple(name for name in axioms if name in known))
    shown = []
    for name in names:
        witness = _without(lowered, _less(model, name), options)
        if witness is None:
            witness = _without(lowered, only(model, [other for other in names if other != name]), options)
        if witness is not None:
            shown.append(_contradiction(model, name, witness))
    return tuple(contradiction for contradiction in shown if contradiction is not None)


def minimal(lowered: LoweredTest, model: Model, options: Options, axioms: tuple[str, ...]) -> tuple[str, ...]:
    """A part of the axioms that forbids the condition and of which none can be left out."""
    kept = list(axioms)
    if len(kept) < 2:
        return axioms
    for name in axioms:
        rest = [kept_name for kept_name in kept if kept_name != name]
        if _never(lowered, only(model, rest), options):
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


def _never(lowered: LoweredTest, model: Model, options: Options) -> bool:
    answer = _answer(lowered, model, options)
    return answer is not None and answer.observation in (Observation.NEVER, Observation.VACUOUS)


def _without(lowered: LoweredTest, model: Model, options: Options) -> Witness | None:
    answer = _answer(lowered, model, options)
    return None if answer is None else answer.witness


def _answer(lowered: LoweredTest, model: Model, options: Options) -> Answer | None:
    """What a model with less axioms says; None where it has an execution that cannot be run: without some
    axiom, values may come out of thin air, and then no numbers need fit."""
    try:
        return engine.answer(lowered, model, options, findings=False)
    except InternalError:
        return None


def _contradiction(model: Model, name: str, witness: Witness) -> Contradiction | None:
    check: Check = next(axiom for axiom in model.axioms if axiom.name == name)
    execution = execution_of(witness)
    if execution is None or witness.ground is None:
        return None
    values = Values(model, execution, witness.ground.ranks)
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
