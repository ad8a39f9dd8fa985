"""One file of tests under the edits that no smaller test has told apart.

In: the path of a test, numbers of edits. Out: `FileFindings`. Settled here: what tells an edit apart. Where an Expect
line speaks of the model, it has to be met no longer; an answer that differs otherwise is noted, and the search for a
test that fails goes on. Small tests are judged by all their candidates, the others by an engine, for each edit that
bounds on the test's executions do not exclude.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import monotonic

from memmodel import api
from memmodel.answer import Budget
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent, InputError, TooLarge
from memmodel.limits import available, sharing_budget, within_budget
from memmodel.mutate.candidates import candidates
from memmodel.mutate.edits import edits_of
from memmodel.mutate.family import EditFamily, Member
from memmodel.mutate.judging import TestJudge
from memmodel.mutate.proofs import Bounds, bounds_of_test
from memmodel.mutate.verdicts import ShortVerdict, verdict_of
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import word_for

NO_END = 1e9
"""Seconds."""

Told = tuple[int, str, str, str]
"""The number of an edit, the test with its question, the verdicts before and after."""


@dataclass(slots=True)
class FileFindings:
    """What one file shows. `fails`: edits under which an expectation is not met; `differs`: those under which only an
    answer is another; `large`: edits under which it has too many candidates, so that an engine has to judge them;
    `open`: edits that the engine could not judge in time; `spent`: what ran out, or what is wrong with the file."""

    path: str
    fails: list[Told] = field(default_factory=list)
    differs: list[Told] = field(default_factory=list)
    large: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    spent: str = ""

    def not_judged(self, edits: Sequence[int], spent: str) -> None:
        """Time or memory ran out: nothing is known of those of these edits under which no expectation failed before."""
        done = {edit for edit, *_ in self.fails}
        self.open = [edit for edit in edits if edit not in done]
        self.spent = spent


@dataclass(frozen=True, slots=True)
class EditJudging:
    """How tests are judged. `expected`: the model whose Expect words count; None: none. `seconds`: of one answer of an
    engine. `until`: when all has to end. `budget`: of one process, as it was given."""

    model: Model
    expected: str | None
    bound: int = 3
    seconds: float = 20.0
    until: float = float("inf")
    budget: Budget = Budget(seconds=NO_END)

    def sharing(self) -> AbstractContextManager[None]:
        """All work of a process together keeps the memory that was given, if any was."""
        return nullcontext() if self.budget.memory is None else sharing_budget(replace(self.budget, effort=sys.maxsize))

    def left(self) -> Budget:
        """What is left for work in this process. Raises BudgetSpent if nothing is."""
        whole = self.budget.original or self.budget
        seconds = min(self.until - monotonic(), NO_END)
        if seconds <= 0:
            raise BudgetSpent(whole.out_of_seconds)
        return available(Budget(sys.maxsize, seconds, self.budget.memory, whole))


class FileJudge:
    """Judges files in one process: the model and its edits are read once."""

    def __init__(self, judging: EditJudging) -> None:
        self.judging = judging
        self.family = EditFamily(judging.model, edits_of(judging.model))
        self._bounds: Bounds | None = None

    def small(self, path: str, alive: Sequence[int], differing: Sequence[int]) -> FileFindings:
        """A file by all its candidates. `alive`: the edits that are asked for, `differing`: those of them under which
        some answer is known to differ."""
        findings = FileFindings(path)
        try:
            with within_budget(self.judging.left()):
                asked = api.questions(api.lowered(path))
                if self.family.chooses:
                    findings.large = list(alive)
                    return findings
                for number, steps in enumerate(asked):
                    self._small(findings, steps, number, alive, differing)
        except TooLarge:
            findings.large = list(alive)
        except (BudgetSpent, InputError) as reason:
            findings.not_judged(alive, str(reason))
        return findings

    def _small(
        self, findings: FileFindings, steps: LoweredTest, number: int, alive: Sequence[int], differing: Sequence[int]
    ) -> None:
        failed = {edit for edit, *_ in findings.fails}
        members = [(edit, self.family.members[edit]) for edit in alive if edit not in failed]
        for grounded in (self.family.grounded, not self.family.grounded):
            mine = [(edit, member) for edit, member in members if member.grounded is grounded]
            if not mine:
                continue
            lanes = candidates(steps, self.judging.bound, grounded=grounded)
            if lanes is None:
                findings.large += [edit for edit, _ in mine if edit not in findings.large]
                continue
            judge = TestJudge(self.family, steps.test, lanes)
            before = judge.base() if grounded is self.family.grounded else None
            if before is None:
                usual = candidates(steps, self.judging.bound, grounded=self.family.grounded)
                if usual is None:
                    findings.large += [edit for edit, _ in mine if edit not in findings.large]
                    continue
                before = TestJudge(self.family, steps.test, usual).base()
            for edit, member in mine:
                self._note(findings, steps, number, edit, before, judge.verdict(member), differing)

    def _note(
        self,
        findings: FileFindings,
        steps: LoweredTest,
        number: int,
        edit: int,
        before: ShortVerdict,
        after: ShortVerdict,
        differing: Sequence[int],
    ) -> None:
        """Note what a verdict shows of an edit."""
        if after == before:
            return
        name = findings.path if not number else f"{findings.path}#{number + 1}"
        notice = (edit, name, str(before), str(after))
        word = None if self.judging.expected is None else word_for(steps.test.expectations, self.judging.expected)
        if word is None or (before.meets(word) and not after.meets(word)):
            findings.fails.append(notice)
        elif edit not in differing and all(edit != known for known, *_ in findings.differs):
            findings.differs.append(notice)

    # ---- by an engine -----------------------------------------------------------------------------------------------

    def large(self, path: str, alive: Sequence[int], differing: Sequence[int]) -> FileFindings:
        """A file by an engine, as `small` otherwise."""
        findings = FileFindings(path)
        try:
            with within_budget(self.judging.left()):
                for number, steps in enumerate(api.questions(api.lowered(path))):
                    self._large(findings, steps, number, alive, differing)
        except (BudgetSpent, InputError) as reason:
            findings.not_judged(alive, str(reason))
        return findings

    def _large(
        self, findings: FileFindings, steps: LoweredTest, number: int, alive: Sequence[int], differing: Sequence[int]
    ) -> None:
        failed = {edit for edit, *_ in findings.fails}
        members = [(edit, self.family.members[edit]) for edit in alive if edit not in failed]
        mine = [(edit, member) for edit, member in members if self._may_differ(member, steps)]
        if not mine:
            return
        before = self._by_engine(steps, self.judging.model)
        for at, (edit, member) in enumerate(mine):
            if not before.decided or monotonic() > self.judging.until:
                findings.open += [other for other, _ in mine[at:]]
                return
            after = self._by_engine(steps, member.model)
            if after.decided:
                self._note(findings, steps, number, edit, before, after, differing)
            else:
                findings.open.append(edit)

    def _by_engine(self, steps: LoweredTest, model: Model) -> ShortVerdict:
        seconds = max(0.5, min(self.judging.seconds, self.judging.until - monotonic()))
        budget = Budget(seconds=seconds, memory=self.judging.budget.memory)
        return verdict_of(api.judge(steps, model, Options("auto", budget, self.judging.bound)))

    def _may_differ(self, member: Member, steps: LoweredTest) -> bool:
        """True unless bounds on the executions of a test show that an edit changes nothing."""
        if member.of_check or member.grounded is not self.family.grounded:
            return True
        if self._bounds is None or self._bounds.subject is not steps:
            try:
                self._bounds = bounds_of_test(self.family, steps, self.judging.bound)
            except TooLarge:
                return True
        return not self._bounds.agrees(member)
