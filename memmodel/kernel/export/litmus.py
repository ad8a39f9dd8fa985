"""Each finding cut down to a litmus test that still shows it, confirmed by the exact engines.

In: findings, the runs that they were found in, a folder. Out: files, and a sentence for each finding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from memmodel import api
from memmodel.answer import HANG, Budget
from memmodel.errors import InputError
from memmodel.kernel.export.alone import WHY, alone
from memmodel.kernel.export.hangs import hang
from memmodel.kernel.export.story import CutStory, NotCut, about_lines, story
from memmodel.kernel.export.write import Writer
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelFinding

SECONDS = 20.0
"""For the confirmation of one test."""
UNJUDGED = "the run was not judged to its end"


def cut(findings: Sequence[KernelFinding], runs: Mapping[int, RunJudge], folder: str | os.PathLike[str]) -> list[str]:
    """Write the tests; what became of each finding. `runs`: by the identity of a finding the run that shows it."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    said = []
    for number, finding in enumerate(findings, 1):
        made = runs.get(id(finding))
        name = f"{number:02}-{finding.rule}"
        about = about_lines(finding)
        text, why = (None, WHY.get(finding.rule, UNJUDGED)) if made is None else best(made, finding, name)
        if text is None:
            said.append(f"{about}: no litmus test: {why}")
            continue
        path = target / f"{name}.litmus"
        path.write_text(text, encoding="utf-8", newline="\n")
        said.append(f"{about}: {path}" + (f" ({why})" if why else ""))
    return said


def best(made: RunJudge, finding: KernelFinding, name: str) -> tuple[str | None, str]:
    """The test with all that matters, or with less that the engines confirm; and what is to be said of it."""
    why, known = "", set()
    for said, told in _tries(made, finding):
        try:
            story_ = told()
            text = Writer(story_, name).text()
        except NotCut as error:
            why = why or str(error)
            continue
        if text in known:
            continue
        known.add(text)
        if confirmed(text, story_.flag):
            return text, f"{said}; {why}" if said and why else ""
        why = why or "the engines do not confirm more"
    return None, why.replace("more", "it") if why.endswith("confirm more") else why


def _tries(made: RunJudge, finding: KernelFinding) -> list[tuple[str, Callable[[], CutStory]]]:
    """Stories of a finding, the whole one first, each with what is said of it."""
    if finding.rule == HANG:
        return [
            ("", lambda: hang(made, finding)),
            ("without the phases that a thread missed", lambda: hang(made, finding, missed=False)),
            ("the wait alone", lambda: hang(made, finding, bare=True)),
        ]
    if len(set(finding.events)) == 2 or finding.rule == "undefined-unobserved-phase":
        whole = ("", lambda: story(made, finding))
        return [whole, ("the accesses alone", lambda: story(made, finding, bare=True))]
    return [("", lambda: alone(made, finding))]


def confirmed(text: str, flag: str = "") -> bool:
    """Do the exact engines find it? `flag`: the one that has to be raised."""
    try:
        report = api.check(text, budget=Budget(seconds=SECONDS))
    except InputError:
        return False
    return report.holds is True and (not flag or flag in report.answer.flags)


def cuts(
    findings: Sequence[KernelFinding], runs: Mapping[int, RunJudge]
) -> Iterator[tuple[KernelFinding, str | None, str]]:
    """The test of each finding that is about two events."""
    for number, finding in enumerate(findings, 1):
        made = runs.get(id(finding))
        if made is not None:
            yield finding, *best(made, finding, f"{number:02}-{finding.rule}")
