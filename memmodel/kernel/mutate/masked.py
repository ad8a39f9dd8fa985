"""What a change of a kernel breaks where the kernel has findings already.

Findings are told apart by their rule and their lines. So a race of two lines hides the others of these lines that a
change makes: those are looked for by events, in the run of the kernel.

In: a judged kernel, changes. Out: `Masked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.cat.syntax import Model
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.source import in_lines

BETWEEN = "between accesses that it orders"


@dataclass(frozen=True, slots=True)
class Masked:
    """`findings`: between events of which the kernel shows none. `unknown`: why there may be others; empty if none."""

    findings: tuple[KernelFinding, ...] = ()
    unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.findings or self.unknown)


class KnownFindings:
    """The findings of a kernel, which may mask those of its mutants."""

    def __init__(self, kernel: JudgedKernel, model: Model, order: LaunchOrder | None) -> None:
        self._verdict, self._order = kernel.verdict, order
        self.same_run = _same_run(kernel, model)

    def masked(self, changes: Sequence[Mutation], mutant: JudgedKernel | None = None) -> Masked:
        """What the known findings may mask in a kernel with these changes, in which no rule and line is new."""
        if not self._verdict.serious:
            return Masked()
        found = self.same_run.new_findings(*changes) if self.same_run is not None else None
        if found is not None:
            return Masked(tuple(found))
        return self.compared([change.instruction for change in changes], mutant)

    def compared(self, instructions: Sequence[PtxInstruction], mutant: JudgedKernel | None) -> Masked:
        """What the known findings may mask in a kernel with other instructions in these places, from its own run."""
        if not self._verdict.serious:
            return Masked()
        if self.same_run is not None and mutant is not None and mutant.representative is not None:
            found = self.same_run.new_in(mutant.representative)
            if found is not None:
                return Masked(tuple(found))
        return Masked((), self._unknown(instructions))

    def _unknown(self, instructions: Sequence[PtxInstruction]) -> str:
        """Why there may be more; empty if the instructions order no accesses of lines that have a finding."""
        serious = self._verdict.serious
        if self._order is None:
            return f"the kernel has findings already, such as {serious[0].rule}, and its order is not known"
        lines = {finding.key[1] for finding in serious}
        for pair in self._order.around(*instructions):
            at = tuple(sorted({self._order.body[number].line for number in self._order.places(pair)}))
            if at in lines:
                return f"{in_lines(at)} race already; whether others of their accesses are ordered then is not known"
        return ""


def _same_run(kernel: JudgedKernel, model: Model) -> SameRun | None:
    """The representative run of a kernel, for its mutants; None if it was not judged."""
    representative = kernel.representative
    if representative is None or representative.judgement.flags is None:
        return None
    ignored = frozenset(finding.key for finding in kernel.verdict.findings if finding.ignored)
    return SameRun(representative.run, model, representative.judgement.flags, ignored)
