"""Two halves of a proxy fence in place of a whole one, where they cost less.

In: a lowered test, its repairs. Out: more repairs. Settled here: a consumer that has only read a buffer hands it back
with the release half that is about its reads alone, and the thread whose copy overwrites it takes the acquire half in
front of the copy. A half by itself orders nothing, so that the search for single changes finds neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from memmodel.isa.synchronization.fence_async import READS
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import IssueAsync
from memmodel.repair.costs import half_of_proxy_fence
from memmodel.repair.edits import Edit
from memmodel.repair.insertion.gaps import gaps
from memmodel.repair.insertion.lines import ONE_SIDED, hands_on, visible_ops
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes, cost, in_order
from memmodel.repair.spellings import RESTRICTED

RELEASE = f"{ONE_SIDED}.release.{READS}.cluster"
ACQUIRE = RESTRICTED["acquire"].replace("fence", ONE_SIDED, 1)
LINE = 1.0
"""What one more line costs beside its instruction."""

MOST = 12
"""At most this many pairs of places are judged for one repair."""


def with_halves(search: Trials, lowered: LoweredTest, repairs: list[Changes]) -> list[Changes]:
    """For the cheapest repair that has a whole proxy fence, the first pair of halves in its place that is enough."""
    for repair in sorted(repairs, key=cost):
        whole = [edit for edit in repair if edit.adds == 1 and edit.text.split(";")[0].strip() in WHOLE]
        if len(whole) != 1:
            continue
        rest = tuple(edit for edit in repair if edit is not whole[0])
        for number, pair in enumerate(_pairs(lowered)):
            edits = in_order((*rest, *pair))
            if number == MOST or cost(edits) >= cost(repair):
                break
            if search.is_right(edits):
                return [edits]
        break
    return []


WHOLE = ("fence.proxy.async", *(f"fence.proxy.async.{space}" for space in ("shared::cta", "shared::cluster")))


def _pairs(lowered: LoweredTest) -> Iterator[tuple[Edit, Edit]]:
    """A release half in front of what a thread hands on with, and an acquire half in front of a copy of another."""
    releases = [edit for number in range(len(lowered.programs)) for edit in places_of_half(lowered, number, RELEASE)]
    acquires = [edit for number in range(len(lowered.programs)) for edit in places_of_half(lowered, number, ACQUIRE)]
    yield from (pair for pair in product(releases, acquires) if pair[0].group[0] != pair[1].group[0])


def places_of_half(lowered: LoweredTest, number: int, half: str) -> Iterator[Edit]:
    """A half at each place of a thread where it may serve."""
    price = half_of_proxy_fence("release" if half == RELEASE else "acquire", reads=half == RELEASE)
    for gap in gaps(lowered, number):
        past, ahead = visible_ops(gap.past), visible_ops(gap.ahead)
        if past and ahead and (hands_on(ahead[0]) if half == RELEASE else isinstance(ahead[0], IssueAsync)):
            yield gap.insertion(f"{half};", half, price + LINE, 3)
