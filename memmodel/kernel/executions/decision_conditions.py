"""Whether the decisions of a run say which execution it is.

In: a run, its reads that decide something, what comes before what by the decisions. Out: the first condition that does
not hold, in words. Source: docs/kernels-theorem.md, the conditions at the end of "All executions".
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from memmodel.base.labels import Side, side_of
from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.consistent import one_place, weak_writes
from memmodel.kernel.executions.decisions import Place, place_of, scopes_of_all, strong_together
from memmodel.kernel.executions.dependence import flows, only_values
from memmodel.kernel.executions.early_writes import all_dependent, all_synchronized, by_others
from memmodel.kernel.executions.followers import Followers
from memmodel.kernel.order.last_writes import CausalOrder
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction

UNORDERED_BY_BARRIER = "a barrier leads to a later write, and does not order it"


@dataclass(frozen=True, slots=True)
class DecisionConditions:
    """The conditions for the runs of one launch. `deciding`: the instructions whose results decide something."""

    entry: PtxFunction
    deciding: frozenset[int]
    _dependent: dict[tuple[int, frozenset[int]], bool] = field(default_factory=dict)

    def violated(
        self, run: LaunchTrace, reads: Sequence[TraceEvent], waits: Sequence[TraceEvent],
        accesses: Mapping[Place, Sequence[TraceEvent]], order: CausalOrder, *, surely_loaded: bool,
    ) -> str:  # fmt: skip
        """Why the decisions of a run do not say which execution it is, or may depend on each other in a circle; empty
        if they do. `accesses`: the strong ones. `surely_loaded`: weak loads return what they do in every execution with
        these decisions.
        """
        body = self.entry.body or ()
        read_by_threads = {read.at for read in reads if read.issue is None}
        loaded_from = {at for kind, at in run.choices if kind is not ChoiceKind.LAST_WRITE}
        for at in sorted((self.deciding & loaded_from) - read_by_threads):
            return f"what {body[at].at_line} reads is read by no strong access of a thread"
        load = load_of_several_writers(run)
        if load is not None:
            return f"which write {body[load].at_line} reads depends on the order of writes"
        load = None if surely_loaded else self._deciding_weak_load(run)
        if load is not None:
            return f"{body[load].at_line} may read an older value than in a run"
        if run.multimem:
            return "words may be written through multimem addresses"
        for place, read in {place_of(read): read for read in reads}.items():
            if not one_place(run, read):
                return f"what {body[read.at].at_line} reads is not all written by strong accesses of its size"
            if not strong_together(accesses[place], run):
                return f"accesses to what {body[read.at].at_line} reads are of too small a scope"
            # A round of a loop that is left out, too, has to come after a weak write.
            for write in weak_writes(run, read):
                if not all(order.ahead(write, access) for access in accesses[place]):
                    what = f"what {body[read.at].at_line} reads"
                    return f"a weak write to {what} does not come before all of its accesses"
        words = {*map(place_of, reads), *map(place_of, waits)}
        if len(words) > 1:
            writes = [event for place in words for event in accesses[place] if side_of(event.label) is Side.WRITE]
            numbers = frozenset(write.at for write in writes)
            early = [
                at for at in sorted({read.at for read in (*reads, *waits)}) if not self._all_dependent(at, numbers)
            ]
            if early and not self._kept_behind(run, [*reads, *waits], writes, accesses):
                return f"a later write may be performed before {body[early[0]].at_line}"
            if by_others(run, (*reads, *waits), writes):
                return "a thread writes such a word after another thread of its cluster has decided"
        return ""

    def _kept_behind(
        self, run: LaunchTrace, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent],
        accesses: Mapping[Place, Sequence[TraceEvent]],
    ) -> bool:  # fmt: skip
        """True if fences keep all these writes behind the reads before them; they do where all accesses to the words
        are morally strong with each other.
        """
        by_word = {place_of(read): read for read in reads}
        wide = scopes_of_all([access for place in by_word for access in accesses[place]], run)
        strong = all(
            one_place(run, read) and not weak_writes(run, read) and strong_together(accesses[place], run)
            for place, read in by_word.items()
        )
        return strong and all_synchronized(body_of(self.entry), reads, writes, wide)

    def _deciding_weak_load(self, run: LaunchTrace) -> int | None:
        """The number of an instruction with a weak read of what other threads write, if it may decide what threads do:
        where strong reads return older values, a later write is not to be seen, but the run has made it.
        """
        loads_of = flows(run)
        for at in _loads_of_others(run):
            if loads_of is None or not only_values(self.entry, at, loads_of):
                return at
        return None

    def _all_dependent(self, at: int, writes: frozenset[int]) -> bool:
        key = at, writes
        if key not in self._dependent:
            self._dependent[key] = all_dependent(body_of(self.entry), at, writes)
        return self._dependent[key]


def barriers_order_writes(
    read: TraceEvent, accesses: Sequence[TraceEvent], later: Container[int], without_barriers: Followers,
    order: CausalOrder,
) -> bool:  # fmt: skip
    """True if a read comes, by the model, before each write to its word that follows it only through a barrier or an
    mbarrier object. `accesses`: those of the word; `later`: what follows the read.
    """
    nearer = without_barriers.of([read])
    writes = (access for access in accesses if side_of(access.label) is Side.WRITE)
    return all(order.before(read, write) for write in writes if id(write) in later and id(write) not in nearer)


def load_of_several_writers(run: LaunchTrace) -> int | None:
    """The number of an instruction with a weak read of bytes that several threads, or a thread and
    asynchronous instructions, write strongly: which write is the last one is no decision of a strong read.
    """
    writers: dict[Block, dict[int, set[object]]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        if side_of(event.label) is Side.WRITE and event.block is not None:
            writer = event.thread if event.issue is None else id(event)
            for byte in range(event.first, event.first + event.size):
                writers.setdefault(event.block, {}).setdefault(byte, set()).add(writer)
    for access in run.weak(writers.keys()):
        if side_of(access.label) is Side.READ:
            written = writers[access.block]
            if any(len(written.get(byte, ())) > 1 for byte in range(access.first, access.first + access.size)):
                return access.at
    return None


def _loads_of_others(run: LaunchTrace) -> list[int]:
    """The numbers of the instructions with weak reads of bytes that another thread writes."""
    writers: dict[Block, dict[int, set[int]]] = {}
    accesses: list[TraceEvent | WeakAccess] = [event for thread in run.threads for event in thread.strong()]
    for access in (*accesses, *run.weak()):
        if side_of(access.label) is Side.WRITE and access.block is not None:
            written = writers.setdefault(access.block, {})
            for byte in range(access.first, access.first + access.size):
                written.setdefault(byte, set()).add(access.thread)
    numbers = set[int]()
    for access in run.weak(writers.keys()):
        if side_of(access.label) is Side.READ and access.at not in numbers:
            written = writers[access.block]
            bytes_ = range(access.first, access.first + access.size)
            if any(not written.get(byte, set()) <= {access.thread} for byte in bytes_):
                numbers.add(access.at)
    return sorted(numbers)
