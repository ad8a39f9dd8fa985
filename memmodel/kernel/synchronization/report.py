"""Every synchronizing instruction of a kernel: what it orders, what breaks without it, what would do in its place.

In: the mutants of a kernel with their verdicts, and the order of its own run. Out: `SynchronizationReport`. Settled
here: an instruction is needed if the kernel without it has a finding; stronger than needed if it is needed, and a
weaker form of it is not noticed; needless if its removal is not noticed, for this launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from memmodel.base.labels import Access, Side
from memmodel.kernel.mutate.mutants import BROKEN, MutantResult, Noticed
from memmodel.kernel.mutate.mutations import REMOVED
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.mutate.table import MutationTable
from memmodel.kernel.mutate.together import MinimumSet
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.output.places import cuda_word, on_disk, places
from memmodel.kernel.output.source_names import source_names
from memmodel.kernel.synchronization.pipeline import Pipeline, pipeline
from memmodel.ptx.module.syntax import PtxInstruction


class Necessity(Enum):
    """How much the kernel needs an instruction."""

    NEEDED = "needed"
    STRONGER = "stronger than needed"
    READING = "needed under a reading"
    NEEDLESS = "needless here"
    OPEN = "undecided"
    UNREACHED = "not reached"
    LATE = "not judged"


@dataclass(frozen=True, slots=True)
class OrderedAccesses:
    """Accesses of `memory` by two instructions, the first before the second. `count`: pairs of events."""

    memory: str
    first: PtxInstruction
    second: PtxInstruction
    sides: tuple[Side, Side] | None
    count: int

    @property
    def phrase(self) -> str:
        """What is done with the memory, in a few words."""
        first, second = named(self.first), named(self.second)
        match self.sides:
            case (Side.WRITE, Side.READ):
                return f"hands {self.memory} from {first} to {second}"
            case (Side.READ, Side.WRITE):
                return f"gives {self.memory} back: read by {first}, written again by {second}"
            case (Side.WRITE, Side.WRITE):
                return f"keeps writes of {self.memory} in order: {first}, {second}"
        return f"makes an object ready: {first} before {second}"


def named(instruction: PtxInstruction) -> str:
    """What the source calls an instruction, or its opcode, and where it stands."""
    return f"{name_of(instruction)} ({place(instruction)})"


def name_of(instruction: PtxInstruction) -> str:
    """What the source calls an instruction, or its opcode."""
    word = "" if on_disk(instruction) else cuda_word(instruction)
    return word or instruction.opcode


def place(instruction: PtxInstruction) -> str:
    """Where an instruction stands in the text that the user wrote."""
    own = None if on_disk(instruction) else next(iter(places(instruction.location)), None)
    return f"{own.file}:{own.line}" if own is not None else f"line {instruction.line}"


def line_of(instruction: PtxInstruction) -> int:
    """The line of an instruction in the text that the user wrote."""
    own = None if on_disk(instruction) else next(iter(places(instruction.location)), None)
    return own.line if own is not None else instruction.line


@dataclass(frozen=True, slots=True)
class Synchronization:
    """One synchronizing instruction.

    `orders`: the accesses on both sides of it that have to be ordered, those that are nearest to it first. `without`:
    what the kernel shows if it is removed, or why nothing. `weaker`: changes of it that are not noticed, with the
    reason.
    """

    instruction: PtxInstruction
    need: Necessity
    orders: tuple[OrderedAccesses, ...]
    without: str
    weaker: tuple[tuple[str, str], ...]

    @property
    def phrase(self) -> str:
        """What it does, in one phrase."""
        return _phrase(self.orders)


def _phrase(orders: tuple[OrderedAccesses, ...]) -> str:
    more = len(orders) - 1
    return orders[0].phrase + (f", and {more} more" if more else "") if orders else ""


def phrase(order: LaunchOrder, instruction: PtxInstruction) -> str:
    """What an instruction does in a run, in one phrase; empty if that is not known."""
    return _phrase(tuple(_Crossing(order).of(instruction)))


@dataclass(frozen=True, slots=True)
class SynchronizationReport:
    """All synchronizing instructions, in the order of the text. `minimum`: None if it was not asked for, or there was
    no time for it. `pipeline`: the hand-overs of the representative run; None if none was judged. `late`: why not
    all was judged.
    """

    base: KernelVerdict
    synchronizations: tuple[Synchronization, ...]
    minimum: MinimumSet | None = None
    pipeline: Pipeline | None = None
    late: str = ""

    def count(self, need: Necessity) -> int:
        return sum(synchronization.need is need for synchronization in self.synchronizations)


def synchronization_report(table: MutationTable) -> SynchronizationReport:
    """What the verdicts on the mutants of a kernel say of each of its instructions."""
    by_number: dict[int, list[MutantResult]] = {}
    names = source_names(table.base)
    for result in (replace(result, how=names.sentence(result.how)) for result in table.results):
        by_number.setdefault(result.mutation.instruction.number, []).append(result)
    crossing = _Crossing(table.order) if table.order is not None else None
    order, drawn = table.order, None
    if order is not None:
        drawn = pipeline(order, [finding for finding in table.base.serious if table.runs.get(id(finding)) is order.run])
    each = tuple(_synchronization(by_number[number], crossing) for number in sorted(by_number))
    return SynchronizationReport(table.base, each, table.minimum, drawn, table.late)


def _synchronization(results: list[MutantResult], crossing: _Crossing | None) -> Synchronization:
    instruction = results[0].mutation.instruction
    removed = next((result for result in results if result.mutation.what == REMOVED), None)
    weaker = tuple(
        (result.mutation.what, result.how)
        for result in results
        if result is not removed and result.noticed is Noticed.UNNOTICED and not result.needing
    )
    orders = () if crossing is None else tuple(crossing.of(instruction))
    need = _need(removed, results, bool(weaker))
    weaker = () if need is Necessity.NEEDLESS else weaker
    return Synchronization(instruction, need, orders, _without(removed), weaker)


def _need(removed: MutantResult | None, results: list[MutantResult], weaker: bool) -> Necessity:
    """`removed`: None for an access that synchronizes, which is only ever weakened."""
    if removed is None:
        fates = {result.noticed for result in results}
        if Noticed.LATE in fates and not weaker:
            return Necessity.LATE
        if fates <= {Noticed.UNREACHED}:
            return Necessity.UNREACHED
        if weaker:
            return Necessity.STRONGER
        return Necessity.NEEDED if fates <= {*BROKEN, Noticed.UNREACHED} else Necessity.OPEN
    if removed.noticed is Noticed.UNREACHED:
        return Necessity.UNREACHED
    if removed.noticed is Noticed.LATE:
        return Necessity.LATE
    if removed.noticed is Noticed.UNNOTICED:
        return Necessity.READING if removed.needing else Necessity.NEEDLESS
    if removed.noticed in BROKEN:
        return Necessity.STRONGER if weaker else Necessity.NEEDED
    return Necessity.OPEN


def _without(removed: MutantResult | None) -> str:
    if removed is None:
        return ""
    if removed.noticed in BROKEN:
        return f"without it: {removed.how}"
    return removed.how or removed.noticed.value


class _Crossing:
    """The accesses of a run that have to be ordered, by what lies between them."""

    def __init__(self, order: LaunchOrder) -> None:
        self._order = order

    def of(self, instruction: PtxInstruction) -> Iterator[OrderedAccesses]:
        """The pairs of accesses that an instruction stands between: plain accesses before uses of mbarrier objects, and
        the pairs with the fewest events in between first, because the instruction matters most for them.
        """
        order = self._order
        across = order.across(instruction)
        if all(self._sides(*pair) is None for pair in across):  # what it does itself says more
            own = [pair for pair in order.pairs(proxies=False) if instruction.number in order.places(pair)]
            across = own or across
        counts: Counter[tuple[str, int, int, tuple[Side, Side] | None]] = Counter()
        nearest: dict[tuple[str, int, int, tuple[Side, Side] | None], int] = {}
        for first, second in across:
            key = (self._memory(first, second), *order.places((first, second)), self._sides(first, second))
            between = (order.after[first] & order.before[second]).bit_count()
            counts[key] += 1
            nearest[key] = min(between, nearest.get(key, between))
        for key in sorted(counts, key=lambda key: (key[3] is None, nearest[key], -counts[key], key[1:3])):
            memory, before, after, sides = key
            yield OrderedAccesses(memory, order.body[before], order.body[after], sides, counts[key])

    def _memory(self, first: int, second: int) -> str:
        graph = self._order.graph
        for pair in ((first, second), (second, first)):
            if (index := graph.pair_of.get(pair)) is not None:
                return graph.pairs[index].block.instance.name.removesuffix(" *")
        return ""

    def _sides(self, first: int, second: int) -> tuple[Side, Side] | None:
        labels = [self._order.graph.points[event].label for event in (first, second)]
        sides = [label.side for label in labels if isinstance(label, Access)]
        return (sides[0], sides[1]) if len(sides) == 2 else None
