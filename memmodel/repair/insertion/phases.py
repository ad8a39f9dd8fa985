"""The mbarrier objects that a thread may wait for at a gap, with the parities that it may wait for.

In: a lowered test, a gap. Out: operands. Settled here: which waits are worth trying. A thread does not wait for its own
arrivals alone, nor twice in a row for one parity; in a loop over stages it waits with the registers that say the stage
and the phase, if it keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.concrete.loops import find_loops
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.operands import Imm, Mem, Operand, Reg, Sym, within
from memmodel.repair.insertion.gaps import Opening

ARRIVES = ("mbarrier.arrive", "cp.async.mbarrier.arrive", "mbarrier.complete_tx")


class Phases:
    """What the threads of a test know of its objects. `objects`: the addresses of single objects."""

    def __init__(self, lowered: LoweredTest, objects: list[str]) -> None:
        self.threads = [list(instructions(thread)) for thread in lowered.test.threads]
        self.objects = objects
        self.addresses = [_addresses(thread, {name.partition("+")[0] for name in objects}) for thread in self.threads]
        self.parities = [_parities(thread) for thread in self.threads]
        self.waits = [_waits(thread) for thread in self.threads]
        self.straight = [all(loop.spins for loop in find_loops(program).values()) for program in lowered.programs]
        self._alone: dict[tuple[int, str], bool] = {}

    def at(self, gap: Opening) -> Iterator[tuple[str, str]]:
        """Objects with parities to wait for."""
        addresses, parities = self.addresses[gap.thread], self.parities[gap.thread]
        for register, (name, index) in addresses.items():
            if index < gap.index and not self._only(gap.thread, name):
                yield from ((f"%{register}", f"%{parity}") for parity, first in parities.items() if first < gap.index)
        for name in sorted(self.objects, key=self._waited):
            if not self._only(gap.thread, name.partition("+")[0]):
                yield from ((name, parity) for parity in self._next(gap, name))

    def _waited(self, name: str) -> bool:
        """True if a thread waits for an object."""
        return any(name == place for waits in self.waits for _, place, _ in waits)

    def _next(self, gap: Opening, name: str) -> tuple[str, ...]:
        """The parities that a thread without rounds may wait for: not the one that it has waited for last."""
        mine = [(index, parity) for index, place, parity in self.waits[gap.thread] if place == name]
        if not mine or not self.straight[gap.thread]:
            return ("0", "1")
        last = max(((index, parity) for index, parity in mine if index < gap.index), default=(0, 1))
        return (str(1 - last[1]),)

    def _only(self, thread: int, name: str) -> bool:
        """True if only synchronous arrivals of this thread arrive on an object."""
        key = thread, name
        if key not in self._alone:
            self._alone[key] = all(
                number == thread and item.mnemonic.startswith("mbarrier.arrive") and "expect_tx" not in item.mnemonic
                for number, items in enumerate(self.threads)
                for item in items
                if _signals(item) and self._may_be(number, item, name)
            ) and any(_signals(item) and self._may_be(thread, item, name) for item in self.threads[thread])
        return self._alone[key]

    def waited_for(self) -> set[str]:
        """The variables of objects that a thread waits for."""
        names: set[str] = set()
        for known, items in zip(self.addresses, self.threads, strict=True):
            for base in (place.base for item in items if "wait" in item.mnemonic for place in _places(item.operands)):
                if isinstance(base, Reg):
                    names |= {known[base.name][0]} if base.name in known else set()
                elif isinstance(base, Sym):
                    names.add(base.name)
        return names

    def signalled(self) -> set[str]:
        """The variables of objects on which something may arrive."""
        names = {name.partition("+")[0] for name in self.objects}
        return {
            name
            for name in names
            if any(
                _signals(item) and self._may_be(number, item, name)
                for number, items in enumerate(self.threads)
                for item in items
            )
        }

    def unheard(self, thread: int, index: int, name: str) -> bool:
        """True if nothing can arrive on an object before a thread has passed an instruction."""
        base = name.partition("+")[0]
        return not any(
            _signals(item) and self._may_be(number, item, base)
            for number, items in enumerate(self.threads)
            for item in (items[:index] if number == thread and self.straight[thread] else items)
        )

    def _may_be(self, thread: int, item: Instruction, name: str) -> bool:
        """True if an instruction may arrive on an object. A register with an unknown value may hold any address."""
        known = self.addresses[thread]
        bases = [place.base for place in _places(item.operands)]
        names = {
            known.get(base.name, (name, 0))[0] if isinstance(base, Reg) else base.name
            for base in bases
            if not isinstance(base, Imm)
        }
        return name in names


def _waits(items: list[Instruction]) -> list[tuple[int, str, int]]:
    """The waits for a parity that is a number: where, for what, which."""
    waits: list[tuple[int, str, int]] = []
    for index, item in enumerate(items):
        parities = [operand.value for operand in item.operands if isinstance(operand, Imm)]
        if "wait.parity" in item.mnemonic and parities:
            for place in _places(item.operands):
                if isinstance(place.base, Sym):
                    waits.append((index, place.base.name + (f"+{place.offset}" if place.offset else ""), parities[0]))
    return waits


def _signals(item: Instruction) -> bool:
    """True if an instruction may arrive on an object or complete bytes there."""
    return item.mnemonic.startswith(ARRIVES) or "mbarrier::" in item.mnemonic


def _places(operands: tuple[Operand, ...]) -> list[Mem]:
    """The memory operands among operands and inside them."""
    return [part for operand in operands for part in within(operand) if isinstance(part, Mem)]


def _addresses(items: list[Instruction], objects: set[str]) -> dict[str, tuple[str, int]]:
    """Registers that hold the address of an object, or of one in its array: the object, and where it is worked out."""
    addresses: dict[str, tuple[str, int]] = {}
    for index, item in enumerate(items):
        if not item.operands or "[" in item.span.text:
            continue
        register, *rest = item.operands
        if not isinstance(register, Reg):
            continue
        if item.parts[0] == "mov" and len(rest) == 1 and isinstance(rest[0], Sym) and rest[0].name in objects:
            addresses[register.name] = rest[0].name, index
        elif item.parts[0] in ("add", "mad") and register in rest and register.name in addresses:
            addresses[register.name] = addresses[register.name][0], index
        else:
            addresses.pop(register.name, None)
    return addresses


def _parities(items: list[Instruction]) -> dict[str, int]:
    """Registers that begin with a parity and are turned over: where they are set first."""
    first: dict[str, int] = {}
    turned: set[str] = set()
    for index, item in enumerate(items):
        if not item.operands:
            continue
        register, *rest = item.operands
        if not isinstance(register, Reg):
            continue
        if item.parts[0] == "mov" and any(isinstance(operand, Imm) and operand.value in (0, 1) for operand in rest):
            first.setdefault(register.name, index)
        elif item.parts[0] == "xor" and register in rest:
            turned.add(register.name)
    return {name: index for name, index in first.items() if name in turned}
