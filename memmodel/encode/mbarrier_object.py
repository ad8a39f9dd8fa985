"""One mbarrier object: the order of its updates, its phases, what tests see (docs/executions.md, "mbarrier objects").

In: the events on one location. Out: cells of the relations and sets of `Mbarriers`. Each update gets the number of the
phase that it is made in; a phase is over after the update that brings its arrivals to the count and its tx-count to
zero. Sums are taken along the order of updates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.errors import InputError, TooLarge
from memmodel.events.graph import Event, MbarrierStep
from memmodel.isa.memory import Location
from memmodel.logic import FALSE, TRUE, Logic

if TYPE_CHECKING:
    from memmodel.encode.mbarrier import Mbarriers

MAX_UPDATES = 48
"""More updates than this on one object, and the test is reported as too large."""

Cases = dict[int, int]
"""Integer -> formula; exactly one holds."""


@dataclass(slots=True)
class Update:
    """An update of one object. `present`: it runs. `phase`: phase number -> formula. `ends`: it ends its phase."""

    event: Event
    step: MbarrierStep
    present: int
    phase: Cases
    ends: int = FALSE


class MbarrierObject:
    """One object: builds its part of the relations."""

    def __init__(self, whole: Mbarriers, location: Location, members: list[tuple[Event, int]]) -> None:
        self.whole = whole
        self.logic: Logic = whole.logic
        self.location = location
        self.updates = [
            Update(event, event.mbarrier, present, {})
            for event, present in members
            if event.mbarrier is not None and event.mbarrier.action != "test"
        ]
        self.tests = [(e, present) for e, present in members if e.mbarrier is not None and e.mbarrier.action == "test"]
        if len(self.updates) > MAX_UPDATES:
            raise TooLarge(f"more than {MAX_UPDATES} operations on mbarrier {location}")
        for a, first in members:
            for b, second in members:
                if a.uid != b.uid:
                    whole.same[a.uid][b.uid] = self.logic.either(
                        whole.same[a.uid].get(b.uid, FALSE), self.logic.both(first, second)
                    )
        self._order()
        self._liveness()
        self._phases()
        self._observations()

    # ---- the order of updates ------------------------------------------------------------------------------------

    def _order(self) -> None:
        """A total order on the updates that keeps program order, also up to the issue of a signal; init comes first."""
        logic = self.logic
        self.earlier: dict[tuple[int, int], int] = {}
        count = len(self.updates)
        for i in range(count):
            for j in range(i + 1, count):
                a, b = self.updates[i].event, self.updates[j].event
                if _must_precede(a, b) or ("MBINIT" in a.tags and not _must_precede(b, a)):
                    formula = TRUE
                elif _must_precede(b, a) or "MBINIT" in b.tags:
                    formula = FALSE
                else:
                    formula = logic.var(f"mbar(e{a.uid},e{b.uid})")
                self.earlier[i, j] = formula
                self.earlier[j, i] = -formula
        for i in range(count):
            for j in range(count):
                for k in range(count):
                    if i != j and j != k and i != k:
                        logic.require(-self.earlier[i, j], -self.earlier[j, k], self.earlier[i, k])
        for (i, j), formula in self.earlier.items():
            first, second = self.updates[i], self.updates[j]
            cell = logic.both(formula, logic.both(first.present, second.present))
            if cell != FALSE:
                row = self.whole.mbar[first.event.uid]
                row[second.event.uid] = logic.either(row.get(second.event.uid, FALSE), cell)

    def _liveness(self) -> None:
        """`live[i]`: update i comes after the initialisation and before any inval; the others change nothing."""
        logic = self.logic
        inits = [i for i, update in enumerate(self.updates) if update.step.action == "init"]
        invals = [i for i, update in enumerate(self.updates) if update.step.action == "inval"]
        declared = self.whole.graph.memory.mbarrier_count(self.location)
        if len(inits) + (declared is not None) > 1:
            where = self.updates[inits[-1]].event.instruction
            raise InputError(
                f"mbarrier {self.location} is initialised more than once",
                where.span if where else None,
                hint="declare another object for the second use",
            )
        self.live = []
        for i, update in enumerate(self.updates):
            if inits:
                init = inits[0]
                after = TRUE if i == init else logic.both(self.updates[init].present, self.earlier[init, i])
            else:
                after = TRUE if declared is not None else FALSE
            for inval in invals:
                if i != inval:
                    after = logic.both(after, -logic.both(self.updates[inval].present, self.earlier[inval, i]))
            self.live.append(logic.both(update.present, after))
        self.size = self.updates[inits[0]].step.count if inits else (declared or 0)
        self.init = inits[0] if inits else None
        self.invals = invals

    # ---- phases --------------------------------------------------------------------------------------------------

    def _phases(self) -> None:
        logic = self.logic
        counting = [i for i, u in enumerate(self.updates) if u.step.action not in ("init", "inval")]
        self.counting = counting
        arrivals = sum(self.updates[i].step.count for i in counting if self.updates[i].step.action == "arrive")
        drops = any(self.updates[i].step.drop for i in counting)
        # A drop may leave phases that need no arrival: any update may end one.
        self.most = len(counting) if drops or not self.size else arrivals // self.size
        for i in counting:
            update = self.updates[i]
            if self.most == 0:
                update.phase = {0: TRUE}
            else:
                update.phase = {k: logic.var(f"phase(e{update.event.uid},{k})") for k in range(self.most + 1)}
                logic.exactly_one(list(update.phase.values()))
                logic.require(self.live[i], update.phase[0])
        for i in counting:
            for j in counting:
                if i != j:
                    self._phases_follow_the_order(i, j)
        sizes = self.sizes = self._sizes()
        self.over = self._phases_over(sizes)
        for k in range(self.most):  # a later phase starts only when this one is over
            for i in counting:
                for later in range(k + 1, self.most + 1):
                    logic.require(-self.updates[i].phase[later], self.over[k])
        for i in counting:
            self._ends_and_excess(i, sizes)
        for i in self.invals:
            self._is_bad(i, logic.both(self.updates[i].present, -self.live[i]))

    def _phases_follow_the_order(self, i: int, j: int) -> None:
        logic, a, b = self.logic, self.updates[i], self.updates[j]
        for k in a.phase:
            for later in b.phase:
                if later < k:
                    logic.require(-self.live[i], -self.live[j], -self.earlier[i, j], -a.phase[k], -b.phase[later])

    def _sizes(self) -> list[Cases]:
        """Arrivals needed in each phase: an arrive_drop lowers the phases after its own."""
        logic = self.logic
        sizes: list[Cases] = [{self.size: TRUE}]
        for k in range(self.most):
            size = dict(sizes[-1])
            for i in self.counting:
                update = self.updates[i]
                if update.step.drop:
                    here = logic.both(self.live[i], update.phase[k])
                    size = self._add(size, {0: -here, -update.step.count: here}, 0, self.size)
            sizes.append(size)
        return sizes

    def _add(self, left: Cases, right: Cases, low: int, high: int) -> Cases:
        """Sum of two case lists, kept within low … high."""
        out: Cases = {}
        for a, first in left.items():
            for b, second in right.items():
                cell = self.logic.both(first, second)
                if cell != FALSE:
                    total = max(low, min(high, a + b))
                    out[total] = self.logic.either(out.get(total, FALSE), cell)
        return out

    def _sum(self, included: dict[int, int], size: int) -> dict[tuple[int, int], int]:
        """(arrivals, tx) -> formula, summed over updates i under included[i]; arrivals stay at `size` once there."""
        logic = self.logic
        states: dict[tuple[int, int], int] = {(0, 0): TRUE}
        for i, when in included.items():
            step = self.updates[i].step
            arrive, tx = _effect(step)
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

    def _complete(self, included: dict[int, int], sizes: Cases) -> int:
        """The formula that says these updates bring pending and tx-count to zero."""
        logic = self.logic
        cells = []
        for size, formula in sizes.items():
            states = self._sum(included, size)
            cells.append(logic.both(formula, states.get((size, 0), FALSE)))
        return logic.disj(cells)

    def _phases_over(self, sizes: list[Cases]) -> list[int]:
        """over[k]: phase k ends in this execution."""
        logic = self.logic
        over = []
        before = TRUE
        for k in range(self.most + 1):
            included = {i: logic.both(self.live[i], self.updates[i].phase[k]) for i in self.counting}
            some = logic.disj(included.values())
            before = logic.both(before, logic.both(some, self._complete(included, sizes[k])))
            over.append(before)
        return over

    def _is_bad(self, i: int, formula: int) -> None:
        uid = self.updates[i].event.uid
        self.whole.bad[uid] = self.logic.either(self.whole.bad.get(uid, FALSE), formula)

    def _ends_and_excess(self, i: int, sizes: list[Cases]) -> None:
        """An update after which its phase is complete is the last of the phase; an arrive beyond the count is bad."""
        logic, update = self.logic, self.updates[i]
        ends, bad = [], [logic.both(update.present, -self.live[i])]
        before: Cases = {}
        for k, here in update.phase.items():
            inside = logic.both(self.live[i], here)
            if inside == FALSE:
                continue
            prefix = {
                j: logic.both(logic.both(self.live[j], self.updates[j].phase[k]), self.earlier[j, i])
                for j in self.counting
                if j != i and k in self.updates[j].phase
            }
            complete = self._complete({**prefix, i: TRUE}, sizes[k])
            ends.append(logic.both(inside, complete))
            for j in self.counting:
                if j != i and k in self.updates[j].phase:
                    follows = logic.both(self.live[j], logic.both(self.earlier[i, j], self.updates[j].phase[k]))
                    logic.require(-inside, -complete, -follows)
            if update.step.action == "arrive":
                for size, formula in sizes[k].items():
                    states = self._sum(prefix, size)
                    for (arrived, _), f in states.items() if update.step.pending is not None else ():
                        number = size - arrived
                        before[number] = logic.either(
                            before.get(number, FALSE), logic.both(inside, logic.both(formula, f))
                        )
                    full = logic.disj(f for (arrived, _), f in states.items() if arrived + update.step.count > size)
                    bad.append(logic.both(inside, logic.both(formula, full)))
        update.ends = logic.disj(ends)
        if update.step.no_complete:
            bad.append(update.ends)
        self._is_bad(i, logic.disj(bad))
        for number, formula in (update.step.pending or {}).items():
            none = -self.live[i] if number == 0 else FALSE
            logic.require(-update.present, -formula, before.get(number, FALSE), none)
        if update.step.result is not None:
            for number, formula in update.step.result.items():
                here = logic.both(self.live[i], update.phase.get(number, FALSE))
                if number == 0:
                    here = logic.either(here, -self.live[i])
                logic.require(-update.present, -formula, here)

    def state(self, holds: Callable[[int], bool]) -> str:
        """The phase that is never over, in words."""
        phase = next((k for k, over in enumerate(self.over) if not holds(over)), self.most)
        inside = [
            self.updates[i].step
            for i in self.counting
            if holds(self.live[i]) and holds(self.updates[i].phase.get(phase, FALSE))
        ]
        arrived = sum(_effect(step)[0] for step in inside)
        size = next(number for number, formula in self.sizes[phase].items() if holds(formula))
        expected = sum(max(0, _effect(step)[1]) for step in inside)
        complete = sum(max(0, -_effect(step)[1]) for step in inside)
        bytes_text = f", {complete} of {expected} bytes" if expected or complete else ""
        return f"phase {phase}: {arrived} of {size} arrivals{bytes_text}"

    # ---- tests ---------------------------------------------------------------------------------------------------

    def _observations(self) -> None:
        """What each test sees, and which updates it observes."""
        logic = self.logic
        seen: list[tuple[Event, int, Cases]] = []
        for event, present in self.tests:
            cases: Cases = {}
            if self.most == 0:
                cases = {0: TRUE}
            else:
                cases = {k: logic.var(f"seen(e{event.uid},{k})") for k in range(self.most + 1)}
                logic.exactly_one(list(cases.values()))
                for k in cases:
                    if k > 0:
                        logic.require(-cases[k], self.over[k - 1])
            for other, there, before in seen:
                if other.thread == event.thread:
                    for k in before:
                        for later in cases:
                            if later < k:
                                logic.require(-there, -present, -before[k], -cases[later])
            seen.append((event, present, cases))
            self._yield(event, present, cases)
            for i in self.counting:
                self._place(event, present, cases, i)
            self._sees_the_init(event, present, cases)
            self._uninitialised(event, present)

    def _yield(self, event: Event, present: int, cases: Cases) -> None:
        """The result of a test: is the phase that it asks for over?"""
        logic, step = self.logic, event.mbarrier
        assert step is not None
        true = []
        for k, formula in cases.items():
            if step.parity is not None:
                true += [logic.both(formula, when) for p, when in step.parity.cases.items() if k % 2 != p % 2]
            elif step.state is not None:
                true += [logic.both(formula, when) for state, when in step.state.cases.items() if k > state]
        yes = logic.both(present, logic.disj(true))
        self.whole.tests.setdefault(event.uid, cases)
        self.whole.done[event.uid] = logic.either(self.whole.done.get(event.uid, FALSE), yes)
        if step.result is not None:
            logic.require(-present, -yes, step.result[1])
            logic.require(-present, yes, step.result[0])

    def _place(self, event: Event, present: int, cases: Cases, i: int) -> None:
        """Program order between a test and an update, and the observations that follow from what the test saw."""
        logic, update = self.logic, self.updates[i]
        both = logic.both(present, self.live[i])
        observed, later = [], []
        for k, sees in cases.items():
            for phase, formula in update.phase.items():
                here = logic.both(sees, formula)
                if phase < k:
                    observed.append(here)
                for ends, over in ((TRUE, phase + 1), (FALSE, phase)):
                    when = logic.both(here, update.ends if ends == TRUE else -update.ends)
                    if over > k:
                        later.append(when)
                        if _must_precede(update.event, event):
                            logic.require(-both, -when)
                if phase < k and _must_precede(event, update.event):
                    logic.require(-both, -here)
        yes = logic.both(self.whole.done.get(event.uid, FALSE), logic.both(both, logic.disj(observed)))
        if yes != FALSE:
            row = self.whole.observed[update.event.uid]
            row[event.uid] = logic.either(row.get(event.uid, FALSE), yes)
        after = logic.both(both, logic.disj(later))
        if after != FALSE:
            row = self.whole.before[event.uid]
            row[update.event.uid] = logic.either(row.get(update.event.uid, FALSE), after)

    def _sees_the_init(self, event: Event, present: int, cases: Cases) -> None:
        """A test that sees a phase as over observes the initialisation."""
        if self.init is not None and 0 in cases:
            yes = self.logic.both(self.whole.done.get(event.uid, FALSE), self.logic.both(present, self.live[self.init]))
            yes = self.logic.both(yes, -cases[0])
            if yes != FALSE:
                row = self.whole.observed[self.updates[self.init].event.uid]
                row[event.uid] = self.logic.either(row.get(event.uid, FALSE), yes)

    def _uninitialised(self, event: Event, present: int) -> None:
        """A test of an object that nothing initialised, or that its own thread initialises later or has invalidated."""
        logic = self.logic
        if self.init is None:
            bad = FALSE if self.whole.graph.memory.mbarrier_count(self.location) is not None else present
        else:
            init = self.updates[self.init]
            early = TRUE if _must_precede(event, init.event) else FALSE
            bad = logic.both(present, logic.either(-init.present, early))
        for inval in self.invals:
            if _must_precede(self.updates[inval].event, event):
                bad = logic.either(bad, logic.both(present, self.updates[inval].present))
        self.whole.bad[event.uid] = logic.either(self.whole.bad.get(event.uid, FALSE), bad)


def _must_precede(a: Event, b: Event) -> bool:
    """Program order, or program order up to the issue of a signal."""
    if a.thread != b.thread or not a.in_po:
        return False
    return a.uid < (b.uid if b.issue is None else b.issue + 1)


def _effect(step: MbarrierStep) -> tuple[int, int]:
    """(arrivals, tx) that an update adds to its phase."""
    amount = step.bytes or 0
    if step.action == "arrive":
        return step.count, amount
    if step.action == "expect_tx":
        return 0, amount
    if step.action == "complete_tx":
        return 0, -amount
    if step.action == "pending":
        return -step.count, 0
    return 0, 0
