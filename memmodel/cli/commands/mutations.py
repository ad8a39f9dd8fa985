"""What `memmodel kernel --mutate` prints: the table of a kernel's mutants.

In: MutationTable. Out: lines, JSON values.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from memmodel.cli.exits import Exit, say
from memmodel.cli.tables import TextTable, lines
from memmodel.cli.terminal import ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from memmodel.answer import Budget
    from memmodel.kernel.mutate.table import MutationTable
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.question import LaunchWords


def mutate(
    file: str,
    launch: str | None,
    words: LaunchWords,
    compiler: tuple[str, ...],
    entry: str | None,
    model: str,
    jobs: int,
    budget: Budget,
    told: Callable[[KernelVerdict], None] | None,
) -> tuple[Exit, dict[str, Any]]:
    """Judge all mutants. `budget`: of all together. `told`: is given the verdict on the kernel itself, before. Exit
    code: that of this verdict.
    """
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.inputs import chosen_ctas
    from memmodel.kernel.mutate.mutations import mutations
    from memmodel.kernel.mutate.table import mutation_table
    from memmodel.kernel.question import kernel_text, question
    from memmodel.limits import whole

    with whole(budget):
        asked = question(kernel_text(file, compiler, entry), launch, words, entry, partial(chosen_ctas, wanted=()))
        module, function, description, loaded = asked.module, asked.entry, asked.launch, load_model(model)
        with ticker(len(mutations(function))) as tick:
            table = mutation_table(
                module, function, description, loaded, jobs=jobs, budget=budget, progress=tick.done, told=told
            )
            tick.hide()
    return _code(table), record(table)


def _code(table: MutationTable) -> Exit:
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS}
    return codes.get(table.base.word, Exit.UNDECIDED)


def show_table(record: dict[str, Any]) -> None:
    """The table as text."""
    keys = ("line", "instruction", "change", "outcome", "how")
    rows = [tuple(str(mutant[key]) for key in keys) for mutant in record["mutants"]]
    for line in lines(TextTable("", keys, rows)):
        say(line)
    counts = ", ".join(f"{number} {word}" for word, number in record["counts"].items() if number)
    share = f"{record['share']:.0%} of {record['judged']} changes noticed"
    say(f"{record['entry']} ({record['verdict']}): {share}; {counts}")


def record(table: MutationTable) -> dict[str, Any]:
    """The table as JSON values."""
    from memmodel.kernel.mutate.table import Noticed

    return {
        "entry": table.base.entry,
        "verdict": table.base.word,
        "share": round(table.share, 4),
        "judged": table.judged,
        "counts": {word.value: table.count(word) for word in Noticed},
        "mutants": [
            {
                "line": mutant.mutation.instruction.line,
                "instruction": mutant.mutation.instruction.opcode,
                "change": mutant.mutation.what,
                "outcome": mutant.noticed.value,
                "how": mutant.how,
            }
            for mutant in table.results
        ],
    }
