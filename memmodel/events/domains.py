"""What the reads of each location may return, found by running the threads until it no longer grows.

In: LitmusTest, the events of one pass. Out: Domains (docs/executions.md, "Choices").
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.events.graph import EventGraph
from memmodel.events.values import FEW
from memmodel.isa import Program, ops
from memmodel.isa.memory import Location, MemoryMap
from memmodel.litmus.syntax import LitmusTest, Number, terms_of

Domains = dict[Location, set[int] | None]
"""Integers that reads of a location may return; None: too many to list, reads are wide."""


def first_domains(test: LitmusTest, code: tuple[Program, ...], memory: MemoryMap) -> Domains:
    """Initial values, and constants that some thread stores to a named location."""
    domains: Domains = {where: {value} for where, value in memory.initial.items()}
    _add_constants(test, code, memory, domains)
    return domains


def most_rounds(code: tuple[Program, ...], bound: int) -> int:
    """A value that needs more rounds than this supports itself."""
    return 2 + sum(_writes(step.op) for program in code for step in program.steps) * (bound + 1)


def grow(graph: EventGraph, domains: Domains, seeds: set[int]) -> bool:
    """Add the values that writes may write to the domains of their locations; did any domain change?

    `seeds` may come out of thin air where values go round: a write depends on a read that may read from it.
    """
    circular = _circular(graph)
    grown = False
    for event in graph.events:
        if event.thread is None or not event.is_write or event.value is None:
            continue
        written = None if event.value.bits is not None else set(event.value.cases)
        for location in event.at(graph.logic):
            values = written | seeds if written is not None and location in circular else written
            known = domains[location]
            if known is None or (values is not None and values <= known):
                continue
            merged = None if values is None or len(values | known) > FEW else values | known
            domains[location] = merged
            grown = True
    return grown


def _circular(graph: EventGraph) -> set[Location]:
    """Locations whose values may depend on themselves, through reads and writes of data."""
    after: dict[Location, set[Location]] = {}
    for event in graph.events:
        if event.is_write and event.value is not None:
            sources = {place for uid in event.value.deps for place in graph.events[uid].at(graph.logic)}
            for source in sources:
                after.setdefault(source, set()).update(event.at(graph.logic))
    found = set()
    for start in after:
        seen: set[Location] = set()
        stack = [start]
        while stack:
            for place in after.get(stack.pop(), ()):
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
        if start in seen:
            found.add(start)
    return found


def _add_constants(test: LitmusTest, code: tuple[Program, ...], memory: MemoryMap, domains: Domains) -> None:
    """Constants stored to a named location belong to its domain, even where only that value lets the store run."""
    for thread, program in zip(test.threads, code, strict=True):
        for step in program.steps:
            op = step.op
            if isinstance(op, ops.Write) and isinstance(op.value, ops.Const) and isinstance(op.address, ops.AddressOf):
                address = memory.address(op.address.name, op.address.offset, thread.place, op.address.cta)
                cell = memory.cell(address) if address is not None else None
                known = domains[cell.location] if cell is not None else None
                if known is not None:
                    known.add(op.value.value)


def _writes(op: ops.Op) -> int:
    """How many writes a step makes."""
    if isinstance(op, ops.Issue):
        return sum(isinstance(part, ops.Part) and part.half == "write" for part in op.parts)
    return int(isinstance(op, ops.Write))


def constants(test: LitmusTest, code: tuple[Program, ...], memory: MemoryMap) -> set[int]:
    """Constants of the program and of the condition: what a cycle of copies may produce out of thin air."""
    found: set[int] = set()
    for thread, program in zip(test.threads, code, strict=True):
        for step in program.steps:
            for leaf in _leaves(step.op):
                if isinstance(leaf, ops.Const):
                    found.add(leaf.value)
                elif isinstance(leaf, ops.AddressOf):
                    address = memory.address(leaf.name, leaf.offset, thread.place, leaf.cta)
                    found.update(() if address is None else (address,))
    found.update(term.value for term in terms_of(test.condition) if isinstance(term, Number))
    return found


def _leaves(op: object) -> Iterator[ops.Expr]:
    """The leaves of every expression of a step, its memory addresses left out: those name places, not values."""
    if isinstance(op, ops.Issue):
        for part in op.parts:
            yield from _leaves(part)
        return
    for name in ("value", "when", "count", "bytes", "parity", "state"):
        expr = getattr(op, name, None)
        if isinstance(expr, ops.Const | ops.Get | ops.AddressOf | ops.Apply):
            yield from _parts(expr)


def _parts(expr: ops.Expr) -> Iterator[ops.Expr]:
    if isinstance(expr, ops.Apply):
        for arg in expr.args:
            yield from _parts(arg)
    else:
        yield expr
