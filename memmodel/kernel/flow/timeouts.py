"""Branches of polling loops that a time-out takes: one side ends in a trap, and the run goes on with the other one.

In: PtxFunction. Out: `LeftOut` by the number of the branch. Such a branch depends on the time or on a register in which
the loop counts, and not on what was polled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.kernel.flow.known_values import following
from memmodel.kernel.flow.paths import PURE, doomed
from memmodel.kernel.flow.polling import time_outs
from memmodel.kernel.flow.registers import registers, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget, Special

TIME_OUT = "the time-out that ends at line {} is left out"
"""What a note says."""

TIMES = ("%clock", "%globaltimer")
POLLS = ("acquire", "relaxed", "volatile", "mmio")


class LeftOut(NamedTuple):
    """The trap, and whether the other side is where the branch jumps to."""

    trap: int
    jumps: bool


def left_out(entry: PtxFunction) -> dict[int, LeftOut]:
    """The time-outs of a function."""
    body, found = entry.body or (), dict[int, LeftOut]()
    if not any(one.words[0] == "trap" for one in body):
        return found
    for one in body:
        target = one.operands[0] if one.words[0] == "bra" and one.operands else None
        if one.guard is None or not isinstance(target, JumpTarget):
            continue
        sides = target.at, one.number + 1
        traps = [doomed(body, side) for side in sides]
        trap = next((each for each in traps if each is not None), None)
        if trap is not None and None in traps and _by_time(body, one, sides[traps.index(None)]):
            found[one.number] = LeftOut(trap, traps.index(None) == 0)
    return found


class TimeOuts:
    """The time-outs of an entry, which do not come in a run. `notes`: where what was left out is said."""

    def __init__(self, entry: PtxFunction, notes: dict[str, None]) -> None:
        self._body, self._left_out, self._notes = entry.body or (), left_out(entry), notes

    def jumps(self, branch: int) -> bool | None:
        """Does a branch jump since the time-out does not come? None for any other branch."""
        out = self._left_out.get(branch)
        if out is not None:
            self._notes.setdefault(f"line {self._body[branch].line}: {TIME_OUT.format(self._body[out.trap].line)}")
        return None if out is None else out.jumps


def notes(entry: PtxFunction, tests: Iterable[int], loads: Iterable[int]) -> list[str]:
    """What is left out after tests of mbarrier objects and loads that poll, as sentences."""
    body = entry.body or ()
    found = {test.number: trap.number for test, trap in time_outs(entry, tests)}
    for load in loads:
        inside = _around(body, load + 1)
        traps = [trap for at in sorted(inside) if (trap := doomed(body, at)) is not None]
        found |= {load: traps[0]} if traps and load in inside else {}
    return [f"line {body[at].line}: {TIME_OUT.format(body[trap].line)}" for at, trap in sorted(found.items())]


def _by_time(body: tuple[PtxInstruction, ...], branch: PtxInstruction, other: int) -> bool:
    """Does the other side of a branch lead back to what is polled, and does the branch not depend on that?"""
    polled = [at for at in _around(body, other) if _polls(body[at])]
    loops = [(at, inside) for at in polled if branch.number in (inside := _around(body, at + 1))]
    guard = -1 if branch.guard is None else branch.guard.slot
    return bool(loops) and all(
        guard in _told_by(body, inside, _counts(body, inside))
        and guard not in _told_by(body, inside - {at}, set(written(body[at])))
        for at, inside in loops
    )


def _polls(one: PtxInstruction) -> bool:
    if one.words[0] == "mbarrier":
        return one.kind in ("test_wait", "try_wait")
    return one.words[0] == "ld" and any(word in POLLS for word in one.words)


def _around(body: tuple[PtxInstruction, ...], start: int) -> set[int]:
    """The instructions without effect that are reached from a place, and the first others."""
    waiting, found = [start], set[int]()
    while waiting:
        at = waiting.pop()
        if at < len(body) and at not in found:
            found.add(at)
            waiting += [after for after, _ in following(body, (at, ()))] if body[at].words[0] in PURE else []
    return found


def _told_by(body: tuple[PtxInstruction, ...], inside: set[int], start: set[int]) -> set[int]:
    """The registers that may depend on some, as instructions of a loop compute them."""
    found, more = set(start), True
    while more:
        more = False
        for at in inside:
            one = body[at]
            used = {slot for operand in one.operands[1:] for slot in registers(operand)}
            used |= set() if one.guard is None else {one.guard.slot}
            if one.words[0] in PURE and used & found and not set(written(one)) <= found:
                found |= set(written(one))
                more = True
    return found


def _counts(body: tuple[PtxInstruction, ...], inside: set[int]) -> set[int]:
    """The registers that a loop fills with the time, or counts in."""
    found = set[int]()
    for one in (body[at] for at in inside if body[at].words[0] in PURE):
        if any(isinstance(each, Special) and each.name.startswith(TIMES) for each in one.operands):
            found |= set(written(one))
        mine = set(written(one))
        if mine and _told_by(body, inside, mine) & {s for each in one.operands[1:] for s in registers(each)}:
            found |= mine
    return found
