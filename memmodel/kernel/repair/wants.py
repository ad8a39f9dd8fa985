"""Changes of the text of a judged kernel that might cure its findings, first those that most findings ask for.

In: `JudgedKernel`, the edits that its text has already. Out: `KernelChange`s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from math import prod

from memmodel.answer import HANG
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.graph import STEP
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.missing_order import synchronizes
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.arrivals import arrivals, committed_instead, first_arrivals, misnamed, ranks
from memmodel.kernel.repair.atomics import OneAtomic, atomics
from memmodel.kernel.repair.edits import PtxEdit, PtxEdits, cost, disjoint, original
from memmodel.kernel.repair.inits import inits
from memmodel.kernel.repair.lines import MissingLine, Where, lines
from memmodel.kernel.repair.moves import MovedInstruction, moves
from memmodel.kernel.repair.parities import begun_otherwise, flips, kept_parities, states
from memmodel.kernel.repair.polls import other_numbers, polls
from memmodel.kernel.repair.waits import waits
from memmodel.kernel.repair.warps import partial
from memmodel.kernel.repair.words import (
    Reworded,
    all_that_arrive,
    expected_bytes,
    met_by_all,
    other_barriers,
    reworded,
    waiting_more,
    waits_too,
)
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import JumpTarget
from memmodel.ptx.targets import version_of
from memmodel.repair.costs import OTHER

LOOKED_AT = 24
"""Findings whose changes are tried."""

MOVE = 1.0
"""What a moved instruction costs."""

MOST_AROUND = 3
"""Branches around an access beside which a barrier is tried."""


LANES_MEET = MissingLine("bar.warp.sync 0xffffffff;", Where.ANY, OTHER)
"""The lanes of a warp meet."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """Edits that are made together. `votes`: the findings that ask for them."""

    edits: PtxEdits
    votes: int
    rank: int


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place beside an instruction. `inside`: a branch leads around it."""

    instruction: PtxInstruction
    after: bool
    inside: bool = False


def candidates(kernel: JudgedKernel, edits: PtxEdits) -> list[KernelChange]:
    """What to try, in this order."""
    asked: dict[PtxEdits, set[int]] = {}
    ranks: dict[PtxEdits, int] = {}
    partly = partial(kernel)
    for number, finding in enumerate(kernel.verdict.serious[:LOOKED_AT]):
        for rank, change in enumerate(_changes(kernel, finding, edits, partly)):
            asked.setdefault(change, set()).add(number)
            ranks[change] = min(rank, ranks.get(change, rank))
    changes = [KernelChange(change, len(asked[change]), ranks[change]) for change in asked]
    return sorted(changes, key=lambda change: (-change.votes, change.rank, cost(change.edits), change.edits))


def _changes(kernel: JudgedKernel, finding: KernelFinding, edits: PtxEdits, partly: set[int]) -> Iterator[PtxEdits]:
    """The changes that one finding asks for. `partly`: the instructions that only some lanes of a warp reach."""
    for group in inits(kernel, finding) if finding.rule == HANG else ():
        yield from _together(
            [_put(line, _Spot(line.at, after=line.after), edits, partly) for line in group if line.at is not None],
            edits,
        )
    body = kernel.entry.body or ()
    counts = (*met_by_all(kernel, finding), *other_barriers(finding, body), *expected_bytes(kernel, finding))
    counts = (*waits_too(finding, body), *counts, *misnamed(kernel, finding), *ranks(kernel, finding))
    first = [side.instruction for side in finding.sides[:-1]]
    commits = [(change,) for side in first for change in committed_instead(side, body)]
    counts = (*counts, *commits, *states(finding, body), *other_numbers(finding, kernel.entry))
    for change in (
        *all_that_arrive(kernel, finding),
        *reworded(finding, kernel.entry),
        *counts,
        *waiting_more(finding, kernel.entry),
    ):
        yield from _together([_replaced(edit, edits) for edit in change], edits)
    for atomic in atomics(finding, kernel.entry):
        yield from _together(_as_atomic(atomic, edits), edits)
    run = kernel.runs.get(id(finding))
    alone = {Where.SECOND: tuple(_Spot(side.instruction, after=False) for side in finding.sides)}
    places = _places(run, finding) if run is not None and len(finding.sides) > 1 else alone
    missing = lines(finding, kernel.entry, prod(kernel.launch.cluster))
    more = (*first_arrivals(kernel, finding), *arrivals(kernel, finding)) if finding.rule == HANG else ()
    turned = (*flips(finding, body), *begun_otherwise(finding, body))
    for group in (*waits(kernel, finding), *polls(finding, kernel.entry), *missing, *turned, *more):
        yield from _together(_past_the_loop(group[0], body, edits), edits)
        spots = [
            (_Spot(line.at, after=line.after),) if line.at is not None else places.get(line.where, ()) for line in group
        ]
        for chosen in product(*spots):
            new = [_put(line, spot, edits, partly) for line, spot in zip(group, chosen, strict=True)]
            yield from _together(new, edits)
        if run is not None and len(group) == 1 and group[0].where is Where.MEETING and group[0].at is None:
            for head in _heads(run, finding):
                yield from _together(_in_front_of_loop(*head, group[0], edits), edits)
    for test, *kept in kept_parities(finding, body):
        new = [_put(line, _Spot(line.at, after=False), edits, partly) for line in kept if line.at is not None]
        yield from _together([_replaced(test, edits), *new], edits)
    for move in moves(finding, kernel.entry):
        yield from _together(_moved(move, edits), edits)
    if finding.rule == HANG:
        yield from _together([_put(LANES_MEET, spot, edits, partly) for spot in _waits_apart(kernel)], edits)

    if run is not None and len(finding.sides) > 1 and _leaves_by_another_lane(run, finding):
        for spot in places[Where.MEETING]:
            yield from _together([_put(LANES_MEET, spot, edits, partly)], edits)


def _leaves_by_another_lane(run: RunJudge, finding: KernelFinding) -> bool:
    """True if the thread of the first access tells nothing after it, and another warp of its CTA has the second one:
    another lane may tell for all."""
    first, second = finding.sides[0], finding.sides[-1]
    apart = first.cta == second.cta and first.warp != second.warp
    return apart and _next(run, finding.events[0], ordering=True) is None


def _waits_apart(kernel: JudgedKernel) -> list[_Spot]:
    """The places behind loops in which lanes wait for an mbarrier object beside the lane that acts."""
    judged, body = kernel.representative, kernel.entry.body or ()
    if judged is None or judged.judgement.flags is None:
        return []
    spots = []
    for test in sorted({at for _, at in judged.run.late_tests(judged.judgement.flags)}):
        for branch in body[test + 1 :]:
            target = branch.operands[0] if branch.words[0] == "bra" else None
            if isinstance(target, JumpTarget):
                spots += [_Spot(branch, after=True)] if target.at <= test else []
                break
    return spots


def _together(new: list[PtxEdit], old: PtxEdits) -> Iterator[PtxEdits]:
    whole = tuple(sorted(new))
    if whole and disjoint((*old, *whole)):
        yield whole


def _put(line: MissingLine, spot: _Spot, edits: PtxEdits, partly: set[int]) -> PtxEdit:
    """`partly`: instructions that only some lanes of a warp reach; bar.sync needs all lanes, barrier.sync does not."""
    instruction, words = spot.instruction, line.text
    text = instruction.span.source.text
    if instruction.number in partly and instruction.guard is None and words.startswith("bar.sync"):
        words = words.replace("bar.", "barrier.", 1)
    at = original(edits, text.index(";", instruction.span.end) + 1 if spot.after else instruction.span.start)
    what = f"{words.rstrip(';')} {'after' if spot.after else 'before'} {instruction.opcode}{_version(words, text)}"
    return PtxEdit(at, at, words, instruction.line, what, line.cost + (OTHER if spot.inside else 0.0))


def _version(line: str, text: str) -> str:
    """The version of PTX that a line needs, in words, where it is newer than that of the module."""
    spelling = spelling_of(line.split()[0].rstrip(";"))
    own = re.search(r"\.version\s+(\d+\.\d+)", text)
    if own is None or not isinstance(spelling, Spelling):
        return ""
    newest = max((since.version for since in spelling.requirements(0).values()), key=version_of)
    return f" (PTX {newest})" if version_of(newest) > version_of(own[1]) else ""


def _moved(move: MovedInstruction, edits: PtxEdits) -> list[PtxEdit]:
    """An instruction that goes from its place, and stands at another one."""
    span, beside = move.instruction.span, move.beside.span
    text, end = span.source.text, span.source.text.index(";", span.end) + 1
    opcode, where = move.instruction.opcode, f"{'after' if move.after else 'before'} {move.beside.opcode}"
    gone = PtxEdit(original(edits, span.start), original(edits, end), "", span.line, f"move {opcode} from here", 0.0)
    at = original(edits, text.index(";", beside.end) + 1 if move.after else beside.start)
    return [gone, PtxEdit(at, at, f"{span.text};", move.beside.line, f"{opcode} {where}", MOVE)]


def _heads(run: RunJudge, finding: KernelFinding) -> Iterator[tuple[PtxInstruction, PtxInstruction]]:
    """The branches around the first access that lead to the head of a loop, each with that head: what stands behind its
    label is done in every round."""
    back = {
        target.at
        for it in run.body
        if isinstance(target := (it.operands or (None,))[0], JumpTarget) and target.at <= it.number
    }
    for branch, join in _around(run, finding.sides[0].instruction):
        if join.number in back:
            yield branch, join


def _in_front_of_loop(
    branch: PtxInstruction, head: PtxInstruction, line: MissingLine, edits: PtxEdits
) -> list[PtxEdit]:
    """A line in front of a loop, and the branch that comes to it from elsewhere led there."""
    target, text = branch.operands[0], head.span.source.text
    assert isinstance(target, JumpTarget)
    place = list(re.finditer(rf"(?<![\w$]){re.escape(target.name)}(?=\s*:)", text[: head.span.start]))
    if not place:
        return []
    label, start = f"{target.name}_{branch.line}", place[-1].start()
    led = branch.span.text.rpartition(target.name)
    what = f"{line.text.rstrip(';')} before the loop at {target.name}"
    return [
        _replaced(Reworded(branch, f"{led[0]}{label}{led[2]}", f"bra to {label}", 0.0), edits),
        PtxEdit(original(edits, start), original(edits, start), f"{label}: {line.text}", head.line, what, line.cost),
    ]


def _past_the_loop(line: MissingLine, body: tuple[PtxInstruction, ...], edits: PtxEdits) -> list[PtxEdit]:
    """A line that belongs in front of a loop to which threads come by a branch alone."""
    head = body[line.at.number + 1] if line.after and line.at is not None and line.at.opcode == "bra" else None
    if head is None or line.at is None or line.at.guard is not None:
        return []
    for branch in body[: head.number]:
        target = branch.operands[0] if branch.words[0] == "bra" else None
        if isinstance(target, JumpTarget) and target.at == head.number:
            return _in_front_of_loop(branch, head, line, edits)
    return []


def _as_atomic(atomic: OneAtomic, edits: PtxEdits) -> list[PtxEdit]:
    """The load as an atomic, and the store that goes with its semicolon."""
    changed = _replaced(Reworded(atomic.load, atomic.text, atomic.what, atomic.cost), edits)
    span = atomic.store.span
    start, end = original(edits, span.start), original(edits, span.source.text.index(";", span.end) + 1)
    return [changed, PtxEdit(start, end, "", span.line, f"{atomic.store.opcode} goes", 0.0)]


def _replaced(change: Reworded, edits: PtxEdits) -> PtxEdit:
    span = change.instruction.span
    start, end = original(edits, span.start), original(edits, span.end)
    return PtxEdit(start, end, change.text, span.line, change.what, change.cost)


def _places(run: RunJudge, finding: KernelFinding) -> dict[Where, tuple[_Spot, ...]]:
    """The places for lines between the accesses of a finding."""
    first, second = finding.sides[0], finding.sides[-1]
    after_first, before_second = _Spot(first.instruction, after=True), _Spot(second.instruction, after=False)
    steps = list(zip(finding.steps, finding.way, strict=False))
    leaves = [step for _, step in takewhile(lambda step: step[1].thread == first.thread, steps)]
    comes = [n for n, step in steps[len(leaves) :] if step.thread == second.thread]
    goes_on = _next(run, finding.events[0], ordering=True)
    arrived = _next(run, comes[0], ordering=False) if comes else None
    releasing = [step.instruction for step in leaves[::-1] if step.instruction is not first.instruction]
    releasing += [] if goes_on is None else [goes_on]
    acquiring = (*([] if arrived is None else [_Spot(arrived, after=False)]), before_second)
    left = (*(_Spot(instruction, after=False) for instruction in releasing), after_first)
    far = next((pair for pair in pairwise(finding.way) if pair[0].cta != pair[1].cta), None)
    if far is not None:  # fences stand beside the step from one CTA to another
        left = (_Spot(far[0].instruction, after=False), *left)
        acquiring = (_Spot(far[1].instruction, after=True), *acquiring)
    return {
        Where.ANY: tuple(dict.fromkeys((before_second, *left, *acquiring))),
        Where.RELEASING: tuple(dict.fromkeys(left)),
        Where.ACQUIRING: tuple(dict.fromkeys(acquiring)),
        Where.FIRST: (after_first,),
        Where.SECOND: (before_second,),
        Where.AFTER_SECOND: (_Spot(second.instruction, after=True),),
        Where.MEETING: tuple(dict.fromkeys(_meetings(run, first.instruction, second.instruction))),
    }


def _meetings(run: RunJudge, first: PtxInstruction, second: PtxInstruction) -> Iterator[_Spot]:
    """Places beside the accesses, and at the branches that lead around them: before the branch, and at its target."""
    around = {access: _around(run, access) for access in (second, first)}
    of_first, of_second = bool(around[first]), bool(around[second])
    again = _next_branch(run, second) if "mbarrier" in second.words and "parity" in second.words else None
    if again is not None and 0 < again <= second.number:  # every failed test would meet again
        yield _Spot(run.body[again - 1], after=True)
    yield from (_Spot(second, after=False, inside=of_second), _Spot(first, after=True, inside=of_first))
    for branches in around.values():
        for branch, join in branches[::-1][:MOST_AROUND]:
            yield from (_Spot(branch, after=False), _Spot(join, after=False))
    yield from (_Spot(first, after=False, inside=of_first), _Spot(second, after=True, inside=of_second))


def _next_branch(run: RunJudge, test: PtxInstruction) -> int | None:
    """Where the first branch behind a test leads to."""
    branch = next((it for it in run.body[test.number :] if it.words[0] == "bra"), None)
    target = None if branch is None else branch.operands[0]
    return target.at if isinstance(target, JumpTarget) else None


def _around(run: RunJudge, access: PtxInstruction) -> list[tuple[PtxInstruction, PtxInstruction]]:
    """The branches that lead around an access, each with the instruction where they lead to."""
    guarded = (it for it in run.body[: access.number] if it.words[0] == "bra" and it.guard is not None)
    return [
        (branch, run.body[target.at])
        for branch in guarded
        if isinstance(target := branch.operands[0], JumpTarget) and access.number < target.at < len(run.body)
    ]


def _next(run: RunJudge, number: int, *, ordering: bool) -> PtxInstruction | None:
    """The next instruction of the thread of an event that leaves an event. `ordering`: one that may synchronize."""
    point, origin = run.graph.points[number], run.graph.origins[number]
    whole = point if point.issue is None else run.graph.points[point.issue]
    if whole.thread is None:
        return None
    events = run.run.threads[origin.thread].events[(whole.order or 0) // STEP :]
    later = (event.at for event in events if event.at != origin.at and (not ordering or synchronizes(event.label)))
    at = next(later, None)
    return None if at is None else run.body[at]
