"""What the warps of each warpgroup executed together, compared when a run is over.

In: the instructions as warps execute them. Out: why a warpgroup did not execute the same ("Warpgroup": "all threads in
the warpgroup must execute the same" instruction).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memmodel.kernel.machine.parts import Cta, Warp
from memmodel.kernel.machine.rows import LANES, Value
from memmodel.ptx.module.syntax import PtxInstruction

WARPS = 4
"""Warps of a warpgroup, whose first one has a rank that is a multiple of 4 ("Warpgroup")."""


@dataclass(frozen=True, slots=True)
class Executed:
    """An instruction that a warp executed for its warpgroup, and the values of the operands that have to be equal.

    `head`: of its row. `identity`: what has to be the same for it to be the same instruction.
    """

    head: str
    instruction: PtxInstruction
    identity: object
    uniform: tuple[tuple[str, Value], ...]


@dataclass(slots=True)
class Warpgroups:
    """What the warps of each warpgroup executed together, in order, by the first word of the instruction: those with
    one first word count and complete one another.
    """

    executed: dict[tuple[int, int, str], dict[int, list[Executed]]] = field(default_factory=dict)

    def add(self, warp: Warp, executed: Executed) -> None:
        """Note an instruction of a warp."""
        family = executed.head.partition(".")[0]
        group = self.executed.setdefault((warp.cta.number, warp.number // WARPS, family), {})
        group.setdefault(warp.number, []).append(executed)

    def differences(self, ctas: list[Cta], *, ended: bool) -> Iterator[tuple[str, PtxInstruction]]:
        """Why a warpgroup did not execute its instructions together, and where. `ended`: no thread waits."""
        threads = {cta.number: len(cta.threads) for cta in ctas}
        for (cta, number, _), by_warp in self.executed.items():
            first = next(iter(by_warp.values()))[0]
            warps = min(WARPS, -(-threads[cta] // LANES) - WARPS * number)
            whole = min(WARPS * LANES, threads[cta] - WARPS * LANES * number)
            if whole < WARPS * LANES:
                which = f"a warpgroup of {whole} threads, and not of {WARPS * LANES}"
                yield f"{first.head} is executed by {which}", first.instruction
                continue
            sequences = [by_warp.get(WARPS * number + warp, []) for warp in range(warps)]
            yield from _apart(sequences, WARPS * number, ended=ended)


def _apart(sequences: list[list[Executed]], first: int, *, ended: bool) -> Iterator[tuple[str, PtxInstruction]]:
    """The first place at which the warps of a warpgroup differ."""
    for turn in range(max(map(len, sequences))):
        present = {first + warp: items[turn] for warp, items in enumerate(sequences) if turn < len(items)}
        sample = next(iter(present.values()))
        head = " and ".join(sorted({executed.head for executed in present.values()}))
        if len(present) < len(sequences):
            if ended:
                warps = ", ".join(map(str, present))
                yield f"{head} is executed by warp {warps} of its warpgroup alone", sample.instruction
            return
        if len({(executed.head, executed.identity) for executed in present.values()}) > 1:
            lines = sorted({executed.instruction.line for executed in present.values()})
            where = " and ".join(map(str, lines))
            yield f"the warps of a warpgroup execute different instructions {head}, lines {where}", sample.instruction
            return
        for place, (name, _) in enumerate(sample.uniform):
            values = {executed.uniform[place][1] for executed in present.values()} - {None}
            if len(values) > 1:
                yield f"{name} of {head} is not the same in all warps of the warpgroup", sample.instruction
                return
