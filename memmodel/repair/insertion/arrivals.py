"""Arrivals that a test lacks: on an mbarrier object, at a barrier where others wait.

In: a lowered test. Out: edits. Settled here: an arrival on an object comes with a count that is larger by one or, where
no thread may have arrived yet, alone; a thread joins a barrier that another one of its CTA or cluster has and it has
not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier, Emit
from memmodel.ptx.operands import Imm
from memmodel.ptx.vocabulary import Space
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, TCGEN05_FENCE, WAIT
from memmodel.repair.edits import Edit
from memmodel.repair.insertion.completed_bytes import completed_bytes
from memmodel.repair.insertion.gaps import Opening, gaps
from memmodel.repair.insertion.lines import AFTER, commit, fresh, is_after, visible_ops, wait_for

ARRIVALS = 9
"""The turn of an arrival among what is put into one gap: after everything else."""

EXPECTING = OTHER + SCOPE_COST["cta"] * SEM_FACTOR["release"] + OTHER
"""What an arrival costs that expects bytes."""

CLUSTER = "barrier.cluster."
"""How both halves of the barrier of a cluster begin."""

CLUSTER_BARRIER = f"{CLUSTER}arrive;\n{CLUSTER}wait;"


def arrivals(lowered: LoweredTest) -> list[Edit]:
    """Arrivals on the objects of a test, and at its barriers."""
    edits: list[Edit] = []
    counts = {
        variable.name: one_more(lowered, variable.name) for variable in lowered.test.variables if variable.length == 1
    }
    objects = [name for name, more in counts.items() if more is not None]
    for number, thread in enumerate(lowered.test.threads):
        openings = gaps(lowered, number)
        expected = _expected(lowered, thread, objects)
        for gap in openings:
            edits += (gap.insertion(line, line, EXPECTING, ARRIVALS) for line in expected)
            if not gap.ahead or not isinstance(gap.ahead[0], Emit):  # it releases what fences before it order, too
                edits += _on_objects(lowered, thread, gap, counts)
                edits += _commits(gap, counts)
            if not any(counts.values()):
                edits += _new_object(lowered, gap)
        for line, price in _missed(lowered, number):
            edits += (gap.insertion(line, line.replace("\n", " "), price, ARRIVALS) for gap in openings)
    return edits


def _on_objects(lowered: LoweredTest, thread: Thread, gap: Opening, counts: dict[str, Edit | None]) -> Iterator[Edit]:
    for name, line, scope in _arrives(lowered, thread, counts):
        price = OTHER + SCOPE_COST[scope] * SEM_FACTOR["release"] + OTHER
        yield gap.insertion(line, line, price, ARRIVALS)
        more = counts[name]
        if more is not None:
            yield gap.insertion(line, f"{line} with {more.what}", price + OTHER, ARRIVALS, more=(more,))


def _expected(lowered: LoweredTest, thread: Thread, objects: list[str]) -> list[str]:
    """Arrivals that expect what instructions complete on an object, where no thread of the CTA expects any: of all of
    these instructions, and of one."""
    own = [other for other in lowered.test.threads if other.place.cta_id == thread.place.cta_id]
    items = [item for other in own for item in instructions(other)]
    completed = completed_bytes(lowered)
    lines = []
    for name in objects:
        uses = (item for item in items if re.search(rf"\[\s*{re.escape(name)}\b", item.span.text))
        if any("expect_tx" in item.mnemonic for item in uses):
            continue
        sizes = completed.get(name, [])
        for size in dict.fromkeys((sum(sizes), *sizes) if sizes else ()):
            lines.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{name}], {size};")
    return lines


def _commits(gap: Opening, counts: dict[str, Edit | None]) -> Iterator[Edit]:
    """tcgen05.commit on objects, and on those on which others arrive as well."""
    for name, more in counts.items():
        line = _commit(gap, name)
        if more is not None and line is not None:
            yield gap.insertion(f"{line};", line, WAIT + OTHER, ARRIVALS)
            yield gap.insertion(f"{line};", f"{line} with {more.what}", WAIT + 2 * OTHER, ARRIVALS, more=(more,))


def _new_object(lowered: LoweredTest, gap: Opening) -> Iterator[Edit]:
    """An object for a commit, and a wait for it, where the test has none."""
    test = lowered.test
    name = fresh(test.source.text, "done")
    line = _commit(gap, name)
    if line is None or not gap.ahead or not test.variables:
        return
    at = test.source.text.index(";", test.variables[-1].span.start) + 1
    what_is_new = f"mbarrier object {name}"
    declared = Edit(at, at, f"\n.shared .align 8 .b64 {name} = mbarrier(1);", what_is_new, OTHER, (-1, name, "object"))
    text = f"{line};\n{wait_for(test.source.text, name, '', 0, gap.index)}"
    what, price = f"{line} and a wait for it, with a new {what_is_new},", 2 * WAIT + OTHER
    if not is_after(gap.ahead[0]):
        text, what, price = f"{text}\n{AFTER};", f"{what} and {AFTER}", price + TCGEN05_FENCE
    yield gap.insertion(text, what, price, ARRIVALS, more=(declared,))


def _commit(gap: Opening, name: str) -> str | None:
    """tcgen05.commit for what comes just before a gap."""
    past = visible_ops(gap.past)
    return commit(past[-1], name) if past else None


def _arrives(lowered: LoweredTest, thread: Thread, counts: dict[str, Edit | None]) -> Iterator[tuple[str, str, str]]:
    """An arrival on each object of a thread's CTA, and of the other CTAs of its cluster."""
    others = {
        other.place.cta: None
        for other in lowered.test.threads
        if other.place.cluster_id == thread.place.cluster_id and other.place.cta_id != thread.place.cta_id
    }
    for name, more in counts.items():
        if more is None or _waits_for(thread, name):
            continue
        yield name, f"mbarrier.arrive.shared::cta.b64 _, [{name}];", "cta"
        for cta in others:
            yield name, f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{name}@cta{cta}];", "cluster"


def _waits_for(thread: Thread, name: str) -> bool:
    """True if a thread waits for an object; then other threads arrive on it."""
    return any("wait" in item.mnemonic and f"[{name}]" in item.span.text for item in instructions(thread))


def count_of(lowered: LoweredTest, name: str) -> tuple[int, int, int] | None:
    """The arrive count of an object and the characters that say it; None for what is no object, or has no number."""
    test = lowered.test
    for variable in test.variables:
        if variable.name == name and variable.mbarrier is not None and variable.space is Space.SHARED:
            match = re.compile(r"[^;\n]*?mbarrier\(\s*(\d+)\s*\)").match(test.source.text, variable.span.start)
            return None if match is None else (variable.mbarrier, match.start(1), match.end(1))
    for thread in test.threads:
        for item in instructions(thread):
            if item.mnemonic.startswith("mbarrier.init") and f"[{name}]" in item.span.text:
                count = item.operands[-1]
                if isinstance(count, Imm) and count.span is not None:
                    return count.value, count.span.start, count.span.end
    return None


def one_more(lowered: LoweredTest, name: str) -> Edit | None:
    """The arrive count of an object, larger by one."""
    count = count_of(lowered, name)
    if count is None:
        return None
    now, start, end = count
    return Edit(start, end, str(now + 1), f"count of {name} {now} -> {now + 1}", OTHER, (-1, name, "number"))


def _missed(lowered: LoweredTest, number: int) -> Iterator[tuple[str, float]]:
    """Barriers that another thread of the CTA or the cluster has more often than this one, or of which it has one half
    only, with their prices."""
    thread = lowered.test.threads[number]
    mine = _barriers(lowered, number)
    missed: dict[str, float] = {}
    halves = [item.mnemonic.split(".")[2] for item in instructions(thread) if item.mnemonic.startswith(CLUSTER)]
    if halves.count("wait") > halves.count("arrive"):
        missed[f"{CLUSTER}arrive;"] = SCOPE_COST["cluster"]
    elif halves.count("arrive") > halves.count("wait"):
        missed[f"{CLUSTER}wait;"] = WAIT
    for other, other_thread in enumerate(lowered.test.threads):
        for text in _barriers(lowered, other) - mine:
            if text == CLUSTER and other_thread.place.cluster_id == thread.place.cluster_id:
                missed[CLUSTER_BARRIER] = WAIT + SCOPE_COST["cluster"]
            elif text != CLUSTER and other_thread.place.cta_id == thread.place.cta_id:
                missed[f"{text};"] = WAIT + OTHER
    yield from missed.items()


def _barriers(lowered: LoweredTest, number: int) -> Counter[str]:
    """How often a thread has each barrier of its CTA in its text, and that of the cluster (`CLUSTER`)."""
    items = list(instructions(lowered.test.threads[number]))
    used = dict.fromkeys(step.index for step in lowered.programs[number].steps if isinstance(step.op, AtBarrier))
    texts = (items[index].span.text for index in used if items[index].mnemonic.startswith(("bar.sync", "barrier.")))
    return Counter(CLUSTER if text.startswith(CLUSTER) else text for text in texts)
