"""The enumeration engine's answers.

In: LitmusTest, Model, Budget, loop bound. Out: Answer, or Outcomes. Every witness is judged once more by plain
evaluation before it leaves; a disagreement is an InternalError, never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from time import perf_counter

from memmodel.answer import Answer, Budget, Observation, Outcome, Outcomes, Race, Times, Witness
from memmodel.cat.syntax import Model
from memmodel.enumeration.evaluate import Evaluation, evaluate
from memmodel.enumeration.execution import Execution, bits
from memmodel.enumeration.finals import (
    Finals,
    Key,
    condition_question,
    outcome_question,
    outcome_terms,
    spell,
)
from memmodel.enumeration.hangs import find_hang
from memmodel.enumeration.meter import BudgetSpent, Meter
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.search import Candidate, Findings, Search, smallest_blame
from memmodel.enumeration.skeleton import with_bad
from memmodel.enumeration.witness import make_witness, shown_event
from memmodel.errors import InternalError
from memmodel.isa.memory import Location
from memmodel.litmus.syntax import LitmusTest

ENGINE = "enumerate"


def enumerate_answer(test: LitmusTest, model: Model, *, budget: Budget, bound: int, races: bool) -> Answer:
    """What happens to the test's condition under the model; with `races`, what its flags report as well.

    Raises InputError for a condition that names no location. When the budget runs out, what was settled before stands:
    "sometimes" is an answer even if not everything was searched.
    """
    started = perf_counter()
    meter = Meter(budget)
    plan = _plan(model, races and bool(model.flags))
    try:
        problem = prepare(test, bound, meter, waits=races)
    except BudgetSpent as spent:
        return Answer(Observation.UNDECIDED, ENGINE, reason=str(spent), times=_times(started, perf_counter()))
    ready = perf_counter()
    search = Search(problem, plan, condition_question(problem), (True, False), meter)
    reason = ""
    try:
        search.run()
    except BudgetSpent as spent:
        reason = str(spent)
    complete, unsearched = not reason, ""
    hang: tuple[str, ...] = ()
    try:
        hang = find_hang(problem, _plan(model, False), meter)
    except BudgetSpent as spent:
        unsearched = f"not all hangs were looked for: {spent}"
    found = search.findings
    observation = _observation(found.found, complete)
    if observation is Observation.VACUOUS:
        reason = "no consistent execution reaches the end of every thread"
    if complete and unsearched:
        reason = f"{reason}; {unsearched}" if reason else unsearched
    answer = Answer(
        observation,
        ENGINE,
        witness=_witness(problem, model, found.found.get(True), True),
        counter=_witness(problem, model, found.found.get(False), False),
        axioms=smallest_blame(found.blamed) if observation is Observation.NEVER else (),
        races=_races(problem, found),
        flags=(*found.raised, *(("hang",) if hang else ())),
        bound=bound if problem.cut else None,
        reason=reason,
        events=max((len(one.skeleton.events) for one in found.found.values()), default=0),
        hang=hang,
    )
    return replace(answer, times=_times(started, ready))


def enumerate_outcomes(test: LitmusTest, model: Model, *, budget: Budget, bound: int) -> Outcomes:
    """All final states: the terms of the condition and of `locations`, or every register and location without these."""
    meter = Meter(budget)
    try:
        problem = prepare(test, bound, meter)
    except BudgetSpent as spent:
        return Outcomes((), ENGINE, complete=False, reason=str(spent))
    terms = outcome_terms(test)
    search = Search(problem, _plan(model, False), outcome_question(problem, terms), None, meter)
    reason = ""
    try:
        search.run()
    except BudgetSpent as spent:
        reason = str(spent)
    names = [spell(term) for term in terms]
    finals = Finals(problem, terms)
    states = []
    for key, candidate in search.findings.found.items():
        if isinstance(key, bool):
            raise InternalError("an outcome without values")
        registers = [trace.registers for trace in candidate.traces]
        satisfies = finals.holds(test.condition, registers, candidate.memory)
        states.append(Outcome(tuple(zip(names, key, strict=True)), satisfies))
    states.sort(key=lambda state: tuple(value for _, value in state.values))
    return Outcomes(tuple(states), ENGINE, not reason, bound if problem.cut else None, reason)


@lru_cache(maxsize=16)
def _plan_of(key: int, flags: bool, holder: _Held) -> Plan:
    return Plan(holder.model, flags)


class _Held:
    """A model as a cache key by identity: hashing a whole model would cost more than most tests."""

    __slots__ = ("model",)

    def __init__(self, model: Model) -> None:
        self.model = model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.model is self.model

    def __hash__(self) -> int:
        return id(self.model)


def _plan(model: Model, flags: bool) -> Plan:
    return _plan_of(id(model), flags, _Held(model))


def _observation(found: Mapping[Key, Candidate], complete: bool) -> Observation:
    if True in found and False in found:
        return Observation.SOMETIMES
    if not complete:
        return Observation.UNDECIDED
    if True in found:
        return Observation.ALWAYS
    return Observation.NEVER if False in found else Observation.VACUOUS


def _times(started: float, ready: float) -> Times:
    return Times(encode=1000 * (ready - started), solve=1000 * (perf_counter() - ready))


def execution_of(problem: Problem, candidate: Candidate) -> Execution:
    """The concrete execution that a candidate stands for."""
    skeleton = candidate.skeleton
    values: list[int | None] = [problem.memory.initial[where] for where in problem.locations]
    for trace in candidate.traces:
        values.extend(trace.values)
    bad = candidate.variant.bad
    events = tuple(replace(e, value=v) for e, v in zip(with_bad(skeleton.events, bad), values, strict=True))
    chosen = {
        "rf": skeleton.shape.unpack(candidate.rf),
        "co": skeleton.shape.unpack(candidate.co),
        "sync_fence": skeleton.shape.unpack(candidate.sync_fence),
        **candidate.variant.chosen,
    }
    return Execution(events, {**skeleton.sets, "MBBAD": bad}, {**skeleton.relations, **chosen})


def final_memory(execution: Execution, asked: Mapping[Location, int]) -> dict[Location, int]:
    """Every location's value at the end: as `asked`, else that of its last co-maximal write."""
    co = execution.relations["co"]
    memory: dict[Location, int] = {}
    for number in bits(execution.sets.get("W", 0)):
        event = execution.events[number]
        assert event.location is not None and event.value is not None
        if not co[number]:
            memory[event.location] = event.value
    return {**memory, **asked}


def judge(problem: Problem, model: Model, candidate: Candidate) -> Evaluation:
    """Evaluate a candidate plainly; InternalError if it is not consistent after all."""
    evaluation = evaluate(model, execution_of(problem, candidate))
    if not evaluation.consistent:
        raise InternalError(f"the search accepted an execution that violates {', '.join(evaluation.failed)}")
    return evaluation


def _witness(problem: Problem, model: Model, candidate: Candidate | None, satisfies: bool) -> Witness | None:
    if candidate is None:
        return None
    evaluation = judge(problem, model, candidate)
    memory = final_memory(evaluation.execution, candidate.memory)
    registers = [trace.registers for trace in candidate.traces]
    question = condition_question(problem)
    if question.key(registers, memory) is not satisfies:
        raise InternalError("the search found an execution whose final state is not the one it was found for")
    return make_witness(problem.test, model, evaluation, registers, memory)


def _races(problem: Problem, findings: Findings) -> tuple[Race, ...]:
    races = []
    for (flag, _), (candidate, first, second) in findings.flags.items():
        events = execution_of(problem, candidate).events
        left, right = (shown_event(problem.test, events, one) for one in (first, second))
        races.append(Race(flag, left, right))
    races.sort(key=lambda race: (race.flag, race.first.uid, race.second.uid))
    return tuple(races)
