"""What the steps of all instructions of an entry share.

In: memory, registers. Out: `Surroundings`: addresses of variables, registers for temporaries of instructions, and which
registers and tests are looked at more closely.
"""

from __future__ import annotations

from memmodel.kernel.machine.memory import Symbols
from memmodel.kernel.machine.rows import uniform
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Space


class Surroundings:
    """`peeks`: tests that only look ahead; `packed`: registers whose bits are known one by one (`flow.packing`).
    `registers`: how many registers the entry has.
    """

    def __init__(
        self,
        memory: Symbols,
        peeks: frozenset[int] = frozenset(),
        packed: frozenset[int] = frozenset(),
        registers: int = 0,
    ) -> None:
        self.memory, self.peeks, self.packed = memory, peeks, packed
        self.registers, self._temporaries = registers, dict[str, int]()

    @property
    def slots(self) -> int:
        """The number of registers of a thread, temporaries of instructions included."""
        return self.registers + len(self._temporaries)

    def temporary(self, name: str) -> int:
        """The number of a register that only the steps of instructions use."""
        return self.registers + self._temporaries.setdefault(name, len(self._temporaries))

    def symbol(self, name: str, offset: int, instruction: PtxInstruction) -> Get:
        """The address of a variable, `offset` bytes on, in all lanes. Raises Refused."""
        variable = self.memory.symbols.get(name)
        if variable is None:
            raise Refused(f"the address of {name} is not known", instruction.span)
        space, address = variable
        address += offset
        if space is Space.SHARED:
            return lambda warp: uniform(warp.cta.base + address)
        constant = uniform(address)
        return lambda warp: constant
