"""Values that threads look for in memory: the comparisons of what was loaded with a number.

In: a thread. Out: `AwaitedNumber`s; what is written to a place with a number that stands in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Thread
from memmodel.program.named_places import NamedPlace, named_place
from memmodel.ptx.operands import Imm, Mem, Reg, Sym

LOADS = ("ld", "atom")
COMPARES = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge, "lo": lt, "ls": le, "hi": gt, "hs": ge}
"""The comparisons of setp."""


@dataclass(frozen=True, slots=True)
class AwaitedNumber:
    """`number`, an operand of the instruction `index`, is compared with what instruction `load` returned from `place`;
    both are one where a compare-and-swap compares."""

    place: NamedPlace
    load: int
    index: int
    number: Imm
    item: Instruction

    def differ(self, value: int, other: int) -> bool:
        """True if the comparison tells two values apart."""
        compares: Callable[[int, int], bool] = COMPARES.get("eq" if self.load == self.index else self.item.parts[1], eq)
        return compares(value, self.number.value) != compares(other, self.number.value)


def comparisons(thread: Thread) -> Iterator[AwaitedNumber]:
    """What a thread compares with numbers, in the order of its text."""
    items = list(instructions(thread))
    for index, item in enumerate(items):
        if item.parts[0] == "setp" and len(item.operands) == 3:
            register, number = item.operands[1:]
            load = _defined(items, index, register) if isinstance(register, Reg) else None
            if load is not None and isinstance(number, Imm):
                yield AwaitedNumber(named_place(items[load]), load, index, number, item)
        elif "cas" in item.parts and names_a_place(item):
            number = item.operands[-2]
            if isinstance(number, Imm):
                yield AwaitedNumber(named_place(item), index, index, number, item)


def _defined(items: list[Instruction], before: int, register: Reg) -> int | None:
    """The load or atomic operation on a named place that a register has its value from, if it stands before."""
    for index in reversed(range(before)):
        item = items[index]
        if item.operands and item.operands[0] == register:
            return index if item.parts[0] in LOADS and names_a_place(item) else None
    return None


def names_a_place(item: Instruction) -> bool:
    """True of an access to one place that is named."""
    places = [operand for operand in item.operands if isinstance(operand, Mem)]
    return len(places) == 1 and isinstance(places[0].base, Sym)


def stored(item: Instruction) -> Imm | None:
    """The number that a store or an exchange leaves in the place that it names, or a compare-and-swap that succeeds."""
    stores = item.parts[0] == "st" or (item.parts[0] in LOADS and {"exch", "cas"} & set(item.parts))
    value = item.operands[-1] if stores and names_a_place(item) else None
    return value if isinstance(value, Imm) else None
