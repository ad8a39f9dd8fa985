"""Instructions that only compute: from registers to registers of one lane.

In: an Instruction. Out: `Step`, which carries it out for some lanes of a warp; None if it is no such instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memmodel.kernel.arithmetic.alu import (
    OPAQUE,
    Fn,
    comparison,
    conversion,
    extended,
    function,
    is_float,
    joined,
    operand_widths,
    predicate,
    width_of,
    with_carry,
)
from memmodel.kernel.arithmetic.floats import converted, floating
from memmodel.kernel.machine.memory import Symbols
from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, Uniform, Value, uniform
from memmodel.kernel.machine.values.lanes import Get, Step, binary, forgetting, many, unary
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.trace.problems import Refused
from memmodel.program.video import part, video
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Imm, Negated, Operand, Pair, Part, Real, Register, Special, Sym, Vector

ONES = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "u16": 0xFFFF, "s16": 0xFFFF, "f16": 0x3C00}
"""What set leaves where the comparison holds."""


class Compiler:
    """Turns operands into what they yield. `peeks`: tests that only look ahead; `packed`: as in `text.packing`."""

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
        """How many registers a thread has, temporaries of instructions included."""
        return self.registers + len(self._temporaries)

    def temporary(self, name: str) -> int:
        """The number of a register that only the steps of one instruction use."""
        return self.registers + self._temporaries.setdefault(name, len(self._temporaries))

    def slot_of(self, operand: Operand) -> int | None:
        """The register of a result; None for one that is thrown away."""
        return operand.slot if isinstance(operand, Register) else None

    def _width(self, operand: Operand) -> int:
        return operand.width if isinstance(operand, Register) else 0

    def get(self, operand: Operand, instruction: PtxInstruction, width: int = 64) -> Get:
        """The values of an operand in all lanes."""
        if isinstance(operand, Register):
            slot = operand.slot
            return lambda warp: warp.registers[slot]
        if isinstance(operand, Negated):
            assert isinstance(operand.operand, Register)
            return self._negated(operand.operand.slot)
        if isinstance(operand, Imm):
            constant = uniform(operand.value & (1 << max(width, 1)) - 1)
            return lambda warp: constant
        if isinstance(operand, Real):
            bits = uniform(operand.bits)
            return lambda warp: bits
        if isinstance(operand, Special):
            return special(operand.name)
        if isinstance(operand, Sym):
            return self.symbol(operand.name, operand.offset, instruction)
        raise Refused(f"this operand of {instruction.opcode} is not known", instruction.span)

    def _negated(self, slot: int) -> Get:
        def get(warp: Warp) -> Row:
            row = warp.registers[slot]
            if type(row) is Uniform:
                return UNKNOWN if row.value is None else uniform(row.value ^ 1)
            return [None if one is None else one ^ 1 for one in row]

        return get

    def symbol(self, name: str, offset: int, instruction: PtxInstruction) -> Get:
        """The address of a variable."""
        found = self.memory.symbols.get(name)
        if found is None:
            raise Refused(f"the address of {name} is not known", instruction.span)
        space, at = found
        at += offset
        if space == "shared":
            return lambda warp: uniform(warp.cta.base + at)
        constant = uniform(at)
        return lambda warp: constant

    # ---- instructions ----------------------------------------------------------------------------------------

    def pure(self, instruction: PtxInstruction) -> Step | None:
        """The step of an instruction that only computes. `max.s32.relu` is `max.relu.s32`."""
        words = instruction.words
        if words[-1] in ("relu", "sat") and len(words) > 2:
            instruction = replace(instruction, words=(*words[:-2], words[-1], words[-2]))
            words = instruction.words
        head = words[0]
        if head == "mov":
            return self._move(instruction)
        if head == "cvt":
            return self._convert(instruction)
        if head in ("setp", "set"):
            return self._compare(instruction)
        if head == "selp":
            return self._select(instruction, self.target(instruction))
        if head in ("and", "or") and words[-1] == "pred":
            return self._joined(instruction, head)
        if head in ("xor", "not") and words[-1] == "pred":
            return self._plain(instruction, predicate(head))
        if head == "lop3" and isinstance(instruction.operands[0], Pair):
            return self._withpredicate(instruction, instruction.operands[0])
        if (chained := with_carry(words)) is not None:
            return self._carried(instruction, *chained)
        if words[0].startswith("v"):
            return self._video(instruction)
        found = function(words) or floating(words)
        if found is not None:
            whole = head in ("div", "rem") and not is_float(words[-1])
            return self._plain(instruction, divided(found) if whole else found)
        if head in OPAQUE and (is_float(words[-1]) or "approx" in words or "full" in words):
            return self._opaque(instruction)
        return None

    def target(self, instruction: PtxInstruction) -> int:
        """The register that an instruction writes."""
        operand = instruction.operands[0]
        if not isinstance(operand, Register):
            raise Refused(f"the result of {instruction.opcode} is no register", instruction.span)
        return operand.slot

    def _plain(self, instruction: PtxInstruction, fn: Callable[..., Value]) -> Step:
        slot, given = self.target(instruction), instruction.operands[1:]
        widths = operand_widths(instruction.words, len(given))
        sources = [self.get(one, instruction, width) for one, width in zip(given, widths, strict=True)]
        return binary(fn, slot, *sources) if len(sources) == 2 else many(fn, slot, sources)

    def _joined(self, instruction: PtxInstruction, head: str) -> Step:
        """and.pred, or.pred: one operand may decide what the other, unknown one leaves open."""
        slot, join = self.target(instruction), predicate(head)
        first, second = (self.get(one, instruction, 1) for one in instruction.operands[1:])

        def step(warp: Warp, lanes: Lanes) -> None:
            a, b = list(first(warp)), list(second(warp))
            d = warp.own(slot)
            for lane in lanes:
                d[lane] = joined(head, join, a[lane], b[lane])

        return step

    def _withpredicate(self, instruction: PtxInstruction, target: Pair) -> Step:
        """lop3 with .and or .or: whether the result is not zero, joined with a predicate."""
        fn, join = function(("lop3", "b32")), predicate(instruction.words[1])
        assert fn is not None
        gets = [self.get(one, instruction, 32) for one in instruction.operands[1:]]
        slot, flag = self.slot_of(target.first), self.slot_of(target.second)

        def step(warp: Warp, lanes: Lanes) -> None:
            lists = [list(one(warp)) for one in gets]
            for lane in lanes:
                *given, other = (one[lane] for one in lists)
                found = None if None in given else fn(*given)
                if slot is not None:
                    warp.own(slot)[lane] = found
                if flag is not None:
                    held = None if found is None else int(found != 0)
                    warp.own(flag)[lane] = joined(instruction.words[1], join, held, other)

        return step

    def _video(self, instruction: PtxInstruction) -> Step | None:
        """A video instruction; its operands may be bytes and halves of registers."""
        fn, kinds = video(instruction.words), [one for one in instruction.words[1:] if one in ("u32", "s32")]
        if fn is None:
            return None
        kinds = kinds[-2:] if len(kinds) > 2 else kinds
        sources = []
        for number, one in enumerate(instruction.operands[1:]):
            whole = one.register if isinstance(one, Part) else one
            get = self.get(whole, instruction, 32)
            if isinstance(one, Part):
                if number > 1:
                    return None
                get = _taken(get, one.selector, kinds[number])
            sources.append(get)
        return many(fn, self.target(instruction), sources)

    def _carried(self, instruction: PtxInstruction, fn: Fn, uses: bool, sets: bool, width: int) -> Step:
        """add.cc, addc and their like: the carry is kept beside the registers."""
        sources = [self.get(one, instruction, width) for one in instruction.operands[1:]]
        slot = self.target(instruction)
        mask = (1 << width) - 1

        def step(warp: Warp, lanes: Lanes) -> None:
            lists, d = [one(warp) for one in sources], warp.own(slot)
            for lane in lanes:
                values = [one[lane] for one in lists]
                carry = warp.carry[lane] if uses else 0
                result = None if carry is None or None in values else fn(*values, carry)
                d[lane] = None if result is None else result & mask
                if sets:
                    warp.carry[lane] = None if result is None else result >> width & 1

        return step

    def _select(self, instruction: PtxInstruction, slot: int) -> Step:
        width = width_of(instruction.words[-1]) or 64
        a, b, p = (self.get(one, instruction, width) for one in instruction.operands[1:])
        mask = (1 << width) - 1

        def step(warp: Warp, lanes: Lanes) -> None:
            yes, no, which = a(warp), b(warp), p(warp)
            if type(which) is Uniform and which.value is not None and len(lanes) == LANES:
                chosen = yes if which.value & 1 else no
                if type(chosen) is Uniform:
                    warp.registers[slot] = chosen if chosen.value is None else uniform(chosen.value & mask)
                    return
            yes, no, which = list(yes), list(no), list(which)
            d = warp.own(slot)
            for lane in lanes:
                choice = which[lane]
                value = None if choice is None else yes[lane] if choice & 1 else no[lane]
                if choice is None and yes[lane] is not None and yes[lane] == no[lane]:
                    value = yes[lane]
                d[lane] = None if value is None else value & mask

        return step

    def _opaque(self, instruction: PtxInstruction) -> Step:
        slot = self.target(instruction)
        for one in instruction.operands[1:]:
            for item in one.items if isinstance(one, Vector) else (one,):
                self.get(item, instruction)
        return forgetting([slot])

    def _move(self, instruction: PtxInstruction) -> Step | None:
        if len(instruction.operands) != 2 or width_of(instruction.words[-1]) is None:
            return None
        target, source = instruction.operands
        width = width_of(instruction.words[-1]) or 64
        if isinstance(target, Vector):
            return self._unpack(target, source, width, instruction)
        slot = self.target(instruction)
        if isinstance(source, Vector):
            return self._pack(slot, source, width, instruction)
        get = self.get(source, instruction, width)
        if instruction.words[-1] == "pred":
            return unary(lambda a: int(a != 0), slot, get)
        mask = (1 << width) - 1
        return unary(lambda a: a & mask, slot, get)

    def _unpack(self, target: Vector, source: Operand, width: int, instruction: PtxInstruction) -> Step:
        part = width // len(target.items)
        slots = [self.slot_of(one) for one in target.items]
        if any(slot is None and not isinstance(one, Blank) for slot, one in zip(slots, target.items, strict=True)):
            raise Refused(f"the result of {instruction.opcode} is no register", instruction.span)
        get = self.get(source, instruction, width)
        mask = (1 << part) - 1

        def step(warp: Warp, lanes: Lanes) -> None:
            values = get(warp)
            if values is UNKNOWN and len(lanes) == LANES:
                for slot in slots:
                    if slot is not None:
                        warp.registers[slot] = UNKNOWN
                return
            values = list(values)
            for number, slot in enumerate(slots):
                if slot is None:
                    continue
                d = warp.own(slot)
                for lane in lanes:
                    value = values[lane]
                    d[lane] = None if value is None else value >> number * part & mask

        return step

    def _pack(self, slot: int, source: Vector, width: int, instruction: PtxInstruction) -> Step:
        part = width // max(1, len(source.items))
        gets = [self.get(one, instruction, part) for one in source.items]
        mask = (1 << part) - 1
        return many(lambda *values: sum((one & mask) << k * part for k, one in enumerate(values)), slot, gets)

    def _convert(self, instruction: PtxInstruction) -> Step | None:
        words = instruction.words
        if "pack" in words:
            packed = function(words)
            return None if packed is None else self._plain(instruction, packed)
        found = conversion(words) or converted(words)
        if found is not None and len(instruction.operands) == (3 if words[-2].endswith("x2") else 2):
            return self._plain(instruction, extended(found, words[-2], self._width(instruction.operands[0])))
        return self._opaque(instruction) if any(is_float(one) for one in words[-2:]) else None

    def _compare(self, instruction: PtxInstruction) -> Step | None:
        words, operands = instruction.words, instruction.operands
        fn = comparison(words[:-2] + words[-1:] if words[0] == "set" else words)
        if fn is None:
            return self._opaque_test(instruction) if is_float(words[-1]) else None
        target, *rest = operands
        first = target.first if isinstance(target, Pair) else target
        slot = self.slot_of(first)
        other = self.slot_of(target.second) if isinstance(target, Pair) else None
        logic = next((one for one in words[2:-1] if one in ("and", "or", "xor")), None)
        width = width_of(words[-1]) or 32
        gets = [self.get(one, instruction, width) for one in rest]
        if words[0] == "set":
            ones = ONES.get(words[-2])
            if ones is None or slot is None:
                return None
            if logic is None:
                return binary(lambda a, b: ones * fn(a, b), slot, *gets)
            merged = predicate(logic)
            return many(lambda a, b, c: ones * merged(fn(a, b), c), slot, gets)
        if logic is None and other is None and slot is not None and len(gets) == 2:
            return binary(fn, slot, *gets)
        join = None if logic is None else predicate(logic)

        def step(warp: Warp, lanes: Lanes) -> None:
            lists = [list(one(warp)) for one in gets]
            for lane in lanes:
                a, b = lists[0][lane], lists[1][lane]
                result: Value = None if a is None or b is None else fn(a, b)
                inverse: Value = None if result is None else result ^ 1
                if join is not None:
                    c = lists[2][lane]
                    result = joined(logic, join, result, c)
                    inverse = joined(logic, join, inverse, c)
                if slot is not None:
                    warp.own(slot)[lane] = result
                if other is not None:
                    warp.own(other)[lane] = inverse

        return step

    def _opaque_test(self, instruction: PtxInstruction) -> Step:
        target = instruction.operands[0]
        results = (target.first, target.second) if isinstance(target, Pair) else (target,)
        return forgetting([slot for slot in map(self.slot_of, results) if slot is not None])


def _taken(get: Get, selector: str, kind: str) -> Get:
    return lambda warp: [None if one is None else part(one, selector, kind) for one in get(warp)]


def divided(fn: Callable[..., Value]) -> Callable[..., Value]:
    """A quotient or remainder; what division by zero gives is not specified ("div", "rem")."""
    return lambda a, b: fn(a, b) if b else None
