"""Two halves of a proxy fence in place of a whole one that is needed, where they cost less.

In: a lowered test, the changes that weaken it. Out: more of them. Settled here: where the halves may stand. One takes
the place of the whole fence, and the other one stands in another thread, unless it is there already. A half by itself
orders nothing, so that the search over the forms of one place finds neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import cost, half_of_proxy_fence
from memmodel.repair.edits import Edit, apply, respelled
from memmodel.repair.searching.halves import ACQUIRE, MOST, RELEASE, WHOLE, places_of_half
from memmodel.repair.weakening.forms import ONLY_READ


def with_halves(lowered: LoweredTest, changes: Sequence[Edit], enough: Callable[[str], bool]) -> tuple[Edit, ...]:
    """The changes, with halves for each whole proxy fence that is left. `enough`: a text allows nothing more."""
    text, kept = lowered.test.source.text, tuple(changes)
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            if item.mnemonic not in WHOLE:
                continue
            mine = next((edit for edit in kept if edit.group == (number, index)), None)
            rest = tuple(edit for edit in kept if edit is not mine)
            saved = 0.0 if mine is None else -mine.cost
            now = cost(read_instruction(item, lowered.test))
            candidates = [edit for edit in _instead(lowered, number, index, now, rest) if -edit.cost > saved]
            if mine is not None and not mine.text:
                continue  # it is dropped
            for edit in candidates[:MOST]:
                if enough(apply(text, (*rest, edit))):
                    older = item.mnemonic if mine is None else mine.text
                    edit = replace(edit, what=f"{edit.what}; for an older PTX {older}")
                    kept = tuple(sorted((*rest, edit), key=lambda change: change.start))
                    break
    return kept


def _instead(lowered: LoweredTest, number: int, index: int, now: float, rest: Sequence[Edit]) -> Iterator[Edit]:
    """A half of a proxy fence in place of the whole fence: alone if the other half is there already, else with the
    other half put into another thread.
    """
    thread = lowered.test.threads[number]
    item = list(instructions(thread))[index]
    for half, other in ((RELEASE, ACQUIRE), (ACQUIRE, RELEASE)):
        price = half_of_proxy_fence("release" if half == RELEASE else "acquire", reads=half == RELEASE)
        alone = respelled(thread, item, half, price - now, (number, index), what=f": {ONLY_READ}")
        text = lowered.test.source.text
        if other in text or any(other in part.text for edit in rest for part in (edit, *edit.more)):
            yield alone
        elsewhere = (n for n in range(len(lowered.programs)) if n != number)
        for put in (edit for n in elsewhere for edit in places_of_half(lowered, n, other)):
            where = put.what.replace(other, f"with {other}", 1)
            what = alone.what.replace(f": {ONLY_READ}", f", {where}: {ONLY_READ}")
            yield replace(alone, what=what, cost=alone.cost + put.cost, more=(replace(put, cost=0.0),))
