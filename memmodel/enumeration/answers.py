"""The enumeration engine's answers.

In: LoweredTest, Model, Budget, loop bound. Out: Answer, or Outcomes. Every witness is judged once more by plain
evaluation before it leaves; a disagreement is an InternalError, never an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from memmodel.answer import HANG, Answer, Budget, FinalValues, Finding, Observation, Outcomes, Times, Witness
from memmodel.base.identity import by_identity
from memmodel.base.rows import bits
from memmodel.cat.analysis import grounds_values
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution, Position, position
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import End
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.question import WAITS, AskedKey, Key, Stopped
from memmodel.enumeration.search import Candidate, Search, SearchResult
from memmodel.errors import BudgetSpent, InternalError, TooLarge
from memmodel.litmus.syntax import Quantifier
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.referee.evaluate import Evaluation, evaluate
from memmodel.referee.finals import outcome_terms, spell
from memmodel.referee.reasons import beyond_the_bound, mixed_sizes, not_modelled
from memmodel.referee.witness import make_witness, rule_of, shown_event

ENGINE = "enumerate"

FlagKey = tuple[str, frozenset[Position]]
"""A flag, and where in the test the events come from that it relates."""

_WIDER = 20
"""How much wider bounds are tried, to say which would be enough."""

_LITTLE = Budget(effort=5_000_000, seconds=5.0)


def enumerate_answer(
    lowered: LoweredTest, model: Model, *, budget: Budget, bound: int, findings: bool, trial: int | None = None
) -> Answer:
    """What happens to the test's condition under the model; with `findings`, what its flags report as well.

    When the budget runs out, what was settled before stands: "sometimes" is an answer even if not everything was
    searched. Raises TooLarge; and BudgetSpent if the effort `trial` is not enough: the other engine is next.
    """
    started = perf_counter()
    meter = Meter(budget, trial)
    flags = tuple(check.name for check in model.flags if findings or kind_of(check.name) is FindingKind.MIXED)
    question, grounded = AskedKey(lowered), grounds_values(model)
    try:
        problem = prepare(
            lowered, bound, meter, waits=findings or bool(flags), asked=question.extents, grounded=grounded
        )
    except BudgetSpent as spent:
        if trial is not None:
            raise
        reason = str(spent)
        times = _times(started, perf_counter())
        return Answer(Observation.UNDECIDED, ENGINE, reason=reason, unsearched=reason, times=times)
    ready = perf_counter()
    undefined = [name for name in flags if kind_of(name) is FindingKind.UNDEFINED]
    wanted: list[Key] = [True, False, *([WAITS] if findings else []), *_stops(problem)]
    search = Search(problem, _plan(model, flags), question, wanted, undefined, meter)
    spent_for = ""
    try:
        search.run()
    except BudgetSpent as spent:
        if trial is not None:
            raise
        spent_for = str(spent)
    judged = _Judged(lowered, model, search.result)
    observation, reason = _observation(lowered, search.result, spent_for, bound)
    return Answer(
        observation,
        ENGINE,
        witness=judged.witness(search.result.found.get(True), True),
        counter=judged.witness(search.result.found.get(False), False),
        axioms=_smallest_blame(search.result.blamed) if observation is Observation.NEVER else (),
        findings=judged.findings() if findings else (),
        reason=reason,
        unsearched=spent_for or _stopped(lowered, search.result, bound),
        times=_times(started, ready),
        events=max((candidate.skeleton.frame.count for candidate in search.result.found.values()), default=0),
        with_condition=tuple(name for name in search.result.raised if name in search.result.with_condition)
        if findings
        else None,
        judged=search.result.judged,
    )


def enumerate_outcomes(lowered: LoweredTest, model: Model, *, budget: Budget, bound: int) -> Outcomes:
    """All final states: the terms of the condition and of `locations`, or everything without these. Raises TooLarge."""
    meter = Meter(budget)
    terms = outcome_terms(lowered)
    question, grounded = AskedKey(lowered, terms), grounds_values(model)
    flags = tuple(check.name for check in model.flags if kind_of(check.name) is FindingKind.MIXED)
    try:
        problem = prepare(lowered, bound, meter, waits=bool(flags), asked=question.extents, grounded=grounded)
    except BudgetSpent as spent:
        return Outcomes((), ENGINE, complete=False, reason=str(spent))
    search = Search(problem, _plan(model, flags), question, None, (), meter)
    reason = ""
    try:
        search.run()
    except BudgetSpent as spent:
        reason = str(spent)
    candidates = search.result.found
    reason = reason or _undecided(lowered, search.result, bound)
    names = [spell(term, lowered) for term in terms]
    states = []
    for key, candidate in candidates.items():
        if isinstance(key, tuple):
            registers = [trace.registers for trace in candidate.traces]
            holds = question.finals.holds(lowered.test.condition, registers, candidate.memory)
            states.append(FinalValues(tuple(zip(names, key, strict=True)), holds))
    states.sort(key=lambda state: tuple(value for _, value in state.values))
    return Outcomes(tuple(states), ENGINE, not reason, reason)


@by_identity(16)
def _plans(model: Model) -> dict[tuple[str, ...], Plan]:
    """The plans of a model so far, by their flags."""
    return {}


def _plan(model: Model, flags: tuple[str, ...]) -> Plan:
    plans = _plans(model)
    if flags not in plans:
        plans[flags] = Plan(model, flags)
    return plans[flags]


def _stops(problem: Problem) -> list[Key]:
    """The keys of executions that go beyond the bound, or beyond what is modelled."""
    keys: dict[Key, None] = {}
    for number, traces in enumerate(problem.stopped):
        for trace in traces:
            keys[Stopped(number, trace.ending.end, trace.ending.step, trace.ending.reason)] = None
    return list(keys)


def _observation(lowered: LoweredTest, result: SearchResult, spent: str, bound: int) -> tuple[Observation, str]:
    """What happens, and why it is undecided or vacuous."""
    candidates: Mapping[Key, Candidate] = result.found
    if any(kind_of(name) is FindingKind.MIXED for name in result.raised):
        return Observation.UNDECIDED, mixed_sizes()
    if True in candidates and False in candidates:
        return Observation.SOMETIMES, ""
    if spent:
        return Observation.UNDECIDED, spent
    stopped = _undecided(lowered, result, bound)
    if stopped:
        return Observation.UNDECIDED, stopped
    if True in candidates:
        return Observation.ALWAYS, ""
    if False in candidates:
        return Observation.NEVER, ""
    return Observation.VACUOUS, "no consistent execution reaches the end of every thread"


def _undecided(lowered: LoweredTest, result: SearchResult, bound: int) -> str:
    """Why not every execution was followed to its end; "" if every one was."""
    if any(kind_of(name) is FindingKind.MIXED for name in result.raised):
        return mixed_sizes()
    return _stopped(lowered, result, bound)


def _stopped(lowered: LoweredTest, result: SearchResult, bound: int) -> str:
    """Where an execution goes beyond the bound, or beyond what is modelled; "" if none does."""
    for key in result.found:
        if isinstance(key, Stopped):
            steps = lowered.programs[key.thread].steps
            instruction = steps[min(key.step, len(steps) - 1)].instruction
            if key.end is End.CUT:
                return beyond_the_bound(instruction, bound, _enough(lowered, bound))
            return not_modelled(key.reason, instruction)
    return ""


def _enough(lowered: LoweredTest, bound: int) -> int | None:
    """The least bound with which no loop is stopped, if a little work finds one."""
    for wider in range(bound + 1, bound + _WIDER + 1):
        try:
            problem = prepare(lowered, wider, Meter(_LITTLE), waits=False)
        except (BudgetSpent, TooLarge):
            return None
        if not any(trace.ending.end is End.CUT for traces in problem.stopped for trace in traces):
            return wider
    return None


def _times(started: float, ready: float) -> Times:
    return Times(encode=1000 * (ready - started), solve=1000 * (perf_counter() - ready))


@dataclass(slots=True)
class _Judged:
    """Candidates evaluated again, plainly."""

    lowered: LoweredTest
    model: Model
    result: SearchResult
    _judged: dict[int, Evaluation] = field(default_factory=dict)

    def execution(self, candidate: Candidate) -> Execution:
        """The concrete execution that a candidate stands for."""
        skeleton, variant = candidate.skeleton, candidate.variant
        chosen = {
            "rf": skeleton.shape.unpack(candidate.rf),
            "co": skeleton.shape.unpack(candidate.co),
            "sync_fence": skeleton.shape.unpack(candidate.sync_fence),
            **skeleton.assembly.relations(variant.meeting, variant.observed),
        }
        values = skeleton.frame.values_of(candidate.traces)
        return Execution(skeleton.frame, values, skeleton.assembly.sets(variant.observed), chosen)

    def ranks(self, candidate: Candidate) -> dict[int, list[int]]:
        """For each total order that the model chooses, how many events come before each."""
        plan, shape = candidate.skeleton.plan, candidate.skeleton.shape
        return {
            order.definition: [sum(row >> event & 1 for row in shape.unpack(matrix)) for event in range(shape.count)]
            for order, matrix in zip(plan.orders, candidate.orders, strict=True)
        }

    def judge(self, candidate: Candidate) -> Evaluation:
        """Evaluate a candidate plainly; InternalError if it is not consistent after all."""
        if id(candidate) not in self._judged:  # the result keeps the candidates, so that their identities stay theirs
            evaluation = evaluate(self.model, self.execution(candidate), self.ranks(candidate))
            if not evaluation.consistent:
                raise InternalError(f"the search accepted an execution that violates {', '.join(evaluation.failed)}")
            self._judged[id(candidate)] = evaluation
        return self._judged[id(candidate)]

    def shown(self, candidate: Candidate, evaluation: Evaluation) -> Witness:
        """A candidate as a witness, with what its waiting threads lack."""
        memory = _final_memory(evaluation.execution, candidate.memory)
        registers = [trace.registers for trace in candidate.traces]
        assembly, variant = candidate.skeleton.assembly, candidate.variant
        mbar = evaluation.execution.relation("mbar")
        waits = assembly.sentences(evaluation.execution.values, mbar, variant.meeting)
        return make_witness(self.model, evaluation, registers, memory, waits)

    def witness(self, candidate: Candidate | None, satisfies: bool) -> Witness | None:
        """The witness of a final state."""
        if candidate is None:
            return None
        evaluation = self.judge(candidate)
        memory = _final_memory(evaluation.execution, candidate.memory)
        registers = [trace.registers for trace in candidate.traces]
        if AskedKey(self.lowered).key(registers, memory) is not satisfies:
            raise InternalError("the search found an execution whose final state is not the one it was found for")
        return self.shown(candidate, evaluation)

    def findings(self) -> tuple[Finding, ...]:
        """What flags report, each with its own execution; and a hang.

        A finding that the execution shown for the question has, too, comes with that execution.
        """
        findings: list[Finding] = []
        known: dict[int, Witness] = {}
        with_pairs: Collection[str] = {flag for flag, _ in self.result.flags}
        for (flag, _), (candidate, first, second) in {**self.result.flags, **self._shown_flags()}.items():
            witness = self._known(known, candidate)
            execution = self.execution(candidate)
            left, right = (shown_event(execution, event) for event in (first, second))
            findings.append(Finding(flag, witness, left, right, rule_of(execution, first)))
        for flag, candidate in self.result.raised.items():
            if flag not in with_pairs:
                findings.append(Finding(flag, self._known(known, candidate)))
        findings.sort(key=lambda item: (item.flag, *(event.uid if event else 0 for event in (item.first, item.second))))
        waiting = self.result.found.get(WAITS)
        if waiting is not None:
            findings.append(Finding(HANG, self._known(known, waiting)))
        return tuple(findings)

    def _shown_flags(self) -> dict[FlagKey, tuple[Candidate, int, int]]:
        """The pairs that the searched flags report in the executions that settle the question."""
        shown: dict[FlagKey, tuple[Candidate, int, int]] = {}
        breaks = self.lowered.test.quantifier is Quantifier.FORALL
        for key in (breaks, not breaks):  # the one that is shown comes last
            candidate = self.result.found.get(key)
            if candidate is None:
                continue
            frame = candidate.skeleton.frame
            for flag, pairs in self.judge(candidate).flags.items():
                for a, b in pairs:
                    places = frozenset((position(frame, frame.events[a]), position(frame, frame.events[b])))
                    if (flag, places) in self.result.flags:
                        shown[flag, places] = (candidate, min(a, b), max(a, b))
        return shown

    def _known(self, known: dict[int, Witness], candidate: Candidate) -> Witness:
        if id(candidate) not in known:
            known[id(candidate)] = self.shown(candidate, self.judge(candidate))
        return known[id(candidate)]


def _final_memory(execution: Execution, asked: Mapping[Cell, int]) -> dict[Cell, int]:
    """Every cell's value at the end: as asked, else that of its last co-maximal write."""
    co = execution.relation("co")
    memory: dict[Cell, int] = {}
    for number in bits(execution.set("W")):
        cell, value = execution.events[number].point.cell, execution.values[number]
        assert cell is not None and value is not None
        if not co[number]:
            memory[cell] = value
    return {**memory, **asked}


def _smallest_blame(blamed: Collection[frozenset[str]]) -> tuple[str, ...]:
    """A few axioms such that each family of candidates fails one of them: greedily the one that fails most."""
    left = set(blamed)
    chosen: list[str] = []
    while left:
        names = sorted({name for axioms in left for name in axioms})
        best = max(names, key=lambda name: sum(name in axioms for axioms in left))
        chosen.append(best)
        left = {axioms for axioms in left if best not in axioms}
    return tuple(chosen)
