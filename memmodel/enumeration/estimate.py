"""How many candidate executions a test has, roughly and at once: what `--engine auto` goes by.

In: LitmusTest, loop bound. Out: a number. It counts the reads, writes and fences of the text, running nothing:
each read may take any write that could be to its location, writes of one location are ordered in any way.
"""

from __future__ import annotations

from collections import Counter
from math import factorial, inf, prod

from memmodel.enumeration.loops import find_loops
from memmodel.isa import programs
from memmodel.isa.ops import AddressOf, Commit, Fence, Issue, Mbarrier, Read, Wait, Write
from memmodel.litmus.syntax import LitmusTest

_PARTIAL_ORDERS = (1, 1, 3, 19, 219, 4231, 130023, 6129859)
"""How many strict partial orders there are on so many elements."""


def estimate(test: LitmusTest, bound: int) -> float:
    """The order of magnitude of the number of candidates. Infinite for asynchronous operations, which this engine
    does not run. Raises InputError as lowering does."""
    reads: Counter[str | None] = Counter()
    writes: Counter[str | None] = Counter()
    fences = 0
    roots = {one.name: one.alias_of or one.name for one in test.variables}
    for program in programs(test):
        if any(isinstance(step.op, Issue | Commit | Wait | Mbarrier) for step in program.steps):
            return inf
        loops = [loop for loop in find_loops(program).values() if not loop.spin]
        for number, step in enumerate(program.steps):
            times = prod(bound + 1 for loop in loops if loop.first <= number <= loop.last)
            op = step.op
            if isinstance(op, Read | Write):
                plain = isinstance(op.address, AddressOf)
                name = roots[op.address.name] if isinstance(op.address, AddressOf) and plain else None
                (reads if isinstance(op, Read) else writes)[name] += times
            elif isinstance(op, Fence) and "SC" in op.event.tags:
                fences += times
    anywhere = writes[None]
    total = 1.0
    for name, count in reads.items():
        sources = 1 + (writes.total() if name is None else writes[name] + anywhere)
        total = _times(total, float(sources), count)
    for name, count in writes.items():
        if name is not None:
            total = min(total * _orders(count + anywhere), 1e300)
    return min(total * factorial(min(fences, 100)), 1e300)


def _times(total: float, factor: float, count: int) -> float:
    for _ in range(min(count, 1000)):
        total = min(total * factor, 1e300)
    return total


def _orders(count: int) -> float:
    if count < len(_PARTIAL_ORDERS):
        return float(_PARTIAL_ORDERS[count])
    return 1e300 if count > 30 else float(_PARTIAL_ORDERS[-1]) * 40.0 ** (count - len(_PARTIAL_ORDERS) + 1)
