"""Time-outs of polling loops: branches of which one side ends in a trap. The run continues with the other side.

In: PtxFunction. Out: `LeftOut` by the number of the branch. Such a branch depends on the time or on a register in which
the loop counts, and not on what was polled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.kernel.flow.paths import doomed, reached
from memmodel.kernel.flow.polling import time_outs
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Special
from memmodel.ptx.vocabulary import Sem

TIME_OUT = "the time-out that ends at line {} does not come"
WITHOUT_TIME_OUT = "a loop that only waits"
"""The assumption about a time-out, and what it takes to drop it."""

TIMES = ("%clock", "%globaltimer")


class LeftOut(NamedTuple):
    """The trap of a time-out, and whether the run takes the branch."""

    trap: int
    jumps: bool


def left_out(entry: PtxFunction) -> dict[int, LeftOut]:
    """The time-outs of a function."""
    body, outs = body_of(entry), dict[int, LeftOut]()
    if not any(does.traps for does in body):
        return outs
    for branch, does in enumerate(body):
        if does.instruction.guard is None or does.target is None:
            continue
        sides = does.target, branch + 1
        traps = [doomed(body, side) for side in sides]
        trap = next((candidate for candidate in traps if candidate is not None), None)
        if trap is not None and None in traps and _by_time(body, branch, sides[traps.index(None)]):
            outs[branch] = LeftOut(trap, traps.index(None) == 0)
    return outs


class TimeOuts:
    """The time-outs of an entry, which do not happen in a run. `assumed`: collects what was left out."""

    def __init__(self, entry: PtxFunction, assumed: dict[str, str]) -> None:
        self._body, self._left_out, self._assumed = body_of(entry), left_out(entry), assumed

    def jumps(self, branch: int) -> bool | None:
        """True if the run takes a branch of a time-out, False if not; None for any other branch."""
        out = self._left_out.get(branch)
        if out is not None:
            line, trap_line = (self._body[at].instruction.line for at in (branch, out.trap))
            self._assumed.setdefault(f"line {line}: {TIME_OUT.format(trap_line)}", WITHOUT_TIME_OUT)
        return None if out is None else out.jumps


def not_coming(entry: PtxFunction, tests: Iterable[int], loads: Iterable[int]) -> dict[str, str]:
    """The time-outs after tests of mbarrier objects and loads that poll, as assumptions with what drops them."""
    body = body_of(entry)
    trap_of = dict(time_outs(entry, tests))
    for load in loads:
        inside = _around(body, load + 1)
        traps = [trap for at in sorted(inside) if (trap := doomed(body, at)) is not None]
        trap_of |= {load: traps[0]} if traps and load in inside else {}
    lines = ((body[at].instruction.line, body[trap].instruction.line) for at, trap in sorted(trap_of.items()))
    return {f"line {line}: {TIME_OUT.format(trap_line)}": WITHOUT_TIME_OUT for line, trap_line in lines}


def _by_time(body: Body, branch: int, other: int) -> bool:
    """True if the other side of a branch leads back to what is polled, and the branch does not depend on that."""
    polled = [at for at in _around(body, other) if _polls(body[at])]
    loops = [(at, inside) for at in polled if branch in (inside := _around(body, at + 1))]
    guards = body[branch].reads
    return bool(loops) and all(
        guards <= _dependent(body, inside, _counts(body, inside))
        and guards.isdisjoint(_dependent(body, inside - {at}, body[at].writes))
        for at, inside in loops
    )


def _polls(does: LoweredInstruction) -> bool:
    strong = does.access is not None and does.access.sem is not Sem.WEAK
    return does.tests_phase or (does.loads and strong)


def _around(body: Body, start: int) -> set[int]:
    """The instructions without effect that are reached from a place, and the first with an effect."""
    return reached(body, [start], lambda does: does.without_effect)


def _dependent(body: Body, inside: set[int], start: Iterable[int]) -> set[int]:
    """The registers that may depend on some registers, by the instructions of a loop."""
    dependent, more = set(start), True
    while more:
        more = False
        for at in inside:
            does = body[at]
            if does.without_effect and does.reads & dependent and not dependent.issuperset(does.writes):
                dependent.update(does.writes)
                more = True
    return dependent


def _counts(body: Body, inside: set[int]) -> set[int]:
    """The registers that hold the time in a loop, or that it counts in."""
    counters = set[int]()
    for does in (body[at] for at in inside if body[at].without_effect):
        operands = does.instruction.operands
        timed = any(isinstance(operand, Special) and operand.name.startswith(TIMES) for operand in operands)
        if timed or not _dependent(body, inside, does.writes).isdisjoint(does.sources):
            counters.update(does.writes)
    return counters
