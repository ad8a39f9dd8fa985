"""The least synchronization of kernels, looked at by independent runs.

    python -m benchmarks.minimum_sets [KERNEL.ptx | KERNEL.cu | FOLDER ...] [--out FILE.jsonl]
    python -m benchmarks.minimum_sets --table FILE.jsonl       # the table of docs/kernels.md

The report of a kernel names a set of instructions that can go together, and says of each other one what the kernel
shows without it. Here each claim is put to a run of its own: the instructions are blanked out of the text, a wait
becomes a predicate that is true, the text is read anew, and the launch is judged as `memmodel kernel` judges it.
Without the set, nothing may be found that the kernel itself does not show. Without the set and one more, something has
to be found, by the model or under a reading; where neither is so, the run has to be undecided.

A launch stands in KERNEL.launch.json, in a comment of the text, or, for kernels of docs/gallery, in its cases.py.
Without names: the examples, the fixed kernels of the gallery, and the sources in benchmarks/minimum. Exit code 1 if a
claim does not hold. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import memmodel
from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.errors import BudgetSpent, InputError
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate.mutations import REMOVED, mutations
from memmodel.kernel.mutate.table import MutationTable, mutation_table
from memmodel.kernel.order.verdict import FindingKey, KernelVerdict
from memmodel.kernel.question.asking import KernelQuestion, kernel_text, question
from memmodel.kernel.question.requests import LaunchWords
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxInstruction, PtxModule
from memmodel.source import Source

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples" / "kernels"
GALLERY = ROOT / "docs" / "gallery"
SOURCES = Path(__file__).parent / "minimum"

WAITS = ("test_wait", "try_wait")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path)
    parser.add_argument(
        "--out", type=Path, help="a line of JSON for each kernel; those that are there are not repeated"
    )
    parser.add_argument("--table", type=Path)
    parser.add_argument("--seconds", type=float, default=1200.0, help="for the report of each kernel")
    given = parser.parse_args()
    if given.table:
        print("\n".join(table([json.loads(line) for line in given.table.read_text().splitlines()])))
        return
    done = {json.loads(line)["kernel"] for line in given.out.read_text().splitlines()} if _there(given.out) else set()
    wrong = False
    for path in kernels(given.kernels or [EXAMPLES, GALLERY, SOURCES]):
        if path.stem in done:
            continue
        try:
            row = examined(path, given.seconds)
        except (InputError, BudgetSpent) as error:
            print(f"{path.stem}: {error}", file=sys.stderr, flush=True)
            continue
        print(json.dumps(row), file=given.out.open("a") if given.out else None, flush=True)
        wrong |= not holds(row)
    sys.exit(wrong)


def _there(path: Path | None) -> bool:
    return path is not None and path.exists()


def kernels(places: Collection[Path]) -> Iterator[Path]:
    """The kernels that are named, and those of the folders that are."""
    for place in (it.resolve() for it in places):
        if not place.is_dir():
            yield place
        elif place == GALLERY:
            yield from sorted(place.glob("*-fixed.ptx"))
        else:
            found = sorted([*place.glob("*.ptx"), *place.glob("*.cu")])
            yield from (it for it in found if (it.suffix == ".cu" and place == SOURCES) or _description(it).exists())


def _description(path: Path) -> Path:
    return path.with_suffix(".launch.json")


def asked(path: Path) -> KernelQuestion:
    """A kernel with its launch."""
    text = kernel_text(path, ("-arch=sm_90a", "-O3", "-std=c++17") if path.suffix == ".cu" else ())
    launch: Path | Launch | None = _description(path) if _description(path).exists() else None
    if path.parent == GALLERY:
        sys.path.insert(0, str(GALLERY))
        cases = __import__("cases").CASES
        launch = next(case for case in cases if f"{case.name}-fixed" == path.stem).verdict(fixed=True).launch
    return question(text, launch, LaunchWords(), None, partial(chosen_ctas, wanted=()))


def examined(path: Path, seconds: float) -> dict[str, Any]:
    """What the report of a kernel says, and what runs of their own say of it."""
    started = process_time()
    it = asked(path)
    report = mutation_table(
        it.module, it.entry, it.launch, load_model(DEFAULT_MODEL), budget=Budget(seconds=seconds), together=True
    )
    reported = process_time() - started
    removable = [change.instruction for change in mutations(it.entry, miscounts=False) if change.what == REMOVED]
    row = {"kernel": path.stem, "verdict": report.base.word, "synchronizations": len(removable), "report": reported}
    if report.minimum is None or report.minimum.late:
        return {**row, "late": True}
    gone = report.minimum.dropped
    numbers = {instruction.number for instruction in gone}
    kept = [instruction for instruction in removable if instruction.number not in numbers]
    # What the run does not reach is no member of the set: nothing is known of it.
    kept = [instruction for instruction in kept if _reached(report, instruction)]
    runs = Runs(it)
    without = runs.without(gone)
    return {
        **row,
        "lines": len(it.module.source.text.splitlines()),
        "gone": [instruction.line for instruction in gone],
        "exact": report.minimum.exact,
        "without": without.word,
        "new": runs.new(without),
        "under readings": runs.new_under_readings(gone),
        "open": without.open,
        "members": [_member(runs, gone, instruction) for instruction in kept],
        "runs": process_time() - started - reported,
    }


def _reached(report: MutationTable, instruction: PtxInstruction) -> bool:
    return any(
        result.mutation.instruction.number == instruction.number
        and result.mutation.what == REMOVED
        and result.noticed.value != "not reached"
        for result in report.results
    )


def _member(runs: Runs, gone: Collection[PtxInstruction], instruction: PtxInstruction) -> dict[str, Any]:
    """What the kernel shows without the set and one instruction more."""
    verdict = runs.without([*gone, instruction])
    row: dict[str, Any] = {"line": instruction.line, "opcode": instruction.opcode, "new": runs.new(verdict)}
    if not row["new"]:
        row |= {"open": verdict.open, "under readings": runs.new_under_readings([*gone, instruction])}
    return row


@dataclass(slots=True)
class Runs:
    """Verdicts on a kernel without some of its instructions, each from a text of its own."""

    it: KernelQuestion
    base: KernelVerdict = field(init=False)
    _base_readings: KernelVerdict | None = None

    def __post_init__(self) -> None:
        self.base = self.without(())

    def without(self, gone: Collection[PtxInstruction], *, readings: bool = False) -> KernelVerdict:
        """The verdict on what is left."""
        text, budget = blanked(self.it.module, gone), Budget(seconds=600.0)
        return memmodel.check_kernel(text, self.it.launch, entry=self.it.entry.name, budget=budget, readings=readings)

    def new(self, verdict: KernelVerdict) -> list[str]:
        """The findings that the kernel itself does not have, in words."""
        own = {finding.key for finding in self.base.serious}
        keys = dict.fromkeys(finding.key for finding in verdict.serious if finding.key not in own)
        return [f"{rule} of {', '.join(map(str, lines))}" for rule, lines in keys]

    def new_under_readings(self, gone: Collection[PtxInstruction]) -> list[str]:
        """The readings that find something in what is left which they do not find in the kernel itself."""
        if self._base_readings is None:
            self._base_readings = self.without((), readings=True)
        own = _by_reading(self._base_readings)
        found = _by_reading(self.without(gone, readings=True))
        return [name for name in found if not found[name] <= own.get(name, own[""])]


def _by_reading(verdict: KernelVerdict) -> dict[str, set[FindingKey]]:
    """The findings by the name of the reading; those of the model itself have none."""
    mine = {finding.key for finding in verdict.serious}
    found = {"": mine}
    for reading in verdict.readings:
        more = {finding.key for finding in reading.new if not finding.harmless}
        found[reading.name] = mine - {finding.key for finding in reading.gone} | more
    return found


def blanked(module: PtxModule, instructions: Collection[PtxInstruction]) -> PtxModule:
    """The module without some instructions, read anew. A wait for a phase becomes a predicate that is true."""
    text = module.source.text
    for instruction in sorted(instructions, key=lambda it: it.span.start, reverse=True):
        end = text.index(";", instruction.span.start) + 1
        old = text[instruction.span.start : end]
        new = "".join(character if character == "\n" else " " for character in old)
        if instruction.words[0] == "mbarrier" and instruction.kind in WAITS:
            guard, test = old.split(None, 1) if old.startswith("@") else ("", old)
            predicate = test.split(None, 1)[1].split(",")[0].split("|")[0].strip()
            new = f"{guard} mov.pred {predicate}, 1;" + "\n" * old.count("\n")
        text = text[: instruction.span.start] + new + text[end:]
    return parse_module(Source(module.source.name, text))


def holds(row: dict[str, Any]) -> bool:
    """True if the runs say what the report says."""
    if row.get("late"):
        return False
    clean = row["without"] == row["verdict"] and not row["new"] and not row["under readings"]
    return clean and all(it["new"] or it["under readings"] or it["open"] for it in row["members"])


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The rows as Markdown."""
    yield "| kernel | verdict | synchronizations | can go | without these | others found | report, s | runs, s |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        if row.get("late"):
            yield f"| {row['kernel']} | {row['verdict']} | {row['synchronizations']} | late | | | | |"
            continue
        found = sum(bool(it["new"]) for it in row["members"])
        silent = [it for it in row["members"] if not it["new"]]
        words = f"{found} of {len(row['members'])}"
        for member in silent:
            how = f"under {', '.join(member['under readings'])}" if member["under readings"] else "not"
            words += f"; line {member['line']} {how if not member['open'] else 'undecided'}"
        yield (
            f"| {row['kernel']} | {row['verdict']} | {row['synchronizations']} | {len(row['gone'])} | {row['without']} "
            f"| {words} | {row['report']:.1f} | {row['runs']:.1f} |"
        )


if __name__ == "__main__":
    main()
