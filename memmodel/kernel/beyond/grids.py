"""Beyond one launch: does the verdict hold for any grid, for any trip count? Or which term stops that?

In: entry, launch, run. Out: a sentence. Settled here: only what the text of the kernel shows is claimed; CTAs that do
the same on bytes that lie apart say nothing new in a larger grid of one dimension.
"""

from __future__ import annotations

from itertools import pairwise

from memmodel.base.labels import Access, Side
from memmodel.kernel.judge.events import LaunchTrace
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.origin import read_slots
from memmodel.kernel.text.polling import written
from memmodel.kernel.text.syntax import (
    AddressOperand,
    JumpTarget,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    Special,
    Symbol,
)
from memmodel.ptx import Scope, Space

TOUCHES = frozenset(
    [
        "ld",
        "st",
        "atom",
        "red",
        "cp",
        "bar",
        "barrier",
        "mbarrier",
        "fence",
        "membar",
        "ldmatrix",
        "stmatrix",
        "wgmma",
        "tcgen05",
        "multimem",
        "discard",
        "suld",
        "sust",
        "sured",
        "call",
    ]
)
"""The first words of instructions that touch memory or order something."""

GRID = ("%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%gridid")
LINEAR = ("mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "neg")
"""Instructions whose result is linear in one operand, if the others do not depend on the grid."""


def any_grid(entry: PtxFunction, launch: Launch, run: LaunchTrace) -> str:
    """`yes: …` or `not shown: …`."""
    body = entry.body or ()
    if launch.cluster != (1, 1, 1):
        return "not shown: CTAs of a cluster meet"
    if sum(extent > 1 for extent in launch.grid) != 1:
        return "not shown: that takes a launch with several CTAs in one dimension"
    for thread in run.threads:
        for event in thread.strong():
            if event.block is not None and event.block.instance.space is Space.GLOBAL:
                return f"not shown: CTAs may meet at {_at(body[event.at])}"
    counted = _counted(run)
    for one in run.weak():
        quiet = isinstance(one.label, Access) and one.label.rmw and one.block.instance.space is Space.GLOBAL
        if quiet and one.block not in counted:
            return f"not shown: CTAs may meet at {_at(body[one.at])}"
    linear = _depends(body)
    other = _nonlinear(body, linear)
    for step in body:
        if step.guard is not None and step.guard.slot in linear | other:
            return f"not shown: {_at(step)} is guarded by what depends on the number of the CTA or the size of the grid"
        for operand in step.operands:
            if isinstance(operand, AddressOperand) and _slot(operand.base) in other:
                return f"not shown: the address of {_at(step)} is not linear in the number of the CTA"
    return _apart(run)


def _nonlinear(body: tuple[PtxInstruction, ...], linear: set[int]) -> set[int]:
    """The registers that depend on the grid by more than sums and products with what does not."""
    found: set[int] = set()
    while True:
        new = set()
        for one in body:
            read = read_slots(one)
            factors = [_slot(operand) in linear for operand in one.operands[1:3]]
            keeps = one.words[0] in LINEAR and not (one.words[0] in ("mul", "mad") and all(factors))
            if read & found or (read & linear and not keeps):
                new |= set(written(one))
        if new <= found:
            return found
        found |= new


def _apart(run: LaunchTrace) -> str:
    """Do the bytes that CTAs write lie apart by the same distance, and those that they touch there with them?"""
    spans: dict[tuple[Block, int], list[int]] = {}
    written_to = set()
    counted = _counted(run)
    for one in run.weak():
        if one.block.instance.space is not Space.GLOBAL or one.block in counted:
            continue
        if isinstance(one.label, Access) and one.label.side is Side.WRITE:
            written_to.add(one.block)
        span = spans.setdefault((one.block, run.threads[one.thread].cta), [one.first, one.first + one.size])
        span[0], span[1] = min(span[0], one.first), max(span[1], one.first + one.size)
    steps = []
    for block in written_to:
        mine = sorted((cta, span) for (other, cta), span in spans.items() if other is block)
        distances = {(later[0] - first[0]) / (two - one) for (one, first), (two, later) in pairwise(mine)}
        if len(distances) != 1 or len({span[1] - span[0] for _, span in mine}) != 1:
            return f"not shown: what CTAs touch of {block.instance.name} does not lie evenly"
        (distance,) = distances
        size = mine[0][1][1] - mine[0][1][0]
        if abs(distance) < size:
            return f"not shown: CTAs touch {size} bytes of {block.instance.name}, {distance:g} bytes apart"
        steps.append(f"{size} bytes of {block.instance.name}, {distance:g} bytes apart")
    return "yes, as long as no number wraps: CTAs do the same" + (
        ", each on its own " + " and ".join(steps) if steps else ""
    )


def _counted(run: LaunchTrace) -> set[Block]:
    """The buffers that CTAs touch with quiet atomic operations alone, of a scope that has all CTAs of the device."""
    found: dict[Block, bool] = {}
    for one in run.weak():
        label = one.label
        wide = isinstance(label, Access) and label.rmw and label.scope is not None and label.scope >= Scope.GPU
        found[one.block] = (
            found.get(one.block, True) and wide and not (isinstance(label, Access) and label.asynchronous)
        )
    return {block for block, only in found.items() if only}


def any_trips(entry: PtxFunction, launch: Launch) -> str:
    """`yes: …` or `not shown: …`."""
    body = entry.body or ()
    back = [(begin, one) for one in body if one.words[0] == "bra" and (begin := _begin(one)) <= one.number]
    if not back:
        return "yes: there is no loop"
    given = _depends(body, params=True)
    for begin, one in back:
        inside = body[begin : one.number + 1]
        if not any(step.words[0] in TOUCHES for step in inside):
            continue  # it only computes
        guards = [step.guard.slot for step in inside if step.words[0] == "bra" and step.guard is not None]
        if one.guard is None and _waits(body[begin]):
            continue  # a wait ends when its phase does
        slots = [one.guard.slot] if one.guard is not None else guards
        chosen = next((slot for slot in slots if slot in given), None)
        if chosen is not None:
            loop = f"how often the loop from line {body[begin].line} to line {one.line} runs"
            term = _origin(body, chosen)
            return f"not shown: {loop} depends on {term}; its state was not compared between rounds"
    return "yes: no trip count depends on a parameter"


def _begin(jump: PtxInstruction) -> int:
    """Where a jump goes; behind it, if that is not known."""
    at = _target(jump)
    return jump.number + 1 if at is None or at < 0 else at


def _waits(one: PtxInstruction) -> bool:
    return one.words[0] == "mbarrier" and one.words[1] in ("try_wait", "test_wait")


def _origin(body: tuple[PtxInstruction, ...], slot: int) -> str:
    """The first load, backwards through the text, that a register comes from."""
    waiting, seen = [slot], {slot}
    while waiting:
        wanted = waiting.pop(0)
        for one in body:
            if wanted not in written(one):
                continue
            if one.words[0] in ("ld", "atom"):
                place = one.operands[1] if len(one.operands) > 1 else None
                base = place.base if isinstance(place, AddressOperand) else None
                name = f"the parameter {base.name}, " if isinstance(base, Symbol) and "param" in one.words else ""
                return f"{name}{one.opcode} at line {one.line}"
            new = read_slots(one) - seen
            seen |= new
            waiting += sorted(new)
    return "a parameter"


def _depends(body: tuple[PtxInstruction, ...], *, params: bool = False) -> set[int]:
    """The registers that may depend on the grid, or on parameters and on memory."""
    found: set[int] = set()
    changed = True
    while changed:
        changed = False
        for one in body:
            origin = any(isinstance(operand, Special) and operand.name.startswith(GRID) for operand in one.operands)
            if params:
                origin = one.words[0] in ("ld", "atom") or (origin and "%nctaid" in str(one.operands))
            if origin or (one.words[0] not in ("ld", "atom") and read_slots(one) & found):
                new = set(written(one)) - found
                found |= new
                changed |= bool(new)
    return found


def _slot(operand: Operand) -> int:
    return operand.slot if isinstance(operand, Register) else -1


def _target(one: PtxInstruction) -> int | None:
    operand = one.operands[0] if one.operands else None
    return operand.at if isinstance(operand, JumpTarget) else None


def _at(one: PtxInstruction) -> str:
    return f"{one.opcode} at line {one.line}"
