"""Whether a launch does the same with a larger number in a parameter that decides no trip count.

In: entry, run, how to run the launch again. Out: `Reached`, the parameters that decide more than what is stored;
`LargerNumber`. Settled here: guards, branches, addresses, sizes, counts and parities are followed as for longer loops
(`following`), without a loop that is stretched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from memmodel.isa.lowered import body_of
from memmodel.kernel.all_sizes.access_kinds import brings, leaves
from memmodel.kernel.all_sizes.following import FollowedRounds
from memmodel.kernel.all_sizes.loops import LoopText, unseen
from memmodel.kernel.all_sizes.operand_roles import OperandRole, uses_of
from memmodel.kernel.all_sizes.parameters import ParamPart, parts_of
from memmodel.kernel.all_sizes.periods import written_blocks
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction

Again = Callable[[FollowedRounds], LaunchTrace]
"""Runs the launch under one schedule, with a follower."""

STORED = (OperandRole.VALUE, OperandRole.SIZE)
"""What a number may be for, so that the launch does the same with another one."""


def reaching(entry: PtxFunction, loops: Mapping[int, LoopText], pointers: Collection[ParamPart]) -> list[ParamPart]:
    """The numbers in parameters that may decide what is executed, or where, how much and for how long; an
    over-approximation. `pointers`: those that are addresses of buffers.
    """
    body, names = body_of(entry), {parameter.name for parameter in entry.params}
    parts = dict.fromkeys(part for does in body for part in parts_of(does) if part.name in names)
    return [part for part in parts if part not in pointers and _decides(entry, unseen(entry, loops), part)]


def _decides(entry: PtxFunction, ignored: Collection[int], part: ParamPart) -> bool:
    body = body_of(entry)
    if any(does.calls for does in body):
        return True
    varying: set[int | str] = set()
    for does in body:
        if any(part.meets(loaded) for loaded in parts_of(does)):
            varying.update(does.writes, does.notes_written)
    in_memory, before = False, -1
    while len(varying) + in_memory > before:
        before = len(varying) + in_memory
        for does in body:
            guard = does.instruction.guard
            if guard is not None and guard.slot in varying and does.instruction.number not in ignored:
                return True
            computes = not varying.isdisjoint(does.reads) or not varying.isdisjoint(does.notes_read)
            if computes or (in_memory and brings(does)):
                varying.update(does.writes, does.notes_written)
                in_memory |= leaves(does)
    return any(
        use.role not in STORED and not varying.isdisjoint(use.slots)
        for at, does in enumerate(body)
        if at not in ignored
        for use in uses_of(does)
    )


@dataclass(frozen=True, slots=True)
class LargerNumber:
    """A parameter with which a launch does the same if it is larger by multiples of `step`, up to `most` times."""

    param: ParamPart
    value: int | None
    step: int
    most: int

    def __str__(self) -> str:
        reach = f"up to {self.most} times, where numbers wrap; as long as buffers reach"
        return f"{self.param} = {self.value} and any multiple of {self.step} more ({reach})"


def larger_number(
    entry: PtxFunction, loops: Mapping[int, LoopText], param: ParamPart, again: Again, equal: frozenset[int]
) -> LargerNumber | str:
    """Show that a launch does the same with larger numbers in a parameter; a text says why this is not shown. `equal`:
    stores that are no finding because others store the same.
    """
    followed = FollowedRounds(loops, entry, param, {}, {})
    try:
        run = again(followed)
    except Refused as error:
        place = f" at line {error.span.line}" if error.span is not None else ""
        return f"{error.message}{place} may depend on it"
    if run.problems:
        return "the run itself goes wrong"
    for at in sorted(followed.varying & equal):
        instruction = (entry.body or ())[at]
        return f"{instruction.at_line} may no longer store what others store there"
    written = written_blocks(run)
    for block, instruction in followed.wandering.items():
        if block in written:
            return f"{instruction.at_line} reads elsewhere, where something is written"
    for block, moved in followed.placed.items():
        together = len({access.drift for access in moved}) == 1
        strong = any(event.block is block for thread in run.threads for event in thread.strong())
        if block in written and (strong or not together or sum(moved.values()) < sum(1 for _ in run.weak((block,)))):
            return f"the bytes of {block.instance.name} that threads touch may not lie apart"
    step = followed.drifts.divisor
    most = followed.drifts.periods() // step
    return LargerNumber(param, followed.value, step, most) if most else "a number wraps"


def in_every_schedule(
    entry: PtxFunction, loops: Mapping[int, LoopText], param: ParamPart, again: Sequence[Again], equal: frozenset[int]
) -> LargerNumber | str:
    """The same for several schedules. A parameter grows by a multiple of each step, and no further than in each."""
    answers = [larger_number(entry, loops, param, run, equal) for run in again]
    for answer in answers:
        if isinstance(answer, str):
            return answer
    shown = [answer for answer in answers if isinstance(answer, LargerNumber)]
    if not shown:
        return "what it does depends on the schedule"
    step = lcm(*(answer.step for answer in shown))
    most = min(answer.most * answer.step // step for answer in shown)
    return LargerNumber(param, shown[0].value, step, most) if most else "a number wraps"
