"""A test and a model as formulas: everything that a solver is asked about one test.

In: LoweredTest, Model, loop bound, terms. Out: `Query`. One encoding answers every question: which executions end,
which hang, what flags report, and which executions exceed the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.logic import TRUE
from memmodel.cat.analysis import grounds_values
from memmodel.cat.syntax import Model
from memmodel.encode.base import BaseFormulas
from memmodel.encode.condition import FinalState
from memmodel.events.elaborate import elaborate
from memmodel.events.graph import EventGraph, MemoryEvent, ObjectEvent
from memmodel.litmus.syntax import Term
from memmodel.program.lowered import LoweredTest
from memmodel.refine.judge import Judge, Statement


@dataclass(frozen=True, slots=True)
class Query:
    """The formulas of a test.

    `axioms`, `flags`: by name; only those flags that were asked for. `condition`: the test's condition, if every thread
    ends. `ends`: every thread ends. `stops`: every thread ends or waits for ever. `waits`: some thread waits for ever.
    `cut`: a loop goes beyond the bound. `unmodelled`: something happens that is not modelled.
    """

    graph: EventGraph
    base: BaseFormulas
    final: FinalState
    condition: int
    axioms: dict[str, Statement]
    flags: dict[str, Statement]
    ends: int
    stops: int
    waits: int
    cut: int
    unmodelled: int
    judge: Judge

    def flag_statements(self, model: Model, flags: Sequence[str] | None) -> dict[str, Statement]:
        """The statements of flags (None: of all flags). Those that the query does not have yet are made."""
        return {
            check.name: self.flags.get(check.name) or self.judge.statement(check, with_pairs=check.negated)
            for check in model.flags
            if flags is None or check.name in flags
        }


def encode(
    lowered: LoweredTest, model: Model, bound: int, terms: Sequence[Term], flags: Sequence[str] | None = None
) -> Query:
    """Formulas of a test under a model. `terms`: whose final values are asked for; `flags`: None for all. Raises
    TooLarge.
    """
    graph = elaborate(lowered, bound, terms, grounded=grounds_values(model))
    logic = graph.logic
    base = BaseFormulas(graph)
    final = FinalState(graph, base.communication)
    for term in terms:
        final.term(term)
    condition = final.formula(lowered.test.condition)
    base.join_cells()
    _waiting_threads_see_the_last_values(graph, base)
    judge = Judge(model, base)
    ends = graph.complete()
    return Query(
        graph,
        base,
        final,
        condition,
        {check.name: judge.statement(check, with_pairs=False) for check in model.axioms},
        {
            check.name: judge.statement(check, with_pairs=check.negated)
            for check in model.flags
            if flags is None or check.name in flags
        },
        ends,
        logic.conj(
            logic.disj((ended, faulted, *(stuck.when for stuck in graph.stuck if stuck.thread == thread)))
            for thread, (ended, faulted) in enumerate(zip(graph.ended, graph.faulted, strict=True))
        )
        if graph.stuck
        else ends,
        logic.disj(stuck.when for stuck in graph.stuck),
        logic.disj(cut.when for cut in graph.cut),
        logic.disj(step.when for step in graph.unmodelled),
        judge,
    )


def _waiting_threads_see_the_last_values(graph: EventGraph, base: BaseFormulas) -> None:
    """A thread that waits for ever in a spin loop reads the last writes, and sees objects in their last states."""
    for stuck in graph.stuck:
        for uid in stuck.round:
            event = graph.events[uid]
            if isinstance(event, MemoryEvent):
                _reads_last_writes(base, event, stuck.when)
            elif isinstance(event, ObjectEvent) and uid in base.mbarriers.seen:
                _sees_the_last_state(base, event, stuck.when)


def _reads_last_writes(base: BaseFormulas, event: MemoryEvent, when: int) -> None:
    """No write comes after the one that a read takes its value from."""
    for write, readers in enumerate(base.communication.rf):
        if event.uid in readers:
            for later in base.communication.co[write].values():
                base.graph.logic.require(-when, -event.runs, -readers[event.uid], -later)


def _sees_the_last_state(base: BaseFormulas, test: ObjectEvent, when: int) -> None:
    """The phase that a test sees never ends, and no life of the object begins after the one that it sees."""
    logic = base.graph.logic
    order, phases = base.mbarriers.orders[test.object], base.mbarriers.phases[test.object]
    for (life, k), sees in base.mbarriers.seen[test.uid].items():
        if (life, k) in phases.over:
            logic.require(-when, -test.runs, -sees, -phases.over[life, k])
        for init in order.inits:
            if init != life:
                later = TRUE if life < 0 else order.earlier[life, init]
                logic.require(-when, -test.runs, -sees, -order.updates[init].runs, -later)
