"""Waits that cannot end because too few threads arrive.

In: a run of a kernel, instructions that are taken away. Out: whether a thread then waits for ever. Settled here: the
arrivals that are left at an mbarrier object are fewer than the phases need for which a thread waits one after the
other. If every thread of the mutant came to its end with what it does in the run, so few phases would be over, and the
last of these waits could not have passed. So a thread waits for ever, or it does something else than in the run: it
reads another value, which is a race, since the kernel has the same value in every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
class _Phases:
    """An mbarrier object from its init on. `needed`: arrivals of each phase; `arrivals`: how many an instruction makes;
    `waits`: for threads that wait for each phase from the first one on, how many phases these are, with the tests;
    `begun`: the init and what else is in the life that neither arrives nor waits.
    """

    needed: int
    arrivals: dict[int, int]
    waits: frozenset[tuple[int, frozenset[int]]]
    begun: frozenset[int]


class Arrivals:
    """The arrivals at the mbarrier objects of a run, and the waits for them."""

    def __init__(self, run: LaunchTrace, entry: PtxFunction) -> None:
        body = entry.body or ()
        tests = {step.event.at for log in run.objects.values() for step in log if not step.update}
        unsure = {test.number for test, _ in complaints(entry, tests, run.awaits)}
        self._polled = tests - unsure - {number for ahead in run.awaits.values() for number in ahead}
        self._lives = [
            life
            for log in run.objects.values()
            for steps in _lives(log)
            if (life := self._life(steps, body)) is not None
        ]

    def too_few(self, removed: AbstractSet[int]) -> bool:
        """True if without these instructions a thread waits for ever."""
        return any(self._waits_for_ever(life, removed) for life in self._lives)

    @staticmethod
    def _waits_for_ever(life: _Phases, removed: AbstractSet[int]) -> bool:
        if removed.isdisjoint(life.arrivals) or not removed.isdisjoint(life.begun):
            return False
        left = sum(count for at, count in life.arrivals.items() if at not in removed)
        return any(left < phases * life.needed and tests.isdisjoint(removed) for phases, tests in life.waits)

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
        found = {wait for own in waits.values() if (wait := self._in_turn(own)) is not None}
        return _Phases(needed, arrivals, frozenset(found), frozenset(begun)) if needed and found else None

    def _in_turn(self, waits: Sequence[ObjectStep]) -> tuple[int, frozenset[int]] | None:
        """The phases for which a thread waits, in their order and with none left out, and the tests."""
        phases, tests = 0, set[int]()
        for step in waits:
            if step.seen_by_tests not in (phases, phases + 1) or step.event.at not in self._polled:
                break
            phases = step.seen_by_tests
            tests.add(step.event.at)
        return (phases, frozenset(tests)) if phases else None


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
