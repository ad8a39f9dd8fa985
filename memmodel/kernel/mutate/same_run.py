"""Mutants that run as the kernel does: what is wrong with them is read off the kernel's own run.

In: the representative run of a kernel, mutations. Out: whether one takes order away and does nothing else, and the
first new finding in the execution of the kernel with all of them that the run is.

A thread that waits for less may still do everything at the time at which it did it in the run, and then it reads what
it read there. So the run without the events of a removed fence, wait or barrier, or with the labels of a weakened
instruction, is an execution of the mutant, and what a flag reports in it is a finding. So is the run without the
updates of an mbarrier object that nothing tests. Without an init, the first update of the object is undefined, and the
run up to there is the same. That no flag reports anything shows nothing: the mutant may run in other ways as well.
Where threads do nothing else for it, such a run is judged with all conditions, as that of any kernel (`only_run`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from memmodel.base.labels import Action, Barrier, Domain, Fence, GroupWait, Label, Mark, ProxyFence
from memmodel.base.points import BarrierId
from memmodel.base.rows import bits, rows_without
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.concrete.less_events import LessEvents, without
from memmodel.isa.lowered import lowered
from memmodel.kernel.check.so_far import JudgedRun
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.machine.engines.wgmma import counts_registers
from memmodel.kernel.mutate.endless_waits import EndlessWaits, Without
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, told_apart
from memmodel.kernel.mutate.object_logs import ObjectLogs
from memmodel.kernel.mutate.regrouped import Regrouped
from memmodel.kernel.mutate.saved_waits import Saved, may_pass, observing_nothing, passing, saved_waits
from memmodel.kernel.mutate.steps import commits, invalidates, labels_of, object_action, relabelled
from memmodel.kernel.order.flags import Flags, FlagsAsked, FlagsWithout
from memmodel.kernel.order.judging import ORDER, RunJudge
from memmodel.kernel.order.verdict import FindingKey, KernelFinding
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.program.ops import CommitGroup, Emit, WaitForGroups
from memmodel.ptx.module.syntax import PtxInstruction

OF_THREADS = (Domain.CTA, Domain.WARP)
"""Barriers at which an instruction arrives and waits: without it no thread arrives."""

MISCOUNTED = "MBBAD"
"""The updates of mbarrier objects that are undefined, of objects without an init too."""

SMALL = 4_000
"""Events of a run that is evaluated as a whole as quickly as by what differs from it without much of it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Something new that a run shows. `at`: the instructions of the finding; none for an open condition."""

    at: frozenset[int] = frozenset()

    @classmethod
    def of(cls, finding: KernelFinding) -> Shown:
        return cls(frozenset(side.instruction.number for side in finding.sides))


class SameRun:
    """A judged run of a kernel. `known`: the findings of the kernel; `often`: many mutants will be asked about."""

    def __init__(
        self,
        run: RunJudge,
        model: Model,
        flags: Flags,
        known: frozenset[FindingKey] = frozenset(),
        *,
        often: bool = True,
    ) -> None:
        self.run, self._model, self._known, self._flags_of_run = run, model, known, flags
        self._raised = frozenset(run.raised(flags))
        self._whole = flags if flags.execution is run.execution else Flags(model, run.execution, flags)
        if often:
            self._whole.keep_every_value()
            flags.keep_every_value()
        self._near = self._nothing = FlagsWithout(frozenset(), 0, self._whole)
        """The run without what was removed last, if more is removed beside it."""
        self._last: FlagsAsked | None = None
        """The changes about which was asked last: whether they show anything is asked first, and then for a verdict."""

    def only_orders(self, change: Mutation) -> bool:
        """True if a change takes order away and does nothing else. What is wrong with any kernel that is changed so is
        wrong with it, too, if more of such changes are made: no flag of a race or of a use too early or too late is
        about order that there is. (The flags that are about such order are raised in the kernel itself.)
        """
        if change.what != REMOVED:
            return not change.miscounts
        labels = labels_of(change.instruction)
        if not labels:
            return commits(change.instruction)
        return all(self._orders(label, change.instruction.number) for label in labels)

    def _orders(self, label: Label, number: int) -> bool:
        if isinstance(label, Barrier):
            return label.domain in OF_THREADS and not label.reduces and number in self._alone
        return isinstance(label, Fence | ProxyFence | Mark | GroupWait)

    def counts(self, change: Mutation) -> bool:
        """True if an instruction updates mbarrier objects."""
        return not self.only_orders(change) and not self.waits(change.instruction)

    def keeps_others(self, change: Mutation) -> bool:
        """True if what is wrong with a kernel with this change still is with more changes of its kind: those that only
        take order away, and those that leave an object valid. With an inval goes what is wrong with the inval."""
        return self.only_orders(change) or invalidates(change.instruction)

    @cached_property
    def _groups(self) -> Regrouped:
        return Regrouped(self.run)

    @cached_property
    def _alone(self) -> frozenset[int]:
        """The instructions at which all threads arrive that take part in a generation of their barrier."""
        members: dict[tuple[BarrierId, int], set[int]] = {}
        for thread in self.run.run.threads:
            for event in thread.events:
                if event.barrier is not None:
                    members.setdefault((event.barrier, event.generation), set()).add(event.at)
        shared = {at for numbers in members.values() if len(numbers) > 1 for at in numbers}
        return frozenset(at for numbers in members.values() for at in numbers if at not in shared)

    def is_of(self, run: RunJudge) -> bool:
        """True if another run is this one as an execution of a changed kernel."""
        return run.run is self.run.run

    def under(self, model: Model) -> SameRun:
        """This run under another model."""
        return SameRun(self.run, model, Flags(model, self.run.execution, self._whole), self._known, often=False)

    def new_findings(self, *changes: Mutation) -> list[KernelFinding] | None:
        """What a flag reports in the execution of a kernel with these changes that the run is, and not in the kernel;
        None if there is no such execution."""
        flags = self._flags(changes)
        if flags is None:
            return None
        return self.run.first_shown(flags, self._raised, self._known)

    def shows_at_once(self, changes: Sequence[Mutation]) -> bool:
        """True if a flag that is quickly evaluated shows something new in the execution with these changes."""
        flags = self._flags(changes)
        return flags is not None and bool(self.run.first_shown(flags, self._raised, self._known, flags.quick()))

    def shows(self, changes: Sequence[Mutation]) -> Shown | None:
        """What is new with these changes, a finding or a condition that is open; None if nothing is. Those of which the
        run is no execution, and which only take order away, are left out: what is wrong without them is wrong beside
        them.
        """
        asked = self._that_show(changes)
        flags = self._flags(asked) if asked else None
        if flags is None:
            return None
        findings = self.run.first_shown(flags, self._raised, self._known)
        if findings:
            return Shown.of(findings[0])
        return Shown() if self.run.violated_counts(flags, self._events(asked)) - self._uncounted else None

    def _that_show(self, changes: Sequence[Mutation]) -> list[Mutation]:
        return [change for change in changes if not self.only_orders(change) or self._has_execution(change)]

    def still_shows(self, shown: Shown, others: Sequence[Mutation], changes: Sequence[Mutation]) -> bool:
        """True if what the run shows without some instructions it shows without others too, all of which are `changes`.

        The run without all of them is an execution as well, in which nothing is ordered that was not. What is wrong is
        between events that are there, and no other one orders these. With an init, more updates may be undefined.
        """
        if not shown.at or any(change.what != REMOVED for change in others):
            return False
        gone = self._objects.with_saved_waits(others)
        mine, updated = self._objects.worked_on(shown.at), self._objects.updated(gone)
        if not shown.at.isdisjoint(gone) or not mine.isdisjoint(updated):
            return False
        removals = [change for change in self._that_show(changes) if not self._groups.handles(change)]
        return self._removed(removals) is not None

    def endless_waits(self, changes: Sequence[Mutation]) -> list[FindingKey]:
        """The new hangs with these removals, in the order of the threads; none if that cannot be read off the run."""
        reached = self._reached(changes)
        if any(it.what != REMOVED or not self._counts_for_nothing(it.instruction) for it in reached):
            return []
        gone = {it.instruction.number for it in reached}
        waits = {wait for number in gone for wait in self._saved.get(number, ())}
        saved = {wait for wait, tests in self.run.run.awaits.items() if not tests.isdisjoint(gone)}
        found = (("hang", (it.line,)) for it in self._endless.without(Without(gone, waits, saved)))
        return [key for key in dict.fromkeys(found) if key not in self._known]

    def _counts_for_nothing(self, instruction: PtxInstruction) -> bool:
        """True if threads execute the same without an instruction, as long as they do not wait for it."""
        if any(object_action(label) is Action.TEST for label in labels_of(instruction)):
            return instruction.number in self._saved or self._polls(instruction)
        return self._used.isdisjoint(lowered(instruction).writes)

    @cached_property
    def _endless(self) -> EndlessWaits:
        return EndlessWaits(self.run.run, self.run.entry, self.run.graph.number)

    def is_execution(self, changes: Sequence[Mutation]) -> bool:
        """True if the run is an execution of the kernel with these changes: then no wait in it lacks an arrival."""
        return self._flags(changes) is not None

    def look_from(self, changes: Sequence[Mutation], other: SameRun | None = None) -> None:
        """More removals will be asked about beside these: evaluate them by what differs from the run without these, if
        that is much less. `other`: has looked from there."""
        if other is not None and other.run is self.run:
            self._near = other._near
            return
        if len(self.run.graph.points) <= SMALL:
            return
        asked = [change for change in self._reached(changes) if self._has_execution(change)]
        flags = self._flags(asked)
        if flags is not None and not flags.by_difference:
            flags.keep_every_value()
            removed = frozenset(change.instruction.number for change in asked)
            self._near = FlagsWithout(removed, self._events(asked), flags)

    def idle(self, changes: Sequence[Mutation]) -> bool:
        """True if nothing but order is lost without these instructions: nothing is left that tests or updates the
        mbarrier objects which they alone work on."""
        removed = self._removed([change for change in changes if not commits(change.instruction)])
        return removed is not None and not removed.undefined

    def stays_broken(
        self, change: Mutation, lines: Collection[int], others: Sequence[Mutation], *, hangs: bool
    ) -> bool:
        """True if what is wrong with a kernel with a change, in these lines, still is with other removals: of what
        orders, of waits, of idle mbarrier objects. What is wrong stands elsewhere, and these removals update no object
        that it is about. `hangs`: threads wait for ever; then a wait is left for a phase that lacks an arrival.
        """
        more = [it for it in others if not self.only_orders(it)]
        logs, number = self._objects, change.instruction.number
        gone = logs.with_saved_waits(more)
        broken = set(self.run.numbers_at(lines))
        worked_on = logs.worked_on({number, *broken})
        if not (broken - {number}).isdisjoint(gone) or not logs.updated(gone).isdisjoint(worked_on):
            return False
        if hangs and not logs.is_awaited(number, gone, self._is_polled):
            return False
        return not more or self.idle(more)

    def _is_polled(self, test: int) -> bool:
        return self._polls(self.run.body[test])

    def new_in(self, other: JudgedRun) -> list[KernelFinding] | None:
        """The same for a run of a changed kernel in which the same threads do the same events; None for another one."""
        flags = other.judgement.flags
        mine, others = ([(origin.thread, origin.at) for origin in run.graph.origins] for run in (self.run, other.run))
        return None if flags is None or mine != others else other.run.first_shown(flags, self._raised, self._known)

    def _has_execution(self, change: Mutation) -> bool:
        """True if the run is an execution of the kernel with this change."""
        if self._groups.handles(change):
            return True
        return bool(self._new_labels(change)) if change.what != REMOVED else self._removed((change,)) is not None

    def only_run(self, changes: Sequence[Mutation]) -> JudgedRun | None:
        """The run as the one of a kernel with these changes, judged; None if threads of that kernel may do something
        else in it. By the theorem of `docs/kernels-theorem.md` it speaks for every schedule, as far as the conditions
        hold that the judgement looks at. What is missing is not said.
        """
        reached = self._reached(changes)
        if not self.does_the_same(changes):
            return None
        known, last = self._beside(reached), self._last
        execution: Execution | None
        if last is not None and last.are_about(told_apart(reached), known) and self._flags_of_run is self._whole:
            execution, like = last.flags.execution, last.flags
        else:
            execution, like = self._execution(reached), known.flags if known.removed else self._flags_of_run
        if execution is None:
            return None
        return self._judged(execution, execution.frame.gone if isinstance(execution.frame, LessEvents) else 0, like)

    def tested_run(self, waits: Sequence[Mutation]) -> JudgedRun | None:
        """The same without these waits, but their tests stay, and observe nothing. So what is wrong with one of the
        tests shows, too, and what is wrong without some of the waits is wrong here. What counts is that without them.
        """
        reached = self._reached(waits)
        if not self.does_the_same(waits) or self._removed(reached) is None:
            return None
        tests = self._events(reached)
        return self._judged(observing_nothing(self.run.execution, tests), tests, self._flags_of_run)

    def _judged(self, execution: Execution, gone: int, like: Flags) -> JudgedRun:
        run = self.run.as_execution(execution, gone)
        return JudgedRun(run, run.judgement(self._model, like=like, explain=False))

    @property
    def is_certain(self) -> bool:
        """True if order is not a matter of chance: the run shows all that is wrong with it."""
        return self.run.is_certain(frozenset())

    def does_the_same(self, changes: Sequence[Mutation]) -> bool:
        """True if threads of a kernel with these changes execute the same in this run."""
        reached = self._reached(changes)
        removals = {change.instruction.number for change in reached if change.what == REMOVED}
        return all(self._executes_the_same(change, removals) for change in reached)

    def _reached(self, changes: Sequence[Mutation]) -> list[Mutation]:
        return [change for change in changes if change.instruction.number in self.run.run.executed]

    def _executes_the_same(self, change: Mutation, removals: AbstractSet[int]) -> bool:
        """True if threads execute the same without an instruction, or with what it becomes: what it does counts for no
        register, and no thread waits longer or finds an mbarrier object in another state. `removals`: what else is
        removed.
        """
        if change.what != REMOVED:
            if change.instruction.number in self._saved:
                return False  # it returns true, or false as in the run
            labels = self._new_labels(change).values()
            restricts = any(isinstance(label, Fence) and label.covers is not None for label in labels)
            return self.only_orders(change) and not restricts and self._has_execution(change)
        steps = lowered(change.instruction).ops
        if any(isinstance(it, Emit | CommitGroup | WaitForGroups) and counts_registers(it) for it in steps):
            return False
        if self._groups.handles(change):
            return True
        if all(object_action(label) is Action.TEST for label in labels_of(change.instruction)):
            return self._leaves_run(change)
        for log in self._objects.of(change.instruction.number):
            lives = {step.life for step in log if step.event.at == change.instruction.number}
            last = invalidates(change.instruction) and not any(step.life > min(lives) for step in log)
            if not last and not all(step.event.at in removals for step in log):
                return False
        return self._leaves_run(change) or self._action(change) is not None

    def _flags(self, changes: Sequence[Mutation]) -> Flags | None:
        """The flags of the execution that the run is; None if it is none."""
        known, last = self._beside(changes), self._last
        if last is not None and last.are_about(told_apart(changes), known):
            return last.flags
        execution = self._execution(changes)
        if execution is None:
            return None
        flags = Flags(self._model, execution, known.flags)
        if flags.by_difference:  # others take much memory
            self._last = FlagsAsked(told_apart(changes), known, flags)
        return flags

    def _beside(self, changes: Sequence[Mutation]) -> FlagsWithout:
        """What is known of removals to which these add others, or of the run as it is."""
        removed = {change.instruction.number for change in changes if change.what == REMOVED}
        if len(removed) == len(changes) and self._near.removed <= removed:
            return self._near
        return self._nothing

    def _execution(self, changes: Sequence[Mutation]) -> Execution | None:
        """The execution of a kernel with these changes that the run is; None if it is none."""
        others = [it for it in changes if not self._groups.handles(it)]
        removed = self._removed([change for change in others if change.what == REMOVED])
        if removed is None:
            return None
        labels, saved = dict[int, Label](), dict[int, int]()
        for change in others:
            if change.what != REMOVED:
                changed = self._new_labels(change)
                if not changed:
                    return None
                labels |= changed
                saved |= self._saved.get(change.instruction.number, {})
        if saved and not self._may_pass(saved):
            return None
        known = self._beside(changes)
        execution = known.flags.execution
        if kept := self._groups.kept([it for it in changes if self._groups.handles(it)]):
            complete = rows_without(self.run.graph.completing_less(self.run.execution, kept), known.events)
            execution = replace(execution, chosen_relations={**execution.chosen_relations, "compl": complete})
        if saved:
            execution = passing(execution, saved)
        if labels:
            execution = self.run.graph.with_labels(execution, labels)
        gone = (removed.events | sum(1 << wait for wait in saved)) & ~known.events
        return without(execution, gone, {MISCOUNTED: removed.undefined}) if gone else execution

    def _may_pass(self, saved: Saved) -> bool:
        """True if these tests that look ahead may return true in this run."""
        happens = self._whole.relation(ORDER)
        return happens is not None and not self._uncounted and may_pass(self.run.execution, saved, happens)

    def _events(self, changes: Sequence[Mutation]) -> int:
        """The events of the instructions that are changed; of a test that looks ahead, the waits that it saves, too."""
        events = 0
        for change in changes:
            at = change.instruction.number
            events |= self._events_at.get(at, 0) | sum(1 << wait for wait in self._saved.get(at, ()))
        return events

    @cached_property
    def _saved(self) -> dict[int, Saved]:
        """By a test that looks ahead, the waits that are not made where it returns true."""
        return saved_waits(self.run.run, self.run.graph.number)

    @cached_property
    def _events_at(self) -> dict[int, int]:
        """The events of each instruction."""
        events: dict[int, int] = {}
        for event, behind in enumerate(self.run.graph.origins):
            events[behind.at] = events.get(behind.at, 0) | 1 << event
        return events

    def _removed(self, changes: Sequence[Mutation]) -> _Removed | None:
        """What is not there without these instructions; None if the run without it is no execution."""
        numbers = {change.instruction.number for change in changes}
        undefined = 0
        for change in changes:
            action = self._action(change)
            if not self._events((change,)) or not (self._leaves_run(change) or action is not None):
                return None
            for log in self._objects.of(change.instruction.number) if action is not None else ():
                left = [step for step in log if step.event.at not in numbers]
                if action is Action.INIT:
                    undefined |= self._first_of(change.instruction.number, log, left)
                elif not all(step.update for step in left):
                    return None
        return _Removed(self._events(changes), undefined)

    def _action(self, change: Mutation) -> Action | None:
        """The action of an init, or of an update whose state nobody uses; None for any other instruction."""
        actions = {object_action(label) for label in labels_of(change.instruction)}
        action = next(iter(actions)) if len(actions) == 1 else None
        if action in (None, Action.TEST, Action.INVAL) or not self._used.isdisjoint(lowered(change.instruction).writes):
            return None
        return action

    @cached_property
    def _used(self) -> frozenset[int]:
        """The registers that are read."""
        return frozenset(register for each in self.run.body for register in lowered(each).reads)

    @cached_property
    def _objects(self) -> ObjectLogs:
        return ObjectLogs(self.run.run)

    def _first_of(self, init: int, log: Sequence[ObjectStep], left: Sequence[ObjectStep]) -> int:
        """The first update of each life of an object that an instruction began."""
        lives = {step.life for step in log if step.event.at == init}
        first = {step.life: step for step in reversed(left) if step.life in lives}
        numbers = (self.run.graph.number.get(id(step.event)) for step in first.values())
        return sum(1 << number for number in numbers if number is not None)

    @cached_property
    def _uncounted(self) -> frozenset[str]:
        return self.run.violated_counts(self._whole, 0)

    def _new_labels(self, change: Mutation) -> dict[int, Label]:
        """The labels of the events of a weakened instruction; none if anything else differs. Of a test that looks ahead
        those of its events with which it saves a wait: a test that returns false has no label of its own."""
        labels = relabelled(change)
        graph, changed = self.run.graph, dict[int, Label]()
        if change.instruction.number in self._saved:
            tests = self._saved[change.instruction.number].values()
            return {test: label for test in tests for label in labels.values()}
        for number in bits(self._events((change,))) if labels else ():
            label = graph.points[number].label
            if label not in labels or (number not in graph.events and labels[label] != label):
                return {}
            if labels[label] != label:
                changed[number] = labels[label]
        return changed

    def _leaves_run(self, change: Mutation) -> bool:
        """True if the run without its events is an execution of the kernel without an instruction."""
        labels = labels_of(change.instruction)
        if not labels:
            return False
        if all(object_action(label) is Action.TEST for label in labels):
            return self.waits(change.instruction)
        return self.keeps_others(change)

    def waits(self, instruction: PtxInstruction) -> bool:
        """True if an instruction is a test that is repeated until it returns true, or that looks ahead."""
        tests = [object_action(label) is Action.TEST for label in labels_of(instruction)]
        return bool(tests) and all(tests) and (self._polls(instruction) or instruction.number in self._saved)

    def looks_ahead(self, instruction: PtxInstruction) -> bool:
        """True if an instruction is a test that looks ahead."""
        return instruction.number in self._saved

    def saves_waits(self, instruction: PtxInstruction) -> bool:
        """True if an instruction is a test that looks ahead, and a thread waits in this run since it returned false."""
        return bool(self._saved.get(instruction.number))

    def _polls(self, test: PtxInstruction) -> bool:
        """True if a test is repeated until it returns true, and no wait depends on it."""
        run = self.run.run
        ahead = any(test.number in waits for waits in run.awaits.values())
        return not ahead and not complaints(self.run.entry, [test.number], run.awaits)


@dataclass(frozen=True, slots=True)
class _Removed:
    """Events that are not there. `undefined`: those that are undefined then."""

    events: int
    undefined: int
