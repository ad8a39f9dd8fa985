"""The changes of a text that an explanation asks for.

In: an execution that speaks against a text, with some changes made, and the changes that may be made. Out: those that
do to the execution what the explanation says is missing from it. Settled here: of several that do, the cheapest.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import Fence, Label, Mark, ProxyFence
from memmodel.concrete.execution import Execution
from memmodel.ptx import Sem
from memmodel.repair.carry import Carry
from memmodel.repair.edits import Edit
from memmodel.repair.judge import Against
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.changes import Change
from memmodel.why.diagnose import Diagnosing, Diagnosis
from memmodel.why.story import execution_of


def asked_for(against: Against, carry: Carry, made: Sequence[Edit], offered: Sequence[Edit]) -> frozenset[Edit] | None:
    """The changes that answer the explanation of an execution; None if there is none for a part of it."""
    execution, found = execution_of(against.witness), diagnosis(against)
    if execution is None or found is None:
        return None
    groups = {edit.group for edit in made}
    told = [
        (edit, alteration)
        for edit in sorted(offered, key=lambda one: one.cost)
        if edit.group not in groups and (alteration := carry.alteration(execution, made, edit)) is not None
    ]
    answers = [next((edit for edit, one in told if _does(execution, one, change)), None) for change in found.changes]
    chosen = frozenset(edit for edit in answers if edit is not None)
    return chosen if chosen and None not in answers else None


def diagnosis(against: Against) -> Diagnosis | None:
    """What the explanation of an execution says is missing from it; None if it does not know."""
    execution, ground = execution_of(against.witness), against.witness.ground
    if execution is None or ground is None:
        return None
    flag = next((check for check in against.model.flags if check.name == against.flag), None)
    pair = None
    if against.finding is not None:
        first, second = against.finding.first, against.finding.second
        if first is None or second is None or first.uid == second.uid or flag is None:
            return None
        pair = (first.uid, second.uid)
    return Diagnosing(against.model, execution, ground.ranks, flag, pair, ground.known).diagnosis()


def _does(execution: Execution, alteration: Alteration, change: Change) -> bool:
    """Does a change of the text alter the execution as a change of the explanation does, or more?"""
    wanted = change.alteration
    if wanted.edges or not (wanted.fields or wanted.inserted):
        return False
    fields = {(event, name): value for event, name, value in alteration.fields}
    same = all(_reaches(fields.get((event, name)), value) for event, name, value in wanted.fields)
    return same and all(
        any(_stands_for(execution, one, other) for one in alteration.inserted) for other in wanted.inserted
    )


def _reaches(value: object, wanted: object) -> bool:
    """Is the value of a field what is wanted, or stronger?"""
    if isinstance(wanted, Sem):
        return value is wanted or (value is Sem.ACQ_REL and wanted in (Sem.ACQUIRE, Sem.RELEASE)) or value is Sem.SC
    return value == wanted


def _stands_for(execution: Execution, one: Inserted, wanted: Inserted) -> bool:
    """Is what is put in the same, at the same place?"""
    return _at_least(one.label, wanted.label) and _place(execution, one) == _place(execution, wanted)


def _at_least(label: Label, wanted: Label) -> bool:
    if isinstance(label, Fence) and isinstance(wanted, Fence):
        strong = label.sem is wanted.sem or (label.sem in (Sem.ACQ_REL, Sem.SC) and wanted.sem is not Sem.SC)
        return strong and label.covers is None and label.scope >= wanted.scope
    if isinstance(label, ProxyFence) and isinstance(wanted, ProxyFence):
        return label.proxy is wanted.proxy and label.half is wanted.half
    if isinstance(label, Mark) and isinstance(wanted, Mark):
        return label.what is wanted.what
    return False


def _place(execution: Execution, one: Inserted) -> tuple[int | None, int | None]:
    """The thread, and the instruction that it executes next after what is put in."""
    point = execution.events[one.beside].point
    here = _instruction(execution, one.beside)
    if not one.after or point.order is None:
        return point.thread, here
    later = [
        (other.point.order, found)
        for number, other in enumerate(execution.events)
        if other.point.thread == point.thread and other.point.order is not None and other.point.order > point.order
        if (found := _instruction(execution, number)) is not None and found != here
    ]
    return point.thread, min(later)[1] if later else None


def _instruction(execution: Execution, event: int) -> int | None:
    """Which executed instruction of its thread an event belongs to."""
    if execution.events[event].point.thread is None:
        return None
    record = execution.frame.record_of(execution.events[event])
    return None if record is None else record.instruction
