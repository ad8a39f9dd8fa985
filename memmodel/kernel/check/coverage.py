"""How much of an entry the runs of a verdict came to.

In: an entry, the instructions that were executed, a run. Out: `Coverage`.
"""

from __future__ import annotations

from collections.abc import Container

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.order.verdict import Coverage
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.vocabulary import Sem


def coverage(entry: PtxFunction, executed: Container[int], run: LaunchTrace) -> Coverage:
    """How much was executed; loops that only compute, or wait, are not counted.

    `executed`: the numbers of instructions that a thread executed in some run; `run`: the first one.
    """
    body = body_of(entry)
    synchronizing = [at for at, does in enumerate(body) if does.synchronizes]
    jumps_back: dict[int, list[int]] = {}
    for at, does in enumerate(body):
        for target in does.targets:
            if target <= at and not all(_only_waits(inside) for inside in body[target:at]):
                jumps_back.setdefault(target, []).append(at)
    skipped = [head for head, jumps in jumps_back.items() if not any(at in executed for at in jumps)]
    phases = [max((step.after for step in log), default=0) for log in run.objects.values()]
    return Coverage(
        len(synchronizing),
        tuple(body[at].instruction.line for at in synchronizing if at not in executed),
        len(jumps_back),
        tuple(sorted(body[head].instruction.line for head in skipped)),
        len(phases),
        sum(phase <= 1 for phase in phases),
    )


def _only_waits(does: LoweredInstruction) -> bool:
    """True for what a loop consists of that only computes or polls."""
    polls = does.loads and does.access is not None and does.access.sem is not Sem.WEAK
    return does.without_effect or does.tests_phase or polls
