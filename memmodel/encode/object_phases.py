"""The phases of one mbarrier object: which update is made in which, and which phases are over.

In: ObjectOrder. Out: `ObjectPhases`. A phase is over after the update that brings its pending arrivals and its tx-count
to zero ("Phase of the mbarrier object"). Sums are taken along the order of updates, within each life.
"""

from __future__ import annotations

from memmodel.base.labels import Action
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.encode.counting import ByNumber, add
from memmodel.encode.object_order import START, ObjectOrder
from memmodel.events.graph import ObjectEvent
from memmodel.litmus.objects import MAX_ARRIVALS

Phase = tuple[int, int]
"""The life and the number of a phase in it."""


class ObjectPhases:
    """`phase[i]`: number of the phase in its life that update i is made in -> formula, meant only where it is live.

    `inside(i, p)`: update i counts in phase p. `over[p]`: phase p ends in this execution. `ends[i]`: update i ends its
    phase. `bad[i]`: it breaks the rules of the object (MBBAD).
    """

    def __init__(self, logic: Logic, order: ObjectOrder) -> None:
        self.logic = logic
        self.order = order
        self.updates = order.updates
        self.counting = [i for i, u in enumerate(self.updates) if u.action not in (Action.INIT, Action.INVAL)]
        self.most = {life: self._most_phases(life) for life in order.lives}
        self.phase: dict[int, ByNumber] = {}
        self._choose_phases()
        self.sizes = {life: self._sizes(life) for life in order.lives}
        self.over: dict[Phase, int] = {}
        for life in order.lives:
            self._phases_over(life)
        self.ends: dict[int, int] = {}
        self.bad = [FALSE] * len(self.updates)
        for i in self.counting:
            self._ends_and_excess(i)
        for i in order.inits:
            self.bad[i] = order.valid[i]
        for i in order.invals:
            self.bad[i] = logic.both(self.updates[i].runs, -order.valid[i])

    def inside(self, i: int, phase: Phase) -> int:
        """The formula that says update i counts in a phase."""
        life, number = phase
        here = self.logic.both(self.order.live[i], self.order.life[i].get(life, FALSE))
        return self.logic.both(here, self.phase[i].get(number, FALSE))

    def later(self, i: int) -> int:
        """Update i is made in a phase after the first."""
        if i not in self.phase:
            return FALSE
        return self.logic.both(self.order.live[i], -self.phase[i].get(0, FALSE))

    def _most_phases(self, life: int) -> int:
        """How many phases of a life can be over at most."""
        if life == START and self.order.declared is None:
            return 0
        size = self.order.size(life)
        arrivals = sum(self.updates[i].count for i in self.counting if self.updates[i].action is Action.ARRIVE)
        # A drop may leave phases that need no arrival: any update may end one.
        drops = any(self.updates[i].drop for i in self.counting)
        return len(self.counting) if drops or not size else min(len(self.counting), arrivals // size)

    def _choose_phases(self) -> None:
        logic, order = self.logic, self.order
        most = max(self.most.values())
        for i in self.counting:
            if most == 0:
                self.phase[i] = {0: TRUE}
                continue
            cases = {k: logic.var(f"phase(e{self.updates[i].uid},{k})") for k in range(most + 1)}
            logic.exactly_one(list(cases.values()))
            logic.require(order.live[i], cases[0])
            for life, here in order.life[i].items():
                for k in range(self.most[life] + 1, most + 1):
                    logic.require(-here, -cases[k])
            self.phase[i] = cases
        for i in self.counting:
            for j in self.counting:
                if i != j:
                    self._follow_the_order(i, j)

    def _follow_the_order(self, i: int, j: int) -> None:
        """A later update of a life is in no earlier phase."""
        logic, order = self.logic, self.order
        for life, first in order.life[i].items():
            second = order.life[j].get(life, FALSE)
            for k, a in self.phase[i].items():
                for below, b in self.phase[j].items():
                    if below < k:
                        logic.require(-order.live[i], -order.live[j], -first, -second, -order.earlier[i, j], -a, -b)

    def _sizes(self, life: int) -> list[ByNumber]:
        """Arrivals needed in each phase: an arrive_drop lowers those after its own."""
        first = self.order.size(life)
        sizes: list[ByNumber] = [{first: TRUE}]
        for k in range(self.most[life]):
            size = dict(sizes[-1])
            for i in self.counting:
                if self.updates[i].drop:
                    here = self.inside(i, (life, k))
                    size = add(self.logic, size, {0: -here, -self.updates[i].count: here}, 0, first)
            sizes.append(size)
        return sizes

    # ---- sums ------------------------------------------------------------------------------------------------------

    def _sum(self, included: dict[int, int], size: int) -> dict[tuple[int, int], int]:
        """(arrivals, tx) -> formula, summed over updates i under included[i]; arrivals stay at `size` once there."""
        logic = self.logic
        states: dict[tuple[int, int], int] = {(0, 0): TRUE}
        for i, when in included.items():
            if when == FALSE:
                continue
            arrive, tx = effect(self.updates[i])
            out: dict[tuple[int, int], int] = {}
            for (arrived, balance), formula in states.items():
                for condition, key in (
                    (when, (min(size, arrived + arrive), balance + tx)),
                    (-when, (arrived, balance)),
                ):
                    cell = logic.both(formula, condition)
                    if cell != FALSE:
                        out[key] = logic.either(out.get(key, FALSE), cell)
            states = out
        return states

    def _complete(self, included: dict[int, int], sizes: ByNumber) -> int:
        """The formula that says these updates bring pending and tx-count to zero."""
        logic = self.logic
        cells = []
        for size, formula in sizes.items():
            states = self._sum(included, size)
            cells.append(logic.both(formula, states.get((size, 0), FALSE)))
        return logic.disj(cells)

    def _phases_over(self, life: int) -> None:
        """over[life, k]: phase k ends. A later phase has begun only when this one is over."""
        logic = self.logic
        before = TRUE
        for k in range(self.most[life] + 1):
            included = {i: self.inside(i, (life, k)) for i in self.counting}
            some = logic.disj(included.values())
            before = logic.both(before, logic.both(some, self._complete(included, self.sizes[life][k])))
            self.over[life, k] = before
        for k in range(self.most[life]):
            for i in self.counting:
                for after in range(k + 1, self.most[life] + 1):
                    logic.require(-self.inside(i, (life, after)), self.over[life, k])

    def _ends_and_excess(self, i: int) -> None:
        """No update of a phase follows the one that completes it. An arrive that exceeds the count is undefined."""
        logic, update = self.logic, self.updates[i]
        ends, bad = [], [logic.both(update.runs, -self.order.live[i])]
        pending: ByNumber = {}
        for life in self.order.life[i]:
            for k in range(self.most[life] + 1):
                inside = self.inside(i, (life, k))
                if inside == FALSE:
                    continue
                prefix = {
                    j: logic.both(self.inside(j, (life, k)), self.order.earlier[j, i]) for j in self.counting if j != i
                }
                complete = self._complete({**prefix, i: TRUE}, self.sizes[life][k])
                ends.append(logic.both(inside, complete))
                for j in prefix:
                    follows = logic.both(self.inside(j, (life, k)), self.order.earlier[i, j])
                    logic.require(-inside, -complete, -follows)
                bad += self._excess(update, inside, prefix, self.sizes[life][k], pending)
        self.ends[i] = logic.disj(ends)
        if update.no_complete:
            bad.append(self.ends[i])
        self.bad[i] = logic.disj(bad)
        self._answers(i, pending)

    def _excess(
        self, update: ObjectEvent, inside: int, prefix: dict[int, int], sizes: ByNumber, pending: ByNumber
    ) -> list[int]:
        """When an update goes beyond what the object counts; fills in the arrivals that are pending before it."""
        logic = self.logic
        bad = []
        arrive, tx = effect(update)
        for size, formula in sizes.items():
            for (arrived, balance), state in self._sum(prefix, size).items():
                here = logic.conj((inside, formula, state))
                if update.pending is not None:
                    pending[size - arrived] = logic.either(pending.get(size - arrived, FALSE), here)
                out_of_range = abs(balance + tx) > MAX_ARRIVALS or size - arrived - arrive > MAX_ARRIVALS
                if (arrive > 0 and arrived + arrive > size) or out_of_range:
                    bad.append(here)
        return bad

    def _answers(self, i: int, pending: ByNumber) -> None:
        """What the object tells the thread: the arrivals that were pending, the phases over."""
        logic, update = self.logic, self.updates[i]
        live = self.order.live[i]
        for number, formula in (update.pending or {}).items():
            none = -live if number == 0 else FALSE
            logic.require(-update.runs, -formula, pending.get(number, FALSE), none)
        for number, formula in (update.result or {}).items():
            here = logic.both(live, self.phase[i].get(number, FALSE))
            logic.require(-update.runs, -formula, logic.either(here, -live) if number == 0 else here)


def effect(update: ObjectEvent) -> tuple[int, int]:
    """(arrivals, tx) that an update adds to its phase."""
    match update.action:
        case Action.ARRIVE:
            return update.count, update.bytes
        case Action.EXPECT_TX:
            return 0, update.bytes
        case Action.COMPLETE_TX:
            return 0, -update.bytes
        case Action.PENDING:
            return -update.count, 0
        case _:
            return 0, 0
