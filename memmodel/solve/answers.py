"""The Z3 engine: one encoding, one query per question, and every execution found is run again by plain evaluation.

In: LoweredTest, Model, Budget. Out: Answer, Outcomes. The order of questions: can a consistent execution satisfy the
condition; can one violate it; does any go beyond the bound; what can the flags relate; can a thread wait for ever.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from memmodel.answer import HANG, Answer, Budget, FinalValues, Finding, Observation, Outcomes, Times, Witness
from memmodel.base.labels import Access
from memmodel.base.logic import FALSE
from memmodel.cat.analysis import grounds_values
from memmodel.cat.flags import MIXED_SIZES, FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Position
from memmodel.errors import InternalError, TooLarge
from memmodel.events.elaborate import elaborate
from memmodel.litmus.syntax import Quantifier, Term, terms_of
from memmodel.program.lowered import LoweredTest
from memmodel.referee.finals import outcome_terms, spell
from memmodel.referee.reasons import CIRCULAR, beyond_the_bound, mixed_sizes, not_modelled
from memmodel.referee.replay import Replay, replay
from memmodel.refine.judge import Pair, Statement
from memmodel.refine.query import Query, encode
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.kept_queries import KeptQueries
from memmodel.solve.questions import Asker
from memmodel.solve.reading import read_execution
from memmodel.solve.solver import Solver

MAX_STATES = 10_000
"""More final states than this are not listed."""

_WIDER = 64
"""The number of larger bounds that are tried, to say which one is enough."""


def solve_answer(
    lowered: LoweredTest,
    model: Model,
    *,
    budget: Budget,
    bound: int,
    findings: bool,
    queries: KeptQueries | None = None,
    started: float | None = None,
) -> Answer:
    """What happens to the condition of a test, with a checked witness, or the axioms that forbid it.

    `queries`: the query of this test is taken from there, if it was kept. `started`: when the budget began to be spent;
    None: now.
    """
    now = time.monotonic()
    flags = None if findings else [check.name for check in model.flags if check.name == MIXED_SIZES]
    known = None if queries is None else queries.take(lowered, model, bound)
    if known is None:
        query = encode(lowered, model, bound, tuple(terms_of(lowered.test.condition)), flags)
    else:
        query = replace(known, flags=known.flag_statements(model, flags))
    encoded = time.monotonic()
    solver = Solver(query.graph.logic, budget, now if started is None else started)
    answer = Questions(lowered, model, query, solver, bound).answer(findings=findings)
    times = Times(encode=(encoded - now) * 1000, solve=(time.monotonic() - encoded) * 1000)
    return replace(answer, times=times, events=len(query.graph.events))


PairsAt = dict[frozenset[Position], dict[Pair, int]]
"""Pairs of events with their formulas, by the two places in the test that they come from, in either order."""

LARGE = 60
"""For a test with more events than this, the solver is first asked for any execution that ends. Then each question is
asked with the operations of objects in the order of the text before it is asked without. The solver learns sooner what
the model forbids while it has fewer choices."""


class Questions:
    """The questions asked about one query."""

    def __init__(self, lowered: LoweredTest, model: Model, query: Query, solver: Solver, bound: int) -> None:
        self.lowered = lowered
        self.model = model
        self.query = query
        self.solver = solver
        self.bound = bound
        self.asker = Asker(query, solver)
        self.settling: list[Replay] = []

    def begin(self) -> None:
        """Ask for any execution that ends, if the test is large."""
        if len(self.query.graph.events) > LARGE:
            self.asker.likely = [f for phases in self.query.base.mbarriers.phases.values() for f in phases.likely()]
            self.asker.check([self.query.ends])

    # ---- what happens --------------------------------------------------------------------------------------------

    def answer(self, *, findings: bool) -> Answer:
        query = self.query
        self.begin()
        yes = self.asker.check([query.ends, query.condition])
        witness = self.witness(True) if yes is Satisfiable.SAT else None
        core = self.asker.blamed()
        no = self.asker.check([query.ends, -query.condition])
        counter = self.witness(False) if no is Satisfiable.SAT else None
        observation, reason = self._observation(yes, no)
        blamed = self._blame(core) if observation is Observation.NEVER else ()
        if observation is Observation.NEVER and not blamed:
            reason = "no execution shows it, even without the model"
        if not findings:
            return Answer(observation, "z3", witness, counter, blamed, reason=reason)
        try:
            reported, unsearched = self._findings()
        except TooLarge as error:
            reported, unsearched = (), f"the list of findings is not complete: {error.message}"
        with_condition, unsearched = (
            self._with_condition(reported, unsearched) if yes is Satisfiable.SAT else ((), unsearched)
        )
        return Answer(
            observation, "z3", witness, counter, blamed, reported, reason, unsearched, with_condition=with_condition
        )

    def _observation(self, yes: Satisfiable, no: Satisfiable) -> tuple[Observation, str]:
        """What happens, by the answers for the condition (`yes`) and its negation (`no`); why it is undecided or
        vacuous."""
        mixed = self.mixed_sizes()
        if mixed:
            return Observation.UNDECIDED, mixed
        if yes is Satisfiable.SAT and no is Satisfiable.SAT:
            return Observation.SOMETIMES, ""
        if Satisfiable.UNKNOWN in (yes, no):
            return Observation.UNDECIDED, self.solver.reason
        stopped = self.why_not_followed()
        if stopped:
            return Observation.UNDECIDED, stopped
        if yes is Satisfiable.SAT:
            return Observation.ALWAYS, ""
        if no is Satisfiable.SAT:
            return Observation.NEVER, ""
        alone = self.asker.check([self.query.ends], axioms=())
        if alone is Satisfiable.UNSAT:
            return Observation.VACUOUS, "no execution reaches the end of every thread"
        return Observation.VACUOUS, "every execution that reaches the end breaks an axiom"

    def mixed_sizes(self) -> str:
        """Why the test is undecided if accesses of different sizes may race: the model says nothing of such
        programs."""
        flag = self.query.flags.get(MIXED_SIZES)
        if flag is None or flag.holds == FALSE:
            return ""
        result = self.asker.check([self.query.stops], raised=flag)
        return "" if result is Satisfiable.UNSAT else mixed_sizes() if result is Satisfiable.SAT else self.solver.reason

    def why_not_followed(self) -> str:
        """Why not every execution was followed to its end; "" if every one was."""
        for when in (self.query.cut, self.query.unmodelled):
            if when == FALSE:
                continue
            result = self.asker.check([when])
            if result is Satisfiable.UNKNOWN:
                return self.solver.reason
            if result is Satisfiable.SAT:
                return self._beyond()
        return ""

    def _beyond(self) -> str:
        """The limit that the execution just found exceeds: the loop bound, or what is modelled."""
        graph = self.query.graph
        for cut in graph.cut:
            if self.solver.holds(cut.when):
                return beyond_the_bound(cut.instruction, self.bound, self._sufficient_bound())
        for stop in graph.unmodelled:
            if self.solver.holds(stop.when):
                return not_modelled(stop.reason, stop.instruction)
        raise InternalError("an execution is stopped by nothing")

    def _sufficient_bound(self) -> int | None:
        """The least bound with which no loop is stopped, if one is known."""
        terms, grounded = tuple(terms_of(self.lowered.test.condition)), grounds_values(self.model)
        for wider in range(self.bound + 1, self.bound + _WIDER):
            try:
                if not elaborate(self.lowered, wider, terms, grounded=grounded).cut:
                    return wider
            except TooLarge:
                return None
        return None

    def _blame(self, blamed: list[str]) -> tuple[str, ...]:
        """The axioms without which the condition could happen: an unsatisfiable core, made minimal."""
        query = self.query
        for name in list(blamed):
            rest = [other for other in blamed if other != name]
            if self.asker.check([query.ends, query.condition], rest) is Satisfiable.UNSAT:
                blamed.remove(name)
        return tuple(blamed)

    # ---- executions ----------------------------------------------------------------------------------------------

    def replayed(self) -> Replay:
        """The execution just found, run again by plain evaluation.

        Raises InternalError if it is not consistent; TooLarge if its values support themselves.
        """
        judged = replay(self.lowered, self.model, read_execution(self.query, self.solver))
        if judged.failed:
            what = f"the execution that Z3 found is not one under {self.model.name}"
            raise self._differs_when_replayed(judged, f"{what} (violates {', '.join(judged.failed)})")
        return judged

    def _differs_when_replayed(self, judged: Replay, what: str) -> Exception:
        """The error for an execution that differs from what the solver found when it is run again."""
        return TooLarge(CIRCULAR) if judged.circular else InternalError(f"{self.lowered.test.name}: {what}")

    def witness(self, satisfies: bool) -> Witness:
        judged = self.replayed()
        if judged.satisfies is not satisfies or judged.waits:
            raise self._differs_when_replayed(judged, "the final state that Z3 found is another when replayed")
        self.settling.append(judged)
        return judged.witness

    # ---- findings ------------------------------------------------------------------------------------------------

    def _findings(self) -> tuple[tuple[Finding, ...], str]:
        """Every pair that a flag relates in some consistent execution, a hang, and why the list may not be complete.

        The executions that settle the question are looked at first, and of these first the one that is shown.
        """
        if self.lowered.test.quantifier is Quantifier.FORALL:
            self.settling.reverse()
        findings: list[Finding] = []
        for name, flag in self.query.flags.items():
            if not self._report_all(name, flag, findings):
                return tuple(findings), f"the list of findings is not complete: {self.solver.reason}"
        if self.query.waits != FALSE:
            asked, hang = self.hang()
            if asked is Satisfiable.UNKNOWN:
                return tuple(findings), f"whether it can hang is not known: {self.solver.reason}"
            findings += [hang] if hang is not None else []
        return tuple(findings), self.why_not_followed()

    def first(self, name: str) -> Finding | None:
        """What one flag reports in some execution; None if nothing was found."""
        flag = self.query.flags[name]
        if self.asker.check([self.query.stops], raised=flag) is not Satisfiable.SAT:
            return None
        judged, findings = self.replayed(), list[Finding]()
        if not flag.pairs:
            return Finding(name, judged.witness) if name in judged.flags else None
        self._take(name, judged, self._by_position(flag.pairs), findings)
        return next(iter(findings), None)

    def hang(self) -> tuple[Satisfiable, Finding | None]:
        """An execution in which some thread waits for ever and nothing is undefined."""
        undefined = [flag for name, flag in self.query.flags.items() if kind_of(name) is FindingKind.UNDEFINED]
        result = self.asker.check([self.query.stops, self.query.waits], quiet=undefined)
        return result, Finding(HANG, self.replayed().witness) if result is Satisfiable.SAT else None

    def _report_all(self, name: str, flag: Statement, findings: list[Finding]) -> bool:
        """Add what one flag reports, one finding for each pair of places in the test; False if the budget ran out."""
        left = self._by_position(flag.pairs)
        for judged in self.settling:
            self._take(name, judged, left, findings)
        while True:
            if flag.pairs:
                answer = self.asker.check_many([self.query.stops], flag, list(left.values()))
            else:
                answer = self.asker.check([self.query.stops], raised=flag)
            if answer is not Satisfiable.SAT:
                return answer is Satisfiable.UNSAT
            judged = self.replayed()
            if name not in judged.flags:
                raise self._differs_when_replayed(judged, f"flag {name} is not raised when replayed")
            if not flag.pairs:
                findings.append(Finding(name, judged.witness))
                return True
            if not self._take(name, judged, left, findings):
                raise self._differs_when_replayed(judged, f"flag {name} relates other events when replayed")

    @staticmethod
    def _take(name: str, judged: Replay, left: PairsAt, findings: list[Finding]) -> bool:
        """Add the pairs that a flag relates in an execution and that are still `left` to find; False if none is new."""
        known = len(findings)
        pairs = judged.flags.get(name, ())
        shown = {event.uid: event for event in judged.witness.events} if pairs else {}
        for a, b in pairs:
            if left.pop(frozenset((judged.positions[a], judged.positions[b])), None) is not None:
                first, second = shown[min(a, b)], shown[max(a, b)]
                findings.append(Finding(name, judged.witness, first, second, judged.rules.get(a, "")))
        return len(findings) > known

    def _by_position(self, pairs: dict[Pair, int]) -> PairsAt:
        pairs_at: PairsAt = {}
        for (a, b), formula in pairs.items():
            pairs_at.setdefault(frozenset((self._position(a), self._position(b))), {})[a, b] = formula
        return pairs_at

    def _position(self, uid: int) -> Position:
        """Where in the test an event comes from: copies of an instruction in unrolled loops come from one place."""
        event = self.query.graph.events[uid]
        if event.visit is None:
            assert event.point.cell is not None
            return ("initial", event.point.cell.instance)
        visit = self.query.graph.visits[event.visit]
        side = event.label.side if isinstance(event.label, Access) else None
        return (visit.thread, visit.step, event.part, side)

    def _with_condition(self, findings: Sequence[Finding], unsearched: str) -> tuple[tuple[str, ...], str]:
        """The flags that are also raised in some execution that satisfies the condition."""
        names = []
        for name in dict.fromkeys(finding.flag for finding in findings if finding.flag != HANG):
            raised = self.query.flags[name]
            answer = self.asker.check([self.query.ends, self.query.condition], raised=raised)
            if answer is Satisfiable.SAT:
                names.append(name)
            elif answer is Satisfiable.UNKNOWN:
                unsearched = unsearched or self.solver.reason
        return tuple(names), unsearched


def solve_outcomes(lowered: LoweredTest, model: Model, *, budget: Budget, bound: int) -> Outcomes:
    """All final states of a test under a model."""
    started = time.monotonic()
    terms: tuple[Term, ...] = outcome_terms(lowered)
    asked = (*terms, *terms_of(lowered.test.condition))
    query = encode(lowered, model, bound, asked, [check.name for check in model.flags if check.name == MIXED_SIZES])
    solver = Solver(query.graph.logic, budget, started)
    questions = Questions(lowered, model, query, solver, bound)
    logic = query.graph.logic
    values = [(spell(term, lowered), query.final.term(term)) for term in terms]
    reason = questions.why_not_followed() or questions.mixed_sizes()
    states: list[FinalValues] = []
    while len(states) < MAX_STATES:
        result = questions.asker.check([query.ends])
        if result is not Satisfiable.SAT:
            states.sort(key=lambda state: tuple(value for _, value in state.values))
            reason = reason if result is Satisfiable.UNSAT else solver.reason
            return Outcomes(tuple(states), "z3", not reason, reason)
        picked = []
        for name, value in values:
            number = value.number(solver.holds)
            picked.append((name, number, value.is_number(logic, number)))
        states.append(FinalValues(tuple((name, number) for name, number, _ in picked), solver.holds(query.condition)))
        logic.require(*(-formula for _, _, formula in picked))
    return Outcomes(tuple(states), "z3", False, f"more than {MAX_STATES} final states")
