"""One execution that shows something that is looked for: the first that is found, and nothing else of the test.

In: LoweredTest, Model, Sought, Budget. Out: `Seen`, or None. None says nothing: the budget may have run out. That there
is no such execution is the answer of `solve_answer` and `solve_outcomes`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from memmodel.answer import HANG, Budget, Finding, Witness
from memmodel.base.logic import FALSE
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Check, Model
from memmodel.litmus.syntax import terms_of
from memmodel.program.lowered import LoweredTest
from memmodel.referee.finals import outcome_terms, spell
from memmodel.refine.query import Query, encode
from memmodel.solve.answers import Questions
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.kept_queries import KeptQueries
from memmodel.solve.solver import Solver

State = tuple[tuple[str, int], ...]
"""Values of terms, as `FinalValues` has them."""

OUTCOME = ""
"""What stands for the condition, and for a final state that is not known, among the names of flags."""


@dataclass(frozen=True, slots=True)
class Sought:
    """`names`: of flags, HANG and OUTCOME, in the order in which they are looked for.

    OUTCOME: an execution that ends, in which the condition is `satisfied`; where `known` is given, one that ends in
    another state than these.
    """

    names: tuple[str, ...]
    satisfied: bool = True
    known: frozenset[State] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found. `finding`: of a flag; None: the outcome."""

    name: str
    witness: Witness
    finding: Finding | None = None


def solve_seek(
    lowered: LoweredTest,
    model: Model,
    sought: Sought,
    *,
    budget: Budget,
    bound: int,
    queries: KeptQueries | None = None,
) -> Seen | None:
    """An execution that shows one of the things that are looked for, the first of them if several can be.

    `queries`: keeps the query if there is none, and if it asks for no terms but those of the condition.
    """
    started = time.monotonic()
    terms = (*(outcome_terms(lowered) if sought.known is not None else ()), *terms_of(lowered.test.condition))
    query = encode(lowered, model, bound, terms, ())
    asked = Questions(lowered, model, query, Solver(query.graph.logic, budget, started), bound)
    for name in sought.names:
        seen = _outcome(asked, sought) if name == OUTCOME else _flagged(asked, name)
        if seen is not None:
            return seen
    if queries is not None and sought.known is None:
        queries.keep(lowered, model, bound, query)
    return None


def _flagged(asked: Questions, name: str) -> Seen | None:
    """A flag is made a formula of when it is asked for."""
    if name == HANG:
        return _hang(asked)
    wanted = [check for check in asked.model.flags if check.name == name]
    _state(asked, wanted)
    finding = asked.first(name) if wanted else None
    return None if finding is None else Seen(name, finding.witness, finding)


def _state(asked: Questions, flags: list[Check]) -> None:
    """Make formulas of flags."""
    asked.query.flags.update(asked.query.flag_statements(asked.model, [check.name for check in flags]))


def _hang(asked: Questions) -> Seen | None:
    """Nothing undefined hangs; that is looked at in the first execution that waits for ever, and only then said."""
    query = asked.query
    if query.waits == FALSE or asked.asker.check([query.stops, query.waits]) is not Satisfiable.SAT:
        return None
    judged = asked.replayed()
    if not any(kind_of(flag) is FindingKind.UNDEFINED for flag in judged.flags):
        finding = Finding(HANG, judged.witness)
        return Seen(HANG, judged.witness, finding)
    _state(asked, [flag for flag in asked.model.flags if kind_of(flag.name) is FindingKind.UNDEFINED])
    hang = asked.hang()[1]
    return None if hang is None else Seen(HANG, hang.witness, hang)


def _outcome(asked: Questions, sought: Sought) -> Seen | None:
    query = asked.query
    if sought.known is None:
        wanted = query.condition if sought.satisfied else -query.condition
        result = asked.asker.check([query.ends, wanted])
        return Seen(OUTCOME, asked.witness(sought.satisfied)) if result is Satisfiable.SAT else None
    other = _another(asked.lowered, query, sought.known)
    if asked.asker.check([query.ends, *other]) is not Satisfiable.SAT:
        return None
    return Seen(OUTCOME, asked.replayed().witness)


def _another(lowered: LoweredTest, query: Query, known: frozenset[State]) -> list[int]:
    """Clauses: the final state is none of the known ones."""
    logic = query.graph.logic
    values = {spell(term, lowered): query.final.term(term) for term in outcome_terms(lowered)}
    return [logic.disj(-values[name].is_number(logic, number) for name, number in state) for state in known]
