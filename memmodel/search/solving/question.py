"""One question: of all programs of a layout and all their executions, which one do two models judge differently?

In: ModelPair, Vocabulary, ThreadLayout. Out: `Difference`s. A solver chooses the program together with the execution.
What it finds is a candidate: another execution may have the same outcome. So the program is judged by itself, under
both models, by the engines; if they say that the models agree on it, it is excluded, and the search goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from memmodel.base.logic import FALSE, TRUE
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import ExpressionGraph
from memmodel.cat.syntax import Check, Model
from memmodel.encode.algebra import FormulaValue
from memmodel.errors import BudgetSpent, TooLarge
from memmodel.isa.rows.ingredients import PLACED
from memmodel.output import few
from memmodel.search.differences import Difference, ModelPair
from memmodel.search.programs import Specimen
from memmodel.search.solving.folded import Folded, LaneAlgebra
from memmodel.search.solving.layouts import ThreadLayout
from memmodel.search.solving.orders import HiddenOrders
from memmodel.search.solving.superposed import Superposed
from memmodel.search.solving.wellformed import constrain
from memmodel.search.text import Draft, Spot
from memmodel.search.vocabulary import Vocabulary
from memmodel.solve.cadical import CaDiCaL
from memmodel.solve.formulas import Satisfiable

Slots = tuple[int, ...]
"""The slots of some events; NOWHERE for one that no slot has."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A difference: one of the models has it, the other has not. `flag` None: an outcome.

    `formula`: that an execution is such; `other`: that the other model has it.
    """

    flag: str | None
    formula: int
    other: int


@contextmanager
def _one_formula(layout: ThreadLayout) -> Iterator[None]:
    """Say of what is too large in here that it is about all programs of a layout, and what makes these fewer."""
    try:
        yield
    except TooLarge as error:
        number, threads = few(layout.number, "instruction"), few(len(layout.lengths), "thread")
        raise TooLarge(
            f"all programs of {number} in {threads}, taken together: {error.message}",
            hint="name fewer words, threads (--threads) or places (--places), or leave out --by solving",
        ) from error


class LayoutQuestion:
    """All programs of a layout and what models say of their executions, as one set of formulas.

    `allowed`: for each model, that it allows the execution; `raised`: for each model and flag, that it is raised, in
    parts: by the slots of the events for which it is; `ends`: that all threads end; `programs`: which programs are
    asked for, one after the other; `solver`: who is asked.
    """

    def __init__(
        self,
        models: Sequence[Model],
        flags: Sequence[str],
        vocabulary: Vocabulary,
        layout: ThreadLayout,
    ) -> None:
        with _one_formula(layout):
            self.program = Superposed(vocabulary, layout)
            self.folded = Folded(self.program)
            self.logic = self.folded.logic
            busy = constrain(self.folded)
            self.programs = (busy, TRUE) if vocabulary.idle else (busy,)
            self.allowed: list[int] = []
            self.raised: list[dict[str, dict[Slots, int]]] = []
            self._algebra = LaneAlgebra(self.logic, self._running(), self.folded.read, layout.number)
            self._evaluate(models, flags)
            self.ends = self.folded.graph.complete()
        self.solver = CaDiCaL(self.logic)

    def _running(self) -> list[int]:
        return [self.folded.runs.get(lane, FALSE) for lane in range(self.folded.count)]

    def _evaluate(self, models: Sequence[Model], flags: Sequence[str]) -> None:
        """Write the axioms and flags of the models as formulas; equal expressions are one formula."""
        graph = ExpressionGraph()
        evaluator: Evaluator[FormulaValue] = Evaluator(graph, self._algebra)
        for model in models:
            defined = graph.define(model.definitions)

            def fails(check: Check, defined: list[int] = defined) -> dict[Slots, int]:
                return self._by_slots(
                    self._algebra.failing(check.kind, evaluator.value(graph.node(check.body, defined)))
                )

            def holds(check: Check) -> int:
                formula = self.logic.disj(fails(check).values())
                return formula if check.negated else -formula

            self.allowed.append(self.logic.conj(holds(check) for check in model.axioms))
            self.raised.append(
                {
                    check.name: fails(check) if check.negated else {(): holds(check)}
                    for check in model.flags
                    if check.name in flags
                }
            )

    def _by_slots(self, failing: Mapping[tuple[int, ...], int]) -> dict[Slots, int]:
        """Formulas about lanes, joined where these are of the same slots."""
        parts: dict[Slots, list[int]] = {}
        for lanes, formula in failing.items():
            parts.setdefault(tuple(self.folded.slot_of[lane] for lane in lanes), []).append(formula)
        return {slots: self.logic.disj(formulas) for slots, formulas in parts.items()}

    def satisfiable(self, *formulas: int) -> bool:
        """True if some execution of some program is such."""
        return self.solver.check(formulas) is Satisfiable.SAT

    def is_settled(self) -> None:
        """A `let rec` that is deeper than it was unfolded would have been cut short. Raises BudgetSpent."""
        if self._algebra.unsettled != FALSE and self.satisfiable(self.ends, self._algebra.unsettled):
            raise BudgetSpent("a `let rec` of a model goes deeper than the search unfolds it")

    def candidate(self) -> tuple[Specimen, list[int]]:
        """The program of the solver's answer, and what it consists of."""
        holds, words = self.solver.holds, self.program.vocabulary
        threads: list[list[Spot]] = [[] for _ in self.program.layout.lengths]
        literals: list[int] = []
        homes: dict[tuple[str, int], int] = {}
        accesses = [0] * len(threads)
        for slot, options in enumerate(self.program.options):
            number = next(n for n in range(len(options)) if holds(self.folded.holds(slot, n)))
            option = options[number]
            form = next(n for n in range(len(option.forms)) if holds(self.folded.form(slot, number, n)))
            literals.append(self.folded.form(slot, number, form))
            thread = self.program.slots[slot].thread
            use = None if option.access is None else (option.access, tuple(site.number for site in option.sites))
            index = accesses[thread] - (use is None)
            accesses[thread] += use is not None
            threads[thread].append(Spot(slot, index, use, (option.forms[form],)))
            homes |= {(s.kind, s.number): s.cta for s in option.sites if s.kind in PLACED and s.cta is not None}
        seats = self.program.layout.seats
        draft = Draft(tuple(map(tuple, threads)), seats, tuple(sorted(homes.items())))
        return Specimen(draft, words, (0,) * self.program.layout.number, seats), literals


class ProgramQuestion(LayoutQuestion):
    """All programs of a layout on which two models differ."""

    def __init__(self, pair: ModelPair, vocabulary: Vocabulary, layout: ThreadLayout) -> None:
        super().__init__(pair.models, pair.flags, vocabulary, layout)
        self.pair = pair
        self.goals = [goal for goal in self._goals() if goal.formula != FALSE]
        self.orders = HiddenOrders(self.folded)
        self._last = self.logic.size

    def _goals(self) -> Iterator[Goal]:
        """What may differ, in the order in which it is looked for."""
        logic, allowed = self.logic, self.allowed
        for mine, other in ((0, 1), (1, 0)):
            yield Goal(None, logic.both(allowed[mine], -allowed[other]), allowed[other])
        for flag in self.pair.flags:
            shows = [logic.both(allowed[n], logic.disj(self.raised[n][flag].values())) for n in (0, 1)]
            for mine, other in ((0, 1), (1, 0)):
                yield Goal(flag, logic.both(shows[mine], -shows[other]), shows[other])

    # ---- asking ------------------------------------------------------------------------------------------------------

    def differences(self) -> list[Difference]:
        """The differences of the first program that has some; none: the layout has no such program. Raises BudgetSpent.

        Programs without an idle instruction come first. Findings are compared where no outcome differs. Mostly there is
        neither in any program, so this is asked first, as one question: it takes half of the time of the four.
        """
        if not self._some_may_differ():
            self.is_settled()
            return []
        outcomes = [goal for goal in self.goals if goal.flag is None]
        findings = [goal for goal in self.goals if goal.flag is not None]
        for programs, goals in product(self.programs, (outcomes, findings)):
            while goals:
                if not self.satisfiable(programs, self.ends, self.logic.disj(goal.formula for goal in goals)):
                    break
                goal = goals[self.solver.true_one([goal.formula for goal in goals])]
                if self._other_order(goal):
                    continue
                specimen, literals = self.candidate()
                if goal.flag is None or not self._shows_it_too(goal, literals):
                    differences = list(self._judged(specimen))
                    if differences:
                        return differences
                self.logic.require(*(-literal for literal in literals))
        self.is_settled()
        return []

    def _some_may_differ(self) -> bool:
        """False if no execution of any program is a difference, with idle instructions or without."""
        return self.satisfiable(self.programs[-1], self.ends, self.logic.disj(goal.formula for goal in self.goals))

    def _shows_it_too(self, goal: Goal, program: list[int]) -> bool:
        """True if the other model has the finding in another execution of the program."""
        return self.satisfiable(*program, self.ends, goal.other)

    def _other_order(self, goal: Goal) -> bool:
        """True if the other model has it, too, where the candidate has another order of its writes and fences.

        Then no program of which it has it with this order of the slots is a candidate any more.
        """
        holds, orders = self.solver.holds, self.orders
        fixed = [
            variable if holds(variable) else -variable
            for variable, name in self.logic.variables()
            if variable not in orders.variables and not name.startswith("ladder") and variable <= self._last
        ]
        kept = self.solver.valuation()
        if not self.satisfiable(*fixed, self.ends, goal.other):
            self.solver.restore(kept)
            return False
        values, possible = orders.as_in(holds)
        self.logic.require(-goal.formula, -possible, -self.logic.replaced(goal.other, values))
        return True

    def _judged(self, specimen: Specimen) -> Iterator[Difference]:
        """The differences of the models on one program, from the engines."""
        outcomes = [specimen.outcomes(model) for model in self.pair.models]
        for mine, other in ((0, 1), (1, 0)):
            only = outcomes[mine] - outcomes[other]
            if only:
                condition = " /\\ ".join(f"{name} == {value}" for name, value in min(only)) or "true"
                yield self.pair.shown(specimen, condition, mine, None, 1)
        if self.pair.flags:
            flags = [specimen.flags(model) & set(self.pair.flags) for model in self.pair.models]
            for mine, other in ((0, 1), (1, 0)):
                for flag in sorted(flags[mine] - flags[other]):
                    yield self.pair.shown(specimen, "true", mine, flag, 1)
