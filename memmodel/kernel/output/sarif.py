"""A verdict on a launch as a SARIF 2.1.0 log, as code scanning services take it.

In: KernelVerdict. Out: JSON values. The primary place of a result is in the source that was compiled if .loc names a
relative path, else in the PTX; the other places follow as related locations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from memmodel.kernel.order.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.kernel.output.groups import groups
from memmodel.kernel.output.places import on_disk, places
from memmodel.kernel.output.source_names import SourceNames, source_names
from memmodel.kernel.output.text import ctas, short_name, who

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
OPEN = "undecided"


def sarif(verdicts: Iterable[KernelVerdict], *, by_source: bool = False) -> dict[str, Any]:
    """One log with one run for all verdicts. `by_source`: the primary place is in the source, whatever its path."""
    results: list[dict[str, Any]] = []
    rules: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        names = source_names(verdict)
        for group in groups(verdict.findings):
            finding = group.first
            rules.setdefault(finding.rule, {"id": finding.rule, "shortDescription": {"text": finding.kind}})
            results.append({**_result(verdict, finding, names, by_source), "occurrenceCount": group.count})
        for reason in (*verdict.unsettled, *_part(verdict)):
            rules.setdefault(OPEN, {"id": OPEN, "shortDescription": {"text": "not settled for every schedule"}})
            said = f"{short_name(verdict.entry)}: {names.sentence(reason)}"
            results.append({"ruleId": OPEN, "level": "warning", "message": {"text": said}, "locations": []})
    order = list(rules)
    for result in results:
        result["ruleIndex"] = order.index(result["ruleId"])
    driver = {"name": "memmodel", "version": _version(), "rules": [rules[name] for name in order]}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _part(verdict: KernelVerdict) -> list[str]:
    """The open question of a clean verdict on a part of the launch; none for other verdicts."""
    return [f"clean for {ctas(verdict)} only"] if verdict.word == "partial" else []


def _version() -> str:
    try:
        return version("memmodel")
    except PackageNotFoundError:
        return "0"


def in_folder(log: dict[str, Any], folder: str) -> dict[str, Any]:
    """The same log, with files below a folder named from there."""
    head = PurePosixPath(folder).as_uri().rstrip("/") + "/"
    text: dict[str, Any] = json.loads(json.dumps(log).replace(json.dumps(head)[:-1], '"'))
    return text


def _result(verdict: KernelVerdict, finding: KernelFinding, names: SourceNames, by_source: bool) -> dict[str, Any]:
    text = names.sentence(finding.message) or " and ".join(
        f"{side.instruction.opcode} at {_line(side)} {side.what}{who(side)}" for side in finding.sides
    )
    missing = "; ".join(names.sentence(part) for part in (finding.reason, finding.missing) if part)
    text += f". Missing: {missing}" if missing else ""
    sides = [_place(side, by_source) for side in finding.sides]
    related = [place for side in finding.sides for place in _callers(side)]
    related += [{**_place(place, by_source), "message": {"text": "on the way"}} for place in finding.way]
    name = f"{verdict.entry} {finding.rule} " + " ".join(
        f"{side.instruction.opcode} {side.instruction.location}" for side in finding.sides
    )
    return {
        "ruleId": finding.rule,
        "level": "note" if finding.harmless else "error",
        "message": {"text": f"{short_name(verdict.entry)}: {text}"},
        "locations": sides[:1],
        "relatedLocations": [{"id": number, **place} for number, place in enumerate([*sides[1:], *related], 1)],
        "partialFingerprints": {"finding/v1": hashlib.sha256(name.encode()).hexdigest()[:32]},
        **({"suppressions": [{"kind": "external", "justification": finding.ignored}]} if finding.ignored else {}),
    }


def _line(side: FindingPlace) -> str:
    """The line of the PTX, or the place in the source where no user sees the PTX."""
    listed = places(side.instruction.location)
    return str(listed[0]) if listed and not on_disk(side.instruction) else f"PTX line {side.instruction.line}"


def _place(side: FindingPlace, by_source: bool) -> dict[str, Any]:
    listed = places(side.instruction.location)
    location = next((place for place in listed if _relative(place.file)), None)
    if listed and (by_source or (location is None and not on_disk(side.instruction))):
        location = listed[0]
    what = {"text": f"{side.instruction.opcode}: {side.what}"}
    if location is not None:
        return {"physicalLocation": _physical(location.file, location.line, location.column), "message": what}
    span = side.instruction.span
    return {"physicalLocation": _physical(span.source.name, span.line, span.column), "message": what}


def _callers(side: FindingPlace) -> list[dict[str, Any]]:
    """The PTX line, and the places in the source."""
    span, others = side.instruction.span, list[dict[str, Any]]()
    if side.instruction.location is not None and on_disk(side.instruction):
        others.append({"physicalLocation": _physical(span.source.name, span.line, span.column),
                      "message": {"text": "the instruction"}})  # fmt: skip
    for location in places(side.instruction.location):
        text = {"text": "in the source" if location is side.instruction.location else "inlined here"}
        others.append({"physicalLocation": _physical(location.file, location.line, location.column), "message": text})
    return others


def _relative(file: str) -> bool:
    return not PurePosixPath(file).is_absolute() and "cuda" not in PurePosixPath(file).parts[:2] and ":" not in file


def _physical(file: str, line: int, column: int) -> dict[str, Any]:
    path = PurePosixPath(file.replace("\\", "/"))
    uri = path.as_uri() if path.is_absolute() else quote("/".join(part for part in path.parts if part != "."))
    return {"artifactLocation": {"uri": uri}, "region": {"startLine": max(1, line), "startColumn": max(1, column)}}
