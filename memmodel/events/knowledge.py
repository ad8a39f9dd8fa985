"""What one pass over the threads learns for the next: cells, the values they may hold, where matrices begin.

In: what accesses touch and write. Out: `Knowledge`, which only grows; once a pass adds nothing, its events are final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memmodel.base.lives import in_lives
from memmodel.events.loops import Loop
from memmodel.memory.bytes import Cell, Extent
from memmodel.memory.cells import Cells, Edges, Starts
from memmodel.program.addresses import AddressSpace

FEW_VALUES = 64
"""More values than this and a cell may hold anything."""

Domain = Mapping[int, int] | None
"""The values that a cell may hold, each with the fewest writes that it takes to get there; None: too many to list."""


@dataclass(slots=True)
class Knowledge:
    """What is known after some passes.

    `racing_loops`: spin loops of which a failed round may race. `may_wait`: some barrier may wait for ever.
    `most_phases`: how many phases of an mbarrier object a state can tell apart, `most_lives`: how many lives.
    `pending`: the pending counts that an object may have. `rounds`: how often loops are followed whose jumps depend on
    values that were read, and still always go back. `grounded`: no value supports itself, so that a value which takes
    more writes, one after the other, than an execution has (`most_writes`, of scalars) is impossible.
    """

    space: AddressSpace
    most_phases: int = 2
    rounds: int = 0
    most_lives: int = 1
    grounded: bool = False
    most_writes: int = 0
    cells: Cells = field(default_factory=Cells)
    starts: Starts = field(default_factory=Starts)
    racing_loops: set[tuple[int, Loop]] = field(default_factory=set)
    may_wait: bool = False
    pending: set[int] = field(default_factory=lambda: {0})
    _domains: dict[Cell, Domain] = field(default_factory=dict)
    _scalars: dict[Edges, bool] = field(default_factory=dict)
    _exact: dict[Cell, None] = field(default_factory=dict)

    # ---- cells -------------------------------------------------------------------------------------------------

    def touch(self, edges: Edges, *, strong: bool) -> None:
        """An access touches these bytes: memory is cut at their ends, and between the scalars of a strong access."""
        self.cells.mark(edges.extent)
        if len(edges.inside()) > 1 or edges.phase:
            self._scalars[edges] = self._scalars.get(edges, False) or strong

    def settle_cells(self) -> None:
        """Carry cuts over copies, and divide scalars apart where a value, or another access, can tell them apart."""
        before = -1
        while before != (before := self.cells.count):
            self.cells.close()
            for edges, strong in self._scalars.items():
                if strong or len(self.cells.of(edges.extent)) > 1 or self._is_exact(edges.extent):
                    self.cells.divide(edges)

    def _is_exact(self, extent: Extent) -> bool:
        return any(
            cell.instance == extent.instance and cell.first < extent.end and extent.first < cell.end
            for cell in self._exact
        )

    # ---- objects -----------------------------------------------------------------------------------------------

    def states(self) -> tuple[int, ...]:
        """What an arrive may return."""
        return in_lives(self.most_lives, self.most_phases)

    # ---- values ------------------------------------------------------------------------------------------------

    def exact(self, cell: Cell) -> None:
        """The value of a cell is asked for."""
        self._exact[cell] = None

    @property
    def exact_cells(self) -> Iterable[Cell]:
        return tuple(self._exact)

    def domain(self, cell: Cell) -> Domain:
        """The values that the cell may hold, as far as is known."""
        if cell not in self._domains:
            self._domains[cell] = {self.space.initial(cell.instance, cell.first, cell.size): 0}
        return self._domains[cell]

    def add(self, cell: Cell, values: Mapping[int, int] | None) -> None:
        """The cell may hold these values too, except those that take more writes than there are."""
        known = self.domain(cell)
        if known is None:
            return
        if values is None:
            self._domains[cell] = None
            return
        merged = dict(known)
        for value, depth in values.items():
            if depth < merged.get(value, depth + 1) and (depth <= self.most_writes or not self.grounded):
                merged[value] = depth
        self._domains[cell] = None if len(merged) > FEW_VALUES else merged
