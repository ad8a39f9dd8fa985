"""The phases of one mbarrier object: which update is made in which, and which phases are over.

In: ObjectOrder. Out: `ObjectPhases`. A phase is over after the update that brings its pending arrivals and its tx-count
to zero ("Phase of the mbarrier object"). Sums are taken along the order of updates, within each life.
"""

from __future__ import annotations

from memmodel.base.labels import Action
from memmodel.base.lives import of_life
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.encode.counting import ByNumber, add, at_least, count
from memmodel.encode.object_order import START, ObjectOrder
from memmodel.encode.relations import put
from memmodel.events.graph import ObjectEvent
from memmodel.ptx.vocabulary import MAX_TX

Phase = tuple[int, int]
"""The life and the number of a phase in it."""


FEW_PHASES = 2
MANY_TERMS = 60_000
"""With fewer phases, sums over several of them say nothing new; with more terms, they cost more than they give."""


class ObjectPhases:
    """`phase[i]`: number of the phase in its life that update i is made in -> formula, meant only where it is live.

    `least[i][k]`: that number is at least k. `over[p]`: phase p ends in this execution. `ends[i]`: update i ends its
    phase. `bad[i]`: it breaks the rules of the object (MBBAD).
    """

    def __init__(self, logic: Logic, order: ObjectOrder) -> None:
        self.logic = logic
        self.order = order
        self.updates = order.updates
        self.counting = [i for i, u in enumerate(self.updates) if u.action not in (Action.INIT, Action.INVAL)]
        self.most = {life: self._most_phases(life) for life in order.lives}
        self._arrived = {i: self._arrivals_before(i) for i in self.counting}
        self.phase: dict[int, ByNumber] = {}
        self.least: dict[int, list[int]] = {}
        self._choose_phases()
        self.sizes = {life: self._sizes(life) for life in order.lives}
        self._excess = self._excesses()
        self.ends: dict[int, int] = {}
        self.bad = [FALSE] * len(self.updates)
        for i in self.counting:
            self._ends_and_excess(i)
        self._nothing_follows_an_end()
        self.over: dict[Phase, int] = {}
        for life in order.lives:
            self._phases_over(life)
            self._count_through(life)
        for i in order.inits:
            self.bad[i] = order.valid[i]
        for i in order.invals:
            self.bad[i] = logic.both(self.updates[i].runs, -order.valid[i])

    def inside(self, i: int, phase: Phase) -> int:
        """The formula that says update i counts in a phase."""
        life, number = phase
        return self.logic.both(self._counts_in(i, life), self.phase[i].get(number, FALSE))

    def _counts_in(self, i: int, life: int) -> int:
        """The formula that says update i counts in a life."""
        return self.logic.both(self.order.live[i], self.order.life[i].get(life, FALSE))

    def after_first_phase(self, i: int) -> int:
        """Update i is made in a phase after the first."""
        if i not in self.phase:
            return FALSE
        return self.logic.both(self.order.live[i], -self.phase[i].get(0, FALSE))

    def _most_phases(self, life: int) -> int:
        """The most phases of a life that can be over."""
        if life == START and self.order.declared is None:
            return 0
        size = min(self.order.sizes(life))
        arrivals = sum(self.updates[i].count for i in self.counting if self.updates[i].action is Action.ARRIVE)
        # A drop may leave phases that need no arrival: any update may end one.
        drops = any(self.updates[i].drop for i in self.counting)
        most = len(self.counting) if drops or not size else min(len(self.counting), arrivals // size)
        return min(most, 1) if life == START and self.order.chosen else most

    # ---- what the program settles ----------------------------------------------------------------------------------

    def _arrivals_before(self, i: int) -> tuple[int, int]:
        """The least and the most arrivals that come before update i in its life."""
        sure = may = 0
        runs = self.updates[i].runs
        for j in self.counting:
            other = self.updates[j]
            if j == i or other.action is not Action.ARRIVE or self.order.earlier[j, i] == FALSE:
                continue
            if self.order.live[j] == FALSE:  # before the init: it counts nowhere
                continue
            if self.logic.both(runs, other.runs) == FALSE:
                continue
            may += other.count
            if self.order.earlier[j, i] == TRUE and self.logic.implies(runs, other.runs):
                sure += other.count
        return sure, may

    def _is_plain(self) -> bool:
        """One life, and nothing but single arrivals: then the number of those before an update says all."""
        lives = [life for life in self.order.lives if life != START or self.order.declared is not None]
        return (
            len(lives) == 1
            and self.order.chosen is None
            and min(self.order.sizes(lives[0])) > 0
            and not self.order.invals
            and (not self.order.inits or self.order.declared is None)
            and all(
                self.updates[i].action is Action.ARRIVE
                and self.updates[i].count == 1
                and not self.updates[i].bytes
                and not self.updates[i].drop
                for i in self.counting
            )
        )

    def _range(self, i: int) -> tuple[int, int]:
        """The least and the greatest number of a phase that update i may be in."""
        most = max(self.most.values())
        sure, may = self._arrived[i]
        drops = any(self.updates[j].drop for j in self.counting)
        sizes = [min(self.order.sizes(life)) for life in self.order.lives if life != START or self.order.declared]
        if not drops and sizes and min(sizes) > 0:
            most = min(most, may // min(sizes))
        return (min(most, sure // sizes[0]) if self._plain else 0), most

    def likely(self) -> list[int]:
        """The choices of an execution in which the updates come in the order of the text: a place to begin a search."""
        order = self.order
        size = max((max(order.sizes(life)) for life in order.lives), default=0)
        choices = [formula for (i, j), formula in order.earlier.items() if i < j and formula not in (TRUE, FALSE)]
        phase = arrived = balance = 0
        for i in self.counting:
            if len(self.phase[i]) > 1 and phase in self.phase[i]:
                choices.append(self.phase[i][phase])
            arrive, tx = effect(self.updates[i])
            arrived, balance = arrived + arrive, balance + tx
            if arrived >= size and balance == 0:
                phase, arrived = phase + 1, 0
        return choices

    # ---- phases ----------------------------------------------------------------------------------------------------

    def _choose_phases(self) -> None:
        logic, order = self.logic, self.order
        self._plain = self._is_plain()
        for i in self.counting:
            first, last = self._range(i)
            if first == last:
                self.phase[i] = {first: TRUE}
            else:
                cases = {k: logic.var(f"phase(e{self.updates[i].uid},{k})") for k in range(first, last + 1)}
                logic.exactly_one(list(cases.values()))
                if first == 0:
                    logic.require(order.live[i], cases[0])
                for life, inside in order.life[i].items():
                    for k in range(self.most[life] + 1, last + 1):
                        logic.require(-inside, -cases[k])
                self.phase[i] = cases
            self.least[i] = at_least(logic, self.phase[i])
        for i in self.counting:
            for j in self.counting:
                if i != j and order.earlier[i, j] != FALSE:
                    self._follow_the_order(i, j)

    def _follow_the_order(self, i: int, j: int) -> None:
        """A later update of a life is in no earlier phase."""
        logic, order = self.logic, self.order
        if max(self.phase[i]) <= min(self.phase[j]):
            return
        for life, first in order.life[i].items():
            second = order.life[j].get(life, FALSE)
            if second == FALSE:
                continue
            both = (-order.live[i], -order.live[j], -first, -second, -order.earlier[i, j])
            for k in range(1, len(self.least[i])):
                logic.require(*both, -self.least[i][k], self.least[j][k] if k < len(self.least[j]) else FALSE)

    def _sizes(self, life: int) -> list[ByNumber]:
        """Arrivals needed in each phase: an arrive_drop lowers those after its own."""
        first = self.order.sizes(life)
        sizes: list[ByNumber] = [first]
        for k in range(self.most[life]):
            size = dict(sizes[-1])
            for i in self.counting:
                if self.updates[i].drop:
                    inside = self.inside(i, (life, k))
                    size = add(self.logic, size, {0: -inside, -self.updates[i].count: inside}, 0, max(first))
            sizes.append(size)
        return sizes

    def _size_at(self, i: int) -> ByNumber:
        """Arrivals needed in the phase of update i."""
        sizes: ByNumber = {}
        for life, inside in self.order.life[i].items():
            for k, formula in self.phase[i].items():
                for size, when in self.sizes[life][k].items() if k < len(self.sizes[life]) else ():
                    put(self.logic, sizes, size, self.logic.conj((inside, formula, when)))
        return dict.fromkeys(sizes, TRUE) if len(sizes) == 1 else sizes

    def _before_in_phase(self, j: int, i: int) -> int:
        """Update j counts, and comes before update i in the same phase."""
        logic, order = self.logic, self.order
        if order.earlier[j, i] == FALSE:
            return FALSE
        one_phase = self._alike(self.phase[j], self.phase[i])
        if one_phase == FALSE:
            return FALSE
        one_life = self._alike(order.life[j], order.life[i])
        return logic.conj((order.live[j], one_phase, one_life, order.earlier[j, i]))

    def _alike(self, first: ByNumber, second: ByNumber) -> int:
        logic = self.logic
        return logic.disj(logic.both(formula, second.get(key, FALSE)) for key, formula in first.items())

    # ---- sums ------------------------------------------------------------------------------------------------------

    def _excesses(self) -> dict[int, ByNumber]:
        """By how many arrivals an update exceeds its phase -> variable.

        Needed where something takes arrivals back: then it matters which arrivals came to nothing before. Without,
        arrivals that stay at the size of the phase once there come to the same in every order.
        """
        if not any(self.updates[i].action is Action.PENDING for i in self.counting):
            return {}
        return {
            i: {e: self.logic.var(f"excess(e{self.updates[i].uid},{e})") for e in range(1, self.updates[i].count + 1)}
            for i in self.counting
            if self.updates[i].action is Action.ARRIVE
        }

    def _effects(self, j: int, when: int) -> list[tuple[int, int, int]]:
        """(formula, arrivals, tx): what update j adds, if `when`, and nothing if not."""
        logic = self.logic
        arrive, tx = effect(self.updates[j])
        excess = self._excess.get(j, {})
        whole = logic.both(when, -logic.disj(excess.values()))
        less = [(logic.both(when, formula), arrive - e, tx) for e, formula in excess.items()]
        return [(whole, arrive, tx), *less, (-when, 0, 0)]

    def _sum(self, i: int, size: int) -> dict[tuple[int, int], int]:
        """(arrivals, tx) -> formula, of the phase of update i before it; arrivals stay at `size` once there."""
        logic = self.logic
        sure, may = self._arrived[i]
        if self._plain and sure == may:
            return {(sure % size if size else 0, 0): TRUE}  # no size: a life that no init begins
        states: dict[tuple[int, int], int] = {(0, 0): TRUE}
        for j in self.counting:
            if j == i:
                continue
            when = self._before_in_phase(j, i)
            if when == FALSE:
                continue
            after: dict[tuple[int, int], int] = {}
            effects = self._effects(j, when)
            for (arrived, balance), formula in states.items():
                for condition, arrive, tx in effects:
                    cell = logic.both(formula, condition)
                    key = (arrived + arrive if self._excess else min(size, arrived + arrive), balance + tx)
                    if cell != FALSE:
                        after[key] = logic.either(after.get(key, FALSE), cell)
            states = after
        return states

    def _phases_over(self, life: int) -> None:
        """over[life, k]: some update ends phase k. A later phase has begun only when this one is over."""
        logic = self.logic
        for k in range(self.most[life] + 1):
            ends = [logic.both(self.inside(i, (life, k)), self.ends[i]) for i in self.counting]
            self.over[life, k] = logic.disj(ends)
        for k in range(self.most[life]):
            for i in self.counting:
                begun = self.least[i][k + 1] if k + 1 < len(self.least[i]) else FALSE
                inside = logic.conj((self.order.live[i], self.order.life[i].get(life, FALSE), begun))
                logic.require(-inside, self.over[life, k])

    def _count_through(self, life: int) -> None:
        """All phases up to one that is over, taken together: their arrivals have come, and as many bytes as were
        expected. From the sums of single phases the solver would learn that one pigeon and one hole at a time."""
        logic, most, size = self.logic, self.most[life], max(self.order.sizes(life))
        if self._plain or not FEW_PHASES <= most <= MANY_TERMS // (len(self.counting) ** 2 + 1):
            return
        arrive = [i for i in self.counting if self.updates[i].action is Action.ARRIVE]
        steady = all(self.updates[i].count == 1 and not self.updates[i].drop for i in arrive)
        effects = {i: effect(self.updates[i])[1] for i in self.counting}
        expect, complete = ([i for i, tx in effects.items() if tx * sign > 0] for sign in (1, -1))
        amounts = {effects[i] for i in expect}, {-effects[i] for i in complete}
        for k in range(most + 1):
            over = self.over[life, k]
            if over == FALSE:
                continue
            if steady:
                for formula in self._through(arrive, life, k)[: (k + 1) * size]:
                    logic.require(-over, -formula)
            if len(amounts[0]) == len(amounts[1]) == 1:
                completed = self._through(complete, life, k)
                for number, formula in enumerate(self._through(expect, life, k)):
                    whole, rest = divmod(number * min(amounts[0]), min(amounts[1]))
                    even = completed[whole] if not rest and whole < len(completed) else FALSE
                    logic.require(-over, -formula, even)

    def _through(self, updates: list[int], life: int, k: int) -> list[int]:
        """How many of these updates count in phases up to the k-th."""
        return count(self.logic, [self._until(i, life, k) for i in updates])

    def _until(self, i: int, life: int, k: int) -> int:
        """Update i counts in a phase up to the k-th."""
        over = self.least[i][k + 1] if k + 1 < len(self.least[i]) else FALSE
        return self.logic.both(self._counts_in(i, life), -over)

    def _ends_and_excess(self, i: int) -> None:
        """When an update ends its phase. An arrive that exceeds the count is undefined."""
        logic, update = self.logic, self.updates[i]
        inside = self.order.live[i]
        ends, bad = [], [logic.both(update.runs, -inside)]
        pending: ByNumber = {}
        excess: dict[int, list[int]] = {e: [] for e in self._excess.get(i, ())}
        arrive, tx = effect(update)
        limits = self._limits(i)
        for size, formula in self._size_at(i).items():
            complete = []
            for (arrived, balance), state in self._sum(i, size).items():
                before = logic.conj((inside, formula, state))
                if min(size, arrived + arrive) == size and balance + tx == 0:
                    complete.append(before)
                if update.pending is not None:
                    put(logic, pending, size - arrived, before)
                if arrived + arrive - size in excess:
                    excess[arrived + arrive - size].append(before)
                above = logic.disj(when for most, when in limits.items() if size - arrived - arrive > most)
                always = (arrive > 0 and arrived + arrive > size) or abs(balance + tx) > MAX_TX
                bad.append(before if always else logic.both(before, above))
            ends.append(logic.disj(complete))
        self.ends[i] = logic.disj(ends)
        for e, states in excess.items():
            logic.require(-self._excess[i][e], logic.disj(states))
            logic.require(self._excess[i][e], -logic.disj(states))
        if update.no_complete:
            bad.append(self.ends[i])
        self.bad[i] = logic.disj(bad)
        self._answers(i, pending)

    def _limits(self, i: int) -> ByNumber:
        """The largest count of pending arrivals that the object can have at update i, by the layout of its life."""
        limits: ByNumber = {}
        for life, inside in self.order.life[i].items():
            put(self.logic, limits, self.order.layout(life).max_arrivals, inside)
        return limits

    def _nothing_follows_an_end(self) -> None:
        """No update of a phase follows the one that completes it."""
        for i in self.counting:
            for j in self.counting:
                if i != j:
                    follows = self._before_in_phase(i, j)
                    self.logic.require(-self.order.live[j], -self.ends[i], -follows)

    def _answers(self, i: int, pending: ByNumber) -> None:
        """What the object returns to the thread: the arrivals that were pending, the phases over."""
        logic, update = self.logic, self.updates[i]
        live = self.order.live[i]
        for number, formula in (update.pending or {}).items():
            none = -live if number == 0 else FALSE
            logic.require(-update.runs, -formula, pending.get(number, FALSE), none)
        for number, formula in (update.result or {}).items():
            life, over = of_life(number)
            phase = logic.both(live, self.phase[i].get(over, FALSE))
            fits = logic.both(phase, self._in_life_number(i, life)) if phase != FALSE else FALSE
            logic.require(-update.runs, -formula, logic.either(fits, -live) if number == 0 else fits)

    def _in_life_number(self, i: int, number: int) -> int:
        """The formula that update i is in life number `number` of its object."""
        lives = self.order.life[i].items()
        return self.logic.disj(self.logic.both(f, self.order.number(life).get(number, FALSE)) for life, f in lives)


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
