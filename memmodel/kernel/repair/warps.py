"""Instructions that all lanes of a warp make together, and those to which only some of them come.

In: a judged kernel, its edits. Out: whether what was put in stands where warps are split. PTX ISA, "bar, barrier": with
`.aligned` all threads of a warp must execute the same instruction; bar is barrier.aligned.
"""

from __future__ import annotations

from collections import Counter

from memmodel.kernel.check.launch_judge import LaunchJudge
from memmodel.kernel.repair.edits import PtxEdits, inserted


def halved(work: LaunchJudge, edits: PtxEdits) -> bool:
    """Does a warp come with only some of its lanes to an instruction with `.aligned` that was put in?"""
    places = inserted(edits)
    new = {
        one.number
        for one in work.entry.body or ()
        if ("aligned" in one.words or (one.words[0] == "bar" and one.kind != "warp"))
        and any(one.span.start in place for place in places)
    }
    return bool(new) and bool(new & split(work))


def split(work: LaunchJudge) -> set[int]:
    """The numbers of the instructions that lanes of one warp made in the run, but not equally often."""
    if work.first is None:
        return set()
    run = work.first[0].run
    made = Counter((event.at, one.number) for one in run.threads for event in one.events if event.order is not None)
    made.update((one.at, one.thread) for one in run.single)
    for several in run.lanes:
        made.update((several.at, thread) for thread in several.threads)
    warps: dict[tuple[int, int], list[int]] = {}
    for one in run.threads:
        warps.setdefault((one.cta, one.warp), []).append(one.number)
    numbers = {at for at, _ in made}
    return {
        at for at in numbers for lanes in warps.values() if len({made.get((at, thread), 0) for thread in lanes}) > 1
    }


__all__ = ["halved", "split"]
