"""A function of numbers, carried out in the lanes of a warp.

In: the function, where its operands come from and its result goes. Out: `Step`. What depends on an unknown value is
unknown; values that are the same in all lanes are computed once.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, Uniform, Value, uniform

Step = Callable[[Warp, Lanes], None]
Get = Callable[[Warp], Row]


def unary(fn: Callable[..., Value], slot: int, get: Get) -> Step:
    """Of one operand."""

    def step(warp: Warp, lanes: Lanes) -> None:
        a = get(warp)
        if len(lanes) == LANES:
            if type(a) is Uniform:
                warp.registers[slot] = UNKNOWN if a.value is None else uniform(fn(a.value))
            else:
                warp.registers[slot] = [None if x is None else fn(x) for x in a]
            return
        d = warp.own(slot)
        for lane in lanes:
            x = a[lane]
            d[lane] = None if x is None else fn(x)

    return step


def binary(fn: Callable[..., Value], slot: int, first: Get, second: Get) -> Step:
    """Of two operands."""

    def step(warp: Warp, lanes: Lanes) -> None:
        a, b = first(warp), second(warp)
        if len(lanes) == LANES:
            if a is UNKNOWN or b is UNKNOWN:
                warp.registers[slot] = UNKNOWN
            elif type(a) is Uniform and type(b) is Uniform:
                warp.registers[slot] = uniform(fn(a.value, b.value))
            else:
                warp.registers[slot] = [None if x is None or y is None else fn(x, y) for x, y in zip(a, b, strict=True)]
            return
        d = warp.own(slot)
        for lane in lanes:
            x, y = a[lane], b[lane]
            d[lane] = None if x is None or y is None else fn(x, y)

    return step


def many(fn: Callable[..., Value], slot: int, sources: list[Get]) -> Step:
    """Of any number of operands."""
    if len(sources) == 1:
        return unary(fn, slot, sources[0])

    def step(warp: Warp, lanes: Lanes) -> None:
        lists = [one(warp) for one in sources]
        if len(lanes) == LANES:
            if any(one is UNKNOWN for one in lists):
                warp.registers[slot] = UNKNOWN
                return
            if all(type(one) is Uniform for one in lists):
                warp.registers[slot] = uniform(fn(*(one[0] for one in lists)))
                return
        d = warp.own(slot)
        for lane in lanes:
            values = [one[lane] for one in lists]
            d[lane] = None if None in values else fn(*values)

    return step
