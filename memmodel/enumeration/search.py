"""Try candidate executions one by one, refusing whole families as early as the model allows.

In: Problem, Plan, AskedKey. Out: SearchResult: for each key of the question one consistent candidate, what flags
reported, and which axioms excluded candidates. Choices are made in this order: paths and values of the threads,
barriers and objects, rf, sync_fence, co. A family is skipped only if nothing in it could add to the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from math import prod

from memmodel.base.rows import bits
from memmodel.cat.monotonicity import LESS, MORE
from memmodel.concrete.execution import Position, position
from memmodel.concrete.meter import CANDIDATE, Meter
from memmodel.concrete.records import Trace
from memmodel.enumeration.pieces import Pieces, TraceBytes, Written
from memmodel.enumeration.plan import ORDERS, Plan, PlannedCheck, Values
from memmodel.enumeration.problem import Problem
from memmodel.enumeration.question import WAITS, AskedKey, Key, stopped_key
from memmodel.enumeration.skeleton import Skeleton, Variant
from memmodel.enumeration.sources import JUDGING, Sources
from memmodel.memory.bytes import Cell

_FEW_ENDINGS = 4096
"""Up to this many final states of a combination are tried to see whether the condition could hold."""

_FEW_SOURCES = 8
"""Pairs of rf are judged one by one first only for more uses of a skeleton, or for more rf, than this."""

Raised = list[tuple[PlannedCheck, list[tuple[int, int]]]]
"""Flags that are raised, each with the pairs that it reports."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """All choices of one candidate execution: enough to build it again. Relations are matrices over the skeleton."""

    traces: tuple[Trace, ...]
    skeleton: Skeleton
    variant: Variant
    rf: int
    sync_fence: int
    co: int
    memory: dict[Cell, int]
    orders: tuple[int, ...] = ()

    def ending_in(self, memory: dict[Cell, int]) -> Candidate:
        """The candidate with this final state."""
        choices = (self.traces, self.skeleton, self.variant, self.rf, self.sync_fence, self.co)
        return Candidate(*choices, memory, self.orders)


@dataclass(slots=True)
class SearchResult:
    """The result of a search.

    `found`: key -> a consistent candidate. `blamed`: sets of axioms; from each set, at least one axiom forbids
    something wanted. `flags`: (flag, positions) -> candidate and events. `raised`: flag -> a candidate that raises it.
    `with_condition`: the flags that are raised where the condition holds. `judged`: how many candidates were refused
    or accepted; one that is refused before all of it is chosen stands for all that begin like it.
    """

    found: dict[Key, Candidate] = field(default_factory=dict)
    blamed: set[frozenset[str]] = field(default_factory=set)
    flags: dict[tuple[str, frozenset[Position]], tuple[Candidate, int, int]] = field(default_factory=dict)
    raised: dict[str, Candidate] = field(default_factory=dict)
    with_condition: set[str] = field(default_factory=set)
    judged: int = 0


class Search:
    """A search for all keys of `wanted` (None: all there are), and all flags of the plan.

    `undefined`: the flags that report undefined behaviour, with which an execution is no hang.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        question: AskedKey,
        wanted: Collection[Key] | None,
        undefined: Collection[str],
        meter: Meter,
    ) -> None:
        self.result = SearchResult()
        self.undefined = undefined
        self.plan = plan
        self.question = question
        self.meter = meter
        self._problem = problem
        self._wanted = wanted
        self.has_flags = any(stage.flags for stage in plan.stages)
        self._part = 0.0, 1.0
        self._done = 0.0
        self._skeletons: dict[tuple[int, ...], Skeleton] = {}
        self._paths: dict[object, int] = {}
        self._path_of: dict[int, int] = {}
        self._sources: dict[int, Sources] = {}

    def run(self) -> None:
        """Search until everything wanted is found or nothing is left. Raises BudgetSpent."""
        waiting = []
        for traces in self.combinations():
            keys = self._possible(traces)
            rank = 1 if keys is None or len(keys) > 1 else 0 if True in keys else 2
            waiting.append((rank, traces, keys))
            self.meter.needs(len(waiting) * CANDIDATE // 2)
        waiting.sort(key=lambda entry: entry[0])
        self.meter.ready()
        for number, (_, traces, keys) in enumerate(waiting):
            if self._settled():
                return
            self._part = number / len(waiting), 1 / len(waiting)
            self.progress(0.0)
            if self.has_flags or self.adds(keys):
                skeleton = self.skeleton(traces)
                self.meter.weigh(skeleton.shape.count)
                _Combination(self, traces, skeleton, keys).run()

    def progress(self, share: float | None = None) -> None:
        """Tell the meter which share of the present combination is done; None: as much as before."""
        begun, size = self._part
        if share is not None:
            self._done = begun + share * size
        self.meter.expect(self._done)

    def _settled(self) -> bool:
        if self._wanted is None or self.has_flags:
            return False
        return all(key in self.result.found for key in self._wanted)

    def adds(self, keys: frozenset[Key] | None) -> bool:
        """True if one of these keys could still be of use."""
        return keys is None or any(key not in self.result.found for key in keys)

    def skeleton(self, traces: tuple[Trace, ...]) -> Skeleton:
        key = tuple(self._path(trace) for trace in traces)
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            self.meter.spend(CANDIDATE)
            skeleton = Skeleton(self._problem.lowered, self.plan, traces, self.question.extents)
            self._skeletons[key] = skeleton
        skeleton.uses += 1
        return skeleton

    def _path(self, trace: Trace) -> int:
        """A number for the path of a trace: traces that differ only in values have the same one."""
        number = self._path_of.get(id(trace))  # the problem keeps its traces
        if number is None:
            path = trace.records, trace.ending, trace.contributions
            number = self._path_of[id(trace)] = self._paths.setdefault(path, len(self._paths))
        return number

    def sources(self, skeleton: Skeleton, variant: Variant) -> Sources:
        """The judge of single pairs of rf, for one choice of barriers and objects."""
        known = self._sources.get(id(variant))
        if known is None:
            known = Sources(self.plan, skeleton, variant, self.meter, self.progress)
            if skeleton.keeps(variant):
                self._sources[id(variant)] = known
        return known

    # ---- paths and values ----------------------------------------------------------------------------------

    def combinations(self) -> Iterator[tuple[Trace, ...]]:
        """One trace per thread, such that every value read is written by some thread or initial."""
        pieces = Pieces(self._problem.cutting)
        parts = (self._problem.complete, self._problem.waiting, self._problem.stopped)
        threads = [
            [(trace, TraceBytes.of(trace, pieces)) for trace in (*complete, *waiting, *stopped)]
            for complete, waiting, stopped in zip(*parts, strict=True)
        ]
        number = self._needs([touched for rows in threads for _, touched in rows], pieces)
        masks = [
            [(trace, touched.reads_in(number), touched.writes_in(number)) for trace, touched in rows]
            for rows in threads
        ]
        later = [0] * (len(masks) + 1)
        for at in range(len(masks) - 1, -1, -1):
            later[at] = later[at + 1]
            for _, _, gives in masks[at]:
                later[at] |= gives

        def extend(at: int, chosen: tuple[Trace, ...], needs: int, provided: int) -> Iterator[tuple[Trace, ...]]:
            if at == len(masks):
                yield chosen
                return
            for trace, more_needs, gives in masks[at]:
                self.meter.spend(1)
                if not (needs | more_needs) & ~(provided | gives | later[at + 1]):
                    yield from extend(at + 1, (*chosen, trace), needs | more_needs, provided | gives)

        for traces in extend(0, (), 0, 0):
            self.meter.spend(CANDIDATE // 4)
            yield traces

    def _needs(self, traces: Sequence[TraceBytes], pieces: Pieces) -> dict[Written, int]:
        """Numbers for the values read that are not initial, so that some thread has to write them."""
        initial = {
            number: self._problem.lowered.space.initial(cell.instance, cell.first, cell.size)
            for cell, number in pieces.cells.items()
        }
        wanted = (need for need in dict.fromkeys(need for touched in traces for need in touched.reads))
        return {need: number for number, need in enumerate(need for need in wanted if initial[need[0]] != need[1])}

    def _possible(self, traces: tuple[Trace, ...]) -> frozenset[Key] | None:
        """The keys that this combination may have; None if they depend on co."""
        stopped = stopped_key(traces)
        if stopped is not None:
            return frozenset((stopped,))
        if not all(trace.ending.complete for trace in traces):
            return frozenset((WAITS,))
        registers = [trace.registers for trace in traces]
        if not self.question.extents:
            return frozenset((self.question.key(registers, {}),))
        return None


class _Combination:
    """The search below one combination of traces."""

    def __init__(
        self, search: Search, traces: tuple[Trace, ...], skeleton: Skeleton, keys: frozenset[Key] | None
    ) -> None:
        self.search = search
        self.result = search.result
        self.plan = search.plan
        self.meter = search.meter
        self.question = search.question
        self.traces = traces
        self.registers = [trace.registers for trace in traces]
        self.skeleton = skeleton
        self.shape = skeleton.shape
        self.values = skeleton.frame.values_of(traces)
        self.keys = keys
        self.ended = all(trace.ending.complete for trace in traces)
        self.stopped = stopped_key(traces)

    @cached_property
    def blames(self) -> bool:
        """True if the condition could hold at the end of this combination, were it not for the axioms."""
        if not self.ended or self.keys is not None:
            return self.ended and self.keys is not None and True in self.keys
        every = {  # the initial write is the first one
            cell: sum(1 << write for write in others or [initial])
            for cell, (initial, *others) in self.skeleton.writes.items()
        }
        asked = [cell for extent in self.question.extents for cell in self.skeleton.frame.cutting.cells(extent)]
        many = prod(len(self.skeleton.writes[cell]) for cell in dict.fromkeys(asked) if cell in every)
        return many > _FEW_ENDINGS or any(key is True for key, _ in self._endings(every))

    def run(self) -> None:
        choices = []
        for read in self.skeleton.reads:
            cell = self.skeleton.frame.events[read].point.cell
            assert cell is not None
            choices.append([write for write in self.skeleton.writes[cell] if self.values[write] == self.values[read]])
        if not all(choices):
            return
        for variant in self.skeleton.variants(self.meter):
            if self._refused(variant.failed):
                continue
            possible = self._possible(variant, choices)
            judged = 0.0 if possible is choices else JUDGING
            count = prod(map(len, possible))
            for number, sources in enumerate(product(*possible)):
                if not self._useful():
                    return
                self.search.progress(judged + (1 - judged) * number / count)
                rf = 0
                for read, write in zip(self.skeleton.reads, sources, strict=True):
                    rf |= 1 << write * self.shape.count + read
                self._try_rf(variant, rf)

    def _possible(self, variant: Variant, choices: list[list[int]]) -> list[list[int]]:
        """The writes that each read may read from, without those that are refused whatever the others read."""
        if self.skeleton.uses <= _FEW_SOURCES and prod(map(len, choices)) <= _FEW_SOURCES:
            return choices
        judge = self.search.sources(self.skeleton, variant)
        left: list[list[int]] = []
        for number, (read, writes) in enumerate(zip(self.skeleton.reads, choices, strict=True)):
            self.search.progress(JUDGING * number / len(choices))
            refusals = {write: judge.refused(write, read) for write in writes}
            for failed in frozenset().union(*refusals.values()):
                self._refused(failed)
            left.append([write for write in writes if not refusals[write]])
            if not left[-1]:
                break
        return left

    def _useful(self) -> bool:
        """True if this combination could still add something."""
        return self.search.has_flags or self.search.adds(self.keys)

    def _refused(self, failed: frozenset[str]) -> bool:
        if failed:
            self.result.judged += 1
            if self.blames and True not in self.result.found:
                self.result.blamed.add(failed)
        return bool(failed)

    def _failed(self, stage: int, values: Values) -> frozenset[str]:
        """The axioms of a stage that fail: all of them if the answer will name them, else the first."""
        self.meter.spend(CANDIDATE)
        failed = []
        for test in self.plan.stages[stage].axioms:
            if not test.holds(values, self.shape):
                failed.append(test.check.name)
                if not self.blames or True in self.result.found:
                    break
        return frozenset(failed)

    def _prepare(self, stage: int, values: Values) -> None:
        for compute in self.plan.stages[stage].prepare:
            compute(values, self.shape)

    def _try_rf(self, variant: Variant, rf: int) -> None:
        values = variant.values
        self.plan.fill(values, "rf", rf)
        if self._refused(self._failed(1, values)):
            return
        raised = [(test, self._pairs(test, values[test.slot])) for test in variant.raised] + self._raised(1, values)
        self._prepare(1, values)
        for order in self.skeleton.fence_orders():
            self.plan.fill(values, "sync_fence", order)
            self.meter.spend(CANDIDATE // 2)
            self.search.progress()
            if self.plan.stages[2].axioms and self._refused(self._failed(2, values)):
                continue
            now = raised + self._raised(2, values)
            self._prepare(2, values)
            self._try_co(variant, values, rf, order, now)
            if not self._useful():
                return

    def _try_co(self, variant: Variant, values: Values, rf: int, order: int, raised: Raised) -> None:
        """Look for consistent co's, as long as they can add something."""
        news = any(self._new(test, pairs) for test, pairs in raised)
        late_flags = bool(self.plan.stages[3].flags or self.plan.stages[ORDERS].flags)
        for co, last in self.skeleton.coherence.choices(partial(self._alive, values)):
            if not (late_flags or news or self.search.adds(self.keys)):
                return
            endings = self._endings(last)
            if not (late_flags or news or any(key not in self.result.found for key, _ in endings)):
                self.meter.spend(CANDIDATE // 20)
                continue
            self.plan.fill(values, "co", co)
            if not self.skeleton.waits_read_last_writes(rf, co) or self._refused(self._failed(3, values)):
                continue
            self.meter.spend(CANDIDATE // 2)
            raised_here = raised + self._raised(3, values)
            self._prepare(3, values)
            for orders in self.plan.choices(values, self.shape):
                if orders and self._refused(self._failed(ORDERS, values)):
                    continue
                candidate = Candidate(self.traces, self.skeleton, variant, rf, order, co, {}, orders)
                self._accept(candidate, endings, raised_here + self._raised(ORDERS, values))
                news = False
                if not self.plan.stages[ORDERS].flags:
                    break

    def _accept(self, candidate: Candidate, endings: list[tuple[Key, dict[Cell, int]]], raised: Raised) -> None:
        """Keep what a consistent candidate adds."""
        self.result.judged += 1
        if self.stopped is None:
            for test, pairs in raised:
                self._record(candidate, test, pairs)
        for key, memory in endings:
            if key == WAITS and any(test.check.name in self.search.undefined for test, _ in raised):
                continue
            if key is True:
                self.result.with_condition.update(test.check.name for test, _ in raised)
            if key not in self.result.found:
                self.result.found[key] = candidate.ending_in(memory)

    def _alive(self, values: Values, least: int, greatest: int) -> bool:
        """True if a co between these two may be consistent.

        An axiom that only a larger co can break is evaluated on the least, one that only a smaller co can break on the
        greatest.
        """
        for co, breaks in ((least, MORE), (greatest, LESS)):
            stage = self.plan.stages[3]
            if not any(test.broken_by == breaks for test in stage.axioms):
                continue
            self.meter.spend(CANDIDATE)
            self.plan.fill(values, "co", co)
            if self._refused(stage.broken(values, self.shape, partial(_broken_by, breaks))):
                return False
        return True

    def _endings(self, last: dict[Cell, int]) -> list[tuple[Key, dict[Cell, int]]]:
        """The keys of a candidate: of its final states as far as the question looks at them, or of how it stops."""
        if self.stopped is not None:
            return [(self.stopped, {})]
        if not self.ended:
            return [(WAITS, {})]
        cells = [cell for extent in self.question.extents for cell in self.skeleton.frame.cutting.cells(extent)]
        asked = [cell for cell in dict.fromkeys(cells) if cell in last]
        endings: list[tuple[Key, dict[Cell, int]]] = []
        for chosen in product(*(bits(last[cell]) for cell in asked)):
            memory = {}
            for cell, write in zip(asked, chosen, strict=True):
                value = self.values[write]
                assert value is not None
                memory[cell] = value
            endings.append((self.question.key(self.registers, memory), memory))
        return endings

    # ---- flags ---------------------------------------------------------------------------------------------

    def _raised(self, stage: int, values: Values) -> Raised:
        """The flags of a stage that are raised, with the pairs that they report."""
        raised = []
        for test in self.plan.stages[stage].flags:
            if test.holds(values, self.shape):
                raised.append((test, self._pairs(test, values[test.slot])))
        return raised

    def _pairs(self, test: PlannedCheck, body: int) -> list[tuple[int, int]]:
        """The pairs of a raised flag; see Evaluation.flags."""
        check, shape = test.check, self.shape
        if not check.negated:
            return []
        if check.body.kind.value == "set":
            return [(event, event) for event in bits(body)]
        if check.kind == "irreflexive":
            body &= shape.diagonal
        elif check.kind == "acyclic":
            body &= shape.inverse(shape.closure(body))
        return [divmod(bit, shape.count) for bit in bits(body)]

    def _new(self, test: PlannedCheck, pairs: Sequence[tuple[int, int]]) -> bool:
        name = test.check.name
        if self.ended and name not in self.result.with_condition:
            return True
        return name not in self.result.raised or any(self._key(name, pair) not in self.result.flags for pair in pairs)

    def _record(self, candidate: Candidate, test: PlannedCheck, pairs: Sequence[tuple[int, int]]) -> None:
        name = test.check.name
        self.result.raised.setdefault(name, candidate)
        for pair in pairs:
            self.result.flags.setdefault(self._key(name, pair), (candidate, *pair))

    def _key(self, name: str, pair: tuple[int, int]) -> tuple[str, frozenset[Position]]:
        frame = self.skeleton.frame
        return name, frozenset(position(frame, frame.events[event]) for event in pair)


def _broken_by(breaks: frozenset[int], test: PlannedCheck) -> bool:
    return test.broken_by == breaks
