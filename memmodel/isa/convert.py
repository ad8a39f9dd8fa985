"""A test in the other layout, with the same meaning.

In: LitmusTest, Layout. Out: a LitmusTest in that layout, or InputError where the layout cannot say it. Settled here: a
thread count is litmus threads in a table and 32 times as many in blocks; what a table leaves untyped is .s64 in
blocks; words of the column layout become PTX. From blocks to columns only counts change, since a table may name types
and state spaces too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

from memmodel.errors import InputError
from memmodel.isa.lower import lower_test, read_instruction
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.slots import Need
from memmodel.isa.rows.spelling import Refusal, Spelling
from memmodel.isa.rows.types import data_type
from memmodel.isa.synchronization.barrier import RESOURCES, WARP_SIZE
from memmodel.isa.table import HEADS
from memmodel.litmus.check import memory_position
from memmodel.litmus.constants import all_instructions
from memmodel.litmus.instructions import is_cta_barrier, is_reduction
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import Guard, Instruction, Label, Layout, LitmusTest, Thread, Variable, root_of
from memmodel.ptx.operands import Blank, Imm, Mem, Operand, Reg, Sym
from memmodel.ptx.vocabulary import UNTYPED, DataType, Space

FILLED = ("s64", "u64", "b64", "u32", "b32", "pred", "lo")
"""What fills an empty slot: the first of these that the row allows."""

BITWISE = ("and", "or", "xor", "not", "shl")
"""Instructions that PTX has for untyped bits only; in a table their result is a signed number like any other."""

SURPRISING = ("sub", "neg", "not", "mul", "mad", "shl", "div", "rem", "cvt")
"""Operations whose result may be negative, or large, although their operands are neither."""

_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_NO_PTX = "keep this test in columns: PTX accesses textures and surfaces by coordinates"

Keys = dict[tuple[Operand, Operand], int]
"""The PTX barrier that stands for an instance and a resource of the column layout."""


def convert(test: LitmusTest, layout: Layout) -> LitmusTest:
    """The test in that layout. Raises InputError if it is illegal in its own, or has no equal in the other."""
    if test.layout is layout:
        return test
    lower_test(test)
    if layout is Layout.COLUMNS:
        converted = replace(test, layout=layout, threads=_rewritten(test, _to_columns))
    else:
        _check_initial(test)
        barriers = _barriers(test)
        threads = _rewritten(test, lambda instruction, scratch: _to_blocks(instruction, scratch, barriers))
        converted = replace(test, layout=layout, threads=threads, variables=tuple(map(_declared, test.variables)))
    lower_test(converted)
    return converted


class _Scratch:
    """The thread that is rewritten, and names for registers that the test does not use."""

    def __init__(self, test: LitmusTest, thread: Thread, taken: set[str]) -> None:
        self.test, self.thread, self._taken = test, thread, taken

    def fresh(self, stem: str) -> Reg:
        """A register that the test does not use."""
        number = 0
        while f"{stem}{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}{number}")
        return Reg(f"{stem}{number}")


Rewrite = Callable[[Instruction, _Scratch], tuple[Instruction, ...]]


def _rewritten(test: LitmusTest, rewrite: Rewrite) -> tuple[Thread, ...]:
    taken = set(_WORD.findall(print_litmus(test)))
    threads = []
    for thread in test.threads:
        body: list[Instruction | Label] = []
        scratch = _Scratch(test, thread, taken)
        for entry in thread.body:
            body += (entry,) if isinstance(entry, Label) else rewrite(entry, scratch)
        threads.append(replace(thread, body=tuple(body)))
    return tuple(threads)


def _like(instruction: Instruction, mnemonic: str, *operands: Operand, guard: Guard | None = None) -> Instruction:
    """An instruction in the place of another."""
    return Instruction(mnemonic, operands, guard, instruction.span, instruction.mnemonic_span)


# ---- barriers ------------------------------------------------------------------------------------------------------


def _to_columns(instruction: Instruction, scratch: _Scratch) -> tuple[Instruction, ...]:
    if not is_cta_barrier(instruction.mnemonic):
        return (instruction,)
    at = _barrier_at(instruction)
    count = instruction.operands[at + 2]
    if isinstance(count, Imm):
        return (_with(instruction, at + 2, Imm(count.value // WARP_SIZE, count.span)),)
    if isinstance(count, Blank):
        return (instruction,)
    warps = scratch.fresh("n")
    return (
        _like(instruction, "div.u32", warps, count, Imm(WARP_SIZE), guard=instruction.guard),
        _with(instruction, at + 2, warps),
    )


def _barrier_at(instruction: Instruction) -> int:
    """The position of the operand with the instance of a CTA barrier; its resource and its count follow."""
    return 1 if is_reduction(instruction.mnemonic) else 0


def _with(instruction: Instruction, position: int, operand: Operand) -> Instruction:
    return replace(
        instruction, operands=(*instruction.operands[:position], operand, *instruction.operands[position + 1 :])
    )


def _key(instruction: Instruction) -> tuple[Operand, Operand]:
    """Instance and resource; no resource is resource 0."""
    number, resource = instruction.operands[_barrier_at(instruction) :][:2]
    return number, Imm(0) if isinstance(resource, Blank) else resource


def _barriers(test: LitmusTest) -> Keys:
    """A PTX barrier for every pair of constants: the instance if it can be, else one that no other barrier has."""
    barriers = [instruction for instruction in all_instructions(test) if is_cta_barrier(instruction.mnemonic)]
    keys = dict.fromkeys(map(_key, barriers))
    pairs = {(n.value, r.value): (n, r) for n, r in keys if isinstance(n, Imm) and isinstance(r, Imm)}
    same = {number for number, resource in pairs if resource == 0 and 0 <= number < RESOURCES}
    free = (number for number in range(RESOURCES) if number not in same)
    numbers: Keys = {}
    for (number, resource), key in pairs.items():
        taken = number if resource == 0 and number in same else next(free, None)
        if taken is None:
            raise InputError(f"more barriers than the {RESOURCES} that a CTA has", barriers[0].span)
        numbers[key] = taken
    renamed = any(key[0] != Imm(number) for key, number in numbers.items())
    for instruction in barriers:
        if _key(instruction) not in numbers and (renamed or _key(instruction)[1] != Imm(0)):
            message = "this barrier is named by a register, and PTX needs another number for some barrier of the test"
            raise InputError(message, instruction.span, "write the numbers out")
    return numbers


def _barrier(instruction: Instruction, scratch: _Scratch, barriers: Keys) -> tuple[Instruction, ...]:
    at = _barrier_at(instruction)
    number, resource, count = instruction.operands[at : at + 3]
    if (known := barriers.get(_key(instruction))) is not None:
        number = Imm(known)
    if isinstance(count, Blank) and not isinstance(resource, Blank):
        hint = "give the count of threads after it"
        raise InputError("whoever arrives meets at this barrier: PTX has no spelling for that", instruction.span, hint)
    if count == Imm(0):
        count = Blank(count.span)
    if isinstance(count, Blank) and ".arrive" in instruction.mnemonic:
        cta = scratch.thread.place.cta_id
        count = Imm(sum(thread.place.cta_id == cta for thread in scratch.test.threads))
    before: tuple[Instruction, ...] = ()
    if isinstance(count, Imm):
        count = Imm(count.value * WARP_SIZE, count.span)
    elif isinstance(count, Reg):
        lanes = scratch.fresh("n")
        before = (_like(instruction, "mul.lo.u32", lanes, count, Imm(WARP_SIZE), guard=instruction.guard),)
        count = lanes
    operands = (*instruction.operands[:at], number, Blank(), count, *instruction.operands[at + 3 :])
    mnemonic = _spelled(instruction, read_instruction(instruction, scratch.test), FILLED)
    return (*before, _like(instruction, mnemonic, *operands, guard=instruction.guard))


# ---- declarations --------------------------------------------------------------------------------------------------


def _declared(variable: Variable) -> Variable:
    """A variable with its state space and type."""
    if variable.alias_of is not None:
        return variable
    space = Space.GLOBAL if variable.space is Space.GENERIC else variable.space
    if variable.type is not None:
        return replace(variable, space=space)
    if variable.maps:
        return replace(variable, space=space, type=DataType("b", 8), array=True)
    bits = DataType("b", 32) if space is Space.TENSOR else DataType("b", 64) if variable.mbarrier else UNTYPED
    return replace(variable, space=space, type=bits)


def _check_initial(test: LitmusTest) -> None:
    """What a table starts with, typed instructions see as it is."""
    numbers = [(value, v.span) for v in test.variables if v.type is None for value in v.init]
    numbers += [(initial.value, initial.span) for initial in test.registers if isinstance(initial.value, int)]
    for value, span in numbers:
        if UNTYPED.wrap(value) != value:
            raise InputError(f"{value} does not fit .s64", span, f"write {UNTYPED.wrap(value)}")


# ---- instructions --------------------------------------------------------------------------------------------------


def _to_blocks(instruction: Instruction, scratch: _Scratch, barriers: Keys) -> tuple[Instruction, ...]:
    if is_cta_barrier(instruction.mnemonic):
        return _barrier(instruction, scratch, barriers)
    reading = read_instruction(instruction, scratch.test)
    if reading.row.columns:
        return _dialect(instruction, reading, scratch)
    opcode = instruction.parts[0]
    if opcode == "ld" and not reading.words and isinstance(instruction.operands[1], Imm | Reg):
        return (replace(instruction, mnemonic="mov.s64"),)
    if opcode == "cvta" and not reading.words.get("space"):
        return (replace(instruction, mnemonic="mov.u64"),)
    position = memory_position(instruction)
    if position is not None:
        return (_access(instruction, reading, position, scratch.test),)
    mnemonic = _spelled(instruction, reading, FILLED)
    if opcode in BITWISE and "type" not in reading.words:
        bits = scratch.fresh("b")
        return (
            _like(instruction, mnemonic, bits, *instruction.operands[1:], guard=instruction.guard),
            _like(instruction, "cvt.s64.u64", instruction.operands[0], bits, guard=instruction.guard),
        )
    return (replace(instruction, mnemonic=mnemonic),)


def _dialect(instruction: Instruction, reading: Spelling, scratch: _Scratch) -> tuple[Instruction, ...]:
    """Words that only tables have."""
    if reading.head == "goto":
        return (replace(instruction, mnemonic="bra"),)
    if reading.head not in HEADS["beq"].heads:
        raise InputError(f"{reading.head} has no spelling in PTX", instruction.mnemonic_span, _NO_PTX)
    first, second, label = instruction.operands
    holds = scratch.fresh("p")
    steps = [_like(instruction, f"setp.{reading.head[1:]}.s64", holds, first, second)]
    if instruction.guard is not None:  # the comparison has no effect of its own; it counts where the guard holds
        otherwise = replace(instruction.guard, negated=not instruction.guard.negated)
        steps.append(_like(instruction, "mov.pred", holds, Imm(0), guard=otherwise))
    return (*steps, _like(instruction, "bra", label, guard=Guard(holds.name)))


def _access(instruction: Instruction, reading: Spelling, position: int, test: LitmusTest) -> Instruction:
    """A load, store or atomic: its memory operand in brackets, its type that of the element."""
    where = instruction.operands[position]
    if isinstance(where, Sym):
        instruction = _with(instruction, position, Mem(replace(where, offset=0), where.offset, where.span))
    if "type" in reading.words or all(slot.name != "type" for slot in reading.row.slots):
        return instruction
    width = _element(instruction, position, test)
    filled = FILLED if width == UNTYPED.width else tuple(f"{kind}{width}" for kind in "sub")
    mnemonic = _spelled(instruction, reading, filled)
    chosen = data_type(mnemonic.rpartition(".")[2]) or UNTYPED
    if (chosen != UNTYPED or not _untyped(test)) and not _modest(test, width):
        why = f".{chosen} may not hold every number of the test"
        if chosen == UNTYPED:
            why = "other instructions of the test have one"
        message = f"{instruction.mnemonic} has no type, and {why}"
        raise InputError(message, instruction.mnemonic_span, f"give it the type that is meant, such as .{chosen}")
    if chosen.width != width:
        raise InputError(f"PTX has no {instruction.mnemonic} of {width} bits", instruction.mnemonic_span)
    return replace(instruction, mnemonic=mnemonic)


def _element(instruction: Instruction, position: int, test: LitmusTest) -> int:
    """How many bits an access without type moves: an element of its variable."""
    variables = {variable.name: variable for variable in test.variables}
    where = instruction.operands[position]
    base = where.base if isinstance(where, Mem) else where
    meant = [root_of(variables, base.name)] if isinstance(base, Sym) else list(variables.values())
    widths = {(variable.type or UNTYPED).width for variable in meant if variable.alias_of is None}
    if len(widths) != 1:
        hint = "give it a type"
        raise InputError(
            f"{instruction.mnemonic} may access elements of different sizes", instruction.mnemonic_span, hint
        )
    return widths.pop()


def _untyped(test: LitmusTest) -> bool:
    """True if the test holds signed 64-bit numbers only."""
    types = (
        data_type(word)
        for instruction in all_instructions(test)
        for slot, word in read_instruction(instruction, test).words.items()
        if slot in ("type", "source", "target")
    )
    return all(type == UNTYPED for type in types) and all(v.type in (None, UNTYPED) for v in test.variables)


def _modest(test: LitmusTest, width: int) -> bool:
    """True if all types of that width hold every number of the test alike."""
    bodies = list(all_instructions(test))
    numbers = [operand.value for instruction in bodies for operand in instruction.operands if isinstance(operand, Imm)]
    numbers += [value for variable in test.variables for value in variable.init]
    numbers += [initial.value for initial in test.registers if isinstance(initial.value, int)]
    surprising = any(part in SURPRISING for instruction in bodies for part in instruction.parts)
    return not surprising and all(0 <= number < 1 << (width - 2) for number in numbers)


def _spelled(instruction: Instruction, reading: Spelling, filled: tuple[str, ...]) -> str:
    """The mnemonic with what blocks have to say. Raises InputError if PTX has none such."""
    slots = [s for s in reading.row.slots if s.need is Need.BLOCKS and s.name not in reading.words]
    fault: Refusal | None = None
    for words in product(*([word for word in filled if word in slot.words] for slot in slots)):
        filled_words = {**reading.words, **{slot.name: word for slot, word in zip(slots, words, strict=True)}}
        mnemonic = ".".join([instruction.mnemonic, *words])
        if reading.row.ordered:
            mnemonic = ".".join(
                [reading.head, *(filled_words[slot.name] for slot in reading.row.slots if slot.name in filled_words)]
            )
        result = read_mnemonic(mnemonic, Layout.BLOCKS, HEADS)
        if isinstance(result, Spelling):
            return mnemonic
        fault = fault or result
    if fault is None:
        raise InputError(
            f"{instruction.mnemonic} has no type that goes with its operands", instruction.mnemonic_span, "name one"
        )
    raise InputError(fault.message, instruction.span_of_part(fault.part), fault.hint)
