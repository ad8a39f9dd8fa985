"""A flag of its own by which one thread tells another that it is done, where they meet at no barrier.

In: a lowered test, its counterexamples. Out: edits, each of which declares a variable, sets it with a release behind an
access of one thread, and waits for it with an acquire in front of an access of the other one. Settled here: where both
threads read and write one place, neither of them is to come first, and there is no flag; nor is there one about an
access that is a flag itself, nor between threads that have one already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memmodel.answer import ShownEvent
from memmodel.concrete.execution import Execution
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.operands import Mem, Sym
from memmodel.ptx.vocabulary import Space
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, WAIT
from memmodel.repair.edits import Edit
from memmodel.repair.insertion.gaps import gaps
from memmodel.repair.insertion.lines import fresh, widths
from memmodel.repair.insertion.meetings import barrier_of_two, instruction_of, pairs_of_accesses
from memmodel.repair.judge import TextCounterexample
from memmodel.why.flow import Flow
from memmodel.why.polls import stored
from memmodel.why.story import execution_of

MOST_FLAGS = 6
"""At most this many changes are offered."""

ORDERED = {"atom", "red", "release", "acquire", "acq_rel"}
"""Words of accesses by which threads synchronize already."""

TELLS, WAITS = 8, -1
"""The turns of the two sides among what is put at one place: behind all else, and in front of it."""


def flags(lowered: LoweredTest, known: Iterable[TextCounterexample]) -> list[Edit]:
    """For each pair of accesses between which order is missing, a flag from the thread of one to that of the other."""
    edits: dict[tuple[int, int], Edit] = {}
    for counterexample in known:
        execution = execution_of(counterexample.witness)
        told = set() if execution is None else {(link.first, link.second) for link in Flow(execution).links}
        threads = {event.uid: event.thread for event in counterexample.witness.events}
        heard = {(threads[first], threads[second]) for first, second in told if {first, second} <= threads.keys()}
        for pair in pairs_of_accesses(counterexample):
            for first, second in (pair, pair[::-1]):
                late = counterexample.finding is None and _is_read_by(execution, second.uid, first.uid)
                edit = None if (first.thread, second.thread) in heard else _flag(lowered, first, second, late=late)
                if edit is not None:
                    edits.setdefault((edit.start, edit.more[0].start if edit.more else 0), edit)
    return list(edits.values())[:MOST_FLAGS]


def _is_read_by(execution: Execution | None, write: int, read: int) -> bool:
    """True if a read returns what a write has stored, in the execution that shows the outcome: it is to come before."""
    return execution is not None and bool(execution.relation("rf")[write] >> read & 1)


def _flag(lowered: LoweredTest, first: ShownEvent, second: ShownEvent, *, late: bool) -> Edit | None:
    """The first thread tells the second one that it has made its access. `late`: also where the second one tells the
    first one something by a flag of its own."""
    test = lowered.test
    tells, waits = instruction_of(lowered, first), instruction_of(lowered, second)
    if tells is None or waits is None or tells[0] == waits[0]:
        return None
    accesses = [list(instructions(test.threads[thread]))[index] for thread, index in (tells, waits)]
    if any(ORDERED & set(item.parts) for item in accesses) or _both_update(lowered, tells, waits):
        return None
    if _have_a_flag(lowered, tells[0], waits[0]) or (not late and _have_a_flag(lowered, waits[0], tells[0])):
        return None
    if not test.variables or barrier_of_two(lowered, tells[0], waits[0]) is not None:
        return None
    behind = [gap for gap in gaps(lowered, tells[0]) if gap.index > tells[1]]
    front = [gap for gap in gaps(lowered, waits[0]) if gap.index <= waits[1] and not gap.last]
    if not behind or not front or accesses[1].guard is not None:
        return None
    scope = widths([test.threads[tells[0]].place, test.threads[waits[0]].place])[-1]
    text = test.source.text
    known = _released(lowered, tells, waits[0])
    name, value, label = known or fresh(text, "done"), fresh(text, "%done"), fresh(text, f"DONE{waits[1]}")
    predicate = fresh(text, "%undone")
    sets = f"st.release.{scope}.global.u32 [{name}], 1;"
    loop = f"ld.acquire.{scope}.global.u32 {value}, [{name}];\nsetp.eq.u32 {predicate}, {value}, 0;"
    price = 2 * OTHER + WAIT + SCOPE_COST[scope] * (SEM_FACTOR["release"] + SEM_FACTOR["acquire"])
    told = behind[0].insertion(sets, sets, 0.0, TELLS)
    awaited = front[-1].insertion(
        f"{label}:\n{loop}\n@{predicate} bra {label};", f"wait for [{name}] with .acquire.{scope}", 0.0, WAITS
    )
    if known:
        return replace(awaited, cost=WAIT + SCOPE_COST[scope] * SEM_FACTOR["acquire"])
    at = text.rfind("\n", 0, test.variables[0].span.start) + 1
    line = f".global .u32 {name} = 0;"
    declared = Edit(at, at, f"{line}\n", line, 0.0, (-1, name, "flag"))
    what = f"{line} {told.what}; {awaited.what}"
    return replace(told, what=what, cost=price, more=(awaited, declared))


def _released(lowered: LoweredTest, tells: tuple[int, int], waits: int) -> str:
    """A flag of global memory that a thread raises behind its access, and at which the other thread does not look;
    empty without one."""
    thread, index = lowered.test.threads[tells[0]], tells[1]
    looked_at = {name for item in instructions(lowered.test.threads[waits]) for name in _named(item)}
    flags = {
        it.name for it in lowered.test.variables if it.space is Space.GLOBAL and it.length == 1 and not any(it.init)
    }
    for item in list(instructions(thread))[index + 1 :]:
        number = stored(item)
        names = (_named(item) & flags) - looked_at
        if (
            "release" in item.parts
            and item.parts[-1] in ("u32", "b32")
            and names
            and number is not None
            and number.value
        ):
            return min(names)
    return ""


def _both_update(lowered: LoweredTest, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """True if both threads read the variable of one of the two accesses, and write it."""

    def uses(thread: int, name: str) -> set[str]:
        items = instructions(lowered.test.threads[thread])
        return {item.parts[0] for item in items if name in _named(item)}

    def updates(thread: int, name: str) -> bool:
        heads = uses(thread, name)
        return bool(heads & {"atom", "red"}) or {"ld", "st"} <= heads

    names = {
        name for at, index in (first, second) for name in _named(list(instructions(lowered.test.threads[at]))[index])
    }
    return any(all(updates(thread, name) for thread, _ in (first, second)) for name in names)


def _have_a_flag(lowered: LoweredTest, first: int, second: int) -> bool:
    """True if one thread writes a variable with a release that the other one reads with an acquire."""
    sides = (first, {"release", "acq_rel"}), (second, {"acquire", "acq_rel"})
    told, heard = (
        {
            name
            for item in instructions(lowered.test.threads[thread])
            if words & set(item.parts)
            for name in _named(item)
        }
        for thread, words in sides
    )
    return bool(told & heard)


def _named(item: Instruction) -> set[str]:
    """The variables that an instruction accesses by name."""
    memory = (operand for operand in item.operands if isinstance(operand, Mem))
    return {place.base.name for place in memory if isinstance(place.base, Sym)}
