"""Lanes of a warp that come to one instruction in different rounds of a loop.

In: the code of a function. Out: `RoundsApart`. What a warp executes together it executes in one round: a lane that goes
around the instruction in a round, and comes to it in the next one, has not evaluated a condition as the others have
(`.aligned`, "should only be used if it is known that all threads in the warp evaluate the condition identically").
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.kernel.machine.code import Code
from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Machine

RULE = "undefined-instruction"


class RoundsApart:
    """Counts the rounds of loops around instructions that a warp executes together, where it goes round in parts.

    `branches`: the branches that begin a next round, from behind such an instruction to its front. A loop may have
    several (`continue`): those to one place begin a round of one loop.
    """

    def __init__(self, code: Sequence[Code]) -> None:
        firsts = {at: min(one.does.targets, default=at + 1) for at, one in enumerate(code)}
        back = [(at, first) for at, first in firsts.items() if first <= at]
        together = [at for at, one in enumerate(code) if one.collective is not None]
        self._code = code
        self._around: dict[int, dict[int, list[int]]] = {at: {} for at in together}
        for at, loops in self._around.items():
            for end, first in back:
                if first <= at <= end:
                    loops.setdefault(first, []).append(end)
        self.branches = frozenset(end for loops in self._around.values() for ends in loops.values() for end in ends)

    def jumped(self, warp: Warp, lanes: Lanes, branch: int) -> None:
        """Lanes begin the next round. Where all do, they stay as far apart as they were."""
        if len(lanes) < warp.live.bit_count():
            rounds = warp.rounds.setdefault(branch, [0] * LANES)
            for lane in lanes:
                rounds[lane] += 1

    def met(self, machine: Machine, warp: Warp, lanes: Lanes, at: int) -> None:
        """Lanes have executed an instruction together: they have to be in one round of each loop around it."""
        for ends in self._around[at].values():
            counted = [warp.rounds[branch] for branch in ends if branch in warp.rounds]
            if len({sum(rounds[lane] for rounds in counted) for lane in lanes}) > 1:
                instruction, end = self._code[at].instruction, self._code[max(ends)].instruction
                which = f"different rounds of the loop that ends at line {end.line}"
                machine.problem(RULE, f"lanes of a warp execute {instruction.opcode} in {which}", instruction)
        warp.rounds.clear()
