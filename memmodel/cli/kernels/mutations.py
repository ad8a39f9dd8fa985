"""What `memmodel kernel` prints of a kernel's mutants: their table (--mutate), or what they say of each synchronization
(--annotate, --report).

In: `KernelRequest`. Out: lines, JSON, a page; an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from memmodel.cli.exits import Exit, say, write_json, write_out
from memmodel.cli.kernels.output import say_verdict
from memmodel.cli.tables import TextTable, lines
from memmodel.cli.terminal import ticker

if TYPE_CHECKING:
    from memmodel.cli.kernels.request import KernelRequest
    from memmodel.kernel.mutate.table import MutationTable
    from memmodel.kernel.output.source_names import SourceNames
    from memmodel.ptx.module.syntax import PtxInstruction


def judge_mutants(asked: KernelRequest) -> Exit:
    """Judge all mutants, and say what was asked."""
    from memmodel.kernel.output.source_names import source_names

    quiet = "-" in (asked.json_out, asked.page)
    table = _table(asked, quiet=quiet)
    if asked.synchronization_report:
        data = _say_report(table, asked, quiet=quiet)
    else:
        data = record(table)
        if not quiet:
            show_table(data, source_names(table.base))
    if asked.json_out:
        write_json(asked.json_out, data)
    return exit_code(table)


def _say_report(table: MutationTable, asked: KernelRequest, *, quiet: bool) -> dict[str, Any]:
    from memmodel.kernel.synchronization.page import report_page
    from memmodel.kernel.synchronization.report import synchronization_report
    from memmodel.kernel.synchronization.text import headline, late_lines, report_lines, report_record

    report = synchronization_report(table)
    if asked.page is not None:
        write_out(asked.page, report_page(report))
    if not quiet:
        for line in report_lines(report) if asked.annotate else [headline(report)]:
            say(line)
        for line in () if asked.annotate else late_lines(report):
            say(line)
    return report_record(report)


def _table(asked: KernelRequest, *, quiet: bool) -> MutationTable:
    """The mutants, judged. The verdict on the kernel itself is printed as soon as it stands, unless `quiet`."""
    from memmodel.cat.load import load_model
    from memmodel.kernel.check.ignoring import ignored
    from memmodel.kernel.check.inputs import chosen_ctas
    from memmodel.kernel.mutate.mutations import copies_together, mutations
    from memmodel.kernel.mutate.table import mutation_table
    from memmodel.kernel.question import kernel_text, question
    from memmodel.limits import within_budget

    words, budget = asked.words(), asked.cost()
    # Seconds and memory are those of all mutants together, solver steps those of each.
    with within_budget(replace(budget, effort=sys.maxsize, original=budget)):
        text = kernel_text(asked.file, asked.after_dashes, asked.entry)
        kernel = question(text, asked.launch, words, asked.entry, partial(chosen_ctas, wanted=()))
        model = load_model(asked.whole_model)
        changes = mutations(kernel.entry, miscounts=not asked.synchronization_report)
        with ticker(len(changes if asked.synchronization_report else copies_together(changes))) as tick:
            return mutation_table(
                kernel.module, kernel.entry, kernel.launch, model,
                jobs=asked.jobs, budget=budget, progress=tick.done,
                on_verdict=None if quiet else partial(say_verdict, statistics=asked.statistics),
                together=asked.synchronization_report, ignoring=ignored(kernel.entry, asked.baseline),
            )  # fmt: skip


def exit_code(table: MutationTable) -> Exit:
    """The exit code of the verdict on the kernel; 3 for a clean kernel if time or memory ran out before all mutants
    were judged.
    """
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS}
    code = codes.get(table.base.word, Exit.UNDECIDED)
    return Exit.UNDECIDED if code is Exit.AS_EXPECTED and table.partial else code


def show_table(record: dict[str, Any], names: SourceNames) -> None:
    """The table as text. `names`: those of the source."""
    keys = ("place", "instruction", "change", "outcome", "how")
    rows = []
    for mutant in record["mutants"]:
        texts = {key: names.sentence(str(mutant[key])) for key in keys}
        if (copies := len(mutant["lines"])) > 1:
            texts["instruction"] += f" in {copies} copies"
            texts["how"] = "; ".join(dict.fromkeys(texts["how"].split("; ")))  # each copy has the same places
        rows.append(tuple(texts.values()))
    for line in lines(TextTable("", keys, rows)):
        say(line)
    if together := record["together"]:
        say(f"can go together: {', '.join(together['dropped']) or 'none'}")
        if together["kept"]:
            say(f"needless alone, but not beside these: {', '.join(together['kept'])}")
    counts = ", ".join(f"{number} {word}" for word, number in record["counts"].items() if number)
    share = f"{record['share']:.0%} of {record['judged']} changes noticed"
    say(f"{record['entry']} ({record['verdict']}): {share}; {counts}")


def record(table: MutationTable) -> dict[str, Any]:
    """The table as JSON values."""
    from memmodel.kernel.mutate.mutants import Noticed
    from memmodel.kernel.output.places import places
    from memmodel.kernel.synchronization.report import named, place

    def listed(instructions: Iterable[PtxInstruction]) -> list[str]:
        return list(dict.fromkeys(named(instruction) for instruction in instructions))

    minimum = (
        table.minimum if table.minimum is not None and len(table.minimum.dropped + table.minimum.kept) > 1 else None
    )
    return {
        "entry": table.base.entry,
        "verdict": table.base.word,
        "share": round(table.share, 4),
        "judged": table.judged,
        "counts": {word.value: table.count(word) for word in Noticed},
        "mutants": [
            {
                "line": mutant.mutation.instruction.line,
                "place": place(mutant.mutation.instruction),
                "instruction": mutant.mutation.instruction.opcode,
                "change": mutant.mutation.what,
                "outcome": mutant.noticed.value,
                "how": mutant.how,
                "lines": [instruction.line for instruction in mutant.mutation.instructions],
                "source": next(
                    (f"{own.file}:{own.line}" for own in places(mutant.mutation.instruction.location)), None
                ),
            }
            for mutant in table.results
        ],
        "together": None
        if minimum is None
        else {
            "dropped": listed(minimum.dropped),
            "kept": listed(minimum.kept),
            "lines": [instruction.line for instruction in minimum.dropped],
        },
    }
