"""The Z3 engine: one query per question, and every execution found is run again by plain evaluation.

In: LitmusTest, Model, Budget. Out: Answer, Outcomes. The order of questions: can a consistent execution satisfy the
condition; can one violate it; if neither, does any execution reach the end; what can the flags relate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from memmodel.answer import Answer, Budget, Observation, Outcome, Outcomes, Race, Times, Witness
from memmodel.cat.analysis import closed_only
from memmodel.cat.syntax import Model
from memmodel.encode.base import Base
from memmodel.encode.choices import Choices
from memmodel.encode.condition import Final
from memmodel.encode.model import ModelFormulas
from memmodel.encode.relations import Algebra
from memmodel.enumeration import Replay, outcome_terms, replay, spell
from memmodel.errors import InternalError
from memmodel.events.elaborate import elaborate
from memmodel.events.graph import EventGraph
from memmodel.litmus.syntax import LitmusTest
from memmodel.solve.door import Door, Found
from memmodel.solve.hang import find_hang, may_wait
from memmodel.solve.reading import Reading, read_execution

MAX_STATES = 10_000
"""More final states than this are not listed."""


@dataclass(frozen=True, slots=True)
class Query:
    """A test and a model as formulas: `axioms` by name, the condition, and the flags' cells."""

    graph: EventGraph
    choices: Choices
    final: Final
    condition: int
    axioms: dict[str, int]
    flags: dict[str, Flag]


@dataclass(frozen=True, slots=True)
class Flag:
    """A check that only reports: when it is raised, and for `flag ~empty` the pairs (or events) that it speaks of."""

    raised: int
    pairs: dict[tuple[int, int], int]


def encode(test: LitmusTest, model: Model, bound: int) -> Query:
    """Formulas of a test under a model. Raises InputError, TooLarge."""
    graph = elaborate(test, bound)
    algebra = Algebra(graph.logic, len(graph.events))
    choices = Choices(graph, algebra, transitive_co=closed_only(model, "co"))
    formulas = ModelFormulas(model, Base(graph, algebra, choices))
    final = Final(graph, choices)
    axioms = {check.name: formulas.holds(check) for check in model.axioms}
    flags = {
        check.name: Flag(
            formulas.holds(check), formulas.cells(check.body) if check.negated and check.test == "empty" else {}
        )
        for check in model.flags
    }
    return Query(graph, choices, final, final.formula(test.condition), axioms, flags)


def solve_answer(test: LitmusTest, model: Model, *, budget: Budget, bound: int, races: bool) -> Answer:
    """What happens to the condition of a test, with a checked witness, or the axioms that forbid it."""
    started = time.perf_counter()
    query = encode(test, model, bound)
    encoded = time.perf_counter()
    door = Door(query.graph.logic, budget)
    answer = _Questions(test, model, query, door, bound).answer(races)
    times = Times(encode=(encoded - started) * 1000, solve=(time.perf_counter() - encoded) * 1000)
    return Answer(
        observation=answer.observation,
        engine="z3",
        witness=answer.witness,
        counter=answer.counter,
        axioms=answer.axioms,
        races=answer.races,
        flags=answer.flags,
        bound=bound if query.graph.bounded else None,
        reason=answer.reason,
        times=times,
        events=len(query.graph.events),
        hang=answer.hang,
    )


class _Questions:
    """The questions asked about one query."""

    def __init__(self, test: LitmusTest, model: Model, query: Query, door: Door, bound: int) -> None:
        self.test = test
        self.model = model
        self.query = query
        self.door = door
        self.bound = bound
        self.consistent = list(query.axioms.values())

    def answer(self, races: bool) -> Answer:
        query = self.query
        yes = self.door.check([*self.consistent, query.condition])
        witness = self._witness(True) if yes is Found.SAT else None
        blamed = self._blame() if yes is Found.UNSAT else ()
        no = self.door.check([*self.consistent, -query.condition])
        counter = self._witness(False) if no is Found.SAT else None
        reason = ""
        if yes is Found.SAT and no is not Found.UNKNOWN:
            observation = Observation.SOMETIMES if no is Found.SAT else Observation.ALWAYS
        elif yes is Found.UNSAT and no is Found.SAT:
            observation = Observation.NEVER
        elif yes is Found.UNSAT and no is Found.UNSAT:
            observation = Observation.VACUOUS
            alone = self.door.check()
            reason = (
                "no execution reaches the end of every thread"
                if alone is Found.UNSAT
                else "every execution that reaches the end breaks an axiom"
            )
        else:
            observation, reason = Observation.UNDECIDED, self.door.reason
        if yes is Found.UNSAT and not blamed and observation is Observation.NEVER:
            reason = "no execution shows it, even without the model"
        if not races or observation is Observation.UNDECIDED:
            return Answer(observation, "z3", witness, counter, blamed, reason=reason)
        found, raised, complete = self._races()
        if not complete:
            reason = "the list of flagged pairs is not complete: the budget ran out"
        hang = find_hang(self.test, self.model, self.door.budget, self.bound) if may_wait(self.test) else ()
        if hang is None:
            reason = "whether it can hang is not known: the budget ran out"
        elif hang:
            raised = (*raised, "hang")
        return Answer(observation, "z3", witness, counter, blamed, found, raised, reason=reason, hang=hang or ())

    def _blame(self) -> tuple[str, ...]:
        """The axioms without which the condition could happen: an unsatisfiable core, made minimal."""
        query = self.query
        core = set(self.door.core)
        blamed = [name for name, formula in query.axioms.items() if formula in core]
        for name in list(blamed):
            rest = [query.axioms[other] for other in blamed if other != name]
            if self.door.check([*rest, query.condition]) is Found.UNSAT:
                blamed.remove(name)
        return tuple(blamed)

    def _replayed(self) -> tuple[Reading, Replay]:
        reading = read_execution(self.query.graph, self.query.choices, self.door)
        return reading, replay(self.test, self.model, reading.choice)

    def _witness(self, satisfies: bool) -> Witness:
        """The execution just found, run again by plain evaluation. InternalError if the two disagree."""
        _, again = self._replayed()
        if again.failed or again.satisfies is not satisfies:
            raise InternalError(
                f"{self.test.name}: the execution that Z3 found is not one under {self.model.name}"
                f" (violates {', '.join(again.failed) or 'nothing'}; condition {again.satisfies})"
            )
        return again.witness

    def _races(self) -> tuple[tuple[Race, ...], tuple[str, ...], bool]:
        """Every pair that a flag relates in some consistent execution, the flags raised, and whether that is all."""
        races: list[Race] = []
        raised: list[str] = []
        for name, flag in self.query.flags.items():
            left = _by_position(self.query.graph, flag.pairs)
            more = flag.raised
            while True:
                found = self.door.check([*self.consistent, more])
                if found is Found.UNKNOWN:
                    return tuple(races), tuple(raised), False
                if found is Found.UNSAT:
                    break
                if name not in raised:
                    raised.append(name)
                if not left:
                    break
                reading, again = self._replayed()
                shown = dict(zip(sorted(reading.names), again.witness.events, strict=True))
                for position, pairs in list(left.items()):
                    pair = next((pair for pair, formula in pairs.items() if self.door.holds(formula)), None)
                    if pair is not None:
                        first, second = sorted(pair)
                        races.append(Race(name, shown[first], shown[second]))
                        del left[position]
                more = self.query.graph.logic.disj(formula for pairs in left.values() for formula in pairs.values())
        return tuple(races), tuple(raised), True


def _by_position(graph: EventGraph, pairs: dict[tuple[int, int], int]) -> dict[object, dict[tuple[int, int], int]]:
    """Pairs of events, sorted by the two places in the test that they come from, in either order."""
    found: dict[object, dict[tuple[int, int], int]] = {}
    for (a, b), formula in pairs.items():
        places = frozenset(_position(graph, uid) for uid in (a, b))
        found.setdefault(places, {})[a, b] = formula
    return found


def _position(graph: EventGraph, uid: int) -> tuple[object, ...]:
    """Where in the test an event comes from: copies of an instruction in unrolled loops come from one place."""
    event = graph.events[uid]
    if event.instruction is None:
        return (uid,)
    part = 0 if event.issue is None else event.uid - event.issue
    return (event.thread, event.instruction.span.start, event.tags, part)


def raised_with_condition(
    test: LitmusTest, model: Model, names: tuple[str, ...], *, budget: Budget, bound: int
) -> tuple[str, ...]:
    """Which of these flags are raised in some consistent execution that satisfies the condition. Raises TooLarge."""
    query = encode(test, model, bound)
    door = Door(query.graph.logic, budget)
    asked = [*query.axioms.values(), query.condition]
    return tuple(name for name in names if door.check([*asked, query.flags[name].raised]) is Found.SAT)


def solve_outcomes(test: LitmusTest, model: Model, *, budget: Budget, bound: int) -> Outcomes:
    """All final states of a test under a model."""
    query = encode(test, model, bound)
    door = Door(query.graph.logic, budget)
    logic = query.graph.logic
    values = [(spell(term), query.final.term(term)) for term in outcome_terms(test)]
    consistent = list(query.axioms.values())
    states: list[Outcome] = []
    while len(states) < MAX_STATES:
        found = door.check(consistent)
        if found is not Found.SAT:
            complete = found is Found.UNSAT
            return Outcomes(
                tuple(sorted(states, key=lambda s: s.values)),
                "z3",
                complete,
                bound if query.graph.bounded else None,
                "" if complete else door.reason,
            )
        picked = []
        for name, value in values:
            number = value.number(door.holds)
            picked.append((name, number, value.is_number(logic, number)))
        states.append(Outcome(tuple((name, number) for name, number, _ in picked), door.holds(query.condition)))
        logic.require(*(-formula for _, _, formula in picked))
    return Outcomes(tuple(states), "z3", False, None, f"more than {MAX_STATES} final states")
