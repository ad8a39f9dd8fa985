"""Which launches of a sweep are meant, in the words of `--sweep`: `K=64..1024:64,M=1..5`.

In: values of the free axes. Out: text. Launches are joined to boxes: the values of one axis, all with the same values
of the axes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memmodel.kernel.sweep.axes import FreeAxis, Values

SHOWN = 6
"""Boxes that are listed."""


def boxes_of(chosen: Collection[Values], axes: Sequence[FreeAxis]) -> list[str]:
    """The launches, as ranges of values: each is what `--sweep` takes."""
    return [
        ",".join(f"{axis.name}={ranges(values, axis.values)}" for axis, values in zip(axes, box, strict=True))
        for box in _boxes(frozenset(chosen), len(axes))
    ]


def described(chosen: Collection[Values], axes: Sequence[FreeAxis]) -> str:
    """The launches, as a few ranges of values."""
    texts = boxes_of(chosen, axes)
    more = [f"and {len(texts) - SHOWN} more ranges"] if len(texts) > SHOWN else []
    return "; ".join(texts[:SHOWN] + more)


def _boxes(chosen: frozenset[Values], depth: int) -> list[tuple[tuple[int, ...], ...]]:
    if not depth:
        return [()]
    by_first: dict[int, set[Values]] = {}
    for value, *rest in sorted(chosen):
        by_first.setdefault(value, set()).add(tuple(rest))
    alike: dict[frozenset[Values], list[int]] = {}
    for value, others in by_first.items():
        alike.setdefault(frozenset(others), []).append(value)
    return [(tuple(values), *box) for others, values in alike.items() for box in _boxes(others, depth - 1)]


def ranges(values: Sequence[int], among: Sequence[int]) -> str:
    """Values of an axis. Those that follow one another in the axis are one range where they have equal distances."""
    place = {value: number for number, value in enumerate(among)}
    runs: list[list[int]] = []
    for value in values:
        last = runs[-1] if runs else []
        joins = bool(last) and place[value] == place[last[-1]] + 1
        if joins and (len(last) < 2 or value - last[-1] == last[1] - last[0]):
            last.append(value)
        else:
            runs.append([value])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) < 3:
        return ",".join(map(str, run))
    step = run[1] - run[0]
    return f"{run[0]}..{run[-1]}" + (f":{step}" if step > 1 else "")
