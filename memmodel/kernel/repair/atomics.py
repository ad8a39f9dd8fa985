"""A load and a store of one place in a basic block of a kernel, as one atomic operation.

In: a finding about two accesses, the entry. Out: changes of both instructions. What may become one is settled in
`repair.exchanging.one_atomic`; here the address is a register that nothing writes in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.isa.lowered import lowered
from memmodel.kernel.flow.polling import basic_blocks
from memmodel.kernel.order.missing_order import MissingOrder
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.litmus.syntax import Guard, Instruction
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Mem, Register
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR
from memmodel.repair.exchanging.one_atomic import operation

OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^\s,\[\]{};]+")
SPACES = ("shared", "shared::cta", "shared::cluster", "global")


@dataclass(frozen=True, slots=True)
class OneAtomic:
    """`load` becomes `text`, and `store` goes."""

    load: PtxInstruction
    store: PtxInstruction
    text: str
    what: str
    cost: float


def atomics(finding: KernelFinding, entry: PtxFunction) -> Iterator[OneAtomic]:
    """The atomic for a store that a finding names, and the load before it."""
    if finding.reason != MissingOrder.SYNCHRONIZATION.value or len(finding.sides) < 2:
        return
    body, begins = entry.body or (), basic_blocks(entry)[0]
    scope = "cta" if finding.sides[0].cta == finding.sides[-1].cta else "gpu"
    for store in dict.fromkeys(side.instruction for side in finding.sides if side.instruction.words[0] == "st"):
        at = store.number
        while at not in begins and at > 0:
            at -= 1
            load = body[at]
            if _address(load) == _address(store) != "":
                between = body[at + 1 : store.number]
                yield from _one(load, store, between, scope) if load.words[0] == "ld" else ()
                break
            if not lowered(load).computes:
                break


def _one(
    load: PtxInstruction, store: PtxInstruction, between: tuple[PtxInstruction, ...], scope: str
) -> Iterator[OneAtomic]:
    register, memory = _read(load).operands
    base = memory.base if isinstance(memory, Mem) else None
    if (
        not isinstance(register, Register)
        or not register.span
        or load.guard is not None
        or load.words[-1][1:] != store.words[-1][1:]
    ):
        return
    if isinstance(base, Register) and any(base.slot in lowered(it).writes for it in (load, *between)):
        return
    found = operation(register, load.words[-1], _read(store), [_read(it) for it in between])
    if found is None:
        return
    word, kind, operands = found
    space = tuple(name for name in load.words if name in SPACES)
    opcode = ".".join(("atom", "relaxed", scope, *space, word, kind))
    text = f"{opcode} {register.span.text}, {memory.span.text}, {operands}"
    price = 2 * OTHER + SCOPE_COST[scope] * SEM_FACTOR["relaxed"]
    yield OneAtomic(load, store, text, f"{load.opcode} and {store.opcode} become {opcode}", price)


def _address(instruction: PtxInstruction) -> str:
    """The place of a scalar access, as it is written; empty for other instructions."""
    places = [operand for operand in instruction.operands if isinstance(operand, Mem)]
    plain = instruction.words[0] in ("ld", "st") and len(instruction.operands) == 2
    scalar = plain and not {"v2", "v4", "v8", "async", "bulk"} & set(instruction.words)
    text = instruction.span.text
    return "".join(text[text.index("[") : text.index("]")].split()) if scalar and len(places) == 1 else ""


def _read(instruction: PtxInstruction) -> Instruction:
    """The same instruction, as a litmus test has it: each operand knows where it stands."""
    guard = None if instruction.guard is None else Guard(instruction.guard.name, instruction.negated)
    source, begin = instruction.span.source, instruction.span.start + instruction.span.text.index(instruction.opcode)
    texts = OPERAND.finditer(source.text, begin + len(instruction.opcode), instruction.span.end)
    spans = [source.span(*match.span()) for match in texts]
    operands = instruction.operands
    if len(spans) == len(operands):
        operands = tuple(replace(operand, span=span) for operand, span in zip(operands, spans, strict=True))
    return Instruction(instruction.opcode, operands, guard, instruction.span)


__all__ = ["OneAtomic", "atomics"]
