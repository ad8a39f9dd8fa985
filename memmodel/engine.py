"""Choose an engine and ask it. Both answer the same questions and share nothing below the parsed test and model.

In: LitmusTest, Model. Out: Answer, Outcomes. A test beyond a stated limit is undecided, never forbidden.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel import sizes
from memmodel.answer import Answer, Budget, Observation, Outcomes
from memmodel.cat.syntax import Model
from memmodel.errors import InputError, TooLarge
from memmodel.litmus.syntax import LitmusTest

ENGINES = ("auto", "z3", "enumerate")

FEW = 100_000
"""Up to about this many candidate executions, trying them all is faster than starting the solver."""


def answer(
    test: LitmusTest,
    model: Model,
    *,
    engine: str = "auto",
    budget: Budget | None = None,
    bound: int = 3,
    races: bool = True,
) -> Answer:
    """What happens to the condition of a test under a model.

    `bound`: how often a loop that is not a spin loop may go round. `races`: also list what the model's flags relate.
    Raises InputError for a test that cannot be run; a test beyond a limit is answered as undecided.
    """
    budget = budget or Budget()
    names = sizes.mixed(test)
    if names:
        coarse = answer(sizes.as_one_place(test, names), model, engine=engine, budget=budget, bound=bound)
        told = any(check.name == "data-race" for check in model.flags)
        return sizes.judge(test, names, coarse, races_told=told)
    chosen = choose(test, engine, bound)
    try:
        if chosen == "enumerate":
            from memmodel.enumeration import enumerate_answer

            return enumerate_answer(test, model, budget=budget, bound=bound, races=races)
        from memmodel.solve.z3_engine import solve_answer

        return solve_answer(test, model, budget=budget, bound=bound, races=races)
    except TooLarge as error:
        return Answer(Observation.UNDECIDED, chosen, reason=error.message)


def with_condition(test: LitmusTest, model: Model, found: Answer, *, budget: Budget, bound: int) -> Answer:
    """The answer, with the flags that are also raised in some execution that satisfies the condition."""
    flags = tuple(flag for flag in found.flags if any(check.name == flag for check in model.flags))
    if flags and found.observation is Observation.SOMETIMES:
        from memmodel.solve.z3_engine import raised_with_condition

        try:
            flags = raised_with_condition(test, model, flags, budget=budget, bound=bound)
        except TooLarge:
            return found
    elif found.observation in (Observation.NEVER, Observation.VACUOUS):
        flags = ()
    elif found.observation is Observation.UNDECIDED:
        return found
    return replace(found, with_condition=flags)


def outcomes(
    test: LitmusTest, model: Model, *, engine: str = "auto", budget: Budget | None = None, bound: int = 3
) -> Outcomes:
    """All final states of a test under a model."""
    budget = budget or Budget()
    if names := sizes.mixed(test):
        return Outcomes((), engine, complete=False, reason=f"accesses of different sizes overlap in {', '.join(names)}")
    chosen = choose(test, engine, bound)
    try:
        if chosen == "enumerate":
            from memmodel.enumeration import enumerate_outcomes

            return enumerate_outcomes(test, model, budget=budget, bound=bound)
        from memmodel.solve.z3_engine import solve_outcomes

        return solve_outcomes(test, model, budget=budget, bound=bound)
    except TooLarge as error:
        return Outcomes((), chosen, complete=False, reason=error.message)


def choose(test: LitmusTest, engine: str, bound: int) -> str:
    """The engine that is expected to be faster for `auto`; else the one asked for."""
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if engine != "auto":
        return engine
    from memmodel.enumeration import estimate

    return "enumerate" if estimate(test, bound) <= FEW else "z3"
