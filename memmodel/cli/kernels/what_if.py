"""What `memmodel kernel --what-if` prints: the verdict before a change and after it, and what appears and goes.

In: `KernelRequest`. Out: lines, JSON, an exit code.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from memmodel.cli.exits import Exit, say, write_json

if TYPE_CHECKING:
    from memmodel.cli.kernels.request import KernelRequest
    from memmodel.kernel.synchronization.what_if import WhatIf, WhatIfBegun


def answer_what_if(asked: KernelRequest) -> Exit:
    """Judge the kernel as it is and as it would be. Exit code: 1 if a finding appears, 3 if that is open, else 0."""
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.case import CheckOptions
    from memmodel.kernel.check.ignoring import ignored
    from memmodel.kernel.check.inputs import chosen_ctas, reading_models
    from memmodel.kernel.question import kernel_text, question
    from memmodel.kernel.synchronization.what_if import what_if
    from memmodel.kernel.synchronization.what_if_text import begun_lines, what_if_lines, what_if_record
    from memmodel.limits import within_budget

    quiet, words, budget, ctas = asked.json_out == "-", asked.words(), asked.cost(), asked.ctas()

    def stands(begun: WhatIfBegun) -> None:
        if not quiet:
            say("\n".join(begun_lines(begun)))

    with within_budget(budget):
        text = kernel_text(asked.file, asked.after_dashes, asked.entry)
        kernel = question(text, asked.launch, words, asked.entry, partial(chosen_ctas, wanted=ctas))
        options = CheckOptions(
            asked.schedules, chosen_ctas(kernel.launch, ctas), not ctas, asked.assume_pure,
            reading_models() if asked.readings else (), unwritten=asked.unwritten, depends=True,
            by_instruction=ignored(kernel.entry, asked.baseline).anything,
        )  # fmt: skip
        answer = what_if(
            kernel, asked.what_if, load_model(asked.whole_model), options, baseline=asked.baseline, budget=budget,
            stands=stands,
        )  # fmt: skip
    if not quiet:
        say("\n".join(what_if_lines(answer)))
    if asked.json_out:
        write_json(asked.json_out, what_if_record(answer))
    return _code(answer)


def _code(answer: WhatIf) -> Exit:
    if answer.undecided:
        return Exit.UNDECIDED
    return Exit.DIFFERS if answer.appearing else Exit.AS_EXPECTED
