"""Orders of atomic operations that differ only in what nothing depends on: the last one to come does something else.

In: a run in which the order of atomic operations at one word is all that decides. Out: `Ranks`: one order for all in
which each thread does the same, and the run of it with the order that all of these have. Source:
docs/kernels-theorem.md, "Orders that decide the same".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple

from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.decisions import strong_together
from memmodel.kernel.flow.dead_results import does_alike
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction


class Ranks(NamedTuple):
    """Threads that each make one operation at a word, and how many of them, one after the other, do alike: first
    `sizes[0]` of them, whichever these are, then `sizes[1]`, and so on.
    """

    place: tuple[str, int]
    threads: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def number(self) -> int:
        """The number of orders that stand for all."""
        number, left = 1, len(self.threads)
        for size in self.sizes:
            number *= comb(left, size)
            left -= size
        return number

    def orders(self) -> Iterator[tuple[int, ...]]:
        """One order of the threads for all in which the same threads have each rank."""
        yield from _divided(self.threads, self.sizes)

    def loosen(self, run: LaunchTrace, order: Sequence[int]) -> bool:
        """Let each operation observe those of earlier ranks, and none of its own: what it does in all of these orders.
        False if the operations of the run are not in this order.
        """
        operations = _operations(run, self.place)
        if tuple(read.thread for read in operations) != tuple(order):
            return False
        earlier = list[TraceEvent]()
        for size in self.sizes:
            rank, operations = operations[:size], operations[size:]
            for read in rank:
                read.source, read.observed = (earlier[-1], tuple(earlier[:-1])) if earlier else (None, ())
            earlier += (read.partner for read in rank if read.partner is not None)
        return True


def ranks_alike(entry: PtxFunction, run: LaunchTrace, place: tuple[str, int]) -> Ranks | None:
    """The ranks at a place. None if no two do alike, or if it is not known what operations return in other orders."""
    reads = _operations(run, place)
    writes = [read.partner for read in reads if read.partner is not None]
    results = [read.number for read in reads if read.number is not None]
    if not len({read.thread for read in reads}) == len(writes) == len(results) == len(reads):
        return None
    kinds = {(write.at, write.given) for write in writes}
    if len(kinds) > 1 or writes[0].given is None or body_of(entry)[writes[0].at].may_fail:
        return None
    if not strong_together([*writes, *reads], run):
        return None
    number, sizes = reads[0].at, [1]
    for neighbours in pairwise(results):
        if all(does_alike(entry, number, neighbours, read.known) for read in reads):
            sizes[-1] += 1
        else:
            sizes.append(1)
    return Ranks(place, tuple(read.thread for read in reads), tuple(sizes)) if len(sizes) < len(reads) else None


def _operations(run: LaunchTrace, place: tuple[str, int]) -> list[TraceEvent]:
    """The reads of the operations at a place, in their order."""
    places = {(block.instance.name, first): events for (block, first), events in run.atomics.items()}
    return places.get(place, [])


def _divided(threads: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The threads in groups of these sizes, in each way, those of a group in the order in which they are given."""
    if not sizes:
        yield ()
        return
    for chosen in combinations(threads, sizes[0]):
        left = [thread for thread in threads if thread not in chosen]
        yield from (chosen + others for others in _divided(left, sizes[1:]))
