"""The smallest changes of a kernel's text after which nothing is found, each judged as the kernel is.

In: module, launch, model. Out: `KernelRepairs`. Settled here: the changes that most findings ask for are tried first; a
change that leaves fewer findings and adds none is kept, and the others are tried on top of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import monotonic

from memmodel.answer import HANG, Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import ignored
from memmodel.kernel.check.inputs import chosen_ctas, entry_of
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import Launch
from memmodel.kernel.order.readings import possible_readings
from memmodel.kernel.order.verdict import FindingKey, KernelVerdict
from memmodel.kernel.question import GivenLaunch, LaunchWords, kernel_text, question
from memmodel.kernel.repair.atomics import atomics
from memmodel.kernel.repair.edits import PtxEdits, cost, disjoint, inline, laid
from memmodel.kernel.repair.wants import candidates
from memmodel.kernel.repair.warps import diverged, executions, reached
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxModule
from memmodel.repair.edits import diff
from memmodel.source import Source

WIDTH = 60
"""At most this many changes are tried before the remaining findings are asked for others."""

FEW = 12
"""At most this many single changes are tried in place of a repair that has several."""

FEW_BEHIND = 4
"""At most this many kernels are mended further that no longer hang, and have the findings that the hang hid."""

IN_VAIN = 8
"""After a repair was found, stop after this many further changes in a row that fail."""


@dataclass(frozen=True, slots=True)
class KernelRepair:
    """`after`: the verdict on the kernel with the edits; `left`: the findings that it still has."""

    edits: PtxEdits
    diff: str
    after: KernelVerdict

    @property
    def left(self) -> list[FindingKey]:
        return [finding.key for finding in self.after.serious]

    @property
    def is_settled(self) -> bool:
        """True if no condition is open: else the fault may show in what was not judged."""
        return not self.after.open


@dataclass(slots=True)
class KernelRepairs:
    """`base`: the verdict on the kernel as it is. `best`: the change that leaves the fewest findings, where no repair
    was found. `tried`: kernels judged. `complete`: all changes that the findings ask for were tried. `signal`: what
    ended the search.
    """

    base: KernelVerdict
    repairs: list[KernelRepair] = field(default_factory=list)
    best: KernelRepair | None = None
    tried: int = 0
    complete: bool = True
    signal: KeyboardInterrupt | None = None

    @property
    def shown(self) -> list[KernelRepair]:
        """The repairs, or else the nearest to one."""
        return self.repairs or [nearest for nearest in [self.best] if nearest is not None]


@dataclass(frozen=True, slots=True)
class _State:
    """A kernel with some edits, judged."""

    edits: PtxEdits
    kernel: JudgedKernel


class KernelMender:
    """The search for repairs of one kernel."""

    def __init__(
        self,
        module: PtxModule,
        entry: str,
        launch: Launch,
        model: Model,
        options: CheckOptions,
        *,
        budget: Budget,
        seconds: float,
        most: int = 3,
        progress: Callable[[str], None] | None = None,
        on_verdict: Callable[[KernelVerdict], None] | None = None,
        ignoring: Callable[[KernelVerdict], None] | None = None,
    ) -> None:
        self.module, self.entry, self.launch, self.model = module, entry, launch, model
        self.options, self.budget, self.most, self.progress = options, budget, most, progress
        self._on_verdict, self._until, self._ignoring = on_verdict, monotonic() + seconds, ignoring
        self._seen: set[PtxEdits] = {()}
        self._behind: list[_State] = []
        """Kernels whose threads wait no longer for ever, with the findings that show behind that."""
        self._looked_behind = 0
        self._updates: set[int] = set()
        """The lines of stores that lose an update."""

    def repairs(self) -> KernelRepairs:
        """The verdict on the kernel, and its repairs, the cheapest first."""
        entry = entry_of(self.module, self.entry)
        kernel = judge_case(
            KernelCase(self.module, entry, self.launch, self.model, self.options), self.budget, self._tell
        )
        self._ignore(kernel.verdict)
        repairs = KernelRepairs(kernel.verdict)
        if not repairs.base.serious:
            return repairs
        try:
            self._search(kernel, repairs)
        except KeyboardInterrupt as signal:
            repairs.signal, repairs.complete = signal, False
        if any(repair.is_settled for repair in repairs.repairs):
            repairs.repairs = [repair for repair in repairs.repairs if repair.is_settled]
        repairs.repairs.sort(key=lambda repair: (cost(repair.edits), repair.edits))
        known = [frozenset(repair.edits) for repair in repairs.repairs]
        repairs.repairs = [it for it in repairs.repairs if not any(less < frozenset(it.edits) for less in known)]
        del repairs.repairs[self.most :]
        return repairs

    def _ignore(self, verdict: KernelVerdict) -> None:
        """Mark the findings that are to be ignored. A change leaves the lines as they are."""
        if self._ignoring is not None:
            self._ignoring(verdict)

    def _tell(self, verdict: KernelVerdict) -> None:
        self._ignore(verdict)
        if self._on_verdict is not None:
            self._on_verdict(verdict)

    def _search(self, kernel: JudgedKernel, repairs: KernelRepairs) -> None:
        lost = (atomic for finding in kernel.verdict.serious for atomic in atomics(finding, kernel.entry))
        self._updates = {atomic.store.line for atomic in lost}
        at: _State | None = _State((), kernel)
        while at is not None and repairs.complete and not repairs.repairs:
            at = self._better(at, kernel, repairs)
            if at is None and self._behind and self._looked_behind < FEW_BEHIND:
                self._looked_behind += 1
                at = self._behind.pop(0)
        several = all(len(repair.edits) > 1 for repair in repairs.repairs)
        if repairs.best is not None and several and repairs.complete:
            self._alone(kernel, repairs)

    def _better(self, start: _State, whole: JudgedKernel, repairs: KernelRepairs) -> _State | None:
        """The kernel with all changes that leave fewer findings, each tried on top of those before; None if none does.

        A change after which nothing is found is added to `repairs`, without the edits that it does not need. Other
        changes in place of it are looked for only if it stands alone.
        """
        at, in_vain = start, 0
        for change in candidates(start.kernel, start.edits)[:WIDTH]:
            new = tuple(sorted((*at.edits, *change.edits)))
            wider = any(_same_but_wider(new, old.edits) for old in repairs.repairs)
            if new in self._seen or not disjoint(new) or wider:
                continue
            if repairs.repairs and in_vain >= IN_VAIN:
                break
            if monotonic() > self._until:
                repairs.complete = bool(repairs.repairs)
                break
            self._seen.add(new)
            repairs.tried += 1
            if self.progress is not None:
                self.progress(f"line {change.edits[0].line}")
            kernel, in_vain = self._judged(new, at.kernel), in_vain + 1
            if kernel is None:
                repairs.complete &= monotonic() <= self._until or bool(repairs.repairs)
                continue
            if not kernel.verdict.serious:
                repair = self._needed(_State(new, kernel), whole)
                in_vain = 0 if repair.is_settled or not repairs.repairs else in_vain
                known = repairs.repairs
                if not any(it.diff == repair.diff or _same_but_wider(repair.edits, it.edits) for it in known):
                    repairs.repairs.append(repair)
                if at.edits or sum(repair.is_settled for repair in repairs.repairs) >= self.most:
                    break
            elif _new(kernel.verdict, at.kernel.verdict):
                self._behind.append(_State(new, kernel))
            elif not repairs.repairs and is_nearer(kernel, at.kernel):
                at = _State(new, kernel)
                if len(kernel.verdict.serious) < len(whole.verdict.serious):
                    repairs.best = self._repair(at)
        return None if at is start else at

    def _alone(self, whole: JudgedKernel, repairs: KernelRepairs) -> None:
        """Add the first change that ends all findings by itself, of those that were tried only on top of another. Where
        a repair is known, a few cheaper ones are tried."""
        known = min((cost(repair.edits) for repair in repairs.repairs), default=inf)
        alone = [change for change in candidates(whole, ())[:WIDTH] if change.edits not in self._seen]
        for change in [change for change in alone if cost(change.edits) < known][: FEW if repairs.repairs else WIDTH]:
            if monotonic() > self._until:
                repairs.complete = bool(repairs.repairs)
                return
            self._seen.add(change.edits)
            repairs.tried += 1
            kernel = self._judged(change.edits, whole)
            if kernel is not None and not kernel.verdict.serious:
                repairs.repairs.append(self._repair(_State(change.edits, kernel)))
                return

    def _repair(self, state: _State) -> KernelRepair:
        source = self.module.source
        shown = diff(source.name, source.text, laid(source.text, state.edits))
        verdict, representative = state.kernel.verdict, state.kernel.representative
        if representative is not None and self.model.name == DEFAULT_MODEL:
            verdict.possible = possible_readings(representative.run, representative.judgement)
        return KernelRepair(state.edits, shown, verdict)

    def _judged(self, edits: PtxEdits, parent: JudgedKernel) -> JudgedKernel | None:
        """The kernel with the edits; None if it is not valid, or if it has a new finding or a new open condition. What
        shows behind a hang that is gone is a new finding for which there is a kernel.
        """
        old = parent.verdict
        known, mended = old.known_keys, frozenset(finding.key for finding in old.serious)
        try:
            module = parse_module(Source(self.module.source.name, inline(self.module.source.text, edits)))
            options = replace(self.options, until_finding=True, known=known, mended=mended, depends=False)
            case = KernelCase(module, entry_of(module, self.entry), self.launch, self.model, options)
            kernel = self._past_what_is_ignored(case)
        except InputError:
            return None
        verdict = kernel.verdict
        if verdict.spent or (_new(verdict, old) and not _is_past_hang(kernel, parent)):
            return None
        new = (_equal_stores(verdict) - _equal_stores(old)) & reached(parent)
        if new or _equal_stores(verdict) & self._updates:
            return None  # an update that is still lost, if by a store of the same
        opened = any(reason not in old.open for reason in verdict.open)
        return None if opened or diverged(kernel, edits) else kernel

    def _past_what_is_ignored(self, case: KernelCase) -> JudgedKernel:
        """The verdict of a case that stops at a finding: one that is to be ignored, and was not met before, is none to
        stop at."""
        kernel = judge_case(case, self._left())
        self._ignore(kernel.verdict)
        met = frozenset(finding.key for finding in kernel.verdict.findings if finding.ignored)
        if met <= case.options.known or kernel.verdict.serious or kernel.verdict.spent:
            return kernel
        return self._past_what_is_ignored(replace(case, options=replace(case.options, known=case.options.known | met)))

    def _left(self) -> Budget:
        """What one more judgement may cost."""
        return replace(self.budget, seconds=min(self.budget.seconds, max(0.0, self._until - monotonic())))

    def _needed(self, state: _State, whole: JudgedKernel) -> KernelRepair:
        """The edits without those that are not needed; a moved instruction is not put in twice."""
        moved = any(not edit.text for edit in state.edits)
        for edit in state.edits if len(state.edits) > 1 and not moved else ():
            rest = tuple(kept for kept in state.edits if kept != edit)
            kernel = self._judged(rest, whole)
            if kernel is not None and not kernel.verdict.serious:
                return self._needed(_State(rest, kernel), whole)
        return self._repair(state)


def fix_kernel(
    file: str | os.PathLike[str],
    launch: GivenLaunch = None,
    *,
    entry: str | None = None,
    words: LaunchWords = LaunchWords(),
    compiler: Sequence[str] = (),
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    ctas: Sequence[tuple[int, int, int]] = (),
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    budget: Budget | None = None,
    seconds: float = 600.0,
    most: int = 3,
    progress: Callable[[str], None] | None = None,
    on_verdict: Callable[[KernelVerdict], None] | None = None,
    kept: bool = False,
    baseline: str | None = None,
) -> KernelRepairs:
    """Judge one launch of a kernel, and look for the smallest changes of its text after which nothing is found.

    `seconds`: for the search; `most`: repairs wanted; the rest as in `check_kernel`. Every change is judged in full,
    for this launch. `on_verdict`: is given the verdict on the kernel as it is, before the search. `kept`: a
    KeyboardInterrupt ends the search, and stands in the result beside the repairs found by then; else it is raised.
    What comments and the file `baseline` ignore is not repaired. Raises InputError.
    """
    asked = question(kernel_text(file, compiler, entry), launch, words, entry, partial(chosen_ctas, wanted=ctas))
    module, read, chosen_entry = asked.module, asked.launch, asked.entry.name
    known = ignored(asked.entry, baseline)
    options = CheckOptions(
        schedules, chosen_ctas(read, ctas), not ctas, tuple(assume_pure), depends=True, by_instruction=known.anything
    )
    mender = KernelMender(
        module, chosen_entry, read, load_model(model), options,
        budget=budget or Budget(seconds=seconds), seconds=seconds, most=most, progress=progress, on_verdict=on_verdict,
        ignoring=known.apply,
    )  # fmt: skip
    repairs = mender.repairs()
    if repairs.signal is not None and not kept:
        raise repairs.signal
    return repairs


def is_nearer(kernel: JudgedKernel, other: JudgedKernel) -> bool:
    """True if a kernel has fewer findings, and not because its threads wait for ever before they come to the others."""
    fewer = len(kernel.verdict.serious) < len(other.verdict.serious)
    return fewer and (not _hangs(kernel) or _comes_as_far(kernel, other))


def _is_past_hang(kernel: JudgedKernel, other: JudgedKernel) -> bool:
    """True if threads come as far as in another kernel, and no longer wait for ever."""
    return _hangs(other) and not _hangs(kernel) and _comes_as_far(kernel, other)


def _hangs(kernel: JudgedKernel) -> bool:
    return any(finding.rule == HANG for finding in kernel.verdict.serious)


def _comes_as_far(kernel: JudgedKernel, other: JudgedKernel) -> bool:
    """True if threads execute as much as in another kernel, as far as that is known."""
    done = [executions(it.representative.run.run).total() for it in (kernel, other) if it.representative is not None]
    return len(done) < 2 or done[0] >= done[1]


def _new(verdict: KernelVerdict, other: KernelVerdict) -> bool:
    """True if a verdict has findings that another one has not."""
    return any(finding.key not in other.known_keys for finding in verdict.serious)


def _equal_stores(verdict: KernelVerdict) -> set[int]:
    """The lines of stores that race with others and store the same. Edits keep lines, and not the numbers of
    instructions."""
    return {side.instruction.line for finding in verdict.findings if finding.harmless for side in finding.sides}


def _same_but_wider(new: PtxEdits, old: PtxEdits) -> bool:
    """True if a change stands where a cheaper one suffices."""
    places = ([(edit.start, edit.end) for edit in edits] for edits in (new, old))
    return next(places) == next(places) and cost(new) >= cost(old)
