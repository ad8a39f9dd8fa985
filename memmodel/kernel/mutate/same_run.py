"""Mutants that run as the kernel does: what is wrong with them is read off the kernel's own run.

In: the representative run of a kernel, mutations. Out: whether one takes order away and does nothing else, and the
first new finding in the execution of the kernel with all of them that the run is.

A thread that waits for less may still do everything at the time at which it did it in the run, and then it reads what
it read there. So the run without the events of a removed fence, wait or barrier, or with the labels of a weakened
instruction, is an execution of the mutant, and what a flag reports in it is a finding. That no flag reports anything
shows nothing: the mutant may run in other ways as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from memmodel.base.labels import (
    Access,
    Action,
    Barrier,
    Domain,
    Fence,
    GroupWait,
    Issue,
    Label,
    Mark,
    Mbarrier,
    ProxyFence,
    Signal,
)
from memmodel.base.points import BarrierId
from memmodel.base.rows import Rows
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution, FixedPart
from memmodel.isa.lowered import lowered
from memmodel.kernel.check.so_far import JudgedRun
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.mutate.mutations import REMOVED, Mutation
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import FindingKey, KernelFinding
from memmodel.program.ops import Assign, UndefinedIf
from memmodel.program.warp_ops import Note
from memmodel.ptx.module.syntax import PtxInstruction

LABELS = Access | Barrier | Fence | GroupWait | Issue | Mark | Mbarrier | ProxyFence | Signal
OF_THREADS = (Domain.CTA, Domain.WARP)
"""Barriers at which an instruction arrives and waits: without it no thread arrives."""


class SameRun:
    """A judged run of a kernel. `known`: the findings of the kernel."""

    def __init__(self, run: RunJudge, model: Model, flags: Flags, known: frozenset[FindingKey]) -> None:
        self._run, self._model, self._known = run, model, known
        self._raised = frozenset(run.raised(flags))

    def only_orders(self, change: Mutation) -> bool:
        """True if a change takes order away and does nothing else. What is wrong with any kernel that is changed so is
        wrong with it, too, if more of such changes are made: no flag of a race or of a use too early or too late is
        about order that there is. (The flags that are about such order are raised in the kernel itself.)
        """
        if change.what != REMOVED:
            return not change.miscounts
        labels = _labels(change.instruction)
        return bool(labels) and all(self._orders(label, change.instruction.number) for label in labels)

    def _orders(self, label: Label, number: int) -> bool:
        if isinstance(label, Barrier):
            return label.domain in OF_THREADS and not label.reduces and number in self._alone
        return isinstance(label, Fence | ProxyFence | Mark | GroupWait) or _action(label) is Action.INVAL

    @cached_property
    def _alone(self) -> frozenset[int]:
        """The instructions at which all threads arrive that take part in a generation of their barrier."""
        members: dict[tuple[BarrierId, int], set[int]] = {}
        for thread in self._run.run.threads:
            for event in thread.events:
                if event.barrier is not None:
                    members.setdefault((event.barrier, event.generation), set()).add(event.at)
        shared = {at for numbers in members.values() if len(numbers) > 1 for at in numbers}
        return frozenset(at for numbers in members.values() for at in numbers if at not in shared)

    def under(self, model: Model) -> SameRun:
        """The same run, asked of another model."""
        return SameRun(self._run, model, Flags(model, self._run.execution), self._known)

    def new_findings(self, *changes: Mutation) -> list[KernelFinding] | None:
        """What a flag reports in the execution of a kernel with these changes that the run is, and not in the kernel;
        None if there is no such execution."""
        execution = self._execution(changes)
        if execution is None:
            return None
        return self._run.first_shown(Flags(self._model, execution), self._raised, self._known)

    def shows(self, changes: Sequence[Mutation]) -> bool:
        """True if something is new with these changes. Those of which the run is no execution, and which only take
        order away, are left out: what is wrong without them is wrong with them."""
        asked = [it for it in changes if it.what != REMOVED or self._leaves_run(it) or not self.only_orders(it)]
        return bool(asked) and bool(self.new_findings(*asked))

    def new_in(self, other: JudgedRun) -> list[KernelFinding] | None:
        """The same for a run of a changed kernel in which the same threads do the same events; None for another one."""
        flags = other.judgement.flags
        mine, others = ([(it.thread, it.at) for it in run.graph.origins] for run in (self._run, other.run))
        return None if flags is None or mine != others else other.run.first_shown(flags, self._raised, self._known)

    def _execution(self, changes: Sequence[Mutation]) -> Execution | None:
        gone, labels = 0, dict[int, Label]()
        for change in changes:
            if change.what == REMOVED:
                events = self._events(change) if self._leaves_run(change) else 0
                if not events:
                    return None
                gone |= events
            else:
                changed = self._new_labels(change)
                if not changed:
                    return None
                labels |= changed
        execution = self._run.graph.with_labels(self._run.execution, labels) if labels else self._run.execution
        return _without(execution, gone) if gone else execution

    def _events(self, change: Mutation) -> int:
        """The events of the instruction that is changed."""
        at = change.instruction.number
        return sum(1 << event for event, behind in enumerate(self._run.graph.origins) if behind.at == at)

    def _new_labels(self, change: Mutation) -> dict[int, Label]:
        """The labels of the events of a weakened instruction; none if anything else differs."""
        labels = _relabelled(change)
        changed = {
            number: labels[event.label]
            for number, event in self._run.graph.events.items()
            if event.at == change.instruction.number and event.label in labels
        }
        return changed if len(changed) == self._events(change).bit_count() else {}

    def _leaves_run(self, change: Mutation) -> bool:
        """True if the run without its events is an execution of the kernel without an instruction."""
        labels = _labels(change.instruction)
        if not labels or any(isinstance(label, GroupWait) for label in labels):  # a later wait may wait for the groups
            return False
        if all(_action(label) is Action.TEST for label in labels):
            return self._polls(change.instruction)
        return self.only_orders(change)

    def _polls(self, test: PtxInstruction) -> bool:
        """True if a test is repeated until it returns true, and no wait depends on it."""
        run = self._run.run
        if any(test.number in ahead for ahead in run.awaits.values()):
            return False
        return not complaints(self._run.entry, [test.number], run.awaits)


def _labels(instruction: PtxInstruction) -> list[Label]:
    """The labels of the steps of an instruction; none if it has steps of another kind."""
    steps = [step for step in lowered(instruction).ops if not isinstance(step, Assign | UndefinedIf | Note)]
    labels: list[Label] = [label for step in steps if isinstance(label := getattr(step, "label", None), LABELS)]
    return labels if len(labels) == len(steps) else []


def _action(label: Label) -> Action | None:
    return label.action if isinstance(label, Mbarrier) else None


def _relabelled(change: Mutation) -> dict[Label, Label]:
    """The labels of a weakened instruction by those that it had; none if anything else differs."""
    before, after = _labels(change.instruction), _labels(change.becomes)
    same = len(before) == len(after) and all(type(old) is type(new) for old, new in zip(before, after, strict=True))
    if not same or any(isinstance(label, GroupWait | Issue) for label in before):
        return {}
    return dict(zip(before, after, strict=True)) if len(set(before)) == len(before) else {}


class _LessEvents(FixedPart):
    """The fixed part of an execution without some of its events, which stay as numbers that nothing relates."""

    def __init__(self, frame: FixedPart, gone: int) -> None:
        self._frame, self._gone, self.events, self.count = frame, gone, frame.events, frame.count

    def set(self, name: str) -> int:
        return self._frame.set(name) & ~self._gone

    def relation(self, name: str) -> Rows:
        return _rows_without(self._frame.relation(name), self._gone)


def _without(execution: Execution, gone: int) -> Execution:
    """An execution without some events."""
    return replace(
        execution,
        frame=_LessEvents(execution.frame, gone),
        chosen_sets={name: mask & ~gone for name, mask in execution.chosen_sets.items()},
        chosen_relations={name: _rows_without(rows, gone) for name, rows in execution.chosen_relations.items()},
    )


def _rows_without(rows: Rows, gone: int) -> Rows:
    return [0 if gone >> number & 1 else row & ~gone for number, row in enumerate(rows)]
