"""The whole journey in one place: text -> test, name -> model, both -> answer, answer -> report.

In: a test (path, Source or text) and a model (name, path or loaded). Out: Report or Outcomes. Nothing is printed here.
"""

from __future__ import annotations

import os
from dataclasses import replace
from time import perf_counter

from memmodel import cat, litmus
from memmodel import engine as engines
from memmodel.answer import Answer, Budget, Observation, Outcomes
from memmodel.cat.syntax import Model
from memmodel.errors import TooLarge
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.expect import expected_word
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
    found = replace(found, times=replace(found.times, parse=reading))
    return Report.of(parsed, loaded, found, expected_word(parsed, loaded.name))


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


def judge(test: LitmusTest, model: Model, *, engine: str, budget: Budget, bound: int) -> Answer:
    """Ask the engine; a test beyond a limit comes back as undecided, with the limit as its reason."""
    try:
        return engines.answer(test, model, engine=engine, budget=budget, bound=bound)
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
    """A loaded model, from a shipped name or a path."""
    return model if isinstance(model, Model) else cat.load_model(os.fspath(model))
