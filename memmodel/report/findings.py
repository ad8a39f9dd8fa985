"""What the findings of an answer mean to a reader.

In: Report, Finding. Out: lines. Settled here: the labels and values of a finding are those of its own execution, which
is printed next, unless it is the one that settles the question. Of the executions that raise a flag, one is printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Finding, Observation, ShownEvent, Witness
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.litmus.syntax import Quantifier
from memmodel.ptx.vocabulary import Scope
from memmodel.report.execution import Style, execution_lines

if TYPE_CHECKING:
    from memmodel.report.report import Report

MAX_LISTED = 8
"""More findings of one flag than this are counted, not listed."""

_PROXIES = {"ASY": "async", "TMP": "tensormap", "FAB": "fabric", "SUR": "surface", "TEX": "texture", "CON": "constant"}


@dataclass(slots=True)
class _Group:
    """The findings of one execution. `printed`: it is shown to the reader, so that its labels mean something."""

    witness: Witness
    printed: bool
    findings: list[Finding] = field(default_factory=list)


def finding_lines(report: Report, style: Style, because: Mapping[int, list[str]]) -> list[str]:
    """Every finding, above the execution that has it; those of the execution that settles the question come last.

    `because`: the reasons for each finding, by its identity.
    """
    lines: list[str] = []
    known: set[str] = set()
    for group in sorted(_groups(report), key=lambda group: group.witness == report.execution):
        for finding in group.findings:
            no_reason: list[str] | None = (
                None if report.subject is None or kind_of(finding.flag) is FindingKind.MIXED else []
            )
            why = because.get(id(finding), no_reason)
            lines += _finding(finding, style, why, labelled=group.printed)
            lines += _about_flag(report, finding.flag) if finding.flag not in known else ()
            known.add(finding.flag)
        if group.printed and group.witness != report.execution:
            lines.append(f"    an execution with {'it' if len(group.findings) == 1 else 'all of these'}:")
            lines += [f"      {line}" for line in execution_lines(group.witness, style)]
    for flag, number in Counter(finding.flag for finding in report.answer.findings).items():
        if number > MAX_LISTED:
            lines.append(f"  … and {number - MAX_LISTED} more: {style(word_of(flag), 'warning')}")
    return lines


def _groups(report: Report) -> list[_Group]:
    """What is listed of each execution, a hang before the rest; the first execution of every flag is printed."""
    listed: Counter[str] = Counter()
    groups: list[_Group] = []
    for finding in sorted(
        report.answer.findings, key=lambda finding: (finding.witness != report.execution, finding.flag != HANG)
    ):
        listed[finding.flag] += 1
        if listed[finding.flag] > MAX_LISTED:
            continue
        group = next((group for group in groups if group.witness == finding.witness), None)
        if group is None:
            group = _Group(finding.witness, finding.witness == report.execution)
            groups.append(group)
        group.printed |= listed[finding.flag] == 1
        group.findings.append(finding)
    return groups


def _finding(finding: Finding, style: Style, because: list[str] | None, *, labelled: bool) -> list[str]:
    word = style(word_of(finding.flag), "warning")
    if finding.flag == HANG:
        return [f"  {word}: {sentence}" for sentence in finding.witness.waits]
    lines = [f"  {word}{_ends(finding, labelled=labelled)}"]
    if because is not None:
        lines += [f"    {line}" for line in because]
    elif why := why_unordered(finding if labelled else _unlabelled(finding)):
        lines.append(f"    {why}")
    return lines


def _unlabelled(finding: Finding) -> Finding:
    """The finding for a reader who does not see its execution."""
    if finding.first is None or finding.second is None:
        return finding
    first, second = (replace(finding.first, label="the first"), replace(finding.second, label="the second"))
    return replace(finding, first=first, second=second)


def _about_flag(report: Report, flag: str) -> list[str]:
    """What is said once of all findings of a flag."""
    lines = []
    with_condition = report.answer.with_condition
    if flag != HANG and with_condition is not None and report.answer.observation is Observation.SOMETIMES:
        both = "in some" if flag in with_condition else "in none"
        lines.append(f"    this happens {both} of the executions that satisfy the condition")
    about_outcome = report.finding is None and report.quantifier is not Quantifier.FORALL
    if flag != HANG and about_outcome and report.answer.observation is Observation.NEVER:
        lines.append("    this happens in executions with other outcomes")
    if kind_of(flag) is FindingKind.UNDEFINED and report.rule(flag):
        lines.append(f"    rule: {report.rule(flag)} [{flag}]")
    return lines


def word_of(flag: str) -> str:
    """What a finding of this flag is called."""
    kind = kind_of(flag)
    return flag.replace("-", " ") if kind is FindingKind.OTHER else kind.value


def sentence(finding: Finding, *, labelled: bool = True) -> str:
    """A finding in a line, for a hang what the first thread waits for; `labelled`: with the labels of its execution."""
    if finding.flag == HANG:
        return next(iter(finding.witness.waits), word_of(HANG))
    return word_of(finding.flag) + _ends(finding, labelled=labelled)


def _ends(finding: Finding, *, labelled: bool) -> str:
    """The events of a finding and where they are."""
    first, second = finding.first, finding.second
    if first is None or second is None:
        return f" ({finding.flag})"
    ends = [(f"{event.label}: " if labelled else "") + f"{event.text} ({event.where})" for event in (first, second)]
    return f" at {ends[0]}" if first.uid == second.uid else f" between {ends[0]} and {ends[1]}"


def why_unordered(finding: Finding) -> str:
    """What keeps two conflicting accesses from being ordered, where the events alone tell it; else empty."""
    first, second = finding.first, finding.second
    if first is None or second is None or first.uid == second.uid or kind_of(finding.flag) is FindingKind.OTHER:
        return ""
    if not all(event.tags & {"R", "W"} for event in (first, second)):
        return ""
    if "TMEM" in first.tags and "TMEM" in second.tags:
        ends = f"{first.label} is over {_completion(first)}, {second.label} {_completion(second)}"
        return f"{ends}; neither comes before the other"
    if kind_of(finding.flag) is FindingKind.MIXED:
        return f"{first.label} and {second.label} belong to accesses that overlap only in part, and nothing orders them"
    proxies = [_proxy(event) for event in (first, second)]
    running = [event.label for event in (first, second) if "ASYNC" in event.tags]
    if len(running) == 1 and proxies[0] != proxies[1]:
        other = second.label if running[0] == first.label else first.label
        return (
            f"{running[0]} is asynchronous: {other} has to wait for its end, "
            "or to come before it by synchronization and a proxy fence"
        )
    if proxies[0] != proxies[1]:
        return (
            f"{first.label} goes through the {proxies[0]} proxy and {second.label} through the {proxies[1]} proxy: "
            "they need synchronization and a proxy fence on its path"
        )
    if running:
        verb = "is" if len(running) == 1 else "are"
        return f"{' and '.join(running)} {verb} asynchronous, and no wait for the end comes in between"
    weak = [event.label for event in (first, second) if "WEAK" in event.tags]
    if weak:
        return f"{' and '.join(weak)} {'is' if len(weak) == 1 else 'are'} weak, and nothing synchronizes in between"
    return _scopes(first, second) or _scopes(second, first)


def _proxy(event: ShownEvent) -> str:
    return next((name for tag, name in _PROXIES.items() if tag in event.tags), "generic")


def _completion(event: ShownEvent) -> str:
    """The point at which a tcgen05 operation is complete, in words."""
    for tag, where in (("TLD", "at a tcgen05.wait::ld"), ("TST", "at a tcgen05.wait::st")):
        if tag in event.tags:
            return where
    return "when a wait sees its tcgen05.commit"


def _scopes(event: ShownEvent, other: ShownEvent) -> str:
    scope = next((scope for scope in Scope if scope.name in event.tags), None)
    if scope is None or event.place is None or other.place is None or event.place.shares(scope, other.place):
        return ""
    return f"the .{scope.name.lower()} of {event.label} does not reach {other.thread}"
