"""The loops of an entry as written: where they are, what decides their trip counts, and where that comes from.

In: entry. Out: `LoopText` by its head; parameters that lead to registers. A loop has one head, and perhaps several
jumps back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memmodel.isa.lowered import LoweredInstruction, lowered, registers
from memmodel.kernel.all_sizes.access_kinds import brings
from memmodel.kernel.all_sizes.control_dependence import ControlDependence
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import failing
from memmodel.program.expressions import AddressOf, stripped
from memmodel.program.ops import Read
from memmodel.program.regions import Elements
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Mem, Pair, Register, Special, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import Window

if TYPE_CHECKING:
    import networkx

PARAMETERS = frozenset((Window.PARAM, Window.FUNCTION_PARAM, Window.ANY_PARAM))
"""The windows of parameters, of the kernel and of functions."""

SIZES = ("%nctaid", "%nclusterid")
"""Special registers that have the size of the grid."""


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


class ParamPart(NamedTuple):
    """A number in the parameters of an entry: the parameter, its first byte, how many bytes."""

    name: str
    offset: int
    size: int

    def meets(self, other: ParamPart) -> bool:
        """True if they have a byte in common."""
        return self.name == other.name and (
            self.offset < other.offset + other.size and other.offset < self.offset + self.size
        )

    def __str__(self) -> str:
        return self.name if not self.offset else f"{self.name} + {self.offset}"


def loops_of(entry: PtxFunction) -> dict[int, LoopText] | None:
    """The loops by their heads; None if a loop has several heads."""
    import networkx

    body = entry.body or ()
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
    slots = {head: {slot for at in members for slot in lowered(body[at]).writes} for head, members in inside.items()}
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

    body, graph = entry.body or (), networkx.DiGraph()
    graph.add_node(0)
    waiting = [0]
    while waiting:
        at = waiting.pop()
        instruction = body[at]
        does = lowered(instruction)
        after = list(does.targets)
        if does.calls:
            called = (operand.name for operand in instruction.operands if isinstance(operand, Sym))
            after += [entry.callees[name].start for name in called if name in entry.callees]
        if does.goes_on:
            after.append(at + 1)
        after = [instruction for instruction in after if instruction < len(body)]
        waiting += [instruction for instruction in dict.fromkeys(after) if instruction not in graph]
        graph.add_edges_from((at, instruction) for instruction in after)
    return graph


def _dominates(above: Mapping[int, int | None], head: int, at: int) -> bool:
    """True if every path to an instruction leads through the head."""
    while at > 0 and at != head:
        up = above[at]
        if up is None or up == at:
            break
        at = up
    return at == head


def address_taken(body: Iterable[PtxInstruction], param: ParamPart) -> bool:
    """True if a parameter is named elsewhere than in a load from it."""
    return any(
        isinstance(base := operand.base if isinstance(operand, Mem | TensorOperand) else operand, Sym)
        and base.name == param.name
        for instruction in body
        if not parts_of(lowered(instruction))
        for operand in instruction.operands
    )


def widths(body: Iterable[PtxInstruction]) -> dict[int, int]:
    """The width of each register in bits."""
    widths: dict[int, int] = {}
    for instruction in body:
        for operand in (*instruction.operands, *([instruction.guard] if instruction.guard is not None else [])):
            pair = (operand.first, operand.second) if isinstance(operand, Pair) else (operand,)
            for item in operand.items if isinstance(operand, Vector) else pair:
                if isinstance(item, Register):
                    widths[item.slot] = item.width
    return widths


def depending(entry: PtxFunction, loops: Mapping[int, LoopText], without: Iterable[ParamPart] = ()) -> dict[int, int]:
    """The loops whose trip counts may depend on the launch: by head a register that decides the count. A loop that only
    computes, and of which no result is read afterwards, does nothing that others could see. `without`: parameters that
    do not count.
    """
    body, live = entry.body or (), liveness(entry)
    varying, deciding = _varying(body, _control_dependence(entry, loops), frozenset(without)), dict[int, int]()
    for head, loop in loops.items():
        inside = [body[at] for at in sorted(loop.inside)]
        slots = [slot for step in leaving(body, loop) for slot in _decides(step)]
        if all(lowered(step).without_effect for step in inside) and _results(body, loop, live).isdisjoint(loop.slots):
            continue
        if any(_waits(body, loop, test, slots) for test in inside if lowered(test).tests_phase):
            continue  # a wait ends when its phase does
        chosen = next((slot for slot in slots if slot in varying), None)
        if chosen is not None:
            deciding[head] = chosen
    return deciding


def _results(body: tuple[PtxInstruction, ...], loop: LoopText, live: Sequence[set[int]]) -> set[int]:
    """The registers that are still read where a loop has been left."""
    after = {at for step in leaving(body, loop) for at in lowered(step).follows if at not in loop.inside}
    return set[int]().union(*(live[at] for at in after))


def leaving(body: tuple[PtxInstruction, ...], loop: LoopText) -> list[PtxInstruction]:
    """The instructions at which a loop may be left, or begun again."""
    inside = (body[at] for at in sorted(loop.inside))
    return [
        instruction
        for instruction in inside
        if (does := lowered(instruction)).ends
        or does.traps
        or does.jumps_by_table
        or (does.jumps and _leaves(instruction, loop))
    ]


def _leaves(step: PtxInstruction, loop: LoopText) -> bool:
    ways = {begin_of(step), *([step.number + 1] if step.guard is not None else [])}
    return loop.head in ways or not ways <= loop.inside


def begin_of(jump: PtxInstruction) -> int:
    """The target of a jump; the next instruction if the target is not known."""
    target = lowered(jump).target
    return jump.number + 1 if target is None else target


def _decides(step: PtxInstruction) -> list[int]:
    """The registers that decide where an instruction leads."""
    guard = [] if step.guard is None else [step.guard.slot]
    return [*guard, *registers(step.operands[0])] if lowered(step).jumps_by_table else guard


def _waits(body: tuple[PtxInstruction, ...], loop: LoopText, test: PtxInstruction, slots: Iterable[int]) -> bool:
    """True if a loop ends with the success of a test, and in no other way."""
    results, result, reported = set(lowered(test).writes), lowered(test).writes, {test.number}
    for instruction in (body[at] for at in sorted(loop.inside) if at > test.number):
        reads = set(lowered(instruction).sources)
        if reads and reads <= results:
            results.update(lowered(instruction).writes)
            reported.add(instruction.number)
    if any(not results.isdisjoint(lowered(body[at]).writes) for at in loop.inside - reported):
        return False  # a register that is used for something else as well
    return (
        len(result) == 1
        and set(slots) <= results
        and failing(tuple(map(lowered, body)), test.number, result[0])[0] is None
    )


def origin(body: tuple[PtxInstruction, ...], slot: int) -> str:
    """The first load, backwards through the text, that a register comes from."""
    for instruction in _backwards(body, slot):
        if brings(lowered(instruction)):
            place = instruction.operands[1] if len(instruction.operands) > 1 else None
            base = place.base if isinstance(place, Mem | TensorOperand) else None
            name = (
                f"the parameter {base.name}, "
                if isinstance(base, Sym) and lowered(instruction).window in PARAMETERS
                else ""
            )
            return f"{name}{instruction.opcode} at line {instruction.line}"
    return "a parameter"


def parameters(entry: PtxFunction, slots: Iterable[int]) -> list[ParamPart]:
    """The numbers in parameters that lead to some registers, the nearest first."""
    body, names = entry.body or (), {instruction.name for instruction in entry.params}
    parts: dict[ParamPart, None] = {}
    for instruction in (instruction for slot in slots for instruction in _backwards(body, slot)):
        parts |= dict.fromkeys(part for part in parts_of(lowered(instruction)) if part.name in names)
    return list(parts)


def parts_of(does: LoweredInstruction) -> list[ParamPart]:
    """The numbers that a load takes from a parameter that it names."""
    for op in does.ops:
        if isinstance(op, Read) and isinstance(op.region, Elements) and op.region.window in PARAMETERS:
            place, size = stripped(op.region.address), op.region.size or 1
            if isinstance(place, AddressOf):
                return [ParamPart(place.name, place.offset + size * n, size) for n in range(op.region.count)]
    return []


def _backwards(body: tuple[PtxInstruction, ...], slot: int) -> Iterable[PtxInstruction]:
    """The instructions that may contribute to the value of a register, the nearest first, up to loads."""
    waiting, seen = [slot], {slot}
    while waiting:
        wanted = waiting.pop(0)
        for instruction in body:
            if wanted not in lowered(instruction).writes:
                continue
            yield instruction
            if brings(lowered(instruction)):
                continue
            guard = set() if instruction.guard is None else {instruction.guard.slot}
            new = (set(lowered(instruction).sources) | guard) - seen
            seen |= new
            waiting += sorted(new)


def _control_dependence(entry: PtxFunction, loops: Mapping[int, LoopText]) -> ControlDependence:
    """The control dependence of an entry. A call continues after it."""
    graph = _flow(entry)
    calls = [
        instruction.number
        for instruction in entry.body or ()
        if lowered(instruction).calls and instruction.number in graph
    ]
    graph.remove_edges_from(
        [(instruction, to) for instruction in calls for to in list(graph[instruction]) if to != instruction + 1]
    )
    back = [edge for edge in graph.edges if edge[1] in loops and edge[0] in loops[edge[1]].inside]
    return ControlDependence(graph, back, [instruction.inside for instruction in loops.values()])


def _varying(body: tuple[PtxInstruction, ...], control: ControlDependence, without: frozenset[ParamPart]) -> set[int]:
    """The registers that may depend on parameters, on memory or on the size of the grid."""
    writers: dict[int, list[int]] = {}
    for instruction in body:
        for slot in lowered(instruction).writes:
            writers.setdefault(slot, []).append(instruction.number)
    varying: set[int] = set()
    while True:
        before = len(varying)
        for instruction in body:
            does = lowered(instruction)
            parts = parts_of(does)
            source = (brings(does) and not (parts and without.issuperset(parts))) or any(
                isinstance(operand, Special) and operand.name.startswith(SIZES) for operand in instruction.operands
            )
            guarded = instruction.guard is not None and instruction.guard.slot in varying
            if source or guarded or set(lowered(instruction).sources) & varying:
                varying.update(lowered(instruction).writes)
            if (guarded and does.jumps) or (does.jumps_by_table and not varying.isdisjoint(_decides(instruction))):
                between = control.of(instruction.number)
                varying |= {s for s, at in writers.items() if len(at) > 1 and not between.isdisjoint(at)}
        if len(varying) == before:
            return varying
