"""Instructions that only compute: from registers to registers of one lane.

In: an Instruction. Out: `Step`, which carries it out for some lanes of a warp; None if it is no such instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.kernel.judge.events import Refused
from memmodel.kernel.machine.alu import OPAQUE, Fn, Value, comparison, conversion, function, is_float, width_of
from memmodel.kernel.machine.memory import PARAM_WINDOW, SHARED_WINDOW, DeviceMemory
from memmodel.kernel.machine.state import LANES, Lanes, Warp
from memmodel.kernel.text.syntax import (
    FloatLiteral,
    IntegerLiteral,
    NegatedRegister,
    Operand,
    PairOperand,
    PtxInstruction,
    Register,
    Sink,
    Special,
    Symbol,
    VectorOperand,
)

Step = Callable[[Warp, Lanes], None]
Get = Callable[[Warp], list[Value]]
UNKNOWN_SPECIAL = ("%clock", "%globaltimer", "%smid", "%pm", "%envreg", "%gridid", "%nsmid")


class Compiler:
    """Turns operands into what they yield. `symbols`: addresses of variables."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory

    def get(self, operand: Operand, instruction: PtxInstruction, width: int = 64) -> Get:
        """The values of an operand in all lanes."""
        if isinstance(operand, Register):
            slot = operand.slot
            return lambda warp: warp.registers[slot]
        if isinstance(operand, NegatedRegister):
            slot = operand.register.slot
            return lambda warp: [None if one is None else one ^ 1 for one in warp.registers[slot]]
        if isinstance(operand, IntegerLiteral):
            constant: list[Value] = [operand.value & (1 << max(width, 1)) - 1] * LANES
            return lambda warp: constant
        if isinstance(operand, FloatLiteral):
            bits: list[Value] = [operand.bits] * LANES
            return lambda warp: bits
        if isinstance(operand, Special):
            return self._special(operand.name)
        if isinstance(operand, Symbol):
            return self._symbol(operand, instruction)
        raise Refused(f"this operand of {instruction.opcode} is not known", instruction.span)

    def _special(self, name: str) -> Get:
        if name.startswith(UNKNOWN_SPECIAL):
            unknown: list[Value] = [None] * LANES
            return lambda warp: unknown
        return lambda warp: warp.special[name]

    def _symbol(self, operand: Symbol, instruction: PtxInstruction) -> Get:
        if operand.name not in self.memory.symbols:
            raise Refused(f"the address of {operand.name} is not known", instruction.span)
        space, at = self.memory.symbols[operand.name]
        at += operand.offset
        if space == "shared":
            return lambda warp: [warp.cta.base + at] * LANES
        constant: list[Value] = [at] * LANES
        return lambda warp: constant

    # ---- instructions ----------------------------------------------------------------------------------------

    def pure(self, instruction: PtxInstruction) -> Step | None:
        """The step of an instruction that only computes."""
        words = instruction.words
        head = words[0]
        if head == "mov":
            return self._move(instruction)
        if head in ("cvta", "cvt"):
            return self._convert(instruction)
        if head in ("setp", "set"):
            return self._compare(instruction)
        if head in ("and", "or", "xor", "not") and words[-1] == "pred":
            return self._plain(instruction, _predicate(head))
        found = function(words)
        if found is not None:
            return self._plain(instruction, found)
        if head in OPAQUE and (is_float(words[-1]) or "approx" in words or "full" in words):
            return self._opaque(instruction)
        return None

    def _plain(self, instruction: PtxInstruction, fn: Fn) -> Step:
        target, *rest = instruction.operands
        width = width_of(instruction.words[-1]) or 32
        sources = [self.get(one, instruction, width) for one in rest]
        slot = _slot(target, instruction)
        if len(sources) == 2:
            first, second = sources

            def binary(warp: Warp, lanes: Lanes) -> None:
                a, b, d = first(warp), second(warp), warp.registers[slot]
                for lane in lanes:
                    x, y = a[lane], b[lane]
                    d[lane] = None if x is None or y is None else fn(x, y)

            return binary

        def step(warp: Warp, lanes: Lanes) -> None:
            lists, d = [one(warp) for one in sources], warp.registers[slot]
            for lane in lanes:
                values = [one[lane] for one in lists]
                d[lane] = None if None in values else fn(*values)

        return self._select(instruction, slot) if instruction.words[0] == "selp" else step

    def _select(self, instruction: PtxInstruction, slot: int) -> Step:
        a, b, p = (self.get(one, instruction) for one in instruction.operands[1:])
        mask = (1 << (width_of(instruction.words[-1]) or 64)) - 1

        def step(warp: Warp, lanes: Lanes) -> None:
            yes, no, which, d = a(warp), b(warp), p(warp), warp.registers[slot]
            for lane in lanes:
                choice = which[lane]
                value = None if choice is None else yes[lane] if choice & 1 else no[lane]
                if choice is None and yes[lane] is not None and yes[lane] == no[lane]:
                    value = yes[lane]
                d[lane] = None if value is None else value & mask

        return step

    def _opaque(self, instruction: PtxInstruction) -> Step:
        slot = _slot(instruction.operands[0], instruction)
        for one in instruction.operands[1:]:
            self.get(one, instruction)

        def step(warp: Warp, lanes: Lanes) -> None:
            d = warp.registers[slot]
            for lane in lanes:
                d[lane] = None

        return step

    def _move(self, instruction: PtxInstruction) -> Step | None:
        if len(instruction.operands) != 2 or width_of(instruction.words[-1]) is None:
            return None
        target, source = instruction.operands
        width = width_of(instruction.words[-1]) or 64
        if isinstance(target, VectorOperand):
            return self._unpack(target, source, width, instruction)
        slot = _slot(target, instruction)
        if isinstance(source, VectorOperand):
            return self._pack(slot, source, width, instruction)
        get = self.get(source, instruction, width)
        predicate = instruction.words[-1] == "pred"
        mask = (1 << width) - 1

        def step(warp: Warp, lanes: Lanes) -> None:
            values, d = get(warp), warp.registers[slot]
            for lane in lanes:
                value = values[lane]
                d[lane] = None if value is None else int(value != 0) if predicate else value & mask

        return step

    def _unpack(self, target: VectorOperand, source: Operand, width: int, instruction: PtxInstruction) -> Step:
        part = width // len(target.items)
        slots = [None if isinstance(one, Sink) else _slot(one, instruction) for one in target.items]
        get = self.get(source, instruction, width)

        def step(warp: Warp, lanes: Lanes) -> None:
            values = list(get(warp))
            for number, slot in enumerate(slots):
                if slot is None:
                    continue
                d = warp.registers[slot]
                for lane in lanes:
                    value = values[lane]
                    d[lane] = None if value is None else value >> number * part & (1 << part) - 1

        return step

    def _pack(self, slot: int, source: VectorOperand, width: int, instruction: PtxInstruction) -> Step:
        part = width // max(1, len(source.items))
        gets = [self.get(one, instruction, part) for one in source.items]

        def step(warp: Warp, lanes: Lanes) -> None:
            lists, d = [one(warp) for one in gets], warp.registers[slot]
            for lane in lanes:
                result: Value = 0
                for number, one in enumerate(lists):
                    value = one[lane]
                    if value is None or result is None:
                        result = None
                    else:
                        result |= (value & (1 << part) - 1) << number * part
                d[lane] = result

        return step

    def _convert(self, instruction: PtxInstruction) -> Step | None:
        words = instruction.words
        if words[0] == "cvta":
            shift = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW}.get(
                next((one.split("::")[0] for one in words[1:] if one not in ("to", "u64", "u32")), ""), 0
            )
            sign = -1 if "to" in words else 1
            return self._plain(instruction, lambda a: (a + sign * shift) & (1 << 64) - 1)
        found = conversion(words)
        if found is not None:
            return self._plain(instruction, found)
        return self._opaque(instruction) if any(is_float(one) for one in words[-2:]) else None

    def _compare(self, instruction: PtxInstruction) -> Step | None:
        words, operands = instruction.words, instruction.operands
        fn = comparison(words)
        if fn is None or words[0] == "set":
            return self._opaque(instruction) if words[0] == "setp" and is_float(words[-1]) else None
        target, *rest = operands
        first = target.first if isinstance(target, PairOperand) else target
        slot = None if isinstance(first, Sink) else _slot(first, instruction)
        other = _slot(target.second, instruction) if isinstance(target, PairOperand) else None
        logic = next((one for one in words[2:-1] if one in ("and", "or", "xor")), None)
        width = width_of(words[-1]) or 32
        gets = [self.get(one, instruction, width) for one in rest]
        join = None if logic is None else _predicate(logic)

        def step(warp: Warp, lanes: Lanes) -> None:
            lists = [one(warp) for one in gets]
            for lane in lanes:
                a, b = lists[0][lane], lists[1][lane]
                result: Value = None if a is None or b is None else fn(a, b)
                inverse: Value = None if result is None else result ^ 1
                if join is not None:
                    c = lists[2][lane]
                    result = _joined(logic, join, result, c)
                    inverse = _joined(logic, join, inverse, c)
                if slot is not None:
                    warp.registers[slot][lane] = result
                if other is not None:
                    warp.registers[other][lane] = inverse

        return step


def _joined(logic: str | None, join: Fn, a: Value, b: Value) -> Value:
    if logic == "and" and (a == 0 or b == 0):
        return 0
    if logic == "or" and (a == 1 or b == 1):
        return 1
    return None if a is None or b is None else join(a, b)


def _predicate(head: str) -> Fn:
    table: dict[str, Fn] = {
        "and": lambda a, b: a & b & 1,
        "or": lambda a, b: (a | b) & 1,
        "xor": lambda a, b: (a ^ b) & 1,
        "not": lambda a: ~a & 1,
    }
    return table[head]


def _slot(operand: Operand, instruction: PtxInstruction) -> int:
    if not isinstance(operand, Register):
        raise Refused(f"the result of {instruction.opcode} is no register", instruction.span)
    return operand.slot
