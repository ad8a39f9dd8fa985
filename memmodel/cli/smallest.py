"""The plain command `diff`: two models and nothing else.

In: two models. Out: the smallest programs on which they differ, the shipped tests on which they do, and what was
tried. Settled here: "no difference" is always printed with what was tried.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from memmodel.cli.exits import Exit, say, write_json
from memmodel.cli.options import parse_budget
from memmodel.output import STANDARD_OUTPUT, write_text

if TYPE_CHECKING:
    from memmodel.cat.syntax import Model
    from memmodel.search.edits.edited import WhatDiffers

PROVED = "each axiom and each finding that is compared is one expression in both, by the laws of sets and relations"

_LISTED = 5
"""Shipped tests that are named; the others are counted."""


def smallest_differences(
    first: str | Model,
    second: str,
    *,
    outcomes: bool,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    show: int,
    form: str,
    into: str | None,
) -> Exit:
    """What `memmodel diff FIRST SECOND` does. Exit code 1: they differ; 3: less was tried than every shipped test."""
    from memmodel.search.edits.edited import SECONDS, edited
    from memmodel.search.edits.tasks import sides_of
    from memmodel.search.work import workers
    from memmodel.workers import cores

    sides = sides_of(first, second, outcomes=outcomes)
    where = workers(jobs or cores(), None, parse_budget(None, None, memory).memory)
    report = (lambda stage: say(f"{stage} …", sys.stderr)) if sys.stderr.isatty() else (lambda stage: None)
    differences = edited(sides, where, seconds or SECONDS, report)
    if into is not None:
        os.makedirs(into, exist_ok=True)
        for number, record in enumerate(differences.results, 1):
            write_text(os.path.join(into, f"{number:03}.litmus"), record["text"])
    if form == "json":
        write_json(STANDARD_OUTPUT, _record(differences, sides.names))
    else:
        _say(differences, sides.names, show, fenced=form == "markdown")
    if differences.signal is not None:
        raise differences.signal
    if differences.results or differences.differ:
        return Exit.DIFFERS
    return Exit.UNDECIDED if differences.left else Exit.AS_EXPECTED


def _say(differences: WhatDiffers, names: tuple[str, str], show: int, *, fenced: bool) -> None:
    for record in differences.results[:show]:
        finding = "" if record["finding"] is None else f"{record['finding']}, "
        number = "1 instruction" if record["size"] == 1 else f"{record['size']} instructions"
        verbs = ("allows", "forbids") if record["finding"] is None else ("reports", "does not")
        say(f"{record['allows']} {verbs[0]}, {record['forbids']} {verbs[1]}, {finding}{number}:")
        say(f"```\n{record['text']}```\n" if fenced else record["text"])
    if differences.differ:
        count = len(differences.differ)
        more = f" and {count - _LISTED} more" if count > _LISTED else ""
        tests = "1 shipped test" if count == 1 else f"{count} shipped tests"
        say(f"they differ on {tests}: {', '.join(differences.differ[:_LISTED])}{more}")
    if differences.identical:
        say(f"no difference between {names[0]} and {names[1]}, in any program: {PROVED}")
        return
    differ = differences.results or differences.differ
    verdict = f"{names[0]} and {names[1]} differ" if differ else f"no difference between {names[0]} and {names[1]}"
    left = f"; not tried: {'; '.join(differences.left)}" if differences.left else ""
    say(f"{verdict}; tried: {differences.reach()}{left}")


def _record(differences: WhatDiffers, names: tuple[str, str]) -> dict[str, object]:
    return {
        "first": names[0],
        "second": names[1],
        "results": differences.results,
        "shipped_tests": differences.differ,
        "tried": PROVED if differences.identical else differences.reach(),
        "complete": not differences.left,
        "not_tried": differences.left,
    }
