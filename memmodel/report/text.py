"""A report as text: the verdict, warnings, hangs, what flags found, and the execution or axioms that settle it.

In: Report. Out: lines. Colour is the caller's: every word that may have one goes through `style(text, role)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Finding, Observation, Outcomes, ShownEvent, Witness
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.litmus.syntax import Quantifier
from memmodel.report.findings import why_unordered
from memmodel.report.graph import BASIC, shown_edges

if TYPE_CHECKING:
    from memmodel.report.report import Report

Style = Callable[[str, str], str]

MAX_RACES = 8
"""More races than this are counted, not listed."""


def plain(text: str, role: str) -> str:
    """The style without colour."""
    return text


def explain(report: Report, style: Style = plain) -> str:
    """Verdict line first, then indented lines on why."""
    lines = [verdict(report, style)]
    for warning in report.warnings:
        told = warning.replace(": warning:", f": {style('warning', 'warning')}:", 1)
        lines += [f"  {line}" for line in told.splitlines()]
    answer = report.answer
    if answer.reason:
        lines += [f"  {line}" for line in answer.reason.splitlines()]
    if answer.axioms:
        lines.append(f"  forbidden by {', '.join(style(axiom, 'name') for axiom in answer.axioms)}")
    if answer.hang is not None:
        lines += [f"  {style('hang', 'warning')}: {sentence}" for sentence in answer.hang.witness.waits]
    for flag in answer.flags:
        if flag != HANG:
            lines += _flagged(report, flag, style)
    if answer.unsearched and answer.unsearched != answer.reason:
        lines += [f"  there may be other findings: {answer.unsearched}"]
    shown = report.execution
    if shown is not None:
        breaks = report.quantifier is Quantifier.FORALL and shown is answer.counter
        lines.append("  an execution that breaks it:" if breaks else "  an execution that shows it:")
        lines += [f"    {line}" for line in execution_lines(shown, style)]
    return "\n".join(lines)


def verdict(report: Report, style: Style = plain) -> str:
    """One line: test, model, what happens, whether the question holds, whether that was expected."""
    observation = report.answer.observation
    role = "undecided" if observation in (Observation.UNDECIDED, Observation.VACUOUS) else "name"
    line = f"{style(report.test, 'title')} under {report.model}: {style(observation.value, role)}"
    if report.holds is not None:
        line += f"; {report.question} {'holds' if report.holds else 'does not hold'}"
    if report.ok is None:
        return line
    return f"{line}; {style('as expected', 'good') if report.ok else style(f'expected {report.expected}', 'bad')}"


def execution_lines(witness: Witness, style: Style = plain) -> list[str]:
    """Events by thread in program order with values and where reads read from; then coherence, other edges, the end.

    Asynchronous events, which have no place in that order, are indented below the instruction that issued them.
    """
    events = [event for event in witness.events if event.thread is not None or event.location in _accessed(witness)]
    label = {event.uid: event.label for event in witness.events}
    source = {read: f"from {label[write]}" for write, read in witness.edges.get("rf", ()) if write in label}
    sources = max((len(text) for text in source.values()), default=0)
    tags = max((len(event.label) for event in events), default=0)
    texts = {event.uid: ("  " if "ASYNC" in event.tags else "") + event.text for event in events}
    width = max(map(len, texts.values()), default=0)
    names = {event.uid: event.thread or "" for event in events}
    margin = max((len(name) for name in names.values()), default=0)
    lines, last = [], ""
    for event in events:
        name = names[event.uid]
        head = f"{name if name != last else '':<{margin}}  {event.label:>{tags}}: {texts[event.uid]:<{width}}"
        lines.append(f"{head}  {source.get(event.uid, ''):<{sources}}  {_at(event)}".rstrip())
        last = name
    edges = shown_edges(witness)
    for name in dict.fromkeys(edge.name for edge in edges if edge.name != "rf"):
        pairs = ", ".join(f"{label[edge.first]} -> {label[edge.second]}" for edge in edges if edge.name == name)
        lines.append(f"{style(name, 'name' if name in BASIC else 'good')}: {pairs}")
    if end := final_state(witness):
        lines.append(f"at the end: {end}")
    return lines


def final_state(witness: Witness) -> str:
    """`P1:r0 = 1, P1:r1 = 0; x = 1, y = 1`; locations that nobody accessed are left out."""
    used = _accessed(witness)
    registers = ", ".join(f"{thread}:{name} = {value}" for (thread, name), value in witness.registers.items())
    memory = ", ".join(f"{name} = {value}" for name, value in witness.memory.items() if name in used)
    return "; ".join(part for part in (registers, memory) if part)


def _accessed(witness: Witness) -> set[str | None]:
    """The locations that some thread accesses in the execution."""
    return {event.location for event in witness.events if event.thread is not None}


def outcomes_lines(found: Outcomes, style: Style = plain) -> list[str]:
    """One line a final state, those that satisfy the condition marked with a star; a summary last."""
    lines = []
    for state in found.states:
        values = "  ".join(f"{name} = {value}" for name, value in state.values) or "(no registers or locations to show)"
        lines.append(f"{style('*', 'good') if state.satisfies else ' '} {values}")
    count = len(found.states)
    satisfying = sum(state.satisfies for state in found.states)
    lines.append(f"{count} final state{'' if count == 1 else 's'}, {satisfying} satisfying the condition (marked *)")
    if not found.states and found.complete:
        lines.append("no execution reaches the end of every thread; check says what waits")
    if not found.complete:
        lines.append(f"{style('undecided', 'undecided')}: there may be more: {found.reason or 'the budget ran out'}")
    return lines


def _flagged(report: Report, flag: str, style: Style) -> list[str]:
    """The events that a flag relates, with what keeps them from being ordered; for undefined behaviour the rule."""
    kind = kind_of(flag)
    word = flag.replace("-", " ") if kind is FindingKind.OTHER else kind.value
    found = [finding for finding in report.answer.findings if finding.flag == flag]
    lines = []
    for finding in found[:MAX_RACES]:
        lines.append(f"  {style(word, 'warning')}{_events(report, finding)}")
        if why := finding.rule or why_unordered(finding):
            lines.append(f"    {why}")
    told = report.answer.with_condition
    if told is not None and report.answer.observation is Observation.SOMETIMES:
        both = "in some" if flag in told else "in none"
        lines.append(f"    this happens {both} of the executions that satisfy the condition")
    if len(found) > MAX_RACES:
        lines.append(f"  … and {len(found) - MAX_RACES} more")
    if kind is FindingKind.UNDEFINED and report.rule(flag):
        lines.append(f"    rule: {report.rule(flag)} [{flag}]")
    return lines


def _events(report: Report, finding: Finding) -> str:
    """The events of a finding, under the labels that they have in the execution shown, if that has them too."""
    first, second = finding.first, finding.second
    if first is None or second is None:
        return f" ({finding.flag})"
    shown = {_identity(event): event.label for event in report.execution.events} if report.execution else {}
    ends = [f"{shown.get(_identity(event), event.label)}: {event.text} ({_where(event)})" for event in (first, second)]
    return f" at {ends[0]}" if first.uid == second.uid else f" between {ends[0]} and {ends[1]}"


def _where(event: ShownEvent) -> str:
    return ", ".join(part for part in (event.thread or "initial write", _at(event)) if part)


def _at(event: ShownEvent) -> str:
    return f"line {event.span.line}" if event.span else ""


def _identity(event: ShownEvent) -> tuple[object, ...]:
    """What two executions have in common of an event."""
    return event.thread, event.text.partition(" = ")[0], event.span, event.location
