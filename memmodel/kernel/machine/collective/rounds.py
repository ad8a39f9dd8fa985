"""Lanes of a warp that come to one instruction in different rounds of a loop.

In: an entry, the jumps back that lanes take. Out: `RoundsApart`. What a warp executes together it
executes in one round: a lane that goes around the instruction in a round, and comes to it in the next one, has not
evaluated a condition as the others have (`.aligned`, "should only be used if it is known that all threads in the warp
evaluate the condition identically").
"""

from __future__ import annotations

from memmodel.kernel.flow.natural_loops import repeated
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Machine
from memmodel.ptx.module.syntax import PtxFunction

RULE = "undefined-instruction"


class RoundsApart:
    """Counts the rounds of loops that lanes of a warp begin apart from others."""

    def __init__(self, entry: PtxFunction) -> None:
        self._entry = entry

    def jumped(self, warp: Warp, lanes: Lanes, branch: int, head: int) -> None:
        """Lanes jump back: they have left all loops but this one and those around the branch. Where all lanes of the
        warp do, they stay as far apart as they were.
        """
        for (end, other), rounds in warp.rounds.items():
            if other != head and branch not in repeated(self._entry, end, other):
                for lane in lanes:
                    rounds[lane] = 0
        if len(lanes) < warp.live.bit_count() and repeated(self._entry, branch, head):
            rounds = warp.rounds.setdefault((branch, head), [0] * LANES)
            for lane in lanes:
                rounds[lane] += 1

    def met(self, machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> None:
        """Lanes have executed an instruction together: they have to be in one round of each loop around it, and around
        the calls that they are in. A loop may begin its next round in several places (`continue`).
        """
        body, places = self._entry.body or (), (group.at, *group.frames)
        around: dict[int, list[int]] = {}
        for end, head in warp.rounds:
            if not repeated(self._entry, end, head).isdisjoint(places):
                around.setdefault(head, []).append(end)
        for head, ends in around.items():
            if len({sum(warp.rounds[end, head][lane] for end in ends) for lane in lanes}) > 1:
                which = f"different rounds of the loop that ends at line {body[max(ends)].line}"
                instruction = body[group.at]
                machine.problem(RULE, f"lanes of a warp execute {instruction.opcode} in {which}", instruction)
        warp.rounds.clear()
