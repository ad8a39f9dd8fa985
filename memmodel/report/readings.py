"""What a test's condition depends on: the default model's answer next to that of every other reading of the documents.

In: LitmusTest, the answers by model. Out: ReadingsReport, which explains itself in text and in JSON. Settled here: an
outcome is forbidden if it never happens; one decision at a time goes the other way.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from operator import attrgetter

from memmodel.answer import Answer, Observation
from memmodel.base.oneline import shown
from memmodel.cat.decisions import Decision, DecisionSide, decisions
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.execution import Style, plain
from memmodel.report.report import question_of

WIDTH = 110


class Verdict(Enum):
    """What a model, or all of them together, say of a condition."""

    FORBIDDEN = "forbidden"
    ALLOWED = "allowed"
    DEPENDS = "depends"
    UNDECIDED = "undecided"

    @staticmethod
    def of(answer: Answer) -> Verdict:
        """One model's verdict; a condition that nothing can observe is forbidden."""
        if answer.observation is Observation.UNDECIDED:
            return Verdict.UNDECIDED
        shown = answer.observation in (Observation.SOMETIMES, Observation.ALWAYS)
        return Verdict.ALLOWED if shown else Verdict.FORBIDDEN


@dataclass(frozen=True, slots=True, repr=False)
class ReadingAnswer:
    """One decision the other way, and what its model answers."""

    decision: Decision
    side: DecisionSide
    answer: Answer

    def __repr__(self) -> str:
        return shown("ReadingAnswer", f"{self.name}: {self.verdict.value}", self.answer.reason)

    @property
    def name(self) -> str:
        """`D2 accessor`."""
        return f"{self.decision.number} {self.side.name}"

    @property
    def verdict(self) -> Verdict:
        return Verdict.of(self.answer)


@dataclass(frozen=True, slots=True, repr=False)
class ReadingsReport:
    """One test under the default model and under every reading of it. `question`: the file's, as text."""

    test: str
    path: str
    model: str
    question: str
    answer: Answer
    readings: tuple[ReadingAnswer, ...]
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(test: LitmusTest, model: str, answers: Mapping[str, Answer]) -> ReadingsReport:
        """The report on the answers of the default model and, by the name that `Side.model` has, of all readings."""
        path = test.source.name if test.source else ""
        readings = (
            ReadingAnswer(decision, side, answers[side.model or model])
            for decision in decisions()
            for side in decision.readings
        )
        return ReadingsReport(test.name, path, model, question_of(test), answers[model], tuple(readings))

    def __repr__(self) -> str:
        open_ones = f"undecided under {', '.join(self.undecided)}" if self.undecided else ""
        text = f"{self.test} under {self.model} and its readings: {self.verdict.value}"
        return shown("ReadingsReport", text, *(self._sides(*group) for group in self._groups), open_ones)

    @property
    def default(self) -> Verdict:
        """What the default model says."""
        return Verdict.of(self.answer)

    @property
    def depends(self) -> tuple[ReadingAnswer, ...]:
        """The readings that say the opposite of the default."""
        opposite = {Verdict.FORBIDDEN: Verdict.ALLOWED, Verdict.ALLOWED: Verdict.FORBIDDEN}.get(self.default)
        return tuple(reading for reading in self.readings if reading.verdict is opposite)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The readings (and the default, by the model's name) that could not tell."""
        own = (self.model,) if self.default is Verdict.UNDECIDED else ()
        return (*own, *(reading.name for reading in self.readings if reading.verdict is Verdict.UNDECIDED))

    @property
    def verdict(self) -> Verdict:
        """forbidden or allowed if all agree, depends if one says the opposite, else undecided."""
        if self.depends:
            return Verdict.DEPENDS
        return Verdict.UNDECIDED if self.undecided else self.default

    def explain(self, style: Style = plain) -> str:
        """The report as text for a person: the verdict in a line, then each decision that it depends on."""
        role = {Verdict.DEPENDS: "warning", Verdict.UNDECIDED: "undecided"}.get(self.verdict, "name")
        head = f"{style(self.test, 'title')} under {self.model} and its readings: {style(self.verdict.value, role)}"
        groups = self._groups
        lines = [": ".join((head, "; ".join(self._sides(*group) for group in groups))) if groups else head]
        lines.append(f"  {self.question}")
        lines += [f"  {line}" for warning in self.warnings for line in warning.splitlines()]
        if self.answer.reason:
            lines += [f"  {line}" for line in self.answer.reason.splitlines()]
        for decision, answers in groups:
            lines.append(f"  {style(decision.number, 'name')}: {decision.question}")
            sides = [(f"{decision.default.name} (default)", self.default, decision.default.answer)]
            sides += [(reading.side.name, reading.verdict, reading.side.answer) for reading in answers]
            width = max(len(name) for name, *_ in sides)
            for name, verdict, answer in sides:
                lines += _wrapped(f"{name:<{width}}  {verdict.value:<9}  ", answer)
            lines += _wrapped("left open by ", decision.source)
        if self.undecided:
            lines.append(f"  {style('undecided', 'undecided')} under {', '.join(self.undecided)}")
        return "\n".join(lines)

    @property
    def _groups(self) -> list[tuple[Decision, tuple[ReadingAnswer, ...]]]:
        """The decisions that make a difference, each with the readings that do."""
        return [(decision, tuple(answers)) for decision, answers in groupby(self.depends, attrgetter("decision"))]

    def _sides(self, decision: Decision, answers: tuple[ReadingAnswer, ...]) -> str:
        """`forbidden under D2 path (default), allowed under D2 accessor`."""
        others = " and ".join(reading.name for reading in answers)
        default = f"{self.default.value} under {decision.number} {decision.default.name} (default)"
        return f"{default}, {answers[0].verdict.value} under {others}"

    def to_json(self) -> dict[str, object]:
        """The report as JSON values, keys in the order of docs/json.md."""
        from memmodel.report.record import readings

        return readings(self)


def _wrapped(head: str, text: str) -> list[str]:
    indent = "    "
    return textwrap.wrap(indent + head + text, WIDTH, subsequent_indent=indent + " " * len(head), drop_whitespace=True)
