"""All candidate executions of a small test side by side, consistent or not.

In: LoweredTest. Out: `Lanes`: for each way in which the threads can run, the candidates as bits of one integer (lanes).
Settled here: nothing is refused, since an edited model may allow what the model forbids. Candidates are made as in
`enumeration.search`: paths and values, barriers and objects, rf, order of fence.sc, co.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from memmodel.answer import Budget
from memmodel.base.rows import Rows, bits, pairs_of
from memmodel.base.sets import SET_ROWS
from memmodel.cat.syntax import Model
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import Trace
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import prepare
from memmodel.enumeration.question import AskedKey, stopped_key
from memmodel.enumeration.search import Search
from memmodel.enumeration.skeleton import Skeleton, Variant
from memmodel.errors import BudgetSpent, TooLarge
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.search.judging.slices import SlicedRows, merged, repeated

MOST = 10_000
"""At most this many candidates of a test are judged side by side; a test with more goes to an engine."""

_PREPARING = Budget(effort=8_000_000, seconds=5.0)

_NO_MODEL = Model("no model", "", (), ())


@dataclass(slots=True)
class Lanes:
    """Candidates with the same events. `yes`, `no`: those whose final state may satisfy the condition, or not.
    `waits`: those in which a thread waits for ever; `stopped`: those that go beyond the bound or what is modelled.
    `choices`: the number of the variant, rf, order of fence.sc and co; by each value, the lanes that have it."""

    skeleton: Skeleton
    variants: Sequence[Variant]
    count: int = 0
    yes: int = 0
    no: int = 0
    waits: int = 0
    stopped: int = 0
    choices: tuple[dict[int, int], ...] = field(default_factory=lambda: ({}, {}, {}, {}))
    _known: dict[str, Any] = field(default_factory=dict)

    def add(self, choice: tuple[int, int, int, int]) -> int:
        """A new lane; returns its bit."""
        lane = 1 << self.count
        self.count += 1
        for lanes, chosen in zip(self.choices, choice, strict=True):
            lanes[chosen] = lanes.get(chosen, 0) | lane
        return lane

    @property
    def every(self) -> int:
        """All lanes."""
        return (1 << self.count) - 1

    def base(self, name: str) -> Any:
        """What a base name means, in all lanes."""
        if name not in self._known:
            self._known[name] = self._base(name)
        return self._known[name]

    def _base(self, name: str) -> Any:
        frame, shape = self.skeleton.frame, self.skeleton.shape
        for chosen, lanes in zip(("rf", "sync_fence", "co"), self.choices[1:], strict=True):
            if name == chosen:
                return merged([(_sliced(shape.unpack(matrix)), where) for matrix, where in lanes.items()])
        if name in self._decided[0]:
            return merged([(self._decided[number][name], where) for number, where in self.choices[0].items()])
        value = _members(frame.set(name), frame.count) if name in SET_ROWS else _sliced(frame.relation(name))
        return repeated(value, self.every)

    @property
    def _decided(self) -> list[dict[str, Any]]:
        """The base names that barriers and objects decide, for each variant."""
        if "" not in self._known:
            assembly, count = self.skeleton.assembly, self.skeleton.frame.count
            self._known[""] = [
                {
                    **{name: _members(mask, count) for name, mask in assembly.sets(variant.observed).items()},
                    **{
                        name: _sliced(rows)
                        for name, rows in assembly.relations(variant.meeting, variant.observed).items()
                    },
                }
                for variant in self.variants
            ]
        decided: list[dict[str, Any]] = self._known[""]
        return decided


def _members(mask: int, count: int) -> list[int]:
    return [mask >> event & 1 for event in range(count)]


def _sliced(rows: Rows) -> SlicedRows:
    sliced: SlicedRows = [{} for _ in rows]
    for a, b in pairs_of(rows):
        sliced[a][b] = 1
    return sliced


def candidates(lowered: LoweredTest, bound: int, *, grounded: bool, most: int = MOST) -> list[Lanes] | None:
    """All candidates of a test; None if there are too many. `grounded`: no value supports itself."""
    try:
        return _candidates(lowered, bound, grounded, most)
    except (BudgetSpent, TooLarge):
        return None


def _candidates(lowered: LoweredTest, bound: int, grounded: bool, most: int) -> list[Lanes] | None:
    meter = Meter(_PREPARING)
    question = AskedKey(lowered)
    problem = prepare(lowered, bound, meter, waits=True, asked=question.extents, grounded=grounded)
    plan = Plan(_NO_MODEL, ())
    plan.least_fences = False
    search = Search(problem, plan, question, None, (), meter)
    of_skeleton: dict[int, Lanes] = {}
    left = most
    for traces in search.combinations():
        skeleton = search.skeleton(traces)
        lanes = of_skeleton.get(id(skeleton))
        if lanes is None:
            lanes = of_skeleton[id(skeleton)] = Lanes(skeleton, list(skeleton.variants(meter)))
        left = _add(lanes, traces, question, left)
        if left < 0:
            return None
    return [lanes for lanes in of_skeleton.values() if lanes.count]


def _add(lanes: Lanes, traces: tuple[Trace, ...], question: AskedKey, left: int) -> int:
    """Add the candidates of one combination of runs; returns how many more are wanted, less than 0 for too many."""
    skeleton, values = lanes.skeleton, lanes.skeleton.frame.values_of(traces)
    sources = []
    for read in skeleton.reads:
        cell = skeleton.frame.events[read].point.cell
        assert cell is not None
        sources.append([write for write in skeleton.writes[cell] if values[write] == values[read]])
    if not all(sources):
        return left
    fences = _at_most(skeleton.fence_orders(), left)
    coherence = _at_most(skeleton.coherence.choices(lambda least, greatest: True), left)
    if fences is None or coherence is None:
        return -1
    many = len(lanes.variants) * prod(map(len, sources)) * len(fences) * len(coherence)
    if many > left:
        return -1
    count = skeleton.frame.count
    kinds = [_kind(skeleton, traces, values, question, last) for _, last in coherence]
    for chosen in product(*sources):
        rf = sum(1 << write * count + read for read, write in zip(skeleton.reads, chosen, strict=True))
        for (co, _), kind in zip(coherence, kinds, strict=True):
            if not skeleton.waits_read_last_writes(rf, co):
                continue
            for order in fences:
                for number in range(len(lanes.variants)):
                    lane = lanes.add((number, rf, order, co))
                    for word in kind:
                        setattr(lanes, word, getattr(lanes, word) | lane)
    return left - many


def _at_most(choices: Any, most: int) -> list[Any] | None:
    """All choices; None if there are more than `most`."""
    listed = []
    for choice in choices:
        listed.append(choice)
        if len(listed) > most:
            return None
    return listed


def _kind(
    skeleton: Skeleton,
    traces: tuple[Trace, ...],
    values: Sequence[int | None],
    question: AskedKey,
    last: dict[Cell, int],
) -> tuple[str, ...]:
    """The fields of `Lanes` that a candidate belongs to."""
    if stopped_key(traces) is not None:
        return ("stopped",)
    if not all(trace.ending.complete for trace in traces):
        return ("waits",)
    registers = [trace.registers for trace in traces]
    cells = [cell for extent in question.extents for cell in skeleton.frame.cutting.cells(extent)]
    asked = [cell for cell in dict.fromkeys(cells) if cell in last]
    kinds: set[str] = set()
    for chosen in product(*(bits(last[cell]) for cell in asked)):
        memory = {
            cell: value for cell, write in zip(asked, chosen, strict=True) if (value := values[write]) is not None
        }
        kinds.add("yes" if question.key(registers, memory) else "no")
    return tuple(sorted(kinds))
