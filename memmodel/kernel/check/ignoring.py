"""Findings that are ignored: a comment at a line says so, or a file (the baseline) lists them.

In: a verdict. Out: its findings, some with a reason why they do not count; notes on comments and entries that ignore
nothing. A comment is `// memmodel: ignore RULE "why"` (or `#`). It stands in a line of the finding, in PTX or in the
source, or alone in the line before. A comment and an entry both have a reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.ptx.module.syntax import PtxFunction, with_callers
from memmodel.recovery.json_values import json_values
from memmodel.source import Source, Span, read_bytes

MAX_SOURCE = 4_000_000
"""A source file with more bytes than this is not read."""

_COMMENT = re.compile(
    r"(?://|#|/\*)[ \t]*memmodel:[ \t]*ignore\b[ \t]*(?P<rule>[\w-]*)[ \t]*(?:\"(?P<why>[^\"\n]*)\")?"
)
_SHAPE = '{"findings": [{"kernel", "rule", "places", "count", "reason"}]}'


@dataclass(slots=True)
class IgnoreComment:
    """A comment that ignores a rule at its line. `alone`: nothing else stands there, and it is about the next line.
    `used`: there was such a finding.
    """

    rule: str
    why: str
    span: Span
    alone: bool
    used: bool = False


@dataclass(slots=True)
class Ignored:
    """The findings to be ignored.

    `comments`: by file and line. `listed`: by kernel, rule and places, how many findings, and why. `baseline`: the file
    that lists them. `texts`: the source files that were read. `folder`: where to look for sources, besides the current
    folder.
    """

    comments: dict[tuple[str, int], list[IgnoreComment]] = field(default_factory=dict)
    listed: dict[tuple[str, str, tuple[str, ...]], tuple[int, str]] = field(default_factory=dict)
    texts: dict[str, Source | None] = field(default_factory=dict)
    baseline: str = ""
    folder: str = ""

    @property
    def anything(self) -> bool:
        """True if anything is to be ignored. Then each race has to be reported, and not one for all that are alike."""
        return bool(self.comments or self.listed)

    def apply(self, verdict: KernelVerdict) -> None:
        """Mark the findings of a verdict that are to be ignored."""
        left = Counter({key: count for key, (count, _) in self.listed.items()})
        counted: set[tuple[object, ...]] = set()
        for finding in verdict.findings:
            why = self._commented(finding)
            key = self.key(verdict, finding)
            lines = (key, *sorted(str(side.instruction.location or side.instruction.line) for side in finding.sides))
            if why is None and (lines in counted or left[key]):
                left[key] -= lines not in counted
                counted.add(lines)
                why = self.listed[key][1]
            finding.ignored = why or ""

    def notes(self) -> Iterator[str]:
        """Comments that ignore nothing."""
        for comments in self.comments.values():
            for comment in comments:
                if not comment.used:
                    yield f"{comment.span}: this comment ignores {comment.rule}, and there is no such finding"

    def unused_entries(self, verdict: KernelVerdict) -> Iterator[str]:
        """Entries of the baseline that list more than there is of this kernel."""
        counts = Counter(self.key(verdict, finding) for finding in verdict.findings)
        for key, (_, reason) in self.listed.items():
            if key[0] == verdict.entry and not counts[key]:
                yield f"{self.baseline}: {key[1]} at {' and '.join(key[2])} is not found any more ({reason})"

    def _commented(self, finding: KernelFinding) -> str | None:
        """The reason of the comment that ignores a finding."""
        for side in finding.sides:
            for file, line in _lines(side):
                fitting = list(self.comments.get((file, line), ()))
                fitting += [comment for comment in self.comments.get((file, line - 1), ()) if comment.alone]
                for comment in fitting:
                    if comment.rule == finding.rule:
                        comment.used = True
                        return comment.why
        return None

    def key(self, verdict: KernelVerdict, finding: KernelFinding) -> tuple[str, str, tuple[str, ...]]:
        """How a baseline names a finding: kernel, rule, and the text of its lines, since line numbers may change."""
        return verdict.entry, finding.rule, tuple(sorted(self._place(side) for side in finding.sides))

    def _place(self, side: FindingPlace) -> str:
        locations = list(with_callers(side.instruction.location))
        own = next((place for place in reversed(locations) if self.text(place.file)), None)
        source = None if own is None else self.text(own.file)
        if own is None or source is None:
            return f"{side.instruction.opcode}: {side.what}"
        lines = source.text.split("\n")
        line = lines[own.line - 1].strip() if own.line <= len(lines) else ""
        return f"{os.path.basename(own.file)}: {line}"

    def text(self, file: str) -> Source | None:
        """The text of a source, if it can be read."""
        if file not in self.texts:
            beside = os.path.join(self.folder, file)
            read = (self._read(path, file) for path in dict.fromkeys((file, beside)))
            self.texts[file] = next((source for source in read if source is not None), None)
        return self.texts[file]

    @staticmethod
    def _read(path: str, name: str) -> Source | None:
        try:
            data = read_bytes(path, MAX_SOURCE)
            return Source(name, data.decode("utf-8")) if len(data) <= MAX_SOURCE else None
        except (InputError, UnicodeDecodeError):
            return None


def _lines(side: FindingPlace) -> Iterator[tuple[str, int]]:
    """Where an instruction stands: in the PTX, and in the source with what it was inlined into."""
    yield side.instruction.span.source.name, side.instruction.line
    for place in with_callers(side.instruction.location):
        yield place.file, place.line


def ignored(entry: PtxFunction, baseline: str | None = None) -> Ignored:
    """What the texts of an entry, and a baseline, ignore. Raises InputError for what has no reason."""
    body = entry.body or ()
    folder = os.path.dirname(body[0].span.source.name) if body else ""
    known = Ignored(baseline=baseline or "", folder=folder)
    files = {place.file for instruction in body for place in with_callers(instruction.location)}
    texts = {instruction.span.source.name: instruction.span.source for instruction in body}
    for name in sorted(files):
        source = known.text(name)
        if source is not None:
            texts[name] = source
    for name, source in texts.items():
        for found in _COMMENT.finditer(source.text):
            span = Span(source, found.start(), found.end())
            rule, why = str(found["rule"]), str(found["why"] or "").strip()
            if not rule or not why:
                hint = '// memmodel: ignore data-race "why it is none"'
                raise InputError("a comment that ignores a finding names its rule and a reason", span, hint)
            alone = span.line_text.strip().startswith(found[0])
            comment = IgnoreComment(rule, why, span, alone)
            known.comments.setdefault((name, span.line), []).append(comment)
    if baseline is not None:
        known.listed = read_baseline(baseline)
    return known


def read_baseline(path: str) -> dict[tuple[str, str, tuple[str, ...]], tuple[int, str]]:
    """The findings in a baseline, with how many there may be and why. Raises InputError."""
    try:
        data = json_values(path, read_bytes(path, MAX_SOURCE), "no baseline")
        entries = [
            ((item["kernel"], item["rule"], tuple(item["places"])), (int(item.get("count", 1)), item["reason"]))
            for item in data["findings"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no baseline: {error}", hint=f"such as {_SHAPE}") from error
    for key, (_, reason) in entries:
        if not isinstance(reason, str) or not reason.strip():
            raise InputError(f"{path}: {key[1]} of {key[0]} has no reason", hint="say in one sentence why it may stay")
    return dict(entries)


def baseline_of(verdict: KernelVerdict, known: Ignored) -> Mapping[str, Any]:
    """The findings of a verdict as a baseline, with the reasons that are known; the others are to be filled in."""
    counts: dict[tuple[str, str, tuple[str, ...]], set[tuple[str, ...]]] = {}
    for finding in verdict.serious:
        lines = sorted(str(side.instruction.location or side.instruction.line) for side in finding.sides)
        counts.setdefault(known.key(verdict, finding), set()).add(tuple(lines))
    listed = {key: (count, reason) for key, (count, reason) in known.listed.items()}
    for key, places in counts.items():
        listed[key] = (listed.get(key, (0, ""))[0] + len(places), listed.get(key, (0, ""))[1])
    return {
        "findings": [
            {"kernel": kernel, "rule": rule, "places": list(places), "count": count, "reason": reason}
            for (kernel, rule, places), (count, reason) in listed.items()
        ]
    }
