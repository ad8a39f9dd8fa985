"""What might mend the findings of a judged kernel: changes of its text, those that most findings ask for first.

In: LaunchJudge whose verdict is there, the edits that its text has already. Out: `KernelChange`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from math import prod

from memmodel.kernel.check.launch_judge import LaunchJudge
from memmodel.kernel.order.graph import STEP
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.missing import synchronizes
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.edits import PtxEdit, PtxEdits, apart, cost, original
from memmodel.kernel.repair.lines import MissingLine, Where, lines
from memmodel.kernel.repair.warps import split
from memmodel.kernel.repair.words import Reworded, reworded, waiting_more
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import JumpTarget

LOOKED_AT = 24
"""Findings that are asked what they lack."""

MOST_AROUND = 3
"""Branches around an access beside which a barrier is tried."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """Edits that are made together. `votes`: the findings that ask for them."""

    edits: PtxEdits
    votes: int
    rank: int


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place beside an instruction."""

    instruction: PtxInstruction
    behind: bool


def candidates(work: LaunchJudge, edits: PtxEdits) -> list[KernelChange]:
    """What to try, in this order."""
    asked: dict[PtxEdits, set[int]] = {}
    ranks: dict[PtxEdits, int] = {}
    halves = split(work)
    for number, finding in enumerate(work.verdict.serious[:LOOKED_AT]):
        for rank, change in enumerate(_changes(work, finding, edits, halves)):
            asked.setdefault(change, set()).add(number)
            ranks[change] = min(rank, ranks.get(change, rank))
    found = [KernelChange(change, len(asked[change]), ranks[change]) for change in asked]
    return sorted(found, key=lambda one: (-one.votes, one.rank, cost(one.edits), one.edits))


def _changes(work: LaunchJudge, finding: KernelFinding, edits: PtxEdits, halves: set[int]) -> Iterator[PtxEdits]:
    """What one finding asks for. `halves`: the instructions that only some lanes of a warp come to."""
    for change in reworded(finding, work.entry):
        yield from _together([_replaced(one, edits) for one in change], edits)
    made = work.made.get(id(finding))
    alone = {Where.SECOND: tuple(_Spot(side.instruction, behind=False) for side in finding.sides)}
    places = _places(made, finding) if made is not None and len(finding.sides) > 1 else alone
    for group in lines(finding, work.entry, prod(work.launch.cluster)):
        spots = [(_Spot(one.at, behind=False),) if one.at is not None else places.get(one.where, ()) for one in group]
        for chosen in product(*spots):
            new = [_put(line, spot, edits, halves) for line, spot in zip(group, chosen, strict=True)]
            yield from _together(new, edits)
    for change in waiting_more(finding, work.entry):
        yield from _together([_replaced(one, edits) for one in change], edits)


def _together(new: list[PtxEdit], old: PtxEdits) -> Iterator[PtxEdits]:
    whole = tuple(sorted(new))
    if apart((*old, *whole)):
        yield whole


def _put(line: MissingLine, spot: _Spot, edits: PtxEdits, halves: set[int]) -> PtxEdit:
    """`halves`: what only some lanes of a warp come to; bar.sync needs all of them, barrier.sync does not."""
    one, words = spot.instruction, line.text
    text = one.span.source.text
    if one.number in halves and one.guard is None and words.startswith("bar.sync"):
        words = words.replace("bar.", "barrier.", 1)
    at = original(edits, text.index(";", one.span.end) + 1 if spot.behind else one.span.start)
    what = f"{words.rstrip(';')} {'after' if spot.behind else 'before'} {one.opcode}"
    return PtxEdit(at, at, words, one.line, what, line.cost)


def _replaced(change: Reworded, edits: PtxEdits) -> PtxEdit:
    span = change.instruction.span
    start, end = original(edits, span.start), original(edits, span.end)
    return PtxEdit(start, end, change.text, span.line, change.what, change.cost)


def _places(made: RunJudge, finding: KernelFinding) -> dict[Where, tuple[_Spot, ...]]:
    """Where lines may go between the accesses of a finding."""
    first, second = finding.sides[0], finding.sides[-1]
    here, there = _Spot(first.instruction, behind=True), _Spot(second.instruction, behind=False)
    steps = list(zip(finding.steps, finding.way, strict=False))
    leaves = [one for _, one in takewhile(lambda step: step[1].thread == first.thread, steps)]
    comes = [n for n, one in steps[len(leaves) :] if one.thread == second.thread]
    goes_on = _next(made, finding.events[0], ordering=True)
    arrived = _next(made, comes[0], ordering=False) if comes else None
    releasing = [one.instruction for one in leaves[::-1] if one.instruction is not first.instruction]
    releasing += [] if goes_on is None else [goes_on]
    acquiring = (*([] if arrived is None else [_Spot(arrived, behind=False)]), there)
    left = (*(_Spot(one, behind=False) for one in releasing), here)
    far = next((pair for pair in pairwise(finding.way) if pair[0].cta != pair[1].cta), None)
    if far is not None:  # fences stand beside the step from one CTA to another
        left = (_Spot(far[0].instruction, behind=False), *left)
        acquiring = (_Spot(far[1].instruction, behind=True), *acquiring)
    return {
        Where.ANY: tuple(dict.fromkeys((there, *left, *acquiring))),
        Where.RELEASING: tuple(dict.fromkeys(left)),
        Where.ACQUIRING: tuple(dict.fromkeys(acquiring)),
        Where.FIRST: (here,),
        Where.SECOND: (there,),
        Where.BEHIND: (_Spot(second.instruction, behind=True),),
        Where.MEETING: tuple(dict.fromkeys(_meetings(made, first.instruction, second.instruction))),
    }


def _meetings(made: RunJudge, first: PtxInstruction, second: PtxInstruction) -> Iterator[_Spot]:
    """Beside the accesses, and at the branches that lead around them: before the branch, and where it goes."""
    yield from (_Spot(second, behind=False), _Spot(first, behind=True))
    for one in (second, first):
        around = []
        for branch in made.body[: one.number]:
            target = branch.operands[0] if branch.words[0] == "bra" else None
            if branch.guard is not None and isinstance(target, JumpTarget) and one.number < target.at < len(made.body):
                around.append((branch, made.body[target.at]))
        for branch, join in around[::-1][:MOST_AROUND]:
            yield from (_Spot(branch, behind=False), _Spot(join, behind=False))
    yield from (_Spot(first, behind=False), _Spot(second, behind=True))


def _next(made: RunJudge, number: int, *, ordering: bool) -> PtxInstruction | None:
    """The next instruction of the thread of an event that leaves an event. `ordering`: one that may synchronize."""
    point, behind = made.graph.points[number], made.graph.behind[number]
    whole = point if point.issue is None else made.graph.points[point.issue]
    if whole.thread is None:
        return None
    events = made.run.threads[behind.thread].events[max(0, (whole.order or 0) // STEP - 1) :]
    later = (one.at for one in events if one.at != behind.at and (not ordering or synchronizes(one.label)))
    at = next(later, None)
    return None if at is None else made.body[at]
