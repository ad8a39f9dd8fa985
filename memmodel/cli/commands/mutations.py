"""What `memmodel kernel` prints of a kernel's mutants: their table (--mutate), or what they say of each synchronization
(--annotate, --report).

In: what was asked, and of which kernel. Out: lines, JSON, a page; an exit code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from memmodel.cli.exits import Exit, say, write_json, write_out
from memmodel.cli.tables import TextTable, lines
from memmodel.cli.terminal import ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from memmodel.answer import Budget
    from memmodel.kernel.mutate.table import MutationTable
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.question import LaunchWords


@dataclass(frozen=True, slots=True)
class MutantQuestion:
    """What is asked of the mutants of a kernel. `annotate`: what they say of each synchronization, in place of their
    table; `page`: that as HTML, and where to."""

    mutate: bool
    annotate: bool
    page: str | None

    @property
    def asked(self) -> bool:
        return self.mutate or self.report

    @property
    def report(self) -> bool:
        return self.annotate or self.page is not None


def mutate(
    asked: MutantQuestion,
    file: str,
    launch: str | None,
    words: LaunchWords,
    compiler: tuple[str, ...],
    entry: str | None,
    model: str,
    jobs: int,
    budget: Budget,
    told: Callable[[KernelVerdict], None],
    json_out: str | None,
    baseline: str | None,
) -> Exit:
    """Judge all mutants, and say what was asked. `budget`: of all together. `told`: is given the verdict on the kernel
    itself, before. Exit code: that of this verdict.
    """
    quiet = "-" in (json_out, asked.page)
    table = _table(
        file, launch, words, compiler, entry, model, jobs, budget, None if quiet else told,
        baseline, together=asked.report,
    )  # fmt: skip
    if asked.report:
        data = _say_report(table, asked, quiet=quiet)
    else:
        data = record(table)
        if not quiet:
            show_table(data)
    if json_out:
        write_json(json_out, data)
    return _code(table)


def _say_report(table: MutationTable, asked: MutantQuestion, *, quiet: bool) -> dict[str, Any]:
    from memmodel.kernel.synchronization.page import report_page
    from memmodel.kernel.synchronization.report import synchronization_report
    from memmodel.kernel.synchronization.text import headline, report_lines, report_record

    report = synchronization_report(table)
    if asked.page is not None:
        write_out(asked.page, report_page(report))
    if not quiet:
        said = report_lines(report) if asked.annotate else [headline(report)]
        for line in said:
            say(line)
    return report_record(report)


def _table(
    file: str,
    launch: str | None,
    words: LaunchWords,
    compiler: tuple[str, ...],
    entry: str | None,
    model: str,
    jobs: int,
    budget: Budget,
    told: Callable[[KernelVerdict], None] | None,
    baseline: str | None,
    *,
    together: bool,
) -> MutationTable:
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.ignoring import ignored
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
                module, function, description, loaded,
                jobs=jobs, budget=budget, progress=tick.done, told=told, together=together,
                ignoring=ignored(function, baseline),
            )  # fmt: skip
            tick.hide()
    return table


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
