"""What barriers, mbarrier operations and groups do.

In: a step, the place where it is executed. Out: events; those of a step whose object, barrier or count an execution
decides are one for each possibility. What an object or a barrier answers is for `encode` to tie to the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from memmodel.base.labels import BETWEEN_GRIDS, Action, Domain, Half
from memmodel.base.logic import TRUE
from memmodel.base.points import BarrierId
from memmodel.events.accesses import targets
from memmodel.events.builder import Builder, Here
from memmodel.events.graph import BarrierEvent, GroupWaitEvent, ObjectEvent, Reduction, StuckAt
from memmodel.events.values import Cases, Value, merge_deps, select
from memmodel.memory.bytes import Cell
from memmodel.program.expressions import Expr
from memmodel.program.ops import AtBarrier, Combine, OnObject, WaitForGroups
from memmodel.ptx.vocabulary import Place


def barrier_of(domain: Domain, key: tuple[int, ...], place: Place, thread: int) -> BarrierId:
    """The barrier that a thread at a place means."""
    if domain is Domain.CLUSTER:
        return BarrierId(domain, place.cluster_id, key)
    if domain is Domain.CTA:
        return BarrierId(domain, place.cta_id, key)
    if domain in BETWEEN_GRIDS:
        return BarrierId(domain, (place.gpu,), key)
    if domain is Domain.PAIR:
        return BarrierId(domain, (*place.cluster_id, place.rank // 2), key)
    warp = ("thread", thread) if place.warp is None else ("warp", place.warp)
    return BarrierId(domain, (*place.cta_id, warp), key)


def at_barrier(build: Builder, here: Here, op: AtBarrier) -> None:
    """One half of a barrier. A wait half may be where the thread waits for ever."""
    logic = build.logic
    exprs = (*op.key, *(() if op.count is None else (op.count,)))
    found, deps = build.choices(here, exprs, here.runs)
    runs = here.runs
    if op.label.half is Half.WAIT and build.knowledge.may_wait:
        stays = logic.both(here.runs, logic.var(f"stuck(v{here.visit})"))
        arrives = _arrived(build, here, op.label.domain)
        build.stuck.append(StuckAt(here.number, stays, here.visit, arrives=arrives))
        here.state.path = logic.both(here.state.path, -stays)
        runs = logic.both(here.runs, -stays)
    for numbers, when in found:
        count = None if op.count is None else _asked(numbers[-1])
        key = numbers[: len(op.key)]
        event = BarrierEvent(
            point=build.point(here, op.label),
            runs=logic.both(when, runs),
            data=deps,
            ctrl=here.control,
            visit=here.visit,
            half=op.label.half,
            barrier=barrier_of(op.label.domain, key, here.thread.place, here.number),
            count=count,
        )
        build.add(event)


def _asked(number: int) -> int | None:
    """0 stands for every thread that has not exited."""
    return None if number == 0 else number


def _arrived(build: Builder, here: Here, domain: Domain) -> tuple[int, ...]:
    """The arrive halves just before a wait half: those of its own instruction, or of barrier.cluster any before it."""
    mine = [
        event.uid
        for event in build.events
        if isinstance(event, BarrierEvent)
        and event.half is Half.ARRIVE
        and event.thread == here.number
        and event.barrier.domain is domain
    ]
    own = [uid for uid in mine if build.events[uid].point.instruction == here.state.instruction]
    return tuple(own or mine)


def combine(build: Builder, here: Here, op: Combine) -> None:
    """The result depends on the other threads: a fresh value, which `encode` ties to theirs."""
    logic = build.logic
    own = build.value(here, op.value)
    numbers = range(len(build.lowered.programs) + 1) if op.op == "popc" else range(2)
    variables = {number: logic.var(f"reduce(v{here.visit},{number})") for number in numbers}
    logic.exactly_one(list(variables.values()), here.runs)
    build.reductions.append(
        Reduction(
            _arrived(build, here, Domain.CTA), op.op, own.cases().is_nonzero(logic), variables, here.runs, here.visit
        )
    )
    build.assign(here, op.register, Value(Cases(variables), own.deps))


def wait_for_groups(build: Builder, here: Here, op: WaitForGroups) -> None:
    """A wait for groups of asynchronous operations."""
    exprs: tuple[Expr, ...] = () if op.pending is None else (op.pending,)
    found, deps = build.choices(here, exprs, here.runs)
    for numbers, when in found:
        event = GroupWaitEvent(
            point=build.point(here, op.label),
            runs=when,
            data=deps,
            ctrl=here.control,
            visit=here.visit,
            track=op.track,
            pending=numbers[0] if numbers else None,
            sources_only=op.sources_only,
        )
        build.add(event)


def on_object(build: Builder, here: Here, op: OnObject) -> None:
    """An operation on an mbarrier object."""
    meant, bad, addr = targets(build, here, op.region, here.runs)
    for why, when in bad:
        build.fault(here, why, when, addr)
    parity, state = (None if expr is None else build.value(here, expr) for expr in (op.parity, op.state))
    for value in (parity, state):
        if value is not None:
            value.cases()
    told = [value.deps for value in (parity, state) if value is not None]
    answers: dict[str, list[tuple[int, Value]]] = {}
    exprs = tuple(expr for expr in (op.count, op.bytes) if expr is not None)
    for target in meant:
        extent = target.footprint.extents[0]
        found, deps = build.choices(here, exprs, target.when)
        for numbers, when in found:
            count = numbers[0] if op.count is not None else 0
            size = numbers[-1] if op.bytes is not None else 0
            uid = len(build.events)
            result = pending = None
            if op.register is not None:
                phases = range(2) if op.label.action is Action.TEST else build.knowledge.states()
                result = _fresh(build, uid, op.label.action.value, phases, when)
                answers.setdefault(op.register, []).append((when, Value(Cases(result), {uid: TRUE})))
            if op.pending is not None:
                pending = _fresh(build, uid, "pending", range(build.knowledge.most_pending + 1), when)
                answers.setdefault(op.pending, []).append((when, Value(Cases(pending), {uid: TRUE})))
            event = ObjectEvent(
                point=build.point(
                    here, op.label, cell=Cell(extent.instance, extent.first, extent.size), name=extent.name
                ),
                runs=when,
                addr=addr,
                data=merge_deps(build.logic, deps, *told),
                ctrl=here.control,
                visit=here.visit,
                action=op.label.action,
                count=count,
                bytes=size,
                drop=op.drop,
                parity=parity,
                state=state,
                result=result,
                pending=pending,
                no_complete=op.no_complete,
            )
            build.add(event)
    for register, options in answers.items():
        build.assign(here, register, select(build.logic, options))


def _fresh(build: Builder, uid: int, what: str, numbers: Iterable[int], when: int) -> dict[int, int]:
    """A value that the object decides: one of these numbers."""
    cases = {number: build.logic.var(f"{what}(e{uid},{number})") for number in numbers}
    build.logic.exactly_one(list(cases.values()), when)
    return cases
