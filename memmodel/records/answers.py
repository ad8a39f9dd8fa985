"""Records of answers: what `check`, `suite`, `outcomes` and `check --readings` write.

In: nothing. Out: the models that docs/json.md describes. `report` fills them.
"""

from __future__ import annotations

from typing import Literal

from memmodel.records.base import JsonRecord
from memmodel.records.execution import ExecutionRecord, FindingRecord, HangRecord
from memmodel.records.reasons import ObstacleRecord, StepRecord

ObservationWord = Literal["never", "sometimes", "always", "undecided", "vacuous"]
VerdictWord = Literal["forbidden", "allowed", "depends", "undecided"]
ErrorKind = Literal["input", "limit", "internal"]
StatusWord = Literal["as expected", "differs", "undecided", "no expectation"]


class TimesRecord(JsonRecord):
    """Milliseconds."""

    parse: float
    encode: float
    solve: float


class ReportRecord(JsonRecord):
    """One question of a test under one model. `because`: what is missing for the outcome to be forbidden, `cycle`: how
    the first of `axioms` forbids it. `depends_on`: readings with another answer, `may_depend_on`: readings that forbid
    the execution shown."""

    test: str
    path: str
    model: str
    observation: ObservationWord
    holds: bool | None
    expected: str | None
    ok: bool | None
    races: tuple[FindingRecord, ...]
    engine: str
    time_ms: TimesRecord
    witness: ExecutionRecord | None
    counter: ExecutionRecord | None
    axioms: tuple[str, ...]
    flags: tuple[str, ...]
    question: str
    reason: str
    warnings: tuple[str, ...]
    hang: tuple[str, ...]
    hazards: tuple[FindingRecord, ...]
    undefined: tuple[FindingRecord, ...]
    flags_with_condition: tuple[str, ...] | None
    hanging: ExecutionRecord | None
    unsearched: str
    status: StatusWord
    hangs: tuple[HangRecord, ...]
    notices: tuple[str, ...]
    known_difference: str = ""
    because: tuple[ObstacleRecord, ...] = ()
    cycle: tuple[StepRecord, ...] = ()
    depends_on: tuple[str, ...] = ()
    may_depend_on: tuple[str, ...] = ()
    confirmed: bool | None = None
    confirmation: str = ""


class ErrorCause(JsonRecord):
    """Why there is no report. `kind`: the file's fault, beyond a limit, or a bug of memmodel."""

    kind: ErrorKind
    message: str
    line: int | None
    column: int | None


class ErrorRecord(JsonRecord):
    """The entry of a test without a report."""

    path: str
    model: str | None
    error: ErrorCause


class StateRecord(JsonRecord):
    """One final state: the value of each term of the question."""

    values: dict[str, int]
    satisfies: bool


class OutcomesRecord(JsonRecord):
    """All final states; `complete` false, and `reason`, if there may be others. `left_out`: arrays not shown."""

    states: tuple[StateRecord, ...]
    complete: bool
    engine: str
    reason: str
    path: str = ""
    model: str = ""
    left_out: tuple[str, ...] = ()


class DefaultAnswer(JsonRecord):
    """What the default model answers."""

    verdict: VerdictWord
    observation: ObservationWord


class ReadingRecord(JsonRecord):
    """What a reading answers; `reason`: why it is undecided or vacuous."""

    decision: str
    reading: str
    model: str | None
    verdict: VerdictWord
    observation: ObservationWord
    reason: str


class SideRecord(JsonRecord):
    """One side of a decision."""

    name: str
    answer: str
    verdict: VerdictWord


class DependenceRecord(JsonRecord):
    """A reading that says the opposite of the default."""

    decision: str
    question: str
    default: SideRecord
    other: SideRecord
    source: str


class ReadingsRecord(JsonRecord):
    """One question under the default model and under every reading of it."""

    test: str
    path: str
    model: str
    verdict: VerdictWord
    default: DefaultAnswer
    readings: tuple[ReadingRecord, ...]
    depends: tuple[DependenceRecord, ...]
    undecided: tuple[str, ...]
    question: str
    reason: str
    warnings: tuple[str, ...]
