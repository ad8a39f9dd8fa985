"""Where published test suites mean something else than the PTX documents, so that a difference is explained.

In: LoweredTest. Out: the reason, or None (docs/corpus.md, "Known differences").
"""

from __future__ import annotations

from collections import Counter

from memmodel.base.labels import Domain, Half
from memmodel.litmus.syntax import Layout
from memmodel.program.expressions import Const
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier


def known_difference(lowered: LoweredTest) -> str | None:
    """Why a suite in column layout may expect another verdict: it takes the thread count of a barrier as a minimum.

    By the page of bar, `n` arrivals complete a generation, and the barrier can be used again at once: where more
    threads come, the next ones arrive at the next generation.
    """
    if lowered.test.layout is not Layout.COLUMNS:
        return None
    arrivals: Counter[object] = Counter()
    counts: dict[object, tuple[int, str]] = {}
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        for step in program.steps:
            op = step.op
            if not isinstance(op, AtBarrier) or op.label.domain is not Domain.CTA:
                continue
            if op.label.half is Half.ARRIVE and isinstance(op.count, Const):
                barrier = (thread.place.cta_id, op.key)
                arrivals[barrier] += 1
                counts[barrier] = (op.count.value, step.instruction.mnemonic)
    for where, (count, mnemonic) in counts.items():
        if 0 < count < arrivals[where]:
            return (
                f"known difference: {arrivals[where]} arrivals at {mnemonic} with a count of {count}; the suite takes "
                "the count as a minimum, PTX completes a generation with its first arrivals and starts the next"
            )
    return None
