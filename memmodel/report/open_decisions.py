"""Which decisions of the documents an answer depends on, as far as one execution shows.

In: Report. Out: `OpenDecisions`. Settled here: no reading is asked. The execution that settles the answer is judged by
all readings at once, in one graph of expressions, which takes a few milliseconds: the execution that shows an outcome
or a finding; for an outcome that is never seen, one that a single axiom forbids; for a finding that is never made, any
execution of the test. `memmodel check --readings` asks every reading about every execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from memmodel import engine
from memmodel.answer import HANG, Observation, Witness
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.litmus.syntax import Quantifier
from memmodel.report.because import first_contradiction
from memmodel.report.expect import is_called
from memmodel.why.limited import limited
from memmodel.why.story import execution_of

if TYPE_CHECKING:
    from memmodel.cat.evaluate.readings import ReadingCheck
    from memmodel.report.report import Report

WIDTH = 116
DECIDED = (Observation.NEVER, Observation.SOMETIMES, Observation.ALWAYS)


@dataclass(frozen=True, slots=True)
class OpenDecisions:
    """Readings, as `D2 accessor`. `other`: under these the answer is another one. `possible`: these do not have the
    execution that settles the answer; another one may settle it in the same way."""

    other: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()


NONE = OpenDecisions()


def open_decisions(report: Report) -> OpenDecisions:
    """The decisions that an answer of the default model depends on; none for other models."""
    subject = report.subject
    if subject is None or report.model != DEFAULT_MODEL or report.mixed or report.answer.observation not in DECIDED:
        return NONE
    return limited(partial(_open_decisions, report), NONE)


def decision_lines(report: Report) -> list[str]:
    """`depends on D2: …` and `may depend on D3: …`, in words."""
    decided, forall = open_decisions(report), report.finding is None and report.quantifier is Quantifier.FORALL
    lines = []
    if decided.other:
        word = "broken" if forall else "found" if report.finding else "allowed"
        lines.append(f"depends on {_numbers(decided.other)}: {word} under {' and '.join(decided.other)}")
    if decided.possible:
        word = "forbids" if len(decided.possible) == 1 else "forbid"
        which = f"{' and '.join(decided.possible)} {word} this execution"
        lines.append(f"may depend on {_numbers(decided.possible)}: {which}")
    if lines:  # --readings is about the condition alone, whatever the question in front of it
        first = (*decided.other, *decided.possible)[0].replace(" ", "-")
        lines[-1] += f"; see {f'--model readings/{first}' if forall else '--readings'}"
    return [part for line in lines for part in wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)]


def _numbers(readings: tuple[str, ...]) -> str:
    """The decisions of some readings."""
    return " and ".join(dict.fromkeys(reading.split()[0] for reading in readings))


def _open_decisions(report: Report) -> OpenDecisions:
    word, seen = report.finding, _settling(report)
    if seen is not None:
        return OpenDecisions(possible=_readings(seen, word, has=False))
    if word == HANG:
        return NONE
    unseen = _refuted(report) if word is None else _any_execution(report)
    return NONE if unseen is None else OpenDecisions(other=_readings(unseen, word, has=True))


def _settling(report: Report) -> Witness | None:
    """The execution that settles the answer."""
    if report.finding is None and report.quantifier is Quantifier.FORALL:
        return report.answer.counter
    return report.answer.witness


def _refuted(report: Report) -> Witness | None:
    """An execution that would give the other answer, and that one axiom forbids."""
    contradiction = first_contradiction(report)
    return None if contradiction is None else contradiction.witness


def _any_execution(report: Report) -> Witness | None:
    """Some execution of the test."""
    subject = report.subject
    if subject is None:
        return None
    answer = engine.answer(subject.lowered, subject.model, subject.options, findings=False)
    return answer.witness or answer.counter


def _readings(witness: Witness, word: str | None, *, has: bool) -> tuple[str, ...]:
    """The readings that have an execution, with a finding of the kind that `word` names; or those that have not."""
    from memmodel.cat.evaluate.evaluator import Evaluator
    from memmodel.cat.evaluate.readings import readings_graph
    from memmodel.why.values import RankedRows

    execution = execution_of(witness)
    if execution is None or witness.ground is None:
        return ()
    readings = readings_graph()
    rows = RankedRows(execution, witness.ground.ranks)
    evaluator = Evaluator(readings.graph, rows)

    def holds(check: ReadingCheck) -> bool:
        return rows.fails(check.test, evaluator.value(check.node)) is check.negated

    def allowed(reading: str) -> bool:
        checks = readings.checks[reading]
        made = word in (None, HANG) or any(
            holds(check) for check in checks if check.flag and is_called(check.name, word)
        )
        return made and all(holds(check) for check in checks if not check.flag)

    return tuple(reading for reading in readings.readings if allowed(reading) is has)
