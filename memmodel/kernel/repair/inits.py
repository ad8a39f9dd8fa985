"""The initialisation of an mbarrier object, where a kernel waits for one that is not initialised.

In: a judged kernel, a finding that threads hang. Out: `MissingLine`s. Settled here: every hang asks for it: others wait
for those that wait in vain. One thread of a CTA initialises, where others are initialised, by the name that these
have there, or in front of the first barrier. The count is 1, or that of another object, or that of the threads of a CTA
that arrive somewhere in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import GUARD, MissingLine, Where
from memmodel.kernel.repair.object_names import guarded, names_beside, names_of, unused
from memmodel.kernel.repair.warps import executions
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.repair.costs import OTHER

BARRIERS = ("bar", "barrier")
INITIALISING = (("mbarrier", "init"), ("fence", "mbarrier_init"))


def inits(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    """Lines with an initialisation each."""
    trace = None if kernel.representative is None else kernel.representative.run.run
    if trace is None or len(finding.sides) != 1:
        return
    body = kernel.entry.body or ()
    objects: dict[tuple[Block, int], set[int]] = {}
    for stuck in trace.stuck:
        if stuck.awaits is not None and not stuck.awaits.live:
            objects.setdefault((stuck.awaits.block, stuck.awaits.first), set()).update(stuck.threads)
    for (block, first), threads in objects.items():
        beside = names_beside(body, trace, block, first)
        names = names_of(body, trace, block, first, threads)[::-1]  # the variable has its name everywhere
        for count, place in product(_counts(trace, body), _places(body)):
            for name in [beside[place.number]] if place.number in beside else names:
                yield (_line(body, place, f"mbarrier.init.shared::cta.b64 {name}, {count};"),)


def _counts(trace: LaunchTrace, body: tuple[PtxInstruction, ...]) -> list[str]:
    """The arrivals that a phase may have, as operands."""
    others = [it.span.text.rpartition(",")[2].strip() for it in body if it.words[:2] == ("mbarrier", "init")]
    arrives = {it.number for it in body if it.words[:2] == ("mbarrier", "arrive")}
    threads: dict[int, Counter[object]] = {}
    for at, number in executions(trace):
        if at in arrives:
            threads.setdefault(at, Counter())[trace.threads[number].place.cta_id] += 1
    arrived = [str(count) for ctas in threads.values() for count in ctas.values()]
    return list(dict.fromkeys(["1", *others, *arrived]))


def _places(body: tuple[PtxInstruction, ...]) -> Iterator[PtxInstruction]:
    """Where others are initialised, and the first barrier."""
    yield from (it for it in body if it.words[:2] in INITIALISING)
    meeting = next((it for it in body if it.words[0] in BARRIERS and "warp" not in it.words), None)
    if meeting is not None:
        yield meeting


def _line(body: tuple[PtxInstruction, ...], place: PtxInstruction, line: str) -> MissingLine:
    """A line beside an instruction, with a guard if that has none."""
    if place.words[:2] in INITIALISING:
        guard = GUARD.match(place.span.text)
        text = guarded(line, guard[0] if guard else "")
        return MissingLine(text, Where.SECOND, OTHER, place, after="init" in place.words)
    thread, first = unused("%thread", body), unused("%first", body)
    setting = f".reg .b32 {thread}; .reg .pred {first}; mov.u32 {thread}, %tid.x; setp.eq.u32 {first}, {thread}, 0"
    return MissingLine(guarded(f"{setting}; {line}", f"@{first} "), Where.SECOND, OTHER, place)


__all__ = ["inits"]
