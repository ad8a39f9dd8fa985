"""What waits for groups no longer wait for, where commits are removed or more groups may be open.

In: a run, changes. Out: of each such wait, how many of the instructions that it waits for are left. Settled here: a
wait for all groups but the last n is for the instructions that the thread had issued by the last commit but n. So with
fewer commits, or a larger n, it is for the first of those that it is for in the run, and threads do the same: no
instruction but a wait asks for groups. Where registers say how large n is, nothing is said, and neither of groups of
wgmma, by which the machine checks registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from memmodel.isa.lowered import lowered
from memmodel.kernel.machine.engines.wgmma import counts_registers
from memmodel.kernel.mutate.mutations import REMOVED, Mutation
from memmodel.kernel.mutate.steps import commits
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.trace.events import TraceEvent
from memmodel.program.expressions import Const
from memmodel.program.ops import CommitGroup, Track, WaitForGroups
from memmodel.ptx.module.syntax import PtxInstruction


class Regrouped:
    """The groups of a run."""

    def __init__(self, run: RunJudge) -> None:
        self._run = run

    def handles(self, change: Mutation) -> bool:
        """True if a change is about groups alone, and it is known what waits wait for then."""
        if change.what == REMOVED:
            tracks = {step.track for step in lowered(change.instruction).ops if isinstance(step, CommitGroup)}
            return commits(change.instruction) and tracks <= self._known
        before, after = _wait(change.instruction), _wait(change.becomes)
        if before is None or after is None or before.track not in self._known:
            return False
        more = [step.pending.value for step in (before, after) if isinstance(step.pending, Const)]
        alike = (before.label, before.track, before.sources_only) == (after.label, after.track, after.sources_only)
        return alike and len(more) == 2 and more[0] <= more[1]

    def kept(self, changes: Sequence[Mutation]) -> Mapping[int, int]:
        """Of each wait that is for less, by the number of its event, how many instructions it is for. `changes`: such
        as are handled."""
        gone = {change.instruction.number for change in changes if change.what == REMOVED}
        others = {it.instruction.number: _pending(_wait(it.becomes)) for it in changes if it.what != REMOVED}
        numbers, kept = self._run.graph.number, dict[int, int]()
        for wait, track, pending in self._waits if changes else ():
            left = self._left(wait, track, others.get(wait.at, pending), gone)
            if left < len(wait.completes) and id(wait) in numbers:
                kept[numbers[id(wait)]] = left
        return kept

    def _left(self, wait: TraceEvent, track: Track, pending: int, gone: AbstractSet[int]) -> int:
        groups = self._run.run.commits.get((wait.thread, track), ())
        issued = [group.issued for group in groups if group.events <= (wait.order or 0) and group.at not in gone]
        return issued[len(issued) - pending - 1] if pending < len(issued) else 0

    @cached_property
    def _waits(self) -> list[tuple[TraceEvent, Track, int]]:
        """The waits that leave groups open or none, of all threads."""
        steps = {each.number: _wait(each) for each in self._run.body}
        return [
            (event, step.track, _pending(step))
            for thread in self._run.run.threads
            for event in thread.events
            if (step := steps.get(event.at)) is not None and step.pending is not None and step.track in self._known
        ]

    @cached_property
    def _known(self) -> frozenset[Track]:
        """The kinds of groups of which it is known how many each wait leaves open. Threads that are alike have closed
        the same groups."""
        known = {Track.CP_ASYNC, Track.BULK}
        for each in self._run.body:
            known -= {
                step.track
                for step in lowered(each).ops
                if isinstance(step, WaitForGroups)
                and (_wait(each) is None or not isinstance(step.pending, Const | None) or counts_registers(step))
            }
        who, alike = self._run.roles.who, dict[object, object]()
        for thread in self._run.run.threads:
            for track in tuple(known):
                mine = self._run.run.commits.get((thread.number, track), [])
                if alike.setdefault((who[thread.number], track), mine) != mine:
                    known.discard(track)
        return frozenset(known)


def _wait(instruction: PtxInstruction) -> WaitForGroups | None:
    """The wait for groups that an instruction is; None for others."""
    steps = lowered(instruction).ops
    return steps[0] if len(steps) == 1 and isinstance(steps[0], WaitForGroups) else None


def _pending(wait: WaitForGroups | None) -> int:
    return wait.pending.value if wait is not None and isinstance(wait.pending, Const) else 0
