"""Run every thread once for all executions (`walk`), again and again until what reads may return is known (`domains`).

In: LitmusTest. Out: EventGraph. Settled here: which events can run and when, their locations, values, dependencies and
order. Left to `encode`: where reads read from, coherence, and everything else that an execution decides.
"""

from __future__ import annotations

from memmodel.events.domains import constants, first_domains, grow, most_rounds
from memmodel.events.graph import EventGraph
from memmodel.events.walk import Walk
from memmodel.isa import programs
from memmodel.isa.memory import MemoryMap
from memmodel.litmus.syntax import LitmusTest


def elaborate(test: LitmusTest, bound: int, *, hang: bool = False) -> EventGraph:
    """Events of a test with every loop unrolled `bound` times. Raises InputError or TooLarge.

    With `hang`, a thread may also end at a wait for good (EventGraph.stuck); without, every thread reaches its end.
    """
    memory = MemoryMap(test)
    code = programs(test)
    domains = first_domains(test, code, memory)
    seeds = constants(test, code, memory)
    for _ in range(most_rounds(code, bound)):
        graph = Walk(test, code, memory, domains, bound, hang=hang).all_threads()
        if not grow(graph, domains, seeds):
            break
    return graph
