"""What the synchronization of a whole program costs, by a table that a caller may give.

In: a lowered test, a table. Out: a number. Settled here: what of a program counts: fences, waits, arrivals, commits,
and the scopes and semantics of accesses. What computes, and weak accesses, cost nothing.
"""

from __future__ import annotations

from dataclasses import fields

from memmodel.errors import InputError, suggestion
from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.row import Effect
from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.recovery.json_values import json_values
from memmodel.repair.costs import Costs
from memmodel.repair.spellings import semantics
from memmodel.source import Source

FENCES = ("fence", "membar", "tcgen05.fence", "wgmma.fence")
BARRIERS = ("bar.sync", "bar.red", "barrier.sync", "barrier.red", "barrier.cta.sync", "barrier.cta.red")


def program_cost(lowered: LoweredTest, costs: Costs) -> float:
    """The sum over the instructions of a test."""
    return sum(
        _price(read_instruction(item, lowered.test), costs)
        for thread in lowered.test.threads
        for item in instructions(thread)
    )


def _price(spelling: Spelling, costs: Costs) -> float:
    head = spelling.head
    if head.startswith(FENCES):
        return costs.of(spelling)
    order = costs.order(spelling)
    if spelling.row.effect is Effect.SYNCHRONIZES:
        return (costs.wait if "wait" in head or head.startswith(BARRIERS) else costs.other) + order
    if semantics(spelling) == "weak" or spelling.row.effect is not Effect.MEMORY:
        return 0.0
    return order + (costs.strong_access if head in ("ld", "st") else 0.0)


def read_costs(source: Source) -> Costs:
    """A table of costs from JSON: an object with the fields of `Costs`, each of them optional. Raises InputError."""
    table = json_values(source.name, source.text)
    names = [entry.name for entry in fields(Costs)]
    if not isinstance(table, dict):
        raise InputError(f"{source.name}: a table of costs is an object", hint='such as {"scopes": {"gpu": 700}}')
    for name, value in table.items():
        if name not in names:
            raise InputError(f"{source.name}: no cost is called {name[:40]!r}", hint=suggestion(name, names) or None)
        if isinstance(value, dict) is not (name in ("scopes", "semantics")):
            raise InputError(
                f"{source.name}: {name} has the wrong form", hint="numbers, by name for scopes and semantics"
            )
    return Costs(**table)
