"""What a question looks at: registers and memory at the end, and the condition over them.

In: LoweredTest, terms. Out: `Finals`: the elements of memory that the terms read, and the value of each term once these
have a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memmodel.litmus.printer import whose
from memmodel.litmus.syntax import (
    Always,
    And,
    Compare,
    Condition,
    LocValue,
    Not,
    Number,
    Or,
    RegValue,
    Term,
    terms_of,
)
from memmodel.memory.bytes import Cell, Extent, Instance
from memmodel.program.lowered import LoweredTest
from memmodel.program.spelling import spell_owner
from memmodel.program.uses import assigned, is_hidden

Registers = Sequence[Mapping[str, int]]
"""Final registers of each thread, in order; a register that is missing was never assigned and is 0."""

Memory = Mapping[Cell, int]
"""Final bytes of cells, as numbers; of cells that are missing, the initial ones."""


class Finals:
    """Final states of one test. `extents`: the elements of memory that the terms read."""

    def __init__(self, lowered: LoweredTest, terms: Sequence[Term]) -> None:
        self._lowered = lowered
        self._threads = {thread.name: number for number, thread in enumerate(lowered.test.threads)}
        self._elements = {term: lowered.space.term(term) for term in terms if isinstance(term, LocValue)}
        self.extents: tuple[Extent, ...] = tuple(dict.fromkeys(extent for extent, _ in self._elements.values()))
        self._initial: dict[Extent, int] = {}

    def value(self, term: Term, registers: Registers, memory: Memory) -> int:
        """A term's value in a final state."""
        if isinstance(term, Number):
            return term.value
        if isinstance(term, RegValue):
            return registers[self._threads[term.thread]].get(term.register, 0)
        extent, kind = self._elements[term]
        data = self._initial.get(extent)
        if data is None:
            data = self._initial[extent] = self._lowered.space.initial(extent.instance, extent.first, extent.size)
        for cell, value in memory.items():
            if extent.first <= cell.first and cell.end <= extent.end and cell.instance == extent.instance:
                at, mask = (cell.first - extent.first) * 8, (1 << cell.size * 8) - 1
                data = data & ~(mask << at) | value << at
        return kind.wrap(data)

    def holds(self, condition: Condition, registers: Registers, memory: Memory) -> bool:
        """True if a condition holds in a final state."""
        match condition:
            case Compare(left, _, right):
                return condition.true_of(self.value(left, registers, memory), self.value(right, registers, memory))
            case And(operands):
                return all(self.holds(operand, registers, memory) for operand in operands)
            case Or(operands):
                return any(self.holds(operand, registers, memory) for operand in operands)
            case Not(operand):
                return not self.holds(operand, registers, memory)
            case Always():
                return True


def outcome_terms(lowered: LoweredTest) -> tuple[Term, ...]:
    """What a final state shows: terms of the condition and of `locations`; without any, every register and variable."""
    test = lowered.test
    named = dict.fromkeys(term for term in (*terms_of(test.condition), *test.shown) if not isinstance(term, Number))
    return tuple(named) or _everything(lowered)


def left_out(lowered: LoweredTest) -> tuple[str, ...]:
    """The arrays that a final state does not show: large ones, where the question names nothing."""
    if outcome_terms(lowered) != _everything(lowered):
        return ()
    counts = {instance: instance.size // instance.unit for instance in lowered.space.instances}
    large = (f"{instance.name}[{count}]" for instance, count in counts.items() if count > _FEW_ELEMENTS)
    return tuple(dict.fromkeys(large))


_FEW_ELEMENTS = 8
"""Arrays with more elements are not shown by themselves."""


def _everything(lowered: LoweredTest) -> tuple[Term, ...]:
    terms: list[Term] = []
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        names = set(program.initial)
        names.update(name for step in program.steps for name in assigned(step.op) if not is_hidden(name))
        terms.extend(RegValue(thread.name, name) for name in sorted(names))
    for instance in lowered.space.instances:
        cta = _cta(instance)
        alike = [other for other in lowered.space.instances if other.name == instance.name and _cta(other) == cta]
        owner = instance.owner if len(alike) > 1 else None
        count = instance.size // instance.unit
        shown = range(count if count <= _FEW_ELEMENTS else 0)
        terms.extend(LocValue(instance.name, index, cta, owner=owner) for index in shown)
    return tuple(terms)


def _cta(instance: Instance) -> int | None:
    """The number of the CTA that an instance belongs to."""
    cta = None if instance.owner is None else instance.owner[-1]
    assert cta is None or isinstance(cta, int)
    return cta


def spell(term: Term, lowered: LoweredTest) -> str:
    """A term as the test writes it; with its cluster, grid or GPU where the test could not."""
    if isinstance(term, RegValue):
        return f"{term.thread}:{term.register}"
    if isinstance(term, LocValue):
        index = f"[{term.index}]" if term.index else ""
        if term.owner is not None:
            instances = lowered.space.instances
            (named,) = (
                instance for instance in instances if (instance.name, instance.owner) == (term.name, term.owner)
            )
            return f"{term.name}{spell_owner(named, instances)}{index}"
        return f"{term.name}{whose(term)}{index}"
    return str(term.value)
