"""Each finding as a litmus test that still shows it, confirmed by the exact engines.

In: findings, the runs that show them, a folder. Out: files, and a sentence for each finding.
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
from memmodel.kernel.export.story import FindingStory, NotExported, about_lines, story_of
from memmodel.kernel.export.write import Writer
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelFinding

SECONDS = 20.0
"""Seconds for the confirmation of one test."""
UNJUDGED = "the run was not judged to its end"
UNCONFIRMED = "the engines do not confirm more"


def write_tests(
    findings: Sequence[KernelFinding], runs: Mapping[int, RunJudge], folder: str | os.PathLike[str]
) -> list[str]:
    """Write the tests, and say what became of each finding. `runs`: the run that shows a finding, by its identity."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    sentences = []
    for number, finding in enumerate(findings, 1):
        run = runs.get(id(finding))
        name = f"{number:02}-{finding.rule}"
        about = about_lines(finding)
        text, why = (None, WHY.get(finding.rule, UNJUDGED)) if run is None else best(run, finding, name)
        if text is None:
            sentences.append(f"{about}: no litmus test: {why}")
            continue
        path = target / f"{name}.litmus"
        path.write_text(text, encoding="utf-8", newline="\n")
        sentences.append(f"{about}: {path}" + (f" ({why})" if why else ""))
    return sentences


def best(run: RunJudge, finding: KernelFinding, name: str) -> tuple[str | None, str]:
    """The largest test that the engines confirm, and why it is not the whole story; or None and why there is none."""
    why, tried = "", set[str]()
    for note, make in _tries(run, finding):
        try:
            story = make()
            text = Writer(story, name).text()
        except NotExported as error:
            why = why or str(error)
            continue
        if text in tried:
            continue
        tried.add(text)
        if confirmed(text, story.flag):
            return text, f"{note}; {why}" if note and why else ""
        why = why or UNCONFIRMED
    return None, "the engines do not confirm it" if why == UNCONFIRMED else why


def _tries(run: RunJudge, finding: KernelFinding) -> list[tuple[str, Callable[[], FindingStory]]]:
    """Stories of a finding, the whole story first, each with a remark on what it leaves out."""
    if finding.rule == HANG:
        return [
            ("", lambda: hang(run, finding)),
            ("without the phases that a thread missed", lambda: hang(run, finding, missed=False)),
            ("the wait alone", lambda: hang(run, finding, bare=True)),
        ]
    if len(set(finding.events)) == 2 or finding.rule == "undefined-unobserved-phase":
        whole = ("", lambda: story_of(run, finding))
        return [whole, ("the accesses alone", lambda: story_of(run, finding, bare=True))]
    return [("", lambda: alone(run, finding))]


def confirmed(text: str, flag: str = "") -> bool:
    """True if the exact engines find it. `flag`: the flag that has to be raised."""
    try:
        report = api.check(text, budget=Budget(seconds=SECONDS))
    except InputError:
        return False
    return report.holds is True and (not flag or flag in report.answer.flags)


def litmus_tests(
    findings: Sequence[KernelFinding], runs: Mapping[int, RunJudge]
) -> Iterator[tuple[KernelFinding, str | None, str]]:
    """The test of each finding that a run shows, with a remark."""
    for number, finding in enumerate(findings, 1):
        run = runs.get(id(finding))
        if run is not None:
            yield finding, *best(run, finding, f"{number:02}-{finding.rule}")
