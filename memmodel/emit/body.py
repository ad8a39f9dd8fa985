"""The body of one litmus thread.

In: a Seat, its instructions and registers. Out: lines of PTX, each with its place in the litmus file. Settled here:
which lanes execute what. A thread that never needs a whole warp runs in one lane. Otherwise all lanes
run: they compute and branch alike, the first lane alone touches memory, and what it read goes to the others; each waits
for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memmodel.emit.address import OURS, Addresses, EmittedVariables, clean, number, plus
from memmodel.emit.grid import Seat
from memmodel.emit.opaque import OpaqueZero
from memmodel.emit.registers import Registers, targets
from memmodel.emit.spread import FULL, across_warps, within_warp
from memmodel.errors import InputError
from memmodel.isa.movement.stasync import COMPLETION
from memmodel.isa.rows.row import Effect
from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.check import memory_position
from memmodel.litmus.instructions import is_cta_barrier
from memmodel.litmus.printer import print_real
from memmodel.litmus.syntax import Guard, Instruction, Label, RegisterInit
from memmodel.ptx.operands import Blank, Imm, Mem, Negated, Operand, Pair, Real, Reg, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import Proxy, Space
from memmodel.source import Span

Line = tuple[str, Span | None]

LAST_BARRIER = 15
_WITHOUT_MEMORY = (Effect.COMPUTES, Effect.CONTROL, Effect.NOTHING)
_OF_ALL_LANES = ("mbarrier.pending_count", "setmaxnreg")
"""Instructions that all lanes may execute have one of these effects, or are these: they touch no memory."""

_NAMED = ("mov", "cvta", "mapa", "getctarank")
"""Instructions that take the name of a variable as an operand."""

_TESTS = ("mbarrier.test_wait", "mbarrier.try_wait")
_READS = ("ld", *_TESTS)
"""Instructions that may be repeated by every warp of a warpgroup."""


_ROWS = ("ldmatrix", "stmatrix")
"""Instructions in which every lane names a row of its own."""

_BY_PIECES = "tensormap.cp_fenceproxy"
"""Every lane copies a piece of the map."""

_BY_LANE = "tcgen05.fence"
"""Orders what the executing lane does, so that every lane has to execute it."""

_WAITS = ("tcgen05.wait", "wgmma.wait_group")
"""Every lane waits for what it has issued itself."""


def is_collective(instruction: Instruction) -> bool:
    """True if all lanes of a warp must execute the instruction together."""
    parts = instruction.parts
    return parts[0] in ("bar", "barrier") or "aligned" in parts or "sync" in parts


def _polled(body: Sequence[Instruction | Label]) -> Iterator[tuple[Instruction, Instruction]]:
    """Tests of mbarrier objects that are repeated until they succeed, with nothing else in the loop, each with the
    branch back to it.
    """
    for head, test, again in zip(body, body[1:], body[2:], strict=False):
        if not (isinstance(head, Label) and isinstance(test, Instruction) and isinstance(again, Instruction)):
            continue
        if not test.mnemonic.startswith(_TESTS) or test.guard is not None or again.guard is None:
            continue
        back = again.parts[0] == "bra" and again.operands[:1] == (Sym(head.name),)
        if back and again.guard.negated and test.operands[:1] == (Reg(again.guard.register),):
            yield test, again


class ThreadBody:
    """One thread, written line by line.

    `code`: its instructions with their readings, in order. `special`: what stands for its special registers.
    """

    def __init__(
        self,
        seat: Seat,
        code: Sequence[tuple[Instruction, Spelling]],
        registers: Registers,
        memory: EmittedVariables,
        special: Mapping[str, str],
    ) -> None:
        self.seat = seat
        self.code = code
        self.registers = registers
        self.addresses = Addresses(memory, seat.thread.place.cta)
        self.memory = memory
        self.special = special
        self.opaque = OpaqueZero(code)
        self.runs_all_lanes = seat.lane is None and any(is_collective(instruction) for instruction, _ in code)
        self.lines: list[Line] = []
        self.slot: str | None = None
        """Shared memory through which the first warp of the thread gives others what it has."""
        self._polls = {id(test): id(again) for test, again in _polled(seat.thread.body)}

    @property
    def end(self) -> str:
        """The label where the thread ends."""
        return f"{OURS}end_{clean(self.seat.thread.name)}"

    def write(self, inits: Sequence[RegisterInit], results: Sequence[tuple[int, str]]) -> list[Line]:
        """Everything between the braces. `results`: slots of the output buffer and the registers that go there."""
        readings = iter(self.code)
        for line in self.seat.thread.body:
            if isinstance(line, Label):
                self.lines.append((f"{clean(line.name)}:", line.span))
            else:
                self._instruction(*next(readings))
        begin = self._initial(inits)
        store = self._results(results)
        declared = self._declarations()
        opaque = [(line, None) for line in self.opaque.declarations()]
        addresses = [(line, None) for line in self.addresses.lines]
        before = [*declared, *addresses, *begin, *self._lead()]
        return [*opaque, *before, *self.lines, (f"{self.end}:", None), *store]

    # ---- around the instructions -----------------------------------------------------------------------------

    def _declarations(self) -> list[Line]:
        lines: list[Line] = []
        for name in self.registers.least:
            word, register = self.registers.word(name), _register(name)
            lines.append((f".reg .{word} {register};", None))
            if word == "pred":
                lines.append((f"setp.ne.u32 {register}, 0, 0;", None))
            elif word != "b128":
                lines.append((f"mov.{word} {register}, {self.opaque.initial(name, int(word[1:]))};", None))
        if self.runs_all_lanes:
            lines.append((f".reg .pred %{OURS}lead, %{OURS}first, %{OURS}do;", None))
            lines.append((f".reg .b32 %{OURS}lo, %{OURS}hi;", None))
            if any(reading.head in _ROWS for _, reading in self.code):
                lines.append((f".reg .b32 %{OURS}row;", None))
                lines.append((f".reg .b64 %{OURS}wide;", None))
            if any(self.registers.width(name) == 128 for name in self.registers.least):
                lines.append((f".reg .b64 %{OURS}low, %{OURS}high;", None))
        return lines

    def _initial(self, inits: Sequence[RegisterInit]) -> list[Line]:
        lines: list[Line] = []
        for initial in inits:
            if initial.register not in self.registers.least:
                continue
            word = self.registers.word(initial.register)
            text = str(initial.value)
            if isinstance(initial.value, str):
                before = len(self.addresses.lines)
                text = self._begins_with(Sym(initial.value), self.registers.width(initial.register))
                lines += [(line, None) for line in self.addresses.lines[before:]]
                del self.addresses.lines[before:]
            if word == "pred":
                lines.append((f"setp.ne.s64 {_register(initial.register)}, {text}, 0;", initial.span))
            elif word != "b128":
                lines.append((f"mov.{word} {_register(initial.register)}, {text};", initial.span))
        return lines

    def _begins_with(self, symbol: Sym, width: int) -> str:
        """The address that a register begins with. Addresses in .const count from its start, so that a thread that
        does not name .const has the generic one.
        """
        in_const = self.addresses.memory.root(symbol.name).space is Space.CONST
        if in_const and not any(
            "const" in line.parts for line in self.seat.thread.body if isinstance(line, Instruction)
        ):
            return self.addresses.generic(symbol)
        return self.addresses.value(symbol, width, named=True)

    def _lead(self) -> list[Line]:
        """Choose the lane that runs alone, or name the lane that leads."""
        lane, first = f"%{OURS}lane", self.seat.lane or 0
        if not self.runs_all_lanes:
            return [] if self.seat.lane is not None else [
                (f"setp.ne.u32 %{OURS}p, {lane}, {first};", None),
                (f"@%{OURS}p bra {self.end};", None),
            ]  # fmt: skip
        lines: list[Line] = [(f"setp.eq.u32 %{OURS}lead, {lane}, 0;", None)]
        where = f"%{OURS}warp"
        lines.append((f"setp.eq.and.u32 %{OURS}first, {where}, {self.seat.warp}, %{OURS}lead;", None))
        return lines

    def _results(self, results: Sequence[tuple[int, str]]) -> list[Line]:
        if not results:
            return []
        lines: list[Line] = [(f".reg .b64 %{OURS}v;", None)]
        guard = ""
        if self.runs_all_lanes:
            guard = f"@%{OURS}first "
        elif self.seat.lane is None:
            lines.append((f"setp.eq.u32 %{OURS}p, %{OURS}lane, 0;", None))
            guard = f"@%{OURS}p "
        for slot, name in results:
            register, width = _register(name), self.registers.width(name)
            if width == 1:
                lines.append((f"selp.u64 %{OURS}v, 1, 0, {register};", None))
            elif width < 64:
                sign = "s" if self.registers.is_signed(name) else "u"
                lines.append((f"cvt.{sign}64.{sign}{width} %{OURS}v, {register};", None))
            elif width == 64:
                lines.append((f"mov.b64 %{OURS}v, {register};", None))
            else:
                lines.append((f"mov.b128 {{%{OURS}v, _}}, {register};", None))
            lines.append((f"{guard}st.global.u64 [%{OURS}out+{8 * slot}], %{OURS}v;", None))
        return lines

    # ---- one instruction -------------------------------------------------------------------------------------

    def _instruction(self, instruction: Instruction, reading: Spelling) -> None:
        guard = (
            ""
            if instruction.guard is None
            else f"@{'!' if instruction.guard.negated else ''}{_register(instruction.guard.register)} "
        )
        if reading.head in ("ret", "exit"):
            self._put(f"{guard}bra {self.end};", instruction)
            return
        text = self._spell(instruction, reading)
        alike = reading.row.effect in _WITHOUT_MEMORY or reading.head in _OF_ALL_LANES
        if not self.runs_all_lanes or alike or id(instruction) in self._polls:
            self._put(f"{guard}{text};", instruction)
            if self.runs_all_lanes and id(instruction) in self._polls.values():
                self._meet()  # a lane that waited by itself might miss two phases
        elif is_collective(instruction) or instruction.mnemonic.startswith(_BY_LANE):
            self._together(instruction, reading, guard, text)
        else:
            self._alone(instruction, reading, text)

    def _together(self, instruction: Instruction, reading: Spelling, guard: str, text: str) -> None:
        barrier = instruction.parts[0] in ("bar", "barrier")
        if not barrier:
            self._meet()
        elif (
            self.seat.warps > 1
            and is_cta_barrier(instruction.mnemonic)
            and instruction.guard is None
            and _counted(instruction)
        ):
            # A count speaks of one warp for each litmus thread, and this one has four.
            guard = self._first_warp()
        if reading.head == "stmatrix" and self.seat.warps > 1:
            guard = self._first_warp(instruction.guard)
        self._put(f"{guard}{text};", instruction)
        if reading.head in _ROWS or instruction.mnemonic.startswith((_BY_LANE, _BY_PIECES, *_WAITS)):
            self._meet()  # what other lanes did comes before what the first lane does next
        if reading.head == "elect.sync":
            # The thread is what all lanes do together, and it has been elected.
            elected = [register for register in targets(instruction, reading) if self.registers.width(register) == 1]
            self.lines += [(f"setp.eq.u32 {_register(register)}, 0, 0;", None) for register in elected]

    def _first_warp(self, guard: Guard | None = None) -> str:
        """The guard that lets the first warp of several execute an instruction that its own guard lets run."""
        do = f"%{OURS}do"
        self.lines.append((f"setp.eq.u32 {do}, %{OURS}warp, {self.seat.warp};", None))
        if guard is not None:
            # setp combines its comparison with a predicate, negated or not.
            register = f"{'!' if guard.negated else ''}{_register(guard.register)}"
            self.lines[-1] = (f"setp.eq.and.u32 {do}, %{OURS}warp, {self.seat.warp}, {register};", None)
        return f"@{do} "

    def _meet(self) -> None:
        """Put a barrier between what the first lane did and what all lanes do next."""
        self.lines.append((self._barrier, None))

    @property
    def _barrier(self) -> str:
        if self.seat.warps > 1:
            return f"bar.sync {LAST_BARRIER - self.seat.warp // 4}, {32 * self.seat.warps};"
        return f"bar.warp.sync {FULL};"

    def _alone(self, instruction: Instruction, reading: Spelling, text: str) -> None:
        """Let one lane execute an instruction, and give its result to all lanes."""
        lead = f"%{OURS}lead" if instruction.mnemonic.startswith(_READS) else f"%{OURS}first"
        guard = f"@{lead} "
        if instruction.guard is not None:
            register, do = _register(instruction.guard.register), f"%{OURS}do"
            if instruction.guard.negated:
                self.lines += [(f"not.pred {do}, {register};", None), (f"and.pred {do}, {do}, {lead};", None)]
            else:
                self.lines.append((f"and.pred {do}, {register}, {lead};", None))
            guard = f"@{do} "
        self._put(f"{guard}{text};", instruction)
        across = self.seat.warps > 1 and lead.endswith("first")
        for name in targets(instruction, reading):
            self._spread(name, across=across)

    def _spread(self, name: str, *, across: bool) -> None:
        """Give all lanes what the first one of their warp, or of all of the thread's warps, has in a register."""
        register, width = _register(name), self.registers.width(name)
        if across:
            self.slot = f"{OURS}pass{self.seat.warp // 4}"
            lines = across_warps(register, width, self.slot, self._barrier)
        else:
            lines = within_warp(register, width)
        self.lines += [(line, None) for line in lines]

    def _put(self, text: str, instruction: Instruction) -> None:
        self.lines.append((text, instruction.span))

    # ---- operands --------------------------------------------------------------------------------------------

    def _spell(self, instruction: Instruction, reading: Spelling) -> str:
        operands = instruction.operands
        if is_cta_barrier(instruction.mnemonic):
            operands = _barrier(instruction, operands)
        has_space = any(slot.name == "space" for slot in reading.row.slots) or "[addr]" in reading.operands
        generic = has_space and "space" not in reading.words
        position = memory_position(instruction)
        printed = []
        for index, operand in enumerate(operands):
            if isinstance(operand, Sym) and index == position:
                operand = Mem(operand, 0, operand.span)
            if isinstance(operand, Sym) and operand.name in self.memory.variables:
                width = 32 if reading.words.get("type", "b64")[1:] == "32" else 64
                printed.append(self.addresses.value(operand, width, named=reading.head in _NAMED))
            elif (
                reading.head == "st.bulk" and not generic and isinstance(operand, Mem) and isinstance(operand.base, Sym)
            ):
                # ptxas takes no name there.
                at = replace(operand.base, offset=operand.offset)
                printed.append(f"[{self.addresses.value(at, 32, named=False)}]")
            elif reading.head in _ROWS and isinstance(operand, Mem):
                printed.append(self._row(operand, int(reading.words["num"][1:]), generic))
            elif isinstance(operand, Imm) and reading.words.get("type") in ("f32", "f64"):
                printed.append(number(operand.value, reading.words["type"]))
            elif isinstance(operand, Mem) and (
                again := self._unmergeable_address(instruction, reading, operand, generic)
            ):
                printed.append(again)
            else:
                printed.append(self._operand(operand, generic))
        mnemonic = self.opaque.arithmetic(instruction, reading, printed) or _mnemonic(instruction, reading)
        self.lines += [(line, None) for line in self.opaque.lines]
        self.opaque.lines.clear()
        return f"{mnemonic} {', '.join(printed)}" if printed else mnemonic

    def _unmergeable_address(self, instruction: Instruction, reading: Spelling, operand: Mem, generic: bool) -> str:
        """The address of an access that ptxas would merge with an earlier one; empty for any other."""
        base = operand.base
        assert not isinstance(base, Imm), "a litmus test names its memory"
        root = None if isinstance(base, Reg) else self.memory.symbol(base.name)
        times = self.opaque.repeats(instruction, reading, root)
        if not times:
            return ""
        text = _register(base.name) if isinstance(base, Reg) else self.addresses.inside(base, 0, generic=generic)
        width = self.registers.width(base.name) if isinstance(base, Reg) else self.addresses.width(text)
        return f"[{plus(self.opaque.address(times, text, width), operand.offset)}]"

    def _row(self, operand: Mem, matrices: int, generic: bool) -> str:
        """The row of a matrix that a lane names: they follow one another."""
        base = operand.base
        assert not isinstance(base, Imm), "a litmus test names its memory"
        if isinstance(base, Reg):
            text, width, offset = _register(base.name), self.registers.width(base.name), operand.offset
        elif generic:
            text, width, offset = self.addresses.inside(base, 0, generic=True), 64, operand.offset
        else:
            text, width, offset = self.addresses.value(base, 32, named=False), 32, operand.offset
        row, wide = f"%{OURS}row", f"%{OURS}wide"
        lines = [f"and.b32 {row}, %{OURS}lane, {8 * matrices - 1};", f"shl.b32 {row}, {row}, 4;"]
        if width == 64:
            lines += [f"cvt.u64.u32 {wide}, {row};", f"add.u64 {wide}, {wide}, {text};"]
        else:
            lines.append(f"add.u32 {row}, {row}, {text};")
        self.lines += [(line, None) for line in lines]
        return f"[{plus(wide if width == 64 else row, offset)}]"

    def _operand(self, operand: Operand, generic: bool) -> str:
        if isinstance(operand, Reg):
            return self.special.get(operand.name) or _register(operand.name)
        if isinstance(operand, Imm):
            hexadecimal = operand.span is not None and operand.span.text == f"{operand.value:#x}"
            return operand.span.text if hexadecimal else number(operand.value)
        if isinstance(operand, Real):
            return print_real(operand)
        if isinstance(operand, Sym):
            return clean(operand.name)
        if isinstance(operand, Mem):
            if isinstance(operand.base, Reg):
                return f"[{plus(_register(operand.base.name), operand.offset)}]"
            assert isinstance(operand.base, Sym), "a litmus test names its memory"
            return f"[{self.addresses.inside(operand.base, operand.offset, generic=generic)}]"
        if isinstance(operand, TensorOperand):
            items = [self._operand(element, generic) for element in operand.items]
            if isinstance(operand.base, Sym) and self.memory.variables[operand.base.name].proxy is Proxy.FABRIC:
                offsets = [self.addresses.offset(at.value) if isinstance(at, Imm) else items[1] for at in operand.rest]
                items = [self.addresses.endpoint(operand.base), *offsets]
            elif isinstance(operand.base, Sym):
                base, is_map = operand.base, self.memory.root(operand.base.name).space is not Space.TENSOR
                items[0] = self.addresses.generic(base) if is_map else self.addresses.inside(base, 0, generic=False)
            return f"[{', '.join(items)}]"
        if isinstance(operand, Vector):
            return f"{{{', '.join(self._operand(element, generic) for element in operand.items)}}}"
        if isinstance(operand, Negated):
            return f"!{_register(operand.operand.name)}"
        if isinstance(operand, Pair):
            return f"{self._operand(operand.first, generic)}|{self._operand(operand.second, generic)}"
        return "_"


def _mnemonic(instruction: Instruction, reading: Spelling) -> str:
    """The mnemonic as it is written, with the defaults that ptxas wants spelled out."""
    words = dict(reading.words)
    if reading.head == "red.async" and words["sem"] == "relaxed":
        words.setdefault("completion", COMPLETION)
    if reading.head == "multimem.red" and ("sem" in words or "scope" in words):
        words = {"sem": "relaxed", "scope": "sys", **words}
    if words == reading.words:
        return instruction.mnemonic
    return reading.mnemonic(words)


def _register(name: str) -> str:
    return f"%{clean(name)}"


def _counted(instruction: Instruction) -> bool:
    return len(instruction.operands) >= 3 and not isinstance(instruction.operands[2], Blank)


def _barrier(instruction: Instruction, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The operands of a CTA barrier as PTX has them: no resource, and no blank for what is left out."""
    resource = operands[2] if "red" in instruction.parts else operands[1]
    if not isinstance(resource, Blank):
        raise InputError("PTX barriers have a number and a thread count, and no resource", resource.span)
    return tuple(operand for operand in operands if not isinstance(operand, Blank))
