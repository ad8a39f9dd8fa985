"""The loops of an entry as written: where they are, what decides how often they run, and where that comes from.

In: entry. Out: `LoopText` by its head; parameters that lead to registers. A loop has one head, and perhaps several
jumps back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from memmodel.kernel.all_sizes.control_dependence import BranchSides
from memmodel.kernel.all_sizes.cta_dependence import READS
from memmodel.kernel.arithmetic.alu import width_of
from memmodel.kernel.flow.origin import read_slots
from memmodel.kernel.flow.paths import failing
from memmodel.kernel.flow.registers import ENDS, liveness, registers, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget, Mem, Pair, Register, Special, Sym, TensorOperand, Vector

if TYPE_CHECKING:
    import networkx

TOUCHES = frozenset((
    "ld", "st", "atom", "red", "cp", "bar", "barrier", "mbarrier", "fence", "membar", "ldmatrix", "stmatrix", "wgmma",
    "tcgen05", "multimem", "discard", "suld", "sust", "sured", "call", "griddepcontrol", "tensormap",
    "clusterlaunchcontrol", "setmaxnreg", "ldu", "wmma", "mma", "tex", "tld4", "shfl", "vote", "match", "redux",
    "elect", "activemask", "trap", "brkpt", "exit", "ret",
))  # fmt: skip
"""The first words of instructions that touch memory or order something."""


SIZES = ("%nctaid", "%nclusterid")
"""Special registers that have the size of the grid."""


class LoopText(NamedTuple):
    """A loop: the instructions of its head and of its last jump back, all that are in it, the registers that are
    written in it, those that are read in the next round, and the heads of the loops around it.
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
        """Do they have a byte in common?"""
        return self.name == other.name and (
            self.offset < other.offset + other.size and other.offset < self.offset + self.size
        )

    def __str__(self) -> str:
        return self.name if not self.offset else f"{self.name} + {self.offset}"


def loops_of(entry: PtxFunction) -> dict[int, LoopText] | None:
    """The loops by their heads; None if a loop has several of them."""
    import networkx

    body = entry.body or ()
    graph = _flow(entry)
    above = networkx.immediate_dominators(graph, 0)
    inside: dict[int, set[int]] = {}
    ends: dict[int, int] = {}
    back = [edge for edge in graph.edges if _dominates(above, edge[1], edge[0])]
    for one, head in back:
        ends[head] = max(one, ends.get(head, 0))
        inside.setdefault(head, {head}).add(one)
    forward = graph.copy()
    forward.remove_edges_from(back)
    if not networkx.is_directed_acyclic_graph(forward):
        return None
    live = liveness(entry) if ends else []
    for head, found in inside.items():
        waiting = [one for one in found if one != head]
        while waiting:
            waiting += (new := set(graph.predecessors(waiting.pop())) - found)
            found |= new
    slots = {head: {slot for at in found for slot in written(body[at])} for head, found in inside.items()}
    return {
        head: LoopText(
            head, ends[head], frozenset(found), tuple(sorted(slots[head])), frozenset(live[head]),
            tuple(other for other, around in inside.items() if other != head and head in around),
        )
        for head, found in inside.items()
    }  # fmt: skip


def _flow(entry: PtxFunction) -> networkx.DiGraph[int]:
    """Which instruction may follow which, from the first one on. A function that is called follows its calls."""
    import networkx

    body, graph = entry.body or (), networkx.DiGraph()
    graph.add_node(0)
    waiting = [0]
    while waiting:
        at = waiting.pop()
        one = body[at]
        after = targets_of(entry, one)
        if one.words[0] == "call":
            called = (each.name for each in one.operands if isinstance(each, Sym))
            after += [entry.callees[name].start for name in called if name in entry.callees]
        if one.guard is not None or one.words[0] not in (*ENDS, "bra", "brx"):
            after.append(at + 1)
        after = [one for one in after if one < len(body)]
        waiting += [one for one in dict.fromkeys(after) if one not in graph]
        graph.add_edges_from((at, one) for one in after)
    return graph


def _dominates(above: Mapping[int, int | None], head: int, one: int) -> bool:
    """Does every way to an instruction lead through the head?"""
    while one > 0 and one != head:
        up = above[one]
        if up is None or up == one:
            break
        one = up
    return one == head


def targets_of(entry: PtxFunction, jump: PtxInstruction) -> list[int]:
    """Where a jump goes, as far as that is written: by a label or a list of labels."""
    if jump.words[0] == "bra":
        return [begin_of(jump)]
    names = (one.name for one in jump.operands if isinstance(one, Sym | JumpTarget)) if jump.words[0] == "brx" else ()
    return [at for name in names for at in entry.tables.get(name, ())]


def address_taken(body: Iterable[PtxInstruction], param: ParamPart) -> bool:
    """Is a parameter named elsewhere than in a load from it?"""
    return any(
        isinstance(base := operand.base if isinstance(operand, Mem | TensorOperand) else operand, Sym)
        and base.name == param.name
        for one in body
        if not parts_of(one)
        for operand in one.operands
    )


def widths(body: Iterable[PtxInstruction]) -> dict[int, int]:
    """The width of each register in bits."""
    found: dict[int, int] = {}
    for one in body:
        for operand in (*one.operands, *([one.guard] if one.guard is not None else [])):
            pair = (operand.first, operand.second) if isinstance(operand, Pair) else (operand,)
            for item in operand.items if isinstance(operand, Vector) else pair:
                if isinstance(item, Register):
                    found[item.slot] = item.width
    return found


def depending(entry: PtxFunction, loops: Mapping[int, LoopText], without: Iterable[ParamPart] = ()) -> dict[int, int]:
    """The loops that touch memory or order something, and how often they run may depend on what a launch gives: by
    head a register that decides it. `without`: parameters that do not count.
    """
    body = entry.body or ()
    given, found = _given(body, _sides(entry, loops), frozenset(without)), dict[int, int]()
    for head, loop in loops.items():
        inside = [body[at] for at in sorted(loop.inside)]
        slots = [slot for step in leaving(body, loop) for slot in _decides(step)]
        if not any(step.words[0] in TOUCHES for step in inside):
            continue  # it only computes
        if any(_waits(body, loop, test, slots) for test in inside if _tests(test)):
            continue  # a wait ends when its phase does
        chosen = next((slot for slot in slots if slot in given), None)
        if chosen is not None:
            found[head] = chosen
    return found


def leaving(body: tuple[PtxInstruction, ...], loop: LoopText) -> list[PtxInstruction]:
    """Where a loop may be left, or begun again."""
    inside = (body[at] for at in sorted(loop.inside))
    return [one for one in inside if one.words[0] in (*ENDS, "brx") or (one.words[0] == "bra" and _leaves(one, loop))]


def _leaves(step: PtxInstruction, loop: LoopText) -> bool:
    ways = {begin_of(step), *([step.number + 1] if step.guard is not None else [])}
    return loop.head in ways or not ways <= loop.inside


def begin_of(jump: PtxInstruction) -> int:
    """Where a jump goes; behind it, if that is not known."""
    operand = jump.operands[0] if jump.operands else None
    return operand.at if isinstance(operand, JumpTarget) and operand.at >= 0 else jump.number + 1


def _decides(step: PtxInstruction) -> list[int]:
    """The registers that decide where an instruction leads."""
    guard = [] if step.guard is None else [step.guard.slot]
    return [*guard, *registers(step.operands[0])] if step.words[0] == "brx" and step.operands else guard


def _tests(one: PtxInstruction) -> bool:
    return one.words[0] == "mbarrier" and one.kind in ("try_wait", "test_wait")


def _waits(body: tuple[PtxInstruction, ...], loop: LoopText, test: PtxInstruction, slots: Iterable[int]) -> bool:
    """Does a loop end with the success of a test, and nothing else?"""
    told, result, tells = set(written(test)), written(test), {test.number}
    for one in (body[at] for at in sorted(loop.inside) if at > test.number):
        reads = read_slots(one)
        if reads and reads <= told:
            told.update(written(one))
            tells.add(one.number)
    if any(not told.isdisjoint(written(body[at])) for at in loop.inside - tells):
        return False  # a register that is used for something else as well
    return len(result) == 1 and set(slots) <= told and failing(body, test.number, result[0])[0] is None


def origin(body: tuple[PtxInstruction, ...], slot: int) -> str:
    """The first load, backwards through the text, that a register comes from."""
    for one in _backwards(body, slot):
        if one.words[0] in ("ld", "atom"):
            place = one.operands[1] if len(one.operands) > 1 else None
            base = place.base if isinstance(place, Mem | TensorOperand) else None
            name = f"the parameter {base.name}, " if isinstance(base, Sym) and "param" in one.words else ""
            return f"{name}{one.opcode} at line {one.line}"
    return "a parameter"


def parameters(entry: PtxFunction, slots: Iterable[int]) -> list[ParamPart]:
    """The numbers in parameters that lead to some registers, the nearest ones first."""
    body, names = entry.body or (), {one.name for one in entry.params}
    found: dict[ParamPart, None] = {}
    for one in (one for slot in slots for one in _backwards(body, slot)):
        found |= dict.fromkeys(part for part in parts_of(one) if part.name in names)
    return list(found)


def parts_of(one: PtxInstruction) -> list[ParamPart]:
    """The numbers that a load takes out of parameters."""
    place = one.operands[1] if one.words[0] == "ld" and "param" in one.words and len(one.operands) > 1 else None
    if not isinstance(place, Mem | TensorOperand) or not isinstance(place.base, Sym):
        return []
    size, target = (width_of(one.words[-1]) or 8) // 8, one.operands[0]
    first, count = place.base.offset + place.offset, len(target.items) if isinstance(target, Vector) else 1
    return [ParamPart(place.base.name, first + n * size, size) for n in range(count)]


def _backwards(body: tuple[PtxInstruction, ...], slot: int) -> Iterable[PtxInstruction]:
    """The instructions that may lead to what a register holds, the nearest ones first, up to loads."""
    waiting, seen = [slot], {slot}
    while waiting:
        wanted = waiting.pop(0)
        for one in body:
            if wanted not in written(one):
                continue
            yield one
            if one.words[0] in ("ld", "atom"):
                continue
            guard = set() if one.guard is None else {one.guard.slot}
            new = (read_slots(one) | guard) - seen
            seen |= new
            waiting += sorted(new)


def _sides(entry: PtxFunction, loops: Mapping[int, LoopText]) -> BranchSides:
    """What branches decide. A call goes on behind it."""
    graph = _flow(entry)
    calls = [one.number for one in entry.body or () if one.words[0] == "call" and one.number in graph]
    graph.remove_edges_from([(one, to) for one in calls for to in list(graph[one]) if to != one + 1])
    back = [edge for edge in graph.edges if edge[1] in loops and edge[0] in loops[edge[1]].inside]
    return BranchSides(graph, back, [one.inside for one in loops.values()])


def _given(body: tuple[PtxInstruction, ...], sides: BranchSides, without: frozenset[ParamPart]) -> set[int]:
    """The registers that may depend on parameters, on memory or on the size of the grid."""
    writers: dict[int, list[int]] = {}
    for one in body:
        for slot in written(one):
            writers.setdefault(slot, []).append(one.number)
    found: set[int] = set()
    while True:
        before = len(found)
        for one in body:
            parts = parts_of(one)
            source = (one.words[0] in READS and not (parts and without.issuperset(parts))) or any(
                isinstance(operand, Special) and operand.name.startswith(SIZES) for operand in one.operands
            )
            guarded = one.guard is not None and one.guard.slot in found
            if source or guarded or read_slots(one) & found:
                found.update(written(one))
            if (guarded and one.words[0] == "bra") or (one.words[0] == "brx" and not found.isdisjoint(_decides(one))):
                between = sides.of(one.number)
                found |= {s for s, at in writers.items() if len(at) > 1 and not between.isdisjoint(at)}
        if len(found) == before:
            return found
