"""The initialisation of an mbarrier object, where a kernel waits for one that is not initialised.

In: a judged kernel, a finding that threads hang. Out: `MissingLine`s. Settled here: one thread of a CTA initialises,
where others are initialised, or in front of the first barrier. The count is 1, or that of another object, or that of
the threads of a CTA that arrive somewhere in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import GUARD, MissingLine, Where
from memmodel.kernel.repair.object_names import guarded, names_of, unused
from memmodel.kernel.repair.warps import executions
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.repair.costs import OTHER

BARRIERS = ("bar", "barrier")


def inits(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    """Lines with an initialisation each."""
    trace = None if kernel.representative is None else kernel.representative.run.run
    if trace is None or len(finding.sides) != 1:
        return
    at, body = finding.sides[0].instruction.number, kernel.entry.body or ()
    objects = {
        (stuck.awaits.block, stuck.awaits.first): stuck.threads
        for stuck in trace.stuck
        if stuck.at == at and stuck.awaits is not None and not stuck.awaits.live
    }
    for (block, first), threads in objects.items():
        for name in reversed(names_of(body, trace, block, first, threads)):  # the variable has its name everywhere
            for count in _counts(trace, body):
                for place, after, lines in _places(body, f"mbarrier.init.shared::cta.b64 {name}, {count};"):
                    yield (MissingLine(lines, Where.SECOND, OTHER, place, after=after),)


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


def _places(body: tuple[PtxInstruction, ...], line: str) -> Iterator[tuple[PtxInstruction, bool, str]]:
    """Beside which instruction, whether after it, and the lines, with a guard if the place has none."""
    for it in body:
        if it.words[:2] == ("mbarrier", "init") or it.words[:2] == ("fence", "mbarrier_init"):
            guard = GUARD.match(it.span.text)
            yield it, "init" in it.words, guarded(line, guard[0] if guard else "")
    meeting = next((it for it in body if it.words[0] in BARRIERS and "warp" not in it.words), None)
    if meeting is not None:
        thread, first = unused("%thread", body), unused("%first", body)
        setting = f".reg .b32 {thread}; .reg .pred {first}; mov.u32 {thread}, %tid.x; setp.eq.u32 {first}, {thread}, 0"
        yield meeting, False, guarded(f"{setting}; {line}", f"@{first} ")


__all__ = ["inits"]
