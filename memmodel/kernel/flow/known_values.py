"""Where an instruction leads, with the registers whose value is known.

In: instructions, values of registers. Out: `following`, `constants`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.program.unknowns import evaluated
from memmodel.ptx.module.syntax import PtxFunction

Known = tuple[tuple[int, int], ...]
State = tuple[int, Known]
"""The number of an instruction, and what is known of registers there."""


def following(body: Body, state: State) -> list[State]:
    """Where an instruction leads, with what is known of registers."""
    at, known = state
    does, values = body[at], dict(known)
    guard = does.instruction.guard
    held = None if guard is None else values.get(guard.slot)
    runs = guard is None if held is None else bool(held) != does.instruction.negated
    may_run = runs or held is None
    if does.jumps:
        ways = [(does.target, known)] if may_run and does.target is not None else []
        return ways if runs else [*ways, (at + 1, known)]
    if not may_run or not does.writes:
        return [(at + 1, known)]
    results = _results(does, values) if runs else {}
    for slot in does.writes:
        values.pop(slot, None)
    return [(at + 1, tuple(sorted((values | results).items())))]


@lru_cache(maxsize=8)
def constants(entry: PtxFunction) -> frozenset[int]:
    """The registers that hold one number whenever they are read: each instruction that writes them leaves the same.
    Compilers load such a number again in each round of a loop.
    """
    left: dict[int, set[int | None]] = {}
    for does in body_of(entry):
        results = _results(does, {})
        for slot in does.writes:
            left.setdefault(slot, set()).add(results.get(slot))
    return frozenset(slot for slot, values in left.items() if len(values) == 1 and None not in values)


def _results(does: LoweredInstruction, values: Mapping[int, int]) -> dict[int, int]:
    """The registers that an instruction leaves with a value that follows from what is known."""
    known = {str(slot): value for slot, value in values.items()}
    results = {slot: evaluated(function, known) for slot, function in does.values.items()}
    return {slot: value for slot, value in results.items() if value is not None}
