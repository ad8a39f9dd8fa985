"""Hangs: can every thread have ended or stand at a wait for good, and what is missing then?

In: LitmusTest, Model. Out: one sentence for each wait that never ends in the execution found. A thread stands for good
at a barrier whose generation stays incomplete, or in a spin loop that sees the last values of all it looks at
(docs/executions.md, "Hangs").
"""

from __future__ import annotations

from memmodel.answer import Budget
from memmodel.cat.analysis import closed_only
from memmodel.cat.syntax import Model
from memmodel.encode.barriers import Incomplete, incomplete_barriers
from memmodel.encode.base import Base
from memmodel.encode.choices import Choices
from memmodel.encode.model import ModelFormulas
from memmodel.encode.relations import Algebra
from memmodel.events.elaborate import elaborate
from memmodel.events.graph import Event, EventGraph, Stuck
from memmodel.isa import Program, ops, programs
from memmodel.litmus.syntax import LitmusTest
from memmodel.logic import FALSE
from memmodel.solve.door import Door, Found


def may_wait(test: LitmusTest) -> bool:
    """Has the test anything that could wait for ever: a barrier or a backward jump?"""
    return any(_waits(program) for program in programs(test))


def _waits(program: Program) -> bool:
    for index, step in enumerate(program.steps):
        op = step.op
        if isinstance(op, ops.Barrier) and op.half == "wait":
            return True
        if isinstance(op, ops.Jump) and op.label is not None and program.labels[op.label] <= index:
            return True
    return False


def find_hang(test: LitmusTest, model: Model, budget: Budget, bound: int) -> tuple[str, ...] | None:
    """What is missing in some execution that hangs; () if none hangs; None if the budget ran out."""
    graph = elaborate(test, bound, hang=True)
    if not graph.stuck:
        return ()
    logic = graph.logic
    algebra = Algebra(logic, len(graph.events))
    choices = Choices(graph, algebra, transitive_co=closed_only(model, "co"))
    formulas = ModelFormulas(model, Base(graph, algebra, choices))
    incomplete = incomplete_barriers(graph)
    for stuck in graph.stuck:
        _sees_the_last_values(graph, choices, stuck)
    some = logic.disj(stuck.when for stuck in graph.stuck)
    door = Door(logic, budget)
    found = door.check([*(formulas.holds(check) for check in model.axioms), some])
    if found is Found.UNKNOWN:
        return None
    if found is Found.UNSAT:
        return ()
    told = [_told(graph, choices, incomplete, stuck, door) for stuck in graph.stuck if door.holds(stuck.when)]
    return tuple(dict.fromkeys(told))


def _sees_the_last_values(graph: EventGraph, choices: Choices, stuck: Stuck) -> None:
    """Every read of the last round reads a co-maximal write, and every test sees all phases that are ever over."""
    logic = graph.logic
    for uid in stuck.round:
        event = graph.events[uid]
        if event.is_read:
            for write, row in enumerate(choices.rf):
                edge = row.get(uid, FALSE)
                for later in choices.co[write].values():
                    logic.require(-stuck.when, -event.runs, -edge, -later)
        elif event.mbarrier is not None:
            for location, here in event.at(logic).items():
                over = choices.mbarriers.over.get(location, [])
                for k, sees in choices.mbarriers.tests.get(uid, {}).items():
                    if k < len(over):
                        logic.require(-stuck.when, -event.runs, -here, -sees, -over[k])


def _told(graph: EventGraph, choices: Choices, incomplete: list[Incomplete], stuck: Stuck, door: Door) -> str:
    name = graph.test.threads[stuck.thread].name
    span = stuck.instruction.span
    place = f"{name} waits for ever at {span}" if span else f"{name} waits for ever"
    if stuck.barrier is not None:
        for one in incomplete:
            if one.uid == stuck.barrier and door.holds(one.when):
                came = next(k for k, formula in enumerate(one.arrivals) if door.holds(formula))
                domain, _, key = one.resource
                number = f" {key[0]}" if domain == "cta" else ""
                return f"{place}: {domain} barrier{number}: {came} of {one.needed} arrivals"
    for uid in stuck.round:
        event = graph.events[uid]
        if door.holds(event.runs):
            if event.mbarrier is not None:
                return f"{place}: {choices.mbarriers.missing(uid, door.holds)}"
            if event.is_read:
                return f"{place}: {_spins_on(graph, event, door)}"
    return place


def _spins_on(graph: EventGraph, event: Event, door: Door) -> str:
    where = next(str(location) for location, here in event.at(graph.logic).items() if door.holds(here))
    assert event.value is not None
    return f"{where} stays {event.value.number(door.holds)}"
