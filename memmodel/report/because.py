"""Why a report says what it does, in short: lines that begin with `because` in what `check` prints, and their JSON.

In: Report, with its subject. Out: lines, stories and cycles; none for a report whose subject or execution is not at
hand. Settled here: an outcome whose execution has a race is explained by the race; the execution that one axiom alone
forbids is looked for only where that is cheap.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from memmodel.answer import Finding, Observation
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.report.execution import Style
from memmodel.report.why_text import brief_contradiction, brief_story
from memmodel.why.explanation import first_findings, shown_outcome, why_never
from memmodel.why.limited import TimeForReasons, reasons
from memmodel.why.records import Contradiction, Reason, Story
from memmodel.why.story import finding_story, outcome_story

if TYPE_CHECKING:
    from memmodel.report.report import Report

STORIES = 3
"""`check` gives reasons for at most this many findings, of different flags."""

CHEAP = 120
"""With more events than this, `check` looks for no other execution."""


def because(report: Report) -> AbstractContextManager[TimeForReasons | None]:
    """Inside, all reasons for a report take together no longer than its answer did."""
    subject = report.subject
    return nullcontext() if subject is None else reasons(report.answer, subject.options.budget)


def because_findings(report: Report, style: Style) -> dict[int, list[str]]:
    """For the first findings of an answer, by their identity, why."""
    stories = stories_of_findings(report)
    return {key: brief_story(story, style) if says(story) else [] for key, story in stories.items()}


def stories_of_findings(report: Report) -> dict[int, Story]:
    """The stories of the first findings of an answer, by their identity."""
    subject = report.subject
    if subject is None:
        return {}
    stories: dict[int, Story] = {}
    shown = shown_outcome(subject.lowered, report.answer)
    for finding in first_findings(report.answer)[:STORIES]:
        if kind_of(finding.flag) is FindingKind.MIXED:
            continue
        meant = report.finding is None and report.answer.observation is Observation.NEVER
        story = finding_story(subject.model, finding, report.rule(finding.flag), meant=meant, shown=shown)
        if story is not None:
            stories[id(finding)] = story
    return stories


def because_outcome(report: Report, style: Style) -> list[str]:
    """Why the outcome can be seen, where no finding of the same execution says it."""
    story = None if _related_by_findings(report, report.answer.findings) else story_of_outcome(report)
    return brief_story(story, style) if story is not None and says(story) else []


def story_of_outcome(report: Report) -> Story | None:
    """Why the outcome that is shown can be seen."""
    subject = report.subject
    if subject is None or report.mixed:
        return None
    shown = shown_outcome(subject.lowered, report.answer)
    if shown is None or shown is not report.execution:
        return None
    return outcome_story(subject.model, shown)


def says(story: Story) -> bool:
    """True if a reason is known beyond the rule itself."""
    (obstacle, *_) = story.obstacles
    return obstacle.reason is not Reason.NOTHING_MISSING and not (
        obstacle.reason is Reason.RULE and obstacle.text == story.rule
    )


def _related_by_findings(report: Report, findings: tuple[Finding, ...]) -> bool:
    """True if a finding of the execution shown relates two events: its story says why the outcome can be seen."""
    return any(
        finding.witness == report.execution and finding.second not in (None, finding.first) for finding in findings
    )


def because_never(report: Report) -> list[str]:
    """The cycle by which the first axiom forbids the outcome."""
    contradiction = first_contradiction(report)
    return brief_contradiction(contradiction) if contradiction is not None else []


def first_contradiction(report: Report) -> Contradiction | None:
    """The contradiction by which the first axiom forbids the outcome. It is looked for once."""
    subject = report.subject
    if subject is None or report.answer.events > CHEAP:
        return None
    if subject.never is None:
        subject.never = why_never(subject.lowered, subject.model, report.answer, subject.options, first=True)
    return subject.never[0] if subject.never else None
