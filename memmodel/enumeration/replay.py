"""Run a witness of the other engine again, concretely, and judge it afresh.

In: LitmusTest, Model, Choice. Out: Replay. All that makes a candidate execution well-formed is checked here: what
does not fit is an InternalError, since an engine that hands it over contradicts docs/executions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memmodel.answer import Budget, Witness
from memmodel.cat.syntax import Model
from memmodel.enumeration.barriers import BarrierEvent, Groups, generations, meetings, reductions_agree
from memmodel.enumeration.choice import Choice, EventId
from memmodel.enumeration.evaluate import evaluate
from memmodel.enumeration.execution import Execution, ExecutionEvent, Rows, base_sets, rows_of, static_relations
from memmodel.enumeration.finals import condition_question
from memmodel.enumeration.mbarriers import Told, tell
from memmodel.enumeration.meter import Meter
from memmodel.enumeration.orders import closed
from memmodel.enumeration.problem import Problem, make_runners
from memmodel.enumeration.skeleton import barrier_events, build_events, mbarrier_objects, with_bad
from memmodel.enumeration.traces import Asked, Trace, answers
from memmodel.enumeration.witness import make_witness
from memmodel.errors import InternalError
from memmodel.isa.memory import Location, MemoryMap
from memmodel.isa.ops import Reduce
from memmodel.litmus.syntax import LitmusTest

_BUDGET = Budget(effort=50_000_000, seconds=60.0)
"""Against a choice whose values drive a loop forever."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A witness as judged afresh: does the test's condition hold in it, which axioms of the model does it violate, and
    what do the model's flags report (name -> pairs of uids)?"""

    witness: Witness
    satisfies: bool
    failed: tuple[str, ...]
    flags: dict[str, list[tuple[int, int]]]


def replay(test: LitmusTest, model: Model, choice: Choice) -> Replay:
    """Build and judge the execution that a choice describes. Raises InternalError if it describes none."""
    memory = MemoryMap(test)
    runners = make_runners(test, memory, None)
    problem = Problem(test, memory, runners, tuple(memory.initial), (), cut=False, standing=())
    traces = _run(problem, choice)
    paths = [trace.events for trace in traces]
    exited = [number for number, trace in enumerate(traces) if trace.exited]
    numbers = _Numbers(problem, traces)
    values: list[int | None] = [memory.initial[where] for where in problem.locations]
    for trace in traces:
        values.extend(trace.values)
    events = tuple(replace(e, value=v) for e, v in zip(build_events(problem, paths), values, strict=True))
    told = _objects(problem, events, choice, numbers)
    events = with_bad(events, told.bad)
    relations = static_relations(events)
    relations["rf"] = _reads_from(events, numbers.pairs(choice.rf))
    relations["co"] = _coherence(events, numbers.pairs(choice.co))
    relations["sync_fence"] = _fence_order(events, relations["sr"], numbers.pairs(choice.sync_fence))
    relations["syncbar"] = _barriers(problem, barrier_events(problem, paths), exited, choice, numbers, len(events))
    for name, pairs in (("mbar", told.mbar), ("mbarobs", told.mbarobs), ("mbarfr", told.mbarfr)):
        relations[name] = rows_of(pairs, len(events))
    if not reductions_agree([one for trace in traces for one in trace.reductions]):
        raise InternalError("replay: a barrier reduction does not return the combination of its values")
    evaluation = evaluate(model, Execution(events, base_sets(events), relations))
    registers = [trace.registers for trace in traces]
    final = _finals(events, relations["co"], choice, numbers)
    satisfies = condition_question(problem).key(registers, final) is True
    witness = make_witness(test, model, evaluation, registers, final)
    return Replay(witness, satisfies, evaluation.failed, evaluation.flags)


def _run(problem: Problem, choice: Choice) -> list[Trace]:
    """Each thread once, its reads returning the values that the choice lists."""
    if len(choice.reads) != len(problem.runners):
        raise InternalError("replay: values for another number of threads")
    results = choice.results or ((),) * len(problem.runners)
    if len(results) != len(problem.runners):
        raise InternalError("replay: results for another number of threads")
    meter = Meter(_BUDGET)
    traces = []
    for runner, reads, told in zip(problem.runners, choice.reads, results, strict=True):

        def given(
            where: Location | Reduce | Asked, taken: int, reads: tuple[int, ...] = reads, told: tuple[int, ...] = told
        ) -> Sequence[int]:
            return (told if isinstance(where, Asked) else reads)[taken : taken + 1]

        runs = runner.run(given, meter).traces
        name = runner.thread.name
        if len(runs) != 1:
            raise InternalError(f"replay: thread {name} does not reach its end with the values {reads}, {told}")
        taken = sum("R" in event.made.tags for event in runs[0].events) + len(runs[0].reductions)
        heard = sum(len(answers(event.operation)) for event in runs[0].events)
        if taken != len(reads):
            raise InternalError(f"replay: thread {name} takes {taken} values, not {len(reads)}")
        if heard != len(told):
            raise InternalError(f"replay: thread {name} hears {heard} results, not {len(told)}")
        traces.append(runs[0])
    return traces


class _Numbers:
    """Event numbers of an execution by their names in a Choice."""

    def __init__(self, problem: Problem, traces: Sequence[Trace]) -> None:
        self._initial = {where: number for number, where in enumerate(problem.locations)}
        self._first: list[int] = []
        self._count = [len(trace.events) for trace in traces]
        number = len(problem.locations)
        for count in self._count:
            self._first.append(number)
            number += count

    def of(self, name: EventId) -> int:
        first, second = name
        if isinstance(second, Location):
            if second in self._initial:
                return self._initial[second]
        elif isinstance(first, int) and 0 <= first < len(self._first) and 0 <= second < self._count[first]:
            return self._first[first] + second
        raise InternalError(f"replay: no event {name}")

    def pairs(self, names: Iterable[tuple[EventId, EventId]]) -> list[tuple[int, int]]:
        return [(self.of(first), self.of(second)) for first, second in names]


def _reads_from(events: Sequence[ExecutionEvent], pairs: Sequence[tuple[int, int]]) -> Rows:
    """rf: one write for each read, of its location and value."""
    reads = [number for number, event in enumerate(events) if "R" in event.tags]
    if sorted(read for _, read in pairs) != reads:
        raise InternalError("replay: not every read has exactly one rf")
    for first, second in pairs:
        write, read = events[first], events[second]
        if "W" not in write.tags or write.location != read.location or write.value != read.value:
            raise InternalError(f"replay: read {second} cannot take its value from event {first}")
    return rows_of(pairs, len(events))


def _coherence(events: Sequence[ExecutionEvent], pairs: Sequence[tuple[int, int]]) -> Rows:
    """co: acyclic, on writes of one location, initial writes (added here) first."""
    rows = rows_of(pairs, len(events))
    for first, second in pairs:
        write, later = events[first], events[second]
        if "W" not in write.tags or "W" not in later.tags or write.location != later.location:
            raise InternalError(f"replay: co relates {first} and {second}, which are not writes of one location")
    for first, write in enumerate(events):
        if "IW" in write.tags:
            rows[first] = sum(
                1 << second
                for second, later in enumerate(events)
                if second != first and "W" in later.tags and later.location == write.location
            )
    if any(row >> number & 1 for number, row in enumerate(closed(rows))):
        raise InternalError("replay: co has a cycle")
    return rows


def _fence_order(events: Sequence[ExecutionEvent], sr: Rows, pairs: Sequence[tuple[int, int]]) -> Rows:
    """sync_fence: a strict partial order on fence.sc that relates every pair in sr."""
    fences = [number for number, event in enumerate(events) if {"F", "SC"} <= event.tags]
    rows = rows_of(pairs, len(events))
    if any(one not in fences for pair in pairs for one in pair):
        raise InternalError("replay: sync_fence relates something other than fence.sc")
    if closed(rows) != tuple(rows) or any(row >> number & 1 for number, row in enumerate(rows)):
        raise InternalError("replay: sync_fence is not a strict partial order")
    for first in fences:
        for second in fences:
            if first != second and sr[first] >> second & 1 and not (rows[first] >> second | rows[second] >> first) & 1:
                raise InternalError(f"replay: sync_fence leaves {first} and {second} unordered")
    return rows


def _barriers(
    problem: Problem,
    halves: Sequence[BarrierEvent],
    exited: Sequence[int],
    choice: Choice,
    numbers: _Numbers,
    count: int,
) -> Rows:
    """syncbar: the way to meet whose groups the choice names."""
    sizes = {one.half.resource: problem.company(one.half.resource, exited) for one in halves}
    arrives = {key: one.arrives for key, one in generations(halves, sizes).items()}
    asked = {frozenset(numbers.of(one) for one in group) for group in choice.groups}

    def met(groups: Groups) -> set[frozenset[int]]:
        return {frozenset(arrives[key][thread] for thread in members) for key, members in groups.items()}

    for groups, pairs in meetings(halves, sizes):
        if met(groups) == asked:
            return rows_of(pairs, count)
    raise InternalError("replay: the barriers cannot complete in the way chosen")


def _objects(problem: Problem, events: Sequence[ExecutionEvent], choice: Choice, numbers: _Numbers) -> Told:
    """The order of updates, and what the tests see, for every mbarrier object."""
    orders = {where: [numbers.of(name) for name in names] for where, names in choice.mbar}
    seen = {numbers.of(name): over for name, over in choice.seen}
    chosen = []
    for one in mbarrier_objects(problem, events):
        walk = one.walk(orders.pop(one.location, []))
        if walk is None:
            raise InternalError(f"replay: the operations on {one.location} cannot have the order chosen")
        its = {test.event: seen.pop(test.event, -1) for test in one.tests}
        if not one.fits(walk, its):
            raise InternalError(f"replay: the tests of {one.location} cannot see {its}")
        chosen.append((one, walk, its))
    if seen or any(orders.values()):
        raise InternalError("replay: an order of updates, or what a test sees, for what is no such event")
    return tell(chosen)


def _finals(events: Sequence[ExecutionEvent], co: Rows, choice: Choice, numbers: _Numbers) -> dict[Location, int]:
    """The value that each location ends with."""
    last: dict[Location, list[int]] = {}
    for number, event in enumerate(events):
        if "W" in event.tags and event.location is not None and not co[number]:
            last.setdefault(event.location, []).append(number)
    chosen = {where: writes[-1] for where, writes in last.items()}
    for where, name in choice.finals:
        number = numbers.of(name)
        if number not in last.get(where, ()):
            raise InternalError(f"replay: {where} cannot end with event {number}, which is not co-maximal")
        chosen[where] = number
    values = {where: events[number].value for where, number in chosen.items()}
    return {where: value for where, value in values.items() if value is not None}
