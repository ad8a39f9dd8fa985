"""Counting formulas: how many of several hold, and sums of numbers that hold under formulas."""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.logic import FALSE, TRUE, Logic

ByNumber = dict[int, int]
"""Integer -> formula; exactly one holds, or none."""


def count(logic: Logic, formulas: Sequence[int]) -> list[int]:
    """counts[k]: exactly k of the formulas hold (k = 0 … len(formulas))."""
    counts = [TRUE]
    for formula in formulas:
        counts = [
            logic.either(
                logic.both(-formula, counts[k]) if k < len(counts) else FALSE,
                logic.both(formula, counts[k - 1]) if k else FALSE,
            )
            for k in range(len(counts) + 1)
        ]
    return counts


def add(logic: Logic, left: ByNumber, right: ByNumber, low: int, high: int) -> ByNumber:
    """The sum of two, kept within low … high."""
    out: ByNumber = {}
    for a, first in left.items():
        for b, second in right.items():
            cell = logic.both(first, second)
            if cell != FALSE:
                total = max(low, min(high, a + b))
                out[total] = logic.either(out.get(total, FALSE), cell)
    return out


def at_least(logic: Logic, cases: ByNumber) -> list[int]:
    """levels[k]: the number is k or more (k = 0 … the greatest)."""
    levels: list[int] = []
    total = FALSE
    for number in range(max(cases), -1, -1):
        total = logic.either(cases.get(number, FALSE), total) if number > min(cases) else TRUE
        levels.append(total)
    return levels[::-1]
