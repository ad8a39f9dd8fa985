"""One mutant of a kernel, judged: what its verdict has that the kernel's own has not.

In: the kernel with its verdict and its order, a mutation. Out: `MutantResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from time import monotonic
from typing import NamedTuple

from memmodel.answer import Budget
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate.masked import BETWEEN, KnownFindings
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.mutate.reasons import LaunchOrder, redundant
from memmodel.kernel.mutate.same_runs import SameRuns
from memmodel.kernel.order.readings import identity
from memmodel.kernel.order.verdict import FindingKey, KernelFinding, KernelVerdict, rule_in_lines
from memmodel.limits import Limits, available, collect_what_has_grown
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.workers import KILLED, forked

SCHEDULES = 4
"""Explored for each mutant whose control flow depends on the schedule."""

INSTRUCTIONS = 1_000_000
"""Executed for each mutant of which a condition stays open, before no more warps are late: a quarter of what a kernel
may take."""


class Noticed(Enum):
    """What becomes of a mutant."""

    FINDING = "finding"
    HANG = "hang"
    UNDEFINED = "undefined"
    UNDECIDED = "undecided"
    UNNOTICED = "unnoticed"
    UNREACHED = "not reached"
    LATE = "not judged"


BROKEN = (Noticed.FINDING, Noticed.HANG, Noticed.UNDEFINED)
"""Fates of a mutant that is wrong."""


class MutantFate(NamedTuple):
    """What becomes of a changed kernel, as in `MutantResult`."""

    noticed: Noticed
    how: str = ""
    needing: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    @property
    def unnoticed(self) -> bool:
        """True if neither the model nor a reading finds anything new."""
        return self.noticed is Noticed.UNNOTICED and not self.needing


@dataclass(frozen=True, slots=True)
class MutantResult:
    """A mutant and its fate. `how`: the rules that it breaks with their lines, what is undecided, or why it is
    redundant, and under which readings it is not. `needing`: these readings. `lines`: of the first rule that it breaks.
    """

    mutation: Mutation
    noticed: Noticed
    how: str = ""
    needing: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MutantWork:
    """What all mutants share. `budget`: of each; `until`: when all of them end; `known`: what each reading finds in the
    kernel. `masking`: the findings of the kernel; `runs`: its runs. `out_of_time`: what is said then.
    `before_model`: as in `CheckOptions`."""

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
    masking: KnownFindings
    runs: SameRuns
    out_of_time: str
    before_model: bool = False
    _unnoticed: dict[frozenset[PtxInstruction], bool] = field(default_factory=dict)

    def left(self) -> Budget:
        """What one verdict may cost now."""
        return replace(self.budget, seconds=min(self.budget.seconds, max(0.0, self.until - monotonic())))

    def check_time(self) -> None:
        """Raise BudgetSpent if the time of all mutants has run out."""
        if monotonic() > self.until:
            raise BudgetSpent(self.out_of_time)

    def judge(self, mutant: PtxFunction, *, tests_stay: bool = False) -> JudgedKernel:
        """The verdict on a mutant, up to its first finding that the kernel has not, with what readings say if there is
        none. `tests_stay`: where it follows from runs, as in `SameRuns.judged`. Raises InputError, BudgetSpent.
        """
        known, early = self.base.known_keys, self.before_model
        options = CheckOptions(
            SCHEDULES, until_finding=True, known=known, readings=self.readings, before_model=early,
            known_to=self.known, explain=False, instructions=INSTRUCTIONS,
        )  # fmt: skip
        collect_what_has_grown()
        case, budget = KernelCase(self.module, mutant, self.launch, self.model, options), self.left()
        with Limits(available(budget)):
            judged = self.runs.judged(case, self._changes(mutant), tests_stay=tests_stay)
        return judge_case(case, budget) if judged is None else judged

    def _changes(self, mutant: PtxFunction) -> list[Mutation]:
        """The changes that make a mutant of the kernel."""
        known = {id(it.becomes): it for change in self.changes for it in (change, *change.copies)}
        return [known[id(instruction)] for instruction in self.changed(mutant)]

    def known_unnoticed(self, mutant: PtxFunction) -> bool | None:
        """True if neither the model nor a reading finds anything new in a mutant; None if it was not judged."""
        return self._unnoticed.get(self.changed(mutant))

    def beside(self, mutant: PtxFunction, judged: JudgedKernel) -> MutantWork:
        """The same work, of a mutant in place of the kernel: its runs are asked about more changes. What is new is new
        to the kernel."""
        order = LaunchOrder.of(judged.representative)
        masking, runs = KnownFindings(judged, self.model, order), SameRuns(judged, self.model)
        return replace(self, entry=mutant, order=order, masking=masking, runs=runs, _unnoticed={})

    def changed(self, mutant: PtxFunction) -> frozenset[PtxInstruction]:
        """The instructions of a mutant that are others than those of the kernel."""
        old, new = self.entry.body or (), mutant.body or ()
        return frozenset(after for before, after in zip(old, new, strict=True) if after is not before)

    def outcome(
        self, mutant: PtxFunction, *, tests_stay: bool = False
    ) -> tuple[MutantFate, JudgedKernel | None]:  # fmt: skip
        """What becomes of a kernel with one change or several, and what that was made from. `tests_stay`: as in
        `judge`; then more may be noticed. Raises BudgetSpent."""
        try:
            judged = self.judge(mutant, tests_stay=tests_stay)
        except InputError as error:  # what is left cannot be run
            return MutantFate(Noticed.UNDECIDED, error.message), None
        fate = compared(self.base, judged.verdict)
        if fate.noticed is Noticed.LATE:
            raise BudgetSpent(fate.how)
        needing = self.needing(judged.verdict) if fate.noticed is Noticed.UNNOTICED else ()
        outcome = fate._replace(needing=needing)
        if outcome.unnoticed or not tests_stay:
            self._unnoticed[self.changed(mutant)] = outcome.unnoticed
        return outcome, judged

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


def judged_alone(work: MutantWork, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, MutantResult]]:
    """Results of some of the changes as they come, each judged for itself."""
    try:
        for number, fate in forked(numbers, jobs, partial(_fate, work), _killed, work.until):
            yield number, MutantResult(work.changes[number], *fate)
    except TimeoutError:  # what is missing is listed as not judged
        pass


def _killed(number: int) -> MutantFate:
    """What becomes of a mutant whose process was killed."""
    return MutantFate(Noticed.LATE, KILLED)


def _fate(work: MutantWork, number: int) -> MutantFate:
    """What becomes of one mutant."""
    change = work.changes[number]
    if not any(reached(work, instruction) for instruction in change.instructions):
        return MutantFate(Noticed.UNREACHED)
    try:
        outcome, judged = work.outcome(change.of(work.entry))
    except BudgetSpent as spent:
        return MutantFate(Noticed.LATE, str(spent))
    if outcome.noticed is not Noticed.UNNOTICED or judged is None:
        return outcome
    masked = work.masking.masked((change, *change.copies), judged)
    if masked.findings:
        return fate_of([finding.key for finding in masked.findings], work.base.known_keys)
    if masked.unknown:
        return MutantFate(Noticed.UNDECIDED, masked.unknown)
    return explained(work, change, outcome, LaunchOrder.of(judged.representative))


def explained(work: MutantWork, change: Mutation, outcome: MutantFate, order: LaunchOrder | None) -> MutantFate:
    """Why a change is not noticed, or only under a reading. `order`: of a kernel with this change."""
    how = redundant(work.order, order, change) if work.order is not None and order is not None else ""
    if outcome.needing:
        needed = f"needless under the model as decided, needed under {' and '.join(outcome.needing)}"
        how = f"{how}; {needed}" if how else needed
    return outcome._replace(how=how)


def reached(work: MutantWork, instruction: PtxInstruction) -> bool:
    """True if a thread reached an instruction. A commit leaves no trace: it is reached if the instruction before it in
    the text that works with the same groups is reached, or if there is none the one after it.
    """
    number = instruction.number
    if "commit_group" in instruction.words:
        mine = [n for n, other in enumerate(work.entry.body or ()) if groups_of(other) == groups_of(instruction)]
        at = mine.index(number)
        number = next((n for n in mine[:at][::-1] + mine[at + 1 :] if "commit_group" not in _words(work, n)), number)
    return number in work.base.reached


def _words(work: MutantWork, number: int) -> tuple[str, ...]:
    return (work.entry.body or ())[number].words


def groups_of(instruction: PtxInstruction) -> tuple[bool, ...]:
    """The groups that an instruction works with: of wgmma, of bulk copies, of other asynchronous copies, or none."""
    words = instruction.words
    return words[:1] == ("wgmma",), words[:2] == ("cp", "async"), "bulk" in words


def compared(base: KernelVerdict, verdict: KernelVerdict) -> MutantFate:
    """The fate of a mutant: what its verdict has that the kernel's own has not."""
    new = [finding.key for finding in verdict.serious if finding.key not in base.known_keys]
    if not new and verdict.spent:
        return MutantFate(Noticed.LATE, verdict.open[-1] if verdict.open else "")
    if not new:
        left = [reason for reason in verdict.open if reason not in base.open] or verdict.open
        return MutantFate(Noticed.UNDECIDED, left[0]) if left else MutantFate(Noticed.UNNOTICED)
    return fate_of(new)


def fate_of(new: Sequence[FindingKey], known: Collection[FindingKey] = ()) -> MutantFate:
    """The fate of a mutant that has new findings. `known`: those that the kernel has too, between other accesses."""
    rules = {rule for rule, _ in new}
    text = "; ".join(
        rule_in_lines(rule, lines) + (f" {BETWEEN}" if (rule, lines) in known else "") for rule, lines in new[:3]
    )
    more = f"; {len(new) - 3} more" if len(new) > 3 else ""
    if rules & {"hang", "barrier-divergence"}:
        fate = Noticed.HANG
    else:
        fate = Noticed.UNDEFINED if all(rule.startswith("undefined") for rule in rules) else Noticed.FINDING
    return MutantFate(fate, text + more, lines=new[0][1])
