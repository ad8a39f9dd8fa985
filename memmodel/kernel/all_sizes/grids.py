"""Whether the verdict of a launch holds for any grid, or which term stops that.

In: module, entry, launch, run. Out: a sentence. Settled here: in a grid that is longer in one dimension, more CTAs add
nothing new if all do the same on bytes that are apart and move with the number of the CTA by a constant step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from memmodel.base.labels import Access, is_write
from memmodel.isa.lowered import lowered
from memmodel.kernel.all_sizes.cta_dependence import CtaDependence, CtaDependences
from memmodel.kernel.launch import Launch
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.indices import index_of
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.threads import TraceThread
from memmodel.program.ops import Read, UndefinedIf, Write
from memmodel.program.warp_ops import AccessTexture, AmongLanes, Forget, MoveMatrix, TransposeMatrix
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Mem, TensorOperand, Vector
from memmodel.ptx.vocabulary import Scope, Space

Done = TypeVar("Done", TraceEvent, WeakAccess)
DATA = Read | Write | MoveMatrix | TransposeMatrix | Forget | AccessTexture | AmongLanes
"""Steps of instructions whose operands without brackets are results or data."""


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
                return f"not shown: CTAs may meet at {body[event.at].at_line}"
    counted = _counted(run)
    for access in run.weak():
        if (
            isinstance(access.label, Access)
            and access.label.rmw
            and _global(access.block)
            and access.block not in counted
        ):
            return f"not shown: CTAs may meet at {body[access.at].at_line}"
    answers = {axis: _along(module, entry, launch, run, axis, counted) for axis in range(3) if launch.grid[axis] > 1}
    if len(answers) == 1:
        return next(iter(answers.values()))
    return "; ".join(f"along {'xyz'[axis]}: {answer}" for axis, answer in answers.items())


def _along(
    module: PtxModule, entry: PtxFunction, launch: Launch, run: LaunchTrace, axis: int, counted: set[Block]
) -> str:  # fmt: skip
    """The answer for grids that are longer in one dimension."""
    body, dependences = entry.body or (), CtaDependences(module, entry, launch, "xyz"[axis])
    why = next((why for step in body if (why := _uneven(step, dependences)) is not None), None)
    return f"not shown: {why}" if why is not None else _apart(run, body, counted, launch.grid, axis)


def _uneven(step: PtxInstruction, dependences: CtaDependences) -> str | None:
    """What an instruction does with numbers that differ between CTAs, apart from moving its addresses evenly."""
    if step.guard is not None and dependences.slots([step.guard.slot]) is not CtaDependence.NONE:
        return f"{step.at_line} is guarded by what depends on the number of the CTA or the size of the grid"
    addresses = [operand for operand in step.operands if isinstance(operand, Mem | TensorOperand)]
    if dependences.of(addresses) is CtaDependence.OTHER:
        return f"the address of {step.at_line} is not linear in the number of the CTA"
    does = lowered(step)
    hint = does.without_effect and not does.jumps_by_table and not any(isinstance(op, UndefinedIf) for op in does.ops)
    if does.computes or hint or any(isinstance(op, DATA) for op in does.ops):
        return None
    calls = does.calls or does.jumps_by_table
    others = [
        operand
        for operand in step.operands[bool(does.writes) :]
        if calls or not isinstance(operand, Mem | TensorOperand | Vector)
    ]
    if dependences.of(others) is not CtaDependence.NONE:
        return f"an operand of {step.at_line} depends on the number of the CTA or the size of the grid"
    return None


def _apart(
    run: LaunchTrace, body: tuple[PtxInstruction, ...], counted: set[Block], grid: tuple[int, int, int], axis: int
) -> str:  # fmt: skip
    """Check that each CTA does what the one before it does, on bytes that lie further by a constant step and are no
    other CTA's. Returns why not, or an empty text.

    A CTA stands together with those that differ from it in the other dimensions.
    """
    ctas: dict[int, list[TraceThread]] = {}
    for thread in run.threads:
        ctas.setdefault(thread.cta, []).append(thread)
    accesses: dict[int, list[WeakAccess]] = {}
    for access in run.weak():
        if access.block not in counted:
            accesses.setdefault(access.thread, []).append(access)
    every = [access for listed in accesses.values() for access in listed]
    changed = {access.block for access in every if _global(access.block) and is_write(access.label)}
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
                return f"not shown: CTAs {cta} and {other} differ at {body[at].at_line}"
            for a, b in zip(*both, strict=True):
                if a.block in changed:
                    steps[a.block].add((b.first - a.first) / (further - place))
    own = {thread.number for line in lines for thread in ctas[line[0][1]]}
    descriptions = []
    for block in sorted(changed, key=lambda block: block.address):
        spans = [
            (access.first, access.first + access.size)
            for access in every
            if access.block is block and access.thread in own
        ]
        size = max(end for _, end in spans) - min(begin for begin, _ in spans)
        step, *others = steps[block]
        if others:
            return f"not shown: CTAs touch bytes of {block.instance.name} that are not evenly spaced"
        if abs(step) < size:
            return f"not shown: CTAs touch {size} bytes of {block.instance.name}, {step:g} bytes apart"
        descriptions.append(f"{size} bytes of {block.instance.name}, {step:g} bytes apart")
    where = f", each on its own {' and '.join(descriptions)}" if descriptions else ""
    reach = "as long as buffers reach and no number wraps"
    return f"yes, with any number of CTAs along {'xyz'[axis]}, {reach}: CTAs do the same{where}"


def _lines(ctas: Iterable[int], grid: tuple[int, int, int], axis: int) -> list[list[tuple[int, int]]]:
    """CTAs that differ in one dimension only: for each its place in it, and its number."""
    lines: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for number in sorted(ctas):
        index = list(index_of(number, grid))
        place = index.pop(axis)
        lines.setdefault(tuple(index), []).append((place, number))
    return list(lines.values())


def _first_unlike(ones: Sequence[Done], others: Sequence[Done], same: Callable[[Done, Done], bool]) -> int | None:
    """The instruction at which two threads first differ."""
    for a, b in zip(ones, others, strict=False):
        if not same(a, b):
            return a.at
    longer = ones if len(ones) > len(others) else others
    return None if len(ones) == len(others) else longer[min(len(ones), len(others))].at


def _same_event(first: TraceEvent, second: TraceEvent) -> bool:
    """True if two events are the same in their CTAs."""
    if first.at != second.at or first.label != second.label or _where(first) != _where(second):
        return False
    return (first.count, first.generation) == (second.count, second.generation)


def _same_access(first: WeakAccess, second: WeakAccess) -> bool:
    """True if two accesses are the same, up to their places in global memory."""
    if (first.at, first.epoch, first.part) != (second.at, second.epoch, second.part) or first.size != second.size:
        return False
    return first.block is second.block if _global(first.block) else _where(first) == _where(second)


def _where(access: TraceEvent | WeakAccess) -> tuple[Space | None, int, int, int] | None:
    """The place of an access or of an object in its CTA."""
    return (
        None if access.block is None else (access.block.instance.space, access.block.address, access.first, access.size)
    )


def _global(block: Block) -> bool:
    return block.instance.space is Space.GLOBAL


def _counted(run: LaunchTrace) -> set[Block]:
    """The buffers that CTAs touch only with unobserved atomic operations whose scope includes the device."""
    only_atomics: dict[Block, bool] = {}
    for access in run.weak():
        label = access.label
        wide = isinstance(label, Access) and label.rmw and label.scope is not None and label.scope >= Scope.GPU
        only_atomics[access.block] = (
            only_atomics.get(access.block, True) and wide and not (isinstance(label, Access) and label.asynchronous)
        )
    return {block for block, only in only_atomics.items() if only}
