"""Programs that lack something of a program: an instruction, two, a thread, the border between two threads.

In: LitmusTest. Out: smaller LitmusTests, the boldest first, and the size that a program counts as. A program asks
nothing: what is compared is all of its final states and findings. What is made here may be illegal; who reads it again
hears so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.cases import covers
from memmodel.isa.rows.row import Effect
from memmodel.isa.rows.spelling import Refusal, Spelling
from memmodel.isa.table import HEADS
from memmodel.litmus.check import assigned
from memmodel.litmus.syntax import (
    Always,
    Instruction,
    Label,
    Layout,
    LitmusTest,
    Quantifier,
    RegisterInit,
    Thread,
)
from memmodel.ptx.operands import Reg, Sym

Body = tuple[Instruction | Label, ...]

_UNCOUNTED = (Effect.COMPUTES, Effect.NOTHING, Effect.CONTROL)
"""What instructions do that count nothing: they hand values on."""

_PAIRS = 9
"""In programs of up to this number of instructions, any two are left out together."""


@lru_cache(maxsize=4096)
def spelling_of(mnemonic: str, layout: Layout) -> Spelling | None:
    """The row and the words of a mnemonic."""
    spelling = read_mnemonic(mnemonic, layout, HEADS)
    return None if isinstance(spelling, Refusal) else spelling


@lru_cache(maxsize=4096)
def _counts(mnemonic: str, layout: Layout) -> bool:
    spelling = spelling_of(mnemonic, layout)
    if spelling is None:
        return True
    row, words = spelling.row, {"head": spelling.head, **spelling.words}
    return row.effect not in _UNCOUNTED and not (row.part is not None and covers(row.part, words))


def counts(entry: Instruction | Label, layout: Layout) -> bool:
    """True if an entry of a thread counts as an instruction: it is no computation, and no half of another one."""
    return isinstance(entry, Instruction) and _counts(entry.mnemonic, layout)


def size_of(test: LitmusTest) -> int:
    """How many instructions a program has: computations, jumps and halves of other instructions are not counted."""
    return sum(counts(entry, test.layout) for thread in test.threads for entry in thread.body)


def jumps(test: LitmusTest) -> bool:
    """True if a thread has somewhere to jump to: its instructions may be executed more than once."""
    return any(isinstance(entry, Label) for thread in test.threads for entry in thread.body)


def weight(test: LitmusTest) -> tuple[int, int, int]:
    """What a smaller program has less of: instructions, then threads, then lines."""
    return size_of(test), len(test.threads), sum(len(thread.body) for thread in test.threads)


def bare(test: LitmusTest) -> LitmusTest:
    """The program of a test: it asks nothing and expects nothing."""
    return replace(
        test,
        description=(),
        expectations=(),
        quantifier=Quantifier.EXISTS,
        condition=Always(),
        shown=(),
        finding=None,
        more_questions=(),
    )


def smaller(test: LitmusTest) -> Iterator[LitmusTest]:
    """Programs that lack something, the boldest first."""
    if len(test.threads) > 1:
        for thread in test.threads:
            yield without_thread(test, thread)
    spots = [
        (number, at)
        for number, thread in enumerate(test.threads)
        for at, entry in enumerate(thread.body)
        if counts(entry, test.layout)
    ]
    for spot in spots:
        yield from _without(test, (spot,))
    for first, second in combinations(range(len(test.threads)), 2):
        yield merged(test, first, second)
        yield merged(test, second, first)
    if len(spots) <= _PAIRS:
        for pair in combinations(spots, 2):
            yield from _without(test, pair)


def tidier(test: LitmusTest) -> Iterator[LitmusTest]:
    """Programs that lack an entry which does not count, or something that nothing names."""
    for number, thread in enumerate(test.threads):
        for at, entry in enumerate(thread.body):
            rest = thread.body[:at] + thread.body[at + 1 :]
            if not counts(entry, test.layout) and not (assigned((entry,)) - assigned(rest)) & _registers(rest):
                yield _with_body(test, number, rest)
    for variable in test.variables:
        kept = tuple(other for other in test.variables if other is not variable)
        yield replace(test, variables=kept)
    for at in range(len(test.registers)):
        yield replace(test, registers=test.registers[:at] + test.registers[at + 1 :])


def without_thread(test: LitmusTest, thread: Thread) -> LitmusTest:
    """The program less a thread."""
    return replace(
        test,
        threads=tuple(other for other in test.threads if other is not thread),
        registers=tuple(init for init in test.registers if init.thread != thread.name),
    )


def merged(test: LitmusTest, first: int, second: int) -> LitmusTest:
    """One thread executes what another one does, and then what it did itself."""
    before, after = test.threads[first], test.threads[second]
    names = {name: f"{name}_{after.name}" for name in _registers(after.body)}
    names |= {entry.name: f"{entry.name}_{after.name}" for entry in after.body if isinstance(entry, Label)}
    body = before.body + tuple(_renamed(entry, names) for entry in after.body)
    joined = replace(
        before, body=body, predicates=before.predicates | {names.get(name, name) for name in after.predicates}
    )
    inits = tuple(_moved(init, before.name, names) if init.thread == after.name else init for init in test.registers)
    threads = tuple(joined if thread is before else thread for thread in test.threads if thread is not after)
    return replace(test, threads=threads, registers=inits)


def _moved(init: RegisterInit, thread: str, names: dict[str, str]) -> RegisterInit:
    return replace(init, thread=thread, register=names.get(init.register, init.register))


def _without(test: LitmusTest, spots: Sequence[tuple[int, int]]) -> Iterator[LitmusTest]:
    """The program less some instructions; where an object or a barrier counts arrivals, with one or two fewer too."""
    less = test
    for number in sorted({number for number, _ in spots}):
        gone = {at for thread, at in spots if thread == number}
        less = _with_body(less, number, _dropped(test.threads[number].body, gone))
    yield less
    for variable in test.variables:
        for count in range(1, min(variable.mbarrier or 1, 5)):
            changed = replace(variable, mbarrier=count)
            yield replace(less, variables=tuple(changed if v is variable else v for v in less.variables))


def _dropped(body: Body, gone: set[int]) -> Body:
    """A body less some entries and what is left without a value by that."""
    while True:
        kept = [entry for at, entry in enumerate(body) if at not in gone]
        orphans = assigned(entry for at, entry in enumerate(body) if at in gone) - assigned(kept)
        more = {at for at, entry in enumerate(body) if at not in gone and orphans & _registers((entry,))}
        if not more:
            return tuple(kept)
        gone = gone | more


def _with_body(test: LitmusTest, number: int, body: Body) -> LitmusTest:
    """The program with another body of a thread; a thread with an empty one is left out."""
    thread = test.threads[number]
    changed = replace(thread, body=body)
    return replace(test, threads=tuple(changed if other is thread else other for other in test.threads))


def without_idle(test: LitmusTest) -> LitmusTest:
    """The program less the threads that do nothing, if one is left."""
    busy = [thread for thread in test.threads if any(isinstance(entry, Instruction) for entry in thread.body)]
    for thread in test.threads:
        if thread not in busy and busy:
            test = without_thread(test, thread)
    return test


# ---- registers ---------------------------------------------------------------------------------------------


def _registers(body: Sequence[Instruction | Label]) -> set[str]:
    """The registers that some entries name."""
    names: set[str] = set()
    for entry in body:
        if isinstance(entry, Instruction):
            names.update(reg.name for reg in _parts(entry.operands) if isinstance(reg, Reg))
            if entry.guard is not None:
                names.add(entry.guard.register)
    return names


def _parts(value: object) -> Iterator[object]:
    """An operand and all that it is made of."""
    if isinstance(value, tuple):
        for item in value:
            yield from _parts(item)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _parts(getattr(value, field.name))


def _renamed(entry: Instruction | Label, names: dict[str, str]) -> Instruction | Label:
    """An entry with other names of registers and labels."""
    if isinstance(entry, Label):
        return replace(entry, name=names.get(entry.name, entry.name))
    guard = entry.guard and replace(entry.guard, register=names.get(entry.guard.register, entry.guard.register))
    return replace(entry, operands=tuple(_with_names(operand, names) for operand in entry.operands), guard=guard)


def _with_names(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_names(item, names) for item in value)
    if isinstance(value, Reg | Sym):
        return replace(value, name=names.get(value.name, value.name)) if value.name in names else value
    if is_dataclass(value) and not isinstance(value, type) and type(value).__name__ != "Span":
        changed = {
            field.name: _with_names(old, names)
            for field in fields(value)
            if is_dataclass(old := getattr(value, field.name)) or isinstance(old, tuple)
        }
        return replace(value, **changed) if changed else value
    return value
