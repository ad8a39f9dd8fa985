"""Of the synchronization that is taken out of kernels and missed: does `kernel --fix` find what to put in?

`python benchmarks/mending.py [DIR] [--seconds S] [--only NAME]` takes every fence, barrier, commit and arrive out of
every DIR/*.ptx that has a *.launch.json beside it, one at a time, and where that is found, looks for a repair. What
is found in the kernel as it stands is ignored. It prints a line for each, and how many of them have one. Without DIR:
docs/examples/kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from time import process_time

from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import read_launch
from memmodel.kernel.mutate.mutations import mutations
from memmodel.kernel.order.verdict import FindingKey, KernelVerdict
from memmodel.kernel.repair.search import KernelMender
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.source import Source

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples" / "kernels"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, nargs="?", default=EXAMPLES)
    parser.add_argument("--seconds", type=float, default=60, help="for one search")
    parser.add_argument("--only", help="the name of one kernel")
    given = parser.parse_args()
    wrong = mended = 0
    for path in sorted(given.directory.glob(f"{given.only or '*'}.ptx")):
        if path.with_suffix(".launch.json").exists():
            for found in removals(path, given.seconds):
                wrong, mended = wrong + 1, mended + found
    print(f"{mended} of {wrong} removals that are found have a repair")


def removals(path: Path, seconds: float) -> list[bool]:
    """Of each removal that gives the kernel a finding that it has not: is there a repair?"""
    model, launch, whole = load_model("ptx-9.4"), read_launch(path.with_suffix(".launch.json")), read_module(path)
    entry = entry_of(whole, launch.kernel)
    budget, options = Budget(seconds=seconds), CheckOptions(4, by_instruction=True)
    own = judge_case(KernelCase(whole, entry, launch, model, options), budget).verdict.known_keys
    text, found = whole.source.text, []
    for change in mutations(entry):
        span = change.instruction.span
        if change.what != "removed" or "wait" in change.instruction.words[1]:  # the loop would stay
            continue
        without = text[: span.start] + "nanosleep.u32 0" + text[span.end :]
        module = parse_module(Source(path.name, without))
        started = process_time()
        mender = KernelMender(
            module, entry.name, launch, model, options,
            budget=budget, seconds=seconds, most=1, ignoring=partial(ignore, own),
        )  # fmt: skip
        repairs = mender.repairs()
        if repairs.base.serious:
            said = "; ".join(edit.what for edit in repairs.repairs[0].edits) if repairs.repairs else "-"
            spent = process_time() - started
            print(f"{path.stem}:{span.line} {change.instruction.opcode}: {said} ({repairs.tried} tried, {spent:.0f} s)")
            sys.stdout.flush()
            found.append(bool(repairs.repairs))
    return found


def ignore(own: AbstractSet[FindingKey], verdict: KernelVerdict) -> None:
    """Mark the findings that the whole kernel has."""
    for finding in verdict.findings:
        finding.ignored = "found in the whole kernel" if finding.key in own else ""


if __name__ == "__main__":
    main()
