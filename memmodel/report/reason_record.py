"""Reasons, paths and threads that wait, as records.

In: the records of `why`. Out: those of `records.reasons`. pydantic is loaded with this file, so only where JSON is
wanted.
"""

from __future__ import annotations

from memmodel.records.reasons import AtRecord, ObstacleRecord, StepRecord, WaitingRecord
from memmodel.source import Span
from memmodel.why.records import At, Obstacle, PathStep, Waiting


def obstacle(one: Obstacle) -> ObstacleRecord:
    """A reason with its places."""
    return ObstacleRecord(reason=one.reason, text=one.text, repair=one.repair, events=tuple(map(place, one.events)))


def step(one: PathStep) -> StepRecord:
    """A step with what it is derived from."""
    return StepRecord(
        first=place(one.first),
        second=place(one.second),
        relation=one.relation,
        clause=one.clause,
        parts=tuple(map(step, one.parts)),
        holds=one.holds,
    )


def waiting(one: Waiting) -> WaitingRecord:
    """A thread that waits for ever."""
    file, line, column = _where(one.span)
    return WaitingRecord(
        thread=one.thread, text=one.text, reason=one.reason, goes_on=one.goes_on, file=file, line=line, column=column
    )


def place(one: At) -> AtRecord:
    """A place on a path."""
    file, line, column = _where(one.span)
    return AtRecord(
        label=one.label,
        text=one.text,
        thread=one.thread,
        file=file,
        line=line,
        column=column,
        missing=one.missing,
    )


def _where(span: Span | None) -> tuple[str | None, int | None, int | None]:
    return (None, None, None) if span is None else (span.source.name, span.line, span.column)
