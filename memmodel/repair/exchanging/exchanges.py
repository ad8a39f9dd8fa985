"""Changes that put one instruction for another, or one number for another in all like instructions of a thread.

In: a lowered test, changes of single numbers. Out: edits. Settled here: what takes the place of what. An arrival by
hand after matrix operations may have to be a commit; an expect_tx that no thread completes by an arrival may have to be
an arrival itself; a commit in a cluster may have to signal every CTA, and then each object counts the commits of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Write
from memmodel.ptx.operands import Imm
from memmodel.repair.costs import OTHER, WAIT
from memmodel.repair.edits import Edit, place, whole
from memmodel.repair.insertion.arrivals import count_of, one_more
from memmodel.repair.insertion.gaps import gaps
from memmodel.repair.insertion.lines import commit

WARP = 32
"""The threads that a thread of a test stands for."""

BEHIND = 8
"""The turn of an arrival among what is put at one place: after fences and waits."""

ALIKE = ("alike",)
"""The end of the group of a change that is made to all like instructions."""

BARRIERS = ("bar", "barrier")
"""How instructions at barriers begin."""

THREADS = ("threads",)
"""The same for a line that is put into all like threads."""


def exchanges(lowered: LoweredTest) -> list[Edit]:
    """Instructions that may have to be others."""
    test = lowered.test
    edits: list[Edit] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            at = (number, index, "name")
            edits += _arrive_by_commit(lowered, number, item, at)
            edits += _arrive_and_expect(thread, item, at)
            edits += _arrive_without_bytes(lowered, number, item, at)
            edits += _multicast(test, thread, item, at)
    return [*edits, *_all_multicast(lowered), *_counted_barriers(lowered)]


def barrier_of(item: Instruction) -> tuple[int, int] | None:
    """Which operand of an instruction says at which barrier of the CTA it is, and the number of that barrier."""
    if item.parts[0] not in BARRIERS or "cluster" in item.parts or "warp" in item.parts:
        return None
    number = 1 if "red" in item.parts else 0
    operand = item.operands[number] if number < len(item.operands) else None
    return (number, operand.value) if isinstance(operand, Imm) else None


def alike(lowered: LoweredTest, numbers: Iterable[Edit]) -> list[Edit]:
    """The same number put for the same number in all like instructions of a thread, or of all like threads, and the
    same count for the same count in all instructions at a barrier."""
    text = lowered.test.source.text
    items = [list(instructions(thread)) for thread in lowered.test.threads]
    bodies = [tuple(item.mnemonic for item in body) for body in items]
    groups: dict[tuple[object, ...], list[Edit]] = {}
    for edit in numbers:
        thread, index = edit.group[:2]
        if edit.group[2] == "number" and len(edit.group) == 4 and isinstance(thread, int) and isinstance(index, int):
            item, change = items[thread][index], (text[edit.start : edit.end], edit.text)
            groups.setdefault((thread, item.mnemonic, *change), []).append(edit)
            if bodies.count(bodies[thread]) > 1:
                groups.setdefault((bodies[thread], item.mnemonic, *change), []).append(edit)
            named = barrier_of(item)
            span = None if named is None else item.operands[named[0]].span
            if named is not None and span is not None and edit.start != span.start:
                barrier = f"barrier {named[1]}"
                groups.setdefault((BARRIERS, barrier, *change), []).append(edit)
    merged: dict[frozenset[Edit], Edit] = {}
    widest = sorted(groups.items(), key=lambda group: -len({edit.group[0] for edit in group[1]}))
    for (_, among, old, new), edits in widest:
        if len(edits) > 1 and frozenset(edits) not in merged:
            first, *more = edits
            lines = ", ".join(str(text.count("\n", 0, edit.start) + 1) for edit in edits)
            names = ", ".join(dict.fromkeys(edit.what.partition(",")[0] for edit in edits))
            what = f"{names}, lines {lines}: {old} -> {new} in {among}"
            cost = sum(edit.cost for edit in edits)
            group = (*first.group[:3], *ALIKE)
            merged[frozenset(edits)] = replace(first, what=what, cost=cost, group=group, more=tuple(more))
    return list(merged.values())


def alike_waits(lowered: LoweredTest, lines: Iterable[Edit]) -> Iterator[Edit]:
    """The same wait put at the same place of all threads that have the same instructions."""
    bodies = [tuple(item.mnemonic for item in instructions(thread)) for thread in lowered.test.threads]
    groups: dict[tuple[object, ...], list[Edit]] = {}
    for edit in lines:
        thread, index, name = edit.group
        if edit.rank == 0 and "wait" in edit.text and isinstance(thread, int):
            groups.setdefault((bodies[thread], index, name), []).append(edit)
    for first, *more in groups.values():
        if more:
            named = {edit.what.partition(",")[0]: None for edit in more}
            what = f"{first.what}; and in {', '.join(named)}"
            cost = sum((edit.cost for edit in more), first.cost)
            yield replace(first, what=what, cost=cost, group=(*first.group, *THREADS), more=tuple(more))


def waits_of_rounds(lowered: LoweredTest, lines: Iterable[Edit]) -> Iterator[Edit]:
    """A wait in each round but the first, for one parity and the other in turn, where rounds are written one by one.

    A round begins with an arrival that expects bytes.
    """
    known = {edit.group: edit for edit in lines if edit.rank == 0 and re.search("parity [01] of", edit.what)}
    for number, thread in enumerate(lowered.test.threads):
        rounds: dict[str, list[int]] = {}
        for index, item in enumerate(instructions(thread)):
            if "arrive.expect_tx" in item.mnemonic:
                rounds.setdefault(item.span.text, []).append(index)
        names = dict.fromkeys(str(group[2]) for group in known if group[0] == number)
        for name in names:
            for _, *places in rounds.values():
                other = name.replace("parity 0", "parity 1")
                waits = [known.get((number, at, (name, other)[turn % 2])) for turn, at in enumerate(places)]
                edits = [edit for edit in waits if edit is not None]
                if "parity 0" in name and len(edits) == len(places) > 1:
                    what = f"{thread.name}: {name.replace('for parity 0', 'in each round but the first')}"
                    cost = sum(edit.cost for edit in edits)
                    group = (*edits[0].group, *THREADS)
                    yield replace(edits[0], what=what, cost=cost, group=group, more=tuple(edits[1:]))


def _word(thread: Thread, item: Instruction, text: str, price: float, group: tuple[object, ...]) -> Edit:
    what = f"{place(thread, item)}: {item.mnemonic} -> {text.split(' ')[0]}"
    return Edit(item.mnemonic_span.start, item.span.end, text, what, price, group)


def _arrive_by_commit(lowered: LoweredTest, number: int, item: Instruction, at: tuple[object, ...]) -> Iterator[Edit]:
    """A commit in place of an arrival."""
    thread = lowered.test.threads[number]
    if not item.mnemonic.startswith("mbarrier.arrive") or "expect_tx" in item.mnemonic or "[" not in item.span.text:
        return
    name = item.span.text.partition("[")[2].partition("]")[0]
    before = (step.op for step in lowered.programs[number].steps if step.index < at[1])  # type: ignore[operator]
    line = next((line for op in before if (line := commit(op, name)) is not None), None)
    if line is not None:
        yield _word(thread, item, line, WAIT, at)


def _arrive_and_expect(thread: Thread, item: Instruction, at: tuple[object, ...]) -> Iterator[Edit]:
    """mbarrier.expect_tx that arrives as well."""
    if item.mnemonic.startswith("mbarrier.expect_tx"):
        words = ".cluster.shared::cluster" if ".cluster" in item.mnemonic else ".shared::cta"
        operands = item.span.text[item.mnemonic_span.end - item.span.start :].strip()
        sem = ".release" if "cluster" in words else ""
        sink = "_, " if item.operands else ""
        yield _word(thread, item, f"mbarrier.arrive.expect_tx{sem}{words}.b64 {sink}{operands}", OTHER, at)


def _arrive_without_bytes(
    lowered: LoweredTest, number: int, item: Instruction, at: tuple[int, int, str]
) -> Iterator[Edit]:
    """An arrival that expects no bytes; where it stands, also with a count of one more, or behind the stores that
    follow."""
    named = re.search(r"\[\s*([A-Za-z_$][\w$]*)", item.span.text)
    if not item.mnemonic.startswith("mbarrier.arrive") or "expect_tx" not in item.mnemonic or named is None:
        return
    operands = item.span.text[item.mnemonic_span.end - item.span.start :].rpartition(",")[0]
    text = f"{item.mnemonic.replace('.expect_tx', '', 1)}{operands}"
    edit, more = _word(lowered.test.threads[number], item, text, OTHER, at), one_more(lowered, named[1])
    if more is not None:
        yield replace(edit, what=f"{edit.what} with {more.what}", cost=edit.cost + OTHER, more=(more,))
    if any("complete_tx" in it.mnemonic for thread in lowered.test.threads for it in instructions(thread)):
        return  # the bytes may have to come
    yield edit
    later = [gap for gap in gaps(lowered, number) if gap.index > at[1] + 1]
    behind = next((gap for gap in later if not (gap.ahead and isinstance(gap.ahead[0], Write))), None)
    stores = lowered.programs[number].ops(at[1] + 1)
    if behind is not None and any(isinstance(op, Write) for op in stores):
        put = behind.insertion(f"{text};", text, 0.0, BEHIND)
        what = f"{edit.what} {behind.where} (line {behind.item.span.line})"
        yield replace(edit, start=whole(item)[0], end=whole(item)[1], text="", what=what, cost=2 * OTHER, more=(put,))


def _counted_barriers(lowered: LoweredTest) -> Iterator[Edit]:
    """A barrier of all threads of a CTA as one of those that come to it, where others do not."""
    uses: dict[tuple[tuple[object, ...], int], dict[int, list[Edit]]] = {}
    places = [thread.place.cta_id for thread in lowered.test.threads]
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            barrier = barrier_of(item)
            numbers = [operand for operand in item.operands if isinstance(operand, Imm)]
            if barrier is None or "sync" not in item.parts or len(numbers) != 1:
                continue
            edit = Edit(item.span.end, item.span.end, "", "", OTHER, (number, index, "number", 1))
            uses.setdefault((places[number], barrier[1]), {}).setdefault(number, []).append(edit)
    for (cta, barrier_number), threads in uses.items():
        if 1 < len(threads) < places.count(cta):
            count = WARP * len(threads)
            first, *more = [replace(edit, text=f", {count}") for edits in threads.values() for edit in edits]
            names = ", ".join(lowered.test.threads[number].name for number in threads)
            what = f"{names}: a count of {count} at barrier {barrier_number}"
            cost = OTHER * (1 + len(more))
            yield replace(first, what=what, cost=cost, group=(*first.group[:3], *ALIKE), more=tuple(more))


def _multicast(test: LitmusTest, thread: Thread, item: Instruction, at: tuple[object, ...]) -> Iterator[Edit]:
    """A commit that signals every CTA of the cluster."""
    ctas = {member.place.cta for member in test.threads if member.place.cluster_id == thread.place.cluster_id}
    if item.mnemonic.startswith("tcgen05.commit") and "multicast" not in item.mnemonic and len(ctas) > 1:
        mnemonic = item.mnemonic.replace(".b64", ".multicast::cluster.b64")
        operands = item.span.text[item.mnemonic_span.end - item.span.start :]
        yield _word(thread, item, f"{mnemonic}{operands}, {(1 << len(ctas)) - 1}", OTHER, at)


def invalidated(lowered: LoweredTest) -> Iterator[Edit]:
    """mbarrier.inval in front of an init of an object that the thread has initialised before."""
    for number in range(len(lowered.programs)):
        before: set[str] = set()
        for gap in gaps(lowered, number):
            named = re.search(r"\[[^\]]*\]", gap.item.span.text)
            if gap.last or named is None or not gap.item.mnemonic.startswith(("mbarrier.init", "mbarrier.inval")):
                continue
            if "init" in gap.item.mnemonic and named[0] in before:
                line = f"mbarrier.inval.shared::cta.b64 {named[0]};"
                yield gap.insertion(line, line, OTHER, 0)
            before = before - {named[0]} if "inval" in gap.item.mnemonic else before | {named[0]}


def _all_multicast(lowered: LoweredTest) -> Iterator[Edit]:
    """Every commit on an object signals every CTA of the cluster, and the object counts all of them."""
    test = lowered.test
    for variable in test.variables:
        now = count_of(lowered, variable.name)
        edits = [
            edit
            for number, thread in enumerate(test.threads)
            for index, item in enumerate(instructions(thread))
            if f"[{variable.name}]" in item.span.text
            for edit in _multicast(test, thread, item, (number, index, "name"))
        ]
        ctas = {thread.place.cta_id for thread in test.threads}
        if now is None or len(edits) < 2 or now[0] < 1:
            continue
        count = now[0] * len(ctas)
        counted = Edit(now[1], now[2], str(count), "", OTHER, (-1, variable.name, "number"))
        first, *more = edits
        what = f"every tcgen05.commit on {variable.name} to all CTAs, and its count {now[0]} -> {count}"
        cost = sum(edit.cost for edit in edits) + OTHER
        yield replace(first, what=what, cost=cost, group=(*first.group, *ALIKE), more=(*more, counted))
