"""Every mutation of a kernel, judged: whether it is noticed if a part of the synchronization is missing.

In: module, entry, launch, model. Out: `MutationTable`. One reading of the file serves all mutants; each costs one run,
and more only where choices are to be explored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from time import monotonic

from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import Ignored
from memmodel.kernel.check.inputs import reading_models
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, copies_together, mutations
from memmodel.kernel.mutate.reasons import LaunchOrder, redundant
from memmodel.kernel.mutate.together import MinimumSet, minimum_set
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.readings import identity
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.limits import shared
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.workers import forked

LEAST = 60.0
"""Seconds that one mutant may take, if the budget of all has them left."""

SCHEDULES = 4
"""Explored for each mutant whose control flow depends on the schedule."""


class Noticed(Enum):
    """What becomes of a mutant."""

    FINDING = "finding"
    HANG = "hang"
    UNDEFINED = "undefined"
    UNDECIDED = "undecided"
    UNNOTICED = "unnoticed"
    UNREACHED = "not reached"
    LATE = "not judged"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """A mutant and its fate. `how`: the rules that it breaks with their lines, what is undecided, or why it is
    redundant, and under which readings it is not. `needing`: these readings.
    """

    mutation: Mutation
    noticed: Noticed
    how: str = ""
    needing: tuple[str, ...] = ()


@dataclass(slots=True)
class MutationTable:
    """All mutants of one kernel. `base`: the verdict on the kernel as it is; `order`: of its run, if that was judged.
    `minimum`: which removals can be made together; None if that was not asked, or there was no time for it. `runs`: by
    the identity of a finding of the kernel, the run that shows it.
    """

    base: KernelVerdict
    order: LaunchOrder | None = None
    minimum: MinimumSet | None = None
    runs: Mapping[int, RunJudge] = field(default_factory=dict)
    results: list[MutantResult] = field(default_factory=list)

    def count(self, *words: Noticed) -> int:
        return sum(result.noticed in words for result in self.results)

    @property
    def judged(self) -> int:
        return len(self.results) - self.count(Noticed.UNREACHED, Noticed.LATE)

    @property
    def share(self) -> float:
        """Of the mutants that were judged, those that are noticed as an error."""
        return self.count(Noticed.FINDING, Noticed.HANG, Noticed.UNDEFINED) / max(1, self.judged)


@dataclass(frozen=True, slots=True)
class _Work:
    """What all mutants share. `budget`: of each; `until`: when all of them end; `known`: what each reading finds in the
    kernel."""

    module: PtxModule
    entry: PtxFunction
    changes: tuple[Mutation, ...]
    launch: Launch
    model: Model
    budget: Budget
    until: float
    base: KernelVerdict
    order: LaunchOrder | None
    readings: tuple[tuple[str, str, Model], ...]
    known: dict[str, set[object]]

    def left(self) -> Budget:
        """What one verdict may cost now."""
        return replace(self.budget, seconds=min(self.budget.seconds, max(0.0, self.until - monotonic())))

    def judge(self, mutant: PtxFunction) -> JudgedKernel:
        """The verdict on a mutant, up to its first finding that the kernel has not, with what readings say if there is
        none. Raises InputError.
        """
        options = CheckOptions(SCHEDULES, first=True, known=self.base.known_keys, readings=self.readings)
        return judge_case(KernelCase(self.module, mutant, self.launch, self.model, options), self.left())

    def unnoticed(self, mutant: PtxFunction) -> bool:
        """True if neither the model nor a reading finds anything new in a mutant. Raises BudgetSpent."""
        try:
            verdict = self.judge(mutant).verdict
        except InputError:  # what is left cannot be run
            return False
        noticed, _ = compared(self.base, verdict)
        if noticed is Noticed.LATE:
            raise BudgetSpent("the time for mutants ran out")
        return noticed is Noticed.UNNOTICED and not self.needing(verdict)

    def needing(self, verdict: KernelVerdict) -> tuple[str, ...]:
        """The readings that find something in an unnoticed mutant which they do not find in the kernel."""
        by_reading = findings_of_readings(verdict, self.readings)
        return tuple(name for name, findings in by_reading.items() if not findings <= self.known.get(name, set()))


def findings_of_readings(
    verdict: KernelVerdict,
    readings: Sequence[tuple[str, str, Model]],
    key: Callable[[KernelFinding], object] = identity,
) -> dict[str, set[object]]:
    """What each reading finds: more than the model, or less. `key`: what tells findings apart."""

    def keys(findings: Iterable[KernelFinding]) -> set[object]:
        return {key(finding) for finding in findings if not finding.harmless}

    mine = keys(verdict.findings)
    by_reading = {name: mine for name, *_ in readings}
    for reading in verdict.readings:
        by_reading[reading.name] = mine - keys(reading.gone) | keys(reading.new)
    return by_reading


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
    listed as not judged.
    """
    until, apart = monotonic() + budget.seconds, ignoring is not None and ignoring.anything
    readings = reading_models() if model.name == DEFAULT_MODEL else ()
    options = CheckOptions(SCHEDULES, readings=readings, apart=apart)
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
    try:
        order = table.order = LaunchOrder.of(kernel.representative)
        work = _Work(module, entry, changes, launch, model, each, until, base, order, readings, known)
        for number, result in _judged(work, jobs):
            results[number] = result
            if progress is not None:
                progress(f"line {result.mutation.instruction.line}")
        if len(results) == len(changes):
            removed = [results[number] for number, change in enumerate(changes) if change.what == REMOVED]
            removed = [result for result in removed if result.noticed is not Noticed.UNREACHED]
            table.minimum = minimum_set(
                entry,
                [result.mutation for result in removed] if together else None,
                [result.mutation for result in removed if result.noticed is Noticed.UNNOTICED and not result.needing],
                work.unnoticed,
            )
    except BudgetSpent:  # what is missing is listed as not judged
        pass
    table.results = [results.get(number, MutantResult(change, Noticed.LATE)) for number, change in enumerate(changes)]
    return table


def _judged(work: _Work, jobs: int) -> Iterator[tuple[int, MutantResult]]:
    """Results as they come; what is removed is judged before what is weakened."""
    changes = work.changes
    numbers = sorted(range(len(changes)), key=lambda number: changes[number].what != REMOVED)
    try:
        for number, fate in forked(numbers, jobs, partial(_fate, work), work.until):
            yield number, MutantResult(changes[number], *fate)
    except (TimeoutError, BrokenProcessPool):  # what is missing is listed as not judged
        pass


def _fate(work: _Work, number: int) -> tuple[Noticed, str, tuple[str, ...]]:
    """What becomes of one mutant, as in `MutantResult`."""
    change = work.changes[number]
    if not any(_reached(work, instruction) for instruction in change.instructions):
        return Noticed.UNREACHED, "", ()
    try:
        mutant = work.judge(change.of(work.entry))
    except InputError as error:
        return Noticed.UNDECIDED, error.message, ()
    noticed, how = compared(work.base, mutant.verdict)
    if noticed is not Noticed.UNNOTICED:
        return noticed, how, ()
    order = LaunchOrder.of(mutant.representative)
    how = redundant(work.order, order, change) if work.order is not None and order is not None else ""
    needing = work.needing(mutant.verdict)
    if needing:
        needed = f"needless under the model as decided, needed under {' and '.join(needing)}"
        how = f"{how}; {needed}" if how else needed
    return noticed, how, needing


def _reached(work: _Work, instruction: PtxInstruction) -> bool:
    """True if a thread reached an instruction. A commit leaves no trace: it is reached if the instruction before it in
    the text that works with the same groups is reached, or if there is none the one after it.
    """
    number = instruction.number
    if "commit_group" in instruction.words:
        mine = [n for n, other in enumerate(work.entry.body or ()) if _groups(other) == _groups(instruction)]
        at = mine.index(number)
        number = next((n for n in mine[:at][::-1] + mine[at + 1 :] if "commit_group" not in _words(work, n)), number)
    return number in work.base.reached


def _words(work: _Work, number: int) -> tuple[str, ...]:
    return (work.entry.body or ())[number].words


def _groups(instruction: PtxInstruction) -> tuple[bool, ...]:
    """The groups that an instruction works with: of wgmma, of bulk copies, of other asynchronous copies, or none."""
    words = instruction.words
    return words[:1] == ("wgmma",), words[:2] == ("cp", "async"), "bulk" in words


def compared(base: KernelVerdict, verdict: KernelVerdict) -> tuple[Noticed, str]:
    """The fate of a mutant: what its verdict has that the kernel's own has not."""
    new = [finding.key for finding in verdict.serious if finding.key not in base.known_keys]
    if not new and verdict.spent:
        return Noticed.LATE, ""
    if not new:
        left = [reason for reason in verdict.open if reason not in base.open] or verdict.open
        return (Noticed.UNDECIDED, left[0]) if left else (Noticed.UNNOTICED, "")
    rules = {rule for rule, _ in new}
    text = "; ".join(f"{rule}{_of_lines(lines)}" for rule, lines in new[:3])
    more = f"; {len(new) - 3} more" if len(new) > 3 else ""
    if rules & {"hang", "barrier-divergence"}:
        return Noticed.HANG, text + more
    races = [rule for rule in rules if not rule.startswith("undefined")]
    return (Noticed.FINDING if races else Noticed.UNDEFINED), text + more


def _of_lines(lines: tuple[int, ...]) -> str:
    """Lines in a sentence, which reports say in the lines of the source."""
    return f" of line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" if lines else ""
