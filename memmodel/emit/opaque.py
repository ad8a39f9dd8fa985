"""A zero that ptxas cannot compute, and where an instruction needs it.

In: the instructions of a thread. Out: the same instructions with `%mm_zero` in them, a parameter of the kernel that the
host sets to 0. Settled here: which results ptxas of CUDA 13 computes or merges (seen in its SASS). An `xor r, r, r`
becomes a constant, and the dependency is gone; a weak load is answered by an earlier load or store of its thread; a
store is dropped before another one, even if both are relaxed. Relaxed loads and atomics stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.emit.address import OURS
from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.syntax import Instruction
from memmodel.ptx.operands import Imm, Operand, Reg

_CANCEL = ("xor", "sub")
_FACTORS = {"and": (1, 2), "mul": (1, 2), "mad": (1, 2)}
"""Where a zero makes the result independent of the other operand."""

_SHIFTS = ("shl", "shr")
_WIDTHS = (16, 32, 64)
_STRONG_LOADS = frozenset(("relaxed", "acquire", "volatile", "mmio"))
_LASTING_STORES = frozenset(("release", "volatile", "mmio"))
_UNCHANGING = frozenset(("const", "param", "nc"))

AGAIN = f"%{OURS}z"
"""The register with the address of an access that repeats an earlier one."""


def zero(width: int) -> str:
    """The register that holds the zero, for operands of this width in bits."""
    return f"%{OURS}zero" if width == 64 else f"%{OURS}zero{width}"


class OpaqueZero:
    """The zero that ptxas cannot see through, in the code of one thread. `lines`: what has to stand before the
    instruction that is being written.
    """

    def __init__(self, code: Sequence[tuple[Instruction, Spelling]]) -> None:
        self.lines: list[str] = []
        self._widths: set[int] = set()
        self._declared: dict[str, int] = {}
        self._accessed: list[str | None] = []
        self._factors = {
            operand.name
            for instruction, reading in code
            for index in _FACTORS.get(reading.head, ())
            if isinstance(operand := instruction.operands[index], Reg)
        }

    @property
    def used(self) -> bool:
        """True if the thread needs the parameter."""
        return bool(self._widths)

    def take(self, width: int) -> str:
        """The zero as an operand of this width in bits."""
        self._widths.add(width)
        return zero(width)

    def initial(self, register: str, width: int) -> str:
        """The 0 with which a register starts."""
        return self.take(width) if register in self._factors and width in _WIDTHS else "0"

    def declarations(self) -> list[str]:
        """The registers of the thread that this needs, and the narrow zeros in them."""
        lines = [f".reg .b{width} {name};" for name, width in self._declared.items()]
        for width in sorted(self._widths - {64}):
            lines += [f".reg .b{width} {zero(width)};", f"cvt.u{width}.u64 {zero(width)}, {zero(64)};"]
        return lines

    def _own(self, name: str, width: int) -> str:
        self._declared[name] = width
        return name

    # ---- arithmetic ------------------------------------------------------------------------------------------

    def arithmetic(self, instruction: Instruction, reading: Spelling, printed: list[str]) -> str | None:
        """Keep the operands of an instruction alive: change `printed`; the mnemonic to use in place of its own."""
        head, width, operands = reading.head, _width(reading), instruction.operands
        if width not in _WIDTHS or len(printed) < 2:
            return None
        same = len(operands) > 2 and isinstance(operands[1], Reg) and _name(operands[1]) == _name(operands[2])
        if (head in _CANCEL and same) or (head in _SHIFTS and _shifts_out(reading, operands[2], width)):
            printed[2] = self.take(width)
            return f"and.b{width}"
        if head == "setp" and same:
            both = self._own(f"%{OURS}same{width}", width)
            self.lines.append(f"and.b{width} {both}, {printed[1]}, {self.take(width)};")
            printed[1:] = [both, zero(width)]
        for index in self._known(instruction, reading):
            if _is_zero(operands[index]):
                printed[index] = self.take(width)
        return None

    def _known(self, instruction: Instruction, reading: Spelling) -> tuple[int, ...]:
        """Operands in which a known zero would settle the result, here or in a later instruction."""
        if reading.head == "mov":
            return (1,) if _name(instruction.operands[0]) in self._factors else ()
        if reading.head == "setp":
            return (1, 2) if reading.words["type"][0] == "u" else ()
        return _FACTORS.get(reading.head, ())

    # ---- accesses --------------------------------------------------------------------------------------------

    def repeats(self, instruction: Instruction, reading: Spelling, root: str | None) -> int:
        """How many accesses before this one ptxas might merge it with; 0 for one that it leaves alone.

        `root`: the variable, or None for an address in a register, which may be that of any variable.
        """
        parts = frozenset(instruction.parts)
        if reading.head not in ("ld", "st") or parts & _UNCHANGING:
            return 0
        before = sum(root is None or accessed is None or accessed == root for accessed in self._accessed)
        self._accessed.append(root)
        return 0 if parts & (_STRONG_LOADS if reading.head == "ld" else _LASTING_STORES) else before

    def address(self, times: int, base: str, width: int) -> str:
        """A register with an address that is another one as far as ptxas can tell."""
        if width == 32:
            moved = self._own(f"{AGAIN}32", 32)
        else:
            moved = self._own(AGAIN, 64)
            if not base.startswith("%"):
                self.lines.append(f"mov.u64 {moved}, {base};")
                base = moved
        self.lines.append(f"mad.lo.u{width} {moved}, {self.take(width)}, {times}, {base};")
        return moved


def _width(reading: Spelling) -> int:
    """The width of integers; 0 for anything else."""
    word = reading.words.get("type", "")
    return int(word[1:]) if word[:1] in "usb" and word[1:].isdigit() else 0


def _name(operand: Operand) -> str | None:
    return operand.name if isinstance(operand, Reg) else None


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Imm) and operand.value == 0


def _shifts_out(reading: Spelling, amount: Operand, width: int) -> bool:
    signed = reading.words["type"][0] == "s"
    return isinstance(amount, Imm) and amount.value >= width and not signed
