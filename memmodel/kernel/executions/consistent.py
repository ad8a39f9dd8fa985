"""Runs in which reads return other writes than the last ones in time: which of them are executions of the model.

In: Model, `RunJudge` of such a run, with every thread for itself. Out: the flags of an execution, or None. Settled
here: coherence of strong writes is their order in time; that of weak writes follows causality. The axioms of the model
must hold. The values that weak accesses read are not in the graph. They are consistent as long as conflicting accesses
that causality orders happened in that order: then a read of the last write in time reads a write that it may read.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import permutations

from memmodel.base.labels import InitialWrite, Side, side_of
from memmodel.base.points import Point
from memmodel.base.rows import Rows, bits, closure, ordered
from memmodel.cat.monotonicity import MORE, effect_of_more
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.kernel.executions.dependence import dependent, flows
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED
from memmodel.kernel.order.fences import CAUSALITY, CONFLICT, FORCED, begun, ended, forced, with_fences
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.graph import Graph, PointOrigin
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.memory.bytes import Cell

ChosenPair = tuple[TraceEvent, TraceEvent | None]
"""A read, and the write that it reads from; None for the value before all strong writes."""
MOST_EVENTS = 3_000
"""Events of an execution that is checked."""
MOST_FENCES = 4
"""Fences of which all orders are tried."""
MOST_ORDERS = 12
"""Orders of fence.sc that are tried."""
MOST_COHERENCES = 40
"""Orders of writes that are tried for one order of fences, those of a part of the writes among them."""
ORDERS = (CAUSALITY, "tensor-before")
"""The definitions of a model that order two writes."""


def execution_of(model: Model, judge: RunJudge) -> Flags | None:
    """The flags of the run, if it is an execution of the model."""
    graph, run = judge.graph, judge.run
    known = all(id(read) in graph.number and one_place(run, read) for read, _ in run.chosen)
    if run.infeasible or not known or len(graph.points) > MOST_EVENTS:
        return None
    if any(definition.order is not None for definition in model.definitions):
        return None
    reads = _with_inserted(run)
    _first_values(graph, {(read.block, read.first) for read, _ in run.chosen})
    execution = graph.execution()
    early = [(read, source) for read, source in reads if source is not None and source.time > read.time]
    if len(reads) != len({id(read) for read, _ in reads}) or (early and _out_of_thin_air(judge, early)):
        return None
    for number, rows in enumerate(_fence_orders(model, execution, graph)):
        flags = Flags(model, with_fences(execution, rows))
        causality = flags.relation(CAUSALITY)
        if causality is None or ((number or early) and not _in_time(flags, graph, reads)):
            continue
        for ranks in _write_orders(graph, run, causality):
            whole = _with_coherence(flags, _coherence(flags, graph, ranks))
            if all(whole.holds(check) for check in model.axioms) and (not ranks or _in_time(whole, graph, reads)):
                return whole
        everything = set(map(id, graph.events.values()))
        for whole, consistent in _coherent(flags, _forced_coherence(flags, graph, everything)):
            if consistent and _in_time(whole, graph, reads):
                return whole
    return None


def impossible(model: Model, judge: RunJudge, reads: Sequence[TraceEvent]) -> bool:
    """True if no order of writes and of fences makes the run an execution: with each order of fences, and each order of
    writes that has in it what each execution has, an axiom fails. `reads`: those whose sources are known.
    """
    graph, run = judge.graph, judge.run
    if len(graph.points) > MOST_EVENTS:
        return False
    fences = tuple(graph.fences())
    if len(fences) > MOST_FENCES or any(definition.order is not None for definition in model.definitions):
        return False
    known = {id(read) for read in reads}
    places = {(read.block, read.first) for read in reads if read.source is None and one_place(run, read)}
    _first_values(graph, places, known)
    execution = graph.execution()
    related = execution.relation("sr")
    firsts = sum(1 << number for _, number in graph.initial_reads)
    kept = firsts | sum(1 << number for number, event in graph.events.items() if id(event) in known)
    sources = [row & kept for row in execution.relation("rf")]
    execution = replace(execution, chosen_relations={**execution.chosen_relations, "rf": sources})
    for order in permutations(fences):
        flags = Flags(model, with_fences(execution, ordered(order, related)))
        if flags.relation(CAUSALITY) is None:
            return False
        if any(True for _ in _coherent(flags, _forced_coherence(flags, graph, known))):
            return False
    return True


def _with_coherence(flags: Flags, order: Rows) -> Flags:
    """The flags of the same execution with an order of writes."""
    execution = flags.execution
    return Flags(flags.model, replace(execution, chosen_relations={**execution.chosen_relations, "co": order}), flags)


def _coherent(flags: Flags, forced: Rows) -> Iterator[tuple[Flags, bool]]:
    """The execution with each order of writes that is `forced` or more and satisfies all axioms: True. False beside one
    of which this is open, because there are too many to try. Pair by pair, neither write is first, or the one, or the
    other, unless an axiom fails already that more order cannot mend.
    """
    model, tried = flags.model, 0
    effect = effect_of_more(model, "co")
    hurt = [check for check in model.axioms if effect[check.name] <= MORE]
    mended = [check for check in model.axioms if not effect[check.name] <= MORE]
    waiting = [(forced, _unordered_writes(flags.execution, forced))]
    while waiting:
        order, pairs = waiting.pop()
        whole, tried = _with_coherence(flags, order), tried + 1
        if not all(whole.holds(check) for check in hurt):
            continue
        while pairs and (order[pairs[0][0]] >> pairs[0][1] | order[pairs[0][1]] >> pairs[0][0]) & 1:
            pairs = pairs[1:]
        if tried > MOST_COHERENCES:
            yield whole, False
            return
        if pairs:
            (first, second), left = pairs[0], pairs[1:]
            waiting.append((order, left))
            for earlier, later in ((first, second), (second, first)):
                more = list(order)
                more[earlier] |= 1 << later
                waiting.append((closure(more), left))
        elif all(whole.holds(check) for check in mended):
            yield whole, True


def _unordered_writes(execution: Execution, order: Rows) -> list[tuple[int, int]]:
    """The pairs of writes at one place that an order leaves open."""
    writes, place = execution.set("W"), execution.relation("loc")
    return [
        (write, other)
        for write in bits(writes)
        for other in bits(place[write] & writes)
        if write < other and not (order[write] >> other | order[other] >> write) & 1
    ]


def _forced_coherence(flags: Flags, graph: Graph, reads: Container[int]) -> Rows:
    """The order of writes that each execution has: first values first, then as causality, program order and atomic
    operations say. `reads`: those whose sources are known.
    """
    points, writes = graph.points, flags.execution.set("W")
    place = flags.execution.relation("loc")
    rows = [0] * len(points)
    before = [flags.relation(name) for name in ORDERS]
    firsts = {number for number, _ in graph.initial_reads}
    own = flags.execution.relation("po")
    for write in bits(writes):
        rivals = place[write] & writes & ~(1 << write)
        if write in firsts or isinstance(points[write].label, InitialWrite):
            rows[write] = rivals & ~sum(1 << first for first in firsts)
            continue
        rows[write] = own[write] & rivals
        for known in before:
            rows[write] |= 0 if known is None else known[write] & rivals
    for event in graph.events.values():
        if event.partner is None or side_of(event.label) is not Side.WRITE or id(event.partner) not in reads:
            continue
        source = event.partner.source
        if source is not None and id(source) in graph.number:
            rows[graph.number[id(source)]] |= 1 << graph.number[id(event)]
    return closure(rows)


def _with_inserted(run: LaunchTrace) -> list[ChosenPair]:
    """The chosen reads with what they read from, and the reads that a chosen atomic operation displaces: it comes right
    after an older write, so the operation that read from that write reads from the chosen one instead.
    """
    reads = list(run.chosen)
    for read, source in run.chosen:
        if read.partner is None:
            continue
        for thread in run.threads:
            for other in thread.strong():
                like = (other.block, other.first, other.source) == (read.block, read.first, source)
                if like and other.partner is not None and side_of(other.label) is Side.READ and other is not read:
                    other.source = read.partner
                    reads.append((other, read.partner))
    return reads


def _out_of_thin_air(judge: RunJudge, early: Sequence[ChosenPair]) -> bool:
    """True if a write that is read before it is performed may depend on that read. The graph has no dependencies."""
    loads_of, pairs = flows(judge.run), {(read.at, write.at) for read, write in early if write is not None}
    return loads_of is None or any(write in dependent(judge.entry, read, loads_of) for read, write in pairs)


def one_place(run: LaunchTrace, read: TraceEvent) -> bool:
    """True if all accesses of the bytes of a read touch exactly these bytes, after at most one weak write."""
    assert read.block is not None
    end = read.first + read.size
    times = []
    for thread in run.threads:
        for event in thread.strong():
            if event.block is read.block and event.first < end and read.first < event.first + event.size:
                if event.issue is not None or (event.first, event.size) != (read.first, read.size):
                    return False
                times.append(event.time)
    weak = weak_writes(run, read)
    if not weak:
        return True
    write = weak[0]
    after = run.threads[write.thread].events[write.epoch : write.epoch + 1]
    whole = write.first <= read.first and end <= write.first + write.size and write.issue is None
    return len(weak) == 1 and whole and bool(after) and after[0].time < min(times)


def weak_writes(run: LaunchTrace, read: TraceEvent) -> list[WeakAccess]:
    """The weak writes to bytes of a read."""
    assert read.block is not None
    return [
        write
        for write in run.weak({read.block})
        if write.first < read.first + read.size
        and read.first < write.first + write.size
        and side_of(write.label) is Side.WRITE
    ]


def _first_values(graph: Graph, places: set[tuple[Block | None, int]], reads: Container[int] | None = None) -> None:
    """Add what strong reads at some places return before all strong writes: a weak write, or the initial one."""
    first: dict[Cell, int] = {}
    for number, read in list(graph.events.items()):
        if side_of(read.label) is not Side.READ or read.source is not None or read.turn == NOT_COUNTED:
            continue
        if reads is not None and id(read) not in reads:
            continue
        if read.block is None or (read.block, read.first) not in places:
            continue
        cell = Cell(read.block.instance, read.first, read.size)
        if cell not in first:
            first[cell] = _weak_write(graph, cell)
        if first[cell] < 0:
            first[cell] = len(graph.points)
            graph.points.append(Point(first[cell], InitialWrite(), cell=cell, name=cell.instance.name))
            graph.origins.append(PointOrigin(read.at, read.thread))
        graph.initial_reads.append((first[cell], number))


def _weak_write(graph: Graph, cell: Cell) -> int:
    """A weak write to a place of strong accesses; -1 if there is none."""
    for key, number in graph.shared.items():
        if key[-1] == cell and side_of(graph.points[number].label) is Side.WRITE:
            return number
    return -1


def _fence_orders(model: Model, execution: Execution, graph: Graph) -> Iterator[Rows]:
    """Orders of fence.sc, the order in time first, then those in which few fences are exchanged."""
    fences, related = tuple(graph.fences()), execution.relation("sr")
    after = forced(model, execution).relation(FORCED) if len(fences) > 1 else None
    waiting, seen = [fences], {fences}
    while waiting and len(seen) <= 4 * MOST_ORDERS:
        order = waiting.pop(0)
        yield ordered(order, related)
        for place in range(len(order) - 1):
            earlier, next_ = order[place : place + 2]
            changed = (*order[:place], next_, earlier, *order[place + 2 :])
            if changed not in seen and len(seen) < MOST_ORDERS and (after is None or not after[earlier] >> next_ & 1):
                seen.add(changed)
                waiting.append(changed)


def _write_orders(graph: Graph, run: LaunchTrace, causality: Rows) -> Iterator[dict[int, float]]:
    """Ranks of strong writes other than their times: first of atomic operations that come right after an older write,
    then the ranks that the reads of each thread require at the places of chosen reads.
    """
    atomic = [(read.partner, source) for read, source in run.chosen if read.partner is not None]
    yield {graph.number[id(access)]: 0 if source is None else source.time + 0.5 for access, source in atomic}
    if atomic:
        return
    places = dict.fromkeys((read.block, read.first, read.size) for read, _ in run.chosen)
    ranks: dict[int, float] = {}
    for block, first, size in places:
        assert block is not None
        if any(access.first < first + size and first < access.first + access.size for access in run.weak({block})):
            return
        place = block, first, size
        strong = [event for event in graph.events.values() if (event.block, event.first, event.size) == place]
        writes = sorted((event for event in strong if side_of(event.label) is Side.WRITE), key=lambda event: event.time)
        numbers = [graph.number[id(write)] for write in writes]
        after = {write: {later for later in numbers if causality[write] >> later & 1} for write in numbers}
        seen: dict[int, int] = {}
        for access in sorted(strong, key=lambda access: (access.thread, access.order or 0)):
            source = access if side_of(access.label) is Side.WRITE else access.source
            number = -1 if source is None else graph.number.get(id(source), -1)
            last = seen.get(access.thread, -1)
            if last >= 0 and number >= 0 and number != last:
                after[last].add(number)
            seen[access.thread] = number
        try:
            order = list(TopologicalSorter(after).static_order())[::-1]
        except CycleError:
            return
        ranks |= {number: rank for rank, number in enumerate(order)}
    if ranks:
        yield ranks


def _coherence(flags: Flags, graph: Graph, ranks: dict[int, float]) -> Rows:
    """Strong writes in the order of time, or of other ranks, after the first values; other writes as causality orders
    them.
    """
    points = graph.points
    writes = flags.execution.set("W")
    place = flags.execution.relation("loc")
    rows = [0] * len(points)
    for name in ORDERS:
        known = flags.relation(name)
        for write in bits(writes) if known is not None else ():
            assert known is not None
            rows[write] |= known[write] & place[write] & writes
    firsts = {number for number, _ in graph.initial_reads}
    for write in bits(writes):
        event = graph.events.get(write)
        for rival in bits(place[write] & writes):
            later = graph.events.get(rival)
            if write == rival or later is None:
                continue
            if write in firsts or isinstance(points[write].label, InitialWrite):
                rows[write] |= 1 << rival
            elif event is not None:
                earlier_rank, rank = ranks.get(write, event.time), ranks.get(rival, later.time)
                rows[write] = rows[write] | 1 << rival if earlier_rank < rank else rows[write] & ~(1 << rival)
    return rows


def _in_time(flags: Flags, graph: Graph, reads: list[ChosenPair]) -> bool:
    """True if conflicting accesses of two threads that causality orders happened in that order."""
    conflict, mine = flags.relation(CONFLICT), flags.relation(CAUSALITY)
    if conflict is None or mine is None:
        return False
    own = flags.execution.relation("po")
    chosen = {(graph.number[id(source)], graph.number[id(read)]) for read, source in reads if source is not None}
    return not any(
        (first, second) not in chosen and ended(graph, first) > begun(graph, second)
        for first, row in enumerate(conflict)
        for second in bits(row & mine[first] & ~own[first])
    )
