"""What the question looks at: registers and locations at the end, and the condition over them.

In: LitmusTest. Out: Question: for final registers and memory, a key: two executions with equal keys answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from memmodel.enumeration.loops import assigned, is_hidden
from memmodel.enumeration.problem import Problem
from memmodel.errors import InputError
from memmodel.isa import programs
from memmodel.isa.memory import Location, MemoryMap
from memmodel.litmus.syntax import (
    Always,
    And,
    Compare,
    Condition,
    LitmusTest,
    LocValue,
    Not,
    Number,
    Or,
    RegValue,
    Term,
    terms_of,
)

Memory = Mapping[Location, int]
Registers = Sequence[Mapping[str, int]]
"""Final registers of each thread, in order; a register that is missing was never assigned and is 0."""

Key = bool | tuple[int, ...]

_COMPARE: dict[str, Callable[[int, int], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Finals:
    """Final states of one test. `locations`: those whose final value the terms mention."""

    def __init__(self, problem: Problem, terms: Sequence[Term]) -> None:
        self._problem = problem
        self._threads = {thread.name: number for number, thread in enumerate(problem.test.threads)}
        self.locations = tuple(dict.fromkeys(self._location(term) for term in terms if isinstance(term, LocValue)))

    def value(self, term: Term, registers: Registers, memory: Memory) -> int:
        """A term's value in a final state."""
        if isinstance(term, Number):
            return term.value
        if isinstance(term, RegValue):
            return registers[self._threads[term.thread]].get(term.register, 0)
        return memory[self._location(term)]

    def holds(self, condition: Condition, registers: Registers, memory: Memory) -> bool:
        """Is a condition true of a final state?"""
        if isinstance(condition, Compare):
            left = self.value(condition.left, registers, memory)
            return _COMPARE[condition.op](left, self.value(condition.right, registers, memory))
        if isinstance(condition, And):
            return all(self.holds(item, registers, memory) for item in condition.items)
        if isinstance(condition, Or):
            return any(self.holds(item, registers, memory) for item in condition.items)
        if isinstance(condition, Not):
            return not self.holds(condition.item, registers, memory)
        assert isinstance(condition, Always)
        return True

    def _location(self, term: LocValue) -> Location:
        where = self._problem.memory.find(term.name, term.index, term.cta)
        if where is None:
            raise InputError(f"'{term.name}' does not name one location", term.span, "say which instance: x@cta0")
        return where


@dataclass(frozen=True, slots=True)
class Question:
    """What to find out about final states: `key` maps one to what tells it apart from others."""

    locations: tuple[Location, ...]
    key: Callable[[Registers, Memory], Key]


def condition_question(problem: Problem) -> Question:
    """Does the test's condition hold? Keys are True and False."""
    condition = problem.test.condition
    finals = Finals(problem, tuple(terms_of(condition)))
    return Question(finals.locations, lambda registers, memory: finals.holds(condition, registers, memory))


def outcome_terms(test: LitmusTest) -> tuple[Term, ...]:
    """What a final state shows: terms of the condition and of `locations`; without any, every register and location."""
    named = dict.fromkeys(term for term in (*terms_of(test.condition), *test.shown) if not isinstance(term, Number))
    return tuple(named) or _everything(test)


def _everything(test: LitmusTest) -> tuple[Term, ...]:
    terms: list[Term] = []
    for thread, program in zip(test.threads, programs(test), strict=True):
        names = {one.register for one in test.registers if one.thread == thread.name}
        names.update(name for step in program.steps for name in assigned(step.op) if not is_hidden(name))
        terms.extend(RegValue(thread.name, name) for name in sorted(names))
    return (*terms, *(LocValue(where.name, where.index, _cta(where)) for where in MemoryMap(test).initial))


def _cta(where: Location) -> int | None:
    number = where.owner[-1] if where.owner else None
    return number if isinstance(number, int) else None


def spell(term: Term) -> str:
    """A term as the test writes it."""
    if isinstance(term, RegValue):
        return f"{term.thread}:{term.register}"
    if isinstance(term, LocValue):
        index = f"[{term.index}]" if term.index else ""
        return f"{term.name}{index}" if term.cta is None else f"{term.name}{index}@cta{term.cta}"
    return str(term.value)


def outcome_question(problem: Problem, terms: Sequence[Term]) -> Question:
    """Which values do the terms have? Keys are tuples of them."""
    finals = Finals(problem, terms)

    def key(registers: Registers, memory: Memory) -> Key:
        return tuple(finals.value(term, registers, memory) for term in terms)

    return Question(finals.locations, key)
