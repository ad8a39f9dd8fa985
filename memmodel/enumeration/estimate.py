"""How many candidate executions a test has, roughly and at once: what `--engine auto` goes by.

In: LoweredTest, loop bound. Out: a number. It counts what stands in the text, running nothing: each read may take any
write that could be to its variable, writes of one variable and updates of one mbarrier object are ordered in any way,
tests of such objects yield either result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import factorial, prod

from memmodel.base.labels import Action, Fence
from memmodel.concrete.loops import find_loops
from memmodel.program.expressions import AddressOf
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import (
    AsyncRead,
    Emit,
    Gather,
    IssueAsync,
    OnObject,
    Op,
    Read,
    SignalPart,
    Update,
    Write,
)
from memmodel.program.regions import Box, Region
from memmodel.ptx.vocabulary import Sem

_PARTIAL_ORDERS = (1, 1, 3, 19, 219, 4231, 130023, 6129859)
"""The number of strict partial orders on 0, 1, 2, … elements."""


def estimate(lowered: LoweredTest, bound: int) -> float:
    """The order of magnitude of the number of candidates."""
    reads: Counter[str | None] = Counter()
    writes: Counter[str | None] = Counter()
    objects: dict[str | None, list[int]] = {}
    fences = tests = 0

    def name_of(region: Region) -> str | None:
        if isinstance(region, Box) or not isinstance(region.address, AddressOf):
            return None
        return lowered.space.root(region.address.name).name

    for program in lowered.programs:
        loops = [loop for loop in find_loops(program).values() if not loop.spins]
        for number, step in enumerate(program.steps):
            times = prod(bound + 1 for loop in loops if loop.first <= number <= loop.last)
            op = step.op
            for is_read, region in _accesses(op):
                (reads if is_read else writes)[name_of(region)] += times
            if isinstance(op, Emit) and isinstance(op.label, Fence) and op.label.sem is Sem.SC:
                fences += times
            if isinstance(op, OnObject) and op.label.action is Action.TEST:
                tests += times
            for region, chains in _updates(op, times):
                objects.setdefault(name_of(region), []).extend(chains)
    anywhere = writes[None]
    total = 2.0 ** min(tests, 900)
    for name, count in reads.items():
        sources = 1 + (writes.total() if name is None else writes[name] + anywhere)
        total = _times(total, float(sources), count)
    for name, count in writes.items():
        if name is not None:
            total = min(total * _orders(count + anywhere), 1e300)
    for all_chains in objects.values():
        total = min(total * _interleavings(all_chains), 1e300)
    return min(total * factorial(min(fences, 100)), 1e300)


def _accesses(op: Op) -> Iterator[tuple[bool, Region]]:
    """What a step reads (True) and writes (False)."""
    if isinstance(op, Read | Write):
        yield isinstance(op, Read), op.region
    elif isinstance(op, IssueAsync):
        for part in op.parts:
            if not isinstance(part, SignalPart):
                if isinstance(part, Gather | AsyncRead | Update):
                    yield True, part.region
                if not isinstance(part, Gather | AsyncRead):
                    yield False, part.region


def _updates(op: Op, times: int) -> Iterator[tuple[Region, list[int]]]:
    """The mbarrier objects that a step updates when it is made so often, with the lengths of chains of updates: those
    in a chain come one after the other.
    """
    if isinstance(op, OnObject) and op.label.action is not Action.TEST:
        yield op.region, [times]
    elif isinstance(op, IssueAsync):
        for part in op.parts:
            if isinstance(part, SignalPart):
                yield part.region, [1] * times


def _interleavings(chains: list[int]) -> float:
    """The number of ways to merge chains of these lengths into one order."""
    if sum(chains) > 100:
        return 1e300
    return float(factorial(sum(chains)) // prod(factorial(length) for length in chains))


def _times(total: float, factor: float, count: int) -> float:
    for _ in range(min(count, 1000)):
        total = min(total * factor, 1e300)
    return total


def _orders(count: int) -> float:
    if count < len(_PARTIAL_ORDERS):
        return float(_PARTIAL_ORDERS[count])
    return 1e300 if count > 30 else float(_PARTIAL_ORDERS[-1]) * 40.0 ** (count - len(_PARTIAL_ORDERS) + 1)
