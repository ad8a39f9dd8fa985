"""A function of numbers, carried out in the lanes of a warp.

In: the function, where its operands come from and its result goes. Out: `Step`. What depends on an unknown value is
unknown; values that are the same in all lanes are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
        rows = [source(warp) for source in sources]
        if len(lanes) == LANES:
            if any(row is UNKNOWN for row in rows):
                warp.registers[slot] = UNKNOWN
                return
            if all(type(row) is Uniform for row in rows):
                warp.registers[slot] = uniform(fn(*(row[0] for row in rows)))
                return
        d = warp.own(slot)
        for lane in lanes:
            values = [row[lane] for row in rows]
            d[lane] = None if None in values else fn(*values)

    return step


def lenient(fn: Callable[..., Value], slot: int, sources: Sequence[Get]) -> Step:
    """Of any number of operands, some of which may be unknown."""

    def step(warp: Warp, lanes: Lanes) -> None:
        rows = [source(warp) for source in sources]
        if len(lanes) == LANES:
            if all(type(row) is Uniform for row in rows):
                warp.registers[slot] = uniform(fn(*(row[0] for row in rows)))
            else:
                warp.registers[slot] = [fn(*values) for values in zip(*rows, strict=True)]
            return
        d = warp.own(slot)
        for lane in lanes:
            d[lane] = fn(*(row[lane] for row in rows))

    return step


def choice(fn: Callable[..., Value], slot: int, first: Get, second: Get, which: Get) -> Step:
    """Of two values and a predicate, which most often is the same in all lanes."""

    def step(warp: Warp, lanes: Lanes) -> None:
        a, b, holds = first(warp), second(warp), which(warp)
        if type(holds) is Uniform and holds.value is not None and len(lanes) == LANES:
            chosen = a if holds.value else b
            if type(chosen) is Uniform:
                warp.registers[slot] = uniform(fn(chosen.value, chosen.value, 1))
                return
        d = warp.own(slot)
        for lane in lanes:
            d[lane] = fn(a[lane], b[lane], holds[lane])

    return step


def copied(slot: int, get: Get) -> Step:
    """A row as it is."""

    def step(warp: Warp, lanes: Lanes) -> None:
        row = get(warp)
        if len(lanes) == LANES:
            warp.registers[slot] = row if type(row) is Uniform else list(row)
            return
        d = warp.own(slot)
        for lane in lanes:
            d[lane] = row[lane]

    return step


def forgetting(slots: Sequence[int]) -> Step:
    """Registers that receive something unknown."""

    def step(warp: Warp, lanes: Lanes) -> None:
        warp.clear(slots, lanes)
        for slot in slots:
            if len(lanes) == LANES:
                warp.registers[slot] = UNKNOWN
                continue
            d = warp.own(slot)
            for lane in lanes:
                d[lane] = None

    return step


def together(parts: Sequence[tuple[int, Step]], reads: Sequence[frozenset[int]]) -> Step:
    """Several registers that are assigned at once: each from what was there before. `reads`: of each step."""
    order: list[int] = []
    left = list(range(len(parts)))
    while left:
        free = [n for n in left if not any(parts[n][0] in reads[other] for other in left if other != n)]
        if not free:
            return _at_once(parts)
        order += free
        left = [n for n in left if n not in free]
    steps = [parts[n][1] for n in order]

    def run(warp: Warp, lanes: Lanes) -> None:
        for step in steps:
            step(warp, lanes)

    return run


def _at_once(parts: Sequence[tuple[int, Step]]) -> Step:
    """Registers that exchange what they hold."""

    def run(warp: Warp, lanes: Lanes) -> None:
        before = {slot: row if type(row := warp.registers[slot]) is Uniform else list(row) for slot, _ in parts}
        after: dict[int, Row] = {}
        for slot, step in parts:
            step(warp, lanes)
            after[slot] = warp.registers[slot]
            warp.registers[slot] = before[slot] if type(before[slot]) is Uniform else list(before[slot])
        for slot, row in after.items():
            warp.registers[slot] = row

    return run
