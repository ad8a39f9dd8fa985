"""What is said of a sweep: a line for each verdict, and the smallest counterexample in full.

In: Sweep. Out: lines of text, JSON values.
"""

from __future__ import annotations

from memmodel.kernel.output.text import lines as kernel_lines
from memmodel.kernel.output.text import short_name
from memmodel.kernel.sweep.family import FOUND, Sweep
from memmodel.kernel.sweep.ranges import boxes_of, described

SHOWN = 20


def sweep_lines(sweep: Sweep) -> list[str]:
    """The worst word, each verdict with its launches, what is left, what was assumed, the smallest counterexample."""
    text = [
        f"{sweep.word}: {short_name(sweep.entry)}, {_launches(sweep.total)} with {sweep.axes}, under {sweep.model}, "
        f"{sweep.judged:,} verdict{'s' * (sweep.judged != 1)}"
    ]
    alike = sweep.launches_by_answer()
    for answer, launches in list(alike.items())[:SHOWN]:
        about = f" ({', '.join(answer.about)})" if answer.about else ""
        text.append(f"  {answer.word}{about}: {_launches(len(launches))}: {described(launches, sweep.axes.free)}")
    if len(alike) > SHOWN:
        text.append(f"  and {len(alike) - SHOWN} more verdicts")
    if sweep.left:
        text.append(f"  not judged: {_launches(sweep.left)}: {sweep.stopped}")
    text += [f"assumed: {what}; to drop it: {needs}" for what, needs in sweep.assumptions.items()]
    if sweep.counterexample:
        sizes = " ".join(f"--set {name}={size}" for name, size in sweep.counterexample)
        text.append(f"smallest counterexample: {sizes}")
        text += [] if sweep.verdict is None else kernel_lines(sweep.verdict)
    return text


def _launches(count: int) -> str:
    return f"{count:,} launch{'es' * (count != 1)}"


def sweep_record(sweep: Sweep) -> dict[str, object]:
    """The sweep as JSON values."""
    from memmodel.kernel.output.record import record as kernel_record  # loads pydantic
    from memmodel.records.kernels import KernelAssumptionRecord, KernelRecord, KernelSweepRecord, SweepAnswerRecord

    shown = sweep.verdict if sweep.verdict is not None and sweep.verdict.word in FOUND else None
    return KernelSweepRecord(
        entry=sweep.entry,
        model=sweep.model,
        verdict=sweep.word,
        sizes=sweep.axes.texts,
        launches=sweep.total,
        left=sweep.left,
        stopped=sweep.stopped or None,
        judged=sweep.judged,
        answers=tuple(
            SweepAnswerRecord(
                verdict=answer.word,
                about=answer.about,
                launches=len(launches),
                sizes=tuple(boxes_of(launches, sweep.axes.free)),
            )
            for answer, launches in sweep.launches_by_answer().items()
        ),
        assumptions=tuple(
            KernelAssumptionRecord(assumption=what, needs=needs) for what, needs in sweep.assumptions.items()
        ),
        counterexample=dict(sweep.counterexample) if sweep.counterexample else None,
        found=None if shown is None else KernelRecord.model_validate(kernel_record(shown)),
    ).json_values()
