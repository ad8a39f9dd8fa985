"""What `memmodel kernel --sweep` does: a family of launches, judged and printed.

In: what was typed. Out: a line for each verdict, the smallest counterexample, JSON, and an exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.cli.exits import Exit, say, write_json
from memmodel.cli.terminal import ticker

if TYPE_CHECKING:
    from memmodel.cli.kernels.request import KernelRequest


def show_sweep(asked: KernelRequest, family: str) -> Exit:
    """Judge every launch of a family. Exit code: that of the worst verdict; 3 if launches are left."""
    from memmodel.kernel.sweep.axes import axes
    from memmodel.kernel.sweep.output import sweep_lines, sweep_record
    from memmodel.kernel.sweep.sweeping import sweep_kernel

    shown = 0
    with ticker(axes(family).count) as tick:

        def progress(sizes: str, done: int, _: int) -> None:
            nonlocal shown
            for _ in range(done - shown):
                tick.done(sizes)
            shown = done

        result = sweep_kernel(
            asked.file, family, asked.launch, entry=asked.entry, words=asked.words(), compiler=asked.after_dashes,
            model=asked.whole_model, schedules=asked.schedules, assume_pure=asked.assume_pure,
            unwritten=asked.unwritten, budget=asked.cost(), jobs=asked.jobs, baseline=asked.baseline,
            progress=progress,
        )  # fmt: skip
    if asked.json_out != "-":
        say("\n".join(sweep_lines(result)))
    if asked.json_out:
        write_json(asked.json_out, sweep_record(result))
    if result.signal is not None:
        raise result.signal
    codes = {
        "clean": Exit.AS_EXPECTED, "no launch": Exit.AS_EXPECTED, "bad input": Exit.BAD_INPUT,
        "findings": Exit.DIFFERS, "depends": Exit.DIFFERS,
    }  # fmt: skip
    return codes.get(result.word, Exit.UNDECIDED)
