"""One question to the solver, asked until its answer is an execution that the model accepts.

In: Query, Solver. Out: `Asker`. What the model says of a candidate is looked at when there is one; if it says
otherwise, the solver learns why, and is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.logic import FALSE
from memmodel.encode.query import Query
from memmodel.refine.judge import Pair, Statement
from memmodel.solve.solver import Found, Solver


@dataclass(slots=True)
class Asker:
    """Questions about one query. `rounds`: how many candidates were looked at."""

    query: Query
    solver: Solver
    rounds: int = 0

    def check(
        self,
        formulas: Sequence[int],
        axioms: Sequence[str] | None = None,
        raised: Statement | None = None,
        pairs: dict[Pair, int] | None = None,
        quiet: Sequence[Statement] = (),
    ) -> Found:
        """Is there an execution in which these formulas and axioms (None: all) hold?

        `raised`: a flag that it raises, by one of these `pairs` if the flag has pairs. `quiet`: flags that it does not.
        """
        query, logic = self.query, self.query.graph.logic
        judged = [query.axioms[name] for name in (query.axioms if axioms is None else axioms)]
        assumed = [*formulas, *(one.holds for one in judged), *(-one.holds for one in quiet)]
        wanted = pairs if pairs is not None else raised.pairs if raised is not None else {}
        if raised is not None:
            assumed.append(logic.disj(wanted.values()) if raised.pairs else raised.holds)
        while True:
            found = self.solver.check(assumed)
            if found is not Found.SAT or not self._is_open(judged, raised, quiet):
                return found
            self.rounds += 1
            view = query.judge.view(self.solver.holds)
            accepted = True
            for one in judged:
                accepted &= query.judge.accepts(view, one, bad=one.check.negated)
            for one in quiet:
                accepted &= query.judge.accepts(view, one, bad=not one.check.negated)
            if accepted and raised is not None:
                if raised.pairs:
                    accepted = query.judge.shows(view, raised, wanted)
                else:
                    accepted = query.judge.accepts(view, raised, bad=raised.check.negated)
            if accepted:
                return found

    def blamed(self) -> list[str]:
        """The axioms that the last question could not do without, as far as the solver says."""
        core = set(self.solver.core)
        return [name for name, one in self.query.axioms.items() if one.holds in core and one.holds != FALSE]

    @staticmethod
    def _is_open(judged: Sequence[Statement], raised: Statement | None, quiet: Sequence[Statement]) -> bool:
        return any(one.open for one in (*judged, *quiet)) or (raised is not None and raised.open)
