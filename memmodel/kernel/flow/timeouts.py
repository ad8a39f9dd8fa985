"""Branches of polling loops that a time-out takes: one side ends in a trap, and the run continues with the other side.

In: PtxFunction. Out: `LeftOut` by the number of the branch. Such a branch depends on the time or on a register in which
the loop counts, and not on what was polled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.isa.lowered import registers
from memmodel.isa.module import tests_phase
from memmodel.kernel.flow.known_values import following
from memmodel.kernel.flow.paths import PURE, doomed
from memmodel.kernel.flow.polling import time_outs
from memmodel.kernel.flow.registers import written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget, Special

TIME_OUT = "the time-out that ends at line {} is left out"
"""The note on a time-out."""

TIMES = ("%clock", "%globaltimer")
POLLS = ("acquire", "relaxed", "volatile", "mmio")


class LeftOut(NamedTuple):
    """The trap of a time-out, and whether the run takes the branch."""

    trap: int
    jumps: bool


def left_out(entry: PtxFunction) -> dict[int, LeftOut]:
    """The time-outs of a function."""
    body, outs = entry.body or (), dict[int, LeftOut]()
    if not any(instruction.words[0] == "trap" for instruction in body):
        return outs
    for instruction in body:
        target = instruction.operands[0] if instruction.words[0] == "bra" and instruction.operands else None
        if instruction.guard is None or not isinstance(target, JumpTarget):
            continue
        sides = target.at, instruction.number + 1
        traps = [doomed(body, side) for side in sides]
        trap = next((candidate for candidate in traps if candidate is not None), None)
        if trap is not None and None in traps and _by_time(body, instruction, sides[traps.index(None)]):
            outs[instruction.number] = LeftOut(trap, traps.index(None) == 0)
    return outs


class TimeOuts:
    """The time-outs of an entry, which do not happen in a run. `notes`: collects what was left out."""

    def __init__(self, entry: PtxFunction, notes: dict[str, None]) -> None:
        self._body, self._left_out, self._notes = entry.body or (), left_out(entry), notes

    def jumps(self, branch: int) -> bool | None:
        """True if the run takes a branch of a time-out, False if not; None for any other branch."""
        out = self._left_out.get(branch)
        if out is not None:
            self._notes.setdefault(f"line {self._body[branch].line}: {TIME_OUT.format(self._body[out.trap].line)}")
        return None if out is None else out.jumps


def notes(entry: PtxFunction, tests: Iterable[int], loads: Iterable[int]) -> list[str]:
    """What is left out after tests of mbarrier objects and loads that poll, as sentences."""
    body = entry.body or ()
    trap_of = {test.number: trap.number for test, trap in time_outs(entry, tests)}
    for load in loads:
        inside = _around(body, load + 1)
        traps = [trap for at in sorted(inside) if (trap := doomed(body, at)) is not None]
        trap_of |= {load: traps[0]} if traps and load in inside else {}
    return [f"line {body[at].line}: {TIME_OUT.format(body[trap].line)}" for at, trap in sorted(trap_of.items())]


def _by_time(body: tuple[PtxInstruction, ...], branch: PtxInstruction, other: int) -> bool:
    """True if the other side of a branch leads back to what is polled, and the branch does not depend on that."""
    polled = [at for at in _around(body, other) if _polls(body[at])]
    loops = [(at, inside) for at in polled if branch.number in (inside := _around(body, at + 1))]
    guard = -1 if branch.guard is None else branch.guard.slot
    return bool(loops) and all(
        guard in _dependent(body, inside, _counts(body, inside))
        and guard not in _dependent(body, inside - {at}, set(written(body[at])))
        for at, inside in loops
    )


def _polls(instruction: PtxInstruction) -> bool:
    loads = instruction.words[0] == "ld" and any(word in POLLS for word in instruction.words)
    return loads or tests_phase(instruction.opcode)


def _around(body: tuple[PtxInstruction, ...], start: int) -> set[int]:
    """The instructions without effect that are reached from a place, and the first with an effect."""
    waiting, reached = [start], set[int]()
    while waiting:
        at = waiting.pop()
        if at < len(body) and at not in reached:
            reached.add(at)
            waiting += [after for after, _ in following(body, (at, ()))] if body[at].words[0] in PURE else []
    return reached


def _dependent(body: tuple[PtxInstruction, ...], inside: set[int], start: set[int]) -> set[int]:
    """The registers that may depend on some registers, by the instructions of a loop."""
    dependent, more = set(start), True
    while more:
        more = False
        for at in inside:
            instruction = body[at]
            used = {slot for operand in instruction.operands[1:] for slot in registers(operand)}
            used |= set() if instruction.guard is None else {instruction.guard.slot}
            if instruction.words[0] in PURE and used & dependent and not set(written(instruction)) <= dependent:
                dependent |= set(written(instruction))
                more = True
    return dependent


def _counts(body: tuple[PtxInstruction, ...], inside: set[int]) -> set[int]:
    """The registers that hold the time in a loop, or that it counts in."""
    counters = set[int]()
    for instruction in (body[at] for at in inside if body[at].words[0] in PURE):
        if any(isinstance(operand, Special) and operand.name.startswith(TIMES) for operand in instruction.operands):
            counters |= set(written(instruction))
        mine = set(written(instruction))
        if mine and _dependent(body, inside, mine) & {
            s for operand in instruction.operands[1:] for s in registers(operand)
        }:
            counters |= mine
    return counters
