"""Two locks that a thread takes in the other order, where threads that take them in two orders wait for each other; one
lock for two by which threads guard the same.

In: a lowered test. Out: edits. Settled here: the atomic operations that take the locks are alike but for the place that
they name, and these change places. Of two locks no thread takes both, and all threads do the same with each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.ptx.operands import Mem
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, place
from memmodel.why.polls import names_a_place


def lock_order(lowered: LoweredTest) -> Iterator[Edit]:
    """For each two locks of a thread, the change after which it takes the second one first."""
    for number, thread in enumerate(lowered.test.threads):
        taken = [(index, item) for index, item in enumerate(instructions(thread)) if _takes(item)]
        for (index, first), (later, second) in combinations(taken, 2):
            if first.mnemonic != second.mnemonic or named_place(first) == named_place(second):
                continue
            spans = [_memory(item).span for item in (first, second)]
            what = f"{place(thread, first)}: takes {spans[1].text} before {spans[0].text} (line {second.span.line})"
            more = Edit(spans[1].start, spans[1].end, spans[0].text, what, OTHER, (number, later, "name"))
            group = (number, index, "name")
            yield Edit(spans[0].start, spans[0].end, spans[1].text, what, 2 * OTHER, group, more=(more,))


def one_lock(lowered: LoweredTest) -> Iterator[Edit]:
    """One lock in place of another one, for each two locks of which no thread takes both."""
    uses: dict[str, dict[int, list[tuple[int, Instruction]]]] = {}
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            if names_a_place(item) and named_place(item)[1:] == (None, 0):
                uses.setdefault(named_place(item).variable, {}).setdefault(number, []).append((index, item))
    locks = [name for name, users in uses.items() if all(any(_takes(it) for _, it in its) for its in users.values())]
    for first, second in permutations(locks, 2):
        words = [{tuple(it.mnemonic for _, it in its) for its in uses[name].values()} for name in (first, second)]
        if uses[first].keys() & uses[second].keys() or words[0] != words[1]:
            continue
        edits = []
        for number, its in uses[second].items():
            for index, item in its:
                span = _memory(item).span
                edits.append(Edit(span.start, span.end, f"[{first}]", "", OTHER, (number, index, "name")))
        names = " and ".join(lowered.test.threads[number].name for number in uses[second])
        head, *more = edits
        what = f"{names}: {second} -> {first}, one lock for both"
        yield replace(head, what=what, cost=OTHER * len(edits), more=tuple(more))


def _takes(item: Instruction) -> bool:
    """True of a compare-and-swap or an exchange of a named place whose result is looked at."""
    return item.parts[0] == "atom" and bool({"cas", "exch"} & set(item.parts)) and names_a_place(item)


def _memory(item: Instruction) -> Mem:
    return next(operand for operand in item.operands if isinstance(operand, Mem))
