"""Judge one test under two models and say how they differ.

In: a test, two models. Out: `Contrast`, one for each question. Settled here: final states and findings are compared.
The direction says what the second model does, seen from the first. A difference counts only if the model that lacks the
state or finding was searched completely; otherwise it is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from memmodel.answer import HANG, FinalValues, Finding, Observation, Outcomes, ShownEvent
from memmodel.cache.verdicts import PosedQuestion, Verdicts
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.limits import sharing_budget
from memmodel.report.report import Report


class Direction(Enum):
    """What the second model does, seen from the first. Its spelling follows the second model's name."""

    SAME = "is the same"
    FORBIDS = "forbids more"
    ALLOWS = "allows more"
    OTHER = "forbids some and allows others"
    REPORTS_LESS = "reports less"  # findings that it has no rule for
    REPORTS_MORE = "reports more"  # findings that the first has no rule for
    REPORTS_OTHER = "reports other findings"

    @staticmethod
    def of(gone: object, new: object) -> Direction:
        """The direction, from what is allowed only under the first model and what only under the second."""
        if gone and new:
            return Direction.OTHER
        return Direction.FORBIDS if gone else Direction.ALLOWS if new else Direction.SAME


@dataclass(frozen=True, slots=True)
class Sides:
    """Two models (loaded, or by name) under the names that the reader sees, and how tests are judged under them.

    `outcomes_only`: findings are left out.
    """

    first: str | Model
    second: str | Model
    names: tuple[str, str]
    options: Options = Options()
    outcomes_only: bool = False


@dataclass(frozen=True, slots=True)
class Contrast:
    """One question of a test under both models.

    `reports`: on the question, under the first and the second. `lost_outcomes`, `new`: final states, and `fewer`,
    `more`: findings, only under the first and only under the second. `asked`: what both say of one of these states.
    `undecided`: why something was not compared; empty if everything was.
    """

    test: str
    path: str
    number: int
    reports: tuple[Report, Report]
    lost_outcomes: tuple[FinalValues, ...] = ()
    new: tuple[FinalValues, ...] = ()
    fewer: tuple[Finding, ...] = ()
    more: tuple[Finding, ...] = ()
    asked: tuple[Report, Report] | None = None
    undecided: str = ""

    @property
    def all_reports(self) -> tuple[Report, ...]:
        """The reports that are shown."""
        return (*self.reports, *(self.asked or ()))

    @property
    def direction(self) -> Direction:
        """The direction of final states, and of findings for which both models have rules.

        If these are the same, the direction of findings for which only one model has a rule.
        """
        first, second = ({HANG, *(flag for flag, _ in report.rules)} for report in self.reports)
        fewer = [finding for finding in self.fewer if finding.flag in second]
        more = [finding for finding in self.more if finding.flag in first]
        direction = Direction.of(self.lost_outcomes or fewer, self.new or more)
        if direction is not Direction.SAME or not (self.fewer or self.more):
            return direction
        if self.fewer and self.more:
            return Direction.REPORTS_OTHER
        return Direction.REPORTS_LESS if self.fewer else Direction.REPORTS_MORE

    @property
    def differs(self) -> bool:
        return self.direction is not Direction.SAME


def contrasts(verdicts: Verdicts, asked: tuple[PosedQuestion, ...], sides: Sides) -> Iterator[Contrast]:
    """Each question of a test under both models. Raises InputError."""
    for posed in asked:
        with sharing_budget(sides.options.budget):
            contrast = _contrast(verdicts, posed, sides)
            if contrast.differs and any(report.subject is None for report in contrast.all_reports):
                contrast = _contrast(Verdicts(), posed, sides)  # a kept answer has no reasons
        yield contrast


def _contrast(verdicts: Verdicts, posed: PosedQuestion, sides: Sides) -> Contrast:
    first, second = (
        replace(verdicts.report(posed, model, sides.options, reasons=True), model=name, expected=None)
        for model, name in zip((sides.first, sides.second), sides.names, strict=True)
    )
    contrast = Contrast(posed.name, posed.text.source.name, posed.number, (first, second))
    if not sides.outcomes_only:
        contrast = _with_findings(contrast)
    if first.finding is None:
        contrast = _with_states(contrast, verdicts, posed, sides)
    elif not sides.outcomes_only and not contrast.undecided:
        answers = [report.answer for report in contrast.reports]
        reason = next((answer.reason for answer in answers if answer.observation is Observation.UNDECIDED), "")
        contrast = replace(contrast, undecided=reason)
    return contrast


# ---- findings --------------------------------------------------------------------------------------------------------


def _with_findings(contrast: Contrast) -> Contrast:
    first, second = ({_place_of(finding): finding for finding in report.answer.findings} for report in contrast.reports)
    fewer = [finding for place, finding in first.items() if place not in second]
    more = [finding for place, finding in second.items() if place not in first]
    reasons = [report.answer.unsearched for report in contrast.reports]
    undecided = next((f"findings: {reason}" for reason in reasons if reason), "")
    return replace(
        contrast,
        fewer=() if reasons[1] else tuple(fewer),
        more=() if reasons[0] else tuple(more),
        undecided=undecided,
    )


def _place_of(finding: Finding) -> object:
    """The key of a finding: its flag, the instructions of both events and whether they read or write, its rule."""
    if finding.flag == HANG:
        return HANG
    ends = frozenset(_end(event) for event in (finding.first, finding.second) if event is not None)
    return finding.flag, ends, finding.rule


def _end(event: ShownEvent) -> object:
    half = "R" if "R" in event.tags else "W" if "W" in event.tags else "-"
    if event.thread is None:
        return None, re.split(r"[\[@+]", event.location or "")[0], half
    return event.thread, event.span and event.span.start, half


# ---- final states ----------------------------------------------------------------------------------------------------


def _with_states(contrast: Contrast, verdicts: Verdicts, posed: PosedQuestion, sides: Sides) -> Contrast:
    first, second = (verdicts.outcomes(posed, model, sides.options) for model in (sides.first, sides.second))
    gone = _only(first, second)
    new = _only(second, first)
    reason = next((f"final states: {outcomes.reason}" for outcomes in (first, second) if not outcomes.complete), "")
    contrast = replace(contrast, lost_outcomes=gone, new=new, undecided=contrast.undecided or reason)
    if not gone and not new:
        return contrast
    example = min(gone or new, key=lambda state: not state.satisfies)
    return replace(contrast, asked=_explained(verdicts, posed, sides, example) or contrast.reports)


def _only(mine: Outcomes, others: Outcomes) -> tuple[FinalValues, ...]:
    """The final states of the one that the other does not have; none if not all states of the other are known."""
    if not others.complete:
        return ()
    known = {state.values for state in others.states}
    return tuple(state for state in mine.states if state.values not in known)


def _explained(
    verdicts: Verdicts, posed: PosedQuestion, sides: Sides, state: FinalValues
) -> tuple[Report, Report] | None:
    """Both models asked for one final state; None if it cannot be asked for."""
    terms = " /\\ ".join(f"{name} == {value}" for name, value in state.values) or "true"
    try:
        (question,) = verdicts.posed(posed.text.source, (f"exists ({terms})",))
        first, second = (
            verdicts.report(question, model, sides.options, reasons=True) for model in (sides.first, sides.second)
        )
    except InputError:
        return None
    pair = replace(first, model=sides.names[0]), replace(second, model=sides.names[1])
    return None if Observation.UNDECIDED in (report.answer.observation for report in pair) else pair
