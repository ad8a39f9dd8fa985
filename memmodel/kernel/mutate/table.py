"""Every mutation of a kernel, judged: whether it is noticed if a part of the synchronization is missing.

In: module, entry, launch, model. Out: `MutationTable`. One reading of the file serves all mutants; each costs one run,
and more only where choices are to be explored. Where it is asked what can go together, most mutants cost less
(`incremental`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import Ignored
from memmodel.kernel.check.inputs import reading_models
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate.incremental import judged_incrementally
from memmodel.kernel.mutate.masked import KnownFindings
from memmodel.kernel.mutate.mutants import (
    BROKEN,
    SCHEDULES,
    MutantResult,
    MutantWork,
    Noticed,
    findings_of_readings,
    judged_alone,
)
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, copies_together, mutations
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.mutate.same_run import SameRun, Shown
from memmodel.kernel.mutate.same_runs import SameRuns
from memmodel.kernel.mutate.together import MinimumSet, RemovalJudge, minimum_set
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.limits import shared
from memmodel.ptx.module.syntax import PtxFunction, PtxModule

LEAST = 60.0
"""Seconds that one mutant may take, if the budget of all has them left."""

OF_SETS = 2_000_000
"""Instructions that may be executed to find what can go beside other removals, where these take runs of their own."""

INTERRUPTED = "interrupted"
"""Why a mutant was not judged, where a signal came before its turn."""


@dataclass(slots=True)
class MutationTable:
    """All mutants of one kernel. `base`: the verdict on the kernel as it is; `order`: of its run, if that was judged.
    `minimum`: which removals can be made together; None if there was no time for it. `runs`: by
    the identity of a finding of the kernel, the run that shows it. `late`: why not all was judged.
    """

    base: KernelVerdict
    order: LaunchOrder | None = None
    minimum: MinimumSet | None = None
    runs: Mapping[int, RunJudge] = field(default_factory=dict)
    results: list[MutantResult] = field(default_factory=list)
    late: str = ""

    def count(self, *words: Noticed) -> int:
        return sum(result.noticed in words for result in self.results)

    @property
    def partial(self) -> bool:
        """True if time or memory ran out, or a signal came, before every mutant was judged, or before it was known what
        can go together."""
        return self.count(Noticed.LATE) > 0 or self.minimum is None or bool(self.minimum.late)

    @property
    def judged(self) -> int:
        return len(self.results) - self.count(Noticed.UNREACHED, Noticed.LATE)

    @property
    def share(self) -> float:
        """Of the mutants that were judged, those that are noticed as an error."""
        return self.count(*BROKEN) / max(1, self.judged)


def mutation_table(
    module: PtxModule,
    entry: PtxFunction,
    launch: Launch,
    model: Model,
    *,
    jobs: int = 1,
    budget: Budget = Budget(seconds=600.0),
    progress: Callable[[str], None] | None = None,
    on_verdict: Callable[[KernelVerdict], None] | None = None,
    together: bool = False,
    ignoring: Ignored | None = None,
) -> MutationTable:
    """Judge every mutant. Copies of one place in the source are changed together. `together`: ask which removals can be
    made together of all instructions, make no number wrong, and change each copy alone. `ignoring`: what is to be
    ignored of the kernel.

    `on_verdict`: is given the verdict on the kernel itself, before. `budget`: of all together; what is left then is
    listed as not judged, and so is what is left when a signal interrupts the work on mutants.
    """
    until, by_instruction = monotonic() + budget.seconds, ignoring is not None and ignoring.anything
    readings = reading_models() if model.name == DEFAULT_MODEL else ()
    options = CheckOptions(SCHEDULES, readings=readings, by_instruction=by_instruction)
    kernel = judge_case(KernelCase(module, entry, launch, model, options), budget)
    base, known = kernel.verdict, findings_of_readings(kernel.verdict, readings)
    base.readings = []  # the verdict of the table is the model's own
    if ignoring is not None:
        ignoring.apply(base)
    if on_verdict is not None:
        on_verdict(base)
    each = replace(shared(budget, jobs), seconds=max(LEAST, budget.seconds / 4))
    changes = tuple(mutations(entry, miscounts=False) if together else copies_together(mutations(entry)))
    table = MutationTable(base, runs=kernel.runs)
    results: dict[int, MutantResult] = {}
    late = budget.out_of_seconds
    try:
        order = table.order = LaunchOrder.of(kernel.representative)
        masking = KnownFindings(kernel, model, order)
        work = MutantWork(
            module, entry, changes, launch, model, each, until, base, order, readings, known, masking,
            SameRuns(kernel, model), budget.out_of_seconds, together,
        )  # fmt: skip
        same = masking.same_run if together else None
        # What is removed is judged before what is weakened.
        numbers = sorted(range(len(changes)), key=lambda number: changes[number].what != REMOVED)
        judged = judged_alone(work, numbers, jobs) if same is None else judged_incrementally(work, same, jobs)
        for number, result in judged:
            results[number] = result
            if progress is not None:
                progress(f"line {result.mutation.instruction.line}")
        if len(results) == len(changes):
            table.minimum = _minimum(work, [results[number] for number in range(len(changes))], same, together=together)
    except BudgetSpent as spent:  # what is missing is listed as not judged
        late = str(spent)
    except KeyboardInterrupt:  # what was judged until then is worth more than nothing
        late = INTERRUPTED
    table.results = [
        results.get(number, MutantResult(change, Noticed.LATE, late)) for number, change in enumerate(changes)
    ]
    if table.partial:
        table.late = table.minimum.late if table.minimum is not None and table.minimum.late else late
    return table


def _minimum(
    work: MutantWork, results: Sequence[MutantResult], same: SameRun | None, *, together: bool
) -> MinimumSet:  # fmt: skip
    """The largest set of removals that can be made together, from the verdicts on all mutants. Raises BudgetSpent."""
    removed = [
        result for result in results if result.mutation.what == REMOVED and result.noticed is not Noticed.UNREACHED
    ]
    broken = [result for result in removed if result.noticed in BROKEN]
    return minimum_set(
        work.entry,
        [result.mutation for result in removed] if together else None,
        [result.mutation for result in removed if result.noticed is Noticed.UNNOTICED and not result.needing],
        Removals(work, same, {result.mutation.instruction.number: result for result in broken}),
        [[result.mutation] for result in broken],
    )


class Removals(RemovalJudge):
    """What is noticed of removals that are made together. `same`: a run that is asked first, if there is one; `broken`:
    the errors of single removals, by instruction.

    Where removals can go and that took runs of its own, more beside them are put to these runs: the kernel with them is
    judged as the kernel itself is, and what follows from its runs follows in the same way. The runs of the kernel are
    no executions of what is left.
    """

    def __init__(self, work: MutantWork, same: SameRun | None, broken: Mapping[int, MutantResult]) -> None:
        self._work, self._same, self._broken = work, same, broken
        self._near, self._gone = work, frozenset[int]()
        """The kernel without the instructions that took runs of its own last, and the numbers of these."""
        self._shown: dict[frozenset[int], Shown] = {}
        """What the run that is asked shows with some removals, by their instructions."""
        self._executed = 0
        """Instructions in runs of sets of removals."""
        self._quiet: frozenset[int] | None = None
        """The removals of which nothing was shown last."""

    def unnoticed(self, mutant: PtxFunction) -> bool:
        """True if neither the model nor a reading finds anything new in a mutant. Raises BudgetSpent."""
        known = self._work.known_unnoticed(mutant)
        if known is not None:
            return known
        changed = self._work.changed(mutant)
        work = self._near if self._work.changed(self._near.entry) <= changed else self._work
        outcome, judged = work.outcome(mutant)
        if judged is None or work.runs.lead_to(judged):
            return outcome.unnoticed
        self._executed += _executed(judged.verdict)
        if outcome.unnoticed and self._same is not None:
            near = work.beside(mutant, judged)
            if near.masking.same_run is not None:
                self._near, self._gone, self._shown = near, frozenset(instruction.number for instruction in changed), {}
                self._quiet = None
        return outcome.unnoticed

    def affordable(self, changes: Sequence[Mutation]) -> bool:
        """True if the verdict on these changes follows from runs that are there, or may be found by more runs, as many
        as the verdict on the kernel took."""
        work, _, more = self._asked(changes)
        return work.runs.cover(*more) or self._executed + _executed(work.base) <= OF_SETS

    def seen(self, changes: Sequence[Mutation]) -> bool:
        """True if the run that is asked first shows that something is wrong with these changes. Raises BudgetSpent."""
        self._work.check_time()
        _, same, more = self._asked(changes)
        return same is not None and same.shows(more) is not None

    def shown(self, changes: Sequence[Mutation]) -> bool:
        """True if the runs of the kernel show that something is wrong with these changes. Raises BudgetSpent."""
        self._work.check_time()
        if self._quiet == _numbers(changes):
            return False
        work, same, more = self._asked(changes)
        if work.runs.show_at_once(more) or (same is not None and self._hang(work, same, more)):
            return True
        if masked := work.masking.masked(more):
            if masked.findings:
                self._shown[_numbers(changes)] = Shown.of(masked.findings[0])
            return True
        if same is not None and (shown := same.shows(more)) is not None:
            self._shown[_numbers(changes)] = shown
            return True
        if work.runs.new_findings(more):
            return True
        if same is not None:
            same.look_from(more)
            work.runs.look_from(more, same)
        self._quiet = _numbers(changes)
        return False

    def _hang(self, work: MutantWork, same: SameRun, changes: Sequence[Mutation]) -> bool:
        """True if threads wait for ever with these changes; not in a run that is an execution with them."""
        if same.is_execution(changes):
            return False
        return bool(same.endless_waits(changes) or work.runs.endless_waits(changes))

    def stay_broken(self, changes: Sequence[Mutation], others: Sequence[Mutation]) -> bool:
        """True if the kernel with some changes, which is wrong, still is with other removals."""
        change, number = changes[0], changes[0].instruction.number
        if self._same is not None and len(changes) == 1 and number in self._broken:
            known = self._broken[number]
            return self._same.stays_broken(change, known.lines, others, hangs=known.noticed is Noticed.HANG)
        _, same, more = self._asked([*changes, *others])
        shown = self._shown.get(_numbers(changes)) if same is self._asked(changes)[1] else None
        if same is not None and shown is not None:
            return same.still_shows(shown, others, more)
        return all(self._same is not None and self._same.only_orders(it) for it in others)

    def counts(self, change: Mutation) -> bool:
        """True if a removal updates mbarrier objects, or there is no run to ask."""
        return self._same is None or self._same.counts(change)

    def idle(self, changes: Sequence[Mutation]) -> bool:
        """True if the run shows nothing else of the mbarrier objects that the removed instructions work on."""
        return self._same is not None and self._same.idle(changes)

    def _asked(self, changes: Sequence[Mutation]) -> tuple[MutantWork, SameRun | None, Sequence[Mutation]]:
        """The kernel whose runs are asked about some changes, its run that is asked first, and which of the changes it
        has not."""
        if not self._gone or not self._gone <= _numbers(changes):
            return self._work, self._same, changes
        more = [change for change in changes if change.instruction.number not in self._gone]
        return self._near, self._near.masking.same_run, more


def _executed(verdict: KernelVerdict) -> int:
    """The instructions that were executed for a verdict."""
    return verdict.statistics.instructions * verdict.statistics.runs


def _numbers(changes: Sequence[Mutation]) -> frozenset[int]:
    return frozenset(change.instruction.number for change in changes)
