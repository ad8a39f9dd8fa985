"""Instructions that threads execute together: a warp, or the four warps of a warpgroup.

In: the row of an instruction. Out: `Collective`, which its lanes pass before and after it. What has to hold stands in
the row: who executes it together, which operands are equal in all of these, whether lanes may have exited. Settled
here: how a run finds that it does not hold. The warps of a warpgroup do not wait for one another, so that what each of
them executed is compared when the run is over (`Warpgroups`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.labels import Mark, Marker
from memmodel.isa.lowered import LoweredInstruction
from memmodel.isa.module import spelling_of, uniform_values
from memmodel.isa.rows.row import Together
from memmodel.isa.rows.spelling import Spelling
from memmodel.kernel.machine.collective.warpgroups import Executed
from memmodel.kernel.machine.parts import GoneLanes, Lanes, Warp
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

RULE = "undefined-instruction"


@dataclass(frozen=True, slots=True)
class Collective:
    """What has to hold of the threads that execute an instruction together."""

    instruction: PtxInstruction
    head: str
    together: Together
    live: bool
    identity: object
    uniform: tuple[tuple[str, Get], ...]

    def gathered(self, warp: Warp, lanes: Lanes) -> bool:
        """True if all lanes of the warp that have not exited are there."""
        if self.live and len(warp.threads) < LANES:
            # Pages about exited lanes and fragments count 32 lanes, and say nothing of a warp that begins with fewer.
            why = f"what {self.head} does in a warp of {len(warp.threads)} threads is not specified"
            raise Refused(why, self.instruction.span)
        return len(lanes) == LANES or sum(1 << lane for lane in lanes) == warp.live

    def executed(self, machine: Machine, warp: Warp, lanes: Lanes) -> None:
        """Check what the row asks for, as the instruction is executed."""
        if self.live and len(lanes) < len(warp.threads):
            message = f"{self.head} is executed by a warp of which lanes have exited"
            machine.problem(RULE, message, self.instruction)
        passed_over = self.instruction.number in warp.passed_over
        if len(lanes) < len(warp.threads) and (passed_over or any(_acted(machine, warp, it) for it in warp.exited)):
            message = f"{self.head} is executed by some lanes of a warp, and others went another way and have exited"
            machine.problem(RULE, message, self.instruction)
        values = []
        for name, get in self.uniform:
            row = get(warp)
            found = {row[lane] for lane in lanes}
            if len(found - {None}) > 1:
                machine.problem(RULE, f"{name} of {self.head} is not the same in all lanes", self.instruction)
            elif len(found) > 1:
                machine.unknown(f"whether {name} of {self.head} is the same in all lanes", self.instruction)
            values.append((name, row[lanes[0]]))
        if self.together is Together.WARPGROUP:
            machine.warpgroups.add(warp, Executed(self.head, self.instruction, self.identity, tuple(values)))


def _acted(machine: Machine, warp: Warp, gone: GoneLanes) -> bool:
    """True if lanes that have exited did something after they had gone another way than the others."""
    threads = [warp.threads[lane] for lane in gone.lanes]
    numbers = {thread.number for thread in threads}
    single = machine.run.single[gone.since.single : gone.until.single]
    together = machine.run.lanes[gone.since.lanes : gone.until.lanes]
    return (
        any(access.thread in numbers for access in single)
        or any(not numbers.isdisjoint(accesses.threads) for accesses in together)
        or any(
            event.time > gone.since.time and event.label != Mark(Marker.EXIT)
            for thread in threads
            for event in thread.events
        )
    )


def collective_of(interpreter: Interpreter, does: LoweredInstruction) -> Collective | None:
    """What the row of an instruction says of the threads that execute it together; None if each does for itself."""
    instruction, spelling = does.instruction, spelling_of(does.instruction.opcode)
    if not isinstance(spelling, Spelling) or spelling.row.together is Together.THREAD or not does.aligned:
        return None
    row = spelling.row
    uniform = tuple((name, interpreter.value(expr)) for name, expr in uniform_values(instruction))
    identity = (instruction.opcode, instruction.operands) if row.elsewhere else instruction.number
    return Collective(instruction, spelling.head, row.together, row.live, identity, uniform)
