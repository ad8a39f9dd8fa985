"""Reasons, paths and threads that wait, as records.

In: the records of `why`. Out: those of `records.reasons`. pydantic is loaded with this file, so only where JSON is
wanted.
"""

from __future__ import annotations

from memmodel.records.reasons import AtRecord, ObstacleRecord, StepRecord, WaitingRecord
from memmodel.source import Span
from memmodel.why.records import At, Obstacle, PathStep, Waiting


def obstacle(missing: Obstacle) -> ObstacleRecord:
    """A reason with its places."""
    return ObstacleRecord(
        reason=missing.reason, text=missing.text, repair=missing.repair, events=tuple(map(place, missing.events))
    )


def step(path_step: PathStep) -> StepRecord:
    """A step with what it is derived from."""
    return StepRecord(
        first=place(path_step.first),
        second=place(path_step.second),
        relation=path_step.relation,
        clause=path_step.clause,
        parts=tuple(map(step, path_step.parts)),
        holds=path_step.holds,
    )


def waiting(stopped: Waiting) -> WaitingRecord:
    """A thread that waits for ever."""
    file, line, column = _where(stopped.span)
    return WaitingRecord(
        thread=stopped.thread,
        text=stopped.text,
        reason=stopped.reason,
        goes_on=stopped.goes_on,
        file=file,
        line=line,
        column=column,
    )


def place(at: At) -> AtRecord:
    """A place on a path."""
    file, line, column = _where(at.span)
    return AtRecord(
        label=at.label,
        text=at.text,
        thread=at.thread,
        file=file,
        line=line,
        column=column,
        missing=at.missing,
    )


def _where(span: Span | None) -> tuple[str | None, int | None, int | None]:
    return (None, None, None) if span is None else (span.source.name, span.line, span.column)
