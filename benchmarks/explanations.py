"""explain over the shipped tests: are the axioms minimal, do the edges hold, is the reason that is named the reason?

    python -m benchmarks.explanations litmus --every 10                # one test of ten, a few minutes
    python -m benchmarks.explanations litmus/async/proxy --repairs 5   # also whether fix agrees, 5 s for each test

For each *never*: the answer with every axiom that is printed left out in turn (the outcome can then be reached), with
these alone (it cannot), and every printed step looked up in its execution. For each outcome and finding: the reasons
that are named; with --repairs, where one thing is missing and one change repairs the test, whether one of these changes
is of that kind. Last, how much longer explain takes than check, in CPU seconds.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

from memmodel import api, engine
from memmodel.answer import Budget, Observation
from memmodel.engine import Options
from memmodel.errors import InputError, InternalError
from memmodel.library import format as printed
from memmodel.program.lowered import LoweredTest
from memmodel.repair.fix import Repair, fix
from memmodel.report.text import explain as checked
from memmodel.why.explanation import explanation
from memmodel.why.forbidden import only
from memmodel.why.records import Contradiction, Explanation, PathStep, Reason, Story
from memmodel.why.story import execution_of
from memmodel.why.unfold import UNORDERED
from memmodel.why.values import Values

MODEL = api.load(api.DEFAULT_MODEL)
OPTIONS = Options(budget=Budget(seconds=30))

KINDS = {
    Reason.NO_PROXY_FENCE: r"fence\.proxy",
    Reason.PROXY_FENCE_SPACE: r"fence\.proxy",
    Reason.PROXY_FENCE_CTA: r"fence\.proxy",
    Reason.PROXY_FENCE_SIDE: r"fence\.proxy",
    Reason.NO_ALIAS_FENCE: r"fence\.proxy\.alias",
    Reason.RELAXED: r"acquire|release|acq_rel|\.sc|fence",
    Reason.FENCE_SIDE: r"acquire|release|acq_rel|\.sc|fence",
    Reason.REDUCTION: r"atom|acquire",
    Reason.RESTRICTED: r"fence",
    Reason.NO_FENCE_SC: r"\.sc",
    Reason.WEAK: r"relaxed|acquire|release|volatile",
    Reason.NOT_WAITED: r"wait",
    Reason.WGMMA_FENCE: r"wgmma\.fence",
    Reason.TCGEN05_FENCE: r"tcgen05\.fence",
    Reason.TCGEN05_COMMIT: r"commit",
    Reason.TCGEN05_WAIT: r"tcgen05\.wait",
    Reason.SCOPES: r"\.(cluster|gpu|sys)",
    Reason.PARITY: r"\d",
    Reason.COUNT: r"\d",
    Reason.BYTES: r"\d",
}
"""What a change that answers a reason has in its line. fix makes no change that answers the others."""


def main(given: list[str] | None = None) -> None:
    """Print what is wrong, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only every n-th test")
    parser.add_argument("--repairs", type=float, default=0.0, metavar="SECONDS", help="for the search of each test")
    parser.add_argument("--events", type=int, default=200, help="no tests with more events")
    chosen = parser.parse_args(given)
    files = sorted(file for path in chosen.paths for file in (path.rglob("*.litmus") if path.is_dir() else [path]))
    count: Counter[str] = Counter()
    ratios: list[float] = []
    for file in files[:: chosen.every]:
        try:
            asked = api.questions(api.lowered(file))
        except InputError:
            count["not a test"] += 1
            continue
        for number, steps in enumerate(asked):
            started = process_time()
            report = api.report_on(steps, MODEL, OPTIONS)
            checked(report)
            between = process_time()
            if report.answer.events > chosen.events:
                count["too large"] += 1
                continue
            again = engine.answer(steps, MODEL, OPTIONS, findings=True)
            answered = process_time()
            told = explanation(steps, MODEL, again if steps.test.finding is None else report.answer, OPTIONS, "", {})
            ended = process_time()
            ratios.append((ended - answered + between - started) / (between - started))
            for what in _wrong(steps, told, count):
                count["WRONG"] += 1
                print(f"{file} ({number + 1}): {what}", flush=True)
            if chosen.repairs and number == 0 and told.stories:
                _agree(file, told, chosen.repairs, count)
    print(
        *(f"{number:5} {what}" for what, number in sorted(count.items(), key=lambda one: (-one[1], one[0]))), sep="\n"
    )
    if ratios:
        print(f"explain takes {median(ratios):.2f} times as long as check, in the median of {len(ratios)} questions")


# ---- never -------------------------------------------------------------------------------------------------------


def _wrong(steps: LoweredTest, told: Explanation, count: Counter[str]) -> Iterator[str]:
    """What is wrong with an explanation."""
    count[f"questions: {told.observation}"] += 1
    names = [one.axiom for one in told.contradictions]
    if names and steps.test.quantifier.value != "forall":
        count["nevers with axioms"] += 1
        if engine.answer(steps, only(MODEL, names), OPTIONS, findings=False).observation is Observation.SOMETIMES:
            yield f"{names} alone do not forbid it"
        for name in names:
            rest = only(MODEL, [other for other in names if other != name])
            try:
                left = engine.answer(steps, rest, OPTIONS, findings=False).observation
            except InternalError:  # values out of thin air, with no axiom against them
                count["left one out: an execution that cannot be run"] += 1
                continue
            count[f"left one out: {left.value}"] += 1
            if left in (Observation.NEVER, Observation.VACUOUS):
                yield f"{name} is not needed"
    for one in told.contradictions:
        yield from _edges(one, count)
    for story in told.stories:
        for obstacle in story.obstacles:
            count[f"reason: {obstacle.reason.value}"] += 1
        if any(step.holds for step in story.steps):
            yield from _held(story, count)
    for waiting in told.stuck.waiting if told.stuck is not None else ():
        count[f"reason of a hang: {waiting.reason.value}"] += 1


def _edges(one: Contradiction, count: Counter[str]) -> Iterator[str]:
    execution, evaluated = execution_of(one.witness), one.witness.evaluated
    assert execution is not None and evaluated is not None
    values = Values(MODEL, execution, evaluated.ranks)
    number = {event.label: event.uid for event in one.witness.events}
    yield from _steps(one.steps, values, number, count)
    ends = [step.first.label for step in one.steps], [step.second.label for step in one.steps]
    if ends[0][1:] != ends[1][:-1] or not one.steps:
        yield f"{one.axiom}: the steps do not follow each other"


def _held(story: Story, count: Counter[str]) -> Iterator[str]:
    execution, evaluated = execution_of(story.witness), story.witness.evaluated
    assert execution is not None and evaluated is not None
    number = {event.label: event.uid for event in story.witness.events}
    yield from _steps(story.steps, Values(MODEL, execution, evaluated.ranks), number, count)


def _steps(steps: tuple[PathStep, ...], values: Values, number: dict[str, int], count: Counter[str]) -> Iterator[str]:
    """The steps that are printed as holding and do not."""
    for step in steps:
        yield from _steps(step.parts, values, number, count)
        if not step.holds or step.first.missing or step.second.missing:
            continue
        count["edges looked up"] += 1
        a, b = number[step.first.label], number[step.second.label]
        name = step.relation
        if name == UNORDERED:
            if values.execution.relation("co")[b] >> a & 1:
                yield f"{step.second} comes before {step.first} in coherence order"
            continue
        if name.endswith("^-1"):
            name, a, b = name[:-3], b, a
        rows = values.relation(name)
        if name != "any" and (rows is None or not rows[a] >> b & 1):
            yield f"{step.relation} does not relate {step.first} to {step.second}"


# ---- the reason --------------------------------------------------------------------------------------------------


def _agree(file: Path, told: Explanation, seconds: float, count: Counter[str]) -> None:
    """Is a change that repairs the test alone of the kind of the one reason that is named?"""
    reasons = {obstacle.reason for story in told.stories for obstacle in story.obstacles}
    if len(told.stories[0].obstacles) != 1 or len(reasons) != 1:
        count["several things are missing"] += 1
        return
    (reason,) = reasons
    pattern = KINDS.get(reason)
    if pattern is None:
        count["one thing is missing that fix does not change"] += 1
        return
    try:
        found = fix(str(file), printed(file, "blocks"), (MODEL,), OPTIONS, most=12, seconds=seconds)
    except InputError:
        return
    single = [one for one in found.repairs if len(one.changes) == 1]
    if not single:
        count["one thing is missing, and no one change repairs it"] += 1
        print(f"{file}: {reason.value}: {found.reason or [e.what for e in found.repairs[0].changes]}", flush=True)
        return
    count["one thing is missing, and one change repairs it"] += 1
    if any(_has(one, pattern) for one in single):
        count["and it is the reason"] += 1
    else:
        print(f"{file}: {reason.value}, but: {[one.changes[0].what for one in single]}", flush=True)


def _has(repair: Repair, pattern: str) -> bool:
    lines = repair.diff().splitlines()
    return any(re.search(pattern, line) for line in lines if line.startswith("+") and not line.startswith("+++"))


if __name__ == "__main__":
    main()
