"""The order of the updates of one mbarrier object, and its lives: from an init to an inval or the next init.

In: the updates that may happen to one object. Out: `ObjectOrder`: for each pair of updates, the formula that says which
comes first; for each update, the life that it is in and whether the object is valid then.
"""

from __future__ import annotations

from memmodel.base.labels import Action, layout_of
from memmodel.base.logic import FALSE, TRUE
from memmodel.encode.counting import ByNumber, count
from memmodel.errors import TooLarge
from memmodel.events.graph import Event, EventGraph, ObjectEvent
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import MbarrierLayout

MAX_UPDATES = 400
"""More updates than this on one object, and the test is reported as too large."""

START = -1
"""The life of an object that its declaration initialises, and the time before any init."""


class ObjectOrder:
    """A total order on the updates of an object, those that do not run included. `chosen`: the arrivals that it takes,
    where the execution decides it.

    `earlier[i, j]`: update i comes before update j. `lives`: START, then the numbers of the inits. `life[i][l]`: update
    i is in life l. `live[i]`: update i runs, and it is an init or the object is valid just before it.
    """

    def __init__(self, graph: EventGraph, cell: Cell, updates: list[ObjectEvent]) -> None:
        if len(updates) > MAX_UPDATES:
            raise TooLarge(f"more than {MAX_UPDATES} operations on mbarrier {cell}")
        self.logic = graph.logic
        self.updates = updates
        self.declared = cell.instance.arrivals
        self.chosen = graph.sizes.get(cell)
        self.inits = [i for i, update in enumerate(updates) if update.action is Action.INIT]
        self.invals = [i for i, update in enumerate(updates) if update.action is Action.INVAL]
        self._init_is_first = len(self.inits) == 1 and self.declared is None
        self.earlier: dict[tuple[int, int], int] = {}
        self._numbers: dict[int, ByNumber] = {}
        self._require_total_order()
        self.lives = [START, *self.inits]
        self.life = [{i: update.runs} if i in self.inits else self._life_before(i) for i, update in enumerate(updates)]
        self.valid = [self._valid(i) for i in range(len(updates))]
        self.live = [
            self.logic.both(update.runs, TRUE if i in self.inits else self.valid[i]) for i, update in enumerate(updates)
        ]

    def sizes(self, life: int) -> ByNumber:
        """The arrivals that a phase takes when a life begins; 0 if the object is not valid in it."""
        if life != START:
            return {self.updates[life].count: TRUE}
        return self.chosen or {self.declared or 0: TRUE}

    def layout(self, life: int) -> MbarrierLayout:
        """The layout of the object in a life. A declaration gives it .layout::v0."""
        return MbarrierLayout.V0 if life == START else layout_of(self.updates[life].point.label)

    def number(self, life: int) -> ByNumber:
        """How many lives were before a life."""
        if life == START or len(self.inits) == 1:
            return {0 if life == START or self.declared is None else 1: TRUE}
        if life not in self._numbers:
            earlier = count(self.logic, [self.precedes(other, life) for other in self.inits if other != life])
            first = 0 if self.declared is None else 1
            self._numbers[life] = {first + k: formula for k, formula in enumerate(earlier) if formula != FALSE}
        return self._numbers[life]

    def _require_total_order(self) -> None:
        """The order of updates is total. It keeps program order, also up to the issue of a signal; a single init comes
        first.
        """
        logic = self.logic
        count = len(self.updates)
        for i in range(count):
            for j in range(i + 1, count):
                a, b = self.updates[i], self.updates[j]
                if must_precede(a, b) or (self._starts(i) and not must_precede(b, a)):
                    formula = TRUE
                elif must_precede(b, a) or self._starts(j):
                    formula = FALSE
                else:
                    formula = logic.var(f"mbar(e{a.uid},e{b.uid})")
                self.earlier[i, j] = formula
                self.earlier[j, i] = -formula
        after = [[j for j in range(count) if j != i and self.earlier[i, j] != FALSE] for i in range(count)]
        for i in range(count):
            for j in after[i]:
                for k in after[j]:
                    if k != i and self.earlier[i, k] != TRUE:
                        logic.require(-self.earlier[i, j], -self.earlier[j, k], self.earlier[i, k])

    def _starts(self, i: int) -> bool:
        return self._init_is_first and i in self.inits

    def precedes(self, i: int, j: int) -> int:
        """Update i runs and comes before update j."""
        return self.logic.both(self.updates[i].runs, self.earlier[i, j])

    def _valid(self, i: int) -> int:
        """The object is valid just before update i."""
        logic = self.logic
        cells = []
        for life, inside in self._life_before(i).items():
            if life == START and self.declared is None:
                continue
            ended = [self._within(life, inval, i) for inval in self.invals if inval != i]
            cells.append(logic.conj((inside, *(-formula for formula in ended))))
        return logic.disj(cells)

    def _life_before(self, i: int) -> dict[int, int]:
        """The life that goes on just before update i, if that runs: that of the last init before it."""
        lives = {}
        for life in self.lives:
            if life == i:
                continue
            begun = TRUE if life == START else self.precedes(life, i)
            others = [-self._within(life, init, i) for init in self.inits if init not in (life, i)]
            formula = self.logic.conj((self.updates[i].runs, begun, *others))
            if formula != FALSE:
                lives[life] = formula
        return lives

    def _within(self, life: int, other: int, i: int) -> int:
        """Another update comes after the beginning of a life and before update i."""
        return self.logic.both(self.precedes(other, i), TRUE if life == START else self.earlier[life, other])


def must_precede(a: Event, b: Event) -> bool:
    """Program order, or program order up to the issue of a signal."""
    if a.thread != b.thread or a.point.order is None or a.visit is None or b.visit is None:
        return False
    return a.visit < b.visit
