"""What changes of a text do to an execution of it, without asking an engine.

In: a text, an execution of it, changes that only add order. Out: the execution as it is in the changed text, if that
can be told: with other labels, and fences between its events. If such an execution is still consistent and still bad,
the changes do not suffice, and neither does any part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice, product
from math import prod
from operator import attrgetter

from memmodel.answer import HANG
from memmodel.base.labels import (
    Access,
    Barrier,
    Covers,
    Fence,
    Issue,
    Label,
    Mark,
    Mbarrier,
    ProxyFence,
    Signal,
)
from memmodel.base.rows import bits, compose, inverse
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.concrete.execution import Execution
from memmodel.concrete.records import End
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Assign, AtBarrier, Emit, IssueAsync, OnObject, Op, Read, WaitForGroups, Write
from memmodel.program.uses import is_hidden
from memmodel.ptx.vocabulary import Sem, Space, Window
from memmodel.repair.edits import Edit, about_numbers, apply
from memmodel.repair.judge import TextCounterexample
from memmodel.why.alter import Alteration, Inserted, alter, combined, with_order
from memmodel.why.diagnose import fence_orders
from memmodel.why.values import Values

FEW = 3
"""Of more fences fence.sc than this, one order is tried."""

ORDERS = 12
"""At most this many orders of fence.sc are tried before an execution counts as one that does not survive."""

MOST_CHOICES = 16
"""At most this many ways to choose among changes that exclude each other are tried."""

SC = Sem.SC
OBSERVED = ("po", "rf", "co", "iss", "compl", "mbarseen", "mbarfr", "syncbar", "sync_fence")
"""Relations that lead from what happens first to what happens later."""

RECORDED = (Read, Write, Emit, AtBarrier, WaitForGroups, OnObject, IssueAsync)
"""Operations that leave a record where they are reached, but for a write that is not made."""

LABELS = (Access, Barrier, Fence, Issue, Mark, Mbarrier, ProxyFence, Signal)


@dataclass(frozen=True, slots=True)
class Delta:
    """What one edit changes: `labels`: (thread, instruction) and old label -> new; or new events before an instruction.

    `at`: (thread, instruction number) of the old text; the number of instructions stands for the end of the thread.
    `hidden`: it also counts something that is not an event, by which instructions may be undefined.
    """

    at: tuple[int, int]
    labels: tuple[tuple[Label, Label], ...] = ()
    inserted: tuple[Label, ...] = ()
    hidden: bool = False


class Carry:
    """Carries executions of a text with some edits made into texts with more of them made."""

    def __init__(self, text: str, parse: Callable[[str], LoweredTest | None]) -> None:
        self.text = text
        self.parse = parse
        self.base = parse(text)
        self._deltas: dict[object, Delta | None] = {}
        self._illegal: set[object] = set()
        self._changes: dict[object, tuple[Execution, Alteration | None]] = {}  # of executions, which so stay
        self._passed: dict[object, tuple[Execution, bool]] = {}

    def delta(self, edit: Edit) -> Delta | None:
        """What an edit of the text changes; None if that cannot be told. One line is the same in the whole thread."""
        if edit.more or about_numbers(edit):
            return None
        return self._read(edit)

    def _read(self, edit: Edit) -> Delta | None:
        key = _key(edit)
        if key not in self._deltas:
            changed = self.parse(apply(self.text, (edit,)))
            if changed is None:
                self._illegal.add(key)
            comparable = not (edit.more or about_numbers(edit))
            self._deltas[key] = difference(self.base, changed) if comparable and self.base and changed else None
        delta, place = self._deltas[key], edit.group[:2]
        return delta if delta is None or key is edit else replace(delta, at=place)  # type: ignore[arg-type]

    def legal(self, edit: Edit) -> bool:
        """True if the edited text is a legal test."""
        key = _key(edit)
        if key not in self._deltas:
            self._read(edit)
        return key not in self._illegal

    def carried(self, execution: Execution, applied: Sequence[Edit], edits: Sequence[Edit]) -> Execution | None:
        """An execution of the text with some edits made, as it is with more; None if it cannot be told what that is.

        Of the edits of one group the one of the highest level counts (`choices`)."""
        groups = {edit.group: edit for edit in applied}
        strongest: dict[tuple[object, ...], Edit] = {}
        implied = {group for edit in edits for group in edit.implies}
        for edit in edits:
            if edit.group in implied:
                continue
            if edit.group not in strongest or strongest[edit.group].level < edit.level:
                strongest[edit.group] = edit
        changes, done = [], tuple(applied)
        for edit in sorted(strongest.values(), key=attrgetter("rank")):
            known = groups.get(edit.group)
            if known is not None and self.orders_no_more(edit, known):
                continue
            if known is not None and not self.orders_no_more(known, edit):
                return None
            key = (id(execution), edit, known, done)
            if key not in self._changes:
                self._changes[key] = (execution, self.alteration(execution, applied, edit, known))
            change = self._changes[key][1]
            if change is None:
                return None
            changes.append(change)
        return alter(execution, combined(changes, len(execution.events)))

    def choices(self, edits: Sequence[Edit]) -> list[tuple[Edit, ...]]:
        """The most that can be made of changes of which those of one group exclude each other; empty if there are too
        many ways. A change is left out if another one of its group orders as much."""
        groups: dict[object, list[Edit]] = {}
        for edit in edits:
            groups.setdefault(edit.group, []).append(edit)
        most = [self._most(group) for group in groups.values()]
        if prod(map(len, most)) > MOST_CHOICES:
            return []
        return list(product(*most))

    def _most(self, edits: list[Edit]) -> list[Edit]:
        """The changes of a group that order most: without each that orders no more than another one."""
        if len(edits) == 1:
            return edits
        left: list[Edit] = []
        for edit in sorted(edits, key=lambda edit: -edit.level):
            if not any(self.orders_no_more(edit, other) for other in left):
                left = [other for other in left if not self.orders_no_more(other, edit)] + [edit]
        return left

    def orders_no_more(self, less: Edit, more: Edit) -> bool:
        """True if a change is known to order no more than another one of its group."""
        before, after = self.delta(less), self.delta(more)
        if less == more or before is None or after is None or before.inserted or after.inserted:
            return less == more
        was, now = dict(before.labels), dict(after.labels)
        return was.keys() <= now.keys() and all(at_most(was.get(old, old), new) for old, new in now.items())

    def passed_by(self, execution: Execution, edit: Edit, applied: Sequence[Edit] = ()) -> bool:
        """True if an execution of the text with the edits `applied` does not reach what `edit` changes. Then it is also
        an execution of the text with `edit` made."""
        return all(self._never_at(execution, _now_at(change, applied)) for change in (edit, *edit.more))

    def _never_at(self, execution: Execution, place: tuple[object, ...]) -> bool:
        key = (id(execution), place)
        if key not in self._passed:
            self._passed[key] = (execution, _never_at(execution, place))
        return self._passed[key][1]

    def alteration(
        self, execution: Execution, applied: Sequence[Edit], edit: Edit, known: Edit | None = None
    ) -> Alteration | None:
        """What one more edit does to an execution of the text with some edits made; None if that cannot be told.

        `known`: one of them, which changes the same and less.
        """
        delta = self.delta(edit)
        if known is not None:
            delta = _raised(self.delta(known), delta)
        return None if delta is None else alteration_by(execution, replace(delta, at=_shifted(delta.at, edit, applied)))


def _raised(less: Delta | None, more: Delta | None) -> Delta | None:
    """The change that is left to make after the lesser of two changes of one instruction was made; None if that cannot
    be told.
    """
    if less is None or more is None or less.inserted or more.inserted:
        return None
    changed, wanted = dict(less.labels), dict(more.labels)
    if not changed.keys() <= wanted.keys():
        return None
    return replace(more, labels=tuple((changed.get(old, old), new) for old, new in wanted.items()))


def _key(edit: Edit) -> object:
    """The key of an edit, equal for edits that put the same line into the same thread."""
    thread, _, name = edit.group[:3]
    return (thread, name) if edit.adds == 1 and not edit.more else edit


def shifted(at: tuple[int, int], applied: Iterable[Edit]) -> tuple[int, int]:
    """The place of an instruction after lines were put in front of it or of others before it, or were moved."""
    thread, index = at
    return thread, index + sum(_added(part, thread, index) for edit in applied for part in (edit, *edit.more))


def _added(edit: Edit, thread: int, index: int) -> int:
    at = edit.group[1]
    if edit.group[0] != thread or not isinstance(at, int):
        return 0
    return edit.adds if at < index or (at == index and edit.adds > 0) else 0


def _shifted(at: tuple[int, int], edit: Edit, applied: Sequence[Edit]) -> tuple[int, int]:
    """The place of a line that an edit puts into a gap: after the applied lines there that come before it."""
    thread, index = at
    parts = (part for change in applied for part in (change, *change.more))
    ahead = (part for part in parts if not (edit.adds > 0 and part.group[:2] == at and part.rank > edit.rank))
    return thread, index + sum(_added(part, thread, index) for part in ahead)


def _now_at(edit: Edit, applied: Sequence[Edit]) -> tuple[object, ...]:
    """The place of an edit in a text in which other edits are made."""
    thread, index = edit.group[:2]
    if not (applied and isinstance(thread, int) and isinstance(index, int)):
        return edit.group[:2]
    return _shifted((thread, index), edit, applied)


def difference(old: LoweredTest, new: LoweredTest) -> Delta | None:
    """The one place where two texts differ."""
    for thread, (before, after) in enumerate(zip(old.test.threads, new.test.threads, strict=True)):
        was, now = ([item.span.text for item in instructions(thread)] for thread in (before, after))
        if was == now:
            continue
        at = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), len(was))
        ops = new.programs[thread].ops(at)
        if len(now) == len(was) + 1 and now[at + 1 :] == was[at:]:
            hidden = [op for op in ops if isinstance(op, Assign) and is_hidden(op.register)]
            if not all(isinstance(op, Emit) or op in hidden for op in ops):
                return None
            labels = tuple(_anywhere(op) for op in ops if isinstance(op, Emit))
            return Delta((thread, at), inserted=labels, hidden=bool(hidden))
        if len(now) != len(was) or now[at + 1 :] != was[at + 1 :]:
            return None
        alike = frozenset((Window.GENERIC, Window.DATA) if _all_data(old) else ())
        pairs = list(_relabelled(old.programs[thread].ops(at), ops, alike))
        if any(pair is None for pair in pairs):
            return None
        return Delta((thread, at), tuple(pair for pair in pairs if pair is not None and pair[0] != pair[1]))
    return None  # what differs is declared


def _anywhere(op: Emit) -> Label:
    """The label of what is put in; a fence about the bytes at an address counts as one about all memory: not less."""
    if isinstance(op.label, ProxyFence) and op.label.covers is Covers.RANGE:
        return replace(op.label, covers=None)
    return op.label


def _all_data(lowered: LoweredTest) -> bool:
    """True if strong accesses may reach all memory that weak accesses of generic addresses may reach."""
    return all(variable.space in (Space.GENERIC, Space.GLOBAL, Space.SHARED) for variable in lowered.test.variables)


def _relabelled(old: object, new: object, alike: Set[Window]) -> Iterator[tuple[Label, Label] | None]:
    """The labels in which two ops differ; None for any other difference but that of windows that are alike."""
    if isinstance(old, LABELS) and type(old) is type(new):
        yield (old, new)
    elif type(old) is not type(new):
        yield None
    elif is_dataclass(old) and not isinstance(old, type):
        for field in fields(old):
            if field.compare:
                yield from _relabelled(getattr(old, field.name), getattr(new, field.name), alike)
    elif isinstance(old, tuple | list) and isinstance(new, tuple | list):
        if len(old) != len(new):
            yield None
        for first, second in zip(old, new, strict=False):
            yield from _relabelled(first, second, alike)
    elif old != new and not (isinstance(old, Window) and {old, new} <= alike):
        yield None


def at_most(less: Label, more: Label) -> bool:
    """True if an event with the label `less` orders no more than one with the label `more`."""
    if type(less) is not type(more):
        return False
    return all(_field(field.name, getattr(less, field.name), getattr(more, field.name)) for field in fields(less))


def _field(name: str, less: object, more: object) -> bool:
    if less == more or (name in ("covers", "half") and more is None) or (name == "scope" and less is None):
        return True
    if isinstance(less, Sem) and isinstance(more, Sem):
        return more.orders(less)
    return name == "scope" and isinstance(less, int) and isinstance(more, int) and less <= more


def alteration_by(execution: Execution, delta: Delta) -> Alteration | None:
    """A difference of texts on an execution of the old one."""
    frame = execution.frame
    thread, at = delta.at
    program = frame.lowered.programs[thread]
    runs: dict[int, list[int]] = {}
    last: list[int] = []
    for number, record in enumerate(frame.traces[thread].records):
        mine = frame.of_record.get((thread, number), [])
        step = record.name.step
        if record.order is not None and mine:
            last = mine
        if step < len(program.steps) and program.steps[step].index == at:
            runs.setdefault(record.instruction, []).extend(mine)
    if delta.labels:
        changed = dict(delta.labels)
        return Alteration(
            tuple(
                (event, field.name, getattr(changed[label], field.name))
                for events in runs.values()
                for event in events
                if (label := execution.events[event].label) in changed
                for field in fields(label)
                if getattr(label, field.name) != getattr(changed[label], field.name)
            )
        )
    if not delta.inserted:
        return Alteration()
    end = len(list(instructions(frame.lowered.test.threads[thread])))
    if runs:
        firsts = [min(events) for events in runs.values() if events]
        return Alteration((), tuple(Inserted(first, label) for first in firsts for label in delta.inserted))
    if at == end and frame.traces[thread].ending.end is End.REACHED and last:
        return Alteration((), tuple(Inserted(last[0], label, after=True) for label in delta.inserted))
    return Alteration() if _never_at(execution, delta.at) else None


def _never_at(execution: Execution, place: tuple[object, ...]) -> bool:
    """True if a thread certainly does not reach an instruction."""
    frame = execution.frame
    thread, at = place[:2]
    if not isinstance(thread, int) or not isinstance(at, int) or thread < 0:
        return False
    program, trace = frame.lowered.programs[thread], frame.traces[thread]
    items = list(instructions(frame.lowered.test.threads[thread]))
    waits = trace.ending.end is End.WAITS and program.steps[trace.ending.step].index != at
    if at >= len(items):
        return waits and at == len(items)
    if items[at].guard is not None or not any(map(_is_recorded, program.ops(at))):
        return False
    steps = (record.name.step for record in trace.records)
    return (waits or trace.ending.end is End.REACHED) and all(
        step >= len(program.steps) or program.steps[step].index != at for step in steps
    )


def _is_recorded(op: Op) -> bool:
    """True of an operation that leaves a record whenever it is reached."""
    return isinstance(op, RECORDED) and not (isinstance(op, Write) and op.when is not None)


def survives(counterexample: TextCounterexample, execution: Execution) -> bool:
    """True if the execution, carried into a changed text, is consistent and still shows the finding."""
    evaluated = counterexample.witness.evaluated
    return evaluated is not None and any(
        _still_bad(counterexample, Values(counterexample.model, ordered, evaluated.ranks))
        for ordered in _ordered(execution)
    )


def _ordered(execution: Execution) -> Iterator[Execution]:
    """The execution with orders of its fence.sc: the one in which what happens may have happened, then some others."""
    strong = [n for n, event in enumerate(execution.events) if isinstance(event.label, Fence) and event.label.sem is SC]
    if len(strong) > FEW:
        include, order = execution.relation("sr"), execution.relation("sync_fence")
        turns = sorted(strong, key=_times(execution).__getitem__)
        ahead = [(a, b) for n, a in enumerate(turns) for b in turns[n + 1 :] if include[a] >> b & 1]
        pairs = [(a, b) for a, b in ahead if not order[b] >> a & 1]
        yield with_order(execution, pairs, "sync_fence")
        return
    yield from islice(fence_orders(execution), ORDERS)


def _times(execution: Execution) -> list[int]:
    """A turn for each event, after what it follows or observes as far as that is no circle."""
    rows = [0] * len(execution.events)
    for name in OBSERVED:
        rows = [row | more for row, more in zip(rows, execution.relation(name), strict=True)]
    reads = compose(inverse(execution.relation("rf")), execution.relation("co"))
    before = inverse([row | more for row, more in zip(rows, reads, strict=True)])
    left = (1 << len(rows)) - 1
    times = [0] * len(rows)
    for turn in range(len(rows)):
        waiting = bits(left)
        event = next((n for n in waiting if not before[n] & left & ~(1 << n)), waiting[0])
        times[event] = turn
        left &= ~(1 << event)
    return times


def _still_bad(counterexample: TextCounterexample, values: Values) -> bool:
    flag = counterexample.flag
    if values.violated() is not None:
        return False
    if flag is None:
        return True
    checks = [check for check in values.model.flags if check.name == flag]
    if flag == HANG:
        undefined = [check for check in values.model.flags if kind_of(check.name) is FindingKind.UNDEFINED]
        return not any(map(values.holds, undefined))
    return any(map(values.holds, checks))
