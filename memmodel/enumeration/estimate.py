"""How many candidate executions a test has, roughly and at once: what `--engine auto` goes by.

In: LitmusTest, loop bound. Out: a number. It counts what stands in the text, running nothing: each read may
take any write that could be to its location, writes of one location and updates of one mbarrier object are ordered in
any way, tests of such objects yield either result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import factorial, prod

from memmodel.enumeration.loops import find_loops
from memmodel.isa import programs
from memmodel.isa.ops import AddressOf, Expr, Fence, Issue, Mbarrier, Op, Part, Read, Signal, Write
from memmodel.litmus.syntax import LitmusTest

_PARTIAL_ORDERS = (1, 1, 3, 19, 219, 4231, 130023, 6129859)
"""How many strict partial orders there are on so many elements."""


def estimate(test: LitmusTest, bound: int) -> float:
    """The order of magnitude of the number of candidates. Raises InputError as lowering does."""
    reads: Counter[str | None] = Counter()
    writes: Counter[str | None] = Counter()
    objects: dict[str | None, list[int]] = {}
    fences = tests = 0
    roots = {one.name: one.alias_of or one.name for one in test.variables}

    def name_of(address: Expr) -> str | None:
        return roots[address.name] if isinstance(address, AddressOf) else None

    for program in programs(test):
        loops = [loop for loop in find_loops(program).values() if not loop.spin]
        for number, step in enumerate(program.steps):
            times = prod(bound + 1 for loop in loops if loop.first <= number <= loop.last)
            op = step.op
            for read, address in _accesses(op):
                (reads if read else writes)[name_of(address)] += times
            if isinstance(op, Fence) and "SC" in op.event.tags:
                fences += times
            if isinstance(op, Mbarrier) and op.action == "test":
                tests += times
            elif isinstance(op, Mbarrier):
                objects.setdefault(name_of(op.address), []).append(times)
            elif isinstance(op, Issue):
                for part in op.parts:
                    if isinstance(part, Signal):
                        objects.setdefault(name_of(part.address), []).extend([1] * times)
    anywhere = writes[None]
    total = 2.0 ** min(tests, 900)
    for name, count in reads.items():
        sources = 1 + (writes.total() if name is None else writes[name] + anywhere)
        total = _times(total, float(sources), count)
    for name, count in writes.items():
        if name is not None:
            total = min(total * _orders(count + anywhere), 1e300)
    for chains in objects.values():
        total = min(total * _interleavings(chains), 1e300)
    return min(total * factorial(min(fences, 100)), 1e300)


def _accesses(op: Op) -> Iterator[tuple[bool, Expr]]:
    """What a step reads (True) and writes (False): the addresses."""
    if isinstance(op, Read | Write):
        yield isinstance(op, Read), op.address
    elif isinstance(op, Issue):
        for part in op.parts:
            if isinstance(part, Part):
                yield part.half == "read", part.address


def _interleavings(chains: list[int]) -> float:
    """In how many ways chains of so many updates can be merged into one order."""
    if sum(chains) > 100:
        return 1e300
    return float(factorial(sum(chains)) // prod(factorial(one) for one in chains))


def _times(total: float, factor: float, count: int) -> float:
    for _ in range(min(count, 1000)):
        total = min(total * factor, 1e300)
    return total


def _orders(count: int) -> float:
    if count < len(_PARTIAL_ORDERS):
        return float(_PARTIAL_ORDERS[count])
    return 1e300 if count > 30 else float(_PARTIAL_ORDERS[-1]) * 40.0 ** (count - len(_PARTIAL_ORDERS) + 1)
