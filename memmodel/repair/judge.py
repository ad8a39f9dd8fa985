"""What a changed test is judged by: its answers and findings.

In: text, model, options. Out: `AnswersOfTest`, which can be compared with that of the text before the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from memmodel import api
from memmodel.answer import HANG, Answer, Finding, Observation, Witness
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.isa.lower import minimum_version
from memmodel.limits import available
from memmodel.litmus.syntax import Always, Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.targets import version_of
from memmodel.report.expect import about_finding
from memmodel.solve.kept_queries import KeptQueries
from memmodel.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class TextCounterexample:
    """An execution that shows what is wrong with a test. `flag`: the finding in it; None: the outcome.

    Equal only to itself.
    """

    model: Model
    flag: str | None
    witness: Witness
    finding: Finding | None = None


PARSED = 256
"""At most this many changed texts are kept as they are read."""


class QuestionAnswer(NamedTuple):
    """What a question asks, of which finding (None: of an outcome), and the answer."""

    quantifier: Quantifier
    finding: str | None
    observation: Observation


@dataclass(frozen=True, slots=True)
class AnswersOfTest:
    """The answers to a test's questions, and what its flags report.

    `shown`: executions in which every thread ends. `engines`: that gave the answers. `reason`: why it is not complete.
    """

    observations: tuple[QuestionAnswer, ...]
    findings: frozenset[str]
    complete: bool
    counterexamples: tuple[TextCounterexample, ...] = field(default=(), compare=False)
    shown: tuple[Witness, ...] = field(default=(), compare=False)
    engines: frozenset[str] = field(default=frozenset(), compare=False)
    reason: str = field(default="", compare=False)

    @property
    def hangs(self) -> bool:
        return HANG in self.findings


@lru_cache(maxsize=PARSED)
def parse(name: str, text: str) -> tuple[LoweredTest, ...] | None:
    """The test once for each question; None if it is no legal test."""
    try:
        return api.questions(api.lowered(Source(name, text)))
    except InputError:
        return None


def undecided(what: str, answers_under: AnswersOfTest | None) -> str:
    """A sentence: `what` is not decided, and why."""
    reason = "" if answers_under is None else answers_under.reason
    return f"{what} is not decided" + (f": {reason}" if reason else "")


COMMON = "8.0"
"""The version of PTX that toolkits in use have."""


def newer_version(name: str, text: str, new: str) -> str:
    """The version of PTX that a changed text needs; empty if the text needs it as well, or every toolkit has it."""
    before, after = (
        COMMON if asked is None else minimum_version(asked[0].test, COMMON)
        for asked in (parse(name, text), parse(name, new))
    )
    return after if version_of(after) > version_of(before) else ""


Lost = Callable[[frozenset[str], list[QuestionAnswer]], bool]
"""Findings and answers under some models -> True if the change is refuted, whatever the other models say."""


def answers_under(
    asked: tuple[LoweredTest, ...],
    models: tuple[Model, ...],
    options: Options,
    *,
    findings: bool = True,
    order: list[int] | None = None,
    lost: Lost | None = None,
    queries: KeptQueries | None = None,
) -> AnswersOfTest:
    """What the test says under all the models together.

    `order`: the order in which models are asked. Asking stops at the first under which all is `lost`; that model is
    asked first the next time.
    """
    observed: dict[tuple[int, int], QuestionAnswer] = {}
    flags: set[str] = set()
    engines: set[str] = set()
    complete, reason = True, ""
    counterexamples: list[TextCounterexample] = []
    ends: list[Witness] = []
    order = list(range(len(models))) if order is None else order
    first: Answer | None = None
    for turn, number in enumerate(order):
        model = models[number]
        for place, steps in enumerate(asked):
            answer = _judged(steps, model, options, first if place else None, findings=findings, queries=queries)
            first = first if place else answer
            engines.add(answer.engine)
            observed[place, number] = QuestionAnswer(steps.test.quantifier, steps.test.finding, answer.observation)
            flags |= {flag for flag in answer.flags if flag == HANG or is_fault(flag)}
            shown = answer.counter if steps.test.quantifier is Quantifier.FORALL else answer.witness
            if steps.test.finding is None and shown is not None:
                counterexamples.append(TextCounterexample(model, None, shown))
            counterexamples += [
                TextCounterexample(model, finding.flag, finding.witness, finding)
                for finding in answer.findings
                if finding.flag in flags
            ]
            ends += [witness for witness in (answer.witness, answer.counter) if witness is not None]
            if answer.unsearched or answer.observation is Observation.UNDECIDED:
                complete, reason = False, reason or answer.reason or answer.unsearched
        if lost is not None and turn + 1 < len(order) and lost(frozenset(flags), list(observed.values())):
            order.insert(0, order.pop(turn))
            complete = False
            break
    observations = tuple(
        observed.get((place, number), QuestionAnswer(steps.test.quantifier, steps.test.finding, Observation.UNDECIDED))
        for place, steps in enumerate(asked)
        for number in range(len(models))
    )
    return AnswersOfTest(
        observations, frozenset(flags), complete, tuple(counterexamples), tuple(ends), frozenset(engines), reason
    )


def _judged(
    steps: LoweredTest,
    model: Model,
    options: Options,
    first: Answer | None,
    *,
    findings: bool,
    queries: KeptQueries | None,
) -> Answer:
    """The answer to a question; `first`: that to another question about the same threads, which has their findings."""
    if first is None or not findings:
        return api.judge(steps, model, options, findings=findings, queries=queries)
    if steps.test.finding is not None:
        return about_finding(steps.test.finding, model, first)
    return api.judge(steps, model, options, findings=False, queries=queries)


def is_fault(flag: str) -> bool:
    """True if a flag reports a fault of a test."""
    return kind_of(flag) is not FindingKind.OTHER


Judge = Callable[[str], AnswersOfTest | None]
"""Text -> what it says; None if it is no legal test."""


def ended(name: str, text: str, models: tuple[Model, ...], options: Options) -> tuple[Witness, ...]:
    """For each model an execution of the text in which every thread ends."""
    asked = parse(name, text)
    witnesses: list[Witness] = []
    for model in models if asked is not None else ():
        assert asked is not None
        test = replace(asked[0].test, finding=None, quantifier=Quantifier.EXISTS, condition=Always())
        answer = api.judge(replace(asked[0], test=test), model, options, findings=False)
        witnesses += [witness for witness in (answer.witness, answer.counter) if witness is not None]
    return tuple(witnesses)


def looking_for(
    wrong: frozenset[str], name: str, models: tuple[Model, ...], options: Options, lost: Lost | None = None
) -> Judge:
    """A quick judge, which looks for these findings alone: it says nothing of others.

    An execution with undefined behaviour is no hang. So where hangs are looked for, undefined behaviour is as well.
    """
    undefined = FindingKind.UNDEFINED if HANG in wrong else None
    only = tuple(
        replace(
            model,
            checks=tuple(
                check
                for check in model.checks
                if not check.flag or check.name in wrong or kind_of(check.name) is undefined
            ),
        )
        for model in models
    )
    return judging(name, only, options, findings=bool(wrong), lost=lost)


def judging(
    name: str,
    models: tuple[Model, ...],
    options: Options,
    *,
    findings: bool = True,
    lost: Lost | None = None,
    queries: KeptQueries | None = None,
) -> Judge:
    """A judge that remembers what it has judged. It raises BudgetSpent when a budget shared with others is used up.

    `queries`: the queries that were kept when a counterexample of the same text was looked for.
    """
    known: dict[str, AnswersOfTest | None] = {}
    order = list(range(len(models)))

    def judge(text: str) -> AnswersOfTest | None:
        available(options.budget)
        if text not in known:
            asked = parse(name, text)
            known[text] = (
                None
                if asked is None
                else answers_under(asked, models, options, findings=findings, order=order, lost=lost, queries=queries)
            )
        return known[text]

    return judge
