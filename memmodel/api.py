"""The whole journey in one place: text -> test -> steps, name -> model, both -> answer, answer -> report.

In: a test (path, Source or text) and a model (name, path or loaded). Out: Report, ReadingsReport or Outcomes. Nothing
is printed here. `check`, `suite` and `readings` all go through `lowered` and `report_on`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from memmodel import cat, engine, litmus
from memmodel.answer import HANG, Answer, Budget, Confirmation, Observation, Outcomes
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent, InputError, InternalError, suggestion
from memmodel.isa.lower import lower_test
from memmodel.limits import available, sharing_budget, within_budget
from memmodel.lint.warnings import legality_warnings
from memmodel.litmus.syntax import Expectation
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import about_finding, word_for
from memmodel.report.findings import sentence
from memmodel.report.report import Report
from memmodel.source import TAKE_DIRECTORIES, Source

if TYPE_CHECKING:
    from memmodel.report.readings import ReadingsReport
    from memmodel.solve.kept_queries import KeptQueries
    from memmodel.why.records import Dependence, Explanation


TestInput = str | os.PathLike[str] | Source
ModelInput = str | os.PathLike[str] | Model


def check(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    ask: str | None = None,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> Report:
    """What happens to the test's condition under the model, and whether that was expected.

    `ask`: a question in place of the test's own, such as `exists (P1:r0 == 0)` or `exists race`. Of a test with several
    questions, the first is answered (`check_all` answers all).

    `test`: a path, a Source, or the text itself (a string with a newline in it). `model`: a shipped name, a path to a
    cat file, or a loaded Model. Raises InputError for text that cannot be used; a test beyond a limit is undecided.
    """
    return next(_checked(test, model, () if ask is None else (ask,), Options(engine, budget, bound)))


def check_all(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    ask: Sequence[str] = (),
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> tuple[Report, ...]:
    """A report on each question of the test, or on each of `ask`. As `check` otherwise."""
    return tuple(_checked(test, model, ask, Options(engine, budget, bound)))


def _checked(test: TestInput, model: ModelInput, ask: Sequence[str], options: Options) -> Iterator[Report]:
    started = perf_counter()
    whole_test = read_test(test, ask)
    loaded = load(model)
    reading = 1000 * (perf_counter() - started)
    for steps in questions(whole_test):
        yield report_on(steps, loaded, options, reading=reading)


def readings(
    test: TestInput,
    *,
    ask: str | None = None,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    progress: Callable[[str], None] | None = None,
) -> ReadingsReport:
    """Reports whether the condition is forbidden or allowed under the default model and under each reading of it.

    `progress` is told each model that has answered. Raises InputError as `check` does. No findings are looked for: a
    reading is about the condition.
    """
    first, *_ = questions(read_test(test, () if ask is None else (ask,)))
    return under_readings(first, Options(engine, budget, bound), progress)


def readings_all(
    test: TestInput,
    *,
    ask: Sequence[str] = (),
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    progress: Callable[[str], None] | None = None,
) -> tuple[ReadingsReport, ...]:
    """What `readings` says of each question of the test, or of each of `ask`."""
    options = Options(engine, budget, bound)
    return tuple(under_readings(steps, options, progress) for steps in questions(read_test(test, ask)))


def under_readings(
    steps: LoweredTest, options: Options, progress: Callable[[str], None] | None = None
) -> ReadingsReport:
    """What `readings` says of one question of a lowered test."""
    from memmodel.report.readings import ReadingsReport

    answers: dict[str, Answer] = {}
    with sharing_budget(options.budget):
        for name in reading_models():
            try:
                available(options.budget)  # before a model is loaded for nothing
                answers[name] = judge(steps, load(name), options, findings=False)
            except BudgetSpent as spent:
                answers[name] = Answer(Observation.UNDECIDED, options.engine, reason=str(spent))
            if progress is not None:
                progress(name)
    warnings = (*steps.test.warnings, *legality_warnings(steps), *_unknown_models(steps.test.expectations))
    return replace(ReadingsReport.of(steps.test, DEFAULT_MODEL, answers), warnings=warnings)


def reading_models() -> tuple[str, ...]:
    """The models that `readings` runs: the default, then every reading."""
    from memmodel.cat.decisions import decisions

    return (
        DEFAULT_MODEL,
        *(side.model for decision in decisions() for side in decision.readings if side.model is not None),
    )


def outcomes(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> Outcomes:
    """All final states of the test under the model, each with whether it satisfies the condition."""
    from memmodel import engine as engines

    return engines.outcomes(read_test(test), load(model), Options(engine, budget, bound))


def explain(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    ask: str | None = None,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    readings: bool = False,
) -> Explanation:
    """Why the test is answered as it is: the cycle that forbids its outcome, or what stops the order that would.

    As `check` otherwise. `readings`: also which decisions make a difference, under the default model.
    """
    ask_all = () if ask is None else (ask,)
    return next(explain_all(test, model, ask=ask_all, engine=engine, budget=budget, bound=bound, readings=readings))


def explain_all(
    test: TestInput,
    model: ModelInput = DEFAULT_MODEL,
    *,
    ask: Sequence[str] = (),
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    readings: bool = False,
) -> Iterator[Explanation]:
    """What `explain` says of each question of the test, or of each of `ask`."""
    from memmodel.why.explanation import explanation
    from memmodel.why.limited import CUT, reasons

    options = Options(engine, budget, bound)
    with within_budget(budget):
        loaded, all_steps = load(model), questions(read_test(test, ask))
    for steps in all_steps:
        with within_budget(budget):
            report = report_on(steps, loaded, options)
            with reasons(report.answer, options.budget) as time:
                explained = explanation(steps, loaded, report.answer, options, report.question, dict(report.rules))
            if time.cut:
                explained = replace(explained, note=CUT)
            if readings:
                from memmodel.report.depends import dependences

                explained = replace(explained, depends=dependences(under_readings(steps, options), load))
        yield explained


def depends(report: Report) -> tuple[Dependence, ...]:
    """The readings of the documents that answer a report's question otherwise; none for other models."""
    from memmodel.report.depends import dependences

    subject = report.subject
    if subject is None or report.model != DEFAULT_MODEL:
        return ()
    return dependences(under_readings(subject.lowered, subject.options), load)


# ---- the hops --------------------------------------------------------------------------------------------------


def lowered(test: TestInput, ask: Sequence[str] = ()) -> LoweredTest:
    """A test as steps, from its text; `ask`: questions in place of its own. Raises InputError."""
    return lower_test(litmus.parse_litmus(read(test), ask))


def read_test(test: TestInput, ask: Sequence[str] = ()) -> LoweredTest:
    """As `lowered`. What it raises has all errors of the text."""
    source = read(test)
    try:
        return lowered(source, ask)
    except InputError as error:
        from memmodel.litmus.text.places import passage_of
        from memmodel.recovery.every_error import every_error

        raise every_error(error, source, partial(lowered, ask=ask), passage_of) from error


def questions(steps: LoweredTest) -> tuple[LoweredTest, ...]:
    """A lowered test once for each of its questions."""
    return (
        tuple(replace(steps, test=test) for test in steps.test.questions()) if steps.test.more_questions else (steps,)
    )


def judge(
    steps: LoweredTest, model: Model, options: Options, *, findings: bool = True, queries: KeptQueries | None = None
) -> Answer:
    """Ask the engine. The answer to `exists race` and its like is made of the findings.

    `queries`: those that `engine.seek` has kept.
    """
    kind = steps.test.finding
    started = monotonic()
    answer = engine.answer(steps, model, options, findings=findings or kind is not None, queries=queries)
    if kind is None:
        return answer
    about_kind = about_finding(kind, model, answer)
    seconds = options.budget.seconds - (monotonic() - started)
    if kind != HANG or seconds <= 0:
        return about_kind
    budget = replace(options.budget, seconds=seconds)
    return _undefined_first(steps, model, replace(options, budget=budget), about_kind)


def _undefined_first(steps: LoweredTest, model: Model, options: Options, answer: Answer) -> Answer:
    """The answer about hangs. If there is none, it says where threads may wait for ever after undefined behaviour."""
    undefined = [finding for finding in answer.findings if kind_of(finding.flag) is FindingKind.UNDEFINED]
    if answer.observation is not Observation.NEVER or not undefined:
        return answer
    checks = tuple(check for check in model.checks if kind_of(check.name) is not FindingKind.UNDEFINED)
    hang = engine.answer(steps, replace(model, checks=checks), options).hang
    if hang is None:
        return answer
    first, waits = sentence(undefined[0], labelled=False), "; ".join(hang.witness.waits)
    return replace(answer, reason=f"{first} comes first; as the counts go on after it, {waits}")


def report_on(
    steps: LoweredTest,
    model: Model,
    options: Options,
    reading: float = 0.0,
) -> Report:
    """Judge a test, and compare with the word that its file expects of the model.

    `reading`: milliseconds that reading took. Raises InputError for an expectation that is no word.
    """
    expectations = steps.test.expectations
    return expecting(bare_report(steps, model, options, reading), expectations, word_for(expectations, model.name))


def bare_report(steps: LoweredTest, model: Model, options: Options, reading: float = 0.0) -> Report:
    """Judge a test, whatever is expected of it. What is said depends on the test, the model and the options alone."""
    answer = judge(steps, model, options)
    return Report.of(steps, model, replace(answer, times=replace(answer.times, parse=reading)), None, options)


def confirmed(report: Report, steps: LoweredTest, model: Model, options: Options) -> Report:
    """A report with what the engine that did not give its answer says of it. Raises InternalError if it says otherwise.

    An undecided answer has nothing to confirm.
    """
    answer = report.answer
    if answer.observation is Observation.UNDECIDED:
        return report
    other = "z3" if answer.engine == "enumerate" else "enumerate"
    if other == "enumerate" and not engine.few_enough(steps, options):
        return replace(report, confirmation=Confirmation(other, reason="too large to enumerate"))
    second = judge(steps, model, replace(options, engine=other))
    if second.observation is Observation.UNDECIDED:
        return replace(report, confirmation=Confirmation(other, reason=second.reason or "the budget ran out"))
    searched = not (answer.unsearched or second.unsearched)
    if answer.observation is not second.observation or (searched and set(answer.flags) != set(second.flags)):
        answers = " and ".join(
            f"{each.engine} answers {each.observation.value} (flags: {', '.join(each.flags) or 'none'})"
            for each in (answer, second)
        )
        raise InternalError(f"{report.test} under {report.model}: {answers}")
    return replace(report, confirmation=Confirmation(other, second.judged))


def expecting(report: Report, expectations: Sequence[Expectation], word: str | None) -> Report:
    """A bare report next to the word that is expected, with warnings about what the file expects."""
    return replace(report, expected=word, warnings=(*report.warnings, *_unknown_models(expectations)))


def _unknown_models(expectations: Sequence[Expectation]) -> Iterator[str]:
    """Warnings about expectations of models that there are not: most likely a slip of the pen."""
    for expectation in expectations:
        name = expectation.model
        if not cat.is_shipped(name) and not name.endswith(".cat"):
            hint = suggestion(name, {*cat.shipped_models(), *reading_models()})
            yield f"{expectation.span}: warning: no model `{name}` is known{f'; {hint}' if hint else ''}"


def read(test: TestInput) -> Source:
    """The text of a test. A string with a newline is the text itself, any other string is a path."""
    if isinstance(test, Source):
        return test
    if isinstance(test, str) and "\n" in test:
        return Source.decode("<text>", test.encode("utf-8", "surrogatepass"))
    return Source.read(test, TAKE_DIRECTORIES)


def load(model: ModelInput) -> Model:
    """A loaded model, from a shipped name or a path. A reading keeps its folder as part of its name."""
    return model if isinstance(model, Model) else cat.load_model(model)
