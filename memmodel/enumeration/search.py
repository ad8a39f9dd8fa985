"""Try candidate executions one by one, refusing whole families as early as the model allows.

In: Problem, Plan, Question. Out: Findings: for each key of the question one consistent candidate, what flags reported,
and which axioms stood in the way. Order of choice: paths and values of the threads, barrier groups, rf, sync_fence, co.
A family is skipped only if nothing in it could add to the findings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from memmodel.enumeration.barriers import reductions_agree
from memmodel.enumeration.execution import ExecutionEvent, bits
from memmodel.enumeration.finals import Key, Question
from memmodel.enumeration.meter import CANDIDATE, Meter
from memmodel.enumeration.plan import Plan, Test, Values
from memmodel.enumeration.problem import Problem
from memmodel.enumeration.signs import LESS, MORE
from memmodel.enumeration.skeleton import Skeleton, Variant
from memmodel.enumeration.traces import Trace
from memmodel.isa.memory import Location

_MANY_FINALS = 64
"""Beyond so many conceivable final memories a combination is searched without asking first what it could add."""

Position = tuple[int, int, int | None] | tuple[str, Location]
"""Where an event comes from: (thread, step, part of an asynchronous instruction), or ("initial", location)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """All choices of one candidate execution: enough to build it again. Relations are matrices over the skeleton."""

    traces: tuple[Trace, ...]
    skeleton: Skeleton
    variant: Variant
    rf: int
    sync_fence: int
    co: int
    memory: dict[Location, int]


@dataclass(slots=True)
class Findings:
    """`found`: key -> a consistent candidate. `blamed`: sets of axioms, one of each at least forbids something wanted.

    `flags`: (flag, positions) -> candidate and events; `raised`: flags raised with or without pairs.
    """

    found: dict[Key, Candidate] = field(default_factory=dict)
    blamed: set[frozenset[str]] = field(default_factory=set)
    flags: dict[tuple[str, frozenset[Position]], tuple[Candidate, int, int]] = field(default_factory=dict)
    raised: dict[str, None] = field(default_factory=dict)


class Search:
    """A search for all keys of `wanted` (None: all there are), and all flags if the plan has any.

    `hangs`: among the executions in which some thread waits for ever, and not among those that end.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        question: Question,
        wanted: Collection[Key] | None,
        meter: Meter,
        *,
        hangs: bool = False,
    ) -> None:
        self._hangs = hangs
        self.findings = Findings()
        self._problem = problem
        self._plan = plan
        self._question = question
        self._wanted = wanted
        self._meter = meter
        self._has_flags = any(stage.flags for stage in plan.stages)
        self._skeletons: dict[tuple[int, ...], Skeleton] = {}

    def run(self) -> None:
        """Search until everything wanted is found or nothing is left. Raises BudgetSpent."""
        waiting: list[tuple[int, tuple[Trace, ...], tuple[int, ...], frozenset[Key] | None]] = []
        for traces, paths in self._combinations():
            keys = self._possible(traces)
            rank = 1 if keys is None or len(keys) > 1 else 0 if True in keys else 2
            waiting.append((rank, traces, paths, keys))
        waiting.sort(key=lambda one: one[0])
        for _, traces, paths, keys in waiting:
            if self._settled():
                return
            if self._has_flags or self._adds(keys):
                self._combination(traces, paths, keys)

    def _settled(self) -> bool:
        if self._wanted is None or self._has_flags:
            return False
        return all(key in self.findings.found for key in self._wanted)

    def _adds(self, keys: frozenset[Key] | None) -> bool:
        """Could one of these keys still be of use?"""
        return keys is None or any(key not in self.findings.found for key in keys)

    # ---- paths and values ----------------------------------------------------------------------------------

    def _combinations(self) -> Iterator[tuple[tuple[Trace, ...], tuple[int, ...]]]:
        """One trace per thread, such that every value read is written by some thread or initial; with path numbers."""
        number: dict[tuple[Location, int], int] = {}
        paths: dict[object, int] = {}
        initial = 0
        for where, value in self._problem.memory.initial.items():
            initial |= 1 << number.setdefault((where, value), len(number))
        threads: list[list[tuple[Trace, int, int, int]]] = []
        for traces, standing in zip(self._problem.traces, self._problem.standing, strict=True):
            rows = []
            for trace in (*traces, *standing) if self._hangs else traces:
                needs = gives = 0
                for event, written in zip(trace.events, trace.values, strict=True):
                    if event.cell is None or written is None:
                        continue
                    bit = 1 << number.setdefault((event.cell.location, written), len(number))
                    if "R" in event.made.tags:
                        needs |= bit
                    else:
                        gives |= bit
                path = paths.setdefault((trace.events, trace.stand, trace.exited), len(paths))
                rows.append((trace, path, needs, gives))
            threads.append(rows)
        later = [0] * (len(threads) + 1)
        for at in range(len(threads) - 1, -1, -1):
            later[at] = later[at + 1]
            for _, _, _, gives in threads[at]:
                later[at] |= gives

        def extend(
            at: int, chosen: tuple[Trace, ...], numbers: tuple[int, ...], needs: int, gives: int
        ) -> Iterator[tuple[tuple[Trace, ...], tuple[int, ...]]]:
            if at == len(threads):
                yield chosen, numbers
                return
            for trace, path, more_needs, more_gives in threads[at]:
                self._meter.spend(1)
                all_needs, all_gives = needs | more_needs, gives | more_gives
                if not all_needs & ~(all_gives | later[at + 1]):
                    yield from extend(at + 1, (*chosen, trace), (*numbers, path), all_needs, all_gives)

        for traces, numbers in extend(0, (), (), 0, initial):
            self._meter.spend(CANDIDATE // 4)
            if self._hangs and not any(trace.stand for trace in traces):
                continue
            if reductions_agree([one for trace in traces for one in trace.reductions]):
                yield traces, numbers

    def _possible(self, traces: tuple[Trace, ...]) -> frozenset[Key] | None:
        """The keys that some co could give this combination; None if there are too many to say."""
        registers = [trace.registers for trace in traces]
        options = []
        total = 1
        for where in self._question.locations:
            values = {
                value
                for trace in traces
                for event, value in zip(trace.events, trace.values, strict=True)
                if event.cell is not None and event.cell.location == where and value is not None
            }
            values.add(self._problem.memory.initial[where])
            total *= len(values)
            options.append(tuple(values))
        if total > _MANY_FINALS:
            return None
        return frozenset(
            self._question.key(registers, dict(zip(self._question.locations, values, strict=True)))
            for values in product(*options)
        )

    def _combination(self, traces: tuple[Trace, ...], paths: tuple[int, ...], keys: frozenset[Key] | None) -> None:
        skeleton = self._skeletons.get(paths)
        if skeleton is None:
            self._meter.spend(CANDIDATE)
            skeleton = Skeleton(
                self._problem,
                self._plan,
                [one.events for one in traces],
                [one.stand for one in traces],
                [number for number, one in enumerate(traces) if one.exited],
            )
            self._skeletons[paths] = skeleton
        values: list[int | None] = [self._problem.memory.initial[where] for where in self._problem.locations]
        for trace in traces:
            values.extend(trace.values)
        _Combination(self, traces, skeleton, values, keys).run()


class _Combination:
    """The search below one combination of traces."""

    def __init__(
        self,
        search: Search,
        traces: tuple[Trace, ...],
        skeleton: Skeleton,
        values: Sequence[int | None],
        keys: frozenset[Key] | None,
    ) -> None:
        self.search = search
        self.findings = search.findings
        self.plan = search._plan
        self.meter = search._meter
        self.question = search._question
        self.traces = traces
        self.registers = [trace.registers for trace in traces]
        self.skeleton = skeleton
        self.shape = skeleton.shape
        self.event_values = values
        self.keys = keys
        self.blames = keys is None or True in keys

    def run(self) -> None:
        choices = []
        for read in self.skeleton.reads:
            where = self.skeleton.events[read].location
            assert where is not None
            value = self.event_values[read]
            writes = self.skeleton.writes[where]
            choices.append([write for write in writes if self.event_values[write] == value])
        if not all(choices):
            return
        for variant in self.skeleton.variants(self.meter):
            if self._refused(variant.failed):
                continue
            for sources in product(*choices):
                if not self._useful():
                    return
                rf = 0
                for read, write in zip(self.skeleton.reads, sources, strict=True):
                    rf |= 1 << write * self.shape.count + read
                self._try_rf(variant, rf)

    def _useful(self) -> bool:
        """Is there still something that this combination could add?"""
        return self.search._has_flags or self.search._adds(self.keys)

    def _refused(self, failed: frozenset[str]) -> bool:
        if failed and self.blames and True not in self.findings.found:
            self.findings.blamed.add(failed)
        return bool(failed)

    def _failed(self, stage: int, values: Values) -> frozenset[str]:
        """The axioms of a stage that fail: the first, or all of them while someone will ask which."""
        self.meter.spend(CANDIDATE)
        failed = []
        for test in self.plan.stages[stage].axioms:
            if not test.holds(values, self.shape):
                failed.append(test.check.name)
                if not self.blames or True in self.findings.found:
                    break
        return frozenset(failed)

    def _set(self, values: Values, name: str, matrix: int) -> None:
        slot = self.plan.slots.get(name)
        if slot is not None:
            values[slot] = matrix

    def _prepare(self, stage: int, values: Values) -> None:
        for run in self.plan.stages[stage].prepare:
            run(values, self.shape)

    def _try_rf(self, variant: Variant, rf: int) -> None:
        values = variant.values
        self._set(values, "rf", rf)
        if self._refused(self._failed(1, values)):
            return
        raised = [(test, self._pairs(test, values[test.slot])) for test in variant.raised] + self._raised(1, values)
        self._prepare(1, values)
        for order in self.skeleton.fence_orders():
            self._set(values, "sync_fence", order)
            if self.plan.stages[2].axioms and self._refused(self._failed(2, values)):
                continue
            now = raised + self._raised(2, values)
            self._prepare(2, values)
            self._try_co(variant, values, rf, order, now)
            if not self._useful():
                return

    def _try_co(
        self, variant: Variant, values: Values, rf: int, order: int, raised: list[tuple[Test, list[tuple[int, int]]]]
    ) -> None:
        """Look for consistent co's; only until nothing new can come of them."""
        news = any(self._new(test, pairs) for test, pairs in raised)
        late_flags = bool(self.plan.stages[3].flags)
        for co, last in self.skeleton.coherence.choices(partial(self._alive, values)):
            if not (late_flags or news or self.search._adds(self.keys)):
                return
            endings = self._endings(last)
            if not (late_flags or news or any(key not in self.findings.found for key, _ in endings)):
                self.meter.spend(CANDIDATE // 20)
                continue
            self._set(values, "co", co)
            if not self.skeleton.rests(rf, co) or self._refused(self._failed(3, values)):
                continue
            candidate = Candidate(self.traces, self.skeleton, variant, rf, order, co, {})
            for test, pairs in raised + self._raised(3, values):
                self._record(candidate, test, pairs)
            news = False
            for key, memory in endings:
                if key not in self.findings.found:
                    found = Candidate(self.traces, self.skeleton, variant, rf, order, co, memory)
                    self.findings.found[key] = found

    def _alive(self, values: Values, least: int, greatest: int) -> bool:
        """Can a co between these be consistent? Axioms that only more (less) co hurts judge the least (greatest)."""
        for co, hurt in ((least, MORE), (greatest, LESS)):
            axioms = self.plan.stages[3].axioms
            if not any(test.harm == hurt for test in axioms):
                continue
            self.meter.spend(CANDIDATE)
            self._set(values, "co", co)
            failed = {test.check.name for test in axioms if not test.holds(values, self.shape) and test.harm == hurt}
            if self._refused(frozenset(failed)):
                return False
        return True

    def _endings(self, last: dict[Location, int]) -> list[tuple[Key, dict[Location, int]]]:
        """The final states of a candidate as far as the question looks at them: one maximal write per location."""
        endings = []
        for chosen in product(*(bits(last[where]) for where in self.question.locations)):
            memory = {}
            for where, write in zip(self.question.locations, chosen, strict=True):
                value = self.event_values[write]
                assert value is not None
                memory[where] = value
            endings.append((self.question.key(self.registers, memory), memory))
        return endings

    # ---- flags ---------------------------------------------------------------------------------------------

    def _raised(self, stage: int, values: Values) -> list[tuple[Test, list[tuple[int, int]]]]:
        """The flags of a stage that are raised, with the pairs that they report."""
        raised = []
        for test in self.plan.stages[stage].flags:
            if test.holds(values, self.shape):
                raised.append((test, self._pairs(test, values[test.slot])))
        return raised

    def _pairs(self, test: Test, body: int) -> list[tuple[int, int]]:
        """The pairs of a raised flag; see Evaluation.flags."""
        check, shape = test.check, self.shape
        if not check.negated:
            return []
        if check.body.kind.value == "set":
            return [(event, event) for event in bits(body)]
        if check.test == "irreflexive":
            body &= shape.diagonal
        elif check.test == "acyclic":
            body &= shape.inverse(shape.closure(body))
        return [divmod(bit, shape.count) for bit in bits(body)]

    def _new(self, test: Test, pairs: Sequence[tuple[int, int]]) -> bool:
        name = test.check.name
        known = self.findings.flags
        return name not in self.findings.raised or any(self._key(name, pair) not in known for pair in pairs)

    def _record(self, candidate: Candidate, test: Test, pairs: Sequence[tuple[int, int]]) -> None:
        name = test.check.name
        self.findings.raised[name] = None
        for pair in pairs:
            self.findings.flags.setdefault(self._key(name, pair), (candidate, *pair))

    def _key(self, name: str, pair: tuple[int, int]) -> tuple[str, frozenset[Position]]:
        events = self.skeleton.events
        return name, frozenset((position(events[pair[0]]), position(events[pair[1]])))


def position(event: ExecutionEvent) -> Position:
    """Where an event comes from, the same in all executions."""
    if event.thread is None or event.step is None:
        assert event.location is not None
        return ("initial", event.location)
    return (event.thread, event.step, event.part)


def smallest_blame(blamed: Collection[frozenset[str]]) -> tuple[str, ...]:
    """A few axioms such that each family of candidates fails one of them: greedily the one that fails most."""
    left = set(blamed)
    chosen: list[str] = []
    while left:
        names = sorted({name for one in left for name in one})
        best = max(names, key=lambda name: sum(name in one for one in left))
        chosen.append(best)
        left = {one for one in left if best not in one}
    return tuple(chosen)
