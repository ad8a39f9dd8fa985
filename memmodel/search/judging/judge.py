"""All programs of a draft judged at once: which outcomes each model allows in which worlds, and which flags it raises.

In: Draft, Vocabulary, models. Out: `Judgements`. Candidate executions are chosen as in `enumeration`: runs, barriers
and objects, rf, order of fence.sc, co; each is evaluated in all worlds. Where worlds are many, one candidate after the
other, and what an early choice rules out is not completed; where they are few, many side by side (`LaneChoice`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from memmodel.base.rows import bits
from memmodel.cat.syntax import Check, Model
from memmodel.concrete.records import Trace
from memmodel.enumeration.orders import partial_orders
from memmodel.search.judging.frames import Frame, Key, Readied
from memmodel.search.judging.slices import ModelSlices, SlicedRows, merged, repeated, union
from memmodel.search.programs import Ready

FEW = 1024
"""Up to this number of worlds, candidates are judged side by side."""

_LAST = 3
"""The last stage: coherence has been chosen."""

LANES = 1 << 13
"""Worlds and candidates that are judged together."""

Candidate = tuple[Sequence[Trace], list[int], list[tuple[int, list[Key]]]]
"""Runs, rf as rows, and every co with the outcomes that it can end in."""


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """One candidate among several: what was chosen, barriers and objects and order of fence.sc by number."""

    variant: int
    rf: tuple[int, ...]
    order: int
    co: int
    keys: list[Key]


@dataclass(slots=True)
class Judgements:
    """`allowed[m]`: outcome -> worlds in which model m allows it. `raised[m]`: flag -> worlds in which it is raised."""

    allowed: list[dict[Key, int]]
    raised: list[dict[str, int]]

    def only(self, mine: int, other: int, among: int) -> dict[Key, int]:
        """The worlds among some in which one model allows an outcome and another one does not."""
        theirs = self.allowed[other]
        return {key: worlds & ~theirs.get(key, 0) & among for key, worlds in self.allowed[mine].items()}


class ModelJudge:
    """Models to compare. `flags[m]`: the flags of model m that are looked for. `outcomes` False: nothing but flags
    counts, so that executions that raise none are not judged to their end.
    """

    def __init__(
        self, models: Sequence[Model], flags: Sequence[Sequence[str]] | None = None, *, outcomes: bool = True
    ) -> None:
        self.models, self.outcomes = models, outcomes
        self.formulas = ModelSlices(models)
        wanted = flags or [()] * len(models)
        self.stages: list[list[list[Check]]] = []
        for number, (model, names) in enumerate(zip(models, wanted, strict=True)):
            flagged = [check for check in model.flags if check.name in names]
            checks = [*model.axioms, *flagged] if outcomes else [*flagged, *model.axioms]
            stages = [self.formulas.stage(number, check.name) for check in checks]
            self.stages.append([[c for c, s in zip(checks, stages, strict=True) if s == n] for n in range(_LAST + 1)])
        self.flagged = any(wanted)

    def judge(self, ready: Ready) -> Judgements:
        """What the models say of a sketch. Raises TooLarge."""
        return _Judging(self, Readied(ready)).run()


class _Judging:
    def __init__(self, judge: ModelJudge, readied: Readied) -> None:
        self.judge, self.readied = judge, readied
        self.formulas = judge.formulas
        self.full = readied.grid.full
        number = len(judge.models)
        self.judgements = Judgements([{} for _ in range(number)], [{} for _ in range(number)])

    def run(self) -> Judgements:
        for frame in self.readied.frames():
            self._frame(frame)
        return self.judgements

    def _frame(self, frame: Frame) -> None:
        candidates = list(executions(frame))
        if not candidates:
            return
        if self.readied.grid.count <= FEW:
            self._side_by_side(frame, candidates)
        else:
            self._in_stages(frame, candidates)

    def _in_stages(self, frame: Frame, candidates: Sequence[Candidate]) -> None:
        """One candidate after the other, choice by choice."""
        names: dict[str, object] = {}
        self.formulas.start(frame.exists, lambda name: names[name] if name in names else frame.base(name))
        count = frame.count
        for variant in frame.variants(self.readied.meter):
            names.clear()
            names.update(variant)
            self.formulas.threads_changed()
            after_threads = self._stage(0, [self.full] * len(self.judge.models), None)
            if not any(after_threads[0]):
                continue
            for _, rf, orders in candidates:
                if self._all_known(orders):
                    continue
                self.formulas.choose("rf", frame.plain(rf))
                after_rf = self._stage(1, *after_threads)
                if not any(after_rf[0]):
                    continue
                for worlds, fences in self._fence_orders(frame):
                    self.formulas.choose("sync_fence", fences)
                    after_fences = self._stage(2, [worlds & alive for alive in after_rf[0]], after_rf[1])
                    if not any(after_fences[0]):
                        continue
                    for co, keys in orders:
                        if self._known(keys):
                            continue
                        rows = [co >> at * count & (1 << count) - 1 for at in range(count)]
                        self.formulas.choose("co", frame.plain(rows))
                        self._accept(keys, *self._stage(_LAST, *after_fences))

    def _side_by_side(self, frame: Frame, candidates: Sequence[Candidate]) -> None:
        """The candidates of a frame together, as many as there are lanes."""
        variants = list(frame.variants(self.readied.meter))
        fences = list(self._fence_orders(frame))
        every = (
            LaneChoice(variant, tuple(rf), order, co, keys)
            for variant in range(len(variants))
            for _, rf, orders in candidates
            for order in range(len(fences))
            for co, keys in orders
        )
        while batch := list(islice(every, max(1, LANES // self.readied.grid.count))):
            self._batch(frame, variants, fences, batch)

    def _batch(
        self,
        frame: Frame,
        variants: Sequence[dict[str, object]],
        fences: Sequence[tuple[int, SlicedRows]],
        batch: Sequence[LaneChoice],
    ) -> None:
        """Candidate n has the worlds from n times their number on."""
        width, count = self.readied.grid.count, frame.count
        groups: list[dict[Any, int]] = [{}, {}, {}, {}]
        for at, lane in enumerate(batch):
            for group, choice in zip(groups, (lane.variant, lane.rf, lane.order, lane.co), strict=True):
                group[choice] = group.get(choice, 0) | 1 << at * width
        objects, sources, orders, coherence = groups
        every = sum(objects.values())
        names = {
            name: merged([(variants[choice][name], lanes) for choice, lanes in objects.items()]) for name in variants[0]
        }
        self.formulas.start(
            repeated(frame.exists, every),
            lambda name: names[name] if name in names else repeated(frame.base(name), every),
        )
        self.formulas.choose("rf", merged([(frame.plain(rf), lanes) for rf, lanes in sources.items()]))
        self.formulas.choose("sync_fence", merged([(fences[choice][1], lanes) for choice, lanes in orders.items()]))
        rows = [
            ([co >> at * count & (1 << count) - 1 for at in range(count)], lanes) for co, lanes in coherence.items()
        ]
        self.formulas.choose("co", merged([(frame.plain(co), lanes) for co, lanes in rows]))
        left = [sum(fences[choice][0] * lanes for choice, lanes in orders.items())] * len(self.judge.models)
        flags: list[dict[str, int]] | None = None
        for stage in range(_LAST + 1):
            left, flags = self._stage(stage, left, flags)
        alive = union(left)
        for at, lane in enumerate(batch):
            if alive >> at * width & self.full:
                raised = [{name: lanes >> at * width for name, lanes in mine.items()} for mine in flags or ()]
                self._accept(lane.keys, [lanes >> at * width & self.full for lanes in left], raised)

    def _known(self, keys: Sequence[Key]) -> bool:
        """True if these outcomes are known to be allowed everywhere, so that only flags could be new."""
        if self.judge.flagged:
            return False
        return all(allowed.get(key) == self.full for key in keys for allowed in self.judgements.allowed)

    def _all_known(self, orders: Sequence[tuple[int, list[Key]]]) -> bool:
        return all(self._known(keys) for _, keys in orders)

    def _stage(
        self, stage: int, alive: Sequence[int], raised: Sequence[dict[str, int]] | None
    ) -> tuple[list[int], list[dict[str, int]]]:
        """The worlds left to each model after the checks of a stage, and those in which flags are raised."""
        left, flags = list(alive), [dict(by_flag) for by_flag in raised or [{} for _ in alive]]
        for number, stages in enumerate(self.judge.stages):
            for check in stages[stage]:
                if not left[number]:
                    break
                if stage == _LAST and not self.judge.outcomes and not check.flag:
                    left[number] &= union(flags[number].values())
                fails = self.formulas.fails(number, check.name)
                holds = fails if check.negated else ~fails
                if check.flag:
                    if holds & left[number]:
                        flags[number][check.name] = flags[number].get(check.name, 0) | holds
                else:
                    left[number] &= holds
        return left, flags

    def _accept(self, keys: Sequence[Key], alive: Sequence[int], flags: Sequence[dict[str, int]]) -> None:
        for number, worlds in enumerate(alive):
            if not worlds:
                continue
            for key in keys:
                self.judgements.allowed[number][key] = self.judgements.allowed[number].get(key, 0) | worlds
            for name, raised in flags[number].items():
                if raised & worlds:
                    self.judgements.raised[number][name] = self.judgements.raised[number].get(name, 0) | raised & worlds

    def _fence_orders(self, frame: Frame) -> Iterator[tuple[int, SlicedRows]]:
        """The partial orders of fence.sc, each with the worlds where it relates every pair in `sr`.

        Orders against program order are left out: one that follows it on each cycle relates no more.
        """
        if not frame.fences:
            yield self.full, [{} for _ in range(frame.count)]
            return
        inclusive, strict = frame.base("sr"), frame.base("SC")
        assert isinstance(inclusive, list) and isinstance(strict, list)
        for order in self._orders(frame):
            worlds, rows = self.full, [dict[int, int]() for _ in range(frame.count)]
            for first, a in enumerate(frame.fences):
                for second, b in enumerate(frame.fences):
                    both = strict[a] & strict[b]
                    if order[first] >> second & 1:
                        if both:
                            rows[a][b] = both
                    elif first < second and not order[second] >> first & 1:
                        worlds &= ~(both & inclusive[a].get(b, 0))
            yield worlds, rows

    def _orders(self, frame: Frame) -> tuple[tuple[int, ...], ...]:
        """The partial orders of all that may be a fence.sc, along program order."""
        points = [frame.fixed.events[fence].point for fence in frame.fences]
        threads = tuple(point.thread for point in points)
        if threads not in _ORDERS:
            peers = [
                sum(1 << b for b, other in enumerate(threads) if b != a and other == mine)
                for a, mine in enumerate(threads)
            ]
            _ORDERS[threads] = tuple(
                order
                for order in partial_orders(len(threads), peers)
                if not any(
                    order[b] >> a & 1
                    for a in range(len(threads))
                    for b in range(a + 1, len(threads))
                    if threads[a] == threads[b]
                )
            )
        return _ORDERS[threads]


_ORDERS: dict[tuple[object, ...], tuple[tuple[int, ...], ...]] = {}


# ---- candidate executions ----------------------------------------------------------------------------------


def executions(frame: Frame) -> Iterator[Candidate]:
    """Every rf of a frame as rows, with every co and the outcomes that it can end in."""
    count = frame.count
    coherence = list(frame.coherence().choices(lambda least, greatest: True))
    ask = frame.family.asked
    cells = list(dict.fromkeys(cell for extent in ask.extents for cell in frame.fixed.cutting.cells(extent)))
    for traces in frame.traces:
        values = frame.fixed.values_of(traces)
        choices = []
        for read in frame.reads:
            cell = frame.fixed.events[read].point.cell
            assert cell is not None
            choices.append([write for write in frame.writes[cell] if values[write] == values[read]])
        if not all(choices):
            continue
        registers = ask.registers([trace.registers for trace in traces])
        orders: list[tuple[int, list[Key]]] = []
        for co, last in coherence:
            asked_cells = [cell for cell in cells if cell in last]
            keys: dict[Key, None] = {}
            for chosen in product(*(bits(last[cell]) for cell in asked_cells)):
                left = tuple((cell, values[write]) for cell, write in zip(asked_cells, chosen, strict=True))
                keys[registers + ask.memory(left)] = None
            orders.append((co, list(keys)))
        for sources in product(*choices):
            rows = [0] * count
            for read, write in zip(frame.reads, sources, strict=True):
                rows[write] |= 1 << read
            yield traces, rows, orders
