"""What a model says of an execution that was carried into another text, soon: thousands of them are asked about.

In: a model, an execution. Out: whether it is consistent and shows a flag. Nothing that is found here is shown to
anybody: it says which changes are worth judging. The sums are those that enumeration does for each candidate
(`enumeration.code`): equal expressions once, a relation as one number.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.answer import HANG
from memmodel.base.identity import by_identity
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Check, Model
from memmodel.concrete.execution import Execution
from memmodel.enumeration.code import Compute, Values, code_of
from memmodel.enumeration.matrix import Shape


@dataclass(frozen=True, slots=True)
class QuickCheck:
    """A check: what it takes beyond the checks before it, and the slot of its body."""

    check: Check
    bases: tuple[tuple[str, int], ...]
    runs: tuple[Compute, ...]
    slot: int

    def holds(self, execution: Execution, values: Values, shape: Shape, sets: dict[str, bool]) -> bool:
        for name, slot in self.bases:
            values[slot] = execution.set(name) if sets[name] else shape.pack(execution.relation(name))
        for run in self.runs:
            run(values, shape)
        return shape.passes(self.check.test, values[self.slot]) is not self.check.negated


class Quick:
    """A model's axioms, and its flags as they are asked for. `chooses`: it chooses orders, and cannot be asked here."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.code = code_of(model.definitions)
        self.chooses = bool(self.code.orders)
        self._plans: dict[str | None, tuple[list[QuickCheck], list[QuickCheck]]] = {}

    def still_bad(self, execution: Execution, flag: str | None) -> bool:
        """True if the execution is consistent and raises the flag. HANG: nothing is undefined. None: no flag."""
        if flag not in self._plans:
            self._plans[flag] = self._planned(flag)
        axioms, flags = self._plans[flag]
        values, shape, sets = [0] * len(self.code.stage), Shape(len(execution.events)), self.code.is_set
        if not all(check.holds(execution, values, shape, sets) for check in axioms):
            return False
        raised = any(check.holds(execution, values, shape, sets) for check in flags)
        return not raised if flag == HANG else raised or flag is None

    def _planned(self, flag: str | None) -> tuple[list[QuickCheck], list[QuickCheck]]:
        undefined = flag == HANG
        flags = [check for check in self.model.flags if check.name == flag or (undefined and _undefined(check))]
        bodies = [
            self.code.slot(check.body) for check in (*self.model.axioms, *flags)
        ]  # then all base names have slots
        done = 0
        read: set[str] = set()
        plan: list[QuickCheck] = []
        for check, slot in zip((*self.model.axioms, *flags), bodies, strict=True):
            now = self.code.needed(slot) & ~done
            used = self.code.reads(now) | {slot}
            bases = tuple((name, at) for name, at in self.code.slots.items() if at in used and name not in read)
            plan.append(QuickCheck(check, bases, self.code.runs(now), slot))
            read |= {name for name, _ in bases}
            done |= now
        return plan[: len(self.model.axioms)], plan[len(self.model.axioms) :]


def _undefined(check: Check) -> bool:
    return kind_of(check.name) is FindingKind.UNDEFINED


quick_of = by_identity(8)(Quick)
