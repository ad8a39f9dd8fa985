"""The one or two lines that begin with `because` in what `check` prints.

In: Report, with its subject. Out: lines; none for a report whose subject or execution is not at hand. Settled here: an
outcome whose execution has a race is explained by the race; the execution that one axiom alone forbids is looked for
only where that is cheap.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from memmodel.answer import Finding
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.report.execution import Style
from memmodel.report.why_text import brief_contradiction, brief_story
from memmodel.why.explanation import first_findings, shown_outcome, why_never
from memmodel.why.limited import reasons
from memmodel.why.records import Reason, Story
from memmodel.why.story import finding_story, outcome_story

if TYPE_CHECKING:
    from memmodel.report.report import Report

STORIES = 3
"""So many findings `check` gives a reason for, of different flags."""

CHEAP = 120
"""With more events than this, `check` looks for no other execution."""


def because(report: Report) -> AbstractContextManager[None]:
    """Inside, all reasons for a report share what it has left of its budget."""
    subject = report.subject
    return nullcontext() if subject is None else reasons(report.answer, subject.options.budget)


def because_findings(report: Report, style: Style) -> dict[int, list[str]]:
    """For the first findings of an answer, by their identity, why."""
    subject = report.subject
    if subject is None:
        return {}
    told: dict[int, list[str]] = {}
    for one in first_findings(report.answer, 1)[:STORIES]:
        if kind_of(one.flag) is FindingKind.MIXED:
            continue
        story = finding_story(subject.model, one, report.rule(one.flag))
        if story is not None:
            told[id(one)] = brief_story(story, style) if _says(story) else []
    return told


def because_outcome(report: Report, style: Style) -> list[str]:
    """Why the outcome can be seen, where no finding of the same execution says it."""
    subject = report.subject
    if subject is None or report.mixed:
        return []
    shown = shown_outcome(subject.lowered, report.answer)
    if shown is None or shown is not report.execution or _told(report, report.answer.findings):
        return []
    story = outcome_story(subject.model, shown)
    return brief_story(story, style) if story is not None and _says(story) else []


def _says(story: Story) -> bool:
    """Is a reason known that is more than the rule?"""
    return story.obstacles[0].reason not in (Reason.NOTHING_MISSING, Reason.RULE)


def _told(report: Report, findings: tuple[Finding, ...]) -> bool:
    """Does a finding of the execution that is shown relate two events?"""
    return any(one.witness == report.execution and one.second not in (None, one.first) for one in findings)


def because_never(report: Report) -> list[str]:
    """The cycle by which the first axiom forbids the outcome."""
    subject = report.subject
    if subject is None or report.answer.events > CHEAP:
        return []
    found = why_never(subject.lowered, subject.model, report.answer, subject.options, first=True)
    return brief_contradiction(found[0]) if found else []
