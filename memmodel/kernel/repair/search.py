"""The smallest changes of a kernel's text after which nothing is found, each judged as the kernel is.

In: module, launch, model. Out: `KernelRepairs`. Settled here: what most findings ask for is tried first; a change that
leaves fewer findings and adds none is kept, and the others are tried on top of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.kernel.check.conductor import DEFAULT_MODEL, chosen, entry_of, judged
from memmodel.kernel.check.launch_judge import ExploreOptions, LaunchJudge
from memmodel.kernel.launch import Launch, read_launch
from memmodel.kernel.order.verdict import FindingKey, KernelVerdict
from memmodel.kernel.repair.edits import PtxEdits, apart, cost, inline, laid
from memmodel.kernel.repair.wants import candidates
from memmodel.kernel.repair.warps import halved
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.ptx.module.syntax import PtxModule
from memmodel.repair.edits import diff
from memmodel.source import Source

WIDTH = 60
"""Changes that are tried before it is asked again what the findings that are left lack."""

IN_VAIN = 8
"""Changes that may fail in a row where a repair is known already."""


@dataclass(frozen=True, slots=True)
class KernelRepair:
    """`after`: the verdict on the kernel with the edits; `left`: the findings that it still has."""

    edits: PtxEdits
    diff: str
    after: KernelVerdict

    @property
    def left(self) -> list[FindingKey]:
        return [one.key for one in self.after.serious]


@dataclass(slots=True)
class KernelRepairs:
    """`base`: the kernel as it is. `best`: what leaves the fewest findings, where no repair was found.

    `tried`: kernels judged. `complete`: all that the findings ask for was tried. `signal`: what ended the search.
    """

    base: KernelVerdict
    repairs: list[KernelRepair] = field(default_factory=list)
    best: KernelRepair | None = None
    tried: int = 0
    complete: bool = True
    signal: KeyboardInterrupt | None = None

    @property
    def shown(self) -> list[KernelRepair]:
        """The repairs, or else what comes nearest to one."""
        return self.repairs or [one for one in [self.best] if one is not None]


@dataclass(frozen=True, slots=True)
class _State:
    """A kernel with some edits, judged."""

    edits: PtxEdits
    work: LaunchJudge


class KernelMender:
    """The search for repairs of one kernel."""

    def __init__(
        self,
        module: PtxModule,
        entry: str,
        launch: Launch,
        model: Model,
        options: ExploreOptions,
        *,
        budget: Budget,
        seconds: float,
        most: int = 3,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.module, self.entry, self.launch, self.model = module, entry, launch, model
        self.options, self.budget, self.most, self.progress = options, budget, most, progress
        self._until = monotonic() + seconds
        self._seen: set[PtxEdits] = {()}

    def repairs(self) -> KernelRepairs:
        """The verdict on the kernel, and its repairs, the cheapest first."""
        work = LaunchJudge(self.module, entry_of(self.module, self.entry), self.launch, self.model, self.options)
        found = KernelRepairs(judged(work, self.budget))
        if not found.base.serious:
            return found
        try:
            self._search(work, found)
        except KeyboardInterrupt as signal:
            found.signal, found.complete = signal, False
        found.repairs.sort(key=lambda one: (cost(one.edits), one.edits))
        return found

    def _search(self, work: LaunchJudge, found: KernelRepairs) -> None:
        at: _State | None = _State((), work)
        while at is not None and found.complete and not found.repairs:
            at = self._better(at, work, found)
        if found.best is not None and not found.repairs and found.complete:
            self._alone(work, found)

    def _better(self, start: _State, whole: LaunchJudge, found: KernelRepairs) -> _State | None:
        """The kernel with all changes that leave fewer findings, each tried on top of those before; None if none does.

        A change after which nothing is found goes into `found`, without what it does not need; other changes in place
        of it are looked for only if it stands alone.
        """
        at, in_vain = start, 0
        for one in candidates(start.work, start.edits)[:WIDTH]:
            new = tuple(sorted((*at.edits, *one.edits)))
            if new in self._seen or not apart(new) or any(_same_but_wider(new, old.edits) for old in found.repairs):
                continue
            if found.repairs and in_vain >= IN_VAIN:
                break
            if monotonic() > self._until:
                found.complete = bool(found.repairs)
                break
            self._seen.add(new)
            found.tried += 1
            if self.progress is not None:
                self.progress(f"line {one.edits[0].line}")
            work, in_vain = self._judged(new, at.work), in_vain + 1
            if work is None:
                found.complete &= monotonic() <= self._until or bool(found.repairs)
                continue
            if not work.verdict.serious:
                in_vain, one_more = 0, self._needed(_State(new, work), whole)
                if all(known.edits != one_more.edits for known in found.repairs):
                    found.repairs.append(one_more)
                if at.edits or len(found.repairs) >= self.most:
                    break
            elif len(work.verdict.serious) < len(at.work.verdict.serious) and not found.repairs:
                at = _State(new, work)
                found.best = self._repair(at)
        return None if at is start else at

    def _alone(self, whole: LaunchJudge, found: KernelRepairs) -> None:
        """The first change that ends all findings by itself and was tried only on top of one that is in its way."""
        for one in candidates(whole, ())[:WIDTH]:
            if one.edits in self._seen:
                continue
            if monotonic() > self._until:
                found.complete = False
                return
            self._seen.add(one.edits)
            found.tried += 1
            work = self._judged(one.edits, whole)
            if work is not None and not work.verdict.serious:
                found.repairs.append(self._repair(_State(one.edits, work)))
                return

    def _repair(self, state: _State) -> KernelRepair:
        source = self.module.source
        shown = diff(source.name, source.text, laid(source.text, state.edits))
        return KernelRepair(state.edits, shown, state.work.verdict)

    def _judged(self, edits: PtxEdits, parent: LaunchJudge) -> LaunchJudge | None:
        """The kernel with the edits; None if it is not valid, or if something is found or left open that was not."""
        old = parent.verdict
        known = frozenset(one.key for one in old.serious)
        try:
            module = parse_module(Source(self.module.source.name, inline(self.module.source.text, edits)))
            options = replace(self.options, first=True, known=known, mended=known)
            work = LaunchJudge(module, entry_of(module, self.entry), self.launch, self.model, options)
            verdict = judged(work, self._left())
        except InputError:
            return None
        if any(one.key not in known for one in verdict.serious) or verdict.spent:
            return None
        opened = any(one not in old.open for one in verdict.open)
        return None if opened or halved(work, edits) else work

    def _left(self) -> Budget:
        """What one more judgement may cost."""
        return replace(self.budget, seconds=min(self.budget.seconds, max(0.0, self._until - monotonic())))

    def _needed(self, state: _State, whole: LaunchJudge) -> KernelRepair:
        """The edits without those that are not needed."""
        for one in state.edits if len(state.edits) > 1 else ():
            rest = tuple(other for other in state.edits if other != one)
            work = self._judged(rest, whole)
            if work is not None and not work.verdict.serious:
                return self._needed(_State(rest, work), whole)
        return self._repair(state)


def fix_kernel(
    file: str | os.PathLike[str],
    launch: Launch | str | os.PathLike[str],
    *,
    entry: str | None = None,
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    ctas: Sequence[tuple[int, int, int]] = (),
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    budget: Budget | None = None,
    seconds: float = 600.0,
    most: int = 3,
    progress: Callable[[str], None] | None = None,
    kept: bool = False,
) -> KernelRepairs:
    """Judge one launch of a kernel, and look for the smallest changes of its text after which nothing is found.

    `seconds`: for the search; `most`: repairs wanted; the rest as in `check_kernel`. Every change is judged in full,
    for this launch. `kept`: a KeyboardInterrupt ends the search, and is in the result beside what was found by then;
    else it is raised. Raises InputError.
    """
    given = launch if isinstance(launch, Launch) else read_launch(launch)
    module = read_module(file)
    chosen_entry = entry_of(module, entry or given.kernel).name
    options = ExploreOptions(schedules, chosen(given, ctas), tuple(assume_pure))
    mender = KernelMender(
        module, chosen_entry, given, load_model(model), options,
        budget=budget or Budget(seconds=seconds), seconds=seconds, most=most, progress=progress,
    )  # fmt: skip
    found = mender.repairs()
    if found.signal is not None and not kept:
        raise found.signal
    return found


def _same_but_wider(new: PtxEdits, old: PtxEdits) -> bool:
    """Does a change stand where a cheaper one suffices?"""
    return [one.start for one in new] == [one.start for one in old] and cost(new) >= cost(old)
