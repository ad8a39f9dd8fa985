"""Executions that enumeration finds, as the plain evaluator and the referee take them.

In: a lowered test, a model. Out: candidates of the search, the concrete execution of each, and the `Choice` by which
another engine would hand it over.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.answer import Budget
from memmodel.base.labels import InitialWrite
from memmodel.base.rows import bits
from memmodel.cat.analysis import grounds_values
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.concrete.mbarriers import START, MbarrierUses, Observed, Views, observe
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import AccessRecord, End, ObjectRecord, Record, RecordName
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.question import AskedKey
from memmodel.enumeration.search import Candidate, Search
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Combine
from memmodel.referee.choice import Choice, Place, Writer
from memmodel.referee.finals import outcome_terms

BOUND = 2


def meter() -> Meter:
    return Meter(Budget())


def problem_of(steps: LoweredTest, *, waits: bool = True, bound: int = BOUND, grounded: bool = False) -> Problem:
    """The runs of the threads, for a question about everything."""
    asked = AskedKey(steps, outcome_terms(steps)).extents
    return prepare(steps, bound, meter(), waits=waits, asked=asked, grounded=grounded)


def candidates(steps: LoweredTest, model: Model, *, bound: int = BOUND) -> list[Candidate]:
    """One consistent candidate for each final state, and one that waits for ever if there is any."""
    problem = problem_of(steps, bound=bound, grounded=grounds_values(model))
    search = Search(problem, Plan(model, ()), AskedKey(steps, outcome_terms(steps)), None, (), meter())
    search.run()
    return list(search.result.found.values())


def execution_of(candidate: Candidate) -> Execution:
    """The concrete execution that a candidate stands for."""
    skeleton, variant = candidate.skeleton, candidate.variant
    shape, assembly = skeleton.shape, skeleton.assembly
    chosen = {"rf": candidate.rf, "co": candidate.co, "sync_fence": candidate.sync_fence}
    relations = {name: shape.unpack(matrix) for name, matrix in chosen.items()}
    relations |= assembly.relations(variant.meeting, variant.observed)
    values = skeleton.frame.values_of(candidate.traces)
    return Execution(skeleton.frame, values, assembly.sets(variant.observed), relations)


# ---- as another engine hands them over -----------------------------------------------------------------------------


def choice_of(candidate: Candidate) -> Choice:
    """A candidate in the words of a Choice."""
    return _Told(candidate).choice()


class _Told:
    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.execution = execution_of(candidate)
        self.frame = self.execution.frame

    def choice(self) -> Choice:
        execution, frame = self.execution, self.frame
        reads = bits(execution.set("R"))
        fences = execution.relation("sync_fence")
        return Choice(
            tuple((self.name(n), frame.events[n].point.cell, execution.values[n]) for n in reads),  # type: ignore[misc]
            dict(self._answers()),
            tuple((self.writer(a), self.name(b), self.cell(a)) for a, b in self._pairs("rf")),
            tuple((self.name(a), self.name(b), self.cell(a)) for a, b in self._pairs("co") if not self._initial(a)),
            tuple((self.name(a), self.name(b)) for a, row in enumerate(fences) for b in bits(row)),
            {self.name(event): number for event, number in self.candidate.variant.meeting.generations.items()},
            tuple(self._orders()),
            dict(self._seen()),
            tuple(self._finals()),
            tuple(
                RecordName(number, trace.ending.step, trace.ending.time) if trace.ending.end is End.WAITS else None
                for number, trace in enumerate(self.candidate.traces)
            ),
        )

    # ---- events --------------------------------------------------------------------------------------------------

    def record(self, number: int) -> Record:
        found = self.frame.record_of(self.frame.events[number])
        assert found is not None
        return found

    def name(self, number: int) -> RecordName:
        return self.record(number).name

    def writer(self, number: int) -> Writer:
        return None if self._initial(number) else self.name(number)

    def cell(self, number: int):  # type: ignore[no-untyped-def]
        return self.frame.events[number].point.cell

    def _initial(self, number: int) -> bool:
        return isinstance(self.frame.events[number].label, InitialWrite)

    def _pairs(self, name: str) -> Iterator[tuple[int, int]]:
        return ((a, b) for a, row in enumerate(self.execution.relation(name)) for b in bits(row))

    # ---- answers, objects, ends ----------------------------------------------------------------------------------

    def _answers(self) -> Iterator[tuple[RecordName, tuple[int, ...]]]:
        for number, trace in enumerate(self.candidate.traces):
            steps = self.frame.lowered.programs[number].steps
            for record in trace.records:
                told: tuple[int | None, ...] = ()
                if isinstance(record, ObjectRecord):
                    told = (record.result, record.pending)
                elif isinstance(record, AccessRecord) and record.access.family.value.endswith("try_cancel"):
                    told = (int(not record.refused),)
                if any(one is not None for one in told):
                    yield record.name, tuple(one for one in told if one is not None)
            for one in trace.contributions:
                arrive = trace.records[one.arrive].name
                step = next(n for n in range(arrive.step, len(steps)) if isinstance(steps[n].op, Combine))
                yield RecordName(number, step, arrive.time), (one.result,)

    def _orders(self):  # type: ignore[no-untyped-def]
        mbar = self.execution.relation("mbar")
        for one in self.candidate.skeleton.assembly.objects:
            if one.updates:
                yield one.cell, tuple(self.name(use.event) for use in one.walk_of(mbar).order)

    def _seen(self) -> Iterator[tuple[RecordName, Place]]:
        mbar = self.execution.relation("mbar")
        for one in self.candidate.skeleton.assembly.objects:
            for event, (life, over) in self._views(one, mbar).items():
                yield self.name(event), (None if life == START else self.name(life), over)

    def _views(self, one: MbarrierUses, mbar: list[int]) -> Views:
        """What the tests saw: the views from which the relations follow that the execution has."""
        walk, wanted = one.walk_of(mbar), self.candidate.variant.observed
        return next(views for views in one.possible_views(walk) if _within(observe([(one, walk, views)]), wanted, one))

    def _finals(self):  # type: ignore[no-untyped-def]
        co, values = self.execution.relation("co"), self.execution.values
        for cell, value in self.candidate.memory.items():
            for number in bits(self.execution.set("W")):
                if self.cell(number) == cell and values[number] == value and not co[number]:
                    yield cell, self.writer(number)
                    break


def _within(found: Observed, wanted: Observed, one: MbarrierUses) -> bool:
    """Are these the relations of one object, as the whole execution has them?"""
    tests = {use.event for use in one.tests}
    mask = sum(1 << event for event in tests)
    return (
        set(found.mbarobs) == {pair for pair in wanted.mbarobs if pair[1] in tests}
        and set(found.mbarseen) == {pair for pair in wanted.mbarseen if pair[1] in tests}
        and set(found.mbarfr) == {pair for pair in wanted.mbarfr if pair[0] in tests}
        and set(found.mbarnext) == {pair for pair in wanted.mbarnext if pair[0] in tests}
        and found.mbbad & mask == wanted.mbbad & mask
        and found.mbstale & mask == wanted.mbstale & mask
    )
