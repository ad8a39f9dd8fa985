"""The whole journey in one place: text -> test, name -> model, both -> answer, answer -> report.

In: a test (path, Source or text) and a model (name, path or loaded). Out: Report, ReadingsReport or Outcomes. Nothing
is printed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import perf_counter

from memmodel import cat, litmus
from memmodel import engine as engines
from memmodel.answer import Answer, Budget, Observation, Outcomes
from memmodel.cat.syntax import Model
from memmodel.decisions import READINGS, decisions
from memmodel.errors import TooLarge
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.expect import about_finding, expected_word
from memmodel.report.readings import ReadingsReport
from memmodel.report.report import Report
from memmodel.source import Source

DEFAULT_MODEL = "ptx-9.3"

TestInput = str | os.PathLike[str] | Source
ModelInput = str | os.PathLike[str] | Model


def check(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> Report:
    """What happens to the test's condition under the model, and whether that was expected.

    `test`: a path, a Source, or the text itself (a string with a newline in it). `model`: a shipped name, a path to a
    cat file, or a loaded Model. Raises InputError for text that cannot be used; a test beyond a limit is undecided.
    """
    started = perf_counter()
    parsed = litmus.parse_litmus(read(test))
    loaded = load(model)
    reading = 1000 * (perf_counter() - started)
    found = judge(parsed, loaded, engine=engine, budget=budget, bound=bound)
    found = engines.with_condition(parsed, loaded, found, budget=budget, bound=bound)
    found = replace(found, times=replace(found.times, parse=reading))
    return Report.of(parsed, loaded, found, expected_word(parsed, loaded.name))


def readings(
    test: TestInput,
    *,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    progress: Callable[[str], None] | None = None,
) -> ReadingsReport:
    """Is the test's condition forbidden or allowed under the default model and under every reading of it?

    `progress` is told each model that has answered. Raises InputError as `check` does. No flags and no hangs are looked
    for: a reading is about the condition.
    """
    parsed = litmus.parse_litmus(read(test))
    answers: dict[str, Answer] = {}
    for name in reading_models():
        answers[name] = judge(parsed, _shipped(name), engine=engine, budget=budget, bound=bound, races=False)
        if progress is not None:
            progress(name)
    return ReadingsReport.of(parsed, DEFAULT_MODEL, answers)


def reading_models() -> tuple[str, ...]:
    """The models that `readings` runs: the default, then every reading."""
    return (DEFAULT_MODEL, *(side.model for one in decisions() for side in one.readings if side.model is not None))


def outcomes(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> Outcomes:
    """All final states of the test under the model, each with whether it satisfies the condition."""
    return engines.outcomes(litmus.parse_litmus(read(test)), load(model), engine=engine, budget=budget, bound=bound)


def judge(test: LitmusTest, model: Model, *, engine: str, budget: Budget, bound: int, races: bool = True) -> Answer:
    """Ask the engine; a test beyond a limit comes back as undecided, with the limit as its reason."""
    try:
        found = engines.answer(
            test, model, engine=engine, budget=budget, bound=bound, races=races or bool(test.finding)
        )
        return about_finding(test.finding, model, found) if test.finding else found
    except TooLarge as error:
        return Answer(Observation.UNDECIDED, engine, reason=error.render())


def read(test: TestInput) -> Source:
    """The text of a test. A string with a newline is the text itself, any other string is a path."""
    if isinstance(test, Source):
        return test
    if isinstance(test, str) and "\n" in test:
        return Source.decode("<text>", test.encode("utf-8", "surrogatepass"))
    return Source.read(test)


def load(model: ModelInput) -> Model:
    """A loaded model, from a shipped name or a path. A reading keeps its folder as part of its name."""
    if isinstance(model, Model):
        return model
    name = os.fspath(model)
    loaded = cat.load_model(name)
    return replace(loaded, name=name) if name == f"{READINGS}/{loaded.name}" else loaded


@cache
def _shipped(name: str) -> Model:
    return cat.load_model(name)
