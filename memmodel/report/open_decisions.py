"""Which decisions of the documents an answer depends on, as far as one execution shows.

In: Report. Out: `OpenDecisions`. Settled here: no reading is asked. The execution that settles the answer is judged by
all readings at once, in one graph of expressions, which takes a few milliseconds: the execution that shows an outcome
or a finding; for an outcome that is never seen, one that a single axiom forbids; for a finding that is never made, any
execution of the test. `memmodel check --readings` asks every reading about every execution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from memmodel import engine
from memmodel.answer import HANG, Observation, Witness
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.litmus.syntax import Quantifier
from memmodel.report.because import first_contradiction
from memmodel.report.expect import is_called
from memmodel.why.limited import limited
from memmodel.why.story import execution_of

if TYPE_CHECKING:
    from memmodel.cat.evaluate.readings import ReadingCheck
    from memmodel.concrete.execution import Execution
    from memmodel.referee.evaluate import Ranks
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


def readings_with_more(report: Report) -> frozenset[str]:
    """The readings under which a test has an outcome that the default model forbids, or a finding that it has not, as
    far as the executions at hand show."""
    return _differing(report, lambda decisions: decisions.other, lambda known, faults: faults - known)


def readings_with_less(report: Report) -> frozenset[str]:
    """The readings that may forbid an outcome that the default model allows, or may lack a finding that it has: those
    that do in the executions at hand."""
    return _differing(report, lambda decisions: decisions.possible, lambda known, faults: known - faults)


def _differing(
    report: Report,
    outcome: Callable[[OpenDecisions], Iterable[str]],
    difference: Callable[[Set[str], Set[str]], Set[str]],
) -> frozenset[str]:
    """The readings that have another outcome, or a difference between the faults of the default model and theirs."""
    if report.subject is None or report.model != DEFAULT_MODEL or report.answer.observation not in DECIDED:
        return frozenset()
    names = set(outcome(open_decisions(report)))
    for witness in (report.answer.witness, report.answer.counter):
        under = None if witness is None else _UnderReadings.of(witness)
        if under is not None:
            known = under.faults(DEFAULT_MODEL)
            names |= {name for name in under.names if difference(known, under.faults(name))}
    return frozenset(names)


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
    under = _UnderReadings.of(witness)
    return () if under is None else tuple(name for name in under.names if under.shows(name, word) is has)


class _UnderReadings:
    """One execution, judged by the default model and by all readings."""

    def __init__(self, execution: Execution, ranks: Ranks) -> None:
        from memmodel.cat.evaluate.evaluator import Evaluator
        from memmodel.cat.evaluate.readings import readings_graph
        from memmodel.why.values import RankedRows

        self._readings = readings_graph()
        self._rows = RankedRows(execution, ranks)
        self._evaluator = Evaluator(self._readings.graph, self._rows)

    @staticmethod
    def of(witness: Witness) -> _UnderReadings | None:
        """The execution of a witness; None if the witness has left its process."""
        execution, evaluated = execution_of(witness), witness.evaluated
        return None if execution is None or evaluated is None else _UnderReadings(execution, evaluated.ranks)

    @property
    def names(self) -> list[str]:
        """The readings."""
        return self._readings.readings

    def shows(self, name: str, word: str | None) -> bool:
        """True if a model allows the execution, and has a finding of the kind that `word` names in it."""
        checks = self._readings.checks[name]
        return (
            word in (None, HANG)
            or any(self._holds(check) for check in checks if check.flag and is_called(check.name, word))
        ) and all(self._holds(check) for check in checks if not check.flag)

    def faults(self, name: str) -> frozenset[str]:
        """The findings that a model has in the execution; none if it forbids it."""
        if not self.shows(name, None):
            return frozenset()
        flags = (check for check in self._readings.checks[name] if check.flag)
        return frozenset(
            check.name for check in flags if kind_of(check.name) is not FindingKind.OTHER and self._holds(check)
        )

    def _holds(self, check: ReadingCheck) -> bool:
        return self._rows.fails(check.kind, self._evaluator.value(check.node)) is check.negated
