"""The shipped tests, each question under each model that it names: read once and judged once in a process.

A file is named by its path below litmus/, without the suffix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from helpers.agreement import flagged, is_execution, shows
from memmodel import api
from memmodel.answer import Answer, Budget
from memmodel.base.resources import suite_dir
from memmodel.engine import Options
from memmodel.enumeration.estimate import estimate
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import FINDINGS, meets

ROOT = suite_dir()
PATHS = sorted(path.relative_to(ROOT).as_posix().removesuffix(".litmus") for path in ROOT.rglob("*.litmus"))
DEFAULT = "ptx-9.4"

SMALL = 500_000
"""Up to about this many candidate executions, the plain enumeration judges a test as well."""

EFFORT = 8_000_000
"""What the enumeration may spend on one test (half a second)."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question of a file and what it expects of a model."""

    path: str
    number: int
    model: str
    word: str

    def __str__(self) -> str:
        return f"{self.path}{f'#{self.number}' if self.number else ''}-{self.model}"


@cache
def questions(path: str) -> tuple[LoweredTest, ...]:
    """The questions of a file."""
    return api.questions(api.lowered(ROOT / f"{path}.litmus"))


def cases(paths: list[str]) -> list[Case]:
    """What the files expect."""
    return [
        Case(path, number, one.model, one.word)
        for path in paths
        for number, steps in enumerate(questions(path))
        for one in steps.test.expectations
    ]


def word(path: str, model: str = DEFAULT) -> str | None:
    """What the first question of a file expects of a model."""
    return next((one.word for one in questions(path)[0].test.expectations if one.model == model), None)


@cache
def judged(path: str, number: int, model: str, engine: str) -> Answer:
    """What happens to a question of a file.

    The solver looks for findings under the default model, and where they are asked for.
    """
    steps = questions(path)[number]
    words = next((one.word for one in steps.test.expectations if one.model == model), "").split("+")
    findings = engine != "z3" or model == DEFAULT or any(one in FINDINGS for one in words)
    budget = Budget() if engine == "z3" else Budget(effort=EFFORT)
    return api.judge(steps, api.load(model), Options(engine, budget), findings=findings)


def as_expected(case: Case, found: Answer) -> bool:
    """Is the answer what the file expects?"""
    return meets(found, questions(case.path)[case.number].test.quantifier, case.word)


def told(found: Answer) -> str:
    """An answer in a line, for the message of a test that fails."""
    waits = found.hang.witness.waits if found.hang else ()
    return f"{found.engine}: {found.observation.value} {found.flags} {found.reason} {found.unsearched} {waits}"


def check_case(case: Case) -> bool:
    """Both engines give the answer that the file expects, and the same findings; False if only the solver can tell."""
    solved = judged(case.path, case.number, case.model, "z3")
    assert as_expected(case, solved), told(solved)
    if estimate(questions(case.path)[case.number], 3) > SMALL:
        return False
    found = judged(case.path, case.number, case.model, "enumerate")
    if "effort units ran out" in found.unsearched:
        return False
    assert as_expected(case, found), told(found)
    if case.model == DEFAULT:
        assert flagged(found) == flagged(solved), (told(found), told(solved))
    for one in (*solved.findings, *found.findings):
        shows(one)
        is_execution(one.witness)
    return True
