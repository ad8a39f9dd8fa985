"""Choose an engine and ask it. Both answer the same questions and share nothing below the lowered test and the model.

In: LoweredTest, Model. Out: Answer, Outcomes. A test beyond a stated limit is undecided, never forbidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from memmodel.answer import ENGINES, Answer, Budget, Observation, Outcomes
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError, TooLarge
from memmodel.limits import Limits, available
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Assign, Emit, IssueAsync, OnObject, Op, Read, Write

if TYPE_CHECKING:
    from memmodel.solve.kept_queries import KeptQueries
    from memmodel.solve.parts import AxiomParts
    from memmodel.solve.seek import Seen, Sought

FEW = 1_000_000
"""With no more candidate executions than this by the estimate, enumeration is tried before the solver. Most of them are
ruled out before they are tried."""

FEW_PLAIN = 250
"""The same for a program of plain reads, writes and fences: there every candidate of the estimate is tried."""

MANY = 1e9
"""With more candidates than this by the estimate, enumeration takes too long to confirm an answer."""

ATOMIC = 8
"""The factor by which `FEW_PLAIN` is larger for a plain program with atomics: each atomic reads the last write, so that
many candidates are ruled out early."""

# What the solver is expected to cost, in effort units of an enumeration that takes as long: fitted to the shipped tests
# (benchmarks/engines.py). `auto` gives up an enumeration that seems to need more.
SOLVER = 130_000
"""For any test."""

SOLVER_BY_STEP: dict[type[Op], int] = {Read: 25_000, Write: 25_000, IssueAsync: 85_000, OnObject: 42_000}
"""For each step of it."""

SOLVER_BY_ATOMIC = 145_000
"""For each atomic operation."""

SOLVER_MOST = 2_000_000
"""More is expected of no test."""

OVERRUN = 1.3
"""`auto` also gives up an enumeration that has used this many times as much as the solver is expected to."""

PLAIN = Read | Write | Emit | Assign


@dataclass(frozen=True, slots=True)
class Options:
    """How a test is judged.

    `bound`: how many backward jumps of a loop are followed, if the number of its rounds differs between executions.
    Rounds of a spin loop that write nothing do not count.
    """

    engine: str = "auto"
    budget: Budget = field(default_factory=Budget)
    bound: int = 3


def answer(
    lowered: LoweredTest, model: Model, options: Options, *, findings: bool = True, queries: KeptQueries | None = None
) -> Answer:
    """What happens to the condition of a test under a model; with `findings`, also what the model's flags report.

    `queries`: the queries that `seek` has kept, to be used again.
    """
    chosen = choose(lowered, options)
    try:
        options = replace(options, budget=available(options.budget))
        with Limits(options.budget):
            return _answered(lowered, model, options, chosen, findings, queries)
    except (TooLarge, BudgetSpent) as error:
        reason = _reason(error)
        return Answer(Observation.UNDECIDED, chosen, reason=reason, unsearched=reason)


def _answered(
    lowered: LoweredTest, model: Model, options: Options, chosen: str, findings: bool, queries: KeptQueries | None
) -> Answer:
    budget, started = options.budget, monotonic()
    if chosen == "enumerate":
        from memmodel.enumeration.answers import enumerate_answer

        trial = _trial(lowered) if options.engine == "auto" else None
        limit = budget if trial is None else replace(budget, effort=min(int(OVERRUN * trial), budget.effort))
        try:
            return enumerate_answer(lowered, model, budget=limit, bound=options.bound, findings=findings, trial=trial)
        except (BudgetSpent, TooLarge):
            if trial is None or monotonic() - started >= budget.seconds:
                raise
    from memmodel.solve.answers import solve_answer

    return solve_answer(
        lowered, model, budget=budget, bound=options.bound, findings=findings, queries=queries, started=started
    )


def seek(
    lowered: LoweredTest, model: Model, options: Options, sought: Sought, queries: KeptQueries | None = None
) -> Seen | None:
    """An execution that shows one of the things sought. None says nothing: the search is not complete (`solve_seek`).

    `queries`: keeps the query of a search that found nothing, for `answer`.
    """
    from memmodel.solve.seek import solve_seek

    try:
        options = replace(options, budget=available(options.budget))
        with Limits(options.budget):
            return solve_seek(lowered, model, sought, budget=options.budget, bound=options.bound, queries=queries)
    except (TooLarge, BudgetSpent):
        return None


def axiom_parts(lowered: LoweredTest, model: Model, options: Options) -> AxiomParts | None:
    """Questions to the solver about parts of the axioms of a model; None if the test is too large for it."""
    from memmodel.solve.parts import AxiomParts

    try:
        budget = available(options.budget)
        return AxiomParts(lowered, model, budget=budget, bound=options.bound)
    except TooLarge:
        return None


def _trial(lowered: LoweredTest) -> int:
    """The effort for which `auto` tries an enumeration."""
    if _is_plain(lowered):
        return SOLVER_MOST
    steps = _steps(lowered)
    by_step = sum(SOLVER_BY_STEP.get(type(op), 0) for op in steps)
    atomics = sum(isinstance(op, Write) and op.rmw for op in steps)
    return min(SOLVER + by_step + SOLVER_BY_ATOMIC * atomics, SOLVER_MOST)


def _steps(lowered: LoweredTest) -> list[Op]:
    return [step.op for program in lowered.programs for step in program.steps]


def _is_plain(lowered: LoweredTest) -> bool:
    """True for a program of nothing but reads, writes, fences and arithmetic, without a jump."""
    return all(isinstance(op, PLAIN) and not (isinstance(op, Write) and op.rmw) for op in _steps(lowered))


def _is_straight(lowered: LoweredTest) -> bool:
    """True for a plain program that may also have atomics."""
    return all(isinstance(op, PLAIN) for op in _steps(lowered))


def outcomes(lowered: LoweredTest, model: Model, options: Options) -> Outcomes:
    """All final states of a test under a model."""
    from memmodel.referee.finals import left_out

    return replace(_outcomes(lowered, model, options), left_out=left_out(lowered))


def _outcomes(lowered: LoweredTest, model: Model, options: Options) -> Outcomes:
    chosen = choose(lowered, options, FEW)
    try:
        options = replace(options, budget=available(options.budget))
        with Limits(options.budget):
            if chosen == "enumerate":
                from memmodel.enumeration.answers import enumerate_outcomes

                return enumerate_outcomes(lowered, model, budget=options.budget, bound=options.bound)
            from memmodel.solve.answers import solve_outcomes

            return solve_outcomes(lowered, model, budget=options.budget, bound=options.bound)
    except (TooLarge, BudgetSpent) as error:
        return Outcomes((), chosen, complete=False, reason=_reason(error))


def _reason(error: TooLarge | BudgetSpent) -> str:
    return error.message if isinstance(error, TooLarge) else str(error)


def few_enough(lowered: LoweredTest, options: Options) -> bool:
    """True if a test is small enough to try all its candidates, by the estimate."""
    from memmodel.enumeration.estimate import estimate

    return estimate(lowered, options.bound) <= MANY


def choose(lowered: LoweredTest, options: Options, plain: int = FEW_PLAIN) -> str:
    """The engine that is expected to be faster for `auto`; else the one asked for.

    `plain`: up to how many candidates of a plain program are enumerated.
    """
    if options.engine not in ENGINES:
        raise InputError(f"unknown engine {options.engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if options.engine != "auto":
        return options.engine
    from memmodel.enumeration.estimate import estimate

    few = plain if _is_plain(lowered) else min(ATOMIC * plain, FEW) if _is_straight(lowered) else FEW
    return "enumerate" if estimate(lowered, options.bound) <= few else "z3"
