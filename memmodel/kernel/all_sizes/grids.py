"""Does the verdict of a launch hold for any grid? Or which term stops that?

In: module, entry, launch, run. Out: a sentence. Settled here: CTAs that do the same, on bytes that move with the number
of the CTA by a constant step and lie apart, say nothing new in a grid that is longer in one dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from memmodel.base.labels import Access, Side
from memmodel.kernel.all_sizes.cta_dependence import Share, Shares
from memmodel.kernel.all_sizes.loops import TOUCHES
from memmodel.kernel.flow.registers import written
from memmodel.kernel.launch import Launch
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Mem, TensorOperand, Vector
from memmodel.ptx.vocabulary import Scope, Space

Made = TypeVar("Made", TraceEvent, WeakAccess)
DATA = ("ld", "ldu", "st", "atom", "red", "stmatrix", "sust", "sured", "tensormap", "tex", "tld4", "mma", "wmma",
        "shfl", "vote", "match", "redux")  # fmt: skip
"""First words of instructions whose operands without brackets are results or data."""


def any_grid(module: PtxModule, entry: PtxFunction, launch: Launch, run: LaunchTrace) -> str:
    """`yes, …` or `not shown: …`."""
    body = entry.body or ()
    if launch.cluster != (1, 1, 1):
        return "not shown: CTAs of a cluster meet"
    if run.cancels:
        return "not shown: CTAs take over others"
    if len({thread.cta for thread in run.threads}) < 2:
        return "not shown: that takes a launch with several CTAs"
    for thread in run.threads:
        for event in thread.strong():
            if event.block is not None and _global(event.block):
                return f"not shown: CTAs may meet at {_at(body[event.at])}"
    counted = _counted(run)
    for one in run.weak():
        if isinstance(one.label, Access) and one.label.rmw and _global(one.block) and one.block not in counted:
            return f"not shown: CTAs may meet at {_at(body[one.at])}"
    found = {axis: _along(module, entry, launch, run, axis, counted) for axis in range(3) if launch.grid[axis] > 1}
    if len(found) == 1:
        return next(iter(found.values()))
    return "; ".join(f"along {'xyz'[axis]}: {said}" for axis, said in found.items())


def _along(
    module: PtxModule, entry: PtxFunction, launch: Launch, run: LaunchTrace, axis: int, counted: set[Block]
) -> str:  # fmt: skip
    """The answer for grids that are longer in one dimension."""
    body, shares = entry.body or (), Shares(module, entry, launch, "xyz"[axis])
    why = next((why for step in body if (why := _uneven(step, shares)) is not None), None)
    return f"not shown: {why}" if why is not None else _apart(run, body, counted, launch.grid, axis)


def _uneven(step: PtxInstruction, shares: Shares) -> str | None:
    """What an instruction does with numbers that differ between CTAs, other than to move its addresses evenly."""
    if step.guard is not None and shares.slots([step.guard.slot]) is not Share.NONE:
        return f"{_at(step)} is guarded by what depends on the number of the CTA or the size of the grid"
    addresses = [operand for operand in step.operands if isinstance(operand, Mem | TensorOperand)]
    if shares.of(addresses) is Share.OTHER:
        return f"the address of {_at(step)} is not linear in the number of the CTA"
    if step.words[0] in DATA or step.words[0] not in (*TOUCHES, "brx"):
        return None
    calls = step.words[0] in ("call", "brx")
    others = [
        operand
        for operand in step.operands[bool(written(step)) :]
        if calls or not isinstance(operand, Mem | TensorOperand | Vector)
    ]
    if shares.of(others) is not Share.NONE:
        return f"an operand of {_at(step)} depends on the number of the CTA or the size of the grid"
    return None


def _apart(
    run: LaunchTrace, body: tuple[PtxInstruction, ...], counted: set[Block], grid: tuple[int, int, int], axis: int
) -> str:  # fmt: skip
    """Does each CTA do what the one before it does, on bytes that lie further by a step, and apart from the others'?

    Together with it stand the CTAs that differ from it in the other dimensions.
    """
    ctas: dict[int, list[TraceThread]] = {}
    for thread in run.threads:
        ctas.setdefault(thread.cta, []).append(thread)
    accesses: dict[int, list[WeakAccess]] = {}
    for one in run.weak():
        if one.block not in counted:
            accesses.setdefault(one.thread, []).append(one)
    every = [one for listed in accesses.values() for one in listed]
    changed = {one.block for one in every if _global(one.block) and _writes(one)}
    steps: dict[Block, set[float]] = {block: set() for block in changed}
    lines = _lines(ctas, grid, axis)
    neighbours = [pair for line in lines for pair in pairwise(line)]
    if len({tuple(place for place, _ in line) for line in lines}) > 1 or not neighbours:
        return "not shown: that takes CTAs beside each other in this dimension"
    for (place, cta), (further, other) in neighbours:
        for first, second in zip(ctas[cta], ctas[other], strict=True):
            at = _first_unlike(first.events, second.events, _same_event)
            both = accesses.get(first.number, []), accesses.get(second.number, [])
            at = _first_unlike(*both, _same_access) if at is None else at
            if at is not None:
                return f"not shown: CTAs {cta} and {other} differ at {_at(body[at])}"
            for a, b in zip(*both, strict=True):
                if a.block in changed:
                    steps[a.block].add((b.first - a.first) / (further - place))
    own = {thread.number for line in lines for thread in ctas[line[0][1]]}
    found = []
    for block in sorted(changed, key=lambda block: block.address):
        spans = [(one.first, one.first + one.size) for one in every if one.block is block and one.thread in own]
        size = max(end for _, end in spans) - min(begin for begin, _ in spans)
        step, *others = steps[block]
        if others:
            return f"not shown: what CTAs touch of {block.instance.name} does not lie evenly"
        if abs(step) < size:
            return f"not shown: CTAs touch {size} bytes of {block.instance.name}, {step:g} bytes apart"
        found.append(f"{size} bytes of {block.instance.name}, {step:g} bytes apart")
    where = f", each on its own {' and '.join(found)}" if found else ""
    reach = "as long as buffers reach and no number wraps"
    return f"yes, with any number of CTAs along {'xyz'[axis]}, {reach}: CTAs do the same{where}"


def _lines(ctas: Iterable[int], grid: tuple[int, int, int], axis: int) -> list[list[tuple[int, int]]]:
    """CTAs that differ in one dimension alone: for each its place in it, and its number."""
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for number in sorted(ctas):
        index = [number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])]
        place = index.pop(axis)
        found.setdefault(tuple(index), []).append((place, number))
    return list(found.values())


def _first_unlike(ones: Sequence[Made], others: Sequence[Made], same: Callable[[Made, Made], bool]) -> int | None:
    """The instruction of the first thing that two threads do not both do."""
    for a, b in zip(ones, others, strict=False):
        if not same(a, b):
            return a.at
    longer = ones if len(ones) > len(others) else others
    return None if len(ones) == len(others) else longer[min(len(ones), len(others))].at


def _same_event(first: TraceEvent, second: TraceEvent) -> bool:
    """Are two events the same in their CTAs?"""
    if first.at != second.at or first.label != second.label or _where(first) != _where(second):
        return False
    return (first.count, first.generation) == (second.count, second.generation)


def _same_access(first: WeakAccess, second: WeakAccess) -> bool:
    """Are two accesses the same, up to where they are in global memory?"""
    if (first.at, first.epoch, first.part) != (second.at, second.epoch, second.part) or first.size != second.size:
        return False
    return first.block is second.block if _global(first.block) else _where(first) == _where(second)


def _where(one: TraceEvent | WeakAccess) -> tuple[Space | None, int, int, int] | None:
    """The place of an access or of an object in its CTA."""
    return None if one.block is None else (one.block.instance.space, one.block.address, one.first, one.size)


def _global(block: Block) -> bool:
    return block.instance.space is Space.GLOBAL


def _writes(one: WeakAccess) -> bool:
    return isinstance(one.label, Access) and one.label.side is Side.WRITE


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


def _at(one: PtxInstruction) -> str:
    return f"{one.opcode} at line {one.line}"
