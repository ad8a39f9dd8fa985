"""One question to the solver, asked until its answer is an execution that the model accepts.

In: Query, Solver. Out: `Asker`. A candidate of the solver is judged by the model. If the model refuses it, the solver
learns why, and is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.logic import FALSE
from memmodel.refine.judge import Pair, Statement
from memmodel.refine.query import Query
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.solver import Solver

MANY = 4
"""If a flag may report at least this many places of a test, executions that show many at once are looked for."""

TRIES = 8
"""The number of times that such an execution is looked for."""


@dataclass(slots=True)
class Asker:
    """Questions about one query. `rounds`: how many candidates were looked at.

    `axioms`: those that hold where a question names no others; None: all. `likely`: choices with which each question is
    asked first. What the solver learns from that is true without them.
    """

    query: Query
    solver: Solver
    rounds: int = 0
    likely: Sequence[int] = ()
    axioms: Sequence[str] | None = None

    def check(
        self,
        formulas: Sequence[int],
        axioms: Sequence[str] | None = None,
        raised: Statement | None = None,
        pairs: dict[Pair, int] | None = None,
        quiet: Sequence[Statement] = (),
    ) -> Satisfiable:
        """SAT if there is an execution in which these formulas and axioms (None: those of the asker) hold.

        `raised`: a flag that the execution raises, with one of these `pairs` if the flag has pairs. `quiet`: flags that
        it does not raise.
        """
        logic = self.query.graph.logic
        judged = self._statements(axioms)
        assumed = [*formulas, *(statement.holds for statement in judged), *(-statement.holds for statement in quiet)]
        wanted = pairs if pairs is not None else raised.pairs if raised is not None else {}
        if raised is not None:
            assumed.append(logic.disj(wanted.values()) if raised.pairs else raised.holds)
        if self.likely and self._accepted([*assumed, *self.likely], judged, raised, [wanted], quiet) is Satisfiable.SAT:
            return Satisfiable.SAT
        return self._accepted(assumed, judged, raised, [wanted], quiet)

    def _statements(self, axioms: Sequence[str] | None) -> list[Statement]:
        """The statements of some axioms; None: of the axioms of this asker."""
        names = self.axioms if axioms is None else axioms
        return list(self.query.axioms.values()) if names is None else [self.query.axioms[name] for name in names]

    def _accepted(
        self,
        assumed: Sequence[int],
        judged: Sequence[Statement],
        raised: Statement | None,
        groups: Sequence[dict[Pair, int]],
        quiet: Sequence[Statement] = (),
    ) -> Satisfiable:
        """Ask until a candidate passes all checks, and shows a pair of each group of `raised`."""
        judge = self.query.judge
        while True:
            result = self.solver.check(assumed)
            if result is not Satisfiable.SAT:
                return result
            if not self.query.base.communication.accepts(self.solver.holds):
                continue
            if not self._is_open(judged, raised, quiet):
                return result
            self.rounds += 1
            view = judge.view(self.solver.holds)
            accepted = True
            for statement in judged:
                accepted &= judge.accepts(view, statement, bad=statement.check.negated)
            for statement in quiet:
                accepted &= judge.accepts(view, statement, bad=not statement.check.negated)
            if accepted and raised is not None:
                if raised.pairs:
                    for group in groups:
                        accepted &= judge.shows(view, raised, group)
                else:
                    accepted = judge.accepts(view, raised, bad=raised.check.negated)
            if accepted:
                return result

    def check_many(self, formulas: Sequence[int], raised: Statement, groups: Sequence[dict[Pair, int]]) -> Satisfiable:
        """An execution that raises a flag with a pair of some group, and with pairs of many groups if that is quick."""
        result = self.check(formulas, raised=raised, pairs={pair: f for group in groups for pair, f in group.items()})
        if result is not Satisfiable.SAT or len(groups) < MANY:
            return result
        kept = self.solver.valuation()
        judged = self._statements(None)
        logic = self.query.graph.logic
        wanted = {logic.disj(group.values()): group for group in groups}
        for _ in range(TRIES):
            assumed = [*formulas, *(statement.holds for statement in judged), *wanted]
            more = self._accepted(assumed, judged, raised, list(wanted.values()))
            if more is Satisfiable.SAT:
                return result
            core = [formula for formula in self.solver.core if formula in wanted]
            for formula in core[: (len(core) + 1) // 2]:
                del wanted[formula]
            if more is Satisfiable.UNKNOWN or not core or len(wanted) < 2:
                break
        self.solver.restore(kept)
        return result

    def blamed(self) -> list[str]:
        """The axioms that made the last question unsatisfiable, by the core of the solver, which may not be minimal."""
        core = set(self.solver.core)
        return [
            name
            for name, statement in self.query.axioms.items()
            if statement.holds in core and statement.holds != FALSE
        ]

    @staticmethod
    def _is_open(judged: Sequence[Statement], raised: Statement | None, quiet: Sequence[Statement]) -> bool:
        return any(statement.is_open for statement in (*judged, *quiet)) or (raised is not None and raised.is_open)
