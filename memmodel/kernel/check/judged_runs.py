"""One run of a launch, made ready and judged under the model.

In: a trace, the waits of the launch. Out: `ReadyRun`, then `JudgedRun`.
"""

from __future__ import annotations

from time import process_time

from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.so_far import JudgedRun, ReadyRun
from memmodel.kernel.executions.settled_waits import SettledWaits
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.trace.launch import LaunchTrace


def ready_run(case: KernelCase, trace: LaunchTrace, waits: SettledWaits, chosen: frozenset[int]) -> ReadyRun:
    """The roles of its threads, its conflicts, its graph; unobserved atomic operations become plain accesses.

    `chosen`: the instructions on whose results runs depend. Raises Refused.
    """
    polled = waits.prepare(trace, chosen)
    run = RunJudge(case.entry, demote_unobserved(trace, chosen), chosen, by_instruction=case.options.by_instruction)
    return ReadyRun(run, waits.hold(trace, polled, run))


def judged_run(case: KernelCase, ready: ReadyRun, chosen: frozenset[int]) -> JudgedRun:
    """The judgement of a run by the model."""
    started = process_time()
    judgement = ready.run.judgement(case.model, chosen, explain=case.options.explain)
    case.effort.add_seconds("order", started)
    return JudgedRun(ready.run, judgement)
