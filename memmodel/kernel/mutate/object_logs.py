"""What instructions do to the mbarrier objects of a run.

In: a run. Out: `ObjectLogs`: by instruction the logs of the objects that it works on, which objects some instructions
update, and whether something is left that waits for an arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from memmodel.kernel.flow.ahead import NOBODY
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import ObjectStep

ObjectLog = list[ObjectStep]
"""What happens to one object, in the order of the run."""


class ObjectLogs:
    """The mbarrier objects of a run."""

    def __init__(self, run: LaunchTrace) -> None:
        self._awaits = run.awaits
        self._logs: dict[int, list[ObjectLog]] = {}
        for log in run.objects.values():
            for at in {step.event.at for step in log}:
                self._logs.setdefault(at, []).append(log)

    def of(self, instruction: int) -> Sequence[ObjectLog]:
        """The logs of the objects that an instruction works on."""
        return self._logs.get(instruction, ())

    def worked_on(self, instructions: Iterable[int]) -> set[int]:
        """The logs of the objects that some instructions work on, by identity."""
        return {id(log) for number in instructions for log in self.of(number)}

    def updated(self, instructions: Iterable[int]) -> set[int]:
        """The identities of the objects that the instructions update."""
        return {
            id(log)
            for number in instructions
            for log in self.of(number)
            if any(step.update for step in log if step.event.at == number)
        }

    def with_saved_waits(self, changes: Iterable[Mutation]) -> set[int]:
        """The instructions that are changed, and the waits that those of them save which look ahead."""
        gone = {change.instruction.number for change in changes}
        return gone | {wait for wait, tests in self._awaits.items() if wait != NOBODY and not tests.isdisjoint(gone)}

    def is_awaited(self, arrival: int, gone: AbstractSet[int], waits: Callable[[int], bool]) -> bool:
        """True if a wait, none of those that are gone, is for a phase at which an instruction arrives. `waits`: True
        for a test that is repeated until it returns true."""
        for log in self.of(arrival):
            first: dict[int, int] = {}
            for step in log:
                if step.event.at == arrival and step.update:
                    first.setdefault(step.life, step.before)
            tests = (step for step in log if not step.update and step.event.at not in gone and step.life in first)
            if any(step.seen_by_tests > first[step.life] and waits(step.event.at) for step in tests):
                return True
        return False
