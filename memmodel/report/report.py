"""What one test said under one model, next to what was expected of it.

In: LoweredTest, Model, Answer, the expected word. Out: Report, which explains itself in text and in JSON. Settled here:
`status`, the one word that says whether a reader has something to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Answer, Confirmation, Finding, Observation, Times, Witness
from memmodel.base.oneline import shown
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.errors import InputError, render
from memmodel.litmus.syntax import LitmusTest, Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import meets

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from memmodel.engine import Options
    from memmodel.why.records import Contradiction


class Status(Enum):
    """How a result compares with its expectation. Its spelling is what suites print."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    UNDECIDED = "undecided"  # not expected to be
    NO_EXPECTATION = "no expectation"


class Subject:
    """What a report is about, from which it can be explained. Another process gets the report without it.

    `never`: why the outcome is forbidden, once that was worked out.
    """

    __slots__ = ("lowered", "model", "never", "options")

    def __init__(self, lowered: LoweredTest, model: Model, options: Options) -> None:
        self.lowered = lowered
        self.model = model
        self.options = options
        self.never: tuple[Contradiction, ...] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (type(None), ())


def question_of(test: LitmusTest) -> str:
    """The question of a test, as `exists (…)` or `exists race`."""
    from memmodel.litmus.printer import print_condition

    return f"{test.quantifier.value} {test.finding or f'({print_condition(test.condition)})'}"


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """One test under one model.

    `question`: the file's, as text. `expected`: a word, or None when nothing was. `rules`: what each flag of the model
    is about, in the words of its cat file. `finding`: the question asks for such a finding, and not for an outcome.
    `notices`: warnings about the model's file. `confirmation`: what the other engine says, if it was asked.
    """

    test: str
    path: str
    model: str
    quantifier: Quantifier
    question: str
    answer: Answer
    expected: str | None = None
    warnings: tuple[str, ...] = ()
    rules: tuple[tuple[str, str], ...] = ()
    finding: str | None = None
    notices: tuple[str, ...] = ()
    confirmation: Confirmation | None = None
    subject: Subject | None = field(default=None, compare=False)

    @staticmethod
    def of(
        lowered: LoweredTest, model: Model, answer: Answer, expected: str | None, options: Options | None = None
    ) -> Report:
        """The report on an answer. `options`: those of the answer; without them the report cannot be explained."""
        from memmodel.lint.no_rules import without_rules
        from memmodel.lint.warnings import legality_warnings

        test = lowered.test
        path = test.source.name if test.source else ""
        warnings = (*test.warnings, *legality_warnings(lowered), *without_rules(lowered, model))
        rules = tuple((check.name, check.doc) for check in model.flags)
        notices = tuple(render("warning", notice.message, notice.span, notice.hint) for notice in model.notices)
        return Report(
            test=test.name,
            path=path,
            model=model.name,
            quantifier=test.quantifier,
            question=question_of(test),
            answer=answer,
            expected=expected,
            warnings=warnings,
            rules=rules,
            finding=test.finding,
            notices=notices,
            subject=None if options is None else Subject(lowered, model, options),
        )

    @property
    def holds(self) -> bool | None:
        """True if the file's condition holds; None when undecided."""
        return self.answer.observation.answers(self.quantifier)

    @property
    def ok(self) -> bool | None:
        """True if the answer is as expected; None if nothing is. An undecided answer meets only `undecided`."""
        return None if self.expected is None else meets(self.answer, self.quantifier, self.expected)

    @property
    def status(self) -> Status:
        if self.ok:
            return Status.AS_EXPECTED
        if self.answer.observation is Observation.UNDECIDED:
            return Status.UNDECIDED
        return Status.NO_EXPECTATION if self.ok is None else Status.DIFFERS

    @property
    def times(self) -> Times:
        return self.answer.times

    @property
    def execution(self) -> Witness | None:
        """The execution that settles the question: for `forall` one that breaks it, otherwise one that shows it.

        None for an outcome of a program with a mixed-size race, of which the model says nothing.
        """
        if self.mixed:
            return None
        if self.quantifier is Quantifier.FORALL and self.answer.counter is not None:
            return self.answer.counter
        return self.answer.witness

    @property
    def mixed(self) -> bool:
        """True if the report is about an outcome of a program that has a mixed-size race."""
        return self.finding is None and bool(self.found(FindingKind.MIXED))

    def found(self, *kinds: FindingKind) -> tuple[Finding, ...]:
        """The findings of flags of these kinds."""
        return tuple(
            finding for finding in self.answer.findings if finding.flag != HANG and kind_of(finding.flag) in kinds
        )

    def rule(self, flag: str) -> str:
        """What a flag is about, in the words of the model's file; empty where they are missing."""
        return dict(self.rules).get(flag, "")

    def __repr__(self) -> str:
        """The verdict: whoever types a report into a prompt does not want every event of its executions."""
        from memmodel.report.text import verdict

        return shown("Report", verdict(self))

    def graph(self) -> MultiDiGraph:
        """The execution that settles the question, as a graph of networkx. Raises InputError where there is none."""
        from memmodel.report.picture.draw import execution_of

        return execution_of(self).graph()

    def explain(self) -> str:
        """The report as text for a person."""
        from memmodel.report.text import explain

        return explain(self)

    def draw(self, form: str = "svg", finding: str | None = None, *, everything: bool = False) -> str:
        """The story of the report as `svg` or `dot`, or `everything` of its execution.

        `finding` (`race`, `hang`, ...): of an execution that has it. Raises InputError where there is none, TooLarge
        where the picture would be too large to read.
        """
        from memmodel.report.picture.draw import draw, draw_focus

        return draw(self, form, finding) if everything else draw_focus(self, form, finding)

    def _repr_svg_(self) -> str | None:
        """What a notebook shows; None where there is no picture, so that it shows the text."""
        from memmodel.errors import TooLarge
        from memmodel.report.picture.svg import DARK

        try:
            return self.draw().replace(DARK, "")  # a notebook has colours of its own
        except (InputError, TooLarge):
            return None

    def to_json(self) -> dict[str, object]:
        """The report as JSON values, keys in the order of docs/json.md."""
        from memmodel.report.record import record

        return record(self, explained=True)
