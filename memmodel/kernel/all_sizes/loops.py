"""The loops of an entry as written: where they are, and what decides their trip counts.

In: entry. Out: `LoopText` by its head. A loop has one head, and perhaps several jumps back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.all_sizes.access_kinds import brings
from memmodel.kernel.all_sizes.control_dependence import ControlDependence
from memmodel.kernel.all_sizes.parameters import Body, ParamPart, parts_of
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import failing
from memmodel.program.ops import OnObject
from memmodel.program.warp_ops import ActiveLanes, OnStack
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Special, Sym

if TYPE_CHECKING:
    import networkx

SIZES = ("%nctaid", "%nclusterid")
"""Special registers that have the size of the grid."""

HIDDEN = (ActiveLanes, OnObject, OnStack)
"""Steps whose results depend on something else than registers and memory: which lanes and threads came how far."""


Names = set[int | str]
"""Registers by their numbers, notes by their names."""


class LoopText(NamedTuple):
    """A loop: the instruction at its head, its last jump back, all its instructions, the registers that it writes, the
    registers that are live at its head, and the heads of the loops around it.
    """

    head: int
    end: int
    inside: frozenset[int]
    slots: tuple[int, ...]
    live: frozenset[int]
    around: tuple[int, ...]


def loops_of(entry: PtxFunction) -> dict[int, LoopText] | None:
    """The loops by their heads; None if a loop has several heads."""
    import networkx

    body = body_of(entry)
    graph = _flow(entry)
    above = networkx.immediate_dominators(graph, 0)
    inside: dict[int, set[int]] = {}
    ends: dict[int, int] = {}
    back = [edge for edge in graph.edges if _dominates(above, edge[1], edge[0])]
    for jump, head in back:
        ends[head] = max(jump, ends.get(head, 0))
        inside.setdefault(head, {head}).add(jump)
    forward = graph.copy()
    forward.remove_edges_from(back)
    if not networkx.is_directed_acyclic_graph(forward):
        return None
    live = liveness(entry) if ends else []
    for head, members in inside.items():
        waiting = [jump for jump in members if jump != head]
        while waiting:
            waiting += (new := set(graph.predecessors(waiting.pop())) - members)
            members |= new
    slots = {head: {slot for at in members for slot in body[at].writes} for head, members in inside.items()}
    return {
        head: LoopText(
            head, ends[head], frozenset(members), tuple(sorted(slots[head])), frozenset(live[head]),
            tuple(other for other, around in inside.items() if other != head and head in around),
        )
        for head, members in inside.items()
    }  # fmt: skip


def _flow(entry: PtxFunction) -> networkx.DiGraph[int]:
    """The control-flow graph from the first instruction on. A function that is called follows its calls."""
    import networkx

    body, graph = body_of(entry), networkx.DiGraph()
    graph.add_node(0)
    waiting = [0]
    while waiting:
        at = waiting.pop()
        called = [operand.name for operand in body[at].instruction.operands if isinstance(operand, Sym)]
        starts = [entry.callees[name].start for name in called if body[at].calls and name in entry.callees]
        after = [successor for successor in (*body[at].follows, *starts) if successor < len(body)]
        waiting += [successor for successor in dict.fromkeys(after) if successor not in graph]
        graph.add_edges_from((at, successor) for successor in after)
    return graph


def _dominates(above: Mapping[int, int | None], head: int, at: int) -> bool:
    """True if every path to an instruction leads through the head."""
    while at > 0 and at != head:
        up = above[at]
        if up is None or up == at:
            break
        at = up
    return at == head


def depending(entry: PtxFunction, loops: Mapping[int, LoopText], without: Iterable[ParamPart] = ()) -> dict[int, int]:
    """The loops whose trip counts may depend on the launch: by head a register that decides the count. A wait for a
    phase ends when the phase does. A loop that only computes, and of which no result is read afterwards, does nothing
    that others could see. `without`: parameters that do not count.
    """
    body, live, deciding = body_of(entry), liveness(entry), dict[int, int]()
    waits = {head: test for head, loop in loops.items() if (test := _wait(body, loop)) is not None}
    varying = _varying(body, _control_dependence(entry, loops), frozenset(without), frozenset(waits.values()))
    for head, loop in loops.items():
        if head in waits or _is_unseen(body, loop, live):
            continue
        slots = (slot for does in leaving(body, loop) for slot in sorted(does.reads))
        chosen = next((slot for slot in slots if slot in varying), None)
        if chosen is not None:
            deciding[head] = chosen
    return deciding


def unseen(entry: PtxFunction, loops: Mapping[int, LoopText]) -> frozenset[int]:
    """The instructions of loops that only compute, and of which no result is read afterwards."""
    body, live = body_of(entry), liveness(entry) if loops else []
    inside = (loop.inside for loop in loops.values() if _is_unseen(body, loop, live))
    return frozenset[int]().union(*inside)


def _is_unseen(body: Body, loop: LoopText, live: Sequence[set[int]]) -> bool:
    """True if a loop only computes, and nothing that it computes is read after it."""
    inside = [body[at] for at in loop.inside]
    if not all(does.without_effect for does in inside):
        return False
    after = {at for does in leaving(body, loop) for at in does.follows if at not in loop.inside}
    noted = frozenset[str]().union(*(does.notes_written for does in inside))
    read = any(not does.notes_read.isdisjoint(noted) for at, does in enumerate(body) if at not in loop.inside)
    return not read and set[int]().union(*(live[at] for at in after)).isdisjoint(loop.slots)


def leaving(body: Body, loop: LoopText) -> list[LoweredInstruction]:
    """The instructions at which a loop may be left, or begun again."""
    return [body[at] for at in sorted(loop.inside) if _leaves(body[at], loop)]


def _leaves(does: LoweredInstruction, loop: LoopText) -> bool:
    if does.jumps:
        return loop.head in does.follows or not loop.inside.issuperset(does.follows)
    return does.ends or does.traps or does.jumps_by_table


def _wait(body: Body, loop: LoopText) -> LoweredInstruction | None:
    """The test with whose success a loop ends, if it ends in no other way."""
    slots = {slot for does in leaving(body, loop) for slot in does.reads}
    tests = (body[at] for at in sorted(loop.inside) if body[at].tests_phase)
    return next((test for test in tests if _waits(body, loop, test, slots)), None)


def _waits(body: Body, loop: LoopText, test: LoweredInstruction, slots: set[int]) -> bool:
    """True if a loop ends with the success of a test, and in no other way."""
    results, number = set(test.writes), test.instruction.number
    reported = {number}
    for at in sorted(at for at in loop.inside if at > number):
        if body[at].sources and results.issuperset(body[at].sources):
            results.update(body[at].writes)
            reported.add(at)
    if any(not results.isdisjoint(body[at].writes) for at in loop.inside - reported):
        return False  # a register that is used for something else as well
    return len(test.writes) == 1 and slots <= results and failing(body, number, test.writes[0])[0] is None


def _control_dependence(entry: PtxFunction, loops: Mapping[int, LoopText]) -> ControlDependence:
    """The control dependence of an entry. A call continues after it."""
    graph = _flow(entry)
    calls = [at for at, does in enumerate(body_of(entry)) if does.calls and at in graph]
    graph.remove_edges_from([(at, to) for at in calls for to in list(graph[at]) if to != at + 1])
    back = [edge for edge in graph.edges if edge[1] in loops and edge[0] in loops[edge[1]].inside]
    return ControlDependence(graph, back, [loop.inside for loop in loops.values()])


def _varying(
    body: Body, control: ControlDependence, without: frozenset[ParamPart], waits: frozenset[LoweredInstruction]
) -> Names:  # fmt: skip
    """The registers, and notes beside them, that may depend on parameters, on memory, on other threads or on the size
    of the grid. `waits`: tests of a phase that have succeeded where their loop ends.
    """
    reads: list[Names] = [{*does.reads, *does.notes_read} for does in body]
    writes: list[Names] = [{*does.writes, *does.notes_written} for does in body]
    writers: dict[int | str, set[int]] = {}
    for at, names in enumerate(writes):
        for name in names:
            writers.setdefault(name, set()).add(at)
    varying = Names().union(*(writes[at] for at, does in enumerate(body) if _is_source(does, without, waits)))
    while True:
        before = len(varying)
        for at, does in enumerate(body):
            if reads[at].isdisjoint(varying):
                continue
            varying |= writes[at]
            if does.jumps or does.jumps_by_table:
                decided = control.of(at)
                varying |= {name for name, by in writers.items() if len(by) > 1 and not decided.isdisjoint(by)}
        if len(varying) == before:
            return varying


def _is_source(does: LoweredInstruction, without: frozenset[ParamPart], waits: frozenset[LoweredInstruction]) -> bool:
    """True if the results of an instruction depend on more than the registers that it reads."""
    parts = parts_of(does)
    if brings(does):
        return not parts or not without.issuperset(parts)
    specials = (operand for operand in does.instruction.operands if isinstance(operand, Special))
    hidden = does not in waits and any(isinstance(op, HIDDEN) for op in does.ops)
    return hidden or any(operand.name.startswith(SIZES) for operand in specials)
