"""A report as JSON values: the stable record of docs/json.md.

In: Report, or an error. Out: dictionaries whose keys always come in the same order; new keys are only ever added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.answer import Finding, Outcomes, ShownEvent, Witness
from memmodel.cat.flags import FindingKind
from memmodel.ptx import Place
from memmodel.report.findings import why_unordered
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
        "races": _findings(report, FindingKind.RACE, FindingKind.MIXED, FindingKind.OTHER),
        "engine": answer.engine,
        "time_ms": {part: round(getattr(answer.times, part), 3) for part in ("parse", "encode", "solve")},
        "witness": execution(answer.witness),
        "counter": execution(answer.counter),
        "axioms": list(answer.axioms),
        "flags": list(answer.flags),
        "question": report.question,
        "reason": answer.reason,
        "warnings": list(report.warnings),
        "hang": list(answer.hang.witness.waits) if answer.hang else [],
        "hazards": _findings(report, FindingKind.HAZARD),
        "undefined": _findings(report, FindingKind.UNDEFINED),
        "flags_with_condition": None if answer.with_condition is None else list(answer.with_condition),
        "hanging": execution(answer.hang.witness) if answer.hang else None,
        "unsearched": answer.unsearched,
    }


def _findings(report: Report, *kinds: FindingKind) -> list[Record]:
    return [finding(report, one) for one in report.found(*kinds)]


def finding(report: Report, found: Finding) -> Record:
    """Two events that a flag relates; `second` is `first` again where the flag is about one event.

    The labels are those of `witness`, the execution in which it was found.
    """
    return {
        "flag": found.flag,
        "first": event(found.first) if found.first else None,
        "second": event(found.second) if found.second else None,
        "rule": found.rule or report.rule(found.flag),
        "why": why_unordered(found),
        "witness": execution(found.witness),
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
        "waits": list(witness.waits),
    }


def event(shown: ShownEvent) -> Record:
    """One event; `thread` and `place` are null for an initial write."""
    place = shown.place
    return {
        "label": shown.label,
        "thread": shown.thread,
        "place": _place(place) if place else None,
        "text": shown.text,
        "tags": sorted(shown.tags),
        "location": shown.location,
        "value": shown.value,
        "line": shown.span.line if shown.span else None,
    }


def _place(place: Place) -> Record:
    return {"gpu": place.gpu, "grid": place.grid, "cluster": place.cluster, "cta": place.cta}


def states(found: Outcomes) -> Record:
    """All final states of a test."""
    return {
        "states": [{"values": dict(state.values), "satisfies": state.satisfies} for state in found.states],
        "complete": found.complete,
        "engine": found.engine,
        "reason": found.reason,
    }
