"""What threads could have read, or a test found, so that the first of two accesses would be known to be over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from memmodel.base.labels import Access, Side
from memmodel.base.rows import bits
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Sem
from memmodel.why.alter import Alteration
from memmodel.why.changes.situation import Change, Situation
from memmodel.why.records import Reason

TOLD = 2.5
"""The price of seeing the end of an access that is signalled: less than that of another wait for it."""


def of_unseen(asked: Situation) -> Iterator[Change]:
    """Observations that threads could have made between the two accesses: with them the first access would be known to
    be over.
    """
    meetings = [] if asked.pair is None else [*_reads_of_writes(asked), *_tests_of_updates(asked)]
    if not meetings or asked.pair is None:
        return
    leads = asked.flow.with_links((update, seeing) for _, update, seeing in meetings)
    apart = asked.flow.reach_by(link for link in asked.flow.links if {link.first, link.second} != set(asked.pair))
    for first, second in (asked.pair, asked.pair[::-1]):
        end = asked.flow.in_po(second)
        for name, update, seeing in meetings:
            on_the_way = leads[first] >> update & 1 and leads[seeing] >> end & 1
            if on_the_way and not apart[seeing] >> update & 1:  # but for what the two accesses have of each other
                change = Alteration((), (), ((name, update, seeing),))
                its_end = asked.execution.relation("compl")[first] >> update & 1
                yield Change(Reason.NOT_SEEN, change, update, seeing, "", 1, TOLD if its_end else 8.0)


def _reads_of_writes(asked: Situation) -> Iterator[tuple[str, int, int]]:
    """Strong reads with the strong writes of other threads to their locations that they do not read."""
    reads_from = asked.execution.relation("rf")
    writes: dict[Cell | None, list[int]] = {}
    reads: list[int] = []
    for number, event in enumerate(asked.events):
        label = event.label
        if isinstance(label, Access) and label.sem is not Sem.WEAK and not label.asynchronous:
            (reads if label.side is Side.READ else writes.setdefault(event.point.cell, [])).append(number)
    for read in reads:
        for write in writes.get(asked.events[read].point.cell, ()):
            if asked.flow.thread(write) != asked.flow.thread(read) and not reads_from[write] >> read & 1:
                yield "rf", write, read


def _tests_of_updates(asked: Situation) -> Iterator[tuple[str, int, int]]:
    """Tests of mbarrier objects that returned false, with the arrivals and signals on their objects."""
    same = asked.execution.relation("samebar")
    updates = bits(asked.execution.set("ARRIVEON") | asked.execution.set("SIGNAL"))
    tests = bits(asked.execution.set("MBTEST") & ~asked.execution.set("MBDONE"))
    return (("mbarobs", update, test) for update, test in product(updates, tests) if same[update] >> test & 1)
