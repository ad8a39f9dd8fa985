"""A function of a module executed by one thread with numbers, however often a loop turns.

In: function, what its loads and its tests of mbarrier objects return. Out: `Executed`. Other operations have no result
and are only noted. What nothing says, as the clock, is a number by chance, equal in two executions that are alike.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known
from memmodel.program.unknowns import evaluated
from memmodel.ptx.module.syntax import PtxFunction

SET_UP = 7
"""The instructions of `samples.kernel_text` before its body."""

Step = tuple[int, tuple[int, ...]]
"""The number of an instruction, and the values of the registers that its operands read."""


class Executed(NamedTuple):
    """One thread to its end. `end`: exit, trap, "no end", or "no more answers". `first`: the registers at the first
    load or test.
    """

    steps: list[Step]
    end: str
    first: Known


@cache
def noise(*key: int) -> int:
    """A small number."""
    return random.Random(repr(key)).randrange(4)


def asks(does: LoweredInstruction) -> bool:
    """True if it has a result that is not computed."""
    return does.tests_phase or does.loads


def execute(
    function: PtxFunction, seed: int, answer: Callable[[Step], int | None], other: Callable[[Step], None] | None = None
) -> Executed:  # fmt: skip
    """Execute a function. `answer`: the result of a load or of a test; None to end there. `other`: is told of what
    neither asks nor computes.
    """
    body, at = body_of(function), SET_UP
    registers = {slot: noise(seed, slot) & 1 for does in body for slot in (*does.writes, *does.reads)}
    steps, times, first = list[Step](), Counter[int](), Known()
    while sum(times.values()) < 400:
        if at >= len(body):
            return Executed(steps, "exit", first)
        does = body[at]
        times[at] += 1
        guard = does.instruction.guard
        if guard is not None and bool(registers[guard.slot] & 1) == does.instruction.negated:
            at += 1
            continue
        step = at, tuple(registers[slot] for slot in does.sources)
        results: dict[int, int] = {}
        if asks(does):
            first = first or tuple(sorted(registers.items()))
            result = answer(step)
            if result is None:
                return Executed(steps, "no more answers", first)
            results[does.writes[0]] = result
        elif does.computes:
            named = {str(slot): value for slot, value in registers.items()}
            for slot in does.writes:
                value = evaluated(does.values[slot], named) if slot in does.values else None
                results[slot] = noise(seed, at, times[at]) if value is None else value
        elif other is not None:
            other(step)
        steps.append(step)
        if does.traps or does.ends:
            return Executed(steps, "trap" if does.traps else "exit", first)
        registers |= results
        at = does.target if does.target is not None else at + 1
    return Executed(steps, "no end", first)
