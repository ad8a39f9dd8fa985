"""What `memmodel kernel --mutate` prints: the table of a kernel's mutants.

In: MutationTable. Out: lines, JSON values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memmodel.cli.exits import Exit, say
from memmodel.cli.terminal import ticker

if TYPE_CHECKING:
    from memmodel.kernel.mutate.table import MutationTable


def mutate(
    file: str, launch: str, entry: str | None, model: str, jobs: int, seconds: float
) -> tuple[Exit, dict[str, Any]]:
    """Judge all mutants and print them. Exit code: that of the kernel as it is."""
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.inputs import entry_of
    from memmodel.kernel.launch import read_launch
    from memmodel.kernel.mutate.mutations import mutations
    from memmodel.kernel.mutate.table import mutation_table
    from memmodel.ptx.module.reader import read_module

    module, given = read_module(file), read_launch(launch)
    chosen = entry_of(module, entry or given.kernel)
    with ticker(len(mutations(chosen))) as tick:
        table = mutation_table(module, chosen, given, load_model(model), jobs=jobs, seconds=seconds, progress=tick.done)
        tick.hide()
    return _code(table), record(table)


def _code(table: MutationTable) -> Exit:
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS}
    return codes.get(table.base.word, Exit.UNDECIDED)


def told(record: dict[str, Any]) -> None:
    """The table as text."""
    rows = [
        [str(one["line"]), one["instruction"], one["change"], one["outcome"], one["how"]] for one in record["mutants"]
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        say("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip())
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
                "line": one.mutation.instruction.line,
                "instruction": one.mutation.instruction.opcode,
                "change": one.mutation.what,
                "outcome": one.noticed.value,
                "how": one.how,
            }
            for one in table.results
        ],
    }
