"""A repair must not skip a phase that a thread waits for.

In: executions of a test before and after a change. Out: whether the change keeps its phases. Settled here: a wait whose
parity was changed observes an arrival that its thread has not waited for before. Two threads that waited for each other
are an exception, since one has to go first: that one must not read an initial value that another thread overwrites. And
a phase of an mbarrier object that ended before a hang has no fewer arrivals after the change.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.answer import HANG, Witness
from memmodel.base.labels import Action
from memmodel.base.rows import bits, pairs_of
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.execution import Execution
from memmodel.program.spelling import spell_cell
from memmodel.repair.carry import shifted
from memmodel.repair.edits import Edit
from memmodel.repair.judge import AnswersOfTest
from memmodel.why.records import Reason
from memmodel.why.story import execution_of
from memmodel.why.stuck import stuck


def keeps_phases(before: AnswersOfTest, after: Sequence[Witness], edits: Sequence[Edit]) -> bool:
    """True if the changed test still waits for all that the test waited for. `after`: its terminating executions."""
    now = [execution for witness in after if (execution := execution_of(witness)) is not None]
    parities = [edit for edit in edits if edit.group[2] == "number" and "parity" in edit.what]
    deadlocked = _deadlocked(before)
    may_go_first = {edit.group[0] for edit in parities if edit.group[0] in deadlocked or "wait.parity" not in edit.what}
    if any(edit.group[2] == "move" for edit in edits):  # then another thread may go first
        may_go_first |= deadlocked
    if may_go_first and any(_reads_initial_value(execution, may_go_first) for execution in now):
        return False
    places: set[tuple[int, int] | None] = {
        _place(edit, edits) for edit in parities if "wait.parity" in edit.what and edit.group[0] not in deadlocked
    }
    if places and any(_has_idle_wait(execution, places) for execution in now):
        return False
    hangs = [
        execution_of(counterexample.witness) for counterexample in before.counterexamples if counterexample.flag == HANG
    ]
    return not any(_has_fewer_arrivals(old, new) for old in hangs if old is not None for new in now)


def _deadlocked(before: AnswersOfTest) -> set[object]:
    """The threads that wait for one that waits for them: one of them may have to go first, and wait for nothing."""
    deadlocked: set[object] = set()
    for counterexample in before.counterexamples:
        if counterexample.flag == HANG:
            waiting = {
                stopped.thread for stopped in stuck(counterexample.witness).waiting if stopped.reason is Reason.DEADLOCK
            }
            execution = execution_of(counterexample.witness)
            threads = () if execution is None else execution.frame.lowered.test.threads
            deadlocked |= {number for number, thread in enumerate(threads) if thread.name in waiting}
    return deadlocked


def _reads_initial_value(execution: Execution, threads: set[object]) -> bool:
    """True if one of the threads reads the initial value of a place that another thread writes."""
    initial, written = execution.set("IW"), execution.set("W")
    for write, read in pairs_of(execution.relation("rf")):
        thread, cell = execution.events[read].point.thread, execution.events[read].point.cell
        if thread in threads and initial >> write & 1:
            others = (execution.events[n].point for n in bits(written & ~initial))
            if any(other.cell == cell and other.thread != thread for other in others):
                return True
    return False


def progress(answers: AnswersOfTest | None) -> int:
    """The number of operations that are done before a thread waits for ever, in the execution that gets least
    far.
    """
    hangs = [
        execution_of(counterexample.witness)
        for counterexample in (answers.counterexamples if answers else ())
        if counterexample.flag == HANG
    ]
    return min(
        (sum(len(trace.records) for trace in execution.frame.traces) for execution in hangs if execution is not None),
        default=0,
    )


def _place(edit: Edit, edits: Sequence[Edit]) -> tuple[int, int]:
    thread, index = edit.group[:2]
    assert isinstance(thread, int) and isinstance(index, int)
    return shifted((thread, index), edits)


def _has_idle_wait(execution: Execution, places: set[tuple[int, int] | None]) -> bool:
    """True if a wait at one of the places succeeds but observes nothing new for its thread."""
    seen = execution.relation("mbarobs")
    order = execution.relation("po")
    done = bits(execution.set("MBDONE"))
    observed = {wait: {n for n, row in enumerate(seen) if row >> wait & 1} for wait in done}
    for wait in done:
        if _instruction(execution, wait) in places:
            earlier = [observed[other] for other in done if order[other] >> wait & 1]
            if not observed[wait] - set().union(*earlier):
                return True
    return False


def _instruction(execution: Execution, event: int) -> tuple[int, int] | None:
    """The thread of an event, and the number of its instruction there."""
    thread = execution.events[event].point.thread
    record = execution.frame.record_of(execution.events[event])
    if thread is None or record is None:
        return None
    return thread, execution.frame.lowered.programs[thread].steps[record.name.step].index


def _has_fewer_arrivals(old: Execution, new: Execution) -> bool:
    """True if a completed phase has fewer arrivals than before."""
    before, after = _arrivals(old), _arrivals(new)
    return any(
        count < now[phase]
        for name, now in before.items()
        for phase, count in enumerate(after.get(name, ()))
        if phase < len(now)
    )


def _arrivals(execution: Execution) -> dict[str, list[int]]:
    """For each mbarrier object, how many arrivals each phase had that is over."""
    frame = execution.frame
    arrivals: dict[str, list[int]] = {}
    for uses in Assembly(frame).objects:
        walk = uses.walk_of(execution.relation("mbar"))
        counts = [0] * (walk.counts[-1].over + 1)
        for number, use in enumerate(walk.order):
            if walk.has_effect(number) and use.record.action is Action.ARRIVE:
                counts[walk.counts[number].over] += use.record.count
        arrivals[spell_cell(frame.lowered.space, uses.cell)] = counts[:-1]
    return arrivals
