"""Choose an engine and ask it. Both answer the same questions and share nothing below the lowered test and the model.

In: LoweredTest, Model. Out: Answer, Outcomes. A test beyond a stated limit is undecided, never forbidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.answer import Answer, Budget, Observation, Outcomes
from memmodel.cat.syntax import Model
from memmodel.errors import InputError, TooLarge
from memmodel.program.lowered import LoweredTest

ENGINES = ("auto", "z3", "enumerate")

FEW = 100_000
"""Up to about this many candidate executions, trying them all is faster than starting the solver."""

TRIAL = 1_000_000
"""Effort after which `auto` gives up an enumeration that was expected to be short, and asks the solver."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a test is judged.

    `bound`: how many backward jumps of a loop are followed, if the number of its rounds differs between executions.
    Rounds of a spin loop that write nothing do not count.
    """

    engine: str = "auto"
    budget: Budget = field(default_factory=Budget)
    bound: int = 3


def answer(lowered: LoweredTest, model: Model, options: Options, *, findings: bool = True) -> Answer:
    """What happens to the condition of a test under a model; with `findings`, also what the model's flags report."""
    chosen = choose(lowered, options)
    try:
        if chosen == "z3":
            return _solved(lowered, model, options, findings)
        if options.engine == "enumerate":
            return _enumerated(lowered, model, options, options.budget, findings)
        from memmodel.concrete.meter import BudgetSpent

        little = Budget(effort=min(TRIAL, options.budget.effort), seconds=options.budget.seconds)
        try:
            return _enumerated(lowered, model, options, little, findings, trial=True)
        except BudgetSpent:
            return _solved(lowered, model, options, findings)
    except TooLarge as error:
        return Answer(Observation.UNDECIDED, chosen, reason=error.message, unsearched=error.message)


def _enumerated(
    lowered: LoweredTest, model: Model, options: Options, budget: Budget, findings: bool, *, trial: bool = False
) -> Answer:
    from memmodel.enumeration.answers import enumerate_answer

    return enumerate_answer(lowered, model, budget=budget, bound=options.bound, findings=findings, trial=trial)


def _solved(lowered: LoweredTest, model: Model, options: Options, findings: bool) -> Answer:
    from memmodel.solve.answers import solve_answer

    return solve_answer(lowered, model, budget=options.budget, bound=options.bound, findings=findings)


def outcomes(lowered: LoweredTest, model: Model, options: Options) -> Outcomes:
    """All final states of a test under a model."""
    chosen = choose(lowered, options)
    try:
        if chosen == "enumerate":
            from memmodel.enumeration.answers import enumerate_outcomes

            return enumerate_outcomes(lowered, model, budget=options.budget, bound=options.bound)
        from memmodel.solve.answers import solve_outcomes

        return solve_outcomes(lowered, model, budget=options.budget, bound=options.bound)
    except TooLarge as error:
        return Outcomes((), chosen, complete=False, reason=error.message)


def choose(lowered: LoweredTest, options: Options) -> str:
    """The engine that is expected to be faster for `auto`; else the one asked for."""
    if options.engine not in ENGINES:
        raise InputError(f"unknown engine {options.engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if options.engine != "auto":
        return options.engine
    from memmodel.enumeration.estimate import estimate

    return "enumerate" if estimate(lowered, options.bound) <= FEW else "z3"
