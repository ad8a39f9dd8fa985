"""Waits that do not end without some instructions.

In: a run of a kernel, instructions that are taken away. Out: where threads then wait for ever. Settled here: how far
each thread comes. It stands at its first wait for a phase or a generation that lacks an arrival, since that is taken
away or stands behind another such wait. What all threads do before, in the order of the run, is the beginning of an
execution of the kernel without these instructions: each wait in it ends by the arrivals by which it ends in the run,
and each strong read finds its write. Then no thread can go on. Nothing is said where that is not sure: where something
else may end such a wait, where threads run ahead of it, or where one does not wait at its test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import NamedTuple

from memmodel.base.labels import Action, Barrier, Domain, Half, Mbarrier, Signal
from memmodel.base.points import BarrierId
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction


@dataclass(frozen=True, slots=True)
class Without:
    """What a run does without. `instructions`: those that are taken away. `waits`: the numbers of the events of waits
    that tests which look ahead save. `saved`: the instructions of these waits, and of saved waits whose events have no
    number.
    """

    instructions: AbstractSet[int]
    waits: AbstractSet[int] = frozenset()
    saved: AbstractSet[int] = frozenset()

    def has(self, at: int, number: int | None) -> bool:
        """True if a wait is there. `number`: of its event, if it has one."""
        return at not in self.instructions and (at not in self.saved if number is None else number not in self.waits)


OF_MANY = (Domain.CTA, Domain.CLUSTER)
"""Barriers at which a warp arrives together, with other warps."""


class _Does(IntEnum):
    """What a thread does at an object: makes a phase complete, or waits for it."""

    MAKES = auto()
    WAITS = auto()
    READS = auto()
    TESTS = auto()


class _Step(NamedTuple):
    """`of`: what it makes, waits for or reads from, by its number; of a test the number of the life of its object, and
    `seen`: how many phases it saw over. `at`: the instruction; `event`: the number of its event, if it has one."""

    does: _Does
    of: int
    at: int
    seen: int = 0
    event: int | None = None


@dataclass(frozen=True, slots=True)
class _Reached:
    """How far threads come. `places`: the number of steps that each thread makes; `left`: what is missing of each
    phase, generation and write; `over`: the number of phases of each life that are over.
    """

    places: Sequence[int]
    left: Sequence[int]
    over: Sequence[int]


class EndlessWaits:
    """The waits of a run. `numbers`: of events, by their identity."""

    def __init__(self, run: LaunchTrace, entry: PtxFunction, numbers: Mapping[int, int]) -> None:
        self._body = entry.body or ()
        tests = {step.event.at for log in run.objects.values() for step in log if not step.update}
        unsure = {test.number for test, _ in complaints(entry, tests, run.awaits)}
        self._polled = tests - unsure - {number for ahead in run.awaits.values() for number in ahead}
        self._makes: list[list[TraceEvent]] = []
        """What ends a phase, in the order of the run, what ends a generation, and each write that is read."""
        self._lives: list[list[int]] = []
        """The phases of each life of an object."""
        self._in_turn: list[list[int]] = []
        """The phases of each object, and the generations of each barrier."""
        self._generations: dict[tuple[BarrierId, int], int] = {}
        self._barriers: dict[int, BarrierId] = {}
        self._place_of: dict[int, tuple[int, int]] = {}
        """Of what is made, by its identity, the thread and the place among its steps."""
        self._threads = self._steps(run, numbers)
        self._alike = _alike(self._threads)
        by_barrier: dict[BarrierId, list[int]] = {}
        for (barrier, _), number in sorted(self._generations.items(), key=lambda item: item[0][1]):
            by_barrier.setdefault(barrier, []).append(number)
        self._in_turn += by_barrier.values()
        self._ends_waits = frozenset(event.at for events in self._makes for event in events)
        self._warps = [(thread.cta, thread.warp) for thread in run.threads]
        known = all(id(event) in self._place_of for events in self._makes for event in events)
        self._doubtful = not known or bool(run.stuck or run.stale_tests) or self._exits_count(run)

    def _new(self) -> int:
        self._makes.append([])
        return len(self._makes) - 1

    def _steps(self, run: LaunchTrace, numbers: Mapping[int, int]) -> list[list[_Step]]:
        """What each thread makes and waits for."""
        phases, tests = self._objects(run)
        threads = [[event for each in thread.events for event in (each, *each.signals)] for thread in run.threads]
        sources = {id(event.source) for events in threads for event in events if event.source is not None}
        writes = {write: self._new() for write in sources}
        steps: list[list[_Step]] = []
        for events in threads:
            mine: list[_Step] = []
            steps.append(mine)
            for event in events:
                label, at, same = event.label, event.at, id(event)
                makes = [writes[same]] if same in writes else []
                if isinstance(label, Barrier) and event.barrier is not None:
                    of = self._generation(event.barrier, event.generation)
                    if label.half is Half.ARRIVE:
                        makes.append(of)
                    else:
                        mine.append(_Step(_Does.WAITS, of, at))
                elif same in tests:
                    mine.append(_Step(_Does.TESTS, tests[same][0], at, tests[same][1], numbers.get(same)))
                elif same in phases:
                    makes.append(phases[same])
                if event.source is not None:
                    mine.append(_Step(_Does.READS, writes[id(event.source)], at))
                for of in makes:
                    if same not in phases:
                        self._makes[of].append(event)
                    self._place_of[same] = len(steps) - 1, len(mine)
                    mine.append(_Step(_Does.MAKES, of, at))
        return steps

    def _objects(self, run: LaunchTrace) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
        """The phase of each update, and of each test the life and how many phases it saw over, by identity."""
        phases: dict[int, int] = {}
        tests: dict[int, tuple[int, int]] = {}
        for log in run.objects.values():
            lives: dict[int, int] = {}
            for step in log:
                if step.life not in lives:
                    lives[step.life] = len(self._lives)
                    self._lives.append([])
                mine = self._lives[lives[step.life]]
                if not step.update:
                    tests[id(step.event)] = lives[step.life], step.seen_by_tests
                    continue
                while len(mine) <= step.before:
                    mine.append(self._new())
                phases[id(step.event)] = mine[step.before]
                self._makes[mine[step.before]].append(step.event)
            self._in_turn.append([phase for life in lives.values() for phase in self._lives[life]])
        return phases, tests

    def _generation(self, barrier: BarrierId, generation: int) -> int:
        number = self._generations.get((barrier, generation))
        if number is None:
            number = self._generations[barrier, generation] = self._new()
            self._barriers[number] = barrier
        return number

    def _exits_count(self, run: LaunchTrace) -> bool:
        """True if the end of a thread may have ended a wait."""
        members = Counter(where for it in run.threads for where in (it.place.cta_id, it.place.cluster_id))
        exited = any(
            isinstance(event.label, Barrier) and event.label.lane_exited
            for thread in run.threads
            for event in thread.events
        )
        return exited or any(
            all(event.count is None for event in self._makes[number]) and len(self._makes[number]) != members[it.where]
            for number, it in self._barriers.items()
            if it.domain in OF_MANY
        )

    def without(self, without: Without) -> list[PtxInstruction]:
        """The instructions at which threads wait for ever without this, in the order of the threads; none where that is
        not sure."""
        gone = without.instructions
        if self._doubtful or self._ends_waits.isdisjoint(gone):
            return []
        reached = self._reached(without)
        ends = enumerate(zip(reached.places, self._threads, strict=True))
        stand = {thread: steps[place] for thread, (place, steps) in ends if place < len(steps)}
        if not all(self._is_endless(waiting, reached, gone) for waiting in dict.fromkeys(stand.values())):
            return []
        if self._runs_ahead(reached, gone) or self._diverges(stand):
            return []
        return [self._body[at] for at in dict.fromkeys(step.at for step in stand.values())]

    def _reached(self, without: Without) -> _Reached:
        """How far threads come if each goes on as long as it can. In whatever order they go, they come as far, so that
        those with the same steps come equally far: one of them stands for all."""
        gone, over = without.instructions, [0] * len(self._lives)
        places = [0] * len(self._alike)
        left = [len(events) for events in self._makes]
        asleep: dict[int, list[int]] = {}
        awake = list(range(len(self._alike)))
        while awake:
            group = awake.pop()
            members, lacks = self._alike[group], None
            steps = self._threads[members[0]]
            for place in range(places[group], len(steps)):
                does, of, at, seen, event = steps[place]
                if at in gone:
                    continue
                if does is _Does.MAKES:
                    left[of] -= len(members)
                    if not left[of]:
                        awake += asleep.pop(of, ())
                    continue
                if does is not _Does.TESTS:
                    lacks = of if left[of] else None
                elif without.has(at, event):
                    phases = self._lives[of]
                    while over[of] < len(phases) and not left[phases[over[of]]]:
                        over[of] += 1
                    lacks = phases[over[of]] if over[of] < seen else None
                if lacks is not None:
                    asleep.setdefault(lacks, []).append(group)
                    places[group] = place
                    break
            else:
                places[group] = len(steps)
        reached = {thread: place for members, place in zip(self._alike, places, strict=True) for thread in members}
        return _Reached([reached[thread] for thread in range(len(self._threads))], left, over)

    def _is_endless(self, step: _Step, reached: _Reached, gone: AbstractSet[int]) -> bool:
        """True if a thread that stands at a step waits for ever there."""
        if step.does is _Does.WAITS:
            missing = any(event.at in gone for event in self._makes[step.of])
            counts = {event.count for event in self._makes[step.of]}
            return not missing or (len(counts) == 1 and None not in counts)  # or the end of threads may end it
        if step.does is _Does.READS or step.at not in self._polled:
            return False
        over = reached.over[step.of]
        passes = "parity" in self._body[step.at].words and (step.seen - over) % 2 == 0
        return not passes and self._cannot_end(self._lives[step.of][over], reached, gone)

    def _cannot_end(self, phase: int, reached: _Reached, gone: AbstractSet[int]) -> bool:
        """True if a phase cannot end by what is made: an arrival is missing, or bytes are, or bytes came that nobody
        announced before the last arrival."""
        updates = self._makes[phase]
        actions = [_action(event) for event in updates]
        removed = {action for event, action in zip(updates, actions, strict=True) if event.at in gone}
        if Action.PENDING in actions or not removed <= {Action.ARRIVE, Action.EXPECT_TX}:
            return False
        happens = [event.at not in gone and self._is_made(event, reached) for event in updates]
        if actions[0] is Action.INIT and not happens[0]:
            return False
        arrivals = [place for place, action in enumerate(actions) if action is Action.ARRIVE]
        if not all(happens[place] for place in arrivals):
            return True
        announced = [place for place, event in enumerate(updates) if "expect_tx" in self._body[event.at].words]
        if all(happens[place] and place <= arrivals[-1] for place in announced):
            return True  # what is missing are bytes
        came = [place for place, action in enumerate(actions) if action is Action.COMPLETE_TX and happens[place]]
        return not any(happens[place] for place in announced) and any(place < arrivals[-1] for place in came)

    def _is_made(self, event: TraceEvent, reached: _Reached) -> bool:
        thread, place = self._place_of[id(event)]
        return place < reached.places[thread]

    def _runs_ahead(self, reached: _Reached, gone: AbstractSet[int]) -> bool:
        """True if something is made in a phase or a generation before an earlier one is over."""
        for numbers in self._in_turn:
            lacking = False
            for number in numbers:
                if lacking and reached.left[number] < len(self._makes[number]):
                    return True
                # of a generation, nothing may be left
                lacking |= reached.left[number] > 0 and not (
                    number in self._barriers and all(event.at in gone for event in self._makes[number])
                )
        return False

    def _diverges(self, stand: Mapping[int, _Step]) -> bool:
        """True if lanes of a warp stand at different instructions: which of them a run names first is not known, and
        some may come to a barrier without the others."""
        at: dict[object, set[int]] = {}
        for thread, step in stand.items():
            at.setdefault(self._warps[thread], set()).add(step.at)
        return any(len(instructions) > 1 for instructions in at.values())


def _action(event: TraceEvent) -> Action | None:
    """What an update does to an mbarrier object."""
    return event.label.action if isinstance(event.label, Mbarrier | Signal) else None


def _alike(threads: Sequence[Sequence[_Step]]) -> list[list[int]]:
    """The threads, those with the same steps together."""
    alike: dict[tuple[_Step, ...], list[int]] = {}
    for thread, steps in enumerate(threads):
        alike.setdefault(tuple(steps), []).append(thread)
    return list(alike.values())
