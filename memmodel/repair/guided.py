"""The changes of a text that an explanation asks for.

In: a counterexample of a text with some changes made, and the changes that may be made. Out: those that do to the
execution what the explanation says is missing. Settled here: of several that do the same, the cheapest is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from operator import attrgetter

from memmodel.base.labels import Access, Fence, Label, Mark, ProxyFence
from memmodel.concrete.execution import Execution
from memmodel.litmus.constants import instructions
from memmodel.ptx.vocabulary import Sem
from memmodel.repair.carry import Carry, shifted
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.exchanging.exchanges import ALIKE, THREADS
from memmodel.repair.hints import answers, kind
from memmodel.repair.insertion.rereads import repeated
from memmodel.repair.judge import TextCounterexample
from memmodel.why.alter import Alteration, Inserted
from memmodel.why.changes.situation import Change
from memmodel.why.diagnose import Diagnosing, Diagnosis
from memmodel.why.records import Reason
from memmodel.why.story import execution_of

ANSWERS = 8
"""At most this many changes are tried for one thing that an explanation misses."""

FAR = 8
"""An explanation inserts something beside an event. A line at most this number of instructions away does the same."""

ALTERNATIVES = 10
"""At most this many sets of changes are tried that answer one explanation."""

PRICE = attrgetter("cost")


def asked_for(
    counterexample: TextCounterexample,
    carry: Carry,
    applied: Sequence[Edit],
    stronger: Sequence[Edit],
    others: Sequence[Edit],
) -> list[frozenset[Edit]]:
    """Sets of changes that answer the explanation of an execution, the cheapest first; none if a part has no answer."""
    execution, explained = execution_of(counterexample.witness), diagnosis(counterexample)
    if execution is None or explained is None:
        return []
    groups = {edit.group for edit in applied}
    near = Nearby(execution, applied, [edit for edit in (*stronger, *others) if edit.group not in groups])
    offered = sorted((edit for edit in stronger if edit.group not in groups), key=PRICE)

    def does(change: Change) -> Edit | None:
        """The cheapest change of the text that does to the execution what a change of the explanation does."""
        for edit in offered:
            if near.may_do(edit, change):
                alteration = carry.alteration(execution, applied, edit)
                if alteration is not None and _does(execution, alteration, change):
                    return edit
        return None

    answers: list[list[frozenset[Edit]]] = []
    for change in explained.changes:
        direct = does(change)
        strong = _strong(execution, counterexample, change, does) if counterexample.finding is not None else None
        some = [frozenset({direct})] if direct is not None else near.answers(change)
        loop = _loop(execution, change, carry, applied)
        answers.append([frozenset({loop})] if loop else some[:ANSWERS] + ([strong] if strong else []))
    sets = dict.fromkeys(frozenset(edit for part in parts for edit in part) for parts in product(*answers))
    return sorted(sets, key=lambda edits: sum(map(PRICE, edits)))[:ALTERNATIVES]


def _strong(
    execution: Execution, counterexample: TextCounterexample, change: Change, does: Callable[[Change], Edit | None]
) -> frozenset[Edit] | None:
    """Two accesses that nothing orders, made strong: then they do not race, whatever their order."""
    pair = _pair(counterexample)
    if change.reason not in (Reason.NO_SYNCHRONIZATION, Reason.NOT_SEEN) or pair is None:
        return None
    ends = [execution.events[event] for event in pair]
    seats = [event.point.seat for event in ends]
    if not all(isinstance(event.label, Access) and not event.label.asynchronous for event in ends):
        return None
    seat, other_seat = seats
    assert seat is not None and other_seat is not None
    scope = seat.common_scope(other_seat)
    chosen: set[Edit] = set()
    for number, event in zip(pair, ends, strict=True):
        assert isinstance(event.label, Access)
        weak = event.label.sem is Sem.WEAK
        if event.label.scope is not None and event.label.scope >= scope:  # a weak access has none
            continue
        fields = ((number, "scope", scope), *(((number, "sem", Sem.RELAXED),) if weak else ()))
        edit = does(Change(Reason.WEAK, Alteration(fields), number))
        if edit is None:
            return None
        chosen.add(edit)
    return frozenset(chosen) or None


class Nearby:
    """The changes near the two events of an explanation's change: waits, commits, arrivals and numbers, which change
    more than one label.
    """

    def __init__(self, execution: Execution, applied: Sequence[Edit], offered: Sequence[Edit]) -> None:
        self.execution = execution
        placed = ((edit, edit.group[:2]) for edit in offered)
        self.at = {edit: shifted(place, applied) for edit, place in placed if _is_place(place)}  # type: ignore[arg-type]

    def may_do(self, edit: Edit, change: Change) -> bool:
        """True if a change of the text may have the effect of an explanation's change, judged by kind and place."""
        wanted, at = change.alteration, self.at.get(edit)
        if at is None or wanted.edges:
            return False
        if wanted.fields:
            return edit.adds == 0 and any(instruction_of(self.execution, event) == at for event, _, _ in wanted.fields)
        for inserted in wanted.inserted:
            beside = instruction_of(self.execution, inserted.beside)
            if edit.adds > 0 and beside is not None and beside[0] == at[0] and abs(beside[1] - at[1]) <= FAR:
                return True
        return False

    def answers(self, change: Change) -> list[frozenset[Edit]]:
        """The changes of the text that may answer an explanation's change, the nearest first."""
        first, second = instruction_of(self.execution, change.at), instruction_of(self.execution, change.other)
        match change.reason:
            case Reason.PARITY:
                return self._numbers("parity", second)
            case Reason.BYTES | Reason.COUNT:
                return [
                    frozenset({edit}) for edit in self.at if edit.group[3:] == ALIKE and answers(edit, {change.reason})
                ]
            case Reason.TCGEN05_COMMIT:
                return self._commits(first, second)
            case (
                Reason.NOT_WAITED
                | Reason.TCGEN05_WAIT
                | Reason.NO_SYNCHRONIZATION
                | Reason.NOT_TRANSITIVE
                | Reason.EARLIER_PHASE
            ):
                meetings = [frozenset({edit}) for edit in self.at if edit.more and edit.adds > 0]
                waits = [frozenset({edit}) for edit in (*self._spellings(first), *self._waits(first, second))]
                signals = [frozenset({edit}) for edit in self.at if edit.group[3:] == ALIKE and "commit" in edit.text]
                more = [frozenset({edit}) for edit in self.at if edit.group[3:] == ALIKE and _expects_more(edit)]
                return [*signals, *more[:1], *waits[: ANSWERS - 2], *meetings]
        return []

    def _numbers(self, word: str, place: tuple[int, int] | None) -> list[frozenset[Edit]]:
        """Other numbers of a kind at an instruction, else elsewhere in its thread."""
        if place is None:
            return []
        mine = [
            edit for edit, at in self.at.items() if about_numbers(edit) and kind(edit) == word and at[0] == place[0]
        ]
        return [frozenset({edit}) for edit in sorted(mine, key=lambda edit: abs(self.at[edit][1] - place[1]))]

    def _waits(self, first: tuple[int, int] | None, second: tuple[int, int] | None) -> list[Edit]:
        """Waits in front of the second place, and after the first if they are in one thread."""
        if second is None:
            return []
        start = first[1] if first is not None and first[0] == second[0] else -1
        waits = [
            (not self._unheard(edit), second[1] - at[1], edit.cost, edit)
            for edit in self.at
            if edit.adds > 0 and edit.rank == 0
            for at in self._places(edit)
            if at[0] == second[0] and start < at[1] <= second[1]
        ]
        return [edit for *_, edit in sorted(waits, key=lambda entry: entry[:3])]

    def _places(self, edit: Edit) -> list[tuple[int, int]]:
        """Where a line is put, for all like threads if it is."""
        alike = edit.more if edit.group[3:] == THREADS else ()
        return [self.at[edit], *(self.at[like] for like in alike if like in self.at)]

    def _unheard(self, edit: Edit) -> bool:
        """True if the change concerns an object that no thread waits for."""
        name = _object(edit)
        threads = self.execution.frame.lowered.test.threads
        waits = (item.span.text for thread in threads for item in instructions(thread) if "wait" in item.mnemonic)
        return name is not None and not any(f"[{name}]" in text for text in waits)

    def _commits(self, first: tuple[int, int] | None, second: tuple[int, int] | None) -> list[frozenset[Edit]]:
        """Commits after the first place, those in place of an arrive first; with waits for the same object."""
        if first is None:
            return []
        after = [
            edit
            for edit, at in self.at.items()
            if "tcgen05.commit" in edit.text and at[0] == first[0] and at[1] > first[1]
        ]
        after = sorted(after, key=lambda edit: (edit.adds, self.at[edit][1] - first[1], edit.cost))[:ANSWERS]
        alone = [frozenset({edit}) for edit in after]
        waits = self._waits(first, second)[: 2 * ANSWERS]
        both = [
            frozenset({edit, wait}) for edit in after for wait in waits if _object(edit) == _object(wait) is not None
        ]
        return [*alone[: ANSWERS // 2], *both]

    def _spellings(self, place: tuple[int, int] | None) -> list[Edit]:
        """Waits for groups after a place that may wait for more."""
        if place is None:
            return []
        return [
            edit
            for edit, at in self.at.items()
            if edit.adds == 0 and "wait_group" in edit.what and at[0] == place[0] and at[1] > place[1]
        ]


def instruction_of(execution: Execution, event: int | None) -> tuple[int, int] | None:
    """The thread of an event, and the number of its instruction in the text; None for an initial write."""
    if event is None:
        return None
    point = execution.events[event].point
    thread_level = event if point.issue is None else point.issue
    thread = execution.events[thread_level].point.thread
    record = execution.frame.record_of(execution.events[thread_level]) if thread is not None else None
    if thread is None or record is None:
        return None
    return thread, execution.frame.lowered.programs[thread].steps[record.name.step].index


def _loop(execution: Execution, change: Change, carry: Carry, applied: Sequence[Edit]) -> Edit | None:
    """The change of the text that repeats what has not seen another thread; None where nothing of the kind is asked."""
    place, base = instruction_of(execution, change.other), carry.base
    if change.reason is not Reason.NOT_SEEN or place is None or base is None:
        return None
    thread = place[0]
    count = len(list(instructions(base.test.threads[thread])))
    index = next((index for index in range(count) if shifted((thread, index), applied) == place), None)
    return None if index is None else repeated(base, thread, index, execution.values[change.at])


def _is_place(group: tuple[object, ...]) -> bool:
    return len(group) == 2 and all(isinstance(part, int) for part in group) and group[0] != -1


def _expects_more(edit: Edit) -> bool:
    """True if a change increases the bytes that a wait expects."""
    match = re.search(r"(\d+) -> (\d+) in .*expect_tx", edit.what)
    return match is not None and int(match[1]) < int(match[2])


def _object(edit: Edit) -> str | None:
    """The mbarrier object that a commit or a wait names."""
    match = re.search(r"mbarrier[^\[]*\[([^\]]*)\]", edit.text)
    return None if match is None else match[1]


def diagnosis(counterexample: TextCounterexample) -> Diagnosis | None:
    """The diagnosis of a counterexample: which changes would rule it out; None if none are known."""
    execution, evaluated = execution_of(counterexample.witness), counterexample.witness.evaluated
    if execution is None or evaluated is None:
        return None
    flag = next((check for check in counterexample.model.flags if check.name == counterexample.flag), None)
    pair = _pair(counterexample)
    if counterexample.finding is not None and (pair is None or flag is None):
        return None
    end = counterexample.witness.registers
    return Diagnosing(
        counterexample.model, execution, evaluated.ranks, flag, pair, evaluated.known, end=end
    ).diagnosis()


def _pair(counterexample: TextCounterexample) -> tuple[int, int] | None:
    """The two accesses of a finding; None where no finding relates two."""
    if counterexample.finding is None:
        return None
    first, second = counterexample.finding.first, counterexample.finding.second
    return None if first is None or second is None or first.uid == second.uid else (first.uid, second.uid)


def _does(execution: Execution, alteration: Alteration, change: Change) -> bool:
    """True if a change of the text alters the execution at least as the explanation's change does."""
    wanted = change.alteration
    if wanted.edges or not (wanted.fields or wanted.inserted):
        return False
    fields = {(event, name): value for event, name, value in alteration.fields}
    same = all(_reaches(fields.get((event, name)), value) for event, name, value in wanted.fields)
    return same and all(
        any(_stands_for(execution, inserted, other) for inserted in alteration.inserted) for other in wanted.inserted
    )


def _reaches(value: object, wanted: object) -> bool:
    """True if the value of a field is the wanted one or stronger."""
    return value.orders(wanted) if isinstance(value, Sem) and isinstance(wanted, Sem) else value == wanted


def _stands_for(execution: Execution, inserted: Inserted, wanted: Inserted) -> bool:
    """True if the inserted event is at the wanted place and at least as strong."""
    return _at_least(inserted.label, wanted.label) and _place(execution, inserted) == _place(execution, wanted)


def _at_least(label: Label, wanted: Label) -> bool:
    if isinstance(label, Fence) and isinstance(wanted, Fence):
        strong = label.sem is wanted.sem or (label.sem in (Sem.ACQ_REL, Sem.SC) and wanted.sem is not Sem.SC)
        return strong and label.covers is None and label.scope >= wanted.scope
    if isinstance(label, ProxyFence) and isinstance(wanted, ProxyFence):
        covers = label.covers is None or label.covers is wanted.covers or wanted.restricted != label.restricted
        return label.proxy is wanted.proxy and label.half is wanted.half and covers
    if isinstance(label, Mark) and isinstance(wanted, Mark):
        return label.what is wanted.what
    return False


def _place(execution: Execution, inserted: Inserted) -> tuple[int | None, int | None]:
    """The thread, and the instruction that it executes next after what is put in."""
    point = execution.events[inserted.beside].point
    instruction = _instruction(execution, inserted.beside)
    if not inserted.after or point.order is None:
        return point.thread, instruction
    later = [
        (other.point.order, next_instruction)
        for number, other in enumerate(execution.events)
        if other.point.thread == point.thread and other.point.order is not None and other.point.order > point.order
        if (next_instruction := _instruction(execution, number)) is not None and next_instruction != instruction
    ]
    return point.thread, min(later)[1] if later else None


def _instruction(execution: Execution, event: int) -> int | None:
    """The number, among the executed instructions of its thread, of the instruction that an event belongs to."""
    if execution.events[event].point.thread is None:
        return None
    record = execution.frame.record_of(execution.events[event])
    return None if record is None else record.instruction
