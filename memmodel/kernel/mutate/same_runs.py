"""Mutants whose verdict follows from the runs of the kernel.

In: a judged kernel, mutations. Out: the verdict on the kernel with them. Where the verdict on the kernel follows from a
few runs in which order decides nothing, and threads of the mutant execute the same in each of them, that on the mutant
follows from these runs without the events of what was removed: none of them is carried out again.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.cat.syntax import Model
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.so_far import JudgedKernel, VerdictSoFar
from memmodel.kernel.mutate.mutations import REMOVED, Mutation
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.mutate.saved_waits import why_undecided
from memmodel.kernel.order.verdict import FindingKey, KernelFinding

MANY = 2
"""A run with so many times the events of the first one, threads that do the same left out, may show what that does
not."""


class SameRuns:
    """The runs of a kernel, for its mutants."""

    def __init__(self, kernel: JudgedKernel, model: Model) -> None:
        judged = kernel.judged if all(judged_run.judgement.flags is not None for judged_run in kernel.judged) else ()
        known = kernel.verdict.known_keys
        runs = [(judged_run.run, judged_run.judgement.flags) for judged_run in judged]
        self._runs = [SameRun(run, model, flags, known) for run, flags in runs if flags is not None]
        executed = [sum(len(thread.events) for thread in run.run.threads) for run, _ in runs]
        events = [len(run.graph.points) for run, _ in runs]
        self._longer = [
            same
            for same, count, mine in zip(self._runs, executed, events, strict=True)
            if count > executed[0] or mine > MANY * events[0]
        ]

    def new_findings(self, changes: Sequence[Mutation]) -> list[KernelFinding]:
        """What a flag reports of the kernel with these changes in a run in which more is executed than in the first, or
        far fewer threads do the same."""
        return next((found for run in self._longer if (found := run.new_findings(*changes))), [])

    def show_at_once(self, changes: Sequence[Mutation]) -> bool:
        """True if there are such findings, and a flag that is quickly evaluated has one."""
        return any(run.shows_at_once(changes) for run in self._longer)

    def endless_waits(self, changes: Sequence[Mutation]) -> list[FindingKey]:
        """As `SameRun.endless_waits`, of the first run in which there are any, but the first of all."""
        return next((found for run in self._runs[1:] if (found := run.endless_waits(changes))), [])

    def look_from(self, changes: Sequence[Mutation], other: SameRun) -> None:
        """As `SameRun.look_from`."""
        for run in self._runs:
            run.look_from(changes, other)

    def cover(self, *changes: Mutation) -> bool:
        """True if the verdict on the kernel with changes follows from these runs, but for what stays open in them."""
        return bool(self._runs) and all(run.does_the_same(changes) for run in self._runs)

    def waits_in_all(self, change: Mutation) -> bool:
        """True if the instruction is a test that waits, or looks ahead, in all that the verdict follows from."""
        return bool(self._runs) and all(run.waits(change.instruction) for run in self._runs)

    @property
    def certain(self) -> bool:
        """True if order is a matter of chance in none of the runs."""
        return all(run.is_certain for run in self._runs)

    def look_ahead(self, change: Mutation) -> bool:
        """True if the instruction is a test that looks ahead in one of the runs."""
        return any(run.looks_ahead(change.instruction) for run in self._runs)

    def why_undecided(self, change: Mutation) -> str:
        """Why a change is undecided, as in `saved_waits`: it changes a test that saves waits in the first run, and
        shows nothing there.
        """
        if change.what == REMOVED or not self._runs or not self._runs[0].saves_waits(change.instruction):
            return ""
        run = self._runs[0].run
        return why_undecided(run.run, change.of(run.entry), change.becomes)

    def are_executions(self, changes: Sequence[Mutation]) -> bool:
        """True if each of the runs is an execution of the kernel with these changes."""
        return all(run.is_execution(changes) for run in self._runs)

    def lead_to(self, kernel: JudgedKernel) -> bool:
        """True if a verdict follows from these runs, and not from runs of its own."""
        representative = kernel.representative
        return representative is not None and any(run.is_of(representative.run) for run in self._runs)

    def show(self, changes: Sequence[Mutation]) -> bool:
        """True if one of the runs shows something new with these changes."""
        return any(run.shows(changes) is not None for run in self._runs)

    def judged(self, case: KernelCase, changes: Sequence[Mutation], *, tests_stay: bool = False) -> JudgedKernel | None:
        """The verdict on the kernel with these changes, which `case` is; None if it takes other runs. Of several
        changes, what is open in these runs is enough: together they are noticed. `tests_stay`: of the waits that they
        remove, as in `SameRun.tested_run`."""
        if not self._runs:
            return None
        report = VerdictSoFar(case)
        for same in self._runs:
            judged = same.tested_run(changes) if tests_stay else same.only_run(changes)
            if judged is None:
                return None
            report.representative = report.representative or judged
            report.add(judged, frozenset())
            if report.may_stop:
                break
        if report.verdict.open and not report.has_new_finding and len(changes) == 1:  # other schedules may show more
            return None
        report.finish()
        return report.kernel()
