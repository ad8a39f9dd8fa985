"""A launch that cannot be run to its end: what stopped it, and what is wrong up to there.

In: `KernelCase`, the `Refused` that stopped the run. Out: a sentence; findings, put into a `VerdictSoFar`.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.first_run import first_schedule
from memmodel.kernel.check.so_far import VerdictSoFar
from memmodel.kernel.flow.origin import come_from, place_of, unwritten
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction


def why_stopped(case: KernelCase, error: Refused) -> str:
    """Why the run stopped, in a sentence."""
    place = f"line {error.span.line}: " if error.span is not None else ""
    return place + error.message + come_from(case.entry, error)


def judge_beginning(case: KernelCase, error: Refused, report: VerdictSoFar) -> None:
    """Judge the prefix of a run that cannot be completed: threads that reach an undecidable instruction stop, the
    others continue. That is a prefix of an execution: what the prefix leaves unordered is unordered in it.
    """
    everything = frozenset(range(len(case.body)))
    at = _unwritten(case, error)
    if at is not None:
        text, side = "it depends on a register that was not written", FindingPlace(at, at.opcode, -1, -1, -1)
        finding = KernelFinding("undefined-register", "undefined behaviour", text, (side,))
        report.verdict.findings.append(finding)
    try:
        trace = demote_unobserved(case.run(replace(first_schedule(case), parks=True)), everything)
        run = RunJudge(case.entry, trace, everything, by_instruction=case.options.by_instruction)
        judgement = run.judgement(case.model, everything)
    except Refused:
        return
    report.add_findings(run, judgement.findings)


def _unwritten(case: KernelCase, error: Refused) -> PtxInstruction | None:
    """The instruction that could not be decided, if it can be with numbers in registers that were not written."""
    at = unwritten(case.entry, error)
    if at is not None:
        return at
    other = case.refusal(replace(first_schedule(case), filled=True))
    return None if other is not None and other.span == error.span else place_of(case.entry, error)
