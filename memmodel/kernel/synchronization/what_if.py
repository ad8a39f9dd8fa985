"""One change of a kernel, judged: what appears with it, and what goes.

In: the question about a kernel, requests as in `rewritten`. Out: `WhatIf`. Settled here: findings are told apart by
their rule and the lines that they are about. A reading needs what is changed if it has a finding then that it had not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from memmodel.answer import Budget
from memmodel.cat.syntax import Model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import ignored
from memmodel.kernel.check.inputs import younger_words
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.mutate.masked import KnownFindings, Masked
from memmodel.kernel.mutate.mutants import findings_of_readings
from memmodel.kernel.mutate.reasons import LaunchOrder, redundant
from memmodel.kernel.mutate.rewritten import TextChange, rewritten, weakened
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.kernel.question import KernelQuestion
from memmodel.kernel.synchronization.report import phrase
from memmodel.ptx.module.syntax import PtxFunction


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The verdicts on a kernel before and after its changes.

    `phrases`: what each changed instruction does, empty where that is not known. `why`: why the only one is not missed.
    `needing`: the readings that have a finding then which they had not. `notes`: on words that ptxas would refuse.
    `masked`: what is between other accesses of the lines of a finding that is not new.
    """

    changes: tuple[TextChange, ...]
    before: KernelVerdict
    after: KernelVerdict
    phrases: tuple[str, ...] = ()
    why: str = ""
    needing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    masked: Masked = Masked()

    @property
    def appearing(self) -> list[KernelFinding]:
        """The findings that only the changed kernel has."""
        new = [finding for finding in self.after.serious if finding.key not in self.before.known_keys]
        return [*new, *self.masked.findings]

    @property
    def vanishing(self) -> list[KernelFinding]:
        """The findings that the changed kernel has not any more, as far as it was judged."""
        if self.after.spent:
            return []
        return [finding for finding in self.before.serious if finding.key not in self.after.known_keys]

    @property
    def perhaps_needing(self) -> tuple[str, ...]:
        """The readings on which only the verdict on the changed kernel may depend, where none was asked."""
        known = self.before.possible.names
        return tuple(name for name in self.after.possible.names if name not in known) if not self.appearing else ()

    @property
    def undecided(self) -> list[str]:
        """Why it is open whether anything appears."""
        if self.before.spent:
            return [f"of the kernel as it is, not all is known: {reason}" for reason in self.before.open]
        if self.appearing:
            return []
        new = [reason for reason in self.after.unsettled if reason not in self.before.unsettled]
        new += [self.masked.unknown] if self.masked.unknown else []
        return new or (self.after.unsettled if self.after.word == "undecided" else [])


@dataclass(frozen=True, slots=True)
class WhatIfBegun:
    """What is known before the changed kernel is judged."""

    changes: tuple[TextChange, ...]
    before: KernelVerdict
    phrases: tuple[str, ...]


def what_if(
    asked: KernelQuestion,
    requests: Sequence[str],
    model: Model,
    options: CheckOptions,
    *,
    baseline: str | None = None,
    budget: Budget | None = None,
    stands: Callable[[WhatIfBegun], None] | None = None,
) -> WhatIf:
    """Judge a kernel and what the requests make of it. `options`: of both verdicts. `baseline`: findings that do not
    count. `budget`: of each of both. `stands`: is given the verdict on the kernel as it is, before.

    Raises InputError for a request that cannot be carried out.
    """
    changed = rewritten(asked.module, asked.entry, asked.launch, requests)
    known = ignored(asked.entry, baseline)
    kernel = judge_case(KernelCase(asked.module, asked.entry, asked.launch, model, options), budget)
    before, order = kernel.verdict, LaunchOrder.of(kernel.representative)
    known.apply(before)
    phrases = tuple("" if order is None else phrase(order, change.instruction) for change in changed.changes)
    if stands is not None:
        stands(WhatIfBegun(changed.changes, before, phrases))
    mutant = judge_case(KernelCase(changed.module, changed.entry, asked.launch, model, options), budget)
    after = mutant.verdict
    ignored(changed.entry, baseline).apply(after)
    said = set(younger_words(asked.module))
    notes = tuple(note for note in younger_words(changed.module) if note not in said)
    had, has = (findings_of_readings(verdict, options.readings, attrgetter("key")) for verdict in (before, after))
    needing = tuple(name for name in has if not has[name] <= had[name])
    answer = WhatIf(changed.changes, before, after, phrases, "", needing, notes)
    if answer.appearing or answer.undecided:
        return answer
    masked = _masked(answer.changes, KnownFindings(kernel, model, order), asked.entry, mutant)
    return replace(answer, masked=masked, why="" if masked else _why(answer, order, mutant))


def _masked(changes: Sequence[TextChange], known: KnownFindings, entry: PtxFunction, mutant: JudgedKernel) -> Masked:
    """What the findings of a kernel may mask of what changes do."""
    instructions = [change.instruction for change in changes]
    removals = [change.removal or weakened(change.instruction, entry, mutant.entry) for change in changes]
    mutations = [mutation for mutation in removals if mutation is not None]
    return known.masked(mutations, mutant) if len(mutations) == len(removals) else known.compared(instructions, mutant)


def _why(answer: WhatIf, order: LaunchOrder | None, mutant: JudgedKernel) -> str:
    """Why the kernel does not miss the only instruction that was taken away."""
    after = LaunchOrder.of(mutant.representative)
    removals = [change.removal for change in answer.changes]
    if len(removals) != 1 or removals[0] is None or order is None or after is None:
        return ""
    return redundant(order, after, removals[0])
