"""The search for sets of changes after which a test is right.

In: a text, what judges a changed one, the changes that may be made. Out: sets of changes, the cheapest first.

Single changes come first. Then sets, by implicit hitting sets: changes that do not suffice, as many as possible, say
that a repair has one of the others. That is learnt from single executions that are bad and stay consistent with the
changes made (`carry`), without asking an engine. The cheapest set that answers all of this is judged in full; if it
does not suffice, there is more to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

from memmodel.answer import HANG, Witness
from memmodel.base.classes import dataclass
from memmodel.errors import BudgetSpent
from memmodel.program.lowered import LoweredTest
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import Edit, apply
from memmodel.repair.exchanges import ALIKE
from memmodel.repair.guided import asked_for
from memmodel.repair.hints import about_numbers, alone, answers, kind, lines, reasons
from memmodel.repair.judge import Against, Judge, Lost, Standing
from memmodel.repair.purpose import keeps_phases, progress
from memmodel.repair.turns import NEARBY, RELEVANT, Changes, Turns, cost, covers, in_order
from memmodel.why.records import Reason
from memmodel.why.story import execution_of

MOST_CHANGES = 8
"""Repairs of more changes than this are not looked for."""

EACH = 2
"""So many executions of a set of changes that does not suffice are learnt from."""

PATIENCE = 12
"""So many changes that cost no less are judged after a repair was found before no other one is looked for."""

MUCH_PATIENCE = 60
"""So many are looked at, with those that an execution speaks against without being judged."""

MORE_SETS, FEW_SETS = 20, 6
"""So many sets are judged after a repair was found before no other one is looked for: of few changes, of many."""

MANY = 80
"""More changes than this are many; then sets are made of those at the lines that an explanation names."""

MOST_SETS = 60
"""So many sets are judged in each of the two rounds: those that the reasons ask for, and all."""

GUIDED = 40
"""So many programs are judged that explanations lead to."""

UP = 4
"""A wait that helps is tried so many places further up."""

MOST_NUMBERS = 4
"""So many numbers are changed to end a hang."""

POOL = 16
"""So many executions that speak against a single change are kept, to try other changes on."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a repair has to reach. `lost`: whether what some models say shows that it does not.

    `outcomes`, `findings`: whether an execution that shows one speaks against it. `note`: what a repair that reaches it
    leaves as it is.
    """

    reached: Callable[[Standing], bool]
    lost: Lost
    outcomes: bool = True
    findings: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """A repair that makes all the changes `given` makes one of `among` as well."""

    given: frozenset[Edit]
    among: frozenset[Edit]


class RepairSearch:
    """Tries changes of one text."""

    def __init__(
        self,
        text: str,
        before: Standing,
        progress: Callable[[int], None] | None,
        parse_first: Callable[[str], LoweredTest | None],
        ended: Callable[[str], tuple[Witness, ...]],
    ) -> None:
        self.text = text
        self.judge: Judge = _unjudged
        self.glance: Judge = _unjudged
        self.before = before
        self.progress = progress
        self.ended = ended
        self.until = monotonic()
        self.tried = 0
        self.best: list[Changes] = []
        self.aim = Aim(lambda _: False, lambda *_: True)
        self.failed: Standing | None = None
        self.left_out = False
        self.beyond: tuple[Changes, tuple[str, ...]] | None = None
        self.carry = Carry(text, parse_first)

    def good(self, edits: Iterable[Edit]) -> bool:
        """Is the test right with these changes? Raises BudgetSpent when time is up."""
        if monotonic() > self.until:
            raise BudgetSpent
        self.tried += 1
        if self.progress is not None:
            self.progress(self.tried)
        made = in_order(edits)
        text = apply(self.text, made)
        for judge in (self.glance, self.judge):
            self.failed = judge(text)
            if not self._passes(self.failed):
                self._ends_a_hang(made)
                return False
        assert self.failed is not None
        if HANG not in self.before.findings and not any(map(about_numbers, made)):
            return True
        return keeps_phases(self.before, self.failed.shown or self.ended(text), made)

    def _ends_a_hang(self, made: Changes) -> None:
        """Keep the first changes with which a hang ends, and then one thread breaks a rule by itself."""
        if self.beyond is None and HANG in self.before.findings and self.failed and HANG not in self.failed.findings:
            rules = alone(self.failed.against)
            self.beyond = (made, rules) if rules else None

    def _passes(self, now: Standing | None) -> bool:
        return now is not None and now.complete and self.aim.reached(now)

    def repairs(self, stronger: list[Edit], others: list[Edit], most: int) -> list[Changes]:
        """Minimal repairs, about the cheapest first. `stronger`: changes that only add order."""
        self.best.clear()
        known = self._speaking(self.before)
        why = reasons(known)
        numbers = [edit for edit in others if about_numbers(edit) and kind(edit) != "move"]
        numbers.sort(key=lambda one: one.group[3:] != ALIKE)
        asked = self._onward(numbers) if self.before.findings == {HANG} else self._guided(stronger, others)
        self.best += [asked] if asked else []
        self._singles(stronger, others, why, most)
        found = len(self.best)
        if not self.best or self.best == [asked]:
            everything = [edit for edit in (*stronger, *others) if not _moves_a_fence(edit)]
            while len(self.best) == found:
                turns = Turns(self.text, why, lines(known))
                likely = [edit for edit in everything if turns.turn(edit) <= RELEVANT]
                if self.best and len(likely) > MANY:
                    likely = [edit for edit in likely if turns.turn(edit) <= NEARBY]
                likely = [edit for edit in likely if self.carry.legal(edit)]
                more = self._hitting(likely, most, why)
                if more <= why:
                    break
                why |= more
            if not self.best and not alone(known):
                legal = [edit for edit in everything if self.carry.legal(edit)]
                if len(likely) < len(legal):
                    self._hitting(legal, most, frozenset(Reason))
        self.best.sort(key=cost)
        return self.best

    # ---- one change ----------------------------------------------------------------------------------------------

    def _singles(self, stronger: list[Edit], others: list[Edit], why: frozenset[Reason], most: int) -> None:
        """All single changes that suffice and are cheap enough to be listed."""
        adding = set(stronger)
        known = self._speaking(self.before)
        pool: list[tuple[Against, Changes]] = [(one, ()) for one in known]
        turns = Turns(self.text, why, lines(known))
        always = self.before.findings == {HANG} and not self.ended(self.text)  # more order ends no hang
        last, since = self.tried, 0
        for edit in sorted((*others, *stronger), key=lambda one: (turns.turn(one), one.group[3:] != ALIKE, one.cost)):
            since += 1
            idle = self.best and (self.tried - last >= PATIENCE or since >= MUCH_PATIENCE)
            tired = idle and (turns.turn(edit) > NEARBY or edit.cost >= min(map(cost, self.best)))
            if tired or self._enough(edit.cost, most) or self._covered((edit,)):
                continue
            if edit in adding and ((always and "commit" not in edit.text) or self._in_vain(edit, pool)):
                continue
            if self.good((edit,)):
                last, since = self.tried, 0
                self.best = [one for one in self.best if not covers(one, (edit,))]
                self.best.append((edit,))
            elif edit in adding and not self._risky(edit) and len(pool) < POOL:
                pool += [(one, (edit,)) for one in self._speaking(self.failed)[:1]]

    def _enough(self, price: float, most: int) -> bool:
        """Are there repairs enough that cost no more?"""
        return sum(cost(one) <= price for one in self.best) >= most

    def _covered(self, edits: Iterable[Edit]) -> bool:
        """Do these changes do all that a repair does which is known already?"""
        return any(covers(edits, known) for known in self.best)

    def _in_vain(self, edit: Edit, pool: list[tuple[Against, Changes]]) -> bool:
        """Does an execution that speaks against the test survive the change?"""
        if not self.carry.legal(edit):
            return True
        if self._risky(edit):
            return False
        for number, (against, made) in enumerate(pool):
            if self._survives(against, made, (edit,)):
                pool.insert(0, pool.pop(number))  # what refuted one change is likely to refute the next
                return True
        return False

    def _survives(self, against: Against, made: Changes, edits: Changes) -> bool:
        """Is an execution of the text with some changes made still there, and still bad, with more of them made?"""
        execution = execution_of(against.witness)
        counted = any(delta is not None and delta.hidden for delta in map(self.carry.delta, edits))
        if execution is None or (counted and against.flag == "undefined-instruction"):
            return False
        changed = self.carry.carried(execution, made, edits)
        return changed is not None and survives(against, changed)

    def _risky(self, edit: Edit) -> bool:
        """Can the effect of a change not be told without judging the changed test?"""
        return self.carry.delta(edit) is None

    def _guided(self, stronger: list[Edit], others: list[Edit]) -> Changes:
        """The changes that the explanations ask for, one execution after the other, as far as they are needed."""
        todo: list[tuple[Changes, Standing | None]] = [((), self.before)]
        seen: set[Changes] = set()
        while todo and len(seen) < GUIDED:
            made, now = todo.pop()
            against = next(iter(self._speaking(now)), None)
            if against is None:
                continue
            further: list[tuple[Changes, Standing | None]] = []
            for more in asked_for(against, self.carry, made, stronger, others):
                edits = in_order({*made, *more})
                if edits in seen or len(edits) > MOST_CHANGES:
                    continue
                seen.add(edits)
                if self.good(edits):
                    return self._cheaper(self._needed(edits), stronger)
                further.append((edits, self.failed))
                for other in self._earlier(more, stronger) if _left(self.failed) < _left(now) else ():
                    edits = in_order({*made, *other})
                    if edits not in seen:
                        seen.add(edits)
                        if self.good(edits):
                            return self._cheaper(self._needed(edits), stronger)
                        further.append((edits, self.failed))
            todo += reversed(sorted(further, key=lambda one: _left(one[1])))
        return ()

    def _earlier(self, edits: frozenset[Edit], offered: list[Edit]) -> list[frozenset[Edit]]:
        """The same with a wait further up in its thread."""
        found: list[frozenset[Edit]] = []
        for edit in edits:
            thread, index, name = edit.group[:3]
            if edit.rank == 0 and edit.adds > 0 and isinstance(index, int):
                same = [one for one in offered if one.group[0] == thread and one.group[2] == name]
                above = [one for one in same if isinstance(at := one.group[1], int) and at < index]
                found += (edits - {edit} | {one} for one in sorted(above, key=lambda one: -one.start)[:UP])
        return found

    def _cheaper(self, edits: Changes, offered: list[Edit]) -> Changes:
        """A repair with cheaper fences and spellings where those are enough."""
        for edit in sorted(edits, key=lambda one: -one.cost):
            rest = tuple(one for one in edits if one is not edit)
            for other in sorted(offered, key=lambda one: one.cost):
                less = other.group in edit.implies or (other.group == edit.group and other.level < edit.level)
                if less and other.cost < edit.cost and self.good((*rest, other)):
                    return self._cheaper(in_order((*rest, other)), offered)
        return edits

    def _onward(self, numbers: list[Edit]) -> Changes:
        """Other numbers with which a test that hangs gets further, one after the other, until it gets to its end."""
        made: Changes = ()
        now = self.before
        for _ in range(MOST_NUMBERS):
            why = reasons(self._speaking(now))
            alike = [edit for edit in numbers if made and kind(edit) == kind(made[0])]
            others = [edit for edit in numbers if edit not in alike and answers(edit, why)]
            step = self._step(made, alike, now) or self._step(made, others, now)
            if step is None or not step[1]:
                return () if step is None else self._needed(step[0])
            made, now = step[0], step[1]
        return ()

    def _step(self, made: Changes, numbers: list[Edit], now: Standing) -> tuple[Changes, Standing | None] | None:
        """One more number that ends the hang, or with which the test gets furthest; None if it gets no further."""
        best: tuple[Changes, Standing] | None = None
        far = progress(now)
        for edit in numbers:
            if edit.group in {one.group for one in made}:
                continue
            more = in_order((*made, edit))
            if self.good(more):
                return more, None
            if self.failed is not None and self.failed.hangs and progress(self.failed) > far:
                far, best = progress(self.failed), (more, self.failed)
        return best

    # ---- sets of changes -----------------------------------------------------------------------------------------

    def _hitting(self, offered: list[Edit], most: int, why: frozenset[Reason]) -> frozenset[Reason]:
        """Sets of changes that suffice, the cheapest first; of other numbers and moves at most one in a set.

        Stops where an execution that is left has another reason than `why`, and returns its reasons.
        """
        ordered = sorted(offered, key=lambda one: ("fence.sc" in one.text, -one.cost))
        first = {one.flag: one for one in reversed(self._speaking(self.before))}
        needs = [Demand(frozenset(), self._among(one, (), ordered)) for one in first.values()]
        done = [frozenset(one) for one in self.best]
        last = self.tried
        while len(self.best) < most:
            more_sets = MORE_SETS if len(offered) <= MANY else FEW_SETS
            if self.tried - last >= (more_sets if self.best else MOST_SETS):
                self.left_out = self.left_out or not self.best
                break
            hit = self._cheapest(needs, done)
            if hit is None:
                break
            if self.good(hit):
                found = self._needed(in_order(hit))
                done.append(frozenset(found))
                self.best.append(found)
                last = self.tried
                continue
            more = frozenset() if self.best else reasons(self._speaking(self.failed)[:EACH])
            if not more <= why:
                return more
            needs += self._learnt(hit, ordered)
        return frozenset()

    def _learnt(self, hit: frozenset[Edit], ordered: list[Edit]) -> list[Demand]:
        """What a set that does not suffice says of those that do."""
        edits = in_order(hit)
        risky = frozenset(edit for edit in hit if self._risky(edit))
        speaking = self._speaking(self.failed)[:EACH]
        found = [Demand(risky, self._among(one, edits, ordered) - hit) for one in speaking]
        return found or [Demand(hit, frozenset(ordered) - hit)]

    def _numbers(self, edits: Iterable[Edit]) -> frozenset[Edit]:
        return frozenset(edit for edit in edits if about_numbers(edit))

    def _among(self, against: Against, made: Changes, everything: list[Edit]) -> frozenset[Edit]:
        """The changes of which a repair has one: those that remain when as many are made as the execution survives."""
        kept: list[Edit] = []
        todo = [[one for one in everything if one not in made and not self._risky(one)]]
        while todo:
            chunk = todo.pop()
            if not chunk:
                continue
            if monotonic() > self.until:
                raise BudgetSpent
            if self._survives(against, made, (*kept, *chunk)):
                kept += chunk
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
        return frozenset(everything) - frozenset(kept) - frozenset(made)

    def _needed(self, edits: Changes) -> Changes:
        """A repair less what it does not need."""
        for edit in sorted(edits, key=lambda one: -one.cost):
            rest = tuple(one for one in edits if one is not edit)
            if rest and self.good(rest):
                return self._needed(rest)
        return edits

    def _cheapest(self, needs: list[Demand], done: list[frozenset[Edit]]) -> frozenset[Edit] | None:
        """The cheapest set that meets all needs and contains nothing that is done; None if there is none."""
        best: tuple[float, frozenset[Edit]] | None = None
        pending: list[tuple[float, frozenset[Edit]]] = [(0.0, frozenset())]
        seen: set[frozenset[Edit]] = set()
        while pending:
            price, chosen = pending.pop()
            if chosen in seen or (best is not None and price >= best[0]):
                continue
            seen.add(chosen)
            if any(covers(chosen, one) for one in done):
                continue
            open_ = [one for one in needs if one.given <= chosen and not one.among & chosen]
            if not open_:
                best = (price, chosen)
                continue
            if len(chosen) == MOST_CHANGES:
                continue
            if monotonic() > self.until:
                raise BudgetSpent
            numbers = self._numbers(chosen)
            groups = {edit.group for edit in chosen}
            for edit in sorted(min(open_, key=_choices).among, key=lambda one: -one.cost):
                if edit.group not in groups and self._fits(edit, numbers):
                    pending.append((price + edit.cost, chosen | {edit}))
        return None if best is None else best[1]

    def _fits(self, edit: Edit, numbers: frozenset[Edit]) -> bool:
        """Other numbers and moves come alone; of a test that hangs, two numbers of one kind."""
        if not numbers or not about_numbers(edit):
            return True
        kinds = {kind(one) for one in numbers}
        return HANG in self.before.findings and len(numbers) == 1 and kinds == {kind(edit)} and kind(edit) != "move"

    def _speaking(self, now: Standing | None) -> list[Against]:
        """The executions of a standing that no repair may have."""
        if now is None:
            return []
        wanted = [
            one
            for one in now.against
            if (self.aim.outcomes if one.flag is None else self.aim.findings and one.flag in self.before.findings)
        ]
        return [one for one in wanted if execution_of(one.witness) is not None]


def _unjudged(text: str) -> Standing | None:
    """What stands for a judge before there is an aim."""
    return None


def _left(now: Standing | None) -> tuple[int, int]:
    """How much is wrong with a test that is not right yet."""
    return (99, 0) if now is None else (len(now.findings), len(now.against))


def _moves_a_fence(edit: Edit) -> bool:
    """A fence is moved; in a set, a new one does as much."""
    return kind(edit) == "move" and "fence" in edit.what


def _choices(need: Demand) -> int:
    return len(need.among)
