"""Instructions that all lanes of a warp execute together, and those that only some of them reach.

In: a judged kernel, its edits. Out: whether an insertion stands where warps are diverged. PTX ISA, "bar, barrier": with
`.aligned` all threads of a warp must execute the same instruction; bar is barrier.aligned.
"""

from __future__ import annotations

from collections import Counter

from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.repair.edits import PtxEdits, inserted
from memmodel.kernel.trace.launch import LaunchTrace


def diverged(kernel: JudgedKernel, edits: PtxEdits) -> bool:
    """True if only some lanes of a warp reach an inserted instruction with `.aligned`."""
    places = inserted(edits)
    new = {
        instruction.number
        for instruction in kernel.entry.body or ()
        if ("aligned" in instruction.words or (instruction.words[0] == "bar" and instruction.kind != "warp"))
        and any(instruction.span.start in place for place in places)
    }
    return bool(new) and bool(new & partial(kernel))


def executions(trace: LaunchTrace) -> Counter[tuple[int, int]]:
    """How often each thread executed an instruction that left something in a run, by instruction and thread."""
    events = ((event, thread.number) for thread in trace.threads for event in thread.events)
    counts = Counter((event.at, number) for event, number in events if event.order is not None)
    counts.update((access.at, access.thread) for access in trace.single)
    for accesses in trace.lanes:
        counts.update((accesses.at, number) for number in accesses.threads)
    return counts


def reached(kernel: JudgedKernel) -> set[int]:
    """The lines of the instructions that some thread executed; those of all if the run is not known."""
    body = kernel.entry.body or ()
    if kernel.representative is None:
        return {instruction.line for instruction in body}
    return {body[at].line for at, _ in executions(kernel.representative.run.run)}


def partial(kernel: JudgedKernel) -> set[int]:
    """The numbers of the instructions that the lanes of a warp executed, but not equally often."""
    if kernel.representative is None:
        return set()
    run = kernel.representative.run.run
    counts = executions(run)
    warps: dict[tuple[int, int], list[int]] = {}
    for thread in run.threads:
        warps.setdefault((thread.cta, thread.warp), []).append(thread.number)
    numbers = {at for at, _ in counts}
    return {
        at for at in numbers for lanes in warps.values() if len({counts.get((at, thread), 0) for thread in lanes}) > 1
    }


__all__ = ["diverged", "executions", "partial", "reached"]
