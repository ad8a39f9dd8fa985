"""Which programs a superposed program stands for: each once, and first those in which no instruction is idle.

In: Folded. Out: constraints. Places are named in order, threads that can be exchanged are in order. Under a formula
also what shapes are listed by (`search.sketches`): what is read is written, a wait has something to wait for, a fence
stands between two instructions. Another model need not find the rest idle.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from memmodel.base.logic import FALSE, TRUE
from memmodel.encode.counting import count
from memmodel.isa.rows.ingredients import BEGINS, ENDS, OBJECT, PLACED
from memmodel.search.sketches import REDUCTIONS
from memmodel.search.solving.folded import Folded
from memmodel.search.solving.superposed import Option

PlaceName = tuple[str, int]
"""A place by its class and its number."""

Holder = Callable[[Option], bool]
"""What an option is asked."""


def constrain(folded: Folded) -> int:
    """Require that what is chosen is such a program. Returns the formula under which no instruction of it is idle."""
    constraints = _Constraints(folded)
    constraints.add()
    return constraints.busy


class _Constraints:
    def __init__(self, folded: Folded) -> None:
        self.folded, self.program, self.logic = folded, folded.program, folded.logic
        self.words = self.program.vocabulary
        self.slots = range(len(self.program.slots))
        self.sites = list({site: None for options in self.program.options for it in options for site in it.sites})
        self.places = sorted({(site.kind, site.number) for site in self.sites})
        self.busy = self.logic.var("no idle instruction")

    def add(self) -> None:
        self._places_are_somewhere()
        self._places_are_named_in_order()
        for place in self.places:
            if place[0] == OBJECT:
                self._object_matters(place)
            else:
                self._place_matters(place)
                self._allocated_in_turn(place)
        for slot in self.slots:
            self._waits_matter(slot)
            self._values_depend_on_loads(slot)
            self._fences_stand_apart(slot)
        self._threads_are_in_order()
        if self.words.most is not None:
            accesses = self._where(lambda option: option.access is not None)
            self.logic.require(-self._at_least(accesses, self.words.most + 1))

    def _unless_idle(self, *clause: int) -> None:
        """Require one of these formulas of programs without an idle instruction."""
        self.logic.require(-self.busy, *clause)

    def _any(self, slot: int, holder: Holder) -> int:
        """The formula that says that a slot holds such an instruction."""
        options = enumerate(self.program.options[slot])
        return self.logic.disj(self.folded.holds(slot, number) for number, option in options if holder(option))

    def _where(self, holder: Holder) -> list[int]:
        """For each slot, that it holds such an instruction."""
        return [self._any(slot, holder) for slot in self.slots]

    def _at_least(self, formulas: list[int], number: int) -> int:
        return self.logic.disj(count(self.logic, formulas)[number:]) if number <= len(formulas) else FALSE

    def _held(self, slot: int) -> list[tuple[int, Option]]:
        """The options of a slot, each with the variable that says that the slot holds it."""
        return [(self.folded.holds(slot, number), option) for number, option in enumerate(self.program.options[slot])]

    def _earlier(self, slot: int) -> list[int]:
        """The slots before one in its thread."""
        mine = self.program.slots[slot]
        return [other.number for other in self.program.slots if other.thread == mine.thread and other.at < mine.at]

    # ---- places ------------------------------------------------------------------------------------------------------

    def _places_are_somewhere(self) -> None:
        """A place of a CTA is in one CTA."""
        for place in self.places:
            if place[0] not in PLACED:
                continue
            mine = [site for site in self.sites if (site.kind, site.number) == place]
            in_cta = {site: self.logic.var(f"is {site.name}@{site.cta}") for site in mine}
            self.logic.exactly_one(list(in_cta.values()))
            for slot in self.slots:
                for holds, option in self._held(slot):
                    for site in option.sites:
                        if site in in_cta:
                            self.logic.require(-holds, in_cta[site])

    def _places_are_named_in_order(self) -> None:
        for kind, place in self.places:
            before: list[int] = []
            for slot in self.slots if place else ():
                for holds, option in self._held(slot):
                    names = [site.number for site in option.sites if site.kind == kind]
                    if place in names and place - 1 not in names[: names.index(place)]:
                        self.logic.require(-holds, *before)
                before.append(self._any(slot, _names((kind, place - 1))))

    def _place_matters(self, place: PlaceName) -> None:
        """A place is named twice and written, or is only named beside other places, or memory of its class is allocated
        or freed. At most REDUCTIONS instructions reduce into it.
        """
        logic = self.logic
        twice = self._at_least(self._where(_names(place)), 2)
        written = logic.disj(self._where(_writes(place)))
        lives = logic.disj(
            formula for other in self.places if other[0] == place[0] for formula in self._where(_lives(other))
        )
        for slot in self.slots:
            self._unless_idle(-self._any(slot, _names(place, alone=True)), logic.both(twice, written), lives)
        self._unless_idle(-self._at_least(self._where(_reduces(place)), REDUCTIONS + 1))

    def _allocated_in_turn(self, place: PlaceName) -> None:
        """Only one thread begins the life of a place, and it ends that life before it begins another."""
        begins, ends = self._where(_lives(place, BEGINS)), self._where(_lives(place, ENDS))
        for first, second in combinations(self.program.slots, 2):
            between = ends[first.number + 1 : second.number] if first.thread == second.thread else []
            self.logic.require(-begins[first.number], -begins[second.number], *between)

    def _object_matters(self, place: PlaceName) -> None:
        """Unless an instruction is idle, it has arrivals and a test; without a test, the signal of one copy alone."""
        logic = self.logic
        arrivals, tests = self._where(_arrives(place)), self._where(_tests(place))
        copies = self._where(lambda option: _arrives(place)(option) and len(option.sites) > 1)
        counts = count(logic, arrivals)
        for slot in self.slots:
            self._unless_idle(-tests[slot], *arrivals)
            self._unless_idle(-arrivals[slot], *tests, logic.both(counts[1], copies[slot]))

    # ---- instructions ------------------------------------------------------------------------------------------------

    def _waits_matter(self, slot: int) -> None:
        """A wait for completions has some to wait for before it, and something after it."""
        for holds, option in self._held(slot):
            if option.ingredient is not None and option.ingredient.ends:
                begins = _is(option.ingredient.ends)
                if self.program.is_last(slot):
                    self._unless_idle(-holds)
                self._unless_idle(-holds, *(self._any(other, begins) for other in self._earlier(slot)))

    def _values_depend_on_loads(self, slot: int) -> None:
        for holds, option in self._held(slot):
            if option.forms[0].data:
                self.logic.require(-holds, *(self._any(other, _loads) for other in self._earlier(slot)))

    def _fences_stand_apart(self, slot: int) -> None:
        """A fence is neither first nor last; no more are side by side than a gap has room for, and no two alike."""
        earlier = self._earlier(slot)
        if not earlier or self.program.is_last(slot):
            self._unless_idle(-self._any(slot, _is_fence))
        side_by_side = [slot, *earlier[-self.words.gap :]]
        if len(side_by_side) > self.words.gap:
            self._unless_idle(*(-self._any(other, _is_fence) for other in side_by_side))
        if earlier:
            before = {option.forms: holds for holds, option in self._held(earlier[-1]) if _is_fence(option)}
            for holds, option in self._held(slot):
                if option.forms in before:
                    self._unless_idle(-holds, -before[option.forms])

    # ---- threads -----------------------------------------------------------------------------------------------------

    def _threads_are_in_order(self) -> None:
        """Of two threads that can be exchanged, the first is the first in the order of the vocabulary, too."""
        layout = self.program.layout
        for first, second in combinations(range(len(layout.lengths)), 2):
            if layout.interchangeable(first, second):
                self._is_not_after(first, second)

    def _is_not_after(self, first: int, second: int) -> None:
        logic, slots = self.logic, self.program.slots
        equal = TRUE
        for a, b in zip(
            [slot.number for slot in slots if slot.thread == first],
            [slot.number for slot in slots if slot.thread == second],
            strict=True,
        ):
            mine, other = self._words(a), self._words(b)
            for word, here in mine.items():
                logic.require(-equal, -here, *(there for later, there in other.items() if later >= word))
            equal = logic.both(
                equal, logic.disj(logic.both(here, other.get(word, FALSE)) for word, here in mine.items())
            )

    def _words(self, slot: int) -> dict[int, int]:
        """The number of each instruction in the vocabulary, with the formula that says that a slot holds it."""
        words: dict[int, list[int]] = {}
        for holds, option in self._held(slot):
            fence = len(self.words.accesses)
            words.setdefault(fence if option.access is None else option.access, []).append(holds)
        return {word: self.logic.disj(formulas) for word, formulas in words.items()}


def _names(place: PlaceName, alone: bool | None = None) -> Holder:
    """Selects options that name a place; `alone`: only with (True) or without (False) no other place beside it."""
    return lambda option: (
        any((site.kind, site.number) == place for site in option.sites)
        and (alone is None or alone is (len(option.sites) == 1))
    )


def _writes(place: PlaceName) -> Holder:
    def writes(option: Option) -> bool:
        does = "" if option.ingredient is None else option.ingredient.does
        return any(
            (site.kind, site.number) == place and what != "r" for site, what in zip(option.sites, does, strict=True)
        )

    return writes


def _lives(place: PlaceName, *which: str) -> Holder:
    """Selects options that begin or end the life of a place; `which`: only those that do this."""
    return lambda option: (
        _names(place)(option) and option.ingredient is not None and option.ingredient.life in (which or (BEGINS, ENDS))
    )


def _reduces(place: PlaceName) -> Holder:
    return lambda option: _names(place)(option) and option.ingredient is not None and option.ingredient.reduces


def _arrives(place: PlaceName) -> Holder:
    return lambda option: _names(place)(option) and option.ingredient is not None and option.ingredient.arrives > 0


def _tests(place: PlaceName) -> Holder:
    return lambda option: _names(place)(option) and not _arrives(place)(option)


def _is(names: tuple[str, ...]) -> Holder:
    return lambda option: option.ingredient is not None and option.ingredient.name in names


def _loads(option: Option) -> bool:
    return option.loads


def _is_fence(option: Option) -> bool:
    return option.access is None
