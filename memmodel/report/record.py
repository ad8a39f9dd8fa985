"""A report as JSON values: the stable record of docs/json.md.

In: Report, or an error. Out: dictionaries whose keys always come in the same order; new keys are only ever added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.answer import Outcomes, Race, ShownEvent, Witness
from memmodel.report.findings import Kind, why_unordered
from memmodel.source import Span

if TYPE_CHECKING:
    from memmodel.report.report import Report

Record = dict[str, object]


def record(report: Report) -> Record:
    """One object for one test under one model."""
    answer = report.answer
    return {
        "test": report.test,
        "path": report.path,
        "model": report.model,
        "observation": answer.observation.value,
        "holds": report.holds,
        "expected": report.expected,
        "ok": report.ok,
        "races": [finding(report, race) for race in report.found(Kind.RACE, Kind.OTHER)],
        "engine": answer.engine,
        "time_ms": {part: round(getattr(answer.times, part), 3) for part in ("parse", "encode", "solve")},
        "witness": execution(answer.witness),
        "counter": execution(answer.counter),
        "axioms": list(answer.axioms),
        "flags": list(answer.flags),
        "question": report.question,
        "bound": answer.bound,
        "reason": answer.reason,
        "warnings": list(report.warnings),
        "hang": list(answer.hang),
        "hazards": [finding(report, race) for race in report.found(Kind.HAZARD)],
        "undefined": [finding(report, race) for race in report.found(Kind.UNDEFINED)],
        "flags_with_condition": None if answer.with_condition is None else list(answer.with_condition),
    }


def finding(report: Report, race: Race) -> Record:
    """Two events that a flag relates; `second` is `first` again where the flag is about one event."""
    return {
        "flag": race.flag,
        "first": event(race.first),
        "second": event(race.second),
        "rule": report.rule(race.flag),
        "why": why_unordered(race),
    }


def failure(path: str, model: str | None, kind: str, message: str, span: Span | None = None) -> Record:
    """The entry of a test that has no report. `kind`: `input` (the file's fault) or `internal` (ours)."""
    place = {"line": span.line, "column": span.column} if span else {"line": None, "column": None}
    return {"path": path, "model": model, "error": {"kind": kind, "message": message, **place}}


def execution(witness: Witness | None) -> Record | None:
    """Events, edges by their labels, and the final state."""
    if witness is None:
        return None
    label = {shown.uid: shown.label for shown in witness.events}
    return {
        "events": [event(shown) for shown in witness.events],
        "edges": {
            name: sorted([label[a], label[b]] for a, b in pairs if a in label and b in label)
            for name, pairs in sorted(witness.edges.items())
        },
        "registers": {f"{thread}:{name}": value for (thread, name), value in witness.registers.items()},
        "memory": dict(witness.memory),
    }


def event(shown: ShownEvent) -> Record:
    """One event; `thread` and `place` are null for an initial write."""
    place = shown.place
    return {
        "label": shown.label,
        "thread": shown.thread,
        "place": {"gpu": place.gpu, "cluster": place.cluster, "cta": place.cta} if place else None,
        "text": shown.text,
        "tags": sorted(shown.tags),
        "location": shown.location,
        "value": shown.value,
        "line": shown.span.line if shown.span else None,
    }


def states(found: Outcomes) -> Record:
    """All final states of a test."""
    return {
        "states": [{"values": dict(state.values), "satisfies": state.satisfies} for state in found.states],
        "complete": found.complete,
        "engine": found.engine,
        "bound": found.bound,
        "reason": found.reason,
    }
