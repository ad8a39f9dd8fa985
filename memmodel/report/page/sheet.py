"""What the page says of one question of one test under one model.

In: a report with its subject, what became of it, repairs. Out: `Sheet`, plain text and one SVG: it can leave the
process that judged the test. Settled here: an explanation or a picture that costs more than one budget is left out, and
the sheet says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from memmodel.answer import ShownEvent, Witness
from memmodel.errors import BudgetSpent, InputError
from memmodel.limits import sharing_budget
from memmodel.report.execution import waiting
from memmodel.report.findings import word_of
from memmodel.report.picture.draw import Drawing, draw_explained
from memmodel.report.report import Report
from memmodel.report.text import explain
from memmodel.report.why_text import CLOSING, lines_of
from memmodel.why.explanation import explanation
from memmodel.why.records import WOULD_DO, At, Dependence, Explanation, PathStep, Reason

STYLE_MARK = "\x02"
"""Stands around a styled part of the text: mark, role, mark, text, mark."""

FIRST, SECOND, STOP, WAY = "first", "second", "stop", "way"
"""The role of a marked place of the source, the most important first."""

WORDS = {FIRST: "the first access", SECOND: "the second access", STOP: "here it stops", WAY: "on the way"}


@dataclass(frozen=True, slots=True)
class SourceMark:
    """Characters start..end of the source, their role in the story, and the event there."""

    start: int
    end: int
    role: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownRepair:
    """A repair: its cost, the changes in words, and a unified diff. `instead`: of each other repair of the same idea,
    the changes in which it differs, in words."""

    cost: float
    changes: tuple[str, ...]
    diff: str
    instead: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Repairs:
    """What a search for repairs found. `note`: why there are none, or not all; empty if nothing was looked for."""

    shown: tuple[ShownRepair, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Because:
    """A reason in a few words, in a sentence, and what would do instead; either may be empty. `would_do`: the words
    before that."""

    reason: str
    text: str = ""
    repair: str = ""
    would_do: str = WOULD_DO


@dataclass(frozen=True, slots=True)
class Sheet:
    """One row of the page and all that is shown when it is chosen.

    `outcome`: how the verdict compares with what was expected. `findings`: words to filter by. `because`: reasons, of
    which the first words are to filter by, too. `lines`: lines in which STYLE_MARK stands around styled parts.
    `problem`: what went wrong; then there is little else.
    """

    path: str
    test: str
    model: str
    outcome: str
    question: str = ""
    verdict: str = ""
    expected: str = ""
    findings: tuple[str, ...] = ()
    because: tuple[Because, ...] = ()
    source: str = ""
    marks: tuple[SourceMark, ...] = ()
    lines: tuple[str, ...] = ()
    picture: Drawing | None = None
    no_picture: str = ""
    repairs: Repairs = field(default_factory=Repairs)
    problem: str = ""


def sheet_of(
    report: Report,
    outcome: str,
    repairs: Repairs,
    depends: Callable[[], tuple[Dependence, ...]] | None = None,
) -> Sheet:
    """The sheet of a report. `depends`: which decisions make a difference, asked within the budget of the report."""
    holds = {True: "holds", False: "does not hold", None: ""}[report.holds]
    sheet = Sheet(
        report.path,
        report.test,
        report.model,
        outcome,
        f"{report.question} {holds}".strip(),
        report.answer.observation.value,
        report.expected or "",
        tuple(dict.fromkeys(word_of(finding.flag) for finding in report.answer.findings)),
        repairs=repairs,
    )
    subject = report.subject
    if subject is None:
        return replace(sheet, lines=tuple(explain(report, styled).splitlines()))
    source = subject.lowered.test.source
    sheet = replace(sheet, source=source.text if source else "")
    with sharing_budget(subject.options.budget):
        try:
            explained = explanation(
                subject.lowered, subject.model, report.answer, subject.options, report.question, dict(report.rules)
            )
            if depends is not None:
                explained = replace(explained, depends=depends())
        except BudgetSpent as spent:
            explained_lines = tuple(explain(replace(report, subject=None), styled).splitlines())
            return replace(sheet, lines=(*explained_lines, f"no explanation: {spent}"), no_picture=str(spent))
        lines = [line for text in (*report.warnings, *lines_of(explained, styled)) for line in text.splitlines()]
        findings = (*sheet.findings, *(("depends",) if explained.depends else ()))
        sheet = replace(
            sheet, lines=tuple(lines), marks=_marks(explained), because=_because(explained), findings=findings
        )
        try:
            return replace(sheet, picture=draw_explained(report, explained))
        except (BudgetSpent, InputError) as error:
            return replace(sheet, no_picture=str(error))


def styled(text: str, role: str) -> str:
    """A style for the lines of an explanation."""
    return f"{STYLE_MARK}{role}{STYLE_MARK}{text}{STYLE_MARK}"


def _because(explained: Explanation) -> tuple[Because, ...]:
    reasons = [
        Because(f"forbidden by {contradiction.axiom}", contradiction.rule) for contradiction in explained.contradictions
    ]
    reasons += [
        Because(obstacle.reason.value, obstacle.text, obstacle.repair, obstacle.would_do)
        for story in explained.stories
        for obstacle in story.obstacles
    ]
    if explained.stuck is not None:
        reasons += [Because(stopped.reason.value, stopped.text, stopped.goes_on) for stopped in explained.stuck.waiting]
    return tuple(dict.fromkeys(because for because in reasons if because.reason != Reason.NOTHING_MISSING.value))


def _marks(explained: Explanation) -> tuple[SourceMark, ...]:
    """The places in the source that the explanation is about: of its first axiom, else of its first story or hang."""
    roles: dict[tuple[int, int], SourceMark] = {}

    def mark(event: ShownEvent | None, role: str) -> None:
        if event is not None and event.span is not None:
            place = (event.span.start, event.span.end)
            known = roles.get(place)
            if known is None or known.role == WAY != role:
                roles[place] = SourceMark(*place, role, f"{event.label}: {event.text}")

    stories = () if explained.contradictions else explained.stories  # as in the picture, a cycle comes first
    story = next((candidate for candidate in stories if candidate.first is not None or candidate.steps), None)
    shown = story or next(iter(explained.contradictions), None)
    if shown is not None:
        ends = (story.first, story.second) if story is not None and story.first is not None else _closing(shown.steps)
        stops = [place for obstacle in story.obstacles for place in obstacle.events] if story is not None else []
        places = [*zip(ends, (FIRST, SECOND), strict=False), *((place, STOP) for place in stops)]
        for place, role in (*places, *((place, WAY) for place in _places(shown.steps))):
            mark(_event(shown.witness, place), role)
    elif explained.stuck is not None:
        for event in waiting(explained.stuck.witness):
            mark(event, STOP)
    return tuple(sorted(roles.values(), key=lambda mark: (mark.start, -mark.end)))


def _event(witness: Witness, place: At | None) -> ShownEvent | None:
    label = place.label if place is not None else ""
    return next((event for event in witness.events if label and event.label == label), None)


def _places(steps: tuple[PathStep, ...]) -> list[At]:
    return [place for step in steps for place in (step.first, step.second, *_places(step.parts))]


def _closing(steps: tuple[PathStep, ...]) -> tuple[At, ...]:
    """The two accesses that a cycle closes on."""
    closing = next((step for step in steps if step.relation in CLOSING), None)
    return (closing.first, closing.second) if closing is not None else ()


def failed(path: str, model: str | None, outcome: str, message: str) -> Sheet:
    """The sheet of a test that could not be judged."""
    return Sheet(path, path.rpartition("/")[2], model or "", outcome, problem=message)
