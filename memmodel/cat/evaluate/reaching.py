"""What some events reach, or do not reach any more.

In: rows. Out: sets of events.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.base.rows import Rows, bits

FEW_TARGETS, STEPS = 24, 8
"""So many targets are looked at one by one, and all where there are so many times more steps than targets."""


def lost_of(targets: int, steps: int, rows: Rows, back: Rows) -> int:
    """The targets to which none of the steps leads. `back`: the inverse of the rows."""
    left, lost, looked = targets, 0, 0
    while left:
        if looked == FEW_TARGETS and steps.bit_count() < STEPS * left.bit_count():
            return lost | _without_rows(left, steps, rows)
        looked += 1
        low = left & -left
        step = back[low.bit_length() - 1] & steps
        if step:
            left &= ~rows[(step & -step).bit_length() - 1]
        else:
            lost |= low
            left ^= low
    return lost


def _without_rows(targets: int, steps: int, rows: Rows) -> int:
    """The targets without those to which one of the steps leads, step by step."""
    for step in bits(steps):
        targets &= ~rows[step]
        if not targets:
            break
    return targets


def reached_from(first: int, rows: Mapping[int, int]) -> int:
    found = left = 1 << first
    while left:
        low = left & -left
        new = rows[low.bit_length() - 1] & ~found
        found |= new
        left = left ^ low | new
    return found
