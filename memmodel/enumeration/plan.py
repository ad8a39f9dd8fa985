"""A model arranged for trying many candidates: what can be computed, and refused, before which choice is made.

In: Model. Out: Plan: for each stage (program, then rf, sync_fence, co) the instructions that become computable and the
axioms that they settle. An axiom that fails in an early stage rules out everything that could be chosen after it.
Equal subexpressions share one slot. Nothing here approximates: every stage computes final values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from memmodel.cat.monotonicity import MORE, effect_of_more, least_suffices
from memmodel.cat.syntax import Check, Model
from memmodel.enumeration.code import ORDERS as ORDERS
from memmodel.enumeration.code import Compute, PlannedOrder, code_of
from memmodel.enumeration.code import Values as Values
from memmodel.enumeration.matrix import Shape
from memmodel.enumeration.orders import linear_extensions

STAGES = ("program", "rf", "sync_fence", "co", "orders")
"""What is fixed stage by stage; the last are the total orders that the model itself chooses."""


@dataclass(frozen=True, slots=True)
class PlannedCheck:
    """A check at the stage that settles it.

    `runs`: what to compute first. `slot`: the slot of its body. `broken_by`: whether more or less of `co` can break it.
    `only_more_breaks`: neither less of `rf` nor less of `sync_fence` can break it.
    """

    check: Check
    slot: int
    runs: tuple[Compute, ...]
    broken_by: frozenset[int]
    only_more_breaks: bool

    def holds(self, values: Values, shape: Shape) -> bool:
        """Compute what the check needs, and decide it."""
        for run in self.runs:
            run(values, shape)
        return shape.passes(self.check.kind, values[self.slot]) is not self.check.negated


@dataclass(slots=True)
class PlanStage:
    """Axioms and flags settled here, and what else to compute here because later stages need it."""

    axioms: list[PlannedCheck] = field(default_factory=list)
    flags: list[PlannedCheck] = field(default_factory=list)
    prepare: tuple[Compute, ...] = ()

    def broken(self, values: Values, shape: Shape, asked: Callable[[PlannedCheck], bool]) -> frozenset[str]:
        """The axioms among those asked for that do not hold. What the others need is computed too: checks share it."""
        failed = []
        for test in self.axioms:
            if not asked(test):
                for run in test.runs:
                    run(values, shape)
            elif not test.holds(values, shape):
                failed.append(test.check.name)
        return frozenset(failed)

    def leave(self, values: Values, shape: Shape) -> None:
        """Compute what later stages need, once the axioms are decided."""
        for run in (*(run for test in self.flags for run in test.runs), *self.prepare):
            run(values, shape)


class Plan:
    """A compiled model, with these of its flags. `slots` numbers the base names that it uses.

    `least_fences`: only least sync_fence have to be tried. `orders`: the total orders that the model chooses.
    """

    def __init__(self, model: Model, flags: Sequence[str]) -> None:
        self.model = model
        self.stages = tuple(PlanStage() for _ in STAGES)
        self.least_fences = least_suffices(model, "sync_fence", flags)
        self._code = code = code_of(model.definitions)
        self.orders: list[PlannedOrder] = list(code.orders)
        checks = [*model.axioms, *(check for check in model.flags if check.name in flags)]
        self._arrange([(check, code.slot(check.body)) for check in checks])
        self.slots, self.is_set = dict(code.slots), dict(code.is_set)
        self.size = len(code.stage)

    def fill(self, values: Values, name: str, matrix: int) -> None:
        """Give a base relation its value, if the model uses it."""
        slot = self.slots.get(name)
        if slot is not None:
            values[slot] = matrix

    def choices(self, values: Values, shape: Shape, at: int = 0) -> Iterator[tuple[int, ...]]:
        """Every choice of the total orders, in their slots; once, without any, if the model chooses none."""
        if at == len(self.orders):
            yield ()
            return
        order = self.orders[at]
        for run in order.runs:
            run(values, shape)
        for matrix in linear_extensions(values[order.over], values[order.extends], shape.count):
            values[order.slot] = matrix
            for later in self.choices(values, shape, at + 1):
                yield (matrix, *later)

    # ---- stages --------------------------------------------------------------------------------------------

    def _arrange(self, bodies: Sequence[tuple[Check, int]]) -> None:
        """Put each check into its stage, cheapest first, with the instructions that nothing before it has run."""
        done, code = 0, self._code
        by_co, by_rf, by_fences = (effect_of_more(self.model, name) for name in ("co", "rf", "sync_fence"))
        inputs = [slot for order in self.orders for slot in (order.over, order.extends)]
        for number, stage in enumerate(self.stages):
            if number == ORDERS:
                for at, order in enumerate(self.orders):
                    needed = (code.needed(order.over) | code.needed(order.extends)) & ~done
                    self.orders[at] = replace(order, runs=code.runs(needed))
                    done |= needed
            for flags in (False, True):
                waiting = [(c, slot) for c, slot in bodies if code.stage[slot] == number and c.flag is flags]
                while waiting:
                    _, at = min(((code.needed(slot) & ~done).bit_count(), at) for at, (_, slot) in enumerate(waiting))
                    check, slot = waiting.pop(at)
                    runs = code.runs(code.needed(slot) & ~done)
                    done |= code.needed(slot)
                    only_more_breaks = by_rf[check.name] | by_fences[check.name] <= MORE
                    test = PlannedCheck(check, slot, runs, by_co[check.name], only_more_breaks)
                    (stage.flags if flags else stage.axioms).append(test)
            later = 0
            for slot in (
                *(slot for _, slot in bodies if code.stage[slot] > number),
                *(inputs if number < ORDERS else ()),
            ):
                later |= code.needed(slot)
            now = code.runnable_by(number, later & ~done)
            stage.prepare = code.runs(now)
            done |= now
