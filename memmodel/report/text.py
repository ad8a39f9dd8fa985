"""A report as text: the verdict, warnings, hangs, what flags found, and the execution or axioms that settle it.

In: Report. Out: lines. Colour is the caller's: every word that may have one goes through `style(text, role)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.answer import Observation, Outcomes
from memmodel.litmus.syntax import Quantifier
from memmodel.report.because import because, because_findings, because_never, because_outcome
from memmodel.report.execution import Style, execution_lines, plain
from memmodel.report.findings import finding_lines
from memmodel.report.open_decisions import decision_lines
from memmodel.why.limited import CUT

if TYPE_CHECKING:
    from memmodel.report.report import Report


def explain(report: Report, style: Style = plain) -> str:
    """Verdict line first, then indented lines on why, and whether that was cut short."""
    with because(report) as time:
        lines = _explained(report, style)
    if time is not None and time.cut:
        lines.append(f"  {CUT}")
    return "\n".join(lines)


def _explained(report: Report, style: Style) -> list[str]:
    lines = [verdict(report, style)]
    for warning in report.warnings:
        styled = warning.replace(": warning:", f": {style('warning', 'warning')}:", 1)
        lines += [f"  {line}" for line in styled.splitlines()]
    if report.confirmation is not None:
        lines.append(f"  {report.confirmation.text}")
    answer = report.answer
    if answer.reason:
        lines += [f"  {line}" for line in answer.reason.splitlines()]
    if answer.axioms:
        lines.append(f"  forbidden by {', '.join(style(axiom, 'name') for axiom in answer.axioms)}")
        lines += [f"    {line}" for line in because_never(report)]
    lines += [f"  {line}" for line in decision_lines(report)]
    lines += finding_lines(report, style, because_findings(report, style))
    if answer.unsearched and answer.unsearched != answer.reason:
        lines += [f"  there may be other findings: {answer.unsearched}"]
    shown = report.execution
    if shown is not None:
        breaks = report.quantifier is Quantifier.FORALL and shown is answer.counter
        lines.append("  an execution that breaks it:" if breaks else "  an execution that shows it:")
        lines += [f"    {line}" for line in because_outcome(report, style)]
        lines += [f"    {line}" for line in execution_lines(shown, style)]
    return lines


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


def outcomes_lines(outcomes: Outcomes, style: Style = plain) -> list[str]:
    """One line a final state, those that satisfy the condition marked with a star; a summary last."""
    lines = []
    for state in outcomes.states:
        values = "  ".join(f"{name} = {value}" for name, value in state.values) or "(no registers or locations to show)"
        lines.append(f"{style('*', 'good') if state.satisfies else ' '} {values}")
    count = len(outcomes.states)
    satisfying = sum(state.satisfies for state in outcomes.states)
    lines.append(f"{count} final state{'' if count == 1 else 's'}, {satisfying} satisfying the condition (marked *)")
    if outcomes.left_out:
        hint = "name the elements that count in the condition, or in `locations [...]`"
        lines.append(f"not shown: {', '.join(outcomes.left_out)}; {hint}")
    if not outcomes.states and outcomes.complete:
        lines.append("no execution reaches the end of every thread; check says what waits")
    if not outcomes.complete:
        lines.append(f"{style('undecided', 'undecided')}: there may be more: {outcomes.reason or 'the budget ran out'}")
    return lines
