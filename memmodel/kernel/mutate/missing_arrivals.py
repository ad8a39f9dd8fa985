"""Waits that cannot end because too few threads arrive.

In: a run of a kernel, instructions that are taken away. Out: whether a thread then waits for ever. Settled here: the
arrivals that are left at an mbarrier object are fewer than the phases need for which a thread waits one after the
other. If every thread of the mutant came to its end with what it does in the run, so few phases would be over, and the
last of these waits could not have passed. So a thread waits for ever, or it does something else than in the run: it
reads another value, which is a race, since the kernel has the same value in every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memmodel.base.labels import Action, Mbarrier, Signal
from memmodel.isa.lowered import lowered
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.program.expressions import Const
from memmodel.program.ops import OnObject
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction


@dataclass(frozen=True, slots=True)
class Without:
    """What is not there of a run. `instructions`: those that are taken away; `waits`: events of waits that tests which
    look ahead save, by their numbers; `saved`: the instructions of these and of others that have no number.
    """

    instructions: AbstractSet[int]
    waits: AbstractSet[int] = frozenset()
    saved: AbstractSet[int] = frozenset()

    def has(self, wait: _Wait) -> bool:
        """True if a wait is there."""
        at, number = wait
        return at not in self.instructions and (at not in self.saved if number is None else number not in self.waits)


_Wait = tuple[int, int | None]
"""The instruction of a wait, and the number of its event, if it has one."""


@dataclass(frozen=True, slots=True)
class _Phases:
    """An mbarrier object from its init on. `needed`: arrivals of each phase; `arrivals`: how many an instruction makes;
    `waits`: for threads that wait for each phase from the first one on, the waits for each;
    `begun`: the init and what else is in the life that neither arrives nor waits.
    """

    needed: int
    arrivals: dict[int, int]
    waits: frozenset[tuple[frozenset[_Wait], ...]]
    begun: frozenset[int]


class Arrivals:
    """The arrivals at the mbarrier objects of a run, and the waits for them. `numbers`: of events, by identity."""

    def __init__(self, run: LaunchTrace, entry: PtxFunction, numbers: Mapping[int, int]) -> None:
        body, self._numbers = entry.body or (), numbers
        tests = {step.event.at for log in run.objects.values() for step in log if not step.update}
        unsure = {test.number for test, _ in complaints(entry, tests, run.awaits)}
        self._polled = tests - unsure - {number for ahead in run.awaits.values() for number in ahead}
        self._lives = [
            life
            for log in run.objects.values()
            for steps in _lives(log)
            if (life := self._life(steps, body)) is not None
        ]

    def too_few(self, without: Without) -> bool:
        """True if without this a thread waits for ever."""
        return any(self._waits_for_ever(life, without) for life in self._lives)

    @staticmethod
    def _waits_for_ever(life: _Phases, without: Without) -> bool:
        removed = without.instructions
        if removed.isdisjoint(life.arrivals) or not removed.isdisjoint(life.begun):
            return False
        over = sum(count for at, count in life.arrivals.items() if at not in removed) // life.needed
        return any(
            all(any(map(without.has, waits)) for waits in phases[: over + 1])
            for phases in life.waits
            if len(phases) > over
        )

    def _life(self, steps: Sequence[ObjectStep], body: Sequence[PtxInstruction]) -> _Phases | None:
        """None if some of its counts are not known, or threads leave it."""
        needed, arrivals = 0, dict[int, int]()
        waits: dict[int, list[ObjectStep]] = {}
        begun = set[int]()
        for step in steps:
            label, at = step.event.label, step.event.at
            action = label.action if isinstance(label, Mbarrier | Signal) else None
            if not step.update:
                waits.setdefault(step.event.thread, []).append(step)
            elif action is Action.ARRIVE:
                count = 1 if isinstance(label, Signal) else _count(body[at])
                if count is None:
                    return None
                arrivals[at] = arrivals.get(at, 0) + count
            elif action is Action.PENDING or action is None:
                return None
            elif action in (Action.INIT, Action.INVAL):
                begun.add(at)
                needed = step.event.count or 0 if action is Action.INIT else needed
        found = {phases for own in waits.values() if (phases := self._in_turn(own))}
        return _Phases(needed, arrivals, frozenset(found), frozenset(begun)) if needed and found else None

    def _in_turn(self, waits: Sequence[ObjectStep]) -> tuple[frozenset[_Wait], ...]:
        """The waits of a thread for each phase, in their order and with no phase left out."""
        phases: list[set[_Wait]] = []
        for step in waits:
            if step.seen_by_tests not in (len(phases), len(phases) + 1) or step.event.at not in self._polled:
                break
            if step.seen_by_tests > len(phases):
                phases.append(set())
            if phases:  # a wait for the phase before the first one passes
                phases[-1].add((step.event.at, self._numbers.get(id(step.event))))
        return tuple(map(frozenset, phases))


def _lives(log: Sequence[ObjectStep]) -> Iterator[list[ObjectStep]]:
    lives: dict[int, list[ObjectStep]] = {}
    for step in log:
        lives.setdefault(step.life, []).append(step)
    yield from lives.values()


def _count(instruction: PtxInstruction) -> int | None:
    """The arrivals of an instruction at each of its objects; None if it is not written there, or if others are needed
    after it."""
    steps = [step for step in lowered(instruction).ops if isinstance(step, OnObject)]
    arrives = [step for step in steps if step.label.action is Action.ARRIVE]
    counts = {step.count.value if isinstance(step.count, Const) and not step.drop else None for step in arrives}
    return counts.pop() if len(counts) == 1 else None
