"""What barriers, mbarrier operations and groups do.

In: a step, the place where it is executed. Out: events; those of a step whose object, barrier or count an execution
decides are one for each possibility. What an object or a barrier answers is for `encode` to tie to the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.base.labels import Action, Domain, Half
from memmodel.base.logic import TRUE
from memmodel.base.points import BarrierId
from memmodel.events.accesses import targets
from memmodel.events.builder import Builder, CurrentStep
from memmodel.events.graph import BarrierEvent, GroupWaitEvent, ObjectEvent, Reduction, StuckAt
from memmodel.events.values import Cases, Value, merge_deps, select
from memmodel.memory.bytes import Cell
from memmodel.program.ops import AtBarrier, Combine, Decide, OnObject, WaitForGroups


def at_barrier(build: Builder, current: CurrentStep, op: AtBarrier) -> None:
    """One half of a barrier. A wait half may be where the thread waits for ever."""
    logic = build.logic
    exprs = op.key if op.count is None else (*op.key, op.count)
    choices, deps = build.choices(current, exprs, current.runs)
    runs = current.runs
    if op.label.half is Half.WAIT and build.knowledge.may_wait:
        stays = logic.both(current.runs, logic.var(f"stuck(v{current.visit})"))
        arrives = _arrived(build, current, op.label.domain)
        build.graph.stuck.append(StuckAt(current.number, stays, current.visit, arrives=arrives))
        current.state.path = logic.both(current.state.path, -stays)
        runs = logic.both(current.runs, -stays)
    for numbers, when in choices:
        count = None if op.count is None else numbers[-1]
        key = numbers[: len(op.key)]
        event = BarrierEvent(
            point=build.point(current, op.label),
            runs=logic.both(when, runs),
            data=deps,
            ctrl=current.control,
            visit=current.visit,
            half=op.label.half,
            barrier=BarrierId.of(op.label.domain, key, current.thread.place, current.number),
            count=count or None,  # 0: all threads that have not exited
        )
        build.add(event)


def _arrived(build: Builder, current: CurrentStep, domain: Domain) -> tuple[int, ...]:
    """The arrive halves just before a wait half: those of its own instruction, or of barrier.cluster any before it."""
    arrives = [
        event
        for event in build.events
        if isinstance(event, BarrierEvent)
        and event.half is Half.ARRIVE
        and event.thread == current.number
        and event.barrier.domain is domain
    ]
    own = [event for event in arrives if event.point.instruction == current.state.instruction]
    return tuple(event.uid for event in own or arrives)


def combine(build: Builder, current: CurrentStep, op: Combine) -> None:
    """The result depends on the other threads: a fresh value, which `encode` ties to theirs."""
    logic = build.logic
    value = build.value(current, op.value)
    numbers = range(len(build.lowered.programs) + 1) if op.op == "popc" else range(2)
    variables = {number: logic.var(f"reduce(v{current.visit},{number})") for number in numbers}
    logic.exactly_one(list(variables.values()), current.runs)
    arrives, nonzero = _arrived(build, current, Domain.CTA), value.cases().is_nonzero(logic)
    build.graph.reductions.append(Reduction(arrives, op.op, nonzero, variables, current.runs, current.visit))
    build.assign(current, op.register, Value(Cases(variables), value.deps))


def decide(build: Builder, current: CurrentStep, op: Decide) -> None:
    """A number that nothing decides: a variable."""
    when, deps = build.nonzero(current, op.when)
    decided = build.logic.var(f"decided(v{current.visit})")
    build.graph.decisions[current.visit] = decided
    true = build.logic.both(when, decided)
    build.assign(current, op.register, Value(Cases({0: -true, 1: true}), deps))


def wait_for_groups(build: Builder, current: CurrentStep, op: WaitForGroups) -> None:
    """A wait for groups of asynchronous operations."""
    choices, deps = build.choices(current, () if op.pending is None else (op.pending,), current.runs)
    for numbers, when in choices:
        event = GroupWaitEvent(
            point=build.point(current, op.label),
            runs=when,
            data=deps,
            ctrl=current.control,
            visit=current.visit,
            track=op.track,
            pending=numbers[0] if numbers else None,
            sources_only=op.sources_only,
        )
        build.add(event)


def on_object(build: Builder, current: CurrentStep, op: OnObject) -> None:
    """An operation on an mbarrier object."""
    when_part, part_deps = build.nonzero(current, op.when)
    if not op.beside:
        current.state.order = current.visit
    good, bad, addr = targets(build, current, op.region, build.logic.both(current.runs, when_part))
    for why, when in bad:
        build.fault(current, why, when, addr)
    parity, state = (None if expr is None else build.value(current, expr) for expr in (op.parity, op.state))
    for value in (parity, state):
        if value is not None:
            value.cases()
    asked = [value.deps for value in (parity, state) if value is not None]
    answers: dict[str, list[tuple[int, Value]]] = {}
    exprs = tuple(expr for expr in (op.count, op.bytes) if expr is not None)
    for target in good:
        extent = target.footprint.extents[0]
        choices, deps = build.choices(current, exprs, target.when)
        for numbers, when in choices:
            uid = len(build.events)
            decided = _answers(build, op, uid, when)
            for register, cases in zip((op.register, op.pending, op.report), decided, strict=True):
                if register is not None and cases is not None:
                    answers.setdefault(register, []).append((when, Value(Cases(cases), {uid: TRUE})))
            event = ObjectEvent(
                point=build.point(
                    current,
                    op.label,
                    order=current.state.order,
                    cell=Cell(extent.instance, extent.first, extent.size),
                    name=extent.name,
                ),
                runs=when,
                addr=addr,
                data=merge_deps(build.logic, deps, part_deps, *asked),
                ctrl=current.control,
                visit=current.visit,
                action=op.label.action,
                count=numbers[0] if op.count is not None else 0,
                bytes=numbers[-1] if op.bytes is not None else 0,
                drop=op.drop,
                parity=parity,
                state=state,
                result=decided.result,
                pending=decided.pending,
                no_complete=op.no_complete,
                report=decided.report,
                conditional=op.conditional,
            )
            build.add(event)
    for register, options in answers.items():
        build.assign(current, register, select(build.logic, options))


class ObjectAnswers(NamedTuple):
    """What an object answers: the cases of each number, None where it is not asked for."""

    result: dict[int, int] | None
    pending: dict[int, int] | None
    report: dict[int, int] | None


def _answers(build: Builder, op: OnObject, uid: int, when: int) -> ObjectAnswers:
    result = pending = report = None
    if op.register is not None:
        phases = range(2) if op.label.action is Action.TEST else build.knowledge.states()
        result = _fresh(build, uid, op.label.action.value, phases, when)
    if op.pending is not None:
        pending = _fresh(build, uid, "pending", sorted(build.knowledge.pending), when)
    if op.report is not None:
        report = _fresh(build, uid, "report", range(2), when)
    return ObjectAnswers(result, pending, report)


def _fresh(build: Builder, uid: int, what: str, numbers: Iterable[int], when: int) -> dict[int, int]:
    """A value that the object decides: one of these numbers."""
    cases = {number: build.logic.var(f"{what}(e{uid},{number})") for number in numbers}
    build.logic.exactly_one(list(cases.values()), when)
    return cases
